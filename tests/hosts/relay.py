#!/usr/bin/env python3
"""A bad connection, as the ProxyCommand of ssh: relay.py FOLDER HOST:PORT...

It carries bytes between its standard input and output and the port. With several hosts, each connection takes the next
one. FOLDER/settings.json has the keys delay (seconds, for each direction), rate (bytes a second in each direction), cut
(["up", 5123]: so many bytes of this direction arrive and no more; "up" is to the host) and then ("close": the connection
is closed at the cut; "stall": it stays open and carries nothing), and offline (true: there is no connection). None of them is necessary.

Each connection has a file, FOLDER/1, FOLDER/2, ...: its bytes up, its bytes down, and "open", "closed" or "cut".
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

UP, DOWN = "up", "down"
STDIN, STDOUT = 0, 1


class Record:
    """The file of a connection."""

    def __init__(self, folder: Path) -> None:
        self.number = 1 + sum(path.name.isdigit() for path in folder.iterdir())
        while True:
            with contextlib.suppress(FileExistsError):
                self.file = os.open(folder / str(self.number), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
                break
            self.number += 1
        self.bytes = {UP: 0, DOWN: 0}
        self.write("open")

    def write(self, state: str) -> None:
        os.pwrite(self.file, f"{self.bytes[UP]:12} {self.bytes[DOWN]:12} {state:6}\n".encode(), 0)


class Relay:
    """The two directions of a connection."""

    def __init__(self, settings: dict[str, Any], record: Record, port: socket.socket) -> None:
        self.delay = settings.get("delay", 0)
        self.rate = settings.get("rate", 0)
        self.cut, self.limit = settings.get("cut", ("", 0))
        self.stalls = settings.get("then") == "stall"
        self.record = record
        self.port = port
        self.stalled = False
        self.lock = threading.Lock()

    def run(self) -> None:
        signal.signal(signal.SIGHUP, lambda *_: self.end("closed"))  # of an ssh that ends
        ends = {UP: (STDIN, self.port.fileno()), DOWN: (self.port.fileno(), STDOUT)}
        for direction, (source, target) in ends.items():
            waiting: queue.Queue[tuple[float, bytes]] = queue.Queue(1000)
            threading.Thread(target=self.read, args=(source, waiting), daemon=True).start()
            threading.Thread(target=self.deliver, args=(direction, target, waiting), daemon=True).start()
        threading.Event().wait()

    def read(self, source: int, waiting: queue.Queue[tuple[float, bytes]]) -> None:
        size = max(1, min(1 << 16, self.rate // 10 if self.rate else 1 << 16))
        data = b"first"
        while data:
            try:
                data = os.read(source, size)
            except OSError:
                data = b""
            waiting.put((time.monotonic() + self.delay, data))

    def deliver(self, direction: str, target: int, waiting: queue.Queue[tuple[float, bytes]]) -> None:
        while True:
            due, data = waiting.get()
            time.sleep(max(0, due - time.monotonic()))
            with self.lock:  # the other direction carries nothing any more at the cut
                self.forward(direction, target, data)
            if self.rate:
                time.sleep(len(data) / self.rate)

    def forward(self, direction: str, target: int, data: bytes) -> None:
        """Write the bytes. Nothing is the end of the direction, with which the connection ends."""
        before = self.record.bytes[direction]
        is_cut = direction == self.cut and before + len(data) >= self.limit
        if is_cut:
            data = data[: self.limit - before]
        try:
            os.write(target, data)
        except OSError:
            self.end("closed")
        self.record.bytes[direction] += len(data)
        if is_cut and self.stalls:
            self.record.write("cut")
            self.stalled = True
            threading.Event().wait()
        if is_cut or not data:
            self.end("cut" if is_cut else "closed")
        self.record.write("open")

    def end(self, state: str) -> None:
        if not self.stalled:
            self.record.write(state)
        if state == "cut":  # what is on its way does not arrive
            self.port.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.port.close()
        os._exit(state == "cut")


def main(folder: Path, hosts: list[str]) -> None:
    settings = json.loads((folder / "settings.json").read_text())
    if settings.get("offline"):
        sys.exit("relay: Network is unreachable")
    record = Record(folder)
    host, _, port = hosts[(record.number - 1) % len(hosts)].rpartition(":")
    try:
        connection = socket.create_connection((host, int(port)), 20)
    except OSError as error:
        record.write("closed")
        sys.exit(f"relay: {host}: {error}")
    connection.settimeout(None)
    Relay(settings, record, connection).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
