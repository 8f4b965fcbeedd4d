#!/bin/bash
#PBS -N digits
#PBS -l select=2:ncpus=4:mpiprocs=4:ngpus=4
#PBS -l place=scatter
#PBS -l walltime=00:30:00
#PBS -J 1-5:2
#PBS -j oe
#PBS -V
# shellcheck disable=SC2046  # the words of $(mpi_exports)
set -euo pipefail
cd "$PBS_O_WORKDIR" || exit 1  # where Slurm starts a job
export OMP_NUM_THREADS=1  # PBS Pro sets it to the cores of a node
exec > "digits-${PBS_JOBID%%[!0-9]*}${PBS_ARRAY_INDEX:+_$PBS_ARRAY_INDEX}.log" 2>&1
# Slurm gives the ranks the whole environment, this mpirun what -x names: all but a node's variables.
mpi_exports() {
  awk 'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/ &&
    name !~ /^(PMI|OMPI_|PRTE_|SSH_|XDG_|BASH|PBS_(NODENUM|TASKNUM|VNODENUM|MOMPORT|ENVIRONMENT)$)/ &&
    name !~ /^(HOME|HOST|HOSTNAME|USER|LOGNAME|SHELL|SHELLOPTS|SHLVL|TMPDIR|PWD|OLDPWD|DISPLAY|_)$/ &&
    name !~ /_VISIBLE_DEVICES$/) print "-x", name }'
}
export NCCL_DEBUG=WARN
cd "$PBS_O_WORKDIR/work"
mpirun -np 8 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to core $(mpi_exports) python3 train.py --seed "$PBS_ARRAY_INDEX" --data /data/digits
# 7: look: --output=digits-%j.log: the script opens it with exec; what is printed before that is in the log of PBS Pro
# 8: look: --array=1,3,5: programs that read SLURM_ARRAY_TASK_ID find PBS_ARRAY_INDEX
# 12: look: SLURM_PROCID: programs that read it find OMPI_COMM_WORLD_RANK, and so on
# 12: look: srun: no module or variable names the MPI: the options are for Open MPI
