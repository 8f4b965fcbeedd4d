"""Job files of scripts: what is kept, what is said, and that the rendered job asks for the same."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomllib
from hypothesis import given, settings
from hypothesis import strategies as st
from support.jobs import run

from jobgen.config import read_spec
from jobgen.convert.result import Converted
from jobgen.convert.to_job_file import translation
from jobgen.jobfile.reader import layer_of
from jobgen.plan.plan import resolve
from jobgen.rendering.render import render
from jobgen.rendering.runtime import MARK
from jobgen.script.directives import guess
from jobgen.script.script import Script

HEAD = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4 --cpus-per-task=2 --gres=gpu:a100:4\n#SBATCH -t 1:00:00\nset -eu\n"


def convert(text: str) -> Converted:
    return translation.convert(Script(text.encode(), guess(text.split("\n"))))


def rendered(text: str) -> str:
    data = tomllib.loads(text)
    layer = layer_of(data, (), lambda _: "job.toml")
    return render(resolve(read_spec(data["scheduler"], {}, (), layer)))


def values(text: str) -> dict[str, Any]:
    """Return the values of all tables of a job file, which jobgen renders."""
    rendered(text)
    tables = tomllib.loads(text)
    del tables["scheduler"]
    return {key: value for table in tables.values() for key, value in table.items()}


KEPT = {
    "run-time arguments": (
        "srun python -u train.py --id $SLURM_JOB_ID \"$1\" --out=/s/${USER}_x '$HOME' \"a $B\"",
        {
            "command": ["train.py", "--id", "$SLURM_JOB_ID", "$1", "--out=/s/${USER}_x", "$argument_1", "a $B"],
            "expand": True,
            "setup": "set -eu\nargument_1='$HOME'\n",
        },
    ),
    "words of a constant": ("O='--a 1 --b'\nsrun python t.py $O", {"command": ["t.py", "--a", "1", "--b"]}),
    "words that only a shell splits": (
        "if [ -e x ]; then O='--a 1'; else O=; fi\nsrun python t.py $O",
        {
            "command": ["bash", "-c", "exec python t.py $O"],
            "setup": "set -eu\nif [ -e x ]; then O='--a 1'; else O=; fi\nexport O\n",
        },
    ),
    "an array": (
        'A=(--x "1 2")\nA+=("$SLURM_JOB_ID")\nsrun ./a "${A[@]}"',
        {"command": ["bash", "-c", 'A=(--x "1 2")\nA+=("$SLURM_JOB_ID")\nexec ./a "${A[@]}"']},
    ),
    "options before the first command": (
        "module load cuda/12\nexport A=1\nif true; then export B=2; fi\nexport C=3\nsrun ./a",
        {
            "module": ["cuda/12"],
            "env": {"A": "1"},
            "setup": "set -eu\nif true; then export B=2; fi\nexport C=3\n",
            "command": ["./a"],
        },
    ),
    "before and after": (
        "D=/tmp/$USER\nN=3\ncp data $D\nsrun ./a\ncp $D/out$((N + 1)) .",
        {
            "setup": "set -eu\nD=/tmp/$USER\nN=3\nexport D\nexport N\n",
            "before": "set +o pipefail\ncp data $D\n",
            "after": 'set +o pipefail\n[ "$JOBGEN_STATUS" = 0 ] || exit 0  # as set -e\ncp $D/out$((N + 1)) .\n',
        },
    ),
    "variables of one command": ("B=2 ./prepare\nA=$X srun ./a", {"before": "set +o pipefail\nB=2 ./prepare\n", "command": ["env", "A=$X", "./a"]}),
    "a directory": ("cd /data/run\nsrun ./a", {"workdir": "/data/run"}),
    "two directories": ("cd /data/run\ncd x && srun ./a", {"setup": "set -eu\ncd /data/run\ncd x || exit\n"}),
    "options of mpirun": (
        'mpirun -np 8 --mca btl ^openib -x A=1 -x PATH -x B="$C" ./a',
        {"launcher": "mpirun", "launcher_arg": ["--mca", "btl", "^openib"], "env": {"A": "1"}, "setup": 'set -eu\nexport B="$C"\n'},
    ),
    "options of mpiexec": ("mpiexec -genv A 1 -n 8 ./a", {"env": {"A": "1"}}),
    "options of srun": ("srun --export=ALL,A=1 --gpu-bind=closest ./a", {"env": {"A": "1"}, "launcher_arg": ["--gpu-bind=closest"]}),
    "a constant of options": ("O='--unbuffered --wait=60'\nsrun $O ./a", {"command": ["./a"]}),
    "an argument of torch.distributed.launch": (
        "srun --ntasks-per-node=1 python -m torch.distributed.launch --nproc_per_node=4 t.py --x",
        {"launcher": "torchrun", "command": ["t.py", "--local_rank=$LOCAL_RANK", "--x"], "ranks_per_node": 4},
    ),
    "colossalai": ("colossalai run --nproc_per_node 4 t.py", {"launcher": "colossalai", "command": ["t.py"], "ranks_per_node": 4}),
    "a group and a function": (
        "main() {\n  echo begin\n  srun ./a\n  echo end\n}\nmain \"$@\"",
        {"command": ["./a"], "setup": "set -eu\necho begin\n"},
    ),
    "the text of a shell": (
        "srun bash -c 'echo $SLURM_PROCID'\n", {"command": ["bash", "-c", "echo $SLURM_PROCID"]},
    ),
    "the text of a shell with values": (
        'L=$(date)\nsrun bash -c "$L \\$SLURM_PROCID"', {"command": ["bash", "-c", 'eval "$L \\$SLURM_PROCID"']},
    ),
    "paths of several names": (
        "A=/d/x$B/$C/y\nsrun ./a /d/x$B/$C/z",
        {"setup": "set -eu\nA=/d/x$B/$C/y\n", "command": ["./a", "/d/x$B/$C/z"], "expand": True},
    ),
    "threads": ("export OMP_NUM_THREADS=1\nsrun ./a", {"env": {"OMP_NUM_THREADS": "1"}}),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept(name: str) -> None:
    body, expected = KEPT[name]
    done = convert(HEAD + body + "\n")
    found = values(done.text)
    assert {key: found.get(key) for key in expected} == expected
    assert found["gpus_per_node"] == "a100:4"
    assert not [one for one in done.remarks if one.lost]


@pytest.mark.parametrize(
    ("body", "line", "why"),
    [
        ("for i in 1 2; do\n  srun ./a $i\ndone", 5, "the program is in a loop"),
        ("if x; then srun ./a; fi", 5, "the program is in a condition"),
        ("srun ./a < data", 5, "the ranks have no standard input"),
        ("yes | srun ./a", 5, "the program is not in a pipeline"),
        ("srun --output $X ./a", 5, "is known only when the job runs"),
        ("srun -n 3 ./a", 5, "3 ranks are not divisible by 2 nodes"),
        ("srun -N 1 -n 4 ./a", 5, "the launcher uses 1 of 2 nodes"),
        ("python t.py", 2, "runs its program on the first one only"),
        ("srun ./a *.txt $@", 5, "$1 to $9"),
        ("srun --foo 1 torchrun --nproc-per-node 4 t.py", 5, "jobgen starts torchrun without it"),
    ],
)
def test_what_is_lost_is_said_with_its_line(body: str, line: int, why: str) -> None:
    done = convert(HEAD + body + "\n")
    assert [one.line for one in done.remarks if one.lost and why in one.why] == [line], done.remarks
    values(done.text)


def test_no_time_limit_stays_none() -> None:
    assert values(convert("#SBATCH -n 1\nsrun ./a\n").text)["walltime"] == "queue"
    assert "--time=0" in values(convert("#SBATCH -n 1 -t 0\nsrun ./a\n").text)["directive"]


def test_a_loop_of_a_script_without_launcher_is_its_program() -> None:
    text = "#SBATCH -n 1\nD=x\nf() { echo $1; }\nfor i in 1 2; do\n  f $i; python t.py $D $i > log.$i\ndone\n"
    done = convert(text)
    code = "f() { echo $1; }\nfor i in 1 2; do\n  f $i; python t.py $D $i > log.$i\ndone"
    assert values(done.text)["command"] == ["bash", "-c", code]
    assert "export D" in values(done.text)["setup"]
    assert ["has no launcher in the script" in one.why for one in done.remarks] == [True]


BODY = """
cd work
NAME='two words'
export LEVEL=3
half() { echo "half of $1 is $(($1 / 2))"; }
if [ "$LEVEL" = 3 ]; then MORE='--more 1'; else MORE=; fi
false
half 8 > half.txt
TAG="$1" python3 show.py "$NAME" $MORE "$LEVEL-$1" '$NAME' "$(echo from a command)" *.dat
status=$?
echo "after: $NAME $status"
"""
SHOW = "import os, sys\nprint('program:', sys.argv[1:], os.environ['TAG'], os.getcwd())\n"


def test_the_job_does_what_the_script_does(tmp_path: Path) -> None:
    """The script by bash, and its job file as a job on this machine."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/show.py").write_text(SHOW)
    (tmp_path / "work/a.dat").touch()
    (tmp_path / "work/b.dat").touch()
    text = f"#!/bin/bash\n#SBATCH --job-name=x\n{BODY}"
    done = subprocess.run(
        ["bash", "-c", text, "x", "it's"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    (tmp_path / "job.toml").write_text(convert(text).text)
    (tmp_path / "work/half.txt").unlink()
    got = run(
        tmp_path, "--job", str(tmp_path / "job.toml"), "--walltime", "1h", program=(), arguments=("it's",)
    )
    assert got.returncode == 0, got.stdout
    said = [line for line in got.stdout.splitlines() if line.startswith(("program:", "after:"))]
    assert said == done.stdout.splitlines()
    assert (tmp_path / "work/half.txt").read_text() == "half of 8 is 4\n"


# ---- the request ---------------------------------------------------------------------------------------

FORMS = {
    "slurm": {
        "name": "--job-name={}", "queue": "--partition={}", "nodes": "--nodes={}", "ranks": "--ntasks-per-node={}",
        "cpus": "--cpus-per-task={}", "gpus": "--gpus-per-node={}", "kind": "--gpus-per-node={}:{}",
        "mem": "--mem={}M", "time": "--time={}",
    },
    "pbspro": {
        "name": "-N {}", "queue": "-q {}", "nodes": "-l select={}:ncpus={}:mpiprocs={}:ngpus={}:mem={}mb",
        "time": "-l walltime=00:{}:00",
    },
    "torque": {"name": "-N {}", "queue": "-q {}", "nodes": "-l nodes={}:ppn={}:gpus={}", "time": "-l walltime=00:{}:00"},
}  # fmt: skip
LAUNCHES = [
    "python t.py", "srun python t.py", "mpirun -np {total} ./a", "torchrun --nproc_per_node={ranks} t.py",
    "deepspeed t.py", "bash run.sh", "srun torchrun --nproc-per-node {ranks} t.py", "make all",
]  # fmt: skip
SIZE = st.integers(1, 8)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(FORMS)), st.booleans(), SIZE, SIZE, SIZE, st.integers(0, 8), st.sampled_from([None, "a100"]),
    st.none() | st.integers(100, 9000), st.none() | st.integers(10, 59), st.sampled_from(LAUNCHES),
)  # fmt: skip
def test_a_rendered_job_file_asks_for_the_same(
    kind: str, named: bool, nodes: int, ranks: int, cpus: int, gpus: int, typed: str | None, mem: int | None,
    time: int | None, launch: str,
) -> None:  # fmt: skip
    forms = FORMS[kind]
    lines = [forms["name"].format("x"), forms["queue"].format("gpu")] * named
    if kind == "slurm":
        lines += [forms["nodes"].format(nodes), forms["ranks"].format(ranks), forms["cpus"].format(cpus)]
        lines += [(forms["kind"].format(typed, gpus) if typed else forms["gpus"].format(gpus))] * bool(gpus)
        lines += [forms["mem"].format(mem)] * bool(mem)
    elif kind == "pbspro":
        lines.append(forms["nodes"].format(nodes, ranks * cpus, ranks, gpus, mem or 100))
    else:
        lines.append(forms["nodes"].format(nodes, ranks, gpus))
    lines += [forms["time"].format(time)] * bool(time)
    prefix = "#SBATCH" if kind == "slurm" else "#PBS"
    body = launch.format(total=nodes * ranks, ranks=ranks)
    text = "".join(["#!/bin/bash\n", *(f"{prefix} {line}\n" for line in lines), body, "\n"])
    done = translation.convert(Script(text.encode(), kind))
    said = " ".join(one.what for one in done.remarks)
    again = Script(rendered(done.text).partition(MARK)[0].encode(), kind)
    ours, theirs = asked(again), asked(Script(text.encode(), kind))
    differ = {key for key in theirs if theirs[key] != ours[key] and not (key == "name" and not named)}
    assert differ <= {key for key, word in {"cores": "cores", "gpus": "GPUs"}.items() if word in said}, (
        text,
        done.text,
        done.remarks,
    )


def asked(script: Script) -> dict[str, object]:
    one = script.request
    chunk = next(iter(one.chunks), {}).get("ncpus")  # the ranks may not divide them
    return {
        **{key: getattr(one, key) for key in ("name", "queue", "walltime", "nodes", "gpu_type", "mem")},
        "gpus": one.gpus_per_node or 0,
        "cores": int(chunk) if chunk else (one.cpus_per_rank or 1) * (one.ranks_per_node or 1),
    }
