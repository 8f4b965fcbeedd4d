"""The curves of several runs in one chart: geometry only, drawn by templates/report/chart.svg.j2."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from jobgen.report import axes
from jobgen.report.axes import Axis, short
from jobgen.report.series import KINDS, Curves, Kind, PlotPoint, Point, segments, thin

WIDTH, HEIGHT = 720, 280
LEFT, RIGHT, TOP, BOTTOM = 58, 26, 12, 38  # margins: ticks and the numbers of runs
COLUMNS = WIDTH - LEFT - RIGHT  # of pixels; more points would be drawn on top of each other
_WHOLE = 8  # runs with a point per pixel; more runs share as many points, to limit the size of the page
_APART, _BESIDE = 16, 30  # pixels between the numbers at the ends of lines, above and beside each other
_NUMBERS = (HEIGHT - BOTTOM - TOP) // _APART  # the most numbers: all fit above each other


class Curve(NamedTuple):
    """One series of one run.

    ``description`` is its text for screen readers; ``pieces`` are the points of polylines, ``dots`` single
    points, ``gaps`` the places of values that are not finite; ``end`` is the place of the run's number.
    """

    run: int
    series: int
    description: str
    points: int
    first: float
    last: float
    low: float
    high: float
    pieces: tuple[str, ...]
    dots: tuple[tuple[float, float], ...]
    gaps: tuple[float, ...]
    end: tuple[float, float]


class Seam(NamedTuple):
    """The place where a run continued in a later attempt."""

    run: int
    x: float
    description: str


class Chart(NamedTuple):
    """A chart against one axis (``by``: step, time of the training, or clock, the time of the attempts).
    ``names`` are its series by number; ``drawn`` are the numbers of the series that it shows."""

    title: str
    unit: str
    by: str
    x: Axis
    y: Axis
    lines: tuple[Curve, ...]
    names: tuple[str, ...]
    drawn: tuple[int, ...]
    seams: tuple[Seam, ...]

    @property
    def across(self) -> str:
        """Return the title of the axis."""
        return {"step": "step", "time": "training time", "clock": "time of the attempts"}[self.by]


def charts(
    curves: Sequence[Curves],
    resumptions: Sequence[list[Point]],
    names: Sequence[str],
    kinds: Sequence[Kind] = KINDS,
    axes_of_each: Sequence[str] = ("step", "time"),
) -> list[list[Chart]]:
    """Return the charts of each kind that has values in any run, against each axis that has any.
    ``names`` are those of the runs; ``resumptions`` are the points after which the runs continued."""
    found = []
    for kind in kinds:
        drawn = {
            (run, series): own[key]
            for run, own in enumerate(curves)
            for series, key in enumerate(kind.keys)
            if key in own
        }
        if drawn:
            made = [_chart(kind, by, drawn, resumptions, names) for by in axes_of_each]
            found.append([chart for chart in made if chart.lines])
    return found


def _chart(
    kind: Kind,
    by: str,
    drawn: dict[tuple[int, int], list[Point]],
    resumptions: Sequence[list[Point]],
    names: Sequence[str],
) -> Chart:
    lines = {key: points_by(found, by) for key, found in drawn.items()}
    lines = {key: line for key, line in lines.items() if any(value is not None for _, value in line)}
    values = [value for line in lines.values() for _, value in line if value is not None]
    across = [x for line in lines.values() for x, _ in line]
    make = axes.steps if by == "step" else axes.times
    x = make(across, LEFT, WIDTH - RIGHT)
    scale = 100 if kind.unit == "%" else 1
    y = axes.axis(values, HEIGHT - BOTTOM, TOP, log=kind.axis == "log", zero=kind.axis == "zero", scale=scale)
    series = tuple(kind.keys.values())
    columns = min(COLUMNS, _WHOLE * COLUMNS // len({run for run, _ in lines}) + 1) if lines else COLUMNS
    made = [
        _line(*key, columns, line, x, y, f"{names[key[0]]}, {series[key[1]]}") for key, line in lines.items()
    ]
    return Chart(
        kind.title,
        kind.unit,
        by,
        x,
        y,
        tuple(_apart(made)),
        series,
        tuple(sorted({line.series for line in made})),
        tuple(
            Seam(run, x.place(at), f"{names[run]} was continued here by a later attempt")
            for run in sorted({line.run for line in made})
            for at, _ in points_by(resumptions[run], by)
            if x.low <= at <= x.high
        ),
    )


def points_by(found: list[Point], by: str) -> list[PlotPoint]:
    """Return the points of a series against an axis; points without a time are left out of the time axis."""
    if by == "step":
        return [(point.step, point.value) for point in found]
    return sorted(
        ((point.seconds, point.value) for point in found if point.seconds is not None),
        key=lambda pair: pair[0],
    )


def _line(run: int, series: int, columns: int, line: list[PlotPoint], x: Axis, y: Axis, name: str) -> Curve:
    values = [value for _, value in line if value is not None]
    thinned = thin(line, columns)
    placed = [[(x.place(at), y.place(value)) for at, value in part] for part in segments(thinned)]
    low, high = min(values), max(values)
    description = (
        f"{name}: {len(line)} points, from {short(values[0])} to {short(values[-1])}, "
        f"least {short(low)}, greatest {short(high)}"
    )
    gaps = [x.place(at) for at, value in thinned if value is None]
    return Curve(
        run,
        series,
        description + (f", {len(line) - len(values)} not finite" if gaps else ""),
        len(line),
        values[0],
        values[-1],
        low,
        high,
        tuple(" ".join(f"{a:g},{b:g}" for a, b in part) for part in placed if len(part) > 1),
        tuple(point for part in placed if len(part) == 1 or len(line) <= 40 for point in part),
        tuple(gaps),
        placed[-1][-1],
    )


def _apart(lines: list[Curve]) -> list[Curve]:
    """Return the lines, with the numbers at their ends moved apart. The first series of each run has a
    number; if there are many runs, none has."""
    first = {line.run: i for i, line in reversed(list(enumerate(lines)))}
    moved = [line._replace(end=(0.0, 0.0)) for line in lines]
    if len(first) <= _NUMBERS:
        for group in _groups(sorted(first.values(), key=lambda i: lines[i].end), lines):
            order = sorted(group, key=lambda i: lines[i].end[1])
            for i, y in zip(order, _spread([lines[i].end[1] for i in order]), strict=True):
                moved[i] = lines[i]._replace(end=(lines[i].end[0], y))
    return sorted(moved, key=lambda line: (line.series, line.run))


def _groups(order: Sequence[int], lines: Sequence[Curve]) -> list[list[int]]:
    """Return the indices of lines, sorted by their ends, in groups whose numbers stand in one column."""
    found: list[list[int]] = []
    for i in order:
        if found and lines[i].end[0] - lines[found[-1][-1]].end[0] < _BESIDE:
            found[-1].append(i)
        else:
            found.append([i])
    return found


def _spread(places: list[float]) -> list[float]:
    """Return the sorted places, moved down and then up until they are apart and inside the chart."""
    down = list(accumulate(places, lambda above, place: max(above + _APART, place)))
    limits = (HEIGHT - BOTTOM - 6 - _APART * i for i in range(len(down)))
    return [min(place, limit) for place, limit in zip(down[::-1], limits, strict=True)][::-1]
