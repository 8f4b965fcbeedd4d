"""The other ranks: the process group, and the exchange of small values."""

import json
import os
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from .addresses import interface_to
from .device import Device
from .errors import BadInput
from .ranks import Ranks

# Time that a collective operation waits for a lost rank.
TIMEOUT = timedelta(minutes=10)


def choose_interface(ranks: Ranks, device: Device) -> None:
    """Set the network interface of gloo, which does not find it by itself, if it is not set."""
    if device.backend == "gloo" and "GLOO_SOCKET_IFNAME" not in os.environ:
        name = interface_to(ranks.master_addr)
        if name:
            os.environ["GLOO_SOCKET_IFNAME"] = name


def connect(ranks: Ranks, device: Device, patience: timedelta = TIMEOUT) -> None:
    """Initialise the process group at MASTER_ADDR:MASTER_PORT, with the collective library of the device.

    An existing process group is used. patience: time that a collective operation waits for a lost rank, in
    every group of ranks. Raise BadInput if the existing group has other ranks.
    """
    if distributed.is_initialized():
        return _check_group(ranks)
    choose_interface(ranks, device)
    _be_patient(patience)
    distributed.init_process_group(
        device.backend,
        rank=ranks.rank,
        world_size=ranks.world_size,
        timeout=patience,
        device_id=bound_device(device),
    )


def _check_group(ranks: Ranks) -> None:
    there = distributed.get_rank(), distributed.get_world_size()
    if there != (ranks.rank, ranks.world_size):
        raise BadInput(
            f"this process is rank {there[0]} of {there[1]} in torch's process group, but rank {ranks.rank} "
            f"of {ranks.world_size} according to {ranks.source}: call init() before anything else connects "
            "the ranks"
        )


def bound_device(device: Device) -> torch.device | None:
    """Return the device to which NCCL binds the process group, or None."""
    return device.torch if device.backend == "nccl" else None


def _be_patient(patience: timedelta) -> None:
    """Set the timeout also for groups that DeepSpeed makes without one, and for NCCL and HCCL.

    Otherwise NCCL and HCCL end the process by themselves when an operation takes too long.
    """
    for name in ("default_pg_timeout", "default_pg_nccl_timeout"):
        if isinstance(before := getattr(distributed.distributed_c10d, name, None), timedelta):
            setattr(distributed.distributed_c10d, name, max(before, patience))
    limit = int(patience.total_seconds())
    os.environ.setdefault("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", str(max(limit, 480)))  # torch's default
    os.environ.setdefault("HCCL_EXEC_TIMEOUT", str(min(max(limit, 1836), 17340)))  # HCCL's default and limit


def exchange(fact: Any, device: Device, group: Any = None) -> list[Any]:
    """Return the facts of all ranks, in the order of ranks. fact: any value that JSON can hold.

    group: a group of all ranks for tensors of `device` (None: the default group)

    The facts are sent as 32-bit integers, not by torch's object collectives, because HCCL does not support
    bytes.
    """
    mine = torch.tensor(list(json.dumps(fact).encode()), dtype=torch.int32, device=device.torch)
    sizes = torch.zeros(distributed.get_world_size(), dtype=torch.int32, device=device.torch)
    sizes[distributed.get_rank()] = len(mine)
    distributed.all_reduce(sizes, group=group)
    longest = int(sizes.max())
    block = torch.nn.functional.pad(mine, (0, longest - len(mine)))
    blocks = [torch.empty_like(block) for _ in sizes]
    distributed.all_gather(blocks, block, group=group)
    texts = [bytes(row[:n].tolist()) for row, n in zip(blocks, sizes.tolist(), strict=True)]
    return [json.loads(text) for text in texts]


def cores() -> list[int]:
    """Return the CPU cores on which this process may run."""
    return (
        sorted(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else list(range(os.cpu_count() or 1))
    )


def share_of_cores(rank: int, hosts: list[str], cores: list[list[int]]) -> int:
    """Return the number of threads for `rank`: its cores, divided by the ranks of its host that may use them.

    hosts and cores have one entry per rank. If the launcher binds ranks, each rank has cores of its own;
    otherwise, all ranks of a host share all cores.
    """
    mine = set(cores[rank])
    count = sum(
        host == hosts[rank] and not mine.isdisjoint(other) for host, other in zip(hosts, cores, strict=True)
    )
    return max(1, len(mine) // count)
