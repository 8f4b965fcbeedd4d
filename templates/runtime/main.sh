# The job, from the allocation to its status.

job_main() {
  unset SSH_CLIENT SSH2_CLIENT  # of a submission by ssh: bash -c would read ~/.bashrc
  job_listen
  job_optional overrides
  job_check_runtime
  job_scheduler
  job_optional job_run_points
  job_open
  job_optional job_keep_secrets
  job_optional sweep
  job_count_nodes
  job_export
  job_environment
  job_optional job_set_local_folder
  job_make_hostfile
  job_optional job_filter
  job_starts_itself || job_rendezvous
  job_optional job_hccl_ports
  job_optional job_set_deadline
  job_optional job_read_program_variables
  job_handover
  job_optional job_hand_over_part
  job_optional job_find_address_or_end
  job_optional job_mpi
  job_optional job_check_mpi
  job_optional job_prepare_pdsh
  job_listen  # again: sourced scripts may have set traps
  job_optional job_begin_on_nodes
  job_optional job_preflight_or_end
  job_say "$job_title: ${job_hosts[*]:0:8}; $(job_starts_itself || echo "rendezvous at $(job_endpoint); ")files in $job_dir"
  [[ -z ${job_faster_networks:-} ]] || job_say "the network is on its slow path: --network $job_faster_networks is faster here"
  job_optional job_arm_deadline
  job_optional job_run_before
  job_launch_and_judge
}

job_starts_itself() { [[ $job_launcher_name == none && -z ${job_steps:-} ]]; }  # one process, without a rendezvous

job_check_runtime() { # a warning if it is not the text that jobgen has written; the trap of the job part notices a missing end
  local file=${BASH_SOURCE[0]:-main} line='' sum=''
  # A script that bash reads from its input has no file, and the name main since bash 4.4.
  [[ $file != main && -f $file && -r $file ]] || return 0
  [[ -z ${job_runtime:-} ]] || sum=${file##*-} sum=${sum%.sh}
  {
    while [[ -z $sum ]] && IFS= read -r line; do
      [[ $line != '# ======== jobgen runtime '* ]] || sum=${line#* SHA-256 } sum=${sum%% *}
    done
    read -r line _ < <(sha256sum) || return 0
  } < "$file"
  [[ -n $sum && $line == "$sum"* ]] || job_say "warning: the runtime in $file was edited"
}

job_environment() { # the user's own code, and the user's umask
  umask "${job_umask:-$(umask)}"
  job_preparing=yes
  environment
  job_preparing=
  job_umask=$(umask)
  umask "${job_run_dir_umask:-077}"
}

job_report_save() { # if no other message has the reason
  local why
  ! job_save_requested || ((job_signals)) && return
  why=$(job_save_reason)
  [[ $why == deadline ]] || job_say "every rank was asked to save and exit, because of $why"
}

job_run_and_judge() {
  job_run
  job_report_save
  job_optional job_end_containers
  job_judge
  job_optional job_judge_at_limit
  job_optional job_judge_hang
}

job_run_unless_ending() {
  if job_save_requested; then
    job_say "asked to exit ($(job_save_reason)) before the program started"
    job_status=75
  elif job_defined job_run_steps; then
    job_run_steps
  else
    job_run_and_judge
  fi
}

job_launch_and_judge() {
  job_run_unless_ending
  job_optional job_restart_in_place
  job_optional job_end_on_nodes "$job_status"
  job_optional job_run_after "$job_status"
  if ((job_status == 75)); then
    job_optional job_go_on
    job_say "not finished; to go on: cd $(job_quote "$job_parent") && $(job_submit_command) job.sh"
  fi
  job_finish_with "$job_status"
}

# One command, which bash reads whole before it starts the job.
{ job_arguments=("$@"); trap job_end EXIT; job_main; }
