#!/bin/bash
#PBS -N told
#PBS -l select=2:ncpus=1:mpiprocs=1
#PBS -l place=scatter:excl
#PBS -l walltime=10:00:00
#PBS -J 0-9%3
#PBS -W depend=afterok:12
#PBS -j oe
#PBS -m e
#PBS -M me@example.org
#PBS -V
#PBS -q R12
#PBS -l matlab=2
#PBS -l ansys=1
#PBS -a 203001312000.30
#PBS -p -5
# not translated: --qos=high: PBS Pro has no equivalent; use a queue
# not translated: --constraint=a100&ib: must be a resource of a node in PBS Pro, such as gpu_type=a100
# not translated: --comment=the last one: PBS Pro does not store comments of users
# not translated: --mail-type=END,TIME_LIMIT: TIME_LIMIT has no counterpart in PBS Pro
# not translated: --dependency=afterok:12,aftercorr:13: aftercorr:13 has no counterpart in PBS Pro
# shellcheck disable=SC2046  # the words of $(mpi_exports)
cd "$PBS_O_WORKDIR" || exit 1  # where Slurm starts a job
unset OMP_NUM_THREADS  # PBS Pro sets it to the cores of a node
exec > "told-${PBS_JOBID%%[!0-9]*}-$PBS_ARRAY_INDEX.out" 2>&1
# Slurm gives the ranks the whole environment, this mpirun what -x names: all but a node's variables.
mpi_exports() {
  awk 'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/ &&
    name !~ /^(PMI|OMPI_|PRTE_|SSH_|XDG_|BASH|PBS_(NODENUM|TASKNUM|VNODENUM|MOMPORT|ENVIRONMENT)$)/ &&
    name !~ /^(HOME|HOST|HOSTNAME|USER|LOGNAME|SHELL|SHELLOPTS|SHLVL|TMPDIR|PWD|OLDPWD|DISPLAY|_)$/ &&
    name !~ /_VISIBLE_DEVICES$/) print "-x", name }'
}
mpirun -np 2 --hostfile "$PBS_NODEFILE" --map-by ppr:1:node --bind-to none $(mpi_exports) hostname
# 4: --qos=high: PBS Pro has no equivalent; use a queue
# 5: --constraint=a100&ib: must be a resource of a node in PBS Pro, such as gpu_type=a100
# 6: look: --licenses=matlab:2,ansys: qsub refuses it unless the site of PBS Pro has a resource of this name
# 7: --comment=the last one: PBS Pro does not store comments of users
# 10: look: --exclusive: all cores and GPUs of the nodes are the job's: request their number
# 11: look: --array=0-9%3: programs that read SLURM_ARRAY_TASK_ID find PBS_ARRAY_INDEX
# 12: look: --output=%x-%A-%a.out: the script opens it with exec; what is printed before that is in the log of PBS Pro
# 13: --mail-type=END,TIME_LIMIT: TIME_LIMIT has no counterpart in PBS Pro
# 14: --dependency=afterok:12,aftercorr:13: aftercorr:13 has no counterpart in PBS Pro
# 14: look: --dependency=afterok:12,aftercorr:13: names a job of Slurm: write the number of a job of PBS Pro
# 15: look: srun: no module or variable names the MPI: the options are for Open MPI
