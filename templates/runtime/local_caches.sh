# Caches of compiled code on the disks of the nodes: each begins with those of the user, in one file, and a job that ends well adds to it.

job_set_local_caches() { # the variables, each of which has named a folder of the user
  local pair name
  job_cache_places=()
  for pair in "${job_local_caches[@]}"; do
    name=${pair%%=*}
    job_cache_places+=("${!name:-}")
    export "$name=$JOBGEN_LOCAL_DIR/caches/${pair#*=}"
  done
}

job_prepare_caches() { # sets job_cache_store, and job_cache_seed to what the nodes begin with
  local number seed=$job_node_work/seed
  job_cache_store=${XDG_CACHE_HOME:-$HOME/.cache}/jobgen/local-caches-$(uname -m)-$job_accelerator.tar
  job_cache_seed=$job_cache_store
  [[ ! -s $job_cache_store ]] || return 0
  mkdir "$seed"
  for number in "${!job_local_caches[@]}"; do job_link_cache "${job_local_caches[number]#*=}" "${job_cache_places[number]}"; done
  job_cache_seed=$job_node_work/caches.tar
  if ! (cd "$seed" && shopt -s nullglob && set -- */. && (($#)) && timeout 120 tar -cf "$job_cache_seed" "$@" 2> /dev/null); then
    rm -f "$job_cache_seed"
    job_cache_seed=
  fi
  rm -rf "$seed"
}

job_link_cache() { # NAME PLACE: the user's folder, where it is by default if no variable names it
  local place=$2 found
  case $1$place in
    triton) place=$HOME/.triton/cache ;;
    miopen_db) place=$HOME/.config/miopen ;;
    miopen) place=$HOME/.cache/miopen ;;
    cuda_kernels) place=$HOME/.nv/ComputeCache ;;
    hf_modules) place=${HF_HOME:-$HOME/.cache/huggingface}/modules ;;
    torch_extensions)
      mapfile -t found < <(compgen -G "$HOME/.cache/torch_extensions/py*")
      ((${#found[@]} != 1)) || place=${found[0]}  # of one version of Python and CUDA
      ;;
  esac
  [[ ! -d $place ]] || ln -s "$place" "$seed/$1"
}
