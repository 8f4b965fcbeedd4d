"""The runtime of a script of jobgen: the rules read what it does for the job part, and not its text."""

from __future__ import annotations

import hashlib
import re

from jobgen.rendering.runtime import MARK

_RUNTIME = re.compile(rb"(?m)^" + re.escape(MARK).encode() + rb"\S+, SHA-256 (\w+) ========\n")
_FUNCTION = re.compile(rb"(?m)^(\w+)\(\) \{")
# What a file of the runtime does besides the calls of the functions of the job part.
_STEPS = {
    "pack": b"launch &\nnode &",
    "pdsh": b"export DS_ENV_FILE=$job_dir/deepspeed_env",
}


def shortened(source: bytes) -> bytes:
    """Return a script with a few lines in the place of its runtime, if the checksum is that of the text.

    One with carriage returns stays whole: the fix of these replaces all lines.
    """
    mark = _RUNTIME.search(source)
    text = source[mark.end() :] if mark else b""
    if mark is None or b"\r\n" in source or hashlib.sha256(text).hexdigest().encode() != mark[1]:
        return source
    names = sorted(set(re.findall(rb"\bjob_[a-z]\w*", text)))
    calls = _FUNCTION.findall(source, 0, mark.start())
    steps = [code for file, code in _STEPS.items() if b"# ---- %s.sh" % file.encode() in text]
    lines = [b"read -r " + b" ".join(names), b'cd "$job_parent"', *calls, *steps, b""]
    return source[: mark.end()] + b"\n".join(lines)
