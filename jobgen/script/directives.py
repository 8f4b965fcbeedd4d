"""The directives of a script, read as its scheduler reads them: up to the first command.

PBS and sbatch read all lines before the first one that is not a comment (src/sbatch/opt.c, src/cmds/qsub.c).
After a backslash a directive of PBS goes on in the next line (get_script in src/cmds/qsub_sup.c, of
Torque in src/cmds/qsub_functions.c); one of Slurm does not.
Lines that only look like a directive (``# PBS``, ``#pbs``, ``#PSB``) are kept, too: they have no effect.
``##PBS`` and ``# #PBS`` are comments on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from jobgen.errors import one_of
from jobgen.rendering.runtime import MARK
from jobgen.schedulers.directive_options import read_directives, read_options
from jobgen.schedulers.request import DirectiveOption
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.table import DIALECTS, SHELL
from jobgen.script.other_text import foreign_lines


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

    @property
    def comment(self) -> str:
        """The comment behind it; empty without one. The word after -C is the prefix of directives."""
        parts = re.findall(r"-C\s*#\S*|\"[^\"]*\"|'[^']*'|(?<=\s)#.*", self.rest, re.DOTALL)
        return next((one for one in parts if one.startswith("#")), "")


class Directives(NamedTuple):
    """The directives of a script. ``first_command`` is the number of a line, or 0.

    ``live`` directives have an effect; ``late`` and ``inert`` ones have none.
    """

    live: tuple[Line, ...]
    late: tuple[Line, ...]
    inert: tuple[Line, ...]
    first_command: int

    @property
    def first(self) -> int:
        """The number of the first line with an effect, by default 1."""
        return self.live[0].number if self.live else 1

    def options(self, scheduler: Dialect) -> tuple[DirectiveOption, ...]:
        texts = [(line.number, line.rest) for line in self.live]
        if scheduler.refuses_comments:
            texts = [(line.number, line.rest.removesuffix(line.comment)) for line in self.live]
        return tuple(read_directives(texts, scheduler.scheduler))


class Guess(NamedTuple):
    """The scheduler of a script; the reason is empty if the prefix of its directives determines it.

    ``foreign`` is the line of a directive of a scheduler that jobgen does not know, or 0. Not ``sure``:
    nothing distinguishes it from others. ``why_shell`` is the reason for a shell script alone.
    """

    scheduler: str
    reason: str = ""
    foreign: int = 0
    sure: bool = True
    why_shell: str = ""


def guess(lines: list[str]) -> str:
    """Return the scheduler of a script; of several with one prefix, the one whose marks the script has."""
    return recognized(lines).scheduler


def recognized(lines: list[str]) -> Guess:
    """Return the scheduler of a script, and the reason."""
    return _recognized("\n".join(line.rstrip("\r") for line in lines))


@lru_cache(maxsize=4)  # the message on a guess, the script and its rules read the same text
def _recognized(text: str) -> Guess:
    # The runtime of a script of jobgen is for all schedulers.
    lines = text.split("\n")
    whole = len(lines)
    lines = list(takewhile(lambda line: not line.startswith(MARK), lines))
    known = filter(None, (row.scheduler.prefix for row in DIALECTS.values()))
    prefixes = {prefix[1:]: prefix for prefix in known}
    mark = rf"\s*#+ ?({'|'.join(prefixes)})\b"
    marks = [match[1].upper() for line in lines if (match := re.match(mark, line, re.I))]
    if not marks:
        families = one_of(dict.fromkeys(row.scheduler.family for row in DIALECTS.values()))
        why = f"it has no directive of {families}"
        return Guess(SHELL) if len(lines) < whole else _shell(why, f"{why}; --scheduler overrides this")
    # At equal counts the last in the table wins: scripts for Slurm often keep directives of PBS.
    prefix = prefixes[max(reversed(prefixes), key=marks.count)]
    rows = [row for row in DIALECTS.values() if row.scheduler.prefix == prefix]
    directives: list[str] = []
    for line in lines:
        goes_on = bool(directives) and re.search(rows[0].line_joint, directives[-1])
        directives.append(line if goes_on or re.match(rf"\s*{prefix}\b", line) else "")
    for title, pattern in rows[0].foreign_directives.items():
        for number, line in enumerate(directives, 1):
            if match := re.search(pattern, line):
                why = f"{match[0].strip()} (line {number}) is an option of {title}"
                return _shell(why, why, number)
    if len(rows) == 1:
        return Guess(rows[0].name)
    pairs = zip(lines, directives, strict=True)
    commands = ["" if directive or line.lstrip().startswith("#") else line for line, directive in pairs]
    return _by_marks(rows, directives, commands)


def _shell(why: str, reason: str, foreign: int = 0) -> Guess:
    return Guess(SHELL, f"read as a shell script: {reason}", foreign, why_shell=why)


def _by_marks(rows: Sequence[Dialect], directives: Sequence[str], commands: Sequence[str]) -> Guess:
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
    why = f" because of {', '.join(shown)}" if shown else f": nothing distinguishes it from {others}"
    return Guess(best.name, f"read as {best.title}{why}; --scheduler overrides this", sure=bool(shown))


def read(lines: list[str], scheduler: Dialect) -> Directives:
    """Return the directives of this scheduler, and the lines that look like them."""
    live: list[Line] = []
    late: list[Line] = []
    inert: list[Line] = []
    prefix, first = scheduler.scheduler.prefix, 0
    for number, text in enumerate(lines, 1):
        found = text.lstrip(" \t") if scheduler.indented_directives else text
        if live and number <= live[-1].last:
            continue
        if prefix and found.startswith(prefix):
            joints = (re.search(scheduler.line_joint, line) for line in lines[number - 1 : -1])
            more = 0 if first else sum(1 for _ in takewhile(bool, joints))
            if more:
                parts = [found, *lines[number : number + more - 1]]
                parts = [re.sub(scheduler.line_joint, "", line) for line in parts]
                text = found = "".join([*parts, lines[number + more - 1]])
            (late if first else live).append(Line(number, text, found[len(prefix) :].strip(), more))
        elif prefix and not first and (line := _lookalike(number, text, scheduler)):
            inert.append(line)
        elif not first and text.strip() and text.lstrip()[0] != "#":
            first = 0 if scheduler.indented_directives and text.startswith(":") else number  # PBS goes on
    # A comment about directives is not a directive: an option has to follow.
    foreign = foreign_lines(lines, first)
    late = [line for line in late if line.rest.startswith("-") and line.number not in foreign]
    return Directives(tuple(live), tuple(late), tuple(inert), first)


def apart(lines: Sequence[str], directives: Directives) -> Iterator[int]:
    """Yield the lines of options behind a backslash that the scheduler does not join with the directive."""
    for one in directives.live:
        after = "".join(lines[one.last : one.last + 1])
        if re.search(r"\\\s*$", lines[one.last - 1]) and re.match(r"\s*-", after):
            yield one.last + 1


def _lookalike(number: int, text: str, scheduler: Dialect) -> Line | None:
    """Return the line of a directive with a typing error before its options."""
    name = scheduler.scheduler.prefix[1:]
    match = re.match(r"\s*#(\s*)([A-Za-z]+)\s+(-.*)", text)
    if not match or (match[2].upper() != name and (match[1] or not _near(match[2].upper(), name))):
        return None
    line = Line(number, text, match[3].strip())
    options = read_options(line.rest, scheduler.scheduler, number)
    if scheduler.scheduler.prefix in text:
        return line
    # A file follows the options of a disabled command: #sbatch -n 1 job.sh
    return line if all(one.flag for one in options) and _knows(options[0], scheduler) else None


def _near(word: str, name: str) -> bool:
    """Return whether a word is the name with one letter more, less, at another place or another one.

    A letter before the whole name disables a directive.
    """
    from difflib import SequenceMatcher  # late: few comments have options

    return not word.endswith(name) and SequenceMatcher(None, word, name).ratio() > 0.99 * (1 - 1 / len(name))


def _knows(option: DirectiveOption, scheduler: Dialect) -> bool:
    grammar = scheduler.scheduler.grammar
    return option.flag[2:] in grammar.long_options or option.flag[1:] in grammar.letters.replace(":", "")
