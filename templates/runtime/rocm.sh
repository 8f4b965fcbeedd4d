# ROCm: PyTorch brings its own libraries; the toolkit is for ops that compile at run time.

job_rocm() {
  if [[ -z ${ROCM_PATH:-} && -d /opt/rocm ]]; then ROCM_PATH=/opt/rocm; fi
  [[ -z ${ROCM_PATH:-} ]] || export ROCM_PATH PATH=$ROCM_PATH/bin:$PATH
}
