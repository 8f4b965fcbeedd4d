"""The schedulers: the rules of their directives, and their notation of sizes. One row each."""

import re
from typing import NamedTuple

from jobgen.errors import JobgenError, shown
from jobgen.spec import JobSpec


class Scheduler(NamedTuple):
    """A scheduler, or a dialect of PBS.

    ``runtime`` is its file in templates/runtime/; ``name_rule`` describes ``name_pattern``; ``lacks`` are the
    options that it does not support, with the reason.
    """

    title: str
    template: str
    runtime: str
    command: str
    manual: str
    name_pattern: str
    name_rule: str
    lacks: dict[str, str]


_WORD_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,229}"
_WORD_RULE = (
    "must be at most 230 letters, digits and . _ + - without blanks, and begin with a letter or digit"
)

SCHEDULERS = {
    "pbspro": Scheduler(
        "PBS Pro",
        "pbs.sh.j2",
        "pbs",
        "qsub",
        "https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf",
        _WORD_NAME,
        _WORD_RULE,
        {
            "qos": "PBS Pro has no word for it: it goes by queue",
            "comment": "PBS Pro takes no comment from users",
        },
    ),
    "torque": Scheduler(
        "Torque",
        "torque.sh.j2",
        "pbs",
        "qsub",
        "https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/qsub.htm",
        _WORD_NAME,
        _WORD_RULE,
        {
            "comment": "Torque takes no comment from users",
            "licenses": "Torque leaves licenses to its scheduler: say it by --directive as yours has it",
        },
    ),
    "slurm": Scheduler(
        "Slurm",
        "slurm.sh.j2",
        "slurm",
        "sbatch",
        "https://slurm.schedmd.com/sbatch.html",
        _WORD_NAME,
        _WORD_RULE,
        {"dialect": "is only for PBS"},
    ),
    "local": Scheduler(
        "this machine",
        "local.sh.j2",
        "local",
        "bash",
        "https://www.gnu.org/software/bash/manual/",
        _WORD_NAME,
        _WORD_RULE,
        {
            "dialect": "is only for PBS",
            "queue": "a local run has no queue",
            "account": "a local run has no account",
            "mail": "a local run sends no mail",
            "mem": "a local run reserves no memory",
            "cpus_per_node": "a local run reserves no cores",
            "array": "a local run is one job; run a task of it by its own options",
            "after": "a local run waits for no job",
            **dict.fromkeys(
                ("reservation", "qos", "constraint", "licenses", "comment", "begin", "priority", "exclusive"),
                "a local run asks no scheduler",
            ),
            "mail_on": "a local run sends no mail",
            "log": "a local run writes to the terminal: say 2> FILE",
            "directive": "a local run has no directives",
            "requeue": "a local run has no queue",
            "spare_nodes": "a local run has this one node",
        },
    ),
}


def scheduler_of(spec: JobSpec) -> str:
    """Return the row of SCHEDULERS for a specification."""
    return (spec.dialect or "pbspro") if spec.scheduler == "pbs" else spec.scheduler


def check_directives(spec: JobSpec, row: str) -> None:
    """Refuse what the scheduler would refuse, or would ignore without a message.

    Raises:
        JobgenError: the scheduler does not support an option, refuses the name, or a directive
            belongs to another scheduler.
    """
    scheduler = SCHEDULERS[row]
    for key, reason in scheduler.lacks.items():
        if spec.origin(key) != "default":
            raise spec.refuse(key, reason)
    if not re.fullmatch(scheduler.name_pattern, spec.name, re.ASCII):
        raise spec.refuse("name", f"a job name {scheduler.name_rule}")
    if row in ("pbspro", "torque") and spec.queue and "," in spec.queue:
        raise spec.refuse("queue", "a list of queues is only for Slurm; PBS takes one")
    for line in spec.directive:
        if (misplaced := _misplaced(line, row)) is not None:
            raise JobgenError(f"--directive {shown(line)} ({spec.origin('directive')}): {misplaced}")


def _misplaced(line: str, row: str) -> str | None:
    """Return why a directive does not belong to this scheduler; None if it does."""
    if row == "slurm":
        if re.match(r"-(l|W|S|j)\b", line):
            return "is PBS; Slurm takes options such as --constraint=gpu"
        return None
    if re.search(r"\s#", line):
        return "PBS takes no comment after a directive; leave it out"
    if line.startswith("--"):
        return "is Slurm; PBS takes options such as -l filesystems=home"
    if row == "pbspro":
        if re.search(r"\bnodes=|\bppn=|\bpmem=|\bgpus=|^-t\b", line):
            return "is Torque; PBS Pro takes select=, place= and -J (or say --dialect torque)"
    elif re.search(r"\b(select|place|ngpus|mpiprocs|ncpus)=|^-J\b", line):
        return "is PBS Pro; Torque takes nodes=N:ppn=M and -t (or say --dialect pbspro)"
    return None


def clock(seconds: int) -> str:
    """Return a duration as ``HH:MM:SS``, which PBS, Torque and Slurm all read the same way."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def size(mib: int, suffix: str = "") -> str:
    """Return a size in MiB in its largest whole unit: ``64g``, ``1536m``."""
    return f"{mib // 1024}g{suffix}" if mib % 1024 == 0 else f"{mib}m{suffix}"


def torque_memory(mib: int, nodes: int, processes: int) -> str:
    """Return the memory for Torque: ``mem=`` of the job on one node, ``pmem=`` of a process on several."""
    if nodes == 1:
        return f"mem={size(mib, 'b')}"
    return f"pmem={-(-mib * 1024 // processes)}kb"
