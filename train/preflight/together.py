"""Tests of all ranks together: first through the store of the rendezvous, then by an all-reduce.

The store is a key-value server in the process of rank 0 at MASTER_ADDR:MASTER_PORT, or in torchrun's agent.
Unlike a collective operation, it shows rank 0 which ranks do not answer.
"""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from .. import peers
from ..device import Device
from ..ranks import Ranks
from .judge import LATE

PINGS, TOGETHER = 3, 32  # clock queries per host; hosts that query at once
CHUNK = 512  # keys per request to the store
PATIENCE = 5.0  # seconds for a file to become visible, and for a connection
WORKERS = 32
ALL = 32  # maximum number of hosts of which each one tests all others


def open_store(me: Ranks, until: float, serve: bool) -> Store:
    """Return a connection to the store. serve: rank 0 also runs the store.

    until: deadline, in seconds of time.monotonic(). Raise OSError or RuntimeError if the connection fails.
    """
    if me.rank or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        wait_for_port(me.master_addr, me.master_port, until)
    timeout = timedelta(seconds=max(1.0, until - time.monotonic()))
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        store, _, _ = next(rendezvous("env://", me.rank, me.world_size, timeout=timeout))
    else:
        # Like env://, but without waiting for all ranks: rank 0 finds missing ranks by their messages.
        store = distributed.TCPStore(  # type: ignore[attr-defined]
            me.master_addr, me.master_port, None, serve and me.rank == 0, timeout, wait_for_workers=False
        )
    return PrefixStore("jobgen-preflight", store)


def wait_for_port(address: str, port: int, until: float) -> None:
    """Return when the port accepts connections. torch waits, too, but longer than its timeout.

    Raise OSError if the port does not accept connections in time.
    """
    while True:
        rest = until - time.monotonic()
        try:
            socket.create_connection((address, port), max(0.5, min(PATIENCE, rest))).close()
            return
        except OSError:
            if rest <= 0:
                raise
        time.sleep(0.1)


class Board:
    """Messages between the ranks: values as JSON, under names, in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._count, self._open = 0, list[int]()

    def arrive(self, value: Any) -> None:
        """Add a value to those that rank 0 gets by `arrivals`."""
        self.put(f"arrival/{self._store.add('arrivals', 1)}", value)

    def arrivals(self) -> list[Any]:
        """Return the values that have arrived since the last call. Without any, this is one request."""
        count = self._store.add("arrivals", 0)
        self._open += range(self._count + 1, count + 1)
        self._count = count
        here = {number: value for number, value in self._there("arrival", self._open).items() if value}
        self._open = [number for number in self._open if number not in here]
        return list(here.values())

    def _there(self, name: str, numbers: Sequence[int]) -> dict[int, Any]:
        """Return the current values under name/NUMBER; None for numbers without a value."""
        contents: dict[int, Any] = {}
        for first in range(0, len(numbers), CHUNK):
            some = numbers[first : first + CHUNK]
            keys = [f"{name}/{number}" for number in some]
            all_there = self._store.check(keys)
            here = [key for key in keys if all_there or self._store.check([key])]
            values = dict(zip(here, self._store.multi_get(here) if here else [], strict=True))
            for number, key in zip(some, keys, strict=True):
                contents[number] = json.loads(values[key]) if key in values else None
        return contents

    def put(self, name: str, value: Any) -> None:
        self._store.set(name, json.dumps(value))

    def take(self, name: str, until: float) -> Any:
        """Wait for the value and return it; None if this takes too long, or the store is lost."""
        try:
            self._store.wait([name], timedelta(seconds=max(0.05, until - time.monotonic())))
            return json.loads(self._store.get(name))
        except RuntimeError:
            return None

    def gather(self, name: str, ranks: Iterable[int], until: float) -> dict[int, Any]:
        """Wait for the values of the ranks under name/RANK; None for those that are not there in time."""
        numbers = list(ranks)
        with contextlib.suppress(RuntimeError):  # some are missing
            for first in range(0, len(numbers), CHUNK):
                rest = timedelta(seconds=max(0.05, until - time.monotonic()))
                self._store.wait([f"{name}/{rank}" for rank in numbers[first : first + CHUNK]], rest)
        try:
            return self._there(name, numbers)
        except RuntimeError:  # the store is gone
            return dict.fromkeys(numbers)


def serve_clock(board: Board, ranks: Sequence[int], until: float) -> None:
    """Answer with the time of rank 0, TOGETHER ranks at once, so that no rank waits long for another."""
    for first in range(0, len(ranks), TOGETHER):
        some = ranks[first : first + TOGETHER]
        for rank in some:
            board.put(f"go/{rank}", True)
        for i in range(PINGS):
            for rank in some:
                if board.take(f"ping/{rank}/{i}", until) is not None:
                    board.put(f"pong/{rank}/{i}", time.time())


def clock_offset(board: Board, rank: int, until: float) -> tuple[float, float]:
    """Return the seconds that this clock is ahead of rank 0's, and the uncertainty: half a round trip."""
    board.take(f"go/{rank}", until)
    best = (0.0, PATIENCE)
    for i in range(PINGS):
        start = time.time()
        board.put(f"ping/{rank}/{i}", True)
        answer = board.take(f"pong/{rank}/{i}", until)
        if answer is None:
            break
        half = (time.time() - start) / 2
        best = min(best, (start + half - answer, half), key=lambda pair: pair[1])
    return best


def others(host: str, hosts: Sequence[str]) -> list[str]:
    """Return the hosts that this host tests.

    For up to ALL hosts, these are all others. For more, they are the hosts 1, 2, 4, 8... places after this
    one, so that the work of a host grows with the logarithm of their number, and a bad host still has the
    most trouble.
    """
    at, count = hosts.index(host), len(hosts)
    if count <= ALL:
        return [other for other in hosts if other != host]
    return [hosts[(at + (1 << i)) % count] for i in range((count - 1).bit_length())]


def unseen(files: Mapping[str, Mapping[str, str]], until: float) -> list[str]:
    """Return the hosts whose file cannot be read here. A network file system gets a moment to show it."""
    until = min(until, time.monotonic() + PATIENCE)
    missing = dict(files)
    while True:
        missing = {host: record for host, record in missing.items() if not _reads(record)}
        if not missing or time.monotonic() > until:
            return list(missing)
        time.sleep(0.2)


def _reads(record: Mapping[str, str]) -> bool:
    try:
        os.listdir(Path(record["file"]).parents[1])  # makes a network file system look for new files
        os.listdir(Path(record["file"]).parent)
        return Path(record["file"]).read_text(encoding="utf-8") == record["nonce"]
    except OSError:
        return False


def listen(towards: str) -> socket.socket:
    """Return a listening socket at the address by which this host reaches the others."""
    family, _, _, _, target = socket.getaddrinfo(towards, 1, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(target)  # UDP: sends no packet
        own = probe.getsockname()[0]
    server = socket.socket(family)
    server.bind((own, 0))
    server.listen(1024)
    return server


def unreachable(addresses: Mapping[str, Sequence[Any]], until: float) -> list[str]:
    """Return the hosts whose (address, port) does not accept a TCP connection from here."""

    def connects(address: Sequence[Any]) -> bool:
        patience = max(0.5, min(PATIENCE, until - time.monotonic()))
        try:
            with closing(socket.create_connection((address[0], address[1]), patience)):
                return True
        except OSError:
            return False

    with ThreadPoolExecutor(WORKERS) as pool:
        answers = list(pool.map(connects, addresses.values()))
    return [host for host, answer in zip(addresses, answers, strict=True) if not answer]


def in_time(work: Callable[[], dict[str, Any]], until: float) -> dict[str, Any]:
    """Return the result of `work`, or {"error": ...} if it raises or is not finished in time.

    Unfinished work is left in its thread, because some collective libraries have no timeout.
    """
    results: list[dict[str, Any]] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append({"error": " ".join(str(error).split())[:300] or type(error).__name__})

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(0.1, until - time.monotonic()))
    return results[0] if results else {"error": LATE}


def all_reduce(store: Store, me: Ranks, mine: Device, until: float) -> dict[str, Any]:
    """Sum one number and then a large array over all ranks. Return the speed of the second sum.

    algorithm_gb_per_s is the size of the array divided by the time. bus_gb_per_s is the rate on the links if
    the array goes round in a ring. Raise ValueError if a sum is wrong.
    """
    timeout = timedelta(seconds=max(1.0, until - time.monotonic()))
    if mine.kind != "cpu":
        getattr(torch, mine.type).set_device(mine.index)  # each thread has a current device of its own
    peers.choose_interface(me, mine)
    distributed.init_process_group(
        mine.backend,
        store=store,
        rank=me.rank,
        world_size=me.world_size,
        timeout=timeout,
        device_id=peers.bound_device(mine),
    )
    _sum(me, mine, 1)
    size = (16 if mine.kind == "cpu" else 256) << 20
    _sum(me, mine, size // 4)  # the first one sets up connections and buffers
    start = time.perf_counter()
    _sum(me, mine, size // 4, check=False)
    seconds = time.perf_counter() - start
    speed = size / seconds / 1e9
    return {
        "bytes": size,
        "seconds": round(seconds, 5),
        "algorithm_gb_per_s": round(speed, 3),
        "bus_gb_per_s": round(speed * 2 * (me.world_size - 1) / me.world_size, 3),
    }


def _sum(me: Ranks, mine: Device, count: int, check: bool = True) -> None:
    tensor = torch.full((count,), float(me.rank + 1), device=mine.torch)
    distributed.all_reduce(tensor)
    total = me.world_size * (me.world_size + 1) / 2
    if check and not bool((tensor == total).all()):
        wrong = tensor[tensor != total][0].item()
        raise ValueError(f"an all-reduce of {count} numbers returned {wrong:g} instead of {total:g}")
    if not check and mine.kind != "cpu":
        getattr(torch, mine.type).synchronize()
