# The library by which the ranks of srun find each other, for an MPI that does not bring it.

job_pmi_library() { # VARIABLE: a value of --env, a module or a site comes first
  local prefix folder name
  [[ -z ${!1:-} ]] || return 0
  prefix=$(readlink -f "$(command -v srun)")
  prefix=${prefix%/bin/*}
  for folder in "$prefix"/lib64 "$prefix"/lib "$prefix"/lib/*-linux-gnu /usr/lib64 /usr/lib/*-linux-gnu; do
    for name in libpmi2.so libpmi2.so.0; do
      [[ ! -e $folder/$name ]] || { export "$1=$folder/$name"; return 0; }
    done
  done
  job_die 71 "$1 is not set, and Slurm's libpmi2.so is not in $prefix/lib64 or $prefix/lib: without it each rank is a world of its own; use --env $1=PATH"
}
