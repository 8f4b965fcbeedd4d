"""The Slurm cluster of the tests, as they see it: submit a script, wait for the job, look at what came out.

``tests/cluster/minicluster.sh`` is what it is made of, and says what the hosts are.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support import ROOT, warm_python
from support.waiting import is_noted, wait_for, wait_until

CLUSTER_DIR = ROOT / "tests/cluster"
SCRIPT = CLUSTER_DIR / "minicluster.sh"
SYSTEMS = {"22.05": "", "24.11": os.environ.get("JOBGEN_SLURM_24_11", "/var/cache/jobgen/slurm-24.11")}
"""Each Slurm of the tests, by its version, and the folder with the system that it is a part of; empty: the machine."""
OLD, NEW = SYSTEMS
FIRST = os.environ.get("JOBGEN_TEST_SLURM", OLD)
"""The Slurm that all tests use; some use both."""
SLURMS = ("slurm",) if FIRST == NEW else ("slurm", "slurm24")
"""The clusters with a Slurm, as their fixtures are called."""
WELL = ("COMPLETED", "F", "C")  # of Slurm, OpenPBS, Torque
ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}


class ClusterError(Exception):
    """A command of the cluster failed; the message holds what it printed."""


@dataclass(frozen=True)
class Job:
    """A job that has ended."""

    id: str
    state: str
    exit_code: int
    """The status of the script; 128 + N where the signal N ended it."""
    output: str
    """What the script printed: standard output, then standard error where that is another file."""
    output_path: Path

    @property
    def ok(self) -> bool:
        return self.state in WELL and self.exit_code == 0


@dataclass(frozen=True)
class Cluster:
    """Three nodes of Slurm and a head."""

    root: Path
    lease: Path | None = None
    version: str = FIRST
    accounting: bool = False
    ipv6: bool = False

    name = "slurm"
    words = ("slurm",)
    """What jobgen is told of the scheduler."""
    nodes = ("node1", "node2", "node3")
    hosts = ("head", "node1", "node2", "node3")

    @property
    def home(self) -> Path:
        """The home directory of the user, who is root, on all hosts."""
        return self.root / "home"

    @property
    def env(self) -> dict[str, str]:
        """The environment that jobs are submitted with: a bare one, with the running Python first on PATH."""
        path = [*warm_python.folders(), "/usr/local/bin", "/usr/bin", "/bin"]
        allow = [f"{prefix}_ALLOW_RUN_AS_ROOT" for prefix in ("OMPI", "PRTE")]
        allow += [f"{name}_CONFIRM" for name in allow]
        return {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "LOGNAME": "root",
            "PATH": os.pathsep.join(path),
            "USER": "root",
            **dict.fromkeys(allow, "1"),
        }

    def folder(self, name: str) -> Path:
        """A new folder, seen by all hosts."""
        (self.root / "work").mkdir(exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{name[:40]}-", dir=self.root / "work"))

    def up(self) -> None:
        self._minicluster("up")

    def open(self) -> None:
        """Bring the login nodes, the jump host and the laptop up, too."""
        self._minicluster("open")

    def down(self) -> None:
        self._minicluster("down")

    def kill(self, host: str) -> None:
        """Take the power of a host away."""
        self._minicluster("kill", host)

    def revive(self, host: str) -> None:
        self._minicluster("revive", host)
        wait_for(self.status, 60)

    def status(self) -> bool:
        """Whether all hosts work."""
        return self._call(["status"], env=None, cwd=None, timeout=60).returncode == 0

    def exec(
        self,
        host: str,
        argv: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a host, in ``cwd`` and with ``env`` added to the environment of jobs."""
        command = ["exec", host, *map(str, argv)]
        done = self._call(command, env={**self.env, **(env or {})}, cwd=cwd or self.home, timeout=timeout)
        if check and done.returncode != 0:
            raise ClusterError(complaint(argv, done))
        return done

    def sbatch(
        self, script: Path | str, cwd: Path, *args: str | Path, env: Mapping[str, str] | None = None
    ) -> str:
        """Submit a script (a path, or its text) from the directory ``cwd``; the answer is the job's id."""
        argv = ["sbatch", "--parsable", *args, as_file(script, cwd)]
        return self.exec("head", argv, cwd=cwd, env=env).stdout.strip()

    submit = sbatch

    def cancel(self, job_id: str) -> None:
        self.exec("head", ["scancel", job_id])

    def purge(self, job_id: str) -> None:
        """End a job at once, whatever its script does with the TERM that it gets."""
        self.exec("head", ["scancel", "--full", "--signal=KILL", job_id])

    def requeue(self, job_id: str) -> None:
        self.exec("head", ["scontrol", "requeue", job_id])

    def ended(self, job_id: str) -> bool:
        return self.facts(job_id)["JobState"] in ENDED

    def has_a_note(self, job_id: str) -> bool:
        """Whether an attempt of the job has ended."""
        return is_noted(self.root / "log/jobs", rf"JobId={job_id} ")

    def wait(self, job_id: str, timeout: float = 300) -> Job:
        """Wait for the end of a job; one that takes longer than ``timeout`` seconds is cancelled."""
        in_time = wait_until(lambda: self.ended(job_id), timeout, lambda: self.has_a_note(job_id))
        facts = self.facts(job_id)
        if not in_time:
            self.exec("head", ["scancel", job_id])
            state = f"{facts['JobState']} ({facts['Reason']})"
            raise TimeoutError(f"job {job_id} is {state} after {timeout} s\n{_output(facts)}")
        return _ended_job(job_id, facts)

    def facts(self, job_id: str) -> dict[str, str]:
        shown = self.exec("head", ["scontrol", "show", "job", job_id]).stdout
        shown = shown.partition("\n\n")[0]  # of a heterogeneous job the first component
        facts = dict(
            re.findall(r"^   (\w+)=(.*)$", shown, re.MULTILINE)
        )  # the first of a line; paths hold blanks
        words = dict(re.findall(r"\b(JobState|Reason|ExitCode)=(\S+)", shown))
        return facts | words

    def _minicluster(self, *command: str) -> None:
        done = self._call(command, env=None, cwd=None, timeout=90)
        if done.returncode != 0:
            raise ClusterError(complaint(command, done))

    def _call(
        self, command: Sequence[str], *, env: Mapping[str, str] | None, cwd: Path | None, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        settings = {
            "MINICLUSTER_ROOT": str(self.root),
            "MINICLUSTER_SYSTEM": SYSTEMS[self.version],
            "MINICLUSTER_ACCOUNTING": "yes" if self.accounting else "",
            "MINICLUSTER_IPV6": "yes" if self.ipv6 else "",
            "MINICLUSTER_SHARED": ":".join(shared_places()),
        }
        if self.lease is not None:
            settings["MINICLUSTER_LEASE"] = str(self.lease)
        return subprocess.run(
            [SCRIPT, *command],
            env={**(os.environ if env is None else env), **settings},
            cwd=cwd,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
        )


def folder_of(session: Path, version: str) -> Path:
    """Return the folder of the Slurm of this process. Each worker of xdist has its own, which takes half a second of a
    core: on a shared one the jobs of one test waited for the nodes of another."""
    return session / f"cluster-slurm-{version}{os.environ.get('PYTEST_XDIST_WORKER', '')}"


@contextmanager
def shared_cluster(
    root: Path, version: str = FIRST, accounting: bool = False, ipv6: bool = False
) -> Iterator[Cluster]:
    """The cluster at ``root``, brought up by the first process that asks and taken down by the last one.

    Each user holds a shared lock on a file. Should all of them be killed, the cluster sees that the lock
    is free, and takes itself down.
    """
    root.mkdir(parents=True, exist_ok=True)
    lease = root / "lease"
    cluster = Cluster(root, lease, version, accounting, ipv6)
    with lease.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        cluster.up()
        try:
            yield cluster
        finally:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass  # somebody else still uses it
            else:
                cluster.down()


def shared_places() -> list[str]:
    """Return what the hosts of a cluster see of the machine: the checkout, and the Python that runs the tests."""
    python, links = Path(sys.executable), list[str]()
    while python.is_symlink():  # /usr/bin/python3 is another version there
        python = python.parent / python.readlink()
        links += [str(python)] * (not python.is_relative_to(sys.prefix))
    return [
        str(ROOT),
        *(sys.prefix, *links, sysconfig.get_path("stdlib")),
        *([os.path.realpath("/bin/bash")] if "JOBGEN_TEST_BASH" in os.environ else []),
    ]


def as_file(script: Path | str, cwd: Path) -> Path:
    if isinstance(script, Path):
        return script
    path = cwd / "job.sh"
    path.write_text(script, encoding="utf-8")
    return path


def _ended_job(job_id: str, facts: Mapping[str, str]) -> Job:
    status, signal = map(int, facts["ExitCode"].split(":"))
    return Job(
        id=job_id,
        state=facts["JobState"],
        exit_code=status or (128 + signal if signal else 0),
        output=_output(facts),
        output_path=Path(facts["StdOut"]),
    )


def _output(facts: Mapping[str, str]) -> str:
    paths = dict.fromkeys(Path(facts[key]) for key in ("StdOut", "StdErr") if key in facts)
    return "".join(
        path.read_text(encoding="utf-8", errors="surrogateescape") for path in paths if path.is_file()
    )


def complaint(argv: Sequence[str | Path], done: subprocess.CompletedProcess[str]) -> str:
    return f"{shlex.join(map(str, argv))}: exit status {done.returncode}\n{done.stdout}{done.stderr}"


def start_now(cluster: Cluster, job: str) -> None:
    """Save a job the pause that Slurm makes before a second attempt, but for that in which the node would not
    launch it: in the second in which the attempt before ended it is "already killed"."""
    time.sleep(2)
    cluster.exec("head", ["scontrol", "update", f"JobId={job}", "StartTime=now"], check=False)


def ended(cluster: Cluster, job: str, seconds: float = 500) -> Job:
    """Wait for the end of a job, and save it the pauses between its attempts."""

    def over() -> bool:
        facts = cluster.facts(job)
        if facts["JobState"] == "PENDING" and facts["Reason"] == "BeginTime":
            start_now(cluster, job)
        return facts["JobState"] in ENDED

    assert wait_until(over, seconds, lambda: cluster.has_a_note(job)), cluster.facts(job)
    return cluster.wait(job)
