"""The failures of a run: ranks with the ends of their logs, and hosts."""

from __future__ import annotations

from typing import NamedTuple

from jobgen.runs import node_files, run_directory
from jobgen.runs.node_files import Rank
from jobgen.runs.regular_file import text
from jobgen.runs.remote import mirror
from jobgen.runs.run_directory import Attempt, RunRecord, as_object
from jobgen.secrets import masked

# The most ranks and logs of an attempt (the first failures explain the most); characters of each log.
_RANKS, _LOGS, _LETTERS = 200, 4, 4000


class RankFailure(NamedTuple):
    """A rank that failed in an attempt. The first ranks have the end of their log and its file."""

    attempt: int
    rank: int
    host: str
    status: int | None
    meaning: str
    log: str
    file: str


class Failures(NamedTuple):
    """All failures; ``more`` counts ranks that are not in ``ranks``, ``stacks`` are files of a hang."""

    ranks: tuple[RankFailure, ...]
    more: int
    hosts: tuple[tuple[str, str], ...]
    preflight: tuple[str, ...]
    stacks: tuple[str, ...]


def failures(run: RunRecord, training: bool) -> Failures:
    failed = [(attempt, run_directory.failed_ranks(attempt)) for attempt in run.attempts]
    found = [
        _failed(attempt, rank, training, i)
        for attempt, ranks in failed
        for i, rank in enumerate(ranks[:_RANKS])
    ]
    return Failures(
        tuple(found),
        sum(len(ranks) for _, ranks in failed) - len(found),
        run.bad_hosts,
        tuple(_preflight(run)),
        tuple(sorted(str(file.relative_to(run.directory)) for file in run.directory.glob("stacks/*/*.txt"))),
    )


def _failed(attempt: Attempt, rank: Rank, training: bool, place: int) -> RankFailure:
    meaning = "recorded no status" if rank.status is None else run_directory.meaning(rank.status, training)
    log = node_files.log_of(attempt.directory, rank.number, rank.host) if place < _LOGS else None
    if log:
        mirror.try_end(log.path)
    end, file = (node_files.tail(log)[-_LETTERS:], log.path) if log else ("", None)
    where = str(file.relative_to(attempt.directory.parent)) if file else ""
    return RankFailure(attempt.number, rank.number, rank.host, rank.status, meaning, masked(end), where)


def _preflight(run: RunRecord) -> list[str]:
    findings = as_object(text(run.directory / "preflight/result.json")).get("findings")
    rows = [row for row in findings if isinstance(row, dict)] if isinstance(findings, list) else []
    return [
        ": ".join(str(row[key]) for key in ("host", "check", "text") if row.get(key))
        for row in rows
        if row.get("failed")
    ]
