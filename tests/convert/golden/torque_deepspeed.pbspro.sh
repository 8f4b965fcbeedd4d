#!/bin/bash
#PBS -N mnist
#PBS -q gpu
#PBS -l select=2:ncpus=1:mpiprocs=1:ngpus=1
#PBS -l place=scatter
#PBS -l walltime=12:00:00
#PBS -j oe
unset OMP_NUM_THREADS  # PBS Pro sets it to the cores of a node
cd "$PBS_O_WORKDIR" || exit 1

# The hosts for DeepSpeed, with a GPU each.
HOSTFILE=hostfile
cat /dev/null > $HOSTFILE
while read -r line
do
    echo "$line slots=1" >> $HOSTFILE
done < "$PBS_NODEFILE"

source /public/software/profile.d/cuda-11.6-cudnn-8.4.sh
source /public/software/profile.d/compiler-gnu-9.3.0.sh
source /public/software/profile.d/openmpi-4.1.4-intel.sh
conda init
# shellcheck source=/dev/null
source ~/.bashrc
conda activate /public/home/me/envs/deepspeed

deepspeed --hostfile $HOSTFILE mnist.py --deepspeed_config ds_config.json
