# ROCm: PyTorch contains its libraries; the toolkit is for ops that are compiled at run time.
# MIOpen's databases fail in a home directory that many nodes share: they are in /tmp of each node, under a name
# that nobody can guess and take before.

job_rocm() {
  if [[ -z ${ROCM_PATH:-} && -d /opt/rocm ]]; then ROCM_PATH=/opt/rocm; fi
  [[ -z ${ROCM_PATH:-} ]] || export ROCM_PATH PATH=$ROCM_PATH/bin:$PATH
}

job_miopen() {
  MIOPEN_USER_DB_PATH=${MIOPEN_USER_DB_PATH:-$(mktemp -du /tmp/miopen-XXXXXXXXXX)}
  export MIOPEN_USER_DB_PATH
  export MIOPEN_CUSTOM_CACHE_DIR=${MIOPEN_CUSTOM_CACHE_DIR:-$MIOPEN_USER_DB_PATH}
}
