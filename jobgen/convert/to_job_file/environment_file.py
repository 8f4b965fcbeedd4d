"""The file with variables for the ranks of other nodes that a launcher reads: ``.deepspeed_env``.

The launcher of a job does not read it. See the main function of deepspeed/launcher/runner.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.convert.result import remark_on
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.host_code import target_of
from jobgen.script.commands import commands
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import Node

_ENTRY = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_WHOLE = ("env", "printenv", "export", "declare")  # commands that print the environment, which the ranks get
_NOT_READ = "the job does not read it: set its variables in env"


def apply(file: JobFile, script: Script, launch: Launch) -> list[str]:
    """Set the variables of the file; return lines for setup with those whose values the job finds."""
    name = launch.row.line.environment_file
    if not name or (script.request.nodes == 1 and not launch.has("--force-multi")) or launch.has("--no-ssh"):
        return []
    if not (writers := [node for node in script.tree.all("redirected_statement") if _writes(node, name)]):
        why = f"{launch.kind} hands the variables of such a file in the home or this directory to the ranks"
        file.hint(launch.line, name, f"{why}: {_NOT_READ}")
    lines: list[str] = []
    for writer in writers:
        found = list(_entries(writer))
        if None in found or (not found and not any(one.name in _WHOLE for one in commands(writer))):
            file.remarks.append(remark_on(writer, _NOT_READ))
        for variable, value, text in filter(None, found):
            if re.search(r"[$`\\]", value):
                own = value in (f"${variable}", f"${{{variable}}}")
                lines += [] if own else [f"export {variable}={text}"]
            else:
                file.set_variable(variable, value, writer.line)
    return list(dict.fromkeys(lines))


def _writes(statement: Node, name: str) -> bool:
    """Return whether a redirection of a statement itself writes the file."""
    found = (one for one in statement.all("file_redirect") if one.around("redirected_statement") is statement)
    return any((target_of(one) or "").endswith(name) for one in found)


def _entries(statement: Node) -> Iterator[tuple[str, str, str] | None]:
    """Yield the name, the value and its word of each printed variable; None for what is not read."""
    if (body := next(statement.all("heredoc_body"), None)) is not None:
        literal = next(statement.all("heredoc_start")).text[0] in "\"'\\"
        texts = [f"'{line}'" if literal else f'"{line}"' for line in body.text.split("\n") if line.strip()]
    else:
        calls = [one for one in commands(statement) if one.name in ("echo", "printf")]
        texts = [word.text for call in calls for word in call.arguments]
    for text in texts:
        quote = text[0] if text[0] in "\"'" else ""
        match = _ENTRY.fullmatch((text[1:-1] if quote else text).strip())
        if match is None or re.search("[%\"']", match[2]) or (quote == "'" and "$" in match[2]):
            yield None  # a format, and what the shell of a node reads: a variable, quotes
        else:
            yield match[1], match[2], f"{quote}{match[2]}{quote}"
