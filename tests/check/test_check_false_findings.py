"""What check said of scripts that are right, and advice that was wrong: each case is a kind of script."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobgen.check.checker import Finding, check
from jobgen.check.unclosed import fault
from jobgen.script.script import Script
from jobgen.script.submitted import scripts

HEAD = "#!/bin/bash\n#SBATCH --time=01:00:00\n"
THREADS = f"{HEAD}#SBATCH --ntasks-per-node=8 --nodes=1 --cpus-per-task=1\nexport OMP_NUM_THREADS=16\n"
NODES = "#!/bin/bash\n#SBATCH --mem=0\n#SBATCH --ntasks-per-node=8\n"
TORQUE = "#!/bin/bash\n#PBS -l walltime=01:00:00\n#PBS -l nodes=1:ppn=4\n"
PBS = "#!/bin/bash\n#PBS -l walltime=01:00:00\n"
OF_A_RUN = "|| exit 1 behind it if later commands need its results, else || failed=1, and exit ${failed:-0} at the end"
ALCF = f"{PBS}#PBS -l select=1:system=polaris\n#PBS -q prod\n"
TWO_DEVICES = "export CUDA_VISIBLE_DEVICES=0,1\npython t.py"
DATA = "cat > in <<END\nkey: {\nEND\n"


def found(text: str, rule: str) -> list[Finding]:
    return [one for one in check(f"{text}\n".encode(), folder=".") if one.rule == rule]


@pytest.mark.parametrize(
    "text",
    [
        f"{DATA}qsub a.pbs",
        f"{DATA}qsub a.pbs | tee log",
        f"{DATA}id=$(sbatch a.sh)",
        f"if a; then\n{DATA}qsub a.pbs\nfi",
        f"f() {{\n{DATA}qsub a.pbs\n}}",
        "cat > in <<END && qsub a.pbs\nkey: {\nEND",
        "cat > in <<END || qsub a.pbs | tee log\nkey: {\nEND",
        "cat > a.pbs <<END\nkey: {\nEND\necho >> a.pbs\nqsub a.pbs",
        "qsub in\ncat > in <<END\nkey: {\nEND",
        "while read a; do qsub $a; done <<END\nkey: {\nEND",
    ],
)
def test_a_here_document_of_another_command_is_no_job_script(text: str) -> None:
    assert list(scripts(Script(f"#!/bin/bash\n{text}\n".encode(), "slurm"))) == []
    assert found(f"#!/bin/bash\n{text}", "syntax-error") == []


@pytest.mark.parametrize(
    "text",
    [
        "sbatch <<END\nX\nEND",
        "sbatch > log <<END || exit 1\nX\nEND",
        "if ! sbatch <<END\nX\nEND\nthen a; fi",
        "id=$(sbatch <<END | cut -f1\nX\nEND\n)",
        "id=$(cat <<END | sed s/a/b/ | sbatch | cut -f1\nX\nEND\n)",
        "(echo a; cat <<END\nX\nEND\n) | sbatch",
        f"{DATA}cat > a.sh <<END\nX\nEND\nsbatch -n 1 a.sh",
        'cat <<END > "$name.sh"\nX\nEND\nsbatch $name.sh',
    ],
)
def test_the_here_document_that_a_submit_command_reads(text: str) -> None:
    assert [one.source for one in scripts(Script(f"#!/bin/bash\n{text}\n".encode(), "slurm"))] == [b"X\n"]


def test_a_directive_that_the_outer_shell_completes() -> None:
    text = "#!/bin/bash\ncat <<END | sbatch\n#!/bin/bash\n#SBATCH -t 00:$minutes:00\nhostname\nEND"
    assert found(text, "no-walltime") == []


@pytest.mark.parametrize(
    "text",
    [
        'A="$(srun hostname | sort"\necho\nB="$(date"\n',
        'A="$(date" "$x"\nB="$(cat "$x" | sort)"\nC="$(date"\n',
        'A="$(srun --export="X" a"\nB="$(srun --export="Y" b"\n',
    ],
)
def test_substitutions_without_an_end_in_several_quotes(text: str) -> None:
    begin = fault(text)
    assert begin is not None
    assert (begin.line, begin.reason) == (1, "$( has no )")


@pytest.mark.parametrize(
    "command",
    [
        *("sinfo -s", "scontrol show job 1", "scontrol -d show node a", "qstat -f", "seff 1", "pbsnodes -a"),
        *("sacctmgr show user", "sacctmgr -n list qos", "sacct -j 1", "scontrol ping"),
        *("scontrol update job=1 x=2", "sacctmgr -i add user a", "scontrol"),
        # Values, which tree-sitter reads as a value and a command
        *('a=$x" +opt "$2', "a=$x/$1", "a=$x/$1/b", "a=$x/$ref\\_b", "a=$x\\ $y", "a=$x-$1"),
        'a="-Q 1 "\\\n"-R 2"',
    ],
)
def test_commands_and_values_whose_failure_changes_nothing(command: str) -> None:
    assert found(f"{HEAD}{command}\nsrun python3 a.py", "no-errexit") == []


def test_a_command_over_several_lines_is_shown_by_its_first() -> None:
    command = "CUDA_VISIBLE_DEVICES=1 python3 a.py \\\n  --steps 3"
    (only,) = found(f"{HEAD}{command}\nsrun python3 b.py", "no-errexit")
    assert (
        only.reason
        == "if 'python3 a.py ...' fails, the script goes on, and its status is that of a later command"
    )


@pytest.mark.parametrize(
    ("resource", "count"),
    [("scratch=1gb", 0), ("matlab=1", 0), ("walltme=1:00", 1), ("ppn=1", 1), ("mpiprocs=4", 1)],
)
def test_a_resource_of_the_site(resource: str, count: int) -> None:
    findings = check(f"{TORQUE}#PBS -l {resource}\nhostname\n".encode(), scheduler="torque")
    assert len([one for one in findings if one.rule == "bad-value"]) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('echo "$SLURM_JOB_NODELIST" > ./job_info/NodeList', 0),
        ('echo "$SLURM_JOB_NODELIST" > nodelist\ncat nodelist', 0),
        ("srun hostname > nodelist\n./a --nodes ./nodelist", 1),
        ('list=nodelist\nsrun hostname > "$list"\n./a "$list"', 1),
        ("srun hostname > nodelist\nexport NODES=$PWD/nodelist\n./a", 1),
        ("srun hostname > nodelist\nwhile read a; do ssh $a b; done < nodelist", 1),
        ("srun hostname > hostfile", 1),
    ],
)
def test_a_list_of_nodes_that_nothing_reads(text: str, count: int) -> None:
    assert len(found(f"{HEAD}set -e\n{text}", "shared-hostfile")) == count


@pytest.mark.parametrize(
    ("directive", "rule", "fix"),
    [
        ("--workdir=/a/b", "unknown-option", "write --chdir=/a/b"),
        ("-array=1-45", "bad-array", "write --array=1-45, with two dashes"),
        ("-mem=4G", "bad-value", "write --mem=4G, with two dashes"),
        ("-nodes=2", "bad-count", "write --nodes=2, with two dashes"),
        ("--array=x-", "bad-array", "write 0-9"),
    ],
)
def test_the_advice_about_a_directive(directive: str, rule: str, fix: str) -> None:
    assert [one.fix for one in found(f"{HEAD}#SBATCH {directive}\nhostname", rule)] == [fix]


@pytest.mark.parametrize(("size", "words"), [("1", "1 megabyte"), ("2", "2 megabytes")])
def test_a_size_without_a_unit(size: str, words: str) -> None:
    (only,) = found(f"{HEAD}#SBATCH --mem={size}\nhostname", "memory-unit")
    assert only.reason == f"--mem={size} is {words}"


def test_the_name_of_a_launcher_that_is_a_module() -> None:
    launch = "python3 -m torch.distributed.launch --nnodes=4 --node_rank=0 --master_addr=$A a.py"
    (only,) = found(f"{HEAD}#SBATCH --nodes=2\nset -e\n{launch}", "nodes-mismatch")
    assert only.reason.startswith("torch.distributed.launch gets 4 nodes")
    assert only.reason.endswith("until the rendezvous times out")


def test_the_lines_in_a_reason_are_those_of_the_whole_file() -> None:
    inner = "#!/bin/bash\n#SBATCH --time=1\nmodule load a\n#SBATCH --mem=4G\n./a"
    (late,) = found(f"#!/bin/bash\nsbatch <<END\n{inner}\nEND", "late-directive")
    assert (late.line, "in line 5" in late.reason) == (6, True)


def test_an_option_is_no_secret_of_the_option_before_it() -> None:
    assert found(f"{HEAD}python t.py --mode=decode --single_pass=1 --vocab=v", "secret-in-script") == []
    assert found(f"{HEAD}python t.py --mode=decode --api_key=9f8e7d6c5b4a39281706", "secret-in-script")


def test_nothing_follows_a_pipeline_at_the_end() -> None:
    assert found(f"{HEAD}srun python t.py 2>&1 | sed s/a/b/ >> log", "no-errexit") == []


@pytest.mark.parametrize("rule", ["no-errexit"])
@pytest.mark.parametrize("last", ["times", "ray stop", "apptainer instance stop db"])
def test_what_ends_a_service_is_no_work(rule: str, last: str) -> None:
    reasons = [one.reason for one in found(f"{HEAD}./solver\n{last}\necho done", rule)]
    assert all(last.split()[0] not in one.partition(",")[0] for one in reasons)


def test_an_option_whose_value_is_in_the_next_directive() -> None:
    text = f"{HEAD}#SBATCH -p\n# a comment\n#SBATCH gpu\n./a"
    assert found(text, "bad-value") == found(text, "unknown-option") == []
    (only,) = found(f"{HEAD}#SBATCH -p\n#SBATCH -n 16\n./a", "bad-value")
    assert only.reason == "-p has no value in its line: sbatch reads -n of line 4 as the value"
    assert found(f"{HEAD}#SBATCH -p  # the queue\n#SBATCH -n 16\n./a", "placeholder")
    assert found(f"{HEAD}#SBATCH -p  # the queue\n#SBATCH -n 16\n./a", "unknown-option") == []
    assert found(f"{HEAD}#SBATCH -p\n./a", "bad-value")


def test_a_text_in_three_quotes_is_not_the_place_of_an_error() -> None:
    block = '"""\nWhat this does.\n"""\n'
    text = f'{HEAD}{block}./a\n"""\nThe arguments follow "./b\nx is (the first) file\n"""\n./b'
    (only,) = found(text, "syntax-error")
    assert (only.line, "near unexpected token" in only.reason) == (9, True)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("no-errexit", f"{HEAD}sha256sum a.img\nexit 0"),
        ("no-errexit", f"{HEAD}srun mpi_check -r\ndate"),
        ("no-errexit", f"{HEAD}${{COPY}} a b\ndate"),
        ("lost-status", f"{HEAD}srun xthi.intel | sort"),
        ("trap-exec", f"{HEAD}trap 'rm a' EXIT\nset -e\n./b <(exec ./c)"),
        ("misspelt-variable", f"{HEAD}runs=a\neval run='$'b\nmodule load c\nRUNS=1\n./d $run $runs $RUNS"),
        ("foreign-variable", f"{PBS}#PBS -l select=1:ncpus=4:scratch_local=30gb\n./a -t $PBS_NUM_PPN"),
        ("array-output", f"{HEAD}#SBATCH --array=2\n#SBATCH --output=a.log\n./a"),
        ("used-port", f"{HEAD}P_PORT=$(ss -tan | cut -f 2 | shuf -n 1)\ntorchrun --standalone t.py"),
        ("sleep-as-sync", f"{HEAD}jupyter lab --port 80 &\nsleep 5\nsingularity exec a.sif rserver"),
        ("no-pipefail", f"{HEAD}set -e\n./show | awk '{{print $1}}' | grep PASS || {{ echo FAIL; exit 1; }}"),
        ("no-walltime", "#PBS -l nodes=2:ppn=8\n# msub a.pbs -v n=3 -l walltime=1:00:00\n./a"),
        ("no-errexit", f"{HEAD}work() {{\necho a\npython t.py\n}}\nwork"),
        ("no-errexit", f"{HEAD}module load apptainer\nA=1\napptainer exec a.sif ./b"),
        ("no-errexit", f"{HEAD}module load CUDA/12\n$CUDA_ROOT/deviceQuery"),
        # What fails with its preparation, a container and a path included, and what may fail without harm
        *(
            ("no-errexit", f"{HEAD}{lines}")
            for lines in (
                "module load gcc openmpi\nsrun ./a",
                "module load gromacs\nsrun gmx mdrun",
                "source /opt/lammps/env.sh\nmpirun lmp -in a.in",
                "conda activate a\nsnakemake -c 4",
                "module load cuda\nsingularity exec --nv a.sif python3 t.py",
                "module load cuda\n/home/projects/env/bin/python t.py",
                "module load gcc/12 openmpi\npython3 t.py",
                "cd /data\nsrun ./a",
                "mkdir -p out\nsrun --output=out/%t.log python3 t.py",
                "source /home/$USER/.bashrc\npython3 t.py",
                "setpkgs gcc\n./a",
                "conda env remove -n old\n./a",
                "make clean\nmake",
                "singularity pull docker://a/b\n./a",
                "xtester --help\n./a",
                "clear-eb\n./a",
                "ml GCC Boost\nsrun ./a --mode R",
                "shifterimg pull a/b\nshifter --image=a/b ./c",
                "conda deactivate\npython3 t.py",
                "print_to_log begin\n./a",
                "conda init bash\nsource ~/.bashrc\npython3 t.py",
                "singularity exec a.sif python3 -c 'import torch'\nsingularity exec a.sif python3 t.py",
                "srun ldd ./a\nsrun ./a",
                "grep x list > few\n./a few",
                "cat > a.in <<END\nx\nEND\n./a a.in",
                "curl -s -X POST --data x https://a.org/x\n./a",
                'eval "$(conda shell.bash hook)"\n./a',
            )
        ),
        *(
            ("unquoted-path", f"{HEAD}{lines}")
            for lines in (
                "cd $SLURM_SUBMIT_DIR\n./a",
                "W=$SLURM_SUBMIT_DIR\ncd $W\n./a",
                "W=$PWD\ncd $W\n./a",
                "W=$(pwd)\ncd ${W}\n./a",
                "source $VSC_DATA_VO/apps/activate.sh",
                "A=$STORE/data\ncp x $A/",
                "D=$(sed 's/ /_/g' name)\nmkdir -p out/$D",
            )
        ),
        ("shared-log", f"{HEAD}#SBATCH --output=log-%a.out\n./a $SLURM_ARRAY_TASK_ID"),
        ("shared-log", f"{HEAD}#SBATCH --output=2024.05.01.12.30.07.log\n./a"),
        ("task-total", f"{HEAD}#SBATCH -N 2 -n 2 --ntasks-per-node=4\nmpirun -n 2 ./a"),
        (
            "sleep-as-sync",
            f"{HEAD}dask scheduler --scheduler-file s &\nsleep 9\npython c.py --scheduler-file s",
        ),
        *(
            ("download-in-job", f"{HEAD}{lines}\nsrun ./a")
            for lines in (
                "curl -X POST --data-urlencode x=1 https://a.org/hook",
                "curl --request PUT https://a.org/x",
                "git clone $HOME/a b\ncd b\ngit pull",
            )
        ),
        ("bare-wait", f"{HEAD}srun jupyter lab &\nsrun dask-worker --nthreads 4 &\nwait"),
        ("bare-wait", f"{HEAD}work() {{\nsrun ./a $1 &\n}}\n# work 1\nwait\nwork 2"),
        # The script judges a run by its log, or stops a container
        (
            "no-errexit",
            f"{HEAD}./a > log\nif grep -q DONE out; then\ncp out /d\nelse\nmkdir error\nfi\nepilog.sh\ndate",
        ),
        ("no-errexit", f"{HEAD}./a\nif [ ! -f b.out ]; then\nexit 1\nfi\ndate"),
        ("no-errexit", f"{HEAD}singularity instance.stop web\nsleep 9"),
        ("no-errexit", f"{HEAD}$TOOLS/epilog.sh\n$TOOLS/cleansync.sh\ndate"),
        ("sorted-hosts", f"{PBS}#PBS -l select=2\nsort -u $PBS_NODEFILE > h\njulia --machine-file h a.jl"),
        *(
            ("ssh-between-nodes", f"{HEAD}{lines}")
            for lines in ('O="-N -f -R $P:localhost:$P"\nssh $O $USER@log-1.site', 'ssh -p 22 data "rm $F"')
        ),
        ("overwritten-path", f"{HEAD}export SHLVL=1 LOGNAME=a\nexport PATH=/usr/bin"),
        ("personal-path", f"{HEAD}source venv/bin/activate\nDATA=/home/alice/a/b\n# ./a $DATA\n./a"),
        ("no-pipefail", f"{HEAD}set -e\ngrep x a | sed s/x/y/ | column -t\n./a"),
        ("trap-status", f"{HEAD}end() {{\nif [ $? -gt 0 ]; then\nexit 1\nfi\nexit 0\n}}\ntrap end EXIT\n./a"),
        (
            "sleep-as-sync",
            f"{HEAD}for n in 1 2; do srun ./a & done\nsleep 9\nfor n in $(seq 2); do srun ./b & done",
        ),
        ("memory-unit", f"{HEAD}#SBATCH --mem=100 # MB\n./a"),
        ("ranks-mismatch", f"{HEAD}#SBATCH --ntasks=4\nmpirun -n $((SLURM_NTASKS + 2)) ./a"),
        (
            "blocking-steps",
            f"{HEAD}#SBATCH --nodes=1 --ntasks=2\nfor i in 1 2; do\nsrun ./a &\nwhile ps -p $!; do sleep 1; done\ndone",
        ),
        (
            "nodefile-count",
            f"{PBS}#PBS -l nodes=2:ppn=4\nnodes=$(wc -l < $PBS_NODEFILE)\nmpirun -np $nodes ./a",
        ),
        ("mpi-plugin", f"{HEAD}module load openmpi upcxx\nsrun --mpi=pmi2 ./a"),
        ("appended-deepspeed-env", f"{HEAD}echo A=1 >> .deepspeed_env\nsrun python3 t.py"),
        ("fixed-interface", f"{HEAD}#SBATCH --nodes=2\nexport NCCL_SOCKET_IFNAME=lo\nsrun ./a.sh"),
        ("shared-hostfile", f"{HEAD}H=hostfile\nsrun hostname > $H\ncat $H\nsrun python3 t.py"),
        (
            "shared-hostfile",
            f'{PBS}D=/a/$1\nif [ -e "$D" ]; then\nexit\nfi\nmkdir -p "$D"\ncd "$D"\nsort > hostfile\n./a',
        ),
        ("fixed-interface", f'{HEAD}if [ "$P" = a ]; then export NCCL_SOCKET_IFNAME=bond0; fi\nsrun ./a'),
        ("fixed-interface", f"{HEAD}echo export NCCL_SOCKET_IFNAME=bond0\nsrun ./a"),
        ("packed-chunks", f"{PBS}#PBS -l select=4\nmpiexec -n 16 -ppn 4 ./a"),
        ("home-directory", f"{PBS}#PBS -l select=1\nsingularity exec docker://brainlife/a ./main.py"),
        ("home-directory", f"{PBS}#PBS -l select=1:ncpus=4\nmodule load ncarenv\npython a.py"),
        ("home-directory", f"{PBS}#PBS -l select=1:ncpus=4\n#PBS -A NABC0012\npython a.py"),
        ("shared-hostfile", f"{HEAD}#SBATCH --dependency=singleton\n./a > hostfile"),
        (
            "shared-hostfile",
            f"{HEAD}S=/s/$SLURM_JOBID\ncd $S\nsrun hostname > $PWD/.machines\n./a --hosts .machines",
        ),
        (
            "shared-hostfile",
            f"{HEAD}D=YOURDIR\ncd $D\nsrun hostname > hostfile\nmpirun --hostfile hostfile ./a",
        ),
        ("fixed-port", f"{HEAD}N=8\ntorchrun --nproc_per_node $N --master_port 6000 t.py"),
        ("old-nccl", f"{HEAD}export NCCL_IB_CUDA_SUPPORT=0\nexport NCCL_IB_DISABLE=1"),
        ("personal-path", f"{HEAD}DISK=/a\nP=${{DISK}}/users/alice/work\nls $DISK/home/alice/x"),
        ("personal-path", f'{HEAD}ls "$DISK/users/alice/x" "$DISK"/users/alice/x'),
        ("unchecked-cd", f'{HEAD}cd /a\nD=/b\nRUN="python $D/prog.py $D/data"\nexec $RUN'),
        *(
            ("unchecked-cd", f"{HEAD}cd /a\nD=/b\n{lines}")
            for lines in (
                "map --un $D/u -n 3 $D/ref -1 $D/r > $D/o",
                "N=`echo $L | sed 's/\\.1/\\.2/g'`\nP=$D/x_`echo $L`\nmap -x $D/ref -o $P",
                "map $D/a $D/b | perl -ne 'print if $x[1] != 77' > $D/o",
                'sed -n "${SLURM_ARRAY_TASK_ID}p" $D/list\nIFS=, read -ra A < $D/b',
                "T=$(echo 2 - 1 | bc -l)\nsource activate env\nN=`wc -l < $PBS_NODEFILE`",
                "export OUT=/b/out\n/b/jobs/JRUN",
                "module load x\ncd ~/b || exit\n./a in.txt",
            )
        ),
        ("unquoted-path", "#!/bin/sh\n#SBATCH --time=01:00:00\ncat b > $1\nD=$1\ncat b > $D/c"),
        ("personal-path", f"{HEAD}srun singularity exec a.sif /home/test.x"),
        ("personal-path", f"{HEAD}ls /home/research/genome/a"),
        ("download-in-job", f"{HEAD}export https_proxy=http://p:3128\nwget https://a.org/b\nsrun ./a"),
        ("forced-devices", f"{HEAD}#SBATCH --gres=gpu:2\n{TWO_DEVICES}"),
        (
            "fixed-port",
            f"{HEAD}#SBATCH --array=1-2\nexport MASTER_PORT=52386 MASTER_ADDR=a\nif [ $SLURM_ARRAY_TASK_ID -eq 1 ]; then\n"
            "export NODE_RANK=0\nelse\nexport NODE_RANK=1\nfi\npython t.py",
        ),
        (
            "fixed-port",
            f"{HEAD}#SBATCH --array=0-1\nexport MASTER_PORT=29500\nexport RANK=$SLURM_ARRAY_TASK_ID\npython t.py",
        ),
        ("ranks-mismatch", f"{HEAD}#SBATCH --ntasks=1 --cpus-per-task=48\nmodule load impi\nmpirun -n 8 ./a"),
        ("late-directive", f"{HEAD}echo a\n#SBATCH --cpus-per-task=1\nsrun ./a"),
        ("no-errexit", f"{HEAD}python -m torch.utils.collect_env\necho Done"),
        ("conda-init", f"{HEAD}conda init bash\nsource ~/.bashrc\nconda activate a"),
        ("no-errexit", f"{HEAD}/apps/start_gui xterm\ndate"),
        ("no-errexit", f"{HEAD}cmsenv\nls"),
        ("nodes-mismatch", f"{PBS}#PBS -l nodes=100:ppn=4\nmpirun -np 384 ./a"),
        ("no-pipefail", f"{HEAD}set -e\nmd5sum a | tee -a sums\nsrun ./a"),
        ("no-pipefail", f"{HEAD}set -e\ndocker images | grep a | awk '{{print $1}}'\nsrun ./a"),
        ("sleep-as-sync", f"{HEAD}dask-scheduler --port 8786 &\nsleep 5\nsrun dask-worker a:8786"),
        (
            "ranks-mismatch",
            f"{HEAD}#SBATCH --gpus-per-node=4\naccelerate launch --num_processes 1 t.py --model_parallel",
        ),
        ("lost-status", f"{HEAD}srun find /data -name 'a*' | xargs ./b"),
        ("no-errexit", f"{HEAD}./a\nbash ~/resubmit.sh 30\ndate"),
        ("no-errexit", f"{HEAD}taskset -c -p $$ | cut -d: -f2\n./a"),
        ("no-errexit", f"{HEAD}cd build\nrm -rf *\ncmake ..\nmake\nmpirun ./a"),
        ("output-variable", f"{PBS}#PBS -l select=1:ncpus=4\n#PBS -j oe\n#PBS -e $PBS_JOBNAME.e\n./a"),
        ("output-directory", f"{PBS}#PBS -j eo\n#PBS -o logs/a\n./a"),
        ("ranks-mismatch", f"{PBS}#PBS -l select=1:ncpus=40\nmpirun --allow-run-as-root -np 8 ./a"),
        ("no-errexit", f"{HEAD}pip install a\npython -c 'import a; a.test()'\ndate"),
        ("no-errexit", f"{HEAD}mpirun -n 2 python -c 'import a; print(a)'\ndate"),
        ("no-errexit", f"{HEAD}python -m torch.utils.collect_env\ndate"),
        # Sites that give whole nodes
        *(
            (rule, f"{HEAD}#SBATCH -p {queue}\n#SBATCH --gres=gpu:4\n{place}\n{command}")
            for rule, command in (
                ("forced-devices", "export CUDA_VISIBLE_DEVICES=0,1,2,3\npython t.py"),
                ("fixed-port", "torchrun --nproc-per-node=4 --master-port=12802 t.py"),
            )
            for queue, place in (
                ("booster", "cd /p/project/a || exit 1"),
                ("develbooster", "jutil env activate -p a"),
                ("gpu-a100", "ibrun ./a"),
                ("normal", "cd /capstor/scratch/a || exit 1"),
                ("batch", "cd /lustre/orion/a || exit 1"),
            )
        ),
        ("forced-devices", f"{ALCF}export CUDA_VISIBLE_DEVICES=0,1\n./a"),
        ("fixed-port", f"{ALCF}export MASTER_PORT=23450\nmpiexec -n 4 python t.py"),
        # Paths that are all absolute
        ("unchecked-cd", f"{HEAD}cd /a\nldd /b/c.so"),
        ("unchecked-cd", f"{HEAD}D=/d\ncd /a\nrm -r $D/x\nmkdir $D/x\nbwa mem $D/r $D/a.gz | sort > $D/o"),
        ("unchecked-cd", f"{HEAD}cd /a\njava -Xmx4g -jar /b/p.jar --in /c/i --out /c/o"),
        # A module of Python that another one does not load again
        ("module-after-environment", f"{HEAD}ml Python/3.8\n. v/bin/activate\nml PyTorch/1.10\npython t.py"),
        # Words that are no paths
        ("home-directory", f"{TORQUE}A=`which tool.py`\npython $A"),
        ("home-directory", f"{TORQUE}singularity exec -B <folder of run.sh> a.sif b"),
        # A launcher of a container, a function without a call, a host outside of the job
        ("ranks-mismatch", f"{PBS}#PBS -l select=1:ncpus=8\n#PBS -v C_IMAGE=a\nmpirun -np 8 -x A ./a"),
        ("ranks-mismatch", f"{PBS}#PBS -l select=1:ncpus=8\nsingularity exec a.sif mpirun -np 8 -x A ./a"),
        ("ranks-mismatch", f"{HEAD}#SBATCH --gres=gpu:1\nf() {{\ntorchrun --nproc-per-node=4 t.py\n}}\n./a"),
        ("fixed-port", f"{HEAD}export MASTER_PORT=12345\nf() {{\ntorchrun --nproc-per-node=4 t.py\n}}\n./a"),
        *(
            ("ranks-mismatch", f"{HEAD}#SBATCH --gpus-per-node=1\n{ssh} torchrun --nproc-per-node=8 /d/t.py")
            for ssh in ("ssh me@big", "H=big\nssh -n $H", "S=/usr/bin/ssh\n$S big")
        ),
    ],
)
def test_what_is_no_finding(rule: str, text: str) -> None:
    assert found(text, rule) == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("no-errexit", f"{HEAD}work() {{\npython t.py\n}}\nwork\nls > list"),
        ("no-pipefail", f"{HEAD}set -e\ndocker images | grep a > list\nsrun ./a"),
        ("no-pipefail", f"{HEAD}set -e\nmd5sum -c a | mail b\nsrun ./a"),
        ("ranks-mismatch", f"{HEAD}#SBATCH --gpus-per-node=4\naccelerate launch --num_processes 1 t.py"),
        ("no-errexit", f"{HEAD}work() {{\npython t.py $1\n}}\nwork 1\nwork 2"),
        (
            "forced-devices",
            f"{PBS}#PBS -l select=1:ngpus=2 -l filesystems=home\n#PBS -q by-gpu\n{TWO_DEVICES}",
        ),
        ("forced-devices", f"{HEAD}#SBATCH -p gpu-a100-small\nibrun ./a\n{TWO_DEVICES}"),
        ("forced-devices", f"{HEAD}#SBATCH -p booster --gres=gpu:3\n{TWO_DEVICES}"),
        *(
            ("unchecked-cd", f"{HEAD}cd /a\n{lines}")
            for lines in (
                "E=`pwd`\ncd /b\n$E/x /c",
                "cd b\n./a in.txt",
                "cmake -DA=/b /c",
                "map /b /c > o.txt",
                "/b/run",
                "sed s/a/b/ c.txt",
            )
        ),
        ("unchecked-cd", f"{HEAD}cd /a\ncd ..\ncd /a\n./d e.txt"),
        ("unquoted-path", "#!/bin/sh\n#SBATCH --time=01:00:00\nD=$1\nrm -r $D"),
        ("personal-path", f"{HEAD}singularity exec a.sif /home/ann/test.x"),
        ("download-in-job", f"{HEAD}export no_proxy=localhost\nwget https://a.org/b\nsrun ./a"),
        (
            "fixed-port",
            f"{HEAD}#SBATCH --array=0-1\nexport MASTER_PORT=29500\npython t.py --seed $SLURM_ARRAY_TASK_ID",
        ),
        ("late-directive", f"{HEAD}echo a\n#SBATCH --cpus-per-task=1\nsrun ./a $SLURM_CPUS_PER_TASK"),
        *(
            ("unchecked-cd", f"{HEAD}cd /a\n{lines}")
            for lines in ("cat b", "ls .", "cat $X", "grep a /b > c.txt", "sort /b -o c.txt", "ln -s /b/c")
        ),
        (
            "module-after-environment",
            f"{HEAD}ml Anaconda3/2022\n. v/bin/activate\nml PyTorch/1.10\npython t.py",
        ),
        ("module-after-environment", f"{HEAD}ml Python/3.8\n. v/bin/activate\nml Python/3.9\npython t.py"),
        ("home-directory", f"{TORQUE}A=`which tool.py`\npython a.py"),
        ("ranks-mismatch", f"{PBS}#PBS -l select=1:ncpus=8\nmpirun -np 8 -x A ./a"),
        *(
            (
                "ranks-mismatch",
                f"{HEAD}#SBATCH --gpus-per-node=1 -w big\n{ssh} torchrun --nproc-per-node=8 /d/t.py",
            )
            for ssh in ("ssh big", "ssh localhost", "ssh $(hostname)")
        ),
        ("ranks-mismatch", f"{HEAD}#SBATCH --gres=gpu:1\nf() {{\ntorchrun --nproc-per-node=4 t.py\n}}\n$1"),
        *(
            ("no-errexit", f"{HEAD}{lines}")
            for lines in (
                "ml anaconda\nC='python t.py'\nconda activate a\nsrun $C",
                "module load PyTorch/2.1\nsource env/bin/activate\ntorchrun t.py",
                "cp /data/a.in .\nsrun ./a",
                "git pull\nsrun ./a",
                "cmake ..\nmake",
            )
        ),
        ("unquoted-path", f"{HEAD}cd /data\ncd $SLURM_SUBMIT_DIR\n./a"),
        ("unquoted-path", f"{HEAD}set -e\ncd $SLURM_SUBMIT_DIR\n./a"),
        ("unquoted-path", f"{HEAD}cd $SLURM_SUBMIT_DIR/run\n./a"),
        ("unquoted-path", f"{HEAD}rm -rf $work/a"),
        ("shared-log", f"{HEAD}#SBATCH --output=log-%x.out\n./a"),
        ("download-in-job", f"{HEAD}curl -O https://a.org/x\nsrun ./a"),
        ("download-in-job", f"{HEAD}git clone https://a.org/x\ngit pull\nsrun ./a"),
        ("bare-wait", f"{HEAD}srun jupyter lab &\nsrun python3 t.py &\nwait"),
        *(
            ("personal-path", f"{HEAD}{lines}")
            for lines in (
                "DATA=/home/alice/a/b\n. own.sh",
                "DATA=/home/alice/a/b\nexport DATA\n./a",
                "export DATA=/home/alice/a/b\n./a",
                "DATA=/home/alice/a/b ./a",
                "PATH=/home/alice/a/b:$HOME\n./a",
            )
        ),
        ("bare-wait", f"{HEAD}work() {{\nsrun ./a $1 &\n}}\nwork 1\nwait"),
        ("bare-wait", f"{HEAD}for a in 1 2; do\nwait\nsrun ./a $a &\ndone"),
        ("bare-wait", f"{HEAD}all() {{\nwait\n}}\nsrun ./a &\nall"),
        ("no-pipefail", f"{HEAD}set -e\n./a | sed s/x/y/"),
        ("no-pipefail", f"{HEAD}set -e\ngrep x a | sort > b"),
        ("trap-status", f"{HEAD}end() {{\nrm a\nexit 0\n}}\ntrap end EXIT\n./a"),
        ("memory-unit", f"{HEAD}#SBATCH --mem=100 # of memory\n./a"),
        ("ranks-mismatch", f"{HEAD}#SBATCH --ntasks=4\nmpirun -n $((4 + 2)) ./a"),
        (
            "blocking-steps",
            f"{HEAD}#SBATCH --nodes=1 --ntasks=2\nfor i in 1 2; do\nsrun ./a &\nif (( i == 2 )); then wait; fi\ndone",
        ),
        (
            "nodefile-count",
            f"{PBS}#PBS -l nodes=2:ppn=4\nnodes=$(wc -l < $PBS_NODEFILE)\nmpirun -np 8 ./a $nodes",
        ),
        ("mpi-plugin", f"{HEAD}module load openmpi\nsrun --mpi=pmi2 ./a"),
        ("appended-deepspeed-env", f"{HEAD}echo A=1 >> .deepspeed_env\ndeepspeed t.py"),
        ("fixed-interface", f"{HEAD}#SBATCH --nodes=2\nexport NCCL_SOCKET_IFNAME=lo\nsrun python3 t.py"),
        ("shared-hostfile", f"{HEAD}srun hostname > hostfile\nsrun -n 1 date\n./a.sh"),
        (
            "shared-hostfile",
            f"{HEAD}srun hostname > hostfile\nfor i in $(cat hostfile); do srun ./a $i; done",
        ),
        ("shared-hostfile", f'{PBS}D=/a\nmkdir -p "$D"\ncd "$D"\nsort > hostfile\n./a'),
        ("fixed-interface", f"{HEAD}export NCCL_SOCKET_IFNAME=bond0\nsrun ./a"),
        ("packed-chunks", f"{PBS}#PBS -l select=4:ncpus=16\nmpiexec -n 16 -ppn 4 ./a"),
        ("shared-hostfile", f"{HEAD}#SBATCH --dependency=afterok:1\n./a > hostfile"),
        ("shared-hostfile", f"{HEAD}S=/s\ncd $S\nsrun hostname > $PWD/.machines\n./a --hosts .machines"),
        ("shared-hostfile", f"{HEAD}D=/d\ncd $D\nsrun hostname > hostfile\nmpirun --hostfile hostfile ./a"),
        ("fixed-port", f"{HEAD}torchrun --nproc_per_node 4 --master_port 6000 t.py"),
        ("old-nccl", f"{HEAD}export NCCL_IB_CUDA_SUPPORT=0"),
        ("personal-path", f'{HEAD}A=/home/alice/work\nls --in="/users/alice/b"'),
        ("unchecked-cd", f"{HEAD}cd /a\nexec ./prog out/b"),
        ("conda-init", f"{HEAD}conda init bash\nconda activate a\nsource ~/.bashrc"),
        ("array-output", f"{HEAD}#SBATCH --array=2-3\n#SBATCH --output=a.log\n./a"),
        ("used-port", f"{HEAD}P_PORT=$(ss -tan | cut -f 2 | shuf -n 1)\n./a --port $P_PORT"),
        ("used-port", f"{HEAD}export P_PORT=$(ss -tan | cut -f 2 | shuf -n 1)\n./a"),
        ("used-port", f"{HEAD}P_PORT=$(ss -tan | cut -f 2 | shuf -n 1)\nexport P_PORT\n./a"),
        ("sleep-as-sync", f"{HEAD}jupyter lab --port 80 &\nsleep 5\njupyter lab list"),
        ("no-pipefail", f"{HEAD}set -e\n./show | sort | grep -v FAIL > a || exit 1"),
    ],
)
def test_what_is_still_a_finding(rule: str, text: str) -> None:
    assert found(text, rule)


@pytest.mark.parametrize(
    ("rule", "text", "level"),
    [
        ("fixed-port", f"{HEAD}#SBATCH --nodes=4\n#SBATCH --gres=gpu:4\nMASTER_PORT=29500\nsrun ./a", "note"),
        (
            "fixed-port",
            f"{HEAD}#SBATCH --array=0-9\ntorchrun --nproc_per_node 2 --master_port 6005 t.py",
            "warning",
        ),
        (
            "fixed-port",
            f"{HEAD}#SBATCH --array=0-9%1\ntorchrun --nproc_per_node 2 --master_port 6005 t.py",
            "note",
        ),
        ("fixed-port", "#!/bin/bash\n#PBS -l select=4:system=a\nMASTER_PORT=29500\nmpiexec -n 8 ./a", "note"),
        (
            "fixed-port",
            "#!/bin/bash\n#PBS -l select=4:ncpus=8\nMASTER_PORT=29500\nmpiexec -n 8 ./a",
            "warning",
        ),
        (
            "fixed-port",
            f"{HEAD}#SBATCH --nodes=4\n#SBATCH --gres=gpu:1\nMASTER_PORT=29500\nsrun ./a",
            "warning",
        ),
        ("conda-init", f'{HEAD}eval "$(conda shell.bash hook)"\nconda init\nconda activate a', "note"),
        ("conda-init", f"{HEAD}source ~/miniconda3/bin/activate\nconda init\nconda activate a", "note"),
        ("home-directory", f"{PBS}#PBS -l select=1:ncpus=4\npython a.py", "warning"),
        ("home-directory", f"{PBS}python a.py", "warning"),
        ("home-directory", "#!/bin/bash\n#PBS -N a\npython a.py", "note"),
        ("unset-variable", f"{HEAD}sshkey=$ssh_key\n./a $sshkey", "note"),
        ("unset-variable", f"{HEAD}sshkey=b\n./a $ssh_key", "warning"),
        ("output-variable", f"{PBS}#PBS -o $PBS_JOBNAME.log\n./a", "note"),
        ("output-variable", f"{PBS}#PBS -l select=1:ncpus=4\n#PBS -o $PBS_JOBNAME.log\n./a", "note"),
        ("output-variable", f"{PBS}#PBS -l select=1:ncpus=4\n#PBS -o $HOME/a.log\n./a", "warning"),
        ("output-variable", f"{HEAD}#SBATCH -o /logs/a.$USER\n./a", "note"),
        ("own-folder", f'{HEAD}PYTHONPATH="$(dirname $0)/..":$PYTHONPATH python3 /a/train.py', "note"),
        ("conda-init", f"{HEAD}source activate\nconda init\nconda activate a", "note"),
        ("conda-init", f"{HEAD}source ~/.bashrc\nconda init\nconda activate a", "note"),
        ("conda-init", f"{HEAD}ml conda snakemake\nconda init bash\nsnakemake", "note"),
        ("conda-init", f"{HEAD}conda init bash\nsource activate a", "warning"),
        ("conda-init", f'{HEAD}conda init\neval "$(conda shell.bash hook)"\nconda activate a', "note"),
        ("conda-init", f"{HEAD}module load anaconda3\nconda init\nconda activate a", "warning"),
        ("short-walltime", "#!/bin/bash\n#SBATCH --time=120:00\n./a", "note"),
        ("short-walltime", "#!/bin/bash\n#SBATCH --time=01:00\nsrun ./hello.mpi", "note"),
        ("short-walltime", "#!/bin/bash\n#SBATCH --time=01:00\nsrun python3 train.py", "warning"),
        ("no-walltime", "#!/bin/bash\n#SBATCH -n 2 --qos=6hours -J a\nsrun ./a", "note"),
        (
            "no-walltime",
            "#!/bin/bash\n#SBATCH -c 4 --gres=gpu:1\n# Train the model\nsrun python $CMD",
            "note",
        ),
        ("no-walltime", "#!/bin/bash\n#SBATCH -c 4 --gres=gpu:1\n# Run it\nsrun python train.py", "warning"),
        ("no-walltime", "#!/bin/bash\n#SBATCH -c 4 --gres=gpu:1 --constraint=a\n./validate", "note"),
        (
            "no-walltime",
            "#!/bin/bash\n#SBATCH -c 4 --gres=gpu:1\npython /a/cnn_benchmarks.py --print_training_accuracy=True",
            "note",
        ),
        ("no-errexit", f"{HEAD}srun ./a\necho a\ndone", "note"),
        ("too-many-threads", f"{THREADS}mpirun -np 8 lmp -in a.in", "note"),
        ("too-many-threads", f"{THREADS}mpirun -np 8 lmp -sf omp -in a.in", "warning"),
        ("no-walltime", f"{NODES}srun -n $SLURM_JOB_NUM_NODES ./a", "note"),
        ("no-walltime", f"{NODES}#SBATCH --nodes=2\nsrun -n $SLURM_JOB_NUM_NODES ./a", "warning"),
        ("no-errexit", f"{HEAD}sha256sum -c data.sha256\nexit 0", "warning"),
        (
            "no-errexit",
            f"{HEAD}end() {{\nscancel $1\n}}\nmake\n./a\nif [ ! -f b ]; then\nend 1\nfi\ndate",
            "note",
        ),
        ("no-errexit", f"{HEAD}make\nctest -D Nightly\nexit 0", "note"),
        ("mpi-options", f"{HEAD}module load intel-mpi\nconda activate a\nmpirun -npernode 4 ./a", "note"),
        ("misspelt-variable", f"{TORQUE}echo `cat $PSB_NODEFILE`\n./a", "note"),
        ("misspelt-variable", f"{TORQUE}./a `cat $PSB_NODEFILE`", "warning"),
        ("nodes-mismatch", f"{PBS}#PBS -l nodes=100:ppn=4\nmpirun -np 376 ./a", "warning"),
        (
            "sleep-as-sync",
            f"{HEAD}./lab > log &\nsleep 60\nJUPYTER_TOKEN=`grep a log`\nssh b $JUPYTER_TOKEN",
            "note",
        ),
        *(
            (
                "signal-to-steps",
                f"{HEAD}#SBATCH --gpus=4 --signal=USR1@60\ntorchrun --nproc-per-node=4 {program}",
                level,
            )
            for program, level in (
                ("evaluate_ppo.py", "note"),
                ("main.py --eval", "note"),
                ("main.py --eval-steps 4", "warning"),
            )
        ),
        ("mpi-options", f"{HEAD}conda activate a\nmodule load intel-mpi\nmpirun -npernode 4 ./a", "warning"),
        ("mpi-options", f"{HEAD}module load intel-mpi\n. v/bin/activate\nmpirun -npernode 4 ./a", "warning"),
        ("no-errexit", f"{HEAD}./a\neval \"echo $(date -ud '@$T' +'%H hr')\"", "warning"),
        ("no-walltime", "#!/bin/bash\n#SBATCH -n 2 -p unlimitq -J a\nsrun ./a", "note"),
        *(
            ("signal-to-steps", f"{HEAD}#SBATCH --signal=TERM@60\nend() {{\nrm a\n}}\n{lines}", level)
            for lines, level in (
                ("trap end TERM\nsrun ./a\nend", "note"),
                ("trap end TERM\nsrun ./a", "warning"),
            )
        ),
        ("bare-wait", f"{HEAD}cat list | while read -r a; do\nsrun ./a $a &\ndone\nwait", "warning"),
        ("no-errexit", f"{HEAD}ctest -j 4\nexit 0", "note"),
        ("no-errexit", "#!/bin/bash\n#SBATCH --time=20:00:00\nctest -j 4\nexit 0", "warning"),
        ("no-errexit", f"{HEAD}send() {{\nmail -s $1 a@b < log\n}}\nmake\n./a > log\nsend a\ndate", "note"),
        ("no-errexit", f"{HEAD}./a > log\necho done | mail -s done a@b\ndate", "warning"),
        ("no-errexit", f"{HEAD}python -c 'import a; a.run()'\ndate", "warning"),
        *(
            ("no-walltime", f"{NODES}#SBATCH --nodes=2\n{lines}", level)
            for lines, level in (
                ("module load a\n# ./a", "note"),
                ("source ~/.bashrc\nconda activate a\nsrun hostname\nnvidia-smi", "note"),
                ("for i in 1 2; do\nsed s/X/$i/ a > b\nsbatch b\ndone", "note"),
                ("mpirun ./hello_world", "note"),
                ("sleep 10", "note"),
                ("python3 order.py hosts\nmpirun -np 16 /opt/nccl-tests/build/all_reduce_perf -b 1G", "note"),
                ("mpirun ./all_reduce", "warning"),
                ("#SBATCH -p quickq\nmpirun ./a", "note"),
                ("#SBATCH -p quicksand\nmpirun ./a", "warning"),
                ("sleep 4h", "warning"),
                ("while squeue -j 4; do\nsleep 60\ndone", "warning"),
                ("./test data", "warning"),
                ("eval $command", "warning"),
                ("source run.sh", "warning"),
                ("if ./a; then", "warning"),
            )
        ),
        *(
            ("shared-hostfile", f"{HEAD}scontrol show hostnames > nodes.txt\n{lines}", level)
            for lines, level in (
                ("while read a; do\nb+=($a)\ndone < nodes.txt\nmpirun ./a\nrm nodes.txt", "note"),
                ("while read a; do\nssh $a b\ndone < nodes.txt\nmpirun ./a", "warning"),
                ("a=$(cat nodes.txt)\nmpirun ./a nodes.txt", "warning"),
            )
        ),
        (
            "shared-hostfile",
            f"{HEAD}srun hostname > hostfile\nfor i in $(cat hostfile); do\na+=,$i\ndone\nmpirun ./a",
            "note",
        ),
        ("inert-directive", f"{HEAD}#SBTACH -J a\n./a", "note"),
        ("inert-directive", f"{HEAD}#BATCH --ntasks=1\n./a", "note"),
        ("inert-directive", f"{HEAD}#BATCH --mem=8G\n./a", "warning"),
        ("bad-count", f"{HEAD}#SBATCH --ntasks=\n./a", "warning"),
        ("bad-count", f"{HEAD}#SBATCH -J=a\n./a", "note"),
        (
            "no-errexit",
            f"{HEAD}./a\nif [ $? -ne 0 ]; then\necho FAILED\nexit 0\nfi\n./b\n./c > log\ndate",
            "note",
        ),
        ("no-errexit", f"{HEAD}srun -n 2 test\ndate", "warning"),
        ("no-errexit", f"{HEAD}srun tar xf a.tgz -C /tmp\n$SRUN /tmp/b\ndate", "warning"),
        ("nodefile-count", f"{PBS}NNODES=$(wc -l < $PBS_NODEFILE)\n./a $NNODES", "note"),
        ("sorted-hosts", f"{PBS}#PBS -l select=2\nsort -u $PBS_NODEFILE > hosts\npssh -h hosts date", "note"),
        (
            "sorted-hosts",
            f"{PBS}#PBS -l select=2\nsort -u $PBS_NODEFILE > hosts\n./a --hosts hosts",
            "warning",
        ),
        ("repeated-directive", f"{HEAD}#SBATCH -o a.out\n#SBATCH -o a.err\n./a", "note"),
        ("repeated-directive", f"{HEAD}#SBATCH -o a.out\n#SBATCH -o terra.out\n./a", "note"),
        ("repeated-directive", f"{HEAD}#SBATCH -p a\n#SBATCH -p b\n./a", "note"),
        ("repeated-directive", f"{HEAD}#SBATCH -n 1\n#SBATCH -n 4\n./a", "note"),
        ("repeated-directive", f"{HEAD}#SBATCH -n 4\n#SBATCH -n 1\n./a", "warning"),
        ("repeated-directive", f"{HEAD}#SBATCH -t 2-0\n./a", "note"),
        ("repeated-directive", f"{HEAD}#SBATCH -t 10\n./a", "warning"),
        ("repeated-directive", f"{HEAD}#SBATCH --mem=9000\n#SBATCH --mem=10G\n./a", "warning"),
        ("repeated-directive", f"{HEAD}#SBATCH --gres=gpu:1\n#SBATCH --gres=gpu:a100:1\n./a", "note"),
        ("repeated-directive", f"{HEAD}#SBATCH --gres=gpu:a100:1\n#SBATCH --gres=gpu:1\n./a", "warning"),
        ("repeated-directive", f"{PBS}#PBS -l mem=8gb\n#PBS -l mem=4gb\n./a", "note"),
        ("repeated-directive", f"{PBS}#PBS -l mem=4gb\n#PBS -l mem=8gb\n./a", "warning"),
        ("rm-variable", f"{HEAD}cd $FASTDIR\n./a\nrm -rf $FASTDIR/*", "note"),
        ("rm-variable", f"{HEAD}source ./names\n./a\nrm -rf $FASTDIR/*", "note"),
        ("rm-variable", f"{HEAD}./a\nrm -rf $FASTDIR/*\nls $FASTDIR", "warning"),
        ("misspelt-variable", f"{HEAD}if [ $SLURM_PARTITION = a ]; then b; fi\n./a", "note"),
        (
            "misspelt-variable",
            f"{HEAD}if [ $SLURM_PARTITION = a ]; then b; fi\n./$SLURM_PARTITION",
            "warning",
        ),
        ("shared-hostfile", f"{HEAD}srun hostname > hostfile\njulia t.jl", "note"),
        ("shared-hostfile", f"{HEAD}srun hostname > hostfile\njulia --machine-file hostfile t.jl", "warning"),
        ("misspelt-variable", f"{HEAD}a=$(scontrol show hostnames $SLURM_JOB_NODELIS)\n./a $a", "note"),
        ("misspelt-variable", f"{HEAD}./a $SLURM_JOB_NODELIS", "warning"),
    ],
)
def test_the_level_of_a_finding(rule: str, text: str, level: str) -> None:
    assert [one.severity for one in found(text, rule)] == [level]


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("SLURM_CPUS_PER_TASK", "use NCPUS"),
        ("SLURM_JOB_PARTITION_X", "use PBS_* variables, or write the value"),
    ],
)
def test_the_counterpart_of_a_variable(name: str, fix: str) -> None:
    assert [one.fix for one in found(f"{PBS}#PBS -l select=1:ncpus=4\n./a ${name}", "foreign-variable")] == [
        fix
    ]


def test_the_hook_of_another_shell() -> None:
    (only,) = found("#!/bin/zsh\n#SBATCH --time=01:00:00\nmamba activate a\n./a", "conda-hook")
    assert only.fix == 'write eval "$(conda shell.zsh hook)" before it, and conda in its place'


@pytest.mark.parametrize(
    "command",
    ["matlab -batch a", "matlab -r 'try; a; catch; exit(1); end'", "matlab -r 'a' -batch", "octave < a"],
)
def test_a_status_that_matlab_keeps(command: str) -> None:
    (only,) = found(f"{HEAD}{command}\ndate", "no-errexit")
    assert only.fix == "write status=$? behind it, and exit $status at the end"


@pytest.mark.parametrize(
    ("removal", "keeps"),
    [
        ("rm -rf ~/raw/out", False),
        ("/bin/rm -r /data/a/raw", False),
        ("for a in 1 2; do rm -rf /data/raw/$a; done", False),
        ("rm -rf /data/tmp", True),
        ("rm -f ~/raw/out", True),
        ("rm -rf ~/runs/$SLURM_JOB_ID", True),
        ("rm -rf $WORK", True),
    ],
)
def test_no_status_is_kept_behind_a_program_whose_data_are_removed(removal: str, keeps: bool) -> None:
    (only,) = found(f"{HEAD}./a\n{removal}\ndate", "no-errexit")
    end = "write || exit 1 behind it, before the files are removed"
    assert only.fix == ("write status=$? behind it, and exit $status at the end" if keeps else end)


@pytest.mark.parametrize(
    ("begin", "end", "dollar"),
    [
        ("sbatch << END", "END", r"\$"),
        ("sbatch << 'END'", "END", "$"),
        ("id=`sbatch << END", "END\n`", r"\\\$"),
        ("id=$(sbatch << END", "END\n)", r"\$"),
    ],
)
def test_the_dollar_of_a_fix_in_a_here_document(begin: str, end: str, dollar: str) -> None:
    text = f"#!/bin/bash\n{begin}\n{HEAD}./a\ndate\n{end}"
    (only,) = found(text, "no-errexit")
    assert only.fix == f"write status={dollar}? behind it, and exit {dollar}status at the end"


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("/usr/bin/time -v $ENV/bin/python3 -u a.py", "python3"),
        ('nice -n 5 "$A"', '"$A"'),
        ("poetry install\n./a", "a"),
        ('apptainer run --nv "$IMAGE" "$SCRIPT" --port "$PORT"', "apptainer"),
    ],
)
def test_the_program_behind_a_wrapper(line: str, program: str) -> None:
    (only,) = found(f"{HEAD}{line}\ndate", "no-errexit")
    assert only.reason.startswith(f"if {program} fails, ")


def test_the_time_in_the_fix_of_a_job_without_one() -> None:
    (only,) = found(f"{NODES}#SBATCH --nodes=2\nsrun ./a", "no-walltime")
    assert only.fix == "add #SBATCH --time=HH:MM:SS, with more time than the job needs"


def test_a_wait_for_a_service_does_not_end() -> None:
    text = f"{HEAD}srun -n 1 ./ipcontroller_new.sh &\nsleep 900\nsrun ./a\nwait"
    assert [one.severity for one in found(text, "no-errexit")] == []
    (only,) = found(text.replace("ipcontroller_new", "part"), "no-errexit")
    assert only.severity == "warning"


def test_lines_for_a_person_with_a_script_in_between() -> None:
    text = "screen -S a\nsource ~/.bash_profile\n#!/bin/bash\n#SBATCH --time=1:00:00\nsource ~/.bashrc\n"
    assert found(text, "bashrc") == []


@pytest.mark.parametrize(
    ("name", "body"), [("a.sh", "# NEXTFLOW TASK: a"), ("a.sh", "nxf_main() {\n:\n}"), ("rfm_b_job.sh", "")]
)
def test_what_a_program_has_written_gets_errors_only(name: str, body: str) -> None:
    text = f"{HEAD}#SBATCH --output=a.log\n{body}\nsource ~/.bashrc\nsrun python3 /home/alice/t.py\ndate\n"
    assert check(text.encode(), name) == []
    assert [one.rule for one in check(f"{text}#SBATCH --mem=4G\ndate\n".encode(), name)] == ["late-directive"]
    assert len(check(text.replace(body, "").encode(), "b.sh")) > 3


def test_scripts_that_other_commands_read() -> None:
    text = "#PBS -l walltime=1:00:00\n#PBS -N\n./a $MOAB_JOBARRAYINDEX\n"
    assert {one.severity for one in check(text.encode(), "a.pbs") if one.rule == "bad-value"} == {"note"}
    text = "alias a='echo \"\n#SBATCH -n 1\n\"'\nif true; then\nelse\n"
    assert "syntax-error" not in [one.rule for one in check(text.encode(), ".zshrc")]
    assert "syntax-error" in [one.rule for one in check(text.encode(), "a.sh")]


def test_placeholders_of_a_template() -> None:
    text = f"{HEAD}#SBATCH -A {{account}}\n#SBATCH -p {{queue}}\n./a"
    (only,) = [one for one in check(text.encode(), "a.tpl") if one.rule == "placeholder"]
    assert (only.severity, only.fix) == ("note", "check the script that is made of the template")


@pytest.mark.parametrize(
    "end", ["ws_release data", "finalize_job", "mpirun -n 2 $D/bin/finalize_daemon", "bash runAll_2.sh a"]
)
def test_a_command_that_cleans_up_is_no_work(end: str) -> None:
    (only,) = found(f"{HEAD}./solver a\n{end}\necho done", "no-errexit")
    assert only.reason.startswith("if solver fails")


def test_a_signal_that_a_trap_cannot_catch_among_others() -> None:
    (only,) = found(f"{HEAD}trap 'kill $a' EXIT TERM KILL", "trap-kill")
    assert (only.severity, only.fix) == ("note", "remove KILL")


def test_a_find_that_deletes_no_file_behind_a_cd() -> None:
    for words, deletes in (("-type f", True), ("-type d -empty", False)):
        (one,) = found(f"{HEAD}cd a\nfind . {words} -delete", "unchecked-cd")
        assert ("deletes the files" in one.reason) == deletes


def test_late_directives_that_change_nothing() -> None:
    (error,) = found(f"{TORQUE}#PBS -j oe\ncd /a || exit\n#PBS -e log\n./a", "late-directive")
    assert error.severity == "note"
    (name,) = found(f"{TORQUE}a=1\n#PBS -N $a\n./a", "late-directive")
    assert (name.severity, name.fix.startswith("give it to qsub"), name.edits) == ("note", True, ())
    (log,) = found(f"{TORQUE}a=1\n#PBS -o $PBS_JOBID.log\n./a", "late-directive")
    assert (log.fix, len(log.edits)) == ("move it above the first command", 2), (
        "Torque replaces the id of the job"
    )


@pytest.mark.parametrize(("stages", "severity"), [(8, "warning"), (3, "error")])
def test_stages_that_older_versions_of_megatron_reduce(stages: int, severity: str) -> None:
    sizes = f"--tensor-model-parallel-size 2 --pipeline-model-parallel-size {stages}"
    (one,) = found(
        f"{HEAD}#SBATCH -N 2\nsrun -n 2 torchrun --nnodes=2 --nproc-per-node=4 t.py {sizes}", "world-size"
    )
    assert (one.severity, "older versions" in one.reason) == (severity, severity == "warning")


def test_a_file_that_is_a_part_of_a_script(tmp_path: Path) -> None:
    text = b"#SBATCH --time=1\n./a\n"
    (tmp_path / "part.sh").write_bytes(text)
    for line, rules in (("sbatch part.sh", ["no-shebang"]), ("cat head.txt part.sh > job.sh", [])):
        (tmp_path / "make.sh").write_text(f"{line}\n")
        assert [
            one.rule
            for one in check(text, str(tmp_path / "part.sh"), folder=str(tmp_path))
            if one.rule == "no-shebang"
        ] == rules


def test_a_comment_that_has_the_time_limit_of_the_queue() -> None:
    text = "#!/bin/bash\n#PBS -l nodes=2:ppn=4\n#PBS -q long\n"
    assert [one.severity for one in found(f"{text}#   long   24hr\n./a", "no-walltime")] == []
    assert [one.severity for one in found(f"{text}#   short  2hr\n./a", "no-walltime")] == ["warning"]


def test_a_test_in_a_damaged_script_is_no_program() -> None:
    text = f"{HEAD}if [ $? -ne 0 ]\ncat $V | java b > c\nif [ $? -ne 0 ]\nthen\n./a | \\\nawk b > T\n"
    (only,) = found(text, "no-errexit")
    assert only.reason.startswith("if 'java b' fails")


def test_the_fix_of_a_static_rendezvous_has_a_node_rank() -> None:
    text = f"{HEAD}#SBATCH --nodes=2\ntorchrun --nnodes=2 --nproc-per-node=4 --master-addr=$A t.py\n"
    (only,) = found(text, "first-node-only")
    assert "--node-rank" in only.fix


def test_the_slots_that_all_launchers_of_a_script_need() -> None:
    text = f"{HEAD}#SBATCH --ntasks=1 --cpus-per-task=48\nmpirun -n 2 ./a\nmpirun -n 8 ./a\n"
    assert [(one.severity, one.fix) for one in found(text, "ranks-mismatch")] == [
        ("note", "request 8 slots: --ntasks=8 --cpus-per-task=6")
    ] * 2


def test_a_cd_to_where_the_job_is() -> None:
    lines = [one.line for one in found(f"{HEAD}cd /a\n./b c.txt\ncd /a\n./d e.txt\n", "unchecked-cd")]
    assert lines == [3]


def test_the_order_of_one_host() -> None:
    text = '#!/bin/bash\n#PBS -l nodes={}:ppn=4\nsort -u "$PBS_NODEFILE" > hosts\nmpirun -f hosts ./a'
    assert [len(found(text.format(nodes), "sorted-hosts")) for nodes in (1, 2)] == [0, 1]


def test_a_dash_in_a_comment_is_no_option() -> None:
    text = f"{TORQUE}#PBS -t 1-2  # 1.5 hours {{}} at most\n./a"
    found_of = [found(text.format(words), "trailing-comment")[0].severity for words in ("- 2", "-l x")]
    assert found_of == ["note", "warning"]


def test_a_select_that_the_outer_shell_completes() -> None:
    inner = "#!/bin/bash\n#PBS -N a\n#PBS -l select=$N:ncpus=2\n#PBS -l place=scatter\n./a\n"
    assert found(f"{HEAD}cat <<E > job.pbs\n{inner}E\nqsub job.pbs\n", "bad-select") == []


def test_the_joined_log_of_nqsv() -> None:
    assert found("#!/bin/bash\n#PBS -j o\n#PBS -q gpu\n./a\n", "bad-choice") == []
    assert found("#!/bin/bash\n#PBS -j oa\n#PBS -q gpu\n./a\n", "bad-choice") != []


@pytest.mark.parametrize(
    "lines",
    [
        # What only prints, or sends a message
        *("./deviceQuery --version\nsrun python3 a.py", "ompi_info\nsrun ./a", "make info\nmake install"),
        *("dcgmi stats -e\nsrun python3 a.py", "nvidia-modprobe -u\nsrun python3 a.py"),
        "python3 - <<E\nimport torch\nprint(torch.__version__)\nE\nsrun ./a",
        "python3 -m torch.utils.collect_env\nsrun python3 a.py",
        *(
            "ctest -N\nsrun ./a",
            "srun -N 2 mkdir -p /dev/shm/a\nsrun ./a",
            "srun echo start\nsrun ./a",
            "tests() {\nctest\n}\n# tests\nsrun ./a",
            "pip install --no-index --upgrade pip\nsrun python3 a.py",
            "snakemake --cores 1 --unlock\nsnakemake -c 4",
        ),
        "aws s3 cp --dryrun s3://a .\nsrun ./a",
        *("mail -s done $USER\nsrun ./a", "python3 $DIR/send_mail.py\nsrun python3 a.py"),
        *("mv a.log a.log.old\nsrun python3 a.py", "wandb artifact cache cleanup 1GB\nsrun python3 a.py"),
        # No commands: an empty shell, an invisible sign, an option behind a lost backslash, a text to fill in
        *(
            "bash\nsrun ./a",
            "\u200b\nsrun ./a",
            "files = a.fa\nsrun ./a $files",
            "srun python3 a.py\n--steps 3",
        ),
        "p=[full path to your data]\nsrun ./a",
        # Nothing follows
        *("srun ./a &\neval $CMD", "eval $CMD", "for n in 8; do srun ./a $n; done"),
        "sizes=(768)\nfor n in ${sizes[@]}; do\nsrun ./a $n\ndone",
        *("for i in {1..1}; do srun ./a; done", "for i in `seq 1 1`; do srun ./a; done"),
        # The script judges the result, or submits itself again
        "srun ./a > a.log\nif grep -q passed a.log; then\nmv a.log ok\nelse\nmv a.log bad\nfi",
        "srun ./a\nif [ ! -s out.h5 ]; then\nexit 1\nfi\ncp out.h5 /data",
        "srun ./a\nok=$(checkout $1)\nif [ $ok -eq 0 ]; then\nmv a.log ok\nfi\ncp out /data",
        "srun ./a > a.log\ngrep -q passed a.log\nif [ $? -ne 0 ]; then\necho bad >> list\nfi\ncp out /data",
        "srun ./a 8\nsrun ./a 4\nscore_test 8 4\nif [[ $? -eq 0 ]]; then\nlet passed++\nfi\ncp out /data",
        "srun ./a\n[ -f model.pt ] || exit 1\ncp model.pt /data",
        "srun ./a\nif [[ ! -s $out.tmp ]]; then\necho no results\nfi\nsrun ./b",
        "srun ./a\nif [ $n -lt 5 ]; then\nsbatch $0\nfi\ncp out /data",
        "srun ./a\nif [ $n -gt 4 ]; then\nexit\nfi\nsbatch < $0\ndate",
        # Programs that fail themselves in a folder without the files
        "mkdir -p $RUN\ncd $RUN\ncp /data/a.in .\nsrun ./a",
        "cp -r /data $TMPDIR\npython3 a.py --data $TMPDIR/data",
        "tar -xf /data.tar -C $TMPDIR/data\npython3 a.py --data $TMPDIR/data",
        "D=/scratch/$SLURM_JOB_ID\ncp -r /data $D\npython3 a.py --data $D/data",
        # A person or the time limit ends it
        *("timeout 3h python3 a.py\ncp out /data", "srun --pty bash\ncp out /data"),
        "jupyter lab --port 8888\ncp out /data",
        # Programs that do not run without their module, and modules that they do not need
        *(
            "module load node\nsrun python3 a.py",
            "module load julia\njulia a.jl",
            "module load a/b\npython3 a.py",
            "module load gcc python/3.9\nsrun python3 a.py",
            "module load anaconda pytorch\npython3 a.py",
            "module load perl\nperl a.pl",
            "module load cuda\npython3 a.py",  # a job without GPUs
        ),
        # Files that set variables, the command module or conda
        *(
            f"source {file}\nsrun python3 a.py"
            for file in ("settings.sh", "/opt/modules/init/bash", "conda/etc/profile.d/conda.sh")
        ),
        # Functions of sourced files, groups whose failure is handled, and programs that print
        "source lib.sh\nparse_command_line $*\nsrun ./a",
        "(make -s a) || exit 1\n{ make b; make c; } || exit 1\nsrun ./a".replace("make b; ", ""),
        "srun bash -c 'echo $HOSTNAME'\nsrun ./a",
        "srun bash -c 'python -c \"import torch; print(torch)\"'\nsrun ./a",
        "spack load python@3.10\npython3 a.py",
        # Without its environment or a package the program fails at once
        "conda activate a\nsrun python3 a.py",
        "#SBATCH --gpus=1\nmodule load anaconda3 cuda\nsource env/bin/activate\nsrun python3 a.py",
        "python -m pip install -r list.txt\nconda install -y samtools\npython3 a.py",
        "python3 -m ensurepip\npip install -e .\npython3 a.py",
        # Programs that print, a record, and what runs beside the work whose status is kept
        "srun whichgpu\n/opt/query_gpu.sh\nsrun ./a",
        "snakemake --dag | dot -Tpdf > dag.pdf\nsnakemake -j 4",
        "cp /opt/tool/git.log .\nsrun ./a",
        "srun ./a &\nPID=$!\npython monitor.py $PID\nwait $PID\nstatus=$?\ncd -",
        # The call of the function is the last command
        "f() { srun ./a $1; }\nfor i in 1 2; do\necho $i >> list\nchmod +x list\ndone\nf list",
        *(f"{name} > log\nsrun ./a" for name in ("p2pBandwidthLatencyTest", "/opt/osu_latency")),
        "module load cuda\nconda run -n env python3 a.py",
        # A function that nothing calls
        "old() {\nsrun ./a 1\nsrun ./a 2\n}\nsrun ./b",
        # Alternatives
        'if [ "$ARCH" = A ]; then\nmpirun ./a\nfi\nif [ "$ARCH" = B ]; then\naprun ./a\nfi',
    ],
)
def test_failures_that_hide_nothing(lines: str) -> None:
    assert found(f"{HEAD}{lines}\n", "no-errexit") == []


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ("cp /data/a.in $RUN\ncd $RUN\nsrun ./a", 3),
        ("make -j 4\nsrun python3 a.py", 3),
        ("git checkout v2\nsrun python3 a.py", 3),
        ("prepare -o grid.dat\nsrun python3 a.py grid.dat", 3),
        ("prepare > grid.dat\nsrun python3 a.py < grid.dat", 3),
        ("#SBATCH --gpus=1\nmodule load apps/python/3.9\nmodule load cuda\nsrun python3 train_tf.py", 5),
        ("module load anaconda3\nsource env/bin/activate\nsrun python3 a.py", 4),
        ("ml tensorflow\nsource conda/bin/activate\nconda activate a\nsrun python3 a.py", 5),
        ("#SBATCH --gpus=1\nml PyTorch\nsource py3_environment\npython3 a.py", 5),
        ("f() { srun ./a $1; }\nf x\nchmod +x out", 3),
        ("conda activate a\nconda install -y torch\npython3 a.py", 3),
        ("ml anaconda\nsource env/bin/activate\nsource other_env.sh\npython3 a.py", 4),
        ("pip install .\npython3 a.py", 3),
        ("sizes=(1 2)\nfor n in ${sizes[@]}; do\nsrun ./a $n\ndone", 5),
        ("srun ./a\nsbatch next.sh", 3),
        ('srun ./a\nsbatch -J a next.sh "$folder"', 3),
        ("srun ./a\nif [ ! -f b.out ]; then\nsrun ./b\nfi", 3),
        ("srun ./a\nif [ ! -f b.out ]; then\ncp a.out b.out\nfi\nsrun ./b", 3),
    ],
)
def test_failures_on_which_later_commands_depend(lines: str, line: int) -> None:
    (only,) = found(f"{HEAD}{lines}\n", "no-errexit")
    assert (only.severity, only.line) == ("note", line)


@pytest.mark.parametrize(
    ("lines", "fix"),
    [
        ("srun ./a\ncp out /data", "write status=$? behind it, and exit $status at the end"),
        *(
            (f"{lines}\necho done", "write status=$? behind it, and exit $status at the end")
            for lines in (
                "srun ./a\ncp out /data",
                "srun ./a\n\\rm -rf $TMPDIR",
                "srun ./a\ntouch finished",  # for which others may wait
                "N=`expr $SLURM_ARRAY_TASK_ID / 10`\nsrun ./a $N",
                "N=$(grep -c x list)\nsrun ./a $N",
                *("cp $D/*.csv .\nsrun ./a", "ln -s $D/a a\nsrun ./a", "ulimit -s unlimited\nsrun ./a"),
            )
        ),
        ("N=$((A / 10))\nsrun ./a $N\necho done", "write status=$? behind it, and exit $status at the end"),
        ("(cd b; srun ./a)\necho done", "write set -eo pipefail after the directives"),
        (
            "module load a\n. ~/.bashrc\nsource b/bin/activate\n(srun ./a)\necho",
            "write set -eo pipefail behind line 4, which reads another file",
        ),
        (
            "if b; then\neval $c\nelse\n. /opt/d.sh\nfi\n(srun ./a)\necho",
            "write set -eo pipefail behind line 7, which reads another file",
        ),
        (
            "sbatch <<END\n#!/bin/bash\n#SBATCH --time=1\n. ~/.bashrc\n(srun ./a)\necho\nEND",
            "write set -eo pipefail behind line 6, which reads another file",
        ),
        (
            "srun ./a | tee log\ncp out /data",
            "write status=${PIPESTATUS[0]} behind it, and exit $status at the end",
        ),
        ("cat in | srun ./a\ncp out /data", "write status=$? behind it, and exit $status at the end"),
        (
            "if [ -f a ]; then\nsrun ./a -r\nelse\nsrun ./a\nfi\ncp out /data\necho",
            "write status=$? behind it and line 4, and exit $status at the end",
        ),
        (
            "if [ -f a ]; then\nR -f a.R\nelse\nR -f b.R\nfi\ncp out /data\necho",
            "write status=$? behind it and line 4, and exit $status at the end",
        ),
        (
            "cat in | srun ./a | tee log\ncp out /data",
            "write status=${PIPESTATUS[1]} behind it, and exit $status at the end",
        ),
        ("srun ./a\nsource deactivate", "write status=$? behind it, and exit $status at the end"),
        ("srun ./a\nsbatch next.sh", f"write {OF_A_RUN}"),
        ("srun ./a 1 | tee log\nsrun ./a 2", f"write set -o pipefail after the directives, and {OF_A_RUN}"),
        (
            "srun ./a 1 <<E | tee log\nE\nsrun ./a 2",
            f"write set -o pipefail after the directives, and {OF_A_RUN}",
        ),
        ("set -o pipefail\nsrun ./a 1 | tee log\nsrun ./a 2", f"write {OF_A_RUN}"),
        (
            "make 2>&1 | tee log\nsrun ./a",
            "write set -o pipefail after the directives, and || exit 1 behind it",
        ),
    ],
)
def test_the_fix_lets_the_script_save_results(lines: str, fix: str) -> None:
    (only,) = found(f"{HEAD}{lines}\n", "no-errexit")
    assert only.fix == fix


@pytest.mark.parametrize(
    ("rule", "lines", "fix"),
    [
        ("bare-wait", "srun ./a &\nwait", "|| status=$?, and exit ${status:-0} at the end"),
        ("bashrc", "source ~/.bashrc\nmicromamba activate a\n./a", "BIN/micromamba shell hook --shell bash"),
        ("bashrc", "source ~/.bashrc\nmamba activate a\n./a", "DIR/etc/profile.d/mamba.sh in its place"),
        ("bashrc", "source ~/.bashrc\nconda activate a\n./a", "DIR/etc/profile.d/conda.sh in its place"),
        ("ranks-mismatch", "#SBATCH -n 2 -c 4\nmpirun -np 4 ./a", "request 4 slots, or use the number"),
        ("bad-count", "#SBATCH -n $N\nN=2\n./a", "the command line instead, where the shell expands it"),
        ("bad-count", "#SBATCH -n $N\n./a", "where the shell expands it, unless a program fills it in"),
        ("unknown-option", "#SBATCH --share\n./a", "write --oversubscribe"),
        ("no-errexit", "matlab -nodisplay -r 'a; exit'\ndate", "start matlab with -batch"),
        ("no-errexit", "matlab < a.m\nrm -rf $TMPDIR\ndate", "start matlab with -batch"),
        ("no-errexit", "M=matlab\n$M -nodisplay -r 'a; exit'\ndate", "start matlab with -batch"),
        ("no-errexit", "module load matlab/R2018b\nmatlab -r 'a; exit'\ndate", "start matlab with -r 'try, "),
        ("memory-unit", "#SBATCH --mem-per-cpu=100\n./a", "add the unit that you mean, such as 100G"),
        (
            "late-directive",
            "#SBATCH -c 4\ndate\n#SBATCH --ntasks-per-node=32\n./a",
            "lower a number, and move it above the first command: 128 cores",
        ),
        ("unchecked-cd", "cd $D\nrm -rf *\n./a", 'write cd "${D:?}" || exit 1'),
        ("repeated-directive", "#SBATCH -o a\n#SBATCH -o log/err/a\n./a", "write --error in its place"),
        ("repeated-directive", "#SBATCH -C a\n#SBATCH -C b\n./a", "keep one of them, or join them with &"),
        ("download-in-job", "cd $TMPDIR\nwget https://a.org/b\nsrun ./a", "into a shared folder"),
        (
            "download-in-job",
            ". $SLURM_TMPDIR/env/bin/activate\npip install a\nsrun ./a",
            "into a shared folder",
        ),
        ("download-in-job", "cd $TMPDIR\npip install --user a\nsrun ./a", "run it on the login node"),
        ("bashrc", "source ~/.bashrc\n./a", "write what the job needs of it in its place"),
        (
            "bashrc",
            "source ~/.bashrc\nconda activate a\n./a",
            "conda info --base prints DIR; write what else",
        ),
        ("bashrc", "source ~/.bashrc\nsource activate a\n./a", "and conda activate for source activate"),
        ("bashrc", "source ~/.bashrc\nml conda/4\nsource activate a\n./a", "write what the job needs of it"),
        ("nodes-mismatch", "#SBATCH -N 4 --ntasks-per-node=16\naprun -n 33 ./a", "request 3 nodes"),
    ],
)
def test_the_fix_of_a_finding(rule: str, lines: str, fix: str) -> None:
    (only,) = found(f"{HEAD}{lines}\n", rule)
    assert fix in only.fix


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("shared-log", f"{HEAD}#SBATCH -o a.log\n# sbatch --output=a-$k.log job.sh\n./a"),
        ("task-total", f"{HEAD}#SBATCH -N 1 -n 1 --ntasks-per-node=4\nmpirun ./a"),
        ("output-directory", f"{PBS}#PBS -o logs/a.log\nmkdir -p logs/$PBS_JOBID\n./a"),
        ("output-directory", f"{HEAD}#SBATCH -o PATH_TO_LOGS/%j.out -n N_TASKS\n./a"),
        *(
            ("personal-path", f"{HEAD}cd /home/{name} || exit 1")
            for name in ("centos/app", "people/web/www", "softs/conda")
        ),
        *(
            ("short-walltime", f"#!/bin/bash\n#SBATCH --time={time}\n./a")
            for time in ("30:00", "45:00", "19:59")
        ),
        ("late-directive", f"{HEAD}$MORE_OPTIONS\n#SBATCH -n 4\n./a"),
        ("no-walltime", "#!/bin/bash\n#PBS -N a\n#PBS -l xxwalltimexx\n./a"),
        *(
            ("debug-setting", f"#!/bin/bash\n#SBATCH --time=24:00:00\n{lines}\npython3 a.py")
            for lines in (
                "# do not remove: the training hangs without it\nexport CUDA_LAUNCH_BLOCKING=1",
                "export CUDA_LAUNCH_BLOCKING=1\nexport DIFFBRAGG_USE_KOKKOS=1",
            )
        ),
        *(
            ("no-walltime", f"#!/bin/bash\n#SBATCH --exclusive\n{line}")
            for line in (
                "mpirun -np $SLURM_NTASKS ./a",
                ': "${CONT:?CONT not set}"\nsrun ./a',
                "srun ./a --limit $WALLTIME",
            )
        ),
    ],
)
def test_what_the_text_decides_elsewhere(rule: str, text: str) -> None:
    assert found(text, rule) == []


@pytest.mark.parametrize(("name", "count"), [("job.sh.erb", 0), ("job.sh", 1)])
def test_a_template_without_a_time_limit(name: str, count: int) -> None:
    text = "#!/bin/bash\n#PBS -l nodes=1:ppn=<%= cores %>\n#PBS -j oe\n./a\n"
    assert [one.rule for one in check(text.encode(), name)].count("no-walltime") == count


def test_the_number_of_nodes_in_a_message_decides_nothing() -> None:
    text = "#!/bin/bash\n#SBATCH --exclusive\necho $SLURM_NNODES\nsrun ./a"
    assert [one.severity for one in found(text, "no-walltime")] == ["note"]


def test_late_directives_of_one_run_after_the_other() -> None:
    runs = "\n".join(f"#SBATCH -n {n}\n./a {n}" for n in (1, 2, 4))
    assert {(one.severity, one.fix) for one in found(f"{HEAD}./b\n{runs}", "late-directive")} == {
        ("warning", "a job has one value of it: submit a job for each")
    }
    several = "\n".join(f"#SBATCH -n {n}" for n in (1, 2, 4))
    assert {one.severity for one in found(f"{HEAD}./b\n{several}\n./a", "late-directive")} == {"note"}


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("submit.sh", "mkdir -p out/logs\nsbatch job.sh\n", 0),
        ("submit.py", 'os.makedirs("out/logs", exist_ok=True)\n', 0),
        ("submit.sh", "mkdir -p out/logs2\n", 1),
        ("README.md", "mkdir -p out/logs\n", 1),
    ],
)
def test_a_folder_that_a_file_beside_the_script_makes(
    name: str, text: str, count: int, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    findings = check(f"{HEAD}#SBATCH -o out/logs/%j.log\n./a\n".encode(), "job.sh", folder=str(tmp_path))
    assert [one.rule for one in findings].count("output-directory") == count


@pytest.mark.parametrize(("line", "count"), [("sbatch -D $B $B/tasks/job.sh", 0), ("sbatch other.sh", 1)])
def test_a_folder_that_a_file_above_the_script_makes(line: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "all.sh").write_text(f"mkdir -p $B/logs\n{line}\n")
    script = f"{HEAD}#SBATCH -o logs/%j.log\n./a\n".encode()
    findings = check(script, str(tmp_path / "tasks/job.sh"), folder=str(tmp_path / "tasks"))
    assert [one.rule for one in findings].count("output-directory") == count


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("[ ${a} -eq 1 ]", 0),
        ('[[ "$b" == no ]]', 0),
        ('[ "$b" != yes ]', 0),
        ("[ ${a} -eq 0 ]", 1),
        ("[ $unknown = 1 ]", 1),
        ("[ value -eq 1 ]", 1),
        ("[ $a = 1 ] || x", 1),
    ],
)
def test_a_branch_that_never_runs(condition: str, count: int) -> None:
    text = f"{HEAD}a=0\nb=yes\nif {condition}; then\n    srun ./a | tee log.txt\nfi"
    assert len(found(text, "lost-status")) == count
    assert len(found(f"{text}\nset -e", "lost-status")) == 0  # it is set behind all
    assert len(found(f"{text} >&2\necho", "no-errexit")) == 0 or count


def test_a_folder_in_the_root_of_the_repository(tmp_path: Path) -> None:
    text = f"{HEAD}#SBATCH -o logs/%j.log\n./a\n".encode()
    (tmp_path / "logs").mkdir()
    (tmp_path / "scripts/slurm").mkdir(parents=True)
    rules = [one.rule for one in check(text, "job.sh", folder=str(tmp_path / "scripts/slurm"))]
    assert "output-directory" in rules
    (tmp_path / ".git").mkdir()
    rules = [one.rule for one in check(text, "job.sh", folder=str(tmp_path / "scripts/slurm"))]
    assert "output-directory" not in rules


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("./a\nuname -a", "no-errexit"),
        ("for i in 1 2; do\n./part $i &\ndone\nwait\n$RUN/a", "unwaited-background"),
        ("set -e\ngit log | head -n 3 > log", "no-pipefail"),
        (
            "#SBATCH --array=0-9\nexport SLURM_ARRAY_TASK_ID=$((SLURM_ARRAY_TASK_ID + 1))\n"
            'x=$(sed "${SLURM_ARRAY_TASK_ID}q;d" list)\n./a $x',
            "array-range",
        ),
        ("#SBATCH -N 2\necho $VALUES >> env/machine.env\nsrun ./a env/machine.env", "appended-hostfile"),
        (
            "scontrol show hostnames > hostfile\nsed -i 's/$/ slots=4/' hostfile\nmpiexec -n 4 --hostfile $MY_HOSTS ./a",
            "shared-hostfile",
        ),
        ("source ./names\nSamples=1\n./a $SAMPLE\n./b $SAMPLE\n./c $SAMPLE", "misspelt-variable"),
        (
            "$SPARK_HOME/sbin/start-master.sh &\nsleep 5\nspark-submit --master spark://h:7077 a.py",
            "sleep-as-sync",
        ),
        (
            "#SBATCH -N 2 --ntasks-per-node=4\ntorchrun --nnodes=1 a.py\nmpirun -np 8 python3 a.py",
            "first-node-only",
        ),
        (
            "#SBATCH --gpus=2\nCUDA_VISIBLE_DEVICES=0 ./a &\nCUDA_VISIBLE_DEVICES=1 ./a &\nwait",
            "forced-devices",
        ),
        ("export NCCL_DEBUG=TRACE\nexport NCCL_DEBUG_SUBSYS=INIT,ENV\n./a", "debug-setting"),
        ("#SBATCH -c 8 -n 4\nexport SLURM_CPU_BIND=mask_cpu:0xf,0xf0\nsrun ./a", "srun-cpus"),
        ("#SBATCH -c 8 -n 4\nsrun nvidia-cuda-mps-control -d &", "srun-cpus"),
        ("cd /scratch/me\nexport A=$PWD/a\n./a $PWD/b", "unquoted-path"),
        ("#SBATCH -o out.log\n#SBATCh -e out.log\n./a", "inert-directive"),
        ("server &\nsleep 60\ncat <<END\nssh -L 1:a:1\nEND\nwait", "sleep-as-sync"),
        ("export A=$DATA_DIR/x\nDATADIR=$DATA_DIR/y\n./a $DATADIR", "misspelt-variable"),
        ("#SBATCH -o a.log\ncd x || exit\n#SBATCH -o b.log\n./a", "late-directive"),
        ("#SBATCH -N 2 --gpus=1\nMASTER_PORT=$((10000 + SLURM_JOBID % 50000))\nsrun a.py", "ephemeral-port"),
        ("f() { echo bye; exit 1; }\ntrap f TERM INT\nsrun ./a", "trap-late"),
        ("trap 'kill 0' INT\nsrun ./a", "trap-late"),
        ("module load anacondapy/5.3.1\nsource activate a\n./a", "source-activate"),
        ("#SBATCH -o log/RUN_NAME.out\n./a", "shared-log"),
        ("#SBATCH -o log_VAR_T.out\n./a", "shared-log"),
        ("if [ $A = b ]; then\nD=$SLURM_SUBMIT_DIR\nelse\nD=$PBS_O_WORKDIR\nfi\ncd $D\n./a", "unchecked-cd"),
    ],
)
def test_what_a_reader_found_false(text: str, rule: str) -> None:
    levels = {one.severity for one in found(f"{HEAD}{text}", rule)}
    expected = {"no-errexit": {"warning"}, "late-directive": {"note"}}.get(rule, set())
    assert levels == expected


@pytest.mark.parametrize(
    ("head", "count"), [("#BSUB -n 4", 0), ("#BSUB -n 4\n#PBS -V", 1), ("# !/bin/bash", 1)]
)
def test_the_shell_of_a_script_for_lsf(head: str, count: int) -> None:
    assert len(found(f"{head}\nexport A=1\n./a", "no-shebang")) == count


@pytest.mark.parametrize(
    ("program", "count"),
    [
        ("./ipcontroller_new.sh", 0),
        ("srun ipengine-start.sh -a", 0),
        ("./tensorboard", 0),
        ("python -m vllm.entrypoints.openai.api_server --model a", 0),
        ("srun ./train.sh", 1),
    ],
)
def test_services_that_a_wrapper_starts(program: str, count: int) -> None:
    assert len(found(f"{HEAD}srun {program} &\nwait", "bare-wait")) == count


@pytest.mark.parametrize("command", ["ssh-add ~/.ssh/key", "ssh-agent", "kinit -R", "ssh-keyscan a >> hosts"])
def test_keys_are_no_work_of_a_job(command: str) -> None:
    assert found(f"{HEAD}{command}\ngit pull\n", "no-errexit") == []
    assert [one.line for one in found(f"{HEAD}{command}\nsolver\necho", "no-errexit")] == [4]


@pytest.mark.parametrize(
    ("text", "hides"),
    [
        ("./a\necho -n end && date", True),
        ("./a\necho end; date", True),
        ("./a\necho end && date > log", True),
        ("./a\n{ echo end; date; }", True),
        ("f() {\n./a\necho\n}\nf", True),
        ("f() {\n./b\nif x; then\n./a 1\nelse\n./a 2\nfi\necho\n}\nf", True),
        ("f() {\necho end\n}\n./a\nf > log", True),
        ("f() {\necho end\n}\ng() {\n./a\nf\n}\ng", True),
        ("f() {\n./a\necho\n}\nf 1\nf 2", False),
        ("f() {\necho\nreturn $status\n}\n./a\nf", False),
        ("f() {\n./a\n}\nf", False),
        ("f() {\n./a\n}\nf x\necho", False),
        ("f() {\nf\n}\n./a\nf", False),
        ("./a\n./b && echo", False),
        ("./a\n[ -e b ] && echo", False),
        ("./a\nif [ -n $b ]; then\necho\nelif x; then\ndate\nelse\n:\nfi", True),
        ("if x; then\n./a\necho 1\nelse\necho 2\nfi", True),
        ("./a\nif [ -n $b ]; then\necho\nelse\n./b\nfi", False),
        ("./a\nif grep -q ok log; then\necho\nfi", False),
        ("./a\nif x; then\nexit 1\nfi", False),
        ("./a\ncase $b in\n1) echo;;\n*) date;;\nesac", True),
        ("./a\nfor i in 1 2; do\necho $i\ndone", True),
        ("./a\nfor i in 1 2; do\n./b $i\ndone", False),
        ("./a\necho\nexit", True),
        ("./a\nexit", False),
        ("./a\nscontrol show job $SLURM_JOB_ID", True),
        ("./a\nscontrol requeue 1", False),
        ("./a\nnvidia-smi -q", True),
        ("mkdir -p $D\n./a\nrm -r $D", True),
        ("./a\nrm -r $D", False),
        ("./a\ncat <<END\nx\nEND", True),
        ("./a\ncat log", False),
        ("./a\nexport A=1", True),
        ("./a\nunset A", True),
    ],
)
def test_the_end_of_a_script_that_hides_a_failure(text: str, hides: bool) -> None:
    levels = [one.severity for one in found(f"{HEAD}{text}", "no-errexit")]
    assert ("warning" in levels) is hides


def test_the_end_in_the_branch_of_the_program() -> None:
    text = f"{HEAD}if x; then\n./b\necho 1\nelse\n./a\necho 2\nfi"
    (only,) = found(text, "no-errexit")
    assert only.reason.endswith("'echo 2'")


@pytest.mark.parametrize(
    ("text", "rule", "count"),
    [
        ("#SBATCH --output=old/a.log\n#SBATCH --output=new/a.log\n./a", "output-directory", 1),
        ("cd /a || exit\n#SBATCH --time=01:00:00\n./a", "late-directive", 0),
        ("cd /a || exit\n./a\n#SBATCH -A [project name]", "late-directive", 0),
        ("cd /a || exit\n#SBATCH --time=02:00:00\n./a", "late-directive", 1),
        ("for ((i = $1; i < $2; i++)); do\nf=B_0$i\nmkdir -p $f\ndone", "unquoted-path", 0),
        ("for i in $1; do\ni=$2\nf=$i/B_0\nmkdir -p $f\ndone", "unquoted-path", 1),
        ("cp $PBS_O_HOME/a .\n$RUN $GMXBIN/gmx mdrun", "unquoted-path", 0),
        ("i=$2\nfor i in $1; do\nmkdir -p $i\ndone", "unquoted-path", 0),
        ("for i in $1; do\nf=`echo a/$i`\nmkdir -p $f\ndone", "unquoted-path", 0),
        ("for i in $1; do\nf=$(echo $i | sed 's/a/b/')\nmkdir -p $f\ndone", "unquoted-path", 0),
        ("for i in $1; do\nf=$(echo $i | sed 's/_/ /')\nmkdir -p $f\ndone", "unquoted-path", 1),
        ("f=$(echo $1 | tr a b)\nmkdir -p $f", "unquoted-path", 1),
        ("a=($(cat $1))\nf=${a[0]}\nmkdir -p $f", "unquoted-path", 0),
        ("cp a /data/$username/", "unquoted-path", 0),
        ("module load flow/2.1\nsource $FLOW_ENV", "unquoted-path", 0),
        ("module load other/2.1\nsource $FLOW_ENV", "unquoted-path", 1),
        ("f() { echo x; }\nd=$(f)\nmkdir $d", "unquoted-path", 0),
        ("a=($(cat b))\nd=$(basename ${a[1]} .txt)\nmkdir $d", "unquoted-path", 0),
        ("d=$(basename $1)\nmkdir $d", "unquoted-path", 1),
        ('d="log/a_$1"\nmkdir $d', "unquoted-path", 0),
        ("d=log/$1.a\nmkdir $d", "unquoted-path", 0),
        ('d="log/$1"\nmkdir $d', "unquoted-path", 1),
        ("mkdir $STOCKYARD/a $SPACK_HASH/b", "unquoted-path", 0),
        ("cp -r $CASE/a $model .", "unquoted-path", 0),
        ("kind=$1\ncp $kind/a .", "unquoted-path", 0),
        ("outdir=$1\ncp $outdir/a .", "unquoted-path", 1),
        ("ssh $1 cp $data_dir/a .", "unquoted-path", 0),
        ("cd $RUN\nmpirun -np 4 $EXE < $RUN/a.in", "unchecked-cd", 0),
        ("cd $RUN\nmpirun -np 4 $EXE < $OTHER/a.in", "unchecked-cd", 1),
        ("cd $RUN\nmpirun /opt/a -i /data/in -o /data/out -f name", "unchecked-cd", 0),
        ("cd $RUN\nmpirun /opt/a -i /data/in -f name", "unchecked-cd", 1),
        ("f=$(ls a*)\nmv $f b", "unquoted-path", 0),
        ("f=$(ls a* | head -1)\nmv $f b", "unquoted-path", 1),
        ("d=$(pwd)/a\nmkdir $d\ncp a $PWD/b", "unquoted-path", 2),
        ("source $six_ALL_CCFRWORK/start\ncp a /data/$Nsamples/", "unquoted-path", 0),
        ('D="$(cd "$(dirname $0)" && pwd)"\ncd $D\n./a out/b', "unchecked-cd", 0),
        ("D=$(mktemp -d)\ncd $D\n./a out/b", "unchecked-cd", 0),
        ('D=$(dirname "$0")\ncd "$D"\n./a out/b', "unchecked-cd", 0),
        ('D=$(dirname "$0")/run\ncd "$D"\n./a out/b', "unchecked-cd", 1),
        ("D=$(cat path)\ncd $D\n./a out/b", "unchecked-cd", 1),
        ('cd /a\neval "$(conda shell.bash hook)"\npython3 /b/t.py --out=/c', "unchecked-cd", 0),
    ],
)
def test_directories_and_directives_that_matter(text: str, rule: str, count: int) -> None:
    assert len(found(f"{HEAD}{text}", rule)) == count


@pytest.mark.parametrize(("text", "count"), [("D=$(pwd)/a", 0), ("cd /a/b$1/\nD=$(pwd)", 1)])
def test_the_home_directory_where_a_job_of_pbs_starts(text: str, count: int) -> None:
    assert len(found(f"{PBS}{text}\nmkdir $D", "unquoted-path")) == count


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("export A=1\n#PBS -v A\n./a", "remove it, or move it"),
        ("#PBS -o a\ncd /a || exit\n#PBS -o b/\n./a", "keep one: -o above is in effect"),
        ("cd /a || exit\n#PBS -q a\n#PBS -q b\n#PBS -q c\n./a", "move one of the alternatives"),
        ("cd /a || exit\n#PBS -q a\n./a $1 $2", "remove it if the qsub that submits the script with"),
    ],
)
def test_the_fix_of_a_late_directive_that_loses_nothing(text: str, fix: str) -> None:
    (one, *_) = found(f"{PBS}{text}", "late-directive")
    assert (one.severity, one.fix.startswith(fix)) == ("note", True)


@pytest.mark.parametrize(
    ("head", "loss"),
    [
        (f"{HEAD}#SBATCH -o log/a.%j", "fails when it starts"),
        (f"{PBS}#PBS -o log/a.txt", "output is lost when the job ends"),
    ],
)
def test_what_a_missing_directory_does(head: str, loss: str) -> None:
    (only,) = found(f"{head}\n./a", "output-directory")
    assert (only.severity, loss in only.reason) == ("note", True)


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("$(awk 'NR==2 {print $1}' $x)", 0),
        ("$(sed -n 3p $x | awk '{ print $2 }')", 0),
        ("`echo $x | awk '{print $NF}'`", 0),
        ("$(printf %04d $x)", 0),
        ('x/$(printf "part_%02d" $((a - 1)))', 0),
        ('$(wc -l < "$x")', 0),
        *(("'*.fastq.gz'", 0), ('"one two"', 0), ('"<CHANGE ME>"', 1)),  # quotes would break what is meant
        ("$(awk -F, '{print $1}' $f)", 1),
        ("$(awk '{print $0}' <<< $f)", 1),
        ("$(awk '{print $1 $2}' $f)", 1),
        ("$(printf %s $f)", 1),
        ("$(cut -f1 <<< $f)", 1),
    ],
)
def test_a_field_or_a_number_has_no_blank(value: str, count: int) -> None:
    assert len(found(f"{HEAD}b={value}\n./a data/$b", "unquoted-path")) == count


@pytest.mark.parametrize(
    ("line", "count"), [("source part.sh", 0), ("ls", 0), ("qsub part.sh", 1), ("qsub -N a part.sh", 1)]
)
def test_a_text_without_directives_that_no_file_submits(tmp_path: Path, line: str, count: int) -> None:
    (tmp_path / "use.sh").write_text(f"{line}\n")
    text = b"# functions\nf() {\n./a\n}\n"
    (tmp_path / "part.sh").write_bytes(text)
    found = check(text, str(tmp_path / "part.sh"), folder=str(tmp_path))
    assert [one.rule for one in found].count("no-shebang") == count


@pytest.mark.parametrize(
    ("end", "count"),
    [
        ("clear\nexit 0\n}\ng() {\n./client\n}\nf", 0),
        ("clear\n}\ng() {\n./client\n}\nf", 1),
        ("if a; then\nexit 1\nfi\n}\nf\n./client", 1),
        ("./b || exit 1\n}\nf", 1),
        ("test -e b || exit 1\n./client\n}\nf", 1),
    ],
)
def test_a_sleep_in_front_of_an_exit(end: str, count: int) -> None:
    assert len(found(f"{HEAD}f() {{\n./server &\nsleep 3\n{end}", "sleep-as-sync")) == count


@pytest.mark.parametrize(
    ("command", "count"),
    [
        ("pbsdsh -n 0 -- bash -c 'dask-scheduler --port 1' &", 0),
        ("pbsdsh -n 0 -- bash -c 'dask-scheduler --port 1'", 1),
        ("pbsdsh -n 0 -- ./prepare &", 1),
    ],
)
def test_services_that_pbsdsh_starts(command: str, count: int) -> None:
    head = "#!/bin/bash\n#PBS -l walltime=01:00:00\n#PBS -l select=2:ncpus=4\n"
    assert len(found(f"{head}{command}\nsleep 3600", "pbsdsh-status")) == count


@pytest.mark.parametrize(
    ("text", "rule", "level"),
    [
        ("workdir=/a\necho in $work_dir", "unset-variable", "note"),
        ("workdir=/a\necho in $work_dir\ncd $work_dir", "unset-variable", "warning"),
        ("workdir=/a\necho in $work_dir > log", "unset-variable", "warning"),
        ("set -eo pipefail\nOUTDIR=/a\n./a $OUTDIR\necho $OUT_DIR", "misspelt-variable", "note"),
        ("set -eo pipefail\nOUTDIR=/a\n./a $OUT_DIR\necho $OUT_DIR", "misspelt-variable", "warning"),
        ("echo $SLURM_ARRAY_JOB_ID_$SLURM_ARRAY_TASK_ID", "misspelt-variable", "note"),
        ("./a > $SLURM_ARRAY_JOB_ID_$SLURM_ARRAY_TASK_ID", "misspelt-variable", "warning"),
    ],
)
def test_a_wrong_name_in_a_message(text: str, rule: str, level: str) -> None:
    assert [one.severity for one in found(f"{HEAD}{text}", rule)] == [level]


@pytest.mark.parametrize(
    ("above", "value", "level"),
    [
        (
            "module load CUDA/11.8.0\nmodule load cudnn/v8.8.0",
            "/opt/cudnn/8.8/lib:/opt/cuda/cuda-11.8.0/lib64",
            "note",
        ),
        ("module load CUDA/11.8.0\nmodule load python/3.6", "/opt/cuda/cuda-11.8.0/lib64", "warning"),
        ("module load CUDA/11.8.0", "/opt/cuda-10.0/lib64", "warning"),
        ("module load cuda nccl", "/opt/cuda/lib64", "warning"),
        ("source /opt/lsf/conf/profile.lsf", "/opt/lsf/9.1/lib:/a/lib", "note"),
        ("source /opt/lsf/conf/profile.lsf", "/opt/b/9.1/lib:/a/lib", "warning"),
        ("source /opt/env.sh", "/opt/lib", "warning"),
    ],
)
def test_a_new_search_path_with_the_directories_of_the_modules(above: str, value: str, level: str) -> None:
    text = f"{HEAD}{above}\nexport LD_LIBRARY_PATH={value}\nsrun ./a"
    assert [one.severity for one in found(text, "overwritten-path")] == [level]


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("#SBATCH --array=1-9\n#SBATCH -J a\n./a $SLURM_ARRAY_TASK_ID", ["note"]),
        ("#SBATCH -N 1 -n 64\n#SBATCH -J a\nsrun ./a", ["note"]),
        ("#SBATCH -N 1 --gres=gpu:1\n#SBATCH -J a\nsrun ./a", ["note"]),
        ("#SBATCH -N 1 --gres=gpu:1\n#SBATCH -J a\nsrun python train.py", ["warning"]),
        ("#SBATCH -N 2\n#SBATCH -J a\nsrun ./a", ["warning"]),
        ("#SBATCH -p short-gpu\n## PartitionName=short-gpu Default=NO MaxTime=30:00\n./a", []),
        ("#SBATCH -p short\n## PartitionName=short-gpu Default=NO MaxTime=30:00\n./a", ["note"]),
        ("#SBATCH -N 2 -p big\n## PartitionName=big-gpu Default=NO MaxTime=30:00\n./a", ["warning"]),
        ("#SBATCH -N 2 -p shortgrass\n./a", ["warning"]),
        ("#SBATCH -N 1\n#SBATCH --qos=quick  # test (1 GPU, 1 hour), quick (1 GPU, 1 day)\n./a", []),
        ("#SBATCH -N 2\n#SBATCH --qos=big  # test (1 GPU, 1 hour), quick (1 GPU, 1 day)\n./a", ["warning"]),
    ],
)
def test_where_else_the_time_limit_may_be(text: str, levels: list[str]) -> None:
    assert [one.severity for one in found(f"#!/bin/bash\n{text}", "no-walltime")] == levels


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ("--bind /data/ann:/home", 0),
        ("-B $BASE/templates:/home/b --home /home/b", 0),
        ("-v /data:/data,/scratch/x:/home/b:ro", 0),
        ("--bind /home:/home", 1),
        ("--bind /data/ann:/homes", 1),
        ("", 1),
    ],
)
def test_a_path_of_the_inside_of_a_container(options: str, count: int) -> None:
    text = f"{HEAD}singularity exec {options} a.sif bash -c 'cd /home/b/c; ./run'"
    assert len(found(text, "personal-path")) == count
    text = f"{HEAD}export PATH=/opt/bin:/home/ann/bin\n./a"
    assert len(found(text, "personal-path")) == 1


@pytest.mark.parametrize(
    ("traps", "count"),
    [("trap clean EXIT\ntrap clean TERM", 0), ("trap clean EXIT TERM", 0), ("trap clean TERM", 1)],
)
def test_a_handler_that_ends_the_job_too(traps: str, count: int) -> None:
    text = f"{HEAD}#SBATCH --signal=B:TERM@60\nclean() {{\nrm -f a\n}}\n{traps}\n./a &\nwait"
    assert len(found(text, "single-wait")) == count


@pytest.mark.parametrize(("command", "count"), [("vpkg_require openmpi", 0), ("./a", 1)])
def test_modules_that_nothing_uses(command: str, count: int) -> None:
    assert len(found(f"{HEAD}vpkg_require matlab\n{command}\necho end", "no-errexit")) == count


@pytest.mark.parametrize(("mode", "level"), [("append", "note"), ("a", "note"), ("truncate", "warning")])
def test_tasks_that_append_to_one_log(mode: str, level: str) -> None:
    text = f"{HEAD}#SBATCH --array=1-9 -o a.log\n#SBATCH --open-mode={mode}\n./a $SLURM_ARRAY_TASK_ID"
    assert [one.severity for one in found(text, "array-output")] == [level]


def test_a_text_for_m4_is_no_script_yet() -> None:
    text = "#!/bin/bash\nifelse(value(QUEUE), `',, -q value(QUEUE)\n)\nsolver\n"
    assert "syntax-error" not in [one.rule for one in check(text.encode(), "job.m4")]
    assert "syntax-error" in [one.rule for one in check(text.encode(), "job.sh")]


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ('sed -n "${PBS_ARRAY_INDEX}p" list', []),  # the command that submits it makes the array
        ('[ -z "$PBS_ARRAY_INDEX" ] || ls', ["bad-value"]),
        ("ls", ["bad-value"]),
    ],
)
def test_mail_of_each_task_of_an_array_that_the_command_makes(command: str, rules: list[str]) -> None:
    text = f"#!/bin/bash\n#PBS -l select=1\n#PBS -l walltime=1:00:00\n#PBS -m abej\n{command}\n"
    assert [one.rule for one in check(text.encode()) if one.rule == "bad-value"] == rules


def test_a_listing_of_asciidoc_with_the_numbers_of_its_remarks() -> None:
    text = "#!/bin/bash\n#OAR -n solver <1>\n. env.sh <2>\nDIR=/data/$USER <3>\nif [ -d $DIR ]; then\n./solver\nfi\n"
    assert "syntax-error" not in [one.rule for one in check(text.encode())]
    assert "syntax-error" in [one.rule for one in check(text.replace("<2>", "").encode())]


@pytest.mark.parametrize("line", ["-N @NAME", "-l walltime=%(hours)02d:00:00", "-l walltime=%%wall-time%%"])
def test_fields_of_a_template(line: str) -> None:
    """A note says that no rule reports what a program fills in."""
    text = f"#!/bin/bash\n#PBS -l select=1:ncpus=4\n#PBS {line}\nsolver\n"
    rules = {one.rule for one in check(text.encode())}
    assert rules & {"bad-name", "bad-walltime", "placeholder"} == {"placeholder"}


@pytest.mark.parametrize("lines", ['f() {\n"$@"\n}\nf', "a=()\n${a[@]}"])
def test_a_command_without_words(lines: str) -> None:
    assert found(f"{HEAD}{lines}", "no-errexit") == []


@pytest.mark.parametrize(
    ("command", "count"),
    [
        ("srun ./a --seed $SLURM_ARRAY_TASK_ID --out r.h5", 1),
        ("i=$SLURM_ARRAY_TASK_ID\n./a $i > log.txt", 1),
        ("./a $SLURM_ARRAY_TASK_ID >> log.txt", 0),
        ("./a $SLURM_ARRAY_TASK_ID > log$SLURM_ARRAY_TASK_ID.txt", 0),
        ("cd run$SLURM_ARRAY_TASK_ID\n./a $SLURM_ARRAY_TASK_ID > log.txt", 0),
        ("./a $SLURM_ARRAY_TASK_ID > /dev/null", 0),
        ("./a > log.txt", 0),
    ],
)
def test_a_file_that_all_tasks_of_an_array_write(command: str, count: int) -> None:
    assert len(found(f"{HEAD}#SBATCH --array=0-9\n{command}", "array-output")) == count


@pytest.mark.parametrize(
    ("modulus", "tasks", "gpus", "count"),
    [(8, 4, 4, 1), (2, 4, 4, 1), (4, 4, 4, 0), (8, 4, 8, 0), (4, 8, 4, 0), ("N", 4, 4, 0)],
)
def test_a_local_rank_modulo_a_number(modulus: object, tasks: int, gpus: int, count: int) -> None:
    size = f"#SBATCH --nodes=2 --ntasks-per-node={tasks} --gpus-per-node={gpus}\n"
    command = f"srun bash -c 'export LOCAL_RANK=$((SLURM_PROCID % {modulus})); ./a'"
    assert len(found(f"{HEAD}{size}{command}", "rank-number")) == count


@pytest.mark.parametrize(
    ("size", "command", "count"),
    [
        ("-n 1 --gpus-per-task=1", "torchrun --standalone --nproc-per-node=4 t.py", 1),
        ("-n 1 --gpus-per-task=2", "accelerate launch --num_processes 4 t.py", 1),
        ("-n 1 --gpus-per-task=2", "deepspeed --num_gpus 4 t.py", 1),
        ("-n 1 --gpus-per-task=a100:4", "torchrun --standalone --nproc-per-node=4 t.py", 0),
        ("-N 1 -n 4 --gpus-per-task=1", "torchrun --standalone --nproc-per-node=4 t.py", 0),
    ],
)
def test_the_gpus_of_the_only_task_of_a_node(size: str, command: str, count: int) -> None:
    assert len(found(f"{HEAD}#SBATCH {size}\n{command}", "ranks-mismatch")) == count
