#!/bin/bash
#SBATCH -J told -N 2 --ntasks-per-node=1 --time=10:00:00
#SBATCH --reservation=R12
#SBATCH --qos=high
#SBATCH --constraint=a100&ib
#SBATCH --licenses=matlab:2,ansys
#SBATCH --comment="the last one"
#SBATCH --begin=2030-01-31T20:00:30
#SBATCH --nice=5
#SBATCH --exclusive
#SBATCH --array=0-9%3
#SBATCH --output=%x-%A-%a.out
#SBATCH --mail-type=END,TIME_LIMIT --mail-user=me@example.org
#SBATCH --dependency=afterok:12,aftercorr:13
srun hostname
