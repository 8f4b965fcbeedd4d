"""When nothing goes on any more: each rank's watchdog writes where it hangs, and all leave as resumable.

A rank that makes no step for --stall hangs, and as training is synchronous, soon all of them do: the first
one that notices tells the others by the directory `stall` of the run, so that the stacks of all are there.

RUN/stacks-RANK.txt    the stacks of all Python threads of that rank
RUN/stall/RANK.json    that it has noticed, and its last step

Where every rank has the whole state, the watchdogs save it, see checkpoints/rescue.py. Elsewhere the last
checkpoint stands: to save, the ranks would have to take part in collective operations, and they hang in one.
"""

import argparse
import contextlib
import faulthandler
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from shutil import rmtree
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from .config.converters import seconds
from .errors import RESUMABLE, BadInput
from .report import Run, complain

if TYPE_CHECKING:
    from .checkpoints.saving import Saver

DEFAULT = 1800.0  # seconds
FOLDER = "stall"
MARGIN = timedelta(minutes=3)  # by which the collective libraries are more patient than the watchdogs


def limit(asked: float | None, env: Mapping[str, str]) -> float:
    """Seconds, from --stall or JOBGEN_STALL; 0: no watchdog."""
    text = env.get("JOBGEN_STALL", "")
    if asked is not None or not text:
        return DEFAULT if asked is None else asked
    try:
        return seconds(text)
    except argparse.ArgumentTypeError as error:
        raise BadInput(f"JOBGEN_STALL: {error}") from None


def patience(stall: float) -> timedelta:
    """How long a collective operation must at least wait for a rank, for a watchdog to be first."""
    return timedelta(seconds=stall) + MARGIN


def forget(directory: Path | None) -> None:
    """Drop what an earlier run left in its directory: before the ranks meet, on one of them."""
    if directory:
        rmtree(directory / FOLDER, ignore_errors=True)


class Watchdog:
    """Watches from `with` to its end. The run must have its directory, and all ranks must have met."""

    def __init__(self, stall: float, run: Run, world_size: int, saver: "Saver") -> None:
        assert run.directory is not None
        self._stall, self._run, self._world, self._saver = stall, run, world_size, saver
        self._every = min(max(stall / 60, 0.25), 10.0)
        self._rank = run.rank or 0
        self._file = run.directory / f"stacks-{self._rank}.txt"
        self._folder = run.directory / FOLDER
        self._last, self._step = time.monotonic(), saver.start.step
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def progress(self, step: int) -> None:
        """So many steps are done, and something has just gone on."""
        self._last, self._step = time.monotonic(), step

    def __enter__(self) -> "Watchdog":
        if self._stall:
            self._stream = open(self._file, "a", encoding="utf-8")
            self._last = time.monotonic()
            self._arm(self._last)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._stall:
            return
        self._over.set()
        self._thread.join()
        if error is not None and self._others_hang():
            self._end()  # it lost a rank that has left because of the hang, which is no failure of its own
        faulthandler.cancel_dump_traceback_later()
        self._stream.close()
        with contextlib.suppress(OSError):
            if self._file.stat().st_size == 0:
                self._file.unlink()

    def _watch(self) -> None:
        looked = time.monotonic()
        while not self._over.wait(self._every):
            now = time.monotonic()
            if now - looked > self._stall / 2 + self._every:
                self._last += now - looked  # the whole process was suspended
            looked = now
            if now - self._last > self._stall or self._others_hang():
                self._end()
            self._arm(now)

    def _arm(self, now: float) -> None:
        """Have a C thread write the stacks a little later than this one would: it also runs where C code
        that hangs does not let go of Python's lock."""
        left = self._last + self._stall + 2 * self._every - now
        faulthandler.dump_traceback_later(max(left, self._every), file=self._stream)

    def _others_hang(self) -> bool:
        try:
            return FOLDER in os.listdir(self._run.directory)
        except OSError:
            return False

    def _end(self) -> NoReturn:
        """Write the stacks, wait for the other ranks to do so, save what can be, and leave. The main thread
        takes no part."""
        from .checkpoints import rescue  # with torch, which the limit does not need

        faulthandler.cancel_dump_traceback_later()
        still = round(time.monotonic() - self._last)
        text = f"rank {self._rank} on {self._run.host} hangs after step {self._step}, for {still} s"
        try:
            self._folder.mkdir(exist_ok=True)  # first of all: the others should dump now, too
            self._stream.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
            self._stream.flush()
            faulthandler.dump_traceback(self._stream)
            os.fsync(self._stream.fileno())
            mine = {"rank": self._rank, "host": self._run.host, "step": self._step, "seconds": still}
            at = where(threading.main_thread().ident or 0)
            able = {"able": rescue.possible(self._saver, self._step)}
            _put(self._folder / f"{self._rank}.json", json.dumps({**mine, **at, **able}))
        except OSError as error:  # a full disk; leaving is what counts
            complain(f"{text}; its stacks cannot be written: {error.strerror}")
        else:
            complain(f"{text}; its stacks are in {self._file}")
        reports = self._wait_for_reports()
        able = all(report["able"] for report in reports.values())
        if able and len(reports) == self._world and len({report["step"] for report in reports.values()}) == 1:
            rescue.save(self._saver)
        # One that hung in C code and was woken by the end of the others has nothing to add.
        if self._rank <= min(reports, default=self._rank) and not self._told():
            self._tell(reports)
        else:
            self._wait_for_status(rescue.PATIENCE if able else 5)
        sys.stdout.flush()
        os._exit(RESUMABLE)

    def _wait_for_reports(self) -> dict[int, dict[str, Any]]:
        """By rank; a rank whose Python is stopped gives none, but its C thread needs time for its stacks."""
        until = time.monotonic() + 5 * self._every + 5
        while True:
            reports = _reports(self._folder)
            if len(reports) == self._world or time.monotonic() > until:
                return reports
            time.sleep(0.1)

    def _tell(self, reports: Mapping[int, Mapping[str, Any]]) -> None:
        """On the lowest rank that reported: the run's status."""
        saved = self._saver.latest
        message, lagging = describe(reports, self._world)
        on = f"{saved} is where to go on" if saved else "there is no checkpoint: the next attempt begins anew"
        with contextlib.suppress(OSError):
            self._run.stop(
                f"{message}; {on}",
                anyway=True,
                reason="stall",
                exit_status=RESUMABLE,
                rank=lagging,
                host=reports.get(lagging, {}).get("host"),
                step=self._saver.saved_step,
                from_step=self._saver.start.step,
                checkpoint=saved,
                steps_of_ranks={str(rank): report["step"] for rank, report in sorted(reports.items())},
            )
        complain(f"{message}; {on}")

    def _wait_for_status(self, patience: float) -> None:
        """Until the lowest rank has spoken: most launchers end all ranks when the first one leaves."""
        until = time.monotonic() + patience
        while time.monotonic() < until and not self._told():
            time.sleep(0.1)

    def _told(self) -> bool:
        """Whether status.json speaks of this."""
        with contextlib.suppress(OSError, ValueError):
            return bool(
                json.loads((self._folder.parent / "status.json").read_text()).get("reason") == "stall"
            )
        return False


def describe(reports: Mapping[int, Mapping[str, Any]], world: int) -> tuple[str, int]:
    """What happened, in a sentence, and the rank that the others wait for, as far as can be told.

    That is one that could not report, else one with the fewest steps, else one that is not in torch's own
    code, where ranks wait for others, else the odd one out.
    """
    silent = [rank for rank in range(world) if rank not in reports]
    if silent:
        ranks = f"rank{'s' * (len(silent) > 1)} {', '.join(map(str, silent))}"
        return f"no rank made progress, and {ranks} did not even answer", silent[0]
    groups: dict[tuple[int, bool, str], list[int]] = {}
    for rank, report in sorted(reports.items()):
        groups.setdefault((report["step"], report["in_torch"], report["at"]), []).append(rank)
    ordered = sorted(groups.items(), key=lambda group: (*group[0][:2], len(group[1])))
    places = [
        f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))} after step {step} in {at}"
        for (step, _, at), ranks in ordered
    ]
    return f"no rank made progress: {'; '.join(places[:4])}", ordered[0][1][0]


def where(thread: int) -> dict[str, Any]:
    """The innermost Python function that the thread is in, and whether that is torch's own."""
    frame = sys._current_frames().get(thread)
    if frame is None:
        return {"at": "no function", "in_torch": True}
    code = frame.f_code
    own = code.co_filename.startswith(str(Path(sys.modules["torch"].__file__ or "").parent))
    return {"at": f"{code.co_name} ({Path(code.co_filename).name}:{frame.f_lineno})", "in_torch": own}


def _reports(folder: Path) -> dict[int, dict[str, Any]]:
    found = {}
    with contextlib.suppress(OSError, ValueError):
        for name in os.listdir(folder):
            if name.endswith(".json") and not name.startswith("."):
                found[int(name[:-5])] = json.loads((folder / name).read_text(encoding="utf-8"))
    return found


def _put(file: Path, text: str) -> None:
    draft = file.with_name(f".{file.name}.writing")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, file)
