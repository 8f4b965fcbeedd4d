#!/bin/bash
#SBATCH --job-name=told
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=1
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
#SBATCH --array=1-4%2
#SBATCH --dependency=afterok:12,after:7
#SBATCH --output=told-%j.out-%a
#SBATCH --mail-type=NONE
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --constraint=a100&ib
#SBATCH --qos=high
#SBATCH --reservation=night.1
# not translated: -a 12312000: the date has no year: add it
# not translated: -p 5: only an operator of Slurm may increase it; use 0 or less
cd "$SLURM_SUBMIT_DIR" || exit 1
srun --ntasks=8 --kill-on-bad-exit=1 --mpi=pmix python train.py
# 6: look: -W depend=afterokarray:12[].head,after:7: names a job of Torque: write the number of a job of Slurm
# 7: -a 12312000: the date has no year: add it
# 8: -p 5: only an operator of Slurm may increase it; use 0 or less
# 9: look: -t 1-4%2: programs that read PBS_ARRAYID find SLURM_ARRAY_TASK_ID
# 11: look: the output file told-$PBS_JOBID.out: Torque appends -INDEX to the name of the log of each task
# 14: look: OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_LOCAL_RANK: programs that read them find SLURM_PROCID, and so on
# 14: look: mpirun: no module or variable names the MPI: --mpi=pmix is for Open MPI
