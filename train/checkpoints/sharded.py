"""Tensors that are sharded over the ranks, in the format of torch.distributed.checkpoint.

Each rank writes its shards into a file of its own, and rank 0 writes a table of all shards. Any number of
ranks, and a single process, can read them. Like all files of a checkpoint, they are hashed while they are
written, and reading them cannot execute code.
"""

import pickle
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.staging import BlockingAsyncStager
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, zeros

from .storage import FileWriter, SharedState

FOLDER, FILE = "fsdp", "fsdp.pt"  # in a checkpoint: the tensors, and what is not sharded
MODEL = "model"  # the names of weights begin with it
SHARDED = "__sharded__"
MODULES = ("torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem")
Tensors = dict[str, torch.Tensor]


def split(state: Any, name: str, tensors: Tensors) -> Any:
    """Return `state` without its sharded tensors, which are added to `tensors` under names below `name`.

    In the place of a tensor is {SHARDED: the dimension that is sharded, or -1}.
    """
    if isinstance(state, DTensor):
        tensors[name] = state.detach()
        return {SHARDED: next((each.dim for each in state.placements if isinstance(each, Shard)), -1)}
    if isinstance(state, Mapping):
        return {key: split(value, f"{name}.{key}", tensors) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)([split(value, f"{name}.{i}", tensors) for i, value in enumerate(state)])
    return state


def join(state: Any, name: str, tensors: Tensors, table: Metadata, mesh: DeviceMesh) -> Any:
    """Return the state that `split` has divided, with new tensors of `mesh` that are added to `tensors`.

    They have the shapes of `table`, and values after `read`.
    """
    if isinstance(state, Mapping) and SHARDED in state:
        place = Replicate() if state[SHARDED] < 0 else Shard(state[SHARDED])
        entry: Any = table.state_dict_metadata[name]
        tensors[name] = zeros(entry.size, dtype=entry.properties.dtype, device_mesh=mesh, placements=[place])
        return tensors[name]
    if isinstance(state, Mapping):
        return {key: join(value, f"{name}.{key}", tensors, table, mesh) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)([join(each, f"{name}.{i}", tensors, table, mesh) for i, each in enumerate(state)])
    return state


class Sharded(SharedState):
    """Tensors by name, of which each rank holds a share."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self._tensors = dict(tensors)

    def write(self, folder: Path, writer: FileWriter) -> None:
        """Write the tensors, on all ranks. Errors of the disk are noted in `writer`."""
        try:
            save(self._tensors, storage_writer=_Writer(folder, writer), process_group=writer.group)
        except CheckpointException as error:
            causes = {rank: cause for rank, (cause, _) in error.failures.items()}
            if not all(isinstance(cause, OSError) for cause in causes.values()):
                raise RuntimeError(str(error)) from None
            mine = causes.get(distributed.get_rank())
            if isinstance(mine, OSError):
                writer.fail(mine, folder)

    def staged(self) -> "Sharded":
        scalars = {name: tensor.clone() for name, tensor in self._tensors.items() if not tensor.ndim}
        return Sharded(BlockingAsyncStager().stage({**self._tensors, **scalars}))


def table(folder: Path) -> Metadata:
    """Return the table of the tensors below `folder`."""
    return _Reader(folder).read_metadata()


def read(folder: Path, tensors: Tensors) -> None:
    """Read the values of the tensors from `folder`, on all ranks."""
    load(tensors, storage_reader=_Reader(folder))


def whole(folder: Path, prefix: str) -> Tensors:
    """Return the tensors whose names begin with `prefix`, in one process without a process group."""
    entries: dict[str, Any] = table(folder).state_dict_metadata
    tensors = {
        name: torch.empty(entry.size, dtype=entry.properties.dtype)
        for name, entry in entries.items()
        if name.startswith(prefix)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no process group
        load(tensors, storage_reader=_Reader(folder), no_dist=True)
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}


class _Files(FileSystem):
    """Files that a FileWriter writes and records."""

    def __init__(self, writer: FileWriter) -> None:
        self._writer = writer

    def create_stream(self, path: Any, mode: str) -> AbstractContextManager[Any]:  # type: ignore[override]
        return self._writer.open(Path(path))

    def rename(self, path: Any, new_path: Any) -> None:
        super().rename(path, new_path)
        self._writer.rename(Path(path), Path(new_path))


class _Writer(FileSystemWriter):
    def __init__(self, folder: Path, writer: FileWriter) -> None:
        # Bytes to copy from the device ahead. A thread has the tensors on the host.
        ahead = 10_000_000 if writer.group is None else 0
        super().__init__(folder, sync_files=False, per_thread_copy_ahead=ahead)  # the FileWriter syncs
        self.fs = _Files(writer)

    def storage_meta(self) -> StorageMeta:
        return StorageMeta()  # not the path of the draft


class _Reader(FileSystemReader):
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        with open(Path(self.path) / ".metadata", "rb") as stream:
            metadata: Metadata = _Unpickler(stream).load()
        return metadata


class _Unpickler(pickle.Unpickler):
    """Loads only the classes of which the table of torch.distributed.checkpoint consists."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return _member
        is_type = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        known = (module, name) in (("torch", "Size"), ("torch.serialization", "_get_layout"))
        if module in MODULES or is_type or known:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not part of a checkpoint's table")


def _member(kind: type[Enum], name: str) -> Enum:
    """Return a member of an enumeration, which Python 3.11 pickles as a call of getattr."""
    return kind[name]
