"""A training whose ranks and nodes die at random moments, and which starts again in the same allocation."""

from __future__ import annotations

import contextlib
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support import jobs, warm
from support.cluster import Cluster, ClusterError, Job, ended
from support.mpich import mpich_bin
from support.pbs import PbsCluster
from support.story import path_for
from support.waiting import wait_until

SUPPORT = Path(__file__).parent
TRAINING = (
    *("--dataset", "slow:data", "--model", "slow:build", "--batch-size", "8", "--epochs", "6"),
    *("--save-every", "1", "--engine", "ddp"),
)
PAIR = (
    *("--nodes", "2", "--ranks-per-node", "1", "--accelerator", "cpu", "--cpus-per-rank", "1"),
    *("--env", "OMP_NUM_THREADS=1"),
)


@dataclass(frozen=True)
class Restart:
    """What was killed, the seconds until the next attempt made its first step, and the load of the machine then."""

    act: str
    host: str
    seconds: float
    load: float


@dataclass
class Story:
    """A job that is killed; ``folder`` has its script and its runs."""

    cluster: Cluster | PbsCluster
    folder: Path
    options: Sequence[object]
    random: random.Random
    patience: float = 400
    """The seconds in which an attempt makes a step."""
    restarts: list[Restart] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """Processes of an attempt that were there when the next one had made a step."""

    @property
    def run(self) -> Path:
        return jobs.run_dir(self.folder / "runs")

    def play(self, launcher: str, acts: Sequence[str]) -> Job:
        """Run the job; after each act wait for the first step of the next attempt."""
        pauses = ",".join(["0.4"] * (len(acts) + 1))
        setup = self.folder / "path.sh"
        setup.write_text(
            f"export PATH={path_for(launcher, self.folder)}:$PATH\n"
            f"export OMPI_MCA_orte_tmpdir_base={self.folder}\n"  # Open MPI 4: see docs/survival.md
        )
        if launcher == "mpich":
            with setup.open("a") as file:
                file.write(f"export LD_LIBRARY_PATH={mpich_bin().parent}/lib MPI4PY_MPIABI=mpich\n")
        modules = self.folder / "modules"  # those beside slow.py have names of packages
        modules.mkdir()
        (modules / "slow.py").symlink_to(SUPPORT / "slow.py")
        values = jobs.env_options({"PYTHONPATH": modules, "SLOW_PAUSE": pauses})
        script = jobs.render(
            *(*self.cluster.words, *PAIR, *self.options, "--source", setup, *values),
            program=TRAINING,
        )
        job = self.cluster.submit(script, self.folder)
        try:
            for number, act in enumerate(acts, 1):
                self._await(job, number, 2 + self.random.randrange(3))
                time.sleep(self.random.random())
                self._kill(job, number, act)
            wait_until(lambda: self._events_end() or self.cluster.ended(job), 300)
        finally:
            for host in self.dead:
                self.cluster.revive(host)
        if isinstance(self.cluster, Cluster):
            return ended(self.cluster, job)
        return self.cluster.wait(job)

    def _kill(self, job: str, number: int, act: str) -> None:
        attempt = self.run / f"attempt-{number}"
        rank = self.random.randrange(2) if act == "rank" else 1  # the script is on the first host
        pid, host = jobs.process_of(attempt, rank)
        begun = time.monotonic()
        if act == "rank":
            os.kill(_outer(attempt, pid), 9)
        else:
            self.dead.append(host)
            self.cluster.kill(host)
        self._await(job, number + 1, 1)
        self.restarts.append(Restart(act, host, time.monotonic() - begun, os.getloadavg()[0]))
        self.left += _processes_of(attempt)

    def _await(self, job: str, attempt: int, steps: int) -> None:
        """Wait until an attempt has made and saved so many steps."""
        folder = f"runs/*/attempt-{attempt}/nodes/*/*.ranks"
        self._wait(job, lambda: any("began" in file.read_text() for file in self.folder.glob(folder)))
        before = self._saved()
        self._wait(job, lambda: self._saved() >= before + steps)

    def _wait(self, job: str, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + self.patience
        while not condition():
            over = int(end - time.monotonic()) % 8 == 0 and self.cluster.ended(job)
            if over or time.monotonic() > end:
                raise AssertionError(self._output(job))
            time.sleep(0.1)

    def _output(self, job: str) -> str:
        """Return the output of a job that is not as expected; it is ended, and its nodes are revived."""
        with contextlib.suppress(ClusterError):
            self.cluster.cancel(job)
        while self.dead:
            self.cluster.revive(self.dead.pop())
        return self.cluster.wait(job).output

    def _saved(self) -> int:
        files = list(self.folder.glob("runs/*/saved-step"))
        return int(files[0].read_text() or 0) if files else 0

    def _events_end(self) -> bool:
        attempts = sorted(self.run.glob("attempt-*"), key=lambda path: int(path.name[8:]))
        return " ended " in (attempts[-1] / "events").read_text()


def _outer(attempt: Path, pid: str) -> int:
    """Return the process id on this machine, where the hosts are namespaces, of a rank's program."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path("/proc", name, "environ").read_bytes().split(b"\0")
            [inner] = re.findall(r"(?m)^NSpid:.*\t(\d+)$", Path("/proc", name, "status").read_text())
            if inner == pid and any(word.startswith(f"JOBGEN_NODE={attempt}/".encode()) for word in words):
                return int(name)
    raise AssertionError(f"the process {pid} of {attempt} has ended")


def _processes_of(attempt: Path) -> Iterator[str]:
    """Yield the processes of an attempt on all hosts."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path("/proc", name, "environ").read_bytes().split(b"\0")
            if f"JOBGEN_LOGS={attempt}".encode() in words:
                yield f"{name} {Path('/proc', name, 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}"


def weights(run: Path) -> bytes:
    """Return the exported weights of a run."""
    file = run.parent.parent / "weights.safetensors"
    trained(["export", run, file], run)
    return file.read_bytes()


def trained(words: Sequence[object], run: Path, ranks: int = 1) -> None:
    """Run the training module on this machine."""
    env: Mapping[str, str] = {**os.environ, "JOBGEN_RUN_DIR": str(run), "OMP_NUM_THREADS": "1"}
    status, _, output = warm.run([str(word) for word in words], env, SUPPORT, ranks)
    assert status == 0, output
