"""The best evaluation of a run so far, for --keep-best, --early-stopping and --scheduler plateau."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from .errors import CommonMistake, suggestion


@dataclass(frozen=True)
class Best:
    """The best value of a metric.

    higher: larger values are better; step: optimizer step of the best value; since: evaluations after it
    """

    metric: str
    higher: bool
    value: float | None = None
    step: int = 0
    since: int = 0

    def after(self, value: float, step: int) -> "Best":
        """Return the best after an evaluation. A value that is not a number is never the best."""
        better = value == value and (
            self.value is None or (value > self.value if self.higher else value < self.value)
        )
        return (
            replace(self, value=value, step=step, since=0) if better else replace(self, since=self.since + 1)
        )

    def numbers(self) -> dict[str, Any]:
        """Return the fields for a checkpoint."""
        return asdict(self)


def of(metric: str | None, directions: Mapping[str, bool]) -> Best:
    """Return the start of a run that watches `metric`; None is the loss.

    directions: the metrics of the evaluation, and whether larger values are better. Raise CommonMistake for
    another metric.
    """
    name = metric or "loss"
    if name not in directions:
        raise CommonMistake(
            f"--keep-best {name} is not a metric of this run: it has {', '.join(directions)}"
            f"{suggestion(name, directions)}"
        )
    return Best(name, directions[name])


def from_record(fresh: Best, record: Mapping[str, Any] | None) -> Best:
    """Return the best of a checkpoint, or `fresh` if there is none or it is of another metric."""
    if not record or (record["metric"], record["higher"]) != (fresh.metric, fresh.higher):
        return fresh
    return Best(**record)
