#!/bin/bash
#SBATCH --job-name=mnist
#SBATCH --partition=gpu
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --gpus-per-node=1
#SBATCH --time=12:00:00
#SBATCH --output=%x.o%j
# The hosts of the job, one line a slot, as PBS lists them.
PBS_NODEFILE=$(mktemp)
trap 'rm -f "$PBS_NODEFILE"' EXIT
scontrol show hostnames "$SLURM_JOB_NODELIST" > "$PBS_NODEFILE"
export PBS_NODEFILE
cd "$SLURM_SUBMIT_DIR" || exit 1

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
