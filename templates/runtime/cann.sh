# CANN, the software of Ascend NPUs: the toolkit's own set_env.sh, then the driver's libraries.

job_cann() {
  local job_folder job_set_env=
  for job_folder in "${ASCEND_HOME_PATH:-}" "${ASCEND_HOME_PATH:-}/.." "${ASCEND_TOOLKIT_HOME:-}" "${ASCEND_TOOLKIT_HOME:-}/.." \
    /usr/local/Ascend/{ascend-toolkit,ascend-toolkit/latest,cann} "$HOME"/Ascend/{ascend-toolkit,cann}; do
    if [[ $job_folder == /*[!/.]* && -r $job_folder/set_env.sh ]]; then job_set_env=$job_folder/set_env.sh; break; fi
  done
  [[ -n $job_set_env ]] || job_die 71 \
    'cannot find the set_env.sh of the CANN toolkit: set ASCEND_HOME_PATH (looked in ASCEND_TOOLKIT_HOME, /usr/local/Ascend and ~/Ascend, too)'
  job_source "$job_set_env"
  for job_folder in "${ASCEND_DRIVER_PATH:-/usr/local/Ascend/driver}"/lib64{,/common,/driver}; do
    [[ ! -d $job_folder ]] || export LD_LIBRARY_PATH=$job_folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  done
}
