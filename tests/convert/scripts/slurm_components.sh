#!/bin/bash
#SBATCH --job-name=two --time=01:00:00 --account=proj --partition=work
#SBATCH --nodes=1 --ntasks-per-node=2
#SBATCH hetjob
#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4
module load openmpi
srun --het-group=0 -n 2 ./solver "$SLURM_JOB_ID" \
  : --het-group=1 -n 8 ./solver "$SLURM_JOB_ID" > solver.log
