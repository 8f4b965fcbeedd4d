"""The scripts beside a script that its launchers, ssh and pbsdsh start on the nodes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.script.script import Script, Starter

_LARGEST = 100_000  # bytes of a script that another one starts
_DEEPEST = 3  # scripts that start each other
_MOST = 20  # scripts that one starts
_HERE = re.compile(
    r"(\./+|\$\{?(PWD|PBS_O_WORKDIR|SLURM_SUBMIT_DIR)\}?/+|\$\(pwd\)/+|`pwd`/+"
    r"|\$\(dirname [\"']?\$\{?(0|BASH_SOURCE(\[0\])?)\}?[\"']?\)/+)+"
)
_SHELL = re.compile(rb"#!\s*\S*(/|env\s+)(ba|da|z|k)?sh\b")
_DIRECTIVE = re.compile(rb"(?m)^#(SBATCH|PBS)\s")


def started(script: Script, depth: int = 1) -> Iterator[tuple[str, Script]]:
    """Yield the path, from the folder of the script, and the script of each file that it starts.

    Those that these start follow. A script with directives is left out: it is one of its own.
    """
    seen = {script.name}
    for call in script.programs[:_MOST] if script.folder is not None else ():
        name = os.path.normpath(_HERE.sub("", script.constants.text(call.file), count=1))
        path = script.path(name) or ""
        inside = not os.path.isabs(name) and not name.startswith("..")
        if not inside or name in seen or (source := _source(path)) is None:
            continue
        seen.add(name)
        starter = Starter(script, call)
        inner = Script(source, script.scheduler, script.folder, script.version, (), name, starter)
        yield name, inner
        if depth < _DEEPEST:
            yield from started(inner, depth + 1)


def _source(path: str) -> bytes | None:
    """Return the text of a file, if it is a script for a shell."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
            return None
        with open(path, "rb") as file:
            source = file.read()
    except (OSError, ValueError):
        return None
    shell = _SHELL.match(source) or (path.endswith((".sh", ".bash")) and not source.startswith(b"#!"))
    return source if shell and b"\0" not in source and not _DIRECTIVE.search(source) else None
