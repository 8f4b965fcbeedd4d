"""The tables of pairs on pages: what works with what, held by a test, and what is refused, with its sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from support import ROOT


class Row(NamedTuple):
    """A row: the option, whether it works, and its test or its sentence."""

    name: str
    works: bool
    words: str


def rows_of(page: str) -> list[Row]:
    """Return the rows of the table of a page."""
    found = re.findall(
        r"^\| (.*) \| (works|refused)[^|]* \| (.*) \|$", (ROOT / page).read_text(), re.MULTILINE
    )
    return [Row(name, result == "works", words) for name, result, words in found]


def check_rows(page: str, refused: Mapping[str, object], *files: str) -> list[Row]:
    """Check that each test of a page is in one of these files, and return the rows that are refused: those
    that ``refused`` has."""
    rows = rows_of(page)
    tests = "".join((ROOT / file).read_text() for file in files)
    for row in rows:
        name, _, case = row.words.strip("`]").partition("[")
        assert not row.works or f"def {name}(" in tests, row
        assert not row.works or not case or f'"{case}": ' in tests, row
    left = [row for row in rows if not row.works]
    assert {row.name for row in left} == refused.keys()
    return left
