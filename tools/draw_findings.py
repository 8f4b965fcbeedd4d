"""Draw findings of check at random, to read them in their scripts and to judge whether they are true.

    .venv/bin/jobgen check --format json FOLDER > findings.json
    .venv/bin/python -m tools.draw_findings findings.json --seed 7 --error 60 --warning 60 --note 30 --root FOLDER [--show]

It prints a table with tabs, in which verdict and reason are empty: path (below the root), line, rule, severity,
verdict, reason. The same findings and the same seed give the same lines. With --show each finding is printed with its
reason and the lines around it instead. tests/check/precision.tsv has such a table with verdicts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

SEVERITIES = ("error", "warning", "note")
COLUMNS = ("path", "line", "rule", "severity", "verdict", "reason")
_AROUND = 6  # lines above and below a finding

Finding = Mapping[str, Any]


def drawn(findings: Sequence[Finding], counts: Mapping[str, int], seed: int) -> Iterator[Finding]:
    """Yield as many findings of each severity, or all if there are fewer."""
    for severity in SEVERITIES:
        of_it = [one for one in findings if one["severity"] == severity]
        of_it.sort(key=lambda one: (one["file"], one["line"], one["rule"], one["reason"]))
        yield from random.Random(f"{seed} {severity}").sample(of_it, min(counts[severity], len(of_it)))


def row(finding: Finding, root: str) -> str:
    path = os.path.relpath(finding["file"], root)
    return "\t".join([path, str(finding["line"]), finding["rule"], finding["severity"], "", ""])


def shown(number: int, finding: Finding, root: str) -> str:
    """Return a finding with the lines around it and the directives of its script."""
    lines = Path(finding["file"]).read_text(errors="replace").splitlines()
    line = finding["line"]
    near = range(max(1, line - _AROUND), min(len(lines), line + _AROUND) + 1)
    directives = [at for at, text in enumerate(lines, 1) if text.startswith(("#SBATCH", "#PBS", "#!"))]
    parts = [
        f"{'>' if at == line else ' '}{at:>5} {lines[at - 1][:160]}"
        for at in sorted({*near, *directives[:40]})
    ]
    path = os.path.relpath(finding["file"], root)
    head = f"=== {number} {path}:{line} {finding['severity']} [{finding['rule']}] {finding['reason']} FIX {finding['fix']}"
    return "\n".join([head, *parts])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("findings", help="the output of jobgen check --format json")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--root", default=".", help="the folder to which paths are relative")
    parser.add_argument("--show", action="store_true", help="print the lines of the scripts")
    for severity in SEVERITIES:
        parser.add_argument(f"--{severity}", type=int, default=50)
    given = parser.parse_args()
    findings = json.loads(Path(given.findings).read_text())
    chosen = list(drawn(findings, {one: getattr(given, one) for one in SEVERITIES}, given.seed))
    if given.show:
        print("\n".join(shown(number, one, given.root) for number, one in enumerate(chosen, 1)))
    else:
        print("\n".join(["\t".join(COLUMNS), *(row(one, given.root) for one in chosen)]))


if __name__ == "__main__":
    main()
