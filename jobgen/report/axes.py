"""Axes: they map values to places on a chart, linear or logarithmic, with ticks at round numbers."""

from __future__ import annotations

import math
from typing import NamedTuple

_LOG_FROM = 30.0  # greatest by least value; a linear axis is readable below this
_TIMES = ((86400.0, "d", 3), (3600.0, "h", 3), (60.0, "min", 3), (1.0, "s", 0))


class Axis(NamedTuple):
    """An axis from ``low`` to ``high``, in pixels from ``start`` to ``end``. A tick is a value and a text."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[tuple[float, str], ...]

    def place(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high = (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)
        at = math.log10(value) if self.log else value
        return round(self.start + (at - low) / (high - low) * (self.end - self.start), 1)


def axis(
    values: list[float], start: float, end: float, log: bool = False, zero: bool = False, scale: float = 1
) -> Axis:
    """Return an axis that has all values. ``log`` makes it logarithmic if the values differ much, ``zero``
    begins it at 0; ticks show the values times ``scale``."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = min(low, 0.0) if zero else low
    if log and low > 0 and high / low >= _LOG_FROM:
        return _logarithmic(low, high, start, end)
    low, high = _apart(low, high)
    step = _round_step((high - low) / 5)
    ticks = [step * i for i in range(math.floor(low / step), math.ceil(high / step) + 1)]
    return Axis(min(low, ticks[0]), max(high, ticks[-1]), start, end, False, _labelled(ticks, scale))


def steps(values: list[float], start: float, end: float) -> Axis:
    """Return an axis that begins and ends with the data."""
    low, high = _apart(min(values, default=0.0), max(values, default=1.0))
    return Axis(low, high, start, end, False, _labelled(_within(low, high), 1))


def times(values: list[float], start: float, end: float) -> Axis:
    """Return an axis of seconds from 0, with ticks in days, hours, minutes or seconds."""
    high = max(values, default=1.0)
    high = high if high > 1e-9 else 1.0
    size, word, _ = next(row for row in _TIMES if high >= row[0] * row[2])
    ticks = tuple((tick * size, f"{short(tick)} {word}") for tick in _within(0.0, high / size))
    return Axis(0.0, high, start, end, False, ticks)


def _apart(low: float, high: float) -> tuple[float, float]:
    """Return both values, or values around them if they are almost equal."""
    size = max(abs(low), abs(high))
    if high - low > max(1e-9 * size, 1e-290):
        return low, high
    room = size / 2 if size > 1e-290 else 0.5
    return low - room, high + room


def _within(low: float, high: float) -> list[float]:
    step = _round_step((high - low) / 6)
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _round_step(step: float) -> float:
    """Return 1, 2 or 5 times a power of ten, not less than ``step``."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


def _logarithmic(low: float, high: float, start: float, end: float) -> Axis:
    """Return an axis between 1, 2 or 5 times powers of ten; if there are many powers, some have ticks."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    first = max((tick for tick in fine if tick <= low), default=low)
    last = min((tick for tick in fine if tick >= high), default=high)
    every = max(1, len(powers) // 6)
    ticks = fine if len(powers) <= 4 else [10.0**power for power in powers[::every]]
    return Axis(
        first, last, start, end, True, _labelled([tick for tick in ticks if first <= tick <= last], 1)
    )


def _labelled(ticks: list[float], scale: float) -> tuple[tuple[float, str], ...]:
    texts = [short(tick * scale) for tick in ticks]
    if len(set(texts)) < len(texts):  # short texts would be equal
        texts = [f"{tick * scale:.10g}" for tick in ticks]
    return tuple(zip(ticks, texts, strict=True))


def short(value: float) -> str:
    """Return a number with four digits; thousands and millions with k and M."""
    if 1e4 <= abs(value) < 1e9:
        factor, letter = (1e6, "M") if abs(value) >= 1e6 else (1e3, "k")
        return f"{value / factor:.4g}{letter}"
    return f"{value:.4g}"


def duration(seconds: float | None) -> str:
    """Return 45 s, 12 min 5 s, 3 h 20 min or 2 d 4 h; a dash for None."""
    if seconds is None:
        return "-"
    whole = max(0, round(seconds))
    for size, word, part, name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {word}" + (f" {rest} {name}" if rest else "")
    return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
