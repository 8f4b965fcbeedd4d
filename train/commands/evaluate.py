"""python -m jobgen.train evaluate CKPT|EXPORTED: scores on the test set, in one process, without a launcher.

The checkpoint or exported file determines the task and the model.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import checkpoints, data, device, engines, peers, ranks, trees
from ..addresses import free_port
from ..config import Settings, commands, from_record
from ..data import feed, sampling
from ..engines.deepspeed_common import load_deepspeed
from ..engines.deepspeed_patches import EXPERTS
from ..errors import BadInput, CommonMistake, TargetMissed
from ..evaluation import Measures, Scores, check_target, evaluate, measures
from ..metrics import class_pairs
from ..trees import Tree, call
from . import export


def main(argv: Sequence[str]) -> None:
    """Evaluate the checkpoint or exported file that `argv` names, and print the scores.

    Raise BadInput if it cannot be evaluated, and TargetMissed if the accuracy is below --target-accuracy.
    """
    options = commands.evaluate().parse_args(argv)
    settings, state = load(options.source, options.ema)
    samples = data.of(replace(settings, data=options.data or settings.data, cache=None))
    mine = alone()
    model = model_with(settings, samples.train.shape, samples.outputs, mine, state, options.source)
    runner = Single(RUNNERS[options.with_](model, mine))
    what = measures(samples, settings.loss, settings.metric, settings.loss_by)
    check_target(what, options.target_accuracy)
    test = feed.Feed(samples.test, mine.torch)
    for line in comparison(runner, test, samples.classes, options.show) if options.show else ():
        print(line)
    scores = evaluate(runner, test, what, mine, options.batch_size)
    for line in report(scores, what):
        print(line)
    if options.target_accuracy is not None and scores.metrics["accuracy"] < options.target_accuracy:
        raise TargetMissed(scores.metrics["accuracy"], options.target_accuracy)


def load(source: Path, ema: bool) -> tuple[Settings, export.Weights]:
    """Return the settings of the run that made `source`, and the weights of the whole model.

    ema: return the averaged weights. Raise BadInput if `source` cannot be read or has no averaged weights.
    """
    if source.suffix not in commands.SUFFIXES or source.is_dir():
        checkpoint = checkpoints.at(source)
        return checkpoint.settings, export.weights(checkpoint, ema)
    file = export.description(source)
    try:
        about: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        settings = from_record(about["settings"])
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"{file}, which describes {source.name}, cannot be read: {error}") from None
    if ema and not about["ema"]:
        raise BadInput(f"{source} has no averaged weights: export them with --ema")
    return settings, export.read(source)


@contextmanager
def whole_experts(state: export.Weights, mine: device.Device) -> Iterator[None]:
    """Within the context, let each expert layer of DeepSpeed have all its experts."""
    if not any(EXPERTS in f".{name}" for name in state):
        yield
        return
    load_deepspeed(mine)
    from deepspeed.moe.layer import MoE

    own = MoE.__init__

    def whole(self: Any, *args: Any, **named: Any) -> None:
        call = signature(own).bind(self, *args, **named)
        call.arguments["ep_size"] = 1
        own(*call.args, **call.kwargs)

    MoE.__init__ = whole
    try:
        yield
    finally:
        MoE.__init__ = own


def alone() -> device.Device:
    """Return the device of this process, which becomes a group of one rank."""
    me = ranks.Ranks(0, 1, 0, 1, "127.0.0.1", free_port(), "one process")
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    peers.connect(me, mine)
    return mine


def model_with(
    settings: Settings, shape: Any, outputs: int, mine: device.Device, state: export.Weights, source: Path
) -> nn.Module:
    """Return the model of a run with the weights `state`, on the host. Raise BadInput if they do not fit.

    shape, outputs: see models.selection.build
    """
    one = replace(settings, expert_parallel=None, min_capacity=0)  # the experts take a batch of any size
    with whole_experts(state, mine):
        model = engines.model(one, shape, outputs, mine)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"{source} does not fit the model of its run: {reason}") from None
    return model


def _with_deepspeed(model: nn.Module, mine: device.Device) -> nn.Module:
    deepspeed = load_deepspeed(mine)
    # DeepSpeed has kernels for some transformers only; any other model runs unchanged.
    engine: nn.Module = deepspeed.init_inference(model, dtype=torch.float32, replace_with_kernel_inject=False)
    return engine


RUNNERS: dict[str, Callable[[nn.Module, device.Device], nn.Module]] = {
    "torch": lambda model, mine: model.to(mine.torch),
    "deepspeed": _with_deepspeed,
}


class Single:
    """A model as the engine of a single process, for evaluation only."""

    share = engines.Share(0, 1)

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    @contextmanager
    def evaluation_mode(self) -> Iterator[None]:
        self.module.eval()
        yield

    @torch.no_grad()
    def predict(self, inputs: Tree) -> Tree:
        return call(self.module, inputs)


def comparison(engine: Single, test: feed.Feed, names: Sequence[str], count: int) -> Iterator[str]:
    """Yield the right and the predicted classes of the first `count` samples, as two lines.

    Raise CommonMistake for a task without classes.
    """
    if not names:
        raise CommonMistake("--show prints classes, and the data have none")
    right: list[str] = []
    predictions: list[str] = []
    with engine.evaluation_mode():
        for ((inputs, targets, real, _),), _ in test.batches(
            sampling.steps(test.indices()[:count], count, 1, *engine.share)
        ):
            outputs = trees.as_tree(engine.predict(inputs))
            pairs = class_pairs(*(trees.first(each, real, trees.rows(inputs)) for each in (outputs, targets)))
            for numbers, words in zip(pairs, (predictions, right), strict=True):
                words += [names[number] if number >= 0 else "-" for number in numbers.flatten().tolist()]
    widths = [max(map(len, pair)) for pair in zip(right, predictions, strict=True)]
    for title, words in (("ground truth:", right), ("predicted:   ", predictions)):
        yield " ".join([title, *(word.ljust(width) for word, width in zip(words, widths, strict=True))])


def report(scores: Scores, what: Measures) -> Iterator[str]:
    """Yield the lines of the report: the accuracy of each class, then loss and metrics of all samples."""
    yield from scores.lines()
    yield ", ".join(filter(None, (f"test loss {scores.loss:.6f}", what.text(scores.metrics))))
