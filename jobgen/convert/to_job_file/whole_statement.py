"""A whole statement of a script as the program, in a shell of its own."""

from __future__ import annotations

import re

from jobgen.convert.to_job_file import processes, program_line
from jobgen.convert.to_job_file.program_line import ProgramWords
from jobgen.convert.to_job_file.statements import Split, compound, reads_status
from jobgen.script.command_kinds import changes_shell
from jobgen.script.commands import Command, commands
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments


def of(script: Script, command: Command) -> Node | None:
    """Return the statement that is the program, in a shell of its own; None for a plain command."""
    aliases = {word.text.partition("=")[0] for one in script.named("alias") for word in one.arguments}
    in_shell = command.name in {*script.functions, *aliases, "eval"}
    in_shell |= not command.name and "/" not in command.words[0].text
    in_shell |= any(one.type == "herestring_redirect" for one in command.node.children)
    return compound(command.node) or (command.node if in_shell else None)


def program(script: Script, parts: Split, statement: Node) -> tuple[Split, ProgramWords]:
    """Return a statement as the program, with what belongs to it, and the other parts of the script."""
    parts, last = _with_wait(script, parts, statement)
    parts, first = _with_status(script, parts, statement)
    words = program_line.of_statement(script, first, last)
    after = next(iter(parts.behind), None)
    if after is not None and "PIPESTATUS" in program_line.read_by(after) and reads_status(script, after):
        words.words[-1] += "\n(exit ${PIPESTATUS[0]})"
        parts = parts._replace(piped=statement)
    return parts, words


def _with_wait(script: Script, parts: Split, statement: Node) -> tuple[Split, Node]:
    """Take the ``wait`` for what a statement leaves in the background out of the commands after it, with an
    ``exit`` behind it whose status is from there.

    Return the rest, and the last of these statements, or the statement itself.
    """
    for at, one in enumerate(parts.after) if processes.unwaited([statement], script.functions) else ():
        if one.parent is statement.parent and any(command.name == "wait" for command in commands(one)):
            rest = parts._replace(after=parts.after[at + 1 :])
            ending = next(iter(rest.behind), one)
            statuses = {name for name, _, _ in assignments(one)}
            if re.match(r"exit\b", ending.text) and statuses & program_line.read_by(ending):
                return rest._replace(after=parts.after[parts.after.index(ending) + 1 :]), ending
            return rest, one
    return parts, statement


def _with_status(script: Script, parts: Split, statement: Node) -> tuple[Split, Node]:
    """Take the programs whose status a statement reads out of the commands before it.

    Return the rest, and the first of these programs, or the statement itself.
    """
    before = parts.before
    while reads_status(script, statement):
        plain = [one for one in before if one.type != ";"]
        if not plain or plain[-1].parent is not statement.parent or not _runs_programs(plain[-1]):
            break
        statement = plain[-1]
        before = before[: before.index(statement)]
    return parts._replace(before=before), statement


def _runs_programs(statement: Node) -> bool:
    """Return whether a statement runs programs, and no command that changes the shell."""
    found = list(commands(statement))
    return bool(found) and not any(changes_shell(one.name, one.literals) for one in found)
