"""Job files of small scripts: what the job does as the script, and what is said where it does otherwise."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.jobs import run
from test_job_files import convert, values

from jobgen.convert.to_job_file.builder import JobFile, accepted

SLURM = "#!/bin/bash\n#SBATCH -t 10 -N 1 -n 1 {}\n{}\n"
TORQUE = "#!/bin/bash\n#PBS -l nodes=1:ppn=4\n{}{}\n"
GPUS = "#!/bin/bash\n#SBATCH -N 1 -n 1 --gres=gpu:2 {}\n{}\n"

# The form of the script, its options, its commands, the line of the remark, part of its reason, and whether
# something is lost.
SAID = {
    "the error file": (SLURM, "-o x.%j -e e.%j", "srun ./a", 2, "one log file", True),
    "a log that is emptied": (SLURM, "-o x.log", "srun ./a", 2, "a later job appends", False),
    "a module": (SLURM, "", "module load gcc\nset -e\nsrun ./a", 3, "the script goes on", False),
    "a status": (SLURM, "", "srun ./a\necho done", 4, "ends with the status of the program", False),
    "a failure": (SLURM, "", "srun ./a\nexit 3", 4, "ends with the status of the program", False),
    "a status that is dropped": (SLURM, "", "srun ./a || true", 1, "ends with the status of the program", False),
    "an early end": (SLURM, "", "[ -f x ] || exit 0\nsrun ./a", 3, "status 71", False),
    "a trap": (SLURM, "", "trap 'rm x' EXIT\nsrun ./a", 3, "traps of its own", True),
    "a step in the background": (SLURM, "", "srun ./b &\nsrun ./a", 3, "may wait", True),
    "a process in the background": (SLURM, "", "./b &\nsrun ./a", 3, "ends with it", False),
    "a step beside others": (SLURM, "", "srun ./a &\nsleep 5\n./b\nkill $!", 5, "has ended, the script beside", True),
    "one task of several": (SLURM, "-n 8 -c 4", "srun -n 1 ./a", 3, "the launcher starts 1 of them", True),
    "tasks of the submission": (
        "#SBATCH -t 10 {}\n{}\n", "", "mpirun -np $SLURM_NTASKS ./a", 2, "known only when the job runs", False,
    ),
    "ranks of a node": (SLURM, "", "N=$(nvidia-smi -L | wc -l)\nmpirun --ppn $N ./a", 4, "known only when", False),
    "tasks that do not divide": (SLURM, "-N 2 -n 49", "srun ./a", 2, "49 tasks are not divisible", True),
    "all cores": (SLURM, "--exclusive", "./a", 2, "has all cores of the node", False),
    "an exit of the program": (SLURM, "", "for i in 1 2; do\n  ./a || exit 1\ndone\ncp a b", 6, "after an exit", False),
    "options of aprun": (TORQUE, "", "aprun -j 1 -n 4 ./a", 3, "without it", True),
    "unknown options": (SLURM, "", "srun $OPTIONS python3 t.py", 3, "if it has options or a launcher", True),
    "an old launcher": (GPUS, "", "python3 -m torch.distributed.launch --nproc_per_node=2 t.py", 3, "since 1.10", False),
    "another shell": ("#!/bin/zsh\n#SBATCH -n 1 {}\n{}\n", "", "./a", 1, "splits words", False),
    "tasks that differ": (SLURM, "-n 4", "make -j $SLURM_NTASKS\nmake x", 3, "and the script 4", False),
    "an unknown MPI": (SLURM, "-n 4", "srun ./a", 3, "is a guess", False),
    "a script that may use MPI": (SLURM, "-n 4", "srun ./a.sh", 3, "starts without an MPI", False),
    "GPUs of a task": (SLURM, "-n 4 --gpus-per-task=1", "srun ./a", 2, "its own GPUs only", False),
    "GPUs and others": (SLURM, "--gres=gpu:1,nvme:5", "srun ./a", 2, "stays a directive", False),
    "memory of all cores": (SLURM, "--exclusive --mem-per-cpu=1G", "srun ./a", 2, "of an exclusive node", False),
    "a program of several GPUs": (GPUS, "", "python3 t.py", 3, "may start its own ranks", False),
    "torchrun": (TORQUE, "", "./a", 3, "torchrun, which the job must have", False),
    "a rendezvous": (GPUS, "", "torchrun --nproc-per-node=2 --rdzv-backend=c10d t.py", 3, "first node", False),
    "an unreadable program": (TORQUE, "", "cd /x\na --b=./%(k)d-x.txt", 4, "bash cannot read", True),
    "a file of functions": (SLURM, "", ". ./functions\nsrun ./a\ncollect x", 3, "functions and aliases", False),
    "an environment that is left": (SLURM, "", "srun ./a\ndeactivate\n./b", 4, "in the environment, too", False),
    "a value of the program": (
        SLURM, "", "for i in 1 2; do ./a || F=1; done\ncp x y$F", 4, "process of its own", False,
    ),
    "a directory of the program": (
        SLURM, "", "if [ -d x ]; then cd x; ./a; fi\nmv out ..", 4, "no effect on the commands after", False,
    ),
    "a function with arguments": (
        SLURM, "", "f() { srun ./a $1; cp y z; }\nf 1\nf 2", 3, "call the whole function", True,
    ),
    "a path of a container": (
        SLURM, "", "export PYTHONPATH=$H/x\nsrun --container-image=i python t.py", 3, "reach the container", True,
    ),
    "a shell of a directive": (TORQUE, "#PBS -S /bin/tcsh\n", "./a", 3, "commands in bash", True),
    "a clock": (SLURM, "", "t=$SECONDS\nsrun ./a\necho $((SECONDS - t))", 5, "a clock, of their own", False),
    "no value": (SLURM, "-o", "srun ./a", 2, "has no value", True),
    "a python": (SLURM, "", "srun python t.py", 3, "python3", False),
    "free nodes": (
        "#PBS -l select=2:ncpus=2:mpiprocs=2\n#PBS -l place=free\n{}{}\n", "", "mpirun ./a", 2, "on one host", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_a_difference_is_said(name: str) -> None:
    form, options, body, line, why, lost = SAID[name]
    done = convert(form.format(options, body))
    values(done.text)
    found = [(one.line, one.lost) for one in done.remarks if why in one.why]
    assert found == [(line, lost)], done.remarks


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("./a &\n./b x | ./c &\n", [3, 4]),
        ("./a &\nfor i in 1 2; do\n  ./b $i > $i 2>&1 &\ndone\n", [3, 5]),
        ("if [ -f x ]; then ./a & fi; ./b &\n", [3, 3]),
        ("./a &\n./b &\nwait\n./c &\n", [6]),
        ('./a &\none=$!\n./b & ids+=($!)\n./c &\nwait "$one" ${ids[0]}\n', [6]),
        ('./a &\n./b &\nwait "$!"\n', [3]),
        ("for i in 1 2; do ./a $i & done\nfor id in $(jobs -p); do wait $id; done\n", []),
        ("f() { ./a & }\n: $((A & 1)) $(./b &)\n", []),
    ],
)
def test_each_process_that_nothing_waits_for(body: str, lines: list[int]) -> None:
    done = convert(SLURM.format("", f"{body}srun ./z"))
    assert [one.line for one in done.remarks if "ends with it" in one.why] == lines


@pytest.mark.parametrize(
    ("body", "code", "after"),
    [
        ("for i in 1 2; do\n  ./a $i &\ndone\nwait", "for i in 1 2; do\n  ./a $i &\ndone\nwait", None),
        (
            "for i in 1; do ./a & ids+=($!); done\necho x\nwait ${ids[@]}\ncp a b",
            "for i in 1; do ./a & ids+=($!); done\necho x\nwait ${ids[@]}",
            "set +eu +o pipefail\ncp a b\n",
        ),
        ("for i in 1 2; do ./a $i; done\nwait", "for i in 1 2; do ./a $i; done", None),
    ],
)
def test_the_wait_for_processes_of_the_program(body: str, code: str, after: str | None) -> None:
    found = values(convert(SLURM.format("", body)).text)
    assert found["command"][2].strip() == code
    assert found.get("after") == after


SILENT = {
    "a step beside a message": (
        SLURM,
        "",
        "srun ./a &\nid=$!\necho x\nsleep 5\nkill $id",
        "the script beside it",
    ),
    "a step with its wait": (SLURM, "", "srun ./a &\nid=$!\necho x\nwait $id\n./b", "the script beside it"),
    "a status that is kept": (
        SLURM,
        "-c 1",
        "set -e\nsrun bash a.sh\nrc=$?\ncp a b\nexit $rc",
        "ends with the status",
    ),
    "another device": (SLURM, "--gres=dcu:1", "srun python t.py --cuda", "requests none"),
    "an appended log": (SLURM, "-o x.log --open-mode=append", "srun ./a", "appends"),
    "a python of an environment": (SLURM, "", "conda activate x\nsrun python t.py", "python3"),
    "an MPI": (SLURM, "-n 4", "module load openmpi\nsrun ./a", "is a guess"),
    "ranks of a node": (SLURM, "-N 2 -n 8", "mpirun -n 8 -N 4 ./a", "of 2 nodes"),
    "ranks without MPI": (SLURM, "-n 4", "srun python t.py", "is a guess"),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_stays_the_same_has_no_remark(name: str) -> None:
    form, options, body, why = SILENT[name]
    assert not [one for one in convert(form.format(options, body)).remarks if why in one.why]


HIDDEN = [
    "-u",
    "RANK",
    "-u",
    "LOCAL_RANK",
    "-u",
    "WORLD_SIZE",
    "-u",
    "LOCAL_WORLD_SIZE",
    "-u",
    "TORCHELASTIC_RUN_ID",
]
KEPT: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "Python 2": (SLURM, "", "module load python/2.7\nsrun python t.py", {"command": ["python", "t.py"]}),
    "arguments behind a redirection": (SLURM, "", "srun ./a > log -x 3", {"command": ["./a", "-x", "3"]}),
    "a backslash in quotes": (SLURM, "", 'srun ./a "\\t%E"', {"command": ["./a", "\\t%E"]}),
    "commands on one line": (SLURM, "", "umask 7 ; A=$(b) ; ulimit -s 9\nsrun ./a", {"setup": "set +e\numask 7; A=$(b); ulimit -s 9\n"}),
    "commands on one line after it": (
        SLURM, "", "srun ./a; cp a b ; wait; cp b c; exit 0", {"after": "set +eu +o pipefail\ncp a b; cp b c\n"},
    ),
    "a version of Python": (SLURM, "", "python -V\n./a", {"command": ["./a"]}),
    "the status of the program": (
        SLURM, "", 'srun ./a\nif [ "${?}" = 0 ]; then cp x y; fi',
        {"after": 'set +eu +o pipefail\n(exit "$JOBGEN_STATUS")\nif [ "${?}" = 0 ]; then cp x y; fi\n'},
    ),
    "the keyword time": (SLURM, "", "time -p ./a b", {"command": ["./a", "b"]}),
    "spack": (SLURM, "", "spack load x\nsrun ./a", {"setup": "set +e\nspack load x\n", "before": None}),
    "memory of GPUs": (
        "#!/bin/bash\n#SBATCH --gpus=1 {}\n{}\n", "--mem-per-gpu=5G", "srun ./a", {"directive": ["--mem-per-gpu=5G"]},
    ),
    "a value and an array of one name": (
        SLURM, "", "x=`ls`\nsrun ./a\nx=($x)\ncp $x y", {"setup": "set +e\nx=`ls`\nexport x\n"},
    ),
    "a name in arithmetic": (
        SLURM, "", "n=$(ls | wc -l)\nsrun ./a\n[[ n -lt 2 ]] && ./b", {"setup": "set +e\nn=$(ls | wc -l)\nexport n\n"},
    ),
    "a directory of logs": (SLURM, "--chdir=/d/x -o l/%j", "srun ./a", {"log": "/d/x/l/%j", "workdir": "/d/x"}),
    "errors after set -e": (
        SLURM, "", "false\nexport Y=$(date)\nset -e\n./a", {"setup": "set +e\nfalse\nexport Y=$(date)\nset -e\n"},
    ),
    "mail for all events": (
        SLURM, "--mail-user=_X_ --mail-type=FAIL,ALL", "srun ./a",
        {"mail_on": "begin,end,fail", "directive": ["--mail-user=_X_"]},
    ),
    "a function as program": (
        TORQUE, "", 'f() { eval "$@"; }\nf x\nf y', {"command": ["bash", "-c", 'f() { eval "$@"; }\nf y']},
    ),
    "an empty variable": (SLURM, "", 'A=""\nsrun ./a $A ""', {"command": ["./a", ""]}),
    "a variable directory": (SLURM, "", "$HOME/bin/a x", {"command": ["$HOME/bin/a", "x"]}),
    "a variable as program": (SLURM, "", "c='./a b'\n$c", {"command": ["bash", "-c", "$c"]}),
    "the end of an environment": (SLURM, "", "source v/bin/activate\n./a\ndeactivate", {"command": ["./a"], "after": None}),
    "GPUs and others": (
        SLURM, "--gres=gpu:v100:1,nvme:5", "srun ./a",
        {"directive": ["--gres=gpu:v100:1,nvme:5"], "gpus_per_node": None, "accelerator": "cpu"},
    ),
    "the totals of a job": (
        "#!/bin/bash\n#PBS -l {}\n#PBS -l walltime=1:00:00\n{}\n", "ncpus=4,mem=4gb,vmem=5gb,host=a", "mpirun -np 4 ./a",
        {"ranks_per_node": 4, "cpus_per_rank": 1, "mem": "4096M", "directive": None},
    ),
    "ranks of each GPU": (
        "#!/bin/bash\n#SBATCH -t 10 -N 2 {}\n{}\n", "--gpus-per-node=4 --ntasks-per-gpu=1", "srun ./a",
        {"ranks_per_node": 4, "gpus_per_node": 4, "directive": None},
    ),
    "no GPUs": (SLURM, "--gres=gpu:0", "srun ./a", {"gpus_per_node": None, "accelerator": "cpu"}),
    "a library that starts ranks": (
        GPUS, "--ntasks-per-node=1", "A=1 python3.9 t.py",
        {"command": ["env", *HIDDEN, "A=1", "python3.9", "t.py"], "gpus_per_node": 2},
    ),
    "the MPI of a program with a Python file": (SLURM, "-n 2", "srun ./a t.py", {"mpi": "openmpi"}),
    "the MPI of Horovod": (SLURM, "-n 2 -J horovod", "module load mpich\nsrun python t.py # hvd", {"mpi": "mpich"}),
    "tasks that do not divide": (SLURM, "-N 2 -n 49", "srun ./a", {"ranks_per_node": 25, "directive": None}),
    "the MPI of a Python program": (SLURM, "-n 2", "srun --mpi=pmi2 ./a.py", {"mpi": "mpich"}),
    "the MPI of srun": (SLURM, "-n 4", "srun --mpi=pmi2 ./a", {"mpi": "mpich"}),
    "options of the shell": (
        SLURM, "", "set -e\nset -o pipefail\n./a | tee x", {"command": ["bash", "-c", "set -e -o pipefail\n./a | tee x"]},
    ),
    "an array of a condition": (
        SLURM, "", "A=(1)\nif [ $X ]; then\n  A+=(2)\nfi\n./a ${A[@]}",
        {"command": ["bash", "-c", "A=(1)\nif [ $X ]; then\n  A+=(2)\nfi\nexec ./a ${A[@]}"]},
    ),
    "functions of a file": (SLURM, "", ". ./functions\nprepare x\nsrun ./a", {"setup": "set +e\n. ./functions\nprepare x\n"}),
    "free nodes": (
        "#PBS -l select=2:ncpus=2:mpiprocs=2\n#PBS -l place=free\n{}{}\n", "", "mpirun ./a", {"directive": None},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept(name: str) -> None:
    form, options, body, expected = KEPT[name]
    found = values(convert(form.format(options, body)).text)
    assert {key: found.get(key) for key in expected} == expected


def test_a_directive_that_jobgen_refuses_is_left_out_and_said() -> None:
    file = JobFile({"gpus_per_node": 1, "directive": ["--gres=nvme:5", "--exclude=n1"], "launcher": "srun"})
    file.values |= {"walltime": "1h", "command": ["./a"]}
    assert values(accepted(file, "slurm", 3))["directive"] == ["--exclude=n1"]
    assert [(one.line, one.what, one.lost) for one in file.remarks] == [(3, "--gres=nvme:5", True)]
    file.values |= {"mpi": "none"}
    accepted(file, "slurm", 3)
    assert "jobgen refuses it" in file.remarks[-1].why
    assert file.remarks[-1].what == "the job file"


SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=x
cp nosuch there
source settings.txt
IFS=,
shopt -s nullglob
grep -q nothing settings.txt
printf 'a,b\\n' | while read A B; do echo "out: $A $B $FOLDER" *.none; python3 -c pass; done
echo "after: $MORE"
"""


def test_a_job_has_the_shell_of_its_script(tmp_path: Path) -> None:
    """A command that fails, a sourced file without export, IFS and shopt: by bash, and as a job here."""
    (tmp_path / "settings.txt").write_text("FOLDER=/data/x\nMORE=more\n")
    (tmp_path / "job.toml").write_text(convert(SCRIPT).text)
    done = subprocess.run(["bash", "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=True)
    got = run(tmp_path, "--job", str(tmp_path / "job.toml"), "--walltime", "1h", program=())
    assert got.returncode == 0, got.stdout
    said = [line for line in got.stdout.splitlines() if line.startswith(("out:", "after:"))]
    assert said == done.stdout.splitlines() == ["out: a b /data/x", "after: more"]


def test_the_mpi_that_srun_names_for_one_rank() -> None:
    text = convert(SLURM.format("-n 1", "srun --mpi=pmi2 python3 t.py")).text
    assert 'mpi = "mpich"' in text or 'mpi = "intel"' in text


@pytest.mark.parametrize(
    ("options", "body", "nodes"),
    [
        ("--gres=gpu:2", "torchrun --nnodes=$SLURM_NNODES --nproc-per-node=2 t.py", "submitted"),
        ("--ntasks-per-node=2", "H=$(scontrol show hostnames $SLURM_JOB_NODELIST)\nsrun ./a $H", "submitted"),
        ("--ntasks-per-node=2", "H=$SLURM_JOB_NODELIST\nmpirun -np 4 ./a $H", None),
        ("-n 2", "srun ./a $SLURM_NTASKS", None),
        ("-N 2-4", "srun ./a $SLURM_NNODES", None),
        ("--gres=gpu:2", "echo $SLURM_NNODES\nsrun ./a", None),
    ],
)
def test_nodes_that_only_the_submission_names(options: str, body: str, nodes: str | None) -> None:
    done = convert(f"#!/bin/bash\n#SBATCH -t 10 {options}\n{body}\n")
    assert values(done.text).get("nodes") == nodes
    assert any("those of its submission" in one.why for one in done.remarks) == (nodes is not None)


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("srun python2 t.py", ["python2", "t.py"]),
        ("srun python2.7 -u t.py", ["python2.7", "-u", "t.py"]),
        ("/opt/bin/python2 -m x.y", ["/opt/bin/python2", "-m", "x.y"]),
        ("P=python2\nsrun $P t.py", ["python2", "t.py"]),
        ("python2.7 t.py *.txt", ["bash", "-c", "exec python2.7 t.py *.txt"]),
        ("module load python/2.7\nsrun python -u t.py", ["python", "-u", "t.py"]),
        ("module load anaconda2\nsrun python -m x", ["python", "-m", "x"]),
        ("conda activate tf_py2\nsrun python t.py", ["python", "t.py"]),
        ("conda create -n x python=2.7\nsrun python t.py", ["python", "t.py"]),
        ("virtualenv -p python2 v\n. v/bin/activate\npython t.py", ["python", "t.py"]),
        ("export PATH=/opt/python2.7/bin:$PATH\npython t.py", ["python", "t.py"]),
        ("module load python/2.7\nsrun ./t.py", ["env", "./t.py"]),
        ("module load python/2.7\nsrun ./t.py *.txt", ["bash", "-c", "exec ./t.py *.txt"]),
        ("module load numpy2 py2025\nsrun python t.py", ["t.py"]),
        ("module load python/2.7\nsrun python3 t.py", ["t.py"]),
    ],
)
def test_the_interpreter_of_python_2(body: str, command: list[str]) -> None:
    done = convert(SLURM.format("", body))
    found = values(done.text)["command"]
    assert [word.strip() for word in found] == command
    assert not any("with python3" in one.why for one in done.remarks)


@pytest.mark.parametrize(
    ("body", "line", "what", "lost"),
    [
        ("python2 -m torch.distributed.launch --nproc_per_node 1 t.py", 3, "python2", True),
        (
            "module load python/2.7\npython -m torch.distributed.launch --nproc_per_node 1 t.py",
            4,
            "python",
            True,
        ),
        ("module load python/2.7\ntorchrun --nproc-per-node 1 t.py", 4, "torchrun", True),
        ("srun ./t.py x", 3, "./t.py", False),
    ],
)
def test_another_interpreter_is_said(body: str, line: int, what: str, lost: bool) -> None:
    done = convert(SLURM.format("", body))
    found = [(one.line, one.what, one.lost) for one in done.remarks if "with python3" in one.why]
    assert found == [(line, what, lost)]


def test_a_launcher_of_python_3() -> None:
    done = convert(SLURM.format("", "python3 -m torch.distributed.launch --nproc_per_node 1 t.py"))
    assert not any("with python3" in one.why for one in done.remarks)
