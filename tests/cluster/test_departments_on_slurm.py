"""The clusters of tests/departments as a real Slurm: ``jobgen site new`` there, and jobs by its file, which start.

Five of them; with JOBGEN_DEPARTMENTS=all, all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cluster import SYSTEMS
from support.department_lab import DepartmentLab, department_lab
from support.departments import SLURM, USER, Department, DepartmentJob, differences
from support.require import need_cluster, need_command

pytestmark = pytest.mark.xdist_group("site-schedulers")
SOME = ("closed-to-the-user", "features", "hyphens-dots", "mixed-types", "starving-default")
CHOSEN = [one for one in SLURM if os.environ.get("JOBGEN_DEPARTMENTS") == "all" or one.name in SOME]
JOBGEN = (sys.executable, "-m", "jobgen")


@pytest.fixture(scope="module", params=SYSTEMS)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DepartmentLab]:
    need_cluster(request.param)
    need_command("mariadbd", "slurmdbd")
    with department_lab(tmp_path_factory.mktemp("departments") / "lab", request.param) as found:
        yield found


def of_version(department: Department, lab: DepartmentLab) -> bool:
    return department.slurm == lab.version


def jobgen(lab: DepartmentLab, folder: Path, *words: str) -> tuple[int, str]:
    done = lab.call(*JOBGEN, *words, cwd=folder, user=USER)
    return done.returncode, done.stderr


def judge(lab: DepartmentLab, folder: Path, number: int, job: DepartmentJob) -> list[str]:
    """Return what is wrong with a job: its script is refused, or Slurm shows something else, or it does not start."""
    script = f"job-{number}.sh"
    words = (
        "slurm",
        "--site",
        "./site.toml",
        *job.options.split(),
        "--launcher",
        "srun",
        "-o",
        script,
        "--",
        "true",
    )
    status, said = jobgen(lab, folder, *words)
    if job.refused:
        return [] if status == 2 and job.refused in said else [f"{job.options}: not refused: {said}"]
    if status:
        return [f"{job.options}: {said}"]
    done = lab.call("sbatch", "--parsable", script, cwd=folder, user=USER)
    if done.returncode:
        return [f"{job.options}: {done.stderr}"]
    number_of_job = done.stdout.strip()
    shown = lab.end(number_of_job) if job.starts else lab.shown(number_of_job)
    wrong = differences(job.shows, shown)
    if job.starts and shown["JobState"] != "COMPLETED":
        wrong.append(f"is {shown['JobState']}: {shown['Reason']}: {lab.output(number_of_job)}")
    lab.call("scancel", number_of_job)
    return [f"{job.options}: {one}" for one in wrong]


@pytest.mark.parametrize("department", CHOSEN, ids=lambda one: one.name)
def test_a_department(department: Department, lab: DepartmentLab) -> None:
    if not of_version(department, lab):
        return
    lab.serve(department)
    folder = lab.folder(department.name)
    status, said = jobgen(lab, folder, "site", "new", "-o", "site.toml")
    assert status == 0, said
    wrong = [
        line for number, job in enumerate(department.jobs, 1) for line in judge(lab, folder, number, job)
    ]
    assert not wrong, "\n".join(wrong)
