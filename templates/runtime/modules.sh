# Environment modules: Lmod, or Tcl modules.

job_find_modules() {
  command -v module > /dev/null && return
  local file
  for file in "${LMOD_PKG:-/usr/share/lmod/lmod}/init/bash" "${MODULESHOME:-/usr/share/modules}/init/bash" \
    /etc/profile.d/lmod.sh /etc/profile.d/modules.sh; do
    # shellcheck disable=SC1090  # found at run time
    if [[ -r $file ]]; then set +eu; source "$file"; set -eu; return; fi
  done
}

job_module() { # MODULE...
  local name before loaded
  job_find_modules
  for name; do
    before=${LOADEDMODULES:-}
    set +eu
    module load "$name"
    loaded=$?
    set -eu
    # Some versions of module fail with status 0.
    [[ $loaded == 0 && (${LOADEDMODULES:-} != "$before" || :$before == *":$name"*) ]] ||
      job_die 71 "cannot load the module $name"
  done
}

job_module_use() { # FOLDER...
  job_find_modules
  set +eu
  module use "$@"
  set -eu
}
