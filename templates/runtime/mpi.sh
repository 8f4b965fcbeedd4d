# The environment of mpirun; the file of each MPI adds to it.

job_mpi() {
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} PYTHONPATH=${PYTHONPATH:-}  # mpirun exports only variables that are set
  job_optional job_mpi_settings
  [[ -n ${JOBGEN_AGENTS:-} ]] || return 0
  [[ $job_dir != *:* ]] || job_die 72 "the run directory $job_dir is added to PATH: it must not contain a colon"
  export PATH=$job_dir:$PATH
  job_mpi_agent
}
