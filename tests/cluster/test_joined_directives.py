"""What real schedulers read of a directive that ends in a backslash."""

from __future__ import annotations

from pathlib import Path

import pytest
from check.test_check_joined_lines import END, HEAD, LINES
from support.cluster import Cluster
from support.pbs import PbsCluster


def of(row: str) -> list[tuple[str, dict[str, str] | None, bool]]:
    return [(lines, read, goes_on) for name, lines, read, goes_on in LINES if name == row]


@pytest.mark.parametrize(("lines", "read", "goes_on"), of("slurm"))
def test_sbatch(
    slurm_cluster: Cluster, tmp_path: Path, lines: str, read: dict[str, str], goes_on: bool
) -> None:
    job = slurm_cluster.sbatch(f"{HEAD['slurm']}{lines}{END['slurm']}", tmp_path, "--hold")
    said = slurm_cluster.exec("head", ["scontrol", "show", "job", job]).stdout
    slurm_cluster.exec("head", ["scancel", job])
    assert "JobName=x" in said
    assert ("TimeLimit=02:00:00" in said) == ("time" in read)
    assert ("Nice=5" in said) == goes_on


def qsub(cluster: PbsCluster, lines: str, read: dict[str, str] | None, goes_on: bool) -> None:
    folder, row = cluster.folder("joined"), cluster.kind.dialect
    (folder / "job.sh").write_text(f"{HEAD[row]}{lines}{END[row]}")
    done = cluster.exec("head", ["qsub", "-h", "job.sh"], cwd=folder, check=False)
    assert (done.returncode == 0) == (read is not None), done.stderr
    if read is None:
        return
    facts = cluster.facts(done.stdout.strip())
    cluster.exec("head", ["qdel", done.stdout.strip()])
    assert facts["Job_Name"] == read.get("name", "job.sh")
    assert (facts.get("Resource_List.walltime") == "02:00:00") == ("time" in read)
    assert (facts["Priority"] == "5") == goes_on


@pytest.mark.parametrize(("lines", "read", "goes_on"), of("pbspro"))
def test_qsub_of_pbs_pro(
    openpbs_cluster: PbsCluster, lines: str, read: dict[str, str] | None, goes_on: bool
) -> None:
    qsub(openpbs_cluster, lines, read, goes_on)


@pytest.mark.parametrize(("lines", "read", "goes_on"), of("torque"))
def test_qsub_of_torque(
    torque_cluster: PbsCluster, lines: str, read: dict[str, str] | None, goes_on: bool
) -> None:
    qsub(torque_cluster, lines, read, goes_on)
