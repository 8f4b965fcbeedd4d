#!/bin/bash
#SBATCH --job-name=two
#SBATCH --partition=work
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#SBATCH --output=%x.o%j
#SBATCH hetjob
#SBATCH --partition=work
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=1
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
export OMP_NUM_THREADS=2  # PBS Pro sets it to the cores of a node
# The hosts of the job, one line a slot, as PBS lists them.
PBS_NODEFILE=$(mktemp)
trap 'rm -f "$PBS_NODEFILE"' EXIT
{
  scontrol show hostnames "$SLURM_JOB_NODELIST_HET_GROUP_0" | awk '{ for (i = 0; i < 2; i++) print }'
  scontrol show hostnames "$SLURM_JOB_NODELIST_HET_GROUP_1" | awk '{ for (i = 0; i < 4; i++) print }'
} > "$PBS_NODEFILE"
export PBS_NODEFILE
module load openmpi
cd "$SLURM_SUBMIT_DIR" || exit 1
MASTER_ADDR=$(head -n 1 "$PBS_NODEFILE")
export MASTER_ADDR
srun --het-group=0 --nodes=1 --ntasks=2 --ntasks-per-node=2 --cpus-per-task=1 --kill-on-bad-exit=1 --mpi=pmix ./solver "$SLURM_JOB_ID" \
  : --het-group=1 --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=1 --kill-on-bad-exit=1 --mpi=pmix ./solver "$SLURM_JOB_ID" > solver.log
# 12: look: "$PBS_NODEFILE": srun uses the hosts of the job
# 12: look: OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_LOCAL_RANK: programs that read them find SLURM_PROCID, and so on
