# MPICH and its process manager Hydra.

job_mpi() {
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} PYTHONPATH=${PYTHONPATH:-}
  [[ -z ${job_mixed:-} ]] || sed 's/ slots=/:/' "$job_dir/hostfile" > "$job_dir/machines"
  [[ -n ${JOBGEN_AGENTS:-} ]] || return 0
  [[ $job_dir != *:* ]] || job_die 72 "the run directory $job_dir must be without a colon: it goes on PATH"
  export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=jobgen-remote PATH=$job_dir:$PATH
}
