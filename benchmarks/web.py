"""The page of jobgen web in Chromium, compared with Pyodide alone and with the command line.

Cold is the first visit of a browser, warm are the visits after it.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, wall_seconds

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from support.browser import Browser, browser
from support.warm_python import SESSION
from support.web_page import Page, built, served

RUNS = 5
COMMAND = [sys.executable, "-m", "jobgen", "slurm", "--nodes", "2", "--launcher", "torchrun"]
FIRST = "#scheduler=slurm&nodes=2&launcher=torchrun"
_CHANGE = """(async () => {
  const begin = performance.now();
  document.forms[0].nodes.value = %d;
  document.forms[0].dispatchEvent(new Event("input"));
  while (document.body.dataset.state === "asked") await new Promise((go) => setTimeout(go, 1));
  return performance.now() - begin;
})()"""
_ALONE = {
    "alone.html": '<!DOCTYPE html><body><script type="module" src="alone.js"></script>',
    "alone.js": 'new Worker("alone.worker.js", { type: "module" }).onmessage = () => {'
    ' document.body.dataset.state = "shown"; };',
    "alone.worker.js": 'import { loadPyodide } from "./pyodide.mjs"; await loadPyodide(); postMessage(1);',
}


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as place:
        SESSION[:] = [Path(place, "session")]
        SESSION[0].mkdir()
        folder = built(Path(place, "page"))
        size = sum(path.stat().st_size for path in folder.iterdir())
        for name, text in _ALONE.items():
            (folder / name).write_text(text)
        with served(folder) as url:
            visits = {
                which: [_visits(url + page, Path(place, f"{which}-{run}")) for run in range(RUNS)]
                for which, page in (("page", FIRST), ("alone", "alone.html"))
            }
            with browser(Path(place, "profile")) as opened:
                page = Page(opened, url)
                changes = [page.run(_CHANGE % nodes) for nodes in range(3, 23)]
    typed = 1000 * statistics.median(wall_seconds(COMMAND) for _ in range(RUNS))
    yield Figure("files of the page", size / 1e6, "MB")
    for at, when in enumerate(("cold", "warm")):
        ours, alone = (statistics.median(one[at] for one in visits[which]) for which in ("page", "alone"))
        yield Figure(f"first script of the page, {when}", ours, "ms", alone, "Pyodide alone")
    yield Figure("a change in the form", statistics.median(changes), "ms", typed, "the command line")


def _visits(url: str, profile: Path) -> tuple[float, float]:
    """Return the milliseconds of the first visit of a browser, and the median of those after it."""
    with browser(profile) as opened:
        cold, *warm = [_first(opened, url) for _ in range(RUNS)]
    return cold, statistics.median(warm)


def _first(opened: Browser, url: str) -> float:
    opened.open("about:blank")
    begin = time.monotonic()
    opened.open(url)
    while opened.run("document.body.dataset.state") not in ("shown", "linked"):
        time.sleep(0.002)
    taken = 1000 * (time.monotonic() - begin)
    time.sleep(1)  # in which the browser keeps what it has loaded
    return taken
