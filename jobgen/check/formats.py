"""Findings as text, JSON, SARIF 2.1.0 or the workflow commands of GitHub; and the text of a rule."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import cleandoc
from textwrap import fill, indent
from typing import Any

from jobgen.check.checker import Finding
from jobgen.check.places import Change
from jobgen.check.rule import Rule
from jobgen.check.rules.table import RULES
from jobgen.errors import visible
from jobgen.secrets import masked
from jobgen.values.version import __version__

_HELP = "jobgen help {}"
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_COLOURS = {"error": 31, "warning": 33, "note": 36}
_NOT_IN_MESSAGE = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_NOT_IN_PROPERTY = _NOT_IN_MESSAGE | {":": "%3A", ",": "%2C"}


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


def for_terminal(findings: Sequence[Finding], colours: bool) -> str:
    """Return for each finding the problem, the line of the source with a caret below, and the fix."""
    return "".join(_with_source(found, colours) for found in findings)


def _with_source(found: Finding, colours: bool) -> str:
    severity, marks = found.severity, _marks(found)
    if colours:
        severity, marks = (f"\x1b[{_COLOURS[severity]}m{text}\x1b[0m" for text in (severity, marks))
    place, reason = visible(f"{found.file}:{found.line}"), visible(found.reason)
    text = f"{place}: {severity}: {reason} [{found.rule}]\n"
    if source := _source(found):
        text += f"{found.line:>6} | {source}\n       | {marks}\n"
    return f"{text}    {visible(found.fix)}\n"


def _source(found: Finding) -> str:
    """Return the line of a finding for a terminal: without secrets, tabs and control characters."""
    return visible(masked(found.source.rstrip().expandtabs(4)))


def _marks(found: Finding) -> str:
    """Return a caret below the columns of a finding."""
    shown = _width(_source(found))
    start, end = (
        _width(found.source[: max(at - 1, 0)].expandtabs(4)) for at in (found.column, found.end_column)
    )
    start = min(start, max(shown - 1, 0))
    return " " * start + "^" + "~" * (min(end, shown) - start - 1)


def _width(text: str) -> int:
    """Return the columns of a text on a terminal, where a Chinese character has two."""
    from unicodedata import east_asian_width  # late: only terminals have columns

    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def as_json(findings: Sequence[Finding]) -> str:
    import json  # late: the text does not need it

    keys = ("file", "line", "column", "end_column", "rule", "severity", "reason", "fix")
    found = [{key: getattr(one, key) for key in keys} | {"help": _HELP.format(one.rule)} for one in findings]
    return json.dumps(found, indent=2) + "\n"


def as_sarif(findings: Sequence[Finding]) -> str:
    import json

    ids = list(RULES)
    rules = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.title},
            "help": {"text": text_of(rule)},
            "defaultConfiguration": {"level": rule.severity},
        }
        for rule in RULES.values()
    ]
    driver = {"name": "jobgen", "version": __version__, "rules": rules}
    results = [_result(found, ids.index(found.rule)) for found in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2) + "\n"


def _result(found: Finding, index: int) -> dict[str, Any]:
    from urllib.parse import quote

    file, region = {"uri": quote(found.file)}, {"startLine": found.line}
    if found.column:
        region |= {"startColumn": found.column, "endColumn": found.end_column}
    result = {
        "ruleId": found.rule,
        "ruleIndex": index,
        "level": found.severity,
        "message": {"text": _sentences(found)},
        "locations": [{"physicalLocation": {"artifactLocation": file, "region": region}}],
    }
    if found.changes:
        replacements = list(map(_replacement, dict.fromkeys(found.changes)))
        changes = [{"artifactLocation": file, "replacements": replacements}]
        result["fixes"] = [{"description": {"text": found.fix}, "artifactChanges": changes}]
    return result


def _sentences(found: Finding) -> str:
    return f"{found.reason}{'' if found.reason.endswith('?') else '.'} Fix: {found.fix}"


def _replacement(change: Change) -> dict[str, Any]:
    region = {
        "startLine": change.line,
        "startColumn": change.column,
        "endLine": change.end_line,
        "endColumn": change.end_column,
    }
    return {"deletedRegion": region, "insertedContent": {"text": change.text}}


def as_github(findings: Sequence[Finding]) -> str:
    """Return one workflow command per finding, which GitHub shows beside the line of a change."""
    return "".join(
        f"::{'notice' if found.severity == 'note' else found.severity} "
        f"file={_escaped(found.file, _NOT_IN_PROPERTY)},line={found.line}{_github_columns(found)},"
        f"title={found.rule}"
        f"::{_escaped(_sentences(found), _NOT_IN_MESSAGE)}\n"
        for found in findings
    )


def _github_columns(found: Finding) -> str:
    return f",col={found.column},endColumn={found.end_column}" if found.column else ""


def _escaped(text: str, codes: dict[str, str]) -> str:
    return "".join(codes.get(character, character) for character in text)


FORMATS = {"text": as_text, "json": as_json, "sarif": as_sarif, "github": as_github}


def text_of(rule: Rule) -> str:
    """Return the text of a rule: its reason, a script that breaks it, and one that does not."""
    texts = {"Bad": rule.bad, "Good": rule.good, **rule.files}
    blocks = [f"{name}:\n\n{indent(cleandoc(text), '    ')}" for name, text in texts.items()]
    silence = f"A comment silences it: # jobgen: disable={rule.id}"
    return visible(
        "\n\n".join(
            [f"{rule.id}: {rule.title} ({rule.severity})", fill(cleandoc(rule.reason), 100), *blocks, silence]
        ),
        kept="\n\t",
    )


def as_list() -> str:
    """Return all rules, one per line."""
    width = max(map(len, RULES))
    return "".join(f"{rule.id:{width}}  {rule.severity:7}  {rule.title}\n" for rule in RULES.values())
