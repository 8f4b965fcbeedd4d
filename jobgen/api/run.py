"""``from jobgen import Run``: a run for Python and for notebooks."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from jobgen.runs import cancellation, logs, lookup, run_directory, waiting
from jobgen.runs.states import State, states


class Run:
    """A run: the directory of a job, and the job itself.

    What it shows is read anew each time, but the scheduler is asked at most every two seconds: in between,
    the state is the last one.
    """

    def __init__(
        self, run: str | int | os.PathLike[str], *, runs_dir: str | os.PathLike[str] | None = None
    ) -> None:
        """Find a run by its directory, its name, the beginning of its name, or the id of its job.

        ``runs_dir`` is the directory of the runs: by default that of the job file, or ``runs``.

        Raises:
            JobgenError: there is no such run, or more than one.
        """
        root = lookup.root_of(None if runs_dir is None else os.fspath(runs_dir))
        name = str(run) if isinstance(run, int) else os.fspath(run)
        self.directory: Path = lookup.one_run(name, root).absolute()
        self._asked: tuple[float, State] | None = None

    @property
    def name(self) -> str:
        """The name of the run directory; that of an array's task begins with the array's name."""
        return run_directory.name_of(self.directory)

    @property
    def job_id(self) -> str | None:
        """The id of the job; of the last one if several jobs continued the run."""
        return lookup.job_id(self.directory)

    @property
    def details(self) -> State:
        """All that ``jobgen status --json`` prints: state, reason, attempts, step, loss, seconds_left, ..."""
        if self._asked is None or time.monotonic() - self._asked[0] > waiting.LEAST:
            [state], _ = states([self.directory])
            self._asked = time.monotonic(), state
        return self._asked[1]

    @property
    def state(self) -> str:
        """The state in the words of ``jobgen status``: pending, running, finished, failed, ..."""
        return self.details.state

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl, in order; lines that are no objects are left out."""
        return run_directory.read_metrics(self.directory).rows

    @property
    def tasks(self) -> list[Run]:
        """The runs of an array's tasks that have begun, in the order of their indices."""
        return [Run(path, runs_dir=path.parent) for path in run_directory.tasks(self.directory)]

    def wait(self, timeout: float | timedelta | None = None, *, interval: float = waiting.INTERVAL) -> str:
        """Wait until the run has ended and return its state; ask the scheduler every ``interval`` seconds.

        Raises:
            TimeoutError: it has not ended after ``timeout`` (seconds or a timedelta).
        """
        limit = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        [state] = waiting.wait([self.directory], interval, limit)
        self._asked = time.monotonic(), state
        return state.state

    def cancel(self, *, now: bool = False) -> str:
        """Cancel the job and return a message on the action: a running job is asked to save and end; a second
        time, or with ``now``, the scheduler ends it at once.

        Raises:
            JobgenError: it has ended already, or the scheduler refuses.
        """
        self._asked = None
        return cancellation.cancel(self.directory, now)

    def logs(self, *, rank: int | None = None, attempt: int | None = None, tail: int | None = None) -> str:
        """Return the output of the job, or of one rank; of the last attempt, or of another one; all of it, or
        the last ``tail`` lines.

        Raises:
            JobgenError: there is no such log, or not yet.
        """
        found: list[bytes] = []
        logs.show(self.directory, logs.Which(rank, attempt, tail), found.append)
        return b"".join(found).decode(errors="replace")

    def __repr__(self) -> str:
        now = self.details
        job = None if now.id is None else f"job {now.id}"
        step = None if now.step is None else f"step {now.step}"
        loss = None if now.loss is None else f"loss {now.loss:.4g}"
        words = ", ".join(filter(None, (job, now.state, step, loss)))
        return f"<Run {ascii(now.name)[1:-1]}: {words}>"

    def _repr_html_(self) -> str:
        from jobgen.api.notebook import html

        return html(self.details, self.directory)
