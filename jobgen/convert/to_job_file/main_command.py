"""The command of a script that becomes the program: its last launcher, or else its last program."""

from __future__ import annotations

import os
import re

from jobgen.convert.to_job_file import launcher, wrappers
from jobgen.convert.to_job_file.blocks import misread
from jobgen.convert.to_scheduler.launch_calls import other_launchers
from jobgen.launch.command_line import SHELLS, is_python
from jobgen.launch.launchers import LAUNCHERS
from jobgen.launch.wrappers import command_start, inputs_start
from jobgen.script.command_kinds import PRINT, STATE, TOOLS
from jobgen.script.commands import Command, commands
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import LOOPS, assignments, literal, parse


def last_launch(script: Script) -> Launch | None:
    """Return the launcher of the ranks: the last one, but not the srun that starts it on each node, and none
    of one rank beside others in a job of several, nor one that xargs or parallel runs several times."""
    found = [one for one in script.launches if launcher.program_of(script, one) and not one.remote]
    found = [one for one in found if not wrappers.is_kept(script, one)]
    working = [one for one in found if not one.command.node.under("command_substitution")]
    working = [one for one in working if not _prints(script, one)]
    program, launched = last_program(script), {one.command.node.start for one in script.launches}
    if not working and program is not None and program.node.start not in launched:
        return None
    found = working or found
    if script.request.several:
        found = [one for one in found if one.number(*one.row.line.ranks) != 1] or found
    found = [one for one in found if one.row.once_a_node] or found
    return found[-1] if found else None


def _prints(script: Script, launch: Launch) -> bool:
    """Return whether the ranks of a launcher only print something, such as their hosts."""
    words = [script.constants.value(word) or "" for word in launch.program]
    names = [os.path.basename(words[0])] if words else [""]
    if names[0] in SHELLS and words[1:2] == ["-c"] and len(words) == 3:
        names = [one.name for one in commands(parse(words[2].encode()))]
    return PRINT.issuperset(names)


def outermost(launch: Launch | None) -> Launch | None:
    """Return the launcher that starts a launcher, or the launcher itself."""
    return launch.chain[-1] if launch is not None else None


def main_command(script: Script, launch: Launch | None) -> Command | None:
    """Return the command of a launcher; without a launcher that of the last program."""
    outer = outermost(launch)
    inside = [one.command for one in script.launches if wrappers.is_kept(script, one)]
    return outer.command if outer else inside[-1] if inside else last_program(script)


def last_program(script: Script) -> Command | None:
    """Return the last command that is a launcher of others, or else runs Python, or is no common tool."""
    given = [one for one in script.commands if not one.node.under("command_substitution", "heredoc_body")]
    found = [behind_exec(one) for one in given]
    others = (one for one in found if _named(one) and not one.node.under("function_definition"))
    others = (one for one in others if not _is_tool(script, one) or _runs_program(one))
    others = (one for one in others if not any(misread(node) for _, _, node in assignments(one.node)))
    started = {one.command.node.start for one in other_launchers(script, _LAUNCHERS)}
    last = [one for one in found if one.node.start in started]
    last = last or [one for one in found if _python(one)] or list(others)
    if (work := [one for one in last if not _calls_tools(script, one)]) and not work[-1].node.under(*_BLOCKS):
        last = work
    return last[-1] if last else None


_LAUNCHERS = [name for row in LAUNCHERS.values() for name in row.names]
_BLOCKS = ("if_statement", "case_statement", "list", *LOOPS)


def _calls_tools(script: Script, command: Command) -> bool:
    """Return whether a command is a call of a function that prints, handles files, or changes the shell."""
    inside = {one.name for one in commands(parse(script.functions.get(command.name, "").encode()))}
    return bool(inside) and inside <= STATE | TOOLS and inside.isdisjoint(("eval", "exec"))


def _is_tool(script: Script, command: Command) -> bool:
    """Return whether a command changes the shell, or runs common tools only, also by a wrapper or xargs."""
    words = [literal(word) for word in command.words]
    if 0 < (at := inputs_start(words, 0)) < len(words):
        return os.path.basename(words[at] or "") in TOOLS
    return command.name in STATE | TOOLS or all(one.name in TOOLS for one in script.innermost(command))


def behind_exec(command: Command) -> Command:
    """Return the command that replaces the shell, for ``exec PROGRAM``; any other command as it is."""
    words = command.arguments
    if command.name != "exec" or not words or words[0].text.startswith("-"):
        return command
    return command._replace(name=os.path.basename(literal(words[0]) or ""), words=words)


def _runs_program(command: Command) -> bool:
    """Return whether a command is ``eval $COMMAND``, also of a list, or ``env`` with a program."""
    texts = [word.text.strip('"') for word in command.arguments]
    if command.name == "env":
        return any(not re.match(r"-|\w+=", text) for text in texts)
    value = r"\$\w+|\$\{\w+(\[[^]]+\])?\}"
    return command.name == "eval" and all(re.fullmatch(value, text) for text in texts)


def _named(command: Command) -> bool:
    """Return whether a command has a name, or one with the values of variables: ``${program}_x86``."""
    first = command.words[0].text if command.words else ""
    return bool(command.name) or bool(re.search(r"\$\w|\$\{\w", first) and not re.search(r"[=`(]", first))


def _python(command: Command) -> bool:
    """Return whether a command runs a program of Python, which installs nothing."""
    words = [literal(word) for word in command.words]
    if not (rest := words[command_start(words) :]) or not is_python(os.path.basename(rest[0] or "")):
        return False
    text = " ".join(word or "$" for word in rest[1:])
    setup = r"(\S*/)?setup\.py (-q )?(install|develop|build)"
    installs = re.match(rf"-m (pip|venv|virtualenv|ensurepip)\b|{setup}", text)
    return not installs and not {"-c", "-V", "--version"} & set(rest[1:2])
