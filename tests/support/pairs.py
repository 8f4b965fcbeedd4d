"""The tables of pairs on pages: what works with what, held by a test, and what is refused, with its sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from support import ROOT


def check(page: str, refused: Iterable[str], refusal: Callable[[str], str]) -> None:
    """Check the rows of a page: those that work name a test and its case, and the others, whose names are in
    ``refused``, have a sentence of the ``refusal`` of their job."""
    rows = re.findall(
        r"^\| (.*) \| (works|refused)[^|]* \| (.*) \|$", (ROOT / "docs" / page).read_text(), re.M
    )
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for row in rows:
        name, _, case = row[2].strip("`]").partition("[")
        assert row[1] == "refused" or f"def {name}(" in tests, row
        assert row[1] == "refused" or not case or f'"{case}": ' in tests, row
    assert {name for name, result, _ in rows if result == "refused"} == set(refused)
    for name, result, words in rows:
        assert result == "works" or words in refusal(name), name
