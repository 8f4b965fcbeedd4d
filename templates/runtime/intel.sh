# Intel MPI.

# Without this -ppn has no effect under a scheduler.
job_mpi_settings() { export I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=0; }

job_mpi_agent() { export I_MPI_HYDRA_BOOTSTRAP=ssh I_MPI_HYDRA_BOOTSTRAP_EXEC=jobgen-remote; }
