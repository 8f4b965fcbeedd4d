"""The output of a run: metrics.jsonl, status.json, and lines on standard output.

metrics.jsonl has one JSON object per line; status.json says how the run ended. Rank 0 writes them. A rank
that fails also writes status.json.
"""

import contextlib
import functools
import importlib.metadata
import json
import math
import os
import platform
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import atomic


class Clock:
    """Measures the seconds since this process started, and when each part of the start-up ended."""

    def __init__(self) -> None:
        self.start = _process_start()
        self.marks: dict[str, float] = {}

    def seconds(self) -> float:
        return time.time() - self.start

    def mark(self, name: str) -> None:
        self.marks[name] = round(self.seconds(), 3)


class Run:
    """The run directory, for one rank. rank is None until it is known."""

    def __init__(self, env: Mapping[str, str], clock: Clock, rank: int | None) -> None:
        self.clock = clock
        self.rank = rank
        self.host = socket.gethostname()
        self.directory = Path(env["JOBGEN_RUN_DIR"]) if env.get("JOBGEN_RUN_DIR") else None
        self.job_start = _number(env.get("JOBGEN_START_TIME"))
        self._metrics: Any = None
        self._incomplete = False  # True if metrics could not be written
        # Called with each metric's event and values, on rank 0.
        self.sinks: list[Callable[[str, dict[str, Any]], None]] = []

    @property
    def is_main(self) -> bool:
        return self.rank in (0, None)

    def prepare(self) -> None:
        """Create the run directory, and remove the status of an earlier run from it.

        If the job named no directory, rank 0 chooses one. The status of an earlier run could be mistaken for
        that of this run.
        """
        if self.directory is None and self.is_main:
            self.directory = Path("runs", time.strftime(f"train-%Y%m%d-%H%M%S-{os.getpid()}"))
        if self.directory is None:
            return
        self.directory = self.directory.absolute()
        self.directory.mkdir(parents=True, exist_ok=True)
        if self.is_main and not self._is_first_failure(self._read_status()):
            self._status_file.unlink(missing_ok=True)

    def adopt(self, directory: str) -> None:
        """Use the directory that rank 0 chose, if this rank has none."""
        self.directory = self.directory or Path(directory)

    def go_on(self, step: int) -> None:
        """Keep the metrics of an earlier run up to `step`. Later steps are repeated."""
        if not self.is_main or self.directory is None:
            return
        file = self.directory / "metrics.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.is_file() else []
        rest = [line for line in lines if line.endswith("\n") and _step(line) <= step]
        atomic.write_text(file, "".join(rest), forced=False)
        self._metrics = open(file, "a", encoding="utf-8")  # noqa: SIM115

    def metric(self, event: str, **values: Any) -> None:
        """Append {"event": event, ...} to metrics.jsonl, flush it, and call the sinks. On rank 0 only."""
        if not self.is_main or self.directory is None:
            return
        if self._metrics is None:
            self._metrics = open(self.directory / "metrics.jsonl", "w", encoding="utf-8")  # noqa: SIM115
        try:
            self._metrics.write(json.dumps({"event": event, **values}) + "\n")
            self._metrics.flush()
        except OSError as error:  # a full disk ends the run when a checkpoint is saved
            if not self._incomplete:
                complain(f"warning: {self.directory / 'metrics.jsonl'} cannot be written: {error.strerror}")
            self._incomplete = True
        for sink in self.sinks:
            sink(event, values)

    def end(self, status: int) -> None:
        """Call the sinks with the exit status of the run."""
        for sink in self.sinks:
            sink("end", {"exit_status": status})

    def line(self, text: str) -> None:
        """Print one line to standard output, on rank 0."""
        if self.is_main:
            with contextlib.suppress(OSError):  # a full disk, if the output goes to a file
                print(text, flush=True)

    def finish(self, **values: Any) -> None:
        """Write the status of a finished run, on rank 0."""
        if self.is_main:
            self._write({"state": "finished", **values, **self._times()})

    def stop(self, message: str, anyway: bool = False, **facts: Any) -> None:
        """Write the status of a run that can be resumed, on rank 0; with `anyway`, on any rank."""
        if self.is_main or anyway:
            self._write({"state": "resumable", "message": message, **facts, **self._times()})

    def fail(self, message: str, exception: str, status: int, **facts: Any) -> dict[str, Any]:
        """Write the status of a failure, unless another rank failed first. Return the valid status."""
        mine = {
            "state": "failed",
            "message": message,
            "exception": exception,
            "exit_status": status,
            "rank": self.rank,
            "host": self.host,
            **facts,
            **self._times(),
        }
        if self.directory is None:
            return mine
        with contextlib.suppress(OSError):  # a full disk must not hide the failure itself
            self.directory.mkdir(parents=True, exist_ok=True)
            first = self._read_status()
            if first and self._is_first_failure(first):
                return first  # thousands of ranks may fail because of one; they write no files
            self._status_file.unlink(missing_ok=True)
            if not self._write(mine, replace=False):
                return self._read_status() or mine
        return mine

    def _times(self) -> dict[str, Any]:
        first = self.clock.marks.get("first_step")
        from_job = (
            None if first is None or self.job_start is None else self.clock.start + first - self.job_start
        )
        startup = {**self.clock.marks, "first_step_from_job_start": from_job and round(from_job, 3)}
        return {"seconds": round(self.clock.seconds(), 3), "startup": startup, "ended": round(time.time(), 3)}

    @property
    def _status_file(self) -> Path:
        assert self.directory is not None
        return self.directory / "status.json"

    def _write(self, status: dict[str, Any], replace: bool = True) -> bool:
        """Write status.json atomically. Return False if it exists and must not be replaced."""
        file = self._status_file
        draft = file.with_name(f".status.{self.host}.{os.getpid()}")
        draft.write_text(json.dumps(status, indent=2) + "\n", encoding="utf-8")
        try:
            if replace:
                os.replace(draft, file)
            else:
                os.link(draft, file)  # unlike replace, it succeeds on one rank only
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links
            if file.exists():
                return False
            os.replace(draft, file)
        finally:
            draft.unlink(missing_ok=True)
        return True

    def _read_status(self) -> dict[str, Any] | None:
        try:
            status = json.loads(self._status_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return status if isinstance(status, dict) else {}

    def _is_first_failure(self, status: Mapping[str, Any] | None) -> bool:
        """Return whether `status` is a failure of another rank of this run, and not of an earlier run.

        Ranks of one run start within seconds of each other.
        """
        if not status or status.get("state") != "failed":
            return False
        author = status.get("rank"), status.get("host")
        if None in (self.rank, author[0]) or author == (self.rank, self.host):
            return False  # a process without a rank is alone
        start = (_number(status.get("ended")) or 0) - (_number(status.get("seconds")) or 0)
        return start > (self.clock.start if self.job_start is None else self.job_start) - 5


def complain(text: str) -> None:
    """Write one line to standard error, in one write so that lines of several ranks do not mix."""
    with contextlib.suppress(OSError):  # a full disk, if the output goes to a file
        sys.stderr.write(f"jobgen.train: {text}\n")
        sys.stderr.flush()


def versions(*more: str) -> dict[str, str]:
    """Return the versions of Python, the packages that determine the results of a training, and `more`."""
    names = ("torch", "deepspeed", "torch_npu", "colossalai", "numpy", "mpi4py", *more)
    found = {name: version for name in names if (version := version_of(name)) is not None}
    return {"python": platform.python_version(), **found}


@functools.cache
def version_of(name: str) -> str | None:
    """Return the version of an installed package; None if it is absent. The search takes milliseconds."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _step(line: str) -> float:
    """Return the step of a line of metrics; infinity if the line is incomplete because of a full disk."""
    try:
        return float(json.loads(line).get("step", 0))
    except ValueError:
        return math.inf


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _process_start() -> float:
    """Return when this process started, before Python's own start-up, in seconds since the epoch."""
    now = time.time()
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start = now - time.clock_gettime(time.CLOCK_BOOTTIME) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return start if 0 <= now - start < 3600 else now
