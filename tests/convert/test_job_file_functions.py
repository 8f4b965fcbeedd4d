"""Job files of scripts whose program is in a function with arguments, or in a text of a here-document."""

from __future__ import annotations

from typing import Any

import pytest
from convert.conversions import job_file, values

SLURM = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-node=4 -t 10\n"
TORCHRUN = "torchrun --nnodes 2 --nproc_per_node 4"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            'run() {\n  srun ./a --name "$1" --seed ${2}\n}\nrun base 3',
            {"command": ["./a", "--name", "base", "--seed", "3"]},
        ),
        (
            'run() {\n  local name="$1"; shift\n  srun ./a "$name" "$@"\n}\nrun base --lr 0.1',
            {"command": ["./a", "$name", "--lr", "0.1"], "setup": 'set +e\nname="base"\n'},
        ),
        (
            'run() { srun "$@"; }\nrun -n 8 --cpu-bind=cores ./a x',
            {"command": ["./a", "x"], "launcher_arg": ["--cpu-bind=cores"]},
        ),
        ('run() { srun -n "$1" "${@:2}"; }\nrun 8 ./a x', {"command": ["./a", "x"]}),
        (
            'run() { echo "$1"; srun ./a ${2:-none}; }\nrun b c',
            {"command": ["./a", "c"], "after_block": None},
        ),
        (
            'run() { local -r a=${1:?none}; local b="${*:2}"; srun $b "$a"; }\nrun x ./a',
            {"setup": 'set +e\na=x; b="./a"\n'},
        ),
        ('M=x\nrun() { srun ./a "$1"; }\nrun "$M"', {"command": ["./a", "x"]}),
    ],
)
def test_a_function_that_is_called_once(code: str, expected: dict[str, Any]) -> None:
    done = job_file(f"{SLURM}{code}\n")
    found = values(done.text)
    assert {key: found.get(key) for key in expected} == expected
    assert not [one for one in done.remarks if one.lost]
    assert "after" not in found


@pytest.mark.parametrize(
    "code",
    [
        "run() { srun ./a $1; }\nrun a\nrun b",
        "run() { srun ./a $1; }\nfor i in 1 2; do run $i; done",
        "run() { srun ./a $1; return 1; }\nrun a",
        "run() { srun ./a $1; }\nrun a || exit 1",
        "run() { local A=$1; srun ./a $A; }\nA=b\nrun a\necho $A",
        "run() { if [ $# -gt 1 ]; then shift; fi; srun ./a $1; }\nrun a b",
        "run() { srun ./a $1; }\nrun $A",
    ],
)
def test_other_functions_are_said_to_be_called(code: str) -> None:
    assert [one.why for one in job_file(f"{SLURM}{code}\n").remarks if "in a function" in one.why]


def test_commands_between_a_function_and_its_call() -> None:
    code = "run() {\n  A=$1\n  srun ./a $A\n}\necho start $(date)\nrun x\n"
    assert "echo start $(date)\nA=x\n" in values(job_file(f"{SLURM}{code}").text)["setup"]


QUOTED = "read -r -d '' CMD <<'EOF'\n{}\nEOF\n"
PRINTED = "CMD=$(cat <<'EOF'\n{}\nEOF\n)\n"


@pytest.mark.parametrize(
    "form", [QUOTED, PRINTED, PRINTED.replace("'EOF'", "EOF"), QUOTED.replace("'EOF'", "'EOF' || true")]
)
def test_a_here_document_for_a_shell(form: str) -> None:
    code = form.format(f"source env.sh\n{TORCHRUN} train.py --lr 0.1")
    done = job_file(f'{SLURM}{code}srun --ntasks-per-node=1 bash -c "$CMD"\n')
    found = values(done.text)
    assert (found["launcher"], found["command"]) == ("torchrun", ["train.py", "--lr", "0.1"])
    assert found["setup"] == "set +e\nsource env.sh\n"
    assert {one.line for one in done.remarks if one.what == "env.sh"} <= {4, 5, 6, 7, 8}
    assert not [one for one in done.remarks if one.lost]


def test_quotes_in_a_here_document() -> None:
    code = """L=1
read -r -d '' CMD <<EOF
./a $L "\\$(hostname)"
EOF
srun bash -c "$CMD"
"""
    assert values(job_file(SLURM + code).text)["command"] == ["bash", "-c", '\n./a 1 "$(hostname)"']


def test_a_here_document_that_others_read_stays_one() -> None:
    code = QUOTED.format("./a") + 'echo "$CMD"\nsrun bash -c "$CMD"'
    assert "<<'EOF'" in job_file(f"{SLURM}{code}\n").text


def test_a_variable_of_a_node_is_no_variable_of_the_job() -> None:
    text = f"srun bash -c 'export A=$SLURM_NODEID; {TORCHRUN} t.py'"
    found = values(job_file(f"{SLURM}{text}\n").text)
    assert found["command"] == ["bash", "-c", "export A=$SLURM_NODEID; python3 t.py"]
    assert "setup" not in found
