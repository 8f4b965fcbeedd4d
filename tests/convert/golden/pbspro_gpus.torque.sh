#!/bin/bash
#PBS -N vit
#PBS -q gpu
#PBS -A proj42
#PBS -l nodes=2:ppn=32:gpus=4
#PBS -l mem=960gb
#PBS -l walltime=12:00:00
#PBS -t 0,3,6,9%2
#PBS -W depend=afterok:4711
#PBS -m ae
#PBS -M me@example.org
#PBS -v STAGE
#PBS -l naccesspolicy=singlejob
# not translated: -l filesystems=home:eagle: has no counterpart in Torque
set -euo pipefail
export DATA=/data/imagenet
export OMP_NUM_THREADS=32  # PBS Pro sets it to the cores of a node
module load openmpi
export MASTER_ADDR MASTER_PORT NCCL_DEBUG=WARN
MASTER_ADDR=$(head -n 1 "$PBS_NODEFILE")
MASTER_PORT=$((20000 + PBS_ARRAYID))
echo "task $PBS_ARRAYID of job $PBS_JOBID, submitted in $PBS_O_WORKDIR"
mpirun -np 8 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to core -x MASTER_ADDR -x MASTER_PORT \
  python "$PBS_O_WORKDIR/train.py" --fold "$PBS_ARRAYID"
# 5: look: 8 cores for each of 4 ranks: Torque counts cores only: ppn is their product
# 8: -l filesystems=home:eagle: has no counterpart in Torque
# 9: look: -J 0-9:3%2: programs that read PBS_ARRAY_INDEX find PBS_ARRAYID
# 10: look: -W depend=afterok:4711.server: names a job of PBS Pro: write the number of a job of Torque
# 11: look: -m ae: Torque sends it for each task of the array, PBS Pro for the array as a whole
