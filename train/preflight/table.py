"""The table in the job's log: one line per host; for many hosts, one line per group of equal hosts. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..ranks import span
from . import binding
from .judge import Facts, Finding, bad_hosts, describe

COLUMNS = (
    *("host", "ranks", "devices", "binding", "versions", "interface", "all-reduce", "write", "clock"),
    "verdict",
)
ALIKE = ("devices", "binding", "versions", "interface", "verdict")
EACH = 32  # maximum number of hosts with a line each
VERSIONS = ("python", "torch", "toolkit", "CANN", "driver", "deepspeed")


def rows(
    facts: Facts,
    views: Mapping[str, Mapping[str, Any] | None],
    sums: Mapping[int, Mapping[str, Any] | None],
    findings: Sequence[Finding],
) -> list[dict[str, str]]:
    """Return one row per host, in the order of ranks, missing hosts last; '-' for unknown values."""
    bad = bad_hosts(findings)
    ranks: dict[str, list[int]] = {}
    for rank, each in facts.items():
        ranks.setdefault(each["host"], []).append(rank)
    ranks |= {host: [] for host in bad if host not in ranks}
    return [_row(host, ranks[host], facts, views.get(host), sums, host in bad) for host in ranks]


def _row(
    host: str,
    ranks: Sequence[int],
    facts: Facts,
    views: Mapping[str, Any] | None,
    sums: Mapping[int, Mapping[str, Any] | None],
    bad: bool,
) -> dict[str, str]:
    mine = [facts[rank] for rank in ranks]
    record = next((each["write"] for each in mine if each["write"]), None)
    first = mine[0] if mine else {}
    versions = first.get("versions") or {}
    rates = [report for rank in ranks if (report := sums.get(rank)) and not report.get("error")]
    values = {
        "host": host,
        "ranks": span(ranks),
        "devices": " or ".join(dict.fromkeys(describe(each["device"]) for each in mine if each["device"])),
        "binding": binding.word(mine),
        "versions": " ".join(f"{name} {versions[name]}" for name in VERSIONS if versions.get(name)),
        "interface": (first.get("interface") or {}).get("name") or "",
        "all-reduce": min((_rate(report) for report in rates), default=""),
        "write": f"{record['seconds'] * 1000:.1f} ms, {record['free'] / 2**30:.0f} GiB free"
        if record
        else "",
        "clock": _offset(views["clock"][0]) if views else "",
        "verdict": "BAD" if bad else "ok",
    }
    return {column: values[column] or "-" for column in COLUMNS}


def _offset(seconds: float) -> str:
    return f"{seconds:+.1f} s" if abs(seconds) >= 1 else f"{seconds * 1000:+.1f} ms"


def _rate(report: Mapping[str, Any]) -> str:
    return f"{report['algorithm_gb_per_s']:.2f} GB/s (bus {report['bus_gb_per_s']:.2f})"


def short(table_rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the rows; for more than EACH, one row for each group of equal hosts.

    The row of a group has the first host, the number of the others, and the worst of the measured values.
    """
    if len(table_rows) <= EACH:
        return list(table_rows)
    groups: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for row in table_rows:
        groups.setdefault(tuple(row[column] for column in ALIKE), []).append(row)
    return [_together(group) for group in groups.values()]


def _together(group: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    if len(group) == 1:
        return group[0]
    parts = [row["ranks"] for row in group if row["ranks"] != "-"]
    return {
        **group[0],
        "host": f"{group[0]['host']} and {len(group) - 1} more",
        "ranks": f"{parts[0]}...{parts[-1]}" if len(parts) > 1 else "".join(parts) or "-",
        "all-reduce": min((row["all-reduce"] for row in group), key=_number),
        "write": max((row["write"] for row in group), key=_number),
        "clock": max((row["clock"] for row in group), key=lambda text: abs(_number(text))),
    }


def _number(text: str) -> float:
    """Return the number at the beginning of the text, times in milliseconds; 0 for '-'."""
    if text == "-":
        return 0.0
    value, unit = text.split()[:2]
    return float(value) * (1000 if unit == "s" else 1)


def lines(table_rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the rows as aligned text, below the names of the columns."""
    every = [dict(zip(COLUMNS, COLUMNS, strict=True)), *table_rows]
    widths = {column: max(len(row[column]) for row in every) for column in COLUMNS}
    return ["  ".join(row[column].ljust(widths[column]) for column in COLUMNS).rstrip() for row in every]
