"""The resources that a script requests, in one form for PBS Pro, Torque and Slurm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jobgen.check.directive_reader import PBS, Option
from jobgen.resources.accelerators import GENERIC_RESOURCES
from jobgen.schedulers import precedence

_UNITS = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}
_OCTET = r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?[bw])?|[bw])?"


@dataclass
class Request:
    """The request of a script. Numbers are per node or per rank; what is missing or unreadable is None."""

    name: str | None = None
    queue: str | None = None
    account: str | None = None
    walltime: int | None = None  # in s
    nodes: int | None = None
    ranks_per_node: int | None = None
    cpus_per_rank: int | None = None
    gpus_per_node: int | None = None
    accelerator: str = "gpu"
    mem: int | None = None  # in MiB, per node
    ranks: int | None = None  # of all nodes
    gpus: int | None = None  # of all nodes
    array: str | None = None
    depend: tuple[str, ...] = ()
    output: str | None = None
    error: str | None = None
    join: bool = False
    mail_user: str | None = None
    mail: str = ""  # letters of a, b and e; n for none
    place: str | None = None
    exclusive: bool = False
    rerun: bool | None = None
    chunks: tuple[dict[str, str], ...] = ()  # of select; the count has the key ""
    totals: dict[str, str] = field(default_factory=dict)  # -l resources of the whole job

    @property
    def lines_per_node(self) -> int | None:
        """The number of lines per node in $PBS_NODEFILE; None if the request does not determine it."""
        if not self.chunks:
            return None
        key = "ppn" if any("ppn" in chunk for chunk in self.chunks) else "mpiprocs"
        return max(number(chunk.get(key)) or 1 for chunk in self.chunks)

    @property
    def several(self) -> bool:
        return (self.nodes or 1) > 1


def seconds(text: str, scheduler: str) -> int | None:
    """Return a time limit in s; None if this scheduler refuses it."""
    if scheduler == "pbspro":
        text = without_fraction(text)
    if not re.fullmatch(r"[0-9:.-]{1,40}", text):
        return None
    if scheduler == "slurm":
        days, dash, rest = text.rpartition("-")
        parts = rest.split(":")
        if not all(part.isdigit() for part in ([days] if dash else []) + parts) or len(parts) > 3:
            return None
        numbers = [int(part) for part in parts]
        if dash:  # D-H, D-H:M, D-H:M:S
            numbers += [0] * (3 - len(numbers))
            return ((int(days) * 24 + numbers[0]) * 60 + numbers[1]) * 60 + numbers[2]
        if len(numbers) == 1:
            return numbers[0] * 60
        return _base60(numbers)
    most = 4 if scheduler == "torque" else 3
    parts = text.split(":")
    if len(parts) > most or not all(part.isdigit() for part in parts):
        return None
    if len(parts) == 4:
        return int(parts[0]) * 86400 + _base60([int(part) for part in parts[1:]])
    return _base60([int(part) for part in parts])


def without_fraction(text: str) -> str:
    """Return a time of PBS Pro without the fraction of a second, which PBS Pro accepts and ignores."""
    return re.sub(r"(?<=\d)\.\d*$", "", text)


def _base60(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total = total * 60 + number
    return total


def mebibytes(text: str, default: str = "m") -> int | None:
    """Return a size in MiB. ``default`` is the unit of a bare number: m on Slurm, b (bytes) on PBS."""
    match = re.fullmatch(_OCTET, text.strip(), re.I | re.ASCII)
    if not match:
        return None
    unit = (match[2] or ("b" if match[0][-1:].lower() in ("b", "w") else default)).lower()
    return int(float(match[1]) * _UNITS.get(unit, 1 / 1048576))


def resources(options: tuple[Option, ...]) -> Iterator[tuple[Option, str, str]]:
    """Yield each ``NAME=VALUE`` of PBS's -l options; a select with its chunks is one value."""
    for option in options:
        if option.flag == "-l":
            for part in option.value.split(","):
                name, _, value = part.strip().partition("=")
                yield option, name, value


def number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\d{1,9}", text.strip(), re.ASCII) else None


def settings(options: Sequence[Option], scheduler: str) -> Iterator[tuple[str, Option]]:
    """Yield each option with the key that identifies its repetitions: see schedulers/precedence.py."""
    for option in options:
        if scheduler in PBS and option.flag == "-l":
            for _, name, value in resources((option,)):
                yield f"-l {name}", option._replace(value=value)
        elif scheduler in PBS and option.flag == "-W":
            # On PBS Pro a list of attributes, some of which are lists themselves; on Torque one attribute.
            parts = re.split(r",(?=\s*\w+=)", option.value) if scheduler == "pbspro" else [option.value]
            for part in parts:
                name, _, value = part.strip().partition("=")
                yield f"-W {name}", option._replace(value=value)
        else:
            yield option.flag, option


def heeded(options: Sequence[Option], scheduler: str) -> dict[str, Option]:
    """Return the options in effect by key; the values of options that add up are joined with commas."""
    found: dict[str, Option] = {}
    for key, option in settings(options, scheduler):
        before, which = found.get(key), precedence.heeded(key, scheduler)
        if before is None or which == "last":
            found[key] = option
        elif which == "all":
            found[key] = option._replace(value=f"{before.value},{option.value}")
    return found


def read(options: tuple[Option, ...], scheduler: str) -> Request:
    """Return the request of a script."""
    said = {key: option.value for key, option in heeded(options, scheduler).items()}
    return _read_pbs(said, scheduler) if scheduler in PBS else _read_slurm(said)


def _read_pbs(said: dict[str, str], scheduler: str) -> Request:
    asked = Request()
    asked.name, asked.queue = said.get("-N"), said.get("-q")
    asked.account = said.get("-A") or (said.get("-P") if scheduler == "pbspro" else None)
    asked.array = said.get("-J" if scheduler == "pbspro" else "-t")
    asked.output, asked.error = said.get("-o"), said.get("-e")
    asked.join = said.get("-j", "n") in ("oe", "eo")
    asked.mail, asked.mail_user = said.get("-m", ""), said.get("-M")
    asked.rerun = {"y": True, "n": False}.get(said.get("-r", ""))
    asked.depend = tuple(said["-W depend"].split(",")) if "-W depend" in said else ()
    totals = {key[len("-l ") :]: value for key, value in said.items() if key.startswith("-l ")}
    asked.totals = totals
    asked.walltime = seconds(totals["walltime"], scheduler) if "walltime" in totals else None
    asked.place = totals.get("place")
    alone = totals.get("naccesspolicy", "").lower() == "singlejob"
    asked.exclusive = alone or "excl" in (asked.place or "") or "-n" in said
    _read_nodes(asked, totals)
    return asked


def _read_nodes(asked: Request, totals: dict[str, str]) -> None:
    """Set the nodes and their resources from select=, nodes= or the totals of the whole job."""
    key = "select" if "select" in totals else "nodes"
    asked.chunks = tuple(_chunk(part) for part in totals[key].split("+")) if key in totals else ()
    if not asked.chunks:
        asked.gpus = number(totals.get("ngpus"))  # a total, as some sites define it
        return
    counts = [number(chunk[""]) or 1 for chunk in asked.chunks]
    asked.nodes = sum(counts)
    if len(asked.chunks) > 1:
        return  # the nodes differ
    chunk = asked.chunks[0]
    if key == "nodes":
        asked.ranks_per_node, asked.gpus_per_node = number(chunk.get("ppn")), number(chunk.get("gpus"))
        asked.mem = mebibytes(totals["mem"], "b") if "mem" in totals and asked.nodes == 1 else None
        if "pmem" in totals and (each := mebibytes(totals["pmem"], "b")) is not None:
            asked.mem = each * (asked.ranks_per_node or 1)
        asked.cpus_per_rank = 1 if asked.ranks_per_node else None
    else:
        asked.ranks_per_node, asked.gpus_per_node = number(chunk.get("mpiprocs")), number(chunk.get("ngpus"))
        npus = chunk.get("naccelerators", chunk.get("nnpus"))
        if asked.gpus_per_node is None and npus:
            asked.gpus_per_node, asked.accelerator = number(npus), "npu"
        cpus = number(chunk.get("ncpus"))
        asked.cpus_per_rank = cpus // max(asked.ranks_per_node or 1, 1) if cpus else None
        asked.mem = mebibytes(chunk["mem"], "b") if "mem" in chunk else None
    asked.ranks = (asked.ranks_per_node or 1) * asked.nodes


def _chunk(text: str) -> dict[str, str]:
    """Return ``2:ncpus=4:mpiprocs=2`` as a dict, with the count under the empty key."""
    found: dict[str, str] = {}
    for at, part in enumerate(text.strip().split(":")):
        name, equals, value = part.partition("=")
        if at == 0 and not equals:
            found[""] = name
        else:
            found[name] = value
    found.setdefault("", "1")
    return found


def _read_slurm(last: dict[str, str]) -> Request:
    asked = Request(name=last.get("--job-name"), queue=last.get("--partition"))
    asked.account, asked.array = last.get("--account"), last.get("--array")
    asked.output, asked.error = last.get("--output"), last.get("--error")
    asked.join = asked.error is None or asked.error == asked.output
    asked.mail, asked.mail_user = _mail(last.get("--mail-type", "")), last.get("--mail-user")
    asked.rerun = True if "--requeue" in last else False if "--no-requeue" in last else None
    asked.depend = tuple(part for part in last.get("--dependency", "").split(",") if part)
    asked.walltime = seconds(last.get("--time", ""), "slurm")
    asked.exclusive = last.get("--exclusive") == ""  # with =user and the like, other jobs may share the node
    nodes = last.get("--nodes", "")
    least, _, most = nodes.partition("-")
    asked.nodes = number(least) if most in ("", least) else None
    asked.ranks, asked.ranks_per_node = number(last.get("--ntasks")), number(last.get("--ntasks-per-node"))
    if asked.ranks is None and asked.ranks_per_node and asked.nodes:
        asked.ranks = asked.ranks_per_node * asked.nodes
    if asked.nodes is None and asked.ranks and asked.ranks_per_node:
        asked.nodes = -(-asked.ranks // asked.ranks_per_node)
    asked.cpus_per_rank = number(last.get("--cpus-per-task"))
    asked.gpus_per_node = number(last.get("--gpus-per-node", "").rpartition(":")[2])
    for part in last.get("--gres", "").split(","):
        kind = part.partition(":")[0]
        if kind in ("gpu", *GENERIC_RESOURCES):
            asked.gpus_per_node, asked.accelerator = number(part.rpartition(":")[2]) or 1, kind
    asked.gpus = number(last.get("--gpus", "").rpartition(":")[2])
    each = number(last.get("--gpus-per-task", "").rpartition(":")[2])
    if asked.gpus_per_node is None and each and asked.ranks_per_node:
        asked.gpus_per_node = each * asked.ranks_per_node
    if asked.gpus_per_node is None and asked.gpus and asked.nodes:
        asked.gpus_per_node = asked.gpus // asked.nodes
    asked.mem = mebibytes(last["--mem"]) if "--mem" in last else None
    return asked


def _mail(types: str) -> str:
    """Return Slurm's mail events as the letters of PBS."""
    letters = {"ALL": "abe", "BEGIN": "b", "END": "e", "FAIL": "a", "NONE": "n"}
    found = {letter for name in types.upper().split(",") for letter in letters.get(name.strip(), "")}
    return "".join(sorted(found - {"n"} or found))
