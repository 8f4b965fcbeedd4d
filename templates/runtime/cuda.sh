# CUDA: PyTorch contains its libraries; the toolkit is for DeepSpeed's ops, which are compiled at run time.

job_cuda() {
  if [[ -z ${CUDA_HOME:-} ]] && command -v nvcc > /dev/null; then
    CUDA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
  elif [[ -z ${CUDA_HOME:-} && -x /usr/local/cuda/bin/nvcc ]]; then
    CUDA_HOME=/usr/local/cuda
  fi
  [[ -n ${CUDA_HOME:-} ]] || return 0
  export CUDA_HOME
  # One on PATH keeps its place: /usr/bin must not precede an environment.
  [[ :$PATH: == *":$CUDA_HOME/bin:"* ]] || export PATH=$CUDA_HOME/bin:$PATH
}
