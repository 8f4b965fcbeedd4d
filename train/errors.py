"""What can go wrong, and the exit status that each gets. This is the only place that says so.

0  the training finished and status.json says so
1  the run failed: an exception on some rank, a lost peer, a loss that is not finite
2  bad input: an option, a config file, a data file, a device or an environment that cannot work
"""

import difflib
from collections.abc import Iterable

DONE, FAILURE, BAD_INPUT = 0, 1, 2


class BadInput(Exception):
    """The user's mistake, told in one sentence and without a traceback; exit status 2."""


class CommonMistake(BadInput):
    """One that every rank makes alike, such as an option: only rank 0 speaks of it."""


class TrainingFailure(Exception):
    """The run went wrong in a way that a traceback would not explain; exit status 1."""


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """' (did you mean X?)' for the allowed word nearest to `word`; '' where none is near."""
    near = difflib.get_close_matches(word, list(allowed), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
