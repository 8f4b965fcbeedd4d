"""Conversion of a request to the directives of one scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.convert.directive_options import Written
from jobgen.convert.request_reader import Wanted, dependencies
from jobgen.schedulers import arrays
from jobgen.schedulers.base import EVENTS, clock
from jobgen.schedulers.directives import unpattern
from jobgen.schedulers.pbs import EVENT_LETTERS
from jobgen.schedulers.pbspro import RESERVATION
from jobgen.schedulers.request import Request
from jobgen.schedulers.table import SCHEDULERS

_MAILS = {letter: EVENTS[event] for event, letter in EVENT_LETTERS.items()}


def write(
    wanted: Wanted, source: str, target: str, extra: Written
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the lines of the directives, and what this scheduler cannot express, with the reason."""
    lost: list[tuple[str, str]] = []
    lines = list((_slurm if target == "slurm" else _pbs)(wanted, source, target, extra.chunk, lost))
    lines += extra.lines
    prefix = "#SBATCH" if target == "slurm" else "#PBS"
    return [f"{prefix} {line}" for line in lines], lost


def _slurm(
    wanted: Wanted, source: str, target: str, chunk: str, lost: list[tuple[str, str]]
) -> Iterator[str]:
    asked = wanted.request
    pairs: list[tuple[str, object]] = [
        ("job-name", asked.name),
        ("partition", asked.queue),
        ("account", asked.account),
        ("nodes", asked.nodes),
        ("ntasks-per-node", asked.ranks_per_node),
        ("cpus-per-task", asked.cpus_per_rank),
        ("gpus-per-node" if asked.accelerator == "gpu" else "gres", _devices(asked)),
        ("mem", f"{asked.mem}M" if asked.mem else None),
        ("time", clock(asked.walltime) if asked.walltime is not None else None),
        ("array", _array(asked, target, lost)),
        ("dependency", ",".join(dependencies(asked, target)) or None),
        *_slurm_output(asked),
        ("mail-type", ",".join(_MAILS[one] for one in "bean" if one in asked.mail) or None),
        ("mail-user", asked.mail_user),
        ("chdir", wanted.directory),
    ]
    yield from (f"--{name}={value}" for name, value in pairs if value is not None)
    yield from ["--exclusive"] * asked.exclusive
    yield from ["--hold"] * wanted.hold
    if asked.rerun is not None:
        yield "--requeue" if asked.rerun else "--no-requeue"


def _devices(asked: Request) -> object:
    return asked.gpus_per_node if asked.accelerator == "gpu" else f"{asked.accelerator}:{asked.gpus_per_node}"


def _slurm_output(asked: Request) -> Iterator[tuple[str, str]]:
    """Yield the output files; by default they have PBS's names, NAME.oJOBID and NAME.eJOBID."""
    number = "%A.%a" if asked.array else "%j"
    own = {"output": asked.output, "error": None if asked.join else asked.error}
    for kind, letter in (("output", "o"), ("error", "e")):
        if kind == "error" and asked.join:
            continue
        yield kind, unpattern(own[kind] or f"%x.{letter}{number}").rpartition(":")[2]


def _array(asked: Request, target: str, lost: list[tuple[str, str]]) -> str | None:
    if asked.array is None:
        return None
    array = arrays.read(asked.array)
    text = SCHEDULERS[target].array(array) if array else None
    if text is None:
        lost.append((f"the array {asked.array}", "PBS Pro takes one range of two indices at least"))
    return text


def _pbs(wanted: Wanted, source: str, target: str, chunk: str, lost: list[tuple[str, str]]) -> Iterator[str]:
    asked = wanted.request
    pro = target == "pbspro"
    name = re.sub(r"[^A-Za-z0-9._+-]", "_", asked.name) if asked.name else None
    queue = asked.queue
    if pro and queue and re.fullmatch(RESERVATION, queue, re.ASCII):
        lost.append((f"the queue {queue}", "to PBS Pro a queue of such a name is a reservation"))
        queue = None
    flags = [("-N", name), ("-q", queue), ("-A", asked.account)]
    yield from (f"{flag} {value}" for flag, value in flags if value)
    yield from _select(asked, chunk) if pro else _nodes(asked, chunk, lost)
    if asked.walltime is not None:
        yield f"-l walltime={clock(asked.walltime)}"
    if array := _array(asked, target, lost):
        yield f"{'-J' if pro else '-t'} {array}"
    if depend := ",".join(dependencies(asked, target)):
        yield f"-W depend={depend}"
    yield from _pbs_output(asked, source, target, lost)
    if asked.mail:
        yield f"-m {asked.mail}"
    if asked.mail_user:
        yield f"-M {asked.mail_user}"
    if asked.rerun is not None:
        yield f"-r {'y' if asked.rerun else 'n'}"
    yield from ["-h"] * wanted.hold
    yield from ["-V"] * wanted.all_variables
    if wanted.names:
        yield f"-v {','.join(wanted.names)}"
    yield from [SCHEDULERS["torque"].forms["exclusive"]] * (asked.exclusive and not pro)


def _select(asked: Request, chunk: str) -> Iterator[str]:
    """Yield select and place. Equal nodes are scattered; PBS places tasks without nodes freely."""
    ranks, cpus = asked.ranks_per_node, asked.cpus_per_rank
    count = asked.nodes or (asked.ranks if not ranks else None) or 1
    parts = [f"select={count}"]
    if cpus or ranks:
        parts.append(f"ncpus={(cpus or 1) * (ranks or 1)}")
    if ranks:
        parts.append(f"mpiprocs={ranks}")
    if asked.gpus_per_node:
        parts.append(f"{'ngpus' if asked.accelerator == 'gpu' else 'naccelerators'}={asked.gpus_per_node}")
    if asked.mem:
        parts.append(f"mem={asked.mem}mb")
    yield "-l " + ":".join(parts) + chunk
    if asked.nodes or asked.exclusive:
        yield "-l place=" + ("scatter" if asked.nodes else "free") + (":excl" if asked.exclusive else "")


def _nodes(asked: Request, chunk: str, lost: list[tuple[str, str]]) -> Iterator[str]:
    ranks, cpus = asked.ranks_per_node or 1, asked.cpus_per_rank or 1
    nodes = asked.nodes or asked.ranks or 1
    if cpus > 1 and ranks > 1:
        lost.append(
            (f"{cpus} cores for each of {ranks} ranks", "Torque counts cores only: ppn is their product")
        )
    gpus = f":gpus={asked.gpus_per_node}" if asked.gpus_per_node else ""
    if gpus and asked.accelerator != "gpu":
        lost.append((f"{asked.gpus_per_node} x {asked.accelerator}", "Torque knows GPUs only"))
        gpus = ""
    yield f"-l nodes={nodes}:ppn={ranks * cpus}{gpus}{chunk}"
    if asked.mem and nodes == 1:
        yield f"-l mem={asked.mem}mb"
    elif asked.mem:
        yield f"-l pmem={asked.mem * 1024 // (ranks * cpus)}kb"


def _pbs_output(asked: Request, source: str, target: str, lost: list[tuple[str, str]]) -> Iterator[str]:
    for flag, path in (("-o", asked.output), ("-e", None if asked.join else asked.error)):
        if path is None:
            continue
        log = path if source == "slurm" else unpattern(path)
        try:
            yield f"{flag} {SCHEDULERS[target].log(asked.name or 'job', log)}"
        except ValueError as error:
            lost.append((f"the output file {path}", str(error)))
    if asked.join:
        yield "-j oe"
