"""Decoded data in a directory of the host (--cache), for the next run and for the other ranks of the host.

They need not unpack and decode the data again. The files are NumPy files that are mapped into memory and
shared.
"""

import hashlib
import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from .. import host_files
from ..config.converters import is_own
from ..errors import BadInput
from .task import Data, Split

ARRAYS = ("train.images", "train.labels", "test.images", "test.labels")
FORM = 1  # version of the file format; other versions are not read


def through(cache: Path, task: str, source: Path | None, decode: Callable[[], Data]) -> Data:
    """Return the data of `task` from `cache`, or call `decode` and store its result there.

    An entry is valid while the files in `source`, and the module of the user's own data, keep their names,
    sizes and times. Raise BadInput if the cache cannot be read or written.
    """
    folder = cache / f"{task.replace(':', '-')}-{_fingerprint(task, source)}"
    try:
        if not folder.is_dir():
            _write(decode(), folder)
        return _read(folder)
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise BadInput(f"--cache {folder} cannot be used: {error}") from None


def _fingerprint(task: str, source: Path | None) -> str:
    files = sorted(_files(source)) if source else []
    if is_own(task):
        spec = importlib.util.find_spec(task.partition(":")[0])
        files += [Path(spec.origin)] if spec and spec.origin else []
    facts = [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    return hashlib.sha256(json.dumps([FORM, task, facts]).encode()).hexdigest()[:16]


def _files(source: Path) -> Iterator[Path]:
    for path, _, names in os.walk(source.resolve()):
        yield from (Path(path, name) for name in names)


def _write(data: Data, folder: Path) -> None:
    """Write the data atomically: several ranks may write at the same time, and the first one wins."""
    try:
        with host_files.draft(folder) as draft:
            for name, array in zip(ARRAYS, (*data.train, *data.test), strict=True):
                np.save(draft / f"{name}.npy", array)
            facts = {"classes": data.classes, "full": data.full, "mean": data.mean, "std": data.std}
            (draft / "data.json").write_text(json.dumps(facts))
            draft.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _read(folder: Path) -> Data:
    arrays = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS]
    facts = json.loads((folder / "data.json").read_text())
    return Data(
        Split(*arrays[:2]),
        Split(*arrays[2:]),
        tuple(facts["classes"]),
        facts["full"],
        tuple(facts["mean"]),
        tuple(facts["std"]),
    )
