"""The values that the options of a scheduler accept, in one notation for all schedulers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from jobgen.errors import shown
from jobgen.schedulers.base import matches
from jobgen.schedulers.pbs import Pbs


class Conflict(NamedTuple):
    """An option that is refused beside others, or without one: its key, the reason, and what to do."""

    key: str
    reason: str
    fix: str = "remove it, or add the other option"


# The fix for numbers that do not agree.
LEAVE_ONE_OUT = "change one of the numbers, or leave one of the options out"

# The pattern of a value, or a function that tests it, and its description.
Form = tuple[str | Callable[[str], bool], str]


def fault(forms: Mapping[str, Form], key: str, value: str) -> str:
    """Return why the value of an option is refused; empty if it is accepted, or if the option has no form."""
    if key not in forms:
        return ""
    accepts, words = forms[key]
    fits = matches(accepts, value) if isinstance(accepts, str) else accepts(value)
    return "" if fits else f"{key} {shown(value)} is refused: it takes {words}"


def within(low: int, high: int) -> Callable[[str], bool]:
    """Return a test for whole numbers of a range."""
    return lambda text: matches(r"\s*[+-]?\d{1,12}", text) and low <= int(text) <= high


def listed(pattern: str, *, separator: str = ",") -> str:
    """Return the pattern of a list, whose items match a pattern."""
    return rf"(?:{pattern})(?:{separator}(?:{pattern}))*"


def at_list(*, unique: bool = False, absolute: bool = False) -> Callable[[str], bool]:
    """Return a test for lists of NAME@HOST; the host may be missing.

    PBS: parse_at_list in src/lib/Libcmds/parse_at.c. With ``unique`` no host is repeated, and the host is
    missing once at most; with ``absolute`` the names are absolute paths.
    """
    name = r"/[^\s@#,]*" if absolute else r"[^\s@#,]+"
    item = rf"\s*{name}(?:@[^\s@#,]+)?\s*"

    def accepts(text: str) -> bool:
        hosts = [one.partition("@")[2].strip() for one in text.split(",")]
        return matches(listed(item), text) and (not unique or len(set(hosts)) == len(hosts))

    return accepts


# [[CC]YY]MMDDhhmm[.SS]: cvtdate in src/lib/Libcmds/cvtdate.c of OpenPBS and Torque.
_DAY = r"(?:(?:(?:\d\d)?\d\d)?(?:0[1-9]|1[0-2]))?(?:0[1-9]|[12]\d|3[01])"
PBS_DATE: Form = (rf"(?:{_DAY})?(?:[01]\d|2[0-3])[0-5]\d(?:\.[0-5]\d)?", "[[CC]YY]MMDDhhmm[.SS] or hhmm")
# ppn and the like in -l nodes=, between colons.
_PROPERTY = r"[A-Za-z_][\w.-]*"


def nodes(resources: str) -> str:
    """Return the pattern of -l nodes= in PBS; ``resources`` is that of the NAME=VALUE of a node."""
    node = rf"(?:0*[1-9]\d*|{_PROPERTY})(?::(?:{resources}|(?!(?i:ppn)\b){_PROPERTY}))*"
    return rf"{listed(node, separator='[+]')}(?:#(?:excl|shared))?"


def empty_part(value: str) -> bool:
    """Return whether a list has an empty item, or a name is missing before ``=``."""
    return value != "" and any(re.match(r"\s*(=|$)", part) for part in value.split(","))


_STAGED = r"[^@,]+@[^:,]+:[^,]+"
_VARIABLE = r"[^,=]+(?:=[^,]*)?"
# Options of qsub with the same values in PBS Pro and Torque.
PBS_FORMS: Mapping[str, Form] = {
    "-p": (within(-1024, 1023), "a number from -1024 to 1023"),
    "-r": (r"[yn]", "y or n"),
    "-a": PBS_DATE,
    "-S": (at_list(unique=True, absolute=True), "an absolute path, and PATH@HOST for others"),
    "-M": (at_list(), "a list of addresses such as user@example.org"),
    "-u": (at_list(unique=True), "a user, and USER@HOST for others"),
    "-q": (
        rf"[\w.-]{{0,{Pbs.behaviour.queue_length}}}(?:@[\w.:-]+)?",
        f"QUEUE, QUEUE@SERVER or @SERVER, QUEUE with at most {Pbs.behaviour.queue_length} characters",
    ),
    "-o": (r".+", "a path"),
    "-e": (r".+", "a path"),
    "-v": (rf"(?:{listed(_VARIABLE)},?)?", "a list of NAME and NAME=VALUE"),
    "-W stagein": (listed(_STAGED), "PATH@HOST:PATH"),
    "-W stageout": (listed(_STAGED), "PATH@HOST:PATH"),
}
