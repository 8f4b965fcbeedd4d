# Another host by a step of Slurm.

job_reach_host() { # HOST COMMAND
  srun --overlap --nodes=1 --ntasks=1 --nodelist="$1" --mpi=none bash -c "$2"
}
