#!/usr/bin/env bash
# Stands in for nvidia-smi --query-gpu=index,utilization.gpu,memory.used,memory.total --loop: recorded lines of two A100 of a
# training, the second of which is idle. It is quicker, and notes that it was started in SMI_PLACE.
echo "$$ $*" >>"$SMI_PLACE/started-$(hostname)"
exec {nothing}<> <(:) # to wait without a process
while :; do
    printf '%s\n' '0, 97, 40536, 81920' '1, 0, 503, 81920'
    read -rt "${SMI_PAUSE:-0.2}" -u "$nothing"
done
