"""The clusters of tests/departments as a real Slurm: ``jobgen site new`` there, and jobs by its file, which start.

Five of them; with JOBGEN_DEPARTMENTS=all, all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.department_lab import DepartmentLab, department_lab
from support.departments import SLURM, USER, Department, DepartmentJob, differences, facts_in
from support.require import need_cluster, need_command

pytestmark = pytest.mark.xdist_group("departments")
SOME = ("closed-to-the-user", "features", "hyphens-dots", "mixed-types", "starving-default")
CHOSEN = [one for one in SLURM if os.environ.get("JOBGEN_DEPARTMENTS") == "all" or one.name in SOME]


@pytest.fixture(scope="module")
def lab_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], DepartmentLab]]:
    """A function that returns the host of a version of Slurm, which it starts when it is needed."""
    labs: dict[str, DepartmentLab] = {}
    with ExitStack() as stack:

        def lab(version: str) -> DepartmentLab:
            if version not in labs:
                need_cluster(version)
                need_command("mariadbd", "slurmdbd")
                root = tmp_path_factory.mktemp("departments") / "lab"
                labs[version] = stack.enter_context(department_lab(root, version))
            return labs[version]

        yield lab


def jobgen(lab: DepartmentLab, folder: Path, *words: str) -> tuple[int, str]:
    done = lab.call(sys.executable, "-m", "jobgen", *words, cwd=folder, user=USER)
    return done.returncode, done.stderr


def judge(lab: DepartmentLab, folder: Path, number: int, job: DepartmentJob) -> list[str]:
    """Return what is wrong with a job: its script is refused, or Slurm shows something else, or it does not start."""
    script = f"job-{number}.sh"
    words = ("slurm", "--site", "./site.toml", *job.options.split(), "--launcher", "srun", "-o", script)
    status, message = jobgen(lab, folder, *words, "--", "sleep", "1")
    if job.refused:
        return [] if status == 2 and job.refused in message else [f"{job.options}: not refused: {message}"]
    if status:
        return [f"{job.options}: {message}"]
    done = lab.call("sbatch", "--parsable", script, cwd=folder, user=USER)
    if done.returncode:
        return [f"{job.options}: {done.stderr}"]
    number_of_job = done.stdout.strip()
    fields = lab.end(number_of_job) if job.starts else lab.fields(number_of_job)
    wrong = differences(job.shows, fields)
    if job.starts and fields["JobState"] != "COMPLETED":
        wrong.append(f"is {fields['JobState']}: {fields['Reason']}: {lab.output(number_of_job)}")
    lab.call("scancel", number_of_job)
    return [f"{job.options}: {one}" for one in wrong]


@pytest.mark.parametrize("department", CHOSEN, ids=lambda one: one.name)
def test_a_department(department: Department, lab_of: Callable[[str], DepartmentLab]) -> None:
    lab = lab_of(department.slurm)
    lab.serve(department)
    folder = lab.folder(department.name)
    status, message = jobgen(lab, folder, "site", "new", "-o", "site.toml")
    assert status == 0, message
    assert facts_in(lab.read(folder / "site.toml")) == facts_in(department.text("site.toml"))
    jobs = enumerate(department.jobs, 1)
    wrong = [line for number, job in jobs for line in judge(lab, folder, number, job)]
    assert not wrong, "\n".join(wrong)
