"""Kill ranks at random moments while they save, and verify the checkpoints that are left each time.

python -m benchmarks.checkpoint_killing ENGINE MOMENTS [SEED]: prints JSON.

One process imports torch and forks two ranks for each trial. They train, and save after every step, until
SIGKILL ends one or both of them. Then every checkpoint must be intact and have exactly the weights that an
undisturbed run had at that step, and the next two ranks must resume from the newest one. Rank 0 reports each
completed save, and the kills depend on these reports. The number of saves is therefore independent of the
speed of the machine.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from jobgen.train import checkpoints, config, data, device, engines, evaluation, loop, peers, ranks, report
from jobgen.train.addresses import free_port
from jobgen.train.checkpoints import agreement, save, whole
from jobgen.train.config import recipe
from jobgen.train.data import sampling
from torch import nn

RANKS, SAMPLES, TESTED, STEPS_AN_EPOCH, EPOCHS, KEEP = 2, 256, 16, 8, 5, 3
OPTIONS = {
    "ddp": ["--engine", "ddp"],
    "ddp-async": ["--engine", "ddp", "--async-save"],
    "fsdp": ["--engine", "fsdp"],
    "fsdp-async": ["--engine", "fsdp", "--async-save"],
    "zero1": ["--zero-stage", "1"],
    "zero3": ["--zero-stage", "3"],
}
FIXED = ["--epochs", str(EPOCHS), "--global-batch", str(SAMPLES // STEPS_AN_EPOCH), "--save-every", "1"]
# Modules that would otherwise be imported after each fork: torch's optimizers import the compiler.
IMPORTS = {
    False: ["torch._dynamo", "jobgen.train.engines.ddp", "jobgen.train.engines.fsdp"],
    True: ["torch._dynamo", "deepspeed", "deepspeed.pipe", "jobgen.train.engines.deepspeed"],
}
REACH = 4  # kills come after 0 to 3 saves, in turn
WITHIN = 2  # and then within the time of this number of steps
LAUNCHER = 0.3  # seconds until a launcher notices the end of one rank and ends the others


def model(shape: tuple[int, int, int], classes: int) -> nn.Module:
    """Return a model with random numbers in each step (dropout) and with running statistics."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(shape[0] * shape[1] * shape[2], 256),
        nn.BatchNorm1d(256),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(256, classes),
    )


def digits() -> data.Data:
    whole = data.digits()
    train = data.Split(whole.train.images[:SAMPLES], whole.train.labels[:SAMPLES])
    return whole._replace(
        train=train, test=data.Split(whole.test.images[:TESTED], whole.test.labels[:TESTED])
    )


class Trial:
    """Two ranks in a directory, from their start until they end or are killed."""

    def __init__(self, kind: str, samples: data.Data, place: Path, keep: int | None = KEEP) -> None:
        kept = ["--keep", str(keep)] if keep else []
        named = ["--model", "benchmarks.checkpoint_killing:model"]
        self._argv = [*FIXED, *kept, *named, *OPTIONS[kind]]
        self._samples, self._place, self._port = samples, place, free_port()
        self._ready, write = os.pipe()
        self.saved = 0
        self.pids = [self._fork(rank, write) for rank in range(RANKS)]
        os.close(write)

    def _fork(self, rank: int, ready: int) -> int:
        if pid := os.fork():
            return pid
        status = 1
        try:
            with open(self._place / f"rank-{rank}.log", "w") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            self._train(rank, ready)
            status = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)

    def _train(self, rank: int, ready: int) -> None:
        """Train as jobgen.train does, with --resume if there is a checkpoint."""
        me = ranks.Ranks(rank, RANKS, rank, RANKS, "127.0.0.1", self._port, "fork")
        ranks.export(me, os.environ)
        settings = config.parse(self._argv)
        how = recipe.resolve(settings, RANKS)
        run = report.Run({"JOBGEN_RUN_DIR": str(self._place)}, report.Clock(), rank)
        folder = self._place / checkpoints.FOLDER
        found = checkpoints.find("latest", folder) if checkpoints.any_in(folder) else None
        check = checkpoints.Check(found, rank, RANKS) if found else None
        run.prepare()
        if run.is_main:
            checkpoints.make_ready(folder)
        mine = device.choose(me, os.environ)
        peers.connect(me, mine)
        steps = sampling.steps_per_epoch(SAMPLES, *how.batch, how.parallel)
        assert steps == STEPS_AN_EPOCH
        task = self._samples.task()
        trainer = engines.build(how, how.schedule(steps), task, me, mine)
        start = checkpoints.Progress()
        if found and check:
            found = agreement.settle(found, check, mine, run)
            start = save.restore(trainer, found, False, mine, run)
            run.go_on(start.step)
        saver = save.Saver(trainer, mine, run, folder, save.facts(how, task, RANKS), start)
        if found:
            saver.latest = found.directory.name
        if rank == 0:
            os.write(ready, struct.pack("i", start.step))
            _report_saves(saver, ready)
        what = evaluation.measures(task)
        loop.Training(trainer, task, what, mine, how.batch, settings, run, saver).run()
        torch.distributed.barrier()

    def first_step(self) -> int:
        """Wait for the start of the training, and return the step from which it resumes.

        Raise RuntimeError if the training does not start.
        """
        if not select.select([self._ready], [], [], 120)[0] or not (said := os.read(self._ready, 4)):
            raise RuntimeError("\n".join(log.read_text() for log in self._place.glob("rank-*.log")))
        return struct.unpack("i", said)[0]

    def wait(self, saves: int, seconds: float) -> None:
        """Wait until `saves` saves have ended, and then for `seconds`, or until WITHIN more have ended."""
        while saves and self._next_save(120):
            saves -= 1
        until = time.monotonic() + seconds
        for _ in range(WITHIN):
            if not self._next_save(max(0.0, until - time.monotonic())):
                return

    def _next_save(self, seconds: float) -> bool:
        """Return whether another save ended within `seconds`. Its step is then in `saved`."""
        if not select.select([self._ready], [], [], seconds)[0] or not (said := os.read(self._ready, 4)):
            return False
        (self.saved,) = struct.unpack("i", said)
        return True

    def running(self) -> bool:
        return all(
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None for pid in self.pids
        )

    def kill(self, victims: list[int]) -> None:
        for rank in victims:
            os.kill(self.pids[rank], signal.SIGKILL)
        deadline = time.monotonic() + LAUNCHER
        while len(victims) < RANKS and time.monotonic() < deadline:
            time.sleep(0.01)
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)  # not waited for yet, so the process id is still valid

    def end(self) -> list[int]:
        """Wait for all ranks, read the remaining reports, and return the exit statuses."""
        statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in self.pids]
        while self._next_save(0):
            pass
        os.close(self._ready)
        return statuses


def _report_saves(saver: save.Saver, pipe: int) -> None:
    """Make the saver write the step into the pipe when a save is complete."""
    mark = saver.mark

    def reported(progress: checkpoints.Progress) -> None:
        mark(progress)
        os.write(pipe, struct.pack("i", progress.step))

    saver.mark = reported  # type: ignore[method-assign]


class Left:
    """The content of a directory of checkpoints, compared with that of the undisturbed run."""

    def __init__(self, folder: Path, undisturbed: dict[str, whole.Weights]) -> None:
        self.drafts = len(list(folder.glob(".step-*.writing")))
        latest = folder / checkpoints.LATEST
        self.latest = latest.read_text().strip() if latest.exists() else None
        self.wrong: list[str] = []
        self.whole = [path.name for path in sorted(folder.glob("step-*")) if self._whole(path, undisturbed)]
        if self.latest and self.latest not in self.whole:
            self.wrong.append(f"latest names {self.latest}, whole are {self.whole}")

    def _whole(self, path: Path, undisturbed: dict[str, whole.Weights]) -> bool:
        try:
            found = checkpoints.at(path)
            weights = whole.weights(found, ema=False)  # verifies the hash of every file
        except Exception as error:
            self.wrong.append(str(error))
            return False
        same = undisturbed[path.name].items()
        if not all(torch.equal(value, weights[name]) for name, value in same):
            self.wrong.append(f"{path.name} has other weights")
            return False
        return True

    @property
    def step(self) -> int:
        """Return the step to resume from. Only the first checkpoint has its name before `latest` is there."""
        name = self.latest or max(self.whole, default="step-0")
        return int(name.rpartition("-")[2])


def undisturbed(kind: str, samples: data.Data, place: Path) -> tuple[dict[str, whole.Weights], float]:
    """Return the weights after each step, and the seconds of a step with its save."""
    place.mkdir()
    trial = Trial(kind, samples, place, keep=None)
    trial.first_step()
    began = time.monotonic()
    statuses = trial.end()
    seconds = (time.monotonic() - began) / (STEPS_AN_EPOCH * EPOCHS)
    assert statuses == [0] * RANKS, (place / "rank-0.log").read_text()
    folder = place / checkpoints.FOLDER
    weights = {
        name: whole.weights(checkpoints.at(folder / name), ema=False) for name in checkpoints.ids(folder)
    }
    assert len(weights) == STEPS_AN_EPOCH * EPOCHS
    return weights, seconds


def chain(
    kind: str, samples: data.Data, place: Path, moments: int, step_seconds: float, truth: Any
) -> Counter[str]:
    """Kill and resume until the training is finished or `moments` kills are done, then let it finish.

    Return the counts.
    """
    counts: Counter[str] = Counter()
    place.mkdir()
    before = 0
    while True:
        trial = Trial(kind, samples, place)
        first = trial.first_step()
        if before:
            counts["resumes"] += 1
        counts["wrong resumes"] += first != before
        if counts["moments"] < moments:
            trial.wait(counts["moments"] % REACH, random.uniform(0, WITHIN * step_seconds))
        alone = random.random() < 0.5
        killed = counts["moments"] < moments and trial.running()
        if killed:
            trial.kill([random.randrange(RANKS)] if alone else list(range(RANKS)))
        statuses = trial.end()
        left = Left(place / checkpoints.FOLDER, truth)
        for text in left.wrong:
            print(text, file=sys.stderr)
        counts["damaged"] += len(left.wrong)
        if not killed:
            break
        counts["moments"] += 1
        counts["one rank"] += alone
        counts["in a save"] += bool(left.drafts)
        counts["lost"] += left.step < max(before, trial.saved)
        before = left.step
    final = f"step-{STEPS_AN_EPOCH * EPOCHS:06d}"
    counts["finished"] += 1
    counts["wrong ends"] += statuses != [0] * RANKS or left.latest != final
    return counts


def main(kind: str, moments: int, seed: int) -> dict[str, Any]:
    """Run chains until `moments` kills are done. Return the counts and times."""
    random.seed(seed)
    torch.set_num_threads(1)
    os.environ["JOBGEN_ACCELERATOR"] = "cpu"
    os.environ["DS_ACCELERATOR"] = "cpu"
    for name in IMPORTS[kind.startswith("zero")]:
        importlib.import_module(name)
    samples = digits()
    began = time.monotonic()
    counts: Counter[str] = Counter()
    top = Path(tempfile.mkdtemp(prefix="checkpoint-killing-"))
    try:
        truth, step_seconds = undisturbed(kind, samples, top / "undisturbed")
        while counts["moments"] < moments:
            place = top / f"chain-{counts['finished']}"
            rest = moments - counts["moments"]
            counts.update(chain(kind, samples, place, rest, step_seconds, truth))
            shutil.rmtree(place)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return {**counts, "step_seconds": round(step_seconds, 4), "seconds": round(time.monotonic() - began, 1)}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)))
