"""Commands that change to another directory, whichever the job starts in."""

from __future__ import annotations

import re

from jobgen.script.commands import Command
from jobgen.script.script import Script

_ABSOLUTE = re.compile(r"[\"']*[/~$]")
_VARIABLE = re.compile(r"\"?\$\{?([A-Za-z_]\w*)")


def is_absolute(script: Script, command: Command) -> bool:
    """Return whether ``cd`` changes to a directory that does not depend on the current one.

    Variables that the script does not set have absolute paths.
    """
    words = [one for one in command.arguments if not one.text.startswith("-")]
    return not words or _absolute(script, script.constants.value(words[0]) or words[0].text, ())


def _absolute(script: Script, text: str, seen: tuple[str, ...]) -> bool:
    name = match[1] if (match := _VARIABLE.match(text)) else ""
    if name in seen or not name:
        return bool(_ABSOLUTE.match(text)) and not re.match(r"\"?\$\(", text)
    values = script.values.get(name, ())
    return all(_absolute(script, one.text, (*seen, name)) for one in values)
