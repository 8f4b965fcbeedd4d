"""A request of nodes in --directive, and a number of nodes from the submission."""

from __future__ import annotations

import re
import shlex

import pytest
from support import jobs

# Options; the lines of the request in the script; nodes, ranks of a node, ranks of all nodes.
OWN = [
    ("slurm --directive=--nodes=4 --gpus-per-node 2", ["--ntasks-per-node=2", "--cpus-per-task=2", "--gpus-per-node=2", "--nodes=4"], (4, 2, 8)),
    ("slurm --nodes 2 --ranks-per-node 2 --directive=--gres=gpu:a100:2", ["--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=2", "--gres=gpu:a100:2"], (2, 2, 4)),
    ("slurm --nodes 2 --directive '-G 8'", ["--nodes=2", "--ntasks-per-node=4", "--cpus-per-task=2", "-G 8"], (2, 4, 8)),
    ("slurm --nodes 2 --ranks-per-node 4 --directive=--gpus-per-task=1", ["--nodes=2", "--ntasks-per-node=4", "--cpus-per-task=2", "--gpus-per-task=1"], (2, 4, 8)),
    ("slurm --directive '-N 2 -c 8' --accelerator cpu", ["--ntasks-per-node=1", "-N 2 -c 8"], (2, 1, 2)),
    ("slurm --directive=--gpus-per-node=1 --ranks-per-node 2 --accelerator cpu", ["--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=2", "--gpus-per-node=1"], (1, 2, 2)),
    ("pbs --directive '-l select=4:ncpus=8:mpiprocs=2:ngpus=2:mem=4gb'", ["-l select=4:ncpus=8:mpiprocs=2:ngpus=2:mem=4gb", "-l place=scatter"], (4, 2, 8)),
    ("pbs --directive '-l select=1:mpiprocs=4+1:mpiprocs=4 -l place=pack' --accelerator cpu", ["-l select=1:mpiprocs=4+1:mpiprocs=4 -l place=pack"], (2, 4, 8)),
    ("pbs --accelerator cpu --launcher torchrun --directive '-l select=2:mpiprocs=4+1:mpiprocs=8'", ["-l select=2:mpiprocs=4+1:mpiprocs=8", "-l place=scatter"], (3, 8, 16)),
    ("pbs --dialect torque --directive '-l nodes=3:ppn=8:gpus=4'", ["-l nodes=3:ppn=8:gpus=4"], (3, 4, 12)),
    ("pbs --dialect torque --accelerator cpu --ranks-per-node 2 --mem 4G --directive '-l nodes=3:ppn=8'", ["-l nodes=3:ppn=8", "-l mem=12gb"], (3, 2, 6)),
]  # fmt: skip
REQUEST = r"^#(?:PBS|SBATCH) (-l select.*|-l place.*|-l nodes.*|-l mem.*|-[NGc] \d.*|--(?:nodes|ntasks|cpus|gres|gpus).*)$"


@pytest.mark.parametrize(("options", "lines", "sizes"), OWN, ids=[one[0] for one in OWN])
def test_one_request_remains(options: str, lines: list[str], sizes: tuple[int, int, int]) -> None:
    script = jobs.render(*shlex.split(options), program=["x.py"])
    assert sorted(re.findall(REQUEST, script, re.MULTILINE)) == sorted(lines)
    found = [
        re.search(rf"\b{name}=(\d+)", script)
        for name in ("job_nodes", "job_ranks_per_node", "job_world_size")
    ]
    assert tuple(int(match[1]) for match in found if match) == sizes


@pytest.mark.parametrize(
    ("options", "replaced"),
    [
        ("slurm --mail a@b.c --directive=--mail-type=END", "--mail-type=BEGIN,END,FAIL"),
        ("slurm --mem 4G --directive=--mem-per-cpu=1G", "--mem=4G"),
        ("slurm --site lumi --account a --queue standard-g --directive=--mem=0", "--mem-per-gpu=60G"),
        ("pbs --directive '-e err.txt'", "-j oe"),
        ("pbs --after 12 --directive '-W depend=afterany:3'", "-W depend=afterok:12"),
        ("pbs --dialect torque --nodes 2 --mem 4G --directive '-l pmem=3gb'", "-l mem=8gb"),
    ],
)
def test_a_directive_replaces_what_would_add_up_or_be_refused(options: str, replaced: str) -> None:
    *words, directive = shlex.split(options)
    line = directive.removeprefix("--directive=")
    given = words if line != directive else words[:-1]
    assert re.search(f" {replaced}$", jobs.render(*given, program=["x.py"]), re.MULTILINE)
    script = jobs.render(*words, directive, program=["x.py"])
    assert (f" {replaced}\n" in script, f" {line}\n" in script) == (False, True)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ("slurm --directive=--gres=nvme:1", "--directive --gres=nvme:1 (command line): replaces the request of the 1 cuda device of a node"),
        ("slurm --nodes 2 --directive=--nodes=4", "--nodes 2 (command line): --directive requests 4; remove one"),
        ("slurm --nodes 2 --directive=--nodes=2-4", "--directive requests a range; remove one"),
        ("pbs --nodes 2 --directive '-l select=4:ncpus=8'", "--nodes 2 (command line): --directive requests 4; remove one"),
        ("pbs --mem 4G --directive '-l select=4:ncpus=8'", "--mem 4G (command line): is a part of -l select, which --directive replaces"),
        ("pbs --dialect torque --constraint a100 --directive '-l nodes=4'", "is a part of -l nodes"),
        ("pbs --nodes 2 --directive '-l mem=4gb'", "--directive '-l mem=4gb' (command line): qsub refuses it beside -l select; use --mem"),
        ("slurm --directive=--cpus-per-gpu=8", "(command line): sbatch refuses it beside --cpus-per-task; use --cpus-per-rank"),
        ("pbs --directive '-l select=2:ncpus=4,ncpus=8'", "--directive '-l ncpus=8' (command line): qsub refuses it beside -l select; add it to -l select"),
        ("local --nodes submitted", "this machine gives no nodes; use a number"),
        ("slurm --nodes submitted --spare-nodes 1", "--spare-nodes 1 (command line): needs the number of nodes"),
        ("slurm --nodes submited", "must be a whole number of at least 1, the word submitted, or groups of nodes"),
        ("submit slurm --nodes submitted", "--nodes submitted (command line): jobgen submit needs a number"),
    ],
)  # fmt: skip
def test_a_contradiction_is_one_sentence(options: str, fault: str) -> None:
    done = jobs.jobgen(*shlex.split(options), "--", "x.py")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert fault in done.stderr


@pytest.mark.parametrize(
    ("options", "submit"),
    [
        ("slurm", "sbatch --nodes=N FILE"),
        ("slurm --launcher srun", "sbatch --nodes=N FILE"),
        ("pbs --mem 64G", "qsub -l select=N:ncpus=8:mpiprocs=4:ngpus=4:mem=64gb FILE"),
        ("pbs --dialect torque --launcher mpirun", "qsub -l nodes=N:ppn=8:gpus=4 FILE"),
    ],
)
def test_the_submission_has_the_number_of_nodes(options: str, submit: str) -> None:
    script = jobs.render(
        *shlex.split(options), *("--nodes", "submitted", "--gpus-per-node", "4"), program=["x.py"]
    )
    job = script.partition("# ======== jobgen runtime")[0]
    assert f"# Submit it with: {submit}\n" in job
    assert not re.search(r"^#(PBS|SBATCH).*(select|nodes=|job_nodes)", job, re.MULTILINE)
    assert "job_nodes=" not in job
    assert "JOBGEN_WORLD_SIZE" in job or "--hostfile" in job
    told = jobs.jobgen(
        *shlex.split(options), "--nodes", "submitted", "--explain", "--", "x.py", env={"COLUMNS": "200"}
    )
    assert "as many nodes as the job gets" in told.stdout


def test_a_range_of_nodes_is_left_to_the_scheduler() -> None:
    script = jobs.render("slurm", "--directive=--nodes=2-4", program=["x.py"])
    assert re.findall(r"^#SBATCH (--nodes.*)$", script, re.MULTILINE) == ["--nodes=2-4"]
    assert "\njob_count_nodes() {" in script
