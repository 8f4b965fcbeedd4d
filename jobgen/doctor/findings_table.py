"""Findings as a table or as JSON."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Sequence

from jobgen.doctor.finding import OK, STATES, Case, Finding
from jobgen.errors import counted, visible
from jobgen.values.version import __version__

_INDENT = 11


def worst(findings: Sequence[Finding]) -> str:
    """Return the worst state of the findings."""
    return max((finding.state for finding in findings), key=STATES.index, default=OK)


def as_json(case: Case, findings: Sequence[Finding]) -> str:
    """Return the conditions, the worst state and the findings as JSON; the keys are stable."""
    return (
        json.dumps(
            {
                "version": __version__,
                "host": os.uname().nodename,
                "in_job": case.in_job,
                "scheduler": case.plan.spec.scheduler,
                "launcher": case.plan.spec.launcher,
                "accelerator": case.plan.resources.accelerator_name,
                "state": worst(findings),
                "findings": [finding._asdict() for finding in findings],
            },
            indent=2,
        )
        + "\n"
    )


def as_table(case: Case, findings: Sequence[Finding]) -> str:
    """Return one line per finding; below those that are not ok, the reason and the remedy."""
    plan = case.plan
    where = f"on {os.uname().nodename}, {'in a job' if case.in_job else 'not in a job'}"
    lines = [
        f"For {plan.scheduler.title}, {plan.spec.launcher}, {plan.resources.accelerator.title}; {where}."
    ]
    for finding in findings:
        lines += _wrapped(finding.state.ljust(_INDENT - 2), f"{finding.check}: {finding.found}")
        if finding.state != OK:
            lines += _wrapped("     why:", finding.why) if finding.why else []
            lines += _wrapped("      do:", finding.remedy) if finding.remedy else []
    counts = {state: sum(finding.state == state for finding in findings) for state in reversed(STATES)}
    lines.append(
        ", ".join(f"{n} ok" if state == OK else counted(n, state) for state, n in counts.items() if n)
    )
    return "\n".join(lines) + "\n"


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        visible(text, kept="\n\t"),
        110,
        initial_indent=head.ljust(_INDENT),
        subsequent_indent=" " * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
