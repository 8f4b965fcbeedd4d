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


def append(file: Path, row: Row) -> None:
    """Add a row to a file of lines of JSON. A process that is killed leaves its earlier rows."""
    with open(file, "a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(row)) + "\n")


def read(file: Path) -> list[Row]:
    """Return the rows of a file; [] if there is none. An incomplete last line is ignored."""
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").split("\n")[:-1]
    return [Row(**json.loads(line)) for line in lines]


def table(rows: Iterable[Row]) -> str:
    """Return the rows as a table in Markdown."""
    lines = ["| part | what | value | compared with | ratio | verdict |", "|---|---|---|---|---|---|"]
    for row in rows:
        other = "" if row.other is None else f"{shown(row.other)} {row.unit}: "
        ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
        cells = (
            row.part,
            row.what,
            f"{shown(row.value)} {row.unit}",
            other + row.against,
            ratio,
            row.verdict,
        )
        lines.append("| " + " | ".join(str(cell).strip().replace("|", "/") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def shown(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def write(folder: Path, rows: Sequence[Row], facts: Mapping[str, Any]) -> None:
    """Write gpu.md and gpu.json into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {**facts, "rows": [asdict(row) | {"ratio": row.ratio} for row in rows]}
    (folder / "gpu.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    (folder / "gpu.md").write_text(table(rows), encoding="utf-8")
