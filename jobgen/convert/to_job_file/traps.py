"""The traps of a script: those of its end move into the block ``after``, others stay, with a remark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jobgen.convert.result import Remark, remark_on
from jobgen.convert.to_job_file.definitions import definitions_of
from jobgen.convert.to_job_file.statements import OTHER_STATUS, Split, without
from jobgen.script.commands import commands
from jobgen.script.script import Script
from jobgen.script.syntax import Node, expansions, parse
from jobgen.script.word_lists import code_text, unescaped

_END = re.compile(r"(SIG)?EXIT|0", re.IGNORECASE)
_EXIT = re.compile(r"\bexit +\d").search
_RESETS = ("-", "''", '""')
_ENDINGS = re.compile(r"(SIG)?(EXIT|INT|TERM|HUP|QUIT)|0|1|2|3|15", re.IGNORECASE)
# What belongs to the shell of the trap: its processes, its number, and its files.
_OF_SHELL = re.compile(
    r"\$[$!]|\$\{[$!]|\b(jobs|wait|exec|trap|BASHPID|SECONDS|LINENO|BASH_SOURCE)\b|%\d|\$\{?0\b|\bkill\b.*\s-?[01]\b"
)


def take(script: Script, parts: Split) -> tuple[Split, list[Node]]:
    """Return the parts of a script without the traps that the block after can have, and these.

    A shell of its own runs that block: a trap at its beginning runs at its end, with the variables and
    functions of the script.
    """
    found = [one for one in _end_traps(parts)[-1:] if _is_of_end(script, one)]
    return (parts._replace(before=tuple(without(parts.before, found))), found) if found else (parts, [])


def _end_traps(parts: Split) -> list[Node]:
    """Return the commands before the program that set or reset the trap of the end of the script."""
    return [one for one in parts.before if one.type == "command" and _sets_end(one)]


def _sets_end(statement: Node) -> bool:
    """Return whether a statement sets or resets the trap of the end of the script."""
    command = next(commands(statement), None)
    words = [word.text for word in command.arguments] if command is not None else []
    return command is not None and command.name == "trap" and any(map(_END.fullmatch, words[1:]))


def _is_of_end(script: Script, statement: Node) -> bool:
    """Return whether a statement is a trap for the end of the script whose commands another shell can run."""
    command = next(commands(statement))
    words = [word.text for word in command.arguments]
    if not all(map(_ENDINGS.fullmatch, words[1:])) or words[0] in _RESETS:
        return False
    read = {name for name, _ in expansions(command.arguments[0])}
    later = any(name in read and node.start > statement.start for name, _, node in script.assignments)
    actions = actions_of([statement])
    texts = [*(one.text for one in actions), *definitions_of(script, actions).definitions]
    return not later and not any(map(_OF_SHELL.search, texts))


def actions_of(traps: Sequence[Node]) -> list[Node]:
    """Return the commands that some traps run."""
    words = [one.arguments[0] for trap in traps for one in commands(trap)]
    texts = (unescaped(code_text(word)) if word.type == "string" else code_text(word) for word in words)
    return [parse(text.encode()) for text in texts]


def remarks(
    script: Script, program: str, parts: Split, moved: Sequence[Node], left_out: Sequence[Node]
) -> Iterator[Remark]:
    """Yield a remark on each trap of the script, except in its program, or one that needs no translation.

    ``moved``: those that are in the block after; ``left_out``: those that the job does not need.
    """
    replaced = _end_traps(parts)[:-1]
    own = [*parts.after, *(one for one in parts.before if one.type == "subshell"), *left_out]
    for one in script.named("trap"):
        if one.node in moved:
            why = "is in the block after, which does not run if the job ends before the program starts"
            yield remark_on(one, why)
            actions = actions_of([one.node])
            texts = [*(action.text for action in actions), *definitions_of(script, actions).definitions]
            yield from [remark_on(one, OTHER_STATUS)] if any(map(_EXIT, texts)) else []
            continue
        words = [word.text for word in one.arguments]
        given = words[1:] and words[0] not in _RESETS and one.node not in replaced
        works = any(one.node in statement for statement in own)
        if given and not works and one.node.text not in program:
            why = "acts in setup only: " * any(one.node in statement for statement in parts.before)
            why += "jobgen's script has traps of its own instead: "
            why += "commands for the end of the job go into after"
            yield remark_on(one, why, lost=True)
