# A packed array: the points of a task run side by side. Each is a job in a shell of its own, with its part of the
# allocation, its run directory task-N, its log and its status; the task has pack-N.

job_run_points() { # the task, from its run directory to its status
  local slot point command here=() all=() clock
  local pids=() control=() passed=() ends=()  # by point
  job_task_folder=pack
  job_open
  unset -f job_run_after  # it is that of each point
  command=$(job_submit_command)
  mapfile -t all < <(job_list_hosts | awk 'NF && !seen[$1]++ { print $1 }')
  ((${#all[@]} == job_pack_nodes)) ||
    job_die 70 "the allocation has ${#all[@]} hosts (${all[*]+${all[*]:0:8}}), but $job_pack_nodes were requested: leave out other options of the submission"
  exec {clock}<> <(:)  # without input: read waits without a process, unlike sleep
  for ((slot = 0; slot < job_pack; slot++)); do
    point=$(job_point_at "$((job_index * job_pack + slot))")
    [[ -n $point ]] || break
    here+=("$point")
    job_start_point
  done
  while ((${#pids[@]})); do
    read -rt 0.5 -u "$clock" || true
    job_pass_requests
    for point in "${!pids[@]}"; do job_look_at_point; done
  done
  exec {clock}>&-
  job_judge_points
  ((job_status != 75)) || job_optional job_go_on
  ((job_status != 75)) || job_say "not finished; to go on: cd $(job_quote "$job_parent") && $command job.sh"
  job_finish_with "$job_status"
}

job_point_at() { # NUMBER: print the point with this number, from 0, among those of the array; nothing if there is none
  local range last step count at=$1
  for range in ${job_points//,/ }; do
    step=1
    [[ $range != *:* ]] || step=${range#*:} range=${range%:*}
    last=${range#*-} range=${range%-*}
    count=$(((last - range) / step + 1))
    if ((at < count)); then
      echo "$((range + at * step))"
      return
    fi
    at=$((at - count))
  done
}

job_start_point() { # unless it has finished; after a requeue, a point that has failed does not run again
  local folder=$job_parent/task-$point number=1 status
  while [[ -e $folder/attempt-$number ]]; do number=$((number + 1)); done
  status=$(sed -n 's/^[^ ]* ended //p' "$folder/attempt-$((number - 1))/events" 2> /dev/null | tail -n 1) || true
  if [[ $status == 0 || -n $status && $status != 75 && -n ${SLURM_RESTART_COUNT:-} ]]; then
    job_say "point $point has ended in an earlier attempt, with status $status"
    ends[point]=$status
    return
  fi
  mkdir -p "$folder"
  job_run_point >> "$folder/log" 2>&1 &
  pids[point]=$! passed[point]=0 control[point]=$folder/attempt-$number/control
  job_launcher=$!  # a signal has ranks to ask
  job_say "point $point begins; its output is in $folder/log"
}

job_run_point() { # in a shell of its own: the job of the point, from its run directory to its status
  local each=${job_points_per_node:-0} first
  unset -f job_run_points job_go_on
  job_listen() { trap : TERM INT HUP USR1 USR2 URG PIPE; }  # the task asks the ranks of all points
  job_check_runtime() { :; }
  job_scheduler() { :; }
  job_find_directory() { job_dir=$job_parent; }
  job_keep() { job_replace "$job_dir/job-id" printf '%s\n' "$job_id"; }
  job_submit_command() { echo "$command"; }
  if ((each)); then
    first=$((slot / each))
    job_part_cores=${job_pack_cores[slot % each]}
    [[ -z ${job_pack_devices[*]-} ]] || job_part_devices=${job_pack_devices[slot % each]}
  else
    first=$((slot * job_nodes))
  fi
  job_point_hosts=("${all[@]:first:job_nodes}")
  job_list_hosts() { printf '%s\n' "${job_point_hosts[@]}"; }
  job_script_host=${all[0]}
  job_task_folder=task job_index=$point job_number=$((job_number + 2003 * slot)) job_output=$job_parent/task-$point/log
  job_logs='' job_opened='' job_signals=0 job_launcher=''
  umask "$job_umask"
  trap job_end EXIT
  job_main
}

job_heed_control() { # of a point: the script has no launcher to stop
  until grep -qs '^stop' "$job_logs/control"; do
    sleep 1 &
    wait "$!"
  done
  job_stop
}

job_pass_requests() { # those to the task are for each of its points, as soon as that can read them
  local requests
  mapfile -t requests < "$job_logs/control"
  for point in "${!pids[@]}"; do
    ((${#requests[@]} > passed[point])) || continue
    [[ -e ${control[point]} ]] || continue
    printf '%s\n' "${requests[@]:passed[point]}" >> "${control[point]}"
    passed[point]=${#requests[@]}
  done
}

job_look_at_point() {
  ! kill -0 "${pids[point]}" 2> /dev/null || return 0
  job_wait "${pids[point]}"
  unset "pids[point]"
  ends[point]=$job_status
  job_note point-ended "$point $job_status"
  if ((job_status)); then
    job_say "point $point ended with status $job_status; its output is in $job_parent/task-$point/log"
  else
    job_say "point $point has finished"
  fi
}

job_judge_points() { # sets job_status: 75 if a point can go on, else the status of the first that failed
  local failed=() more=() text
  job_status=0
  for point in "${here[@]}"; do
    case ${ends[point]} in
      0) ;;
      75) more+=("$point") ;;
      *)
        failed+=("$point")
        ((job_status)) || job_status=${ends[point]}
        ;;
    esac
    cat "$job_parent/task-$point/bad-hosts" >> "$job_dir/bad-hosts" 2> /dev/null || true
  done
  for point in "${here[@]}"; do cat "$job_parent/task-$point/saved-step" 2> /dev/null || true; done > "$job_dir/saved-step"
  text="$((${#here[@]} - ${#failed[@]} - ${#more[@]})) of ${#here[@]} points have finished"
  ((${#failed[@]} == 0)) || text+=", ${#failed[@]} failed: ${failed[*]}"
  ((${#more[@]} == 0)) || text+=", ${#more[@]} can go on: ${more[*]}" job_status=75
  job_say "$text"
  ((${#failed[@]} == 0)) || job_note fault "$text"
}
