"""Verdicts as a table or as JSON."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Sequence

from jobgen.doctor.verdict import OK, STATES, Case, Verdict
from jobgen.errors import counted, visible
from jobgen.values.version import __version__

_INDENT = 11


def worst(verdicts: Sequence[Verdict]) -> str:
    """Return the worst state of the verdicts."""
    return max((verdict.state for verdict in verdicts), key=STATES.index, default=OK)


def as_json(case: Case, verdicts: Sequence[Verdict]) -> str:
    """Return the conditions, the worst state and the verdicts as JSON; the keys are stable."""
    return (
        json.dumps(
            {
                "version": __version__,
                "host": os.uname().nodename,
                "in_job": case.in_job,
                "scheduler": case.plan.spec.scheduler,
                "launcher": case.plan.spec.launcher,
                "accelerator": case.plan.resources.accelerator_name,
                "state": worst(verdicts),
                "findings": [_entry(verdict) for verdict in verdicts],
            },
            indent=2,
        )
        + "\n"
    )


def _entry(verdict: Verdict) -> dict[str, str]:
    check, state, text, why, remedy = verdict
    return {"check": check, "state": state, "found": text, "why": why, "remedy": remedy}


def as_table(case: Case, verdicts: Sequence[Verdict]) -> str:
    """Return one line per check; below those that are not ok, the consequence and the remedy."""
    plan = case.plan
    where = f"on {os.uname().nodename}, {'in a job' if case.in_job else 'not in a job'}"
    lines = [
        f"For {plan.scheduler.title}, {plan.spec.launcher}, {plan.resources.accelerator.title}; {where}."
    ]
    for verdict in verdicts:
        lines += _wrapped(verdict.state.ljust(_INDENT - 2), f"{verdict.check}: {verdict.text}")
        if verdict.state != OK:
            lines += _wrapped("     why:", verdict.why) if verdict.why else []
            lines += _wrapped("      do:", verdict.remedy) if verdict.remedy else []
    counts = {state: sum(verdict.state == state for verdict in verdicts) for state in reversed(STATES)}
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
