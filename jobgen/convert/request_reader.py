"""The content of a script's directives: what another scheduler can express, and what is left over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from jobgen.check.request import heeded
from jobgen.check.script import Script
from jobgen.convert.directive_options import Told, key_of, value_of
from jobgen.resources.accelerators import GENERIC_RESOURCES
from jobgen.schedulers.pbspro import RESERVATION
from jobgen.schedulers.request import Option, Request
from jobgen.schedulers.torque import ARRAY_KINDS

_KINDS = {array: kind for kind, array in ARRAY_KINDS.items()}
_KIND = "|".join([*ARRAY_KINDS, *_KINDS])
_DEPENDENCIES = rf"({_KIND}):\d+(\[])?(\.[\w.-]+)?(:\d+(\[])?(\.[\w.-]+)?)*"
_CHUNK = {"", "ncpus", "mpiprocs", "ngpus", "nnpus", "naccelerators", "mem"}
_NODES = {"", "ppn", "gpus"}
_GPU_MODES = {"shared", "exclusive", "exclusive_process", "exclusive_thread", "default", "reseterr"}
_MOAB = r"(?:FLAGS:)?(ADVRES|QOS)[:=]([\w.-]+)"  # another spelling of -l advres= and -l qos=
_MAILS = {"BEGIN", "END", "FAIL", "ALL", "NONE"}
_SLURM = {
    "--job-name", "--partition", "--account", "--array", "--output", "--error", "--mail-type", "--mail-user",
    "--requeue", "--no-requeue", "--dependency", "--time", "--exclusive", "--nodes", "--ntasks",
    "--ntasks-per-node", "--cpus-per-task", "--gpus-per-node", "--gres", "--gpus", "--gpus-per-task", "--mem",
    "--mem-per-cpu", "--export", "--chdir", "--hold",
}  # fmt: skip


@dataclass
class Wanted:
    """The request of a script, and the directives that a Request has no field for."""

    request: Request
    exports: list[tuple[str, str]] = field(default_factory=list)
    all_variables: bool = False
    names: list[str] = field(default_factory=list)  # variables that are exported
    hold: bool = False
    directory: str | None = None
    shell: str | None = None
    told: dict[str, Told] = field(default_factory=dict)  # by the keys of jobgen's options
    left: list[tuple[Option, str, str]] = field(default_factory=list)  # the option, its text, and why


def read(script: Script) -> Wanted:
    """Read all directives of a script."""
    wanted = Wanted(script.request)
    options = list(script.options)
    if script.scheduler == "slurm":
        _read_slurm(wanted, options)
    else:
        _read_pbs(wanted, options, script.scheduler)
    return wanted


def _read_slurm(wanted: Wanted, options: list[Option]) -> None:
    last = heeded(options, "slurm")
    for option in last.values():
        text = f"{option.flag}={option.value}".rstrip("=")
        if key := key_of(option.flag, "slurm"):
            wanted.told[key] = Told(option, text, value_of(key, option.value, "slurm"))
        elif why := _slurm_fault(option, wanted.request):
            wanted.left.append((option, text, why))
    export = last["--export"].value.split(",") if "--export" in last else ["ALL"]
    wanted.all_variables = "ALL" in export
    wanted.exports = [
        (name, value) for name, equals, value in (one.partition("=") for one in export) if equals
    ]
    wanted.names = [one for one in export if "=" not in one and one not in ("ALL", "NONE")]
    wanted.hold = "--hold" in last
    wanted.directory = last["--chdir"].value if "--chdir" in last else None
    _memory_of_cores(wanted.request, last)


def _slurm_fault(option: Option, asked: Request) -> str:
    """Return why an option cannot be translated; empty if it can."""
    if option.flag not in _SLURM:
        return "has no counterpart"
    if option.flag == "--dependency" and (bad := _bad_dependencies(asked)):
        return f"{bad} has no counterpart"
    if option.flag == "--mail-type" and (odd := set(option.value.upper().split(",")) - _MAILS):
        return f"{', '.join(sorted(odd))} has no counterpart"
    if option.flag == "--exclusive" and option.value:
        return "has no counterpart"
    if option.flag == "--time" and asked.walltime is None:
        return "is no time that can be read"
    if option.flag == "--nodes" and asked.nodes is None:
        return "is no single number"
    if option.flag in ("--gres", "--gpus-per-node", "--gpus") and re.search(
        r":[A-Za-z]\w*:|^[A-Za-z]\w*:\d+$", option.value
    ):
        kind = option.value.split(":")[-2]
        if kind not in ("gpu", *GENERIC_RESOURCES):
            return f"the number is translated, but not the type {kind}"
    if option.flag == "--gres" and asked.gpus_per_node is None:
        return "has no counterpart"
    if option.flag == "--ntasks" and asked.nodes and asked.ranks and asked.ranks % asked.nodes:
        return "does not divide by the nodes, and only equal nodes can be translated"
    if option.flag == "--gpus" and asked.gpus_per_node is None:
        return "a total needs a number of nodes"
    return ""


def _bad_dependencies(asked: Request) -> str:
    return next((one for one in asked.depend if not re.fullmatch(_DEPENDENCIES, one)), "")


def _memory_of_cores(asked: Request, last: dict[str, Option]) -> None:
    from jobgen.schedulers.request import mebibytes

    each = mebibytes(last["--mem-per-cpu"].value) if "--mem-per-cpu" in last else None
    if each and asked.mem is None:
        asked.mem = each * (asked.cpus_per_rank or 1) * (asked.ranks_per_node or 1)
    if asked.ranks_per_node is None and asked.nodes and asked.ranks and asked.ranks % asked.nodes == 0:
        asked.ranks_per_node = asked.ranks // asked.nodes


def _read_pbs(wanted: Wanted, options: list[Option], scheduler: str) -> None:
    said = heeded(options, scheduler)
    alone = {key: option for key, option in said.items() if " " not in key and key != "-v"}
    for key, option in said.items():
        if option.flag == "-l":
            _resource(wanted, key[3:], option, scheduler)
        elif option.flag == "-W":
            _extra(wanted, key[3:], option, scheduler)
    for one in said["-v"].value.split(",") if "-v" in said else ():
        name, equals, value = one.partition("=")
        if equals:
            wanted.exports.append((name.strip(), value))
        else:
            wanted.names.append(name.strip())
    _read_told(wanted, alone, scheduler)
    handled = "NqAJtoejmMrVShap" + ("P" if scheduler == "pbspro" else "dwn")
    wanted.left += [
        (option, f"{option.flag} {option.value}".strip(), "has no counterpart")
        for option in alone.values()
        if option.flag[1:] not in tuple(handled) or not option.flag
    ]
    wanted.all_variables, wanted.hold = "-V" in said, "-h" in said
    wanted.shell = said["-S"].value if "-S" in said else None
    place = said.get("-d", said.get("-w")) if scheduler == "torque" else None
    wanted.directory = place.value if place else None


def _resource(wanted: Wanted, name: str, option: Option, scheduler: str) -> None:
    text = f"-l {name}={option.value}" if option.value else f"-l {name}"
    if key := key_of(f"-l {name}", scheduler):
        wanted.told[key] = Told(option, text, option.value)
    elif features := _features(name, wanted.request):
        wanted.told["constraint"] = Told(option, text, features)
    elif why := _resource_fault(name, option.value, wanted.request):
        wanted.left.append((option, text, why))


def _read_told(wanted: Wanted, options: dict[str, Option], scheduler: str) -> None:
    """Read the options that jobgen has, too. Reservations of PBS Pro are queues: R12, S12 or M12."""
    for option in options.values():
        text = f"{option.flag} {option.value}"
        if key := key_of(option.flag, scheduler):
            wanted.told[key] = Told(option, text, value_of(key, option.value, scheduler))
        elif option.flag == "-q" and scheduler == "pbspro" and re.fullmatch(RESERVATION, option.value):
            wanted.told["reservation"] = Told(option, text, option.value)
            wanted.request.queue = None
        elif option.flag == "-m" and (odd := set(option.value) - set("aben")):
            wanted.left.append((option, text, f"{', '.join(sorted(odd))} has no counterpart"))


def _features(name: str, asked: Request) -> str:
    """Return what a chunk requests besides numbers and devices, as a value of ``--constraint``."""
    if name not in ("select", "nodes") or len(asked.chunks) != 1 or not asked.chunks[0][""].isdigit():
        return ""
    chunk, known = asked.chunks[0], _CHUNK if name == "select" else _NODES
    odd = [(key, value) for key, value in chunk.items() if key not in known]
    if name == "nodes" and any(value or key in _GPU_MODES for key, value in odd):
        return ""
    return ":".join(f"{key}={value}" if value else key for key, value in odd)


def _resource_fault(name: str, value: str, asked: Request) -> str:
    """Return why a resource of -l cannot be translated; empty if it can."""
    if name == "walltime":
        return "" if asked.walltime is not None else "is no time that can be read"
    if name == "place":
        return (
            "" if set(value.split(":")) <= {"scatter", "excl", "free", "exclhost"} else "has no counterpart"
        )
    if name in ("select", "nodes"):
        if len(asked.chunks) > 1:
            return "chunks that differ have no counterpart"
        known = _CHUNK if name == "select" else _NODES
        odd = [key for key in (asked.chunks[0] if asked.chunks else {}) if key not in known]
        host = name == "nodes" and asked.chunks and not asked.chunks[0][""].isdigit()
        return f"{', '.join(odd)} has no counterpart" if odd else "names a host" if host else ""
    if name == "naccesspolicy" and asked.exclusive:
        return ""
    if name in ("mem", "pmem") and asked.mem is not None:
        return ""
    if name == "wd":
        return ""
    return (
        "may be a license or the site's own: has no counterpart" if value.isdigit() else "has no counterpart"
    )


def _extra(wanted: Wanted, name: str, option: Option, scheduler: str) -> None:
    text = f"-W {name}={option.value}" if option.value else f"-W {name}"
    moab = [re.fullmatch(_MOAB, one, re.I) for one in option.value.split(",")]
    if scheduler == "torque" and name == "x" and all(moab):
        for one in filter(None, moab):
            if key := key_of(f"-l {one[1].lower()}", scheduler):
                wanted.told.setdefault(key, Told(option, text, one[2]))
    elif name == "depend":
        if bad := _bad_dependencies(wanted.request):
            wanted.left.append((option, f"-W depend={bad}", "has no counterpart"))
    else:
        wanted.left.append((option, text, "has no counterpart"))


def jobs(one: str) -> list[tuple[str, str]]:
    """Return each job of a dependency with its kind; Torque's kinds for arrays become those for jobs."""
    kind, *ids = one.split(":")
    return [(_KINDS.get(kind, kind), job) for job in ids or [""]]


def dependencies(asked: Request, target: str) -> Iterator[str]:
    """Yield the dependencies that all schedulers support, with job numbers only; on PBS an array is 12[]."""
    for one in asked.depend:
        if not re.fullmatch(_DEPENDENCIES, one):
            continue
        kinds: dict[str, list[str]] = {}
        for kind, job in jobs(one):
            array = "[]" if "[]" in job and target != "slurm" else ""
            if array and target == "torque":
                kind = ARRAY_KINDS[kind]
            kinds.setdefault(kind, []).append(re.match(r"\d+", job)[0] + array)  # type: ignore[index]
        yield from (":".join([kind, *ids]) for kind, ids in kinds.items())
