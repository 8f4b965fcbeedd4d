"""The page of jobgen web in Chromium, after it was cached, compared with the command line."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, wall_seconds

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from support.browser import browser
from support.warm_python import SESSION
from support.web_page import Page, built, served

RUNS = 5
COMMAND = [sys.executable, "-m", "jobgen", "slurm", "--nodes", "2", "--launcher", "torchrun"]
_CHANGE = """(async () => {
  const begin = performance.now();
  document.forms[0].nodes.value = %d;
  document.forms[0].dispatchEvent(new Event("input"));
  while (document.body.dataset.state === "asked") await new Promise((go) => setTimeout(go, 1));
  return performance.now() - begin;
})()"""


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as place:
        SESSION[:] = [Path(place, "session")]
        SESSION[0].mkdir()
        folder = built(Path(place, "page"))
        with served(folder) as url, browser(Path(place, "profile")) as opened:
            page = Page(opened, url)
            first = [_first(page) for _ in range(RUNS)]
            changes = [page.run(_CHANGE % nodes) for nodes in range(3, 23)]
        size = sum(path.stat().st_size for path in folder.iterdir())
    typed = 1000 * statistics.median(wall_seconds(COMMAND) for _ in range(RUNS))
    yield Figure("files of the page", size / 1e6, "MB")
    yield Figure("first script of the page", statistics.median(first), "ms", typed, "the command line")
    yield Figure("a change in the form", statistics.median(changes), "ms", typed, "the command line")


def _first(page: Page) -> float:
    begin = time.monotonic()
    page.open({"scheduler": "slurm", "nodes": "2", "launcher": "torchrun"})
    return 1000 * (time.monotonic() - begin)
