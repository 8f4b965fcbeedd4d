"""The most bytes that torch holds on a rank in trainings of language models, as torch itself counts them.

peaks.py CASES OUT: CASES is JSON, {name: options of jobgen.train}; OUT receives JSON with the bytes, of weights,
states and all else, and the numbers of --explain for the model. The memory of the process says less: malloc keeps
what the building of a model took.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jobgen.train import config, data, device, explain, peers, ranks, size
from languages import run_case
from torch.profiler import ProfilerActivity, profile


def peak(work: Callable[[], Any]) -> int:
    """Return the most bytes of those that torch takes in the work."""
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as made:
        work()
    result = made.profiler.kineto_results
    changes = sorted(
        (each.start_ns(), each.nbytes()) for each in result.events() if each.name() == "[memory]"
    )
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def main() -> None:
    me = ranks.discover(os.environ)
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    torch.set_num_threads(1)
    peers.connect(me, mine)
    results: dict[str, Any] = {}
    for name, options in json.loads(Path(sys.argv[1]).read_text()).items():
        settings = config.parse(options)
        model = size.of_model(settings, data.of(settings))
        buffers, fused = explain.Buffers(int(os.environ["BUCKET"])), settings.fused_optimizer == "torch"
        needs = explain.needs(model, 1, me.world_size, buffers, fused=fused)
        expected = next(need.device for need in needs if need.options in " ".join(options))
        # What other threads free is not seen by the profiler: the smallest number is the nearest.
        most = min(peers.exchange(peak(partial(run_case, options, me, mine)), mine))
        results[name] = {"peak": most, "expected": expected}
    if me.rank == 0:
        Path(sys.argv[2]).write_text(json.dumps(results))
    torch.distributed.barrier()
    os._exit(0)  # as jobgen.train does: gloo's threads may abort an orderly end


if __name__ == "__main__":
    main()
