# CUDA: PyTorch contains its libraries; the toolkit is for DeepSpeed's ops, which are compiled at run time.

job_cuda() {
  if [[ -z ${CUDA_HOME:-} ]] && command -v nvcc > /dev/null; then
    CUDA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
  elif [[ -z ${CUDA_HOME:-} && -x /usr/local/cuda/bin/nvcc ]]; then
    CUDA_HOME=/usr/local/cuda
  fi
  [[ -z ${CUDA_HOME:-} ]] || export CUDA_HOME PATH=$CUDA_HOME/bin:$PATH
}
