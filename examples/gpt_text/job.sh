#!/bin/bash
# 2 nodes x 4 ranks, 8 ranks in all, by srun on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
#SBATCH --job-name=gpt
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=4
#SBATCH --time=12:00:00
#SBATCH --output=gpt-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=gpu
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='gpt'
job_title='2 nodes x 4 ranks, 8 ranks in all, by srun on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=4
job_world_size=8
job_cpus_per_node=32
job_walltime_seconds=43200
job_grace_seconds=120
job_sends_signal_itself=yes
job_save_signal=USR1
job_preflight_mode=always
job_preflight_seconds=120
job_launcher_name=srun
job_runs_training_module=yes
job_rank_logs=node
job_host_access=srun
job_accelerator=cuda

environment() {
  job_cuda
  job_source /home/me/venv/bin/activate
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=8
  job_need python3 srun
  job_need_training
}

launch() {
  # --cpus-per-task again: srun does not take it from the job on Slurm 22.05 to 23.02.
  exec srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=8 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=4
}

program() {  # what every rank runs
  exec python3 -m jobgen.train "$@" --task text --data /data/text --model gpt --size 1.3b --zero-stage 3 --precision bf16 --recompute --batch-size 8 --lr 0.0003 --scheduler warmup-cosine --epochs 1 --save-every 1000
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
# ======== jobgen runtime 0.2.0, SHA-256 4d6afb86f489ca45f64ec277133513574cd375d62f0e36254e32c80c79a94918 ========
# ---- messages.sh: Messages and notes.
#
# Exit statuses of this script; any other status is that of a rank or of the launcher:
# 70 the allocation or this script is not as expected   71 a file, a module or a command is missing
# 72 a directory cannot be used                         73 the launcher exited 0, success unverified
# 74 the preflight found a fault                        75 not finished, the next attempt can continue

job_say() { printf 'jobgen: %s\n' "$*" >&2 || true; }  # the terminal may be closed

job_die() { # STATUS MESSAGE
  job_say "$2"
  job_note fault "${2//$'\n'/ }"  # for jobgen status
  exit "$1"
}

job_note() { # WHAT VALUE: into the events of the attempt, with the time
  # No $(date): bash 5.2 cannot read one while a second signal waits for its trap.
  { [[ -z ${job_logs:-} ]] || printf '%(%s)T %s %s\n' -1 "$1" "$2" >> "$job_logs/events"; } 2> /dev/null || true
}

job_quote() { # WORD...: print them as words of a shell; ${x@Q} is new in bash 4.4
  local word text='' quote="'\\''"
  for word; do
    if [[ $word == *[[:cntrl:]]* ]]; then printf -v word '%q' "$word"; else word="'${word//\'/$quote}'"; fi
    text+=" $word"
  done
  printf '%s' "${text# }"
}

job_defined() { declare -F "$1" > /dev/null; }  # NAME

job_optional() { ! job_defined "$1" || "$@"; }  # FUNCTION [ARG]...: call a function if this job has it

job_body() { declare -f "$1" | sed '1,2d;$d'; }  # FUNCTION: the commands in it

# ---- finish.sh: The exit trap: the last message, and the user's function after.

job_end() {
  local job_end_status=$? job_what=finished job_remedy=''
  if [[ -n ${job_sourcing:-} ]]; then
    job_say "$job_sourcing has called exit: nothing was launched"
    job_note fault "$job_sourcing has called exit"
    job_end_status=71
  elif [[ -n ${job_preparing:-} && $job_end_status == 1 ]]; then  # as a variable without a value ends it
    job_say 'the environment failed, as said above: nothing was launched'
    job_note fault 'the environment failed: see the log of the job'
    job_end_status=71
  fi
  job_optional job_end_on_nodes "$job_end_status"
  job_optional job_run_after "$job_end_status"
  [[ -n ${job_over:-} ]] || job_what='was ended by a signal'
  ((job_end_status == 0)) || job_what="failed with status $job_end_status"
  ((job_end_status != 130)) || job_what='was interrupted: status 130'
  ((job_end_status != 75)) || job_what='is not finished, but can go on: it ended with status 75'
  [[ $job_end_status != 7[0-5] ]] || job_remedy="; what to do: jobgen help $job_end_status"
  job_note ended "$job_end_status"
  # With status 75, or after a signal, the scheduler may start another attempt, which reads them.
  ((job_end_status == 75 || ${job_signals:-0})) || [[ -z ${job_opened:-} ]] ||
    rm -f "$job_dir"/{,step-*/}{env.sh,environment} || true
  job_say "job ${job_id:-?} $job_what after $SECONDS s${job_output:+; output in $job_output}${job_opened:+; files in $job_dir}$job_remedy"
  exit "$job_end_status"
}

job_finish_with() { # STATUS
  job_over=yes
  exit "$1"
}

# ---- signals.sh: Signals: the first one asks the ranks to save and exit, the next one stops them at once.
# Both are written to the file control of the attempt, which a watcher on every node reads (node/watch.sh):
# a job that is ending cannot start processes on its other nodes.

job_signals=0 job_traps=0 job_last_signal='' job_signalled_at=-9 job_launcher=''

job_listen() {
  local name
  # PBS also signals its login shell, which all of these except URG kill.
  for name in TERM INT HUP USR1 USR2 URG; do
    # shellcheck disable=SC2064  # now: each its own
    trap "job_trap $name" "$name"
  done
  trap : PIPE  # a closed output must not end the job
}

job_trap() { # NAME
  local pause=2
  job_traps=$((job_traps + 1))
  # One qsig arrives several times within milliseconds. HUP comes from a closing terminal and from its shell.
  [[ $1 != HUP ]] || pause=5
  ((SECONDS - job_signalled_at >= pause)) || return 0
  job_signalled_at=$SECONDS
  job_signals=$((job_signals + 1))
  job_last_signal=$1
  job_note signal "$1"
  if ((job_signals == 1)); then
    [[ -z $job_launcher ]] || job_say "got $1: asking every rank to save and exit; a second signal stops at once"
    job_control save "$1"
  else
    job_say "got $1 again: stopping at once"
    if [[ -z $job_launcher ]]; then
      job_sourcing=  # no sourced script has called exit
      exit 75
    fi
    job_control stop "$1"
    job_later 0 job_stop
  fi
}

job_control() { # save|stop REASON: ask the ranks of this attempt
  { [[ -z ${job_logs:-} ]] || printf '%s %s\n' "$1" "$2" >> "$job_logs/control"; } 2> /dev/null || true
}

job_save_requested() { grep -qs '^save' "$job_logs/control"; }

job_save_reason() { # the reason of the first request
  local what why=''
  read -r what why < "$job_logs/control" || true
  printf '%s' "${why:-$what}"
}

job_later() { # SECONDS COMMAND...: run it then, unless the launcher ends before
  (
    trap 'kill "$!" 2> /dev/null; exit' TERM
    sleep "$1" &
    wait "$!"
    "${@:2}"
  ) > /dev/null &
}

# ---- slurm.sh: Slurm: https://slurm.schedmd.com/

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

# ---- run_directory.sh: The run directory: all files of this job. Each attempt of the job has its own logs in it.

job_find_directory() {
  job_script=$0 job_dir=
  [[ $job_script == /* ]] || job_script=$PWD/$job_script
  [[ ${job_runtime:-/} == /* ]] || job_runtime=$PWD/$job_runtime
  if [[ -f $job_submit_dir/submitted-from && -f $job_submit_dir/job.sh ]]; then
    job_dir=$job_submit_dir  # a later attempt, or a job of jobgen submit
    job_submit_dir=$(< "$job_dir/submitted-from")
  fi
  cd "$job_submit_dir" || job_die 72 "cannot enter $job_submit_dir: submit from a directory that the compute nodes have"
  [[ -z ${job_workdir:-} ]] || job_enter "$job_workdir"
  local id=${job_array_id:-$job_id}
  [[ -n $job_dir ]] || job_dir=$job_runs_dir/$job_name-${id//[^A-Za-z0-9._-]/_}
  [[ $job_dir == /* ]] || job_dir=$PWD/$job_dir
}

job_enter() { # DIRECTORY: the working directory; one with variables behind early_setup
  [[ -n $1 ]] || job_die 72 "--workdir is empty: its variables have no value"
  local place=$1
  [[ $place == /* ]] || place=$PWD/$place
  cd "$place" || job_die 72 "cannot enter $place: --workdir must exist on the compute nodes"
}

job_open() {
  job_find_directory
  job_parent=$job_dir  # of all tasks of an array; each has a directory in it
  [[ -z ${job_array_id:-} ]] || job_dir=$job_parent/${job_task_folder:-task}-$job_index
  # The processes of the job are found by variables in their environment, one a line.
  [[ $job_dir != *$'\n'* ]] || job_die 72 "the name of a run directory must not contain a line break: $(job_quote "$job_dir")"
  job_umask=$(umask)  # of the user's program
  mkdir -p "${job_parent%/*}/" 2> /dev/null || true
  umask "${job_run_dir_umask:-077}"
  mkdir -p "$job_dir" || job_die 72 "cannot make the run directory $job_dir: choose another place with --runs-dir"
  [[ -w $job_dir ]] || job_die 72 "cannot write into the run directory $job_dir: choose another place with --runs-dir"
  rm -f "$job_dir/cancelled"
  job_begin_attempt
  job_keep "$job_parent"
}

job_begin_attempt() { # the next one, with logs of its own
  rm -f "$job_dir/status.json"
  job_saved_before=$(cat "$job_dir/saved-step" 2> /dev/null) || true
  job_attempt=1
  while [[ -e $job_dir/attempt-$job_attempt ]]; do job_attempt=$((job_attempt + 1)); done
  mkdir "$job_dir/attempt-$job_attempt" || job_die 72 "cannot make the directory $job_dir/attempt-$job_attempt"
  job_logs=$job_dir/attempt-$job_attempt job_opened=yes
  : > "$job_logs/control"
  ((job_signals == 0)) || job_control save "$job_last_signal"
  job_note began "$job_id"
  [[ -z ${job_output:-} ]] || job_note output "$job_output"
}

job_keep() { # DIRECTORY: store the script in it; submitted from there, it continues the job
  if [[ ! -f $1/job.sh || -z ${job_array_id:-} ]]; then  # tasks of an array may start at the same time
    # It may contain secrets.
    [[ ! -f $job_script || $job_script -ef $1/job.sh ]] || (umask 077; job_replace "$1/job.sh" cat "$job_script"; chmod u+x "$1/job.sh")
    [[ ! -f ${job_runtime:-} || $job_runtime -ef $1/${job_runtime##*/} ]] ||
      job_replace "$1/${job_runtime##*/}" cat "$job_runtime"
    job_replace "$1/submitted-from" printf '%s\n' "$job_submit_dir"
  fi
  local id=${job_array_id:-$job_id}
  [[ $(cat "$1/job-id" 2> /dev/null) == "$id;"* ]] ||  # with the cluster, which the job does not know
    job_replace "$1/job-id" printf '%s\n' "$id"
}

job_replace() { # FILE COMMAND...: write the output of the command atomically
  "${@:2}" > "$job_logs/new" && mv "$job_logs/new" "$1"
}

# ---- source.sh: Sourced scripts. Most are not written for set -eu, and they may change more than the environment.

job_source() { # FILE ARGUMENT...
  [[ -f $1 && -r $1 ]] || job_die 71 "cannot read $1, a file to source: it must exist on the compute nodes"
  job_file=$1
  # shellcheck disable=SC2016  # job_eval expands it
  job_eval 'source "$job_file"' "${@:2}"
  ((job_eval_status == 0)) || job_say "warning: $1 returned status $job_eval_status"
}

job_eval() { # CODE: run it, keep the options, functions, traps and directory of this script, and set job_eval_status to its status
  job_declarations=
  job_functions=$(job_part_functions) || true
  job_eval_code "$@"
  [[ $(job_part_functions) == "$job_functions" ]] || {
    unset -f "${job_part[@]}"
    eval "$job_functions"
  }
  # Variables that declare made local to that function are for the whole script. In bash 4.2 declare -g would set the local ones.
  eval "$job_declarations"
}

job_part=(after before container launch node overrides program rank requirements variables)  # which the code may have, too
job_part_functions() { declare -f "${job_part[@]}"; }

job_eval_code() {
  job_here=$PWD job_sourcing=$job_file job_code=$1
  shift  # a sourced script without arguments sees those of its caller
  set +eu +o pipefail
  eval "$job_code"
  job_eval_status=$?
  set -euo pipefail +fkx
  shopt -u failglob
  unset IFS
  while read -r job_word; do  # bash 5 puts "declare -x " before the name
    [[ ! $job_word =~ ^(declare\ -[A-Za-z-]+\ )?([A-Za-z_][A-Za-z0-9_]*)(=|$) ]] ||
      job_declarations+=$(declare -p "${BASH_REMATCH[2]}" | sed '1s/^declare /declare -g /')$'\n'
  done < <(local)
  # Those without a value, which bash 4.3 and 4.4 leave out of that list.
  job_declarations+=$(declare -p | sed -n "s/^declare \(-[aAix-]*\) \([A-Za-z_][A-Za-z0-9_]*\)\(='()'\)\{0,1\}$/declare -g \1 \2 2> \/dev\/null || true/p")$'\n'
  trap job_end EXIT
  job_listen
  job_sourcing=
  [[ $PWD == "$job_here" ]] || cd "$job_here"  # cd - goes where the code left
}

# ---- cuda.sh: CUDA: PyTorch contains its libraries; the toolkit is for DeepSpeed's ops, which are compiled at run time.

job_cuda() {
  if [[ -z ${CUDA_HOME:-} ]] && command -v nvcc > /dev/null; then
    CUDA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
  elif [[ -z ${CUDA_HOME:-} && -x /usr/local/cuda/bin/nvcc ]]; then
    CUDA_HOME=/usr/local/cuda
  fi
  [[ -n ${CUDA_HOME:-} ]] || return 0
  export CUDA_HOME
  # One on PATH keeps its place: /usr/bin must not precede an environment.
  [[ :$PATH: == *":$CUDA_HOME/bin:"* ]] || export PATH=$CUDA_HOME/bin:$PATH
}

# ---- requirements.sh: Commands, files and modules that must exist before anything is started.

job_need() { # COMMAND...
  local name
  for name; do command -v "$name" > /dev/null || job_die 71 "cannot find $name on PATH: add what has it with --venv, --conda or --module"; done
}

job_need_training() {
  python3 -c 'import jobgen.train' || job_die 71 "$(command -v python3) has no jobgen.train: pip install '.[train]' in a checkout of jobgen"
}

job_need_file() { [[ -f $1 ]] || job_die 71 "there is no $1 in $PWD: submit from its directory, or use --workdir"; }

job_need_program() { command -v "$1" > /dev/null || job_die 71 "cannot run $1 in $PWD: write its path, or add what has it with --venv, --conda or --module"; }

# ---- secrets.sh: Variables with secrets: those that the script names, and those in the environment of the job that look like one.
# Their values are in the file environment of the run directory, which only the user can read, a NUL after each.

[[ -n ${job_secret_names[*]-} ]] || job_secret_names=()

job_need_secrets() { # jobgen submit has written them into the file; by hand, they come with the job
  local name
  job_secrets
  for name in ${job_secret_names[@]+"${job_secret_names[@]}"}; do
    [[ -n ${!name+set} ]] || job_die 71 \
      "$name is not set: jobgen submit takes it from your environment; without it, export $name and use $(job_submit_command)${job_pass_option:+ $job_pass_option $name}"
  done
}

job_keep_secrets() { # for the next attempts of a job that was submitted by hand
  job_secret_file=$job_parent/environment
  job_need_secrets
  [[ -z ${job_secret_names[*]-} || -e $job_secret_file ]] || (umask 077; job_replace "$job_secret_file" job_print_secrets)
  job_recall_secrets
}

job_recall_secrets() { # those of the attempt before that this one has not got from the scheduler
  local pair name
  [[ -r $job_dir/environment ]] || return 0
  while IFS= read -rd '' pair; do
    name=${pair%%=*}
    [[ $pair =~ ^[A-Za-z_][A-Za-z0-9_]*= && -z ${!name+set} ]] || continue
    ! job_looks_secret "$name" "${pair#*=}" || export "${pair?}"
  done < "$job_dir/environment"
}

job_hide_secrets() { # what looks like a secret in this environment is for the file, not for env.sh
  local job_variable
  for job_variable in $(compgen -e); do
    [[ " ${job_secret_names[*]-} " != *" $job_variable "* ]] || continue
    ! job_looks_secret "$job_variable" "${!job_variable}" || job_secret_names+=("$job_variable")
  done
  export JOBGEN_SECRETS="${job_secret_names[*]-}"
  job_secret_file=$job_dir/environment
  [[ -z $JOBGEN_SECRETS ]] || (umask 077; job_replace "$job_secret_file" job_print_secrets)
}

job_looks_secret() { # NAME VALUE: what jobgen/secrets.py masks; more than that does no harm
  local status=1 key='(api|access|private|secret|auth|account|signing|encryption|wandb)[_-]?key'
  local names="(token|secret|password|passwd|passphrase|credential|signature|[_-]pwd|(^|[^a-z-])pass|(db|sql|user|smtp|ssh)pass|$key)s?"
  local forms="hf_|gh[opusr]_|github_pat_|glpat-|sk-[[:alnum:]_-]{20}|xox[a-z]-|aiza|(akia|asia)[a-z0-9]{16}|eyj[[:alnum:]_-]+[.]|dckr_pat_|pypi-|npg_"
  local texts="://[^/@[:space:]]*:[^/[:space:]]+@|://[^/:@[:space:]]{20,}@|bearer [^[:space:]]{8}|authorization:|[?&]sig=|private key-----| login +"
  case $1 in
    JOBGEN_* | PATH | HOME | PWD | OLDPWD | *LIBRARY_PATH | PYTHONPATH | LS_COLORS | SLURM* | PMI* | PBS_*) return 1 ;;
  esac
  shopt -s nocasematch
  ! [[ $1 =~ ($names|[a-z0-9]_(key|pat|auth))$ || $2 =~ (^|[^[:alnum:]])($forms) || $2 =~ $texts || $2 =~ ${names}[\"\']?[=:,\ ] ]] || status=0
  shopt -u nocasematch
  return "$status"
}

job_print_secrets() {
  local job_variable
  for job_variable in "${job_secret_names[@]}"; do printf '%s=%s\0' "$job_variable" "${!job_variable}"; done
}

job_secrets() { # export them; on the nodes, too
  local pair
  [[ -n ${job_secret_names[*]-} ]] || return 0
  export "${job_secret_names[@]}"
  [[ -r ${job_secret_file:-} ]] || return 0
  while IFS= read -rd '' pair; do
    [[ ! $pair =~ ^[A-Za-z_][A-Za-z0-9_]*= || " ${job_secret_names[*]} " != *" ${pair%%=*} "* ]] || export "${pair?}"
  done < "$job_secret_file"
}

# ---- hostfile.sh: The hostfile: lines HOST slots=N, each host once, in the order of the scheduler.

job_count_nodes() { # unless the script has their number
  [[ -z ${job_nodes:-} ]] || return 0
  job_nodes=$(job_list_hosts | awk 'NF && !seen[$1]++ { hosts++ } END { print hosts + 0 }')
  job_world_size=${job_world_size:-$((job_nodes * job_ranks_per_node))}
}

job_make_hostfile() {
  if [[ -n ${job_node_groups:-} ]]; then  # as many slots as the host has lines
    job_list_hosts | awk -v share="${job_lines_per_rank:-1}" '
      NF { if (!lines[$1]++) host[++hosts] = $1 }
      END { for (i = 1; i <= hosts; i++) print host[i] " slots=" lines[host[i]] / share }'
  else
    job_list_hosts | awk -v slots="$job_ranks_per_node" 'NF && !seen[$1]++ { print $1 " slots=" slots }'
  fi > "$job_dir/hostfile"
  awk '{ print $1 }' "$job_dir/hostfile" > "$job_dir/hosts"
  mapfile -t job_hosts < "$job_dir/hosts"
  export JOBGEN_HERE=${job_script_host:-${job_hosts[0]:-}}  # the host of this script
  job_check_hostfile
}

job_check_hostfile() {
  local shares
  if [[ -n ${job_node_groups:-} ]]; then
    shares=$(awk -F= '{ print $2 }' "$job_dir/hostfile" | sort -n | uniq -c | awk '{ print $1 "x" $2 }' | paste -sd +)
    [[ $shares == "$job_node_groups" ]] ||
      job_die 70 "the allocation is ${shares:-empty} (nodes x ranks: ${job_hosts[*]+${job_hosts[*]:0:8}}), but $job_node_groups was requested"
  fi
  ((${#job_hosts[@]} == job_nodes)) ||
    job_die 70 "the allocation has ${#job_hosts[@]} hosts (${job_hosts[*]+${job_hosts[*]:0:8}}), but $job_nodes were requested: leave out other options of the submission, or use --nodes submitted"
}

# ---- rendezvous.sh: The variables of the job for the user's code and the program (docs/survival.md), and the rendezvous of the ranks.

job_rendezvous() {
  export MASTER_ADDR=${job_hosts[0]} MASTER_PORT=${job_master_port:-}
  if [[ -z $MASTER_PORT ]]; then
    # From the job id, so that two jobs on one node differ. If it is in use: no port of the jobs submitted next.
    MASTER_PORT=$((20000 + job_number % 10000))
    while job_port_in_use; do MASTER_PORT=$((20000 + (MASTER_PORT + 3307) % 10000)); done
  fi
}

job_port_in_use() { # something on this host listens there (state 0A), at any address: the rendezvous listens at all
  local port
  printf -v port %04X "$MASTER_PORT"
  grep -qs "[0-9A-F]:$port [0-9A-F]*:0000 0A " /proc/net/tcp /proc/net/tcp6
}

job_endpoint() { # print ADDRESS:PORT; that of IPv6 is in brackets
  if [[ $MASTER_ADDR == *:* ]]; then echo "[$MASTER_ADDR]:$MASTER_PORT"; else echo "$MASTER_ADDR:$MASTER_PORT"; fi
}

job_export() { # before the user's code
  export JOBGEN_JOB_ID=$job_id JOBGEN_RUN_DIR=$job_dir JOBGEN_ATTEMPT=$job_attempt JOBGEN_LOGS=$job_logs JOBGEN_WORLD_SIZE=$job_world_size
  export JOBGEN_ACCELERATOR=$job_accelerator JOBGEN_LAUNCHER=$job_launcher_name JOBGEN_SIGNAL=$job_save_signal
  export JOBGEN_RANK_LOGS=$job_rank_logs JOBGEN_TRAINING=${job_runs_training_module:-}
  export JOBGEN_POLL=0.5  # s between two reads of the file control; longer with many nodes
  ((job_nodes < 1000)) || JOBGEN_POLL=$((job_nodes / 1000))
  export JOBGEN_BEAT=  # s between two signs of life of a node among others; longer with many nodes
  ((job_nodes == 1 && ${job_pack_nodes:-1} == 1)) || JOBGEN_BEAT=$((job_nodes < 1000 ? 10 : job_nodes / 100))
  export JOBGEN_AGENTS=${job_remote_commands:-} JOBGEN_CPUS_PER_NODE=$job_cpus_per_node JOBGEN_RANKS_PER_NODE=$job_ranks_per_node
  export JOBGEN_BIND=${job_cpu_bind:-} JOBGEN_VISIBLE=${job_device_variable:-} JOBGEN_DEVICES_BY_NODE=${job_lists_devices_of_nodes:-}
  JOBGEN_UMASK=$(umask)  # of the files in the run directory
  export JOBGEN_UMASK
  [[ -z ${job_index:-} ]] || export JOBGEN_TASK=$job_index
  [[ -z ${job_hang_timeout:-} ]] || export JOBGEN_HANG_TIMEOUT=$job_hang_timeout JOBGEN_PROGRESS=$job_logs/progress
  JOBGEN_START_TIME=$(($(date +%s) - SECONDS))
  export JOBGEN_START_TIME
}

# ---- deadline.sh: The deadline: the latest time to begin a save, job_grace_seconds seconds before the end of the wall time. There is none if
# the job has no limit.

job_set_deadline() {
  job_ends=
  job_find_end
  [[ -n $job_ends ]] || return 0
  [[ -z ${job_grace_at_most_a_tenth:-} ]] || ((10 * job_grace_seconds <= job_ends - JOBGEN_START_TIME)) ||
    job_grace_seconds=$(((job_ends - JOBGEN_START_TIME) / 10))
  export JOBGEN_DEADLINE=$((job_ends - job_grace_seconds))
  job_note deadline "$JOBGEN_DEADLINE"
}

job_arm_deadline() { # only if the program handles the signal, or the scheduler does not send it
  local now
  now=$(date +%s)
  [[ -z ${JOBGEN_DEADLINE:-} || -z ${job_sends_signal_itself:-} ]] || job_later "$((JOBGEN_DEADLINE > now ? JOBGEN_DEADLINE - now : 0))" job_deadline
}

job_deadline() {
  job_save_requested && return
  job_say 'the wall time is nearly over: asking every rank to save and exit'
  job_control save deadline
  job_optional job_end_at_limit
}

# ---- handover.sh: The handover: what the nodes and ranks read from the run directory.

job_save_environment() { # except variables of this node or this shell
  local job_variable  # with a prefix: a local variable hides that of the user
  printf 'cd %q\n' "$PWD"
  for job_variable in $(compgen -e); do
    [[ " ${job_secret_names[*]-} " != *" $job_variable "* ]] || continue
    case $job_variable in
      SLURM* | PMI* | OMPI_COMM_* | *_VISIBLE_DEVICES | ZE_AFFINITY_MASK | GPU_DEVICE_ORDINAL | TMPDIR | HOSTNAME | HOST | DISPLAY | SSH_* | XDG_*) ;;
      RANK | LOCAL_RANK | WORLD_SIZE | LOCAL_WORLD_SIZE | NODE_RANK | GROUP_RANK | PBS_NODENUM | PBS_TASKNUM | PBS_VNODENUM) ;;
      JOBGEN_HOST | BASH* | SHELLOPTS | SHLVL | PWD | OLDPWD | UID | EUID | PPID | _) ;;
      *) printf 'export %s=%q\n' "$job_variable" "${!job_variable}" ;;
    esac
  done
}

job_save_functions() { # the functions of the job that run on the nodes
  local name
  for name in variables job_secrets rank program node job_escape_environment container; do declare -f "$name" || true; done
  for name in job_secret_names job_secret_file job_accelerator job_point job_value job_cpu_lists job_container_binds job_container_variables job_container_variable_prefix; do
    declare -p "$name" 2> /dev/null || true
  done
}

job_handover() {
  job_hide_secrets
  (umask 077; job_save_environment > "$job_dir/env.sh"; job_save_functions > "$job_dir/functions.sh")
  for job_word in $(compgen -A function job_file_); do
    "$job_word" > "$job_dir/${job_word#job_file_}.sh"
  done
  if [[ -f $job_dir/remote.sh ]]; then  # under the name of a command: mpirun runs it instead of ssh
    cp "$job_dir/remote.sh" "$job_dir/jobgen-remote"
    chmod +x "$job_dir/jobgen-remote"
  fi
  job_make_log_folders
}

job_make_log_folders() {  # of 400 ranks each, which limits their entries
  local last=$(((JOBGEN_WORLD_SIZE - 1) / 400))
  mkdir "$job_logs/nodes" && (cd "$job_logs/nodes" && seq 0 "$last" | xargs mkdir -p)
}

# ---- run.sh: Run of the launcher, which the function launch of the job starts.

job_run() { # [preflight]: sets job_status to the status of the launcher
  job_optional job_await_controller
  # In a separate session: PBS signals every process of the job's session, which would kill mpirun.
  # Without input, which may be the rest of this script.
  setsid bash -c "umask ${job_umask:-$(umask)}; set -euo pipefail"$'\n'"$(declare -f launch)"$'\n''launch "$@"' launch "$@" < /dev/null &
  job_launcher=$!
  job_end_with_script &
  if [[ -n ${1:-} ]]; then
    job_later "${job_preflight_seconds:-60}" job_stop
  elif [[ ${job_hosts[*]} != "$JOBGEN_HERE" ]]; then  # not this host alone
    job_later 0 job_end_stragglers
  fi
  ! job_defined job_heed_control || job_later 0 job_heed_control
  [[ -n ${1:-} ]] || ! job_defined job_watch_progress || job_later 0 job_watch_progress
  job_wait "$job_launcher"
  job_end_leftovers
  rm -rf "$job_logs/answers" 2> /dev/null || true  # of remote commands, which may still end
  job_launcher=
  # shellcheck disable=SC2046  # process ids of helpers that still run: other ids may have been reused
  kill $(jobs -pr) 2> /dev/null || true
}

job_wait() { # PROCESS: sets job_status to its status
  local traps=-1
  # A trap ends the wait, not the process; bash may end the next wait, too, after two signals at once.
  while ((traps != job_traps)) || kill -0 "$1" 2> /dev/null; do
    traps=$job_traps
    wait "$1" && job_status=0 || job_status=$?
  done
}

job_end_with_script() { # ends the processes on this host when the script is killed
  # shellcheck disable=SC2016  # expanded in the other shell
  exec setsid bash -c '
    remainder() { grep -lszxF "JOBGEN_LOGS=$3" /proc/[0-9]*/environ | awk -F/ -v self="$$" "\$3 != self { print \$3 }"; }
    exec {clock}<> <(:)  # without input: read waits without a process, unlike sleep
    while kill -0 "$1" && kill -0 "$2"; do read -rt 1 -u "$clock"; done
    ! kill -0 "$1" || exit
    for i in {1..10}; do [[ -s $3/control ]] && kill -0 "$2" && sleep 1; done  # the ranks may be saving
    kill -TERM $(remainder "$@") && sleep 3 && kill -KILL $(remainder "$@")
  ' guard "$$" "$job_launcher" "$job_logs" < /dev/null &> /dev/null
}

job_end_leftovers() { # its session, and the commands for other hosts, which may have separate sessions
  local pids _
  for _ in 1 2 3; do  # one may have started another in the meantime
    mapfile -t pids < <({
      # PID (NAME) STATE PARENT GROUP SESSION. Containers often have no pkill. sed would give up at a process that has just ended.
      grep -ls ") [A-Za-z] [0-9]* [0-9]* $job_launcher " /proc/[0-9]*/stat || true
      grep -lszxF "JOBGEN_SENT_BY=$job_logs" /proc/[0-9]*/environ
    } | awk -F/ '{ print $3 }')
    ((${#pids[@]})) || return 0
    kill -KILL "${pids[@]}" 2> /dev/null || true
  done
}

job_stop() { # end the launcher and its remaining processes
  kill -TERM -- "-$job_launcher" 2> /dev/null
  sleep 10 &
  wait "$!"
  job_control stop timeout
  kill -KILL -- "-$job_launcher" 2> /dev/null
}

job_end_stragglers() { # a launcher may wait long for the ranks of a lost node, or not end after its last rank
  until [[ -s $job_logs/failed ]] || job_all_finished; do
    if job_defined job_lost_host && job_lost_host; then
      job_stop
      return
    fi
    sleep 5 &
    wait "$!"
  done
  sleep 30 &
  wait "$!"
  job_stop
}

# ---- remote_start.sh: Commands on the other hosts, several at a time.

job_ask_host() { # HOST COMMAND: job_reach_host, for half a minute at most
  timeout 30 bash -c "$(declare -f job_reach_host)"$'\n''job_reach_host "$@"' reach "$@" < /dev/null
}

job_on_hosts() { # LIMIT COMMAND...: run it with the name of each host, in the background, and wait for all
  local limit=$1 host pids=()
  shift
  for host in "${job_hosts[@]}"; do
    # For the oldest: wait -n is new in bash 4.3.
    if ((${#pids[@]} >= limit)); then wait "${pids[${#pids[@]} - limit]}" || true; fi
    "$@" "$host" &
    pids+=($!)
  done
  wait
}

# ---- reach_srun.sh: Another host by a step of Slurm.

job_reach_host() { # HOST COMMAND
  srun --overlap --nodes=1 --ntasks=1 --nodelist="$1" --mpi=none bash -c "$2"
}

# ---- lost_nodes.sh: A node that has lost power: some launchers and commands of schedulers wait for it for ever. The watcher of each node
# writes a new number into a file of its own every JOBGEN_BEAT seconds.

declare -A job_beat=() job_beat_at=() job_answered_at=()

job_lost_host() { # whether a node is silent and does not answer, while another one writes: the file system works
  local host beat
  job_read_beats
  for host in "${!job_beat[@]}"; do
    ((SECONDS - ${job_beat_at[$host]} > 3 * JOBGEN_BEAT && SECONDS - ${job_answered_at[$host]:-0} > 3 * JOBGEN_BEAT)) || continue
    job_some_node_writes || return 1
    beat=${job_beat[$host]}
    if job_ask_host "$host" true &> /dev/null; then
      job_answered_at[$host]=$SECONDS
      continue
    fi
    job_read_beats
    if [[ ${job_beat[$host]} != "$beat" ]] || ! job_some_node_writes; then continue; fi
    echo "$host" > "$job_logs/nodes/0/$host.silent"  # read by the verdict
    job_say "$host does not answer any more"
    return 0
  done
  return 1
}

job_read_beats() { # sets job_beat to the numbers of the hosts, and job_beat_at to the times at which they changed
  local file host beat
  for file in "$job_logs"/nodes/*/*.alive; do
    { read -r beat < "$file"; } 2> /dev/null || continue
    host=${file##*/} host=${host%.alive}
    [[ ${job_beat[$host]-} != "$beat" ]] || continue
    job_beat[$host]=$beat job_beat_at[$host]=$SECONDS
  done
}

job_some_node_writes() { # or this host, where it has no ranks of the job
  local at
  for at in "${job_beat_at[@]}"; do ((SECONDS - at > 2 * JOBGEN_BEAT)) || return 0; done
  [[ " ${job_hosts[*]} " != *" $JOBGEN_HERE "* ]] && timeout 10 dd if=/dev/null of="$job_logs/alive" conv=fsync &> /dev/null
}

# ---- preflight.sh: The preflight: the same launcher first starts a check on every rank (docs/survival.md).

job_preflight() { # return 1 after a failure, with the bad hosts in job_bad_hosts
  rm -rf "$job_dir/preflight"
  mkdir "$job_dir/preflight"
  job_run preflight
  job_bad_hosts=()
  ((job_status)) || [[ ! -f $job_dir/preflight/result.json ]] || return 0
  ! job_save_requested || return 0  # it ends before the program
  [[ -s $job_dir/preflight/bad-hosts ]] || job_probe_hosts
  [[ -s $job_dir/preflight/bad-hosts ]] || job_find_silent
  mapfile -t job_bad_hosts < <(cut -f 1 "$job_dir/preflight/bad-hosts" 2> /dev/null)
  if ((${#job_bad_hosts[@]})); then
    sed 's/^/jobgen: /; s/\t/: /; 20q' "$job_dir/preflight/bad-hosts" >&2  # srun can lose what the ranks print last
    cat "$job_dir/preflight/bad-hosts" >> "$job_dir/bad-hosts"
  fi
  return 1
}

job_find_silent() { # the hosts that did not report
  local host
  for host in "${job_hosts[@]}"; do
    compgen -G "$job_dir/preflight/nodes/*/$host.json" > /dev/null || job_bad_hosts+=("$host")
  done
  ((${#job_bad_hosts[@]} < ${#job_hosts[@]})) || job_die 74 "the preflight ended with status $job_status before any host reported"
  ((${#job_bad_hosts[@]} == 0)) || printf '%s\tdid not report\n' "${job_bad_hosts[@]}" > "$job_dir/preflight/bad-hosts"
}

job_probe_hosts() { # test each host alone, if the launcher failed or ended all ranks at the first failure
  [[ -n ${job_host_access:-} && ! ${job_container_runtime:-} =~ ^(pyxis|edf)$ ]] || return 0
  local folder
  folder=$(job_quote "$job_dir")
  job_probe="set -e; . $folder/env.sh;"
  if job_defined container; then
    job_probe+=" exec bash $folder/container.sh"
  elif job_defined node; then
    job_probe+=" command -v $job_launcher_name > /dev/null || { echo '$job_launcher_name: command not found'; exit 71; }; exec"
  fi
  job_probe+=" python3 -c 'import jobgen.train, torch.distributed'"
  job_on_hosts 64 job_probe_host
  (cd "$job_dir/preflight/probes" && find . -name '*.bad' -exec cat {} +) | sort > "$job_dir/preflight/bad-hosts"
}

job_probe_host() { # HOST: its messages go to a file, because pbs_tmrsh writes to the output of the job
  local file
  file=$job_dir/preflight/probes/$((RANDOM % 100))
  mkdir -p "$file"
  file+=/$1
  job_ask_host "$1" "($job_probe) > $(job_quote "$file") 2>&1" &> "$file.caller" && rm -f "$file" "$file.caller" && return 0
  printf '%s\t%s\n' "$1" "$(cat "$file" "$file.caller" 2> /dev/null |
    awk '!/^(srun|slurmstepd)/ { last = $0 } END { print last ? last : "does not answer" }')" > "$file.bad"
}

job_preflight_or_end() {
  if [[ $job_preflight_mode == if_there ]] && ! job_has_training; then
    job_say 'no preflight: python3 has no jobgen.train with torch'
  elif job_defined job_choose_hosts; then
    job_choose_hosts || job_die 74 "$job_fault"
  else
    job_preflight || job_die 74 "the preflight failed with status $job_status; bad hosts: ${job_bad_hosts[*]:-none is named}"
  fi
}

job_has_training() {
  local inside=()
  ! job_defined container || inside=(bash "$job_dir/container.sh")
  ${inside[@]+"${inside[@]}"} python3 -c \
    'import sys, importlib.util as u, jobgen.train; sys.exit(not u.find_spec("torch"))' 2> /dev/null
}

# ---- verdict.sh: The verdict: the status of the launcher is not enough, every rank must record its own.

job_judge() { # sets job_status to the status of the job
  local launcher=$job_status rank host status='' _
  job_silent_hosts=()
  for _ in {1..5}; do  # a launcher may exit before the ranks have written their last line
    job_read_ends
    ((job_silent_count)) || break
    sleep 0.5
  done
  read -r rank status _ host < <(LC_ALL=C sort -k 3,3n "$job_logs/statuses" | awk '$2 != 0 && !n++') || true
  job_status=${status:-$launcher}
  if job_save_requested && ((job_start_count == 0)); then
    job_status=75
  elif ((launcher == 124 && job_status != 75)) && [[ -n ${job_launcher_timeout:-} ]]; then
    job_status=124
    job_say "stopped by timeout after $job_launcher_timeout, the wall time"
  elif [[ $status == 143 ]] && job_save_requested; then
    job_say "rank $rank on $host was ended by TERM before it could save"
  elif job_save_requested && [[ $status == "$((128 + $(kill -l "$job_save_signal")))" ]]; then
    job_say "rank $rank on $host was ended by $job_save_signal, the request to save, which its program does not handle"
  elif [[ -n $status && $status != 75 ]]; then
    job_say "rank $rank on $host failed first, with status $status; the end of its log:"
    job_show_log "$rank" "$host"
  elif [[ -z $status ]] && ((launcher > 128 && job_silent_count == 0)) && ! job_save_requested; then
    job_status=0
    job_say "$job_launcher_name was ended by a signal after every rank had ended with status 0"
  fi
  ((job_silent_count == 0 || job_status == 75)) || job_judge_silent
  [[ $job_last_signal != INT ]] || ((job_status <= 128)) || job_status=130  # the user has ended it
  [[ -z ${job_runs_training_module:-} || $job_status != 0 ]] || grep -q '"state": *"finished"' "$job_dir/status.json" 2> /dev/null ||
    job_die 73 "$job_launcher_name ended with status 0, but $job_dir/status.json does not say that the training finished"
}

job_read_ends() { # of every rank its last line, RANK STATUS SECONDS HOST, into the file statuses
  local ranks=$job_logs/statuses.new
  find "$job_logs/nodes" -name '*.ranks' -exec cat {} + | out=$ranks awk -v world="$JOBGEN_WORLD_SIZE" '
    $1 == "began" { starts++ }
    $1 == "ended" { line[$2] = $2 " " $3 " " $4 " " $5 }
    END {
      out = ENVIRON["out"]  # -v would read backslashes in it
      printf "" > out
      for (rank = 0; rank < world; rank++)
        if (rank in line) print line[rank] > out
        else if (silent++ < 8) first = first " " rank
      print starts + 0, silent + 0 first
    }' > "$job_logs/counts"
  read -r job_start_count job_silent_count job_silent_ranks < "$job_logs/counts"
  rm "$job_logs/counts"
  mv "$ranks" "$job_logs/statuses"
}

job_all_finished() { # every rank has recorded status 0; the files of all nodes are read only after rank 0 has
  grep -qs '^ended 0 0 ' "$job_logs"/nodes/0/*.ranks || return
  find "$job_logs/nodes" -name '*.ranks' -exec cat {} + | awk -v world="$JOBGEN_WORLD_SIZE" '
    $1 == "ended" { status[$2] = $3 }
    END {
      for (rank in status) finished += status[rank] == 0
      exit (finished < world)
    }'
}

job_show_log() { # RANK HOST: the last lines of a rank
  local file
  for file in "$job_logs"/nodes/*/rank-"$1".log "$job_logs"/nodes/*/"$2".log; do
    [[ -f $file ]] || continue
    case $file in
      */rank-*) tail -n 20 "$file" ;;
      *) sed -n "s/^$1: //p" "$file" | tail -n 20 ;;
    esac >&2 || true
    return
  done
}

job_judge_silent() { # ranks that recorded no status: killed by the launcher, or lost with their node
  local bad
  if ((job_start_count)); then
    job_say "rank $job_silent_ranks recorded no status: killed by the launcher, or lost with its node"
  else
    job_say "no rank began: $job_launcher_name ended with status $job_status before; its own messages are above"
  fi
  # A job that is ending cannot reach other hosts: this is no fault of the host.
  if ! job_save_requested && ((job_signals == 0)); then
    if [[ -n ${job_host_access:-} ]]; then job_on_hosts 64 job_check_silent_host; else job_check_silent_host "$JOBGEN_HERE"; fi
    mapfile -t bad < <(find "$job_logs/nodes" -name '*.silent' -exec cat {} +)
    find "$job_logs/nodes" -name '*.silent' -delete
    if ((${#bad[@]})); then
      job_silent_hosts=("${bad[@]}")
      job_say "${bad[*]:0:8} does not answer"
      printf '%s\tdoes not answer\n' "${bad[@]}" >> "$job_dir/bad-hosts"
      ((job_status)) || job_status=1
      [[ -z ${job_runs_training_module:-}${job_max_requeues:-} ]] || job_status=75
    fi
  fi
  ((job_status)) || job_die 73 "$job_launcher_name ended with status 0, but rank $job_silent_ranks recorded no status"
}

job_check_silent_host() { # HOST
  local status=0 try
  ! grep -q " $1\$" "$job_logs/statuses" || return 0
  [[ ! -e $job_logs/nodes/0/$1.silent ]] || return 0
  # shellcheck disable=SC2016  # expanded there
  try='file=$(mktemp) && echo x > "$file" && rm -f "$file" || { rm -f "${file:-}"; exit 9; }'
  if [[ $1 == "$JOBGEN_HERE" ]]; then bash -c "$try" || status=$?; else job_ask_host "$1" "$try" || status=$?; fi &> /dev/null
  case $status in
    0) ;;
    9) job_say "cannot write temporary files on $1: its ${TMPDIR:-/tmp} is full or read-only" ;;
    *) printf '%s\n' "$1" > "$job_logs/nodes/0/$1.silent" ;;
  esac
}

job_file_rank() {
  cat << 'END_OF_RANK'
#!/bin/bash
# rank.sh [preflight]: the launcher starts it once for each rank.
# Launchers change or lose the status of a rank: this script records its status, its log and its process.
set -euo pipefail
job_dir=${BASH_SOURCE[0]%/*}
if [[ -z ${JOBGEN_INSIDE:-} ]]; then
  # shellcheck source=/dev/null
  . "$job_dir/env.sh"
fi
# shellcheck source=/dev/null
. "$job_dir/functions.sh"
job_host=${JOBGEN_HOST:-${SLURMD_NODENAME:-$(hostname)}}

job_umask=$(umask)  # of the program
umask "${JOBGEN_UMASK:-077}"

job_fail() {
  echo "jobgen: $job_host: $1" >&2
  exit 70
}

job_restore_devices() { # the deepspeed launcher numbers the devices of a node from 0; the scheduler may allocate others
  local all own i devices=
  [[ -z ${JOBGEN_DEVICES_BY_NODE:-} ]] || JOBGEN_DEVICES=$(sed -n "$((CROSS_RANK + 1))p" "$job_dir/devices")
  [[ -n ${JOBGEN_DEVICES:-} ]] || return 0
  IFS=, read -ra all <<< "$JOBGEN_DEVICES"
  IFS=, read -ra own <<< "${!JOBGEN_VISIBLE}"
  for i in ${own[@]+"${own[@]}"}; do devices+=,${all[i]:?$job_host has only the devices $JOBGEN_DEVICES}; done
  export "$JOBGEN_VISIBLE=${devices#,}"
}

job_number_device() { # LOCAL_RANK must be a device that this rank sees: with some launchers it sees only its own
  local name list seen
  [[ ${JOBGEN_ACCELERATOR:-} != cpu ]] || return 0
  for name in CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES ASCEND_RT_VISIBLE_DEVICES ZE_AFFINITY_MASK; do
    [[ -n ${!name:-} ]] || continue
    list=${!name//[!,]/}
    seen=$((${#list} + 1))
    ((LOCAL_RANK < seen)) || LOCAL_RANK=$((LOCAL_RANK % seen))
  done
}

[[ -z ${JOBGEN_VISIBLE:-} ]] || job_restore_devices
! declare -F job_secrets > /dev/null || job_secrets
! declare -F variables > /dev/null || variables
! declare -F rank > /dev/null || rank
[[ -n ${RANK:-} ]] || job_fail "$JOBGEN_LAUNCHER gave this process no rank"
[[ -z ${WORLD_SIZE:-} || $WORLD_SIZE == "$JOBGEN_WORLD_SIZE" ]] ||
  job_fail "$JOBGEN_LAUNCHER started a world of $WORLD_SIZE ranks, not $JOBGEN_WORLD_SIZE: is it that of another MPI?"
LOCAL_WORLD_SIZE=${LOCAL_WORLD_SIZE:-${LOCAL_SIZE:-$JOBGEN_RANKS_PER_NODE}}
job_local=${LOCAL_RANK:-0}
if [[ -f $job_dir/bind.sh ]]; then
  # shellcheck source=/dev/null
  . "$job_dir/bind.sh"
fi
[[ -z ${LOCAL_RANK:-} ]] || job_number_device

if [[ ${1:-} == preflight ]]; then
  [[ -z $JOBGEN_TRAINING ]] || program preflight
  inside=()
  ! declare -F container > /dev/null || [[ -n ${JOBGEN_INSIDE:-} ]] || inside=(bash "$job_dir/container.sh")
  exec ${inside[@]+"${inside[@]}"} python3 -m jobgen.train preflight
fi

job_write() { # began|ended NUMBER [SECONDS]: a line of this rank in the file of its node; SECONDS since 1970, default now
  local now=${3:-${EPOCHREALTIME:-$(date +%s.%N)}}
  printf '%s %s %s %s %s\n' "$1" "$RANK" "$2" "${now/,/.}" "$job_host" >> "$job_node.ranks"
}

job_remainder() { # the processes that the program has left
  local pid
  grep -lszxF "JOBGEN_NODE=$job_node" /proc/[0-9]*/environ | while read -r pid; do
    pid=${pid//[!0-9]/}
    { ((LOCAL_WORLD_SIZE > 1)) && ! grep -qszxF "RANK=$RANK" "/proc/$pid/environ"; } || echo "$pid"
  done
}

job_end_remainder() { # they may hold sockets of MPICH, which waits for them, and outlive a step of Slurm
  local pids signal
  for signal in TERM 0 0 0 0 0 KILL; do
    mapfile -t pids < <(job_remainder)
    ((${#pids[@]})) || return 0
    kill -s "$signal" "${pids[@]}"
    sleep 0.5
  done
} 2> /dev/null

job_logs=$JOBGEN_LOGS
job_node=$job_logs/nodes/$(((RANK - job_local) / 400))/$job_host
if ((job_local == 0)); then
  setsid bash "$job_dir/watch.sh" "$PPID" "$job_node" "$LOCAL_WORLD_SIZE" < /dev/null &> /dev/null &
fi

job_pipe() { # sets job_in and job_out to the ends of a new pipe; the process id of >(...) is known since bash 4.4
  local both
  exec {both}<> <(:)
  exec {job_in}< "/dev/fd/$both" {job_out}> "/dev/fd/$both" {both}>&-
}

# Signals are for the program, but launchers send them to this shell and its helpers, too, which outlive the program.
trap '' TERM INT HUP USR1 USR2 URG PIPE
set +e
case $JOBGEN_RANK_LOGS in
  node)
    job_pipe
    # cut ends the last line
    { stdbuf -oL cut -b1- | stdbuf -oL sed "s/^/$RANK: /" >> "$job_node.log"; } <&"$job_in" {job_in}<&- {job_out}>&- &
    job_children+=($!)
    job_lines=$job_out
    job_log=/dev/fd/$job_lines
    exec {job_in}<&-
    ;;
  rank) job_log=${job_node%/*}/rank-$RANK.log ;;
  failed) job_log=$(mktemp) || job_fail 'cannot make a temporary file' ;;
  none) job_log=/dev/null ;;
esac
job_pipe
tee -a "$job_log" <&"$job_in" {job_in}<&- {job_out}>&- &
job_children+=($!)
exec {job_in}<&-
trap : TERM INT HUP USR1 USR2 URG PIPE  # not '': bash 4.2 could not restore them for the program
[[ -z ${job_lines:-} ]] || exec {job_lines}>&-

{ (
  export JOBGEN_NODE=$job_node  # identifies the processes of this job on this node
  job_write began "$BASHPID"
  [[ ! -s $job_logs/control ]] || exit 75  # asked to exit before it started
  umask "$job_umask"
  program
) < /dev/null >&"$job_out" 2>&1 {job_out}>&-; job_status=$?; } 2> /dev/null  # where bash reports how it ended
job_ended=${EPOCHREALTIME:-$(date +%s.%N)}  # ranks that lose a peer fail soon after it: the times show which failed first
trap '' TERM INT HUP USR1 USR2 URG PIPE
# A signal may arrive before the training module handles it.
[[ -z $JOBGEN_TRAINING ]] || ((job_status != 128 + $(kill -l "$JOBGEN_SIGNAL"))) || job_status=75

exec {job_out}>&-
for i in {1..100}; do  # limited: processes that the program left may keep its output open
  kill -0 "${job_children[@]}" 2> /dev/null || { job_children=(); break; }
  ((i != 10)) || job_end_remainder
  sleep 0.1
done
((${#job_children[@]} == 0)) || kill -KILL "${job_children[@]}" 2> /dev/null
if [[ $JOBGEN_RANK_LOGS == failed ]]; then
  ((job_status == 0 || job_status == 75)) || cat "$job_log" > "${job_node%/*}/rank-$RANK.log"
  rm -f "$job_log"
fi
job_write ended "$job_status" "$job_ended"
# The launcher ends the other ranks when this one exits: their watchers must first ask them to save.
((job_status != 75)) || ! grep -qs '^save' "$job_logs/control" || sleep "$((${JOBGEN_POLL%.*} + 1))"
job_end_remainder
((job_status == 0 || job_status == 75)) || [[ -s $job_logs/failed ]] || echo "$RANK $job_status $job_host" >> "$job_logs/failed"
exit "$job_status"
END_OF_RANK
}

job_file_watch() {
  cat << 'END_OF_WATCH'
#!/bin/bash
# watch.sh LAUNCHER NODE RANKS: the watcher of a node, which its first rank starts in a separate session.
# It forwards the requests in the file control. It ends the remaining processes when the launcher (a process id),
# or the process that started it here for the scheduler, has ended. The files of this node begin with NODE.
set -u
trap '' TERM HUP  # schedulers send them to all processes of a job; what ignores them is ended here
launcher=$1 node=$2 ranks=$3 request=''
control=$JOBGEN_LOGS/control
for fd in "/proc/$$"/fd/*; do  # those of the launcher: MPICH waits until its sockets are closed
  fd=${fd##*/}
  ((fd < 3 || fd == 255)) || exec {fd}>&-
done
exec {clock}<> <(:)  # without input: read waits without a process, unlike sleep

# Without awk, which an image may not have.
programs() { # the process ids of the programs that have not ended, except those that other processes have reused
  local what rank value parent _
  local -A pid=()
  while read -r what rank value _; do
    case $what in
      began) pid[$rank]=$value ;;
      ended) unset "pid[$rank]" ;;
    esac
  done < "$node.ranks"
  for value in ${pid[@]+"${pid[@]}"}; do
    parent=$(sed -n 's/^PPid:[[:blank:]]*//p' "/proc/$value/status" 2> /dev/null)
    ! grep -qasF "$JOBGEN_RUN_DIR/rank.sh" "/proc/$parent/cmdline" || echo "$value"
  done
}

remainder() { # the processes of the ranks on this node, and of the launcher that was started here
  local pid
  grep -lszxF -e "JOBGEN_NODE=$node" -e "JOBGEN_PARENT=${JOBGEN_PARENT:--}" /proc/[0-9]*/environ |
    while read -r pid; do pid=${pid//[!0-9]/}; [[ $pid == "$$" ]] || echo "$pid"; done
}

all_have_ended() { (($(grep -c '^ended' "$node.ranks") >= ranks)); }

lives() { # PROCESS: slurmstepd, the parent of the ranks of srun, is root's, who takes no signal from this user
  kill -0 "$1" 2> /dev/null || [[ $(LC_ALL=C kill -0 "$1" 2>&1) == *'not permitted'* ]]
}

alive() { lives "$launcher" && { [[ -z ${JOBGEN_PARENT:-} ]] || lives "$JOBGEN_PARENT"; }; }

stop() { # SIGNAL
  local pids
  mapfile -t pids < <(remainder)
  ((${#pids[@]} == 0)) || kill -s "$1" "${pids[@]}"
} 2> /dev/null

look() { # reads the request in the file into wish; a stop is done at once
  local what
  wish=''
  # The file exists from the start: opening it makes a network file system query the server.
  while read -r what _; do wish=$what; done < "$control"
  [[ $wish != stop ]] || { stop KILL; exit; }
}

saving() { [[ -n $request ]] && ! all_have_ended; }

ends_by_itself() { # a launcher may, after its last process here
  all_have_ended && [[ -n ${JOBGEN_PARENT:-} ]] && kill -0 "$JOBGEN_PARENT" 2> /dev/null
}

remains() { [[ -n $(remainder) ]]; }

wait_while() { # TIMES COMMAND: half a second each time
  local time
  for ((time = 0; time < $1; time++)); do
    look
    "$2" || return 0
    read -rt 0.5 -u "$clock"
  done
}

beat=0
show_life() { # a new number in a file; the script asks a node whose number stays the same
  [[ -n ${JOBGEN_BEAT:-} ]] && ((SECONDS >= beat)) || return 0
  beat=$((SECONDS + JOBGEN_BEAT))
  echo "$beat" > "$node.alive"
} 2> /dev/null

while alive; do
  look
  show_life
  if [[ $wish == save && -z $request ]]; then
    request=save
    mapfile -t pids < <(programs)
    ((${#pids[@]} == 0)) || kill -s "$JOBGEN_SIGNAL" "${pids[@]}" 2> /dev/null
  fi
  read -rt "$JOBGEN_POLL" -u "$clock"
done
rm -f "$node.alive"
wait_while 20 saving
wait_while 40 ends_by_itself
stop TERM
wait_while 6 remains
stop KILL
END_OF_WATCH
}

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
