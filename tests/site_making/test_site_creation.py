"""``jobgen site new`` from what schedulers print, and whether the defaults of a site make a job."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.sites import LOADED, PBSNODES, QSTAT, SHIPPED, SINFO, spec

from jobgen import render
from jobgen.schedulers import pbs_cluster, slurm_cluster
from jobgen.schedulers.cluster import Facts
from jobgen.schedulers.table import SCHEDULERS, scheduler_of
from jobgen.site_making.creation import site_file, taking_jobs, without_reservations
from jobgen.site_making.validation import try_defaults
from jobgen.sites import loader
from jobgen.sites.site_file import Site

# pbsnodes -a of Torque: https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/pbsnodes.htm
TORQUE_NODES = """\
node01
     state = free
     np = 16
     ntype = cluster
     status = rectime=1328,ncpus=16,physmem=65946948kb,availmem=123kb,opsys=linux
     gpus = 1
"""


def written(scheduler: str, facts: Facts, tmp_path: Path) -> Site:
    facts = taking_jobs(without_reservations(SCHEDULERS[scheduler], facts))
    (tmp_path / "new.toml").write_text(site_file(SCHEDULERS[scheduler], facts, "login01"))
    return loader.load("new", beside=str(tmp_path))


def test_new_of_slurm(tmp_path: Path) -> None:
    site = written("slurm", slurm_cluster.read("cluster", SINFO), tmp_path)
    assert site.file.request[-1] == "--gres=gpu:a100:{gpus_per_node}"
    assert (site.values["queue"], site.file.node.gpus, site.file.detect.hosts) == ("gpu", 4, ("login*",))
    assert site.queues["gpu"].nodes == (1, 12)
    assert site.queues["debug"].walltime == "00:30:00"
    assert (site.queues["cpu"].gpus, site.queues["cpu"].walltime) == (0, None)
    assert "#SBATCH --gres=gpu:a100:4\n" in render(spec("slurm new nodes=2", tmp_path))


def test_new_of_pbs(tmp_path: Path) -> None:
    site = written("pbspro", pbs_cluster.read("cluster", QSTAT, PBSNODES), tmp_path)
    assert list(site.queues) == ["workq"]
    assert (site.queues["workq"].nodes, site.queues["workq"].walltime) == ((2, 16), "24:00:00")
    assert (site.file.node.gpus, site.file.node.cores) == (4, 64)
    text = render(spec("pbs new nodes=2", tmp_path))
    assert "#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4\n" in text


def test_new_of_torque(tmp_path: Path) -> None:
    queues = QSTAT.replace("resources_max.nodect", "resources_max.nodes")
    site = written("torque", pbs_cluster.read("cluster", queues, TORQUE_NODES), tmp_path)
    job = spec("pbs new nodes=2", tmp_path)
    assert scheduler_of(job).name == "torque"
    assert site.queues["workq"].memory == "64401M"
    assert "#PBS -l nodes=2:ppn=16:gpus=1\n" in render(spec("pbs new nodes=2 walltime=1h", tmp_path))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_defaults_of_every_shipped_site_make_a_job(name: str) -> None:
    try_defaults(LOADED[name])
