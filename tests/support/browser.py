"""Chromium without a window, driven over a pipe by its DevTools protocol: no package of Python is needed."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.require import absent

NAMES = ("chromium-headless-shell", "chromium", "google-chrome")
PATIENCE = 200  # seconds, for a machine that has much more to do than it can
_QUIET = (
    "Network.requestWillBeSent",
    "Runtime.consoleAPICalled",
    "Runtime.exceptionThrown",
    "Log.entryAdded",
)


class Browser:
    """One page. ``events`` are what it asked of the network, and what it had to complain of."""

    def __init__(self, out: int, back: int) -> None:
        self._out, self._back, self._rest = out, back, b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the protocol, and its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda said: said.get("id") == self._number)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, page: Path | str) -> None:
        """Load a file or an address, to the end."""
        self.call("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        self._until(lambda said: said.get("method") == "Page.loadEventFired")

    def run(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """The whole page as PNG."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def requests(self, own: str = "file://") -> list[str]:
        """The addresses that were asked for, less those that begin with ``own``."""
        asked = (e["params"]["request"]["url"] for e in self.events if e["method"].startswith("Network"))
        return [url for url in asked if not url.startswith((own, "data:", "blob:"))]

    def complaints(self) -> list[dict[str, Any]]:
        """Errors and warnings of the page and its script."""
        return [event for event in self.events if not event["method"].startswith("Network")]

    def _until(self, wanted: Any) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while True:
            while b"\0" not in self._rest:
                assert select.select([self._back], [], [], max(0, deadline - time.monotonic()))[0], (
                    "no answer"
                )
                read = os.read(self._back, 1 << 20)
                assert read, "the browser has gone"
                self._rest += read
            line, _, self._rest = self._rest.partition(b"\0")
            said: dict[str, Any] = json.loads(line)
            if said.get("method") in _QUIET:
                self.events.append(said)
            if wanted(said):
                return said


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own, which ends with the block."""
    found = [path for name in NAMES if (path := _path(name))]
    if not found:
        absent("no Chromium is installed: tests/install.sh installs it")
    to_read, out = os.pipe()
    back, to_write = os.pipe()
    words = f'exec "$@" 3<&{to_read} 4>&{to_write}'
    options = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        "--remote-debugging-pipe",
    )
    process = subprocess.Popen(
        ["bash", "-c", words, "bash", found[0], *options, f"--user-data-dir={profile}"],
        pass_fds=(to_read, to_write),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(to_write)
    try:
        yield Browser(out, back)
    finally:
        os.close(out)  # which ends it
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(back)


def _path(name: str) -> str | None:
    """Where it is, unless it comes from a snap, which sees no files in /tmp."""
    path = shutil.which(name)
    return None if path is None or path.startswith("/snap/") else path
