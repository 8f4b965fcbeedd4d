"""Reader of the use of devices, which ``--gpu-telemetry`` writes: ``nodes/S/HOST.devices`` in an attempt.

The first line has the number of devices that the job has on the node, and the tool. A line for each time has
the seconds since 1970, and of each device ``NUMBER:USE/MEMORY`` in percent. Other lines with # are messages.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jobgen.errors import counted
from jobgen.launch.accelerators import ACCELERATORS
from jobgen.runs import regular_file

_IDLE = 600  # s without use, from which a device is named; to save or to compile takes minutes
_NAMED = 4  # nodes in one sentence
_WINDOW = 1 << 14  # bytes at the end of a file that are read first
_HEAD = re.compile(r"# ([0-9]{1,4}) (\w+)-smi\n")
_LINE = re.compile(r"^([0-9]{1,12}) ([0-9.:/ -]+)\n", re.MULTILINE)  # only a whole line matches
_DEVICE = re.compile(r"([0-9.]+):([0-9]+|-)/([0-9]+|-)")

Sample = tuple[int, list[tuple[str, str, str]]]  # the time; number, use and memory of each device


class NodeUse(NamedTuple):
    """The use of the devices of a node. ``devices`` is the number of those of the job."""

    host: str
    devices: int
    vendor: str
    samples: list[Sample]
    whole: bool


class Idle(NamedTuple):
    """Devices of a node without use between two times; ``until`` is None if they have none to the end."""

    host: str
    number: int
    devices: int
    title: str
    since: int
    until: int | None


def files(attempt: Path) -> list[Path]:
    """Return the files of an attempt, and of its steps."""
    found = [*attempt.glob("nodes/*/*.devices"), *attempt.glob("step-*/nodes/*/*.devices")]
    return sorted(
        {os.path.realpath(path): path for path in found}.values()
    )  # nodes is a link to the last step's


def read(path: Path, window: int = regular_file.LARGEST) -> NodeUse | None:
    """Return the use of a node, from the last bytes of its file; None if it cannot be read."""
    try:
        with regular_file.open_file(path) as file:
            head = _HEAD.match(file.read(64).decode(errors="replace"))
            start = max(0, file.seek(0, os.SEEK_END) - window)
            file.seek(start)
            text = file.read(window).decode(errors="replace")
    except OSError:
        return None
    if head is None:
        return None
    text = text.partition("\n")[2] if start else text
    samples = [(int(at), _DEVICE.findall(words)) for at, words in _LINE.findall(text)]
    return NodeUse(path.stem, int(head[1]), head[2], samples, whole=not start)


def messages(attempt: Path) -> Iterator[tuple[str, str]]:
    """Yield what the tools of the nodes wrote instead of samples, with the host."""
    for path in files(attempt):
        for line in regular_file.text(path).splitlines()[1:]:
            if line.startswith("# "):
                yield path.stem, line[2:]


def idle(node: NodeUse) -> Iterator[Idle]:
    """Yield a time without use of each device, devices with the same minutes together: the time to the end,
    or else the longest one.

    A tool that shows more devices than the job has may show those of other jobs: none is named then.
    """
    alike: dict[tuple[int, int | None], list[int]] = {}
    spans = _spans(node)
    for own in spans.values() if len(spans) <= node.devices else ():
        if own:
            since, until = max(own, key=lambda one: (one[1] is None, (one[1] or 0) - one[0]))
            alike.setdefault((since // 60, until and until // 60), []).append(since)
    for (_, minute), times in alike.items():
        yield Idle(node.host, len(times), node.devices, _title(node), min(times), minute and 60 * minute)


def _title(node: NodeUse) -> str:
    """Return the word for a device: GPU or NPU."""
    titles = (row.title for row in ACCELERATORS.values() if row.telemetry == f"{node.vendor}_smi")
    return next(titles, "devices").rpartition(" ")[2].removesuffix("s")


def _spans(node: NodeUse) -> dict[str, list[tuple[int, int | None]]]:
    """Return the long times without use of each device; the end is None if there is no use after it."""
    found: dict[str, list[tuple[int, int | None]]] = {}
    since: dict[str, int] = {}
    for at, row in node.samples:
        for number, use, _ in row:
            if use == "0":
                since.setdefault(number, at)
            elif number in since and use != "-":
                if at - since[number] >= _IDLE:
                    found.setdefault(number, []).append((since[number], at))
                del since[number]
            elif number not in found:
                found[number] = []
    for number, began in since.items():
        own = found.setdefault(number, [])
        if node.samples[-1][0] - began >= _IDLE:
            own.append((began, None))
    return found


def sentence(one: Idle, clock: str, until: str = "") -> str:
    """Return ``2 of 8 GPUs of node7 idle since 03:12``."""
    when = f"from {clock} to {until}" if until else f"since {clock}"
    return f"{one.number} of {counted(one.devices, one.title)} of {one.host} idle {when}"


def idle_now(attempt: Path) -> str:
    """Return the devices of a running attempt that have no use; empty without any."""
    found = [one for path in files(attempt) for one in _idle_to_the_end(path)]
    some = [sentence(one, _local(one.since)) for one in found[:_NAMED]]
    more = len({one.host for one in found[_NAMED:]})
    return ", ".join([*some, *([f"and of {counted(more, 'more node')}"] if more else [])])


def _idle_to_the_end(path: Path) -> Iterable[Idle]:
    """Return the devices that are idle now, from as little of the file as shows when that began."""
    window = _WINDOW
    while (node := read(path, window)) and node.samples:
        if time.time() - node.samples[-1][0] > _IDLE:  # the tool has ended
            break
        found = [one for one in idle(node) if one.until is None]
        if node.whole or all(one.since > node.samples[0][0] for one in found):
            return found
        window *= 16
    return ()


def _local(seconds: int) -> str:
    """Return a time in the zone of this machine, with the day unless it is today."""
    with suppress(ValueError, OverflowError, OSError):
        then = time.localtime(seconds)
        today = time.localtime()[:3] == then[:3]
        return time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", then)
    return str(seconds)
