"""Job arrays and their indices."""

import re
from itertools import pairwise
from typing import NamedTuple

_MANY = 1000
MOST = 4_000_000  # tasks: the greatest MaxArraySize that Slurm can be set to
_RULE = "must be indices such as 0-9, 0-20:5 or 1,3,7, with %N at the end for at most N at a time"


Ranges = tuple[tuple[int, int, int], ...]  # first, last and step


class Array(NamedTuple):
    """Ranges of first, last and step, and the number of tasks that may run at a time.

    No ranges: all points of a sweep.
    """

    ranges: Ranges
    limit: int | None = None

    @property
    def last(self) -> int:
        """The greatest index; -1 if there are no ranges."""
        return max((first + (last - first) // step * step for first, last, step in self.ranges), default=-1)

    @property
    def size(self) -> int:
        return sum((last - first) // step + 1 for first, last, step in self.ranges)

    def indices(self) -> list[int]:
        """Return all indices in their order."""
        return [one for first, last, step in self.ranges for one in range(first, last + 1, step)]

    def has(self, index: int) -> bool:
        return any(
            first <= index <= last and (index - first) % step == 0 for first, last, step in self.ranges
        )

    def text(self) -> str:
        """Return the array as the schedulers write it."""
        indices = ",".join(_range(*one) for one in self.ranges)
        return indices if self.limit is None else f"{indices}%{self.limit}"


def read(text: str) -> Array | None:
    """Parse an array in the notation of any scheduler; return None if no scheduler accepts it."""
    if text.startswith("["):  # as squeue shows it, and sbatch takes it
        text = text.replace("[", "").replace("]", "")
    indices, percent, limit = text.partition("%")
    ranges = []
    for part in indices.split(","):
        if not (match := re.fullmatch(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?", part.strip(), re.ASCII)):
            return None
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step < 1:
            return None
        ranges.append((first, last, step))
    if percent and not (limit.isascii() and limit.isdigit()):
        return None
    return Array(tuple(ranges), int(limit) if percent else None)


def array(text: str) -> Array:
    """Parse an array as the user types it; ``%N`` alone is the limit of a sweep."""
    if re.search(r"\d{8}", text):
        raise ValueError(f"must have indices up to {MOST - 1}, the limit of all schedulers")
    found = read(f"0{text}" if text.startswith("%") else text)
    if found is None or found.limit == 0 or re.search(r"[\s\[]", text):
        raise ValueError(_RULE)
    if found.last >= MOST:
        raise ValueError(f"goes up to {found.last}, but the limit of all schedulers is {MOST - 1}")
    if text.startswith("%"):
        return found._replace(ranges=())
    seen: set[int] = set()
    for first, last, step in found.ranges:
        indices = range(first, last + 1, step)
        if twice := seen.intersection(indices):
            raise ValueError(f"names the index {min(twice)} twice")
        seen.update(indices)
    return found


def ranges_of(indices: list[int]) -> Ranges:
    """Return indices in their order as ranges without steps."""
    ranges: list[tuple[int, int, int]] = []
    for index in indices:
        if ranges and index == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], index, 1)
        else:
            ranges.append((index, index, 1))
    return tuple(ranges)


def without_steps(ranges: Ranges) -> Ranges:
    """Return ranges without steps; none if the list is too long."""
    if all(step == 1 for _, _, step in ranges):
        return ranges
    if sum((last - first) // step for first, last, step in ranges) > _MANY:
        return ()
    return tuple((one, one, 1) for first, last, step in ranges for one in range(first, last + 1, step))


def _range(first: int, last: int, step: int) -> str:
    if first == last:
        return str(first)
    return f"{first}-{last}" if step == 1 else f"{first}-{last}:{step}"


def one_range(ranges: Ranges) -> Ranges:
    """Return evenly spaced indices as one range; an empty tuple if they are not, or if there is only one."""
    if len(ranges) == 1:
        first, last, step = ranges[0]
        return ranges if first + step <= last else ()
    indices = [one for one, last, _ in ranges if one == last]
    steps = {after - before for before, after in pairwise(indices)}
    if len(indices) != len(ranges) or len(steps) != 1 or min(steps) < 1:
        return ()
    return ((indices[0], indices[-1], steps.pop()),)
