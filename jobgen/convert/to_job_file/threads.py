"""OMP_NUM_THREADS: what each command finds in the script and in the job of the job file.

The job sets it to the cores of a rank behind setup, if no variable of the job file names it. Setup has that
of the scheduler, which PBS Pro alone sets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from jobgen.convert import request_reader
from jobgen.convert.launch_nodes import ALL, SIZE_OF_NODE, counts_node, named_cores
from jobgen.convert.request_reader import has_directives, line_of
from jobgen.convert.result import Remark, hint, remark_on
from jobgen.convert.to_job_file.blocks import BUILDS
from jobgen.convert.to_job_file.builder import BLOCKS, JobFile
from jobgen.convert.to_job_file.effects import TOOLS_OF_SYSTEM, effects_of
from jobgen.convert.to_job_file.thread_changes import NAME as _NAME
from jobgen.convert.to_job_file.thread_changes import otherwise, unread
from jobgen.convert.variable_names import is_exported, starts_workers, submits_jobs
from jobgen.errors import counted
from jobgen.launch.launchers import LAUNCHERS
from jobgen.schedulers.request import Request
from jobgen.script.commands import Command
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import LATER, LOOPS, Node, function_of
from jobgen.values.parsers import number

# In remarks on the request: what is not true of a program without the variable.
_SETS = re.compile(rf", and (sets {_NAME} to them|{_NAME}=\d+, which the script leaves unset)")
_UNSET = ""
_UNKNOWN = "?"
_OF_MDRUN = ("-nt", "-ntmpi", "-ntomp")
_MDRUN = re.compile(r"mdrun(_\w+)?(\.exe)?")
_OF_MPI = re.compile(r"(gmx|mdrun)\w*_mpi")
_LAUNCHERS = {name for row in LAUNCHERS.values() for name in row.names}
# A number of threads that is the variable, or the cores of a rank.
_OF_RANK = re.compile(rf"\"?\$\{{?({_NAME}|SLURM_CPUS_PER_TASK)(:?-\w*)?\}}?\"?")
# With the sign in front of it at the end of a line, else with that behind it.
_EXPORT = re.compile(
    rf"(?:^|\s*(?:;|&&))\s*export {_NAME}=[\"']?(\d+)[\"']?\s*$\n?"
    rf"|(?:^|(?<=[;&]))\s*export {_NAME}=[\"']?(\d+)[\"']?\s*(?:;|&&)",
    re.MULTILINE,
)
_EXPORTS = re.compile(r"^(source|\.)\s|\bexport\b")  # of a place that sets the variable in another way
_WHOLE = "if the site gives whole nodes, set exclusive, and "
_SIZE_OF_JOB = re.compile("--(ntasks$|mem)")
_OWN_SHELL = ("subshell", "command_substitution", "process_substitution")
_BRANCHES = (*LATER, "list")


class _Change(NamedTuple):
    """A place that sets the variable, or unsets it, for the commands after it; ``value``: None if unknown."""

    node: Node
    value: str | None


def of_chunk(request: Request) -> int | None:
    """Return the cores of a node that all chunks of a select have, one if it names ranks alone; None without
    a select."""
    chunk = request.chunks[0] if len(request.chunks) == 1 else {}
    return number(chunk.get("ncpus", "1" if "mpiprocs" in chunk else ""))


def _names_cores(script: Script) -> bool:
    """Return whether a request names ranks, or for one node cores or GPUs, which often come with cores."""
    request = script.request
    if request.chunks:
        return any({"ncpus", "mpiprocs", "ppn", "ngpus", "gpus"} & chunk.keys() for chunk in request.chunks)
    alone = request.nodes == 1
    fields = ("ranks", "ranks_per_node", "cpus_per_rank") if alone else ("ranks",)
    named = any(script.dialect.origin(script.heeded, one) is not None for one in fields)
    return named or (alone and bool(request.gpus_per_node or request.gpus))


class Threads:
    """The number of threads at each place of a script, and of its job."""

    def __init__(self, file: JobFile, script: Script, program: Command | None, launch: Launch | None) -> None:
        self.file, self.script, self.program, self.launch = file, script, program, launch
        self.rank, self.each = file.count("cpus_per_rank"), file.count("ranks_per_node")
        self.node = file.count("cpus_per_node", self.rank * self.each)
        cores = of_chunk(script.request) or script.request.cpus_per_rank or 1
        passed = dict(request_reader.read(script, totals=True).exports).get(_NAME)
        self.start = passed or (str(cores) if script.dialect.sets_threads else _UNSET)
        self.others = [_Change(*one) for one in otherwise(script)]
        exported = any(_EXPORTS.search(one.node.text) for one in self.others)
        self.is_passed = script.dialect.sets_threads or is_exported(script, _NAME) or exported
        self.of_mdrun: dict[int, str | None] = {}  # by the starts of commands
        self.unset: set[str] = set()  # the blocks that do not get it
        self.changes = sorted(self._changes(), key=lambda one: one.node.start) if self.is_passed else []
        self.last = self.changes[-1].value if self.changes else self.start  # behind all commands

    def write(self) -> None:
        """Set the variable to that of the program; add a remark on each command that finds another one."""
        here, place = self.program, None
        if here is not None and here.node.source is self.script.tree.source:
            place = None if here.node.under("function_definition") else here.node
        found = [one for name, _, one in self.script.assignments if name == _NAME]
        if not (found := [*found, *(one.node for one in self.others)]):
            self._take_of_text()
        outside = [one for one in self.changes if not self._is_kept(one.node)]
        value = self._at(place, outside, self.start) if place else self.last
        before = [one for one in found if place is None or one.start < place.end]
        before = sorted((one for one in before if not self._is_kept(one)), key=lambda one: one.start)
        own = f"jobgen sets it to the cores of a rank, {self.rank}"
        if before and not self.is_passed:
            why = "is not exported: programs do not get it. "
            self.file.remarks.append(remark_on(before[-1], f"{why}{own}"))
        elif value is None and here is not None and before:
            sets = f"sets {_NAME}: " * (before[-1].type != "variable_assignment")
            self.file.remarks.append(remark_on(before[-1], f"{sets}{own}"))
        elif before and value and value != str(self.rank):
            self.file.set_variable(_NAME, value, before[-1].line)
        elif value is not None and _NAME not in self.file.variables and (value == self.start or not before):
            self.file.remarks += self._of_program()
        if not found:
            self._of_mdrun()
        unset = (one for one in self.script.tree.all("unset_command") if _NAME in one.text.split())
        by_script = here is not None and any(one.start < here.node.start for one in unset)
        if here is not None and by_script and value == _UNSET and "command" not in self.unset:
            self._leave_out(here)
        if _NAME in self.file.variables:
            self._correct_requests()
        self.file.remarks += self._of_whole_nodes(value)
        self.file.remarks += self._of_others()
        self.file.remarks += self._of_files(place)

    def _of_files(self, place: Node | None) -> Iterator[Remark]:
        """Yield a remark on the last file that may set the variable for the program."""
        end = self.script.tree.end if place is None else place.start
        own = [one.node.start for one in self.changes if one.node.start < end and one.value]
        if "command" in self.unset or self.file.program == ["true"]:
            return
        for node, path in [*unread(self.script)][::-1]:
            if max(own, default=0) < node.start < end:
                number = self.file.variables.get(_NAME, str(self.rank))
                yield hint(
                    node.line, os.path.basename(path), f"if it sets {_NAME}, the job replaces it by {number}"
                )
                return

    def _take_of_text(self) -> None:
        """Take the number that a text for each node exports out of setup, behind which jobgen sets it."""
        setup = str(self.file.values.get("setup", ""))
        if (export := _EXPORT.search(setup)) is None or self.launch is None:
            return
        self.file.set_variable(_NAME, export[1] or export[2], self.launch.line)
        self.file.values["setup"] = setup[: export.start()] + setup[export.end() :]
        if re.fullmatch(r"(set [-+]\S+\s*)?", str(self.file.values["setup"])):
            del self.file.values["setup"]

    def _of_mdrun(self) -> None:
        """Set the variable to the threads of mdrun, which ends if it is another number.

        With several numbers, add a remark on each other one. The block or program of an mdrun with a number
        that is known only when the job runs, of workers, or of jobs that it submits, does not get it.
        """
        lines: dict[str, int] = {}
        for one in self.script.runs:
            self.of_mdrun[one.node.start] = threads = self._threads_of(one)
            workers = self.rank > 1 and starts_workers(self.script, one.node)
            others = workers or submits_jobs(self.script, one.node)
            if threads and threads.isdecimal():
                lines[threads] = one.line
            elif self.start == _UNSET and (threads == _UNKNOWN or others):
                self._leave_out(one)
        if len(lines) == 1 and _NAME not in self.file.variables:
            self.file.set_variable(_NAME, *lines.popitem())
        for count, line in lines.items():
            if count != str(self.rank):
                why = f"mdrun ends if {_NAME} is another number, here {self.rank}: set it before the command"
                self.file.hint(line, f"-ntomp {count}", why)

    def _threads_of(self, command: Command) -> str | None:
        """Return the threads of a rank in options of mdrun; None if they are those of the variable."""
        constants = self.script.constants
        # Also in the text of a shell.
        text = " ".join(constants.value(word) or word.text for word in command.words)
        words = re.sub(r"(-nt\w*)=", r"\1 ", re.sub("[\"']", " ", text)).split()
        given = {option: value for option, value in pairwise(words) if option in _OF_MDRUN}
        if given.get("-ntomp", "0") == "0":
            ranks = number(given.get("-ntmpi"))
            names = [os.path.basename(word) for word in words]
            same = ranks and "-nt" not in given and ranks * self.rank == self.node
            divides = given.keys() - {"-ntomp"} and not same
            if not given and self.rank > 1:  # mdrun with ranks of its own divides the cores
                alone = {*names}.isdisjoint(_LAUNCHERS) or self.each * (self.script.request.nodes or 1) == 1
                divides = alone and not any(map(_OF_MPI.search, names))
            return _UNKNOWN if divides and any(map(_MDRUN.fullmatch, names)) else None
        name = re.fullmatch(r"\\?\$\{?(\w+)\}?", given["-ntomp"])
        node = constants.node(name[1]) if name else None
        found = given["-ntomp"] if node is None else constants.value(node) or constants.origin(node).text
        return found if found.isdecimal() else None if _OF_RANK.fullmatch(found) else _UNKNOWN

    def _leave_out(self, command: Command) -> None:
        """Unset the variable in the program, or in the block, of a command."""
        inside = self._is_in_program(command)
        keys = ["command"] if inside else [self._block(command)[0]]
        if not inside and command.node.under("function_definition"):
            keys = [key for key in (*BLOCKS, "command") if command.node.text in self._code(key)]
        for key in {*keys} - self.unset - {""}:
            self.unset.add(key)
            if key == "command":
                self.file.hide(_NAME)
                self._correct_requests()
            else:
                self.file.values[key] = f"unset {_NAME}\n{self.file.values[key]}"

    def _correct_requests(self) -> None:
        """Correct the remarks on the request, which the variable does not follow."""
        self.file.remarks = [one._replace(why=_SETS.sub("", one.why)) for one in self.file.remarks]

    def _is_kept(self, assignment: Node) -> bool:
        """Return whether the code of the program has an assignment, too."""
        words = rf"(?m)(^|[\s;&(]){re.escape(assignment.text)}($|[\s;&)])"
        return re.search(words, self.file.shell_code) is not None

    def _is_in_program(self, command: Command) -> bool:
        return self.program is not None and command.node in self.program.node

    def _of_whole_nodes(self, threads: str | None) -> Iterator[Remark]:
        """Yield a remark if a script may rely on whole nodes, which its site gives without a request."""
        request, need = self.script.request, (number(threads) or 1) * self.each
        if request.exclusive or not has_directives(self.script):
            return
        sizes = SIZE_OF_NODE if request.nodes == 1 else _SIZE_OF_JOB
        sized = any(map(sizes.match, self.script.heeded))
        open_size = not (request.mem or sized or _names_cores(self.script))
        own = _NAME in self.file.variables or self.changes or self.start
        unset = "" if own else f"; {_NAME} is {self.rank}, and unset in the script"
        last = max((one.node.line for one in self.changes), default=0)
        uses = [(need, last, _NAME)] if self.changes else []
        need, line, what = max([*uses, named_cores(self.script)], key=lambda one: one[0])
        if need > self.node and not (self.launch and self.launch.row.once_a_node):
            why = f"uses {need} cores of a node, and the request has {self.node}: "
            why += f"{_WHOLE}the cores of a rank{unset}"
            yield hint(line, what, why)
        elif place := counts_node(self.script):
            why = f"counts all cores of the node, not the {self.node} of the request: {_WHOLE}"
            why += "the cores of a rank"
            yield hint(*place, why)
        elif self.node == 1 and request.nodes and open_size:
            why = f"without a number of cores: {_WHOLE}the ranks and the cores of a node{unset}"
            yield hint(line_of(self.script, "nodes"), counted(request.nodes or 1, "node"), why)

    def _changes(self) -> Iterator[_Change]:
        yield from self.others
        of_functions: dict[str, str | None] = {}
        for name, value, node in self.script.assignments:
            if name != _NAME or node.child_of("command"):
                continue
            text = self.script.constants.value(value)
            if function := function_of(node):
                of_functions[function] = None if function in of_functions else text
            else:
                yield _Change(node, text)
        for one in self.script.tree.all("unset_command"):
            if _NAME in one.text.split() and not one.under("function_definition"):
                yield _Change(one, _UNSET)
        for command in self.script.commands:
            if command.name in of_functions and not command.node.under("function_definition"):
                yield _Change(command.node, of_functions[command.name])

    def _at(self, place: Node, changes: Sequence[_Change], start: str | None) -> str | None:
        """Return the value that a command finds, if the variable has the value ``start`` before it all."""
        for name, value, node in self.script.assignments:
            if name == _NAME and node.parent is place and not self._is_kept(node):  # for this command alone
                return self.script.constants.value(value)
        found = start
        for one in changes:
            around = [above for above in one.node.above() if place not in above]
            again = any(above.type in LOOPS and place in above for above in one.node.above())
            later = one.node.start > place.start and not again
            if later or any(above.type in _OWN_SHELL for above in around):
                continue
            certain = one.node.start < place.start and not any(above.type in _BRANCHES for above in around)
            found = one.value if certain or found == one.value else None
        return found

    def _of_program(self) -> Iterator[Remark]:
        """Yield a remark if the ranks have another number than in the script, which does not set it."""
        cores = of_chunk(self.script.request) or self.script.request.cpus_per_rank or 1
        dialect, launch, several = self.script.dialect, self.launch, 1 not in (self.each, self.rank)
        text = self.program.node.text if self.program is not None else ""
        given = f"{_NAME}=" in text or any(name.endswith(f"ENV_{_NAME}") for name in self.file.variables)
        if dialect.sets_threads and cores != self.rank:
            why = f"{dialect.title} sets it to the cores of a chunk, {cores}, "
            why += f"jobgen to those of a rank, {self.rank}"
            yield hint(line_of(self.script, "cpus"), _NAME, why)
        elif launch and launch.row.one_thread and several and not (dialect.sets_threads or given):
            why = f"{launch.title} sets it to 1, jobgen to the cores of a rank, {self.rank}"
            yield hint(launch.line, _NAME, why)

    def _of_others(self) -> Iterator[Remark]:
        """Yield a remark on the first other program of each block that finds another number in a job."""
        launches = {one.command.node.start: one for one in self.script.launches}
        seen = set()
        for one in self.script.commands:
            words = launch.program[:1] if (launch := launches.get(one.node.start)) is not None else ()
            tool = any(os.path.basename(word.text) in TOOLS_OF_SYSTEM for word in words)
            if self._is_in_program(one) or tool or one.node.under("function_definition", "heredoc_body"):
                continue
            key, code = self._block(one)
            if not key or "program" not in effects_of(self.script, one.node).kinds:
                continue
            if BUILDS.match(" ".join(word.text for word in one.words)):
                continue
            old, new = self._at(one.node, self.changes, self.start), self._in_job(one, key, code)
            others = {title: value for title, value in new.items() if not self._same(old, value, launch)}
            value = next(iter(others.values()), None)
            if others and (key, old, value) not in seen and self.of_mdrun.get(one.node.start) != value:
                seen.add((key, old, value))
                where = f"a job for {next(iter(others))}" if len(others) < len(new) else "the job"
                why = f"finds {_NAME} {old or 'unset'} in the script, and {value or 'unset'} in {where}"
                yield remark_on(one, why)

    def _block(self, command: Command) -> tuple[str, str]:
        """Return the block of the job file that has a command, and the text of the block."""
        after = self.program is not None and command.node.start > self.program.node.start
        for key in ("after_block", "command") if after else ("setup", "before", "command"):
            if command.node.text in (code := self._code(key)):
                return key, code
        return "", ""

    def _code(self, key: str) -> str:
        value = self.file.values.get(key, "")
        return "\n".join(value) if isinstance(value, list) else str(value)

    def _in_job(self, command: Command, key: str, code: str) -> dict[str, str | None]:
        """Return what a command in the text of a block finds in jobs for different schedulers."""
        named = self.file.variables.get(_NAME)
        changes = [one for one in self.changes if one.node.text in code]
        starts: dict[str, str] = {}
        for dialect in (self.script.dialect, *DIALECTS.values()):
            of_scheduler = str(self.node) if dialect.sets_threads else _UNSET
            start = named or (of_scheduler if key == "setup" else str(self.rank))
            starts.setdefault(_UNSET if key in self.unset else start, dialect.title)
        return {title: self._at(command.node, changes, start) for start, title in starts.items()}

    def _same(self, old: str | None, new: str | None, launch: Launch | None) -> bool:
        """Return whether a program has the same threads: without a number, those of the cores that it has."""
        if old is None or new is None or old == new:
            return True
        nodes, ranks = self.script.request.nodes or 1, 1
        if launch is not None:
            each = launch.each or self.each
            ranks = max(launch.number(*ALL) or each * nodes, 1)
        share = max(self.node * (nodes if launch is not None else 1) // ranks, 1)
        first, second = number(old) or share, number(new) or share
        fewer = launch is not None and ranks < self.each * nodes and not old  # bound to the cores of a rank
        return first == second or (fewer and second < share)
