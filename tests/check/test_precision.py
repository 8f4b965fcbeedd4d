"""The findings that were drawn, read and judged: tests/check/precision.tsv, and the figures in docs/check.md."""

from __future__ import annotations

import csv
import re
from collections import Counter

import pytest
from support import ROOT

from jobgen.check.rules.table import RULES
from tools.draw_findings import COLUMNS, SEVERITIES

LEAST = {"error": 97, "warning": 95, "note": 90}  # percent


def read(name: str) -> list[dict[str, str]]:
    with (ROOT / "tests/check" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


LISTS = {name: read(name) for name in ("precision.tsv", "read_findings.tsv")}
ROWS = LISTS["precision.tsv"]


@pytest.mark.parametrize("name", LISTS)
def test_the_lists(name: str) -> None:
    rows = LISTS[name]
    assert list(rows[0]) == list(COLUMNS)
    assert len(rows) >= 150
    assert {row["rule"] for row in rows} <= RULES.keys()
    assert {row["verdict"] for row in rows} <= {"true", "false"}
    assert all(row["reason"] for row in rows)


def test_enough_is_true() -> None:
    for severity in SEVERITIES:
        verdicts = Counter(row["verdict"] for row in ROWS if row["severity"] == severity)
        assert 100 * verdicts["true"] >= LEAST[severity] * verdicts.total(), severity


@pytest.mark.parametrize("name", LISTS)
def test_the_figures_in_the_documentation(name: str) -> None:
    text = re.sub(r"\s+", " ", (ROOT / "docs/check.md").read_text(encoding="utf-8"))
    for severity in SEVERITIES:
        verdicts = Counter(row["verdict"] for row in LISTS[name] if row["severity"] == severity)
        assert f"{verdicts['true']} of {verdicts.total()} {severity}s" in text
