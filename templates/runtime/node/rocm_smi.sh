# rocm_smi.sh, for telemetry.sh: rocm-smi prints a table and ends; it is a Python program, and runs every 30 s.
# https://github.com/ROCm/rocm_smi_lib/blob/master/python_smi_tools/rocm_smi.py

titles=()
exec {clock}<> <(:)  # without input: read waits without a process, unlike sleep

measure() {
  while rocm-smi --showuse --showmeminfo vram --csv; do read -rt 30 -u "$clock"; done
}

sample() { # device,GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B) and card0,37,68702699520,10960896
  local IFS=, i cells use='' used='' total=''
  # shellcheck disable=SC2206  # divided at the commas
  cells=(${1%$'\r'})
  if [[ $1 == device,* ]]; then
    end_sample
    titles=("${cells[@]}")
  elif [[ $1 =~ ^card([0-9]+),. ]]; then
    for i in "${!cells[@]}"; do
      case ${titles[i]:-} in
        'GPU use (%)') use=${cells[i]} ;;
        'VRAM Total Memory (B)') total=${cells[i]} ;;
        'VRAM Total Used Memory (B)') used=${cells[i]} ;;
      esac
    done
    device "${BASH_REMATCH[1]}" "${BASH_REMATCH[1]}" "$use" "$used" "$total"
  else
    fault "$1"
  fi
}
