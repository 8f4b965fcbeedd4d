"""The tables of a job file, and the place and the help of each option in them."""

from __future__ import annotations

from jobgen.options import OPTIONS, Option
from jobgen.schedulers.table import COMMANDS, SCHEDULERS, named, queued

JOB_FILE = "jobgen.toml"  # the default name


def table_of(option: Option) -> str:
    """Return the table of an option: its group, but [job] for the group Scheduler."""
    return {"Scheduler": "job"}.get(option.group, option.group.lower())


TABLES = tuple(dict.fromkeys(table_of(option) for option in OPTIONS))
# The tables of options for one scheduler: a command of jobgen, or a dialect that is not its first one. The
# keys are those of the tables in which schedulers differ.
OF_SCHEDULERS = (
    *queued(),
    *(name for name in SCHEDULERS if SCHEDULERS[name] not in [named(one, None) for one in COMMANDS]),
)
OWN_OPTIONS = tuple(one for one in OPTIONS if table_of(one) in ("job", "resources", "launch", "container"))
AT: dict[tuple[str, ...], Option] = {(table_of(option), option.name): option for option in OPTIONS}
AT |= {(table, option.name): option for table in OF_SCHEDULERS for option in OWN_OPTIONS}


def meaning(option: Option) -> str:
    """Return the help of an option for a file."""
    text = option.about
    if option.key == "env":
        text = 'Environment variables of every rank: a table, or a list such as ["NAME=VALUE", "NAME"].'
    return text.replace("  [", " [")
