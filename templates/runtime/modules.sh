# Environment modules: Lmod, or Tcl modules. Neither is written for set -eu.

job_find_modules() {
  command -v module > /dev/null && return
  local file
  for file in "${LMOD_PKG:-/usr/share/lmod/lmod}/init/bash" "${MODULESHOME:-/usr/share/modules}/init/bash" \
    /etc/profile.d/lmod.sh /etc/profile.d/modules.sh; do
    # shellcheck disable=SC1090  # found at run time
    if [[ -r $file ]]; then source "$file"; return; fi
  done
}

job_module() { # MODULE, or COMMAND of module...
  local job_wanted job_loaded job_words
  set +eu
  job_find_modules
  for job_wanted; do
    job_loaded=${LOADEDMODULES:-}
    read -ra job_words <<< "${job_wanted// \~\// $HOME/}"
    case $job_wanted in
      list | purge | reset | restore | restore\ * | unload\ * | use\ *)
        module "${job_words[@]}" || job_say "warning: module $job_wanted returned status $?"
        continue ;;
      swap\ *)  # it returns a failure where the new module is loaded already
        module "${job_words[@]}"
        [[ :${LOADEDMODULES:-} == *":${job_wanted##* }"* ]] ;;
      *) module load "$job_wanted" ;;
    # Some versions of module return status 0 after a failure.
    esac && [[ ${LOADEDMODULES:-} != "$job_loaded" || :$job_loaded == *":${job_wanted##* }"* ]] ||
      job_die 71 "cannot load the module ${job_wanted##* }: module avail on a compute node shows the names"
  done
  set -eu
}

job_module_purge() {
  set +eu
  job_find_modules
  module purge
  set -eu
}

job_module_use() { # FOLDER...
  set +eu
  job_find_modules
  module use "$@"
  set -eu
}
