"""Completion in bash, zsh and fish: the shell passes the words up to the cursor and gets candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click

from jobgen.commands.completion.candidates import DIRECTORIES, FILES, Candidate, flag_fits, values
from jobgen.errors import JobgenError, visible


class _Place(NamedTuple):
    """The command, options and arguments before the cursor. ``waiting`` is an option that expects a value."""

    command: click.Command
    given: dict[str, str]
    arguments: list[str]
    waiting: click.Parameter | None


def answer(cli: click.Group, shell: str, words: Sequence[str]) -> int:
    """Print the candidates for the last word, as ``VALUE`` or ``VALUE<tab>HELP``.

    ``:files`` and ``:directories`` leave the completion to the shell. After an error, print nothing: the user
    is still typing.
    """
    *before, current = words or [""]
    cut = 0
    if shell == "bash":
        before, current, cut = _joined(before, current)
    try:
        lines = list(_candidates(cli, before, current, shell != "bash"))
    except (JobgenError, OSError, ValueError):
        return 0
    for value, about in lines:
        if value in (FILES, DIRECTORIES):
            print(value)
        elif value.startswith(current) and value.isprintable():
            print(value[cut:] + (f"\t{visible(about)}" if about and not value.endswith("=") else ""))
    return 0


def _joined(before: list[str], current: str) -> tuple[list[str], str, int]:
    """Join the words that bash splits at ``=``; the number is the part of the last word that bash has."""
    words: list[str] = []
    glue = False
    for word in [*before, current]:
        if words and (glue or word == "="):
            words[-1] += word
        else:
            words.append(word)
        glue = word == "="
    whole = words.pop()
    cut = whole.rfind("=") + 1 if whole != current else 0
    return words, whole, cut


def _candidates(
    cli: click.Group, before: Sequence[str], current: str, described: bool
) -> Iterator[Candidate]:
    if "--" in before:
        yield Candidate(FILES)
        return
    place = _walk(cli, before)
    if place.waiting is not None:
        yield from values(place.waiting, place.command, place.given, place.arguments, current)
    elif current.startswith("-") and "=" in current:
        flag, _, value = current.partition("=")
        if (parameter := _option(place.command, flag)) is not None:
            for one in values(parameter, place.command, place.given, place.arguments, value):
                yield (
                    one if one.value in (FILES, DIRECTORIES) else Candidate(f"{flag}={one.value}", one.about)
                )
    elif current.startswith("-"):
        yield from _flags(place)
    elif isinstance(place.command, click.Group):
        yield from _commands(place.command, current, described)
    elif (argument := _argument(place)) is not None:
        yield from values(argument, place.command, place.given, place.arguments, current)
    elif not current:
        yield from _flags(place)


def _walk(cli: click.Command, words: Sequence[str]) -> _Place:
    command, given, arguments = cli, dict[str, str](), list[str]()
    rest = iter(words)
    for word in rest:
        if word.startswith("-"):
            flag, equals, value = word.partition("=")
            option = _option(command, flag)
            if option is None or option.is_flag:
                continue
            if not equals and (value := next(rest, "\0")) == "\0":
                return _Place(command, given, arguments, option)
            given[option.name or ""] = value
        elif isinstance(command, click.Group):
            if word not in command.list_commands(context := click.Context(command)):
                raise JobgenError(f"there is no command {word}")
            command = command.get_command(context, word) or command
        else:
            arguments.append(word)
    return _Place(command, given, arguments, None)


def _option(command: click.Command, flag: str) -> click.Option | None:
    options = (one for one in command.params if isinstance(one, click.Option))
    return next((one for one in options if flag in (*one.opts, *one.secondary_opts)), None)


def _argument(place: _Place) -> click.Argument | None:
    """Return the argument that takes the next word; the last argument may take many."""
    known = [one for one in place.command.params if isinstance(one, click.Argument)]
    at = len(place.arguments)
    return known[at] if at < len(known) else known[-1] if known and known[-1].nargs == -1 else None


def _flags(place: _Place) -> Iterator[Candidate]:
    for parameter in place.command.get_params(click.Context(place.command)):
        if isinstance(parameter, click.Option) and flag_fits(place.command, place.arguments, parameter):
            for flag in (*parameter.opts, *parameter.secondary_opts):
                if flag.startswith("--"):
                    yield Candidate(flag, (parameter.help or "").split("  [")[0].split(". ")[0])


def _commands(group: click.Group, current: str, described: bool) -> Iterator[Candidate]:
    """Yield the commands. bash shows no help, so no command has to be loaded for it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        if name.startswith(current):
            command = group.get_command(context, name) if described else None
            yield Candidate(name, command.get_short_help_str(80) if command else "")
