# pdsh, which DeepSpeed uses over ssh: it joins words with blanks, and the remote shell parses them again.

job_prepare_pdsh() {
  local name value shell
  shell=$(getent passwd "$UID" 2> /dev/null) || true
  [[ ! ${shell##*:} =~ /(bsd-)?t?csh$|/fish$ ]] ||
    job_die 71 "pdsh runs the commands of deepspeed, which are for bash, in your login shell ${shell##*:}: use --remote auto"
  command -v pdsh > /dev/null || job_die 71 'cannot find pdsh on PATH; --remote auto does not need it'
  [[ $PWD$job_dir != *[!A-Za-z0-9._/+@:,=-]* ]] ||
    job_die 72 "pdsh cannot quote $PWD or $job_dir: use directories with plain names, or --remote auto"
  # The variables that the launcher exports to the other nodes; the ranks read env.sh. The launcher adds double
  # quotes, which "" ends; %q is for the remote shell; pdsh replaces %h and similar words.
  for name in $(compgen -e); do
    [[ " ${job_secret_names[*]-} " != *" $name "* ]] || continue
    case $name in
      PATH* | LD_LIBRARY* | PYTHON* | MLFLOW* | MV2* | UCX* | NCCL* | ASCEND* | HCCL*)
        printf -v value '%q' "${!name}"
        printf '%s="%s"\n' "$name" "${value//%/%%}"
        ;;
    esac
  done > "$job_dir/deepspeed_env"
  export DS_ENV_FILE=$job_dir/deepspeed_env PDSH_RCMD_TYPE=ssh
  [[ -z ${JOBGEN_DEVICES_BY_NODE:-} ]] || job_list_devices
}

job_list_devices() { # over ssh a rank cannot read the devices that Slurm allocated on its node: one line a node, in order
  # shellcheck disable=SC2016  # expanded on the nodes
  srun --nodes="${#job_hosts[@]}" --ntasks="${#job_hosts[@]}" --ntasks-per-node=1 --nodelist="$(IFS=,; echo "${job_hosts[*]}")" \
    --mpi=none bash -c 'echo "$SLURM_NODEID ${!JOBGEN_VISIBLE}"' | sort -n | cut -d ' ' -f 2 > "$job_dir/devices"
}
