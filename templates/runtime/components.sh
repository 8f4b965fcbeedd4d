# The components of a heterogeneous job of Slurm, each as NODESxRANKSxCORES: the ranks and cores of a node.
# https://slurm.schedmd.com/heterogeneous_jobs.html

export JOBGEN_COMPONENTS=$job_components

job_list_hosts() { # a line for each rank, in the order of the components
  local part nodes ranks number=0
  for part in $job_components; do
    nodes=SLURM_JOB_NODELIST_HET_GROUP_$number number=$((number + 1))
    ranks=${part#*x} ranks=${ranks%x*}
    [[ -n ${!nodes:-} ]] || continue
    scontrol show hostnames "${!nodes}" | awk -v ranks="$ranks" '{ for (i = 0; i < ranks; i++) print }'
  done
}
