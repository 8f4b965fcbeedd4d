"""What the doctor knows and says: the answers of the probes, and findings, each with a remedy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from jobgen.doctor.surroundings import Answer, Surroundings
from jobgen.plan import Plan

OK, NOTE, WARNING, PROBLEM = STATES = ("ok", "note", "warning", "problem")


class Finding(NamedTuple):
    """One thing that was looked at: ``found`` is what is there, ``why`` it matters, ``remedy`` what to do."""

    check: str
    state: str
    found: str
    why: str = ""
    remedy: str = ""


class Case(NamedTuple):
    """What the judgements are made from: the job, the environment, the answers of the probes."""

    plan: Plan
    row: str
    here: Surroundings
    answers: Mapping[str, Answer]
    in_job: bool

    def facts(self, question: str) -> dict[str, Any]:
        """What Python answered to a question; nothing where it could not."""
        answer = self.answers.get(question)
        try:
            facts = json.loads(answer.out.splitlines()[-1]) if answer and answer.status == 0 else {}
        except (ValueError, IndexError):
            return {}
        return facts if isinstance(facts, dict) else {}

    def text(self, probe: str) -> str:
        """All that a command said; nothing where it was not there or failed."""
        answer = self.answers.get(probe)
        return answer.out + answer.err if answer and answer.status == 0 else ""

    @property
    def wants_deepspeed(self) -> bool:
        """Whether the job is known to use DeepSpeed."""
        return self.plan.launcher == "deepspeed" or self.plan.program.is_ours
