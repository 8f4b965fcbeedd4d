#!/bin/bash
#SBATCH --job-name=vit
#SBATCH --partition=gpu
#SBATCH --account=proj42
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=4
#SBATCH --mem=480G
#SBATCH --time=12:00:00
#SBATCH --array=0-9:3%2
#SBATCH --dependency=afterok:4711
#SBATCH --output=%x.o%A.%a
#SBATCH --error=%x.e%A.%a
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=me@example.org
#SBATCH --exclusive
# not translated: -l filesystems=home:eagle: has no counterpart in Slurm
set -euo pipefail
cd "$HOME" || exit 1  # where PBS starts a job
export DATA=/data/imagenet
export OMP_NUM_THREADS=32  # PBS Pro sets it to the cores of a node
# The hosts of the job, one line a slot, as PBS lists them.
PBS_NODEFILE=$(mktemp)
trap 'rm -f "$PBS_NODEFILE"' EXIT
scontrol show hostnames "$SLURM_JOB_NODELIST" | awk '{ for (i = 0; i < 4; i++) print }' > "$PBS_NODEFILE"
export PBS_NODEFILE
module load openmpi
export MASTER_ADDR MASTER_PORT NCCL_DEBUG=WARN
MASTER_ADDR=$(head -n 1 "$PBS_NODEFILE")
MASTER_PORT=$((20000 + SLURM_ARRAY_TASK_ID))
echo "task $SLURM_ARRAY_TASK_ID of job $SLURM_JOB_ID, submitted in $SLURM_SUBMIT_DIR"
srun --ntasks=8 --ntasks-per-node=4 --cpus-per-task=8 --cpu-bind=cores --kill-on-bad-exit=1 --mpi=pmix python "$SLURM_SUBMIT_DIR/train.py" --fold "$SLURM_ARRAY_TASK_ID"
# 5: look: -l select=2:ncpus=32:mpiprocs=4:ngpus=4:mem=480gb: is for ALCF Crux, ALCF Polaris or ALCF Sophia, which gives whole nodes: add --exclusive
# 8: -l filesystems=home:eagle: has no counterpart in Slurm
# 9: look: -J 0-9:3%2: programs that read PBS_ARRAY_INDEX find SLURM_ARRAY_TASK_ID
# 10: look: -W depend=afterok:4711.server: names a job of PBS Pro: write the number of a job of Slurm
# 20: look: "$PBS_NODEFILE": srun uses the hosts of the job
# 20: look: OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_LOCAL_RANK: programs that read them find SLURM_PROCID, and so on
