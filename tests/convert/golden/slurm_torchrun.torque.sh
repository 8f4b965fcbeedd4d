#!/bin/bash
#PBS -N llama
#PBS -q gpu
#PBS -A proj42
#PBS -l nodes=4:ppn=32:gpus=4:a100
#PBS -l mem=1024gb
#PBS -l walltime=36:00:00
#PBS -W depend=afterany:4711
#PBS -j oe
#PBS -m ae
#PBS -M me@example.org
#PBS -V
# shellcheck disable=SC2046  # the words of $(mpi_exports)
set -euo pipefail
cd "$PBS_O_WORKDIR" || exit 1  # where Slurm starts a job
SLURM_CPUS_PER_TASK=32
SLURM_NNODES=$(sort -u "$PBS_NODEFILE" | wc -l)
export SLURM_CPUS_PER_TASK SLURM_NNODES
# Slurm gives the ranks the whole environment, this mpirun what -x names: all but a node's variables.
mpi_exports() {
  awk 'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/ &&
    name !~ /^(PMI|OMPI_|PRTE_|SSH_|XDG_|BASH|PBS_(NODENUM|TASKNUM|VNODENUM|MOMPORT|ENVIRONMENT)$)/ &&
    name !~ /^(HOME|HOST|HOSTNAME|USER|LOGNAME|SHELL|SHELLOPTS|SHLVL|TMPDIR|PWD|OLDPWD|DISPLAY|_)$/ &&
    name !~ /_VISIBLE_DEVICES$/) print "-x", name }'
}
module load cuda/12.4
source /opt/venv/bin/activate
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
MASTER_ADDR=$(awk '!seen[$1]++' "$PBS_NODEFILE" | head -n 1)
MASTER_PORT=$((20000 + ${PBS_JOBID%%[!0-9]*} % 10000))
export MASTER_ADDR MASTER_PORT
echo "$SLURM_NNODES nodes, the first is $MASTER_ADDR"
mpirun -np 4 --hostfile "$PBS_NODEFILE" --map-by ppr:1:node --bind-to none $(mpi_exports) bash -c 'exec torchrun --nnodes="$SLURM_NNODES" --nproc-per-node=4 \
  --node-rank="$OMPI_COMM_WORLD_RANK" --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" train.py --data /data'
# 7: look: --cpus-per-task=32: Torque counts cores only: its node file has 32 lines for a node of one rank
# 12: look: --dependency=afterany:4711: names a job of Slurm: write the number of a job of Torque
# 23: look: SLURM_PROCID: programs that read it find OMPI_COMM_WORLD_RANK, and so on
# 23: look: srun: no module or variable names the MPI: the options are for Open MPI
# 24: look: SLURM_PROCID: replaced by OMPI_COMM_WORLD_RANK
