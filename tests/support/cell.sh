#!/usr/bin/env bash
# The program of the ranks of tests/cluster/test_matrix.py: it saves and leaves when it is told to by USR1.
# CELL_PLACE is where it writes. CELL_ACT is well, fail or kill: what the last rank does when all have begun. Anything else
# means to go on until something ends it; in a second attempt all ends well. "peer" means to fail like a collective
# operation when another rank is not there any more.
set -u
: "${RANK:=0}" "${WORLD_SIZE:=1}" # a process without a launcher has none
sleep 900 & # as a worker that loads data; nothing of it may be left
host=$(hostname) # HOSTNAME may be that of another host
# shellcheck disable=SC2329  # the trap calls it
save() {
    trap "" USR1 TERM
    printf '%s %(%s)T\n' "$host" -1 >"$CELL_PLACE/.saved-$RANK"
    mv "$CELL_PLACE/.saved-$RANK" "$CELL_PLACE/saved-$JOBGEN_ATTEMPT-$RANK"
    exit 75
}
trap save USR1
echo "$host $$" >"$CELL_PLACE/.began-$RANK"
mv "$CELL_PLACE/.began-$RANK" "$CELL_PLACE/began-$JOBGEN_ATTEMPT-$RANK"
exec {nothing}<> <(:) # to wait without a process
for ((i = 0; i < 1500; i++)); do
    if [[ $CELL_ACT == peer ]]; then
        : >"$CELL_PLACE/alive-$RANK"
        dead=$(find "$CELL_PLACE" -name 'alive-*' -not -newermt '-15 seconds')
        if [[ -n $dead ]]; then echo "lost ${dead##*/}"; exit 1; fi
    fi
    all=("$CELL_PLACE/began-$JOBGEN_ATTEMPT"-*)
    if ((${#all[@]} == WORLD_SIZE)); then
        case $CELL_ACT$JOBGEN_ATTEMPT-$((WORLD_SIZE - 1 - RANK)) in
            well* | wait[2-9]*) exit 0 ;;
            fail1-0) exit 7 ;;
            kill1-0) kill -KILL $$ ;;
        esac
    fi
    read -rt 0.2 -u "$nothing"
done
exit 9
