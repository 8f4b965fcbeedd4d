#!/bin/bash
#PBS -N two
#PBS -q work
#PBS -A proj
#PBS -l nodes=1:ppn=2+2:ppn=4:gpus=4
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -V
# shellcheck disable=SC2046  # the words of $(mpi_exports)
cd "$PBS_O_WORKDIR" || exit 1  # where Slurm starts a job
export OMP_NUM_THREADS=1  # srun binds a rank to its cores
# Slurm gives the ranks the whole environment, this mpirun what -x names: all but a node's variables.
mpi_exports() {
  awk 'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/ &&
    name !~ /^(PMI|OMPI_|PRTE_|SSH_|XDG_|BASH|PBS_(NODENUM|TASKNUM|VNODENUM|MOMPORT|ENVIRONMENT)$)/ &&
    name !~ /^(HOME|HOST|HOSTNAME|USER|LOGNAME|SHELL|SHELLOPTS|SHLVL|TMPDIR|PWD|OLDPWD|DISPLAY|_)$/ &&
    name !~ /_VISIBLE_DEVICES$/) print "-x", name }'
}
module load openmpi
mpirun -np 10 --hostfile "$PBS_NODEFILE" --bind-to none $(mpi_exports) ./solver "${PBS_JOBID%%[!0-9]*}" > solver.log
# 2: look: the order of the nodes: the pbs_sched of Torque often lists the last one first: rank 0 is then there
# 7: look: SLURM_PROCID: programs that read it find OMPI_COMM_WORLD_RANK, and so on
