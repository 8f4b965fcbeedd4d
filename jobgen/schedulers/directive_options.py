"""The options in the text of one directive, read as its scheduler reads them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping

from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.request import DirectiveOption
from jobgen.schedulers.table import SCHEDULERS

_LONG = {name: value for row in SCHEDULERS.values() for name, value in row.grammar.long_options.items()}


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
    lexer.commenters = "#" if scheduler.grammar.comments else ""
    lexer.escape = "\\" if scheduler.grammar.escapes else ""
    try:
        return list(iter(lexer.get_token, None))
    except ValueError:
        return None


def read_options(text: str, scheduler: Scheduler, line: int = 0) -> list[DirectiveOption]:
    """Return the options of a directive. A word that is neither option nor value has an empty flag.

    For a scheduler without long options, those of another scheduler are read: a rule reports them.
    """
    return _read(words(text, scheduler), scheduler, line)


def read_directives(lines: Iterable[tuple[int, str]], scheduler: Scheduler) -> Iterator[DirectiveOption]:
    """Yield the options of the directives of a script; each has the number of its line and its text.

    sbatch joins the words of all lines (seen with Slurm 22.05): an option without a value takes the first
    word of the next line, also if that is an option.
    """
    before: DirectiveOption | None = None  # waits for its value
    for line, text in lines:
        given = words(text, scheduler)
        if before is not None and given:
            yield before._replace(value=given.pop(0), missing=False, value_line=line)
            before = None
        options = _read(given, scheduler, line)
        if options and options[-1].missing and scheduler.grammar.joins:
            before = options.pop()
        yield from options
    if before is not None:
        yield before


def _read(given: list[str], scheduler: Scheduler, line: int) -> list[DirectiveOption]:
    found: list[DirectiveOption] = []
    while given:
        word = given.pop(0)
        if word == "--":  # the end of the options
            return [*found, DirectiveOption(line, "", word, word)]
        if word.startswith("--"):
            found.append(_long_option(line, word, given, scheduler))
        elif word.startswith("-") and len(word) > 1:
            found += _short_options(line, word, given, scheduler)
        else:
            found.append(DirectiveOption(line, "", word, word))
    return found


def values_by_key(lines: Iterable[str], scheduler: Scheduler) -> dict[str, str]:
    """Return the values of the options in directives by their keys, such as ``-l select`` or ``--gres``."""
    return {
        key: one.value
        for line in lines
        for option in read_options(line, scheduler)
        for key, one in scheduler.settings(option)
    }


def _long_option(line: int, word: str, following: list[str], scheduler: Scheduler) -> DirectiveOption:
    long, short = scheduler.grammar.long_options or _LONG, scheduler.grammar.short_options
    name, equals, value = word[2:].partition("=")
    flag = whole(name, long)
    missing = not equals and long.get(flag) == "=" and not following
    of_plugin = not completions(name, long) and following and not following[0].startswith("-")
    if not equals and (of_plugin or (long.get(flag) == "=" and following)):
        value = following.pop(0)
    return DirectiveOption(line, short.get("--" + flag, "--" + flag), value, word, missing)


def _short_options(
    line: int, word: str, following: list[str], scheduler: Scheduler
) -> Iterator[DirectiveOption]:
    """Yield the options of a word of letters: the last one may have a value, here or in the next word."""
    letters = word[1:]
    while letters:
        letter, letters = f"-{letters[0]}", letters[1:]
        flag, value, missing = scheduler.grammar.short_options.get(letter, letter), "", False
        if f"{letter[1]}:" in scheduler.grammar.letters:
            missing = not letters and not following
            value = letters or (following.pop(0) if following else "")
        elif scheduler.grammar.long_options.get(flag[2:]) == "?":
            value = letters
        if value or missing or f"{letter[1]}:" in scheduler.grammar.letters:
            letters = ""
        yield DirectiveOption(line, flag, value, letter, missing)


def whole(name: str, long: Mapping[str, str]) -> str:
    """Return the full name of a long option: getopt accepts any unambiguous prefix."""
    known = completions(name, long)
    return known[0] if len(known) == 1 else name


def completions(name: str, long: Mapping[str, str]) -> list[str]:
    """Return the long options that a name can stand for."""
    return [name] if name in long else [known for known in long if known.startswith(name)]
