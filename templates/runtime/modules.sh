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

job_module() { # MODULE...
  local name before
  set +eu
  job_find_modules
  for name; do
    before=${LOADEDMODULES:-}
    # Some versions of module return status 0 after a failure.
    module load "$name" && [[ ${LOADEDMODULES:-} != "$before" || :$before == *":$name"* ]] ||
      job_die 71 "cannot load the module $name"
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
