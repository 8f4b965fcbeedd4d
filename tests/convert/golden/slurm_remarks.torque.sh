#!/bin/bash
#PBS -N told
#PBS -l nodes=2:ppn=1:a100:ib
#PBS -l walltime=10:00:00
#PBS -t 0-9%3
#PBS -W depend=afterok:12
#PBS -o told-$PBS_JOBID-$PBS_ARRAYID.out
#PBS -j oe
#PBS -m e
#PBS -M me@example.org
#PBS -V
#PBS -l naccesspolicy=singlejob
#PBS -l advres=R12
#PBS -l qos=high
#PBS -a 203001312000.30
#PBS -p -5
# not translated: --licenses=matlab:2,ansys: Torque leaves licenses to its scheduler: use --directive with the syntax of yours
# not translated: --comment=the last one: Torque does not store comments of users
# not translated: --mail-type=END,TIME_LIMIT: TIME_LIMIT has no counterpart in Torque
# not translated: --dependency=afterok:12,aftercorr:13: aftercorr:13 has no counterpart in Torque
# shellcheck disable=SC2046  # the words of $(mpi_exports)
cd "$PBS_O_WORKDIR" || exit 1  # where Slurm starts a job
# Slurm gives the ranks the whole environment, this mpirun what -x names: all but a node's variables.
mpi_exports() {
  awk 'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/ &&
    name !~ /^(PMI|OMPI_|PRTE_|SSH_|XDG_|BASH|PBS_(NODENUM|TASKNUM|VNODENUM|MOMPORT|ENVIRONMENT)$)/ &&
    name !~ /^(HOME|HOST|HOSTNAME|USER|LOGNAME|SHELL|SHELLOPTS|SHLVL|TMPDIR|PWD|OLDPWD|DISPLAY|_)$/ &&
    name !~ /_VISIBLE_DEVICES$/) print "-x", name }'
}
mpirun -np 2 --hostfile "$PBS_NODEFILE" --map-by ppr:1:node --bind-to none $(mpi_exports) hostname
# 6: --licenses=matlab:2,ansys: Torque leaves licenses to its scheduler: use --directive with the syntax of yours
# 7: --comment=the last one: Torque does not store comments of users
# 10: look: --exclusive: all cores and GPUs of the nodes are the job's: request their number
# 11: look: --array=0-9%3: programs that read SLURM_ARRAY_TASK_ID find PBS_ARRAYID
# 12: look: the output file %x-%A-%a.out: Torque appends -INDEX to the name of the log of each task
# 13: --mail-type=END,TIME_LIMIT: TIME_LIMIT has no counterpart in Torque
# 13: look: -m e: Torque sends it for each task of the array, Slurm for the array as a whole
# 14: --dependency=afterok:12,aftercorr:13: aftercorr:13 has no counterpart in Torque
# 14: look: --dependency=afterok:12,aftercorr:13: names a job of Slurm: write the number of a job of Torque
# 15: look: srun: no module or variable names the MPI: the options are for Open MPI
