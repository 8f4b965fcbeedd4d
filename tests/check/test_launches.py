"""The launchers of a script: behind wrappers and shells, in variables, arrays, functions and here-documents."""

from __future__ import annotations

import pytest

from jobgen.check.checker import check
from jobgen.check.rule import ERROR
from jobgen.script.launches import Launch
from jobgen.script.script import Script

HEAD = """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
set -eo pipefail
M=$(hostname)
"""
RUN = "torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint $M:0 t.py"
LAUNCHES = {
    # wrappers and shells under srun
    "srun>torchrun": [
        f"srun apptainer exec --nv i.sif bash -c '{RUN}'",
        f"srun apptainer exec --nv -B $A:$B \"$IMAGE\" bash -c '{RUN}'",
        f"srun singularity exec $OPTS $D/i.sif bash -lc \"{RUN}\"",
        f"srun podman-hpc run --rm -v a:b image:1 bash -c '{RUN}'",
        f"srun shifter --image=docker:x bash -c 'cd x; {RUN}; python post.py'",
        f"srun nsys profile -o x --stats true bash -c '{RUN}'",
        f"srun ./wrap.sh --verbose x bash -c '{RUN}'",
        f"srun rocprof --stats {RUN}",
        f"srun guix shell -- {RUN}",
        f"read -r -d '' C <<END || true\n{RUN}\nEND\nsrun bash -c \"$C\"",
        f"IFS= read -rd '' C <<'END'\n{RUN}\nEND\nsrun bash -c \"$C\"",
        f"srun bash <<'END'\n{RUN}\nEND",
        "srun $VENV/bin/torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint $M:0 t.py",
        "srun python -u $(which torchrun) --nnodes 2 --rdzv-backend c10d --rdzv-endpoint $M:0 t.py",
        # variables
        f'C="{RUN}"\nsrun $C',
        f'C="{RUN}"\nexport C\nsrun bash -c \'$C\'',
        'L="torchrun --nnodes 2"\nC="$L --rdzv-backend c10d --rdzv-endpoint $M:0 t.py --x"\nsrun $C',
        'L="torchrun \\\n  --nnodes 2 \\\n  --rdzv-backend c10d --rdzv-endpoint $M:0 \\\n"\nexport C="t.py"\nsrun bash -c "$L $C"',
        'L="torchrun\n --nnodes 2\n --rdzv-backend c10d --rdzv-endpoint $M:0\n"\nsrun $L t.py',
        'L=(torchrun --nnodes 2)\nL+=(--rdzv-backend c10d --rdzv-endpoint "$M:0")\nC=("${L[@]}" t.py)\nsrun "${C[@]}"',
        'L="torchrun --nnodes 2"\nL+=" --rdzv-backend c10d --rdzv-endpoint $M:0"\nsrun $L t.py',
        'L="torchrun --nnodes 2"\nL="$L --rdzv-backend c10d --rdzv-endpoint $M:0"\nsrun $L t.py',
        'L=torchrun\nK=$L\nsrun $K --nnodes 2 --rdzv-backend c10d --rdzv-endpoint $M:0 t.py',
        # functions
        f'f() {{\n  local C="{RUN}"\n  srun $C\n}}\nf',
        f'f() {{\n  srun --ntasks 2 "$@"\n}}\nf {RUN}',
        f'f() {{\n  shift\n  srun "$@"\n}}\nf name {RUN}',
        f'f() {{\n  echo "$@"\n  eval "$@"\n}}\nf "srun {RUN}"',
    ],
    "torchrun": [
        f"docker run --gpus all -v a:b image:1 bash -c 'cd /x && {RUN}'",
        f"nsys profile -o x --trace=cuda,nvtx {RUN}",
        f"singularity exec i.sif bash <<END\n{RUN}\nEND",
        f'L="{RUN}"\nC="$L --x"\neval $C',
    ],
    "ssh:torchrun": [
        f"for h in $HOSTS; do ssh -o X=no $h {RUN} & done",
        f'for h in $HOSTS; do ssh $h "cd $PWD; {RUN}" & done',
    ],
    "pbsdsh:torchrun": [f"pbsdsh -- bash -c '{RUN}'"],
}  # fmt: skip

ALL = "--nnodes 2 --nproc-per-node 4 t.py"
ONE = f"torchrun {ALL}"
MORE_LAUNCHES = {
    "torchrun": [
        # defaults
        f"${{L:-torchrun}} {ALL}",
        f'"${{L-torchrun}}" {ALL}',
        f"${{L:=torchrun}} {ALL}",
        f": ${{L:=torchrun}}\n$L {ALL}",
        'L="${LAUNCHER:-torchrun --nnodes 2}"\n$L --nproc-per-node 4 t.py',
        f"${{PYTHON:-python}} -m torch.distributed.run {ALL}",
        f"$PYTHON -m torch.distributed.run {ALL}",
        # arguments of functions
        'f() { torchrun --nnodes "$1" --nproc-per-node "$2" "$3"; }\nf 2 4 t.py',
        "f() { torchrun --nnodes $1 --nproc-per-node=${2} ${3}; }\nf 2 4 t.py",
        'f() { local n="$1" p="$2"; shift 2; torchrun --nnodes "$n" --nproc-per-node "$p" "$@"; }\nf 2 4 t.py',
        # code for a shell
        f'C=({ONE})\nbash -c "${{C[*]}}"',
        f'bash -c "L=torchrun; \\$L {ALL}"',
        f"bash -s -- a <<'E'\n{ONE}\nE",
        f"cat <<'E' | bash\n{ONE}\nE",
        f"bash <<< '{ONE}'",
        f"echo '{ONE}' | bash",
        f"C=$(cat <<E\n{ONE}\nE\n)\neval \"$C\"",
        f"C=$(echo '{ONE}')\n$C",
        # files of the script
        f"cat > r.sh <<'E'\n{ONE}\nE\nbash r.sh",
        f"cat > r.sh <<'E'\n{ONE}\nE\nsource ./r.sh",
        # wrappers
        f'timeout "$LIMIT" {ONE}',
        f"sudo -u me {ONE}",
        f"coproc {ONE}",
    ],
    "srun>torchrun": [
        f"S=${{S:-srun}}\n$S {ONE}",
        f"${{S:-srun -n 2}} {ONE}",
        'A=${A:-torchrun --nnodes 2}\nB="${B:-$A --nproc-per-node 4}"\nsrun $B t.py',
        f"D=${{D:-}}\n$D srun {ONE}",
        f"${{D:+echo}} srun {ONE}",
        f'f() {{ $1 "${{@:2}}"; }}\nf srun {ONE}',
        f'f() {{ eval "$1"; }}\nf "srun {ONE}"',
        f'f() {{ srun bash -c "$1"; }}\nf "{ONE}"',
        f'f() {{ srun bash -c "$*"; }}\nf {ONE}',
        f"f() {{ srun ${{1}} {ALL}; }}\nf torchrun",
        f'f() {{ g "$@"; }}\ng() {{ srun "$@"; }}\nf {ONE}',
        f'set -- {ONE}\nsrun "$@"',
        f"srun sh -c $'cd x\\n{ONE}'",
        f"srun bash -euo pipefail -c '{ONE}'",
        f"W=run.$SLURM_JOB_ID.sh\ncat > $W <<'E'\n{ONE}\nE\nsrun bash $W",
        f"tee r.sh <<'E'\n{ONE}\nE\nchmod +x r.sh\nsrun ./r.sh",
        f"{{\necho '#!/bin/bash'\necho '{ONE}'\n}} > $PWD/r.sh\nsrun bash $PWD/r.sh",
        f"echo '#!/bin/bash' > r.sh\necho '{ONE}' >> r.sh\nsrun bash r.sh",
        f"ls | xargs -I{{}} -P 4 srun {ONE} {{}}",
        f"parallel --delay 0.2 -j 4 'srun -n 1 {ONE} {{}}' ::: a b",
    ],
    "ssh:torchrun": [
        f'for h in $H; do ssh "$h" <<E &\n{ONE}\nE\ndone',
        f'C="{ONE}"\nfor h in $H; do ssh $h "$C" & done',
        f'C="cd x && {ONE}"\nfor h in $H; do ssh $h $C & done',
        f'f() {{ ssh "$1" "$2"; }}\nf n1 "{ONE}"',
    ],
    "pdsh:torchrun": [f'C="{ONE}"\npdsh -w $H "cd $PWD; $C"', f"pdsh -w^hosts -S '{ONE}'"],
    "clush:torchrun": [f"clush -bw $H '{ONE}'"],
}  # fmt: skip


def chain(launch: Launch) -> str:
    name = f"{launch.remote}:{launch.kind}" if launch.remote else launch.kind
    return f"{chain(launch.outer)}>{name}" if launch.outer else name


@pytest.mark.parametrize(("kinds", "body"), [(key, one) for key, some in LAUNCHES.items() for one in some])
def test_a_launcher_is_found_with_its_options(kinds: str, body: str) -> None:
    *_, last = Script(f"{HEAD}{body}\n".encode(), "slurm").launches
    assert chain(last) == kinds
    assert list(last.options) == ["--nnodes", "--rdzv-backend", "--rdzv-endpoint"]
    assert (last.options["--nnodes"], last.options["--rdzv-backend"]) == ("2", "c10d")
    assert (last.program[0].text.strip('"'), last.unknown) == ("t.py", ())


@pytest.mark.parametrize(
    ("kinds", "body"), [(key, one) for key, some in MORE_LAUNCHES.items() for one in some]
)
def test_a_launcher_is_found_once(kinds: str, body: str) -> None:
    found = Script(f"{HEAD}{body}\n".encode(), "slurm").launches
    assert len(found) == 1 + kinds.count(">")
    last = found[-1]
    assert chain(last) == kinds
    assert last.options == {"--nnodes": "2", "--nproc-per-node": "4"}
    assert last.program[0].text.strip('"') == "t.py"


@pytest.mark.parametrize(
    "body",
    [
        "srun python t.py --launcher torchrun",
        "srun ./train --launcher torchrun",
        'echo "srun torchrun t.py"',
        "cat > run.sh <<END\nsrun torchrun t.py\nEND",
        'f() {\n  srun "$@"\n}\nf python t.py',
        "${X:-echo} torchrun t.py",
        "cat > r.sh <<'E'\ntorchrun t.py\nE\nsbatch r.sh",
        "echo 'torchrun t.py' | tee log",
        "f() { while [ $# -gt 0 ]; do shift; done; srun $1 t.py; }\nf torchrun",
    ],
)
def test_what_only_looks_like_a_launcher(body: str) -> None:
    assert "torchrun" not in {one.kind for one in Script(f"{HEAD}{body}\n".encode(), "slurm").launches}


@pytest.mark.parametrize(
    ("body", "unknown"),
    [
        ("srun torchrun --nnodes 2 $ARGS t.py", ["$ARGS"]),
        ("srun torchrun --nnodes $N --node-rank $RANK t.py", []),
        ('L="torchrun --nnodes 2"\nif x; then L+=" --standalone"; fi\nsrun $L t.py', ["$L"]),
        ('L="torchrun"\nif x; then L="torchrun --nnodes 2"; fi\nsrun $L t.py', None),
    ],
)
def test_the_words_that_may_be_options(body: str, unknown: list[str] | None) -> None:
    found = Script(f"{HEAD}{body}\n".encode(), "slurm").launches
    words = [[word.text for word in one.unknown] for one in found if one.kind == "torchrun"]
    assert words == ([] if unknown is None else [unknown])


def test_a_variable_has_the_value_of_its_place() -> None:
    body = 'C="torchrun a.py"\nsrun $C\nC="torchrun b.py"\nsrun $C\n'
    found = Script(f"{HEAD}{body}".encode(), "slurm").launches
    assert [one.program[0].text for one in found if one.kind == "torchrun"] == ["a.py", "b.py"]


RIGHT = [
    'L="torchrun --nnodes 2 --rdzv_backend c10d --rdzv_endpoint $M:0"\nsrun $L t.py',
    'L="torchrun --nnodes 2 --rdzv_backend c10d --rdzv_endpoint $M:0"\nsrun bash -c "$L t.py"',
    'L=(torchrun --nnodes 2 --rdzv_backend c10d --rdzv_endpoint "$M:0")\nsrun "${L[@]}" t.py',
    'O="--rdzv_backend c10d"\nL="torchrun --nnodes 2 $O --rdzv_endpoint $M:0"\nsrun $L t.py',
    "L='accelerate launch --num_machines 2 --machine_rank $SLURM_PROCID'\nexport L\nsrun bash -c \"$L t.py\"",
    'L="accelerate launch --config_file c.yaml --num_machines 2"\nsrun $L t.py',
    "srun torchrun --nnodes 2 $DIST t.py",
    'srun $OPTIONS torchrun --nnodes 2 --node_rank "$X" t.py',
]
EARLY = [
    'L="accelerate launch --num_machines 2 --machine_rank $SLURM_PROCID --main_process_ip $M"\nsrun $L t.py',
    'R="--machine_rank $SLURM_PROCID"\nL="accelerate launch --num_machines 2 $R"\nsrun bash -c "$L t.py"',
    'L=(torchrun --nnodes 2 --node-rank "$SLURM_NODEID" --master-addr "$M")\nsrun "${L[@]}" t.py',
]
MISSING = [
    'L="torchrun --nnodes 2 --master_addr $M"\nsrun $L t.py',
    'L="accelerate launch --num_machines 2 --main_process_ip $M"\nC="$L t.py"\nsrun $C',
    'L=(torchrun --nnodes 2)\nL+=(--master_addr "$M")\nsrun bash -c "${L[*]} t.py"',
    "srun apptainer exec i.sif bash -c 'torchrun --nnodes=2 --master-addr $M t.py'",
    'L="torchrun --nnodes 2 --master_addr $M"\nsrun $L t.py --node_rank 3',
]


def errors(body: str) -> dict[str, str]:
    return {one.rule: one.fix for one in check(f"{HEAD}{body}\n".encode()) if one.severity == ERROR}


@pytest.mark.parametrize("body", RIGHT)
def test_a_right_launch_has_no_error(body: str) -> None:
    assert errors(body) == {}


@pytest.mark.parametrize("body", EARLY)
def test_a_node_rank_that_is_expanded_too_early(body: str) -> None:
    assert errors(body).keys() == {"early-expansion"}


@pytest.mark.parametrize("body", MISSING)
def test_a_missing_node_rank(body: str) -> None:
    """The fix names options that the launcher has: accelerate has no endpoint."""
    found = errors(body)
    assert found.keys() == {"missing-node-rank"}
    assert ("endpoint" in found["missing-node-rank"]) == ("torchrun" in body)


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        ("fixed-port", 'P=29500\nA="--master_port $P"\ntorchrun $A t.py'),
        ("fixed-port", 'P=29500\nsrun torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint "$M:$P" t.py'),
        ("fixed-master", 'A="--node_rank $R --master_addr gpu07"\nsrun torchrun --nnodes 2 $A t.py'),
        ("bare-hostfile", 'H=$PBS_NODEFILE\ndeepspeed --hostfile "$H" t.py'),
        ("old-nccl", 'A="-x NCCL_LL_THRESHOLD=0"\nmpirun $A ./a'),
        ("fixed-interface", 'A="--mca btl_tcp_if_include eth0"\nmpirun $A ./a'),
        ("hostname-master", "C='MASTER_ADDR=$(hostname) ./a'\nsrun bash -c \"$C\""),
        ("fixed-node-rank", 'for h in $L; do ssh $h "torchrun --nnodes 2 --node_rank 1 t.py" & done'),
    ],
)
def test_a_rule_reads_the_values_of_options(rule: str, body: str) -> None:
    assert rule in {one.rule for one in check(f"{HEAD}{body}\n".encode())}


PBS = "#!/bin/bash\n#PBS -l select=2:ncpus=32:mpiprocs=4\n#PBS -l walltime=1:00:00\n"
SLURM = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 -t 60\n"


@pytest.mark.parametrize(
    ("head", "body", "rule"),
    [
        (PBS, "N=$(wc -l < $PBS_NODEFILE)\nmpirun -np $((N * 4)) ./a", "ranks-mismatch"),
        (PBS, 'N=`cat "$PBS_NODEFILE" | wc -l`\nR=$(( N * 4 ))\nmpirun -np ${R} ./a', "ranks-mismatch"),
        (PBS, "N=$(sort -u ${PBS_NODEFILE} | wc -l)\nmpirun -np $((N * 32)) ./a", "ranks-mismatch"),
        (PBS, "N=$(sort -u $PBS_NODEFILE | wc -l)\nmpirun -np $((N * 4)) ./a", ""),
        (PBS, "mpirun -np $(wc -l < $PBS_NODEFILE) ./a", ""),
        (PBS, "N=$(wc -l < $OTHER)\nmpirun -np $((N * 4)) ./a", ""),
        (
            PBS.replace("mpiprocs=4", "mpiprocs=1"),
            "N=`wc -l < $PBS_NODEFILE`\nmpiexec -n $((N * 4)) --ppn 4 ./a",
            "",
        ),
        (
            SLURM,
            'N=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | wc -l)\nsrun -n $((N * 8)) ./a',
            "ranks-mismatch",
        ),
        (SLURM, "N=$(scontrol show hostnames | wc -l)\nsrun -n $((N * 4)) ./a", ""),
    ],
)
def test_numbers_that_a_command_counts(head: str, body: str, rule: str) -> None:
    found = {one.rule for one in check(f"{head}{body}\n".encode())}
    assert found & {"ranks-mismatch", "repeated-count"} == ({rule} if rule else set())


MANY = "module load {}\nmpirun -np 8 {} ./a"
EXPORTED = "export MASTER_ADDR=$(scontrol show hostnames | head -n1) {}\n{} python a.py"


@pytest.mark.parametrize(
    ("head", "body", "rule", "found"),
    [
        (PBS, MANY.format("intel-oneapi-mpi/2021", "-x A"), "mpi-options", True),
        (PBS, MANY.format("mpich/4.1", "--mca btl self"), "mpi-options", True),
        (PBS, MANY.format("openmpi/4.1", "-ppn 4"), "mpi-options", True),
        (PBS, MANY.format("openmpi/4.1", "-x A"), "mpi-options", False),
        (PBS, MANY.format("intel-oneapi-mpi/2021", "-ppn 4"), "mpi-options", False),
        (PBS, MANY.format("cray-mpich", "--ppn 4"), "mpi-options", False),
        (PBS, MANY.format("gcc", "-x A"), "mpi-options", False),
        (SLURM, EXPORTED.format("RANK=0", "srun"), "rank-number", True),
        (SLURM, EXPORTED.format("RANK=$OFFSET", "srun"), "rank-number", True),
        (SLURM, EXPORTED.format("RANK=0", "srun -N1 -n1"), "rank-number", False),
        (SLURM, EXPORTED.format("RANK=0", "srun ./ranks.sh"), "rank-number", False),
        (SLURM, EXPORTED.format("RANK=0", "srun env RANK=$SLURM_PROCID"), "rank-number", False),
        (SLURM, EXPORTED.format("RANK=$SLURM_PROCID", "srun"), "rank-number", False),
        (SLURM, "RANK=0\nsrun python a.py", "rank-number", False),
        (
            PBS,
            'for h in $(sort -u $PBS_NODEFILE); do\nssh $h "a $(head -1 f)" &\ndone',
            "unwaited-background",
            True,
        ),
        (
            PBS,
            'for h in $(sort -u $PBS_NODEFILE); do\nssh $h "a" &\ndone\nwait',
            "unwaited-background",
            False,
        ),
    ],
)
def test_what_each_rank_gets(head: str, body: str, rule: str, found: bool) -> None:
    assert (rule in {one.rule for one in check(f"{head}{body}\n".encode())}) is found
