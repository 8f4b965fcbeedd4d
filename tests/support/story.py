"""One job of the matrix, from its script to what is left of it."""

from __future__ import annotations

import os
import re
import shlex
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support import jobs, warm_python
from support.cluster import Cluster, Job, ended
from support.colossalai import colossalai_python
from support.matrix import ALL, ENDS, LAUNCHERS, Cell, End
from support.mpich import mpich_bin
from support.pbs import PbsCluster
from support.processes import Process, gone, kill
from support.waiting import wait_until

PROGRAM = Path(__file__).with_name("cell.sh")
TWO_NODES = ("--nodes", "2", "--accelerator", "cpu", "--cpus-per-rank", "1")
AnyCluster = Cluster | PbsCluster


@dataclass(frozen=True)
class Outcome:
    """What a user finds when the job is over."""

    job: Job
    folder: Path
    host: str
    """That of the last rank."""
    began: int
    """So many ranks of the first attempt."""
    saved: tuple[int, ...]
    """These ranks of the first attempt."""
    asked: int | None
    """The seconds from the beginning of the script until the first rank was asked to save."""
    attempts: int
    bad: str
    """The file bad-hosts."""
    left: tuple[Process, ...]
    seconds: float
    """From the act, or from the start, to the end of the job."""

    def __str__(self) -> str:
        lines = [line for line in self.job.output.splitlines() if line.startswith("jobgen: ")]
        facts = f"{self.job.state} {self.job.exit_code} after {self.seconds:.0f} s, last rank on {self.host}, saved by {self.saved}, asked after {self.asked} s"
        return "\n".join([facts, str(self.folder), *lines, *(f"left: {process}" for process in self.left)])


def path_for(launcher: str, folder: Path) -> str:
    """The PATH of a job: it decides whose mpirun is the first."""
    if launcher == "mpirun4":
        return jobs.debian_path(folder / "debian")
    first = []
    if launcher == "mpich":  # not the python beside it
        first = [str(folder / "mpich")]
        (folder / "mpich").mkdir()
        for name in ("mpirun", "hydra_pmi_proxy"):
            (folder / "mpich" / name).symlink_to(mpich_bin() / name)
    elif launcher == "colossalai":
        first = [str(colossalai_python().parent)]
    return os.pathsep.join([*first, *warm_python.folders(), "/usr/local/bin", "/usr/bin", "/bin"])


def script_of(cluster: AnyCluster, folder: Path, cell: Cell, program: str, *options: str) -> str:
    """The rendered job, which writes into ``folder``."""
    (folder / "path.sh").write_text(
        f"export PATH={shlex.quote(path_for(cell.launcher, folder))}:$PATH\n"
        f"export OMPI_MCA_orte_tmpdir_base={folder}\n"  # Open MPI 4: see docs/survival.md
    )
    seen = folder / "seen"
    seen.mkdir()
    seen.chmod(0o777)
    return jobs.render(
        *(*cluster.words, *TWO_NODES, "--ranks-per-node", (cell.ranks + 1) // 2),
        *("--no-preflight", "--walltime", "15m", *LAUNCHERS[cell.launcher]),
        *(
            "--source",
            folder / "path.sh",
            *jobs.env_options({"CELL_PLACE": seen, "CELL_ACT": program}),
            *options,
        ),
        program=["bash", PROGRAM],
    )


def play(cluster: AnyCluster, cell: Cell) -> Outcome:
    """Run the job of a cell until it is over and its processes are gone, or should be."""
    return play_end(cluster, cell, ENDS[cell.end])


def play_end(cluster: AnyCluster, cell: Cell, end: End) -> Outcome:
    folder = cluster.folder(cell.name)
    script = script_of(cluster, folder, cell, end.program, *end.options_of(cell))
    begin = time.monotonic()
    job = cluster.submit(script, folder)
    try:
        if end.act:
            all_began(cluster, job, folder, cell.ranks)
            begin = time.monotonic()
            done = ACTS[end.act](cluster, job, folder)
        else:
            done = finish(cluster, job)
        seconds = time.monotonic() - begin
        left = gone(folder, end.expected_of(cell).patience)
    finally:
        clean(cluster, job, folder)
    return outcome(done, folder, left, seconds, cell.ranks)


def finish(cluster: AnyCluster, job: str) -> Job:
    return ended(cluster, job, 400) if isinstance(cluster, Cluster) else cluster.wait(job, 400)


def seen(folder: Path, name: str, attempt: int = 1) -> list[Path]:
    return sorted((folder / "seen").glob(f"{name}-{attempt}-*"))


def all_began(cluster: AnyCluster, job: str, folder: Path, ranks: int) -> None:
    """Wait until all ranks have; in vain when the job ends before."""
    for _ in range(75):
        if wait_until(lambda: len(seen(folder, "began")) == ranks, 4):
            return
        if cluster.ended(job):
            break
    raise AssertionError(f"not all ranks have begun: {finish(cluster, job)}")


def host_of_the_last(folder: Path, ranks: int) -> str:
    files = seen(folder, "began")
    return files[-1].read_text().split()[0] if len(files) == ranks else ""


# ---------------------------------------------------------------------------------- what is done from outside


def cancel(cluster: AnyCluster, job: str, folder: Path) -> Job:
    run = jobs.run_dir(folder / "runs")
    cluster.exec("head", [sys.executable, "-m", "jobgen", "cancel", run], cwd=folder)
    return finish(cluster, job)


def delete(cluster: AnyCluster, job: str, folder: Path) -> Job:
    cluster.cancel(job)
    return finish(cluster, job)


def purge(cluster: AnyCluster, job: str, folder: Path) -> Job:
    cluster.purge(job)
    return finish(cluster, job)


def requeue(cluster: AnyCluster, job: str, folder: Path) -> Job:
    """A second attempt begins, and ends well."""
    cluster.requeue(job)
    done = finish(cluster, job)
    ranks = len(seen(folder, "began"))
    wait_until(lambda: len(seen(folder, "began", 2)) == ranks, 60)
    return done


# A cluster is up again only when all its nodes are, and the jobs of one cluster run in one process.
_ONE_DEAD_NODE = threading.Lock()


def node(cluster: AnyCluster, job: str, folder: Path) -> Job:
    """The scheduler may wait for the dead node where the script has ended long ago."""
    return lose(cluster, job, folder, host_of_the_last(folder, len(seen(folder, "began"))))


def lose(cluster: AnyCluster, job: str, folder: Path, host: str) -> Job:
    """Take the power of a node away until the script of a job has ended."""
    with _ONE_DEAD_NODE:
        cluster.kill(host)
        try:
            events = jobs.run_dir(folder / "runs") / "attempt-1" / "events"
            wait_until(lambda: " ended " in events.read_text() or cluster.ended(job), 240)
        finally:
            cluster.revive(host)
    return finish(cluster, job)


ACTS: dict[str, Callable[[AnyCluster, str, Path], Job]] = {
    "cancel": cancel,
    "delete": delete,
    "purge": purge,
    "requeue": requeue,
    "node": node,
}

# ----------------------------------------------------------------------------------------------- afterwards


def clean(cluster: AnyCluster, job: str, folder: Path) -> None:
    """Whatever came of it, the next job finds its nodes as this one has found them."""
    if not cluster.ended(job):
        cluster.purge(job)
    kill(folder)


def asked_after(folder: Path) -> int | None:
    times = [int(path.read_text().split()[1]) for path in seen(folder, "saved")]
    began = [int(path.read_text().split()[0]) for path in folder.glob("runs/*/attempt-1/events")]
    return min(times) - began[0] if times and began else None


def outcome(job: Job, folder: Path, left: list[Process], seconds: float, ranks: int) -> Outcome:
    runs = list((folder / "runs").glob("*"))
    bad = [run / "bad-hosts" for run in runs if (run / "bad-hosts").exists()]
    return Outcome(
        job=job,
        folder=folder,
        host=host_of_the_last(folder, ranks),
        began=len(seen(folder, "began")),
        saved=tuple(int(path.name.rpartition("-")[2]) for path in seen(folder, "saved")),
        asked=asked_after(folder),
        attempts=sum(1 for run in runs for _ in run.glob("attempt-*")),
        bad="".join(path.read_text() for path in bad),
        left=tuple(left),
        seconds=seconds,
    )


def faults(cell: Cell, outcome: Outcome) -> list[str]:
    """Return what is otherwise than expected."""
    expected = ENDS[cell.end].expected_of(cell)
    earliest, latest = expected.moment or (0, 0)
    patterns = [
        one.replace("HOST", outcome.host).replace("LAST", str(cell.ranks - 1)) for one in expected.says
    ]
    right = {
        "not all ranks have begun": outcome.began == cell.ranks,
        "processes are left": not outcome.left,
        "the status": not expected.statuses or outcome.job.exit_code in expected.statuses,
        "not all ranks have saved": expected.saved != ALL or outcome.saved == tuple(range(cell.ranks)),
        "the moment of the signal": not expected.moment
        or (outcome.asked is not None and earliest <= outcome.asked <= latest),
        "the number of attempts": outcome.attempts == expected.attempts,
        "the bad host": outcome.bad.split("\t")[0] == (outcome.host if expected.bad else ""),
    }
    right |= {f"no message {one}": bool(re.search(one, outcome.job.output)) for one in patterns}
    return [what for what, is_right in right.items() if not is_right]
