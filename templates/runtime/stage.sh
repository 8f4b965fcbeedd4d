# Files for the disks of the nodes. Their sizes and checksums are made once, here; with Slurm sbcast sends them.

job_check_sources() { # and sets job_stage_by
  local number line path
  job_stage_by='read'
  [[ ${job_host_access:-} != srun ]] || ! command -v sbcast > /dev/null || job_stage_by=sbcast
  for number in "${!job_stage[@]}"; do
    line=${job_stage[number]}
    # shellcheck disable=SC2088  # a text
    [[ $line != '~/'* ]] || line=$HOME/${line:2}
    path=${line%:*}
    [[ ! -d $path ]] || job_die 71 "--stage $path: a directory; stage an archive of it, as tar makes it"
    [[ -f $path && -r $path ]] || job_die 71 "--stage $path: no file that $JOBGEN_HERE can read"
    job_stage[number]=$line
  done
}

job_send_sources() { # in the background
  local number path sum
  [[ $job_stage_by != sbcast ]] || job_await_nodes '^(folder|fault)' 60
  for number in "${!job_stage[@]}"; do
    path=${job_stage[number]%:*}
    if [[ $job_stage_by == sbcast ]]; then
      timeout "$job_node_limit" sbcast --force "$path" "$JOBGEN_STAGE/.staged-$number" 2> "$job_node_work/sbcast-$number" ||
        job_say "sbcast cannot send $path, so that each node reads it: $(job_last_line "$job_node_work/sbcast-$number")"
    fi &
    sum=$(sha256sum < "$path")
    wait "$!"
    printf '%s %s\n' "$(stat -Lc %s "$path")" "${sum%% *}" > "$job_node_work/new-$number"
    mv "$job_node_work/new-$number" "$job_node_work/source-$number"
  done
}
