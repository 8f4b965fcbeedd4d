# ROCm: PyTorch contains its libraries; the toolkit is for ops that are compiled at run time.

job_rocm() {
  if [[ -z ${ROCM_PATH:-} && -d /opt/rocm ]]; then ROCM_PATH=/opt/rocm; fi
  [[ -z ${ROCM_PATH:-} ]] || export ROCM_PATH PATH=$ROCM_PATH/bin:$PATH
}
