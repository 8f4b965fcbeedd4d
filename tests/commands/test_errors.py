"""Bad input: one sentence that names option, origin, value and what is allowed; status 2; nothing written."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.jobs import jobgen

from jobgen.commands import cli
from jobgen.errors import one_of
from jobgen.launch.accelerators import ACCELERATORS
from jobgen.launch.launchers import LAUNCHERS
from jobgen.schedulers.table import COMMANDS

CASES = [
    ("pbs --nodes 0", ["--nodes 0 (command line)", "whole number of at least 1"]),
    ("pbs --nodes -1", ["--nodes -1", "whole number"]),
    ("pbs --nodes two", ["--nodes two", "whole number"]),
    ("pbs --nodes 99999999", ["--nodes 99999999", "from 1 to 10000000"]),
    ("slurm --array 0-1000000000", ["--array 0-1000000000", "up to 3999999"]),
    ("pbs --nodes 2x4", ["--nodes 2x4", "2x4+1x8", "--nodes 2 --ranks-per-node 4"]),
    ("slurm --nodes 2x4+1x8 --array 0-3", ["--array 0-3", "arrays of heterogeneous jobs"]),
    ("slurm --nodes 2x4+1x8 --launcher colossalai", ["--launcher colossalai", "only equal nodes; use deepspeed, mpirun, torchrun"]),
    ("slurm --nodes 2x4+1x8 --site clariden", ["--nodes 2x4+1x8", "equal nodes only"]),
    ("local --nodes 1x1+1x2", ["--nodes 1x1+1x2", "only this node"]),
    ("pbs --nodes 1x1+1x2 --site cx3", ["--nodes 1x1+1x2", "Imperial"]),
    ("pbs --nodes 1x1+1x2 --ranks-per-node 2", ["--ranks-per-node 2", "--nodes 1x1+1x2", "remove"]),
    ("pbs --nodes 1x1+1x2 --gpus-per-node 2", ["--gpus-per-node 2", "--nodes 1x1+1x2", "remove"]),
    ("pbs --nodes 1x1+1x2 --cpus-per-node 4", ["--cpus-per-node 4", "--cpus-per-rank"]),
    ("pbs --nodes 1x1+1x2 --spare-nodes 1", ["--spare-nodes 1", "--nodes 1x1+1x2"]),
    ("pbs --nodes 1x1+1x2 --include n1", ["--include n1", "--nodes 1x1+1x2"]),
    ("pbs --nodes 1x1+1x2 --container docker --image a", ["--container docker", "--nodes 1x1+1x2"]),
    ("pbs --nodes 1x1+1x2 --launcher mpirun --mpi intel", ["--mpi intel", "use openmpi or mpich, or the launcher deepspeed, torchrun"]),
    ("pbs --nodes 2.0", ["--nodes 2.0", "whole number"]),
    ("pbz --nodes 2", ["no command pbz", f"use {', '.join(COMMANDS)}", "did you mean pbs?"]),
    ("pbs --node 2", ["no option --node", "did you mean --nodes?"]),
    ("pbs --launcher mpirn", ["--launcher mpirn", one_of(LAUNCHERS), "did you mean mpirun?"]),
    ("slurm --accelerator GPU", [f"{one_of(ACCELERATORS)}; did you mean cuda?"]),
    ("pbs --mpi opnmpi", ["--mpi opnmpi", "did you mean openmpi?"]),
    ("pbs --accelerator gpu", ["--accelerator gpu", "cuda, npu, rocm, xpu or cpu"]),
    ("pbs --dialect torqe", ["--dialect torqe", "did you mean torque?"]),
    ("pbs --launcher srun", ["--launcher srun", "deepspeed, mpirun, torchrun, accelerate, colossalai or none"]),
    ("local --launcher srun", ["--launcher srun", "Slurm"]),
    ("pbs --gpus-per-node 2 --ranks-per-node 4", ["--ranks-per-node 4", "do not fit 2"]),
    ("pbs --gpus-per-node 1 --accelerator cpu", ["--gpus-per-node 1", "--accelerator cpu"]),
    ("pbs --gpus-per-node 0 --accelerator cuda", ["--gpus-per-node 0", "at least 1"]),
    ("pbs --directive=-lnodes=2:ppn=1:gpus=1", ["--directive", "of Torque", "--dialect torque"]),
    ("pbs --directive '-t 0-9'", ["--directive", "of Torque"]),
    ("pbs --dialect torque --directive '-l select=2'", ["--directive", "of PBS Pro"]),
    ("pbs --dialect torque --accelerator npu", ["--accelerator npu", "Torque"]),
    ("slurm --directive '-l nodes=2'", ["--directive", "of PBS"]),
    ("pbs --directive --constraint=a100", ["--directive", "of Slurm"]),
    ("pbs --directive '#PBS -q x'", ["--directive", "without the #PBS"]),
    ("pbs --directive '-q x # mine'", ["--directive", "comment"]),
    ("pbs --name 'a b'", ["--name 'a b'", "letters, digits"]),
    ("pbs --name ''", ["--name ''", "letters, digits"]),
    ("pbs --name $'a\\nb'", ["--name 'a\\nb'", "letters, digits"]),
    (f"pbs --name {'x' * 231}", ["--name xxx", "at most 230"]),
    (f"pbs --dialect torque --name {'a' * 231}", ["--name", "at most 230"]),
    ("slurm --name a/b", ["--name a/b", "letters, digits"]),
    ("pbs --queue 'a b'", ["--queue 'a b'", "one word"]),
    ("slurm --partition $'a\\nb'", ["--queue 'a\\nb'", "one word"]),
    ("pbs --queue a,b", ["--queue a,b", "PBS Pro takes one"]),
    ("pbs --queue with_16_letters_", ["--queue with_16_letters_", "at most 15 characters"]),
    ("pbs --walltime 24:00", ["--walltime 24:00", "ambiguous", "24h00m"]),
    ("pbs --rank-logs nodes", ["--rank-logs nodes", "node, rank, failed or none", "did you mean node?"]),
    ("pbs --runtime besides", ["--runtime besides", "embedded or beside", "did you mean beside?"]),
    ("pbs --walltime 90", ["--walltime 90 (command line)", "ambiguous", "Slurm reads minutes, PBS seconds", "90m or 90s"]),
    ("pbs --walltime soon", ["--walltime soon", "2h30m"]),
    ("pbs --mem 64", ["--mem 64", "unit"]),
    ("pbs --source env.sh", ["--source env.sh", "absolute path", "did you mean ./env.sh?"]),
    ("pbs --env =A", ["--env =A", "NAME=VALUE"]),
    ("pbs --env-file nowhere", ["--env-file nowhere", "cannot be read"]),
    ("pbs --env MASTER_PORT=1", ["--env MASTER_PORT=1", "--master-port"]),
    ("pbs --env MASTER_ADDR=n1", ["--env MASTER_ADDR=n1", "the script sets MASTER_ADDR itself; use --master-addr"]),
    ("pbs --master-addr n1:29500", ["--master-addr n1:29500", "must be a host name, also with {host}", "the port is --master-port"]),
    ("pbs --nodes 2 --master-addr 127.0.0.1", ["--master-addr 127.0.0.1", "each node reaches only itself"]),
    ("pbs --nodes 2 --master-addr n1 --spare-nodes 1", ["--master-addr n1", "the job may leave out; use {host}"]),
    ("pbs --module 'a b'", ["--module 'a b'", "one module"]),
    ("pbs --mail nobody", ["--mail nobody", "mail address"]),
    ("pbs --master-port 80", ["--master-port 80", "from 1024 to 65535"]),
    ("pbs --include n1 --launcher mpirun", ["--include n1", "only the deepspeed launcher"]),
    ("pbs --include n1:4 --gpus-per-node 4", ["--include n1:4", "0 to 3"]),
    ("pbs --include n1 --exclude n2 --nodes 2", ["--exclude n2", "--include"]),
    ("pbs --include n1@n2", ["--include n1@n2", "--nodes is 1"]),
    ("pbs --exclude n1", ["--exclude n1", "no device"]),
    ("slurm --dialect torque", ["--dialect torque", "has only one"]),
    ("local --queue gpu", ["--queue gpu", "no queue"]),
    ("local --nodes 2", ["--nodes 2", "only this node"]),
    ("local --remote ssh", ["--remote ssh", "no other nodes"]),
    ("pbs --launcher torchrun --mpi openmpi", ["--mpi openmpi", "no MPI"]),
    ("slurm --launcher mpirun --mpi pals", ["--mpi pals", "PBS Pro"]),
    ("pbs --json", ["--json", "--explain"]),
    ("pbs train.py", ["train.py", "goes after --"]),
    ("slurm -- torchrun --nproc_per_node=4 train.py --lr 1", ["torchrun", "(after --)", "use --launcher torchrun --ranks-per-node 4 -- train.py --lr 1"]),
    ("pbs --nodes 2 -- mpirun -np 8 python x.py", ["use --launcher mpirun --ranks-per-node 4 -- python x.py"]),
    ("slurm -- srun -N 2 -n 8 ./a.out", ["use --launcher srun --nodes 2 --ranks-per-node 4 -- ./a.out"]),
    ("pbs -- srun ./a.out", ["use --launcher torchrun -- ./a.out"]),
    ("pbs -- deepspeed --num_gpus 4 train.py", ["use --launcher deepspeed --ranks-per-node 4 -- train.py"]),
    ("local -- python -m torch.distributed.run --nnodes 1 -m pkg.train", ["use --launcher torchrun -- -m pkg.train"]),
    ("local -- -m torch.distributed.launch train.py", ["use --launcher torchrun -- train.py"]),
    ("slurm -- accelerate launch --num_machines 2 train.py", ["use --launcher accelerate --nodes 2 -- train.py"]),
    ("slurm -- colossalai run --nproc_per_node 2 train.py", ["use --launcher colossalai --ranks-per-node 2 -- train.py"]),
    *((f"slurm -- {one} torchrun --nproc-per-node 2 train.py", [f"use --launcher torchrun --ranks-per-node 2 -- {one} python3 train.py"])
      for one in ("env A=1", "nohup", "time", "nice -n 5", "timeout -s KILL 5m", "numactl -N 0 -l", "stdbuf -oL", "conda run -n x", "uv run --with x")),
    ("slurm -- python3.11 -m torch.distributed.run train.py", ["use --launcher torchrun -- train.py"]),
    ("slurm -- bash -c $' torchrun \\xff.py'", ["use --launcher torchrun"]),
    ("slurm -- bash -c 'exec torchrun train.py'", ["use --launcher torchrun -- train.py\n"]),
    ("slurm -- nice bash -lc 'cd x && torchrun train.py'", ["-- nice python3 train.py; the other commands of the text go into --setup"]),
    ("slurm -- 'torchrun --nproc-per-node 4 train.py' --lr 1", ["use --launcher torchrun --ranks-per-node 4 -- train.py --lr 1"]),
    ("slurm -- nice sbatch job.sh", ["nice sbatch job.sh", "submits a job, which jobgen submit does"]),
    ("pbs -- qsub job.sh", ["qsub job.sh", "submits a job, which jobgen submit does"]),
    ("slurm -- srun --ntasks-per-node=4 python train.py", ["use --launcher srun --ranks-per-node 4 -- python train.py"]),
    ("slurm -- srun -n 8 -c 4 -K ./a.out", ["use --launcher srun --ranks-per-node 8 --cpus-per-rank 4 -- ./a.out\n"]),
    ("slurm -- srun -n8 --cpus-per-task 4 -t 30 --no-such 3 ./a.out", ["--cpus-per-rank 4 -- ./a.out; -t 30 goes before --; --no-such 3 has no counterpart"]),
    ("slurm --nodes 2 -- srun -n 7 ./a.out", ["use --launcher srun -- ./a.out; -n 7 has no counterpart"]),
    ("slurm -- srun -N 2 --ntasks-per-node=1 -c 32 torchrun --nnodes 2 --nproc_per_node 4 x.py", ["use --launcher torchrun --nodes 2 --ranks-per-node 4 --cpus-per-rank 8 -- x.py\n"]),
    ("slurm -- srun -n 2 torchrun --nproc-per-node gpu --max_restarts 3 --module x.y", ["use --launcher torchrun --nodes 2 --launcher-arg=--max-restarts=3 -- -m x.y\n"]),
    ("slurm --nodes 2 -- accelerate launch --num_processes 8 --dynamo_backend no train.py", ["use --launcher accelerate --ranks-per-node 4 --launcher-arg=--dynamo_backend=no -- train.py"]),
    ("slurm -- deepspeed --include n1:0,1 --master_port 2 train.py", ["use --launcher deepspeed --include n1:0,1 --master-port 2 -- train.py"]),
    ("slurm -- torchrun --no-python ./a.out", ["use --launcher torchrun -- ./a.out\n"]),
    ("slurm -- mpirun --oversubscribe ./a.out", ["--launcher-arg=--oversubscribe -- ./a.out"]),
    ("pbs -- mpirun -ppn 4 --map-by core -x A ./a.out", ["--ranks-per-node 4 --launcher-arg=--map-by --launcher-arg=core -- ./a.out; -x A has no counterpart"]),
    ("pbs -- -m", ["-m", "name of a module"]),
    ("pbs -- ''", ["program", "empty word"]),
    ("pbs --signal TERM", ["--signal TERM", "must be USR1 or USR2", "USR1@300"]),
    ("pbs --signal USR1@0", ["--signal USR1@0", "USR1@300"]),
    ("slurm --signal USR1@2h", ["--signal USR1@2h", "shorter than the wall time"]),
    ("slurm --signal $'USR1@5\\n#SBATCH -p x'", ["--signal", "USR1@300"]),
    ("pbs --signal USR1@3600 --walltime 1h", ["--signal USR1@3600", "shorter than the wall time", "01:00:00"]),
    ("pbs --grace 2h", ["--grace 2h", "shorter than the wall time", "01:00:00"]),
    ("pbs --grace 120", ["--grace 120", "2h30m"]),
    ("pbs --grace=-5s", ["--grace -5s", "2h30m"]),
    ("pbs --signal USR1@600 --grace 5m", ["--grace 5m", "--signal USR1@600 (command line) sets another time"]),
    ("slurm --signal USR1@1x", ["--signal USR1@1x", "USR1@5m"]),
    ("pbs --walltime 5m --signal USR1@300", ["--signal USR1@300", "shorter than the wall time, which is 00:05:00"]),
    ("local --signal USR1@60", ["--signal USR1@60", "no time limit without --walltime"]),
    ("local --grace 5m", ["--grace 5m", "no time limit without --walltime"]),
    ("local --signal USR1@30", ["--signal USR1@30", "no time limit without --walltime"]),
    ("pbs --requeue 0", ["--requeue 0", "whole number from 1"]),
    ("pbs --requeue '3; reboot'", ["--requeue '3; reboot'", "whole number from 1"]),
    ("local --requeue 2", ["--requeue 2", "no queue"]),
    ("pbs --spare-nodes many", ["--spare-nodes many", "whole number from 1"]),
    ("pbs --spare-nodes 1 --no-preflight", ["--spare-nodes 1", "leave out --no-preflight"]),
    ("local --spare-nodes 1", ["--spare-nodes 1", "only this node"]),
    ("pbs --spare-nodes 1 --launcher deepspeed --include n1", ["--spare-nodes 1", "--include"]),
    ("pbs --hang-timeout soon", ["--hang-timeout soon", "2h30m"]),
    ("slurm --nodes 1x2+1x4 --accelerator cpu --restarts 3 --launcher srun", ["--restarts 3", "equal nodes"]),
    ("pbs --restarts 0", ["--restarts 0", "whole number from 1"]),
    ("pbs --nodes 2 --min-nodes 1", ["--min-nodes 1", "needs --restarts N"]),
    (
        "pbs --nodes 2 --restarts 3 --min-nodes 2",
        ["--min-nodes 2", "less than --nodes, which is 2: use 1 or less"],
    ),
    ("pbs --restarts 3 --min-nodes 1", ["--min-nodes 1", "less than --nodes, which is 1: remove it"]),
    ("pbs --nodes 1x2+1x4 --restarts 3 --min-nodes 1", ["--min-nodes 1", "none can be left out"]),
    ("pbs --nodes submitted --restarts 3 --min-nodes 1", ["--min-nodes 1", "use --nodes N"]),
    (
        "pbs --nodes 3 --restarts 3 --min-nodes 1 --launcher deepspeed --include n1",
        ["--min-nodes 1", "--include"],
    ),
    (
        "pbs --nodes 3 --restarts 3 --min-nodes 1 --launcher torchrun --master-addr n1",
        ["--master-addr n1", "which the job may leave out"],
    ),
    ("local --restarts 3 --min-nodes 1", ["--min-nodes 1", "only this node"]),
    ("pbs --nodes 3 --restarts 3 --min-nodes 1 --launcher none", ["--min-nodes 1", "one process"]),
    ("slurm --array 9-0", ["--array 9-0", "0-9, 0-20:5 or 1,3,7", "%N"]),
    ("slurm --array 0-9%0", ["--array 0-9%0", "%N"]),
    ("slurm --array $'0-9\\n#SBATCH -p x'", ["--array", "0-20:5"]),
    ("slurm --array 1-5,3", ["--array 1-5,3", "names the index 3 twice"]),
    ("slurm --array 0-4000000", ["--array 0-4000000", "3999999"]),
    ("slurm --array %5", ["--array %5", "only a sweep"]),
    ("pbs --array 1,3,7", ["--array 1,3,7", "PBS Pro takes one range"]),
    ("pbs --array 4", ["--array 4", "at least two indices"]),
    ("pbs --dialect torque --array 0-9999:2", ["--array 0-9999:2", "too long"]),
    ("pbs --array 0-9 --requeue 2", ["--requeue 2", "the whole array"]),
    ("local --array 0-9", ["--array 0-9", "one job"]),
    ("local --after 12", ["--after 12", "waits for no job"]),
    ("slurm --after x", ["--after x", "the id of a job", "afterany:ID"]),
    ("slurm --after afterok:", ["--after afterok:", "afternotok"]),
    ("slurm --after aftrok:12", ["--after aftrok:12", "afterok"]),
    ("slurm --after $'12\\n#SBATCH -p x'", ["--after", "the id of a job"]),
    ("slurm --after 12.head", ["--after 12.head", "not an id of Slurm"]),
    ("pbs --after 12_3", ["--after 12_3", "not an id of PBS"]),
    ("pbs --after 12[3].head", ["--after", "12[].head", "the whole array"]),
    ("pbs --dialect torque --after aftercorr:12[]", ["aftercorr", "only Slurm"]),
    ("slurm --reservation 'a b'", ["--reservation 'a b'", "one word"]),
    ("pbs --reservation R1 --queue q", ["--reservation R1", "remove --queue"]),
    ("pbs --reservation night", ["--reservation night", "with names such as R12"]),
    ("pbs --qos high", ["--qos high", "has no equivalent; use a queue"]),
    ("pbs --comment hello", ["--comment hello", "does not store comments of users"]),
    ("pbs --dialect torque --licenses m:2", ["--licenses m:2", "--directive"]),
    ("slurm --licenses 'm 2'", ["--licenses 'm 2'", "matlab:2"]),
    ("slurm --comment $'a\\n#SBATCH -p x'", ["--comment", "printable text"]),
    ("slurm --comment 'a\"b'", ["--comment", "without quotes"]),
    ("pbs --constraint a100", ["--constraint a100", "gpu_type=a100"]),
    ("pbs --constraint gpu_type=a100:ncpus=3", ["--constraint", "ncpus is already requested"]),
    ("pbs --licenses a:1,walltime:3", ["--licenses", "walltime is not a license of PBS Pro"]),
    ("pbs --licenses a@server:3", ["--licenses", "a@server is not a license of PBS Pro"]),
    ("pbs --dialect torque --constraint a=b", ["--constraint a=b", "a property of a node"]),
    ("slurm --constraint $'a\\nb'", ["--constraint", "without blanks"]),
    ("slurm --mail-on start", ["--mail-on start", "begin, end, fail, none"]),
    ("slurm --mail-on none,end", ["--mail-on none,end", "none cannot be combined"]),
    ("slurm --log 'a b'", ["--log 'a b'", "without blanks"]),
    ("slurm --log out-%q", ["--log out-%q", "%x (name)"]),
    ("slurm --log out-%a", ["--log out-%a", "only for arrays"]),
    ("slurm --array 0-3 --log out", ["--log out", "add %a"]),
    ("pbs --log out-%j", ["--log out-%j", "does not support %j"]),
    ("slurm --begin 2030-02-30T20:00", ["--begin 2030-02-30T20:00", "20:00, or +2h"]),
    ("pbs --begin +2h", ["--begin +2h", "2030-01-31T20:00"]),
    ("slurm --priority 5", ["--priority 5", "only an operator"]),
    ("pbs --priority 5000", ["--priority 5000", "from -1024 to 1023"]),
    ("local --exclusive", ["--exclusive (command line)", "has no scheduler"]),
    ("slurm --licenses matlab:0", ["--licenses matlab:0", "such as matlab:2"]),
    ("local --log out", ["--log out", "terminal"]),
    ("pbs --template-dir /no/such", ["/no/such cannot be read: No such file or directory"]),
]  # fmt: skip


def run(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of jobgen, of which bash reads the words."""
    words = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], cwd=cwd, capture_output=True).stdout
    return jobgen(*os.fsdecode(words).split("\0")[:-1], cwd=cwd)


@pytest.mark.parametrize(("command", "words"), CASES, ids=[case[0][:50] for case in CASES])
def test_one_sentence_and_status_2(command: str, words: list[str], tmp_path: Path) -> None:
    options, _, program = command.partition(" -- ")
    done = run(f"{options} -o job.sh" + (f" -- {program}" if program else ""), tmp_path)
    assert done.returncode == 2, done.stdout[:200]
    assert done.stdout == ""
    assert done.stderr.startswith("jobgen: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("pbs --nodes", ["--nodes (command line): requires an argument\n"]),
        ("slurm --preflight=3", ["--preflight (command line): does not take a value\n"]),
        ("slurm -n x", ["--ntasks x is refused: it takes a number from 1\n"]),
        ("pbs --force", ["--force", "-o FILE"]),
        ("pbs --runtime beside", ["--runtime beside (command line): writes a second file: give -o FILE"]),
        (
            "pbs --runtime beside -o -",
            ["--runtime beside (command line): writes a second file: give -o FILE"],
        ),
        ("slurm --output %x-%j.out", ["-o %x-%j.out", "for that use --log %x-%j.out"]),
        ("slurm -o job.log", ["-o job.log", "--log job.log"]),
        ("pbs -o 'o.$PBS_JOBID'", ["--log o.%x\n"]),
        (
            "pbs -o logs/",
            ["is the file of the script, not of the job's output; for that use --log logs/%x.log\n"],
        ),
        ("slurm -o logs/", ["--log logs/%x-%j.log\n"]),
        ("local -o job.out", ["a local run writes to the terminal"]),
        (
            "--nodes 2 -- train.py",
            [f"--nodes comes after {one_of(COMMANDS)}, as in: jobgen ", " --nodes 2 -- train.py"],
        ),
        ("--site lumi pbs --mem 1G", ["as in: jobgen pbs --site lumi --mem 1G\n"]),
        ("run train.py", ["there is no command run", "jobgen local -- train.py | bash", "jobgen submit "]),
        ("run --nodes 2", ["jobgen local --nodes 2 | bash"]),
        ("torque --nodes 2", ["there is no command torque: use jobgen pbs --dialect torque\n"]),
        ("help sumbit", ["no command or page answers sumbit", "did you mean submit?"]),
        ("submit slurm job.sh", ["job.sh (command line)", "run it by: sbatch job.sh\n"]),
        ("submit pbs my.pbs", ["run it by: qsub my.pbs\n"]),
        ("submit job.sh", ["qsub job.sh", "sbatch job.sh"]),
        ("sbatch -N 2 job.sh", ["run it by: sbatch job.sh\n"]),
        ("submit train.py", ["train.py (command line): is no option", "jobgen submit -- train.py\n"]),
        ("submit slurm train.py", ["jobgen submit slurm -- train.py\n"]),
        ("submit torchrun train.py", ["jobgen submit -- torchrun train.py\n"]),
        (
            "schema x",
            ["schema: got unexpected extra argument (x); jobgen schema --help shows what it takes\n"],
        ),
        ("web", ["web: missing option '-o' / '--output'; jobgen web --help shows what it takes\n"]),
        ("check --foo x", ["there is no option --foo; jobgen check --help lists its options\n"]),
        ("site new --foo", ["there is no option --foo; jobgen site new --help lists its options\n"]),
        ("man nosuch", ["man: there is no page jobgen-nosuch\n"]),
        ("man statsu", ["did you mean status?\n"]),
        ("help --node", ["there is no option --node of a job; did you mean --nodes?\n"]),
        ("help topics", ["answers topics; jobgen help without words lists all pages\n"]),
        ("slurm job.sbatch", ["run it by: sbatch job.sbatch\n"]),
    ],
)
def test_one_sentence_without_a_file(command: str, words: list[str], tmp_path: Path) -> None:
    done = run(command, tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert all(word in done.stderr for word in words)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("pbs a.toml", "a.toml (command line): {} jobgen pbs --job a.toml"),
        ("slurm --nodes 2 a.toml", "a.toml (command line): {} jobgen slurm --job a.toml"),
        ("pbs -- d/a.toml", "d/a.toml (after --): {} jobgen pbs --job d/a.toml"),
        ("slurm --config a.toml", "a.toml (command line): {} jobgen slurm --job a.toml"),
        ("submit slurm a.toml", "a.toml (command line): {} jobgen submit slurm --job a.toml"),
        ("submit a.toml", "a.toml (command line): {} jobgen submit --job a.toml"),
        ("sbatch a.toml", "a.toml (command line): {} jobgen submit slurm --job a.toml"),
    ],
)
def test_a_job_file_as_an_argument(command: str, line: str, tmp_path: Path) -> None:
    done = run(command, tmp_path)
    text = line.format("is a job file, which is given with --job, as in:")
    assert (done.returncode, done.stderr) == (2, f"jobgen: {text}\n")


@pytest.mark.parametrize(
    ("command", "same"),
    [("help slurm", "slurm --help"), ("version", "--version"), ("pbs -o -", "pbs")],
)
def test_two_spellings(command: str, same: str, tmp_path: Path) -> None:
    done = run(command, tmp_path)
    assert (done.returncode, done.stdout) == (0, run(same, tmp_path).stdout)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "program",
    [
        "python train.py --launcher torchrun",
        "train.py 'torchrun x.py'",
        "./time_series.py",
        "bash -c 'echo torchrun'",
        "bash run.sh -c 'torchrun x.py'",
        "bash -c 'python train.py && sbatch next.sh'",
        "env A=1 python train.py",
        "accelerate env",
        "uv run --with deepspeed python train.py",
        "conda run -n deepspeed python train.py",
        "nice",
    ],
)
def test_a_program_that_is_no_launcher(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["slurm", "--", *shlex.split(program)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("command", ["pbs --explain", "pbs -o job.sh", "submit pbs --dry-run"])
def test_a_runtime_beside_the_script(command: str, tmp_path: Path) -> None:
    assert run(f"{command} --runtime beside", tmp_path).returncode == 0


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    job = tmp_path / "job.sh"
    job.write_text("precious")
    done = run("pbs -o job.sh", tmp_path)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert job.read_text() == "precious"
    assert run("pbs -o job.sh --force", tmp_path).returncode == 0
    assert run("pbs -o job.sh", tmp_path).returncode == 0  # the same text
    assert run("pbs --nodes 2 -o job.sh", tmp_path).returncode == 2
    assert job.read_text().startswith("#!/bin/bash\n")
    assert os.access(job, os.X_OK)
    assert os.listdir(tmp_path) == ["job.sh"]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    done = run("pbs -o no/job.sh", tmp_path)
    assert done.returncode == 2
    assert "-o no/job.sh (command line): cannot be written" in done.stderr


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% extends 'builtin/pbs.sh.j2' %}{% block enviroment %}x{% endblock %}", ["unknown block enviroment", "did you mean environment?"]),
        ("{% extends 'builtin/pbs.sh.j2' %}{% block environment %}", ["pbs.sh.j2, line 1"]),
        ("{% extends 'builtin/pbz.sh.j2' %}", ["builtin/pbz.sh.j2"]),
        ("{% extends 'pbs.sh.j2' %}", ["extends itself", "builtin/"]),
        ("{{ 1 / 0 }}", ["mine", "ZeroDivisionError"]),
        ("{% extends 'builtin/pbs.sh.j2' %}{% block environment %}{{ nodez }}{% endblock %}", ["nodez"]),
    ],
)  # fmt: skip
def test_a_wrong_template(template: str, words: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "pbs.sh.j2").write_text(template)
    done = run("pbs --template-dir mine -o job.sh", tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    for word in words:
        assert word in done.stderr
    assert os.listdir(tmp_path) == ["mine"]


def test_only_a_regular_file_is_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = run("pbs -o pipe --force", tmp_path)
    assert (done.returncode, "not a regular file" in done.stderr) == (2, True)
    done = run("pbs -o ''", tmp_path)
    assert (done.returncode, "must be a path" in done.stderr) == (2, True)
    (tmp_path / "link").symlink_to("job.sh")
    assert run("pbs -o link", tmp_path).returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "job.sh").read_text().startswith("#!/bin/bash\n")
    assert sorted(os.listdir(tmp_path)) == ["job.sh", "link", "pipe"]


def test_windows_is_refused() -> None:
    program = "import os; from jobgen.__main__ import main; os.name = 'nt'; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "jobgen: Windows is not supported: use jobgen in WSL\n")
