"""Application of the edits of findings, and the difference that they make."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from jobgen.check.checker import Finding
from jobgen.errors import visible
from jobgen.script.script import Edit
from jobgen.secrets import masked

_ROUNDS = 20  # an edit may move another finding's place, or show a new one


def fixed(source: bytes, find: Callable[[bytes], Sequence[Finding]]) -> bytes:
    """Return a script with all edits of the findings that ``find`` returns for it, until none has an edit."""
    for _ in range(_ROUNDS):
        edits = [edit for found in find(source) for edit in found.edits]
        if b"\r\n" in source:  # the tree is that of the script without them
            edits = [edit for edit in edits if edit.end - edit.start == len(source)]
        new = _applied(source, edits)
        if new == source:
            break
        source = new
    return source


def _applied(source: bytes, edits: Sequence[Edit]) -> bytes:
    """Apply these edits; of two that overlap the first, the other one is of the next round."""
    parts, end = [], 0
    for edit in sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end)):
        if edit.start >= end:
            parts += [source[end : edit.start], edit.text]
            end = edit.end
    return b"".join([*parts, source[end:]])


def difference(name: str, old: bytes, new: bytes) -> str:
    """Return the unified diff of a script and its new text, for a terminal: without secrets."""
    before, after = (
        text.decode("utf-8", "backslashreplace").splitlines(keepends=True) for text in (old, new)
    )
    lines = difflib.unified_diff(before, after, name, name)
    shown = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return "".join(visible(masked(line), kept="\n\t") for line in shown)
