#!/bin/bash
#PBS -N two
#PBS -l select=1:ncpus=2:mpiprocs=2+2:ncpus=4:mpiprocs=4:ngpus=4
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -q work
#PBS -j oe
module load openmpi
cd "$PBS_O_WORKDIR" || exit 1
MASTER_ADDR=$(head -n 1 "$PBS_NODEFILE")
export MASTER_ADDR
mpirun -np 10 --hostfile "$PBS_NODEFILE" -x MASTER_ADDR ./solver "$PBS_JOBID" > solver.log
