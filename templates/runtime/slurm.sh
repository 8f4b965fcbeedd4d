# Slurm: https://slurm.schedmd.com/

job_scheduler() {
  command -v scontrol > /dev/null || job_die 71 'cannot find scontrol on PATH: add the commands of Slurm with --module'
  [[ -n ${SLURM_JOB_ID:-} && -n ${SLURM_JOB_NODELIST:-} ]] ||
    job_die 70 'SLURM_JOB_ID and SLURM_JOB_NODELIST are not set: submit this script with sbatch'
  job_id=$SLURM_JOB_ID job_number=$SLURM_JOB_ID job_nodelist=$SLURM_JOB_NODELIST
  if [[ -n ${job_is_array:-} ]]; then
    [[ -n ${SLURM_ARRAY_TASK_ID:-} ]] || job_die 70 'SLURM_ARRAY_TASK_ID is not set: this script is for the tasks of an array'
    job_index=$SLURM_ARRAY_TASK_ID job_array_id=$SLURM_ARRAY_JOB_ID
    job_id=${job_array_id}_$job_index  # with its own number Slurm shows the last task together with all others
  fi
  [[ ${SLURM_TASKS_PER_NODE:-} != *,* ]] ||
    job_die 70 "uneven allocation: Slurm allocated $SLURM_TASKS_PER_NODE tasks, expected $job_ranks_per_node on each node: --exclusive requests whole nodes"
  job_submit_dir=${SLURM_SUBMIT_DIR:-$PWD}
  job_await_controller
  job_output=$(scontrol show job "$job_id" | awk 'sub(/^ *StdOut=/, "") && !n++') || true
  unset SLURM_EXPORT_ENV  # of sbatch --export=NONE; it would apply to the daemons that mpirun starts with srun
}

job_await_controller() { # srun gives up when slurmctld, which may restart, has not answered for ten seconds
  local end=$((SECONDS + 600)) answer
  while answer=$(scontrol ping 2>&1) || true; [[ $answer == *' is DOWN'* && $answer != *' is UP'* ]]; do
    ((SECONDS < end && job_signals == 0)) || return 0
    [[ -n ${job_awaits_controller:-} ]] || job_say 'slurmctld does not answer: waiting for it, ten minutes at most'
    job_awaits_controller=1
    sleep 2 &
    wait "$!" || true
  done
}

job_field() { # NAME: of this job, in Slurm; the first line has the name of the job, which may contain anything
  scontrol show job "$job_id" | sed 1d | tr ' ' '\n' | awk -F= -v name="$1" '$1 == name && !n++ { print $2 }'
}

job_list_hosts() { scontrol show hostnames "$job_nodelist" || job_say "scontrol cannot list the hosts of $job_nodelist"; }

job_find_end() { job_ends=$(date -d "$(job_field EndTime)" +%s 2> /dev/null) || true; }

job_submit_command() { # Slurm refuses a dependency on a job that it has removed
  echo "sbatch${job_has_dependency:+ --dependency=}${job_is_array:+ --array=$job_index}"
}
