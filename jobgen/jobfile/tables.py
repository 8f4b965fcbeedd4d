"""The tables of a job file, and the place and the help of each option in them."""

from __future__ import annotations

from jobgen.options import OPTIONS, Option

JOB_FILE = "jobgen.toml"  # the default name


def table_of(option: Option) -> str:
    """Return the table of an option: its group, but [job] for the group Scheduler."""
    return {"Scheduler": "job"}.get(option.group, option.group.lower())


AT: dict[tuple[str, ...], Option] = {(table_of(option), option.name): option for option in OPTIONS}
TABLES = tuple(dict.fromkeys(table_of(option) for option in OPTIONS))


def meaning(option: Option) -> str:
    """Return the help of an option for a file."""
    text = option.about
    if option.key == "env":
        text = 'Environment variables of every rank: a table, or a list such as ["NAME=VALUE", "NAME"].'
    return text.replace("  [", " [")
