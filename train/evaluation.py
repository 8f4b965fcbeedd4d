"""The evaluation of a model on the whole test set."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import distributed

from . import loss_functions, metrics, trees
from .data import Task, sampling
from .data.feed import Feed
from .device import Device
from .engines import Evaluator
from .errors import CommonMistake
from .loss_functions import Objective
from .metrics import Metric
from .trees import Tree


class Scores(NamedTuple):
    """The results on the whole test set.

    loss: mean loss per sample, or per token; metrics: value by name; per_class: accuracy by class, None for
    a class without samples; {} for a task without classes
    """

    loss: float
    metrics: dict[str, float]
    per_class: dict[str, float | None]

    def row(self) -> dict[str, Any]:
        """Return the results for metrics.jsonl and status.json."""
        by_class = {"per_class": self.per_class} if self.per_class else {}
        finite = {name: value if math.isfinite(value) else None for name, value in self.metrics.items()}
        return {"test_loss": self.loss, **finite, **by_class}

    def lines(self) -> list[str]:
        """Return the accuracy of each class as lines."""
        return [
            f"  {name:>6} {'-' if accuracy is None else format(accuracy, '.1%')}"
            for name, accuracy in self.per_class.items()
        ]


@dataclass(frozen=True)
class Measures:
    """The loss, the metrics and the classes whose accuracy an evaluation computes."""

    objective: Objective
    metrics: tuple[Metric, ...]
    classes: tuple[str, ...]

    def text(self, values: dict[str, float]) -> str:
        """Return the metrics as words, such as 'accuracy 97.00%'; '' without any."""
        return ", ".join(metric.text(values[metric.name]) for metric in self.metrics)


def measures(
    task: Task, loss: str | None = None, names: Sequence[str] | None = None, loss_by: str | None = None
) -> Measures:
    """Return the measures of a task, or those that --loss, --metric and --loss-by select.

    Raise CommonMistake if a function does not exist.
    """
    selection = tuple(metrics.build(each) for each in (task.metrics if names is None else names))
    by_class = any(metric.name == "accuracy" for metric in selection)
    by_token = task.by_token(loss_by, loss)
    objective = loss_functions.build(loss or task.loss, len(task.classes), by_token)
    return Measures(objective, selection, task.classes if by_class else ())


def check_target(what: Measures, target: float | None) -> None:
    """Raise CommonMistake for a --target-accuracy of a run that does not measure the accuracy."""
    names = [metric.name for metric in what.metrics]
    if target is not None and "accuracy" not in names:
        raise CommonMistake(
            f"--target-accuracy {target} needs --metric accuracy, not {', '.join(names) or 'none'}"
        )


class Tally:
    """The sums and counts of this rank, on the device."""

    def __init__(self, what: Measures, device: torch.device) -> None:
        self._what = what
        self.right, self.totals = torch.zeros(2, len(what.classes), dtype=torch.int64, device=device)
        self.loss = torch.zeros((), device=device)
        self.tokens = torch.zeros((), dtype=torch.int64, device=device)  # if they are the unit of the loss
        self.sums = [
            torch.zeros((), dtype=torch.int64 if metric.whole else torch.float32, device=device)
            for metric in what.metrics
        ]
        self.counts = torch.zeros(len(what.metrics), dtype=torch.int64, device=device)

    def add(self, outputs: Tree, targets: Tree, real: int, samples: int) -> None:
        self.loss += self._what.objective(outputs, targets, real, samples)
        if self._what.objective.by_token:
            self.tokens += loss_functions.tokens(targets, real)
        outputs, targets = (trees.first(tree, real, samples) for tree in (outputs, targets))
        for place, metric in enumerate(self._what.metrics):
            total, count = metric.count(outputs, targets)
            self.sums[place] += total
            self.counts[place] += count
        if self._what.classes:
            predictions, labels = (each.flatten() for each in metrics.class_pairs(outputs, targets))
            mask, labels = labels >= 0, labels.clamp(min=0)
            self.totals.index_add_(0, labels, mask.long())
            self.right.index_add_(0, labels, (mask & (predictions == labels)).long())

    def scores(self, samples: int) -> Scores:
        """Return the scores over all ranks. Called on all of them."""
        for tensor in (self.right, self.totals, self.loss, self.tokens, *self.sums, self.counts):
            distributed.all_reduce(tensor)
        values = {
            metric.name: metric.value(total.item(), count)
            for metric, total, count in zip(self._what.metrics, self.sums, self.counts.tolist(), strict=True)
        }
        per_class = {
            name: round(r / n, 6) if n else None
            for name, r, n in zip(self._what.classes, self.right.tolist(), self.totals.tolist(), strict=True)
        }
        units = max(1, int(self.tokens)) if self._what.objective.by_token else samples
        return Scores(self.loss.item() / units, values, per_class)


def evaluate(
    engine: Evaluator, split: Feed, what: Measures, device: Device, micro: int, most: int | None = None
) -> Scores:
    """Return the scores on the split. Each sample is counted once, for any number of ranks.

    most: number of samples, the first ones, that are evaluated; None for all
    """
    order = split.indices()[:most]
    counts = Tally(what, device.torch)
    with engine.evaluation_mode():
        steps = sampling.steps(order, micro, 1, *engine.share)
        for ((inputs, targets, real, _),), _ in split.batches(steps):
            outputs = engine.predict(inputs)
            if outputs is not None and real:
                counts.add(trees.as_tree(outputs), targets, real, trees.rows(inputs))
    return counts.scores(len(order))
