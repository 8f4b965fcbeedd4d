"""The files of tensors, and the state that each rank saves for itself.

The files are hashed while they are written, and forced to the disk before they are used.
"""

import copy
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import torch
from torch import nn

from .. import randomness
from ..device import Device
from ..errors import BadInput, CommonMistake
from .directory import Checkpoint, Entries, Progress, verify

if TYPE_CHECKING:
    from ..engines.base import Engine

_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync
_CORE = import_module(f"numpy.{'_core' if np.__version__ >= '2' else 'core'}.multiarray")
# What NumPy's numbers and arrays are written with, such as those in the state of a user's own scheduler.
_NUMPY = [
    *(np.ndarray, np.dtype, _CORE.scalar, _CORE._reconstruct),
    *{type(np.dtype(each)) for each in "?bBhHiIlLqQefdg"},
]
LARGE = 1 << 20  # bytes; for smaller writes, a thread is slower


class SharedState:
    """A state that all ranks write together, into a directory."""

    def write(self, folder: Path, writer: "FileWriter") -> None:
        """Write it below `folder` by `writer.open`, on all ranks of `writer.group`."""
        raise NotImplementedError

    def staged(self) -> "SharedState":
        """Return a copy in the host's memory."""
        raise NotImplementedError


class FileWriter:
    """Writes tensors below one directory and records the files as {file: {"bytes", "sha256"}}.

    failure: the first file that could not be written, and the reason. An error is recorded instead of raised,
    and later writes are skipped: DeepSpeed's ranks wait for each other while they save, also for a rank whose
    disk is full. group: the ranks that write states together (None: all, in the default group)
    """

    def __init__(self, directory: Path, group: Any = None) -> None:
        self._directory, self.group = directory, group
        self.entries: Entries = {}
        self.failure: dict[str, Any] | None = None

    def save(self, state: Any, file: Path) -> None:
        """Write `state` to `file` with torch.save. The file is on the disk when this returns.

        `SharedState` is written by all ranks, into a directory of that name.
        """
        if isinstance(state, SharedState):
            return state.write(file, self)
        if self.failure:
            return
        try:
            with self.open(file) as stream:
                torch.save(state, stream)  # type: ignore[arg-type]  # it needs write and flush only
        except OSError as error:
            self.fail(error, file)

    @contextmanager
    def open(self, file: Path) -> Iterator["_HashStream"]:
        """Open `file` for sequential writes. It is on the disk, and recorded, at the end of the context."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "wb") as stream, ThreadPoolExecutor(2) as threads, _without_crc32():
            hashed = _HashStream(stream, threads)
            yield hashed
            hashed.finish()
        self.entries[self._name(file)] = {"bytes": hashed.bytes, "sha256": hashed.sha256.hexdigest()}

    def rename(self, file: Path, new: Path) -> None:
        """Record the new name of a file."""
        self.entries[self._name(new)] = self.entries.pop(self._name(file))

    def verify(self) -> None:
        """Read all files again, from the disk, and record a failure if one differs from the written data."""
        try:
            if not self.failure:
                verify(self._directory, self.entries, from_disk=True)
        except BadInput as error:
            self.failure = {"file": str(self._directory), "reason": str(error), "free": None}

    def _name(self, file: Path) -> str:
        return file.relative_to(self._directory).as_posix()

    def fail(self, error: OSError, file: Path) -> None:
        """Record an error of the disk and the free space, unless an error is recorded already."""
        self.failure = self.failure or failure(error, file)


class Snapshot:
    """Copies of states in the host's memory, to be written while the training goes on."""

    def __init__(self) -> None:
        self._states: list[tuple[Any, Path]] = []
        self._copies: dict[Any, tuple[torch.Tensor, torch.Tensor]] = {}  # originals, and their copies

    def save(self, state: Any, file: Path) -> None:
        """Copy `state`, which is to be written to `file`."""
        self._states.append((self._copy(state), file))

    def write(self, writer: FileWriter) -> None:
        self._copies.clear()
        for state, file in self._states:
            writer.save(state, file)

    def _copy(self, state: Any) -> Any:
        if isinstance(state, SharedState):
            return state.staged()
        if isinstance(state, torch.Tensor):
            # Weights that layers share stay one tensor, and have one copy in the file.
            key = state.data_ptr(), state.storage_offset(), state.shape, state.stride(), state.dtype
            if key not in self._copies:
                self._copies[key] = state, state.detach().to("cpu", copy=True)
            return self._copies[key][1]
        if isinstance(state, Mapping):
            return {key: self._copy(value) for key, value in state.items()}
        if isinstance(state, list | tuple):
            return type(state)([self._copy(value) for value in state])
        return copy.deepcopy(state)


def failure(error: OSError, file: Path) -> dict[str, Any]:
    """Return the description of an error of the disk for all ranks: file, reason, free bytes."""
    place = next((folder for folder in file.parents if folder.exists()), Path("/"))
    try:
        free = shutil.disk_usage(place).free
    except OSError:
        free = None
    return {"file": str(file), "reason": error.strerror or str(error), "free": free}


class _HashStream:
    """The file object that torch.save writes to.

    torch.save writes sequentially, so the hash is computed in a thread while the same bytes are written.
    Another thread forces earlier bytes to the disk. An error is kept until `finish`, because it would
    otherwise have to pass through torch's C++ code.
    """

    def __init__(self, stream: BinaryIO, threads: ThreadPoolExecutor) -> None:
        self._stream, self._threads = stream, threads
        self._sync_task: Future[None] | None = None
        self._error: OSError | None = None
        self.bytes = 0
        self.sha256 = hashlib.sha256()

    def write(self, data: memoryview) -> int:
        self.bytes += len(data)
        if self._error is None:
            try:
                self._write(data)
            except OSError as error:
                self._error = error
        return len(data)

    def _write(self, data: memoryview) -> None:
        if len(data) < LARGE:
            self.sha256.update(data)
            self._stream.write(data)
            return
        hash_task = self._threads.submit(self.sha256.update, data)
        try:
            self._stream.write(data)
        finally:
            hash_task.result()  # torch reuses the memory after this returns
        if self._sync_task is None or self._sync_task.done():
            self._wait_for_the_disk()
            self._sync_task = self._threads.submit(_sync, self._stream.fileno())

    def _wait_for_the_disk(self) -> None:
        if self._sync_task:
            self._sync_task.result()  # a disk error is reported once only, perhaps here

    def flush(self) -> None:
        pass  # done by `finish`, where an error can be raised

    def close(self) -> None:
        pass  # done by the owner of the file

    def tell(self) -> int:
        return self.bytes

    def finish(self) -> None:
        """Wait until all bytes are on the disk. Raise OSError, also for an earlier error."""
        if self._error is None:
            self._stream.flush()
            self._wait_for_the_disk()
            os.fsync(self._stream.fileno())
            return
        raise self._error


@contextmanager
def _without_crc32() -> Iterator[None]:
    """Disable torch's own checksum, which takes as long as the stronger SHA-256 computed here."""
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        yield
    finally:
        torch.serialization.set_crc32_options(before)


def load(file: Path) -> Any:
    """Load a file of FileWriter on the CPU: tensors, plain and NumPy values, so it cannot execute code."""
    with torch.serialization.safe_globals(_NUMPY):
        return torch.load(file, map_location="cpu", weights_only=True)


def check_state(state: Any, what: str) -> None:
    """Raise CommonMistake if `load` could not read `state` again. what: whose it is, for the message."""
    buffer = BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    with torch.serialization.safe_globals(_NUMPY):
        kinds = torch.serialization.get_unsafe_globals_in_checkpoint(buffer)
    if kinds:
        names = ", ".join(sorted(kinds))
        raise CommonMistake(
            f"{what}: its state_dict() has {names}, which a checkpoint cannot hold: it may have "
            "numbers, texts, lists, dicts, tensors, and NumPy's numbers and arrays"
        )


def own_state(engine: "Engine", device: Device, progress: Progress) -> dict[str, Any]:
    """Return the state of this rank.

    Engines that shard the weights save one copy of the buffers only, but each rank has its own running
    statistics.
    """
    return {
        "random": randomness.state(device),
        "buffers": {name: buffer.detach().cpu() for name, buffer in engine.module.named_buffers()},
        "temporary": _not_persistent(engine.module),
        "since_log": torch.stack(progress.since_log).cpu() if progress.since_log else torch.zeros(0),
    }


def _not_persistent(module: nn.Module) -> list[str]:
    """Return the names of the buffers that are not in the state_dict, such as tables of transformers."""
    return [
        f"{prefix}.{name}" if prefix else name
        for prefix, each in module.named_modules()
        for name in each._non_persistent_buffers_set
    ]


def rank_file(directory: Path, rank: int) -> Path:
    return directory / f"rank-{rank:05d}.pt"


def buffers(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    """Return the buffers of the model's state_dict: running statistics are averaged over the ranks."""
    columns: dict[str, list[torch.Tensor]] = {}
    for rank in range(checkpoint.record["world_size"]):
        state = load(rank_file(checkpoint.directory, rank))
        for name, buffer in state["buffers"].items():
            if name not in state.get("temporary", ()):
                columns.setdefault(name, []).append(buffer)
    return {
        name: torch.stack(column).mean(0) if column[0].is_floating_point() else column[0]
        for name, column in columns.items()
    }
