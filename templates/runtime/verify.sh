# The checksum of the runtime: a runtime that was edited or cut off starts nothing.

job_verify() { # FILE: everything below its marker line must have the sum that the marker names
  local sum
  [[ -f $1 && -z ${job_runtime:-} ]] || return 0  # from standard input, or beside the script, where it was checked
  sum=$(sed -n 's/^# =* jobgen runtime .* SHA-256 \([0-9a-f]*\) =*$/\1/p' "$1")
  [[ $(sed '1,/^# =* jobgen runtime /d' "$1" | sha256sum) == "$sum "* ]] ||
    job_die 70 "the runtime in $1 was edited or is incomplete: render the script again; nothing was started"
}
