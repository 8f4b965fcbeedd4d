"""The table in the job's log: a line a host. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from .judge import Facts, Finding, bad_hosts, describe

COLUMNS = ("host", "ranks", "devices", "versions", "interface", "all-reduce", "write", "clock", "verdict")
VERSIONS = ("python", "torch", "toolkit", "CANN", "driver", "deepspeed")


def rows(
    facts: Facts,
    seen: Mapping[str, Mapping[str, Any] | None],
    reduced: Mapping[int, Mapping[str, Any] | None],
    findings: Sequence[Finding],
) -> list[dict[str, str]]:
    """One a host, in rank order, those that never came up last; '-' for what is not known."""
    bad = bad_hosts(findings)
    hosts = list(dict.fromkeys([*(each["host"] for each in facts.values()), *bad]))
    return [_row(host, facts, seen.get(host), reduced, host in bad) for host in hosts]


def _row(
    host: str,
    facts: Facts,
    seen: Mapping[str, Any] | None,
    reduced: Mapping[int, Mapping[str, Any] | None],
    bad: bool,
) -> dict[str, str]:
    ranks = [rank for rank, each in facts.items() if each["host"] == host]
    mine = [facts[rank] for rank in ranks]
    wrote = next((each["write"] for each in mine if each["write"]), None)
    first = mine[0] if mine else {}
    versions = first.get("versions") or {}
    rates = [report for rank in ranks if (report := reduced.get(rank)) and not report.get("error")]
    values = {
        "host": host,
        "ranks": span(ranks),
        "devices": " or ".join(dict.fromkeys(describe(each["device"]) for each in mine if each["device"])),
        "versions": " ".join(f"{name} {versions[name]}" for name in VERSIONS if versions.get(name)),
        "interface": (first.get("interface") or {}).get("name") or "",
        "all-reduce": min((_rate(report) for report in rates), default=""),
        "write": f"{wrote['seconds'] * 1000:.1f} ms, {wrote['free'] / 2**30:.0f} GiB free" if wrote else "",
        "clock": f"{seen['clock'][0] * 1000:+.1f} ms" if seen else "",
        "verdict": "BAD" if bad else "ok",
    }
    return {column: values[column] or "-" for column in COLUMNS}


def _rate(report: Mapping[str, Any]) -> str:
    return f"{report['algorithm_gb_per_s']:.2f} GB/s (bus {report['bus_gb_per_s']:.2f})"


def span(ranks: Sequence[int]) -> str:
    """[0, 1, 2, 5] as '0-2,5'."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def lines(made: Sequence[Mapping[str, str]]) -> list[str]:
    """The rows as aligned text, under the columns' names."""
    every = [dict(zip(COLUMNS, COLUMNS, strict=True)), *made]
    widths = {column: max(len(row[column]) for row in every) for column in COLUMNS}
    return ["  ".join(row[column].ljust(widths[column]) for column in COLUMNS).rstrip() for row in every]
