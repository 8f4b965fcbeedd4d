"""A last checkpoint when the main threads hang: the watchdogs of all ranks write it without a collective.

This is possible only where every rank has the whole state, as in plain DDP. The weights are those after the
last completed step. Random states and running statistics may have changed since then. A run that resumes from
this checkpoint is therefore valid, but its results are not bitwise identical to those of a run that did not
hang.
"""

import json
import time
from threading import Thread

from torch import distributed

from .. import atomic
from ..config.engines import ENGINES
from ..errors import CannotSave
from . import storage
from .directory import RECORD, WRITING, Entries
from .save import Saver, largest

PATIENCE = 60.0  # seconds; the file system may hang, too


def possible(saver: Saver, step: int) -> bool:
    """Return whether this rank can save its state after `step`."""
    here, spec = saver.here, ENGINES[saver.facts["settings"]["engine"]]
    alone = spec.replicated and saver.engine.average is None
    return alone and here is not None and here.step == step > saver.saved_step


def save(saver: Saver) -> None:
    """Save a checkpoint. Return after at most PATIENCE seconds, with or without success.

    Called on all ranks, if saving is possible on all of them after the same step.
    """
    thread = Thread(target=_save, args=(saver,), daemon=True)
    thread.start()
    thread.join(PATIENCE)


def _save(saver: Saver) -> None:
    assert saver.here is not None
    rank, here, name = distributed.get_rank(), saver.here, f"step-{saver.here.step:06d}"
    draft = saver.directory / f".{name}.hanging{WRITING}"
    try:
        saver.wait()
        if not largest(saver.engine.module).isfinite():
            return
        draft.mkdir(parents=True, exist_ok=True)
        writer = storage.FileWriter(draft)
        saver.engine.save(draft, writer.save, here.numbers())
        writer.save(storage.own_state(saver.engine, saver.device, here), storage.rank_file(draft, rank))
        if writer.failure:
            return
        atomic.write_json(draft / f"entries-{rank}.json", writer.entries)
        if rank:
            return
        entries: Entries = {}
        for each in range(distributed.get_world_size()):
            file = draft / f"entries-{each}.json"
            while not file.exists():
                time.sleep(0.1)
            entries |= json.loads(file.read_text(encoding="utf-8"))
            file.unlink()
        atomic.write_json(draft / RECORD, saver.record(name, here, entries))
        saver.publish(draft, saver.directory / name, here.step)
        saver.mark(here)
    except (OSError, CannotSave, RuntimeError):  # the last one: an asynchronous save that has lost a rank
        return  # the previous checkpoint remains the latest
