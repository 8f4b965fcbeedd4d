# nvidia_smi.sh, for telemetry.sh: one nvidia-smi a node prints a line for each GPU, every 10 s.
# https://docs.nvidia.com/deploy/nvidia-smi/index.html

measure() {
  local own=()
  # Without it all GPUs of a node are shown, also those of other jobs, unless cgroups hide them.
  # shellcheck disable=SC2154  # of telemetry.sh
  [[ ,${CUDA_VISIBLE_DEVICES:-} =~ ^(,[0-9]+|,GPU-[0-9a-f-]+){$devices}$ ]] && own=(--id="$CUDA_VISIBLE_DEVICES")
  exec stdbuf -oL nvidia-smi ${own[@]+"${own[@]}"} --query-gpu=index,utilization.gpu,memory.used,memory.total --format=csv,noheader,nounits --loop=10
}

sample() { # 0, 98, 40536, 81559
  if [[ $1 =~ ^([0-9]+),\ ([^,]+),\ ([^,]+),\ ([^,]+)$ ]]; then
    device "${BASH_REMATCH[1]}" "${BASH_REMATCH[@]:1}"
  else
    fault "$1"
  fi
}
