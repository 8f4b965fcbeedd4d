"""Examination of the environment of a plan: all probes and all checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from jobgen.doctor import adapters, binding, devices, machine, ops, queues, software
from jobgen.doctor.job_environment import job_environment
from jobgen.doctor.probes import results
from jobgen.doctor.verdict import Case, Verdict
from jobgen.plan.plan import Plan
from jobgen.rendering.render import cache_dir, render
from jobgen.rendering.runtime import DOCTOR

# In the order of the script.
_JUDGEMENTS: tuple[Callable[[Case], Iterator[Verdict]], ...] = (
    *(software.environment, software.shell, software.scheduler, queues.queue, queues.nodes, software.python),
    *(software.libc, software.mpi, software.srun_mpi, devices.torch, devices.cann, binding.binding),
    *(adapters.adapters, ops.ops, machine.reach, machine.interfaces, machine.limits, machine.directories),
)


def examine(plan: Plan, template_dirs: Sequence[str], limit: float) -> Case:
    """Create the environment of the plan's script and run the probes, each for ``limit`` seconds at most.

    Raises:
        JobgenError: a user's template is wrong.
    """
    script = render(plan, template_dirs, cache_dir(), main=DOCTOR)
    in_job = "SLURM_JOB_ID" in os.environ or "PBS_JOBID" in os.environ
    with job_environment(script, limit) as here:
        return Case(plan, here, results(plan, here, limit), in_job)


def verdicts(case: Case) -> list[Verdict]:
    """Return the findings of all checks."""
    return [finding for judge in _JUDGEMENTS for finding in judge(case)]
