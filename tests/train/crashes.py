"""A process that is killed at its n-th operation on the files of a directory of checkpoints, for every n.

crashes.py DIR: forks a process a time that saves some checkpoints, until one comes through; prints JSON, for
each n, the operation, and the step that a run would go on from.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from jobgen.train import checkpoints, device, peers, ranks, report
from jobgen.train.addresses import free_port
from jobgen.train.checkpoints import directory, save
from torch import nn

EVENTS = ("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.listdir", "os.scandir")


class Engine:
    """The least that a Saver asks for: one file, which says how often it was saved."""

    average = None
    part = None

    def __init__(self) -> None:
        self.module, self.saved = nn.Linear(1, 1), 0

    def save(self, directory: Path, save: Any, client: dict[str, Any]) -> None:
        self.saved += 1
        save({"saved": self.saved}, directory / "model.pt")


def work(place: Path, until: int) -> None:
    """Save three steps, the first two of them twice, as before and after an evaluation; killed at operation
    `until`."""
    me = ranks.Ranks(0, 1, 0, 1, "127.0.0.1", free_port(), "fork")
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    peers.connect(me, mine)
    run = report.Run({}, report.Clock(), 0)
    facts = {"world_size": 1, "settings": {"keep": 2}}
    saver = save.Saver(Engine(), mine, run, place, facts, checkpoints.Progress())  # type: ignore[arg-type]
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event in EVENTS and str(place) in str(arguments[0]):
            count += 1
            with open(os.open(place.with_name("log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as log:
                log.write(f"{event} {Path(str(arguments[0])).name}")
            if count == until:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    for step, in_epoch in ((1, 1), (1, 0), (2, 1), (2, 0), (3, 1)):
        saver.save(checkpoints.Progress(1, step, in_epoch))


def outcome(place: Path) -> dict[str, Any]:
    """What is whole, and what a run would go on from."""
    found = checkpoints.find("latest", place) if checkpoints.any_in(place) else None
    for path in place.glob("step-*"):
        directory.verify(path, checkpoints.at(path).record["files"])
    if found is None:
        return {"step": 0, "trouble": []}
    return {"step": found.record["progress"]["step"], "trouble": found.trouble}


def main(top: Path) -> None:
    torch.set_num_threads(1)
    place, rows = top / "checkpoints", []
    for until in range(1, 10_000):
        shutil.rmtree(place, ignore_errors=True)
        pid = os.fork()
        if not pid:
            status = 1
            try:
                work(place, until)
                status = 0
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        rows.append({"status": status, "at": (top / "log").read_text(), **outcome(place)})
        if status != -signal.SIGKILL:
            break
    print(json.dumps(rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
