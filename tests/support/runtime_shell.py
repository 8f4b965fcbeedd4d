"""Files of the runtime by themselves: bash reads messages.sh and the file under test, then runs a few lines."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jobgen.rendering.runtime import DOCTOR, FOLDER, MAIN
from support import jobs

RUNTIME = Path(FOLDER)
PATH = "/usr/local/bin:/usr/bin:/bin"
READ: set[str] = set()  # the files that have been under test


def sources(files: str) -> list[str]:
    """Return the commands that read these files of the runtime, without the line that starts the job."""
    READ.update(files.split())
    job = "<(grep -v '^{ job_arguments=' %s)"
    paths = {name: f"{RUNTIME}/{name}.sh" for name in files.split()}
    return [f". {job % path if name in (MAIN, DOCTOR) else path}" for name, path in paths.items()]


@dataclass(frozen=True)
class Done:
    """A bash that has ended."""

    status: int
    out: str
    said: str  # on its standard error output

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@dataclass(frozen=True)
class Shell:
    """A directory with a run directory ``run``, its first attempt, and commands that stand in for others."""

    folder: Path

    @property
    def run_dir(self) -> Path:
        return self.folder / "run"

    @property
    def logs(self) -> Path:
        return self.run_dir / "attempt-1"

    @property
    def control(self) -> str:
        return (self.logs / "control").read_text()

    def prepare(self) -> Shell:
        (self.logs / "nodes" / "0").mkdir(parents=True)
        (self.logs / "control").touch()
        return self

    def commands(self, **texts: str) -> None:
        """Commands that come first on PATH, each a script of bash with this text."""
        jobs.path_with(self.folder / "bin", **texts)

    def env(self, env: Mapping[str, str]) -> dict[str, str]:
        path = f"{self.folder / 'bin'}:{PATH}"
        return {"HOME": str(self.folder), "LANG": "C.UTF-8", "PATH": path, **env}

    def run(self, files: str, code: str, env: Mapping[str, str] | None = None, timeout: float = 60) -> Done:
        """The words of ``files`` name files of the runtime; ``code`` follows them."""
        lines = [
            "set -euo pipefail",
            "job_dir=$PWD/run job_logs=$PWD/run/attempt-1",
            f". {RUNTIME}/messages.sh",
            *sources(files),
            code,
        ]
        return self.start(["bash", "-c", "\n".join(lines), "job.sh"], env, timeout)

    def program(self, name: str, *words: str, env: Mapping[str, str], timeout: float = 60) -> Done:
        """A file of runtime/node/, as the job has written it into the run directory."""
        return self.start(["bash", str(self.node_file(name)), *words], {**self.contract(), **env}, timeout)

    def node_file(self, name: str) -> Path:
        READ.add(f"node/{name}")
        target = self.run_dir / f"{name}.sh"
        target.write_text((RUNTIME / "node" / f"{name}.sh").read_text())
        return target

    def contract(self) -> dict[str, str]:
        """What rendezvous.sh exports, for one rank."""
        return {
            "JOBGEN_RUN_DIR": str(self.run_dir),
            "JOBGEN_LOGS": str(self.logs),
            "JOBGEN_WORLD_SIZE": "1",
            "JOBGEN_RANKS_PER_NODE": "1",
            "JOBGEN_LAUNCHER": "mpirun",
            "JOBGEN_SIGNAL": "USR1",
            "JOBGEN_RANK_LOGS": "node",
            "JOBGEN_TRAINING": "",
            "JOBGEN_POLL": "0.1",
            "JOBGEN_HERE": "here",
            "JOBGEN_HOST": "here",
        }

    def start(self, command: list[str], env: Mapping[str, str] | None, timeout: float) -> Done:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.env(env or {}),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="surrogateescape",
            timeout=timeout,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def popen(self, command: list[str], env: Mapping[str, str]) -> subprocess.Popen[str]:
        """One that is still running; in a session of its own."""
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.env(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def alive(pid: int) -> bool:
    """Whether a process is there, and not a zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def ends_within(pid: int, seconds: float) -> float:
    """Wait for the end of a process; return the seconds that it took."""
    started = time.monotonic()
    while alive(pid) and time.monotonic() - started < seconds:
        time.sleep(0.02)
    assert not alive(pid)
    return time.monotonic() - started


def listed(path: Path) -> list[str]:
    """The names in a folder."""
    return sorted(os.listdir(path)) if path.is_dir() else []
