"""One rank's preflight: its files, its time, and how it ends. No torch here."""

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

from .. import nodefiles, ranks, report
from ..errors import BAD_HOSTS, CommonMistake
from . import judge, table
from .judge import Finding, Job

FOLDER, NODES, RESULT, BAD = "preflight", "nodes", "result.json", "bad-hosts"
# As parts of the time there is, when: rank 0 stops waiting for ranks that left no word; a rank looking for
# rank 0; rank 0 waiting for slow ranks (cold nodes take long to import torch); the all-reduce must be over;
# rank 0 stops waiting for word of it.
GATHER, CONNECT, SLOW, REDUCE, LAST = 0.5, 0.6, 0.7, 0.9, 0.95
GRACE = 5.0  # seconds: by so much the other ranks outlive rank 0, which has the last word
POLL = 0.1
LOOKS = 10  # rank 0 reads the files of all ranks again after so many times the time that this took
STARTED = "started"


@dataclass
class Visit:
    """What it is about, what this rank has found so far (rank 0: of all), and how much time it has."""

    folder: Path
    file: Path
    job: Job
    facts: dict[str, Any]
    budget: float
    began: float
    findings: list[Finding] = field(default_factory=list)
    seen: dict[str, Any] = field(default_factory=dict)
    reduced: dict[int, Any] = field(default_factory=dict)
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
        return self.began + part * self.budget

    def phase(self, name: str, **more: Any) -> None:
        """Add to the file of this rank's node where the rank is, and what it has found since."""
        self.facts |= {"phase": name, **more}
        news = {"rank": self.rank, "phase": name, "problems": self.facts["problems"], **more}
        nodefiles.append(self.file, json.dumps(news) + "\n")

    def words(self) -> dict[int, dict[str, Any]]:
        """What all ranks have written, by rank."""
        said: dict[int, dict[str, Any]] = {}
        for file in nodefiles.listed(self.folder / NODES):
            for news in nodefiles.objects(file):
                old = {} if news["phase"] == STARTED else said.get(news["rank"], {})
                said[news["rank"]] = old | news
        return said

    def present(self) -> set[int]:
        """The ranks that have written anything."""
        return _present(nodefiles.listed(self.folder / NODES))

    def rank_0_came(self) -> bool:
        return 0 in _present(nodefiles.inside(self.folder / NODES / "0"))

    def leads_host(self, local_rank: int) -> bool:
        """Whether this is the first rank of its host, which speaks for it."""
        slots = self.job.slots
        if self.job.world_size in (None, len(slots)) and self.rank < len(slots):
            return slots.index(self.host) == self.rank
        return local_rank == 0


def _present(files: Iterable[Path]) -> set[int]:
    found: set[int] = set()
    for file in files:
        with contextlib.suppress(OSError):
            found |= {int(rank) for rank in re.findall(rb'(?m)^\{"rank": (\d+),', file.read_bytes())}
    return found


def begin(env: Mapping[str, str], began: float) -> Visit:
    """Say that this rank is there, before anything that could fail or wait, and limit its time."""
    if not env.get("JOBGEN_RUN_DIR"):
        raise CommonMistake("JOBGEN_RUN_DIR is not set: preflight writes what it finds into that directory")
    directory = Path(env["JOBGEN_RUN_DIR"]).absolute()
    hostfile = directory / "hostfile"
    text = hostfile.read_text(encoding="utf-8") if hostfile.is_file() else ""
    job = Job(judge.read_hostfile(text), _number(env, "JOBGEN_WORLD_SIZE", None))
    budget = float(_number(env, "JOBGEN_PREFLIGHT_TIMEOUT", 60) or 60)
    rank, here = ranks.guess(env) or 0, socket.gethostname()
    facts = {"rank": rank, "host": job.host(rank, here), "hostname": here, "problems": []}
    folder, name = directory / FOLDER, f"{facts['host']}.json"
    file = nodefiles.place(folder / NODES, rank, ranks.guess_local(env), name)
    visit = Visit(folder, file, job, facts, budget, began)
    try:
        visit.folder.mkdir(parents=True, exist_ok=True)
        if rank == 0:
            for name in (RESULT, BAD):
                (visit.folder / name).unlink(missing_ok=True)
        visit.phase(STARTED, **facts, pid=os.getpid())
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
    """End this process when the time is over, whatever it waits for."""

    def over() -> None:
        report.complain(
            f"preflight failed: rank {visit.rank} on {visit.host} was not done after {visit.budget:g} s "
            f"(JOBGEN_PREFLIGHT_TIMEOUT), but {visit.facts['phase']}"
        )
        leave()

    left = max(0.1, visit.until(1) + (GRACE if visit.rank else 0) - time.monotonic())
    timer = threading.Timer(left, over)
    timer.daemon = True
    timer.start()
    # Where C code does not let Python's threads run, the kernel ends the process a little later.
    signal.alarm(int(left + 2 * GRACE))


def give_up(visit: Visit, problem: str, check: str, **more: Any) -> NoReturn:
    """Leave before the others, but let rank 0 have the word first: most launchers end all ranks when one
    leaves. If rank 0 cannot have it, say what is known here."""
    visit.facts["problems"].append(problem)
    visit.phase("gave up", gone=True, **more)
    if visit.rank == 0:
        report.complain(f"preflight failed: {visit.host}: {problem}")
        visit.findings.append(Finding(visit.host, check, True, problem))
        write_result(visit, [])
        leave()
    came, pause = False, POLL + len(visit.job.slots) / 10_000  # all ranks may be here at once
    while (now := time.monotonic()) < visit.until(SLOW) + GRACE:
        if RESULT in os.listdir(visit.folder):
            leave()
        came = came or (now > visit.until(GATHER) and visit.rank_0_came())
        if now > visit.until(GATHER) and not came:
            break
        time.sleep(pause)
    host, text = visit.host, problem
    if not came:
        host, text = visit.job.host(0, host), f"rank 0 never came up: {problem}"
    report.complain(f"preflight failed: {host}: {text}")
    with open(visit.folder / BAD, "a", encoding="utf-8") as stream:
        stream.write(f"{host}\t{text}\n")
    leave()


def write_result(visit: Visit, rows: Sequence[Mapping[str, str]]) -> None:
    """bad-hosts, and then result.json, which tells the ranks that gave up that they may leave."""
    bad = judge.bad_hosts(visit.findings)
    if visit.failed:
        put(visit.folder / BAD, "".join(f"{host}\t{' '.join(text.split())}\n" for host, text in bad.items()))
    result = {
        "state": "failed" if visit.failed else "passed",
        "seconds": round(time.monotonic() - visit.began, 3),
        "limit": visit.budget,
        "bad_hosts": bad,
        "findings": [finding._asdict() for finding in visit.findings],
        "hosts": list(rows),
        "seen": visit.seen,
        "all_reduce": list(visit.reduced.values()),
    }
    # With indent, json does not use its C code, and some thousand hosts are many lines.
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in result.items())
    put(visit.folder / RESULT, f"{{\n{lines}\n}}\n")


def tell(visit: Visit, rows: Sequence[Mapping[str, str]], world_size: int) -> None:
    """The table, the notes and the verdict; a failure also on standard error."""
    for line in table.lines(table.short(rows)):
        print(line)
    for text in reasons(finding for finding in visit.findings if not finding.failed):
        print(f"note: {text}")
    seconds = time.monotonic() - visit.began
    if not visit.failed:
        print(f"preflight passed: {len(rows)} host(s), {world_size} rank(s), in {seconds:.1f} s", flush=True)
        return
    print(f"preflight failed in {seconds:.1f} s", flush=True)
    failures = reasons(finding for finding in visit.findings if finding.failed)
    report.complain(f"preflight failed: {'; '.join(failures)}")


def reasons(findings: Iterable[Finding]) -> list[str]:
    """What was found; what several hosts have alike is said once."""
    by_text: dict[str, list[str]] = {}
    for host, _, _, text in findings:
        by_text.setdefault(text, []).append(host or "")
    return [f"{judge.some(hosts)}: {text}" if all(hosts) else text for text, hosts in by_text.items()]


def put(file: Path, text: str) -> None:
    """The file with this text, whole or not at all, and on the disk."""
    draft = file.with_name(f".{file.name}.writing")
    with open(draft, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(draft, file)


def leave() -> NoReturn:
    """At once: Python's own shutdown would wait for threads and libraries that wait for other ranks."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(BAD_HOSTS)
