# Open MPI, versions 4 and 5.

job_mpi() {
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} PYTHONPATH=${PYTHONPATH:-}
  # It refuses root, which a container's user often is.
  ((EUID)) || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  [[ -n ${JOBGEN_AGENTS:-} ]] || return 0
  [[ $job_dir != *:* ]] || job_die 72 "the run directory $job_dir must be without a colon: it goes on PATH"
  # The names of version 4, then of version 5. No tree: a scheduler may let the first node alone start
  # something on the others. The daemons stay attached: PBS ends those that leave the session of their task.
  export OMPI_MCA_plm_rsh_agent=jobgen-remote PRTE_MCA_plm_ssh_agent=jobgen-remote PATH=$job_dir:$PATH
  export OMPI_MCA_plm_rsh_no_tree_spawn=1 PRTE_MCA_plm_ssh_no_tree_spawn=1
  export OMPI_MCA_orte_leave_session_attached=1 PRTE_MCA_prte_leave_session_attached=1
  export OMPI_MCA_plm_rsh_num_concurrent=$((job_nodes > 128 ? job_nodes : 128))
  export PRTE_MCA_plm_ssh_num_concurrent=$OMPI_MCA_plm_rsh_num_concurrent
  [[ ${job_force_agent:-} != yes ]] || export OMPI_MCA_plm=rsh PRTE_MCA_plm=ssh
}
