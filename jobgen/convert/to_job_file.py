"""Conversion of a script to a job file: options of jobgen in tables, and remarks on all the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.bash import exported, literal
from jobgen.check.launches import Launch
from jobgen.check.script import Script
from jobgen.check.shell_commands import Command
from jobgen.convert import directive_options, request_reader
from jobgen.convert.conversion import Converted
from jobgen.convert.job_file_builder import JobFile
from jobgen.convert.remark import Remark
from jobgen.launchers import DEFAULT_MPI, LAUNCHERS, MPI_FLAVOURS
from jobgen.resources.accelerators import ACCELERATORS, GENERIC_RESOURCES
from jobgen.schedulers.base import Scheduler, clock
from jobgen.schedulers.directives import unpattern
from jobgen.schedulers.pbs import EVENT_LETTERS
from jobgen.schedulers.request import Option, Request
from jobgen.schedulers.table import SCHEDULERS, named
from jobgen.schedulers.wanted import Wanted

# Variables that the rendered script sets itself or does not need.
_OURS = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
    "RANK",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "OMP_NUM_THREADS",
    "NODE_RANK",
)
_WORDS = """
echo set date hostname nvidia-smi npu-smi printf pwd wc awk sort uniq scontrol head cat sed wait true : trap
sleep exit mktemp tee read
"""
_TRIFLES = frozenset(_WORDS.split())
_ON_GPUS = ("deepspeed", "torch", "cuda", "nccl", "gpu", "rocm")  # the queue may imply GPUs without a request


def convert(script: Script) -> Converted:
    """Return the job file of a script."""
    file, source = JobFile(), SCHEDULERS[script.scheduler]
    _head(file, script, source)
    launch = _last_launch(script)
    _launch(file, script, source, launch)
    _environment(file, script, launch)
    _rest(file, script, launch)
    return Converted(file.text(source.command_name), tuple(sorted(set(file.remarks))))


def _head(file: JobFile, script: Script, source: Scheduler) -> None:
    read_directives(file, script, source)
    text = script.tree.text.lower()
    if ours := re.search(r"\bJOBGEN_ACCELERATOR=(\w+)", script.tree.text):
        file.try_add("accelerator", ours[1])
    elif "accelerator" in file.values:
        return
    elif marked := [name for name, row in ACCELERATORS.items() if any(word in text for word in row.marks)]:
        file.add("accelerator", marked[0])
    elif script.request.gpus_per_node is None and not any(word in text for word in _ON_GPUS):
        file.add("accelerator", "cpu")


def read_directives(file: JobFile, script: Script, source: Scheduler) -> None:
    """Set the options that the directives of a script correspond to; the body is not read."""
    wanted, asked = request_reader.read(script), script.request
    line = script.directives.live[0].number if script.directives.live else 1
    account = asked.account if any(option.flag in ("-A", "--account") for option in script.options) else None
    plain = {
        "name": asked.name, "queue": asked.queue, "account": account, "mail": asked.mail_user,
        "workdir": wanted.directory,
        "walltime": clock(asked.walltime) if asked.walltime else None,
        "dialect": None if source is named(source.command_name, None) else source.name,
        "nodes": asked.nodes, "gpus_per_node": asked.gpus_per_node, "ranks_per_node": asked.ranks_per_node,
        "cpus_per_rank": asked.cpus_per_rank, "mem": f"{asked.mem}M" if asked.mem else None,
        "accelerator": GENERIC_RESOURCES.get(asked.accelerator),
    }  # fmt: skip
    for key, value in plain.items():
        if value is not None:
            file.add(key, value, line)
    left = _told(file, script, source, wanted, line)
    for directive in _own_directives(asked.rerun, source, left):
        file.add("directive", directive, line)
    for name, value in wanted.exports:
        file.set_variable(name, value, line)


def _told(file: JobFile, script: Script, source: Scheduler, wanted: Wanted, line: int) -> list[str]:
    """Set the options that the directives correspond to; return the texts of directives without an option."""
    asked = script.request
    left = []
    if asked.array and not file.try_add("array", asked.array):
        left.append(source.array_form.format(asked.array))
    after = [f"{kind}:{job}" for one in asked.depend for kind, job in request_reader.jobs(one)]
    if asked.depend and not file.try_add("after", after):
        left.append(source.dependency_form.format(",".join(asked.depend)))
    if asked.exclusive:
        file.values["exclusive"] = True
    if asked.output and not _log(file, source, asked.output, bool(asked.array)):
        left.append(source.request_forms["output"].format(asked.output))
    if asked.error and asked.error != asked.output:
        at = next((option.line for option in script.options if option.flag in ("-e", "--error")), line)
        why = "jobgen's jobs write both into one, that of --log"
        file.remarks.append(Remark(at, f"the error file {asked.error}", why))
    _mail_on(file, asked, source)
    refused = [one for one, _ in directive_options.write(wanted.told, source, source, None).lost]
    for key, one in wanted.told.items():
        if one in refused or not file.try_add(key, one.value):
            left.append(_quoted(one.option, one.text))
    for option, text, why in wanted.left:
        if text.startswith(("-l select", "-l nodes")):
            file.remarks.append(Remark(option.line, text, why))
        elif text not in _WRITTEN and not text.startswith(source.dependency_form.format("")):
            left.append(_quoted(option, text))
    return list(dict.fromkeys([*left, *_as_they_are(source, wanted)]))


_WRITTEN = ("--open-mode=append",)  # every job of jobgen has it


def _quoted(option: Option, text: str) -> str:
    """Return a directive with a value as sbatch takes it: in quotes if it contains blanks."""
    return f'{option.flag}="{option.value}"' if option.flag[:2] == "--" and " " in option.value else text


def _as_they_are(source: Scheduler, wanted: Wanted) -> Iterator[str]:
    """Yield directives that can be translated for other schedulers, but have no option in jobgen."""
    said = {"hold": wanted.hold, "all_variables": wanted.all_variables, "names": ",".join(wanted.names)}
    forms = source.request_forms
    yield from (forms[key].format(value) for key, value in said.items() if value and key in forms)
    yield from wanted.own


def _log(file: JobFile, source: Scheduler, path: str, array: bool) -> bool:
    """Set the file of the output if jobgen accepts it; return whether it does."""
    log = path if source.percent_codes else unpattern(path)
    of_task = any(f"%{code}" in log for code in source.one_file_a_task)
    fits = of_task if array else not re.search("%[aA]", log)
    return fits and file.try_add("log", log)


def _mail_on(file: JobFile, asked: Request, source: Scheduler) -> None:
    """Set the events of mail, unless they are jobgen's default with an address."""
    letters = asked.mail or EVENT_LETTERS[source.default_mail] * bool(asked.mail_user)
    events = [name for name, letter in EVENT_LETTERS.items() if letter in letters]
    if events and not (asked.mail_user and events == ["begin", "end", "fail"]):
        file.values["mail_on"] = ",".join(events)


def _own_directives(rerun: bool | None, source: Scheduler, left: list[str]) -> Iterator[str]:
    """Yield directives that jobgen has no option for; they stay as they are, for the same scheduler."""
    if rerun is not None:
        yield source.request_forms["requeue" if rerun else "no_requeue"]
    yield from left


def _last_launch(script: Script) -> Launch | None:
    """Return the launcher of the ranks: the last one, but not the srun that starts it on each node."""
    found = [one for one in script.launches if one.kind in LAUNCHERS]
    inner = [one for one in found if one.row.once_a_node]
    return next(iter(reversed(inner or found)), None)


def _launch(file: JobFile, script: Script, source: Scheduler, launch: Launch | None) -> None:
    if launch is None:
        work = next((one for one in reversed(script.commands) if one.name in ("python", "python3")), None)
        if work is None:
            file.remarks.append(Remark(1, "the program", "no launcher and no Python program can be found"))
            return
        file.add("launcher", source.default_launcher, work.line)
        _program(file, [literal(word) for word in work.words], work)
        return
    file.add("launcher", launch.kind, launch.line)
    if launch.row.of_mpi:
        marked = (name for name, mpi in reversed(MPI_FLAVOURS.items()) if launch.has(*mpi.marks))
        file.add("mpi", next(marked, DEFAULT_MPI), launch.line)
    if (port := launch.number("--master-port")) is not None:
        file.add("master_port", port, launch.line)
    _ranks(file, script, launch)
    _program(file, [script.constants.value(word) for word in launch.program], launch.command)


def _ranks(file: JobFile, script: Script, launch: Launch) -> None:
    """Set the ranks from the launcher's options: the request says less if the scheduler gives whole nodes."""
    each = launch.number("--nproc-per-node", "--num-gpus", "--ntasks-per-node", "--ppn", "-ppn", "-npernode")
    total, nodes = launch.number("-n", "-np", "--ntasks"), script.request.nodes
    if each is None and total and nodes and total % nodes == 0:
        each = total // nodes
    if launch.row.by_scheduler and each == 1 != (script.request.ranks_per_node or 1):
        return  # one task on each node, which starts the ranks
    if each:
        file.add("ranks_per_node", each, launch.line)
    cores = (script.request.cpus_per_rank or 0) * (script.request.ranks_per_node or 1)
    if cpus := launch.number("-c", "--cpus-per-task", "--depth") or (cores // each if each else 0):
        file.add("cpus_per_rank", cpus, launch.line)
        if each and cores > cpus * each:
            file.add("cpus_per_node", cores, launch.line)
    if (gpus := launch.number("--gpus-per-task")) and each and "gpus_per_node" not in file.values:
        file.add("gpus_per_node", gpus * each, launch.line)


def _program(file: JobFile, words: list[str | None], command: Command) -> None:
    if words and words[0] in ("python", "python3"):
        words = words[1:]
        while words and words[0] in ("-u", "-W", "ignore"):
            words = words[1:]
    if not words or None in words:
        file.remarks.append(
            Remark(
                command.line, command.node.text.split("\n")[0][:60], "its words are not known before it runs"
            )
        )
        return
    file.values["command"] = words


def _environment(file: JobFile, script: Script, launch: Launch | None) -> None:
    for command in script.commands:
        words = command.literals
        if (command.name in ("module", "ml") and words[:1] == ["load"]) or (command.name == "ml" and words):
            for name in words[1:] if words[0] == "load" else words:
                file.add("module", name, command.line)
        elif (
            command.name in ("source", ".")
            and words
            and words[0].endswith("/bin/activate")
            and len(words) == 1
        ):
            file.add("venv", words[0].removesuffix("/bin/activate"), command.line)
        elif command.name in ("source", ".") and len(words) == 2 and words[0].endswith("/bin/activate"):
            file.add("conda", words[1], command.line)
            where = f"conda has to be on PATH: it was {words[0]}"
            file.remarks.append(Remark(command.line, f"conda {words[1]}", where, lost=False))
        elif command.name in ("source", ".") and words:
            file.add("source", words[0], command.line)
        elif command.name in ("conda", "mamba") and words[:1] == ["activate"] and len(words) == 2:
            file.add("conda", words[1], command.line)
        elif command.name == "cd" and words:
            file.add("workdir", words[0], command.line)
    for name, value, node in script.assignments:
        if not exported(node) or name in _OURS:
            continue
        text = script.constants.value(value) if value is not node else ""
        if text is None:
            file.remarks.append(
                Remark(node.line, f"export {name}", "its value is not known before the job runs")
            )
        else:
            file.set_variable(name, text, node.line)


def _rest(file: JobFile, script: Script, launch: Launch | None) -> None:
    """Add a remark on every command that is not in the job file, unless jobgen makes it unnecessary."""
    chain = []
    while launch is not None:
        chain.append(launch)
        launch = launch.outer
    done = ("module", "ml", "conda", "mamba", "source", ".", "cd", "eval")
    for command in script.commands:
        known = command.name in done and (command.literals or command.name in ("cd", "eval"))
        same = any(command.node is one.command.node for one in chain)
        inside = command.node.under("command_substitution")
        if same or known or command.name in _TRIFLES or inside or (not chain and command.works):
            continue
        file.remarks.append(
            Remark(
                command.line,
                command.node.text.split("\n")[0][:60],
                "a job file holds one program, and nothing before it",
            )
        )
