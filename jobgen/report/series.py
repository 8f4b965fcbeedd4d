"""Curves from metrics: the keys of each chart, and the choice of points to draw."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from jobgen.runs.run_directory import number


class Point(NamedTuple):
    """A value at a step and after some seconds of training; None if it is not finite."""

    step: float
    seconds: float | None
    value: float | None


class Kind(NamedTuple):
    """A chart: its title, the unit of its values, the kind of its axis (log: logarithmic if the values differ
    much; zero: begins at 0), and the keys of metrics.jsonl that it draws, with names."""

    title: str
    unit: str
    axis: str
    keys: dict[tuple[str, str], str]


# By event and key. Rows without an event, which the user's own program may write, count for all events.
KINDS = (
    Kind(
        "Loss",
        "",
        "log",
        {
            ("step", "loss"): "training",
            ("epoch", "test_loss"): "validation",
            ("epoch", "train_loss"): "training, mean of an epoch",
        },
    ),
    Kind("Accuracy", "%", "", {("epoch", "train_accuracy"): "training", ("epoch", "accuracy"): "validation"}),
    Kind("Perplexity", "", "log", {("epoch", "perplexity"): "validation"}),
    Kind("Mean absolute error", "", "log", {("epoch", "mae"): "validation"}),
    Kind("Throughput", "samples/s", "zero", {("step", "samples_per_second"): "training"}),
    Kind("Learning rate", "", "log", {("step", "lr"): "training"}),
    Kind("Norm of the gradient", "", "log", {("step", "gradient_norm"): "training"}),
)


Curves = dict[tuple[str, str], list[Point]]


def curves(rows: Iterable[dict[str, Any]]) -> Curves:
    """Return the points of each key of KINDS that has a finite value, in the order of steps."""
    found: Curves = {key: [] for kind in KINDS for key in kind.keys}
    for row in rows:
        if (step := number(row.get("step"))) is not None:
            seconds, kind_of_row = number(row.get("seconds")), row.get("event")
            kind_of_row = "epoch" if kind_of_row == "evaluation" else kind_of_row  # one between two epochs
            seconds = seconds if seconds is None or seconds >= 0 else None
            for (event, key), points in found.items():
                if key in row and kind_of_row in (event, None):
                    points.append(Point(step, seconds, number(row[key])))
    if found["step", "loss"]:
        found["epoch", "train_loss"] = []  # it adds no information
    return {
        key: sorted(points, key=lambda point: point.step)
        for key, points in found.items()
        if any(point.value is not None for point in points)
    }


def resumptions(rows: Iterable[dict[str, Any]]) -> list[Point]:
    """Return the steps after which the training continued in a later attempt."""
    found, last = [], None
    for row in rows:
        if row.get("event") == "start" and last is not None and last not in found:
            found.append(last)
        if (step := number(row.get("step"))) is not None:
            last = Point(step, number(row.get("seconds")), None)
    return found


PlotPoint = tuple[float, float | None]


def thin(drawn: list[PlotPoint], columns: int) -> list[PlotPoint]:
    """Return at most five points per column: the first, the least, the greatest, the last and one not finite.

    ``drawn`` is in the order of x, and so is the result, which is a part of it.
    """
    if len(drawn) <= columns:
        return drawn
    low, high = drawn[0][0], drawn[-1][0]
    width = (high - low) / columns or 1.0
    groups = itertools.groupby(
        range(len(drawn)), lambda i: min(int((drawn[i][0] - low) / width), columns - 1)
    )
    return [drawn[i] for _, group in groups for i in _kept(drawn, list(group))]


def _kept(drawn: list[PlotPoint], group: list[int]) -> list[int]:
    values = [(value, i) for i in group if (value := drawn[i][1]) is not None]
    gaps = [i for i in group if drawn[i][1] is None][:1]
    kept = {group[0], group[-1], *gaps}
    if values:
        kept |= {min(values)[1], max(values)[1]}
    return sorted(kept)


def segments(drawn: Iterable[PlotPoint]) -> Iterator[list[tuple[float, float]]]:
    """Yield the sequences of finite points: a line has a gap at a point that is not finite."""
    segment: list[tuple[float, float]] = []
    for x, value in drawn:
        if value is not None:
            segment.append((x, value))
        elif segment:
            yield segment
            segment = []
    if segment:
        yield segment
