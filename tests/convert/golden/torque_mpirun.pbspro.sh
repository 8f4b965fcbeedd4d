#!/bin/bash
#PBS -N mnist-mpi
#PBS -q gpu
#PBS -l select=2:ncpus=1:mpiprocs=1:ngpus=1
#PBS -l place=scatter
#PBS -l walltime=12:00:00
#PBS -j oe
cd "$PBS_O_WORKDIR" || exit 1
hostfile="$PBS_O_WORKDIR/hosts.$PBS_JOBID"
: > "$hostfile"
sort -u "$PBS_NODEFILE" | while read -r host; do
  echo "$host slots=1" >> "$hostfile"
done
source /public/software/profile.d/cuda-11.6-cudnn-8.4.sh
source /public/software/profile.d/compiler-gnu-9.3.0.sh
source /public/software/profile.d/openmpi-4.1.4-intel.sh
# shellcheck source=/dev/null
source ~/.bashrc
conda activate /public/home/me/envs/deepspeed
export NCCL_DEBUG=WARN
mpirun -np 2 -hostfile "$hostfile" -x UCX_TLS=tcp,cuda_copy,cuda_ipc python mnist.py --deepspeed_config ds_config.json
