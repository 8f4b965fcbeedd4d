"""The tables of pairs of docs/survival.md and docs/arrays.md, and that of the launchers that were restarted in place."""

from __future__ import annotations

import re
import subprocess

import pytest
from support import ROOT, jobs, pairs

from jobgen.launch.launchers import LAUNCHERS, MPI_FLAVOURS

RESTARTS = {
    "components of Slurm": "slurm --nodes 1x2+1x4 --launcher srun",
    "`--min-nodes` and `--include` or `--exclude`": "pbs --nodes 3 --min-nodes 1 --launcher deepspeed --include n1",
    "`--min-nodes` and nodes that differ": "pbs --nodes 1x2+1x4 --min-nodes 1",
    "`--min-nodes` and `--nodes submitted`": "pbs --nodes submitted --min-nodes 1",
    "`--min-nodes` and `--launcher none`": "pbs --nodes 3 --min-nodes 1 --launcher none",
    "`--min-nodes` on this machine": "local --min-nodes 1",
    "`--spare-nodes` or `--min-nodes`, and the `--master-addr` of one node": (
        "pbs --nodes 3 --min-nodes 1 --launcher torchrun --master-addr n1"
    ),
    "`--spare-nodes` and `--no-preflight`": "slurm --nodes 2 --spare-nodes 1 --no-preflight --launcher srun",
    "`--spare-nodes` and `--pack`": "slurm --nodes 2 --spare-nodes 1 --launcher srun --array 0-3 --pack 2",
    "`--requeue` and `--array` on PBS": "pbs --requeue 1 --array 0-3",
}
FOUR = "slurm --array 0-9 --gpus-per-node 4 --pack 4"
PACKS = {
    "`--nodes`, devices, ranks or cores that K does not divide; a `%N` that is no number of tasks": (
        "slurm --array 0-9 --gpus-per-node 8 --pack 3"
    ),
    "`--on-each-node`, `--after-on-each-node`, `--stage`, `--local-caches`": f"{FOUR} --local-caches",
    "`[[step]]`": "slurm --array 0-9 --pack 4 --set step=[{command=['x']}]",
    "`--include`, `--exclude`, `--hostfile`, `--spare-nodes`": f"{FOUR} --spare-nodes 1 --launcher srun",
    "nodes that differ, `--nodes submitted`": "slurm --array 0-9 --nodes submitted --pack 4 --launcher srun",
    "`--launcher none` with several nodes": "slurm --array 0-9 --nodes 4 --pack 2 --launcher none",
    "`--master-port` with several points a node": f"{FOUR} --master-port 29500 --launcher srun",
    "`--master-addr` of one node with several nodes": f"{FOUR} --nodes 4 --master-addr n1 --launcher srun",
    "`--remote ssh` and deepspeed with several points a node": (
        f"{FOUR} --nodes 2 --remote ssh --launcher deepspeed"
    ),
    "lists of `--cpu-bind` with several points a node": f"{FOUR} --cpu-bind 0-1:2-3:4-5:6-7 --launcher srun",
    "shards of a GPU with several points a node": "slurm --array 0-9 --gpus-per-node shard:8 --pack 4",
    "Docker, Podman": f"{FOUR} --container docker --image x --launcher torchrun",
    "`--after aftercorr:ID`": f"{FOUR} --after aftercorr:12",
}


def job(command: str, *options: str) -> subprocess.CompletedProcess[str]:
    program = () if "step=" in command else ("--", "x.py")
    return jobs.jobgen(*command.split(), *options, *program)


@pytest.mark.parametrize(
    ("page", "refused", "options"), [("survival.md", RESTARTS, ("--restarts", "2")), ("arrays.md", PACKS, ())]
)
def test_the_tables_of_pairs_hold(page: str, refused: dict[str, str], options: tuple[str, ...]) -> None:
    def refusal(name: str) -> str:
        done = job(refused[name], *options)
        assert done.returncode == 2, name
        return done.stderr

    pairs.check(page, refused, refusal)


def test_each_launcher_is_measured_or_noted() -> None:
    page = (ROOT / "docs/survival.md").read_text().replace("`", "")
    rows = dict(
        re.findall(r"^\| ([^|]*) \| ((?:Slurm|this machine|not measured)[^|]*) \|$", page, re.MULTILINE)
    )
    mpis = {f"mpirun of {mpi.title}": mpi for mpi in MPI_FLAVOURS.values()}
    launchers = {name for name, row in LAUNCHERS.items() if not row.of_mpi}
    named = {re.sub(r" [45]$| --remote ssh$", "", name) for name in rows}
    assert named == launchers | mpis.keys()
    assert {name for name, where in rows.items() if where.startswith("not measured")} == {
        name for name, mpi in mpis.items() if not mpi.restarts_measured
    }
    for command in ("slurm --mpi intel", "pbs --mpi pals"):
        done = job(command, "--nodes", "2", "--launcher", "mpirun", "--restarts", "2")
        assert "note: --restarts 2 (command line) has not been measured with " in done.stderr
