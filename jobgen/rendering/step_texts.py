"""The functions of the steps of a job: step_1, step_2 and so on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING

from jobgen.rendering.runtime import Setting, settings
from jobgen.rendering.words import assignment, words

_OF_JOB = ("job_steps", "job_parallel_steps", "job_cpus_per_node")  # settings that the steps do not change

if TYPE_CHECKING:
    import jinja2

    from jobgen.plan.plan import Plan


def step_texts(plan: Plan, template: Callable[[str], jinja2.Template]) -> list[str]:
    """Return the function of each step; it defines those that a job without steps has."""
    values = [_values(one) for one in (plan, *plan.steps)]
    names = [name for name in dict.fromkeys(chain(*values)) if len({one.get(name) for one in values}) > 1]
    return [
        template("step.sh.j2")
        .render(
            words(one)._replace(site=plan.site)._asdict(),
            changes=[assignment(Setting(name, own.get(name, ""))) for name in names if name not in _OF_JOB],
        )
        .replace("\n\n", "\n")
        .rstrip("\n")
        for one, own in zip(plan.steps, values[1:], strict=True)
    ]


def _values(plan: Plan) -> dict[str, str | int | tuple[str, ...]]:
    """Return the values of all settings by name."""
    return {one.name: one.value for one in settings(plan)}
