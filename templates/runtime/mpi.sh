# The environment of mpirun; the file of an MPI adds what it alone needs.

job_mpi() {
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} PYTHONPATH=${PYTHONPATH:-}  # mpirun passes on only what is set
  job_optional job_mpi_settings
  [[ -n ${JOBGEN_AGENTS:-} ]] || return 0
  [[ $job_dir != *:* ]] || job_die 72 "the run directory $job_dir must be without a colon: it goes on PATH"
  export PATH=$job_dir:$PATH
  job_mpi_agent
}
