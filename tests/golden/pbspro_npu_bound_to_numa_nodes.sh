#!/bin/bash
# 2 nodes x 8 ranks, 16 ranks in all, by torchrun on Ascend NPUs; made by jobgen 0.1.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE. Of a repeated directive PBS heeds the first.
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2:ncpus=192:mpiprocs=8:naccelerators=8
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
set -euo pipefail
unset CDPATH

# Statuses of this script; any other one is the launcher's:
# 70 the allocation is not what was asked for      71 a file, a module or a command is missing
# 72 a directory cannot be used                    73 the launcher said 0 without proof of success
# 74 the preflight found a fault                   75 not finished, but the next attempt can go on
job_say() { printf 'jobgen: %s\n' "$*" >&2 || true; }  # the terminal may be gone
job_die() { # STATUS MESSAGE
  job_say "$2"
  exit "$1"
}
job_note() { # WHAT VALUE: into the attempt's events, with the time
  # No $(date): bash 5.2 cannot read one while a second signal waits for its trap.
  { [[ -z ${job_logs:-} ]] || printf '%(%s)T %s %s\n' -1 "$1" "$2" >> "$job_logs/events"; } 2> /dev/null || true
}
# shellcheck disable=SC2329  # the trap calls it
job_end() {
  local status=$? what=finished
  if ((status == 0)) && [[ -z ${job_status:-} ]]; then
    job_say 'a script that was sourced has called exit: nothing was launched'
    status=71
  fi
  [[ -n ${job_over:-} ]] || what='was ended by a signal'
  ((status == 0)) || what="failed with status $status"
  ((status != 75)) || what='is not finished, but can go on: it ended with status 75'
  job_note ended "$status"
  job_say "job ${job_id:-?} $what after $SECONDS s${job_output:+; output in $job_output}${job_dir:+; files in $job_dir}"
  exit "$status"
}
trap job_end EXIT
job_traps=0 job_signals=0 job_last_signal=''
# shellcheck disable=SC2329  # job_trap calls it
job_signal() { # NAME: one that comes before the program
  job_signals=$((job_signals + 1))
  job_last_signal=$1
  job_note signal "$1"
  ((job_signals == 1)) || job_die 75 "got $1 again: stopping at once"
}
# shellcheck disable=SC2329  # the traps call it
job_trap() { # NAME
  job_traps=$((job_traps + 1))
  if [[ $1 == HUP ]]; then  # twice when a terminal closes: from itself, and from its shell
    local before=${job_hung_up:--9}
    job_hung_up=$SECONDS
    ((SECONDS - before >= 5)) || return 0
  fi
  job_signal "$1"
}
job_listen() {
  local name
  for name in TERM INT HUP USR1 USR2; do
    # shellcheck disable=SC2064  # now: each its own
    trap "job_trap $name" "$name"
  done
  trap : PIPE  # nobody reads the output any more; that is no reason to end
}
job_listen

# ---- the job ------------------------------------------------------------------------------
[[ -n ${PBS_JOBID:-} ]] || job_die 70 'PBS_JOBID is not set: submit this script with qsub'
[[ -r ${PBS_NODEFILE:-} ]] || job_die 70 "cannot read the list of hosts: PBS_NODEFILE is '${PBS_NODEFILE:-}'"
job_id=$PBS_JOBID
job_number=${PBS_JOBID%%[!0-9]*}
job_index=${PBS_ARRAY_INDEX:-${PBS_ARRAYID:-0}}  # the tasks of an array share the number
# shellcheck disable=SC2034  # unused where the port is given
job_number=$((10#${job_number:-0} + 1009 * job_index))
job_nodefile=$PBS_NODEFILE
job_listed=$(awk 'NF { listed[$1]++ } END { for (host in listed) print listed[host] }' "$job_nodefile" | sort -nu | paste -sd ' ')
[[ $job_listed != *' '* ]] || job_die 70 "PBS gave the hosts different shares ($job_listed lines in $job_nodefile), but all are to have 8 ranks"
job_submit_dir=${PBS_O_WORKDIR:-$PWD}  # PBS starts a job in the home directory
job_output=${PBS_JOBID%%.*}
job_output=${job_output/[/.}  # of 12[3], a task of an array, PBS makes .o12.3
job_output=$job_submit_dir/${PBS_JOBNAME:-jobgen}.o${job_output%]}
job_dir=
if [[ -f $job_submit_dir/submitted-from && -f $job_submit_dir/job.sh ]]; then
  job_dir=$job_submit_dir  # a later attempt
  job_submit_dir=$(< "$job_dir/submitted-from")
fi
cd "$job_submit_dir" || job_die 72 "cannot enter $job_submit_dir"
# Everything that belongs to this job alone is in a directory of its own.
[[ -n $job_dir ]] || job_dir=runs/jobgen-${job_id//[^A-Za-z0-9._-]/_}
[[ $job_dir == /* ]] || job_dir=$PWD/$job_dir
mkdir -p "$job_dir" || job_die 72 "cannot make the run directory $job_dir"
[[ -w $job_dir ]] || job_die 72 "cannot write into the run directory $job_dir"
rm -f "$job_dir/status.json" "$job_dir/cancelled"

# Each attempt of the job has its own logs in it: the second comes after a requeue, or by hand.
job_attempt=1
while [[ -e $job_dir/attempt-$job_attempt ]]; do job_attempt=$((job_attempt + 1)); done
job_logs=$job_dir/attempt-$job_attempt
mkdir "$job_logs" || job_die 72 "cannot make the directory $job_logs"
job_note began "$job_id"
[[ -z ${job_output:-} ]] || job_note output "$job_output"
if [[ -f ${BASH_SOURCE[0]:-} && ! ${BASH_SOURCE[0]} -ef $job_dir/job.sh ]]; then
  cp "${BASH_SOURCE[0]}" "$job_dir/job.sh"  # submitted from there, it goes on in there
fi
printf '%s\n' "$job_submit_dir" > "$job_dir/submitted-from"
printf '%s\n' "$job_id" > "$job_dir/job-id"

# ---- the environment ----------------------------------------------------------------------
job_export() { # now, as modules and scripts may read them, and again after those, as they may change them
  export NCCL_SOCKET_IFNAME='^lo,docker'
}
job_export
# A sourced script is seldom written for set -eu, and may change more of the shell than its environment.
# It is sourced at the top level: what it declares in a function would be gone with that.
job_here=$PWD
job_readable() { [[ -f $job_file && -r $job_file ]] || job_die 71 "cannot read $job_file, which was to be sourced"; }
job_sourced() { # STATUS
  set -eu +fx
  unset IFS
  trap job_end EXIT
  cd "$job_here"
  (($1 == 0)) || job_say "warning: $job_file returned status $1"
}
# CANN: the toolkit's own set_env.sh, then the driver's libraries.
job_cann=
for job_dir_of_cann in "${ASCEND_HOME_PATH:-}" "${ASCEND_HOME_PATH:-}/.." "${ASCEND_TOOLKIT_HOME:-}" "${ASCEND_TOOLKIT_HOME:-}/.." \
  /usr/local/Ascend/{ascend-toolkit,ascend-toolkit/latest,cann} "$HOME"/Ascend/{ascend-toolkit,cann}; do
  if [[ $job_dir_of_cann == /*[!/.]* && -r $job_dir_of_cann/set_env.sh ]]; then job_cann=$job_dir_of_cann/set_env.sh; break; fi
done
[[ -n $job_cann ]] || job_die 71 \
  'cannot find the set_env.sh of the CANN toolkit: set ASCEND_HOME_PATH (looked in ASCEND_TOOLKIT_HOME, /usr/local/Ascend and ~/Ascend, too)'
job_file=$job_cann
job_readable
set +eu
# shellcheck disable=SC1090  # found at run time
source "$job_file"
job_sourced $?
for job_libraries in "${ASCEND_DRIVER_PATH:-/usr/local/Ascend/driver}"/lib64{,/common,/driver}; do
  [[ ! -d $job_libraries ]] || export LD_LIBRARY_PATH=$job_libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
done
export DS_ACCELERATOR=npu
# HCCL: slow file systems need longer than its 120 s to bring all ranks up; no list of allowed hosts.
export HCCL_CONNECT_TIMEOUT=${HCCL_CONNECT_TIMEOUT:-1200} HCCL_WHITELIST_DISABLE=${HCCL_WHITELIST_DISABLE:-1}
# It takes a rank table or environment variables, never both; the variables are ours.
[[ -z ${RANK_TABLE_FILE:-} ]] || job_say 'warning: RANK_TABLE_FILE is left out; HCCL gets its ranks from the launcher'
unset RANK_TABLE_FILE
export PYTHONUNBUFFERED=1
# The network: what each library calls the same. Gloo and Open MPI want whole names, TensorPipe takes one.
# jobgen: disable=fixed-interface
export NCCL_SOCKET_IFNAME=ib0 GLOO_SOCKET_IFNAME=ib0 TP_SOCKET_IFNAME=ib0
# jobgen: disable=fixed-interface
export HCCL_SOCKET_IFNAME='=ib0'  # =: these alone, not all that begin so
export OMP_NUM_THREADS=24
job_export
job_need() { command -v "$1" > /dev/null || job_die 71 "cannot find $1 on PATH"; }
job_need python3
job_need torchrun
python3 -c 'import jobgen.train' || job_die 71 "$(command -v python3) has no jobgen.train: pip install 'jobgen[train]'"

# ---- the hosts ----------------------------------------------------------------------------
# Each host once, in the scheduler's order, however often it lists it: HOST slots=N.
cat "$job_nodefile" |
  awk -v slots=8 'NF && !seen[$1]++ { print $1 " slots=" slots }' > "$job_dir/hostfile"
awk '{ print $1 }' "$job_dir/hostfile" > "$job_dir/hosts"
mapfile -t job_hosts < "$job_dir/hosts"
job_here=${job_hosts[0]:-}
job_slots=$(awk -F= '{ n += $2 } END { print n + 0 }' "$job_dir/hostfile")
((${#job_hosts[@]} == 2)) ||
  job_die 70 "the allocation has ${#job_hosts[@]} hosts (${job_hosts[*]:0:8}), but 2 were asked for"
((job_slots == 16)) ||
  job_die 70 "the hostfile has $job_slots slots, but 2 x 8 = 16 were asked for"

# ---- the rendezvous -----------------------------------------------------------------------
export MASTER_ADDR=${job_hosts[0]}
# From the job id, so that two jobs on one node differ, and the next one up where somebody listens.
export MASTER_PORT=$((20000 + job_number % 10000))
while (exec 3<> "/dev/tcp/localhost/$MASTER_PORT") 2> /dev/null; do MASTER_PORT=$((MASTER_PORT + 1)); done
# HCCL takes 16 ports or more from here on; the range ends below the ports of the rendezvous.
export HCCL_IF_BASE_PORT=${HCCL_IF_BASE_PORT:-$((10000 + MASTER_PORT % 300 * 32))}
export JOBGEN_JOB_ID=$job_id JOBGEN_RUN_DIR=$job_dir JOBGEN_WORLD_SIZE=16 JOBGEN_ACCELERATOR=npu
export JOBGEN_ATTEMPT=$job_attempt
JOBGEN_START_TIME=$(($(date +%s) - SECONDS))
export JOBGEN_START_TIME
# When the job must have begun to save: 120 s before its time is over.
job_walltime=${PBS_WALLTIME:-3600}  # Torque tells what it gave
job_ends=$((JOBGEN_START_TIME + job_walltime))
job_deadline=${job_ends:+$((job_ends - 120))}
[[ -z $job_deadline ]] || export JOBGEN_DEADLINE=$job_deadline
[[ -z $job_deadline ]] || job_note deadline "$job_deadline"

# ---- the program --------------------------------------------------------------------------
# The environment as it is now, for the other nodes: less what belongs to this node or this shell.
job_save_environment() {
  printf 'cd %q\n' "$PWD"
  for job_name in $(compgen -e); do
    case $job_name in
      SLURM* | PMI* | OMPI_COMM_* | *_VISIBLE_DEVICES | ZE_AFFINITY_MASK | GPU_DEVICE_ORDINAL | TMPDIR | HOSTNAME | HOST | DISPLAY | SSH_* | XDG_*) ;;
      RANK | LOCAL_RANK | WORLD_SIZE | LOCAL_WORLD_SIZE | NODE_RANK | GROUP_RANK | PBS_NODENUM | PBS_TASKNUM | PBS_VNODENUM) ;;
      BASH* | SHELLOPTS | SHLVL | PWD | OLDPWD | UID | EUID | PPID | _) ;;
      *) printf 'export %s=%q\n' "$job_name" "${!job_name}" ;;
    esac
  done
  printf 'export %s=%q\n' NCCL_SOCKET_IFNAME "$NCCL_SOCKET_IFNAME"
}
(umask 077; job_save_environment > "$job_dir/env.sh")  # it may hold secrets

# What every rank runs.
cat > "$job_dir/rank.sh" <<'END_OF_RANK'
#!/bin/bash
# rank.sh [preflight]
set -euo pipefail
# shellcheck source=/dev/null
. "${BASH_SOURCE[0]%/*}/env.sh"
# Of the processors that the job may use here, this rank takes its share: whole NUMA nodes.
job_allowed=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
read -r job_cpus job_nodes < <(lscpu --parse=NODE,CORE,CPU | sort -t , -k 1,1n -k 2,2n -k 3,3n |
  awk -F , -v allowed="$job_allowed" -v rank="$LOCAL_RANK" -v ranks=8 '
    BEGIN {
      parts = split(allowed, part, ",")
      for (i = 1; i <= parts; i++) {
        last = split(part[i], ends, "-")
        for (cpu = ends[1]; cpu <= ends[last] + 0; cpu++) may[cpu + 0]
      }
    }
    /^#/ || !($3 in may) { next }
    $1 != unit || !units { unit = $1; units++ }
    { of[units] = of[units] "," $3; node[units] = $1 }
    END {
      first = int(rank * units / ranks)
      last = int((rank + 1) * units / ranks)
      if (last == first) last++  # shared with a neighbour
      for (i = first + 1; i <= last; i++) { list = list of[i]; nodes = nodes "," node[i] }
      print substr(list, 2), substr(nodes, 2)
    }')
if [[ -z $job_cpus ]]; then
  echo "jobgen: $(hostname): 8 ranks do not fit the processors $job_allowed" >&2
  exit 70
fi
taskset --cpu-list --pid "$job_cpus" $$ > /dev/null || {
  echo "jobgen: $(hostname): cannot bind rank $RANK to the processors $job_cpus" >&2
  exit 70
}
job_memory=()
! numactl --membind="$job_nodes" true 2> /dev/null || job_memory=(numactl --membind="$job_nodes")
if [[ ${1:-} == preflight ]]; then exec python3 -m jobgen.train preflight; fi
# Launchers change the status of a rank, or lose it: here are its own, its log and its process.
job_log=$JOBGEN_RUN_DIR/attempt-$JOBGEN_ATTEMPT/rank-${RANK:-unknown}
trap '' TERM INT HUP USR1 USR2 PIPE  # they are for the program, but launchers send them to this shell, too
set +e
exec {job_out}> >(tee -a "$job_log.log")
job_tee=$!
{ (
  trap - TERM INT HUP USR1 USR2 PIPE
  echo "$BASHPID $(hostname)" > "$job_log.pid"
  [[ ! -e ${job_log%/*}/asked ]] || exit 75  # to leave, before it began
  exec ${job_memory[@]+"${job_memory[@]}"} python3 -m jobgen.train
) < /dev/null >&"$job_out" 2>&1 {job_out}>&-; job_status=$?; } 2> /dev/null  # where bash says how it ended
((job_status != 128 + $(kill -l USR1))) || job_status=75  # asked to leave before it could listen
echo "${job_log##*-} $job_status $(date +%s.%N) $(hostname)" > "$job_log.status"
exec {job_out}>&-
for _ in {1..100}; do  # not for ever: what the program left running may hold its output open
  kill -0 "$job_tee" 2> /dev/null || break
  sleep 0.1
done
kill -KILL "$job_tee" 2> /dev/null
exit "$job_status"
END_OF_RANK

# ---- the launch ---------------------------------------------------------------------------
# jobgen-remote HOST COMMAND: runs a shell command on a host, in the environment and the directory of
# this job. It stands where mpirun expects ssh.
[[ $job_dir != *:* ]] || job_die 72 "the run directory $job_dir must be without a colon: it goes on PATH"
cat > "$job_dir/jobgen-remote" <<'END_OF_REMOTE'
#!/bin/bash
set -euo pipefail
while [[ $1 == -* ]]; do shift; done  # options for ssh
job_host=$1
shift
# shellcheck disable=SC2016  # expanded on the other side
job_words=(/bin/bash -c '. "$0/env.sh" && export PATH=$0:$PATH && eval "$1"' "$JOBGEN_RUN_DIR" "$*")
# It parses nothing and gives neither environment, directory nor input, but keeps the status.
if command -v pbs_tmrsh > /dev/null; then
  exec pbs_tmrsh "$job_host" "${job_words[@]}"
fi
# ssh joins its words with blanks and has the other side's shell parse them.
if command -v ssh > /dev/null; then
  exec ssh -o BatchMode=yes "$job_host" "$(printf '%q ' "${job_words[@]}")"
fi
echo "jobgen: no pbs_tmrsh or ssh on PATH" >&2
exit 71
END_OF_REMOTE
chmod +x "$job_dir/jobgen-remote"
# What every node runs.
cat > "$job_dir/node.sh" <<'END_OF_NODE'
#!/bin/bash
# node.sh NODE_RANK [preflight]
set -euo pipefail
exec torchrun --nnodes=2 --nproc-per-node=8 --node-rank="${1:-$SLURM_NODEID}" \
  --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
  --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "${@:2}"
END_OF_NODE
# One launcher a node, the first here; the first failure is the job's status and ends the others.
job_launch() {
  local pids=() rank host words status
  trap 'kill "${pids[@]}" 2> /dev/null' TERM
  for rank in "${!job_hosts[@]}"; do
    host=${job_hosts[rank]}
    if [[ $host == "$job_here" ]]; then
      bash "$job_dir/node.sh" "$rank" "$@" &
    else
      words="bash \"\$JOBGEN_RUN_DIR/node.sh\" $rank $*"
      "$job_dir/jobgen-remote" "$host" "$words" &
    fi
    pids+=($!)
  done
  for rank in "${!job_hosts[@]}"; do
    wait -n && continue
    status=$?
    job_say "the launcher of a node ended with status $status; ending the others"
    # torchrun, told to end, still waits minutes for the nodes that have gone.
    kill "${pids[@]}" 2> /dev/null || true
    { sleep 10; kill -KILL "${pids[@]}"; } 2> /dev/null &
    wait "${pids[@]}" || true
    kill $! 2> /dev/null || true
    exit "$status"
  done
}
job_status=0 job_launcher='' job_helpers=()
# shellcheck disable=SC2329  # the traps call it
job_later() { # SECONDS COMMAND...: run it then, unless the launcher ends before
  (
    trap 'kill "$!"; exit' TERM
    sleep "$1" &
    wait "$!"
    "${@:2}"
  ) &> /dev/null &
  job_helpers+=($!)
}
# shellcheck disable=SC2329  # run in the background
job_stop() { # end the launcher, and what it left running
  kill -TERM "$job_launcher"
  sleep 10 &
  wait "$!"
  job_forward KILL || true
  kill -KILL -- "-$job_launcher"
}
# shellcheck disable=SC2329  # run in the background
job_guard() { # a launcher may wait for the ranks of a node that is gone long after the others have failed
  until grep -qsv '^[^ ]* 0 ' "$job_logs"/rank-*.status; do
    sleep 10 &
    wait "$!"
  done
  sleep 30 &
  wait "$!"
  job_stop
}
# A signal for this script is passed on to the program of every rank as USR1, once; a second one stops all.
# shellcheck disable=SC2329  # the traps call it
job_forward() { # SIGNAL
  local host
  for host in "${job_hosts[@]}"; do
    if [[ $host == "$job_here" ]]; then
      bash "$job_dir/signal.sh" "$1" "$job_logs"
    else
      "$job_dir/jobgen-remote" "$host" "bash ${job_dir@Q}/signal.sh $1 ${job_logs@Q}" &
    fi
  done
}
# torchrun itself would end on it, so it goes to the programs, whose processes rank.sh notes.
cat > "$job_dir/signal.sh" <<'END_OF_SIGNAL'
#!/bin/bash
# signal.sh NAME DIRECTORY
for job_file in "$2"/rank-*.pid; do
  [[ -e $job_file ]] || continue  # it finds asked
  read -r job_pid job_host < "$job_file" || continue
  [[ $job_host != "$(hostname)" || -e ${job_file%.pid}.status ]] || kill -s "$1" "$job_pid"
done
END_OF_SIGNAL
# shellcheck disable=SC2329  # job_trap calls it
job_signal() { # NAME
  job_signals=$((job_signals + 1))
  job_last_signal=$1
  job_note signal "$1"
  : > "$job_logs/asked" || true  # for the ranks that have not begun
  [[ -n $job_launcher ]] || return 0
  if ((job_signals == 1)); then
    job_say "got $1: asking every rank to save and leave; a second signal stops at once"
    job_forward USR1 &
  else
    job_say "got $1 again: stopping at once"
    job_later 0 job_stop
  fi
}
job_listen  # again: what was sourced may have traps of its own

job_run() { # [preflight]: run the launcher; its status is left in job_status
  set -m  # in a process group of its own: Ctrl-C is for this script alone
  job_launch "$@" < /dev/null &  # without input, which may be the rest of this script
  job_launcher=$!
  set +m
  if [[ -n ${1:-} ]]; then
    job_later 120 job_stop
  else
    job_later 0 job_guard
  fi
  local traps=-1
  # A trap ends the wait, not the launcher; bash may end the next wait, too, after two signals at once.
  while ((traps != job_traps)) || kill -0 "$job_launcher" 2> /dev/null; do
    traps=$job_traps
    wait "$job_launcher" && job_status=0 || job_status=$?
  done
  if ((job_signals > 1)); then  # a launcher may end before its ranks do
    job_forward KILL
    kill -KILL -- "-$job_launcher"
  fi &> /dev/null || true
  job_launcher=
  ((${#job_helpers[@]} == 0)) || kill "${job_helpers[@]}" 2> /dev/null || true
  job_helpers=()
}
# The same launcher on the same hosts, before hours are spent. The bad hosts are left in job_bad.
job_preflight() {
  rm -rf "$job_dir/preflight"
  mkdir "$job_dir/preflight"
  job_run preflight
  job_bad=()
  ((job_status)) || [[ ! -f $job_dir/preflight/result.json ]] || return 0
  ((job_signals == 0)) || return 0  # it ends before the program
  [[ -s $job_dir/preflight/bad-hosts ]] || job_look
  local host
  if [[ ! -s $job_dir/preflight/bad-hosts ]]; then
    for host in "${job_hosts[@]}"; do
      compgen -G "$job_dir/preflight/$host-*.json" > /dev/null || job_bad+=("$host")
    done
    ((${#job_bad[@]} < ${#job_hosts[@]})) || job_die 74 "the preflight ended with status $job_status before any host had a word"
    ((${#job_bad[@]} == 0)) || printf '%s\tleft no word\n' "${job_bad[@]}" > "$job_dir/preflight/bad-hosts"
  fi
  if [[ -s $job_dir/preflight/bad-hosts ]]; then
    mapfile -t job_bad < <(cut -f 1 "$job_dir/preflight/bad-hosts")
    cat "$job_dir/preflight/bad-hosts" >> "$job_dir/bad-hosts"
  fi
  return 1
}
job_look() { # where the launcher failed, or ended all ranks at the first failure: each host by itself
  local job_host said words pids=()
  words="set -e; . ${job_dir@Q}/env.sh; exec python3 -c 'import jobgen.train, torch.distributed'"
  for job_host in "${job_hosts[@]}"; do
    {
      said=$(timeout 30 "$job_dir/jobgen-remote" "$job_host" "$words" < /dev/null 2>&1) ||
        printf '%s\t%s\n' "$job_host" "$(awk '!/^(srun|slurmstepd)/ { said = $0 } END { print said ? said : "does not answer" }' <<< "$said")"
    } > "$job_dir/preflight/look-$job_host" &
    pids+=($!)
  done
  wait "${pids[@]}" || true
  cat "$job_dir"/preflight/look-* > "$job_dir/preflight/bad-hosts"
  sed 's/^/jobgen: /; s/\t/: /' "$job_dir/preflight/bad-hosts" >&2
}
job_preflight || job_die 74 "the preflight failed with status $job_status; bad: ${job_bad[*]:-no single host}"
job_say "2 nodes x 8 ranks, 16 ranks in all, by torchrun on Ascend NPUs: ${job_hosts[*]:0:8}; rendezvous at $MASTER_ADDR:$MASTER_PORT; files in $job_dir"
# shellcheck disable=SC2329  # run in the background
job_ask() { # unless somebody has: a second signal would stop the ranks while they save
  [[ -e $job_logs/asked ]] || kill -USR1 "$$"
}
job_now=$(date +%s)
[[ -z $job_deadline ]] || job_later "$((job_deadline > job_now ? job_deadline - job_now : 0))" job_ask
if ((job_signals)); then
  job_say "got $job_last_signal before the program began"
  job_status=75
else
  job_run
fi

# ---- the end ------------------------------------------------------------------------------
# The launcher's status alone proves nothing: every rank's own word is needed, too.
((job_signals != 1)) || compgen -G "$job_logs/rank-*.pid" > /dev/null || job_status=75  # asked to leave before any began
job_silent=()
for ((job_rank = 0; job_rank < JOBGEN_WORLD_SIZE; job_rank++)); do
  if [[ -s $job_logs/rank-$job_rank.status ]]; then cat "$job_logs/rank-$job_rank.status"; else job_silent+=("$job_rank"); fi
done > "$job_logs/statuses"
job_first=$(LC_ALL=C sort -k 3,3n "$job_logs/statuses" | awk '$2 != 0 && !n++')
if [[ -n $job_first ]]; then
  read -r job_rank job_status _ job_host <<< "$job_first"
  if ((job_status != 75)); then
    job_say "rank $job_rank on $job_host failed first, with status $job_status; the end of $job_logs/rank-$job_rank.log:"
    tail -n 20 "$job_logs/rank-$job_rank.log" >&2 || true
  fi
fi
if ((${#job_silent[@]})) && ((job_status != 75)); then
  ((job_status)) || job_die 73 "torchrun ended with status 0, but rank ${job_silent[*]:0:8} left no status"
  job_say "rank ${job_silent[*]:0:8} left no status: killed by the launcher, or gone with its node"
  for job_host in "${job_hosts[@]}"; do
    ! grep -q " $job_host\$" "$job_logs/statuses" || continue
    if ! timeout 30 "$job_dir/jobgen-remote" "$job_host" true < /dev/null &> /dev/null; then
      job_say "$job_host does not answer"
      printf '%s\tdoes not answer\n' "$job_host" >> "$job_dir/bad-hosts"
      job_status=75
    fi
  done
fi
if ((job_status == 0)) && ! grep -q '"state": *"finished"' "$job_dir/status.json" 2> /dev/null; then
  job_die 73 "torchrun ended with status 0, but $job_dir/status.json does not say that the training finished"
fi
if ((job_status == 75)); then
  job_say "not finished; to go on: cd ${job_dir@Q} && qsub job.sh"
fi
job_over=yes
exit "$job_status"
