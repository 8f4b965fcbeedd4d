"""Lightning below every launcher, and a callback that saves, leaves in time and resumes exactly.

For the package lightning, or for pytorch_lightning if the program imports that.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from .. import ranks
from ..errors import BadInput
from .deadline import Deadline
from .states import Checkpoints, step_name

if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from lightning_fabric.plugins.environments import ClusterEnvironment
    from pytorch_lightning import Callback
else:
    from lightning.fabric.plugins.environments import ClusterEnvironment
    from lightning.pytorch import Callback

FILE = "lightning.ckpt"


class Environment(ClusterEnvironment):  # type: ignore[misc]  # its base is Any to the type checker
    """The ranks as the launcher started them: torchrun, mpirun, PALS, srun and others, on PBS and Slurm."""

    def __init__(self) -> None:
        self._me = ranks.discover(os.environ)
        ranks.check_world(self._me, os.environ)
        ranks.export(self._me, os.environ)

    @property
    def trainer(self) -> dict[str, Any]:
        """The arguments of Lightning's Trainer that belong to this environment.

        Raise BadInput if the hosts have different numbers of ranks, which Lightning does not support.
        """
        nodes, rest = divmod(self._me.world_size, self._me.local_world_size)
        if rest:
            raise BadInput(
                "Lightning needs equal numbers of ranks on all hosts: this one has "
                f"{self._me.local_world_size} of {self._me.world_size}"
            )
        mine = {"plugins": [self], "devices": self._me.local_world_size, "num_nodes": nodes}
        return mine | ({"strategy": "ddp"} if self._me.world_size > 1 else {})

    @property
    def creates_processes_externally(self) -> bool:
        return True

    @property
    def main_address(self) -> str:
        return self._me.master_addr

    @property
    def main_port(self) -> int:
        return self._me.master_port

    @staticmethod
    def detect() -> bool:
        return ranks.guess(os.environ) is not None

    def world_size(self) -> int:
        return self._me.world_size

    def set_world_size(self, size: int) -> None:
        """Raise BadInput if the Trainer expects another number of ranks than the launcher has started."""
        check_world(size, self._me)

    def global_rank(self) -> int:
        return self._me.rank

    def set_global_rank(self, rank: int) -> None:
        pass  # the launcher determines it

    def local_rank(self) -> int:
        return self._me.local_rank

    def node_rank(self) -> int:
        return self._me.rank // self._me.local_world_size


def check_world(size: int, me: ranks.Ranks) -> None:
    """Raise BadInput unless a Trainer has `size` ranks."""
    if size != me.world_size:
        raise BadInput(
            f"Lightning's Trainer has {size} rank(s), but {me.source} started {me.world_size}: use "
            "Trainer(**Environment().trainer, ...)"
        )


class Rest:
    """The batches of a run from number `first` on, with the length of all: a DataLoader's batch_sampler.

    Lightning counts on with the batch of a checkpoint, but takes the loader from its first batch. batches: of
    the whole run, as lists of indices
    """

    def __init__(self, batches: Sequence[list[int]], first: int) -> None:
        self._batches, self._first = batches, first

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[list[int]]:
        return islice(self._batches, self._first, None)


class SaveAndLeave(Callback):  # type: ignore[misc]
    """Saves every `every` steps, and saves and stops when time is nearly over or a signal requests it.

    Made on all ranks. The random states of all ranks are saved and restored, too. folder, keep: see
    Checkpoints
    """

    def __init__(
        self, every: int = 0, folder: str | os.PathLike[str] | None = None, keep: int | None = 2
    ) -> None:
        self._every = every
        self._checkpoints = Checkpoints(folder, keep)
        self._deadline = Deadline(self._checkpoints)

    def checkpoint(self) -> Path | None:
        """Return the newest intact checkpoint, for ckpt_path; None without one."""
        folder = self._checkpoints.find()
        return folder and folder / FILE

    def leave_if_stopped(self) -> None:
        """After fit(): if the training stopped before its end, exit with status 75."""
        if self._deadline.reason:
            self._deadline.leave()

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Raise BadInput if each rank would train alone."""
        check_world(trainer.world_size, self._checkpoints.me)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Restore the random states, if fit() has loaded the checkpoint that `checkpoint` returned."""
        folder = self._checkpoints.find() if trainer.global_step else None
        if folder and folder.name == step_name(trainer.global_step):
            self._checkpoints.resume()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save if it is time to, and stop after the save if it is time to leave."""
        step = trainer.global_step
        if leave := self._deadline.reached():
            trainer.should_stop = True
        if leave or (self._every and step % self._every == 0):
            with self._checkpoints.saving(step) as folder:
                trainer.save_checkpoint(folder / FILE)
