"""The other ranks: joining them, and telling each other a few facts."""

import json
import os
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from .addresses import interface_to
from .device import Device
from .ranks import Ranks

# How long a collective operation waits for a rank that is gone.
TIMEOUT = timedelta(minutes=10)


def choose_interface(ranks: Ranks, device: Device) -> None:
    """Tell gloo, which does not find out by itself, by which network interface the ranks meet."""
    if device.backend == "gloo" and "GLOO_SOCKET_IFNAME" not in os.environ:
        name = interface_to(ranks.master_addr)
        if name:
            os.environ["GLOO_SOCKET_IFNAME"] = name


def connect(ranks: Ranks, device: Device, patience: timedelta = TIMEOUT) -> None:
    """Meet all ranks at MASTER_ADDR:MASTER_PORT, over the library that goes with the device.

    patience: how long a collective operation waits for a rank that is gone, in every group of ranks.
    """
    choose_interface(ranks, device)
    _be_patient(patience)
    bound = {"device_id": device.torch} if device.type == "cuda" and ranks.world_size > 1 else {}
    distributed.init_process_group(
        device.backend, rank=ranks.rank, world_size=ranks.world_size, timeout=patience, **bound
    )


def _be_patient(patience: timedelta) -> None:
    """Also in the groups that DeepSpeed makes without such a limit, and in what NCCL and HCCL do by
    themselves when an operation takes long: end the process."""
    for name in ("default_pg_timeout", "default_pg_nccl_timeout"):
        if isinstance(before := getattr(distributed.distributed_c10d, name, None), timedelta):
            setattr(distributed.distributed_c10d, name, max(before, patience))
    limit = int(patience.total_seconds())
    os.environ.setdefault("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", str(max(limit, 480)))  # torch's default
    os.environ.setdefault("HCCL_EXEC_TIMEOUT", str(min(max(limit, 1836), 17340)))  # HCCL's default and most


def exchange(fact: Any, device: Device) -> list[Any]:
    """Every rank's fact (anything that JSON can hold), in the order of ranks.

    As 32-bit integers and not by torch's object collectives: HCCL does not take bytes.
    """
    mine = torch.tensor(list(json.dumps(fact).encode()), dtype=torch.int32, device=device.torch)
    sizes = torch.zeros(distributed.get_world_size(), dtype=torch.int32, device=device.torch)
    sizes[distributed.get_rank()] = len(mine)
    distributed.all_reduce(sizes)
    longest = int(sizes.max())
    padded = torch.nn.functional.pad(mine, (0, longest - len(mine)))
    all_of_them = [torch.empty_like(padded) for _ in sizes]
    distributed.all_gather(all_of_them, padded)
    texts = [bytes(row[:n].tolist()) for row, n in zip(all_of_them, sizes.tolist(), strict=True)]
    return [json.loads(text) for text in texts]


def cores() -> list[int]:
    """The cores that this process may run on."""
    return (
        sorted(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else list(range(os.cpu_count() or 1))
    )


def share_of_cores(rank: int, hosts: list[str], cores: list[list[int]]) -> int:
    """Threads for `rank`: its cores, divided by the ranks of its host that may use the same ones.

    hosts and cores have one entry a rank. A launcher that binds ranks leaves each its own cores,
    one that does not leaves all of them to everyone.
    """
    mine = set(cores[rank])
    sharing = sum(
        host == hosts[rank] and not mine.isdisjoint(other) for host, other in zip(hosts, cores, strict=True)
    )
    return max(1, len(mine) // sharing)
