"""The data of the doctor: the answers of the probes, and findings with remedies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from jobgen.doctor.job_environment import Answer, Surroundings
from jobgen.plan.plan import Plan

DEEPSPEED = "deepspeed"  # the Python package
OK, NOTE, WARNING, PROBLEM = STATES = ("ok", "note", "warning", "problem")


class Finding(NamedTuple):
    """The result of a check: ``found`` is the state, ``why`` its consequence, ``remedy`` the solution."""

    check: str
    state: str
    found: str
    why: str = ""
    remedy: str = ""


class Case(NamedTuple):
    """The input of the checks: the job, the environment, and the answers of the probes."""

    plan: Plan
    here: Surroundings
    answers: Mapping[str, Answer]
    in_job: bool

    def facts(self, question: str) -> dict[str, Any]:
        """Return Python's answer to a question; empty if it failed."""
        answer = self.answers.get(question)
        try:
            facts = json.loads(answer.out.splitlines()[-1]) if answer and answer.status == 0 else {}
        except (ValueError, IndexError):
            return {}
        return facts if isinstance(facts, dict) else {}

    def text(self, probe: str) -> str:
        """Return the whole output of a command; empty if it is not installed or failed."""
        answer = self.answers.get(probe)
        return answer.out + answer.err if answer and answer.status == 0 else ""

    @property
    def wants_deepspeed(self) -> bool:
        """Return whether the job is known to use DeepSpeed."""
        return self.plan.launch.row.package == DEEPSPEED or self.plan.program.is_ours
