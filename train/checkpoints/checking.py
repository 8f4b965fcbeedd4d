"""Whether a checkpoint's files are what was written: each rank looks at a share of them. No torch.

It starts as soon as the checkpoint is known, in a thread of its own: the import of torch and the data take
longer than most checkpoints.
"""

from pathlib import Path
from threading import Thread

from ..errors import BadInput
from . import files
from .directory import Checkpoint, read


class Check:
    """Of one rank's share of `found`."""

    def __init__(self, found: Checkpoint, rank: int, ranks: int) -> None:
        self.directory = found.directory
        self._damage: str | None = None
        self._thread = Thread(target=self._look, args=(found, rank, ranks), daemon=True)
        self._thread.start()

    def _look(self, found: Checkpoint, rank: int, ranks: int) -> None:
        self._damage = damage(found.directory, rank, ranks)

    def damage(self) -> str | None:
        """What is wrong, in one sentence; None if nothing is."""
        self._thread.join()
        return self._damage


def damage(directory: Path, rank: int, ranks: int) -> str | None:
    """What is wrong with this rank's share of the checkpoint there, in one sentence."""
    try:
        entries = read(directory).record["files"]
        files.verify_sizes(directory, entries)
        files.verify(directory, files.share(entries, rank, ranks))
    except BadInput as error:
        return str(error)
    except (KeyError, TypeError, AttributeError) as error:
        return f"{directory} has a record that makes no sense: {error!r}"
    return None
