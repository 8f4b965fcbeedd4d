"""Verification of the files of a checkpoint; each rank verifies a share of them. Does not import torch.

The verification starts in a thread as soon as the checkpoint is known. For most checkpoints it takes less
time than importing torch and loading the data.
"""

from pathlib import Path
from threading import Thread

from ..errors import BadInput
from . import files
from .directory import Checkpoint, read


class Check:
    """The verification of one rank's share of the checkpoint `found`, in a background thread."""

    def __init__(self, found: Checkpoint, rank: int, ranks: int) -> None:
        self.directory = found.directory
        self._damage: str | None = None
        self._thread = Thread(target=self._look, args=(found, rank, ranks), daemon=True)
        self._thread.start()

    def _look(self, found: Checkpoint, rank: int, ranks: int) -> None:
        self._damage = damage(found.directory, rank, ranks)

    def damage(self) -> str | None:
        """Wait for the end of the verification. Return a description of the damage, or None."""
        self._thread.join()
        return self._damage


def damage(directory: Path, rank: int, ranks: int) -> str | None:
    """Verify the sizes of all files in `directory` and the SHA-256 of this rank's share of them.

    Return one sentence that describes the damage, or None if there is none.
    """
    try:
        entries = read(directory).record["files"]
        files.verify_sizes(directory, entries)
        files.verify(directory, files.share(entries, rank, ranks))
    except BadInput as error:
        return str(error)
    except (KeyError, TypeError, AttributeError) as error:
        return f"{directory} has a record that makes no sense: {error!r}"
    return None
