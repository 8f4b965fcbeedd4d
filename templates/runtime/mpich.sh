# MPICH and its process manager Hydra.

job_mpi_settings() {
  [[ -z ${job_node_groups:-} ]] || sed 's/ slots=/:/' "$job_dir/hostfile" > "$job_dir/machines"
}

job_mpi_agent() { export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=jobgen-remote; }
