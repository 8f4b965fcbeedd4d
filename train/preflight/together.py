"""What the ranks find out together: first through the store of the rendezvous, then by an all-reduce.

The store is a key-value server in rank 0's process at MASTER_ADDR:MASTER_PORT, or in torchrun's agent.
With it, unlike in a collective operation, rank 0 can tell who does not answer.
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

from .. import peers
from ..device import Device
from ..ranks import Ranks
from .judge import LATE

PINGS, TOGETHER = 3, 32  # of so many hosts at once
CHUNK = 512  # keys of the store in one request
PATIENCE = 5.0  # seconds: for a file to be seen, for a connection, for the last word of a rank
WORKERS = 32
ALL = 32  # hosts of which each looks at each


def open_store(me: Ranks, until: float, serve: bool) -> distributed.Store:
    """A connection to the store; with `serve`, rank 0 also runs it. Raises OSError or RuntimeError."""
    if me.rank or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        wait_for_port(me.master_addr, me.master_port, until)
    timeout = timedelta(seconds=max(1.0, until - time.monotonic()))
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        store, _, _ = next(distributed.rendezvous("env://", me.rank, me.world_size, timeout=timeout))
    else:
        # As env:// does it, but without waiting for all ranks: who is missing shows in what they say.
        store = distributed.TCPStore(
            me.master_addr, me.master_port, None, serve and me.rank == 0, timeout, wait_for_workers=False
        )
    return distributed.PrefixStore("jobgen-preflight", store)


def wait_for_port(address: str, port: int, until: float) -> None:
    """Return when it takes connections; torch itself waits too, but longer than it is told to.

    Raises OSError if it does not in time.
    """
    while True:
        left = until - time.monotonic()
        try:
            socket.create_connection((address, port), max(0.5, min(PATIENCE, left))).close()
            return
        except OSError:
            if left <= 0:
                raise
        time.sleep(0.1)


class Board:
    """What the ranks tell each other, as JSON under names."""

    def __init__(self, store: distributed.Store) -> None:
        self._store = store
        self._arrived, self._open = 0, list[int]()

    def arrive(self, value: Any) -> None:
        """Add a value to those that rank 0 gets by `arrived`."""
        self.put(f"arrival/{self._store.add('arrivals', 1)}", value)

    def arrived(self) -> list[Any]:
        """What has come since the last call. One request tells whether anything has."""
        count = self._store.add("arrivals", 0)
        self._open += range(self._arrived + 1, count + 1)
        self._arrived = count
        here = {number: value for number, value in self._there("arrival", self._open).items() if value}
        self._open = [number for number in self._open if number not in here]
        return list(here.values())

    def _there(self, name: str, numbers: Sequence[int]) -> dict[int, Any]:
        """What is there now under name/NUMBER; None for what is not."""
        found: dict[int, Any] = {}
        for first in range(0, len(numbers), CHUNK):
            some = numbers[first : first + CHUNK]
            keys = [f"{name}/{number}" for number in some]
            all_there = self._store.check(keys)
            here = [key for key in keys if all_there or self._store.check([key])]
            values = dict(zip(here, self._store.multi_get(here) if here else [], strict=True))
            for number, key in zip(some, keys, strict=True):
                found[number] = json.loads(values[key]) if key in values else None
        return found

    def put(self, name: str, value: Any) -> None:
        self._store.set(name, json.dumps(value))

    def take(self, name: str, until: float) -> Any:
        """The value once it is there; None if that takes too long, or the store is gone."""
        try:
            self._store.wait([name], timedelta(seconds=max(0.05, until - time.monotonic())))
            return json.loads(self._store.get(name))
        except RuntimeError:
            return None

    def gather(self, name: str, ranks: Iterable[int], until: float) -> dict[int, Any]:
        """What these ranks have put under name/RANK; None for those that have not."""
        wanted = list(ranks)
        with contextlib.suppress(RuntimeError):  # some are missing
            for first in range(0, len(wanted), CHUNK):
                left = timedelta(seconds=max(0.05, until - time.monotonic()))
                self._store.wait([f"{name}/{rank}" for rank in wanted[first : first + CHUNK]], left)
        try:
            return self._there(name, wanted)
        except RuntimeError:  # the store is gone
            return dict.fromkeys(wanted)


def serve_clock(board: Board, ranks: Sequence[int], until: float) -> None:
    """On rank 0: answer with its own time, a few ranks at once, so that none waits long for another."""
    for first in range(0, len(ranks), TOGETHER):
        some = ranks[first : first + TOGETHER]
        for rank in some:
            board.put(f"go/{rank}", True)
        for i in range(PINGS):
            for rank in some:
                if board.take(f"ping/{rank}/{i}", until) is not None:
                    board.put(f"pong/{rank}/{i}", time.time())


def ask_clock(board: Board, rank: int, until: float) -> tuple[float, float]:
    """Seconds by which this clock is ahead of rank 0's, and how far off that may be: half a round trip."""
    board.take(f"go/{rank}", until)
    best = (0.0, PATIENCE)
    for i in range(PINGS):
        asked = time.time()
        board.put(f"ping/{rank}/{i}", True)
        answer = board.take(f"pong/{rank}/{i}", until)
        if answer is None:
            break
        half = (time.time() - asked) / 2
        best = min(best, (asked + half - answer, half), key=lambda pair: pair[1])
    return best


def others(host: str, hosts: Sequence[str]) -> list[str]:
    """The hosts that this one looks at: all others; of many those 1, 2, 4, 8... places after it, so that the
    work of a host grows with the logarithm of their number, and a bad one still has most of the trouble."""
    at, count = hosts.index(host), len(hosts)
    if count <= ALL:
        return [other for other in hosts if other != host]
    return [hosts[(at + (1 << i)) % count] for i in range((count - 1).bit_length())]


def unseen(files: Mapping[str, Mapping[str, str]], until: float) -> list[str]:
    """The hosts whose file cannot be read here. A network file system may need a moment to show it."""
    until = min(until, time.monotonic() + PATIENCE)
    missing = dict(files)
    while True:
        missing = {host: wrote for host, wrote in missing.items() if not _reads(wrote)}
        if not missing or time.monotonic() > until:
            return list(missing)
        time.sleep(0.2)


def _reads(wrote: Mapping[str, str]) -> bool:
    try:
        os.listdir(Path(wrote["file"]).parents[1])  # has a network file system look again
        os.listdir(Path(wrote["file"]).parent)
        return Path(wrote["file"]).read_text(encoding="utf-8") == wrote["nonce"]
    except OSError:
        return False


def listen(towards: str) -> socket.socket:
    """A listening socket at the address by which this host reaches the others."""
    family, _, _, _, target = socket.getaddrinfo(towards, 1, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(target)  # sends nothing
        own = probe.getsockname()[0]
    server = socket.socket(family)
    server.bind((own, 0))
    server.listen(1024)
    return server


def unreachable(addresses: Mapping[str, Sequence[Any]], until: float) -> list[str]:
    """The hosts to whose (address, port) no TCP connection can be made from here."""

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
    """What `work` returns; {"error"} if it raises, or is not done in time: some collective libraries know
    no time limit, so it is left behind in its thread."""
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


def all_reduce(store: distributed.Store, me: Ranks, mine: Device, until: float) -> dict[str, Any]:
    """Sum one number, then a large array, over all ranks; how fast the second was.

    algorithm is the array's bytes by the time, bus what the links carried if it went round in a ring.
    """
    timeout = timedelta(seconds=max(1.0, until - time.monotonic()))
    if mine.kind != "cpu":
        getattr(torch, mine.type).set_device(mine.index)  # each thread has a current device of its own
    peers.choose_interface(me, mine)
    bound = {"device_id": mine.torch} if mine.type == "cuda" and me.world_size > 1 else {}
    distributed.init_process_group(
        mine.backend, store=store, rank=me.rank, world_size=me.world_size, timeout=timeout, **bound
    )
    _sum(me, mine, 1)
    size = (16 if mine.kind == "cpu" else 256) << 20
    _sum(me, mine, size // 4)  # the first one sets up connections and buffers
    began = time.perf_counter()
    _sum(me, mine, size // 4, check=False)
    seconds = time.perf_counter() - began
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
    wanted = me.world_size * (me.world_size + 1) / 2
    if check and not bool((tensor == wanted).all()):
        wrong = tensor[tensor != wanted][0].item()
        raise ValueError(f"an all-reduce of {count} numbers gave {wrong:g} in place of {wanted:g}")
    if not check and mine.kind != "cpu":
        getattr(torch, mine.type).synchronize()
