"""All warnings on a job, for the command line and for Python."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from jobgen.plan.plan import Plan
from jobgen.rendering.secret_warnings import secret_warnings
from jobgen.script import deepspeed_config, foreign_variables, pasted_characters, script_arguments


def warnings(plan: Plan) -> Iterator[str]:
    """Return each warning as a sentence."""
    return chain(without_secrets(plan), secret_warnings(plan.spec))


def without_secrets(plan: Plan) -> Iterator[str]:
    """Return the warnings that are not on secrets."""
    spec = plan.spec
    return chain(
        plan.warnings,
        foreign_variables.warnings(spec, plan.scheduler),
        script_arguments.warnings(spec, plan.scheduler),
        deepspeed_config.warnings(plan),
        pasted_characters.warnings(spec),
    )
