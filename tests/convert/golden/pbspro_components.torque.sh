#!/bin/bash
#PBS -N two
#PBS -q work
#PBS -l nodes=1:ppn=2+2:ppn=4:gpus=4
#PBS -l walltime=01:00:00
#PBS -j oe
export OMP_NUM_THREADS=2  # PBS Pro sets it to the cores of a node
module load openmpi
cd "$PBS_O_WORKDIR" || exit 1
MASTER_ADDR=$(head -n 1 "$PBS_NODEFILE")
export MASTER_ADDR
mpirun -np 10 --hostfile "$PBS_NODEFILE" -x MASTER_ADDR ./solver "$PBS_JOBID" > solver.log
# 2: look: the order of the nodes: the pbs_sched of Torque often lists the last one first: rank 0 is then there
