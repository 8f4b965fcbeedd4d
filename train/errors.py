"""The errors of a training and their exit statuses. They are defined only here.

0  the training finished, and status.json says so
1  the run failed: an exception on some rank, a lost peer, a loss that is not finite
2  bad input: an option, a config file, a data file, a device or an environment that cannot work
3  the training finished, but its accuracy is below --target-accuracy
4  checkpoints cannot be written: a full disk, a quota, a directory without write permission
74 preflight found a bad host
75 not finished, but resumable: a checkpoint was saved because the time was nearly over or a signal requested
   it; or the training hung, and can resume from the last checkpoint
"""

import difflib
from collections.abc import Iterable
from typing import Any

DONE, FAILURE, BAD_INPUT, TARGET_MISSED, CANNOT_SAVE = 0, 1, 2, 3, 4
BAD_HOSTS = 74  # EX_IOERR of sysexits.h
RESUMABLE = 75  # EX_TEMPFAIL of sysexits.h: try again later


class BadInput(Exception):
    """An error of the user, reported in one sentence and without a traceback; exit status 2."""


class CommonMistake(BadInput):
    """A BadInput that all ranks have in common, such as a wrong option: only rank 0 reports it."""


class TrainingFailure(Exception):
    """A failure of the run that a traceback would not explain; exit status 1."""


class Resumable(Exception):
    """The training stopped before its end, with a checkpoint to resume from; exit status 75."""


class CannotSave(CommonMistake):
    """Checkpoints cannot be written; raised on every rank; exit status 4. facts: for status.json."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts


class TargetMissed(CommonMistake):
    """The accuracy is below --target-accuracy; raised on every rank; exit status 3.

    It is a CommonMistake so that only rank 0 reports it. facts: for status.json
    """

    def __init__(self, accuracy: float, target: float, **facts: Any) -> None:
        super().__init__(f"accuracy {accuracy:.2%} on the test set is below --target-accuracy {target:.2%}")
        self.facts = {"accuracy": accuracy, "target_accuracy": target, **facts}


def status_of(error: BaseException) -> int:
    """Return the exit status of a run that failed with `error`."""
    kinds = ((TargetMissed, TARGET_MISSED), (CannotSave, CANNOT_SAVE), (BadInput, BAD_INPUT))
    return next((status for kind, status in kinds if isinstance(error, kind)), FAILURE)


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """Return ' (did you mean X?)' for the allowed word nearest to `word`; '' if none is near."""
    near = difflib.get_close_matches(word, list(allowed), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
