# The address of the rendezvous, by --master-addr: address.sh checks it on the first host, which may be another one than this.

job_find_address() { # sets MASTER_ADDR; or returns 1 and sets job_fault_status and job_fault
  local host=${job_hosts[0]} command file=$job_dir/address
  job_fault_status=0 job_fault=''
  command="bash $(job_quote "$job_dir/address.sh" "$(job_name_address "$host")" "$host") > $(job_quote "$file")"
  rm -f "$file"
  if [[ $host == "$JOBGEN_HERE" ]]; then eval "$command"; else job_ask_host "$host" "$command"; fi || job_fault_status=$?
  [[ ! -s $file ]] || job_fault=$(< "$file")
  if ((job_fault_status == 0)); then
    MASTER_ADDR=$job_fault
    (umask 077; job_save_environment > "$job_dir/env.sh")
    return 0
  fi
  ((job_fault_status == 71)) || job_fault_status=70
  job_fault="--master-addr $job_master_addr: ${job_fault:-the first host $host does not answer}"
  return 1
}

job_name_address() { # HOST: print the value for it. Its domain stays at the end, unless the value has one: ic-{host}, {host}.example.org
  local name=${1%%.*} domain=
  [[ $job_master_addr != *\{host\}* || ${job_master_addr#*\}} == *.* ]] || domain=${1#"$name"}
  echo "${job_master_addr/\{host\}/$name}$domain"
}

job_find_address_or_end() { # spare nodes take the place of a host without the address
  job_defined job_choose_hosts || job_find_address || job_die "$job_fault_status" "$job_fault"
}
