#!/bin/bash
# telemetry.sh TOOL RANK NODE DEVICES: the use of the devices of a node, whose first rank, the process RANK, starts it.
# NODE.devices begins with the tool and the DEVICES of the job. A line for each time has the seconds since 1970, and of
# each device NUMBER:USE/MEMORY in percent, - for an unknown value. The tool and this shell end with the rank.
set -uf
export LC_ALL=C
tool=$1 rank=$2 file=$3.devices devices=$4
umask "${JOBGEN_UMASK:-077}"
[[ -e $file ]] || echo "# $devices ${tool//_/-}" > "$file"
now='' line='' last=-1 faults=0

end_sample() {
  [[ -z $line ]] || echo "$now$line" >> "$file"
  line='' last=-1
}

device() { # PLACE NUMBER USE MEMORY [TOTAL]: PLACE grows within a sample; TOTAL is that of MEMORY, without it a percentage
  local use=$3 memory=$4
  (($1 > last)) || end_sample
  [[ -n $line ]] || printf -v now '%(%s)T' -1
  [[ $use =~ ^[0-9]+$ ]] || use=-
  if [[ ! $memory =~ ^[0-9]+$ || ! ${5:-100} =~ ^[1-9][0-9]*$ ]]; then memory=-; else memory=$((100 * memory / ${5:-100})); fi
  last=$1 line+=" $2:$use/$memory"
}

fault() { # TEXT: the first lines that are no sample
  ((faults++ >= 3)) || [[ -z $1 ]] || echo "# $1" >> "$file"
}

# shellcheck source=/dev/null
. "${BASH_SOURCE[0]%/*}/$tool.sh"
exec {input}< <(echo "$BASHPID"; measure 2>&1)
read -r -u "$input" pid
while IFS= read -r -u "$input" text; do
  sample "$text"
  kill -0 "$rank" 2> /dev/null || { rank=''; break; }
done
end_sample
[[ -z $rank ]] || fault "${tool//_/-} has ended"
kill "$pid" 2> /dev/null
