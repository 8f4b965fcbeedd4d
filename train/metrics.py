"""The metrics of the evaluation: --metric. Each is a sum and a count, which are added over passes and ranks.

accuracy     fraction of right samples, or of right tokens without those to ignore; of one-hot targets, too
perplexity   exp of the mean cross-entropy of a token, or of a sample without tokens
mae          mean absolute error: the mean over samples of the mean over a sample's elements
PKG.MOD:FN   FN(outputs, targets), with the outputs as the model returns them: a mean over the samples, one
             value for each sample, or a pair (sum, count); the result is sum / count over all ranks. Larger
             is better unless FN.higher_is_better is False.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from . import trees, user_code
from .errors import CommonMistake
from .loss_functions import BY_NAME, IGNORE_INDEX, alike, by_class, main, matrix
from .trees import Tree

Pair = tuple[torch.Tensor | float, torch.Tensor | int]
OTHER_NAMES = ("epoch", "step", "seconds", "samples_per_second", "per_class", "event", "loss", "lr")


@dataclass(frozen=True)
class Metric:
    """A metric of the evaluation.

    count: return the sum and the count of some samples; finish: from the mean to the metric
    higher: larger values are better; form: format of the value; whole: the sums are whole numbers
    """

    name: str
    count: Callable[[Tree, Tree], Pair]
    finish: Callable[[float], float] = float
    higher: bool = True
    form: str = ".4f"
    whole: bool = False

    def value(self, total: float, count: float) -> float:
        """Return the metric; nan without anything to count."""
        return round(self.finish(total / count), 6) if count else math.nan

    def text(self, value: float) -> str:
        return f"{self.name} {value:{self.form}}"


def build(metric: str | Callable[..., Any]) -> Metric:
    """Return the metric of this name, or of this function. Raise CommonMistake if there is none."""
    if metric in METRICS:
        return METRICS[str(metric)]
    function = metric if callable(metric) else user_code.find("--metric", metric)
    name = getattr(function, "__name__", str(metric).rpartition(":")[2])
    if name in (*OTHER_NAMES, *METRICS) or name.endswith("_loss"):
        raise CommonMistake(f"--metric {metric}: {name} is the name of another value; rename the function")
    return Metric(name, _own(name, function), higher=getattr(function, "higher_is_better", True))


def _own(name: str, function: Callable[..., Any]) -> Callable[[Tree, Tree], Pair]:
    def count(outputs: Tree, targets: Tree) -> Pair:
        samples = trees.rows(outputs if targets is None else targets)
        value = function(outputs, targets)
        if isinstance(value, list | tuple) and len(value) == 2:
            return value[0], value[1]
        value = torch.as_tensor(value)
        if value.ndim == 0:
            return value * samples, samples
        if value.shape == (samples,):
            return value.sum(), samples
        raise CommonMistake(
            f"--metric {name} returned {trees.shapes(value)} for {samples} samples; it must return a scalar, "
            "one value for each sample, or a pair (sum, count)"
        )

    return count


def class_pairs(outputs: Tree, targets: Tree) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the predicted and the right classes, of the same shape. IGNORE_INDEX does not count."""
    logits = main(outputs)
    classes = by_class(logits, targets)
    if classes is not None:
        return classes.argmax(1), targets
    floats = alike(logits, targets)
    if floats is None:
        raise CommonMistake(
            f"--metric accuracy does not fit: the model returns {trees.shapes(logits)} and the targets are "
            f"{trees.shapes(targets)}"
        )
    if logits.ndim > 1 and logits.shape[-1] > 1:
        return logits.argmax(-1), floats.argmax(-1)
    return (logits > 0).long(), (floats > 0.5).long()


def _accuracy(outputs: Tree, targets: Tree) -> Pair:
    predictions, right = class_pairs(outputs, targets)
    return (predictions == right).sum(), (right != IGNORE_INDEX).sum()


def _perplexity(outputs: Tree, targets: Tree) -> Pair:
    logits = main(outputs).float()
    classes = by_class(logits, targets)
    if classes is None:
        raise CommonMistake(
            f"--metric perplexity needs class indices as targets; they are {trees.shapes(targets)}, and the "
            f"model returns {trees.shapes(logits)}"
        )
    rows = matrix(classes, targets.long())
    total = functional.cross_entropy(*rows, ignore_index=IGNORE_INDEX, reduction="sum")
    return total, (targets != IGNORE_INDEX).sum()


def _mae(outputs: Tree, targets: Tree) -> Pair:
    return BY_NAME["l1"](main(outputs).float(), targets).sum(), trees.rows(targets)


def _exp(mean: float) -> float:
    return math.exp(mean) if mean < 700 else math.inf


METRICS = {
    "accuracy": Metric("accuracy", _accuracy, form=".2%", whole=True),
    "perplexity": Metric("perplexity", _perplexity, _exp, higher=False),
    "mae": Metric("mae", _mae, higher=False),
}
TEST_LOSS = Metric("test_loss", lambda outputs, targets: (0.0, 0), higher=False)
