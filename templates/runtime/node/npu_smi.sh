# npu_smi.sh, for telemetry.sh: npu-smi prints a line for each chip, every 10 s: AI Core and memory in percent.
# https://www.hiascend.com/document/detail/zh/HDK/latest/A2/A2npu/npusmi_0013.html

titles=()

measure() { exec stdbuf -oL npu-smi info watch -d 10 -s am; }

sample() { # NpuID(Idx)  ChipId(Idx) AI Core(%)  Memory(%) and 2           0           34          5
  local i number cells text=${1//) /)|} use='' memory=''
  # shellcheck disable=SC2206  # divided at the blanks
  cells=($1)
  if [[ $1 == NpuID* ]]; then
    local IFS='|'
    # shellcheck disable=SC2206
    titles=(${text// /})
  elif [[ $1 =~ ^\ *[0-9]+\ +[0-9]+\ +[0-9.]+ ]]; then
    for i in "${!cells[@]}"; do
      case ${titles[i]:-} in
        'AICore(%)') use=${cells[i]} ;;
        'Memory(%)') memory=${cells[i]} ;;
      esac
    done
    number=${cells[0]}
    ((cells[1] == 0)) || number+=.${cells[1]}  # a card of several chips: 2 and 2.1
    device "$((cells[0] * 100 + cells[1]))" "$number" "$use" "$memory"
  else
    fault "$1"
  fi
}
