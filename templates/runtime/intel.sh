# Intel MPI.

job_mpi() {
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} PYTHONPATH=${PYTHONPATH:-}
  export I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=0  # without this -ppn has no effect under a scheduler
  [[ -n ${JOBGEN_AGENTS:-} ]] || return 0
  [[ $job_dir != *:* ]] || job_die 72 "the run directory $job_dir must be without a colon: it goes on PATH"
  export I_MPI_HYDRA_BOOTSTRAP=ssh I_MPI_HYDRA_BOOTSTRAP_EXEC=jobgen-remote PATH=$job_dir:$PATH
}
