"""The use of the devices of a run: its curves, and the devices without use."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from jobgen.report.series import Curves, Kind, Point
from jobgen.runs import telemetry
from jobgen.runs.remote import mirror
from jobgen.runs.run_directory import RunRecord
from jobgen.runs.telemetry import NodeUse

_BINS = 600  # places of a curve, about the pixels of a chart
_LEAST = 10  # s between two samples of a device
_REMARKS = 20  # shown of a run
_SERIES = {"mean": "mean of all devices", "least": "least used device", "greatest": "most used device"}
KINDS = (
    Kind("Use of the devices", "%", "zero", {("use", key): name for key, name in _SERIES.items()}),
    Kind("Memory of the devices", "%", "zero", {("memory", key): name for key, name in _SERIES.items()}),
)
_Bins = dict[int, tuple[float, int, float, float]]  # sum, number, least and greatest of the devices


def use(run: RunRecord) -> tuple[Curves, list[str]]:
    """Return the curves against the time of all attempts, without the time between them, and remarks: the
    devices without use, and what the tools wrote instead of samples.

    One node is read after the other: many nodes have more samples than fit in the memory.
    """
    curves: Curves = {key: [] for kind in KINDS for key in kind.keys}
    remarks, before = list[str](), 0.0
    for attempt in run.attempts:
        paths = telemetry.files(attempt.directory)
        if not paths or attempt.began is None:
            continue
        took = max((attempt.ended or 0) - attempt.began, _LEAST)
        width = max(_LEAST, took / _BINS)
        bins: dict[str, _Bins] = {"use": {}, "memory": {}}
        for path in paths:
            mirror.try_end(path)
            if (node := telemetry.read(path)) is None:
                continue
            for at, key in enumerate(bins, 1):
                _add(bins[key], node, at, attempt.began, width)
            remarks += _idle(node)
        remarks += [f"{host}: {text}" for host, text in telemetry.messages(attempt.directory)]
        for key, of_kind in bins.items():
            for place, (total, number, least, greatest) in sorted(of_kind.items()):
                seconds = before + place * width
                for series, value in {"mean": total / number, "least": least, "greatest": greatest}.items():
                    curves[key, series].append(Point(seconds, seconds, value / 100))
        before += took
    more = [f"and {len(remarks) - _REMARKS} more"] if len(remarks) > _REMARKS else []
    return {key: points for key, points in curves.items() if points}, remarks[:_REMARKS] + more


def _add(bins: _Bins, node: NodeUse, at: int, begin: float, width: float) -> None:
    """Add the mean of each device of a node in each bin to the bins."""
    sums: dict[tuple[int, str], list[int]] = {}
    for time, row in node.samples:
        place = max(0, int((time - begin) / width))
        for device in row:
            if device[at] != "-":
                sums.setdefault((place, device[0]), []).append(int(device[at]))
    for (place, _), values in sums.items():
        mean = sum(values) / len(values)
        total, number, least, greatest = bins.get(place, (0.0, 0, mean, mean))
        bins[place] = (total + mean, number + 1, min(least, mean), max(greatest, mean))


def _idle(node: NodeUse) -> Iterator[str]:
    for one in telemetry.idle(node):
        yield telemetry.sentence(one, _clock(one.since), "" if one.until is None else _clock(one.until))


def _clock(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M}"
