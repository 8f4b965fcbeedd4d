"""A trial before the first step: one forward pass, the loss and the metrics of the user's own parts.

With --documents apart, a second pass shows whether the model attends to its own document only: many models of
transformers take position_ids, and do not.

A part that does not fit is reported by rank 0, with the shapes that were seen and the rule of
docs/own-data.md that it breaks, before anything is trained. The passes change neither weights, running
statistics nor random states.
"""

import re
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import loss_functions, peers, randomness, trees
from .config import Settings
from .config.converters import is_own
from .config.engines import spec_of
from .data import Task
from .data.feed import Feed, Micro
from .data.sampling import Piece, Step
from .device import Device
from .engines import Engine
from .errors import BadInput, CommonMistake
from .evaluation import Measures, Tally

MODEL_RULE = (
    "a model is called as model(inputs), as model(*inputs) for a tuple, or as model(**inputs) for a mapping"
)
# Sources whose lines tell nothing about the user's mistake.
LIBRARIES = re.compile(rf"{re.escape(str(Path(trees.__file__).parent))}/|.*/site-packages/(torch|deepspeed)/")
NEGLIGIBLE = 1e-3  # effect of a document on another one, of that on itself: rounding
MEASURE_RULE = "a loss and a metric are called as FN(outputs, targets)"


def applies(settings: Settings) -> bool:
    """Return whether a part is the user's own, or whether another model than ours keeps documents apart."""
    parts = (settings.task, settings.model, settings.loss or "", *(settings.metric or ()))
    return any(map(is_own, parts)) or _by_positions(settings)


def _by_positions(settings: Settings) -> bool:
    return settings.documents == "apart" and settings.model != "gpt"


def run(engine: Engine, task: Task, what: Measures, device: Device, settings: Settings, micro: int) -> None:
    """Do the trial on all ranks. Raise CommonMistake on all of them if a part does not fit."""
    state = randomness.state(device)
    buffers = [(buffer, buffer.clone()) for buffer in engine.module.buffers()]
    outputs: Any = None
    try:
        sample = _first(task, device, micro)
        # Not compiled: the user reads the errors of his own code, and other batches follow.
        eager = torch.compiler.set_stance("force_eager") if settings.compile else nullcontext()
        with engine.evaluation_mode(), eager:
            outputs = _attempt(lambda: engine.predict(sample.inputs), f"{MODEL_RULE}; {_shapes(sample)}")
            joins = _by_positions(settings) and joins_documents(engine.predict, sample.inputs["input_ids"])
    except CommonMistake as error:
        if spec_of(settings).pipelined:
            raise BadInput(str(error)) from None  # the ranks of other stages wait for this one
        problem = str(error)
    else:
        problem = _check_measures(what, outputs, sample, device)
        if joins:
            problem = (
                f"--documents apart: in {settings.model}, a document depends on the one before it in its "
                "sequence, although its position_ids begin with 0: use --documents joined"
            )
    for message in peers.exchange(problem, device):
        if message:
            raise CommonMistake(message)
    with torch.no_grad():
        for buffer, before in buffers:
            buffer.copy_(before)
    randomness.restore(state, device)


def joins_documents(predict: Callable[[Any], Any], tokens: torch.Tensor) -> bool:
    """Return whether the second document of a sequence depends on the first one.

    tokens: sequences of at least two tokens, of which one is used; predict: returns the outputs for inputs
    """
    row, half = tokens[0], tokens.shape[1] // 2
    other = torch.cat([(row[:half] == 0).to(row), row[half:]])
    positions = torch.arange(len(row), device=row.device)
    positions[half:] -= half
    inputs = {"input_ids": torch.stack([row, other]), "position_ids": torch.stack([positions, positions])}
    one, two = loss_functions.main(trees.as_tree(predict(inputs))).float()
    effect = (one - two).abs()
    return bool(effect[half:].max() > NEGLIGIBLE * effect[:half].max())


def _first(task: Task, device: Device, micro: int) -> Micro:
    """Return the first training samples."""
    indices = np.arange(min(micro, len(task.train)))
    feed = Feed(task.train, device.torch, workers=0 if task.train.in_python else 1)
    sample: Micro = _attempt(
        lambda: next(iter(next(feed.batches([Step([Piece(indices, len(indices))], len(indices))]))[0])),
        "a batch is a pair (inputs, targets), or a mapping, of tensors with one row for each sample",
    )
    sizes = {leaf.shape[:1] for leaf in trees.leaves(sample[:2])}
    if sizes != {(len(indices),)}:
        raise CommonMistake(
            f"of {len(indices)} samples {_shapes(sample)}; each tensor of a batch has one row for each sample"
        )
    return sample


def _check_measures(what: Measures, outputs: Any, sample: Micro, device: Device) -> str:
    """Return what is wrong with the loss and the metrics of these outputs; '' if nothing is."""
    if outputs is None:
        return ""
    outputs, samples = trees.as_tree(outputs), trees.rows(sample.inputs)
    rule = f"{MEASURE_RULE}; the model returns {trees.shapes(outputs)}, and {_shapes(sample)}"
    tally = Tally(what, device.torch)
    try:
        with torch.no_grad():
            _attempt(lambda: tally.add(outputs, sample.targets, sample.real, samples), rule)
    except CommonMistake as error:
        return str(error)
    return ""


def _attempt(call: Callable[[], Any], rule: str) -> Any:
    """Return the result of `call`. Convert an exception to CommonMistake, with its place in the source."""
    try:
        return call()
    except BadInput as error:
        raise CommonMistake(str(error)) from None
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [each for each in frames if not re.match(LIBRARIES, each.filename)]
        place = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
        text = " ".join([f"{type(error).__name__}:", *str(error).split()])
        raise CommonMistake(f"{text}{place}; {rule}") from None


def _shapes(sample: Micro) -> str:
    return f"the inputs are {trees.shapes(sample.inputs)}, the targets {trees.shapes(sample.targets)}"
