"""The program of each rank of deadline.py.

Rank 0 prints the seconds of one question and of one all-reduce.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from statistics import median

import torch
from jobgen.train import device, peers, ranks, stop_vote
from torch import distributed

CALLS, ROUNDS = 500, 9


def main() -> None:
    me = ranks.discover(os.environ)
    ranks.export(me, os.environ)
    peers.connect(me, device.choose(me, os.environ))
    stop = stop_vote.StopVote({"JOBGEN_DEADLINE": str(time.time() + 3600)}, peers.TIMEOUT)
    number = torch.zeros(1, dtype=torch.int32)
    sides = [lambda: stop.after_step(0.0, False), lambda: distributed.all_reduce(number)]
    times = [[seconds(side) for side in sides] for _ in range(ROUNDS)]
    if me.rank == 0:
        print(json.dumps([median(side) for side in zip(*times, strict=True)]), flush=True)
    distributed.barrier()
    os._exit(0)


def seconds(call: Callable[[], object]) -> float:
    distributed.barrier()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


if __name__ == "__main__":
    main()
