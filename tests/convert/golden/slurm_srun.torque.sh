#!/bin/bash
#PBS -N digits
#PBS -l nodes=2:ppn=4:gpus=4
#PBS -l walltime=00:30:00
#PBS -t 1,3,5
#PBS -o digits-$PBS_JOBID.log
#PBS -j oe
#PBS -V
# shellcheck disable=SC2046  # the words of $(mpi_exports)
set -euo pipefail
cd "$PBS_O_WORKDIR" || exit 1  # where Slurm starts a job
export OMP_NUM_THREADS=1  # srun binds a rank to its cores
# Slurm gives the ranks the whole environment, this mpirun what -x names: all but a node's variables.
mpi_exports() {
  awk 'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/ &&
    name !~ /^(PMI|OMPI_|PRTE_|SSH_|XDG_|BASH|PBS_(NODENUM|TASKNUM|VNODENUM|MOMPORT|ENVIRONMENT)$)/ &&
    name !~ /^(HOME|HOST|HOSTNAME|USER|LOGNAME|SHELL|SHELLOPTS|SHLVL|TMPDIR|PWD|OLDPWD|DISPLAY|_)$/ &&
    name !~ /_VISIBLE_DEVICES$/) print "-x", name }'
}
export NCCL_DEBUG=WARN
cd "$PBS_O_WORKDIR/work"
mpirun -np 8 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to core $(mpi_exports) python3 train.py --seed "$PBS_ARRAYID" --data /data/digits
# 7: look: the output file digits-%j.log: Torque appends -INDEX to the name of the log of each task
# 8: look: --array=1,3,5: programs that read SLURM_ARRAY_TASK_ID find PBS_ARRAYID
# 12: look: SLURM_PROCID: programs that read it find OMPI_COMM_WORLD_RANK, and so on
# 12: look: srun: no module or variable names the MPI: the options are for Open MPI
