"""Selection of the reader for a task."""

from pathlib import Path

from ..config.converters import is_own
from ..errors import BadInput
from . import cache, own, readers
from .dataset import Data


def load(task: str, directory: Path | None, cached: Path | None = None) -> Data:
    """Return the data of `task`, read from `directory` (None for digits).

    cached: the directory of --cache, or None. A task package.module:name is the user's own, see own.py. Raise
    BadInput, naming the file, if a file is missing or damaged.
    """
    if directory is not None and not directory.is_dir():
        raise BadInput(f"--data {directory} is not a directory on this host")
    if cached is not None:
        return cache.through(cached, task, directory, lambda: load(task, directory))
    if is_own(task):
        return own.load(task, directory)
    if task == "digits":
        return readers.digits()
    assert directory is not None
    return readers.mnist(directory) if task == "mnist" else readers.cifar10(directory)
