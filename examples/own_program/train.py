"""A program of your own that saves and leaves in time, and goes on where it was. What it takes is marked."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
from torch import distributed


def write(file: Path, text: str) -> None:
    """Replace the file at once: a job that is killed here leaves the old text, never half of the new one."""
    draft = file.with_name(file.name + ".new")
    with open(draft, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())  # the text is on the disk before the name
    os.replace(draft, file)


distributed.init_process_group("gloo")
asked = []  # <-
signal.signal(signal.SIGUSR1, lambda *_: asked.append(True))  # <- a signal that the job got
deadline = float(os.environ.get("JOBGEN_DEADLINE", "inf"))  # <- the end of the wall time, less the margin
folder = Path(os.environ["JOBGEN_RUN_DIR"])  # <- the same in every attempt
saved = folder / "mine.json"
step = json.loads(saved.read_text())["step"] if saved.exists() else 0  # <-
print(f"rank {distributed.get_rank()} begins after step {step}", flush=True)

stop = False
while step < 100 and not stop:
    time.sleep(0.1)  # a step of training
    step += 1
    leave = torch.tensor(int(bool(asked) or time.time() > deadline))  # <-
    distributed.all_reduce(leave, distributed.ReduceOp.MAX)  # <- all ranks leave after the same step
    stop = bool(leave)  # <-

if distributed.get_rank() == 0:
    if stop:
        write(saved, json.dumps({"step": step}))  # yours: weights, optimizer, random states
        write(folder / "saved-step", f"{step}\n")  # <- a requeue needs this to grow
    print(f"{'saved' if stop else 'finished'} after step {step}")
signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # <- one that comes late must not end Python's shutdown
distributed.barrier()  # <- the first rank that leaves ends the others
distributed.destroy_process_group()
sys.exit(75 if stop else 0)  # <- 75: not finished, but can go on
