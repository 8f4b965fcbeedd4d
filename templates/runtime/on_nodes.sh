# What a job does on each of its nodes besides the ranks: a process a node, which stays for the whole job (node/on_node.sh).
# Its files are in the folder on-nodes of the attempt: HOST.state, HOST.log with the output, and the requests of this script.

job_node_work=''
[[ -n ${job_stage[*]-} ]] || job_stage=()
[[ -n ${job_container_binds[*]-} ]] || job_container_binds=()

job_set_local_folder() { # the folder of the job on the disk of each node, and what names it to the program
  local base=${job_local_dir:-} name rest=''
  if [[ $base == \$* ]]; then
    name=${base%%/*} rest=${base#"$name"} name=${name#\$}
    [[ ${!name:-} == /* ]] || job_die 71 "--local-dir $base: $name is no absolute path in this job, but '${!name:-}'"
    base=${!name}$rest
  fi
  base=${base:-${SLURM_TMPDIR:-${TMPDIR:-/tmp}}}
  export JOBGEN_LOCAL_DIR=${base%/}/jobgen-${job_id//[^A-Za-z0-9._-]/_}-$job_attempt
  export JOBGEN_STAGE=$JOBGEN_LOCAL_DIR/stage
  job_optional job_set_local_caches
  ! job_defined container || job_container_binds+=("$JOBGEN_LOCAL_DIR:$JOBGEN_LOCAL_DIR")
}

job_begin_on_nodes() { # prepare all nodes; a node that fails is left out, or ends the job
  local bad=()
  job_optional job_check_sources
  job_node_work=$job_logs/on-nodes job_node_hosts=("${job_hosts[@]}")
  mkdir "$job_node_work"
  : > "$job_node_work/control"
  printf '%s\n' "${job_hosts[@]}" > "$job_node_work/hosts"
  job_optional job_prepare_caches
  job_find_kill_wait
  job_save_node_settings > "$job_node_work/settings.sh"
  job_start_on_nodes
  ! job_defined job_send_sources || job_send_sources &
  job_await_nodes '^(ready|fault)' "$((60 + job_node_limit * (${#job_stage[@]} + 2)))"
  ! job_save_requested || return 0
  mapfile -t bad < <(job_failed_nodes)
  ((${#bad[@]} == 0)) || job_leave_out_nodes "${bad[@]}"
}

job_find_kill_wait() { # the seconds between the signals TERM and KILL at the end of a job, if the scheduler tells
  job_kill_wait=10
  [[ ${job_host_access:-} != srun ]] || job_kill_wait=$(scontrol show config 2> /dev/null | awk '$1 == "KillWait" { print $3 }') || true
  [[ $job_kill_wait == [1-9]* ]] || job_kill_wait=30
}

job_save_node_settings() { # read by on_node.sh
  local name
  declare -f on_each_node after_on_each_node || true
  for name in job_arguments job_stage job_stage_by job_local_caches job_cache_seed job_cache_store job_node_limit job_umask job_kill_wait; do
    declare -p "$name" 2> /dev/null || true
  done
}

job_start_on_nodes() { # in sessions of their own, as the signals of schedulers are for the ranks; disowned, as they outlive the launcher
  local host starts=0 words
  for host in "${job_node_hosts[@]}"; do
    if [[ $host == "$JOBGEN_HERE" ]]; then
      JOBGEN_KEEPER_OF=$$ setsid bash "$job_dir/on_node.sh" "$job_node_work" "$host" < /dev/null &> "$job_node_work/$host.caller" &
      disown "$!"
    elif [[ $job_host_access != srun ]]; then
      printf -v words 'exec bash %q %q %q' "$job_dir/on_node.sh" "$job_node_work" "$host"
      # JOBGEN_LOGS is that of jobgen-remote, whose commands end with those of the launcher otherwise.
      JOBGEN_LOGS=$job_node_work setsid bash -c "$(declare -f job_reach_host)"$'\n''job_reach_host "$@"' on-node "$host" "$words" \
        < /dev/null &> "$job_node_work/$host.caller" &
      disown "$!"
      ((++starts % 32)) || sleep 1
    fi
  done
  [[ ${job_host_access:-} != srun ]] || job_start_by_srun
}

job_start_by_srun() { # one step for all other nodes, beside those of the ranks
  local others=()
  mapfile -t others < <(printf '%s\n' "${job_node_hosts[@]}" | grep -vxF -e "$JOBGEN_HERE")
  ((${#others[@]})) || return 0
  (
    unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK
    exec setsid srun --overlap --no-kill --nodes="${#others[@]}" --ntasks="${#others[@]}" --ntasks-per-node=1 --nodelist="$(IFS=,; echo "${others[*]}")" \
      --cpus-per-task="$job_cpus_per_node" --mpi=none --kill-on-bad-exit=0 --input=none --export=ALL \
      bash "$job_dir/on_node.sh" "$job_node_work"
  ) < /dev/null &> "$job_node_work/srun.caller" &
  disown "$!"
}

job_await_nodes() { # PATTERN SECONDS: until each node has a line like it, or the job is to end; those that do not begin in a minute are faulty
  local end=$((SECONDS + $2)) begun=$((SECONDS + 60)) host
  until (($(grep -lsE "$1" "$job_node_work"/*.state | wc -l) >= ${#job_node_hosts[@]})) || job_save_requested; do
    if ((SECONDS >= begun)); then
      for host in "${job_node_hosts[@]}"; do
        [[ -s $job_node_work/$host.state ]] || echo "fault does not answer: $(job_last_line "$job_node_work/$host.caller" "$job_node_work/srun.caller")" > "$job_node_work/$host.state"
      done
      begun=$((end + 1))
    fi
    ((SECONDS < end)) || break
    sleep 0.2 &
    wait "$!" || true
  done
}

job_last_line() { cat "$@" 2> /dev/null | tr -d '\000-\010\013-\037' | awk 'NF { last = $0 } END { print substr(last, 1, 200) }'; }  # FILE...

job_failed_nodes() { # those without the line ready; what is wrong there goes to the file faults
  local host text
  for host in "${job_node_hosts[@]}"; do
    ! grep -qsx ready "$job_node_work/$host.state" || continue
    text=$(sed -n 's/^fault //p' "$job_node_work/$host.state" 2> /dev/null | tail -n 1)
    printf '%s\t%s\n' "$host" "${text:-did not become ready in time}" >> "$job_node_work/faults"
    printf '%s\n' "$host"
  done
}

job_leave_out_nodes() { # HOST...
  local first
  first=$(sed 's/\t/: /; q' "$job_node_work/faults")
  if (($# > 1)) || job_defined job_choose_hosts; then sed 's/^/jobgen: /; s/\t/: /; 20q' "$job_node_work/faults" >&2; fi
  (($# < ${#job_node_hosts[@]})) || job_die 71 "no node is ready; $first"
  cat "$job_node_work/faults" >> "$job_dir/bad-hosts"
  job_defined job_choose_hosts || job_die 74 "$# of ${#job_node_hosts[@]} nodes are not ready; $first"
  job_bad_hosts=("$@")
  job_leave_hosts 'not ready' || job_die 74 "$job_fault"
  job_use_hosts "${job_hosts[@]}"
}

job_end_on_nodes() { # STATUS: the end on each node: the command after, the caches, and the removal of the folder
  local limit=$job_node_limit now host
  [[ -n $job_node_work && -z ${job_nodes_ended:-} ]] || return 0
  job_nodes_ended=yes
  now=$(date +%s)
  if [[ $job_last_signal == TERM ]] || ((job_signals > 1)); then
    limit=$((job_kill_wait / 3))
  elif [[ -n ${job_ends:-} ]]; then
    ((limit <= job_ends - now - 20)) || limit=$((job_ends - now - 20))
  fi
  ((limit > 0)) || limit=1
  printf 'end %s %s\n' "$1" "$limit" >> "$job_node_work/control"
  job_await_ends "$((2 * limit + 30))"
  for host in "${job_node_hosts[@]}"; do
    sed -n "s/^warning /jobgen: warning: $host: /p" "$job_node_work/$host.state" 2> /dev/null || true
    grep -qsx ended "$job_node_work/$host.state" || grep -qs '^fault does not answer' "$job_node_work/$host.state" ||
      echo "jobgen: warning: $host: did not end in time; $JOBGEN_LOCAL_DIR may be left there"
  done >&2
  : > "$job_node_work/over"
  rm -f "$job_node_work"/*.caller "$job_node_work"/{settings.sh,caches.tar}
}

job_await_ends() { # SECONDS
  local end=$((SECONDS + $1)) host left=yes
  while [[ -n $left ]] && ((SECONDS < end)); do
    left=
    for host in "${job_node_hosts[@]}"; do
      grep -qsE '^(ended|fault does not answer)' "$job_node_work/$host.state" || { left=yes; break; }
    done
    [[ -z $left ]] || { sleep 0.1 & wait "$!" || true; }
  done
}
