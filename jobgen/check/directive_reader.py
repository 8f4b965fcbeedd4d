"""The directives of a script, read as its scheduler reads them: up to the first command.

PBS and sbatch read all lines before the first one that is not a comment (src/sbatch/opt.c, src/cmds/qsub.c).
After a backslash a directive of PBS goes on in the next line (get_script in src/cmds/qsub_sup.c, of
Torque in src/cmds/qsub_functions.c); one of Slurm does not.
Lines that only look like a directive (``# PBS``, ``#pbs``) are kept, too: they have no effect.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from jobgen.check.other_text import foreign_lines
from jobgen.rendering.runtime import MARK
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.request import Option
from jobgen.schedulers.table import SCHEDULERS, SHELL

LONG = {name: value for row in SCHEDULERS.values() for name, value in row.long_options.items()}


class Line(NamedTuple):
    """A line that is a directive or looks like one; ``rest`` is the text after the prefix.

    ``more`` is the number of lines in which it goes on.
    """

    number: int
    text: str
    rest: str
    more: int = 0

    @property
    def last(self) -> int:
        """The number of its last line."""
        return self.number + self.more


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


class Guess(NamedTuple):
    """The scheduler of a script; the reason is empty if the prefix of its directives determines it."""

    scheduler: str
    reason: str = ""


def guess(lines: list[str]) -> str:
    """Return the scheduler of a script; of several with one prefix, the one whose marks the script has."""
    return recognized(lines).scheduler


def recognized(lines: list[str]) -> Guess:
    """Return the scheduler of a script, and the reason."""
    # The runtime of a script of jobgen is for all schedulers.
    whole = len(lines)
    lines = list(takewhile(lambda line: not line.startswith(MARK), lines))
    prefixes = {row.prefix[1:]: row.prefix for row in SCHEDULERS.values() if row.prefix}
    mark = rf"\s*#+ ?({'|'.join(prefixes)})\b"
    marks = [match[1].upper() for line in lines if (match := re.match(mark, line, re.I))]
    if not marks:
        reason = "read as a shell script: it has no directive of PBS or Slurm; --scheduler overrides this"
        return Guess(SHELL, "" if len(lines) < whole else reason)
    # At equal counts the last in the table wins: scripts for Slurm often keep directives of PBS.
    prefix = prefixes[max(reversed(prefixes), key=marks.count)]
    rows = [row for row in SCHEDULERS.values() if row.prefix == prefix]
    directives: list[str] = []
    for line in lines:
        goes_on = bool(directives) and re.search(rows[0].line_joint, directives[-1])
        directives.append(line if goes_on or re.match(rf"\s*{prefix}\b", line) else "")
    if re.search(rows[0].foreign_directives, " ".join(directives)):
        return Guess(SHELL)
    if len(rows) == 1:
        return Guess(rows[0].name)
    pairs = zip(lines, directives, strict=True)
    commands = ["" if directive or line.lstrip().startswith("#") else line for line, directive in pairs]
    return _by_marks(rows, directives, commands)


def _by_marks(rows: Sequence[Scheduler], directives: Sequence[str], commands: Sequence[str]) -> Guess:
    """Return the scheduler with the most weight of its marks; without marks, the first one."""
    found: dict[str, dict[str, int]] = {}
    weights = {row.name: 0 for row in rows}
    for row in rows:
        for mark in row.marks:
            lines = enumerate(commands if mark.in_commands else directives, 1)
            hits = ((number, one[0]) for number, line in lines if (one := re.search(mark.pattern, line)))
            if hit := next(hits, None):
                weights[row.name] += mark.weight
                found.setdefault(row.name, {})[f"{hit[1]} (line {hit[0]})"] = mark.weight
    best = max(rows, key=lambda row: weights[row.name])
    texts = found.get(best.name, {})
    shown = sorted(texts, key=lambda text: -texts[text])[:3]
    others = " and ".join(row.title for row in rows if row is not best)
    return Guess(
        best.name,
        f"read as {best.title}"
        + (f" because of {', '.join(shown)}" if shown else f": nothing distinguishes it from {others}")
        + "; --scheduler overrides this",
    )


def read(lines: list[str], scheduler: Scheduler) -> Directives:
    """Return the directives of this scheduler, and the lines that look like them."""
    live: list[Line] = []
    late: list[Line] = []
    inert: list[Line] = []
    prefix, first = scheduler.prefix, 0
    for number, text in enumerate(lines, 1):
        found = text.lstrip(" \t") if scheduler.indented_directives else text
        if live and number <= live[-1].last:
            continue
        if prefix and found.startswith(prefix):
            more = 0 if first else _more(lines[number - 1 :], scheduler)
            if more:
                found = _joined([found, *lines[number : number + more]], scheduler)
                text = found
            (late if first else live).append(Line(number, text, found[len(prefix) :].strip(), more))
        elif prefix and not first and (match := re.match(_lookalike(prefix), text, re.I)):
            line = Line(number, text, match[1].strip())
            if prefix in text or not _operands(line, scheduler):
                inert.append(line)
        elif not first and text.strip() and text.lstrip()[0] != "#" and not text.startswith(":"):
            first = number
    # A comment about directives is not a directive: an option has to follow.
    foreign = foreign_lines(lines, first)
    late = [line for line in late if line.rest.startswith("-") and line.number not in foreign]
    return Directives(tuple(live), tuple(late), tuple(inert), first)


def _more(lines: Sequence[str], scheduler: Scheduler) -> int:
    """Return the number of lines in which the directive of the first line goes on."""
    joints = (re.search(scheduler.line_joint, line) for line in lines[:-1])
    return sum(1 for _ in takewhile(bool, joints))


def _joined(lines: Sequence[str], scheduler: Scheduler) -> str:
    return "".join([*(re.sub(scheduler.line_joint, "", line) for line in lines[:-1]), lines[-1]])


def apart(lines: Sequence[str], directives: Directives) -> Iterator[int]:
    """Yield the lines of options behind a backslash that the scheduler does not join with the directive."""
    for one in directives.live:
        if re.search(r"\\\s*$", lines[one.last - 1]) and re.match(
            r"\s*-", "".join(lines[one.last : one.last + 1])
        ):
            yield one.last + 1


def _operands(line: Line, scheduler: Scheduler) -> bool:
    """Return whether a file follows the options: ``#sbatch -n 1 job.sh`` is a disabled command."""
    return any(not option.flag for option in read_options(line, scheduler))


def _lookalike(prefix: str) -> str:
    return rf"\s*#[#\s]*{prefix[1:]}\s+(-.*)"


def words(rest: str, scheduler: Scheduler) -> list[str]:
    """Return the words of a directive. All schedulers accept quotes."""
    split = _split(rest, scheduler)  # empty if only a comment follows
    return rest.split() if split is None else split


def unclosed(rest: str, scheduler: Scheduler) -> bool:
    """Return whether a directive has a quote that is not closed."""
    return _split(rest, scheduler) is None and '\\"' not in rest


def _split(rest: str, scheduler: Scheduler) -> list[str] | None:
    """Return the words of a directive; None if a quote is not closed."""
    lexer = shlex.shlex(rest.removesuffix("\\"), posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = "#" if scheduler.directive_comments else ""
    lexer.escape = "\\" if scheduler.escapes else ""
    try:
        return list(iter(lexer.get_token, None))
    except ValueError:
        return None


def read_options(line: Line, scheduler: Scheduler) -> list[Option]:
    """Return the options of a directive. A word that is neither option nor value has an empty flag.

    For a scheduler without long options, those of another scheduler are read: a rule reports them.
    """
    given = words(line.rest, scheduler)
    found: list[Option] = []
    while given:
        word = given.pop(0)
        if word == "--":  # the end of the options
            return [*found, Option(line.number, "", word, word)]
        if word.startswith("--"):
            found.append(_long_option(line.number, word, given, scheduler))
        elif word.startswith("-") and len(word) > 1:
            found += _short_options(line.number, word, given, scheduler)
        else:
            found.append(Option(line.number, "", word, word))
    return found


def _long_option(line: int, word: str, following: list[str], scheduler: Scheduler) -> Option:
    long, short = scheduler.long_options or LONG, scheduler.short_options
    name, equals, value = word[2:].partition("=")
    flag = whole(name, long)
    missing = not equals and long.get(flag) == "=" and not following
    if not equals and long.get(flag) == "=" and following:
        value = following.pop(0)
    return Option(line, short.get("--" + flag, "--" + flag), value, word, missing)


def _short_options(line: int, word: str, following: list[str], scheduler: Scheduler) -> Iterator[Option]:
    """Yield the options of a word of letters: the last one may have a value, here or in the next word."""
    letters = word[1:]
    while letters:
        letter, letters = f"-{letters[0]}", letters[1:]
        flag, value, missing = scheduler.short_options.get(letter, letter), "", False
        if f"{letter[1]}:" in scheduler.letters:
            missing = not letters and not following
            value = letters or (following.pop(0) if following else "")
        elif scheduler.long_options.get(flag[2:]) == "?":
            value = letters
        if value or missing or f"{letter[1]}:" in scheduler.letters:
            letters = ""
        yield Option(line, flag, value, letter, missing)


def whole(name: str, long: Mapping[str, str]) -> str:
    """Return the full name of a long option: getopt accepts any unambiguous prefix."""
    known = completions(name, long)
    return known[0] if len(known) == 1 else name


def completions(name: str, long: Mapping[str, str]) -> list[str]:
    """Return the long options that a name can stand for."""
    return [name] if name in long else [known for known in long if known.startswith(name)]
