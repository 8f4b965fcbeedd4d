"""The program of each rank of checkpoint_saving.py.

It measures our saving and loading, and torch.save and torch.load of the same states. Rank 0 prints the
seconds of every round as JSON.

checkpoint_ranks.py ddp|deepspeed MILLIONS ROUNDS
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jobgen.train import checkpoints, config, data, device, engines, evaluation, loop, peers, ranks, report
from jobgen.train.checkpoints import agreement, save
from jobgen.train.config import recipe
from torch import distributed, nn

LAYERS = 10
States = dict[str, Any]  # {file: the state that this rank saves in it}


def model(shape: tuple[int, int, int], classes: int) -> nn.Module:
    """Return a model with about 0.9 x MILLIONS million weights, nearly all of them in nine square layers."""
    side = int((int(sys.argv[2]) * 1e6 / LAYERS) ** 0.5)
    layers = [nn.Linear(side, side) for _ in range(LAYERS - 1)]
    return nn.Sequential(nn.Flatten(), nn.Linear(64, side), *layers, nn.Linear(side, classes))


def images() -> data.Data:
    random = np.random.default_rng(0)
    split = data.Split(random.integers(0, 256, (4, 1, 8, 8), np.uint8), np.arange(4))
    return data.Data(split, split, data.CIFAR_CLASSES, 255.0, (0.5,), (0.5,))


class Ours:
    """An engine that has trained, so that the optimizer has its states."""

    def __init__(self, kind: str, top: Path, me: ranks.Ranks) -> None:
        self.device = device.choose(me, os.environ)
        peers.connect(me, self.device)
        stage = ["--zero-stage", "1"] if kind == "deepspeed" else []
        named = ["--model", "checkpoint_ranks:model", "--batch-size", "2", "--epochs", "1", "--keep", "1"]
        settings = config.parse(["--engine", kind, *stage, *named, "--save-every", "1000"])
        how, task = recipe.resolve(settings, me.world_size), images().task()
        self.engine = engines.build(how, how.schedule(2), task, me, self.device)
        self.run = report.Run({"JOBGEN_RUN_DIR": str(top / "run")}, report.Clock(), me.rank)
        self.run.line = lambda text: None  # type: ignore[method-assign]
        self.run.prepare()
        what = evaluation.measures(task)
        loop.Training(self.engine, task, what, self.device, how.batch, settings, self.run).run()
        self._facts = save.facts(how, task, me.world_size)
        self.folder, self._step = top / "checkpoints", 0

    def save(self) -> None:
        self._step += 1
        start = checkpoints.Progress()
        saver = save.Saver(self.engine, self.device, self.run, self.folder, self._facts, start)
        saver.save(checkpoints.Progress(1, self._step))

    def verify(self) -> None:
        found = checkpoints.find("latest", self.folder)
        rank, count = distributed.get_rank(), distributed.get_world_size()
        self._found = agreement.settle(found, checkpoints.Check(found, rank, count), self.device, self.run)

    def load(self) -> None:
        save.restore(self.engine, self._found, False, self.device, self.run)

    def states(self) -> States:
        """Return the states that this rank saves, by file. The tensors are the engine's own."""
        states: States = {}
        folder = self.folder.with_name("states")
        folder.mkdir(exist_ok=True)
        self.engine.save(folder, lambda state, file: states.update({file.name: state}), {})
        return states


class Theirs:
    """The same states, saved and loaded by torch alone."""

    def __init__(self, states: States, folder: Path) -> None:
        self._states, self._folder = states, folder
        folder.mkdir(exist_ok=True)

    def save(self) -> None:
        """Save the states. As in ours, the old file is kept until the new one is complete."""
        for name, state in self._states.items():
            draft = self._folder / f"{name}.new"
            with open(draft, "wb") as stream:
                torch.save(state, stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(draft, self._folder / name)

    def verify(self) -> None:
        pass

    def load(self) -> None:
        """Load the states and copy them back to their place.

        A rank without states of its own loads all files that the other ranks have written.
        """
        names = [file.name for file in self._folder.iterdir()] if len(self._states) < 1 else self._states
        for name in names:
            loaded = torch.load(self._folder / name, map_location="cpu", weights_only=False)
            for into, value in zip(tensors(self._states.get(name)), tensors(loaded), strict=False):
                into.copy_(value)


def tensors(state: Any) -> list[torch.Tensor]:
    if isinstance(state, torch.Tensor):
        return [state]
    inner = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else ()
    return [tensor for value in inner for tensor in tensors(value)]


def timed(action: Callable[[], None]) -> float:
    distributed.barrier()
    began = time.perf_counter()
    action()
    distributed.barrier()
    return time.perf_counter() - began


def main(kind: str, rounds: int) -> None:
    me = ranks.discover(os.environ)
    ranks.export(me, os.environ)
    torch.set_num_threads(1)
    top = Path(tempfile.gettempdir(), f"checkpoint-saving-{os.getppid()}")  # the same on all ranks
    top.mkdir(exist_ok=True)
    ours = Ours(kind, top, me)
    seconds: dict[str, list[list[float]]] = {what: [[], []] for what in ("save", "verify", "load")}
    with torch.no_grad():
        theirs = Theirs(ours.states(), top / "theirs")
        for turn in range(rounds + 1):
            for side in (0, 1) if turn % 2 else (1, 0):
                for what in seconds:
                    took = timed(getattr((ours, theirs)[side], what))
                    if turn:  # the first round is a warm-up
                        seconds[what][side].append(took)
    if me.rank == 0:
        print(json.dumps(seconds), flush=True)
        shutil.rmtree(top)
    distributed.barrier()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[3]))
