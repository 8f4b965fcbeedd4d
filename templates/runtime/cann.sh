# CANN, the software of Ascend NPUs: the toolkit's own set_env.sh, then the driver's libraries.

job_cann() {
  local folder script=
  for folder in "${ASCEND_HOME_PATH:-}" "${ASCEND_HOME_PATH:-}/.." "${ASCEND_TOOLKIT_HOME:-}" "${ASCEND_TOOLKIT_HOME:-}/.." \
    /usr/local/Ascend/{ascend-toolkit,ascend-toolkit/latest,cann} "$HOME"/Ascend/{ascend-toolkit,cann}; do
    if [[ $folder == /*[!/.]* && -r $folder/set_env.sh ]]; then script=$folder/set_env.sh; break; fi
  done
  [[ -n $script ]] || job_die 71 \
    'cannot find the set_env.sh of the CANN toolkit: set ASCEND_HOME_PATH (looked in ASCEND_TOOLKIT_HOME, /usr/local/Ascend and ~/Ascend, too)'
  job_source "$script"
  for folder in "${ASCEND_DRIVER_PATH:-/usr/local/Ascend/driver}"/lib64{,/common,/driver}; do
    [[ ! -d $folder ]] || export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  done
}
