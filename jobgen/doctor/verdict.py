"""The data of the doctor: the results of the probes, and verdicts with remedies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from jobgen.doctor.job_environment import CommandResult, JobEnvironment
from jobgen.plan.plan import Plan

DEEPSPEED = "deepspeed"  # the Python package
OK, NOTE, WARNING, PROBLEM = STATES = ("ok", "note", "warning", "problem")


class Verdict(NamedTuple):
    """The result of a check: ``text`` says what is there, ``why`` what follows from it."""

    check: str
    state: str
    text: str
    why: str = ""
    remedy: str = ""


class Case(NamedTuple):
    """The input of the checks: the job, the environment, and the results of the probes by name."""

    plan: Plan
    here: JobEnvironment
    results: Mapping[str, CommandResult]
    in_job: bool

    def facts(self, probe: str) -> dict[str, Any]:
        """Return the facts that Python printed for a probe; empty if it failed."""
        answer = self.results.get(probe)
        try:
            facts = json.loads(answer.out.splitlines()[-1]) if answer and answer.status == 0 else {}
        except (ValueError, IndexError):
            return {}
        return facts if isinstance(facts, dict) else {}

    def text(self, probe: str) -> str:
        """Return the whole output of a command; empty if it is not installed or failed."""
        answer = self.results.get(probe)
        return answer.out + answer.err if answer and answer.status == 0 else ""

    @property
    def wants_deepspeed(self) -> bool:
        """Return whether the job is known to use DeepSpeed."""
        return self.plan.launch.row.package == DEEPSPEED or self.plan.program.is_ours
