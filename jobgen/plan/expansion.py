"""Checks of ``--expand``."""

import re

from jobgen.launch.expansion import names
from jobgen.schedulers.base import Scheduler
from jobgen.spec import Specification


def check_expansion(spec: Specification, scheduler: Scheduler) -> None:
    """Refuse an argument of the script if the scheduler passes none.

    Raises:
        JobgenError: the message says what to use instead.
    """
    words = (*spec.program, spec.image or "", *spec.bind, *spec.container_arg)
    given = [name for name in names(words) if name.isdecimal()]
    if spec.expand and given and not scheduler.behaviour.passes_arguments:
        why = f"{scheduler.title} passes no arguments to a script, so ${given[0]} has no value"
        raise spec.refuse("expand", f"{why}: use a variable, and {scheduler.command} -v NAME=VALUE")


def note(spec: Specification) -> str:
    """Return a note on words that look like variables to expand; empty if there are none."""
    plain = [one for one in spec.program if not re.search(r"\s", one)]
    if spec.expand is not None or not (found := names(plain)):
        return ""
    return f"${found[0]} in the program is passed as it is; --expand replaces it when the job runs"
