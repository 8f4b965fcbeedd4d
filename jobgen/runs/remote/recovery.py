"""What is done at a host about an earlier submission: see submission.py for the directories of its tries."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from jobgen.errors import JobgenError
from jobgen.runs.remote.place import Place
from jobgen.runs.run_directory import PARTS

TRIES = ".submission"


class Remains(NamedTuple):
    """What a submission left at a host: the answer of its last command; None if no command ran, and none
    will."""

    answer: str | None


def recover(place: Place) -> Remains:
    """Keep any further command of a submission from running, and return what the last one left.

    Raises:
        UnreachableError: the host does not answer.
    """
    script = f"""\
d={shlex.quote(place.directory)}/{TRIES}
umask 077; mkdir -p "$d" && cd "$d" || exit
n=1
while [ -d $n ]; do n=$((n + 1)); done
if [ -e $((n - 1))/recovered ]; then n=$((n - 1)); else mkdir $n && : > $n/recovered || exit; fi
while [ $n -gt 1 ]; do
  n=$((n - 1)); [ -e $n/recovered ] && continue
  echo ran; cat $n/answer; break
done
"""
    answer = place.host.run(script)
    if answer.status:
        raise JobgenError(f"{place.directory} at {place.host_name} cannot be written: {answer.err.strip()}")
    word, newline, text = answer.out.decode("utf-8", "replace").partition("\n")
    return Remains(text if newline and word == "ran" else None)


def remove(place: Place) -> None:
    """Remove the directory of a run that has no job.

    Raises:
        UnreachableError: the host does not answer.
    """
    place.host.run(f"rm -rf {shlex.quote(place.directory)}")


def remove_environment(place: Place, names: Sequence[str]) -> None:
    """Remove files with secrets of a run that is over."""
    files = " ".join(f"{part}{name}" for part in PARTS for name in names)
    place.host.run(f"cd {shlex.quote(place.directory)} && rm -f {files}")
