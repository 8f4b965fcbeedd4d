"""The commands of the pages about hosts, typed on the laptop, each page from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import ROOT
from support.laptop import Laptop, User

pytestmark = pytest.mark.xdist_group("hosts")

BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WORDS = ("jobgen host ", "--host ", "jobgen fetch")


def text_of(page: Path) -> str:
    """Return the blocks of a page if it is about hosts."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return "".join(found) if any(word in block for block in found for word in WORDS) else ""


@pytest.mark.parametrize(
    "page", [one for one in sorted((ROOT / "docs").rglob("*.md")) if text_of(one)], ids=lambda one: one.name
)
def test_page_in_order(page: Path, laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    for name in ("train.py", "hello.py"):
        (laptop.work / name).write_text("print('hello')\n")
    done = laptop.run("bash", "-euxc", text_of(page), timeout=300)
    assert done.status == 0, done.err[-3000:]
