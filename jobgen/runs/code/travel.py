"""The way of the code to a host: a store of contents there, from which each run gets copies.

One script does all there, and may be repeated. Its input is an archive of the whole tree, in which a link to
its object of the store stands for each file, and of objects. It stores those that are whole, and makes the
folder ``code`` if no link is broken; otherwise it answers the broken ones, and is called again with their
objects. So the first call sends links only: for an unchanged tree it is the only one.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable
from typing import NamedTuple

from jobgen.errors import JobgenError, shown, visible
from jobgen.hosts.host import Host
from jobgen.runs.code.archive import Archive
from jobgen.runs.code.digests import Count, Progress
from jobgen.runs.code.selection import File, Selection, amount
from jobgen.runs.code.store_script import store_script

_CALLS = 4  # one more than needed: for a host without gzip, for the links, for the objects
# s, and bytes a second: ssh itself finds that a connection is dead; this is for a host that hangs.
_PATIENCE, _SLOWEST = 1800, 10_000
_BLOCK = 4096  # bytes; the disk space of a file is a multiple of it


class Sent(NamedTuple):
    """What has travelled: the folder of ``code`` in which the program starts (``.``: itself), the bytes that
    were sent, and the files of the code with the bytes in them."""

    start: str
    sent: int
    files: int
    size: int


def travel(host: Host, runs: str, directory: str, code: Selection, progress: Progress | None = None) -> Sent:
    """Make ``code`` in the directory of a run on a host, whose folder of all runs is ``runs``.

    ``progress`` counts KiB. What has arrived whole when the connection breaks stays in the store; another
    call completes it.

    Raises:
        JobgenError: the host cannot store it, or a file has changed meanwhile.
        UnreachableError: the connection has ended.
    """
    progress = progress or Count()
    lacking: list[File] = []
    sent, compressed = 0, True
    for _ in range(_CALLS):
        size = sum(file.size for file in lacking)
        progress.done, progress.total = 0, size >> 10
        archive = Archive(code, lacking, compressed, progress)
        need = _space(code.files) >> 10
        script = store_script(runs, directory, secrets.token_hex(8), need, compressed)
        with archive.reader() as source:
            answer = host.run(script, source, _PATIENCE + size / _SLOWEST)
        sent += archive.count
        if answer.out == b"made\n":
            return Sent(code.start, sent, len(code.files), code.size)
        if answer.out == b"plain\n":
            compressed = False
            continue
        lacking = _lacking(host.name, directory, code, answer.out, lacking)
    raise JobgenError(f"{host.name} loses what it stores in {shown(runs)}/.store: {len(lacking)} files")


def _lacking(name: str, directory: str, code: Selection, out: bytes, sent: Iterable[File]) -> list[File]:
    """Return the files whose contents the host lacks, each once; an error if it cannot store them."""
    match = re.fullmatch(rb"(?:failed (\w+)\n)?(?:free (\d+)\n)?(.*)", out, re.DOTALL)
    assert match is not None
    step, free, rest = match.groups()
    by_path = {os.fsencode(f"lacking tree/{file.path}"): file for file in code.files}
    files = () if step else (by_path[path] for path in rest.split(b"\0") if path in by_path)
    lacking = list({file.sha256: file for file in files}.values())
    need = _space(code.files) + _space(lacking or sent)
    text = visible(rest.decode(errors="replace").strip().rpartition("\n")[2])
    short = free is not None and int(free) << 10 < need
    if (step == b"space" or short or re.search(r"(?i)space|quota", text)) if step else short:
        has = f", and {amount(int(free) << 10)} are free" if free is not None else ""
        why = f" ({text})" if step and text else ""
        where = shown(directory)
        raise JobgenError(
            f"{name} has too little space for the code: {amount(need)} are needed in {where}{has}{why}"
        )
    if step or not lacking:
        raise JobgenError(
            f"{name} cannot store the code in {shown(directory)}: {text or 'its answer is incomplete'}"
        )
    return lacking


def _space(files: Iterable[File]) -> int:
    """Return the disk space of files in bytes."""
    return sum(-(-file.size // _BLOCK) * _BLOCK for file in files)
