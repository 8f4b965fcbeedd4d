"""Findings drawn at random, in strata of their severity."""

from __future__ import annotations

from tools.draw_findings import drawn, row

FINDINGS = [
    {"file": f"/jobs/{number}.sh", "line": number, "rule": "no-walltime", "severity": severity, "reason": ""}
    for number in range(1, 21)
    for severity in ("error", "warning", "note")
]
COUNTS = {"error": 5, "warning": 3, "note": 50}


def test_a_seed_gives_the_same_findings_in_any_order() -> None:
    first = list(drawn(FINDINGS, COUNTS, 7))
    assert first == list(drawn(FINDINGS[::-1], COUNTS, 7))
    assert first != list(drawn(FINDINGS, COUNTS, 8))
    assert [one["severity"] for one in first] == ["error"] * 5 + ["warning"] * 3 + ["note"] * 20


def test_a_row() -> None:
    assert row(FINDINGS[0], "/jobs") == "1.sh\t1\tno-walltime\terror\t\t"
