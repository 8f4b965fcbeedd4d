"""python -m jobgen.train evaluate CKPT|EXPORTED: scores on the test set, in one process or under a launcher.

The checkpoint or exported file determines the task and the model. Each rank has the whole model, of any
engine, and a share of the samples.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import distributed, nn

from .. import data, device, engines, trees
from ..config import commands
from ..data import feed, sampling
from ..engines.deepspeed_common import load_deepspeed
from ..errors import BadInput, CommonMistake, TargetMissed
from ..evaluation import Measures, Scores, check_target, evaluate, measures
from ..metrics import class_pairs
from ..trees import Tree, call
from . import trained


def main(argv: Sequence[str]) -> None:
    """Evaluate the checkpoint or exported file that `argv` names, and print the scores.

    Raise BadInput if it cannot be evaluated, and TargetMissed if the accuracy is below --target-accuracy.
    """
    options = commands.evaluate().parse_args(argv)
    mine, share = trained.together()
    try:
        source = trained.load(options.source, options.ema)
        settings = source.settings
        samples = data.of(replace(settings, data=options.data or settings.data, cache=None))
        model = trained.model_with(source, samples.train.shape, samples.outputs, mine)
    except BadInput as error:  # of all ranks
        raise CommonMistake(str(error)) from None
    distributed.barrier()  # all ranks have opened the data
    samples.release()
    runner = Replica(RUNNERS[options.with_](model, mine), share)
    what = measures(samples, settings.loss, settings.metric, settings.loss_by)
    check_target(what, options.target_accuracy)
    test = feed.Feed(samples.test, mine.torch)
    lines = list(comparison(runner, test, samples.classes, options.show) if options.show else ())
    scores = evaluate(runner, test, what, mine, options.batch_size)
    for line in (*lines, *report(scores, what)) if share.rank == 0 else ():
        print(line)
    if options.target_accuracy is not None and scores.metrics["accuracy"] < options.target_accuracy:
        raise TargetMissed(scores.metrics["accuracy"], options.target_accuracy)


def _with_deepspeed(model: nn.Module, mine: device.Device) -> nn.Module:
    deepspeed = load_deepspeed(mine)
    # DeepSpeed has kernels for some transformers only; any other model runs unchanged.
    engine: nn.Module = deepspeed.init_inference(model, dtype=torch.float32, replace_with_kernel_inject=False)
    return engine


RUNNERS: dict[str, Callable[[nn.Module, device.Device], nn.Module]] = {
    "torch": lambda model, mine: model.to(mine.torch),
    "deepspeed": _with_deepspeed,
}


class Replica:
    """A whole model as the engine of this rank, for evaluation only."""

    def __init__(self, module: nn.Module, share: engines.Share) -> None:
        self.module, self.share = module, share

    @contextmanager
    def evaluation_mode(self) -> Iterator[None]:
        self.module.eval()
        yield

    @torch.no_grad()
    def predict(self, inputs: Tree) -> Tree:
        return call(self.module, inputs)


def comparison(engine: Replica, test: feed.Feed, names: Sequence[str], count: int) -> Iterator[str]:
    """Yield the right and the predicted classes of the first `count` samples, as two lines.

    Raise CommonMistake for a task without classes.
    """
    if not names:
        raise CommonMistake("--show prints classes, and the data have none")
    right: list[str] = []
    predictions: list[str] = []
    with engine.evaluation_mode():
        for ((inputs, targets, real, _),), _ in test.batches(
            sampling.steps(test.indices()[:count], count, 1, 0, 1)
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
