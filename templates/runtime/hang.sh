# Hangs of the user's own program: it touches the file that JOBGEN_PROGRESS names. The clock is that of this script:
# those of the nodes and of the file server may differ.

job_watch_progress() { # a program that never touches the file is not known to hang
  local limit=${job_hang_timeout%s} last='' now since=0
  until [[ -n $last ]] && ((SECONDS - since >= limit)); do
    sleep "$((limit < 20 ? 1 : 5))" &
    wait "$!"
    now=$(stat -c %y "$job_logs/progress" 2> /dev/null) || continue
    [[ $now == "$last" ]] || last=$now since=$SECONDS
  done
  job_say "the program hangs: no rank has touched $job_logs/progress for $limit s"
  job_note fault "the program hangs: no rank has touched the file progress for $limit s"
  : > "$job_logs/hang"
  job_control stop hang  # for the watchers of the nodes
  job_stop
}

job_judge_hang() { [[ ! -e $job_logs/hang ]] || job_status=75; }
