"""The results of the benchmark, and their table. Does not import torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One result.

    value: a number or a text; other: the value that it is compared with, and against: what has that value
    verdict: ok, wrong or left out; '' for a measurement
    """

    part: str
    what: str
    value: float | str
    unit: str = ""
    other: float | None = None
    against: str = ""
    verdict: str = ""

    @property
    def ratio(self) -> float | None:
        numbers = isinstance(self.value, int | float) and self.other
        return self.value / self.other if numbers else None  # type: ignore[operator]

    def __str__(self) -> str:
        """Return the row as one of a table in Markdown."""
        other = "" if self.other is None else f"{shown(self.other)} {self.unit}: "
        ratio = "" if self.ratio is None else f"{self.ratio:.3f}"
        value = f"{shown(self.value)} {self.unit}"
        cells = (self.part, self.what, value, other + self.against, ratio, self.verdict)
        return "| " + " | ".join(cell.strip().replace("|", "/") for cell in cells) + " |"


def table(rows: Iterable[Row]) -> str:
    """Return the rows as a table in Markdown."""
    head = ["| part | what | value | compared with | ratio | verdict |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *map(str, rows)]) + "\n"


def shown(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def write(folder: Path, name: str, rows: Sequence[Row], facts: Mapping[str, Any]) -> None:
    """Write NAME.md and NAME.json into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {**facts, "rows": [asdict(row) | {"ratio": row.ratio} for row in rows]}
    (folder / f"{name}.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(table(rows), encoding="utf-8")
