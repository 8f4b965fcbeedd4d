"""Remarks on the files of a script and of its job: the script, its log, its output, those of the user."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from jobgen.convert import unread_files
from jobgen.convert.misreadings import names_devices
from jobgen.convert.result import Remark, hint, remark_on, shortened, shown
from jobgen.convert.start_directory import path_of
from jobgen.convert.swept_files import sweeps, takers
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.host_code import target_of
from jobgen.convert.to_job_file.processes import other_code, shell_texts
from jobgen.convert.to_job_file.programs import sizes_of_tasks
from jobgen.convert.to_job_file.statements import Split
from jobgen.convert.unread_files import of_engines
from jobgen.options import BY_KEY
from jobgen.script.command_kinds import PRINT
from jobgen.script.commands import Command, commands
from jobgen.script.script import Script
from jobgen.script.syntax import Node, expansions
from jobgen.values.parsers import known_directory

# Variables that stay in the jobs which a job submits, if these do not request them. Seen with Slurm 22.05.
_OF_CHILD = ("SLURM_GPUS_PER_NODE", "SLURM_MEM_PER_NODE", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE")
_HANDLES = ("cat", "cp", "mv", "tee")
_READS_TEXT = ("awk", "cut", "diff", "egrep", "grep", "head", "read", "sed", "sort", "tail", "wc")
_WITH_FILES = ("command", "test_command", "file_redirect")
_WORDS = ("word", "string", "raw_string", "concatenation", "simple_expansion", "expansion")
_FINDS_SCRIPT = re.compile(r"scontrol (-\S+ )*show job\b.*\bCommand=")
_NAMES_ONLY = {*PRINT, "rm", "mkdir", "tee"}


def _own_paths(file: JobFile) -> set[str]:
    """Return the variables with the path of the script that commands of other shells read."""
    found = {name for one in other_code(file) for name, _ in expansions(one)} & {"0", "BASH_SOURCE"}
    return found | ({"BASH_SOURCE"} if "BASH_SOURCE" in file.blocks[0] else set())


def own_path(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on the path of the script in other shells, and on its name where it is submitted."""
    for name in sorted(_own_paths(file)):
        why = "is the path of this script, which the commands of a job file do not have"
        yield Remark(next((node.line for one, node in script.expansions if one == name), 1), f"${name}", why)
    variable = script.dialect.variable("job_name")
    for one in script.running(script.dialect.command) if script.request.name is None else ():
        if any(re.fullmatch(rf"\$\{{?{variable}\}}?", word.text.strip('"')) for word in one.arguments):
            why = "is the name of this script, after which its job is called, and not that of the new one"
            yield hint(one.line, f"${variable}", why)


def own_text(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on each command that reads the text of the script, or asks for its path."""
    lost, query = _own_paths(file), script.dialect.show_job[:1]
    for one in script.running(*query):
        above = one.node.around("pipeline")
        writes = one.literals[:2] == ["write", "batch_script"]
        if writes or (above is not None and re.search(r"\bCommand\\?=", above.text)):
            why = "the script of jobgen, which has another text, and maybe another folder"
            yield remark_on(one, f"{'writes' if writes else 'names'} {why}")
    paths = [name for name, value, _ in script.assignments if _FINDS_SCRIPT.search(value.text)]
    own = re.compile(rf"\"?\$\{{?({'|'.join(['0', 'BASH_SOURCE', *paths])})(\[0\])?\}}?\"?")
    for one in script.runs:
        reads = one.name in (*_READS_TEXT, "cat", "cp", "less", "md5sum", "more", "sha256sum", "source", ".")
        words = one.arguments[: 1 if one.name in ("source", ".") else None]  # the others are handed on
        found = (own.fullmatch(word.text) for word in words)
        if reads and any(path[1] not in lost for path in found if path):
            why = "reads the script of jobgen, without the comments and the directives of this one"
            yield remark_on(one, why)


def log_text(script: Script) -> Iterator[Remark]:
    """Yield a remark on the first command that reads the log, or the file of errors, a part of it."""
    request, dialect = script.request, script.dialect
    job = request.name or script.name or "%x"
    codes = r"%\d*[a-zA-Z]|\$\{?\w+\}?"  # of the log and of the script: any text
    of_log = "reads the log, in which the job of jobgen writes lines of its own, too"
    of_errors = "handles the file of errors, which the job does not write: they are in its log"
    whys = dict.fromkeys([request.output] if request.output else dialect.own_log_names, of_log)
    whys = {request.error: of_errors, **whys} if request.error else whys
    logs = {re.sub(codes, "*", os.path.basename(path.replace("%x", job))): why for path, why in whys.items()}
    for one in script.runs:
        words = one.arguments if one.name in (*_READS_TEXT, *_HANDLES) else ()
        files = [script.constants.value(word) or word.text.strip("\"'") for word in words]
        if above := one.node.child_of("redirected_statement"):
            files += re.findall(r"(?<!<)<\s*[\"']?([\w./${}-]+)", above.text)
        names = {re.sub(codes, "*", os.path.basename(name)) for name in files} - {"null"}
        known = [name for name in names if name.strip("*")]
        pairs = ((name, log) for name in known for log in logs)
        found = (log for name, log in pairs if name == log or fnmatchcase(log.replace("*", "1"), name))
        why = next((logs[log] for log in found), "")
        handles = one.name in _HANDLES and not (one.name == "cat" and one.node.child_of("pipeline"))
        if why and (not handles or why == of_errors):
            yield remark_on(one, why)
            return


def lost_files(script: Script, file: JobFile, parts: Split, program: Command) -> Iterator[Remark]:
    """Yield a remark on the first command that names a file of output which the job does not write."""
    after = [one for statement in parts.behind for one in statement.all(*_WITH_FILES)]
    for place, target in _outputs(program):
        name = _path(script, target)
        if place.text in file.shell_code or name == "/dev/null":
            continue
        for one in after:
            if any(_is_file(_path(script, word), name) for word in _files(one)):
                why = f"names {shortened(name)}, which the job does not write: the output is in its log"
                yield remark_on(one, why, lost=True)
                break


def _outputs(program: Command) -> Iterator[tuple[Node, Node]]:
    """Yield each file with output of the program: its redirection, or its tee, and its name."""
    for above in program.node.above():
        for part in above.children if above.type in ("redirected_statement", "pipeline") else ():
            writes = part.type == "file_redirect" and target_of(part) is not None
            if writes and (target := part.get("destination")) is not None:
                yield part, target
            for one in commands(part) if part.start > program.node.start else ():
                words = one.arguments if one.name == "tee" else ()
                yield from ((part, word) for word in words if not word.text.startswith("-"))


def _files(node: Node) -> Iterator[Node]:
    """Yield the words that may be files which a command, a test or a redirection reads."""
    if node.type == "test_command":
        yield from (one for one in node.all(*_WORDS) if not one.under("string", "concatenation"))
    elif node.type == "command":
        yield from node.children[1:] if node.name not in _NAMES_ONLY else ()
    elif node.text.startswith("<"):
        yield from node.children[1:]


def _path(script: Script, word: Node) -> str:
    return re.sub(r"\$\{(\w+)\}", r"$\1", re.sub("[\"']", "", script.constants.text(word)))


def _is_file(text: str, name: str) -> bool:
    """Return whether a word, maybe a pattern or the value of an option, names a file."""
    folder, base = os.path.split(text.rpartition("=")[2])
    other, of_name = os.path.split(name)
    if folder == other:
        return bool(base.strip("*")) and fnmatchcase(of_name, base)
    return base == of_name and not (folder and other)


def child_jobs(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on a job that the script submits with its environment, which jobgen extends."""
    threads = {"OMP_NUM_THREADS"} - {*file.variables, *script.values}
    without_devices = file.values.get("accelerator") == "cpu" and names_devices(script)
    devices = ["DS_ACCELERATOR=cpu"] * without_devices
    texts = (*file.blocks[1:], *shell_texts(file))
    code = "\n".join(text for text in texts if not re.search(r"(?m)^unset OMP_NUM_THREADS$", text))
    why = "of this one, too, which the script leaves unset"
    for call in of_engines(script, "snakemake") if threads else ():  # which sets it for its jobs
        what = call.path.rpartition(" ")[2]
        yield hint(call.line, what, f"the jobs that it submits get OMP_NUM_THREADS {why}")
        return
    for one in script.running(script.dialect.scheduler.command):
        passes = "-V" in one.literals if script.is_pbs else "--export" not in one.node.text
        after = threads if one.node.text in code else set[str]()
        found = sorted({*after, *devices}) if after or one.node.text in file.blocks[0] else []
        if passes and one.node.text in "\n".join([file.blocks[0], *texts]) and not script.is_pbs:
            yield from _kept_by_children(script, file, one)
        if passes and found:
            yield remark_on(one, f"the new job gets {' and '.join(found)} {why}")
            return


def _kept_by_children(script: Script, file: JobFile, call: Command) -> Iterator[Remark]:
    """Yield a remark on sizes of the job which a job that it submits finds, and the script leaves unset."""
    code = "\n".join([*file.blocks, *shell_texts(file)])
    hidden = " ".join(re.findall(r"(?m)^unset (SLURM_N.*)", code)).split()
    kept = [name for name, (old, new) in sizes_of_tasks(script, file).items() if old is None and new]
    if names := ", ".join(name for name in kept if name in _OF_CHILD and name not in hidden):
        yield remark_on(
            call,
            f"the new job finds {names} of this one, which the script leaves unset, and its "
            "srun reads them, unless it requests them itself",
        )


def unread(script: Script) -> Iterator[Remark]:
    """Yield a remark on files of the user that may be for the scheduler of the script."""
    found = [one for one in unread_files.files(script) if unread_files.may_be_for(script, one)]
    yield from unread_files.remark(script, found, "another scheduler")
    yield from unread_files.of_programs(script, "another scheduler")


def run_directory(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on each command that takes the run directory of the job with other files."""
    parent = str(BY_KEY["runs_dir"].default)
    folder = f"{parent}/{file.values.get('name', 'job')}-ID"
    start = path_of(script, known_directory(file.text_of("workdir")), "")
    paths = [os.path.join(start, one) for one in (f"{folder}/job.sh", f"{folder}/", f"{parent}/")]
    why = "too: the job writes its logs there, unless runs_dir is in another directory"
    swept = list(sweeps(script, paths[:1]))
    for one in swept:
        yield hint(one.command.line, shown(one.command.statement), f"{one.verb} {folder}, {why}")
    code = "\n".join([*file.blocks, *file.program])
    for node in takers(script, paths):
        kept = node.type == "command" or node.text.split("\n")[0] in code
        if kept and not any(one.command.node in node for one in swept):
            yield remark_on(node, f"takes {parent}, {why}")
