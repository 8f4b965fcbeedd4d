"""Submission of a run at a host: its files travel, and the scheduler's command runs there once.

The connection may break at any byte. A try of the command has a directory, ``.submission/N``, that mkdir
makes, which is atomic on every file system and for several login nodes: only who makes it may run the
command. The output and the status of the command are in ``.submission/N/answer``. To recover a submission is
to make the next directory: then no command of an earlier connection can run any more.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import tarfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from jobgen.errors import JobgenError, shown
from jobgen.hosts.calls import Done, NotStartedError, SchedulerError, complaint
from jobgen.runs import intent
from jobgen.runs.code.digests import Progress
from jobgen.runs.code.selection import Selection
from jobgen.runs.code.travel import travel
from jobgen.runs.remote.place import Place, host_named
from jobgen.runs.remote.recovery import TRIES, remove
from jobgen.runs.run_directory import START
from jobgen.runs.run_files import mode_of
from jobgen.sites.host_file import path_of, read

CODE = "code"  # the folder that `travel` makes in the directory of a run
_MADE_BY_OTHER = 75
_NO_COMMAND = 127
_UNFIT = re.compile(r"[%\\\x00-\x1f\x7f]")
_PATIENCE = 3600  # s; a command of a scheduler that hangs is the user's to interrupt


def folder_of_runs(host: str, command: str) -> str:
    """Make the folder of runs at a host, and return its path without symbolic links: as Slurm records it.

    Raises:
        JobgenError: it cannot be made.
        SchedulerError: the ``command`` of the scheduler is not there.
        UnreachableError: the host does not answer.
    """
    folder = shlex.quote(read(host).runs)
    has = f"command -v {command} > /dev/null || exit {_NO_COMMAND}"
    answer = host_named(host).run(f"{has}; umask 077; mkdir -p {folder} && cd {folder} && [ -w . ] && pwd -P")
    if answer.status == _NO_COMMAND:
        again = f"jobgen host add {host} asks it for its PATH again"
        raise SchedulerError(f"cannot find {command} on the PATH of {host}: {again}")
    path = answer.out.decode("utf-8", "surrogateescape").removesuffix("\n")
    if answer.status or not path.startswith("/"):
        why = complaint(Done(answer.status, "", answer.err))
        raise JobgenError(f"the folder of runs {folder} at {host} cannot be written: {why}")
    if _UNFIT.search(path):
        raise JobgenError(
            f"the folder of runs {shown(path)} at {host} has a % or \\, which Slurm replaces, or a control "
            f"character: name another as runs in {path_of(host)}"
        )
    return path


def send(
    place: Place,
    files: Mapping[str, bytes],
    group: bool,
    code: Selection | None,
    progress: Progress,
    links: Mapping[str, str],
) -> None:
    """Make the directory of a run at its host, with its files, its code, and ``links`` to folders there that
    exist.

    Raises:
        JobgenError: it cannot be made; nothing is left of it.
        UnreachableError: the host does not answer.
    """
    try:
        _send_files(place, files, group, code, links)
        if code:
            travel(place.host, os.path.dirname(place.directory), place.directory, code, progress)
    except BaseException:
        with suppress(JobgenError):
            remove(place)
        raise


def _send_files(
    place: Place, files: Mapping[str, bytes], group: bool, code: Selection | None, links: Mapping[str, str]
) -> None:
    directory = shlex.quote(place.directory)
    script = f"""\
umask {"027" if group else "077"}; mkdir {directory} && cd {directory} || exit
umask 077; tar xpf - && mkdir {TRIES} || exit
{"find . -type l ! -exec test -d {} ';' -exec rm -f {} +" if links else ""}
"""
    start = f"{place.directory}/{CODE}/{code.start}" if code else place.directory
    files = {**files, START: os.fsencode(f"{os.path.normpath(start)}\n")}
    answer = place.host.run(script, _archive(files, group, links))
    if answer.status:
        why = complaint(Done(answer.status, "", answer.err))
        raise JobgenError(f"{shown(place.directory)} at {place.host_name} cannot be written: {why}")


def _archive(files: Mapping[str, bytes], group: bool, links: Mapping[str, str]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            about.size, about.mode, about.mtime = len(content), mode_of(name, group), int(time.time())
            archive.addfile(about, io.BytesIO(content))
        for name, target in links.items():
            about = tarfile.TarInfo(name)
            about.type, about.linkname, about.mtime = tarfile.SYMTYPE, target, int(time.time())
            archive.addfile(about)
    return data.getvalue()


def run_once(place: Place, command: Sequence[str], number: int, handle: int) -> int:
    """Run the scheduler's command for the try with this number, unless it has run; write its output to the
    record of the submission, and return its status.

    Raises:
        NotStartedError: it has not run, and never will: the directory is gone, or the submission was
            recovered meanwhile.
        UnreachableError: it may have run.
    """
    script = f"""\
cd {shlex.quote(place.directory)} || exit {_MADE_BY_OTHER}
mkdir {TRIES}/{number} || exit {_MADE_BY_OTHER}
trap '' HUP
{shlex.join(command)} < /dev/null > {TRIES}/{number}/answer 2>&1; s=$?
printf '\\njobgen: status %d\\n' "$s" >> {TRIES}/{number}/answer
cat {TRIES}/{number}/answer
"""
    answer = place.host.run(script, patience=_PATIENCE)
    if answer.status == _MADE_BY_OTHER:
        why = complaint(Done(1, "", answer.err))
        raise NotStartedError(f"the submission at {place.host_name} was given up: {why}")
    output, status = intent.ended(answer.out.decode("utf-8", "replace"))
    os.write(handle, output.encode())
    return -1 if status is None else status
