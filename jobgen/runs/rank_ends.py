"""The ends of the ranks of an attempt as they recorded them, for a job whose script was killed."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from jobgen.runs import node_files, regular_file
from jobgen.runs.exit_statuses import RESUMABLE
from jobgen.runs.remote import mirror
from jobgen.secrets import masked

_LINES, _LETTERS = 200, 300  # of the end of a log, and of the line with the error
_ERROR = re.compile(r"(\w+\.)*\w*(Error|Exception|Interrupt|Exit)\b")  # as Python ends a traceback


class RankEnds(NamedTuple):
    """The ends of the ranks in words, empty if no rank began; ``saved``: all that began can go on."""

    text: str
    saved: bool


def read(run: Path, attempt: int) -> RankEnds:
    """Return the ends of the ranks in an attempt of a run."""
    ranks = node_files.ranks(run / f"attempt-{attempt}")
    counted = Counter(rank.status for rank in ranks)
    if not counted:
        return RankEnds("", False)
    if len(counted) > 1:
        parts = (f"{count} {_end(status)}" for status, count in counted.most_common())
        return RankEnds(f"of {_number(len(ranks))} {', '.join(parts)}", counted.keys() == {0, RESUMABLE})
    [status] = counted
    who = "the rank" if len(ranks) == 1 else f"all {_number(len(ranks))}"
    began = "" if len(ranks) == _slots(run) else " that began"
    return RankEnds(f"{who}{began} {_end(status)}", status == RESUMABLE)


def first_failure(run: Path, attempt: int) -> str:
    """Return the rank of an attempt that failed first, with the error in its log; empty if no rank failed."""
    folder = run / f"attempt-{attempt}"
    failed = [one for one in node_files.ranks(folder) if one.status not in (None, 0, RESUMABLE)]
    if not failed:
        return ""
    first = min(failed, key=lambda one: one.ended or math.inf)
    log = node_files.log_of(folder, first.number, first.host)
    if log:
        mirror.try_end(log.path)
    lines = [line.strip() for line in node_files.tail(log, _LINES).split("\n") if line.strip()] if log else []
    errors = [line for line in lines if _ERROR.match(line)]
    error = (errors or lines or [""])[-1]
    text = f": {masked(error[:_LETTERS])}" if error else ""
    return f"rank {first.number} on {first.host} failed first{text}"


def _number(ranks: int) -> str:
    return f"{ranks} rank{'' if ranks == 1 else 's'}"


def _end(status: int | None) -> str:
    if status is None:
        return "recorded no end"
    return {0: "finished (status 0)", RESUMABLE: f"saved (status {RESUMABLE})"}.get(
        status, f"ended with status {status}"
    )


def _slots(run: Path) -> int:
    """Return the number of ranks of all hosts."""
    lines = regular_file.text(run / "hostfile")
    return sum(map(int, re.findall(r" slots=([0-9]{1,9})$", lines, re.MULTILINE)))
