# Whose mpirun it is: the wrong one starts many worlds of one rank.

job_check_mpi() {
  local said other
  said=$("$job_mpirun" --version 2>&1 || true)
  case $said in *"$job_mpi_version"*) return ;; esac
  for other in 'Open MPI' HYDRA Intel; do
    [[ $said != *"$other"* ]] || job_die 71 "$(command -v "$job_mpirun") is not $job_mpi_title's: load the right module, or give --mpi"
  done
  job_say "warning: $(command -v "$job_mpirun") does not say that it is $job_mpi_title's"
}
