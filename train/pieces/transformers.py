"""A callback of transformers' Trainer that saves and leaves in time, and verifies checkpoints."""

import os
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from .deadline import Deadline
from .sealer import Sealer


class SaveAndLeave(TrainerCallback):  # type: ignore[misc]  # its base is Any to the type checker
    """Stops the training, after a save, when the job's time is nearly over or a signal requests it.

    Made on all ranks, after TrainingArguments. folder: the output_dir of the TrainingArguments
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._deadline = Deadline()
        self._sealer = Sealer(Path(folder))

    def checkpoint(self) -> str | None:
        """Return the newest intact checkpoint, for resume_from_checkpoint; None if there is no checkpoint."""
        folder = self._sealer.newest()
        return None if folder is None else str(folder)

    def leave_if_stopped(self) -> None:
        """After train(): if the training stopped before its end, exit with status 75."""
        if self._deadline.reason:
            self._deadline.leave()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Request a save if it is time to leave."""
        if self._deadline.reached():
            control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Record the files of the checkpoint that was written, and stop if it is time to leave."""
        self._sealer.add(f"checkpoint-{state.global_step}", state.global_step)
        # Not before: the checkpoint contains the control.
        control.should_training_stop |= self._deadline.reason is not None
