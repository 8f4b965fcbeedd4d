"""Batches of data sets in Python, prepared in processes by torch's DataLoader.

The steps come from the loop, and their samples return in its order: position and resume of a run are those
without workers. The workers are forked from a server that has no thread, device or MPI, so that the data set
is sent to them as a pickle, in which arrays that are mapped into memory stay so. They live as long as the
run. Random numbers that a data set draws depend on --seed, the epoch and the samples of the step only.
"""

import copyreg
import functools
import io
import mmap
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import connection, util
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from .. import host_files, randomness
from ..errors import BadInput, CommonMistake, TrainingFailure
from .sampling import Step
from .sources import Batch, Source

SERVER = "jobgen.train.data.worker_server"
PATIENCE = 5.0  # seconds for the end of a worker whose connection is closed
_CAUSES = {
    signal.SIGKILL: ", as by the kernel when the memory is used up",
    signal.SIGBUS: ", as when /dev/shm is full",
}


class _Request(NamedTuple):
    """number: of the pass over the source; step: whose samples are requested"""

    number: int
    epoch: int
    step: Step


def _reopened(array: np.memmap) -> Any:
    """Return how a worker gets an array that is mapped into memory: it maps the file, too."""
    whole = array
    while isinstance(whole.base, np.memmap):
        whole = whole.base
    if whole.filename is None or not array.flags.c_contiguous or not isinstance(whole.base, mmap.mmap):
        return array.__reduce__()
    before = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return np.memmap, (whole.filename, array.dtype, "r", whole.offset + before, array.shape)


class _Nowhere(io.RawIOBase):
    def write(self, data: Any) -> int:
        return memoryview(data).nbytes


class _Trial(pickle.Pickler):
    """Finds out whether something is a pickle."""

    dispatch_table: Any = {**copyreg.dispatch_table, np.memmap: _reopened}  # noqa: RUF012


class _Samples(Dataset[Any]):
    """What a worker has: the source, and the seed of its random numbers."""

    def __init__(self, source: Source, seed: int) -> None:
        self._source, self._seed, self._number = source, seed, 0

    def __getitem__(self, request: _Request) -> list[Batch] | BadInput:
        if request.number != self._number:
            randomness.seed(self._seed, request.epoch)
            self._source.start(request.epoch)
            self._number = request.number
        first = [int(piece.indices[0]) for piece in request.step.pieces if len(piece.indices)]
        randomness.seed(self._seed, request.epoch, *first)
        try:
            return [self._source.batch(piece.indices) for piece in request.step.pieces]
        except BadInput as error:
            return error


class _Requests:
    """The requests of one pass after the other, as DataLoader takes them from a sampler."""

    def __init__(self) -> None:
        self.number, self.epoch = 0, 0
        self.steps: Iterable[Step] = ()
        self.sent: deque[Step] = deque()  # whose samples have not been received

    def begin(self, steps: Iterable[Step], epoch: int) -> None:
        self.number, self.epoch, self.steps = self.number + 1, epoch, steps
        self.sent.clear()

    def __iter__(self) -> Iterator[_Request]:
        for step in self.steps:
            self.sent.append(step)
            yield _Request(self.number, self.epoch, step)


class Processes:
    """Worker processes for a source. They start with the first pass.

    count: their number; ahead: steps that each prepares in advance; pin: for an accelerator; seed: --seed;
    name: of the data set, for messages
    """

    def __init__(self, source: Source, count: int, ahead: int, pin: bool, seed: int, name: str) -> None:
        self._name = name
        alone = source.detached()
        ForkingPickler.register(np.memmap, _reopened)
        try:
            _Trial(_Nowhere()).dump(alone)
        except Exception as error:  # a class may raise anything
            raise CommonMistake(
                f"--workers {count} sends the data set to other processes, and it is no pickle: {error}: "
                "open files where a sample is read, have functions in a module, or use --workers 0"
            ) from None
        self._requests = _Requests()
        _keep_files_together()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([SERVER])
        with _without_advice():
            self._loader: DataLoader[Any] = DataLoader(
                _Samples(alone, seed),
                batch_size=None,
                sampler=self._requests,
                num_workers=count,
                collate_fn=_unchanged,
                worker_init_fn=_end_with_the_rank,
                multiprocessing_context=context,
                persistent_workers=True,
                prefetch_factor=ahead,
                pin_memory=pin,
                generator=torch.Generator(),  # otherwise it would draw from those of the training
            )
        self._pass: Any = None

    def batches(self, steps: Iterable[Step], epoch: int) -> Iterator[tuple[list[Batch], Step]]:
        """Yield the batches of the pieces of each step, in order."""
        self._requests.begin(steps, epoch)
        with _without_advice():
            self._pass = iter(self._loader)
        while (answer := self._answer()) is not None:
            if isinstance(answer, BadInput):
                raise answer
            yield answer, self._requests.sent.popleft()

    def _answer(self) -> list[Batch] | BadInput | None:
        """Return the batches of the next step; None after the last one."""
        try:
            answer: list[Batch] | BadInput | None = next(self._pass, None)
        except (
            RuntimeError,
            OSError,
            EOFError,
        ):  # also those of a sample whose worker ends as it is received
            if ended := self._ended():
                raise TrainingFailure(ended) from None
            raise
        return answer

    def _ended(self) -> str:
        """Return a sentence about a worker that has ended; "" if there is none."""
        workers = self._pass._workers
        connection.wait([worker.sentinel for worker in workers], PATIENCE)
        for number, worker in enumerate(workers):
            if (status := worker.exitcode) is not None:
                how = f"ended with exit status {status}"
                if status < 0:
                    how = f"was killed by {signal.Signals(-status).name}{_CAUSES.get(-status, '')}"
                return (
                    f"worker {number} of {len(workers)} of the data set {self._name} {how}; with --workers 0 "
                    "the ranks read the samples themselves"
                )
        return ""

    def close(self) -> None:
        """End the workers."""
        if self._pass is not None:
            self._pass._shutdown_workers()
            self._pass = None


@contextmanager
def _without_advice() -> Iterator[None]:
    """Leave out torch's warning of more workers than cores: a note of the run says it once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield


@functools.cache
def _keep_files_together() -> None:
    """Let multiprocessing make its directory where the next run removes it if this process is killed."""
    before, tempfile.tempdir = tempfile.tempdir, str(host_files.temporary("w-").folder)
    try:
        util.get_temp_dir()
    finally:
        tempfile.tempdir = before
    util.Finalize(None, host_files.remove_temporary, exitpriority=-101)  # after that of get_temp_dir


def _end_with_the_rank(number: int) -> None:
    """Let a worker, and so its server, end when the rank is killed: torch watches the parent, the server."""

    def wait() -> None:
        if rank := multiprocessing.parent_process():
            rank.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _unchanged(answer: Any) -> Any:
    return answer
