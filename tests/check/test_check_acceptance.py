"""Kinds of mistakes in forms that other tests do not have: the file, the scheduler or the node of a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobgen.check.checker import Finding, check
from jobgen.check.rules.table import RULES

SLURM = (
    "#!/bin/bash\n#SBATCH -N 2 -t 1:00:00\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-node=4\nset -e\n"
)
PBS = "#!/bin/bash\n#PBS -l select=2:ncpus=8:mpiprocs=4:ngpus=4\n#PBS -l walltime=1:00:00\nset -e\n"
TORCHRUN = "torchrun --nnodes 2 --nproc-per-node 4"
TRAIN = "import os\nimport torch.distributed as dist\nos.environ['RANK'] = os.environ['SLURM_PROCID']\ndist.init_process_group('nccl')\n"


def findings(text: str, folder: Path | None = None) -> list[Finding]:
    return check(text.encode(), "job.sh", folder=None if folder is None else str(folder))


def of_rule(rule: str, text: str, folder: Path | None = None) -> list[Finding]:
    return [one for one in findings(text, folder) if one.rule == rule]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("pbsdsh -- hostname", True),
        ("pbsdsh -u mkdir -p /tmp/x", True),
        ('for h in $(uniq "$PBS_NODEFILE"); do ssh "$h" "rm -rf /tmp/x; mkdir /tmp/x"; done', True),
        ('for h in $(uniq "$PBS_NODEFILE"); do ssh "$h" "cd $PWD; ./node.sh" & done', False),
        ("pbsdsh -- ./start_agent", False),
    ],
)
def test_what_only_prepares_other_nodes_starts_no_ranks_there(body: str, found: bool) -> None:
    text = f'{PBS}cd "$PBS_O_WORKDIR"\n{body}\n{TORCHRUN} --node-rank 0 --master-addr $(hostname) t.py\n'
    assert bool(of_rule("first-node-only", text)) is found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("$PBS_NODEFILE", True),
        ("$(cat $PBS_NODEFILE)", True),
        ('$(cat "$PBS_NODEFILE" | sort -u)', True),
        ("`uniq ${PBS_NODEFILE}`", True),
        ("$(< $PBS_NODEFILE)", True),
        ("$(head -n 1 $PBS_NODEFILE)", False),
        ("$(cat $PBS_NODEFILE | uniq | head -1)", False),
        ("$(sort -u $PBS_NODEFILE | head -n 1)", False),
    ],
)
def test_the_node_file_is_no_address(value: str, found: bool) -> None:
    text = f"{PBS}export MASTER_ADDR={value}\nmpirun -np 8 -x MASTER_ADDR python t.py\n"
    faults = of_rule("master-address", text)
    assert bool(faults) is found
    assert all("$PBS_NODEFILE" in one.fix for one in faults)


def test_a_fix_has_the_words_of_the_scheduler() -> None:
    body = "export MASTER_PORT=29500\nsrun python t.py\n"
    assert "$((20000 + SLURM_JOB_ID % 10000))" in of_rule("fixed-port", SLURM + body)[0].fix
    body = "export MASTER_PORT=70000\nmpirun -np 8 python t.py\n"
    assert "$((20000 + ${PBS_JOBID%%[!0-9]*} % 10000))" in of_rule("large-port", PBS + body)[0].fix
    body = f"tar xf e.tar -C /tmp/e\nmpirun -np 2 --map-by ppr:1:node /tmp/e/bin/{TORCHRUN} t.py\n"
    assert "srun" not in of_rule("first-node-files", PBS + body)[0].fix


@pytest.mark.parametrize("rule", sorted(RULES))
def test_the_fix_of_a_rule_for_all_schedulers_names_no_variable_of_one(rule: str) -> None:
    row = RULES[rule]
    assert row.schedulers or "SLURM_" not in row.fix


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("tar xf e.tar.gz -C /tmp/e\nsource /tmp/e/bin/activate", True),
        ("python3 -m venv $SLURM_TMPDIR/e\nsource $SLURM_TMPDIR/e/bin/activate", True),
        ("uv venv /tmp/e\n. /tmp/e/bin/activate", True),
        ("conda create -y -p /tmp/e python\nconda activate /tmp/e", True),
        ("rsync -a /sw/e/ /tmp/e/\nexport PATH=/tmp/e/bin:$PATH", True),
        ("srun --ntasks-per-node=1 tar xf e.tar.gz -C /tmp/e\nsource /tmp/e/bin/activate", False),
        ("tar xf e.tar.gz -C /tmp/e\nsource /sw/e/bin/activate", False),
        ("source /tmp/e/bin/activate\ntar xf e.tar.gz -C /tmp/e", False),
    ],
)
def test_an_environment_on_the_disk_of_the_first_node(body: str, found: bool) -> None:
    assert bool(of_rule("first-node-files", f"{SLURM}{body}\nsrun python t.py\n")) is found


@pytest.mark.parametrize(
    ("inner", "rule", "found"),
    [
        ('rm -rf "$SLURM_SUBMIT_DIR/out"\npython t.py', "rm-in-ranks", True),
        ("D=out\nrm -rf $D\npython t.py", "rm-in-ranks", True),
        ("D=out.$SLURM_PROCID\nrm -rf $D\npython t.py", "rm-in-ranks", False),
        ("rm -rf $1\npython t.py", "rm-in-ranks", False),
        ("cd r$SLURM_PROCID\nrm -rf out\npython t.py", "rm-in-ranks", False),
        ("if [ $SLURM_PROCID = 0 ]; then rm -rf out; fi\npython t.py", "rm-in-ranks", False),
        (f"{TORCHRUN} --rdzv-backend c10d --rdzv-id $RANDOM --rdzv-endpoint $M:1 t.py", "random-rendezvous", True),
        ("MASTER_PORT=$((20000 + RANDOM % 99)) ./one_node", "random-rendezvous", False),
    ],
)  # fmt: skip
def test_each_task_runs_a_script_that_a_launcher_starts(
    inner: str, rule: str, found: bool, tmp_path: Path
) -> None:
    (tmp_path / "rank.sh").write_text(f"#!/bin/bash\n{inner}\n")
    faults = of_rule(rule, f"{SLURM}export M=$(hostname)\nsrun ./rank.sh\n", tmp_path)
    assert bool(faults) is found
    assert all(one.file == "rank.sh" for one in faults)


@pytest.mark.parametrize(
    "body", ['for h in a b; do ssh "$h" "cd $PWD; ./node.sh" & done\nwait', "pbsdsh ./node.sh"]
)
def test_a_node_rank_in_a_script_on_each_node(body: str, tmp_path: Path) -> None:
    inner = f"#!/bin/bash\n{TORCHRUN} --node_rank 0 --master-addr $M t.py\n"
    (tmp_path / "node.sh").write_text(inner)
    assert of_rule("fixed-node-rank", f"{PBS}{body}\n", tmp_path)
    (tmp_path / "node.sh").write_text(inner.replace("rank 0", "rank $1"))
    assert not of_rule("fixed-node-rank", f"{PBS}{body}\n", tmp_path)


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (TRAIN, True),
        (TRAIN.replace("'nccl'", "'nccl', world_size=8, rank=1"), False),
        (TRAIN + "os.environ['WORLD_SIZE'] = '8'\n", False),
        ("import numpy\n", False),
    ],
)
def test_the_variables_that_torch_reads_itself(program: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(program)
    text = f"{SLURM}WORLD_SIZE=$SLURM_NTASKS\nsrun python t.py\n"
    assert any("WORLD_SIZE" in one.reason for one in of_rule("unexported-variable", text, tmp_path)) is found


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("--mail-type=timeout", "write TIME_LIMIT"),
        ("--mail-type=start,finish", "write BEGIN,END"),
        ("--mail-type=END,FIAL", "write END,FAIL"),
        ("--mail-type=xyz", "write END,FAIL"),
    ],
)
def test_the_fix_of_an_event_is_what_it_means(line: str, fix: str) -> None:
    assert [one.fix for one in of_rule("bad-choice", f"#!/bin/bash\n#SBATCH {line}\nls\n")] == [fix]


def test_letters_in_another_order_are_a_mistake() -> None:
    assert (
        "did you mean --time?" in of_rule("unknown-option", "#!/bin/bash\n#SBATCH --tiem=3\nls\n")[0].reason
    )


@pytest.mark.parametrize("line", ["RES=()\n${RES}", "RES=()\n${RES[@]}", "A=()\nB=($A)\nsrun ${B[@]} || $A"])
def test_a_command_of_no_words(line: str) -> None:
    assert findings(f"#!/bin/bash\n#SBATCH -t 5\n{line}\n") is not None
