"""The loss that the training minimises: --loss.

The unit of every loss is the mean over the samples of an optimizer step, on all ranks. The loss of a sample
is the mean over its elements: for a sequence, over its tokens whose target is not IGNORE_INDEX. Losses of
unequal micro batches are added as sums over samples, so that this mean is exact for any division into micro
batches. With --loss-by token it is the mean over the tokens of the step: the loss of a sample is then the
sum over its tokens, times the factor of the step, which is its samples divided by its tokens (data/feed.py).

Two types keep sums and means apart. A loss by name returns SampleLosses, the loss of each sample. Objective
alone adds them: the engines get a LossSum. A plain tensor, such as a mean, is neither of them. They are made
by cast(), which torch.compile can read.

cross_entropy   outputs are logits [n, classes], [n, length, classes] or [n, classes, ...]; targets are class
                indices [n] or [n, length], or probabilities [n, classes] (one-hot)
nll             the same, of log-probabilities
mse, l1         targets have the shape of the outputs, or are class indices, which become one-hot vectors
bce             binary cross-entropy of logits; targets between 0 and 1 in the shape of the outputs
model           the model's own loss: outputs.loss or outputs["loss"], a mean over the samples of the pass
PKG.MOD:FN      FN(outputs, targets), with the outputs as the model returns them: a mean over the samples, or
                one value for each sample, [n]
"""

from collections.abc import Callable, Mapping
from typing import Any, NewType, cast

import torch
from torch import nn
from torch.nn import functional

from . import trees, user_code
from .errors import CommonMistake
from .trees import Tree

SampleLosses = NewType("SampleLosses", torch.Tensor)  # [n]: one value for each sample
LossSum = NewType("LossSum", torch.Tensor)  # a scalar: the sum over samples, in fp32
LossByName = Callable[[torch.Tensor, Tree], SampleLosses]
OwnLoss = Callable[[Tree, Tree], Any]  # the user's: a mean, or one value for each sample
IGNORE_INDEX = -100  # targets with this index do not count, as in torch's cross-entropy
OF_THE_MODEL = "model"


class Objective:
    """The loss of a run, summed over samples.

    name: as for --loss; function: the user's own, or None for a name of BY_NAME or `model`; classes: their
    number, 0 if unknown; by_token: the unit is a token
    """

    def __init__(
        self, name: str, function: OwnLoss | None = None, classes: int = 0, by_token: bool = False
    ) -> None:
        self.name, self._own, self._classes, self.by_token = name, function, classes, by_token

    def __call__(
        self, outputs: Tree, targets: Tree, real: int, samples: int, factor: torch.Tensor | None = None
    ) -> LossSum:
        """Return the sum of the losses of the first `real` of `samples` samples.

        factor: of the sums over tokens, if the unit is a token; None for their sum itself

        Raise CommonMistake, with the shapes, if outputs and targets do not fit the loss.
        """
        if real == 0:  # a borrowed sample takes part in the backward pass, but is not counted
            return cast(LossSum, self(outputs, targets, 1, samples, factor) * 0.0)
        outputs, targets = (trees.first(tree, real, samples) for tree in (trees.as_tree(outputs), targets))
        if self._own is None and self.name != OF_THE_MODEL:
            by_name = (BY_TOKEN if self.by_token else BY_NAME)[self.name]
            losses = by_name(self._with_all_classes(main(outputs), targets).float(), targets)
            loss = self._sum_of(losses, real)
            return loss if factor is None else cast(LossSum, loss * factor)
        if self._own is not None:
            return self._sum(self._own(outputs, targets), real)
        if real < samples:
            raise CommonMistake(
                "--loss model needs whole batches: the model's own mean includes the samples that pad a batch"
            )
        return self._sum(_of_the_model(outputs), real)

    def _with_all_classes(self, outputs: torch.Tensor, targets: Tree) -> torch.Tensor:
        """Return the outputs. Raise CommonMistake if they have fewer classes than the data."""
        logits = by_class(outputs, targets)
        if logits is not None and logits.shape[1] < self._classes:
            raise CommonMistake(
                f"the model returns {trees.shapes(outputs)} for {self._classes} classes: it must return one "
                "value for each class"
            )
        return outputs

    def _sum_of(self, losses: SampleLosses, real: int) -> LossSum:
        """Return the sum of the losses. A loss by name that returns a mean or a sum is an error of ours."""
        if losses.shape != (real,):
            raise TypeError(f"{self.name} returned {trees.shapes(losses)}, not the losses of {real} samples")
        return cast(LossSum, losses.sum())

    def _sum(self, value: Any, real: int) -> LossSum:
        """Return the sum of the losses for the result of the user's function or model."""
        if isinstance(value, torch.Tensor) and value.ndim == 0:
            return cast(LossSum, value.float() * real)
        if isinstance(value, torch.Tensor) and value.shape == (real,):
            return cast(LossSum, value.float().sum())
        raise CommonMistake(
            f"--loss {self.name} returned {trees.shapes(value)} for {real} samples; it must return a scalar, "
            "the mean over the samples, or one value for each sample"
        )


def build(loss: str | OwnLoss, classes: int = 0, by_token: bool = False) -> Objective:
    """Return the loss of this name, or of this function.

    Raise CommonMistake if there is none, or if it has no tokens although the unit is a token.
    """
    if by_token and loss not in BY_TOKEN:
        name = loss if isinstance(loss, str) else getattr(loss, "__name__", "of the data")
        raise CommonMistake(
            f"--loss-by token needs --loss {' or '.join(BY_TOKEN)}, not {name}, which is a mean over samples"
        )
    if callable(loss):
        return Objective(getattr(loss, "__name__", "loss"), loss)
    if loss in BY_NAME or loss == OF_THE_MODEL:
        return Objective(loss, classes=classes, by_token=by_token)
    return Objective(loss, user_code.find("--loss", loss))


def of_module(module: nn.Module, loss: LossSum, real: int) -> LossSum:
    """Return the loss plus that of the model's method auxiliary_loss(), if there is one.

    Its result is a loss per sample of the last forward pass, such as the balance of experts.
    """
    auxiliary = getattr(module, "auxiliary_loss", None)
    return loss if auxiliary is None else cast(LossSum, loss + real * auxiliary())


def main(outputs: Tree) -> torch.Tensor:
    """Return the tensor that a loss or metric by name uses.

    It is the only output, `logits` of a dict or object, or the first of a tuple. Raise CommonMistake if there
    is none.
    """
    result = outputs
    if isinstance(result, Mapping):
        result = result.get("logits", next(iter(result.values())) if len(result) == 1 else None)
    elif isinstance(result, list | tuple) and result:
        result = result[0]
    if not isinstance(result, torch.Tensor):
        raise CommonMistake(
            f"the model returns {trees.shapes(outputs)}; a loss or metric by name needs a tensor, a dict or "
            "object with `logits`, or a tuple that begins with a tensor"
        )
    return result


def _of_the_model(outputs: Tree) -> Any:
    loss = outputs.get("loss") if isinstance(outputs, Mapping) else None
    if loss is None:
        raise CommonMistake(
            f"--loss model: the model returns {trees.shapes(outputs)}, without a `loss`; models of "
            "transformers return one if the inputs contain `labels`"
        )
    return loss


def by_class(outputs: torch.Tensor, targets: Tree) -> torch.Tensor | None:
    """Return the outputs with their classes in dimension 1, or None if targets are not class indices."""
    if not isinstance(targets, torch.Tensor) or targets.is_floating_point():
        return None
    if outputs.shape[:-1] == targets.shape:
        return outputs.movedim(-1, 1) if targets.ndim > 1 else outputs
    split = outputs.shape[:1] + outputs.shape[2:]
    return outputs if outputs.ndim > 1 and split == targets.shape else None


def matrix(logits: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logits of tokens, [n, classes, length], as rows of a matrix, and their targets as a vector.

    On an H100, torch's softmax over another dimension takes 57 ms for one sequence of GPT-2, and over rows
    0.3 ms. Logits whose classes are not next to each other in memory are returned as they are.
    """
    last = logits.movedim(1, -1)
    if targets.ndim == 1 or not last.is_contiguous():
        return logits, targets
    return last.flatten(0, -2), targets.flatten()


def alike(outputs: torch.Tensor, targets: Tree) -> torch.Tensor | None:
    """Return the targets as floats in the shape of the outputs, or None if they do not fit.

    Class indices become one-hot vectors. [n] and [n, 1] are the same.
    """
    if not isinstance(targets, torch.Tensor):
        return None
    if targets.shape == outputs.shape or (
        targets.numel() == outputs.numel() and {targets.shape, outputs.shape} == _column(outputs)
    ):
        return targets.reshape(outputs.shape).to(outputs.dtype)
    if not targets.is_floating_point() and targets.shape == outputs.shape[:-1]:
        return functional.one_hot(targets.long(), outputs.shape[-1]).to(outputs.dtype)
    return None


def _column(outputs: torch.Tensor) -> set[torch.Size]:
    return {torch.Size([len(outputs)]), torch.Size([len(outputs), 1])}


def _over_classes(
    name: str, function: Callable[..., torch.Tensor], soft: bool, sums: bool = False
) -> LossByName:
    """Return a loss over classes; soft: targets may be probabilities; sums: over tokens, not their mean."""

    def losses(outputs: torch.Tensor, targets: Tree) -> SampleLosses:
        logits = by_class(outputs, targets)
        if logits is None and soft and outputs.shape == getattr(targets, "shape", None):
            logits, targets = outputs, targets.to(outputs.dtype)
            return _means(function(logits, targets, reduction="none"), len(logits))
        if logits is None:
            raise _misfit(name, outputs, targets, "[samples, classes] and class indices [samples]")
        targets = targets.long()
        if targets.ndim == 1:
            return cast(SampleLosses, function(logits, targets, ignore_index=IGNORE_INDEX, reduction="none"))
        each = function(*matrix(logits, targets), ignore_index=IGNORE_INDEX, reduction="none")
        each = each.reshape(len(targets), -1)
        if sums:
            return cast(SampleLosses, each.sum(1))
        counts = (targets != IGNORE_INDEX).flatten(1).sum(1).clamp(min=1)
        return cast(SampleLosses, each.sum(1) / counts)

    return losses


def _over_elements(name: str, function: Callable[..., torch.Tensor]) -> LossByName:
    def losses(outputs: torch.Tensor, targets: Tree) -> SampleLosses:
        floats = alike(outputs, targets)
        if floats is None:
            raise _misfit(name, outputs, targets, "the same shape for both, or class indices [samples]")
        return _means(function(outputs, floats, reduction="none"), len(outputs))

    return losses


def _means(elements: torch.Tensor, samples: int) -> SampleLosses:
    """Return for each sample the mean of the losses of its elements."""
    return cast(SampleLosses, elements.reshape(samples, -1).mean(1))


def _misfit(name: str, outputs: torch.Tensor, targets: Tree, needs: str) -> CommonMistake:
    return CommonMistake(
        f"--loss {name} does not fit: the model returns {trees.shapes(outputs)} and the targets are "
        f"{trees.shapes(targets)}; it needs {needs}"
    )


BY_NAME: dict[str, LossByName] = {
    "cross_entropy": _over_classes("cross_entropy", functional.cross_entropy, soft=True),
    "nll": _over_classes("nll", functional.nll_loss, soft=False),
    "mse": _over_elements("mse", functional.mse_loss),
    "l1": _over_elements("l1", functional.l1_loss),
    "bce": _over_elements("bce", functional.binary_cross_entropy_with_logits),
}
BY_TOKEN: dict[str, LossByName] = {
    "cross_entropy": _over_classes("cross_entropy", functional.cross_entropy, soft=False, sums=True),
    "nll": _over_classes("nll", functional.nll_loss, soft=False, sums=True),
}


def tokens(targets: Tree, real: int) -> torch.Tensor:
    """Return the number of tokens to learn of the first `real` samples. Raise CommonMistake if unknown."""
    if not isinstance(targets, torch.Tensor) or targets.is_floating_point():
        raise CommonMistake(
            f"--loss-by token needs class indices as targets; they are {trees.shapes(targets)}"
        )
    return (targets[:real] != IGNORE_INDEX).sum()
