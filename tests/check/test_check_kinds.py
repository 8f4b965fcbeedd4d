"""Mistakes in other words than those of the rules' own scripts: each is found, and what looks like it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobgen.check.checker import check
from jobgen.check.formats import FORMATS, for_terminal

SLURM = """#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
#SBATCH -o x-%j.out
"""
PBS = "#!/bin/bash\n#PBS -l select=4:ncpus=32:mpiprocs=4\n#PBS -l walltime=01:00:00\n"
KEY = "9f8e7d6c5b4a39281706f5e4d3c2b1a0918273ab"  # in the form of a key; no service has made it

WRONG_RANK = "export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_PROCID\npython t.py\n"
NO_GPUS = SLURM.replace("#SBATCH --gpus-per-node=4\n", "")
OWN_FUNCTION = "go() { export RANK=$SLURM_PROCID LOCAL_RANK=0; python t.py; }\nexport -f go\nsrun --gpus-per-task=1 bash -c go\n"
BY_LOCAL = "RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID python t.py"
ONE_TASK = SLURM.replace("--ntasks-per-node=4", "--ntasks-per-node=1")
JOINED = "--nnodes=4 --rdzv-backend=c10d --rdzv-endpoint=$M:29400 t.py"
HOSTFILE = ONE_TASK + "H=hosts.$SLURM_JOB_ID\n"
DEEPSPEED = "deepspeed --hostfile $H t.py\n"
BY_TASK = "import os\nimport torch.distributed\nrank = int(os.environ['SLURM_PROCID'])\n"
STEPS = SLURM.replace("--nodes=4", "--nodes=1")

FOUND = [
    (
        "fixed-node-rank",
        ONE_TASK
        + "srun torchrun --nnodes=4 --node-rank=0 --nproc-per-node=4 --rdzv-backend=static --master-addr=$M t.py\n",
    ),
    ("repeated-count", PBS + "mpiexec \\\n  --map-by ppr:4:node \\\n  -n 16 ./solver\n"),
    ("repeated-count", SLURM + "NP=16\nmpirun -np ${NP} ./a\n"),
    ("nodefile-count", PBS + "NUM_NODES=$(cat $PBS_NODEFILE | wc -l)\n"),
    ("nodefile-count", PBS + "nnode=`wc -l \"$PBS_NODEFILE\" | awk '{ print $1 }'`\n"),
    ("nodefile-count", PBS + "mpirun torchrun --nnodes=$(wc -l < $PBS_NODEFILE) --nproc-per-node 4 t.py\n"),
    ("misspelt-variable", SLURM + "export EXPERIMENT=a\nfor i in 1 2; do srun ./a $EXPERIMNET; done\n"),
    ("misspelt-variable", SLURM + "module load x\nckpt_dir=/x/y\nsrun ./a --out $CKPTDIR\n"),
    ("misspelt-variable", SLURM + "module load x\nN_NODES=2\nn=$((N_NODE * 4))\nsrun ./a $n\n"),
    ("misspelt-variable", SLURM + "a=(1 2)\nsrun ./a ${a[SLURM_ARRAY_TASKID]}\n"),
    ("unchecked-variable", PBS + "mpirun ./a \\\n  -in ${INPUT_FILE}\n"),
    ("unchecked-variable", SLURM + 'python t.py "$1"\n'),
    ("unchecked-variable", SLURM + "#SBATCH --account=<project>\nsrun ./a --name=$MODEL\n"),
    ("no-walltime", "#!/bin/bash\n#SBATCH -N 2\nsrun ./a\nsbatch -t 60 next.sh\n"),
    ("unchecked-cd", PBS + "cd ~/src\npython ~/src/t.py\n"),
    ("unchecked-cd", PBS + "cd $X\n/opt/vasp -in /data/x\n"),
    ("shared-log", "#!/bin/bash\n#SBATCH -t 1:00:00\n#SBATCH --error logs/%x.err\nhostname\n"),
    ("shared-log", PBS + "#PBS -o run.log -j oe\nhostname\n"),
    ("unwaited-background", SLURM + "stdbuf -oL python3.7 t.py > a.log &\n# done\necho bye\n"),
    ("unwaited-background", SLURM + "go() {\n  taskset -c 0 ./a $1 &\n}\ngo 1\n# x\ngo 2\n"),
    ("unwaited-background", SLURM + "for i in 0 1; do\n  # both\n  A=$i ./a &\ndone\ndate\n"),
    ("hostname-master", SLURM + 'srun bash -c "export MASTER_ADDR=\\$(hostname -s); ./a"\n'),
    ("hostname-master", "#!/bin/bash\nexport MASTER_ADDR=`hostname`\nexport RANK=$SLURM_PROCID\n./a\n"),
    (
        "hostname-master",
        SLURM + "cat > r <<'E'\nMASTER_ADDR=$HOSTNAME RANK=$SLURM_PROCID ./a\nE\nsrun sh r\n",
    ),
    ("missing-node-rank", SLURM + "srun -N 4 accelerate launch --num_machines 4 --main_process_ip $M t.py\n"),
    ("missing-node-rank", SLURM + "srun bash -c 'torchrun --nnodes 4 --rdzv-endpoint $M:29 t.py'\n"),
    ("missing-master", SLURM + "srun torchrun --nnodes $SLURM_NNODES --rdzv_backend c10d t.py\n"),
    ("missing-master", SLURM + "srun torchrun --nnodes 4 --rdzv-backend=c10d --master_addr $M t.py\n"),
    ("missing-master", SLURM + "srun bash -c 'torchrun --nnodes 4 --node_rank $SLURM_NODEID t.py'\n"),
    ("missing-master", SLURM + "srun python -m torch.distributed.run --nnodes 4 --rdzv_backend c10d t.py\n"),
    ("sleep-as-sync", SLURM + "ray start --head &\n# let it start\nsleep 30\npython t.py\n"),
    ("sleep-as-sync", SLURM + "for n in a b; do\n srun -w $n ./w &\ndone\necho w\nsleep 60\n./c\n"),
    ("sleep-as-sync", SLURM + "./server > log 2>&1 &\nPID=$!\nsleep 5s\n./client\n"),
    ("mkdir-exists", PBS + "cd $PBS_O_WORKDIR\nmkdir out ckpt\nmpirun ./a\n"),
    ("mkdir-exists", SLURM + "OUT=$HOME/run1\nmkdir -m 755 ${OUT}\nsrun ./a\n"),
    ("skipped-cleanup", SLURM + "set -e\nT=$(mktemp -d)\nsrun ./p $T\nrm -rf ${T}\n"),
    ("array-output", SLURM + "#SBATCH -a 1-9\n#SBATCH -o %x-%A.out\nhostname\n"),
    ("appended-deepspeed-env", SLURM + "F=$HOME/.deepspeed_env\necho A=1 >> $F\n"),
    ("appended-deepspeed-env", SLURM + "echo A=1 | tee -a .deepspeed_env\n"),
    ("shared-config", SLURM + 'CFG=./a.yaml\necho "ip: $(hostname) $X" > $CFG\nsrun ./a $CFG\n'),
    ("bash-in-sh", SLURM.replace("/bin/bash", "/usr/bin/env sh") + "source x/activate\n"),
    ("bash-in-sh", SLURM.replace("/bin/bash", "/bin/sh -l") + "for ((i=0;i<3;i++)); do ./a; done\n"),
    (
        "used-port",
        SLURM + "PORT=`ss -Htan | awk '{print $4}' | cut -d: -f2 | sort -R | head -n 1`\n./a $PORT\n",
    ),
    ("overwritten-path", SLURM + "ml gcc\nexport PATH=/opt/x/bin\n"),
    ("overwritten-path", SLURM + "module load x\nLD_LIBRARY_PATH=$A/lib\nexport LD_LIBRARY_PATH\n"),
    ("rm-variable", SLURM + "module load x\nrm -fr ${TMP_OUT}/*\n"),
    ("rm-variable", SLURM + "rm --recursive --force $LOCALDIR/\n"),
    ("secret-in-script", SLURM + f"wandb login {KEY}\n"),
    ("secret-in-script", SLURM + f"./a \\\n --wandb_key {KEY}\n"),
    ("secret-in-script", SLURM + f"#SBATCH --export=ALL,WANDB_API_KEY={KEY}\nsrun ./a\n"),
    ("secret-argument", SLURM + "srun singularity exec --env WANDB_API_KEY=${WANDB_API_KEY} i ./a\n"),
    ("fixed-interface", SLURM + "mpirun -mca btl_tcp_if_include eno1 -np 16 ./a\n"),
    ("fixed-interface", SLURM + "pdsh -w $L 'env GLOO_SOCKET_IFNAME=ens3 ./a'\n"),
    ("fixed-interface", SLURM + "IFACE=eno1\nexport GLOO_SOCKET_IFNAME=$IFACE\n./a\n"),
    ("interface-list", SLURM + "export GLOO_SOCKET_IFNAME=^lo,docker\n./a\n"),
    (
        "interface-list",
        SLURM
        + "export NCCL_SOCKET_IFNAME='^lo,docker'\nexport GLOO_SOCKET_IFNAME=$NCCL_SOCKET_IFNAME\n./a\n",
    ),
    ("interface-list", SLURM + "srun --export=ALL,GLOO_SOCKET_IFNAME==eth0 ./a\n"),
    ("interface-list", SLURM + "export GLOO_SOCKET_IFNAME=eno1,eth0\n./a\n"),
    ("interface-list", SLURM + "export TP_SOCKET_IFNAME=hsn0,hsn1\n./a\n"),
    ("interface-list", SLURM + "mpirun --mca btl_tcp_if_include ^lo,docker0 -np 16 ./a\n"),
    ("old-nccl", SLURM + "mpirun -x NCCL_BLOCKING_WAIT -x PATH ./a\n"),
    ("old-nccl", SLURM + "srun --export=ALL,NCCL_ASYNC_ERROR_HANDLING=1 ./a\n"),
    ("ssh-between-nodes", SLURM + "deepspeed --hostfile=$HF t.py\n"),
    ("ssh-between-nodes", PBS + "colossalai run --nproc_per_node 4 --hostfile hosts t.py\n"),
    (
        "absent-count",
        SLURM.replace("-per-node=4\n#SBATCH --gpus", "=16\n#SBATCH --gpus")
        + "n=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))\n",
    ),
    (
        "compressed-number",
        SLURM.replace("gpus-per-node=4", "gpus-per-node=a100:4")
        + "torchrun --nproc_per_node $SLURM_GPUS_PER_NODE t.py\n",
    ),
    (
        "compressed-number",
        SLURM.replace("gpus-per-node=4", "gpus-per-node=a100:4")
        + "export WORLD_SIZE=$((4 * SLURM_GPUS_PER_NODE))\n",
    ),
    ("container-shm", SLURM + "docker run --gpus all -v /d:/d img:1 python t.py --num_workers 8\n"),
    ("counter-errexit", SLURM + "set -e\nn=0\nwhile sleep 1; do let n++; done\n"),
    ("counter-errexit", SLURM + "set -e\nfor i in 0 1; do n=`expr $i / 1`; done\n"),
    ("counter-errexit", SLURM + "set -e\nlet cores=$SLURM_NTASKS-1\n"),
    ("counter-errexit", SLURM + "set -e\n((time = end - begin))\n"),
    ("nounset-environment", SLURM + "set -u\nCPATH=$HOME/i:$CPATH\nsrun ./a\n"),
    ("ranks-mismatch", SLURM + "export MASTER_ADDR=$A\nsrun --gres=gpu:1 python t.py\n"),
    (
        "ranks-mismatch",
        SLURM + "srun -n 1 --gpus-per-node=a100:2 torchrun --standalone --nproc-per-node=4 t.py\n",
    ),
    ("hostfile-value", SLURM + "H=$SLURM_NODELIST\nmpirun -np 8 -machinefile $H ./a\n"),
    ("hostfile-value", PBS + "mpirun -np 8 --host $PBS_NODEFILE ./a\n"),
    ("early-expansion", SLURM + "srun ./a > log.$SLURM_PROCID\n"),
    ("low-port", SLURM + "export MASTER_PORT=$((RANDOM % 1000 + 100))\nsrun python t.py\n"),
    ("low-port", SLURM + "export MASTER_PORT=$(echo -n $SLURM_JOBID | tail -c 4)\nsrun python t.py\n"),
    ("single-wait", SLURM + 'trap "touch $X" USR1\nsrun ./a &\nwait $!\n'),
    ("trap-exec", SLURM + "trap 'rm -rf $T' EXIT TERM\n# start\nexec mpirun -np 4 ./a\n"),
    ("endless-wait", SLURM + "tail -f x.log &\nsrun python a.py &\nwait\n"),
    ("endless-wait", SLURM + "nvidia-smi dmon -s u > g.log &\nsrun python a.py\nwait\n"),
    ("node-total", PBS + "N=$NCPUS\nmpirun -np $N ./a\n"),
    (
        "array-range",
        SLURM.replace("-o x-%j.out", "-a 0-9") + "i=$SLURM_ARRAY_TASK_ID\nf=$(sed -n ${i}p list)\n./a $f\n",
    ),
    ("array-range", SLURM.replace("-o x-%j.out", "-a 0-9") + './a $(awk "NR==$SLURM_ARRAY_TASK_ID" list)\n'),
    ("standalone-nodes", SLURM + "srun --ntasks-per-node=1 deepspeed --num_gpus 4 t.py\n"),
    ("array-braces", SLURM + "a=(1 2)\nfor i in 0 1; do srun ./a $a[$i]; done\n"),
    ("array-braces", SLURM + 'a=(1 2)\nsrun ./a "$a[@]"\n'),
    (
        "rank-number",
        SLURM
        + f"cat > r$SLURM_JOB_ID.sh <<'E'\n{WRONG_RANK}E\nsrun apptainer exec --nv i.sif bash r$SLURM_JOB_ID.sh\n",
    ),
    (
        "rank-number",
        SLURM + f"D=$(pwd)\ncat > $D/r.sh <<'E'\n{WRONG_RANK}E\nsrun singularity exec -B $D i.sif $D/r.sh\n",
    ),
    (
        "early-expansion",
        SLURM + f"cat > r.sh <<E\n{WRONG_RANK}E\nsrun apptainer exec --nv -B /d:/d i.sif bash r.sh\n",
    ),
    ("task-devices", NO_GPUS + f"srun --gpus-per-task=1 --gpu-bind=closest bash -c '{BY_LOCAL}'\n"),
    ("task-devices", NO_GPUS + f"srun --tres-per-task=gres/gpu:1 bash -c '{BY_LOCAL}'\n"),
    ("task-devices", NO_GPUS + f"#SBATCH --gpus=16 --ntasks-per-gpu=1\nsrun bash -c '{BY_LOCAL}'\n"),
    ("task-devices", SLURM + f"srun --gpu-bind=mask_gpu:0x1,0x2,0x4,0x8 bash -c '{BY_LOCAL}'\n"),
    ("task-devices", NO_GPUS + OWN_FUNCTION.replace("=0", "=$SLURM_LOCALID")),
    (
        "task-devices",
        NO_GPUS + OWN_FUNCTION.replace("go() {", "go() { export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID;"),
    ),
    ("rank-number", SLURM + OWN_FUNCTION.replace("RANK=$SLURM_PROCID", "RANK=$SLURM_NODEID")),
    (
        "too-many-threads",
        SLURM
        + "#SBATCH --cpus-per-task=4\n"
        + OWN_FUNCTION.replace("go() {", "go() { export OMP_NUM_THREADS=8;"),
    ),
    ("hostname-master", SLURM + OWN_FUNCTION.replace("go() {", "go() { export MASTER_ADDR=$(hostname);")),
    ("standalone-nodes", ONE_TASK + "srun torchrun --nnodes=1 --nproc-per-node=4 t.py\n"),
    ("random-rendezvous", ONE_TASK + f"srun bash -c 'torchrun --rdzv_id=$SLURM_PROCID {JOINED}'\n"),
    ("master-address", ONE_TASK + "export MASTER_ADDR=${SLURM_NODELIST:0:6}\n"),
    ("master-address", ONE_TASK + "export MASTER_ADDR=$(echo $SLURM_NODELIST | sed 's/\\[.*//')\n"),
    ("master-address", ONE_TASK + "export MASTER_ADDR=$(echo $SLURM_JOB_NODELIST | cut -c 1-6)\n"),
    ("master-address", ONE_TASK + "export MASTER_ADDR=$(hostname -i | awk '{print $1}')\n"),
    ("ephemeral-port", ONE_TASK + "export MASTER_PORT=$(shuf -i 10000-65500 -n 1)\n"),
    (
        "hostfile-slots",
        HOSTFILE
        + "mapfile -t N < <(scontrol show hostnames)\nfor h in ${N[@]}; do printf '%s slots=%d\\n' $h 8; done > $H\n"
        + DEEPSPEED,
    ),
    (
        "hostfile-slots",
        HOSTFILE
        + "w() { for h in $(scontrol show hostnames); do echo $h slots=8; done; }\nw > $H\n"
        + DEEPSPEED,
    ),
    (
        "hostfile-slots",
        HOSTFILE + "scontrol show hostnames | sed 's/$/ slots=2/' > $H\ndeepspeed --hostfile=\"$H\" t.py\n",
    ),
    (
        "hostfile-format",
        HOSTFILE + "for h in $(scontrol show hostnames); do echo $h slots = 4; done > $H\n" + DEEPSPEED,
    ),
    ("bare-hostfile", HOSTFILE + "scontrol show hostnames > $H\n" + DEEPSPEED),
    ("bare-hostfile", HOSTFILE + "scontrol show hostnames | sed 's/$/ slot=4/' > \"$H\"\n" + DEEPSPEED),
    (
        "bare-hostfile",
        HOSTFILE + "while read h; do echo $h:4; done < <(scontrol show hostnames) > $H\n" + DEEPSPEED,
    ),
    ("bare-hostfile", PBS + "H=h.$PBS_JOBID\ncp $PBS_NODEFILE $H\n" + DEEPSPEED),
    ("filter-range", SLURM + "deepspeed --include localhost:0,1 --num_gpus 2 t.py\n"),
    ("nested-tasks", HOSTFILE + "scontrol show hostnames | sed 's/$/ slots=4/' > $H\nsrun " + DEEPSPEED),
    ("blocking-steps", STEPS + "for i in 1 2; do srun -n1 -c4 ./a $i & done\nwait\n"),
    (
        "blocking-steps",
        ONE_TASK
        + "#SBATCH -c 8\nsrun -N1 -n1 -c8 -w $A ray start --head --block &\nsrun -N1 -n1 -w $A python t.py\n",
    ),
    (
        "container-driver",
        SLURM
        + "srun -n1 apptainer exec --nv i.sif ray start --block &\nsrun -n1 apptainer exec i.sif vllm serve m\n",
    ),
    ("inert-directive", "#!/bin/bash\n#SBATCH --time=1:00:00\nSBATCH --mem=4G\nsrun ./a\n"),
    ("inert-directive", "#!/bin/bash\n#PBS -l walltime=1:00:00\nPBS -l select=1\n./a\n"),
    (
        "ranks-mismatch",
        SLURM
        + "vllm serve m --tensor-parallel-size 4 --pipeline-parallel-size 8 --distributed-executor-backend ray\n",
    ),
    (
        "ranks-mismatch",
        SLURM
        + "ray start --head\npython -m verl.trainer.main_ppo trainer.nnodes=8 trainer.n_gpus_per_node=4\n",
    ),
    (
        "ranks-mismatch",
        SLURM
        + "ray start --head\npython -m verl.trainer.main_ppo trainer.nnodes=4 trainer.n_gpus_per_node=2\n",
    ),
    (
        "nodes-mismatch",
        ONE_TASK
        + "run() {\n local n=$1; shift\n srun torchrun --nnodes=$n --rdzv-backend=c10d --rdzv-endpoint=$M:29400 $@\n}\nrun 8 t.py\n",
    ),
    (
        "nodes-mismatch",
        ONE_TASK
        + "srun py-spy record -o p.svg -- torchrun --nnodes=8 --rdzv-backend=c10d --rdzv-endpoint=$M:29400 t.py\n",
    ),
    (
        "nodes-mismatch",
        ONE_TASK
        + "srun gdb -ex run --args python -m torch.distributed.run --nnodes=8 --rdzv-backend=c10d --rdzv-endpoint=$M:294 t.py\n",
    ),
    ("misspelt-variable", SLURM + "source /opt/x/env.sh\nOUTPUT_DIR=/x\nsrun ./a $OUPUT_DIR\n"),
    ("unchecked-variable", SLURM + "srun ./a --epochs $EPOCHS\n"),
    ("blank-after-backslash", SLURM + "srun ./a --x 1 \\ # the first\n  --y 2\n"),
    ("blank-after-backslash", SLURM + "srun bash -c './a \\ \n --x 1'\n"),
    ("literal-variable", SLURM + "#SBATCH -A $ACCOUNT\n#SBATCH -p $QUEUE\nsrun ./a\n"),
    (
        "fixed-node-rank",
        HOSTFILE + "export H\nsrun bash -c 'deepspeed --hostfile $H --no_ssh --node_rank 0 t.py'\n",
    ),
    (
        "launcher-binding",
        PBS
        + "module load openmpi\nmpirun -np 4 --map-by ppr:1:node torchrun --nnodes=4 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$M:29 t.py\n",
    ),
    ("remote-directory", PBS + "cd $PBS_O_WORKDIR\npbsdsh -- torchrun --standalone train.py\n"),
    ("ranks-mismatch", SLURM + "#SBATCH --cpus-per-task=2\nsrun -c 12 ./a\n"),
    ("ranks-mismatch", SLURM + "mpirun -np 8 --npernode 2 python p.py --tensor-model-parallel-size 2\n"),
    (
        "container-driver",
        SLURM + "srun apptainer run --bind \"$PWD\" i.sif bash -c '\n  export A=1\n  python t.py'\n",
    ),
    (
        "shared-port",
        STEPS
        + "for i in 1 2; do srun --exact -n1 torchrun --nnodes=1 --master_port=29500 t.py & done\nwait\n",
    ),
    (
        "unexported-variable",
        SLURM
        + "L=1\ncat > r.sh <<'E'\n./a $L\nE\nsrun apptainer exec --nv -B /d:/d --pwd /d i.sif bash r.sh\n",
    ),
    ("loader-cores", ONE_TASK + f"srun torchrun --nproc-per-node=4 {JOINED} --num_workers 8\n"),
    ("home-cache", SLURM + "export TORCH_EXTENSIONS_DIR=/home/$USER/te\nsrun ./a\n"),
    ("world-size", SLURM + "srun bash -c 'WORLD_SIZE=4 RANK=$SLURM_PROCID python t.py'\n"),
    ("world-size", SLURM + "srun --export=ALL,WORLD_SIZE=32 bash -c 'RANK=$SLURM_PROCID python t.py'\n"),
    (
        "too-many-threads",
        ONE_TASK
        + f"#SBATCH -c 16\nsrun -c16 --export=ALL,OMP_NUM_THREADS=16 torchrun --nproc-per-node=4 {JOINED}\n",
    ),
    (
        "too-many-threads",
        ONE_TASK
        + f"#SBATCH -c 16\nsrun -c16 bash -c 'export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK; torchrun --nproc-per-node=4 {JOINED}'\n",
    ),
    (
        "unpassed-variable",
        SLURM
        + f"export MASTER_ADDR=$(hostname)\nsrun docker run --gpus all --ipc=host -v $PWD:$PWD -w $PWD i bash -c '{BY_LOCAL}'\n",
    ),
    (
        "remote-directory",
        PBS
        + "cd $PBS_O_WORKDIR\nfor h in $(uniq $PBS_NODEFILE); do ssh $h 'source /x/venv/bin/activate; torchrun --standalone train.py' & done\n",
    ),
    (
        "unpassed-variable",
        PBS
        + f"M=$(hostname)\ncat > r.sh <<'E'\ncd /x\ntorchrun {JOINED}\nE\nfor h in $(uniq $PBS_NODEFILE); do pbs_tmrsh $h bash $PWD/r.sh & done\n",
    ),
    (
        "unpassed-variable",
        PBS
        + f"M=$(hostname)\ncat > r.sh <<'E'\ncd /x\ntorchrun {JOINED}\nE\nfor h in $(uniq $PBS_NODEFILE); do ssh $h \"cd $PWD; bash r.sh\" & done\n",
    ),
    (
        "shared-hostfile",
        ONE_TASK
        + "H=$SLURM_SUBMIT_DIR/hostfile\nscontrol show hostnames | sed 's/$/ slots=4/' > \"$H\"\n"
        + DEEPSPEED,
    ),
    (
        "duplicate-hosts",
        PBS
        + 'H=h.$PBS_JOBID\ncat $PBS_NODEFILE | sed \'s/$/ slots=4/\' > "$H"\ndeepspeed --hostfile="$H" t.py\n',
    ),
    ("own-folder", SLURM + 'cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1\nsrun ./a\n'),
    ("own-folder", PBS + "HERE=$(readlink -f `dirname $0`)\nmpirun $HERE/a\n"),
    ("own-folder", SLURM + 'source "${0%/*}/env.sh"\nsrun ./a\n'),
    ("misspelt-variable", SLURM + "module load x\nhead=$(hostname)\nsrun ./a $haed\n"),
]
QUIET = [
    ("own-folder", "#!/bin/bash\ncd $(dirname $0)\n./a\n"),
    ("own-folder", SLURM + 'echo "$(dirname "$0")"\nDIR=$(dirname $1)\nsrun ./a $DIR\n'),
    (
        "own-folder",
        SLURM + '[ -n "$D" ] || D=$(dirname "$0")\nif a; then cd $(dirname $0); fi\nsrun $D/a\n',
    ),
    ("own-folder", SLURM + "D=$(dirname $0)\n[[ $D == *slurmd* ]] && D2=/x || D2=$D\nsrun $D2/a\n"),
    ("own-folder", SLURM + "D=$(dirname $0)\ncd ${SLURM_SUBMIT_DIR:-$D}\nsrun ./a\n"),
    ("own-folder", SLURM + "cp $(readlink -f $0) out\nsrun ./a\n"),
    ("own-folder", SLURM + "D=$SLURM_SUBMIT_DIR/$(basename $0)\nsrun ./a $D\n"),
    ("misspelt-variable", SLURM + "module load x\nrun=1\nhead=a\nsrun ./a $urn $dhea $run $head\n"),
    ("array-braces", SLURM + "a=(1 2)\nsrun ./a ${a[1]} $a $b[1] '$a[1]'\n"),
    ("repeated-count", SLURM + "mpirun -np $SLURM_NTASKS ./a\nmpirun -np 8 ./b\n"),
    ("nodefile-count", PBS + "PBS_NODEFILE=$PWD/hosts\nNNODES=$(wc -l < $PBS_NODEFILE)\n"),
    ("nodefile-count", PBS + "NODES=$(sort -u $PBS_NODEFILE | wc -l)\nNPROCS=$(wc -l < $PBS_NODEFILE)\n"),
    ("misspelt-variable", SLURM + "module load x\nlogsDir=$LOGS_DIR\nHOST1=a\n./a $HOST2 $logsDir\n"),
    ("misspelt-variable", SLURM + ". ./settings\nNAMES=a\n./a $NAME $NAMES\n"),
    ("misspelt-variable", SLURM + "declare -A a\nNODES=1\n./a ${a[NODE]} $NODES\n"),  # a key
    ("misspelt-variable", SLURM + "module load x\nNODES=1\nn=$((NODE = 2, NODE + 1))\n./a $n $NODES\n"),
    ("unchecked-variable", SLURM + '[ -z "$SEED" ] && exit 1\n./a $SEED ${FOLD:-1} $SCRATCH\n'),
    ("unchecked-variable", SLURM + "f() { echo $1; }\nwhile read -r LINE; do f $LINE; done < x\n"),
    ("unchecked-variable", SLURM + "#SBATCH --account=$ACCT\nsrun ./a --name=$MODEL\n"),
    ("unchecked-variable", SLURM + "#SBATCH --account=@account@\nsrun ./a --name=$MODEL\n"),
    ("unchecked-variable", SLURM + ". ./env.sh\nsrun ./a $DATA_DRI\n"),
    ("unchecked-variable", SLURM + "D=<path>\nN=3\nsrun ./a --data=$D --n=$N\n"),
    ("unchecked-variable", SLURM + "srun ./a --data=$VSC_DATA/x --tmp=$SNIC_TMP\n"),
    ("no-walltime", "#!/bin/bash\n#SBATCH -N 2\n# sbatch --time=1:00:00 job.sh\nsrun ./a\n"),
    ("no-walltime", '#!/bin/bash\n#SBATCH -N 2\nsrun ./a\nsbatch -t 60 "$0"\n'),
    ("no-walltime", "#!/bin/bash\n#SBATCH -N 2\n#SBATCH @OPTIONS@\nsrun ./a\n"),
    ("no-walltime", "#!/bin/bash\n#PBS -l nodes=2\nset -e\n#PBS -l walltime=1:00:00\nmpirun ./a\n"),
    ("unchecked-cd", PBS + "cd ~/src\necho start\npython ~/src/t.py --data /data/x -B a:/b\n"),
    ("unchecked-cd", PBS + "cd $X\nmodule load x\nnvidia-smi\n"),
    ("unchecked-cd", PBS + "D=/d/$S\ncd $D\n/opt/a/run.sh -n '16' -o \"${D}\" ${D}/x.nii\n"),
    ("unchecked-cd", "#!/bin/bash\n#BSUB -W 10\ncd ${LS_SUBCWD}\n./a x\n"),
    ("shared-log", SLURM + "#SBATCH --open-mode=append\n#SBATCH -e err.log\nhostname\n"),
    ("unwaited-background", SLURM + "nvidia-smi -l 5 > gpu.log &\nsrun ./a\n"),
    ("unwaited-background", SLURM + "srun ./server &\nsleep 5\neval $CMD\n"),
    ("hostname-master", SLURM + "export MASTER_ADDR=$(hostname)\nsrun bash -c 'RANK=$SLURM_PROCID ./a'\n"),
    ("missing-node-rank", SLURM + "srun torchrun --nnodes 4 --rdzv_backend c10d t.py\n"),
    ("missing-master", SLURM + "srun torchrun --nnodes 4 --rdzv_backend c10d --rdzv_endpoint $M t.py\n"),
    ("missing-master", SLURM + "srun torchrun --nnodes 1 --rdzv_backend c10d t.py\n"),
    ("missing-master", SLURM + "srun torchrun --nnodes 4 --rdzv_backend c10d $MORE t.py\n"),
    (
        "missing-master",
        SLURM + "export PET_RDZV_ENDPOINT=$M\nsrun torchrun --nnodes 4 --rdzv_backend c10d t.py\n",
    ),
    ("missing-node-rank", SLURM + "ARGS=x\nsrun torchrun --nnodes 4 $DISTRIBUTED_ARGS t.py\n"),
    ("sleep-as-sync", SLURM + "./a 1 &\nsleep 5\n./a 1 &\nsleep 3600\n"),
    ("mkdir-exists", SLURM + "cd $SLURM_TMPDIR\nmkdir out\nrm -rf /x\nmkdir /x\n[ -d y ] || mkdir y\n"),
    ("skipped-cleanup", SLURM + "set -e\nmkdir x\ntrap 'rm -rf x' EXIT\nsrun ./a\nrm -rf x\n"),
    ("array-output", SLURM + "#SBATCH -a 1-9\n#SBATCH -o %x-%4a.out\n#SBATCH -e %j\nhostname\n"),
    ("appended-deepspeed-env", SLURM + "rm -f .deepspeed_env\necho A=1 >> .deepspeed_env\n"),
    (
        "shared-config",
        SLURM + "echo $X > c.$SLURM_JOB_ID.json\ncat c.$SLURM_JOB_ID.json\nnvidia-smi > a.cfg\n",
    ),
    ("bash-in-sh", SLURM.replace("/bin/bash", "/bin/sh") + "a=1\n. x\n[ $a = 1 ] && echo ${a:-2}\n"),
    ("used-port", SLURM + "PORT=$(comm -23 <(seq 2 9) <(ss -tan | awk '{print $4}') | shuf -n1)\n"),
    ("overwritten-path", SLURM + "ml gcc\nexport PATH=$A/src:$B/python:$PATH\nLD_LIBRARY_PATH=/x ./a\n"),
    ("rm-variable", SLURM + 'D=/scratch/$USER\nrm -rf "$D"/*\nrm -rf "${X:?}"/* $SLURM_JOB_ID/\n'),
    ("secret-in-script", SLURM + "export HF_TOKEN=hf_xxxxxxxxxxxxxxxxxxxx API_KEY=YOUR_KEY_1234567\n"),
    ("secret-in-script", SLURM + "export HF_TOKEN_PATH=/a/b1 PAD_TOKEN=abc123abc123abc\n./a --token $T\n"),
    ("secret-argument", SLURM + "echo $API_TOKEN | docker login --password-stdin\n./a $max_token $OLD_PWD\n"),
    ("fixed-interface", SLURM + 'echo "NCCL_SOCKET_IFNAME=$NCCL_SOCKET_IFNAME"\n'),
    ("fixed-interface", SLURM + "export NCCL_SOCKET_IFNAME=^lo,docker HCCL_SOCKET_IFNAME=^=docker0\n./a\n"),
    ("interface-list", SLURM + "export NCCL_SOCKET_IFNAME=^lo,docker HCCL_SOCKET_IFNAME==eth0,eth1\n./a\n"),
    ("interface-list", SLURM + "export GLOO_SOCKET_IFNAME=eth0 TP_SOCKET_IFNAME=$IFACE\n./a\n"),
    (
        "interface-list",
        SLURM + "mpirun --mca btl_tcp_if_include ib0,10.0.0.0/8 --mca btl_tcp_if_exclude lo ./a\n",
    ),
    ("old-nccl", SLURM + "mpirun -x TORCH_NCCL_BLOCKING_WAIT ./a $NCCL_BLOCKING_WAIT\n"),
    ("ssh-between-nodes", SLURM + "deepspeed --hostfile=h --launcher slurm t.py\nmpirun -f h ./a\n"),
    ("absent-count", SLURM + "n=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))\n"),
    ("compressed-number", SLURM + "torchrun --nproc_per_node $SLURM_GPUS_PER_NODE t.py\n"),
    (
        "compressed-number",
        SLURM.replace("gpus-per-node=4", "gpus-per-node=a100:4")
        + "torchrun --nproc_per_node ${SLURM_GPUS_PER_NODE#*:} t.py\n",
    ),
    (
        "container-shm",
        SLURM + "docker run --gpus all -v /dev/shm:/dev/shm img:1 python t.py --num_workers 8\n",
    ),
    ("container-shm", SLURM + "apptainer exec img.sif python t.py --num_workers 8\n"),
    ("counter-errexit", SLURM + "set -e\nn=0\nwhile sleep 1; do ((n++)) || true; done\n"),
    ("counter-errexit", SLURM + "set -e\nn=1\nwhile sleep 1; do ((n++)); done\n"),
    ("counter-errexit", SLURM + "n=0\nwhile sleep 1; do ((n++)); done\n"),
    ("counter-errexit", SLURM + "set -e\nexport n=`expr $i / 1`\nm=$(expr $i + 1)\necho `expr $i / 2`\n"),
    ("counter-errexit", SLURM + "set -e\nn=`expr $i / 1` || true\nif ((n = i - 1)); then ls; fi\n"),
    ("counter-errexit", SLURM + 'set -e\nn=7\nlet "m = $n - 1"\n'),
    ("nounset-environment", SLURM + "set -u\nexport PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}/x\nsrun ./a\n"),
    (
        "nounset-environment",
        SLURM + "set -u\nexport PYTHONPATH=$HOME/lib\nexport PYTHONPATH=$PYTHONPATH:/x\nsrun ./a\n",
    ),
    ("ranks-mismatch", SLURM + "srun -n 1 --gres=gpu:2 torchrun --standalone --nproc-per-node=2 t.py\n"),
    ("hostfile-value", SLURM + "mpirun -np 8 --host $(scontrol show hostnames | paste -sd,) ./a\n"),
    ("hostfile-value", PBS + "mpirun -np 8 --hostfile $PBS_NODEFILE ./a\n"),
    ("early-expansion", SLURM + "srun bash -c './a > log.$SLURM_PROCID'\n"),
    ("low-port", SLURM + "export MASTER_PORT=$((10000 + ${SLURM_JOB_ID: -4}))\nsrun python t.py\n"),
    ("low-port", SLURM + "export MASTER_PORT=1${SLURM_JOB_ID: -4}\nsrun python t.py\n"),
    ("low-port", SLURM + "export MASTER_PORT=$((RANDOM % 1000 + 20000))\nsrun python t.py\n"),
    ("low-port", SLURM + "torchrun --standalone --master-port 0 t.py\n"),
    ("trap-exec", SLURM + "trap 'rm -rf $T' EXIT\nexec > log 2>&1\nsrun ./a\n"),
    ("trap-exec", SLURM + "trap 'rm -rf $T' EXIT\nsrun bash -c 'exec ./a'\n"),
    ("trap-exec", SLURM + "trap '' HUP\nexec srun ./a\n"),
    ("trap-exec", SLURM + 'trap "save $X" USR1\nsrun ./a &\nwait\nexec sbatch "$0"\n'),
    ("single-wait", SLURM + 'f() {\nexit 0\n}\ntrap "f $X" USR1\nsrun ./a &\nwait $!\n'),
    ("endless-wait", SLURM + "tail -f x.log &\nm=$!\nsrun python a.py\nkill $m\nwait\n"),
    ("endless-wait", SLURM + "nvidia-smi > g.log &\nsrun python a.py &\nwait\n"),
    ("endless-wait", SLURM + "tail -f x.log &\nsrun python a.py &\nwait $!\n"),
    ("node-total", PBS + "mpirun -np $((4 * NCPUS)) ./a\n"),
    ("node-total", SLURM + "srun -N 1 -n $SLURM_NTASKS_PER_NODE ./a\n"),
    ("node-total", SLURM.replace("nodes=4", "nodes=1") + "mpirun -np $SLURM_CPUS_ON_NODE ./a\n"),
    (
        "array-range",
        SLURM.replace("-o x-%j.out", "-a 0-9") + "f=$(sed -n $((SLURM_ARRAY_TASK_ID + 1))p list)\n./a $f\n",
    ),
    (
        "array-range",
        SLURM.replace("-o x-%j.out", "-a 1-9") + "f=$(sed -n ${SLURM_ARRAY_TASK_ID}p list)\n./a $f\n",
    ),
    (
        "standalone-nodes",
        SLURM + "srun bash -c 'deepspeed --no_ssh --node_rank $SLURM_NODEID --hostfile h t.py'\n",
    ),
    (
        "remote-directory",
        PBS
        + "cat > r.sh <<E\ncd $PWD\ntorchrun --nnodes=4 t.py\nE\nfor h in $(uniq $PBS_NODEFILE); do pbs_tmrsh $h bash -l $PWD/r.sh & done\n",
    ),
    ("task-devices", NO_GPUS + f"srun --gpus-per-task=1 --gpu-bind=none bash -c '{BY_LOCAL}'\n"),
    ("task-devices", NO_GPUS + OWN_FUNCTION),
    ("standalone-nodes", SLURM + "srun torchrun --nnodes=1 --nproc-per-node=1 t.py --seed $SLURM_PROCID\n"),
    ("bare-hostfile", HOSTFILE + "python hosts.py > $H\n" + DEEPSPEED),
    ("nested-tasks", HOSTFILE + "srun deepspeed --hostfile $H --no_ssh --node_rank=$R t.py\n"),
    ("blocking-steps", STEPS + "for i in 1 2; do srun -n1 -c4 --gpus=1 ./a $i & done\nwait\n"),
    ("blocking-steps", STEPS + "srun -n1 -c4 ./a & srun -n1 -c4 --gres=none ./b &\nwait\n"),
    (
        "blocking-steps",
        ONE_TASK
        + "#SBATCH -c 8\nsrun -N1 -n1 -c8 -w $A ./x --block &\nsrun --overlap -N1 -n1 -w $A python t.py\n",
    ),
    (
        "ranks-mismatch",
        SLURM + "ray start --head\nvllm serve m --tensor-parallel-size 4 --pipeline-parallel-size 4\n",
    ),
    (
        "nodes-mismatch",
        ONE_TASK
        + "f() {\n local n=$1\n [ $2 ] && n=4\n srun torchrun --nnodes=$n --rdzv-backend=c10d --rdzv-endpoint=$M:29400 t.py\n}\nf 8 1\n",
    ),
    ("misspelt-variable", SLURM + "source /opt/x/env.sh\nOUTPUT_DIR=/x\nsrun ./a $OUTPUT_DIR $OUPUT_DIR\n"),
    ("blank-after-backslash", SLURM + "srun ./a my\\ #1\necho x\n"),
    ("literal-variable", SLURM + "#SBATCH -A {{ account }}\n#SBATCH -p {{ queue }}\nsrun ./a\n"),
    (
        "container-driver",
        SLURM + "srun apptainer exec --nv i.sif python t.py\nsrun apptainer exec --nv i.sif vllm serve m\n",
    ),
    (
        "random-rendezvous",
        ONE_TASK + f'srun bash -c "torchrun --rdzv_id $RANDOM --role \\$SLURM_NODEID {JOINED}"\n',
    ),
    ("random-rendezvous", ONE_TASK + f'srun bash -c "torchrun --rdzv_id $(date +%s) {JOINED}"\n'),
    (
        "sorted-hosts",
        PBS
        + "sort -u $PBS_NODEFILE | while read h; do echo $h slots=4; done > hosts.$PBS_JOBID\nexport MASTER_ADDR=$(head -1 hosts.$PBS_JOBID | cut -d' ' -f1)\n",
    ),
    ("launcher-binding", PBS + "mpirun -np 4 --map-by ppr:1:node --bind-to none torchrun --nnodes=4 t.py\n"),
    ("ranks-mismatch", SLURM + "#SBATCH --cpus-per-task=8\nsrun -c 8 ./a\nsrun -n 1 -c 32 ./b\n"),
    ("ranks-mismatch", SLURM + "srun -c 12 ./a\n"),
    (
        "shared-port",
        SLURM
        + "for i in 1 2; do srun --exact -n1 torchrun --nnodes=1 --master_port=29500 t.py & done\nwait\n",
    ),
    ("world-size", SLURM + "srun bash -c 'WORLD_SIZE=16 RANK=$SLURM_PROCID python t.py'\n"),
    (
        "container-files",
        SLURM + "srun --container-image=i --container-mounts=/fsx:/fsx python $PWD/src/t.py\n",
    ),
    *(
        (
            "fixed-node-rank",
            PBS
            + f'n=0\n{loop}; do\n  ssh $h "torchrun --nnodes=4 --node-rank $n --master-addr $M t.py" &\n  n=$((n+1))\ndone\nwait\n',
        )
        for loop in ("for h in $(sort -u $PBS_NODEFILE)", "sort -u $PBS_NODEFILE | while read -r h")
    ),
    ("fixed-node-rank", ONE_TASK + f"srun torchrun --node-rank=0 --nproc-per-node=4 {JOINED}\n"),
    (
        "shared-port",
        STEPS
        + "for i in {1..1}; do srun --exact -n1 torchrun --nnodes=1 --master_port=29500 t.py & done\nwait\n",
    ),
    (
        "shared-port",
        STEPS
        + "for ((i=0; i<N; i++)); do srun -n1 torchrun --nnodes=$N --node-rank=$i --master_port=29500 t.py & done\nwait\n",
    ),
    *(
        (
            rule,
            STEPS
            + "".join(f"torchrun --nnodes=2 --node-rank={i} --master-addr=localhost t.py &\n" for i in (0, 1))
            + "wait\n",
        )
        for rule in ("shared-port", "nodes-mismatch")
    ),
    ("inert-directive", "#!/bin/bash\n${CDO}/cdo diffn a b\n"),
    ("world-size", PBS + "mpiexec -n 8 --ppn 8 bash -c 'RANK=$PALS_RANKID WORLD_SIZE=8 python t.py'\n"),
    (
        "remote-directory",
        PBS
        + "cd $PBS_O_WORKDIR\nfor h in $(uniq $PBS_NODEFILE); do ssh $h '. ./env.sh; torchrun --standalone train.py' & done\n",
    ),
    (
        "unpassed-variable",
        PBS
        + f"M=$(hostname)\ncat > r.sh <<E\ncd /x\ntorchrun {JOINED}\nE\nfor h in $(uniq $PBS_NODEFILE); do pbs_tmrsh $h bash $PWD/r.sh & done\n",
    ),
    (
        "unpassed-variable",
        PBS
        + f"M=$(hostname)\ncat > r.sh <<'E'\nM=$1\ntorchrun {JOINED}\nE\nfor h in $(uniq $PBS_NODEFILE); do ssh $h bash r.sh $M & done\n",
    ),
    ("shared-hostfile", HOSTFILE + "scontrol show hostnames | sed 's/$/ slots=4/' > \"$H\"\n" + DEEPSPEED),
]


@pytest.mark.parametrize(("rule", "script"), FOUND)
def test_the_mistake_is_found(rule: str, script: str) -> None:
    assert rule in {found.rule for found in check(script.encode())}


@pytest.mark.parametrize(("rule", "script"), QUIET)
def test_what_only_looks_like_it_is_not(rule: str, script: str) -> None:
    assert rule not in {found.rule for found in check(script.encode())}


def test_a_message_does_not_repeat_the_secret() -> None:
    found = check((SLURM + f"export HF_TOKEN={KEY}\nwandb login {KEY}\n").encode())
    assert [one.line for one in found if one.rule == "secret-in-script"] == [7, 8]
    texts = [form(found) for form in FORMATS.values()]
    assert KEY not in "".join([*texts, for_terminal(found, colours=True)])


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("srun ./a &\nsrun ./b &\n./c > log &\n", [7, 8, 9]),
        ("srun ./a &\nsrun ./b\nsrun ./c &\necho x\n", [9]),
        ("srun ./a &\nsrun ./b &\nwait\n", []),
    ],
)
def test_each_process_in_the_background_is_named(body: str, lines: list[int]) -> None:
    found = check((SLURM + body).encode())
    assert [one.line for one in found if one.rule == "unwaited-background"] == lines


@pytest.mark.parametrize(("words", "rules"), [("", {"config-batch"}), ("--exclude n2:3", set())])
def test_a_filter_changes_the_ranks_of_a_batch(words: str, rules: set[str], tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text(
        '{"train_batch_size": 56, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1}'
    )
    text = SLURM.replace("nodes=4", "nodes=2") + f"deepspeed {words} t.py --deepspeed_config d.json\n"
    found = {one.rule for one in check(text.encode(), folder=str(tmp_path))}
    assert found & {"config-batch"} == rules


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("export NCCL_SOCKET_IFNAME=eth0", "exclude the wrong interfaces: ^lo,docker"),
        ("export HCCL_SOCKET_IFNAME=eth0", "exclude the wrong interfaces: ^lo,docker"),
        ("export GLOO_SOCKET_IFNAME=eth0", "let each node set the name of its own"),
        ("export TP_SOCKET_IFNAME=eth0", "let each node set the name of its own"),
        (
            "export OMPI_MCA_btl_tcp_if_include=eth0",
            "exclude the wrong interfaces: btl_tcp_if_exclude lo,docker0",
        ),
        (
            "mpirun --mca oob_tcp_if_include eth0 ./a",
            "exclude the wrong interfaces: btl_tcp_if_exclude lo,docker0",
        ),
    ],
)
def test_what_to_do_about_an_interface(line: str, fix: str) -> None:
    """Gloo takes names alone: it fails with names to exclude."""
    [found] = [one for one in check(f"{SLURM}{line}\n./a\n".encode()) if one.rule == "fixed-interface"]
    assert fix in found.fix
    assert ("^" in found.fix) == ("CCL" in line)


WORK = {
    "./simulate --steps 3": True,
    "julia -t 8 model.jl": True,
    "bash run.sh": True,
    "Rscript fit.R": True,
    "matlab -batch main": True,
    '"$EXE" input': True,
    "apptainer exec --nv i.sif ./simulate": True,
    "blastn -query q.fa -db nt": True,
    "cp -r results /archive": False,
    "bash --version": False,
}


@pytest.mark.parametrize(("command", "found"), WORK.items())
def test_the_work_of_a_job_may_be_any_program(command: str, found: bool) -> None:
    """Its status is that of echo, whatever its program does."""
    rules = {one.rule for one in check(f"{SLURM}{command}\necho finished\n".encode())}
    assert ("no-errexit" in rules) == found


@pytest.mark.parametrize(
    ("lines", "levels"),
    [
        ("srun ./a \\ \n  --x 1\n", ["error"]),
        ("srun ./a --x=1 \\\t\n    t.py\n", ["error"]),
        ("./a | \\ \n  ./b\n", ["error"]),
        ("srun ./a \\ \n    ./b\n", ["error"]),
        ("srun ./a \\ \n./b\n", ["warning"]),
        ("srun ./a \\ \n\necho\n", ["warning"]),
        ("srun ./a \\\n  --x 1\n# x \\ \nawk '{ \\ \n}' f\ncat <<E\n \\ \nE\nx=\"a \\ \n\"\n", []),
        ("ls a\\\\ \n", []),
    ],
)
def test_blanks_behind_backslashes(lines: str, levels: list[str]) -> None:
    found = check((SLURM + lines).encode())
    assert [one.severity for one in found if one.rule == "blank-after-backslash"] == levels


ENV = "NAME=1\nout_dir=x\n[ -n x ] && source ./more.sh\nread -r line < f\n"
VARIABLES = [
    (SLURM, "echo $SLRUM_JOB_ID", {("misspelt-variable", "$SLURM_JOB_ID")}),
    (SLURM, "./a $SLURM_PARTITION", {("misspelt-variable", "$SLURM_JOB_PARTITION")}),
    (SLURM, ". /site/env\necho ${SLURM_ARRAY_TASKID}", {("misspelt-variable", "$SLURM_ARRAY_TASK_ID")}),
    (SLURM, "echo $SLURM_JOBID $SLURM_JOB_ID $SLURM_NODEID $SLURM_JOB_QOS $SLURM_MY_OWN", set()),
    (SLURM, "export SLURM_NODE_ID=1\necho $SLURM_NODE_ID", set()),
    (PBS, "module load x\ncd $PBS_O_WORKIDR", {("misspelt-variable", "$PBS_O_WORKDIR")}),
    (SLURM, "NAMES=a\nsource env.sh\n./a $NAME $NAMES $DEEP $line", set()),
    (SLURM, "NAMES=a\nsource /site/env.sh\n./a $NAME $NAMES", set()),
    (SLURM, "source ./env.sh\n./a $out_dri", {("unset-variable", "out_dir")}),
    (SLURM, "$cores=1,2\n./a $cores", {("unset-variable", "write cores= without the dollar sign")}),
    (SLURM, "module load x\nsource $PWD/env.sh\n./a $outdir", {("misspelt-variable", "$out_dir")}),
]


@pytest.mark.parametrize(("head", "body", "expected"), VARIABLES)
def test_names_that_are_almost_those_of_variables(
    head: str, body: str, expected: set[tuple[str, str]], tmp_path: Path
) -> None:
    (tmp_path / "env.sh").write_text(ENV)
    (tmp_path / "more.sh").write_text("export DEEP=1\n")
    found = check((head + body + "\n").encode(), folder=str(tmp_path))
    names = ("misspelt-variable", "unset-variable")
    texts = [(one.rule, f"{one.reason} {one.fix}") for one in found if one.rule in names]
    assert len(texts) == len(expected)
    assert all(any(rule == one and name in text for one, text in texts) for rule, name in expected)


@pytest.mark.parametrize(
    ("rule", "source", "launch"),
    [
        ("rank-number", BY_TASK, "srun --ntasks-per-node=1 torchrun --nnodes=4 --nproc-per-node=4 {}"),
        ("rank-number", BY_TASK, "mpirun -np 16 python {}"),
        ("rank-number", "import lightning\nlightning.Trainer()\n", "mpirun -np 16 python {}"),
        ("mpi-discovery", "import deepspeed\ndeepspeed.init_distributed()\n", "mpirun -np 16 python {}"),
        (
            "task-devices",
            "import horovod.torch as hvd\nimport torch\ntorch.cuda.set_device(hvd.local_rank())\n",
            "srun --gpus-per-task=1 python {}",
        ),
    ],
)
def test_the_program_shows_the_mistake(tmp_path: Path, rule: str, source: str, launch: str) -> None:
    (tmp_path / "t.py").write_text(source)
    text = f"{SLURM}{launch.format('t.py')}\n"
    assert rule in {found.rule for found in check(text.encode(), folder=str(tmp_path))}


def test_a_config_of_deepspeed_that_the_script_writes_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(
        '{"train_batch_size": 9, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1}'
    )
    launch = "accelerate launch --num_machines 4 --num_processes 16 --deepspeed_config_file ds.json t.py\n"
    for before, wrong in (("", True), ("sed s/a/b/ in > ds.json\n", False)):
        found = check(f"{SLURM}{before}{launch}".encode(), folder=str(tmp_path))
        assert ("config-batch" in {one.rule for one in found}) == wrong


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "srun --ntasks-per-node=1 torchrun --nnodes=6 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$M:29 t.py",
            "its 16 ranks wait for ranks 16 to 23",
        ),
        (
            "srun --ntasks-per-node=1 bash -c 'torchrun --nnodes=4 --nproc-per-node=4 --node-rank=0 --master-addr=$M t.py'",
            "each starts ranks 0 to 3 of 16",
        ),
        (
            "srun bash -c 'RANK=$SLURM_LOCALID python t.py'",
            "ranks 0 to 3 start 4 times, and wait forever for ranks 4 to 15",
        ),
        ("srun bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=18 python t.py'", "wait forever for ranks 16 to 17"),
        ("srun bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=4 python t.py'", "ranks 4 to 15 are refused"),
    ],
)
def test_a_hang_names_the_ranks_that_wait(body: str, words: str) -> None:
    assert any(words in found.reason for found in check(f"{SLURM}{body}\n".encode()))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("srun ./a --x 1 \\ # first\n  --y 2", "it and the words behind it are arguments, and the next line"),
        ("A=(\n  --x 1 \\ # first\n  --y 2\n)", "it and the words behind it are arguments"),
        ("A=(\n  --x 1 \\ \n  --y 2\n)", "the array gets an item that is a blank"),
    ],
)
def test_what_is_behind_a_backslash_and_a_blank(text: str, words: str) -> None:
    found = [one.reason for one in check(f"{SLURM}{text}\n".encode()) if one.rule == "blank-after-backslash"]
    assert len(found) == 1
    assert words in found[0]


@pytest.mark.parametrize(("first", "level"), [("#!/bin/bash", "error"), ("# commands", "note")])
def test_a_blank_after_a_backslash_in_a_collection_of_commands(first: str, level: str) -> None:
    found = check(f"{first}\na=<path>\n(b\nrsync a \\ # from\n  b\n".encode())
    assert [one.severity for one in found if one.rule == "blank-after-backslash"] == [level]


def test_a_local_rank_of_0_is_the_only_device(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("import os, torch\ntorch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n")
    for local, wrong in (("0", False), ("$SLURM_LOCALID", True)):
        text = f"{SLURM}srun --gpus-per-task=1 bash -c 'RANK=$SLURM_PROCID LOCAL_RANK={local} python t.py'\n"
        found = check(text.encode(), folder=str(tmp_path))
        assert ("task-devices" in {one.rule for one in found}) == wrong
