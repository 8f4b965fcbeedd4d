"""Job files of scripts: the remarks on jobs that differ from their scripts, and none on the others."""

from __future__ import annotations

import pytest
from convert.conversions import job_file, remarks, values

HEAD = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4 --cpus-per-task=2 --gres=gpu:a100:4\n#SBATCH -t 1:00:00\nset -eu\n"


@pytest.mark.parametrize(
    ("body", "line", "why"),
    [
        ("for i in 1 2; do\n  srun ./a $i\ndone", 5, "the program is in a loop"),
        ("if x; then srun ./a; fi", 5, "the program is in a condition"),
        ("srun ./a < data", 5, "the ranks have no standard input"),
        ("srun ./a <<< 3", 5, "the ranks have no standard input"),
        ("yes | srun ./a", 5, "the program is not in a pipeline"),
        ("srun --output $X ./a", 5, "is known only when the job runs"),
        ("srun -n 3 ./a", 5, "3 ranks are not divisible by 2 nodes"),
        ("srun -N 1 -n 4 ./a", 5, "the launcher uses 1 of 2 nodes"),
        ("srun --foo 1 torchrun --nproc-per-node 4 t.py", 5, "jobgen starts torchrun without it"),
    ],
)
def test_what_is_lost_has_a_remark_with_its_line(body: str, line: int, why: str) -> None:
    done = job_file(HEAD + body + "\n")
    assert [one.line for one in done.remarks if one.lost and why in one.why] == [line], done.remarks
    values(done.text)


SLURM = "#!/bin/bash\n#SBATCH -t 10 -N 1 -n 1 {}\n{}\n"
TORQUE = "#!/bin/bash\n#PBS -l nodes=1:ppn=4\n{}{}\n"
PBS = "#!/bin/bash\n#PBS -l select=1:ncpus=2\n{}\n{}\n"
GPUS = "#!/bin/bash\n#SBATCH -N 1 -n 1 --gres=gpu:2 {}\n{}\n"


# The form of the script, its options, its commands, the line of the remark, part of its reason, and whether
# something is lost.
DIFFERENCES = {
    "the error file": (SLURM, "-o x.%j -e e.%j", "srun ./a", 2, "one log file", True),
    "a word too many": (SLURM, "-c 2 x", "./a", 2, "belongs to no option of a directive", True),
    "two files in a directory": (PBS, "#PBS -o /l/\n#PBS -e /l/", "./a", 4, "one log file", True),
    "ranks without cores": ("#!/bin/bash\n#PBS -l select=2:mpiprocs=4{}\n{}\n", "", "mpirun ./a", 2, "a core for each of 4 ranks", False),
    "an image of the site": (PBS, "#PBS -v DOCKER_IMAGE=a:1", "./a", 3, "does not see it", True),
    "a log that is emptied": (SLURM, "-o x.log", "srun ./a", 2, "a later job appends", False),
    "a module": (SLURM, "", "module load gcc\nset -e\nsrun ./a", 3, "the script goes on", False),
    "a status": (SLURM, "", "srun ./a\necho done", 4, "ends with the status of the program", False),
    "a failure": (SLURM, "", "srun ./a\nexit 3", 4, "ends with the status of the program", False),
    "a status that is dropped": (SLURM, "", "srun ./a || true", 3, "ends with the status of the program", False),
    "a failure in a file": (SLURM, "", "set -o pipefail -e\nsource a.conf\nsrun ./a", 4, "a failure in this file", False),
    "an unset variable in a file": (SLURM, "", "set -u\nsource a.conf\nsrun ./a", 4, "a failure in this file", False),
    "a failure of a file": (SLURM, "", ". ./a.conf || exit 1\nsrun ./a", 3, "a failure in this file", False),
    "an early end": (SLURM, "", "[ -f x ] || exit 0\nsrun ./a", 3, "status 71", False),
    "an early end of another status": (SLURM, "", "[ -f x ] || exit 99\nsrun ./a", 3, "status 71", False),
    "an early end in a function": (SLURM, "", "f() {\n  [ -f x ] || exit 0\n}\nf\nsrun ./a", 4, "status 71", False),
    "the path of the script": (
        SLURM, "", "s=\"$(scontrol show job ${SLURM_JOB_ID} | awk -F= '/Command=/{print $2}')\"\ncat $s\nsrun ./a", 3,
        "names the script of jobgen", False,
    ),
    "the text that Slurm has": (
        SLURM, "", "scontrol write batch_script $SLURM_JOBID own.sh\nsrun ./a", 3, "writes the script of jobgen", False,
    ),
    "the text of the script": (SLURM, "", "h=$(grep '^##' \"$0\")\nsrun ./a", 3, "reads the script of jobgen", False),
    "the text of the script by its path": (
        SLURM, "", "S=$(scontrol show job $SLURM_JOB_ID | awk -F= '/Command=/{print $2}')\ncp $S .\nsrun ./a", 4,
        "reads the script of jobgen", False,
    ),
    "the text of the script from Slurm": (
        SLURM, "", "scontrol write batch_script $SLURM_JOB_ID x.sh\nsrun ./a", 3, "writes the script of jobgen", False,
    ),
    "the index of an array of the submission": (SLURM, "", "srun ./a $SLURM_ARRAY_TASK_ID", 3, "set array", False),
    "cores of no node, without a launcher": (
        "#PBS -l ncpus=192\n{}\n{}\n", "", "python3 t.py", 1, "some sites give several", False,
    ),
    "tasks of one core": (
        "#PBS -l select=1:mpiprocs=24\n{}\n{}\n", "", "./a", 1, "once; ranks that it starts", False,
    ),
    "a queue of a server": ("#PBS -j oe -q q@h{}\n{}\n", "", "./a", 1, "names a server of PBS Pro", False),
    "ranks of one node of several": (
        "#SBATCH -t 10 -n 8 {}\n{}\n", "", "mpirun -np 8 ./a", 1, "all on one node", False,
    ),
    "a variable that Slurm does not set": (SLURM, "", "./a $SLURM_TASK_ARRAY_ID", 3, "not set by Slurm", False),
    "a time": (SLURM, "", "time -p srun ./a", 3, "the time of the whole job", False),
    "a time around another one": (SLURM, "", "time srun /usr/bin/time -v ./a", 3, "the time of the whole job", False),
    "a time without a launcher": (SLURM, "", "time ./a", 3, "the time of the whole job", False),
    "a trap": (SLURM, "", "trap 'rm x' ERR EXIT\nsrun ./a", 3, "traps of its own", True),
    "all mail": (SLURM, "--mail-type=ALL", "srun ./a", 2, "none of a requeue", False),
    "a function of a file": (SLURM, "", "cd /x\n. ./env.sh\nmytool go", 4, "if mytool is a function", False),
    "a function of a file that is an option": (SLURM, "", ". /b/x.sh\nmytool go", 3, "if mytool is a function", False),
    "a function of a login": (SLURM, "", ". ~/.bashrc\nmytool go", 3, "if mytool is a function", False),
    "a function behind env": (GPUS, "", ". ~/.bashrc\nmytool go", 3, "if mytool is a function", False),
    "a function behind the program": (SLURM, "", ". ./setup.sh\nsrun ./a\nclean_up", 3, "if clean_up is a func", False),
    "a function of a loop": (SLURM, "", ". ./env.sh\nfor i in 1 2; do mytool $i; done", 3, "if mytool is a func", False),
    "a function of a text": (SLURM, "", 'eval "$(cat f.sh)"\nmytool go', 3, "if mytool is a function", False),
    "no environment": (SLURM, "--export=NONE", "srun ./a", 3, "environment of the script, too", False),
    "a list of variables": (SLURM, "--export=A,B=1", "export C=1\nsrun ./a", 4, "environment of the script, too", False),
    "no environment of Python": (SLURM, "--export=NIL", "srun torchrun t.py", 3, "environment of the script, too", False),
    "a step in the background": (SLURM, "", "srun ./b &\nsrun ./a", 3, "may wait", True),
    "a step that a wait follows": (SLURM, "", "srun ./b &\nsrun ./a &\nwait", 3, "ends with the program", True),
    "a script without a program": (SLURM, "", "cd x\ncat x | xargs -n 1 echo", 4, "the job ends with 0", False),
    "mail of tasks": (SLURM, "--array=1-2 --mail-user=a --mail-type=ARRAY_TASKS,FAIL", "./a", 2, "as a whole", False),
    "a function that leaves a process": (SLURM, "", "f() { ./b & }\nf\nsleep 2\nsrun ./a", 4, "ends with it", False),
    "a process in the background": (SLURM, "", "./b &\nsrun ./a", 3, "ends with it", False),
    "a step beside others": (SLURM, "", "srun ./a &\nsleep 5\n./b\nkill $!", 5, "has ended, the script beside", True),
    "one task of several": (SLURM, "-n 8 -c 4", "srun -n 1 ./a", 3, "the launcher starts 1 of them", True),
    "tasks of the submission": (
        "#SBATCH -t 10 {}\n{}\n", "", "mpirun -np $SLURM_NTASKS ./a", 2, "known only when the job runs", True,
    ),
    "ranks of a node": (SLURM, "", "N=$(nvidia-smi -L | wc -l)\nmpirun --ppn $N ./a", 4, "known only when", True),
    "tasks that do not divide": (SLURM, "-N 2 -n 49", "srun ./a", 2, "49 tasks are not divisible", True),
    "all cores": (SLURM, "--exclusive", "./a", 2, "has all cores and GPUs of the node", False),
    "an exit of the program": (SLURM, "", "for i in 1 2; do\n  ./a || exit 1\ndone\ncp a b", 6, "after an exit", False),
    "options of aprun": (TORQUE, "", "aprun -j 1 -n 4 ./a", 3, "without it", True),
    "an option of the submission": (SLURM, "", "python3 t.py $SWITCH", 3, "in the program it is one word", False),
    "workers of a loop": (
        SLURM, "-N 2", "for i in 1 2; do\n  srun -N 1 -n 1 ./worker &\ndone\npython3 t.py", 6, "line 4 has ended, the script beside", True,
    ),
    "unknown options": (SLURM, "", "srun $OPTIONS python3 t.py", 3, "runs: it is left out", True),
    "an old launcher": (GPUS, "", "python3 -m torch.distributed.launch --nproc_per_node=2 t.py", 3, "since 1.10; the program gets --local_rank,", False),
    "another shell": ("#!/bin/zsh\n#SBATCH -n 1 {}\n{}\n", "", "./a", 1, "splits words", False),
    "tasks that differ": (SLURM, "-n 4", "make -j $SLURM_NTASKS\nmake x", 3, "and 4 in the script", False),
    "an unknown MPI": (SLURM, "-n 4", "srun ./a", 3, "is a guess, for which srun gets --mpi=pmix", False),
    "options of srun that are those of an MPI": (SLURM, "-n 4", "srun -x node3 ./a", 3, "is a guess", False),
    "output that is read": (SLURM, "", "O=x-$A\nsrun ./a > ${O}\ngrep e $O", 5, "does not write", True),
    "output of tee": (SLURM, "", "srun ./a | tee -a d/x.log\ncp d/*.log y", 4, "does not write", True),
    "output behind a sign": (SLURM, "", "srun ./a &> x\nn=$(wc -l < x)\ncp x y", 4, "does not write", True),
    "output and errors behind a sign of csh": (SLURM, "", "srun ./a >& x\ncp x y", 4, "does not write", True),
    "output that is tested": (SLURM, "", "mpirun ./a 2> $E\nif [ -s $E ]; then ./b; fi", 4, "does not write", True),
    "output in an option": (SLURM, "", "srun ./a > d/x\ncd d\npython b.py --log=x", 5, "does not write", True),
    "a folder of another tool": (SLURM, "", "python3 t.py $WORKSPACE/a", 3, "is not set anywhere in the script", False),
    "a backend of MPI": (SLURM, "-n 1", "srun python3 t.py -d mpi", 3, "starts without an MPI", False),
    "a script that may use MPI": (SLURM, "-n 4", "srun ./a.sh", 3, "starts without an MPI", False),
    "GPUs of a task": (SLURM, "-n 4 --gpus-per-task=1", "srun ./a", 2, "its own GPUs only", False),
    "all GPUs, and those of a task": (
        SLURM, "-n 4 --gpus=4 --gpus-per-task=1", "srun ./a", 2, "its own GPUs only", False,
    ),
    "GPUs of a task of a step": (
        SLURM, "-N 1 --gpus-per-node=4", "srun -n 4 --gpus-per-task=1 ./a", 3, "its own GPUs only", False,
    ),
    "tasks of a GPU": (SLURM, "-N 1 -n 4 --gpus=4 --ntasks-per-gpu=1", "srun ./a", 2, "its own GPUs only", False),
    "other devices of a step": (SLURM, "", "srun --gres=dcu:4 ./a", 3, "which requests none of these", True),
    "devices of a step that a variable names": (SLURM, "", "srun --gres=$G ./a", 3, "requests none of these", True),
    "GPUs that are not divisible": (SLURM, "-N 2 -n 2 --gpus=3", "srun ./a", 2, "is not divisible by the nodes", True),
    "the standard input": (SLURM, "--input=x.in", "srun ./a", 2, "has no standard input", True),
    "an array without a counterpart": (SLURM, "--array=5", "srun ./a", 2, "is no array of PBS Pro", False),
    "a trap in setup": (SLURM, "", "trap ./c TERM\nsrun ./a", 3, "acts in setup only", True),
    "a directory of a job": (SLURM, "", "cd $SCRATCHDIR\nsrun ./a", 3, "PBS sets it to a directory", False),
    "hosts of a long command": (SLURM, "-N 2 -n 2", f"mpirun ./b {'x' * 60}\nsrun ./a", 3, "gets the hosts from", False),
    "GPUs and others": (SLURM, "--gres=gpu:1,nvme:5", "srun ./a", 2, "stays a directive", False),
    "an environment that ends in the program": (
        SLURM, "", "source v/bin/activate\nif a; then\n  ./b\n  deactivate\n  ./c\nfi", 6, "is a function of the env", False,
    ),
    "GPUs of a step that the job counts": (SLURM, "", "R=$(cat n)\nsrun --gpus-per-node=$R ./a", 4, "finds out how many", True),
    "typed GPUs of a step that the job counts": (SLURM, "", "srun --gres=gpu:a100:$R ./a", 3, "finds out how many", True),
    "GPUs of a template": (SLURM, "", "srun -G %GPUS% ./a", 3, "finds out how many", True),
    "GPUs and others of several ranks": (SLURM, "-n 4 --gres=gpu:1,nvme:5", "srun ./a", 2, "prepares nothing for", False),
    "the type of GPUs beside others": (SLURM, "--gres=gpu:v100:1,nvme:5", "srun ./a", 2, "is a type of Slurm", False),
    "the file of the script by its job": (
        SLURM, "", "D=$(dirname $(scontrol show job $SLURM_JOBID | awk -F= '/Command=/{print $2}'))\ncd $D\n./a", 3, "names the script of jobgen", False,
    ),
    "an address of several nodes": (
        SLURM, "-N 2 -n 2", "export MASTER_ADDR=$(scontrol show hostnames | head -n 1)i\nsrun ./a", 3, "becomes master_addr = {host}i", False,
    ),
    "an address of one node": (
        SLURM, "", "export MASTER_ADDR=$(scontrol show hostnames | head -n 1)i\nsrun ./a", 3, "is left out", False,
    ),
    "memory of all cores": (SLURM, "--exclusive --mem-per-cpu=1G", "srun ./a", 2, "of an exclusive node", False),
    "another number of ranks": (
        SLURM, "-n 2", "export WORLD_SIZE=$((SLURM_NNODES * 4))\nsrun python3 t.py", 3, "number of ranks in the job, 2", False,
    ),
    "licenses": (SLURM, "-L matlab", "srun ./a", 2, "a resource of this name", False),
    "both streams in a file": (SLURM, "", "srun ./a >& log.$X", 3, "the output is in the log", False),
    "quotes in a variable": (SLURM, "", "O=\"-a 'x y'\"\nsrun python3 t.py $O", 4, "the script passes them on", False),
    "a file that reads the arguments": (SLURM, "", ". ./parse_options.sh || exit 1\nsrun ./a", 3, "move it to setup", False),
    "a program of several GPUs": ("#SBATCH -N 1 --gres=gpu:2 {}\n{}\n", "", "python3 t.py", 2, "a library starts its own ranks", False),
    "a program of several GPUs with a number of tasks": (GPUS, "", "python3 t.py", 3, "compare it with the 2 GPUs", False),
    "a program of several GPUs of PBS": (
        "#PBS -l select=1:ncpus=2:ngpus=2{}\n{}\n", "", "python3 t.py", 2, "in a job for Slurm, so that a library starts", False,
    ),
    "a rendezvous": (GPUS, "", "torchrun --nproc-per-node=2 --rdzv-backend=c10d t.py", 3, "first node", False),
    "an input of all commands": (SLURM, "", "exec < x\n./a", 3, "no standard input", False),
    "a file of functions": (SLURM, "", ". ./functions\nsrun ./a\ncollect x", 3, "functions and aliases", False),
    "an environment that is left": (SLURM, "", "srun ./a\ndeactivate\n./b", 4, "in the environment, too", False),
    "a value of the program": (
        SLURM, "", "for i in 1 2; do ./a || F=1; done\ncp x y$F", 4, "separate process", False,
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
    "a match": (SLURM, "", "[[ $A =~ b ]]\nsrun ./a\necho ${BASH_REMATCH[0]}", 5, "separate processes", False),
    "no value": (SLURM, "-o", "srun ./a", 2, "has no value", True),
    "a program that nothing waits for": (SLURM, "", "srun ./a &\ndate", 3, "does not wait for it", False),
    "a group that nothing waits for": (SLURM, "", "{ srun ./a; } &\nexit", 3, "does not wait for it", False),
    "a wait for another program": (SLURM, "", "./b &\nwait $!\nnohup ./a > x 2>&1 &", 5, "does not wait", False),
    "a program without the terminal of its step": (SLURM, "", "srun -u ./a", 3, "no terminal here", False),
    "a container without it": (SLURM, "", "srun --unbuffered apptainer exec i ./a", 3, "no terminal here", False),
    "a python": (SLURM, "", "srun python t.py", 3, "python3", False),
    "a python beside a folder on PATH": (
        SLURM, "", "module load intel\nPATH=/opt/EnergyPlus-9:$PATH\nsrun python t.py", 5, "python3", False,
    ),
    "a python of a launcher": (
        GPUS, "", "PATH=/x/cuda/bin:$PATH\npython -m torch.distributed.run --nproc_per_node=2 t.py", 4, "it as python3", False,
    ),
    "a file of ranks": (SLURM, "-n 2", "module load openmpi\nmpirun --rankfile f ./a", 4, "places the ranks itself", False),
    "ranks by nodes": (SLURM, "-n 2", "module load openmpi\nmpirun --bynode ./a", 4, "places the ranks itself", False),
    "an MPI of ranks of Python": (
        GPUS, "-n 2", "module load openmpi\nexport MASTER_ADDR=$H\nsrun python3 t.py", 5, "without an MPI", False,
    ),
    "ranks of an unknown program": (SLURM, "-n 4", "./run_all", 2, "that it starts itself find one task", False),
    "an argument in a here-document": (
        SLURM, "", "cat > x <<END\na $1 b\nEND\n./a x", 4, "reads arguments of the script", False,
    ),
    "an option that jobgen refuses": (
        "#SBATCH -t 10\n#SBATCH --cpus-per-gpu=2 {}\n{}\n", "", "srun ./a", 2, "because jobgen refuses it", True,
    ),
    "whole nodes of Cray": (
        "#PBS -N x\n#PBS -l mppwidth=48\n{}{}\n", "", "aprun -n 48 -N 24 ./a", 2, "gives whole nodes", False,
    ),
    "the rank of aprun": (TORQUE, "", "aprun -n 4 nvprof -o x%q{ALPS_APP_PE} ./a", 3, "does not set ALPS_APP_PE", False),
    "cores of Cray": ("#PBS -N x\n#PBS -l size=48\n{}{}\n", "", "aprun -n 4 -N 1 -d 12 ./a", 2, "12 cores, 1 on each", False),
    "memory of processes above that of the job": (
        "#PBS -l nodes=2:ppn=8\n#PBS -l pmem=2gb,mem=20gb\n{}{}\n", "", "mpirun ./a", 2, "the limit is missing", False,
    ),
    "GPUs of several nodes": (
        "#PBS -l nodes=4:ppn=4\n#PBS -l gpus=2\n{}{}\n", "", "module load cuda\nmpirun ./a", 2, "stays a directive", False,
    ),
    "the times of a shell": (SLURM, "", "./a\ntimes", 4, "a clock, of their own", False),
    "threads of a program": (TORQUE, "", "spades.py -o x", 3, "uses 16 cores of a node", False),
    "cores of each node for all ranks": (
        "#PBS -l select=3:ncpus=8:mpiprocs=8\n{}M=RUN\nnprocs=48\n{}\n", "", "$M -np $nprocs ./a", 3,
        "uses 16 cores of a node", False,
    ),
    "chunks of Cray": (
        "#PBS -l select=2:ncpus=24:mpiprocs=24\n{}{}\n", "", "aprun -n 48 ./a", 1, "gives whole nodes", False,
    ),
    "GPUs without cores": ("#SBATCH -t 10\n#SBATCH --gres=gpu:1 {}\n{}\n", "", "./a", 2, "several with each GPU", False),
    "a python without an environment": (SLURM, "", "conda install x\npython t.py", 4, "python3", False),
    "chunks with a half of a place": (
        "#PBS -l select=2:ncpus=1:mpiprocs=1\n#PBS -l place=group=rack\n{}{}\n", "", "mpirun ./a", 2, "on one host",
        False,
    ),
    "free nodes": (
        "#PBS -l select=2:ncpus=2:mpiprocs=2\n#PBS -l place=free\n{}{}\n", "", "mpirun ./a", 2, "on one host", False,
    ),
    "ranks of an unknown program of Torque": (
        TORQUE, "", "./run_all", 2, "find one task on a node (in a job for another scheduler)", False,
    ),
    "ranks on the first node of several": (
        TORQUE.replace("1:", "2:"), "", "mpirun -np 4 ./a", 3, "fills one node after the other; jobgen starts 2 on", False,
    ),
    "ranks of steps on all nodes": (
        SLURM, "-N 2 -n 8", "srun -n 4 ./a", 3, "the launcher starts 2 of them; jobgen gives these the cores", True,
    ),
    "one rank on several nodes": (TORQUE.replace("1:", "2:"), "", "./run_all", 2, "the cores of those on its node", False),
    "a number of a process": (SLURM, "", "# $$\necho $$ > x\nsrun ./a\ncat /proc/$$/stat", 4, "has another value in each", False),
    "ranks in a container of Torque": (
        TORQUE, "", "apptainer exec i mpirun -n 4 ./a", 3, "and not 4 (in a job for another scheduler)", False,
    ),
    "a setting of a rendezvous": (
        GPUS, "", "torchrun --nproc-per-node=2 --rdzv-conf=join_timeout=9 t.py", 3, "PyTorch reads timeout only", False,
    ),
    "a program behind a here-document": (
        SLURM, "", "cat <<E | srun ./a\nx\nE", 3, "the program is in a pipeline", True,
    ),
    "a burst buffer": ("#SBATCH -t 10 {}\n#DW x\n{}\n", "", "./a", 2, "which the new job does not have", True),
    "the status of a pipeline": (SLURM, "", "srun ./a | tee x\nrc=$?\nexit $rc", 5, "ends with the status", False),
    "a status that an end turns into another one": (
        SLURM, "", "srun ./a\nrc=$?\n[ $rc -ne 0 ] && exit $rc", 5, "ends with the status", False,
    ),
    "commands that are printed": (SLURM, "", "set -x\n./b\nsrun ./a\n./c", 3, "before the program at most", False),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_has_a_remark(name: str) -> None:
    form, options, body, line, why, lost = DIFFERENCES[name]
    done = job_file(form.format(options, body))
    values(done.text)
    found = [(one.line, one.lost) for one in done.remarks if why in one.why]
    assert found == [(line, lost)], done.remarks


EQUAL = {
    "threads of a program in an option": (TORQUE, "", "spades.py -t4 -o x", "uses 16 cores of a node"),
    "ranks of all nodes": (
        "#PBS -l select=3:ncpus=40\n{}M=mpiexec\nnprocs=96\n{}\n", "", "$M -np $nprocs ./a", "cores of a node",
    ),
    "workers of all tasks": (SLURM, "-a 1-16", "./a --total_num_workers 16", "uses 16 cores of a node"),
    "GPUs in a directive": (
        "#PBS -l nodes=4:ppn=4\n#PBS -l gpus=2\n{}{}\n", "", "module load cuda\nmpirun ./a", "the script requests none",
    ),
    "a program of awk in a here-document": (
        SLURM, "", "cat <<END > x\n`awk '{print $0, $1}' y`\nEND\nsrun ./a", "of the script",
    ),
    "threads of the chunks": (
        "#PBS -l select=1:ncpus=8:mpiprocs=4:ompthreads=2\n{}{}\n", "", "./a", "sets OMP_NUM_THREADS to them",
    ),
    "the end of the options": (SLURM, "--", "./a", "belongs to no option"),
    "the number of ranks": (SLURM, "-n 2", "export WORLD_SIZE=$SLURM_NTASKS\nsrun python3 t.py", "number of ranks in"),
    "the same number of ranks": (SLURM, "-n 2", "export WORLD_SIZE=2\nsrun python3 t.py", "number of ranks in"),
    "a rank of a program alone": (SLURM, "", "export RANK=0\npython3 t.py", "not set anywhere"),
    "a program with its wait": (SLURM, "", "for i in 1; do srun ./a & done\nwait", "does not wait for it"),
    "another one in a group": (SLURM, "", "srun ./a\n{ date & }", "does not wait for it"),
    "a program with a wait for all": (SLURM, "", "./a &\necho x\nwait", "does not wait for it"),
    "a program that the script sleeps for": (SLURM, "", "./a &\nsleep 9", "does not wait for it"),
    "a python of an unbuffered step": (SLURM, "", "C='python a.py'\nsrun -u bash -c \"cd x; $C\"", "no terminal"),
    "a tool of an unbuffered step": (SLURM, "", "srun -u hostname", "no terminal"),
    "a step with its wait": (SLURM, "", "srun ./a &\nid=$!\necho x\nwait $id\n./b", "the script beside it"),
    "a sum that may fail before a message": (
        SLURM, "-c 1", "set -e\nsrun bash a.sh\nd=$(date | bc) && echo $d\nexit 0", "ends with the status",
    ),
    "a status that is kept": (SLURM, "-c 1", "set -e\nsrun bash a.sh\nrc=$?\ncp a b\nexit $rc", "ends with the status"),
    "another device": (SLURM, "--gres=dcu:1", "srun python t.py --cuda", "requests none"),
    "mail at the end": (SLURM, "--mail-type=END,FAIL", "srun ./a", "none of a requeue"),
    "a program by its path": (SLURM, "", ". ./env.sh\n./mytool go", "is a function"),
    "a shell": (SLURM, "", ". ./env.sh\nbash -c 'a; b'", "is a function"),
    "a program of a launcher": (SLURM, "", ". ./env.sh\nsrun mytool go", "is a function"),
    "a program of a product": (SLURM, "", ". /opt/intel/setvars.sh\nmytool go", "is a function"),
    "a program of an environment": (SLURM, "", ". ~/venv/bin/activate\nmytool go", "is a function"),
    "one chunk": (PBS, "", "mpirun ./a", "on one host"),
    "nodes of Torque": ("#PBS -l nodes=2:ppn=2\n{}{}\n", "", "mpirun ./a", "on one host"),
    "a program of a cluster": (SLURM, "", ". /cvmfs/x/setup_dune.sh\nmytool go", "is a function"),
    "an interpreter": (SLURM, "", ". ~/.bashrc\nRscript a.R", "is a function"),
    "the whole environment": (SLURM, "--export=ALL,A=1", "srun ./a", "environment of the script"),
    "the environment of a step": (SLURM, "--export=NONE", "srun --export=ALL ./a", "environment of the script"),
    "the environment again": (SLURM, "--export=NONE", "unset SLURM_EXPORT_ENV\nsrun ./a", "environment of the script"),
    "an environment without srun": (SLURM, "--export=NONE", "./a", "environment of the script"),
    "an appended log": (SLURM, "-o x.log --open-mode=append", "srun ./a", "appends"),
    "a python of an environment": (SLURM, "", "conda activate x\nsrun python t.py", "python3"),
    "an MPI": (SLURM, "-n 4", "module load openmpi\nsrun ./a", "is a guess"),
    "ranks of a node": (SLURM, "-N 2 -n 8", "mpirun -n 8 -N 4 ./a", "of 2 nodes"),
    "ranks without MPI": (SLURM, "-n 4", "srun python t.py", "is a guess"),
    "a time of a home directory": (SLURM, "", "date\nx=$1\n~/b/time -v python t.py $x $(date)", "the time of the whole job"),
    "a failure in a file that is passed": (SLURM, "", "set +e\nsource a.conf\nsrun ./a", "a failure in this file"),
    "a failure in a file of conda": (SLURM, "", "set -e\nsource /c/bin/activate x\nsrun ./a", "a failure in this file"),
    "an early failure": (SLURM, "", "f() { exit 1; }\n[ -f x ] || f\nsrun ./a", "status 71"),
    "an exit of a function that only the program calls": (SLURM, "", "f() { ./a || exit 3; }\nsleep 1\nf", "status 71"),
    "an exit in a text of the program": (SLURM, "", "./a $1 -r 'x; exit' > y\ncp y z", "after an exit"),
    "an exit of a shell in the program": (SLURM, "", "ls | while read a; do ./a $a || exit; done\ncp y z", "after an exit"),
    "ranks with an address": (GPUS, "-n 2", "export MASTER_ADDR=$H\nsrun python3 t.py", "without an MPI"),
    "ranks in the order of jobgen": (SLURM, "-n 2", "mpirun --byslot ./a", "places the ranks itself"),
    "GPUs with cores": (SLURM, "--gres=gpu:1 -c 4", "./a", "several with each GPU"),
    "GPUs of whole nodes": (SLURM, "--gres=gpu:1 --exclusive", "./a", "several with each GPU"),
    "output of a shell": (SLURM, "", "./a > x\ngrep e x", "does not write"),
    "another file than the output": (SLURM, "", "srun ./a > d/x\ngrep e y/x\ncat *\nrm d/x", "does not write"),
    "a file for no output": (SLURM, "", "srun ./a 2> /dev/null\n./b 2> /dev/null", "does not write"),
    "a command in place of the shell": (SLURM, "", "cd x\nexec find . -name y", "the job ends with 0"),
    "commands that are printed behind the program": (SLURM, "", "srun ./a\nset -x\nls x", "print its commands"),
    "commands that are printed in the program": (SLURM, "", "for i in 1 2; do set -x; ./a; done", "print its commands"),
    "a status that ends the script": (
        SLURM, "", "srun ./a\nrc=$?\nif [ $rc -ne 0 ]; then\n  date\n  exit $rc\nfi", "ends with the status",
    ),
    "a status that a test passes on": (SLURM, "", "srun ./a\nrc=$?\n[ $rc -eq 0 ] || exit $rc", "ends with the status"),
    "the first status of a pipeline": (SLURM, "", "srun ./a | tee x\nexit ${PIPESTATUS[0]}", "ends with the status"),
    "a variable without which the script ends": (SLURM, "", "set -u\nsrun ./a -n $1 $SLURM_X", "would go on"),
    "a variable of a condition without which the script ends": (
        SLURM, "", "set -u\nif [ -f x ]; then A=1; fi\nsrun ./a $A", "would go on",
    ),
    "ranks of another command under Torque": (
        TORQUE, "", "mpirun ./b\nmpirun -np 1 ./a", "as many as it has",
    ),
    "a program that which finds by a variable": (
        SLURM, "-n 4", "E=a\nX=$(which $E)\nsrun ${X} x.inp", "it is left out",
    ),
    "a launcher without a program": (SLURM, "-n 4", "srun --version\nmpirun -np 1 ./a", "as many as it has"),
    "ranks of a mapping": (SLURM, "-n 4", "mpirun --map-by ppr:4:node ./b\nmpirun -np 1 ./a", "as many as it has"),
    "the path of the script for another file": (SLURM, "", 'source f.sh "$0"\nsrun ./a', "reads the script of jobgen"),
    "GPUs of a job without nodes": ("#SBATCH -t 10 -n 4 --gpus=1 {}\n{}\n", "", "./a", "is not divisible"),
    "directives of a text": (SLURM, "", 'H="\n#SBATCH -N 2\n"\n./a', "has no effect in the script"),
    "a setting of an MPI": (SLURM, "-n 4", "export MPICH_X=1\nsrun --cpu-bind=cores ./a", "is a guess"),
    "a guess with a plugin": (SLURM, "-n 4", "srun --mpi=none ./a", "srun gets"),
    "a variable in a comment": (
        GPUS, "", "date\n# $A --node_rank $SLURM_PROCID\nls; srun bash -c \"torchrun --nproc_per_node 2 --node_rank \\$SLURM_PROCID t.py\"",
        "is not set by PBS Pro",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_what_stays_the_same_has_no_remark(name: str) -> None:
    form, options, body, why = EQUAL[name]
    assert not [one for one in job_file(form.format(options, body)).remarks if why in one.why]


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
    done = job_file(SLURM.format("", f"{body}srun ./z"))
    assert [one.line for one in done.remarks if "ends with it" in one.why] == lines


@pytest.mark.parametrize(
    ("body", "line", "what", "lost"),
    [
        ("python2 -m torch.distributed.launch --nproc_per_node 1 t.py", 3, "python2", True),
        ("module load python/2.7\npython -m torch.distributed.launch --nproc_per_node 1 t.py", 4, "python", True),
        ("module load python/2.7\ntorchrun --nproc-per-node 1 t.py", 4, "torchrun", True),
        ("srun ./t.py x", 3, "./t.py", False),
    ],
)  # fmt: skip
def test_another_interpreter_has_a_remark(body: str, line: int, what: str, lost: bool) -> None:
    done = job_file(SLURM.format("", body))
    found = [(one.line, one.what, one.lost) for one in done.remarks if "with python3" in one.why]
    assert found == [(line, what, lost)]


def test_a_launcher_of_python_3() -> None:
    done = job_file(SLURM.format("", "python3 -m torch.distributed.launch --nproc_per_node 1 t.py"))
    assert not any("with python3" in one.why for one in done.remarks)


@pytest.mark.parametrize(
    ("program", "around", "line"),
    [
        ("./a < /tmp/x-$$", "rm /tmp/x-$$", 4),
        ("for i in 1 2; do ./a $i /tmp/x-$$; done", "true", 4),
        ("./a /tmp/x-$$/*", "rm /tmp/x-$$", 4),
        ("./a /tmp/x-$$", "rm /tmp/x-$$", 0),
        ("for i in 1 2; do ./a $i; done", "rm /tmp/x-$$", 0),
    ],
)
def test_the_number_of_the_process_in_the_program_has_a_remark(program: str, around: str, line: int) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1\nmkdir /tmp/x-$$\n{program}\n{around}\n")
    assert [one.line for one in done.remarks if one.what == "$$" and one.lost] == [line] * bool(line)


def test_the_number_of_a_process_that_only_the_program_reads_has_no_remark() -> None:
    done = job_file("#!/bin/bash\n#SBATCH -N 1\nfor i in 1 2; do ./a $i $$; done\nrm x\n")
    assert "$$" not in [one.what for one in done.remarks]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("/opt/my/bin/mpirun -np 8 ./a", "/opt/my/bin/mpirun"),
        ("time $MPI/bin/mpirun -np 8 ./a", "$MPI/bin/mpirun"),
        ("M=/x/mpirun\n$M -np 8 ./a", "/x/mpirun"),
        ("srun -N 2 -n 2 /env/bin/python -m torch.distributed.run a.py", "/env/bin/python"),
        ("/usr/bin/time -p sh -c '/x/mpirun -np 8 ./a | tee log'", "/x/mpirun"),
        ("/usr/bin/time -p sh -c 'mpirun -np 8 ./a | tee log'", ""),
        ("mpirun -np 8 /x/a", ""),
    ],
)
def test_the_path_of_a_launcher_has_a_remark(line: str, path: str) -> None:
    done = job_file(f"{HEAD}{line}\n")
    assert [one.what for one in done.remarks if "finds in PATH" in one.why] == [path] * bool(path)


@pytest.mark.parametrize(("first", "noted"), [("-x", True), ("-ex", True), ("-e", False), ("--login", False)])
def test_a_shell_that_prints_its_commands_has_a_remark(first: str, noted: bool) -> None:
    done = job_file(f"#!/bin/bash {first}\n#SBATCH -N 1\n./a\n")
    assert any("put set -x into setup" in one.why for one in done.remarks) is noted


@pytest.mark.parametrize(
    ("body", "unset"),
    [
        ("./a --out ${output_dir}/x", ["$output_dir"]),
        ("output_dir=$1\n./a --out ${output_dir}/x", []),
        ("read output_dir < file\n./a --out $output_dir", []),
        ("./a --out $SCRATCH $1 $(date)", []),
    ],
)
def test_a_variable_of_the_program_that_nothing_sets_has_a_remark(body: str, unset: list[str]) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1\n{body}\n")
    assert [one.what for one in done.remarks if "is not set anywhere" in one.why] == unset


@pytest.mark.parametrize(
    ("after", "lost"), [("sort x > y", ["ssh $h ./worker"]), ("echo done", []), ("sleep 1", [])]
)
def test_a_process_that_the_program_leaves_for_later_has_a_remark(after: str, lost: list[str]) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1\nfor h in a b; do\n  ssh $h ./worker &\ndone\n{after}\n")
    assert [one.what for one in done.remarks if "before the commands after it" in one.why] == lost


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("module purge\nmodule load a", ["module"]),
        ("module reset\nml -b\nmodule -q unload c\nmodule use /d", []),
        ("ml restore e\ncd /f", ["cd"]),
        ("module load g\nmodule swap h i\nconda activate j", ["module, conda"]),
    ],
)
def test_only_what_ends_the_job_has_a_remark(body: str, names: list[str]) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 2\n{body}\nsrun ./a\n")
    assert [one.what for one in done.remarks if one.why.startswith("if it fails")] == names


@pytest.mark.parametrize(
    ("head", "line", "log"),
    [
        ("#SBATCH -N 1 -t 10", "mv slurm-$SLURM_JOB_ID.out x", "slurm-%j.out"),
        ("#SBATCH -N 1 -t 10 -a 1-3", "gzip slurm-*.out", "slurm-%A_%a.out"),
        ("#SBATCH -N 1 -t 10", "mv out x", None),
    ],
)
def test_the_name_of_a_log_that_the_script_uses(head: str, line: str, log: str | None) -> None:
    assert values(job_file(f"#!/bin/bash\n{head}\nsrun ./a\n{line}\n").text).get("log") == log


def test_a_log_of_pbs_has_another_name() -> None:
    done = job_file("#!/bin/bash\n#PBS -N x\n#PBS -l nodes=1:ppn=4\nmpirun ./a\nmv x.o$PBS_JOBID y\n")
    assert (False, 5, "x.o$PBS_JOBID") in [(one.lost, one.line, one.what) for one in done.remarks]


def test_mail_of_each_task_stays_in_a_job_file() -> None:
    pro = job_file("#PBS -J 1-4\n#PBS -m aej -M me@x.org\n#PBS -l select=1\n./run\n")
    assert values(pro.text)["directive"] == ["-m aej"]
    slurm = job_file("#SBATCH -a 1-4\n#SBATCH --mail-type=END,FAIL,ARRAY_TASKS\n./run\n")
    assert values(slurm.text)["directive"] == ["--mail-type=END,FAIL,ARRAY_TASKS"]
    why = "Slurm sends it for each task of the array, a job for PBS Pro for the array as a whole"
    for types in ("END,FAIL,ARRAY_TASKS", "ARRAY_TASKS,FAIL"):
        done = job_file(f"#SBATCH -a 1-4\n#SBATCH --mail-type={types}\n./run\n")
        assert [one.why for one in done.remarks if one.what.startswith("--mail-type")] == [why]
    torque = job_file("#PBS -t 1-4\n#PBS -m ae\n#PBS -l nodes=1:ppn=2\n./run $PBS_ARRAYID\n")
    assert (False, 2, "-m ae") in remarks(torque)


@pytest.mark.parametrize("name", ["ibrun", "jsrun", "prun"])
def test_a_launcher_that_becomes_mpirun(name: str) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 8\n{name} ./a\n")
    assert (False, 3, name) in remarks(done)
