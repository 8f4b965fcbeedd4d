"""The directives of a script, read as its scheduler reads them: up to the first command.

PBS and sbatch read all lines before the first one that is not a comment. Lines that only look like a
directive (``# PBS``, ``#pbs``) are kept, too: they have no effect, and this is rarely intended.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.request import Option
from jobgen.schedulers.table import SCHEDULERS, SHELL

LONG = {name: value for row in SCHEDULERS.values() for name, value in row.long_options.items()}


class Line(NamedTuple):
    """A line that is a directive or looks like one; ``rest`` is the text after the prefix."""

    number: int
    text: str
    rest: str


class Directives(NamedTuple):
    """The directives of a script. ``first_command`` is the number of a line, or 0.

    ``live`` directives have an effect; ``late`` and ``inert`` ones have none.
    """

    live: tuple[Line, ...]
    late: tuple[Line, ...]
    inert: tuple[Line, ...]
    first_command: int

    def options(self, scheduler: Scheduler) -> tuple[Option, ...]:
        return tuple(option for line in self.live for option in read_options(line, scheduler))


def guess(lines: list[str]) -> str:
    """Return the scheduler of a script; of several with one prefix, the one whose marks the script has."""
    prefixes = {row.prefix[1:]: row.prefix for row in SCHEDULERS.values() if row.prefix}
    mark = rf"\s*#+ ?({'|'.join(prefixes)})\b"
    marks = [match[1].upper() for line in lines if (match := re.match(mark, line, re.I))]
    if not marks:
        return SHELL
    # At equal counts the last in the table wins: scripts for Slurm often keep directives of PBS.
    prefix = prefixes[max(reversed(prefixes), key=marks.count)]
    rows = [row for row in SCHEDULERS.values() if row.prefix == prefix]
    directives = " ".join(line for line in lines if re.match(rf"\s*{prefix}\b", line))
    if re.search(rows[0].foreign_directives, directives):
        return SHELL
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    own = [row for row in rows if re.search(row.own_directives, directives)]
    own += [row for row in rows if re.search(row.own_variables, text)]
    return (*own, rows[0])[0].name


def read(lines: list[str], scheduler: Scheduler) -> Directives:
    """Return the directives of this scheduler, and the lines that look like them."""
    live: list[Line] = []
    late: list[Line] = []
    inert: list[Line] = []
    prefix, first = scheduler.prefix, 0
    for number, text in enumerate(lines, 1):
        found = text.lstrip(" \t") if scheduler.indented_directives else text
        if prefix and found.startswith(prefix):
            (late if first else live).append(Line(number, text, found[len(prefix) :].strip()))
        elif prefix and not first and (match := re.match(_lookalike(prefix), text, re.I)):
            inert.append(Line(number, text, match[1].strip()))
        elif not first and text.strip() and text.lstrip()[0] != "#" and not text.startswith(":"):
            first = number
    # A comment about directives is not a directive: an option has to follow.
    late = [line for line in late if line.rest.startswith("-")]
    return Directives(tuple(live), tuple(late), tuple(inert), first)


def _lookalike(prefix: str) -> str:
    return rf"\s*#[#\s]*{prefix[1:]}\s+(-.*)"


def words(rest: str, scheduler: Scheduler) -> list[str]:
    """Return the words of a directive. All schedulers accept quotes."""
    lexer = shlex.shlex(rest, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = "#" if scheduler.directive_comments else ""
    found = []
    try:
        while (word := lexer.get_token()) is not None:
            found.append(word)
    except ValueError:  # a quote that is not closed
        return rest.split()
    return found


def read_options(line: Line, scheduler: Scheduler) -> list[Option]:
    """Return the options of a directive. A word that is neither option nor value has an empty flag.

    For a scheduler without long options, those of another scheduler are read: a rule reports them.
    """
    long, short = scheduler.long_options or LONG, scheduler.short_options
    given = words(line.rest, scheduler)
    found, at = [], 0
    while at < len(given):
        word = given[at]
        following = given[at + 1] if at + 1 < len(given) else ""
        at += 1
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            flag = _whole(name, long)
            if not equals and long.get(flag) == "=":
                value, at = following, at + 1
            flag = short.get("--" + flag, "--" + flag)
            found.append(Option(line.number, flag, value, word))
        elif word.startswith("-") and len(word) > 1:
            value, takes = word[2:], f"{word[1]}:" in scheduler.letters
            if takes and not value:
                value, at = following, at + 1
            flag = short.get(word[:2], word[:2])
            found.append(Option(line.number, flag, value, word[:2]))
        else:
            found.append(Option(line.number, "", word, word))
    return found


def _whole(name: str, long: Mapping[str, str]) -> str:
    """Return the full name of a long option: getopt accepts any unambiguous prefix."""
    if name in long:
        return name
    whole = [known for known in long if known.startswith(name)]
    return whole[0] if len(whole) == 1 else name
