# Open MPI, versions 4 and 5: of each variable the name of version 4, then that of version 5.

job_mpi_settings() {  # it refuses root, who is often the user in a container
  ((EUID)) || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

job_mpi_agent() {
  # No tree: a scheduler may allow only the first node to start processes on the others. The daemons of version 4
  # stay attached: PBS kills daemons that leave the session of their task. Those of version 5 have a parent that stays.
  export OMPI_MCA_plm_rsh_agent=jobgen-remote PRTE_MCA_plm_ssh_agent=jobgen-remote
  export OMPI_MCA_plm_rsh_no_tree_spawn=1 PRTE_MCA_plm_ssh_no_tree_spawn=1
  export OMPI_MCA_orte_leave_session_attached=1
  export OMPI_MCA_plm_rsh_num_concurrent=$((job_nodes > 128 ? job_nodes : 128))
  export PRTE_MCA_plm_ssh_num_concurrent=$OMPI_MCA_plm_rsh_num_concurrent
  [[ ${job_mpi_only_by_ssh:-} != yes ]] || export OMPI_MCA_plm=rsh PRTE_MCA_plm=ssh
}
