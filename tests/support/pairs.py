"""The tables of pairs in the documentation: each row works, and names its test, or is refused, with the sentence."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable

from support import ROOT


def check(
    page: str, refused: Iterable[str], rendered: Callable[[str], subprocess.CompletedProcess[str]]
) -> None:
    """Check the rows of a page; ``rendered`` makes the job of a row that is refused, of which ``refused`` are
    the names."""
    text = (ROOT / "docs" / page).read_text()
    rows = re.findall(r"^\| (.*) \| (works|refused) \| (.*) \|$", text, re.MULTILINE)
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for _, result, words in rows:
        assert result == "refused" or f"def {words.strip('`')}(" in tests, words
    assert {name for name, result, _ in rows if result == "refused"} == set(refused)
    for name, result, words in rows:
        if result == "refused":
            done = rendered(name)
            assert done.returncode == 2, name
            assert words in done.stderr, (name, done.stderr)
