"""python -m jobgen.train evaluate CKPT|EXPORTED: scores on the test set, in one process, without a launcher.

The checkpoint or exported file determines the task and the model.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import checkpoints, data, device, engines, peers, ranks
from ..addresses import free_port
from ..config import Settings, restored
from ..config.converters import fraction, one_of, whole
from ..config.options import Parser
from ..data import feed
from ..errors import BadInput, TargetMissed
from ..scoring import Scores, evaluate
from . import export


def main(argv: Sequence[str]) -> None:
    """Evaluate the checkpoint or exported file that `argv` names, and print the scores.

    Raise BadInput if it cannot be evaluated, and TargetMissed if the accuracy is below --target-accuracy.
    """
    asked = _parser().parse_args(argv)
    settings, state = load(asked.source, asked.ema)
    samples = data.load(settings.task, asked.data or settings.data)
    me = ranks.Ranks(0, 1, 0, 1, "127.0.0.1", free_port(), "one process")
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    peers.connect(me, mine)  # the scores are summed over a group of one rank
    model = engines.model(replace(settings, expert_parallel=None), samples, mine)
    _fill(model, state, asked.source)
    runner = Single(RUNNERS[asked.with_](model, mine))
    test_set = feed.Feed(samples.test, samples, mine.torch)
    scores = evaluate(runner, test_set, samples.classes, mine, asked.batch_size)
    for line in report(scores):
        print(line)
    if asked.target_accuracy is not None and scores.accuracy < asked.target_accuracy:
        raise TargetMissed(scores.accuracy, asked.target_accuracy)


def _parser() -> Parser:
    about = "Evaluate a checkpoint or exported weights on the test set of its task, in one process."
    parser = Parser(prog="python -m jobgen.train evaluate", description=about)
    parser.add_argument(
        "source", type=Path, metavar="CKPT|EXPORTED", help="a checkpoint, a run directory, an exported file"
    )
    parser.add_argument(
        "--with",
        dest="with_",
        type=one_of(tuple(RUNNERS)),
        default="torch",
        metavar="torch|deepspeed",
        help="plain torch (default), or DeepSpeed's inference engine",
    )
    parser.add_argument("--ema", action="store_true", help="the averaged weights of a run with --ema")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the directory of the data, if changed")
    parser.add_argument("--batch-size", type=whole(1), default=256, metavar="N", help="default: 256")
    parser.add_argument("--target-accuracy", type=fraction, metavar="X", help="exit with status 3 below X")
    return parser


def load(source: Path, ema: bool) -> tuple[Settings, export.Weights]:
    """Return the settings of the run that made `source`, and the weights of the whole model.

    ema: return the averaged weights. Raise BadInput if `source` cannot be read or has no averaged weights.
    """
    if source.suffix not in export.SUFFIXES or source.is_dir():
        found = checkpoints.at(source)
        return found.settings, export.weights(found, ema)
    file = export.description(source)
    try:
        about: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        settings = restored(about["settings"])
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"{file}, which describes {source.name}, cannot be read: {error}") from None
    if ema and not about["ema"]:
        raise BadInput(f"{source} has no averaged weights: export them with --ema")
    return settings, export.read(source)


def _fill(model: nn.Module, state: export.Weights, source: Path) -> None:
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"{source} does not fit the model of its run: {reason}") from None


def _with_deepspeed(model: nn.Module, mine: device.Device) -> nn.Module:
    from ..engines.deepspeed_common import load_deepspeed

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
    def evaluating(self) -> Iterator[None]:
        self.module.eval()
        yield

    @torch.no_grad()
    def predict(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.module(images)
        return logits


def report(scores: Scores) -> Iterator[str]:
    """Yield the lines of the report: the accuracy of each class, then loss and accuracy of all samples."""
    for name, accuracy in scores.per_class.items():
        yield f"  {name:>6} {'-' if accuracy is None else format(accuracy, '.1%')}"
    yield f"test loss {scores.loss:.6f}, accuracy {scores.accuracy:.2%}"
