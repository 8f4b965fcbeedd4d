"""The preflight of one rank: its files, its time limits, and its exits. Does not import torch."""

import contextlib
import json
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from .. import atomic, nodefiles, ranks, report
from ..errors import BAD_HOSTS, CommonMistake
from . import judge, table
from .judge import Finding, JobRequest

FOLDER, NODES, RESULT, BAD = "preflight", "nodes", "result.json", "bad-hosts"
# Deadlines, as fractions of the time limit: of rank 0's wait for ranks that have written nothing; of a rank's
# search for rank 0; of rank 0's wait for slow ranks (cold nodes take long to import torch); of the
# all-reduce; of rank 0's wait for its results.
GATHER, CONNECT, SLOW, REDUCE, LAST = 0.5, 0.6, 0.7, 0.9, 0.95
GRACE = 5.0  # seconds by which the other ranks outlive rank 0, which reports the result
POLL = 0.1
LOOKS = 10  # pause before rank 0 reads all files again, in multiples of the time of a reading
FIRST = "started"


@dataclass
class Visit:
    """The state of the preflight on this rank: job, results (on rank 0: of all ranks), and time limit."""

    folder: Path
    file: Path
    job: JobRequest
    facts: dict[str, Any]
    budget: float
    start: float
    findings: list[Finding] = field(default_factory=list)
    views: dict[str, Any] = field(default_factory=dict)
    sums: dict[int, Any] = field(default_factory=dict)
    server: socket.socket | None = None

    @property
    def rank(self) -> int:
        return int(self.facts["rank"])

    @property
    def host(self) -> str:
        return str(self.facts["host"])

    @property
    def failed(self) -> bool:
        return any(finding.failed for finding in self.findings)

    def until(self, part: float) -> float:
        return self.start + part * self.budget

    def phase(self, name: str, **more: Any) -> None:
        """Append the phase of this rank, and its new results, to the file of its node."""
        self.facts |= {"phase": name, **more}
        news = {"rank": self.rank, "phase": name, "problems": self.facts["problems"], **more}
        nodefiles.append(self.file, json.dumps(news) + "\n")

    def words(self) -> dict[int, dict[str, Any]]:
        """Return everything that the ranks have written, by rank."""
        records: dict[int, dict[str, Any]] = {}
        for file in nodefiles.files(self.folder / NODES):
            for news in nodefiles.objects(file):
                old = {} if news["phase"] == FIRST else records.get(news["rank"], {})
                records[news["rank"]] = old | news
        return records

    def present(self) -> set[int]:
        """Return the ranks that have written anything."""
        return _present(nodefiles.files(self.folder / NODES))

    def has_rank_0(self) -> bool:
        return 0 in _present(nodefiles.entries(self.folder / NODES / "0"))

    def leads_host(self, local_rank: int) -> bool:
        """Return whether this is the first rank of its host, which does the tests of the host."""
        slots = self.job.slots
        if self.job.world_size in (None, len(slots)) and self.rank < len(slots):
            return slots.index(self.host) == self.rank
        return local_rank == 0


def _present(files: Iterable[Path]) -> set[int]:
    result: set[int] = set()
    for file in files:
        with contextlib.suppress(OSError):
            result |= {int(rank) for rank in re.findall(rb'(?m)^\{"rank": (\d+),', file.read_bytes())}
    return result


def begin(env: Mapping[str, str], start: float) -> Visit:
    """Write the first line of this rank, before anything can fail or wait, and start its time limit.

    Raise CommonMistake for an error in the environment.
    """
    if not env.get("JOBGEN_RUN_DIR"):
        raise CommonMistake("JOBGEN_RUN_DIR is not set: preflight writes its results there")
    directory = Path(env["JOBGEN_RUN_DIR"]).absolute()
    hostfile = directory / "hostfile"
    text = hostfile.read_text(encoding="utf-8") if hostfile.is_file() else ""
    job = JobRequest(judge.read_hostfile(text), _number(env, "JOBGEN_WORLD_SIZE", None))
    budget = float(_number(env, "JOBGEN_PREFLIGHT_TIMEOUT", 60) or 60)
    rank, here = ranks.guess(env) or 0, socket.gethostname()
    facts = {"rank": rank, "host": job.host(rank, here), "hostname": here, "problems": []}
    folder, name = directory / FOLDER, f"{facts['host']}.json"
    file = nodefiles.place(folder / NODES, rank, ranks.guess_local(env), name)
    visit = Visit(folder, file, job, facts, budget, start)
    try:
        visit.folder.mkdir(parents=True, exist_ok=True)
        if rank == 0:
            for name in (RESULT, BAD):
                (visit.folder / name).unlink(missing_ok=True)
        visit.phase(FIRST, **facts, pid=os.getpid())
    except OSError as error:
        report.complain(f"preflight failed: {visit.host}: cannot write into {visit.folder}: {error.strerror}")
        leave()
    _limit(visit)
    return visit


def _number(env: Mapping[str, str], name: str, default: int | None) -> int | None:
    text = env.get(name, "").strip()
    if text and (not text.isdecimal() or int(text) < 1):
        raise CommonMistake(f"{name}={text!r} in the environment is not a whole number of at least 1")
    return int(text) if text else default


def _limit(visit: Visit) -> None:
    """End this process when its time is over, even if it hangs."""

    def over() -> None:
        report.complain(
            f"preflight failed: rank {visit.rank} on {visit.host} was not done after {visit.budget:g} s "
            f"(JOBGEN_PREFLIGHT_TIMEOUT), but {visit.facts['phase']}"
        )
        leave()

    rest = max(0.1, visit.until(1) + (GRACE if visit.rank else 0) - time.monotonic())
    timer = threading.Timer(rest, over)
    timer.daemon = True
    timer.start()
    # If C code blocks Python's threads, the kernel ends the process a little later.
    signal.alarm(int(rest + 2 * GRACE))


def give_up(visit: Visit, problem: str, check: str, **more: Any) -> NoReturn:
    """Report a problem and exit before the other ranks.

    Most launchers end all ranks when one exits, so this rank first waits for the result of rank 0. If rank 0
    cannot report, this rank writes its own results.
    """
    visit.facts["problems"].append(problem)
    visit.phase("gave up", gone=True, **more)
    if visit.rank == 0:
        report.complain(f"preflight failed: {visit.host}: {problem}")
        visit.findings.append(Finding(visit.host, check, True, problem))
        write_result(visit, [])
        leave()
    has_rank_0, pause = False, POLL + len(visit.job.slots) / 10_000  # all ranks may wait here at once
    while (now := time.monotonic()) < visit.until(SLOW) + GRACE:
        if RESULT in os.listdir(visit.folder):
            leave()
        has_rank_0 = has_rank_0 or (now > visit.until(GATHER) and visit.has_rank_0())
        if now > visit.until(GATHER) and not has_rank_0:
            break
        time.sleep(pause)
    host, text = visit.host, problem
    if not has_rank_0:
        host, text = visit.job.host(0, host), f"rank 0 never started: {problem}"
    report.complain(f"preflight failed: {host}: {text}")
    with open(visit.folder / BAD, "a", encoding="utf-8") as stream:
        stream.write(f"{host}\t{text}\n")
    leave()


def write_result(visit: Visit, rows: Sequence[Mapping[str, str]]) -> None:
    """Write bad-hosts, then result.json. The latter allows the ranks that gave up to exit."""
    bad = judge.bad_hosts(visit.findings)
    if visit.failed:
        atomic.write_text(
            visit.folder / BAD, "".join(f"{host}\t{' '.join(text.split())}\n" for host, text in bad.items())
        )
    result = {
        "state": "failed" if visit.failed else "passed",
        "seconds": round(time.monotonic() - visit.start, 3),
        "limit": visit.budget,
        "bad_hosts": bad,
        "findings": [finding._asdict() for finding in visit.findings],
        "hosts": list(rows),
        "seen": visit.views,
        "all_reduce": list(visit.sums.values()),
    }
    # With indent, json does not use its C code, which is slow for thousands of hosts.
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in result.items())
    atomic.write_text(visit.folder / RESULT, f"{{\n{lines}\n}}\n")


def print_result(visit: Visit, rows: Sequence[Mapping[str, str]], world_size: int) -> None:
    """Print the table, the notes and the result.

    All is on standard output: when srun ends the other ranks, it may lose what is on standard error.
    """
    for line in table.lines(table.short(rows)):
        print(line)
    for text in reasons(finding for finding in visit.findings if not finding.failed):
        print(f"note: {text}")
    seconds = time.monotonic() - visit.start
    if not visit.failed:
        print(f"preflight passed: {len(rows)} host(s), {world_size} rank(s), in {seconds:.1f} s", flush=True)
        return
    failures = reasons(finding for finding in visit.findings if finding.failed)
    print(f"preflight failed in {seconds:.1f} s: {'; '.join(failures)}", flush=True)


def reasons(findings: Iterable[Finding]) -> list[str]:
    """Return the texts of the findings. A text that several hosts have in common is returned once."""
    by_text: dict[str, list[str]] = {}
    for host, _, _, text in findings:
        by_text.setdefault(text, []).append(host or "")
    return [f"{judge.some(hosts)}: {text}" if all(hosts) else text for text, hosts in by_text.items()]


def leave() -> NoReturn:
    """Exit at once with BAD_HOSTS: Python's own shutdown would wait for threads that wait for other ranks."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(BAD_HOSTS)
