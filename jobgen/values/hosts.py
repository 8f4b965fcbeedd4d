"""A file of hosts, with the slots of each."""

from __future__ import annotations

import re

from jobgen.errors import shown
from jobgen.values.parsers import path

Hosts = tuple[tuple[str, int], ...]  # each with its slots; 0 if the file names none


_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}"


_LINE = rf"({_NAME})(?:\s+slots\s*=\s*(\d{{1,4}})(?:\s+max[_-]slots\s*=\s*\d+)?|[:*](\d{{1,4}}))?"


def hosts(text: str) -> Hosts:
    """Return the hosts in a file of lines ``HOST``, ``HOST slots=N``, ``HOST:N`` or ``HOST*N``.

    A host that is repeated has as many slots, as in the node file of PBS. ``#`` begins a comment.
    """
    try:
        with open(path(text), encoding="utf-8-sig", errors="surrogateescape") as file:
            lines = [line.partition("#")[0].strip() for line in file]
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    read = [(number, *_host(number, line)) for number, line in enumerate(lines, 1) if line]
    numbered = next((number for number, _, slots in read if slots), 0)
    plain = next((number for number, _, slots in read if not slots), 0)
    if numbered and plain:
        raise ValueError(f"line {plain} has no number of slots, but line {numbered} has")
    found: dict[str, int] = {}
    for _, host, slots in read:
        found[host] = found.get(host, 0) + (slots or 1)
    has_slots = numbered or len(found) < len(read)
    return tuple((host, slots if has_slots else 0) for host, slots in found.items())


def _host(number: int, line: str) -> tuple[str, int]:
    """Return the host in a line and its slots, 0 without."""
    match = re.fullmatch(_LINE, line, re.ASCII)
    count = match and (match[2] or match[3])
    if not match or (count and not int(count)):
        raise ValueError(f"line {number} must be HOST, HOST slots=N, HOST:N or HOST*N, not {shown(line)}")
    return match[1], int(count or 0)
