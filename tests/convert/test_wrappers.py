"""Containers and commands around the launcher of a script, in its job file."""

from __future__ import annotations

from typing import Any

import pytest
from convert.conversions import convert, job_file, rendered, values

HEAD = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=4 -c 8\n"
TORCHRUN = "torchrun --nnodes 2 --nproc-per-node 4"


def converted(body: str) -> dict[str, Any]:
    return values(job_file(f"{HEAD}{body}\n").text)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            f"srun apptainer exec --nv -B /d:/e:ro,/f --cleanenv i.sif {TORCHRUN} t.py -x",
            {"container": "apptainer", "image": "i.sif", "bind": ["/d:/e:ro", "/f"],
             "container_arg": ["--cleanenv"], "command": ["t.py", "-x"], "launcher": "torchrun"},
        ),
        (
            f"I=a/b.sif\nsrun singularity exec --nv -H /h $I {TORCHRUN} -m a.b",
            {"container": "singularity", "image": "a/b.sif", "container_arg": ["--home=/h"], "command": ["-m", "a.b"]},
        ),
        (f"srun shifter --image=docker:a/b:1 --module=mpich {TORCHRUN} t.py",
         {"container": "shifter", "image": "docker:a/b:1", "container_arg": ["--module=mpich"]}),
        (f"srun shifter -i a/b:1 -V /d:/e -e A=1 -w /w {TORCHRUN} t.py",
         {"image": "a/b:1", "bind": ["/d:/e"], "container_arg": ["--env=A=1", "--workdir=/w"]}),
        (f"docker run -it -v $PWD:/w -w /w -e TOKEN -u 5 -m 64g a/b {TORCHRUN} t.py",
         {"container": "docker", "bind": ["$PWD:/w"],
          "container_arg": ["--workdir=/w", "--env=TOKEN", "--user=5", "--memory=64g"]}),
        (f"srun singularity exec -e -i -p -w i.sif {TORCHRUN} t.py",
         {"image": "i.sif", "container_arg": ["--cleanenv", "--ipc", "--pid", "--writable"]}),
        (f"srun --container-image=a#b --container-workdir=/w {TORCHRUN} t.py",
         {"container": "pyxis", "container_arg": ["--container-workdir=/w"]}),
        (f'srun --container-image="$W/i" --container-mounts="$(pwd)":/w,$HOME/c:/c:ro {TORCHRUN} t.py',
         {"image": "$W/i", "bind": ["$PWD:/w", "$HOME/c:/c:ro"], "expand": True, "setup": None}),
        (f'A=${{A:-/a}}\nM="${{A}}:/d,$W/b:/b"\nsrun --container-image=i --container-mounts="$M" {TORCHRUN} t.py',
         {"bind": ["$A:/d", "$W/b:/b"], "setup": "set +e\nA=${A:-/a}\nexport A\n"}),
        (f"docker run -u $(id -u) -m 64g a/b {TORCHRUN} t.py",
         {"setup": "set +e\nexport argument_1=$(id -u)\n"}),
        (f"IMG=$1\nsrun apptainer exec $IMG {TORCHRUN} t.py",
         {"container": "apptainer", "image": "$IMG", "setup": "set +e\nIMG=$1\nexport IMG\n"}),
        (f"srun apptainer exec $1 {TORCHRUN} t.py", {"container": None, "image": None}),
        (f'M="$PWD/a:/b"\ncd x\nsrun --container-image=i --container-mounts="$M,/c:/c" {TORCHRUN} t.py', {"bind": None}),
        (f"srun --container-image=i --container-mounts=$M {TORCHRUN} t.py", {"bind": None}),
        (f"srun --container-image=i --container-mounts=/d:/r$SLURM_PROCID {TORCHRUN} t.py", {"bind": None}),
        (f"srun apptainer exec -B $(pwd):/w,$SCRATCH --pwd $PWD $HOME/i.sif {TORCHRUN} t.py",
         {"image": "$HOME/i.sif", "bind": ["$PWD:/w", "$SCRATCH"], "container_arg": ["--pwd=$PWD"], "expand": True}),
        (f"srun apptainer exec -B $MOUNTS i.sif {TORCHRUN} t.py", {"bind": None, "container": None}),
        (f"conda activate x\nsrun apptainer exec i.sif {TORCHRUN} t.py", {"container": "apptainer", "conda": None}),
        (f"srun uv run {TORCHRUN} t.py", {"command": ["uv", "run", "python3", "t.py"]}),
        (f"srun nsys profile -o r {TORCHRUN} -m a.b", {"command": ["nsys", "profile", "-o", "r", "python3", "-m", "a.b"]}),
        (f"srun numactl --interleave=all {TORCHRUN} t.py", {"command": ["numactl", "--interleave=all", "python3", "t.py"]}),
        (f"srun env A=b {TORCHRUN} t.py", {"command": ["env", "A=b", "python3", "t.py"]}),
        (f"srun ./wrap.sh {TORCHRUN} t.py", {"command": ["./wrap.sh", "python3", "t.py"]}),
        (f"conda run -n e {TORCHRUN} t.py", {"conda": "e", "command": ["t.py"]}),
        ("timeout 60 srun ./a", {"command": ["timeout", "60", "./a"]}),
        ("env A=1 srun ./a", {"command": ["env", "A=1", "./a"]}),
        ("time srun ./a", {"command": ["./a"]}),
        (f"srun bash -c '. e.sh && {TORCHRUN} t.py > log'", {"setup": "set +e\n. e.sh\n", "command": ["t.py"]}),
        (
            f"srun bash -c '. e.sh; {TORCHRUN} t.py; python p.py'",
            {"setup": "set +e\n. e.sh\n", "command": ["bash", "-c", "python3 t.py; python p.py"]},
        ),
        (
            f"srun apptainer exec i.sif bash -c '. e.sh; {TORCHRUN} t.py'",
            {"container": "apptainer", "setup": None, "command": ["bash", "-c", ". e.sh; python3 t.py"]},
        ),
        (
            f"srun bash -c 'cp a b; {TORCHRUN} -m a.b'",
            {"setup": None, "command": ["bash", "-c", "cp a b; python3 -m a.b"]},
        ),
        (
            f'Y=$(date)\nsrun bash -c "cp a b; {TORCHRUN} t.py \\$SLURM_PROCID $Y"',
            {"command": ["bash", "-c", 'eval "cp a b; python3 t.py \\$SLURM_PROCID $Y"']},
        ),
        (
            f'M=$(hostname)\nsrun bash -c "cp a b; {TORCHRUN} --master-addr=$M --node-rank=\\$SLURM_NODEID t.py \\$X"',
            {"command": ["bash", "-c", "cp a b; python3 t.py $X"]},
        ),
        (
            f'A=/d/x\nsrun bash -c "cp a b; {TORCHRUN} t.py -a "$A" -b"c"="${{A}}z""',
            {"command": ["bash", "-c", 'eval "cp a b; python3 t.py -a ${A} -bc=${A}z"']},
        ),
        (f'bash -c "echo \\"a\\"; {TORCHRUN} t.py"', {"command": ["bash", "-c", 'echo "a"; python3 t.py']}),
    ],
)  # fmt: skip
def test_what_is_around_a_launcher_is_kept(body: str, expected: dict[str, object]) -> None:
    found = converted(body)
    assert {key: found.get(key) for key in expected} == expected


LAUNCHER = f"""MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
MASTER_PORT=6000
LAUNCHER="{TORCHRUN} \\
    --rdzv_conf "rdzv_backend=c10d,rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT" --role \\$(hostname -s): \\
"
CMD="\\
    t.py --a 'b c' \\
"
"""


@pytest.mark.parametrize(
    "run",
    [
        'bash -c "$LAUNCHER $CMD"',
        'srun --jobid $SLURM_JOB_ID bash -c "$LAUNCHER $CMD"',
        'ALL="$LAUNCHER $CMD"\nsrun bash -c "$ALL"',
        'srun bash -c "$LAUNCHER --role \\$SLURMD_NODENAME: $CMD" 2>&1 | tee log',
        "srun $LAUNCHER t.py --a 'b c'",
        'ALL="srun $LAUNCHER $CMD"\neval $ALL',
        'ALL="$LAUNCHER $CMD"\necho $ALL\nsrun bash -c "$ALL"',
        'export LAUNCHER\nsrun bash -c "$LAUNCHER $CMD"',
    ],
)
def test_a_launcher_in_a_variable_is_the_launcher(run: str) -> None:
    variables = LAUNCHER if "CMD" in run else LAUNCHER.partition("CMD=")[0]
    done = job_file(f"{HEAD}{variables}{run}\n")
    found = values(done.text)
    assert {key: found.get(key) for key in ("launcher", "launcher_arg", "command")} == {
        "launcher": "torchrun",
        "launcher_arg": None,
        "command": ["t.py", "--a", "b c"],
    }
    assert not {"setup", "before"} & {*found}
    assert not any(one.lost for one in done.remarks)


def test_a_variable_between_quotes_ends_with_them() -> None:
    body = f'N=$(hostname)\nA="t.py --lr "$N"e-4 --b "$N""\nsrun {TORCHRUN} $A'
    assert converted(body)["command"] == ["t.py", "--lr", "${N}e-4", "--b", "$N"]


def test_a_variable_before_a_launcher_in_a_text_is_one_of_the_program() -> None:
    body = f'L="A=b numactl --localalloc {TORCHRUN}"\nsrun bash -c "$L t.py"'
    assert converted(body)["command"] == ["env", "A=b", "numactl", "--localalloc", "python3", "t.py"]


@pytest.mark.parametrize("program", ["t.py; ls", "t.py | tee log", "t.py > log", "t.py & wait"])
def test_a_program_in_a_variable_with_other_commands_has_a_remark(program: str) -> None:
    done = job_file(f'{HEAD}P="{program}"\nsrun bash -c "{TORCHRUN} $P"\n')
    assert [one.what for one in done.remarks if one.of_program] == ["torchrun"]


def test_a_shell_removes_the_quotes_of_a_text_that_is_not_read_as_a_whole() -> None:
    done = job_file(f'{HEAD}A=$(date)\nsrun bash -c "cp a b; {TORCHRUN} t.py --a \\"b c\\" "$A""\n')
    assert [one.what for one in done.remarks if one.of_program] == ["torchrun"]
    assert not any("the script passes them on" in one.why for one in done.remarks)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (f"srun apptainer exec --nv $IMAGE {TORCHRUN} t.py", "apptainer"),
        (f"srun podman-hpc run --rm --gpu i {TORCHRUN} t.py", "podman-hpc"),
        (f"srun ch-run i -- {TORCHRUN} t.py", "ch-run"),
        (f"srun sarus run i {TORCHRUN} t.py", "sarus"),
        (f"srun ./i.sif {TORCHRUN} t.py", "i.sif"),
        (f"P=\"t.py a\"\nsrun bash -c 'cp a b; {TORCHRUN} $P'", "torchrun"),
        (f"srun bash << EOF\ncp a b\n{TORCHRUN} t.py\nEOF", "torchrun"),
        (f"srun nsys profile {TORCHRUN} t.py", "nsys"),
        (f"srun bash -c 'cp a b; {TORCHRUN} t.py'", "cp"),
    ],
)
def test_what_is_otherwise_has_a_remark(body: str, what: str) -> None:
    done = job_file(f"{HEAD}{body}\n")
    assert what in {one.what for one in done.remarks}
    assert any(one.of_program for one in done.remarks) == (what not in ("nsys", "cp"))


@pytest.mark.parametrize(
    ("sign", "plain"), [("\\$A", "$A"), ('\\"a\\"', '"a"'), ("\\`date\\`", "`date`"), ("a\\\\b", "a\\b")]
)
def test_escapes_in_the_text_of_a_shell_keep_the_program(sign: str, plain: str) -> None:
    launch = "torchrun --nproc-per-node 2 t.py é"
    script = f'#!/bin/bash\n#SBATCH -N 1 --gres=gpu:2\nsrun bash -c "cd /w; echo {sign}; {launch}; ls"\n'
    assert values(job_file(script).text)["command"] == [
        "bash",
        "-c",
        f"cd /w; echo {plain}; python3 t.py é; ls",
    ]


def test_a_container_of_an_earlier_srun_has_remarks() -> None:
    options = "--container-name=x --container-mounts=/a:/b"
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 4\nsrun {options} ./a\n")
    assert [one.what for one in done.remarks if one.of_program] == sorted(options.split())
    assert not {"container", "container_arg", "bind", "launcher_arg"} & values(done.text).keys()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "srun --mpi=pmix apptainer exec --nv -B /d:/e --pwd /w i.sif python3 t.py -x",
            {"container": "apptainer", "image": "i.sif", "bind": ["/d:/e"], "container_arg": ["--pwd=/w"],
             "command": ["t.py", "-x"]},
        ),
        ("I=$HOME/i.sif\nmpirun -np 8 singularity exec $I ./a $SLURM_JOB_ID",
         {"container": "singularity", "image": "$HOME/i.sif", "command": ["./a", "$SLURM_JOB_ID"]}),
        ("srun shifter --image=a/b:1 ./a", {"container": "shifter", "image": "a/b:1", "command": ["./a"]}),
        ("srun singularity run i.sif ./a", {"container": None, "command": ["singularity", "run", "i.sif", "./a"]}),
        ("srun apptainer exec i.sif numactl -l ./a",
         {"container": None, "command": ["apptainer", "exec", "i.sif", "numactl", "-l", "./a"]}),
        ("srun numactl -l apptainer exec i.sif ./a",
         {"container": None, "command": ["numactl", "-l", "apptainer", "exec", "i.sif", "./a"]}),
        ("srun docker run i ./a", {"container": None, "command": ["docker", "run", "i", "./a"]}),
        (
            "IMAGE=$(pwd)/i.sqsh\nsrun --container-image $IMAGE --container-mount-home ./a",
            {"container": "pyxis", "image": "$PWD/i.sqsh", "container_arg": ["--container-mount-home"], "command": ["./a"]},
        ),
        (
            ': "${IMAGE:=/a/i.sqsh}"\nsrun --container-image $IMAGE ./a',
            {"container": "pyxis", "image": "$IMAGE", "command": ["./a"]},
        ),
        (
            'A=(--container-image i --no-container-remap-root)\nsrun -l "${A[@]}" --mpi=pmix ./a -b 8',
            {"container": "pyxis", "image": "i", "command": ["./a", "-b", "8"]},
        ),
        ("srun sarus run a/b:1 ./a", {"container": None, "command": ["sarus", "run", "a/b:1", "./a"]}),
    ],
)  # fmt: skip
def test_a_container_that_each_rank_starts(line: str, expected: dict[str, Any]) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 -t 10\n{line}\n")
    found = values(done.text)
    assert {key: found.get(key) for key in expected} == expected
    assert not [one for one in done.remarks if one.lost]


def test_the_image_is_a_directive_of_slurm_only() -> None:
    done = job_file("#!/bin/bash\n#PBS -l nodes=2:ppn=4\nmpirun -np 8 shifter --image=a/b:1 ./a\n", "torque")
    assert values(done.text)["image"] == "a/b:1"
    text = rendered(done.text)
    assert "#PBS --image" not in text
    assert "shifter --image=a/b:1" in text


@pytest.mark.parametrize(
    ("options", "line", "what"),
    [
        ("-N 2 -n 8", "srun --container-image=a#b --no-container-mount-home ./a", "srun"),
        ("-N 2 -n 8", "srun --environment=a.toml ./a", "srun"),
        ("-N 2 -n 8 --container-image=a#b", "srun ./a", "--container-image"),
        ("-N 2 -n 8 --image=docker:a/b", "srun shifter ./a", "--image"),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_a_container_of_slurm_has_no_counterpart(options: str, line: str, what: str, target: str) -> None:
    done = convert(f"#SBATCH -t 10 {options}\n{line}", target)
    lost = [one for one in done.remarks if one.of_program]
    assert [one.what.startswith(what) and one.lost for one in lost] == [True]
    assert "is not an option of" not in lost[0].why


def test_mounts_that_only_the_job_knows_are_a_part_of_the_container() -> None:
    done = job_file(f"{HEAD}srun --container-image=x.sqsh --container-mounts=$M ./a\n")
    assert [one.what for one in done.remarks if one.of_program] == ["--container-mounts=$M"]
