"""Directives of PBS for their conversion: what a request has no field for, and what cannot be converted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobgen.schedulers.request import number
from jobgen.schedulers.wanted import Told, Wanted
from jobgen.values.parsers import mebibytes

if TYPE_CHECKING:
    from jobgen.schedulers.base import Scheduler
    from jobgen.schedulers.request import Option, Request

_DATE = r"(?:(?:(\d\d)?(\d\d))?(\d\d)(\d\d))?(\d\d)(\d\d)(?:\.(\d\d))?"
# The resources of each node that can be converted.
_PARTS = {
    "select": {"", "ncpus", "mpiprocs", "ngpus", "nnpus", "naccelerators", "mem", "ompthreads"},
    "nodes": {"", "ppn", "gpus"},
}
_GPU_MODES = {"shared", "exclusive", "exclusive_process", "exclusive_thread", "default", "reseterr"}
_PLACES = {"scatter", "excl", "free", "exclhost"}


def date(text: str) -> str:
    """Return PBS's [[CC]YY]MMDDhhmm[.SS] as a date and time, or a time; unchanged without a year."""
    match = re.fullmatch(_DATE, text, re.ASCII)
    if not match or (match[3] and not match[2]):
        return text
    century, year, month, day, hour, minute, second = match.groups()
    clock = f"{hour}:{minute}" + (f":{second}" if second else "")
    return f"{century or 20}{year}-{month}-{day}T{clock}" if month else clock


def read(scheduler: Scheduler, wanted: Wanted, given: Mapping[str, Option]) -> None:
    """Add what a request has no field for."""
    if wanted.totals and not wanted.request.chunks:
        _read_totals(wanted, given)
    alone = {key: option for key, option in given.items() if " " not in key and key != "-v"}
    for key, option in given.items():
        if option.flag == "-l":
            _read_resource(scheduler, wanted, key[3:], option)
        elif option.flag == "-W":
            _read_attribute(scheduler, wanted, key[3:], option)
    _read_exports(wanted, given["-v"].value.split(",") if "-v" in given else [])
    _read_told(scheduler, wanted, alone)
    wanted.left += [
        (option, f"{option.flag} {option.value}".strip(), "has no counterpart")
        for option in alone.values()
        if option.flag not in scheduler.converted and (option.flag or not scheduler.ignores_words)
    ]
    threads = {chunk["ompthreads"] for chunk in wanted.request.chunks if "ompthreads" in chunk}
    if len(threads) == 1 and not any(name == "OMP_NUM_THREADS" for name, _ in wanted.exports):
        wanted.exports.insert(0, ("OMP_NUM_THREADS", threads.pop()))
    if wanted.whole and "-j" in given and given["-j"].value == "eo":
        wanted.joined_as_error, wanted.request.output = True, wanted.request.error
    _read_cores(wanted, given)
    wanted.request.mem = 1 if wanted.request.mem == 0 else wanted.request.mem  # less than 1 MiB
    wanted.all_variables, wanted.hold = "-V" in given, "-h" in given
    wanted.directory = next((given[key].value for key in scheduler.directory_options if key in given), None)
    if (place := wanted.request.place or "scatter").removesuffix(":excl") != "scatter":
        wanted.own.append(f"-l place={place}")
    if "-A" not in given:
        projects = (option for option in given.values() if option.flag == scheduler.project_option)
        wanted.own += [f"{option.flag} {option.value}" for option in projects]


def _read_totals(wanted: Wanted, given: Mapping[str, Option]) -> None:
    """Set the resources of a job without a select: those of one chunk."""
    asked = wanted.request
    cores, gpus = (number(asked.totals.get(name)) for name in ("ncpus", "ngpus"))
    first = next((given[key] for key in ("-l ncpus", "-l ngpus", "-l mem") if key in given), None)
    if first is None:
        return
    asked.nodes, asked.cpus_per_rank, asked.gpus_per_node = 1, cores, gpus
    asked.mem = mebibytes(asked.totals["mem"], "b") if "mem" in asked.totals else None
    if cores and cores > 1:
        why = "one node is requested; some sites give several"
        wanted.unsure.append((first, f"-l ncpus={cores}", why))


def _read_cores(wanted: Wanted, given: Mapping[str, Option]) -> None:
    """Note cores that do not divide by the ranks."""
    asked = wanted.request
    chunk = asked.chunks[0] if len(asked.chunks) == 1 else {}
    cores, ranks = number(chunk.get("ncpus")), number(chunk.get("mpiprocs")) or 1
    if cores and cores % ranks and "-l select" in given:
        asked.cpus_per_rank = max(cores // ranks, 1)
        why = f"Slurm requests cores for each rank: {asked.cpus_per_rank} for each of {ranks}"
        wanted.unsure.append((given["-l select"], f"ncpus={cores}:mpiprocs={ranks}", why))


def _read_exports(wanted: Wanted, variables: list[str]) -> None:
    for name, equals, value in (one.partition("=") for one in variables):
        if equals:
            wanted.exports.append((name.strip(), value))
        else:
            wanted.names.append(name.strip())


def _read_resource(scheduler: Scheduler, wanted: Wanted, name: str, option: Option) -> None:
    text = f"-l {name}={option.value}" if option.value else f"-l {name}"
    if key := scheduler.option_of(f"-l {name}"):
        wanted.told[key] = Told(option, text, option.value)
    elif features := _features(name, wanted.request):
        wanted.told["constraint"] = Told(option, text, features)
    elif why := _resource_fault(name, option.value, wanted.request):
        wanted.left.append((option, text, why))


def _read_attribute(scheduler: Scheduler, wanted: Wanted, name: str, option: Option) -> None:
    text = f"-W {name}={option.value}" if option.value else f"-W {name}"
    others = [re.fullmatch(scheduler.directive_attributes, one, re.I) for one in option.value.split(",")]
    if name == "x" and scheduler.directive_attributes and all(others):
        for one in filter(None, others):
            if key := scheduler.option_of(f"-l {one[1].lower()}"):
                wanted.told.setdefault(key, Told(option, text, one[2]))
    elif name != "depend":
        wanted.left.append((option, text, "has no counterpart"))
    elif wanted.bad_dependency:
        wanted.left.append((option, f"-W depend={wanted.bad_dependency}", "has no counterpart"))


def _read_told(scheduler: Scheduler, wanted: Wanted, options: Mapping[str, Option]) -> None:
    """Read the options that jobgen has, too."""
    for option in options.values():
        text = f"{option.flag} {option.value}"
        if key := scheduler.option_of(option.flag):
            wanted.told[key] = Told(option, text, scheduler.read_value(key, option.value))
        elif option.flag == "-q" and scheduler.is_reservation(option.value):
            wanted.told["reservation"] = Told(option, text, option.value)
            wanted.request.queue = None
        elif option.flag == "-m" and (odd := set(option.value) - set("aben")):
            wanted.left.append((option, text, f"{', '.join(sorted(odd))} has no counterpart"))


def _features(name: str, asked: Request) -> str:
    """Return the resources of a chunk except numbers and devices, as a value of ``--constraint``."""
    if name not in _PARTS or len(asked.chunks) != 1 or not asked.chunks[0][""].isdigit():
        return ""
    odd = [(key, value) for key, value in asked.chunks[0].items() if key not in _PARTS[name]]
    if name == "nodes" and any(value or key in _GPU_MODES for key, value in odd):
        return ""
    return ":".join(f"{key}={value}" if value else key for key, value in odd)


def _resource_fault(name: str, value: str, asked: Request) -> str:
    """Return why a resource of -l cannot be converted; empty if it can."""
    if name == "walltime":
        return "" if asked.walltime is not None else "is not a valid time"
    if name in _PARTS:
        return _chunk_fault(name, asked)
    done = {
        "place": set(value.split(":")) <= _PLACES | ({"pack"} if asked.nodes in (None, 1) else set()),
        "naccesspolicy": asked.exclusive,
        "ncpus": not asked.chunks and asked.cpus_per_rank is not None,
        "ngpus": not asked.chunks and asked.gpus_per_node is not None,
        "mem": asked.mem is not None,
        "pmem": asked.mem is not None,
        "wd": True,
    }
    if done.get(name):
        return ""
    license = name != "place" and value.isdigit()
    return "may be a license or a resource of the site" if license else "has no counterpart"


def _unreadable(key: str, value: str) -> bool:
    """Return whether a resource of a chunk is a number or a size for PBS, but is not written as one."""
    if key == "mem":
        return mebibytes(value, "b") is None
    return key in ("ncpus", "mpiprocs", "ngpus", "nnpus", "naccelerators", "ppn") and number(value) is None


def _chunk_fault(name: str, asked: Request) -> str:
    if len(asked.chunks) > 1:
        return "different chunks have no counterpart"
    odd = [key for key in (asked.chunks[0] if asked.chunks else {}) if key not in _PARTS[name]]
    if odd:
        return f"{', '.join(odd)} has no counterpart"
    unread = [
        f"{key}={value}" for key, value in (asked.chunks or ({},))[0].items() if _unreadable(key, value)
    ]
    if unread:
        return f"{', '.join(unread)} cannot be read"
    host = name == "nodes" and asked.chunks and not asked.chunks[0][""].isdigit()
    return "names a host" if host else ""
