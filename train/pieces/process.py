"""init(): the place of this process among all ranks, its device, and the process group."""

import atexit
import os
import socket
import time
from dataclasses import asdict, dataclass
from datetime import timedelta

import torch
from torch import distributed

from .. import device, peers, ranks

PAUSE = 0.2  # seconds in which gloo's threads release the last tensors: in the shutdown of Python that aborts


@dataclass(frozen=True)
class Process(ranks.Ranks):
    """A connected process; see Ranks for the numbers. device: what its model and tensors belong on"""

    device: torch.device
    kind: str

    @property
    def is_main(self) -> bool:
        """True on rank 0, which prints and writes files."""
        return self.rank == 0


_first: Process | None = None  # the result of the first call


def init(timeout: timedelta = peers.TIMEOUT) -> Process:
    """Find the rank and the device of this process, connect all ranks, and return the Process.

    Works below torchrun, deepspeed, accelerate, mpirun, PALS and srun, and without a launcher. RANK,
    WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set in os.environ, for libraries
    that read them. Without OMP_NUM_THREADS, the ranks of a host share its cores. An existing process group is
    used; every call returns the same values.

    timeout: time that a collective operation waits for a lost rank. Raise BadInput if the environment
    contradicts itself, or if there is no device for this rank.
    """
    global _first
    if _first is not None and distributed.is_initialized():
        return _first
    me = ranks.discover(os.environ)
    ranks.check_world(me, os.environ)
    ranks.export(me, os.environ)
    mine, had_group = device.choose(me, os.environ), distributed.is_initialized()
    peers.connect(me, mine, timeout)
    if not had_group:
        _share_cores(me, mine)
    if _first is None:
        atexit.register(time.sleep, PAUSE)
    _first = Process(**asdict(me), device=mine.torch, kind=mine.kind)
    return _first


def _share_cores(me: ranks.Ranks, mine: device.Device) -> None:
    if not os.environ.get("OMP_NUM_THREADS"):
        facts = peers.exchange([socket.gethostname(), peers.cores()], mine)
        hosts, cores = (list(column) for column in zip(*facts, strict=True))
        torch.set_num_threads(peers.share_of_cores(me.rank, hosts, cores))
