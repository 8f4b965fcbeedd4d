"""Job files of scripts: the options that they have."""

from __future__ import annotations

from typing import Any

import pytest
import tomllib
from convert.conversions import job_file, rendered, values

from jobgen.convert.to_job_file.builder import JobFile, accepted, refusal

HEAD = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4 --cpus-per-task=2 --gres=gpu:a100:4\n#SBATCH -t 1:00:00\nset -eu\n"
PROGRAMS = {
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
    "options in an array with comments": (
        'O=(\n  --label\n#  --cpu-bind="none"\n  -K  # at once\n)\nsrun "${O[@]}" ./a',
        {"launcher_arg": ["--label"], "command": ["./a"]},
    ),
    "threads after the program": (
        "srun -c 2 ./a\nexport OMP_NUM_THREADS=1\n./b",
        {"env": None, "command": ["./a"]},
    ),
    "names of files made of two variables": (
        "D=$(date +%F)\nsrun ./a $OUT/$D*x.fits",
        {"command": ["bash", "-c", "exec ./a $OUT/$D*x.fits"], "setup": "set -eu\nD=$(date +%F)\nexport D\n"},
    ),
    "known values beside words that a shell splits": (
        'eval "$(conda shell.bash hook)"\nconda activate c\nN=48\n[ -e x ] && OPT="$OPT -a"\n./a --n $N -c $SLURM_NTASKS/$N $OPT',
        {
            "command": ["bash", "-c", "exec ./a --n 48 -c 8/48 $OPT"],
            "setup": 'set -eu\n[ -e x ] && OPT="$OPT -a"\nexport OPT\n',
        },
    ),
    "variables of a rank without a launcher": (
        "RANK=3\nexport WORLD_SIZE=$(nproc)\n./a $RANK",
        {
            "command": ["env", "WORLD_SIZE=$script_WORLD_SIZE", "./a", "3"],
            "setup": "set -eu\nexport WORLD_SIZE=$(nproc)\nscript_WORLD_SIZE=${WORLD_SIZE-}\n",
        },
    ),
    "variables of a rank that a shell reads": (
        "MASTER_PORT=123\nfor i in 1 2; do ./a $MASTER_PORT $i; done",
        {
            "command": ["env", "MASTER_PORT=$MASTER_PORT", "bash", "-c", "set -eu\nfor i in 1 2; do ./a $MASTER_PORT $i; done"],
            "setup": "set -eu\nMASTER_PORT=123\nexport MASTER_PORT\n",
        },
    ),
    "options before the first command": (
        "module load cuda/12\nexport A=1\nif true; then export B=2; fi\nexport C=3\nsrun ./a",
        {
            "module": ["cuda/12"],
            "env": {"A": "1", "C": "3"},
            "setup": "set -eu\nif true; then export B=2; fi\n",
            "command": ["./a"],
        },
    ),
    "an EDF": ("srun --environment=./a.toml ./a", {"container": "edf", "image": "./a.toml", "command": ["./a"]}),
    "folders of modules": (
        "module use /a\nml use /b\nmodule load c\nmodule use /d\nsrun ./a",
        {"module_use": ["/a", "/b"], "module": ["c", "use /d"], "setup": None, "command": ["./a"]},
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
    "two directories": ("cd /data/run\ncd x && srun ./a", {"workdir": "/data/run/x", "setup": None}),
    "options of mpirun": (
        'mpirun -np 8 --mca btl ^openib -x A=1 -x PATH -x B="$C" ./a',
        {"launcher": "mpirun", "launcher_arg": ["--mca", "btl", "^openib"], "env": {"A": "1"}, "setup": 'set -eu\nexport B="$C"\n'},
    ),
    "options of mpiexec": ("mpiexec -genv A 1 -n 8 ./a", {"env": {"A": "1"}}),
    "options of srun": ("srun --export=ALL,A=1 --gpu-bind=closest ./a", {"env": {"A": "1"}, "launcher_arg": ["--gpu-bind=closest"]}),
    "a constant of options": ("O='--unbuffered --wait=60'\nsrun $O ./a", {"command": ["./a"]}),
    "an argument of torch.distributed.launch": (
        "srun --ntasks-per-node=1 python -m torch.distributed.launch --nnodes=2 --nproc_per_node=4 t.py --x",
        {"launcher": "torchrun", "command": ["t.py", "--local_rank=$LOCAL_RANK", "--x"], "ranks_per_node": 4},
    ),
    "an argument behind a module": (
        "srun --ntasks-per-node=1 python -m torch.distributed.launch --nnodes=2 --nproc_per_node=4 -m a.b --x",
        {"launcher": "torchrun", "command": ["-m", "a.b", "--local_rank=$LOCAL_RANK", "--x"]},
    ),
    "an argument behind a module in a text": (
        "if x; then O='1 2'; fi\nsrun --ntasks-per-node=1 deepspeed --module a.b $O",
        {"launcher": "deepspeed", "command": ["bash", "-c", "exec python3 -m a.b --local_rank=$LOCAL_RANK $O"]},
    ),
    "a module in a text": (
        'srun --ntasks-per-node=1 torchrun --nnodes=2 --nproc_per_node=4 --module a.b "$1" "${@:2}"',
        {"command": ["bash", "-c", 'eval "$array_script_arguments"\nset -- "${script_arguments[@]}"\nexec python3 -m a.b "$1" "${@:2}"']},
    ),
    "torch.distributed.launch in a variable": (
        'RUN="python -m torch.distributed.launch --nnodes=2 --nproc_per_node=4"\nsrun --ntasks-per-node=1 $RUN t.py --x',
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
        "A=/d/x$B/$C/y\necho $A\nsrun ./a /d/x$B/$C/z",
        {"setup": "set -eu\nA=/d/x$B/$C/y\necho $A\n", "command": ["./a", "/d/x$B/$C/z"], "expand": True},
    ),
    "threads": ("export OMP_NUM_THREADS=1\nsrun ./a", {"env": {"OMP_NUM_THREADS": "1"}}),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_eight_gpus(name: str) -> None:
    body, expected = PROGRAMS[name]
    done = job_file(HEAD + body + "\n")
    found = values(done.text)
    assert {key: found.get(key) for key in expected} == expected
    assert found["gpus_per_node"] == "a100:4"
    assert not [one for one in done.remarks if one.lost]


SLURM = "#!/bin/bash\n#SBATCH -t 10 -N 1 -n 1 {}\n{}\n"
TORQUE = "#!/bin/bash\n#PBS -l nodes=1:ppn=4\n{}{}\n"
GPUS = "#!/bin/bash\n#SBATCH -N 1 -n 1 --gres=gpu:2 {}\n{}\n"
VALUES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "Python 2": (SLURM, "", "module load python/2.7\nsrun python t.py", {"command": ["python", "t.py"]}),
    "arguments behind a redirection": (SLURM, "", "srun ./a > log -x 3", {"command": ["./a", "-x", "3"]}),
    "a backslash in quotes": (SLURM, "", 'srun ./a "\\t%E"', {"command": ["./a", "\\t%E"]}),
    "set -e behind another option": (
        SLURM, "", "set -x\nset -e\nA=$(b | head -1)\nsrun ./a", {"setup": "set +e +o pipefail\nset -x\nset -e\nA=$(b | head -1)\n"},
    ),
    "commands on one line": (SLURM, "", "umask 7 ; A=$(b) ; ulimit -s 9\nsrun ./a", {"setup": "set +e\numask 7; A=$(b); ulimit -s 9\n"}),
    "commands on one line after it": (
        SLURM, "", "srun ./a; cp a b ; wait; cp b c; exit 0", {"after": "set +eu +o pipefail\ncp a b; cp b c\n"},
    ),
    "a version of Python": (SLURM, "", "python -V\n./a", {"command": ["./a"]}),
    "the status of the program": (
        SLURM, "", 'srun ./a\nif [ "${?}" = 0 ]; then cp x y; fi',
        {"after": 'set +eu +o pipefail\n(exit "$JOBGEN_STATUS")\nif [ "${?}" = 0 ]; then cp x y; fi\n'},
    ),
    "the end of a loop that is lost": (
        SLURM, "", "for i in 1 2; do\n  srun ./a || break\ndone", {"command": ["./a"], "after": None},
    ),
    "functions in the background": (
        SLURM, "", "run() { srun -n1 $1 & }\nrun ./a\nrun ./b\nwait",
        {"after": "set +eu +o pipefail\nrun() { srun -n1 $1 & }\nrun ./a\nrun ./b\nwait\n"},
    ),
    "a loop of processes behind the program": (
        SLURM, "", "srun ./a\nfor i in 1 2; do gzip $i & done\nwait\ncp x y",
        {"after": "set +eu +o pipefail\nfor i in 1 2; do gzip $i & done\nwait\ncp x y\n"},
    ),
    "a program that is a function of processes": (
        SLURM, "", "run() {\n  for i in 1 2; do ./a $i & done\n}\nrun\nwait\ndate > d",
        {"setup": None, "command": ["bash", "-c", "run() {\n  for i in 1 2; do ./a $i & done\n}\nrun\nwait"]},
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
    "a function that handles files behind the program": (
        SLURM, "", "f() { echo $1; rm -r x; }\nf 1\n./a\nf 2",
        {"command": ["./a"], "after": "set +eu +o pipefail\nf() { echo $1; rm -r x; }\nf 2\n"},
    ),
    "a function that handles files behind a condition": (
        SLURM, "", "f() { rm -r x; }\nif [ -e y ]; then ./a; fi\nf", {"command": ["bash", "-c", "f() { rm -r x; }\nf"], "after": None},
    ),
    "the value of an option of a plug-in": (
        SLURM, "--storage 3 --one --two=4", "./a", {"directive": ["--storage=3", "--one", "--two=4"]},
    ),
    "an empty variable": (SLURM, "", 'A=""\nsrun ./a $A ""', {"command": ["./a", ""]}),
    "a variable directory": (SLURM, "", "$HOME/bin/a x", {"command": ["$HOME/bin/a", "x"]}),
    "a variable as program": (SLURM, "", "c='./a b'\n$c", {"command": ["bash", "-c", "$c"]}),
    "the end of an environment": (SLURM, "", "source v/bin/activate\n./a\ndeactivate", {"command": ["./a"], "after": None}),
    "GPUs and others": (
        SLURM, "--gres=gpu:v100:1,nvme:5", "srun ./a",
        {"directive": ["--gres=gpu:v100:1,nvme:5"], "gpus_per_node": 1, "accelerator": None},
    ),
    "GPUs and others of several ranks": (
        SLURM, "-n 4 --gres=gpu:1,nvme:5", "srun ./a",
        {"directive": ["--gres=gpu:1,nvme:5"], "gpus_per_node": None, "accelerator": "cpu"},
    ),
    "the totals of a job": (
        "#!/bin/bash\n#PBS -l {}\n#PBS -l walltime=1:00:00\n{}\n", "ncpus=4,mem=4gb,vmem=5gb,host=a", "mpirun -np 4 ./a",
        {"ranks_per_node": 4, "cpus_per_rank": 1, "mem": "4096M", "directive": None},
    ),
    "ranks of each GPU": (
        "#!/bin/bash\n#SBATCH -t 10 -N 2 {}\n{}\n", "--gpus-per-node=4 --ntasks-per-gpu=1", "srun ./a",
        {"ranks_per_node": 4, "gpus_per_node": 4, "directive": None},
    ),
    "others beside all GPUs": (
        SLURM, "--gpus=a100:2 --gres=nvme:5", "srun ./a",
        {"directive": ["--gres=gpu:a100:2,nvme:5"], "gpus_per_node": 2, "accelerator": None},
    ),
    "others beside the GPUs of tasks": (
        SLURM, "-n 2 --gpus-per-task=1 --gres=nvme:5", "srun ./a", {"directive": ["--gres=gpu:2,nvme:5"]},
    ),
    "a type of GPUs with blanks": (
        SLURM, '--gres=gpu:"GTX 1080":1', "srun ./a", {"directive": ['--gres="gpu:GTX 1080:1"']},
    ),
    "no GPUs": (SLURM, "--gres=gpu:0", "srun ./a", {"gpus_per_node": None, "accelerator": "cpu"}),
    "a library that starts ranks": (
        GPUS, "", "A=1 python3.9 t.py",
        {"command": ["env", "-u", "SLURM_NTASKS_PER_NODE", "A=1", "python3.9", "t.py"], "gpus_per_node": 2},
    ),
    "a library that takes a number of tasks for that of its ranks": (
        "#SBATCH -N 1 --gres=gpu:2 {}\n{}\n", "", "python3 t.py",
        {"command": ["env", "-u", "SLURM_NTASKS_PER_NODE", "-u", "SLURM_NTASKS", "-u", "SLURM_NPROCS", "python3", "t.py"]},
    ),
    "the same in a job for Slurm": (
        "#PBS -l select=1:ncpus=2:ngpus=2{}\n{}\n", "", "python3 t.py",
        {"command": ["env", "-u", "SLURM_NTASKS_PER_NODE", "-u", "SLURM_NTASKS", "-u", "SLURM_NPROCS", "python3", "t.py"]},
    ),
    "a number of tasks that a library reads": (GPUS, "--ntasks-per-node=1", "python3 t.py", {"command": ["t.py"]}),
    "numbers of directives": (
        "#SBATCH -N 1 --gpus=2 --cpus-per-gpu=6 --mem-per-cpu=2G {}\n{}\n", "",
        "./a $SLURM_GPUS $SLURM_CPUS_PER_GPU $SLURM_MEM_PER_CPU",
        {"env": None, "setup": "SLURM_GPUS=2\nSLURM_CPUS_PER_GPU=6\nSLURM_MEM_PER_CPU=2048\n"},
    ),
    "numbers of directives in blocks": (
        "#SBATCH -N 1 -n 2 --mem-per-cpu=2G {}\n{}\n", "",
        "M=$SLURM_MEM_PER_CPU\n./b $SLURM_MEM_PER_CPU\nsrun ./a\necho $SLURM_MEM_PER_CPU $M",
        {
            "env": None, "setup": "SLURM_MEM_PER_CPU=2048\nset +e\nM=$SLURM_MEM_PER_CPU\nexport M\n",
            "before": "SLURM_MEM_PER_CPU=2048\nset +eu +o pipefail\n./b $SLURM_MEM_PER_CPU\n"
            "true  # whatever the status of the last command\n",
            "after": "SLURM_MEM_PER_CPU=2048\nset +eu +o pipefail\necho $SLURM_MEM_PER_CPU $M\n",
        },
    ),
    "words that only a shell reads": (
        SLURM, "", "E='-o a (\"b.*\",5)'\nsrun python t.py -x $E",
        {"command": ["bash", "-c", "exec python t.py -x $E"], "setup": "set +e\nE='-o a (\"b.*\",5)'\nexport E\n"},
    ),
    "cores of a chunk with more ranks": (
        "#PBS -l select=1:ncpus=2:mpiprocs=10{}\n{}\n", "", "./a", {"cpus_per_rank": 2, "ranks_per_node": 1},
    ),
    "an alias": (
        SLURM, "", "alias e='python a.py'\nshopt -s expand_aliases\ne -x",
        {"command": ["bash", "-c", "alias e='python a.py'\nshopt -s expand_aliases\ne -x"]},
    ),
    "a backslash behind a variable": (
        SLURM, "", "O=r/$S\\_$D\nfor i in 1; do ./a $O; done", {"setup": "set +e\nO=r/$S\\_$D\nexport O\n"},
    ),
    "the log of a directory": (SLURM, "-D ./ -o ./a.log", "./a", {"log": "./a.log", "workdir": None}),
    "the directory of Torque": (TORQUE, "#PBS -d .\n", "./a", {"setup": None, "workdir": None}),
    "variables of an option with an equals sign": (
        TORQUE, "", "mpiexec -n 4 -env A=1 -env B=2 ./a", {"env": {"A": "1", "B": "2"}, "command": ["./a"]},
    ),
    "a substitution in the options of a launcher in a string": (
        GPUS, "", 'srun bash -c "torchrun --nproc-per-node 2 --rdzv-id $(date) t.py"', {"command": ["t.py"]},
    ),
    "a signal": (SLURM, "--signal=SIGUSR2@500", "srun ./a", {"signal": "USR2@500", "directive": None}),
    "a signal without a step": (
        SLURM, "--signal=USR1@500", "torchrun a.py", {"signal": None, "directive": None},
    ),
    "a signal for a launcher in a step": (
        SLURM, "--signal=USR1@500", "srun torchrun a.py", {"signal": "USR1@500", "directive": None},
    ),
    "a signal for the script": (SLURM, "--signal=B:USR1@500", "./a", {"signal": "USR1@500", "directive": None}),
    "a signal before a short time": (SLURM, "--signal=USR1@900", "./a", {"directive": ["--signal=USR1@900"]}),
    "an input and an output without a launcher": (
        SLURM, "", "./a < b > c", {"command": ["bash", "-c", "./a < b > c"]},
    ),
    "words as an input": (SLURM, "", './a <<< "b c"', {"command": ["bash", "-c", './a <<< "b c"']}),
    "another signal": (SLURM, "--signal=TERM@60", "./a", {"signal": None, "directive": ["--signal=TERM@60"]}),
    "all memory": (SLURM, "--mem=0", "./a", {"directive": ["--mem=0"]}),
    "the home directory": (TORQUE, "", "./a", {"workdir": "~/.", "setup": None}),
    "the directory of submission": (TORQUE, "#PBS -l wd\n", "./a", {"setup": None}),
    "one process on several nodes": ("#SBATCH -N 3 {}\n{}\n", "", "./a", {"launcher": "none", "nodes": 3}),
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
    "functions of a file": (SLURM, "", ". ./functions\nprepare x\nsrun ./a", {"setup": "set +e\nprepare x\n", "source": ["./functions"]}),
    "free nodes": (
        "#PBS -l select=2:ncpus=2:mpiprocs=2\n#PBS -l place=free\n{}{}\n", "", "mpirun ./a", {"directive": None},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    form, options, body, expected = VALUES[name]
    found = values(job_file(form.format(options, body)).text)
    assert {key: found.get(key) for key in expected} == expected


def test_no_time_limit_stays_none() -> None:
    assert values(job_file("#SBATCH -n 1\nsrun ./a\n").text)["walltime"] == "queue"
    assert "--time=0" in values(job_file("#SBATCH -n 1 -t 0\nsrun ./a\n").text)["directive"]


def test_a_loop_of_a_script_without_launcher_is_its_program() -> None:
    text = "#SBATCH -n 1\nD=x\nf() { echo $1; }\nfor i in 1 2; do\n  f $i; python t.py $D $i > log.$i\ndone\n"
    done = job_file(text)
    code = "f() { echo $1; }\nfor i in 1 2; do\n  f $i; python t.py $D $i > log.$i\ndone"
    assert values(done.text)["command"] == ["bash", "-c", code]
    assert "export D" in values(done.text)["setup"]
    assert values(done.text)["launcher"] == "none"
    assert done.remarks == ()


WITH_STATUS = """for i in 1 2; do ./a $i & ids+=($!); done
for id in ${ids[@]}; do wait $id || rc=1; done
exit $rc"""


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
        (WITH_STATUS, WITH_STATUS, None),
        (
            WITH_STATUS.replace("exit $rc", "exit $OTHER"),
            WITH_STATUS.removesuffix("\nexit $rc"),
            "set +eu +o pipefail\nexit $OTHER\n",
        ),
    ],
)
def test_the_wait_for_processes_of_the_program(body: str, code: str, after: str | None) -> None:
    found = values(job_file(SLURM.format("", body)).text)
    assert found["command"][2].strip() == code
    assert found.get("after") == after


def test_a_directive_that_jobgen_refuses_is_left_out_with_a_remark() -> None:
    file = JobFile({"gpus_per_node": 1, "directive": ["--gres=nvme:5", "--exclude=n1"], "launcher": "srun"})
    file.values |= {"walltime": "1h", "command": ["./a"]}
    assert values(accepted(file, "slurm", {"--gres": 3}.__getitem__))["directive"] == ["--exclude=n1"]
    assert [(one.line, one.what, one.lost) for one in file.remarks] == [(3, "--gres=nvme:5", True)]
    file.values |= {"mpi": "none"}
    accepted(file, "slurm", {"": 3}.__getitem__)
    assert "jobgen refuses it" in file.remarks[-1].why
    assert file.remarks[-1].what == "the job file"


def test_what_the_options_refuse_stays_a_directive() -> None:
    text = "#!/bin/bash\n#SBATCH --nice=-3\n#SBATCH --begin=teatime\n#SBATCH --hold\nsrun hostname\n"
    assert 'directive = ["--nice=-3", "--begin=teatime", "--hold"]\n' in job_file(text).text


@pytest.mark.parametrize(
    ("options", "directive", "why"),
    [
        ("-N 1-3 -n 60", None, "all on one node: the script names no number of nodes"),
        ("-N 2-4 --gpus=8", None, "all on one node: the script names no number of nodes"),
        ("-N 2-4 --ntasks-per-node=2", ["--nodes=2-4"], "a job for another scheduler has one node"),
        ("-N 1-4 -n 8 --ntasks-per-node=2", None, "srun"),  # four nodes
    ],
)
def test_a_range_of_nodes(options: str, directive: list[str] | None, why: str) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -t 10 {options}\nsrun ./a\n")
    assert values(done.text).get("directive") == directive
    assert any(why in one.why or why == one.what for one in done.remarks)


def test_the_mpi_that_srun_names_for_one_rank() -> None:
    text = job_file(SLURM.format("-n 1", "srun --mpi=pmi2 python3 t.py")).text
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
    done = job_file(f"#!/bin/bash\n#SBATCH -t 10 {options}\n{body}\n")
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
        ("P=/opt/python/2.7.6\nexport PATH=$P/bin:$PATH\npython t.py", ["python", "t.py"]),
        ("module load python/2.7\nsrun ./t.py", ["env", "./t.py"]),
        ("module load python/2.7\nsrun ./t.py *.txt", ["bash", "-c", "exec ./t.py *.txt"]),
        ("module load numpy2 py2025\nsrun python t.py", ["t.py"]),
        ("module load python/2.7\nsrun python3 t.py", ["t.py"]),
    ],
)
def test_the_interpreter_of_python_2(body: str, command: list[str]) -> None:
    done = job_file(SLURM.format("", body))
    found = values(done.text)["command"]
    assert [word.strip() for word in found] == command
    assert not any("with python3" in one.why for one in done.remarks)


APRUN = "#!/bin/bash\n#PBS -l nodes=2:ppn=4\n{}\n"


@pytest.mark.parametrize(
    ("options", "ranks", "named"),
    [
        ("-n 8 -N 4", 4, {}),
        ("-n 8 -N 8", 4, {"-N 8": False}),
        ("-n 4 -d 2 -S 1 -j 1", 2, {"-S 1": False, "-j 1": True}),
        ("-n 8 -b -ss -cc depth", 4, {"-b": False, "-ss": False, "-cc depth": False}),
        ("-n 8 -cc none", 4, {}),
        ("-B", 4, {"-B": False}),
        ("-n 8 -m 1g -q", 4, {"-m 1g": True, "-q": True}),
    ],
)
def test_options_of_aprun(options: str, ranks: int, named: dict[str, bool]) -> None:
    done = job_file(APRUN.format(f"aprun {options} ./a -x"))
    found = values(done.text)
    assert (found["ranks_per_node"], found["command"]) == (ranks, ["./a", "-x"])
    of_chunks = {"-l nodes=2:ppn=4": False}  # ALPS gives whole nodes
    assert {one.what: one.lost for one in done.remarks if one.what.startswith("-")} == {**of_chunks, **named}


def test_one_rank_is_the_default() -> None:
    done = job_file(APRUN.replace("nodes=2", "nodes=1").format("time aprun ./a"))
    assert values(done.text)["ranks_per_node"] == 1
    assert (False, "aprun") in [(one.lost, one.what) for one in done.remarks]


@pytest.mark.parametrize("launcher", ["aprun", "mpirun"])
def test_several_programs_of_a_job_file(launcher: str) -> None:
    done = job_file(APRUN.format(f"{launcher} -n 2 ./a x : -n 6 ./b"))
    assert values(done.text)["command"] == ["./a", "x"]
    assert [(one.line, one.what) for one in done.remarks if "are missing" in one.why] == [(3, ": -n 6 ./b")]


@pytest.mark.parametrize("value", ['""', "''", "' '"])
def test_options_of_an_empty_variable(value: str) -> None:
    done = job_file(f"{HEAD}EXTRA={value}\nsrun $EXTRA ./a $EXTRA b")
    assert values(done.text)["command"] == ["./a", "b"]
    assert not [one for one in done.remarks if one.lost]


@pytest.mark.parametrize(
    ("body", "command", "launcher"),
    [
        (
            "export MASTER_ADDR=localhost MASTER_PORT=$((1 + 2))\nexport WORLD_SIZE=4\n./a",
            [
                "env",
                "WORLD_SIZE=$script_WORLD_SIZE",
                "MASTER_ADDR=$MASTER_ADDR",
                "MASTER_PORT=$MASTER_PORT",
                "./a",
            ],
            "none",
        ),
        (
            "MASTER_PORT=1\nexport MASTER_PORT\nfor i in 1 2; do ./a $i; done",
            ["env", "MASTER_PORT=$MASTER_PORT", "bash", "-c", "for i in 1 2; do ./a $i; done"],
            "none",
        ),
        ("MASTER_PORT=1 python a.py", ["env", "MASTER_PORT=1", "python", "a.py"], "none"),
        ("MASTER_PORT=1\n./a", ["./a"], "none"),
        ("export MASTER_PORT=1\nsrun ./a", ["./a"], "mpirun"),
        ("srun ./a", ["./a"], "none"),
    ],
)
def test_one_process_has_the_rank_variables_of_the_script(
    body: str, command: list[str], launcher: str
) -> None:
    found = values(job_file(f"#!/bin/bash\n#SBATCH -N 1\n{body}\n").text)
    assert found["command"] == command
    assert (
        tomllib.loads(job_file(f"#!/bin/bash\n#SBATCH -N 1\n{body}\n").text)["launch"]["launcher"] == launcher
    )


def test_rank_variables_are_beside_the_tasks_that_a_library_must_not_see() -> None:
    done = job_file("#!/bin/bash\n#SBATCH -N 1 --gres=gpu:2\nexport WORLD_SIZE=2\npython a.py\n")
    hidden = ["env", "-u", "SLURM_NTASKS_PER_NODE", "-u", "SLURM_NTASKS", "-u", "SLURM_NPROCS"]
    words = [*hidden, "WORLD_SIZE=$script_WORLD_SIZE", "python3", "a.py"]
    assert values(done.text)["command"] == words


@pytest.mark.parametrize(
    ("body", "command"),
    [
        (
            'C="python a.py > out.$SLURM_JOB_ID"\nif [ -f x ]; then ./b; fi\neval $C',
            ["bash", "-c", "eval $C"],
        ),
        ('./b\neval "$C" ${D}', ["bash", "-c", 'eval "$C" ${D}']),
        ('./b\neval "$(conda shell.bash hook)"', ["./b"]),
        ("python a.py\neval $C", ["a.py"]),
    ],
)
def test_the_program_may_be_in_a_variable_that_eval_runs(body: str, command: list[str]) -> None:
    assert values(job_file(f"#!/bin/bash\n#SBATCH -N 1\n{body}\n").text)["command"] == command


@pytest.mark.parametrize(
    ("body", "command", "kept"),
    [
        ('B="$B,/x"\n./a $B', ["./a", "$B"], 'B="$B,/x"'),
        ('A="--x 1"\nO="$A --z"\nA=--y\n./a $O $A', ["bash", "-c", "exec ./a $O $A"], 'O="$A --z"'),
        ('A="--x 1"\nexport O=" $A"\n./a $O', ["bash", "-c", "exec ./a $A"], 'A="--x 1"'),
        ('A="--x 1"\nO="$A --z"\n./a $O\nA=--y', ["bash", "-c", "exec ./a $A --z"], 'A="--x 1"'),
    ],
)
def test_a_variable_that_another_one_is_made_of(body: str, command: list[str], kept: str) -> None:
    found = values(job_file(f"#!/bin/bash\n#SBATCH -N 1\n{body}\n").text)
    assert found["command"] == command
    assert kept in found["setup"]


@pytest.mark.parametrize(
    ("options", "cpus", "bind"),
    [
        ("--bind-to core", 1, "cores"),
        ("--bind-to core", 4, None),
        ("--bind-to=numa", 4, "numa"),
        ("--bind-to none", 4, "none"),
        ("--map-by ppr:2:node:PE=4", 4, "cores"),
        ("--map-by ppr:2:node:PE=2", 4, None),
        ("--map-by ppr:1:socket", 4, None),
        ("--map-by slot:PE=$SLURM_CPUS_PER_TASK", 4, "cores"),
        ("--map-by slot:PE=2", 4, None),
    ],
)
def test_the_binding_of_the_ranks(options: str, cpus: int, bind: str | None) -> None:
    head = f"#!/bin/bash\n#SBATCH -N 1 --ntasks-per-node=2 -c {cpus}\n"
    done = job_file(f"{head}mpirun -np 2 {options} ./a\n")
    assert values(done.text).get("cpu_bind") == bind
    whys = [one.why for one in done.remarks if "places the ranks itself" in one.why]
    assert [why.endswith("set cpu_bind") for why in whys] == [True] * (bind is None)


@pytest.mark.parametrize(
    ("bind", "whys"),
    [("depth", []), ("list:0:1", ["jobgen places and binds the ranks itself: see cpu_bind"])],
)
def test_the_binding_that_a_launcher_has(bind: str, whys: list[str]) -> None:
    lines = f"module load PrgEnv-gnu\nmpiexec -n 2 --ppn 2 --depth 4 --cpu-bind {bind} ./a"
    done = job_file(f"#!/bin/bash\n#PBS -l select=1:ncpus=8:mpiprocs=2\n{lines}\n")
    assert [one.why for one in done.remarks if "the ranks itself" in one.why] == whys
    assert "--cpu-bind depth" in rendered(done.text)


@pytest.mark.parametrize("place", ["socket", "numa", "ppr:1:socket"])
def test_a_binding_in_another_order_of_the_ranks(place: str) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 2 -c 4\nmpirun --map-by {place}:PE=4 ./a\n")
    assert values(done.text)["cpu_bind"] == "cores"
    assert [one.why for one in done.remarks if "itself" in one.why] == ["jobgen places the ranks itself"]


@pytest.mark.parametrize(
    ("options", "body", "named"),
    [
        ("-n 2", "export OMP_PLACES=cores\nmodule load openmpi\nmpirun ./a", True),
        ("-n 2", "module load openmpi\nmpirun -x OMP_PROC_BIND=close ./a", True),
        ("-n 2", "export OMP_PROC_BIND=false\nmodule load openmpi\nmpirun ./a", False),
        ("-n 2", "export OMP_PLACES=cores\nmodule load openmpi\nmpirun --map-by slot:PE=4 ./a", False),
        ("-n 1", "export OMP_PLACES=cores\nmodule load openmpi\nmpirun ./a", False),
        ("-n 2", "export OMP_PLACES=cores\nmodule load intel-mpi\nmpirun ./a", False),
    ],
)
def test_threads_of_ranks_that_are_not_bound(options: str, body: str, named: bool) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 {options} -c 4\n{body}\n")
    assert any("jobgen binds none: add cpu_bind = cores" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(
    ("options", "value", "cores", "unknown"),
    [
        ("", "16", 16, False),
        ("-c 4", "$SLURM_CPUS_PER_TASK", 4, False),
        ("", "$X", 1, True),
        ("-c 4", "2", 2, False),
    ],
)
def test_the_cores_of_a_step_in_a_variable(options: str, value: str, cores: int, unknown: bool) -> None:
    body = f"export SRUN_CPUS_PER_TASK={value}\nmodule load openmpi\nsrun ./a"
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 2 {options}\n{body}\n")
    assert values(done.text)["cpus_per_rank"] == cores
    assert any("the cores of a rank are known only" in one.why for one in done.remarks) == unknown
    assert unknown or not [one for one in done.remarks if "mpirun does not read it" in one.why]


@pytest.mark.parametrize(
    ("body", "command"),
    [
        (". x.conf\n./a $B $HOME $SLURM_JOB_ID", ["bash", "-c", "exec ./a $B $HOME $SLURM_JOB_ID"]),
        ('. x.conf\n./a "$B"', ["./a", "$B"]),
        (". /x/bin/activate\n./a $B", ["./a", "$B"]),
    ],
)
def test_a_variable_of_a_sourced_file_may_be_several_words(body: str, command: list[str]) -> None:
    found = values(job_file(f"#!/bin/bash\n#SBATCH -N 1\n{body}\n").text)
    assert found["command"] == command
    assert ("export B" in found.get("setup", "")) == (command[0] == "bash")


@pytest.mark.parametrize(
    ("after", "block"),
    [
        ("./p &\nwait\n./q", "./p&\nwait\n./q\n"),
        ("./q &\nwait", "./q&\nwait\n"),
        ("wait\n./q\nexit 0", "./q\n"),
        ("./q\nexit 0\n./p", "./q\n"),
        ("exit\n./p", None),
        ("wait", None),
    ],
)
def test_the_commands_after_the_program_wait_and_end_where_the_script_does(
    after: str, block: str | None
) -> None:
    found = values(job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 2\nsrun ./a\n{after}\n").text)
    assert found.get("after", "").removeprefix("set +eu +o pipefail\n") == (block or "")


@pytest.mark.parametrize(
    ("command", "has_variables"),
    [
        ("docker run i", False),
        ("singularity exec --cleanenv i", False),
        ("pbsdsh -u --", False),
        ("ssh n1", False),
        ("env A=1 shifter", False),
        ("singularity exec i", False),
        ("nice", True),
    ],
)
def test_a_variable_in_code_for_a_command_without_it(command: str, has_variables: bool) -> None:
    """The shell of the script puts the values of variables into a text for a shell that has none of them."""
    code = '"./a $D ${E} \\$F"'
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1\nD=$(pwd)\n{command} bash -c {code}\n")
    words = [*command.split(), "bash", "-c", f"eval {code}"]
    assert values(done.text)["command"] == (
        words if has_variables else ["bash", "-c", f"exec {command} bash -c {code}"]
    )
    assert "export D\n" in values(done.text)["setup"]
    quoted = job_file(f"#!/bin/bash\n#SBATCH -N 1\n{command} bash -c './a $D'\n")
    assert values(quoted.text)["command"] == [*command.split(), "bash", "-c", "./a $D"]


def test_time_is_a_word_of_the_shell() -> None:
    done = job_file('#!/bin/bash\n#SBATCH -N 1\ntime -p ./a $(cat x) "$D"\n')
    assert values(done.text)["command"] == ["bash", "-c", 'time -p ./a $(cat x) "$D"']


@pytest.mark.parametrize("launcher", ["", "srun "])
@pytest.mark.parametrize("value", ["/x/$(mktemp -u)", "/x_$RANDOM"])
def test_a_value_that_differs_each_time_is_evaluated_once(launcher: str, value: str) -> None:
    found = values(job_file(f'#!/bin/bash\n#SBATCH -N 1 -n 2\nO="{value}"\n{launcher}./a $O -q\n').text)
    assert not any("mktemp" in word or "RANDOM" in word for word in found["command"])
    assert found["setup"].count(value) == 1


@pytest.mark.parametrize("launcher", ["", "srun "])
def test_blanks_between_two_values_of_a_string_stay(launcher: str) -> None:
    text = f'#!/bin/bash\n#SBATCH -N 1 -n 2\nA=x\nB=y\nC="$A  ${{B}} "\n{launcher}./a "$C" "$A $B" "$Q $R"\n'
    found = values(job_file(text).text)
    assert found["command"][-3:-1] == ["x  y ", "x y"]
    assert found["command"][-1] == "$Q $R" or '="$Q $R"' in found["setup"]


def test_processes_on_any_nodes_are_ranks_of_one_node() -> None:
    done = job_file("#PBS -l procs=16,walltime=1:00:00\nmpirun -np 16 ./prog\n")
    found = values(done.text)
    assert (found["ranks_per_node"], found.get("nodes", 1)) == (16, 1)
    assert not [one for one in done.remarks if one.lost]
    assert [one.line for one in done.remarks if "all on one node" in one.why] == [1]
    assert values(job_file("#PBS -l nodes=1:ppn=2,feature=k20\n./run\n").text)["constraint"] == "k20"


@pytest.mark.parametrize(
    ("options", "memory"), [("procs=1,pmem=4gb", "4096M"), ("procs=16,pmem=2gb", "32768M")]
)
def test_the_memory_of_processes_is_that_of_their_node(options: str, memory: str) -> None:
    text = job_file(f"#PBS -l {options}\n#PBS -l walltime=1:00:00\nmpirun ./prog\n").text
    assert values(text)["mem"] == memory
    assert "pmem" not in text


def test_the_devices_of_a_site_of_whole_nodes() -> None:
    head = "#!/bin/bash\n#PBS -l select=2:system=polaris\n#PBS -l walltime=01:00:00\n"
    done = job_file(f"{head}mpiexec -n 8 --ppn 4 python3 t.py\n")
    assert values(done.text)["gpus_per_node"] == 4
    assert any("ALCF Polaris gives whole nodes, of 4 GPUs" in one.why for one in done.remarks)


def test_cores_that_ranks_cannot_share_are_for_the_scheduler_of_the_script() -> None:
    text = job_file("#PBS -l select=5:ncpus=24:mpiprocs=21,walltime=1:00:00\nmpirun -np 105 ./a\n").text
    assert "[pbs]\ncpus_per_node = 24\n" in text
    assert not refusal(text, "slurm")


@pytest.mark.parametrize(
    ("lines", "program"),
    [
        ("read X < l\nY=$X\nsrun ./a $Y", "exec ./a $Y"),
        ('for i in 1; do\n  printf -v X %s "a b"\n  Y="$X"\n  srun ./a $Y\ndone', "exec ./a $Y"),
        ("while getopts s: f; do Y=$OPTARG; done\nsrun ./a $Y", "exec ./a $Y"),
        ('S="--out ~/x"\nsrun ./a $S', "exec ./a $S"),
        ('S="a=~/x b"\nsrun ./a $S', "exec ./a $S"),
    ],
)
def test_words_that_only_a_shell_gets_from_a_variable(lines: str, program: str) -> None:
    """It splits what a command has set, also in another variable, and replaces no ~ in a value."""
    assert values(job_file(f"#!/bin/bash\n#SBATCH -N 1\n{lines}\n").text)["command"][2] == program


def test_devices_in_front_of_a_step_are_those_of_the_launcher() -> None:
    """Slurm replaces them in the step: in the program they would take effect."""
    found = values(job_file("#!/bin/bash\n#SBATCH -N 1 --gres=gpu:2\nCUDA_VISIBLE_DEVICES=1 srun ./a\n").text)
    assert "VISIBLE" not in str(found["command"])
    assert "export CUDA_VISIBLE_DEVICES=1" in found["setup"]


def test_hosts_that_a_shell_of_the_ranks_prints_are_no_program() -> None:
    code = "srun -l bash -c 'hostname' | sort > hosts\nhorovodrun -np 2 -H h python t.py"
    found = values(job_file(f"#!/bin/bash\n#SBATCH -N 2 -n 2\n{code}\n").text)
    assert found["command"][0] == "horovodrun"


def test_commands_after_the_program_have_the_directories_of_a_file() -> None:
    code = "source ./env.sh\nsrun ./a\ncp b $DATA_SCRATCH $WORKDIR $HOME"
    setup = values(job_file(f"#!/bin/bash\n#SBATCH -N 1\n{code}\n").text)["setup"]
    assert setup.splitlines()[-2:] == ["export DATA_SCRATCH", "export WORKDIR"]


def test_a_variable_of_a_directive_that_setup_sets_is_not_missing() -> None:
    done = job_file("#!/bin/bash\n#SBATCH -n 4 --mem-per-cpu=2G\n./a $SLURM_MEM_PER_CPU\n")
    assert not [one for one in done.remarks if "is not set by" in one.why]


@pytest.mark.parametrize(
    "line",
    ["ls *.f | xargs -n 1 python t.py", 'cat l | xargs -I {} sh -c "{}"', "eval ${L[SLURM_ARRAY_TASK_ID]}"],
)
def test_a_program_that_another_command_starts(line: str) -> None:
    found = values(job_file(f"#!/bin/bash\n#SBATCH -N 1 -a 0-1\nL=('./a x' './b')\n{line}\n").text)
    assert found["command"][2].endswith(line)
