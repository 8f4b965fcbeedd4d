"""Training scripts as people write them: right ones, and ones with a single mistake, which names the rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import ROOT

from jobgen.check.files import FileChecks
from jobgen.check.ranks.frameworks import table

SCRIPTS = sorted((Path(__file__).parent / "training").glob("*_*.*"))
RIGHT = [path for path in SCRIPTS if path.name.startswith("right_")]
WRONG = [path for path in SCRIPTS if path.name.startswith("wrong_")]


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_a_right_script_has_notes_only(path: Path) -> None:
    assert [one for one in FileChecks().findings(str(path)) if one.severity != "note"] == []


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_the_mistake_of_a_script_is_found(path: Path) -> None:
    """The name of the file has the name of the rule."""
    rule = path.stem.split("_")[1]
    assert rule in {one.rule for one in FileChecks().findings(str(path))}


def test_the_page_has_the_table_of_frameworks() -> None:
    assert "\n".join(table()) in (ROOT / "docs/check.md").read_text(encoding="utf-8")
