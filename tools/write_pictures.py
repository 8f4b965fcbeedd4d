"""Write the pictures of the README: python -m tools.write_pictures

Chromium shows the example of a report, and the page of jobgen web with a script of two nodes.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

from support.browser import Browser, browser
from support.web_page import Page, served

from tools.docsite import report

FOLDER = Path(__file__).resolve().parent.parent / "docs/pictures"
WIDTH, HEIGHT = 1280, 760
FORM = {"scheduler": "slurm", "nodes": "2", "gpus_per_node": "4", "launcher": "torchrun", "walltime": "2h"}


def main() -> None:
    with tempfile.TemporaryDirectory() as name, browser(Path(name) / "profile") as opened:
        folder = Path(name)
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        opened.call("Emulation.setDeviceMetricsOverride", **size)
        opened.call("Emulation.setScrollbarsHidden", hidden=True)
        (folder / "report.html").write_text(report.page(), encoding="utf-8")
        opened.open(folder / "report.html")
        _write(opened, "report.png")
        web = str(folder / "web")
        subprocess.run([sys.executable, "-m", "jobgen", "web", "-o", web], check=True)
        with served(folder / "web") as address:
            page = Page(opened, address)
            page.open(FORM)
            page.wait("linked")
            _write(opened, "web.png")


def _write(opened: Browser, name: str) -> None:
    """Write what the window shows."""
    shot = opened.call("Page.captureScreenshot", format="png")
    (FOLDER / name).write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
