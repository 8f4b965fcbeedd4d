"""What can go wrong, and the exit status that each gets. This is the only place that says so.

0  the training finished and status.json says so
1  the run failed: an exception on some rank, a lost peer, a loss that is not finite
2  bad input: an option, a config file, a data file, a device or an environment that cannot work
3  the training finished, but its accuracy is below --target-accuracy
4  checkpoints cannot be written: a full disk, a quota, a directory that may not be written to
74 preflight found a bad host
75 not finished, and resumable: a checkpoint was saved because the time was nearly over or a signal asked;
   or nothing went on any more, and the last checkpoint is where to go on
"""

import difflib
from collections.abc import Iterable
from typing import Any

DONE, FAILURE, BAD_INPUT, TARGET_MISSED, CANNOT_SAVE = 0, 1, 2, 3, 4
BAD_HOSTS = 74  # EX_IOERR of sysexits.h
RESUMABLE = 75  # EX_TEMPFAIL of sysexits.h: try again later


class BadInput(Exception):
    """The user's mistake, told in one sentence and without a traceback; exit status 2."""


class CommonMistake(BadInput):
    """One that every rank makes alike, such as an option: only rank 0 speaks of it."""


class TrainingFailure(Exception):
    """The run went wrong in a way that a traceback would not explain; exit status 1."""


class Resumable(Exception):
    """The training stopped before its end, with a checkpoint to go on from; exit status 75."""


class CannotSave(CommonMistake):
    """Checkpoints cannot be written, which every rank is told; exit status 4. facts: for status.json."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts


class TargetMissed(CommonMistake):
    """No mistake of an option, but like one it is every rank's; exit status 3. facts: for status.json."""

    def __init__(self, accuracy: float, target: float, **facts: Any) -> None:
        super().__init__(f"accuracy {accuracy:.2%} on the test set is below --target-accuracy {target:.2%}")
        self.facts = {"accuracy": accuracy, "target_accuracy": target, **facts}


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """' (did you mean X?)' for the allowed word nearest to `word`; '' where none is near."""
    near = difflib.get_close_matches(word, list(allowed), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
