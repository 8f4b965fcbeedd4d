"""The walk-throughs of CONTRIBUTING.md."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from support import ROOT

_PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def block(section: str, language: str, number: int = 0) -> str:
    """Return a block of a language in a section of the page; ``number`` counts them from 0."""
    text = _PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return str(re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[number])


def row(section: str, module: ModuleType) -> Any:
    """Return the row that a section adds to the table of a module."""
    (found,) = eval(f"{{{block(section, 'python')}}}", vars(module)).values()
    return found
