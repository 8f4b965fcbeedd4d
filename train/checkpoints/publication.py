"""From a draft directory to the latest checkpoint, on all ranks. For the names see __init__.py."""

import os
from pathlib import Path
from shutil import rmtree
from threading import Thread
from typing import Any

from .. import atomic, peers, report
from ..device import Device
from ..errors import BadInput, CannotSave
from ..report import Run
from . import storage
from .directory import BEST, LATEST, RECORD, REPLACED, WRITING, Entries, ids, prune, verify, verify_sizes


class Publisher:
    """The base of the classes that save checkpoints. All ranks call `begin`, `agree` and `finish` together.

    directory: of the checkpoints; latest: the id of the last intact one; its path if it is in another
    directory; group: all ranks, with messages on the host (None: the default group, on the device);
    stops: the run has little time left, and leaves the removal of older checkpoints to the next one
    """

    device: Device
    run: Run
    directory: Path
    latest: str | None
    group: Any = None
    stops = False
    removal: Thread | None = None  # of older checkpoints, on rank 0

    def begin(self, name: str) -> Path:
        """Create a draft directory, whose name no other run uses, and return its path."""
        if self.removal:
            self.removal.join()
        draft, failure = self.directory / f".{name}.{self.run.host}-{os.getpid()}{WRITING}", None
        if self.run.is_main:
            try:
                rmtree(draft, ignore_errors=True)
                draft.mkdir(parents=True)
            except OSError as error:
                failure = storage.failure(error, draft)
        return self.directory / str(self.agree(name, failure, draft.name)[0])

    def finish(
        self,
        draft: Path,
        name: str,
        record: dict[str, Any],
        step: int,
        keep: int | None,
        best: bool = False,
        verified: bool = False,
    ) -> None:
        """Write checkpoint.json, publish the draft, and remove all but the `keep` newest checkpoints.

        verified: its files have been read again. Otherwise a thread of rank 0 reads them before it removes
        an older checkpoint.
        """
        failure = None
        if self.run.is_main:
            try:
                atomic.write_json(draft / RECORD, record)
                verify_sizes(draft, record["files"])  # also of the files that other hosts have written
                self.publish(draft, self.directory / name, step, best)
            except OSError as error:
                failure = storage.failure(error, draft)
            except BadInput as error:
                failure = {"reason": str(error), "file": str(draft), "free": None}
        self.agree(name, failure, None, draft)
        if self.run.is_main:
            final = self.directory / name
            if verified or not keep or len(ids(self.directory)) <= keep:
                self._remove(final, {}, keep)
            else:
                # The end of the process waits for it.
                self.removal = Thread(target=self._remove, args=(final, record["files"], keep))
                self.removal.start()

    def _remove(self, final: Path, entries: Entries, keep: int | None) -> None:
        """Remove older checkpoints if the files of the new one are intact."""
        try:
            for one in entries.items():
                if self.stops:
                    return
                verify(final, dict([one]), from_disk=True)
            prune(self.directory, keep)
        except BadInput as error:
            report.complain(f"warning: {error}; the checkpoints before it are kept")
        except OSError as error:
            report.complain(f"warning: older checkpoints cannot be removed: {error}")

    def publish(self, draft: Path, final: Path, step: int, best: bool = False) -> None:
        """Rename the draft to `final`, and only then make it the latest, and the best. Called on rank 0."""
        for folder in {file.parent for file in draft.rglob("*")}:
            atomic.sync_directory(folder)
        if final.exists():  # this run resumed from an older checkpoint
            self._make_room(final)
        os.replace(draft, final)
        atomic.sync_directory(self.directory)
        if best:  # first: a run that is killed after `latest` would not save it again
            atomic.write_text(self.directory / BEST, final.name + "\n")
        atomic.write_text(self.directory / LATEST, final.name + "\n")
        note_step(self.run, step)
        self.latest = final.name

    def _make_room(self, final: Path) -> None:
        """Rename the old checkpoint of this name, after `latest` names another one, if there is any."""
        other = self.directory / self.latest if self.latest else None
        if other and other != final and other.parent == self.directory and other.is_dir():
            atomic.write_text(self.directory / LATEST, other.name + "\n")
        old = self.directory / f".{final.name}.{self.run.host}-{os.getpid()}{REPLACED}"
        rmtree(old, ignore_errors=True)
        os.replace(final, old)

    def agree(
        self, name: str, failure: dict[str, Any] | None, fact: Any, draft: Path | None = None
    ) -> list[Any]:
        """Return the facts of all ranks, in order. Raise CannotSave on all ranks if any has failed."""
        mine = {"fact": fact, "failed": failure and {**failure, "host": self.run.host}}
        device = self.device if self.group is None else Device("cpu", 0)
        answers = peers.exchange(mine, device, self.group)
        failures = [(rank, one["failed"]) for rank, one in enumerate(answers) if one["failed"]]
        if not failures:
            return [one["fact"] for one in answers]
        if self.run.is_main and draft:
            rmtree(draft, ignore_errors=True)
        rank, first = failures[0]
        free = "" if first["free"] is None else f", with {first['free'] / 2**20:.1f} MiB free"
        rest = f"{self.latest} is intact and is kept" if self.latest else "there is no earlier one"
        raise CannotSave(
            f"checkpoint {name} cannot be written: {first['reason']}: {first['file']} (rank {rank} on "
            f"{first['host']}{free}); {rest}",
            checkpoint=self.latest,
        )


def note_step(run: Run, step: int) -> None:
    """Write `step` to saved-step in the run directory: the job script retries only while it increases."""
    if run.directory:
        atomic.write_text(run.directory / "saved-step", f"{step}\n")
