"""The directory of a command: commands that change to another one, whichever the job starts in."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator

from jobgen.convert.result import Remark, hint
from jobgen.script.commands import Command
from jobgen.script.script import Script
from jobgen.script.syntax import LATER, Node

_ABSOLUTE = re.compile(r"[\"']*[/~$]")
_VARIABLE = re.compile(r"\"?\$\{?([A-Za-z_]\w*)")
_ELSEWHERE = "/?"  # an unknown directory
_IF_SET = re.compile(
    r"if (?:\[+|test) (?:-n|! -z) \"?\$\{?(\w+)\}?\"?(?: \]+)?\s*;?\s*then\s+cd \S+\s*;?\s*fi"
)
_SCOPES = ("subshell", "command_substitution", "process_substitution", "function_definition")


def leaves_start(script: Script, command: Command) -> bool:
    """Return whether ``cd`` always changes to a directory that does not depend on the current one, and all
    commands behind it are there.

    Variables that the script does not set have absolute paths, except ``PWD``.
    """
    inner = command.node
    if (condition := inner.around("if_statement")) is not None and always_holds(script, condition):
        inner = condition
    if inner.under(*LATER, *_SCOPES):
        return False
    words = [one for one in command.arguments if not one.text.startswith("-")]
    return not words or _absolute(script, script.constants.value(words[0]) or words[0].text, ())


def always_holds(script: Script, statement: Node) -> bool:
    """Return whether a statement is a ``cd`` if the directory of the submission is set, as it is in a job."""
    match = _IF_SET.fullmatch(statement.text)
    name = match[1] if match else ""
    return script.dialect.job_variables.get(name) == "submit_dir" and name not in script.values


def _absolute(script: Script, text: str, seen: tuple[str, ...]) -> bool:
    name = match[1] if (match := _VARIABLE.match(text)) else ""
    if name in seen or not name:
        return bool(_ABSOLUTE.match(text)) and not re.match(r"\"?\$\(", text)
    values = script.values.get(name, ())
    if name == "PWD" and not values:
        return False
    return all(_absolute(script, one.text, (*seen, name)) for one in values)


def reads_start(script: Script, command: Command) -> bool:
    """Return whether a script reads the path that ``cd`` or ``pushd`` leaves, or returns to it."""
    names = () if "PWD" in script.values else ("PWD",)
    if any(one in names and node.start < command.node.end for one, node in script.expansions):
        return True
    return returns(script, command)


def returns(script: Script, command: Command) -> bool:
    """Return whether the next change of the directory returns to the one that ``cd`` or ``pushd`` leaves."""
    moves = script.named("cd", "pushd", "popd")
    if (after := next((one for one in moves if one.node.start > command.node.start), None)) is None:
        return False
    is_pop = after.name == "popd" and command.name == "pushd"
    return is_pop or "-" in after.literals or "OLDPWD" in after.node.text


def at(script: Script, node: Node) -> str | None:
    """Return the directory of a command as a path from that of the submission; None if it is unknown."""
    own_start = any(flag in script.heeded for flag in script.dialect.directory_options)
    here, last = _ELSEWHERE if not script.starts_at_submission or own_start else ".", _ELSEWHERE
    stack: list[str] = []
    for one in script.named("cd", "pushd", "popd"):
        if one.node.start >= node.start:
            break
        if any(above.type in _SCOPES and node not in above for above in one.node.above()):
            continue
        words = [word for word in one.arguments if not re.match(r"-\w|--$|&", word.text)]
        text = script.constants.text(words[0]) if words else "$HOME"
        if one.name == "pushd":
            stack.append(here)
        if one.name == "popd":
            here, last = stack.pop() if stack else _ELSEWHERE, here
        elif text == "-":
            here, last = last, here
        else:
            here, last = path_of(script, text, here), here
    return None if here.startswith(_ELSEWHERE) else here


def path_of(script: Script, text: str, directory: str) -> str:
    """Return the path of a word, in a directory, as one from the directory of the submission.

    A variable of the environment is an absolute path, and one in small letters the name of a folder.
    """
    text = re.sub(r"\$\{(\w+)(:?-[^}]*)?\}", r"$\1", text.strip("\"'"))
    text = re.sub(r"^\$HOME(?=/|$)", "~", text)
    if match := re.match(rf"\${script.dialect.variable('submit_dir')}(/|$)", text):
        return os.path.normpath(text[match.end() :])
    if match := re.match(r"(\$PWD|\$\(pwd\)|`pwd`)(/|$)", text):
        text = text[match.end() :]
    if text.startswith(("$(", "`")):
        return _ELSEWHERE
    return os.path.normpath(text if re.match(r"~|\$[A-Z]", text) else os.path.join(directory, text))


def _first_run(script: Script, node: Node) -> int:
    """Return the offset at which a command runs first: for one in a function, that of its first call."""
    function = node.around("function_definition")
    calls = [one.node.start for one in script.named(function.name)] if function else [node.start]
    return min(calls, default=sys.maxsize)


def at_home(script: Script) -> Iterator[Remark]:
    """Yield a remark on a script that stays in the home directory, where its site may not start it."""
    family = script.dialect.family
    if script.starts_at_submission:
        why = f"is that of the submission, where NCAR's {family} starts a job"
        yield hint(script.directives.first_command or 1, "the first directory", why)
        return
    moved = min((_first_run(script, one.node) for one in script.named("cd", "pushd")), default=sys.maxsize)
    at = 0
    for command in script.runs:
        at = _first_run(script, command.node) if command.node.source is script.tree.source else at
        for word in command.words if at < moved else ():
            if re.match(r"(\.\.?/)+\w", word.text):
                why = f"is read below $HOME, where {family} starts a job: if the site starts jobs in the"
                yield hint(word.line, word.text, f"{why} directory of the submission, change to it")
                return


def default_log(script: Script, directory: str | None) -> Iterator[Remark]:
    """Yield a remark on a log without a name, which Slurm writes into the directory of --chdir."""
    option = script.heeded.get("--chdir")
    if option and directory not in (None, ".") and not script.request.output:
        why = "the log of the new job is in the directory of the submission, and not in this one"
        yield hint(option.line, f"{option.flag}={option.value}", why)
