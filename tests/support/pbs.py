"""A real OpenPBS and a real Torque, as the tests see them: submit a script, wait for the job, look at its nodes.

They must be installed in /opt/pbs and /opt/torque. ``tests/cluster/openpbs.sh`` and ``torque.sh`` start them. There is one
such cluster a machine. No ssh runs between its nodes, and jobs are those of an ordinary user.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support import warm_python
from support.cluster import CLUSTER_DIR, ClusterError, Job, as_file, complaint
from support.processes import command
from support.waiting import is_noted, wait_until

USER = "pbsu"
KEPT = ("sleep infinity", "trqauthd")  # on a node of Torque they are the host itself, not what runs on it


@dataclass(frozen=True)
class Kind:
    """What differs between the two."""

    name: str
    title: str
    installed: Path
    """A file of it."""
    head: str
    nodes: tuple[str, ...]
    lab_variable: str
    lab: str
    dialect: str
    show: tuple[str, ...]
    """The command that shows a job, ended ones too."""
    purge: tuple[str, ...]
    """The command that ends a job at once, whatever its nodes say."""
    ended: str
    """The state of a job that has ended."""
    accounting: Path
    """Where its server notes what happens to jobs."""

    @property
    def script(self) -> Path:
        """What starts and stops it."""
        return CLUSTER_DIR / f"{self.name}.sh"


OPENPBS = Kind(
    name="openpbs",
    title="OpenPBS",
    installed=Path("/opt/pbs/sbin/pbs_mom"),
    head="pbssrv",
    nodes=("pbsn1", "pbsn2", "pbsn3"),
    lab_variable="OPENPBS_LAB",
    lab="/tmp/openpbs",
    dialect="pbspro",
    show=("qstat", "-x", "-f"),
    purge=("qdel", "-W", "force"),
    ended="F",
    accounting=Path("/opt/pbs/var/pbssrv/server_priv/accounting"),
)
TORQUE = Kind(
    name="torque",
    title="Torque",
    installed=Path("/opt/torque/sbin/pbs_mom"),
    head="tqsrv",
    nodes=("tqn1", "tqn2", "tqn3"),
    lab_variable="TORQUE_LAB",
    lab="/tmp/torque",
    dialect="torque",
    show=("qstat", "-f"),
    purge=("qdel", "-p"),
    ended="C",
    accounting=Path("/var/spool/torque-lab.d/tqsrv/server_priv/accounting"),
)


@dataclass(frozen=True)
class PbsCluster:
    """Three nodes of eight cores and a server, all of them hosts of this machine."""

    kind: Kind
    user: str = field(default=USER, kw_only=True)
    """The owner of the jobs; ``pbs-SHELL`` has that login shell."""

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.kind.nodes

    @property
    def words(self) -> tuple[str, ...]:
        """What jobgen is told of the scheduler."""
        return ("pbs", "--dialect", self.kind.dialect)

    @property
    def lab(self) -> Path:
        return Path(os.environ.get(self.kind.lab_variable, self.kind.lab))

    def enter(self, folder: Path) -> tuple[str | Path, ...]:
        """The words before a command that runs on one of its hosts in a folder, which is the current one."""
        return (self.lab / "bin/enter",)

    @property
    def home(self) -> Path:
        """The home directory of the user, in which jobs start."""
        return Path("/home", self.user)

    @property
    def env(self) -> dict[str, str]:
        """The environment that jobs are submitted with: a bare one, with the running Python first on PATH."""
        path = [*warm_python.folders(), "/usr/local/bin", "/usr/bin", "/bin"]
        return {"LANG": "C.UTF-8", "PATH": os.pathsep.join(path)}

    def folder(self, name: str) -> Path:
        """A new folder that the user may write into, seen by all hosts."""
        made = Path(tempfile.mkdtemp(prefix=f"{name[:40]}-", dir=self.lab / "t"))
        made.chmod(0o755)
        shutil.chown(made, self.user, self.user)
        return made

    # ------------------------------------------------------------------------------------------ the cluster

    def up(self) -> None:
        self._script("install")
        self._script("up")

    def down(self) -> None:
        self._script("down")

    def runs(self) -> bool:
        """Whether somebody has brought it up."""
        return bool(self._pids(self.kind.head))

    def status(self) -> bool:
        """Whether the server answers and calls no node down."""
        listed = self.exec("head", ["pbsnodes", "-l"], check=False)
        return listed.returncode == 0 and not listed.stdout.strip()

    def kill(self, host: str) -> None:
        """Take the power of a node away: its connections close, as by a reboot, and it is not heard of any more."""
        pids = [pid for pid in self._pids(host) if not command(int(pid)).startswith(KEPT)]
        subprocess.run(["kill", "-KILL", *pids], check=False, capture_output=True)
        time.sleep(0.5)
        self._cable(host, "down")

    def revive(self, host: str) -> None:
        self._cable(host, "up")
        self._script("on", host, "pbs_mom")
        if not wait_until(self.status, 120):
            raise ClusterError(f"{host} does not come back")

    def _cable(self, host: str, state: str) -> None:
        subprocess.run(["ip", "-n", self.kind.head, "link", "set", f"v-{host}", state], check=True)

    def _pids(self, host: str) -> list[str]:
        found = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True, check=False)
        return found.stdout.split()

    # -------------------------------------------------------------------------------------------- its hosts

    def exec(
        self,
        host: str,
        argv: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = 60,
        root: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a host ("head" is the server), in ``cwd`` and with ``env`` added to ``self.env``."""
        at = self.kind.head if host == "head" else host
        who = {"PBS_HOST": at, "PBS_AS": "root" if root else self.user}
        folder = cwd or self.lab / "t"
        done = subprocess.run(
            [*self.enter(folder), *argv],
            env={**self.env, **(env or {}), **who},
            cwd=folder,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
        )
        if check and done.returncode != 0:
            raise ClusterError(complaint(argv, done))
        return done

    # --------------------------------------------------------------------------------------------- its jobs

    def submit(
        self, script: Path | str, cwd: Path, *args: str | Path, env: Mapping[str, str] | None = None
    ) -> str:
        """Submit a script (a path, or its text) from the directory ``cwd``; the answer is the job's id."""
        argv = ["qsub", *args, as_file(script, cwd)]
        return self.exec("head", argv, cwd=cwd, env=env).stdout.strip()

    def cancel(self, job: str) -> None:
        self.exec("head", ["qdel", job])

    def purge(self, *jobs: str, check: bool = True) -> None:
        """End jobs at once, without a word to them. PBS refuses it of a job that has ended."""
        self.exec("head", [*self.kind.purge, *jobs], root=True, check=check)

    def requeue(self, job: str) -> None:
        self.exec("head", ["qrerun", job], root=True)

    def signal(self, job: str, name: str) -> None:
        self.exec("head", ["qsig", "-s", name, job])

    def facts(self, job: str) -> dict[str, str]:
        """What the scheduler shows of a job; nothing where it does not know it any more."""
        done = self.exec("head", [*self.kind.show, job], check=False)
        lines = done.stdout.replace("\n\t", "").splitlines()
        return dict(re.findall(r"^ +(\S+) = (.*)$", "\n".join(lines), re.MULTILINE))

    def ended(self, job: str) -> bool:
        return self.facts(job).get("job_state", self.kind.ended) == self.kind.ended

    def has_a_note(self, job: str) -> bool:
        """Whether an attempt of the job has ended, or it has been deleted."""
        return is_noted(self.kind.accounting, rf";[ADE];{re.escape(job)};")

    def wait(self, job: str, timeout: float = 300) -> Job:
        """Wait for the end of a job; one that takes longer than ``timeout`` seconds is deleted."""
        if not wait_until(lambda: self.ended(job), timeout, lambda: self.has_a_note(job)):
            self.purge(job)
            raise TimeoutError(f"job {job} has not ended after {timeout} s: {self.facts(job)}")
        return _ended_job(job, self.facts(job))

    def keep_scheduling(self, end: threading.Event) -> None:
        """Start the scheduler again where it is gone: OpenPBS's may crash over jobs that are deleted at once."""
        while not end.wait(5):
            names = [_name(pid) for pid in self._pids(self.kind.head)]
            if names and not any(name.startswith("pbs_sched") for name in names):
                self.exec("head", ["pbs_sched"], root=True, check=False)

    def _script(self, *words: str) -> None:
        argv = [self.kind.script, *words]
        done = subprocess.run(
            argv, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180
        )
        if done.returncode != 0:
            raise ClusterError(complaint(argv, done))


@contextmanager
def shared_pbs(cluster: PbsCluster) -> Iterator[PbsCluster]:
    """The cluster, brought up by the first process that asks for it.

    Each user holds a shared lock on a file. A watcher takes the cluster down when nobody holds it any more, even
    if all of them were killed. A cluster that somebody else had brought up stays.
    """
    end = threading.Event()
    keeper = threading.Thread(target=cluster.keep_scheduling, args=(end,), daemon=True)
    with _locked(Path(f"{cluster.lab}.lease"), fcntl.LOCK_SH) as lease:
        with _locked(Path(f"{cluster.lab}.lock"), fcntl.LOCK_EX):
            if not cluster.runs():
                _watch(cluster, lease)
                try:
                    cluster.up()
                except BaseException:  # a part of a cluster would count as one that runs
                    cluster.down()
                    raise
        keeper.start()
        try:
            yield cluster
        finally:  # nothing is started any more when the watcher takes the cluster down
            end.set()
            keeper.join()


@contextmanager
def _locked(path: Path, how: int) -> Iterator[Path]:
    with path.open("w") as held:
        fcntl.flock(held, how)
        yield path


def _watch(cluster: PbsCluster, lease: Path) -> None:
    command = ["flock", lease, cluster.kind.script, "down"]
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, cwd="/")


def _name(pid: str) -> str:
    """The name of a process; empty where it has ended."""
    try:
        return Path("/proc", pid, "comm").read_text()
    except OSError:
        return ""


def _ended_job(job: str, facts: Mapping[str, str]) -> Job:
    status = facts.get("Exit_status", facts.get("exit_status", "-1"))
    path = Path(facts.get("Output_Path", ":").partition(":")[2])
    return Job(job, facts.get("job_state", "gone"), int(status), _text(path), path)


def _text(path: Path) -> str:
    """The output, which may arrive a moment after the end, and never does after a purge."""
    wait_until(lambda: path.is_file(), 3)
    return path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else ""
