"""What check calls an error, sbatch refuses; what it has nothing against, sbatch takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.cluster import Cluster

from jobgen.check.checker import check
from jobgen.schedulers.table import SCHEDULERS
from tools import write_rule_pages as pages

REFUSED = ("unknown-option", "memory-unit", "bad-choice", "bad-count", "carriage-return", "bad-dependency")
DIRECTIVES = {
    "--time=2h": True, "--time=1d": True, "--time=90s": True, "--time=1-2:3": False, "--time=24:00:00": False,
    "--time=infinite": False, "--mem=1.5G": True, "--mem=1GiB": True, "--mem=1GB": False, "--array=a": True,
    "--array=0-9:2%3": False, "--array=1,3-5%2": False, "--mail-type=never": True, "-N=2": True,
    "nodes=2": True, "--nodes=2 # two": False, "--dependency=afterok": True, "--ntask=2": True,
    "--ntask-per-node=2": True, "--reservation=night shift": True, "--cpus-per-task=x": True,
    '--comment="two words"': False,
}  # fmt: skip


def refuses(cluster: Cluster, script: bytes, directory: Path) -> bool:
    path = directory / "job.sh"
    path.write_bytes(script)
    return cluster.exec("head", ["sbatch", "--test-only", path], cwd=directory, check=False).returncode != 0


@pytest.mark.parametrize("rule", REFUSED)
def test_bad_and_good_scripts(each_slurm: Cluster, tmp_path: Path, rule: str) -> None:
    assert refuses(each_slurm, pages.script(rule, "bad"), tmp_path)
    if rule != "bad-dependency":  # the job that the good one depends on is not there
        assert not refuses(each_slurm, pages.script(rule, "good"), tmp_path)


@pytest.mark.parametrize("directive", DIRECTIVES)
def test_directives(each_slurm: Cluster, tmp_path: Path, directive: str) -> None:
    script = f"#!/bin/bash\n#SBATCH {directive}\ntrue\n".encode()
    errors = [one for one in check(script, version=each_slurm.version) if one.severity == "error"]
    assert bool(errors) == DIRECTIVES[directive] == refuses(each_slurm, script, tmp_path)


def test_all_options_of_sbatch_are_known(each_slurm: Cluster) -> None:
    printed = each_slurm.exec("head", ["sbatch", "--help"]).stdout
    names = set(re.findall(r"--([a-z][a-z-]+[a-z])", printed))
    assert "gpus-per-task" in names
    assert names <= set(SCHEDULERS["slurm"].grammar.long_options)


def test_a_script_without_its_first_line(each_slurm: Cluster, tmp_path: Path) -> None:
    script = b"\n#!/bin/bash\n#SBATCH --time=01:00:00\ntrue\n"
    assert [one.rule for one in check(script, version=each_slurm.version) if one.severity == "error"] == [
        "no-shebang"
    ]
    assert refuses(each_slurm, script, tmp_path)
