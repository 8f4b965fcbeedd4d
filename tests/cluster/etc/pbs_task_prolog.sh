#!/bin/sh
# Slurm runs this before every task; "export" and "unset" lines of its output change the task's environment.
# What comes out is what a job of OpenPBS sees: PBS_* with a node file, and nothing of Slurm's.

job=$SLURM_JOB_ID.head
if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
    job="${SLURM_ARRAY_JOB_ID}[$SLURM_ARRAY_TASK_ID].head"
    echo "export PBS_ARRAY_INDEX=$SLURM_ARRAY_TASK_ID"
fi

# A line for every rank, on the node that runs the script only.
nodefile=/run/pbs/$SLURM_JOB_ID.nodes
mv "$(/usr/bin/generate_pbs_nodefile)" "$nodefile" || exit 1

echo "export PBS_JOBID=$job"
echo "export PBS_NODEFILE=$nodefile"
echo "export PBS_ENVIRONMENT=PBS_BATCH"
echo "export PBS_JOBNAME=$SLURM_JOB_NAME"
echo "export PBS_QUEUE=$SLURM_JOB_PARTITION"
echo "export PBS_O_HOST=$SLURM_SUBMIT_HOST"
echo "export PBS_O_WORKDIR=$SLURM_SUBMIT_DIR"

# What OpenPBS does not set: the names of Slurm, those of Torque, and the devices.
env | sed -n 's/^\(SLURMD\{0,1\}_[A-Z0-9_]*\)=.*/unset \1/p'
for name in PBS_ARRAYID PBS_NP PBS_NODENUM PBS_NUM_NODES PBS_NUM_PPN PBS_TASKNUM PBS_VNODENUM \
    CUDA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL ROCR_VISIBLE_DEVICES ZE_AFFINITY_MASK; do
    echo "unset $name"
done
