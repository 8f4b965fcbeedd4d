"""The findings that were drawn, read and judged: tests/check/precision.tsv, and the figures in docs/check.md."""

from __future__ import annotations

import csv
import re
from collections import Counter

from support import ROOT

from jobgen.check.rules.table import RULES
from tools.draw_findings import COLUMNS, SEVERITIES

LEAST = {"error": 97, "warning": 95, "note": 90}  # percent
with (ROOT / "tests/check/precision.tsv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file, delimiter="\t"))


def test_the_list() -> None:
    assert list(ROWS[0]) == list(COLUMNS)
    assert len(ROWS) >= 150
    assert {row["rule"] for row in ROWS} <= RULES.keys()
    assert {row["verdict"] for row in ROWS} <= {"true", "false"}
    assert all(row["reason"] for row in ROWS)


def test_enough_is_true() -> None:
    for severity in SEVERITIES:
        verdicts = Counter(row["verdict"] for row in ROWS if row["severity"] == severity)
        assert 100 * verdicts["true"] >= LEAST[severity] * verdicts.total(), severity


def test_the_figures_in_the_documentation() -> None:
    text = re.sub(r"\s+", " ", (ROOT / "docs/check.md").read_text(encoding="utf-8"))
    for severity in SEVERITIES:
        verdicts = Counter(row["verdict"] for row in ROWS if row["severity"] == severity)
        assert f"{verdicts['true']} of {verdicts.total()} {severity}s" in text
