"""What check calls an error, the real schedulers refuse, and nothing else: more than a thousand forms of directives.

The forms and what each scheduler says of them are in forms/*.txt, the disagreements in forms/disagreements.toml. A
third of the forms is asked here, and all with ALL_FORMS=1; tests/check/test_check_forms.py has all recorded answers.
"""

from __future__ import annotations

from collections.abc import Collection

from support import forms
from support.cluster import Cluster
from support.pbs import PbsCluster


def changed(row: str, accepted: dict[str, bool]) -> set[str]:
    recorded = forms.recorded(row)
    return {form for form in forms.asked(row) if accepted.get(form) != recorded[form]}


def test_sbatch(each_slurm: Cluster) -> None:
    row = f"slurm-{each_slurm.version}"
    accepted, jobs = forms.ask(each_slurm, row, ["sbatch", "--test-only"])
    each_slurm.exec("head", ["scancel", *jobs])
    assert changed(row, accepted) == set()
    assert forms.disagreements(row, accepted) == forms.known_disagreements(row)


def qsub(cluster: PbsCluster, row: str) -> None:
    accepted, jobs = forms.ask(cluster, row, ["qsub", "-h"])
    delete(cluster, jobs)
    assert changed(row, accepted) == set()
    assert forms.disagreements(row, accepted) == forms.known_disagreements(row)


def delete(cluster: PbsCluster, jobs: Collection[str]) -> None:
    """A few at a time: each command has a reserved port for a job."""
    waiting = list(jobs)
    while waiting:
        some, waiting = waiting[:40], waiting[40:]
        cluster.purge(*some, check=False)


def test_qsub_of_pbs_pro(openpbs_cluster: PbsCluster) -> None:
    qsub(openpbs_cluster, "pbspro")


def test_qsub_of_torque(torque_cluster: PbsCluster) -> None:
    qsub(torque_cluster, "torque")
