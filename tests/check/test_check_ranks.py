"""What ranks get, in other words than those of the rules' own scripts: mistakes are found, what is right is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobgen.check.checker import check

SLURM = """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
"""
NODES = SLURM.replace("node=4\n#SBATCH --gpus", "node=1\n#SBATCH --gpus")
ONE = SLURM.replace("nodes=2", "nodes=1")
TASK = "#!/bin/bash\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=2\n#SBATCH --time=01:00:00\n"
PARTS = TASK + "#SBATCH hetjob\n#SBATCH --ntasks=8\n"
TRAP = ONE.replace("#SBATCH --time", "#SBATCH --signal=B:USR1@60\n#SBATCH --time")
REQUEUE = ONE.replace("#SBATCH --time", "#SBATCH --requeue\n#SBATCH --time")
MIG = "#!/bin/bash\n#SBATCH --gres=gpu:1g.10gb:4\n#SBATCH --time=01:00:00\n"
WHOLE = NODES.replace("#SBATCH --time", "#SBATCH --exclusive\n#SBATCH --time")
EIGHT = SLURM.replace("ntasks-per-node=4", "ntasks-per-node=8")
PBS = "#!/bin/bash\n#PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4\n#PBS -l walltime=01:00:00\n"
TORQUE = "#!/bin/bash\n#PBS -l nodes=4:ppn=4:gpus=4\n#PBS -l walltime=01:00:00\n"
RUN = "torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$M:2000 t.py\n"
SET = "export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID; python train.py"
PORT_OF_PBS = "#!/bin/bash\n#PBS -J 0-9\n#PBS -l select=1:ncpus=8:ngpus=2\nexport MASTER_PORT=$((20000 + ${{PBS_JOBID%%[!0-9]*}} % 9000{}))\ntorchrun --nproc-per-node=2 t.py\n"
OPEN = PBS + "module load openmpi\n"
DEBUG = "export NCCL_DEBUG=INFO\n"
REMOTE = f"'cd $PWD; {RUN.strip()}'"

QUOTED = 'srun bash -c "torchrun --nnodes=2 --nproc-per-node=4 --master_addr="$M" {more} t.py"\n'

WHOLE = NODES.replace("#SBATCH --time", "#SBATCH --exclusive\n#SBATCH --time")
OUT = "OUT=/scratch/run\n"
BOTH = "export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID LOCAL_RANK=$SLURM_LOCALID"
ADDRESS = "H=($(scontrol show hostnames))\n"
MANY = SLURM + "export WORLD_SIZE=$SLURM_NNODES\n"

FOUND = [
    ("too-many-threads", WHOLE + "export OMP_NUM_THREADS=8\nsrun -c 8 " + RUN),
    (
        "ranks-mismatch",
        WHOLE
        + "export G=4\nsrun bash -c 'accelerate launch --num_processes $G --num_machines 2 --machine_rank $SLURM_NODEID t.py'\n",
    ),
    ("local-master", NODES + "A=127.0.0.1:6379\nsrun -w $W ray start --address=$A --block &\nwait\n"),
    ("local-master", NODES + 'srun -n 1 -w $W ray start --address "localhost:$P" --block &\nwait\n'),
    ("master-address", NODES + "A=$SLURM_NODELIST\nsrun ray start --address $A:6379 --block &\nwait\n"),
    ("unpassed-variable", PBS + 'export M=a\nssh $H "cd $PWD; torchrun --master_addr=\\$M t.py" &\nwait\n'),
    ("unpassed-variable", PBS + 'M=a\nssh $H "echo \\${M}" &\nwait\n'),
    (
        "unpassed-variable",
        SLURM
        + "I=i.sif\nexport MASTER_ADDR=$(hostname)\nsrun bash -c 'RANK=$SLURM_PROCID apptainer exec --cleanenv '\"$I\"' python t.py'\n",
    ),
    ("ranks-mismatch", ONE + "CUDA_VISIBLE_DEVICES=0,1,2,3 torchrun --nproc-per-node=2 t.py\n"),
    ("ranks-mismatch", ONE + "CUDA_VISIBLE_DEVICES=0 torchrun --nproc-per-node=1 t.py\n"),
    ("rank-number", SLURM + "srun bash -c 'RANK=$((SLURM_NODEID * 8 + SLURM_LOCALID)) python t.py'\n"),
    (
        "rank-number",
        SLURM + "export G=2\nsrun bash -c 'RANK=$(($SLURM_NODEID*$G+$SLURM_LOCALID)) python t.py'\n",
    ),
    ("ranks-mismatch", ONE + "export MASTER_ADDR=localhost\nsrun --gpus=1 python t.py\n"),
    ("world-size", MANY + "srun bash -c 'RANK=$SLURM_PROCID python t.py'\n"),
    ("task-devices", SLURM + f"srun bash -c '{BOTH}; python t.py'\n"),
    ("task-devices", SLURM + "srun bash -c 'LOCAL_RANK=$SLURM_LOCALID CUDA_VISIBLE_DEVICES=$SLURM_LOCALID python t.py'\n"),
    ("hostname-master", NODES + "cat > n.sh <<'E'\nA=$(hostname):2000\nexec torchrun --nnodes=2 --rdzv_endpoint=$A t.py\nE\nsrun bash n.sh\n"),
    ("rm-at-requeue", REQUEUE + OUT + 'new() {\n    rm -rf "$OUT"\n}\nnew\nsrun python t.py --save "$OUT"\n'),
    ("rm-at-requeue", REQUEUE + OUT + 'rm -rf "$OUT/c"\nsrun python t.py --save $OUT/c\n'),
    ("lost-output", ONE + "C=/tmp/$USER/c\nmkdir -p $C\nsrun python t.py --checkpoint_dir $C\n"),
    ("first-node-files", SLURM + 'D=/tmp/d.$SLURM_JOB_ID\nput() {\n    tar -xf d.tar -C "$1"\n}\nput "$D"\nsrun python t.py --data $D\n'),
    ("blocking-steps", NODES + "srun nvidia-smi dmon > dmon.log &\nsrun " + RUN),
    ("blocking-steps", SLURM + "srun -n 8 -c 8 python serve.py &\nsrun -n 1 python t.py\n"),
    ("blocking-steps", ONE + "srun python serve.py &\nsrun python t.py\n"),
    ("shared-devices", ONE + "CUDA_VISIBLE_DEVICES=0,1 vllm serve m &\nCUDA_VISIBLE_DEVICES=1,2 torchrun --nproc-per-node=2 t.py\n"),
    ("function-program", SLURM + "f() {\n    python t.py\n}\nexport -f f\nsrun -n 4 f\n"),
    ("function-program", SLURM + "f() {\n    python t.py\n}\ntimeout 1h f\n"),
    ("function-program", SLURM + "f() {\n    python t.py\n}\nls | xargs -n 1 f\n"),
    ("task-log", SLURM + "srun bash -c 'L=a/$SLURM_JOB_ID.log; python t.py &> $L'\n"),
    ("task-log", NODES + f"srun bash -c '{RUN.strip()} > t.log'\n"),
    ("first-node-only", NODES + "srun nvidia-smi\nmpirun hostname\n" + RUN),
    ("first-node-only", NODES + "srun -n 1 python prepare.py\nnumactl -N 0 " + RUN),
    ("first-node-only", PBS + "mpirun -np 8 ./bench\naccelerate launch --num_machines 2 t.py\n"),
    ("no-launcher", SLURM + "python prepare.py\ncd src\npython train.py trainer.devices=4\n"),
    ("no-launcher", PBS + "singularity exec i.sif python finetune.py\n"),
    ("standalone-nodes", NODES + "srun -N 2 python -m torch.distributed.run --nproc_per_node 4 t.py\n"),
    ("standalone-nodes", NODES + "srun bash -c 'torchrun --standalone --nproc-per-node=4 t.py'\n"),
    ("master-address", NODES + "H=$SLURM_JOB_NODELIST\nexport MASTER_ADDR=$H\nsrun python t.py\n"),
    ("master-address", NODES + "export MASTER_ADDR=${SLURM_NODELIST%%,*}\nsrun python t.py\n"),
    (
        "master-address",
        NODES + "N=($(scontrol show hostnames))\nexport MASTER_ADDR=${N[@]}\nsrun python t.py\n",
    ),
    ("master-address", NODES + "export MASTER_ADDR=`echo $SLURM_NODELIST | cut -f1 -d,`\nsrun python t.py\n"),
    ("master-address", NODES + "export MASTER_ADDR=$(hostname -I)\nsrun python t.py\n"),
    ("ephemeral-port", NODES + "P=$((33000 + RANDOM % 20000))\nexport MASTER_PORT=$P\nsrun python t.py\n"),
    ("random-rendezvous", NODES + "srun bash -c 'MASTER_PORT=$(shuf -i 2000-9000 -n 1) python t.py'\n"),
    ("task-devices", SLURM + f"srun --gpus-per-task=1 bash -c '{SET}'\n"),
    ("task-devices", SLURM + f"srun --gpu-bind=map_gpu:0,1,2,3 bash -c '{SET}'\n"),
    ("visible-devices", ONE + "CUDA_VISIBLE_DEVICES=0,1 torchrun --standalone --nproc-per-node=4 t.py\n"),
    (
        "visible-devices",
        EIGHT + "export CUDA_VISIBLE_DEVICES=0,1,2,3\nsrun -u python t.py --deepspeed_config d\n",
    ),
    ("ranks-mismatch", EIGHT + "export MASTER_ADDR=$(hostname)\nsrun python t.py\n"),
    ("ranks-mismatch", SLURM + "srun -n 8 -c 16 ./solver\n"),
    ("ranks-mismatch", NODES + "srun bash -c 'accelerate launch --num_machines 2 --num_processes 3 --machine_rank $SLURM_NODEID t.py'\n"),
    ("ranks-mismatch", SLURM + "horovodrun -np 16 -H n1:8,n2:8 python t.py\n"),
    ("ranks-mismatch", SLURM + "horovodrun --num-proc 8 --hosts=n1:2,n2:2 python t.py\n"),
    ("ranks-mismatch", PBS.replace(":mpiprocs=4", "") + "mpirun -np 128 ./solver\n"),
    ("nodes-mismatch", NODES + "srun -n 1 " + RUN),
    ("nodes-mismatch", NODES + "srun -N 1 bash -c '" + RUN.strip() + "'\n"),
    ("nodes-mismatch", SLURM + "mpirun -np 4 --map-by ppr:4:node python t.py\n"),
    ("nodes-mismatch", PBS + "mpiexec -n 4 --ppn 4 python t.py\n"),
    ("random-rendezvous", NODES + "srun bash -c 'python t.py --coordinator_address=\"$H:$((2000 + RANDOM % 90))\" --rank $SLURM_PROCID'\n"),
    ("random-rendezvous", NODES + "srun bash -c 'python t.py --dist-url tcp://$H:$RANDOM --rank $SLURM_PROCID'\n"),
    ("random-rendezvous", NODES + "srun bash -c 'p=$((RANDOM % 9000 + 20000)); torchrun --nnodes=2 --master_port=$p t.py'\n"),
    ("large-port", NODES + "PORT=$((10000 + SLURM_JOB_ID))\nexport MASTER_PORT=$PORT\nsrun python t.py\n"),
    ("large-port", NODES + "srun " + RUN.replace(":2000", ":70000")),
    ("fixed-interface", SLURM + "export NCCL_SOCKET_IFNAME=lo\nsrun python t.py\n"),
    ("container-driver", NODES + "srun apptainer exec -B /data i.sif " + RUN),
    ("container-driver", ONE + "singularity run --cleanenv $IMAGE python t.py\n"),
    ("idle-component", PARTS + "srun python actor.py\n"),
    ("idle-component", PARTS + "srun --het-group=0 python actor.py\n"),
    ("first-node-files", NODES + "D=/tmp/d.$SLURM_JOB_ID\ntar -xf d.tar -C $D\nsrun python t.py --data $D\n"),
    ("early-expansion", SLURM + "cat > rank.sh <<END\nexport RANK=$SLURM_PROCID\npython t.py\nEND\nsrun bash rank.sh\n"),
    ("rm-variable", ONE + "trap 'rm -rf $CACHE/*' EXIT\npython t.py\n"),
    ("program-threads", TASK + "python fit.py --n_jobs=32\n"),
    ("program-threads", TASK + "T=16\nsrun samtools sort --threads $T a.bam\n"),
    ("program-threads", TASK + "java -jar trim.jar -threads 8 a.fq\n"),
    ("program-threads", PBS + "mpirun -np 8 python t.py --num_workers 32\n"),
    ("program-threads", NODES + RUN.replace("t.py", "t.py --num_workers 8")),
    ("visible-devices", ONE + "export HIP_VISIBLE_DEVICES=0\naccelerate launch --num_processes 2 t.py\n"),
    ("unexported-variable", ONE + "NCCL_DEBUG=INFO\nsrun python t.py\n"),
    ("unexported-variable", SLURM + "MASTER_PORT=2000\necho $MASTER_PORT\nsrun python t.py\n"),
    (
        "export-none",
        SLURM.replace("#SBATCH --time", "#SBATCH --export=A=1\n#SBATCH --time") + "ml x\nsrun ./a\n",
    ),
    ("export-names", SLURM + "srun --export=NCCL_DEBUG=INFO python t.py\n"),
    ("export-names", SLURM + 'srun --export=MASTER_ADDR="$H",PORTS=${P:-1,2} python t.py\n'),
    ("export-names", SLURM + "module load cuda\nsrun --export=NONE python t.py\n"),
    ("unpassed-variable", SLURM + DEBUG + "srun --export=NONE python t.py\n"),
    ("unpassed-variable", SLURM + DEBUG + "srun --export=PATH,HOME python t.py\n"),
    ("unpassed-variable", OPEN + DEBUG + "mpirun -np 8 --mca plm rsh python t.py\n"),
    ("unpassed-variable", OPEN + DEBUG + "mpirun -mca plm_rsh_agent pbs_tmrsh.sh -x PATH python t.py\n"),
    ("unpassed-variable", OPEN + DEBUG + "export OMPI_MCA_plm_rsh_agent=ssh\nmpirun -np 8 ./a\n"),
    ("unpassed-variable", OPEN + DEBUG + "mpirun -np 8 -x PATH -x LD_LIBRARY_PATH ./a\n"),
    ("unpassed-variable", PBS + DEBUG + "mpiexec.hydra -genvnone -n 8 -ppn 4 ./a\n"),
    ("unpassed-variable", PBS + DEBUG + "mpirun -genvlist PATH,HOME -n 8 -ppn 4 ./a\n"),
    ("unpassed-variable", PBS + DEBUG + "mpirun -genvexcl NCCL_DEBUG -n 8 -ppn 4 ./a\n"),
    ("unpassed-variable", PBS + DEBUG + "mpiexec -n 8 --ppn 4 --envnone --env A=1 ./a\n"),
    ("unpassed-variable", PBS + DEBUG + f"for h in $H; do ssh $h {REMOTE} & done\n"),
    ("unpassed-variable", PBS + DEBUG + f'C={REMOTE}\npdsh -w $H "$C"\n'),
    ("unpassed-variable", PBS + DEBUG + f"clush -bw $H {REMOTE}\n"),
    ("unpassed-variable", PBS + DEBUG + f"pbsdsh -- bash -c {REMOTE}\n"),
    ("unpassed-variable", PBS + DEBUG + f"for h in $H; do pbs_tmrsh $h /bin/sh -c {REMOTE} & done\n"),
    ("unpassed-variable", PBS + DEBUG + f"for h in $H; do ssh $h bash <<E &\n{RUN}E\ndone\n"),
    ("too-many-threads", SLURM + "export OMP_NUM_THREADS=64\nsrun python t.py\n"),
    ("world-size", SLURM + f"export WORLD_SIZE=16\nsrun bash -c '{SET}'\n"),
    ("world-size", SLURM + "srun python train.py trainer.devices=8 trainer.num_nodes=2\n"),
    ("world-size", SLURM + "srun python train.py fit --trainer.devices 4 --trainer.num_nodes=4\n"),
    (
        "ranks-mismatch",
        NODES + "srun accelerate launch --num_machines 2 --num_processes 16 --rdzv_backend c10d t.py\n",
    ),
    (
        "hostfile-slots",
        NODES
        + "for h in $(scontrol show hostnames); do echo $h slots=8; done > hosts.$SLURM_JOB_ID\ndeepspeed --hostfile hosts.$SLURM_JOB_ID t.py\n",
    ),
    (
        "signal-without-trap",
        SLURM.replace("#SBATCH --time", "#SBATCH --signal=B:10@60\n#SBATCH --time") + "srun ./a\n",
    ),
    (
        "blocking-steps",
        ONE.replace("#SBATCH --cpus", "##SBATCH --cpus") + "srun -n1 nvidia-smi -l 60 &\nsrun python t.py\n",
    ),
    ("first-node-files", SLURM + "cp -r data $SLURM_TMPDIR\nsrun python t.py --data $SLURM_TMPDIR/data\n"),
    ("missing-node-rank", NODES + QUOTED.format(more="--master_port 20000")),
    ("srun-cpus", NODES + "srun python t.py --tag it's\n"),
    ("rm-in-ranks", PBS + "mpirun -np 8 bash -c 'rm -r out && python t.py'\n"),
    ("rank-number", SLURM + "srun bash -c 'RANK=$SLURM_LOCALID python t.py'\n"),
    ("rank-number", SLURM + 'srun bash -c "export RANK=\\$SLURM_NODEID; python t.py"\n'),
    ("rank-number", SLURM + "srun bash -c 'export WORLD_SIZE=${SLURM_NNODES}; python t.py'\n"),
    ("rank-number", SLURM + "srun bash -c 'export WORLD_SIZE=$SLURM_NTASKS_PER_NODE; python t.py'\n"),
    ("rank-number", SLURM + "srun bash -c 'CUDA_VISIBLE_DEVICES=$SLURM_PROCID python t.py'\n"),
    ("rank-number", SLURM + "srun bash -c 'python t.py --local_rank $SLURM_PROCID'\n"),
    ("rank-number", NODES + "srun bash -c 'torchrun --nnodes 2 --node_rank $SLURM_LOCALID t.py'\n"),
    ("rank-number", NODES + "srun bash -c 'accelerate launch --machine_rank=$SLURM_LOCALID t.py'\n"),
    ("rank-number", PBS + "mpiexec -n 8 -ppn 4 bash -c 'LOCAL_RANK=$PMI_RANK python t.py'\n"),
    ("rank-number", OPEN + "mpirun bash -c 'RANK=$OMPI_COMM_WORLD_LOCAL_RANK python t.py'\n"),
    ("early-expansion", PBS + "mpiexec -n 8 -ppn 4 python t.py --rank $PMI_RANK\n"),
    ("early-expansion", OPEN + "export LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK\nmpirun python t.py\n"),
    ("local-master", NODES + "srun torchrun --rdzv-endpoint localhost:$PORT --nnodes 2 t.py\n"),
    ("hostname-master", NODES + "srun bash -c 'MASTER_ADDR=$SLURMD_NODENAME python t.py'\n"),
    ("first-node-only", PBS + "horovodrun -np 8 python t.py\n"),
    ("first-node-only", SLURM + "horovodrun -np 8 -H localhost:8 python t.py\n"),
    ("remote-directory", NODES + f"for h in $H; do ssh $h {RUN.strip()} & done\n"),
    ("remote-directory", NODES + f'pdsh -w $H "module load x; {RUN.strip()}"\n'),
    ("too-many-threads", SLURM + "export OMP_NUM_THREADS=$(nproc)\nsrun python t.py\n"),
    ("too-many-threads", SLURM + 'export OMP_NUM_THREADS="$SLURM_CPUS_ON_NODE"\nsrun python t.py\n'),
    ("too-many-threads", SLURM + "export OMP_NUM_THREADS=32\nsrun lmp -in in.lj\n"),
    ("too-many-threads", SLURM + "srun gmx_mpi mdrun -ntomp 32 -s t.tpr\n"),
    ("unexported-variable", SLURM + f"M=$(hostname)\nsrun bash -c '{RUN.strip()}'\n"),
    ("unexported-variable", SLURM + "D=x\ncat > r.sh <<'E'\npython t.py $D\nE\nsrun bash r.sh\n"),
    ("visible-devices", NODES + f"srun --gpus-per-task=1 {RUN}"),
    ("nodes-mismatch", NODES.replace("nodes=2", "nodes=4") + f"srun {RUN}"),
    ("hostfile-slots", NODES + "sed -i 's/$/ slots=8/' hostfile.$SLURM_JOB_ID\ndeepspeed --hostfile hostfile.$SLURM_JOB_ID t.py\n"),
    ("serial-nodes", NODES + "for i in 0 1; do srun -N 1 -n 1 -w ${N[$i]} torchrun --nnodes 2 --node_rank $i t.py\ndone\n"),
    ("serial-nodes", NODES + "i=0\nfor h in $H; do\n ssh $h \"torchrun --nnodes=2 --node-rank=$i /x/t.py\"\n i=$((i+1))\ndone\n"),
    ("hand-written-hosts", PBS + "mpirun -np 8 -host node1:4,node2:4 ./a\n"),
    ("unknown-option", TASK + "#SBATCH --memory=4G\n./a\n"),
    ("ranks-mismatch", "#!/bin/bash\n#SBATCH --gres=gpu:4,gpu:2\n#SBATCH --time=1:00:00\ntorchrun --nproc-per-node=4 t.py\n"),
    ("trap-late", TRAP + "trap save USR1\nsrun -c 8 ./a\n"),
    ("submission-text", ONE + "j=$(sbatch a.sh)\nsbatch -d afterok:$j b.sh\n./a\n"),
    ("submission-text", ONE + "j=$(sbatch a.sh | cut -d ' ' -f 3)\nsbatch -d afterok:$j b.sh\n./a\n"),
    ("submission-text", ONE + "j=$(sbatch a.sh | awk '{print $3}')\nsbatch -d afterok:$j b.sh\n./a\n"),
    ("submission-text", ONE + "j=`sbatch a.sh 2>/dev/null`\nsbatch --dependency afterany:${j} b.sh\n./a\n"),
    ("container-driver", ONE + "docker run --rm -v /d:/d torch:2 python /d/t.py\n"),
    ("container-driver", ONE + "apptainer exec --nv -B /d torch-rocm6.sif python t.py\n"),
    ("container-driver", ONE + "module load rocm\nsrun apptainer exec --nv i.sif python t.py\n"),
    ("container-driver", ONE + "module load cuda/12\napptainer exec --rocm docker://nvcr.io/torch python t.py\n"),
    ("container-driver", NODES + "C=\"apptainer exec --bind $PWD:/work i.sif\"\nsrun $C " + RUN),
    ("container-driver", NODES + "srun podman-hpc run --rm -v /d:/d torch:2 " + RUN),
    ("container-driver", NODES + "inside() { srun apptainer exec i.sif \"$@\"; }\ninside " + RUN),
    ("container-files", ONE + "docker run --gpus all -v /data:/data torch:2 python /home/me/t.py\n"),
    ("container-files", ONE + "srun podman run --device nvidia.com/gpu=all torch:2 python $PWD/t.py\n"),
    ("container-files", SLURM + "srun --container-image=torch --container-mounts=/data:/data python /scratch/me/t.py\n"),
    ("requeue-folder", REQUEUE + "D=runs/a-$RANDOM\nif [[ -f $D/ckpt/last ]]; then R=--resume; fi\nsrun python t.py $R\n"),
    ("requeue-folder", REQUEUE + "T=$(date +%s)\nD=runs/$T\npython t.py --out $D --resume_from $D\n"),
    ("requeue-folder", PBS + "#PBS -r y\nD=$(mktemp -d $HOME/XXX)\npython t.py --resume=\"$D/a.pt\"\n"),
    ("container-network", NODES + "srun docker run --gpus all --ipc=host torch:2 " + RUN),
    ("container-network", NODES + "srun bash -c 'docker run --gpus all -e A -v /d:/d torch:2 " + RUN.strip() + "'\n"),
    ("container-network", NODES + "srun podman run --rm torch:2 " + RUN.replace("=2 ", "=$SLURM_NNODES ")),
    ("unpassed-variable", SLURM + DEBUG + "srun apptainer exec --nv --cleanenv -B /d i.sif python t.py\n"),
    ("unpassed-variable", SLURM + DEBUG + "srun bash -c 'cd /d; singularity exec --nv -C i.sif python t.py'\n"),
    ("unpassed-variable", SLURM + f"srun apptainer exec --nv --cleanenv i.sif bash -c '{SET}'\n"),
    ("unpassed-variable", SLURM + DEBUG + "srun docker run --gpus all -e A -v /d:/d torch:2 python /d/t.py\n"),
    ("ranks-mismatch", PBS + "mpirun -np 8 --map-by ppr:4:node:PE=16 ./a\n"),
    ("ranks-mismatch", PBS + "mpiexec -n 8 --ppn 4 --depth 16 --cpu-bind depth ./a\n"),
    ("launcher-binding", OPEN + "mpirun -np 2 --map-by ppr:1:node " + RUN),
    ("launcher-binding", OPEN + "export OMP_NUM_THREADS=8\nmpirun -np 2 ./a\n"),
    ("visible-devices", MIG + "torchrun --standalone --nproc-per-node=4 t.py\n"),
    ("visible-devices", MIG.replace("gpu:1g", "gpu:a100_1g") + "accelerate launch --num_processes 4 t.py\n"),
    ("idle-component", PARTS + "export MASTER_ADDR=$SLURM_JOB_NODELIST_HET_GROUP_1\nsource v/bin/activate\nsrun python t.py\n"),
    ("daemon-step", NODES + "srun -N 1 -n 1 ray start --head --port=6379\npython t.py\n"),
    ("daemon-step", NODES + "srun -w $H --overlap ray start --address \"$A:6379\" &\npython t.py\n"),
    ("daemon-step", NODES + "srun bash -c 'source v/bin/activate; ray start --address=$A'\npython t.py\n"),
    ("world-size", NODES + f"srun {RUN.strip()} --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2\n"),
    ("nested-tasks", OPEN + "mpirun -np 8 --map-by ppr:4:node --bind-to none " + RUN),
    ("nested-tasks", PBS + "mpiexec -n 8 -ppn 4 deepspeed --no_ssh t.py\n"),
    ("nested-tasks", PBS + "pbsdsh -v -- " + RUN),
    ("nodes-mismatch", OPEN + "mpirun -np 2 --bind-to none " + RUN),
    ("nodes-mismatch", PBS + "mpiexec -n 4 -hostfile $PBS_NODEFILE ./a\n"),
    ("ranks-mismatch", OPEN.replace("mpiprocs=4:", "") + "mpirun -np 8 ./a\n"),
    ("ranks-mismatch", ONE + "python t.py --device cuda:4\n"),
    ("filter-range", ONE + "deepspeed --include localhost:2,3,4 t.py\n"),
    ("too-many-threads", PBS.replace(":ngpus", ":ompthreads=32:ngpus") + "mpiexec ./a\n"),
    ("nested-tasks", "#!/bin/bash\n#PBS -l nodes=2:ppn=4\npbsdsh bash -c 'source v; exec " + RUN.strip() + "'\n"),
    ("master-address", SLURM + "export MASTER_ADDR=$(srun hostname | head -n 1)\nsrun python t.py\n"),
    ("master-address", SLURM + "M=$(mpirun hostname -s | head -1)\nexport MASTER_ADDR=$M\nsrun python t.py\n"),
    ("task-devices", SLURM.replace("gpus-per-node=4", "gpus-per-task=1") + "srun bash -c 'CUDA_VISIBLE_DEVICES=$SLURM_LOCALID python t.py'\n"),
    ("ranks-mismatch", NODES + "srun ray start --address=$A --num-gpus=8 --block &\npython t.py\n"),
    ("absent-count", NODES.replace("gpus-per-node=4", "gres=gpu:4") + "srun torchrun --nproc_per_node $SLURM_GPUS_PER_NODE t.py\n"),
    ("absent-count", "#!/bin/bash\n#SBATCH -N 2\n#SBATCH -n 8\n#SBATCH -t 1\nexport L=$((SLURM_NNODES * ${SLURM_NTASKS_PER_NODE}))\n"),
    ("compressed-number", SLURM + "export WORLD_SIZE=$((SLURM_NNODES * SLURM_TASKS_PER_NODE))\nsrun python t.py\n"),
    ("compressed-number", SLURM + "export OMP_NUM_THREADS=$SLURM_JOB_CPUS_PER_NODE\nsrun python t.py\n"),
    ("unpassed-variable", PBS + "i=0\nfor h in $H; do ssh $h 'torchrun --node_rank=$i /x/t.py' & i=$((i+1)); done\n"),
    ("unpassed-variable", NODES + "pdsh -w $H 'cd $SLURM_SUBMIT_DIR && python t.py'\n"),
    ("remote-environment", PBS + f"source v/bin/activate\nfor h in $H; do ssh $h {REMOTE} & done\n"),
    ("remote-environment", PBS + f'conda activate x\nC={REMOTE}\npdsh -w $H "$C"\n'),
    ("launcher-in-container", SLURM + "singularity exec -B /d i.sif mpirun -np 8 python t.py\n"),
    ("launcher-in-container", SLURM + "apptainer run --nv i.sif srun python t.py\n"),
    ("launcher-binding", ONE.replace("cpus-per-task=8", "cpus-per-task=16") + "srun -n 1 taskset -c 0-15 torchrun --nproc-per-node=4 t.py\n"),
    ("launcher-binding", ONE + "numactl -C 0,1 torchrun --nproc-per-node=4 t.py\n"),
    ("trap-late", TRAP + "trap save USR1\nexec srun python t.py\n"),
    ("fixed-port", PORT_OF_PBS.format("")),
    ("fixed-port", ONE + "#SBATCH -a 1-9\nP=$((2000 + SLURM_ARRAY_JOB_ID % 9))\ntorchrun --nproc-per-node=4 --master-port=$P t.py\n"),
    ("trap-late", TRAP + "trap save USR1\ngo() {\n  srun \"$@\"\n}\ngo python t.py\n"),
    ("signal-receiver", TRAP + "srun python t.py | tee log &\np=$!\ntrap 'kill -USR1 $p' USR1\nwait\n"),
    ("signal-receiver", TRAP + "torchrun t.py &\np=$!\ntrap 'kill -s USR2 \"$p\"' USR1\nwait\n"),
    ("identical-tasks", SLURM + "srun bash -c 'uv sync; RANK=$SLURM_PROCID python t.py'\n"),
    ("identical-tasks", SLURM + "srun uv pip install -e .\n"),
    ("rm-at-requeue", REQUEUE + "rm -rf out\nsrun python t.py --save_dir out/ck\n"),
    ("rm-at-requeue", REQUEUE + "rm -r $D\nsrun torchrun t.py --output-dir=\"$D\"\n"),
    ("nodes-mismatch", NODES.replace("nodes=2", "nodes=4") + f"srun -c 8 {RUN}"),
    ("unwaited-background", PBS + f"for h in $H; do ssh $h {REMOTE} & done\nsleep 36000\n"),
    ("nodes-mismatch", NODES + "deepspeed --hostfile h --num_nodes 1 t.py\n"),
    ("launcher-binding", SLURM + "srun --cpu-bind=map_cpu:0,8,16,24 python t.py\n"),
    ("master-address", SLURM + "export MASTER_ADDR=$(scontrol show hostnames | tail -n 1)\nsrun python t.py\n"),
    ("random-rendezvous", SLURM + "srun bash -c 'export MASTER_PORT=$((2000 + SLURM_PROCID)) RANK=$SLURM_PROCID; python t.py'\n"),
    ("ranks-mismatch", ONE.replace("gpus-per-node=4", "gpus-per-node=2") + "python t.py --gpus 0,1,2,3\n"),
    ("first-node-only", SLURM + "mpirun -np 8 --host localhost:8 python t.py\n"),
    ("hostname-master", NODES + "srun bash -c 'H=$(hostname)\ntorchrun --nnodes 2 --rdzv_backend c10d --rdzv_endpoint $H:2000 t.py'\n"),
    ("visible-devices", SLURM + f"export SINGULARITYENV_CUDA_VISIBLE_DEVICES=0\nsrun singularity exec --nv i.sif bash -c '{SET}'\n"),
    ("nested-tasks", SLURM + "srun --ntasks-per-node=1 " + RUN),
    ("identical-tasks", ONE + "srun --ntasks-per-node=1 cp data.tar /tmp/\n"),
    ("ranks-mismatch", EIGHT + "export MASTER_ADDR=$(hostname)\nsrun --ntasks-per-node=4 python t.py\n"),
    ("nested-tasks", SLURM.replace("-per-node=4\n#SBATCH --gpus", "=8\n#SBATCH --gpus") + "srun --ntasks-per-node=1 " + RUN),
    ("identical-tasks", SLURM + "srun --ntasks-per-node=1 tar -xf a.tar -C /tmp\n"),
    ("first-node-files", SLURM + "srun -N 1 -n 1 tar -xf a.tar -C /tmp/a\nsrun python t.py /tmp/a/b\n"),
    ("first-node-files", SLURM + "D=/local/$SLURM_JOB_ID\nsrun -n1 bash -c \"mkdir $D; cp x.h5 $D\"\nsrun python t.py $D/x.h5\n"),
    ("first-node-only", NODES + "deepspeed --hostfile h.$SLURM_JOB_ID --num_nodes 2 --no_ssh t.py\n"),
    ("ranks-mismatch", NODES + "srun bash -c 'accelerate launch --config_file c.yaml --num_machines 2 --num_processes 4 --machine_rank $SLURM_NODEID t.py'\n"),
    ("too-many-threads", NODES + "export OMP_NUM_THREADS=8\nsrun bash -c 'accelerate launch --num_machines 2 --num_processes 8 --machine_rank $SLURM_NODEID t.py'\n"),
    ("too-many-threads", NODES + "export OMP_NUM_THREADS=8\nsrun bash -c 'torchrun --nnodes 2 --nproc-per-node 4 t.py'\n"),
    ("visible-devices", NODES + f"export CUDA_VISIBLE_DEVICES=0,1\nsrun bash -c '{RUN.strip()}'\n"),
    ("nodes-mismatch", OPEN + "mpirun -np 2 --map-by slot python t.py\n"),
    ("ranks-mismatch", SLURM + "H=\nfor h in $(scontrol show hostnames); do H=${H:+$H,}$h:2; done\nhorovodrun -np 8 -H \"$H\" python t.py\n"),
    ("ranks-mismatch", NODES.replace("gpus-per-node=4", "gres=npu:8") + "srun msrun --worker_num=16 --local_worker_num=16 --join=True t.py\n"),
    ("ranks-mismatch", NODES + "srun msrun --worker_num 16 --local_worker_num 4 t.py\n"),
    ("other-port", NODES + ADDRESS + "srun -w ${H[0]} ray start --head --port=6379 --block &\nsrun -w ${H[1]} ray start --address ${H[0]}:6380 --block &\nwait\n"),
    ("other-port", NODES + ADDRESS + "ssh ${H[1]} 'torchrun --nnodes 2 --node_rank 1 --master_port 29601 t.py' &\ntorchrun --nnodes 2 --node_rank 0 --master_port 29600 t.py\nwait\n"),
    ("other-port", ONE + "vllm serve m --port 8001 &\nuntil curl -sf http://localhost:8000/health; do sleep 5; done\nkill $!\n"),
    ("master-address", NODES + ADDRESS + "W=$(IFS=,; echo \"${H[*]:1}\")\nsrun -N 1 -w $W torchrun --nnodes=1 --rdzv-backend=c10d --rdzv-endpoint=${H[0]}:2000 t.py\n"),
    ("signal-without-trap", TRAP + "source venv/bin/activate\nsrun python t.py\n"),
    ("signal-without-trap", TRAP + 'eval "$(micromamba shell hook --shell bash)"\nexec > log.txt\nsrun python t.py\n'),
    ("sorted-hosts", OPEN + "export MASTER_ADDR=$HOSTNAME\nsort -u $PBS_NODEFILE > h.$PBS_JOBID\nmpirun -np 8 -hostfile h.$PBS_JOBID python t.py\n"),
    ("ephemeral-port", NODES + "P=$((50000 + SLURM_JOB_ID % 10000))\nsrun torchrun --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=\"$M:$P\" t.py\n"),
    ("large-port", NODES + "P=$((20000 + SLURM_JOB_ID))\nsrun torchrun --nnodes=2 --node_rank=$R --master_port=$P t.py\n"),
    ("standalone-nodes", NODES + "srun accelerate launch --num_machines 1 --num_processes 4 t.py\n"),
    ("first-node-only", PBS + "torchrun --standalone --nproc-per-node=4 t.py\n"),
    ("home-directory", PBS + "mpirun -np 8 ./solver\n"),
    ("unexported-variable", SLURM + "f() {\nMASTER_ADDR=$(hostname)\n}\nf\nsrun python t.py\n"),
    ("unexported-variable", SLURM + "read -r MASTER_ADDR < <(scontrol show hostnames)\nsrun python t.py\n"),
    ("loader-cores", SLURM.replace("#SBATCH --cpus-per-task=8\n", "") + "srun python t.py --workers 8\n"),
    ("program-threads", SLURM.replace("task=8", "task=1") + "srun python t.py --workers 8\n"),
    ("hostfile-slots", SLURM + "scontrol show hostnames | awk '{print}' > x\nfor h in $(cat x); do echo \"$h slots=$SLURM_NTASKS\"; done > h.$SLURM_JOB_ID\ndeepspeed --hostfile h.$SLURM_JOB_ID t.py\n"),
    ("signal-to-steps", TRAP.replace("B:", "") + "trap \"scontrol requeue $SLURM_JOB_ID\" USR1\nsrun python t.py &\nwait $!\n"),
    ("hostfile-slots", WHOLE + "for h in $(scontrol show hostnames); do echo \"$h slots=2\"; done > h.$SLURM_JOB_ID\ndeepspeed --hostfile h.$SLURM_JOB_ID t.py\n"),
    ("hostfile-slots", WHOLE + "scontrol show hostnames | awk '{print $1\" slots=2\"}' > h.$SLURM_JOB_ID\ndeepspeed --hostfile h.$SLURM_JOB_ID t.py\n"),
    ("rank-number", SLURM + "srun bash -c 'python t.py --num_processes=\"$SLURM_NNODES\" --process_id=\"$SLURM_PROCID\"'\n"),
    ("rank-number", SLURM + "srun bash -c 'python t.py --dist.num_processes $SLURM_NNODES --dist.process_id $SLURM_PROCID'\n"),
    ("rank-number", SLURM + "srun bash -c 'JAX_NUM_PROCESSES=$SLURM_NNODES JAX_PROCESS_ID=$SLURM_PROCID python t.py'\n"),
    ("rank-number", SLURM + "srun bash -c 'python t.py --num-processes=$SLURM_NTASKS --process-id=$SLURM_LOCALID'\n"),
    ("rank-number", PBS + "mpirun -np 8 bash -c 'python t.py --num_processes=$N --process_id=$OMPI_COMM_WORLD_LOCAL_RANK'\n"),
    ("world-size", SLURM + "srun bash -c 'python t.py --num_processes=4 --process_id=\"$SLURM_PROCID\"'\n"),
    ("world-size", SLURM + "export N=16\nsrun bash -c 'python t.py --num_processes $N --process_id $SLURM_PROCID'\n"),
    ("world-size", PBS + "mpirun -np 8 bash -c 'python t.py --num_processes=2 --process_id=$OMPI_COMM_WORLD_RANK'\n"),
    ("memory-unit", ONE + "#SBATCH --mem=200\npython t.py\n"),
    ("memory-unit", ONE + "#SBATCH --mem=1024\npython t.py\n"),
    ("memory-unit", ONE + "#SBATCH --mem-per-gpu=240\npython t.py\n"),
    ("memory-unit", TASK.replace("task=2", "task=32") + "#SBATCH --mem=480\n./a\n"),
    ("ranks-mismatch", TORQUE + "NP=$(sort -u \"$PBS_NODEFILE\" | wc -l)\nhorovodrun -np \"$NP\" -H \"$HOSTS\" python t.py\n"),
    ("ranks-mismatch", TORQUE + "horovodrun -np 4 --hostfile hosts python t.py\n"),
    ("ranks-mismatch", ONE + "horovodrun --num-proc=2 python t.py\n"),
    ("ranks-mismatch", SLURM.replace("#SBATCH --gpus-per-node=4\n", "") + "horovodrun -np 2 -H n1:4,n2:4 python t.py\n"),
    ("visible-devices", SLURM + "srun bash -c 'export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID; export HIP_VISIBLE_DEVICES=\"${SLURM_LOCALID}\"; python t.py'\n"),
    ("visible-devices", SLURM + "srun bash -c 'G=$SLURM_LOCALID; ROCR_VISIBLE_DEVICES=$G HIP_VISIBLE_DEVICES=$G python t.py'\n"),
    ("visible-devices", SLURM + "cat > g.sh <<'E'\nexport ROCR_VISIBLE_DEVICES=$((SLURM_LOCALID % 4)) HIP_VISIBLE_DEVICES=$((SLURM_LOCALID % 4))\nexec \"$@\"\nE\nsrun bash g.sh python t.py\n"),
    ("visible-devices", ONE + "export ROCR_VISIBLE_DEVICES=2,3\nexport HIP_VISIBLE_DEVICES=2,3\npython t.py\n"),
    ("visible-devices", ONE + "for g in 0 1 2 3; do ROCR_VISIBLE_DEVICES=$g HIP_VISIBLE_DEVICES=$g python t.py & done\nwait\n"),
]  # fmt: skip
SILENT = [
    ("hostfile-slots", WHOLE + "scontrol show hostnames | sed 's/$/ slots=8/' > h.$SLURM_JOB_ID\ndeepspeed --hostfile h.$SLURM_JOB_ID t.py\n"),
    ("hostfile-slots", WHOLE + "scontrol show hostnames | sed 's/$/ slots=4/' > h.$SLURM_JOB_ID\ndeepspeed --hostfile h.$SLURM_JOB_ID t.py\n"),
    ("rank-number", SLURM + "srun bash -c 'python t.py --num_processes=$SLURM_NTASKS --process_id=$SLURM_PROCID'\n"),
    ("rank-number", SLURM + "srun bash -c 'python t.py --num_processes=$SLURM_NTASKS_PER_NODE --process_id=$SLURM_LOCALID'\n"),
    ("rank-number", SLURM + "srun bash -c 'python t.py --num_processes=4 --process_id=$SLURM_LOCALID'\n"),
    ("rank-number", SLURM + "srun bash -c 'python t.py --num_processes=$SLURM_NNODES --part $SLURM_PROCID'\n"),
    ("rank-number", NODES + "srun bash -c 'python t.py --num_processes=$SLURM_NNODES --process_id=$SLURM_PROCID'\n"),
    ("world-size", SLURM + "srun bash -c 'python t.py --num_processes=8 --process_id=$SLURM_PROCID'\n"),
    ("world-size", SLURM + "srun bash -c 'python t.py --num_processes=16 --part $SLURM_PROCID'\n"),
    ("world-size", SLURM + "srun bash -c 'python t.py --num_processes=$SLURM_NNODES --process_id=$SLURM_PROCID'\n"),
    ("memory-unit", ONE + "#SBATCH --mem=4000\npython t.py\n"),
    ("memory-unit", ONE.replace("gpus-per-node=4", "gpus-per-node=1") + "#SBATCH --mem=1000\npython t.py\n"),
    ("memory-unit", TASK.replace("task=2", "task=40") + "#SBATCH --mem=1000\n./a\n"),
    ("memory-unit", TASK + "#SBATCH --mem=200\n./a\n"),
    ("memory-unit", ONE + "#SBATCH --mem=200  # MB\npython t.py\n"),
    ("ranks-mismatch", TORQUE + "NP=$(wc -l < $PBS_NODEFILE)\nhorovodrun -np $NP -H $HOSTS python t.py\n"),
    ("ranks-mismatch", TORQUE + "horovodrun -np 4 --min-np 2 --max-np 16 --host-discovery-script h.sh python t.py\n"),
    ("ranks-mismatch", ONE + "horovodrun -np 2 python a.py &\nhorovodrun -np 2 python b.py &\nwait\n"),
    ("ranks-mismatch", SLURM.replace("#SBATCH --gpus-per-node=4\n", "") + "horovodrun -np 6 -H n1:4,n2:4 python t.py\n"),
    ("visible-devices", SLURM + "srun bash -c 'ROCR_VISIBLE_DEVICES=$SLURM_LOCALID HIP_VISIBLE_DEVICES=0 python t.py'\n"),
    ("visible-devices", SLURM + "srun bash -c 'ROCR_VISIBLE_DEVICES=$G HIP_VISIBLE_DEVICES=$G python t.py'\n"),
    ("visible-devices", NODES + "srun bash -c 'ROCR_VISIBLE_DEVICES=$SLURM_LOCALID HIP_VISIBLE_DEVICES=$SLURM_LOCALID python t.py'\n"),
    ("visible-devices", ONE + "export ROCR_VISIBLE_DEVICES=0,1,2,3 HIP_VISIBLE_DEVICES=0,1,2,3\npython t.py\n"),
    ("visible-devices", SLURM + "srun bash -c 'if ./amd; then export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID; else export HIP_VISIBLE_DEVICES=$SLURM_LOCALID; fi; python t.py'\n"),
    ("visible-devices", SLURM + "srun bash -c 'ROCR_VISIBLE_DEVICES=$SLURM_LOCALID ./a; HIP_VISIBLE_DEVICES=$SLURM_LOCALID ./b'\n"),
    ("rank-number", SLURM + "srun bash -c 'RANK=$((SLURM_NODEID * 4 + SLURM_LOCALID)) python t.py'\n"),
    (
        "rank-number",
        SLURM + "srun bash -c 'RANK=$((SLURM_NODEID*SLURM_NTASKS_PER_NODE+SLURM_LOCALID)) python t.py'\n",
    ),
    ("ranks-mismatch", ONE + "export MASTER_ADDR=localhost\nsrun --gpus=4 python t.py\n"),
    ("too-many-threads", WHOLE + "export OMP_NUM_THREADS=8\n" + RUN),
    (
        "ranks-mismatch",
        WHOLE + "CUDA_VISIBLE_DEVICES=2,3 vllm serve m &\nCUDA_VISIBLE_DEVICES=0,1 accelerate launch --num_processes 2 --num_machines 1 t.py\n",
    ),
    ("ranks-mismatch", WHOLE + "torchrun --standalone --nproc-per-node=8 t.py\n"),
    ("local-master", NODES + ADDRESS + "srun ray start --address=${H[0]}:6379 --block &\nwait\n"),
    ("local-master", NODES + "srun -n 1 ray status --address localhost:6379\n"),
    ("unpassed-variable", PBS + 'M=a\nssh $H "M=$M; echo \\$M" &\nwait\n'),
    ("unpassed-variable", PBS + 'export M=a\nssh $H "awk \'{print \\$1}\' $M" &\nwait\n'),
    ("world-size", SLURM + "export WORLD_SIZE=$SLURM_NTASKS\nsrun bash -c 'RANK=$SLURM_PROCID python t.py'\n"),
    ("world-size", MANY + "srun bash -c 'WORLD_SIZE=$SLURM_NTASKS RANK=$SLURM_PROCID python t.py'\n"),
    ("task-devices", SLURM + f"srun bash -c '{BOTH.replace('RANK=$SLURM_LOCALID', 'RANK=0')}; python t.py'\n"),
    ("task-devices", SLURM + "srun bash -c 'LOCAL_RANK=$SLURM_LOCALID; CUDA_VISIBLE_DEVICES=$LOCAL_RANK python t.py'\n"),
    ("hostname-master", NODES + "cat > n.sh <<E\nA=$(hostname):2000\nexec torchrun --nnodes=2 --rdzv_endpoint=$A t.py\nE\nsrun bash n.sh\n"),
    ("rm-at-requeue", REQUEUE + OUT + 'new() {\n    rm -rf "$OUT"\n}\n[ -n "$NEW" ] && new\nsrun python t.py --save "$OUT"\n'),
    ("rm-at-requeue", REQUEUE + OUT + 'new() {\n    rm -rf "$OUT"\n}\nsrun python t.py --save "$OUT"\nnew\n'),
    ("lost-output", ONE + "C=/tmp/$USER/c\nsrun python t.py --checkpoint_dir $C\ncp -r /tmp/$USER/c $HOME\n"),
    ("lost-output", ONE + "T=/tmp/x\nC=$T/c\nsrun python t.py --checkpoint_dir $C\ncp -r $T/* $HOME\n"),
    ("first-node-files", SLURM + 'D=/tmp/d\nput() {\n    tar -xf d.tar -C "$1"\n}\nexport -f put\nsrun bash -c "put $D"\nsrun python t.py --data $D\n'),
    ("blocking-steps", NODES + "srun --overlap nvidia-smi dmon > dmon.log &\nsrun " + RUN),
    ("blocking-steps", NODES + "srun nvidia-smi dmon > dmon.log &\nsrun --overlap " + RUN),
    ("blocking-steps", NODES + "srun nvidia-smi &\nsrun " + RUN),
    ("blocking-steps", NODES + "srun -N 1 -n 1 python serve.py &\nsrun -N 1 -n 1 python t.py\n"),
    ("blocking-steps", NODES + "srun python one.py &\nwait\nsrun python two.py\n"),
    ("blocking-steps", NODES + "if [ $A ]; then\n    srun python one.py &\nelse\n    srun python two.py &\nfi\nwait\n"),
    ("shared-devices", ONE + "CUDA_VISIBLE_DEVICES=0,1 vllm serve m &\nCUDA_VISIBLE_DEVICES=2,3 torchrun --nproc-per-node=2 t.py\n"),
    ("shared-devices", ONE + "CUDA_VISIBLE_DEVICES=0,1 vllm serve m &\nkill $!\nCUDA_VISIBLE_DEVICES=1,2 torchrun --nproc-per-node=2 t.py\n"),
    ("function-program", SLURM + "f() {\n    python t.py\n}\nexport -f f\nsrun -n 4 bash -c f\ntime f\n"),
    ("function-program", SLURM + 'python3() {\n    command python3 -u "$@"\n}\nsrun python3 t.py\n'),
    ("function-program", SLURM + "f() {\n    srun python t.py\n}\neval f\n"),
    ("task-log", SLURM + "srun bash -c 'python t.py > log.$SLURM_PROCID'\n"),
    ("task-log", SLURM + "srun bash -c 'L=log.$(hostname); python t.py > $L'\n"),
    ("task-log", SLURM + "srun bash -c 'python t.py > $L'\nsrun bash -c 'python t.py > /dev/null'\n"),
    ("task-log", SLURM + "srun bash -c 'if [ $SLURM_PROCID = 0 ]; then python t.py > log; fi'\n"),
    ("task-log", SLURM + "srun bash -c 'echo $PATH > path.txt; exec python t.py'\n"),
    ("unwaited-background", PBS + f"for h in $H; do ssh $h {REMOTE} & done\nsleep 60\nwait\nsleep 900\n"),
    ("unwaited-background", NODES + "vllm serve m &\nsleep infinity\n"),
    ("nodes-mismatch", NODES.replace("nodes=2", "nodes=4") + f"srun -N 2 -c 8 {RUN}"),
    ("launcher-binding", SLURM + "srun --cpu-bind=mask_cpu:ff,ff00,ff0000,ff000000 python t.py\n"),
    ("launcher-binding", SLURM.replace("#SBATCH --cpus-per-task=8\n", "") + "srun --cpu-bind=map_cpu:0,1,2,3 python t.py\n"),
    ("master-address", NODES + "export M=$(scontrol show hostnames | tail -n 1)\nsrun " + RUN),
    ("random-rendezvous", SLURM + "srun bash -c 'export MASTER_PORT=$((2000 + SLURM_PROCID)); python t.py'\n"),
    ("ranks-mismatch", ONE + "python t.py --gpus 0,1,2,3\n"),
    ("first-node-only", SLURM + "mpirun -np 1 --host localhost python t.py\n"),
    ("hostname-master", NODES + "H=$(hostname)\nsrun " + RUN.replace("$M", "$H")),
    ("world-size", NODES + f"srun {RUN.strip()} --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2\n"),
    ("nested-tasks", OPEN + "mpirun -np 2 --map-by ppr:1:node --bind-to none " + RUN),
    ("nested-tasks", PBS.replace("mpiprocs=4:", "") + "pbsdsh -- " + RUN),
    ("nested-tasks", "#!/bin/bash\n#PBS -l nodes=2:ppn=4\npbsdsh -v -u " + RUN),
    ("nested-tasks", PBS + "pbsdsh -n 1 -- " + RUN),
    ("nodes-mismatch", PBS + "mpiexec -n 5 ./a\n"),
    ("nodes-mismatch", PBS + "aprun -n 4 -d 2 ./a\n"),
    ("nodes-mismatch", PBS + "aprun -n 4 -d $D ./a\n"),
    ("nodes-mismatch", PBS + "mpiexec -n 1 ./a\n"),
    ("nodes-mismatch", PBS + "mpiexec -n 4 --map-by node ./a\n"),
    ("nodes-mismatch", PBS + "mpiexec -n 4 -hostfile own.txt ./a\n"),
    ("ranks-mismatch", PBS.replace("mpiprocs=4:", "") + "mpirun -np 8 ./a\n"),
    ("ranks-mismatch", ONE + "python t.py --device cuda:3\n"),
    ("filter-range", ONE + "deepspeed --include localhost:2,3 t.py\n"),
    ("too-many-threads", PBS.replace(":ngpus", ":ompthreads=8:ngpus") + "mpiexec ./a\n"),
    ("too-many-threads", PBS + "mpiexec -np 8 -x OMP_NUM_THREADS=8 python t.py\n"),
    ("too-many-threads", PBS + "mpiexec -np 8 ./a\n"),
    ("nested-tasks", PBS + "pbsdsh -- python t.py\n"),
    ("master-address", SLURM + "export MASTER_ADDR=$(srun -n 1 hostname | head -n 1)\nsrun python t.py\n"),
    ("master-address", SLURM + "export MASTER_ADDR=$(srun hostname | sort | head -n 1)\nsrun python t.py\n"),
    ("task-devices", SLURM + "srun bash -c 'CUDA_VISIBLE_DEVICES=$SLURM_LOCALID python t.py'\n"),
    ("ranks-mismatch", NODES + "srun ray start --address=$A --num-gpus=4 --block &\npython t.py\n"),
    ("absent-count", NODES + "srun torchrun --nproc_per_node $SLURM_GPUS_PER_NODE t.py\n"),
    ("absent-count", NODES.replace("gpus-per-node=4", "gres=gpu:4") + "echo $SLURM_GPUS_PER_NODE\nsrun t ${SLURM_GPUS_PER_NODE:-4}\n"),
    ("absent-count", "#!/bin/bash\n#SBATCH -n 8\n#SBATCH -t 1\n[ -n \"$SLURM_NTASKS_PER_NODE\" ] && O=$SLURM_NTASKS_PER_NODE\n"),
    ("container-driver", ONE + "docker run --gpus=\"device=$CUDA_VISIBLE_DEVICES\" -v /d:/d torch:2 python /d/t.py\n"),
    ("compressed-number", ONE + "export WORLD_SIZE=$((SLURM_NNODES * SLURM_TASKS_PER_NODE))\nsrun python t.py\n"),
    ("compressed-number", SLURM + "N=${SLURM_TASKS_PER_NODE%%(*}\nexport WORLD_SIZE=$((SLURM_NNODES * N))\nsrun python t.py\n"),
    ("unpassed-variable", PBS + "i=0\nfor h in $H; do ssh $h 'i=1; torchrun --node_rank=$i /x/t.py' & done\n"),
    ("unpassed-variable", PBS + "pbsdsh -- bash -c 'cd $PBS_O_WORKDIR && python t.py'\n"),
    ("unpassed-variable", PBS + "i=0\nfor h in $H; do ssh $h \"torchrun --node_rank=$i /x/t.py\" & done\n"),
    ("remote-environment", PBS + f"source v/bin/activate\nfor h in $H; do ssh $h 'source v/bin/activate; {RUN.strip()}' & done\n"),
    ("remote-environment", PBS + f"for h in $H; do ssh $h {REMOTE} & done\n"),
    ("remote-environment", PBS + "source v/bin/activate\nfor h in $H; do ssh $h v/bin/torchrun /x/t.py & done\n"),
    ("launcher-in-container", SLURM + "mpirun -np 8 singularity exec -B /d i.sif python t.py\n"),
    ("launcher-in-container", ONE + "singularity exec -B /d i.sif mpirun -np 4 python t.py\n"),
    ("launcher-binding", ONE + "numactl -C 0-31 torchrun --nproc-per-node=4 t.py\n"),
    ("launcher-binding", ONE + "srun bash -c 'taskset -c $SLURM_LOCALID python t.py'\n"),
    ("signal-receiver", TRAP + "srun python t.py > >(tee log) &\np=$!\ntrap 'kill -USR1 $p' USR1\nwait\n"),
    ("signal-receiver", TRAP + "torchrun t.py &\np=$!\ntrap 'kill -TERM \"$p\"' USR1\nwait\n"),
    ("identical-tasks", SLURM + "srun bash -c '[ $SLURM_LOCALID = 0 ] && uv sync; python t.py'\n"),
    ("rm-at-requeue", REQUEUE + "rm -rf out/tmp\nsrun python t.py --save_dir out\n"),
    ("rm-at-requeue", ONE + "rm -rf out\nsrun python t.py --save_dir out\n"),
    ("ranks-mismatch", "#!/bin/bash\n#SBATCH --gres=gpu:a100:2,gpu:v100:2\n#SBATCH --time=1:00:00\ntorchrun --nproc-per-node=4 t.py\n"),
    ("trap-late", TRAP + "trap save USR1\npython -c 'import torch'\nwait\n"),
    ("ranks-mismatch", OPEN + "mpirun -np 2 bash -c 'RANK=$OMPI_COMM_WORLD_RANK python t.py'\n"),
    ("trap-late", TRAP + "go() { srun python t.py; }\ntrap go USR1\n"),
    ("fixed-port", PORT_OF_PBS.format(" + PBS_ARRAY_INDEX")),
    ("fixed-port", PORT_OF_PBS.format("").replace("#PBS -J 0-9\n", "")),
    ("fixed-port", ONE + "#SBATCH -a 1-9\nP=$((2000 + SLURM_JOB_ID % 9))\ntorchrun --nproc-per-node=4 --master-port=$P t.py\n"),
    ("container-driver", NODES + "C=\"apptainer exec $MORE i.sif\"\nsrun $C " + RUN),
    ("submission-text", ONE + "j=$(sbatch --parsable a.sh)\nsbatch -d afterok:$j b.sh\n./a\n"),
    ("submission-text", ONE + "j=$(sbatch a.sh | cut -d' ' -f4)\nsbatch -d afterok:$j b.sh\n./a\n"),
    ("submission-text", ONE + "j=$(sbatch --parsable a.sh | cut -d';' -f1)\nsbatch -d afterok:$j b.sh\n./a\n"),
    ("submission-text", ONE + "j=$(sbatch a.sh | awk '{print $4}')\nsbatch -d afterok:$j b.sh\n./a\n"),
    ("submission-text", ONE + "j=$(sbatch a.sh)\nsbatch -d afterok:${j##* } b.sh\n./a\n"),
    ("container-driver", ONE + "docker run --gpus all -v /d:/d torch:2 python /d/t.py\n"),
    ("container-driver", ONE + "inside() { apptainer exec \"$@\"; }\ninside --nv i.sif python t.py\n"),
    ("container-driver", ONE + "inside() { apptainer exec i.sif \"$@\"; }\ninside ./a\n"),
    ("container-driver", ONE + "docker exec torch python /d/t.py\n"),
    ("container-files", ONE + "docker run --gpus all -v $PWD:/work -w /work torch:2 python t.py\n"),
    ("container-files", ONE + "docker run --gpus all -v /home:/home torch:2 python /home/me/t.py\n"),
    ("container-files", ONE + "docker run --gpus all torch:2 python /workspace/t.py\n"),
    ("container-files", ONE + "docker run --gpus all $OPTIONS torch:2 python /home/me/t.py\n"),
    ("container-files", ONE + "podman run -v $SCRATCH:$SCRATCH torch:2 python /scratch/me/t.py\n"),
    ("container-files", SLURM + "srun --container-image=torch --container-mounts=$M python /scratch/me/t.py\n"),
    ("container-files", SLURM + "srun apptainer exec --nv i.sif python /scratch/me/t.py\n"),
    ("unpassed-variable", SLURM + DEBUG + "srun apptainer exec --nv -B /d i.sif python t.py\n"),
    ("unpassed-variable", SLURM + DEBUG + "srun apptainer exec --cleanenv --env NCCL_DEBUG=INFO i.sif python t.py\n"),
    ("unpassed-variable", SLURM + DEBUG + "export APPTAINERENV_NCCL_DEBUG=INFO\nsrun apptainer exec -e i.sif python t.py\n"),
    ("unpassed-variable", SLURM + DEBUG + "srun docker run -e NCCL_DEBUG -v /d:/d torch:2 python /d/t.py\n"),
    ("unpassed-variable", SLURM + DEBUG + "srun docker run --env-file env torch:2 python /d/t.py\n"),
    ("unpassed-variable", SLURM + f"srun docker run -e SLURM_PROCID -e SLURM_LOCALID torch bash -c '{SET}'\n"),
    ("unpassed-variable", SLURM + f"srun apptainer exec --nv i.sif bash -c '{SET}'\n"),
    ("ranks-mismatch", PBS + "mpirun -np 8 --map-by ppr:4:node:PE=8 ./a\n"),
    ("ranks-mismatch", "#PBS -l nodes=2:ncpus=4\naprun -n 8 -N 4 --cc depth -d 16 ./a\n"),
    ("container-driver", ONE + "docker run -e CUDA_VISIBLE_DEVICES=$SLURM_JOB_GPUS -v /d:/d torch:2 python /d/t.py\n"),
    ("launcher-binding", OPEN + "mpirun -np 2 --map-by ppr:1:node --bind-to none " + RUN),
    ("launcher-binding", PBS + "module load impi\nmpirun -np 2 -ppn 1 " + RUN),
    ("launcher-binding", OPEN + "mpirun -np 2 ./a\n"),
    ("launcher-binding", OPEN + "export OMP_NUM_THREADS=8\nmpirun -np 1 gmx_mpi grompp -f a.mdp\n"),
    ("launcher-binding", OPEN + "export OMP_NUM_THREADS=8\nmpirun -np 1 --map-by socket ./a\n"),
    ("launcher-binding", OPEN + "export OMP_NUM_THREADS=8\nmpirun -np 2 --map-by ppr:1:node:PE=8 ./a\n"),
    ("visible-devices", MIG + "python t.py\n"),
    ("visible-devices", MIG.replace("gpu:1g.10gb", "gpu:a100") + "torchrun --nproc-per-node=4 t.py\n"),
    ("daemon-step", NODES + "srun -N 1 -n 1 ray start --head --block &\npython t.py\n"),
    ("daemon-step", NODES + "srun bash -c 'ray start --address=$A; sleep infinity' &\npython t.py\n"),
    ("daemon-step", NODES + "srun ray status\npython t.py\n"),
    ("first-node-only", NODES + "srun -w $B bash worker.sh &\n" + RUN),
    ("first-node-only", NODES + "if [ $SLURM_NNODES -gt 1 ]; then srun x; else torchrun t.py; fi\n"),
    ("first-node-only", NODES + "for h in a b; do ssh $h start.sh & done\n" + RUN),
    ("no-launcher", SLURM + "python prepare.py\nsrun python train.py\npython plot.py\n"),
    ("no-launcher", SLURM + "python -m torch.distributed.launch train.py\n"),
    ("no-launcher", ONE + "python train.py\n"),
    ("standalone-nodes", NODES + "srun -N 1 -n 1 torchrun --standalone t.py\n"),
    ("standalone-nodes", NODES + "srun torchrun --standalone t.py --shard $SLURM_NODEID\n"),
    ("standalone-nodes", NODES + "srun torchrun $ARGS t.py\n"),
    ("master-address", NODES + "N=($(scontrol show hostnames))\nexport MASTER_ADDR=${N[0]}\nsrun python t.py\n"),
    ("master-address", NODES + "H=$(scontrol show hostnames)\nexport MASTER_ADDR=$(echo $H | cut -d' ' -f1)\nsrun python t.py\n"),
    ("master-address", ONE + "export MASTER_ADDR=$SLURM_NODELIST\nsrun python t.py\n"),
    ("master-address", NODES + "export MASTER_ADDR=$(nodeset -e $SLURM_NODELIST | cut -d' ' -f1)\nsrun python t.py\n"),
    ("ephemeral-port", NODES + "export MASTER_PORT=$((10000 + RANDOM % 20000))\nsrun python t.py\n"),
    ("random-rendezvous", NODES + "export MASTER_PORT=$((2000 + RANDOM % 9000))\nsrun python t.py\n"),
    ("task-devices", SLURM + f"srun --gpus-per-task=1 --gpu-bind=none bash -c '{SET}'\n"),
    ("task-devices", SLURM + "srun --gpus-per-task=1 python train.py\n"),
    ("task-devices", SLURM + "srun -N 2 --ntasks-per-node=1 --gpus-per-task=1 bash -c 'LOCAL_RANK=$SLURM_LOCALID ./a'\n"),
    ("visible-devices", ONE + "CUDA_VISIBLE_DEVICES=0,1 torchrun --standalone --nproc-per-node=2 t.py\n"),
    ("ranks-mismatch", EIGHT + "srun python t.py\n"),
    ("ranks-mismatch", SLURM + "srun -n 8 -c 8 ./solver\n"),
    ("ranks-mismatch", ONE + "CUDA_VISIBLE_DEVICES=3 ./server --port 80 &\nCUDA_VISIBLE_DEVICES=0,1,2 torchrun --nproc-per-node=3 t.py\n"),
    ("ranks-mismatch", SLURM + "srun -n 8 -c 16 --overcommit ./solver\n"),
    ("ranks-mismatch", SLURM.replace("#SBATCH --cpus-per-task=8\n", "") + "srun -n 8 -c 16 ./solver\n"),
    ("ranks-mismatch", SLURM + "horovodrun -np 8 -H $HOSTS python t.py\n"),
    ("ranks-mismatch", PBS.replace(":mpiprocs=4", "") + "mpirun -np 64 ./solver\n"),
    ("nodes-mismatch", NODES + "for i in 0 1; do srun -n 1 -w ${N[i]} " + RUN.strip() + " & done\nwait\n"),
    ("nodes-mismatch", NODES + "srun -n 2 " + RUN),
    ("nodes-mismatch", SLURM + "mpirun -np 8 --map-by ppr:4:node python t.py\n"),
    ("random-rendezvous", NODES + "srun bash -c 'python t.py --dist-url tcp://localhost:$RANDOM'\n"),
    ("random-rendezvous", NODES + "srun bash -c 'p=$((20000 + SLURM_JOB_ID % 9000)); torchrun --nnodes=2 --master_port=$p t.py'\n"),
    ("large-port", NODES + "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\nsrun python t.py\n"),
    ("large-port", NODES + "export MASTER_PORT=2${SLURM_JOB_ID: -4}\nsrun python t.py\n"),
    ("requeue-folder", ONE + "D=runs/$RANDOM\npython t.py --resume $D\n"),
    ("requeue-folder", REQUEUE + "D=runs/$SLURM_JOB_ID\npython t.py --resume $D\n"),
    ("requeue-folder", REQUEUE + "D=runs/$(date +%s)\n[ -d $D ] || mkdir -p $D\npython t.py --out $D\n"),
    ("requeue-folder", REQUEUE + "D=runs/$(date +%s)\ncp -r runs/last $D\npython t.py --resume $D\n"),
    ("requeue-folder", REQUEUE + "D=runs/$(date +%s)\npython t.py --out $D\n[ -f $D/last.pt ] && python e.py\n"),
    ("container-network", NODES + "srun docker run --net host torch:2 " + RUN),
    ("container-network", NODES + "srun docker run --network=host torch:2 " + RUN),
    ("container-network", NODES + "srun docker run -p 2000:2000 torch:2 " + RUN),
    ("container-network", NODES + "srun docker run $OPTIONS torch:2 " + RUN),
    ("container-network", NODES + "srun docker run torch:2 " + RUN.replace("nnodes=2", "nnodes=1")),
    ("container-network", NODES + "srun apptainer exec i.sif " + RUN),
    ("container-driver", NODES + "srun apptainer exec --nv i.sif " + RUN),
    ("container-driver", ONE + "module load cuda rocm\napptainer exec --nv i.sif python t.py\n"),
    ("container-driver", ONE + "apptainer exec --nv --rocm torch-rocm6.sif python t.py\n"),
    ("container-driver", ONE + "module load rocm\napptainer exec --rocm i.sif python t.py\n"),
    ("container-driver", NODES + "srun apptainer exec $OPTIONS i.sif " + RUN),
    ("container-driver", NODES + "export APPTAINER_NV=1\nsrun apptainer exec i.sif " + RUN),
    ("container-driver", NODES + "module load rocm\nsrun apptainer exec i.sif " + RUN),
    ("container-driver", TASK + "apptainer exec i.sif python t.py\n"),
    ("idle-component", PARTS + "srun --het-group=0 python actor.py : --het-group=1 python t.py\n"),
    ("idle-component", PARTS + "srun --het-group=0-1 python t.py\n"),
    ("early-expansion", SLURM + "cat > rank.sh <<'END'\nexport RANK=$SLURM_PROCID\npython t.py\nEND\nsrun bash rank.sh\n"),
    ("early-expansion", SLURM + "cat > rank.sh <<END\nexport RANK=\\$SLURM_PROCID\npython t.py\nEND\nsrun bash rank.sh\n"),
    ("sorted-hosts", PBS + "sort -u $PBS_NODEFILE | sed 's/$/ slots=4/' > h.$PBS_JOBID\ndeepspeed --hostfile h.$PBS_JOBID t.py\n"),
    ("program-threads", TASK + 'python fit.py --n_jobs "$SLURM_CPUS_PER_TASK"\n'),
    ("program-threads", TASK + "python fit.py --n_jobs 3\n"),
    ("program-threads", TASK + "snakemake --jobs 100 --threads 16\n"),
    ("program-threads", TASK + "python part.py --workers 16 --worker_id $SLURM_ARRAY_TASK_ID\n"),
    ("program-threads", SLURM + "srun python t.py --num_workers 8\n"),
    ("program-threads", ONE.replace("--cpus-per-task=8", "--exclusive") + "python fit.py --threads 32\n"),
    ("absent-hostfile", SLURM + "scontrol show hostnames > hosts.new\nmpirun -hostfile hosts.new ./solver\n"),
    ("absent-hostfile", SLURM + "mpirun -hostfile /etc/hosts.of.cluster ./solver\n"),
    ("absent-hostfile", SLURM + "mpirun -H node1,node2 ./solver\n"),
    ("ranks-mismatch", EIGHT + "export MASTER_ADDR=$(hostname)\nsrun --ntasks=8 --ntasks-per-node=4 python t.py\n"),
    ("unexported-variable", SLURM + "set -a\nMASTER_ADDR=$(hostname)\nsrun python t.py\n"),
    ("unexported-variable", SLURM + "source env.sh\nMASTER_ADDR=$(hostname)\nsrun python t.py\n"),
    ("unexported-variable", SLURM + "MASTER_ADDR=$(hostname)\nsrun python t.py --master $MASTER_ADDR\n"),
    ("unexported-variable", SLURM + "MASTER_ADDR=$(hostname)\ndeclare -x MASTER_ADDR\nsrun python t.py\n"),
    ("unexported-variable", SLURM + "NCCL_DEBUG=INFO srun python t.py\n"),
    ("unexported-variable", PBS + "OMP_NUM_THREADS=4\nmpirun ./a\n"),
    ("export-none", SLURM.replace("#SBATCH --time", "#SBATCH --export=ALL,A=1\n#SBATCH --time") + "ml x\nsrun ./a\n"),
    ("export-none", SLURM.replace("#SBATCH --time", "#SBATCH --export=NONE\n#SBATCH --time") + "ml x\nunset SLURM_EXPORT_ENV\nsrun ./a\n"),
    ("export-names", SLURM + 'srun --export="$KEPT",A=$B python t.py\nsrun --export=ALL,A="$B" python t.py\n'),
    ("export-names", SLURM + "srun --export=NONE /opt/a/t\n"),
    ("export-names", SLURM + "srun --export=all,A=1 python t.py\nsrun --export=PATH,A python t.py\n"),
    ("unpassed-variable", SLURM + DEBUG + "srun --export=ALL,A=1 python t.py\n"),
    ("unpassed-variable", SLURM + DEBUG + "srun --export=PATH,NCCL_DEBUG python t.py\n"),
    ("unpassed-variable", SLURM + DEBUG + "module load openmpi\nmpirun -x PATH python t.py\n"),
    ("unpassed-variable", OPEN + DEBUG + "mpirun -np 8 ./a\n"),
    ("unpassed-variable", OPEN + DEBUG + "mpirun --mca plm rsh -x NCCL_DEBUG ./a\n"),
    ("unpassed-variable", OPEN + DEBUG + "mpirun --mca plm rsh -x NCCL_DEBUG=WARN ./a\n"),
    ("unpassed-variable", OPEN + DEBUG + "mpirun --mca plm rsh --mca mca_base_env_list 'PATH;NCCL_DEBUG' ./a\n"),
    ("unpassed-variable", OPEN + DEBUG + "mpirun --mca plm rsh $X ./a\n"),
    ("unpassed-variable", PBS + "module load mpich\n" + DEBUG + "mpirun -np 8 ./a\n"),
    ("unpassed-variable", PBS + DEBUG + "mpiexec.hydra -n 8 -ppn 4 -genv A 1 ./a\n"),
    ("unpassed-variable", PBS + DEBUG + "mpirun -genvlist PATH,NCCL_DEBUG -n 8 -ppn 4 ./a\n"),
    ("unpassed-variable", PBS + DEBUG + "mpirun -genvnone -genv NCCL_DEBUG INFO -n 8 -ppn 4 ./a\n"),
    ("unpassed-variable", PBS + DEBUG + f"for h in $H; do ssh $h 'export NCCL_DEBUG=1; {RUN.strip()}' & done\n"),
    ("unpassed-variable", PBS + DEBUG + f"for h in $H; do ssh $h NCCL_DEBUG=$NCCL_DEBUG {RUN.strip()} & done\n"),
    ("unpassed-variable", PBS + DEBUG + f"for h in $H; do ssh $h 'source $PWD/env.sh; {RUN.strip()}' & done\n"),
    ("unpassed-variable", PBS + DEBUG + f"for h in $H; do ssh -o SendEnv=NCCL_DEBUG $h {RUN.strip()} & done\n"),
    ("unpassed-variable", PBS + f"{DEBUG}ssh $h 'hostname'\nsrun ./a\n"),
    ("too-many-threads", SLURM + "export OMP_NUM_THREADS=8\nsrun python t.py\n"),
    ("world-size", SLURM + f"export WORLD_SIZE=8\nsrun bash -c '{SET}'\n"),
    ("world-size", SLURM + "srun python train.py trainer.devices=4 trainer.num_nodes=2\n"),
    ("world-size", SLURM + "srun python train.py trainer.devices=auto trainer.num_nodes=$SLURM_NNODES\n"),
    ("ranks-mismatch", NODES + "srun accelerate launch --config_file c.yaml --num_processes 4 t.py\n"),
    ("hostfile-slots", NODES + "G=4\nscontrol show hostnames | sed \"s/$/ slots=$G/\" > hosts.$SLURM_JOB_ID\ndeepspeed --hostfile hosts.$SLURM_JOB_ID t.py\n"),
    ("signal-without-trap", SLURM.replace("#SBATCH --time", "#SBATCH --signal=B:USR1@60\n#SBATCH --time") + "exec srun ./a\n"),
    ("blocking-steps", ONE + "srun --overlap -n1 nvidia-smi -l 60 &\nsrun python t.py\n"),
    ("blocking-steps", SLURM + "srun -N1 -n1 ./a &\nsrun -N1 -n1 ./b &\nwait\n"),
    ("first-node-files", SLURM + "srun --ntasks-per-node=1 cp -r data /tmp\ncp x /tmp/y\nsrun python t.py --data /tmp/data\n"),
    ("rm-in-ranks", SLURM + "srun bash -c '[ $SLURM_PROCID = 0 ] && rm -rf out; python t.py'\n"),
    ("rm-in-ranks", SLURM + "srun bash -c 'rm -rf /tmp/cache; python t.py'\n"),
    ("rank-number", SLURM + f"srun bash -c '{SET}'\n"),
    ("rank-number", SLURM + "srun bash -c 'WORLD_SIZE=$SLURM_NTASKS RANK=$SLURM_PROCID python t.py'\n"),
    ("rank-number", NODES + "srun bash -c 'RANK=$SLURM_NODEID WORLD_SIZE=$SLURM_NNODES python t.py'\n"),
    ("rank-number", ONE + "srun bash -c 'RANK=$SLURM_LOCALID LOCAL_RANK=$SLURM_PROCID python t.py'\n"),
    ("rank-number", NODES + "srun bash -c 'WORLD_SIZE=$SLURM_NNODES torchrun --nnodes 2 --node_rank $SLURM_PROCID t.py'\n"),
    ("early-expansion", PBS + "mpiexec -n 8 bash -c 'python t.py --rank $PMI_RANK'\n"),
    ("early-expansion", OPEN + "mpirun bash -c \"LOCAL_RANK=\\$OMPI_COMM_WORLD_LOCAL_RANK python t.py\"\n"),
    ("early-expansion", OPEN + "if [ -z \"$PMI_RANK\" ]; then mpirun $0; exit; fi\nexport RANK=$PMI_RANK\n"),
    ("local-master", NODES + "srun torchrun --rdzv-endpoint $HEAD:$PORT --nnodes 2 t.py\n"),
    ("first-node-only", PBS + "horovodrun -np 8 -H $HOSTS python t.py\n"),
    ("first-node-only", PBS + "horovodrun -np 8 --hostfile hosts python t.py\n"),
    ("first-node-only", ONE + "horovodrun -np 4 python t.py\n"),
    ("remote-directory", NODES + f"for h in $H; do ssh $h \"cd $PWD && {RUN.strip()}\" & done\n"),
    ("remote-directory", NODES + f"for h in $H; do ssh $h {RUN.strip().replace('t.py', '/x/t.py')} & done\n"),
    ("remote-directory", NODES + f"srun {RUN}"),
    ("too-many-threads", NODES + "export OMP_NUM_THREADS=$(nproc)\nsrun python t.py\n"),
    ("too-many-threads", SLURM + "export OMP_NUM_THREADS=16\nsrun lmp -in in.lj\n"),
    ("unexported-variable", SLURM + "N=1\nsrun shifter --env N=$N bash -c './a $N'\nsrun env N=$N bash -c './a $N'\n"),
    ("too-many-threads", PBS + "export OMP_NUM_THREADS=24\nmpiexec -ppn 1 lmp -in in.lj\n"),
    ("unexported-variable", SLURM + f"export M=$(hostname)\nsrun bash -c '{RUN.strip()}'\n"),
    ("unexported-variable", SLURM + "N=1\nsrun bash -c 'N=2; ./a $N; for D in x; do ./a $D ${E:-1}; done'\n"),
    ("unexported-variable", SLURM + "D=x\ncat > r.sh <<E\npython t.py $D\nE\nsrun bash r.sh\n"),
    ("visible-devices", NODES + f"srun --gpus-per-task=4 {RUN}"),
    ("nodes-mismatch", NODES.replace("nodes=2", "nodes=4") + f"srun -N 2 {RUN}"),
    ("nodes-mismatch", NODES.replace("nodes=2", "nodes=4") + f"srun {RUN}srun {RUN}"),
    ("serial-nodes", NODES + "for i in 0 1; do srun -w ${N[$i]} torchrun --nnodes 2 --node_rank $i t.py & done\n"),
    ("serial-nodes", NODES + "for f in 0 1; do srun torchrun --nnodes 2 --node_rank $SLURM_NODEID t.py $f\ndone\n"),
    ("hand-written-hosts", PBS + "mpirun -np 4 -host localhost ./a\n"),
    ("hand-written-hosts", "#PBS -l nodes=node1:ppn=4+node2:ppn=4\nmpirun -np 8 -host node1,node2 ./a\n"),
    ("missing-node-rank", NODES + QUOTED.format(more="--rdzv_conf=is_host=\\$(((SLURM_NODEID)) && echo 0 || echo 1) --node_rank \\$SLURM_NODEID")),
    ("missing-node-rank", NODES + QUOTED.format(more="--tag it's --node_rank \\$SLURM_NODEID")),
    ("missing-node-rank", NODES + QUOTED.format(more="--role \"$A:$B\" --node_rank \\$SLURM_NODEID")),
    ("missing-node-rank", NODES + QUOTED.format(more="--log-dir \\\"logs/\\$(date +\"%F\")\\\" --node_rank \\$SLURM_NODEID")),
    ("missing-node-rank", NODES + "srun torchrun --nnodes=2 --a=$((date; date) | tail -n 1) --rdzv-backend=c10d t.py\n"),
    ("nested-tasks", SLURM + "srun --ntasks=2 --ntasks-per-node=1 " + RUN),
    ("nested-tasks", SLURM + "srun --nodes=2 --ntasks-per-node=1 " + RUN),
    ("nested-tasks", NODES + "srun --ntasks-per-node=1 " + RUN),
    ("first-node-files", SLURM + "srun -n 2 --ntasks-per-node=1 tar -xf a.tar -C /tmp/a\nsrun python t.py /tmp/a/b\n"),
    ("first-node-files", SLURM + "for h in $(scontrol show hostnames); do srun -N 1 -n 1 -w $h tar -xf a.tar -C /tmp/a; done\nsrun python t.py /tmp/a/b\n"),
    ("first-node-only", NODES + "srun deepspeed --hostfile h.$SLURM_JOB_ID --no_ssh --node_rank $SLURM_NODEID t.py\n"),
    ("ranks-mismatch", NODES + "srun bash -c 'accelerate launch --config_file c.yaml --num_processes 4 --machine_rank $SLURM_NODEID t.py'\n"),
    ("visible-devices", NODES + f"export CUDA_VISIBLE_DEVICES=0,1\nsrun bash -c 'export CUDA_VISIBLE_DEVICES=0,1,2,3; {RUN.strip()}'\n"),
    ("nodes-mismatch", OPEN + "mpirun -np 2 --map-by slot:span python t.py\n"),
    ("nodes-mismatch", OPEN + "mpirun -np 2 --map-by $HOW python t.py\n"),
    ("ranks-mismatch", SLURM + "H=\nfor h in $(scontrol show hostnames); do H=${H:+$H,}$h:4; done\nhorovodrun -np 8 -H \"$H\" python t.py\n"),
    ("ranks-mismatch", NODES.replace("gpus-per-node=4", "gres=npu:8") + "srun msrun --worker_num=16 --local_worker_num=8 --join=True t.py\n"),
    ("other-port", NODES + ADDRESS + "srun -w ${H[0]} ray start --head --block &\nsrun -w ${H[1]} ray start --address ${H[0]}:6379 --block &\nwait\n"),
    ("other-port", ONE + "vllm serve m &\nssh -fNL 9000:localhost:8000 $H\ncurl http://localhost:9000/health\nkill $!\n"),
    ("master-address", NODES + ADDRESS + "W=$(IFS=,; echo \"${H[*]:1}\")\nsrun -N 1 -w $W torchrun --nnodes=1 --rdzv-backend=c10d --rdzv-endpoint=${H[1]}:2000 t.py\n"),
    ("sorted-hosts", PBS + "H=h.$PBS_JOBID\nsort -u $PBS_NODEFILE | sed 's/$/ slots=4/' > \"$H\"\ndeepspeed --hostfile=\"$H\" t.py\n"),
    ("sorted-hosts", PBS + "N=($(sort -u $PBS_NODEFILE))\nfor n in \"${N[@]}\"; do ssh $n \"cd $PWD; torchrun --nnodes 2 --master_addr ${N[0]} t.py\" & done\nwait\n"),
    ("cann-not-sourced", PBS.replace("ngpus", "nnpus") + "export HCCL_CONNECT_TIMEOUT=9\npbs_tmrsh $H bash -c 'source /opt/Ascend/set_env.sh; python t.py'\n"),
    ("signal-without-trap", TRAP + "source traps.sh\nsrun python t.py\n"),
    ("signal-without-trap", TRAP + "exec python t.py\n"),
    ("missing-master", NODES + "cat > n.sh <<END\ntorchrun --nnodes=2 --rdzv-backend=c10d \\\\\n  --rdzv-endpoint=$M:2000 t.py\nEND\nsrun bash n.sh\n"),
    ("ephemeral-port", NODES + "P=$((20000 + SLURM_JOB_ID % 10000))\nsrun torchrun --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=\"$M:$P\" t.py\n"),
    ("large-port", NODES + "P=$((20000 + SLURM_JOB_ID))\nsrun torchrun --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=$M-$P t.py\n"),
    ("standalone-nodes", NODES + "srun accelerate launch --num_processes 4 t.py\n"),
    ("first-node-only", PBS + "torchrun --standalone --nproc-per-node=4 t.py &\nwait\n"),
    ("home-directory", PBS + "mpirun -np 8 $PBS_O_WORKDIR/solver\n"),
    ("unexported-variable", SLURM + "f() {\nlocal MASTER_ADDR=$(hostname)\n}\nf\nsrun python t.py\n"),
    ("unexported-variable", SLURM + "f() {\nMASTER_ADDR=$(hostname)\nexport MASTER_ADDR\n}\nf\nsrun python t.py\n"),
    ("unexported-variable", SLURM + "read -r MASTER_ADDR < <(scontrol show hostnames)\nexport MASTER_ADDR\nsrun python t.py\n"),
    ("unexported-variable", SLURM + "scontrol show hostnames | while read -r MASTER_ADDR; do echo; done\nsrun python t.py\n"),
    ("missing-node-rank", NODES + "srun torchrun --nnodes=2 \\ \n  --rdzv-backend=c10d --rdzv-endpoint=$M:2000 t.py\n"),
    ("signal-without-trap", TRAP + "trap \"scontrol requeue $SLURM_JOB_ID\" USR1\nsrun python t.py &\nwait $!\n"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "script"), FOUND)
def test_a_mistake_is_found(rule: str, script: str) -> None:
    assert rule in {one.rule for one in check(script.encode())}


@pytest.mark.parametrize(("rule", "script"), SILENT)
def test_what_is_right_is_not(rule: str, script: str) -> None:
    assert rule not in {one.rule for one in check(script.encode())}


PROGRAMS = {
    "import os\nimport torch\n\ntorch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n": "task-devices",
    "import os\nimport torch\n\nlocal = int(os.getenv('SLURM_LOCALID'))\ntorch.zeros(1).to(f'cuda:{local}')\n": "task-devices",
    "import lightning as L\n\nL.Trainer(devices=2, num_nodes=2)\n": "world-size",
    "import os\n\nprint(os.environ['DATA_ROOT'])\n": "unexported-variable",
}
OF_TORCH = "import torch.distributed as dist\n\ndist.init_process_group({}rank=int(os.environ['SLURM_PROCID']), world_size=8)\n"
NO_ADDRESS = [
    ("", "", True),
    ("'tcp://a:1', ", "", False),
    ("", "export MASTER_ADDR=$H\n", False),
    ("", "source e.sh\n", False),
]


@pytest.mark.parametrize(("more", "found"), [("", True), (" LOCAL_RANK=$SLURM_LOCALID", False)])
def test_ranks_without_a_local_rank(more: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("from transformers import Trainer\n\nTrainer().train()\n")
    script = SLURM + f"srun bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS{more} python t.py'\n"
    rules = {one.rule for one in check(script.encode(), folder=str(tmp_path))}
    assert ("no-rank-variables" in rules) is found


def test_the_loaders_of_a_file_with_one_core(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("import torch\n\nload(num_workers=8)\n")
    script = SLURM.replace("task=8", "task=1") + "srun python t.py\n"
    assert "loader-cores" in {one.rule for one in check(script.encode(), folder=str(tmp_path))}


@pytest.mark.parametrize(("command", "backend"), [("python t.py", "mpi"), ("./wrap.sh python t.py", "nccl")])
def test_an_address_that_may_be_set_elsewhere(command: str, backend: str, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("import os\n" + OF_TORCH.format(f"'{backend}', "))
    found = check(f"{SLURM}srun {command}\n".encode(), folder=str(tmp_path))
    assert {one.rule for one in found}.isdisjoint({"missing-master", "no-rank-variables"})


@pytest.mark.parametrize("module", ["import idr_torch", "from utils import env", "from .utils import env"])
def test_a_module_that_may_set_the_address(module: str, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(f"import os\n{module}\n" + OF_TORCH.format(""))
    found = check((SLURM + "srun python t.py\n").encode(), folder=str(tmp_path))
    assert "missing-master" not in {one.rule for one in found}


@pytest.mark.parametrize(("argument", "line", "found"), NO_ADDRESS)
def test_ranks_without_an_address(argument: str, line: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("import os\n" + OF_TORCH.format(argument))
    rules = {one.rule for one in check((SLURM + line + "srun python t.py\n").encode(), folder=str(tmp_path))}
    assert ("missing-master" in rules) is found


def test_the_number_in_a_file_wins_over_an_option_that_it_ignores(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("import lightning as L\n\nL.Trainer(devices=2)\n")
    found = check((SLURM + "srun python t.py --devices 4\n").encode(), folder=str(tmp_path))
    assert "world-size" in {one.rule for one in found}


@pytest.mark.parametrize("launcher", ["aprun", "/opt/mpi/bin/mpiexec", "jsrun"])
def test_a_launcher_has_the_name_that_the_script_has(launcher: str) -> None:
    [found] = [
        one for one in check(f"{PBS}{launcher} -n 1000 ./a\n".encode()) if one.rule == "ranks-mismatch"
    ]
    assert found.reason.startswith(launcher.rpartition("/")[2] + " gets 1000 ranks")


DEVICES = [("devices=4", True), ("devices=2", False), ("devices=4, accelerator='cpu'", False)]


@pytest.mark.parametrize(("text", "rule"), PROGRAMS.items())
def test_the_file_of_the_program_proves_an_error(text: str, rule: str, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(text)
    script = SLURM + "DATA_ROOT=/data\nsrun --gpus-per-task=1 python t.py\n"
    found = {one.rule: one.severity for one in check(script.encode(), folder=str(tmp_path))}
    assert found[rule] == "error"


@pytest.mark.parametrize(("words", "found"), DEVICES)
def test_the_devices_of_a_trainer(words: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(f"import lightning as L\n\nL.Trainer({words})\n")
    script = "#!/bin/bash\n#SBATCH --gpus-per-node=2\n#SBATCH --time=01:00:00\nset -e\npython t.py\n"
    rules = {one.rule for one in check(script.encode(), folder=str(tmp_path))}
    assert ("ranks-mismatch" in rules) is found


QUIET = [
    "import os\nimport torch\n\ntorch.cuda.set_device(int(os.environ['LOCAL_RANK']) % torch.cuda.device_count())\n",
    "import os\n\nos.environ['DATA_ROOT'] = '/x'\nprint(os.environ['DATA_ROOT'])\n",
    "print 'python 2'\n",
    "import lightning as L\n\nL.Trainer(devices='auto', num_nodes=2)\n".replace("lightning", "light"),
]


@pytest.mark.parametrize("text", QUIET)
def test_the_file_of_a_right_program_is_quiet(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(text)
    script = SLURM + "DATA_ROOT=/data\nsrun --gpus-per-task=1 python t.py\n"
    assert [one for one in check(script.encode(), folder=str(tmp_path)) if one.severity == "error"] == []


@pytest.mark.parametrize("more", ["", "import own_package\n", "import multiprocessing\n"])
def test_a_program_without_ranks_runs_the_same_in_each_task(more: str, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(f"import torch\n{more}")
    found = check((SLURM + "srun python t.py\n").encode(), folder=str(tmp_path))
    assert ("identical-tasks" in {one.rule for one in found}) is (more == "")


TRAINS = {
    "from transformers import Trainer\n\nTrainer().train()\n": True,
    "import torch.distributed as dist\n\ndist.init_process_group('nccl')\n": True,
    "from accelerate import Accelerator\n": True,
    "import os\nimport torch.distributed as dist\n\nos.environ['RANK'] = '0'\ndist.init_process_group('nccl')\n": False,
    "import torch.distributed as dist\n\ndist.init_process_group('nccl', rank=number(), world_size=2)\n": False,
    "import lightning\nimport transformers\n": False,
    "import horovod.torch as hvd\n": False,
}


@pytest.mark.parametrize(("text", "fails"), TRAINS.items())
def test_a_program_that_needs_what_srun_and_mpirun_do_not_set(text: str, fails: bool, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(text)
    own = "export WORLD_SIZE=8\n"
    for script in (
        SLURM + "srun python t.py\n",
        SLURM + own + "srun python t.py\n",
        OPEN + "mpirun -np 8 --map-by ppr:4:node python t.py\n",
    ):
        found = check(script.encode(), folder=str(tmp_path))
        assert ("no-rank-variables" in {one.rule for one in found}) is fails
    for script in (SLURM + f"srun bash -c '{SET}'\n", NODES + f"srun {RUN}", ONE + "python t.py\n"):
        found = check(script.encode(), folder=str(tmp_path))
        assert "no-rank-variables" not in {one.rule for one in found}


CONFIG = "distributed_type: {kind}\nmixed_precision: bf16\nnum_machines: {machines}\nnum_processes: {processes}\nmachine_rank: 0\nrdzv_backend: static\n"
SIZES = [
    ("FSDP", 2, 4, "--machine_rank $SLURM_NODEID", {"ranks-mismatch"}),
    ("MULTI_GPU", 4, 16, "--machine_rank $SLURM_NODEID", {"nodes-mismatch"}),
    ("MULTI_GPU", 2, 8, "", {"missing-node-rank"}),
    ("MULTI_GPU", 2, 8, "--machine_rank $SLURM_NODEID", set()),
    ("MULTI_GPU", 2, 4, "--machine_rank $SLURM_NODEID --num_processes 8", set()),
    ("MULTI_GPU", 1, 4, "--num_machines 2 --num_processes 8 --rdzv_backend c10d", set()),
    ("DEEPSPEED", 2, 4, "", set()),  # pdsh starts the ranks, by a hostfile
]


@pytest.mark.parametrize(("kind", "machines", "processes", "options", "rules"), SIZES)
def test_the_config_of_accelerate_has_sizes(
    kind: str, machines: int, processes: int, options: str, rules: set[str], tmp_path: Path
) -> None:
    text = CONFIG.format(kind=kind, machines=machines, processes=processes)
    (tmp_path / "c.yaml").write_text(text)
    script = NODES + f"srun bash -c 'accelerate launch --config_file c.yaml {options} t.py'\n"
    found = {one.rule for one in check(script.encode(), folder=str(tmp_path))}
    assert found & {"ranks-mismatch", "nodes-mismatch", "missing-node-rank"} == rules


@pytest.mark.parametrize(
    ("start", "set_here", "found"),
    [("ssh $H", "", True), ("pbsdsh --", "", True), ("ssh $H", "M=x\n", False), ("mpirun", "", False)],
)
def test_a_script_on_another_node_has_no_variable_of_the_job(
    start: str, set_here: str, found: bool, tmp_path: Path
) -> None:
    (tmp_path / "node.sh").write_text(f"#!/bin/bash\nset -eu\nsource v/bin/activate\n{set_here}{RUN}")
    (tmp_path / "job.pbs").write_text(PBS + f"export M=$(hostname)\n{start} bash $PBS_O_WORKDIR/node.sh\n")
    source = (tmp_path / "job.pbs").read_bytes()
    rules = {one.rule for one in check(source, "job.pbs", folder=str(tmp_path))}
    assert ("unpassed-variable" in rules) is found


@pytest.mark.parametrize(
    ("signal", "start", "found"),
    [
        ("USR1@60", "", True),
        ("USR1@60", "exec ", False),
        ("B:USR1@60", "", False),
        ("USR1@60", "trap '' USR1\n", False),
    ],
)
def test_a_shell_in_a_step_gets_the_signal_too(signal: str, start: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "rank.sh").write_text(f"#!/bin/bash\nsource v/bin/activate\n{start}python t.py\n")
    script = (
        SLURM.replace("#SBATCH --time", f"#SBATCH --signal={signal}\n#SBATCH --time") + "srun bash rank.sh\n"
    )
    rules = [(one.file, one.rule) for one in check(script.encode(), "job.sh", folder=str(tmp_path))]
    assert (("rank.sh", "signal-to-steps") in rules) is found
    inside = SLURM.replace("#SBATCH --time", f"#SBATCH --signal={signal}\n#SBATCH --time")
    inside += f'srun bash -c "{start.replace(chr(10), "; ")}python t.py; echo done"\n'
    assert ("signal-to-steps" in {one.rule for one in check(inside.encode())}) is found


@pytest.mark.parametrize(
    ("options", "found"), [("--cleanenv --env SLURM_PROCID=1", False), ("--cleanenv", True), ("", False)]
)
def test_code_in_a_container_sets_variables_of_its_program(options: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("import os\n\nprint(os.environ['RANK'])\n")
    script = SLURM + f"srun apptainer exec {options} i.sif bash -c 'export RANK=$SLURM_PROCID; python t.py'\n"
    rules = {one.rule for one in check(script.encode(), folder=str(tmp_path))}
    assert ("unpassed-variable" in rules) is found


def test_each_launch_with_other_sizes_than_those_of_lightning_is_found() -> None:
    steps = (
        "srun python a.py --trainer.devices=4 --trainer.num_nodes=4\nsrun python b.py --trainer.devices=8\n"
    )
    lines = [one.line for one in check((SLURM + steps).encode()) if one.rule == "world-size"]
    assert lines == [SLURM.count("\n") + 1, SLURM.count("\n") + 2]
