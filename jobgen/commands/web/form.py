"""The form of the web page, made from the table of options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobgen.commands.accepted import accepts
from jobgen.commands.init import example
from jobgen.options import OPTIONS, Option
from jobgen.schedulers.table import SCHEDULERS
from jobgen.sites.display import scheduler
from jobgen.sites.loader import load
from jobgen.values.parsers import Choice

# Options that are not in the form, with the reason.
ABSENT: Mapping[str, str] = {
    "dialect": "is part of the choice of the scheduler",
    "hostfile": "reads a file of the cluster",
    "env_file": "reads a file of the cluster",
    "runtime": "writes a second file",
}


class Word(NamedTuple):
    """A value of a field with a choice, and the schedulers that do not have it."""

    value: str
    without: str = ""


class Field(NamedTuple):
    """A field of the form.

    ``kind`` is choice, switch, lines (one value a line), text (several lines) or line. ``without`` are the
    names of the schedulers that refuse the option, separated by blanks.
    """

    key: str
    flag: str
    help: str
    kind: str
    words: tuple[Word, ...]
    example: str
    without: str


class SiteEntry(NamedTuple):
    """A site of the form, with the name of its scheduler."""

    name: str
    title: str
    scheduler: str


def groups() -> dict[str, list[Field]]:
    """Return the fields by the titles of their groups."""
    found: dict[str, list[Field]] = {}
    for option in OPTIONS:
        if option.key not in ABSENT:
            found.setdefault(option.group, []).append(_field(option))
    return found


def _field(option: Option) -> Field:
    takes = next(name for name, row in SCHEDULERS.items() if accepts(row, option.key))
    shown = "" if option.switch or isinstance(option.parse, Choice) else example_text(option, takes)
    more = f"  [default: {option.default}]" if option.default and "[default" not in option.about else ""
    return Field(
        option.key,
        option.flag,
        option.about + more,
        _kind(option),
        tuple(_words(option)),
        shown,
        _without(option.key),
    )


def example_text(option: Option, kind: str) -> str:
    """Return an example of an option on a scheduler, as the text of its field."""
    value = example(option, kind)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "\n".join(f"{name}={one}" for name, one in value.items())
    return "\n".join(value) if isinstance(value, (list, tuple)) else str(value)


def _kind(option: Option) -> str:
    if isinstance(option.parse, Choice):
        return "choice"
    if option.switch:
        return "switch"
    if option.multiple:
        return "lines"
    return "text" if option.group == "Blocks" else "line"


def _words(option: Option) -> Iterable[Word]:
    if option.switch:
        yield from (Word("yes"), Word("no"))
    if isinstance(option.parse, Choice):
        for word in option.parse.allowed:
            yield Word(word, _without(option.key, word))


def _without(key: str, word: str = "") -> str:
    return " ".join(name for name, row in SCHEDULERS.items() if not accepts(row, key, word))


def site_entry(path: str) -> SiteEntry:
    """Return the entry of a site file.

    Raises:
        JobgenError: it cannot be read, or something in it is wrong.
    """
    site = load(path, machine=False)
    return SiteEntry(site.name, site.title, scheduler(site))
