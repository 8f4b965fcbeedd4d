#!/bin/bash
# MNIST on two nodes with a GPU each
#PBS -N mnist
#PBS -l nodes=2:ppn=1:gpus=1
#PBS -l walltime=02:00:00
#PBS -j oe
#PBS -q gpu
set -euo pipefail
source /public/profile.d/cuda-11.6.sh
source /public/profile.d/gnu-9.3.sh
eval "$(conda shell.bash hook)"
conda activate /public/envs/deepspeed
cd "$PBS_O_WORKDIR"
hostfile=hostfile.$PBS_JOBID
: > "$hostfile"
while read -r host; do
  echo "$host slots=1" >> "$hostfile"
done < "$PBS_NODEFILE"
mpirun -np "$PBS_NP" -hostfile "$hostfile" -x UCX_TLS=tcp,cuda_copy python mnist.py --deepspeed_config ds.json
