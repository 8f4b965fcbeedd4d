"""Watchdogs for a training that hangs: each rank writes its stacks, and all ranks exit as resumable.

A rank that does no step for --hang-timeout hangs. Training is synchronous, so all ranks hang soon. The first
rank that notices it creates the directory `hang` of the run, at which the others also write their stacks.

RUN/stacks/S/HOST.txt        stacks of all Python threads of the ranks on that host, those of each rank below
                             a line with its number (jobgen/runs/node_files.py defines S)
RUN/hang/nodes/S/HOST.json   one line of JSON for each of these ranks: it has noticed the hang, its last step
RUN/hang/verdict.json        the decision of the lowest of these ranks: whether the ranks save

If C code holds the GIL, a watchdog cannot run. Then faulthandler's C thread writes the stacks, below the line
"Timeout" and in several pieces. The ranks of a host do so one after the other. The stack of the watchdog
itself ends in the function watchdog_of_rank_RANK.

If every rank has the whole state, the watchdogs save it, see checkpoints/rescue.py. Otherwise the last
checkpoint remains: to save, the ranks would need collective operations, and they hang in one.
"""

import argparse
import contextlib
import faulthandler
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryFile
from types import FunctionType, MethodType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from . import atomic, nodefiles
from .config.converters import seconds
from .errors import RESUMABLE, BadInput
from .ranks import Ranks, span, text_of
from .report import Run, complain

if TYPE_CHECKING:
    from .checkpoints.save import Saver

DEFAULT = 1800.0  # seconds
FOLDER, STACKS, NODES, VERDICT = "hang", "stacks", "nodes", "verdict.json"
APART = 4.0  # seconds over which the C threads of a host's ranks are distributed
MARGIN = timedelta(minutes=3)  # by which collective operations wait longer than the watchdogs


def limit(option: float | None, env: Mapping[str, str]) -> float:
    """Return the limit in seconds; 0 means no watchdog. Raise BadInput if the variable is not a time."""
    text = env.get("JOBGEN_HANG_TIMEOUT", "")
    if option is not None or not text:
        return DEFAULT if option is None else option
    try:
        return seconds(text)
    except argparse.ArgumentTypeError as error:
        raise BadInput(f"JOBGEN_HANG_TIMEOUT: {error}") from None


def patience(timeout: float) -> timedelta:
    """Return the minimum timeout of collective operations with which a watchdog acts first."""
    return timedelta(seconds=timeout) + MARGIN


def forget(directory: Path | None) -> None:
    """Remove an earlier hang from the run directory. Called on one rank, before the ranks connect."""
    if directory:
        rmtree(directory / FOLDER, ignore_errors=True)


class Watchdog:
    """Watches the training inside a `with` block.

    The run must have its directory, and the process group must be initialised.
    """

    def __init__(self, timeout: float, run: Run, me: Ranks, saver: "Saver") -> None:
        assert run.directory is not None
        self._timeout, self._run, self._world, self._saver = timeout, run, me.world_size, saver
        self._every = min(max(timeout / 60, 0.25), 10.0)
        self._pause = 0.1 + me.world_size / 10_000  # all ranks read the same files
        self._rank = me.rank
        self._later = 2 * self._every + APART * me.local_rank / me.local_world_size
        self._file = nodefiles.place(run.directory / STACKS, me.rank, me.local_rank, f"{run.host}.txt")
        self._folder = run.directory / FOLDER
        self._report = nodefiles.place(self._folder / NODES, me.rank, me.local_rank, f"{run.host}.json")
        self._last, self._step = time.monotonic(), saver.start.step
        self._over = threading.Event()
        watch = _with_name(Watchdog._watch, f"watchdog_of_rank_{me.rank}")
        self._thread = threading.Thread(target=MethodType(watch, self), name="watchdog", daemon=True)

    def progress(self, step: int) -> None:
        """Record that `step` steps are done, and that the training is not hanging now."""
        self._last, self._step = time.monotonic(), step

    def __enter__(self) -> "Watchdog":
        if self._timeout:
            nodefiles.append(self._file, "")
            self._stream = open(self._file, "a", encoding="utf-8")
            self._last = time.monotonic()
            self._arm(self._last)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._timeout:
            return
        self._over.set()
        self._thread.join()
        if error is not None and self._others_hang():
            self._end()  # it lost a rank that exited because of the hang: this is no failure of this rank
        faulthandler.cancel_dump_traceback_later()
        self._stream.close()
        with contextlib.suppress(OSError):
            if self._file.stat().st_size == 0:
                self._file.unlink()
                self._file.parent.rmdir()
                self._file.parent.parent.rmdir()

    def _watch(self) -> None:
        last_look = time.monotonic()
        while not self._over.wait(self._every):
            now = time.monotonic()
            if now - last_look > self._timeout / 2 + self._every:
                self._last += now - last_look  # the whole process was suspended
            last_look = now
            if now - self._last > self._timeout or self._others_hang():
                self._end()
            self._arm(now)

    def _arm(self, now: float) -> None:
        """Make a C thread write the stacks a little later: it also runs while C code holds the GIL."""
        rest = self._last + self._timeout + self._later - now
        faulthandler.dump_traceback_later(max(rest, self._every), file=self._stream)

    def _others_hang(self) -> bool:
        try:
            return FOLDER in os.listdir(self._run.directory)
        except OSError:
            return False

    def _end(self) -> NoReturn:
        """Write the stacks, wait for the other ranks, save if possible, and exit, without the main thread."""
        from .checkpoints import rescue  # imports torch, which `limit` does not need

        silence = round(time.monotonic() - self._last)
        text = f"rank {self._rank} on {self._run.host} hangs after step {self._step}, for {silence} s"
        try:
            self._folder.mkdir(exist_ok=True)  # done first: the others then write their stacks, too
            faulthandler.cancel_dump_traceback_later()
            nodefiles.append(self._file, f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n{_stacks()}\n")
            mine = {"rank": self._rank, "host": self._run.host, "step": self._step, "seconds": silence}
            at = where(threading.main_thread().ident or 0)
            able = {"able": rescue.possible(self._saver, self._step)}
            nodefiles.append(self._report, json.dumps({**mine, **at, **able}) + "\n")
        except OSError as error:  # a full disk must not prevent the exit
            complain(f"{text}; its stacks cannot be written: {error.strerror}")
        else:
            complain(f"{text}; its stacks are in {self._file}")
        reports = self._judge(time.monotonic() + 5 * self._every + 5)
        save = self._verdict()
        if save:
            rescue.save(self._saver)
        # A rank that hung in C code until the others ended adds nothing.
        if reports is not None and not self._has_status():
            self._write_status(reports)
        else:
            self._wait_for_status(rescue.PATIENCE if save else 5)
        sys.stdout.flush()
        os._exit(RESUMABLE)

    def _judge(self, until: float) -> dict[int, dict[str, Any]] | None:
        """Agree on a verdict with the watchdogs of the other ranks.

        The lowest rank that reports waits for all reports, writes the verdict and returns the reports by
        rank. The other ranks wait for the verdict and return None. A rank whose Python is blocked cannot
        report, but its C thread needs time to write the stacks.
        """
        while self._rank and self._verdict() is None:
            now = time.monotonic()
            if now > until + 5 or (now > until and self._is_lowest()):
                break
            time.sleep(self._pause)
        if self._verdict() is not None:
            return None
        while True:
            start = time.monotonic()
            reports = _reports(self._folder)
            if len(reports) == self._world or start > until:
                break
            time.sleep(max(0.1, 5 * (time.monotonic() - start)))
        alike = len(reports) == self._world and len({report["step"] for report in reports.values()}) == 1
        save = alike and all(report["able"] for report in reports.values())
        with contextlib.suppress(OSError):
            verdict = json.dumps({"rank": self._rank, "save": save})
            atomic.write_text(self._folder / VERDICT, verdict, forced=False)
        return reports

    def _is_lowest(self) -> bool:
        return all(report["rank"] >= self._rank for report in _lines(self._folder))

    def _verdict(self) -> bool | None:
        """Return whether the ranks save; None while there is no verdict."""
        return next((bool(verdict["save"]) for verdict in nodefiles.objects(self._folder / VERDICT)), None)

    def _write_status(self, reports: Mapping[int, Mapping[str, Any]]) -> None:
        """Write the status of the run. Called on the lowest rank that reported."""
        checkpoint = self._saver.latest
        message, culprit = describe(reports, self._world)
        on = f"the run can resume from {checkpoint}"
        if not checkpoint:
            on = "no checkpoint: the next attempt starts over"
        with contextlib.suppress(OSError):
            self._run.stop(
                f"{message}; {on}",
                anyway=True,
                reason="hang",
                exit_status=RESUMABLE,
                rank=culprit,
                host=reports.get(culprit, {}).get("host"),
                step=self._saver.saved_step,
                from_step=self._saver.start.step,
                checkpoint=checkpoint,
                steps_of_ranks=_steps(reports),
            )
        complain(f"{message}; {on}")

    def _wait_for_status(self, patience: float) -> None:
        """Wait for the status: most launchers end all ranks when the first one exits."""
        until = time.monotonic() + patience
        while time.monotonic() < until and not self._has_status():
            time.sleep(0.1)

    def _has_status(self) -> bool:
        """Return whether status.json reports this hang."""
        with contextlib.suppress(OSError, ValueError):
            return bool(json.loads((self._folder.parent / "status.json").read_text()).get("reason") == "hang")
        return False


def describe(reports: Mapping[int, Mapping[str, Any]], world: int) -> tuple[str, int]:
    """Return a sentence on what happened, and the rank for which the others probably wait.

    That is a rank that did not report; otherwise one with the fewest steps; otherwise one that is not in
    torch's own code, where ranks wait for others; otherwise one of the smallest group.
    """
    absent = [rank for rank in range(world) if rank not in reports]
    if absent:
        return f"no rank made progress, and {text_of(absent)} did not answer", absent[0]
    groups: dict[tuple[int, bool, str], list[int]] = {}
    for rank, report in sorted(reports.items()):
        groups.setdefault((report["step"], report["in_torch"], report["at"]), []).append(rank)
    order = sorted(groups.items(), key=lambda group: (*group[0][:2], len(group[1])))
    places = [f"{text_of(ranks)} after step {step} in {at}" for (step, _, at), ranks in order]
    return f"no rank made progress: {'; '.join(places[:4])}", order[0][1][0]


def where(thread: int) -> dict[str, Any]:
    """Return the innermost Python function of the thread, and whether it is torch's own."""
    frame = sys._current_frames().get(thread)
    if frame is None:
        return {"at": "no function", "in_torch": True}
    code = frame.f_code
    own = code.co_filename.startswith(str(Path(sys.modules["torch"].__file__ or "").parent))
    return {"at": f"{code.co_name} ({Path(code.co_filename).name}:{frame.f_lineno})", "in_torch": own}


def _steps(reports: Mapping[int, Mapping[str, Any]]) -> dict[str, int]:
    """Return {ranks, such as '0-3,5': their step}."""
    groups: dict[int, list[int]] = {}
    for rank, report in sorted(reports.items()):
        groups.setdefault(report["step"], []).append(rank)
    return {span(ranks): step for step, ranks in groups.items()}


def _with_name(function: Any, name: str) -> FunctionType:
    """Return the same function with another name in the stacks."""
    return FunctionType(function.__code__.replace(co_name=name), function.__globals__, name)


def _stacks() -> str:
    """Return the stacks of all threads. faulthandler writes to real files only, in many pieces."""
    with TemporaryFile() as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        return file.read().decode(errors="replace")


def _reports(folder: Path) -> dict[int, dict[str, Any]]:
    return {report["rank"]: report for report in _lines(folder)}


def _lines(folder: Path) -> Iterator[dict[str, Any]]:
    for file in nodefiles.files(folder / NODES):
        yield from nodefiles.objects(file)
