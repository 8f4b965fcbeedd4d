"""Findings as text, JSON or SARIF 2.1.0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobgen.check.checker import Finding
from jobgen.check.rules.table import RULES
from jobgen.errors import visible
from jobgen.values.version import __version__

_PAGE = "docs/rules/{}.md"
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def as_text(findings: Sequence[Finding]) -> str:
    """Return two lines per finding: the problem, and the fix."""
    return "".join(
        visible(f"{found.file}:{found.line}: {found.severity}: {found.reason} [{found.rule}]")
        + f"\n    {visible(found.fix)}\n"
        for found in findings
    )


def summary(findings: Sequence[Finding], files: int) -> str:
    counts = [
        f"{count} {severity}{'s' if count > 1 else ''}"
        for severity in ("error", "warning", "note")
        if (count := sum(found.severity == severity for found in findings))
    ]
    return f"{', '.join(counts) or 'nothing'} found in {files} script{'s' if files > 1 else ''}"


def as_json(findings: Sequence[Finding]) -> str:
    import json  # late: the text does not need it

    return (
        json.dumps([found._asdict() | {"page": _PAGE.format(found.rule)} for found in findings], indent=2)
        + "\n"
    )


def as_sarif(findings: Sequence[Finding]) -> str:
    import json

    ids = list(RULES)
    rules = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.title},
            "help": {"text": _PAGE.format(rule.id)},  # a helpUri must be absolute
            "defaultConfiguration": {"level": rule.severity},
        }
        for rule in RULES.values()
    ]
    driver = {"name": "jobgen", "version": __version__, "rules": rules}
    results = [_result(found, ids.index(found.rule)) for found in findings]
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=2) + "\n"


def _result(found: Finding, index: int) -> dict[str, Any]:
    from urllib.parse import quote

    place = {"artifactLocation": {"uri": quote(found.file)}, "region": {"startLine": found.line}}
    return {
        "ruleId": found.rule,
        "ruleIndex": index,
        "level": found.severity,
        "message": {"text": f"{found.reason}. Fix: {found.fix}"},
        "locations": [{"physicalLocation": place}],
    }


def as_list() -> str:
    """Return all rules, one per line."""
    width = max(map(len, RULES))
    return "".join(f"{rule.id:{width}}  {rule.severity:7}  {rule.title}\n" for rule in RULES.values())
