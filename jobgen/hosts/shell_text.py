"""Text for the shells of other machines."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

_PLAIN = re.compile(rb"[A-Za-z0-9 _./:=,@+-]")


def for_any_shell(script: str) -> str:
    """Return a command that runs a script of POSIX sh, for a login shell of any kind.

    sshd passes a command to the login shell. sh, csh and fish read quotes, backslashes, ``!`` and line ends
    in different ways: so all characters with a meaning are octal, and only sh reads them.
    """
    code = "".join(
        chr(byte) if _PLAIN.fullmatch(bytes([byte])) else f"\\0{byte:03o}"
        for byte in script.encode("utf-8", "surrogateescape")
    )
    return f'exec /bin/sh -c \'eval "$(printf %b "{code}")"\''


def assignments(variables: Mapping[str, str]) -> str:
    """Return lines of sh that export variables."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def framed(script: str, mark: str) -> str:
    """Return a script with marks before and after what it prints, which the login shell's own files cannot
    print: a banner before, and nothing if the connection breaks."""
    begin = f"printf '\\n%s begin\\n' {mark}"
    return f"{begin} >&2; {begin}\n(\n{script}\n)\nprintf '\\n%s end %d\\n' {mark} \"$?\"\n"


def unframed(out: bytes, mark: str) -> tuple[bytes, int] | None:
    """Return what lies between the marks, and the exit status; None if a mark is missing."""
    rest = out.rpartition(b"\n%s begin\n" % mark.encode())[2]  # the last: both streams may be one
    found = re.fullmatch(rb"(.*)\n%s end (\d+)\n.*" % mark.encode(), rest, re.DOTALL)
    return (found[1], int(found[2])) if found else None


def has_begun(out: bytes, mark: str) -> bool:
    """Return whether a script has begun, by what it printed."""
    return b"\n%s begin\n" % mark.encode() in out


def after_mark(err: bytes, mark: str) -> str:
    """Return what a script printed on standard error, without what the login shell printed before."""
    return err.rpartition(b"\n%s begin\n" % mark.encode())[2].decode("utf-8", "surrogateescape")
