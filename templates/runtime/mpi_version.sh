# The MPI of mpirun: with another MPI each rank has a world size of 1.

job_check_mpi() {
  local output other
  [[ -n ${job_mpi_command:-} ]] || return 0  # another step has it
  output=$("$job_mpi_command" --version 2>&1 || true)
  case $output in *"$job_mpi_version_text"*) return ;; esac
  for other in 'Open MPI' HYDRA Intel; do
    [[ $output != *"$other"* ]] || job_die 71 "$(command -v "$job_mpi_command") is not that of $job_mpi_title: load the right module, or use --mpi"
  done
  job_say "warning: $(command -v "$job_mpi_command") may not be that of $job_mpi_title"
}
