"""The file of a program that is not in the directory of the job."""

from __future__ import annotations

import os

from jobgen.errors import nearest, shown
from jobgen.launch.program import script_of
from jobgen.plan.plan import Plan


def missing_file(plan: Plan, why: str, directory: str = "") -> str:
    """Return a sentence on the first file of a program that is not in the directory of the job, by default
    the current one, with ``why`` it matters; empty without one.

    Files of a container and of a directory with variables, and names with ``--expand``, are not looked up.
    """
    folder = plan.spec.directory_on_this_machine(directory)
    if plan.container or plan.spec.late_workdir or not os.path.isdir(folder or "."):
        return ""
    for one in plan.steps or (plan,):
        name = "" if one.program.is_ours else script_of(one.program.words)
        if not name or os.path.isabs(name) or (plan.spec.expand and "$" in name):
            continue
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            place = shown(plan.spec.workdir) if plan.spec.workdir else "this directory"
            return f"{shown(name)} ({one.spec.program_origin}): is not in {place}, {why}{_near(path)}"
    return ""


def may_appear(plan: Plan) -> bool:
    """Return whether the program's file may come from another job, or from code before it."""
    spec = plan.spec
    return bool(spec.early_setup or spec.setup or spec.before or spec.after)


def _near(path: str) -> str:
    try:
        names = os.listdir(os.path.dirname(path) or ".")
    except OSError:
        return ""
    return nearest(os.path.basename(path), names, 0.7)
