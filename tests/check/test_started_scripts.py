"""The scripts beside a script that it starts itself, or with launchers, ssh and pbsdsh on the nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import jobs

from jobgen.check.checker import check

HEAD = """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
set -eo pipefail
M=$(hostname)
export M
"""
INNER = "#!/bin/bash\nset -e\n{}\n"
MISSING = "torchrun --nnodes 2 --nproc-per-node 4 --master-addr $M t.py"
RIGHT = "torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint $M:0 t.py"


def errors(folder: Path, body: str) -> set[tuple[str, int, str]]:
    found = check(f"{HEAD}{body}\n".encode(), "jobs/job.sh", folder=str(folder))
    return {(one.file, one.line, one.rule) for one in found if one.severity == "error"}


@pytest.mark.parametrize(
    "call",
    [
        "srun ./run.sh",
        "srun bash run.sh 1 2",
        'srun bash -l "$PWD/run.sh"',
        'srun "$SLURM_SUBMIT_DIR/run.sh"',
        "srun apptainer exec i.sif bash run.sh",
        'RUN=./run.sh\nsrun numactl -N 0 "$RUN"',
        'D=$(cd "$(dirname "$0")" && pwd)\nsrun "$D/run.sh"',
        'D=$(cd -- "$(dirname "${BASH_SOURCE[0]}")" &> /dev/null && pwd)\nsrun bash $D/run.sh',
        'R=$(realpath "run.sh")\nsrun "$R"',
        "srun bash $(readlink -f $(dirname $0)/run.sh)",
        'D=$(dirname "$(realpath "$0")")\nsrun bash $D/run.sh',
        "srun bash -c 'source env.sh; bash run.sh'",
        "mpirun -np 2 bash $(pwd)/run.sh",
        "srun ./first.sh",
    ],
)
def test_a_finding_has_its_own_file_and_line(call: str, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(INNER.format(MISSING))
    (tmp_path / "first.sh").write_text(INNER.format("exec bash run.sh"))
    assert errors(tmp_path, call) == {("jobs/run.sh", 3, "missing-node-rank")}


@pytest.mark.parametrize("call", ["for h in $L; do ssh $h bash run.sh & done", "pbsdsh -- bash $PWD/run.sh"])
def test_a_script_on_other_nodes(call: str, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(INNER.format(RIGHT.replace("nnodes 2", "nnodes 3")))
    assert ("jobs/run.sh", 3, "nodes-mismatch") in errors(tmp_path, call)


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        (RIGHT, set()),
        ("torchrun --nnodes $SLURM_NNODES --node-rank $SLURM_NODEID --master-addr $M t.py", set()),
        ("torchrun --nnodes 3 --rdzv-backend c10d --rdzv-endpoint $M:0 t.py", {"nodes-mismatch"}),
        ("torchrun --nnodes $1 --rdzv-backend c10d --rdzv-endpoint $M:0 t.py", {"nodes-mismatch"}),
        ("torchrun --nnodes $N --rdzv-backend c10d --rdzv-endpoint $M:0 t.py", {"nodes-mismatch"}),
        ("torchrun --nnodes 2 --node-rank 0 --master-addr $M t.py", {"fixed-node-rank"}),
    ],
)
def test_it_has_the_request_the_exports_and_the_arguments(line: str, rules: set[str], tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(INNER.format(line))
    assert {rule for _, _, rule in errors(tmp_path, "export N=4\nsrun ./run.sh 5")} == rules


SHIFTED = 'n=$1\nshift\ntorchrun --nnodes $n --rdzv-backend c10d --rdzv-endpoint $M:0 "$@"'
DEFAULT = "N=${N:-2}\ntorchrun --nnodes $N --rdzv-backend c10d --rdzv-endpoint $M:0 t.py"


@pytest.mark.parametrize(
    ("call", "line", "found"),
    [
        ("srun ./run.sh 5 t.py", SHIFTED, True),
        ("srun ./run.sh 2 t.py", SHIFTED, False),
        ('srun ./run.sh "$n" t.py', SHIFTED, False),
        ("N=5 srun ./run.sh", DEFAULT, True),
        ("N=2 srun ./run.sh", DEFAULT, False),
        ("export N=5\nsrun ./run.sh", DEFAULT, True),
    ],
)
def test_the_values_that_a_call_gives(call: str, line: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(INNER.format(line))
    assert ("nodes-mismatch" in {rule for _, _, rule in errors(tmp_path, call)}) is found


OWN_RANK = "R=$SLURM_NODEID\nN=${N:-2}\nNODE_RANK=${NODE_RANK:-0}\ntorchrun --nnodes 2 --node-rank $NODE_RANK --master-addr $M t.py"


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("srun ./run.sh", True),
        ("srun bash -c 'NODE_RANK=$SLURM_NODEID ./run.sh'", False),
        ("export NODE_RANK\nsrun ./run.sh", False),
        ("source env.sh\nsrun ./run.sh", False),
        ("srun --container-image=i ./run.sh", False),
    ],
)
def test_a_node_rank_that_has_only_its_default(call: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(INNER.format(OWN_RANK))
    assert ("fixed-node-rank" in {rule for _, _, rule in errors(tmp_path, call)}) is found


@pytest.mark.parametrize(("last", "found"), [("", True), ("n=1\n", False)])
def test_an_argument_that_a_loop_changes(last: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(INNER.format("torchrun --nnodes 2 --node-rank $1 --master-addr $M t.py"))
    body = f"n=0\nfor h in $L; do\nssh $h bash $PWD/run.sh $n &\n{last or 'echo'}\ndone"
    assert bool(errors(tmp_path, body)) is found


@pytest.mark.parametrize(
    "name", ["missing.sh", "../run.sh", "/bin/true", "program", "data.sh", "own.sh", "job.sh", "$X/run.sh"]
)
def test_what_is_not_read(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    text = INNER.format(MISSING)
    for place in (tmp_path / "run.sh", folder / "run.sh", folder / "job.sh"):
        place.write_text(text)
    (folder / "program").write_bytes(b"\x7fELF\0\n" + MISSING.encode())
    (folder / "data.sh").write_text(f"#!/usr/bin/env python3\n{MISSING}\n")
    (folder / "own.sh").write_text(f"#!/bin/bash\n#SBATCH --nodes=2\n{MISSING}\n")
    assert errors(folder, f"srun {name}") == set()


def test_scripts_that_start_each_other(tmp_path: Path) -> None:
    for name, other in (("run.sh", "other.sh"), ("other.sh", "run.sh")):
        (tmp_path / name).write_text(INNER.format(f"srun ./{other}\n{MISSING}"))
    found = errors(tmp_path, "srun ./run.sh\nsrun ./run.sh")
    assert {one[:2] for one in found if one[2] == "missing-node-rank"} == {
        ("jobs/run.sh", 4),
        ("jobs/other.sh", 4),
    }


def test_two_jobs_with_one_script(tmp_path: Path) -> None:
    """A finding is reported once; a comment in the script that has it disables its rule."""
    (tmp_path / "run.sh").write_text(INNER.format(MISSING))
    for name in ("a.sh", "b.sh"):
        (tmp_path / name).write_text(HEAD + "srun ./run.sh\n")
    words = ("check", "--format", "json", "--severity", "error", tmp_path)
    found = json.loads(jobs.jobgen(*words).stdout)
    assert [(Path(one["file"]).name, one["line"]) for one in found] == [("run.sh", 3)]
    (tmp_path / "run.sh").write_text(INNER.format(f"# jobgen: disable=missing-node-rank\n{MISSING}"))
    assert json.loads(jobs.jobgen(*words).stdout) == []


def test_the_rules_about_ranks_read_it(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(INNER.format("NCCL_DEBUG=INFO\ntorchrun --standalone t.py"))
    found = check(f"{HEAD}srun bash run.sh\n".encode(), "jobs/job.sh", folder=str(tmp_path))
    assert ("jobs/run.sh", 3, "unexported-variable") in {(one.file, one.line, one.rule) for one in found}


@pytest.mark.parametrize(("before", "found"), [("cd $PWD; ", False), ("", True)])
def test_the_directory_of_a_script_that_ssh_starts(before: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(INNER.format(MISSING))
    body = f'for h in $L; do ssh $h "{before}M=$M bash run.sh" & done'
    rules = {one.rule for one in check(f"{HEAD}{body}\n".encode(), "job.sh", folder=str(tmp_path))}
    assert ("remote-directory" in rules) is found
    assert "missing-node-rank" in rules


def test_a_script_that_ssh_starts_has_no_exported_variables(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(INNER.format(RIGHT.replace("nnodes 2", "nnodes $N")))
    call = "export N=4\n{} bash run.sh"
    assert ("jobs/run.sh", 3, "nodes-mismatch") in errors(tmp_path, call.format("srun"))
    assert errors(tmp_path, call.format("pbsdsh")) == set()


RANKS = HEAD.replace("ntasks-per-node=1", "ntasks-per-node=4")
SET = "export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID\n"
OPENS = "import os\nimport torch\n\ntorch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n"


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("export MASTER_PORT=$(shuf -i 2000-9000 -n 1)", {"random-rendezvous"}),
        ("rm -rf old", {"rm-in-ranks"}),
        ("export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID", {"task-devices"}),
        ("export WORLD_SIZE=$SLURM_NTASKS", set()),
        ("python prepare.py > prepare.log", {"task-log"}),
    ],
)
@pytest.mark.parametrize("start", ["srun", "srun bash"])
def test_it_is_code_of_each_task(line: str, start: str, rules: set[str], tmp_path: Path) -> None:
    (tmp_path / "rank.sh").write_text(INNER.format(f'{SET}{line}\nexec "$@"'))
    (tmp_path / "t.py").write_text(OPENS)
    found = check(f"{RANKS}{start} ./rank.sh python t.py\n".encode(), "job.sh", folder=str(tmp_path))
    named = {"random-rendezvous", "rm-in-ranks", "task-devices", "world-size", "task-log"}
    assert {one.rule for one in found if one.file == "rank.sh"} & named == rules


@pytest.mark.parametrize(("size", "found"), [("$SLURM_NNODES", True), ("$SLURM_NTASKS", False)])
def test_the_world_size_of_ranks_that_it_numbers(size: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "rank.sh").write_text(INNER.format(f'{SET}exec "$@"'))
    script = f"{RANKS}export WORLD_SIZE={size}\nsrun ./rank.sh python t.py\n"
    rules = {(one.file, one.line, one.rule) for one in check(script.encode(), "job.sh", folder=str(tmp_path))}
    assert (("rank.sh", 3, "world-size") in rules) is found


@pytest.mark.parametrize(("option", "found"), [("-u ", False), ("", True)])
def test_pbsdsh_starts_it_once_on_a_node(option: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "node.sh").write_text(INNER.format("torchrun --nnodes=2 --nproc_per_node=4 t.py"))
    script = (
        f"#!/bin/bash\n#PBS -l nodes=2:ppn=8:gpus=4\nset -e\npbsdsh {option}bash $PBS_O_WORKDIR/node.sh\n"
    )
    rules = {one.rule for one in check(script.encode(), "job.sh", folder=str(tmp_path))}
    assert ("nested-tasks" in rules) is found


@pytest.mark.parametrize("call", ["./run.sh", "bash run.sh", "bash ./first.sh"])
def test_a_script_that_the_batch_script_runs_itself(call: str, tmp_path: Path) -> None:
    """It runs once, on the first node: its name is the address for all ranks."""
    numbers = "export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID"
    lines = f"export MASTER_ADDR=$(hostname)\nOMP_NUM_THREADS=32 srun bash -c '{numbers}; exec python t.py'"
    (tmp_path / "first.sh").write_text(INNER.format("exec bash run.sh"))
    (tmp_path / "run.sh").write_text(INNER.format(f"{lines}\ntorchrun --standalone --nproc-per-node 8 t.py"))
    found = check(f"{HEAD}{call}\n".encode(), "jobs/job.sh", folder=str(tmp_path))
    of_ranks = [one for one in found if one.file == "jobs/run.sh" and one.severity != "note"]
    assert [(one.line, one.rule) for one in of_ranks] == [(5, "ranks-mismatch")]
