"""Code for the hosts of the launch line: a job file does not need it, unless something else reads its results."""

from __future__ import annotations

import pytest
from convert.conversions import job_file, values

PBS = "#!/bin/bash\n#PBS -l select=2:ncpus=4:mpiprocs=4\n#PBS -l walltime=01:00:00\n"
SLURM = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --gres=gpu:2 -t 10\n"
LIST = "scontrol show hostnames $SLURM_JOB_NODELIST"
RUN = "srun torchrun --nnodes $N --nproc_per_node 2 t.py"


def left_out(text: str) -> tuple[list[int], str]:
    """The lines that are left out, and the setup of the job file."""
    done = job_file(text)
    reasons = ("is left out: jobgen finds hosts", "is left out: it only prints")
    found = [one for one in done.remarks if one.why.startswith(reasons)]
    lines = [one.line for one in found]
    assert not any(one.lost for one in found)
    prints = [
        one.what.startswith(("echo", "printf", "cat", "nodeset")) and ">" not in one.what for one in found
    ]
    assert prints == ["only prints" in one.why for one in found]
    return lines, values(done.text).get("setup") or ""


LEFT_OUT = {
    "a loop over the node file": (
        PBS, 'F=hosts.$PBS_JOBID\n: > "$F"\nwhile read -r h; do\n  echo "$h slots=4" >> $F\ndone < $PBS_NODEFILE\n'
        "mpirun -np 8 --hostfile $F ./a", [4, 5, 6],
    ),
    "a loop over the hosts": (
        SLURM, f'rm -f hostfile; touch hostfile\nfor h in $({LIST}); do\n  echo "$h slots=2" >> hostfile\ndone\n'
        "deepspeed --hostfile=hostfile t.py", [3, 3, 4],
    ),
    "the file is removed at the end": (
        PBS, 'F=./hosts.$PBS_JOBID\nsort -u $PBS_NODEFILE > $F\nmpirun -hostfile $F -np 8 ./a\nrm -f "$F"\ndate', [4, 5, 7],
    ),
    "the file is removed by a trap": (
        PBS, "trap 'rm -f \"hosts\"' EXIT\nsort -u $PBS_NODEFILE > hosts\nmpirun -hostfile hosts -np 8 ./a", [4, 5],
    ),
    "a pipeline": (
        PBS, "sort -u $PBS_NODEFILE | awk '{ print $1, \"slots=4\" }' > ./hosts\nmpirun -hostfile hosts -np 8 ./a", [4],
    ),
    "a copy": (PBS, "cp $PBS_NODEFILE hosts\nmpirun -machinefile hosts -np 8 ./a", [4]),
    "the first host of an array": (
        SLURM, f"nodes=( $({LIST}) )\nhead=${{nodes[0]}}\n"
        'ip=$(srun --nodes=1 --ntasks=1 -w "$head" hostname --ip-address)\n'
        "srun torchrun --nnodes 2 --nproc_per_node 2 --rdzv_endpoint $ip:29500 t.py", [3, 4, 5],
    ),
    "a number of nodes": (PBS, "N=$(sort -u $PBS_NODEFILE | wc -l)\nmpirun -np $((N * 4)) ./a", [4]),
    "a variable that jobgen sets": (
        SLURM, f"export MASTER_ADDR=$({LIST} | head -n 1)\nexport WORLD_SIZE=$((SLURM_NNODES * 2))\nsrun python3 t.py",
        [3, 4],
    ),
    "an export of its own": (
        SLURM, "MASTER_ADDR=$(hostname)\nexport MASTER_ADDR\nsrun python3 t.py", [3, 4],
    ),
    "it is printed": (
        SLURM, f'N=$({LIST} | wc -l)\nG=$(nvidia-smi -L | wc -l)\nM=$((N * G))\necho "$SLURM_JOB_ID: $N nodes, $M ranks"\n'
        "srun torchrun --nnodes $N --nproc_per_node $G t.py", [3, 5, 6],
    ),
    "the file is printed": (
        PBS, 'cat "$PBS_NODEFILE"\nsort -u $PBS_NODEFILE > hosts\nmpirun -hostfile hosts -np 8 ./a', [4, 5],
    ),
    "an address of two families": (
        SLURM, "ip=$(srun -N 1 -n 1 hostname --ip-address)\nif [[ $ip == *' '* ]]; then\n  IFS=' ' read -ra A <<< $ip\n"
        "  ip=${A[0]}\n  echo IPv6: $ip\nfi\nsrun torchrun --nnodes 2 --nproc_per_node 2 --rdzv_endpoint $ip:29500 t.py", [3, 4],
    ),
    "a port that is free": (
        SLURM, "MASTER_PORT=29500\nwhile ss -ltn | grep -q :$MASTER_PORT; do MASTER_PORT=$((MASTER_PORT + 1)); done\n"
        "export MASTER_PORT\nsrun python3 t.py", [3, 4, 5],
    ),
    "the list of hosts is printed": (SLURM, f"N=$({LIST} | wc -l)\necho $SLURM_NODELIST\n{RUN}", [3, 4]),
    "the list of hosts before a command of eval": (SLURM, 'echo $SLURM_JOB_NODELIST\nC="python3 t.py"\neval $C', [3]),
    "the list of hosts by nodeset": (SLURM, "nodeset -e $SLURM_JOB_NODELIST\nsrun python3 t.py", [3]),
    "a here-document": (
        SLURM, f"cat <<END > hosts\n$({LIST})\nEND\nmpirun -hostfile hosts -np 8 ./a", [3],
    ),
    "a file that another one is made of": (
        PBS, "sort -u $PBS_NODEFILE > nodes\nsed 's/$/ slots=4/' nodes > hosts\nmpirun -hostfile hosts -np 8 ./a\nrm nodes", [4, 5, 7],
    ),
    "the file is shown": (PBS, "cp $PBS_NODEFILE hosts\ncat hosts\nmpirun -hostfile hosts -np 8 ./a", [4, 5]),
    "the hosts by srun": (
        SLURM, "srun hostname -s | sort | uniq -c | awk '{ print $2 \" slots=\" $1 }' > h\nmpirun -np 4 -hostfile h ./a", [3],
    ),
    "one of several on a line": (
        SLURM, f"A=$(date); N=$({LIST} | wc -l); echo $A\nsrun torchrun --nnodes $N --nproc_per_node 2 t.py", [3],
    ),
    "a launch line that eval reads": (
        SLURM, f'N=$({LIST} | wc -l)\nC="srun torchrun --nnodes $N --nproc_per_node 2 t.py"\neval $C', [3, 4],
    ),
    "a program in a variable": (
        SLURM, f"N=$({LIST} | wc -l)\nP=$(ls *.py)\nsrun torchrun --nnodes $N --nproc_per_node 2 $P", [3],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_OUT)
def test_code_for_the_launch_line_is_left_out(name: str) -> None:
    head, body, lines = LEFT_OUT[name]
    found, setup = left_out(f"{head}{body}\n")
    assert found == lines
    assert not any(word in setup for word in ("NODEFILE", "NODELIST", "hostname", "hostfile", "MASTER_ADDR"))


COUNT = f"N=$({LIST} | wc -l)\n"
KEPT = {
    "an export of names that a file has": (SLURM, "source .env\nexport $(cut -d= -f1 .env)\nsrun python3 t.py"),
    "an export that prints": (SLURM, "export -p\nsrun python3 t.py"),
    "the program reads it": (SLURM, f"{COUNT}{RUN} --nodes $N"),
    "more is removed": (PBS, "sort -u $PBS_NODEFILE > h\nmpirun -hostfile h -np 8 ./a\nrm -f h core"),
    "a trap removes more": (PBS, "trap 'rm -f h core' EXIT\nsort -u $PBS_NODEFILE > h\nmpirun -hostfile h -np 8 ./a"),
    "it is printed with something else": (SLURM, f"{COUNT}A=$(ls)\necho nodes: $N $A\n./b $A\n{RUN}"),
    "its text goes elsewhere": (SLURM, f"{COUNT}echo nodes: $N > log\n{RUN}"),
    "a later command reads what is printed": (SLURM, f"{COUNT}echo nodes: $N\n./b $N\n{RUN}"),
    "a later command reads it": (SLURM, f"{COUNT}{RUN}\n./b $N"),
    "a function reads it": (SLURM, f"{COUNT}f() {{ ./b $N; }}\nf\n{RUN}"),
    "an expression reads it": (SLURM, f'{COUNT}let "M = N / 2"\n./b $M\n{RUN}'),
    "an integer is made of it": (SLURM, f"{COUNT}declare -i M=N/2\n./b $M\n{RUN}"),
    "an integer is declared before": (SLURM, f"typeset -i A M\n{COUNT}M=N/2\n./b $M\n{RUN}"),
    "a test ends the job": (PBS, "uniq $PBS_NODEFILE > h\n[ $(wc -l < h) = 2 ] || exit 1\nmpirun -hostfile h -np 8 ./a"),
    "a loop reads it": (SLURM, f"{COUNT}for ((i = 0; i < N; i++)); do ./b; done\n{RUN}"),
    "a here-document reads it": (SLURM, f"{COUNT}cat > x <<E\n$N\nE\n{RUN}"),
    "the program has it in its environment": (SLURM, f"export {COUNT}{RUN}"),
    "it is exported later": (SLURM, f"{COUNT}export N\n{RUN}"),
    "it is exported by the launcher": (PBS, "N=$(wc -l < $PBS_NODEFILE)\nmpirun -x N -np $N ./a"),
    "it becomes a variable of the ranks": (PBS, "N=$(wc -l < $PBS_NODEFILE)\nmpirun -x A=$N -np 8 ./a"),
    "another program reads the file": (PBS, "cp $PBS_NODEFILE hosts\n./b hosts\nmpirun -hostfile hosts -np 8 ./a"),
    "a folder that the program may use, too": (PBS, "mkdir -p logs\nmpirun -hostfile logs/h -np 8 ./a"),
    "a folder that another command uses, too": (
        PBS, "D=$PBS_JOBID\nmkdir $D\n./b $D\nmpirun -hostfile $D/h -np 8 ./a",
    ),
    "more than the file is shown": (
        PBS, "cp $PBS_NODEFILE hosts\ncat hosts conf\nmpirun -hostfile hosts -np 8 ./a",
    ),
    "the file is tested": (
        PBS, "F=hosts.$PBS_JOBID\nuniq $PBS_NODEFILE > $F\n[ -s $F ] || exit 1\nmpirun -hostfile $F -np 8 ./a",
    ),
    "another program reads the file of a variable": (
        PBS, "F=hosts.$PBS_JOBID\nuniq $PBS_NODEFILE > $F\n./b $F\nmpirun -hostfile $F -np 8 ./a",
    ),
    "a function does something else, too": (
        PBS, "f() { uniq $PBS_NODEFILE > h; ./b; }\nf\nmpirun -hostfile h -np 8 ./a",
    ),
    "a file beside it is read later": (
        PBS, "uniq $PBS_NODEFILE > n\nsed s/$/:4/ n > h\nmpirun -hostfile h -np 8 ./a\n./b n",
    ),
    "a loop prints something else, too": (
        PBS, "A=$(ls)\nfor h in $(cat $PBS_NODEFILE); do echo $h $A; echo $h >> h; done\nmpirun -hostfile h -np 8 ./a",
    ),
    "Python writes another file": (
        PBS, "python -c \"open('h', 'w').write(open('$PBS_NODEFILE').read()); open('x', 'w')\"\nmpirun -hostfile h ./a",
    ),
    "a program reads the descriptor": (
        PBS, "exec 3< $PBS_NODEFILE\nread -u 3 h\n./b <&3\nmpirun -np 8 ./a",
    ),
    "a descriptor of a log": (PBS, "exec 3> log\necho a >&3\nmpirun -np 8 ./a"),
    "another file": (PBS, "cp $PBS_NODEFILE nodes.txt\nmpirun -np 8 ./a"),
    "it writes another file, too": (
        PBS, "for h in $(cat $PBS_NODEFILE); do echo $h >> hosts; echo $h >> log; done\nmpirun -hostfile hosts -np 8 ./a",
    ),
    "another command reads what a file is made of": (
        PBS, "sort -u $PBS_NODEFILE > nodes\n./b nodes\ncp nodes hosts\n./c hosts\nmpirun -hostfile hosts -np 8 ./a",
    ),
    "it does something else, too": (
        PBS, "for h in $(cat $PBS_NODEFILE); do echo $h >> hosts; ./b; done\nmpirun -hostfile hosts -np 8 ./a",
    ),
    "it counts something else, too": (
        PBS, "for h in $(cat $PBS_NODEFILE); do echo $h >> hosts; ((i++)); done\nmpirun -hostfile hosts -np 8 ./a $i",
    ),
    "awk writes a file": (PBS, "N=$(awk '{ n++; print > \"log\" } END { print n }' $PBS_NODEFILE)\nmpirun -np $N ./a"),
    "sort writes a file": (PBS, "N=$(sort -u $PBS_NODEFILE -o x | wc -l)\nmpirun -np $N ./a"),
    "a number that stays is printed": (
        PBS, "let N=$(wc -l < $PBS_NODEFILE)*2\necho $N\nmpirun -np 8 ./a\n./b $N",
    ),
    "the path of the node file": (PBS, "echo $PBS_NODEFILE\nmpirun -np 8 ./a"),
    "it prints": (SLURM, f"{LIST}\n{RUN.replace('$N', '2')}"),
    "it has nothing to do with the hosts": (SLURM, f"N=$(cat x)\n{RUN}"),
    "a text that eval reads may read it": (SLURM, f"{COUNT}C=$(cat x)\neval $C"),
    "a program without a launcher reads it": (SLURM, f"{COUNT}python3 t.py $N"),
}  # fmt: skip


FILL = "while read -r h; do echo $h slots=4 >> hosts; done < $PBS_NODEFILE"
EACH = "for h in $(uniq $PBS_NODEFILE); do echo $h slots=4; done"
FORMS = {
    "it is shown": f"{FILL}\ncat hosts",
    "it is shown by a variable": 'F=hosts.$PBS_JOBID\nuniq $PBS_NODEFILE > $F\ncat "$F"\nwc -l < $F',
    "an exported name": "export F=hosts.$PBS_JOBID\nuniq $PBS_NODEFILE > $F",
    "functions that call each other": f"one() {{ {EACH}; }}\ntwo() {{ one | sort; }}\ntwo > hosts",
    "each host is printed": "while read h; do echo $h; echo $h slots=4 >> hosts; done < $PBS_NODEFILE",
    "a loop only prints": f"{FILL}\nH=$(cat $PBS_NODEFILE)\nfor h in $H; do echo $h; done",
    "its mode is set": f"touch hosts\nchmod 644 hosts\n{FILL}",
    "a temporary file": "F=$(mktemp)\nuniq $PBS_NODEFILE > $F",
    "a folder of its own": "mkdir -p run/$PBS_JOBID\nF=run/$PBS_JOBID/hosts\nuniq $PBS_NODEFILE > $F",
    "it is changed in place": "cp $PBS_NODEFILE hosts\nsed -i 's/$/ slots=4/' hosts\nsort -u hosts -o hosts",
    "a group of commands": f"{{ {EACH}; }} > hosts",
    "a subshell": f"({EACH}) > hosts",
    "a loop in a pipeline": f"{EACH} | sort > hosts",
    "a function": f"fill() {{ {FILL}; }}\nfill",
    "the output of a function": f"function hosts_of {{ {EACH}; }}\nhosts_of > hosts",
    "a table": "declare -A c\nfor h in $(<$PBS_NODEFILE); do c[$h]=$(( ${c[$h]:-0} + 1 )); done\n"
    'for h in "${!c[@]}"; do echo "$h slots=${c[$h]}" >> hosts; done',
    "a count": "i=0\nwhile read h; do l[i]=$h; ((i++)); let n+=1; done < $PBS_NODEFILE\nprintf '%s\\n' ${l[@]} > hosts",
    "a file between": "sort -u $PBS_NODEFILE > n.tmp\nsed 's/$/ slots=4/' n.tmp > hosts\nrm n.tmp",
    "srun and two files": "srun hostname > all.tmp\nsort -u all.tmp > hosts\nrm all.tmp",
    "a here-document": "cat > hosts <<E\n$(uniq $PBS_NODEFILE)\nE",
    "xargs": "xargs -n1 echo < $PBS_NODEFILE > hosts",
    "Python": "python - > hosts <<'E'\nimport os\nprint(open(os.environ['PBS_NODEFILE']).read())\nE",
    "Python writes it": "python3 -c \"import os; open('hosts','w').write(open(os.environ['PBS_NODEFILE']).read())\"",
    "Perl": "perl -ne 'print' $PBS_NODEFILE > hosts",
    "a descriptor": "exec 3< $PBS_NODEFILE\nwhile read -u 3 h; do echo $h >> hosts; done\nexec 3<&-",
    "descriptors of both files": "exec 4>hosts\nexec 3<$PBS_NODEFILE\nwhile read h <&3; do echo $h >&4; done\nexec 3<&- 4>&-",
    "a descriptor in a variable": "exec {d}< $PBS_NODEFILE\nwhile read -ru $d h; do echo $h >> hosts; done\nexec {d}<&-",
    "a function with the file as an argument": "fill() {\n  local f=$1\n  while read h; do echo $h >> $f; done < $PBS_NODEFILE\n}\n"
    "fill hosts",
    "a link": "ln -sf $PBS_NODEFILE hosts",
    "it is renamed": "uniq $PBS_NODEFILE > hosts.tmp\nmv hosts.tmp hosts",
    "a failure ends the job": "uniq $PBS_NODEFILE > hosts || { echo no hosts >&2; exit 1; }",
    "each host is shown by tee": "for h in $(uniq $PBS_NODEFILE); do echo $h slots=4 | tee -a hosts; done",
    "Python behind a pipe": "cat $PBS_NODEFILE | python -c 'import sys; print(*{*sys.stdin}, sep=\"\")' > hosts",
    "another path of it": f"{FILL}\nF=$PBS_O_WORKDIR/hosts",
    "Python with both files": "python - <<'E'\nimport os\nwith open(os.environ['PBS_NODEFILE']) as f, open('hosts', 'w') as o:\n"
    "    for h in f:\n        o.write(h)\nE",
}  # fmt: skip


@pytest.mark.parametrize(
    "launch", ["deepspeed --hostfile=%s t.py", "mpirun -np 8 -hostfile %s -x UCX_TLS=tcp python t.py"]
)
@pytest.mark.parametrize("name", FORMS)
def test_no_form_of_the_hosts_needs_a_block(name: str, launch: str) -> None:
    """What an option says leaves the block, too: the hosts are made in front of it."""
    file = "$F" if "F=" in FORMS[name] else "hosts"
    body = f"cd $PBS_O_WORKDIR\n{FORMS[name]}\nsource /opt/cuda.sh\nconda activate a\n{launch % file}\n"
    found = values(job_file(PBS + body).text)
    assert not {"setup", "before", "after"} & found.keys()
    assert (found["source"], found["conda"]) == (["/opt/cuda.sh"], "a")


@pytest.mark.parametrize("name", KEPT)
def test_other_code_stays(name: str) -> None:
    head, body = KEPT[name]
    assert left_out(f"{head}{body}\n")[0] == []


def test_a_name_of_the_file_that_programs_get_has_a_remark() -> None:
    done = job_file(f"{PBS}export F=hosts\nuniq $PBS_NODEFILE > $F\nmpirun -hostfile $F -np 8 ./a\n")
    assert [
        one.line for one in done.remarks if one.why.endswith("a program that reads F does not find it")
    ] == [4]
    assert "env" not in values(done.text)


def test_what_the_launch_line_reads_behind_a_file_of_the_script() -> None:
    """A file may export a name in capitals, which programs then find: that is said."""
    body = "source ./env.sh\nHF=hosts.$PBS_JOBID\nuniq $PBS_NODEFILE > $HF\nNP=$(wc -l < $PBS_NODEFILE)\n"
    done = job_file(f"{PBS}cd $PBS_O_WORKDIR\n{body}mpirun -np $NP -hostfile $HF python t.py\n")
    found = values(done.text)
    assert (found["source"], found.get("setup")) == (["./env.sh"], None)
    remarks = {one.line: one.why.rpartition("; ")[2] for one in done.remarks if "is left out" in one.why}
    assert remarks[6] == "if a file of source exports HF, programs find its value"
    assert remarks[8] == "if a file of source exports NP, programs find its value"
    stays = job_file(f"{PBS}cd $PBS_O_WORKDIR\n{body}./b $NP\nmpirun -np $NP -hostfile $HF python t.py\n")
    assert "NP=$(wc -l < $PBS_NODEFILE)" in str(values(stays.text)["setup"])


@pytest.mark.parametrize("port", ["$(shuf -i 20000-30000 -n 1)", "$((10000 + RANDOM % 9999))", "29501"])
def test_a_port_of_the_launch_line_in_front_of_a_file_of_the_script(port: str) -> None:
    body = f"port={port}\nsource ./env.sh\ndeepspeed --master_port $port t.py\n"
    found = values(job_file(f"{PBS}cd $PBS_O_WORKDIR\n{body}").text)
    assert (found["source"], found.get("setup")) == (["./env.sh"], None)
    assert found.get("master_port") == (29501 if port == "29501" else None)


def test_a_file_between_is_removed_behind_the_program() -> None:
    body = "srun hostname > all\nsort -u all > hosts\nmpirun -np 4 -hostfile hosts ./a\nrm all hosts\n"
    assert left_out(SLURM + body)[0] == [3, 4, 6]


@pytest.mark.parametrize(("value", "port"), [("1234", 1234), ("$((1024 + $RANDOM))", None)])
def test_the_address_that_mpirun_passes(value: str, port: int | None) -> None:
    done = job_file(
        f"{PBS}A=$(head -n 1 $PBS_NODEFILE)\n"
        f"mpirun -np 8 -x MASTER_ADDR=$A -x MASTER_PORT={value} -x WORLD_SIZE=8 -x B=1 python t.py\n"
    )
    found = values(done.text)
    assert (found.get("setup"), found.get("master_port"), found["env"]) == (None, port, {"B": "1"})
    assert not any(one.lost for one in done.remarks)
    assert any(one.why == "jobgen sets MASTER_ADDR itself" for one in done.remarks)


FIRST = f"$({LIST} | head -n 1)"


@pytest.mark.parametrize(
    ("body", "address"),
    [
        (f"MASTER_ADDR={FIRST}", None),
        (f"export MASTER_ADDR=ic-{FIRST}", "ic-{host}"),
        (f'MASTER_ADDR="{FIRST}"\nMASTER_ADDR="${{MASTER_ADDR}}i"', "{host}i"),
        (f"first={FIRST}\nexport MASTER_ADDR=ic-${{first}}.example.org", "ic-{host}.example.org"),
        (f"nodes=( $({LIST}) )\nexport MASTER_ADDR=${{nodes[0]}}-ib0", "{host}-ib0"),
        ("MASTER_ADDR=$(hostname -s)-ib0", "{host}-ib0"),
        (f"MASTER_ADDR={FIRST}i\nMASTER_ADDR=$(getent hosts $MASTER_ADDR | cut -d ' ' -f 1)", "{host}i"),
        (f"MASTER_ADDR={FIRST}i\nMASTER_ADDR={FIRST}", None),
        ("MASTER_ADDR=$(ip -4 addr show ib0 | grep -oP '(?<=inet ).*(?=/)')", "interface:ib0"),
        ("MASTER_ADDR=$(ip -o a show dev hsn0 | awk '{ print $4 }')", "interface:hsn0"),
        ("MASTER_ADDR=$(ifconfig ib0 | awk '/inet / { print $2 }')", "interface:ib0"),
        ("MASTER_ADDR=10.0.0.$((SLURM_NODEID + 1))", None),
        ("MASTER_ADDR=node$(echo $SLURM_NODELIST | cut -d [ -f 2 | cut -d - -f 1)", None),
        (f"MASTER_ADDR=tcp://{FIRST}:29500", None),
        (f"if [[ -n $IB ]]; then MASTER_ADDR={FIRST}i; fi", None),
    ],
)
def test_the_address_of_the_rendezvous(body: str, address: str | None) -> None:
    done = job_file(f"{SLURM}{body}\nexport MASTER_ADDR\nsrun python3 t.py\n")
    assert values(done.text).get("master_addr") == address


def test_a_variable_of_options_and_the_launch_line_is_left_out() -> None:
    head = "#!/bin/bash\n#PBS -l select=2:ncpus=32:mpiprocs=4\n#PBS -l walltime=01:00:00\nD=6\nexport OMP_NUM_THREADS=$D\n"
    done = values(job_file(f"{head}mpiexec -n 8 --ppn 4 --depth $D python3 t.py\n").text)
    assert (done["cpus_per_rank"], done.get("setup")) == (6, None)
    done = values(job_file(f"{head}mpiexec -n 8 --ppn 4 --depth $D python3 t.py --depth $D\n").text)
    assert "D=6" in str(done["setup"])
