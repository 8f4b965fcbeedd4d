"""The clusters of tests/departments as a real OpenPBS or Torque: ``jobgen site new`` there, and jobs by its file, which start.

One of each; with JOBGEN_DEPARTMENTS=all, all.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.department_pbs import department_pbs
from support.departments import PBS, TORQUE, Department, DepartmentJob, differences, facts_in, without_memory
from support.pbs import OPENPBS, PbsCluster
from support.pbs import TORQUE as TORQUE_KIND
from support.require import need_pbs
from support.site_pbs_lab import HiddenPbs
from support.waiting import wait_until

pytestmark = pytest.mark.xdist_group("departments-pbs")
SOME = ("pbs-mixed", "torque-properties")
CHOSEN = [one for one in (*PBS, *TORQUE) if os.environ.get("JOBGEN_DEPARTMENTS") == "all" or one.name in SOME]
KINDS = {"pbspro": OPENPBS, "torque": TORQUE_KIND}


def jobgen(cluster: HiddenPbs, folder: Path, *words: str) -> tuple[int, str]:
    path = {"openpbs": "/opt/pbs/bin", "torque": "/opt/torque/bin"}[cluster.name]  # and no other scheduler
    environment = ["/usr/bin/env", f"PATH={path}:{folder}/bin", f"XDG_CONFIG_HOME={folder}"]
    environment += (
        [f"PBS_DEFAULT={cluster.kind.head}"] if cluster.name == "torque" else []
    )  # it is in no usual place
    done = cluster.exec(
        "head", [*environment, sys.executable, "-m", "jobgen", *words], cwd=folder, check=False, timeout=120
    )
    return done.returncode, done.stderr


def judge(cluster: HiddenPbs, folder: Path, number: int, job: DepartmentJob) -> list[str]:
    """Return what is wrong with a job: its script is refused, or PBS shows something else, or it does not start."""
    script = f"job-{number}.sh"
    options = (*job.options.split(), "--launcher", "mpirun", "--no-preflight")
    status, message = jobgen(
        cluster, folder, "pbs", "--site", "./site.toml", *options, "-o", script, "--", "true"
    )
    if job.refused:
        return [] if status == 2 and job.refused in message else [f"{job.options}: not refused: {message}"]
    if status:
        return [f"{job.options}: {message}"]
    done = cluster.exec("head", ["qsub", script], cwd=folder, check=False)
    if done.returncode:
        return [f"{job.options}: {done.stderr}"]
    number_of_job = done.stdout.strip()
    wait_until(lambda: cluster.facts(number_of_job).get("job_state") not in (None, "Q"), 60)
    wrong = differences(job.shows, cluster.facts(number_of_job))
    ended = wait_until(lambda: cluster.ended(number_of_job), 90)
    facts = cluster.facts(number_of_job)
    if not ended or facts.get("Exit_status", facts.get("exit_status")) != "0":
        wrong.append(f"{facts.get('job_state')}: {facts.get('comment')} {_output(facts)}")
        cluster.purge(number_of_job, check=False)
    return [f"{job.options}: {one}" for one in wrong]


def _output(facts: dict[str, str]) -> str:
    path = Path(facts.get("Output_Path", ":").partition(":")[2])
    return path.read_text(errors="replace") if path.is_file() else ""


@pytest.mark.parametrize("department", CHOSEN, ids=lambda one: one.name)
def test_a_department(department: Department, tmp_path: Path) -> None:
    like: PbsCluster = need_pbs(KINDS[department.scheduler])
    with department_pbs(tmp_path / "machine", like, department) as cluster:
        folder = cluster.folder("department")
        (folder / "bin").mkdir()
        (folder / "bin/bash").symlink_to("/bin/bash")
        status, message = jobgen(cluster, folder, "site", "new", "-o", "site.toml")
        assert status == 0, message
        live, recorded = (folder / "site.toml").read_text(), department.text("site.toml")
        assert without_memory(facts_in(live)) == without_memory(facts_in(recorded))
        jobs = enumerate(department.jobs, 1)
        wrong = [line for number, job in jobs for line in judge(cluster, folder, number, job)]
    assert not wrong, "\n".join(wrong)
