"""A user's directives behind ours win on a real Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cluster import Cluster

from jobgen import JobSpec, render

DIRECTIVES = {
    "--job-name=mine": "JobName=mine",
    "-J mine": "JobName=mine",
    "--time=02:00:00": "TimeLimit=02:00:00",
    "-t 120": "TimeLimit=02:00:00",
    "--nodes=2": "NumNodes=2",
    "--ntasks-per-node=3": "NtasksPerN:B:S:C=3:",
    "--output=/tmp/mine": "StdOut=/tmp/mine",
    "--comment=mine": "Comment=mine",
    "--nice=7": "Nice=7",
    "--begin=2031-01-01": "StartTime=2031-01-01",
    "--requeue": "Requeue=1",
    "--mail-user=mine@example.org": "MailUser=mine@example.org",
    "--mail-type=FAIL": "MailType=FAIL",
    "--mem-per-cpu=100": "MinMemoryCPU=100M",
}
OURS = {
    "name": "ours", "mail": "ours@example.org", "mail_on": "end", "priority": -1, "comment": "ours",
    "log": "/tmp/ours", "begin": "2030-01-01T01:01", "walltime": "01:00:00", "mem": "1G",
}  # fmt: skip


@pytest.mark.parametrize("line", DIRECTIVES)
def test_a_user_s_directive_wins(each_slurm: Cluster, tmp_path: Path, line: str) -> None:
    script = render(
        JobSpec("slurm", ["true"], launcher="mpirun", accelerator="cpu", directive=[line], **OURS)
    )
    job = each_slurm.sbatch(script, tmp_path, "--hold")
    said = each_slurm.exec("head", ["scontrol", "show", "job", job]).stdout
    each_slurm.exec("head", ["scancel", job])
    assert DIRECTIVES[line] in said


def test_mail_types_add_up(each_slurm: Cluster, tmp_path: Path) -> None:
    lines = "#SBATCH --mail-type=END\n#SBATCH --mail-type=FAIL\n"
    job = each_slurm.sbatch(f"#!/bin/bash\n{lines}true\n", tmp_path, "--hold")
    said = each_slurm.exec("head", ["scontrol", "show", "job", job]).stdout
    each_slurm.exec("head", ["scancel", job])
    assert "MailType=END,FAIL" in said
