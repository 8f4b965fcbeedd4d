"""A file of hosts, with the slots of each."""

from __future__ import annotations

import re

from jobgen.errors import shown
from jobgen.values.parsers import path
from jobgen.values.text_files import read_text

Hosts = tuple[tuple[str, int], ...]  # each with its slots; 0 if the file names none


_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}"
_IPV6 = r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*"
_HOST = rf"{_NAME}|{_IPV6}(?!\S)|\[{_IPV6}\]"
_SLOTS = r"\s+slots\s*=\s*(\d{1,4})(?:\s+max[_-]slots\s*=\s*\d+)?|[:*](\d{1,4})"
_LINE = rf"({_HOST})(?:{_SLOTS})?"


def hosts(text: str) -> Hosts:
    """Return the hosts in a file of lines ``HOST``, ``HOST slots=N``, ``HOST:N`` or ``HOST*N``. A host may be
    an IPv6 address, in brackets before ``:N`` and ``*N``.

    A host that is repeated has as many slots, as in the node file of PBS. ``#`` begins a comment.
    """
    try:
        content = read_text(path(text), "surrogateescape")
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    lines = [line.partition("#")[0].strip() for line in content.split("\n")]
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
    name = match and _canonical(match[1])
    count = match and (match[2] or match[3])
    if not match or not name or (count and not int(count)):
        raise ValueError(f"line {number} must be HOST, HOST slots=N, HOST:N or HOST*N, not {shown(line)}")
    return name, int(count or 0)


def _canonical(host: str) -> str:
    """Return the name of a host, or its IPv6 address as the system prints it; empty if it is none."""
    if ":" not in host:
        return host
    import ipaddress  # late: few files have addresses

    try:
        return str(ipaddress.IPv6Address(host.strip("[]")))
    except ValueError:
        return ""
