"""What check does not say of scripts that are right, at which level it says the rest, and what it looks into."""

from __future__ import annotations

import pytest

from jobgen.check.checker import check
from jobgen.script.script import Script

HEAD = "#!/bin/bash\n#SBATCH --time=01:00:00\n"
TWO = f"{HEAD}#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=4\n"
PBS = "#!/bin/bash\n#PBS -l walltime=01:00:00\n"
ASKED = "#!/bin/bash\n#SBATCH --time=01:00:00\n#SBATCH --ntasks=4\n"


def levels(text: str, rule: str) -> list[str]:
    return [one.severity for one in check(f"{text}\n".encode(), folder=".") if one.rule == rule]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        # A part that is not this script
        ("download-in-job", f"{HEAD}module load gcc eth_proxy\npip install a\nsrun ./a"),
        ("late-directive", f"{HEAD}cat > a.sh <<END\n#!/bin/bash\n#SBATCH --nodes=2\nEND"),
        ("late-directive", f"{HEAD}hostname\n#!/bin/bash\n#SBATCH --nodes=2\nhostname"),
        ("late-directive", f"{HEAD}if [ \ncat <<'END'\n#SBATCH --nodes=2\nEND"),  # a syntax error
        ("late-directive", "#!/usr/bin/env python3\n#SBATCH --time=1\nx = 1\n#SBATCH --nodes=2"),
        ("no-shebang", "sbatch <<END\n#!/bin/bash\n#SBATCH --time=1\nhostname\nEND"),
        ("inert-directive", f"{HEAD}#sbatch --array=1-3 train.sh"),
        ("inert-directive", f"{HEAD}#SBATCH --gres=gpu:a100:1\n# SBATCH --gres=gpu"),
        ("inert-directive", f"{PBS}# PBS -l walltime=02:00:00"),
        ("inert-directive", f"{HEAD}# commented out in this case\n# SBATCH --nodes=2"),
        ("inert-directive", f"{HEAD}# SBATCH --account=  # uncomment it"),
        ("inert-directive", f"{HEAD}# SBATCH --account="),
        # Forms that Slurm takes
        ("unknown-option", f"{HEAD}#SBATCH --cluster=gpu"),
        ("unknown-option", f"{HEAD}#SBATCH --container-mounts /a:/a"),
        ("bad-array", f"{HEAD}#SBATCH --array=[0-29]%10"),
        ("bad-array", f"{HEAD}#SBATCH --array=[1,3,5-9:2]"),
        ("bad-dependency", f"{HEAD}#SBATCH --dependency=1234"),
        ("bad-select", f"{PBS}#PBS -l select=2:ncpus=8:npus=8:mpiprocs=8"),  # a resource of the site
        # Words with several variables
        ("unquoted-path", f'{HEAD}OUT=/data/$NAME/$RUN/log\nA="x"/$B/$C"_"$D\nexport E=$F/$G/h'),
        ("unquoted-path", f"{HEAD}module load gcc/$GCC_VERSION\nsrun x docker://$IMAGE/y"),
        ("unquoted-path", f"{HEAD}cp conf/$x.txt config_$NET.sh out/a_${{NET}} ."),
        # What belongs to a step or to another scheduler
        ("foreign-variable", f'{HEAD}if [ -n "$PBS_JOBID" ]; then cd "$PBS_O_WORKDIR"; fi'),
        ("early-expansion", f'{ASKED.replace("=4", "=1")}srun python3 t.py --rank "$SLURM_PROCID"'),
        ("early-expansion", f"{TWO}echo date > run_$SLURM_PROCID.sh\nsrun bash run_$SLURM_PROCID.sh"),
        ("repeated-count", f"{TWO}mpirun -np 1 ./a\nmpirun -np 2 ./a\nmpirun -np 4 ./a"),
        ("repeated-count", f"{ASKED}N=4\n[ $N -gt $SLURM_NTASKS ] && exit 1\nmpirun -np $N ./a"),
        ("repeated-count", f"{TWO}N=2\necho $N of $SLURM_NTASKS\nmpirun -np $N ./a"),
        ("ssh-between-nodes", f"{TWO}me=$(hostname -s)\nssh $me ./server"),
        ("no-errexit", f"{HEAD}setfacl -m u:a:x d\nshifter --image=a ./b"),
        ("no-errexit", f"{HEAD}srun bash clean.sh; python3 a.py"),
        ("no-errexit", f"{HEAD}/opt/envs del a\n/opt/envs build a"),
        ("srun-cpus", f"{ASKED}#SBATCH --cpus-per-task=8\nmodule load slurm/24.05.4\nsrun python3 t.py"),
        ("mpi-plugin", f"{TWO}module load openmpi\nsrun --mpi=pmi2 torchrun --nnodes=2 train.py"),
        ("ranks-mismatch", f"{ASKED}#SBATCH --cpus-per-task=16\nsrun -n 64 ./solver"),
        ("ranks-mismatch", f"{ASKED}mpirun -ppn $N /bin_$SLURM_JOB_ID/mdtest -n 20840"),
        ("ranks-mismatch", f"{ASKED}mpirun --report-bindings ./solver -n 20840"),
        ("local-master", f"{TWO}torchrun --nnodes=1 --master_addr=localhost train.py"),
        ("output-directory", f"{HEAD}#SBATCH --output=/no/such/folder/of/this/machine/%j.log"),
        # Words that a person or a program fills in
        ("bad-array", f"{PBS}#PBS -l select=1:ncpus=CPUS\n#PBS -J 1-MAXJOBS"),
        ("bad-array", f"{HEAD}#SBATCH --array Specify_The_Indices"),
        ("bad-value", f"{HEAD}#SBATCH --cpus-per-gpu N_CPUS"),
        ("bad-value", f"{PBS}#PBS -W depend=afterok:jobid"),
        ("bad-value", f"{HEAD}#SBATCH -p   # a partition of your site"),
        ("unknown-option", f"{HEAD}#SBATCH --mail-user= youremail@example.org"),
        # set -e comes later; a resource that names the model of the node
        ("no-pipefail", f"{HEAD}date | sort > a\nmars x | grep y\nset -e\nhostname"),
        ("packed-chunks", f"{PBS}#PBS -l select=2:ncpus=24:mpiprocs=24:model=has\nmpiexec ./solver"),
        # What only one site or one of two schedulers knows
        ("bad-value", "#!/bin/sh\n#PBS -l walltime=00:59:00\n#PBS -l nodes=1:ppn=all"),
        ("unknown-option", f"{PBS}#PBS -l gres=atlas1%atlas2"),
        ("no-shebang", "#PBS -S /bin/bash\n#PBS -l walltime=01:00:00\nhostname"),
        # Loops whose commands do not read the list
        ("ssh-eats-list", f'{TWO}cat hosts | while read -r h; do ssh -qn "$h" date; done'),
        ("ssh-eats-list", f'{TWO}cat hosts | head -n 1 | while read -r h; do ssh "$h" date; done'),
        ("ssh-eats-list", f"{TWO}while read -r h <&3 || read -u 3 h; do srun -i none date; done < hosts"),
        ("ssh-eats-list", f"{TWO}while sleep 1; do read -r a b < /proc/loadavg; ssh n1 date; done"),
        ("ssh-eats-list", f'{TWO}while read -u 3 -r h; do ssh "$h" date; done 3< hosts'),
        ("ssh-eats-list", f'{TWO}while read -r h; do ssh "$h" date & done < hosts\nwait'),
        ("ssh-eats-list", f'{TWO}while read -r h; do ssh "$h" date & sleep 0.2; done < hosts'),
        ("ssh-eats-list", f'{TWO}while read -r h; do ssh "$h" date < /dev/null & sleep 1; done < hosts'),
        ("ssh-eats-list", f'{TWO}cat hosts | while read -r h; do ssh "$h" date & sleep 1; done'),
        (
            "ssh-eats-list",
            f'{TWO.replace("bash", "sh")}while read -r h; do ssh "$h" date & sleep 1; done < hosts',
        ),
        # The status of a pipeline that nothing, or the right test, reads
        *(
            ("lost-status", f"{HEAD}{line}\ndate")
            for line in (
                "srun ./a | tee log\necho $?",
                "srun ./a | tee log\nrc=$?\necho ended with $rc",
                "srun ./a | tee log\nif [ -e b ]; then ./b; echo $?; fi",
                "srun ./a | grep done\nif [ $? -ne 0 ]; then exit 1; fi",
                "srun ./a | grep -q done || exit 1",
                "srun ./a | tee log\n[ ${PIPESTATUS[0]} -eq 0 ] || exit 1",
                "set -o pipefail\nsrun ./a | tee log\nif [ $? -ne 0 ]; then exit 1; fi",
                "echo a | tee log\nif [ $? -ne 0 ]; then exit 1; fi",
                "cd b && srun ./a | tee log",
            )
        ),
        # Texts for sbatch whose variables the shell that submits them has, or leaves to the job
        *(
            ("early-expansion", f"#!/bin/bash\n{text}")
            for text in (
                "sbatch <<END\n#!/bin/bash\nA=\\$(hostname)\nsrun ./a \\$A \\$SLURM_JOB_ID\nEND\n",
                "sbatch <<'END'\n#!/bin/bash\nA=$(hostname)\nsrun ./a $A $SLURM_JOB_ID\nEND\n",
                "A=1\nsbatch <<END\n#!/bin/bash\nexport A=$A\nsrun ./a $A\nEND\n",
                "sbatch <<END\n#!/bin/bash\nexport PATH=/a:$PATH\nsrun ./a $PATH\nEND\n",
                "while read -r A; do\nsbatch <<END\n#!/bin/bash\nA=2\nsrun ./a $A\nEND\ndone < b\n",
                "source env.sh\nsbatch <<END\n#!/bin/bash\nA=2\nsrun ./a $A\nEND\n",
                "echo in $SLURM_JOB_ID\nsbatch <<END\n#!/bin/bash\nsrun ./a $SLURM_JOB_ID\nEND\n",
                "sbatch <<END\n#!/bin/bash\nscontrol show hostnames $SLURM_JOB_NODELIST > h\nEND\n",
                "sbatch <<END\n#!/bin/bash\nsrun ./a ${SLURM_JOB_ID:-1}\nEND\n",
                "sbatch --wrap='./a $SLURM_JOB_ID'\n",
            )
        ),
        # Variables that the launcher of a rank sets
        *(
            ("rank-number", f"{ASKED}{line}")
            for line in (
                "srun --mpi=pmi2 bash -c 'RANK=$PMI_RANK ./a'",
                "srun bash -c 'RANK=$PMI_RANK ./a'",
                "srun --mpi=pmix bash -c 'RANK=$PMIX_RANK ./a'",
                "srun bash -c 'RANK=${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID} ./a'",
                "srun bash -c 'if [ -n \"$PMIX_RANK\" ]; then RANK=$OMPI_COMM_WORLD_RANK; fi; ./a'",
                "srun bash -c 'export OMPI_COMM_WORLD_RANK=$SLURM_PROCID; RANK=$OMPI_COMM_WORLD_RANK ./a'",
                "srun -n 2 bash -c 'mpirun -np 4 bash -c \"RANK=\\$OMPI_COMM_WORLD_RANK ./a\"'",
                "mpirun -np 8 bash -c 'RANK=$OMPI_COMM_WORLD_RANK ./a'",
                "mpirun -np 2 --map-by ppr:1:node bash -c 'RANK=$SLURM_PROCID ./a'",
                "mpirun -np 8 bash -c 'echo $SLURM_PROCID'",
            )
        ),
        ("fixed-interface", f"{TWO}export NCCL_SOCKET_IFNAME=ens"),
        ("fixed-interface", f"{TWO}export NCCL_SOCKET_IFNAME=ibp,enp"),
        # A time to work, and devices of one node for several processes
        ("sleep-as-sync", f"{HEAD}srun ./server &\nsleep 110m\n./report"),
        ("sleep-as-sync", f"{HEAD}srun ./server &\nsleep 60\nkill $!\n./report"),
        (
            "forced-devices",
            f"{PBS}CUDA_VISIBLE_DEVICES=0 ./a &\nCUDA_VISIBLE_DEVICES=3 ./a &\nwait",
        ),
        ("pbsdsh-status", f"{TWO}pbsdsh -n 1 ./a"),
        ("pbsdsh-status", f"{PBS}pbsdsh hostname"),
        ("unwaited-background", f'{HEAD}if [ "X$SLURM_JOB_ID" == "X" ]; then\n./a &\nfi'),
        ("unwaited-background", f'{HEAD}if [ -z "$SLURM_JOB_ID" ]; then\n./a &\nfi'),
        ("download-in-job", f"{TWO}pip install a-1.0-py3-none-any.whl\nsrun ./a"),
        # Files and processes
        ("appended-hostfile", f"{HEAD}rm -rf ./hosts.txt\nfor i in 1; do hostname >> hosts.txt; done"),
        ("appended-hostfile", f'{HEAD}F=$(mktemp "$PWD/hosts.XX")\nhostname >> "$F"'),
        ("appended-hostfile", f'{HEAD}F=hosts.txt\nrm -f hosts.txt\nhostname >> "$F"'),
        ("shared-hostfile", f"{HEAD}echo node count > active_nodes.txt"),
        ("unwaited-background", f"{HEAD}srun server &\nwhile sleep 1; do ./done && break; done"),
        ("bad-walltime", f"#!/bin/bash\n#SBATCH    # --time=minutes\n{HEAD[12:]}hostname"),
        ("bad-value", f"{HEAD}#SBATCH --gres=gpu:3090:1\nhostname"),
        ("unchecked-cd", f"{HEAD}cd ./\nhostname"),
        ("unchecked-cd", f"{HEAD}hostname\ncd /data\nexit 0"),
        *(
            ("unchecked-cd", f"{HEAD}cd {word}\nrm *.tmp")
            for word in ("..", "../..", '"$PWD"', "$(pwd)", "~")
        ),
        ("unchecked-cd", f"{HEAD}here=$(pwd)\ncd $here\nrm *.tmp"),
        ("unchecked-cd", f"{HEAD}cd run\nif [ $? -ne 0 ]; then exit 1; fi\nrm *.tmp"),
        ("unchecked-cd", f"{HEAD}cp -r data $RUN || exit 2\ncd $RUN\nrm *.tmp"),
        ("unchecked-cd", f"{HEAD}enter() {{ cd run || return; }}\nenter\nls"),
        ("unchecked-cd", f"{HEAD}set -e\ncd run || return\nls"),
        ("unchecked-cd", f'{HEAD}if [ -d "$RUN" ]; then\ncd $RUN\nfi\nrm *.tmp'),
        ("unchecked-cd", f"{HEAD}[ -d run/ ] && cd run\nrm *.tmp"),
        ("no-errexit", f"{HEAD}export A=1\nB=$(date +%s)\necho $B\nmodule purge\ncd ..\nsrun python3 t.py"),
        ("no-errexit", f"{HEAD}if [ -f a ]; then\nsrun python3 a.py\nelse\nsrun python3 b.py\nfi"),
        ("no-errexit", f"{HEAD}case $A in\na) srun ./a ;;\nb) srun ./b ;;\nesac"),
        ("no-errexit", f"{HEAD}trap 'exit 1' ERR\nmodule load cuda\nsrun ./a\necho done"),
        ("no-errexit", f"{HEAD}srun ./a || scontrol requeue"),
        ("no-pipefail", f"{HEAD}set -e\nenv | sort > environment"),
        ("no-errexit", f"{HEAD}python3 --version\nconda list\npython3 t.py"),
        ("no-errexit", f"{HEAD}srun ./a &\nsrun ./b &\nwait"),
        ("no-errexit", f"{HEAD}source ~/.bashrc\nsource /etc/profile.d/modules.sh\nsrun ./a"),
        ("no-errexit", f"{HEAD}cd $SLURM_SUBMIT_DIR\nsrun ./a"),
        ("no-errexit", f"{HEAD}uniq a > b\nwait"),
        ("no-errexit", f"{HEAD}srun julia a.jl\nexit\nusing MPI\necho x"),
        ("no-errexit", f"{HEAD}srun ./a\n[ -f model.pt ]"),
        # Values without blanks
        *(
            ("unquoted-path", f"{HEAD}{values}\ncd $D")
            for values in (
                "D=$WORK/run/$SLURM_JOB_ID",
                "D=run_$(date +%Y_%m_%d)",
                "D=`date +%s`_x",
                "i=3\nD=out/$i",
                "names=(a b c)\nD=${names[$SLURM_ARRAY_TASK_ID]}",
                "D=$(printf 'part_%02d' 3)",
                "D=$((3 + 4))",
                "for i in $(seq 3); do E=fold$i; done\nD=$E/x",
                "D=a\nD=$D/b",
            )
        ),
        *(
            ("personal-path", f"{HEAD}srun ./a {word}")
            for word in (
                "/home/projects/x",
                "/home/software.ppc64le/x",
                "/home/alice/datasets/x",
                "/home/alice/shared/x",
                "/home/ubuntu/x",
                "/home/username/x",
                '"/home/smg/$USER/x"',
                "/home/smg/$(whoami)/x",
                "/home/packages/x",
            )
        ),
        ("personal-path", f"{HEAD}docker run -v $PWD:/home/alice/x image ./a"),
        ("personal-path", f"{HEAD}echo /home/alice/x"),
        ("personal-path", f"{HEAD}export SINGULARITYENV_LICENSE=/home/alice/x"),
        ("source-activate", f"{HEAD}cd venv/bin\nsource activate"),
        ("source-activate", f"{HEAD}conda activate a || source activate a || exit 1"),
        ("source-activate", f"{HEAD}module load anaconda3/5.0.1\nsource activate a"),
        ("source-activate", f"{HEAD}module load conda5.2\nsource activate a"),
        ("source-activate", f"{HEAD}module load python/2.7-anaconda\nsource activate a"),
        ("source-activate", f"{HEAD}module load Anaconda/3-5.0.0.1\nsource activate a"),
        ("source-activate", f"{HEAD}module load conda/4.5.11\nsource activate a"),
        ("source-activate", f"{HEAD}export PATH=/home/a/anaconda2/bin:$PATH\nsource activate a"),
        ("output-directory", f"{PBS}#PBS -o logs/a.log\ncd $PBS_O_WORKDIR\nmkdir logs\n./a"),
        ("no-errexit", f"{HEAD}rserver --server-daemonize=0\necho done"),
        ("no-errexit", f"{HEAD.replace('bash', 'sh', 1)}source venv/bin/activate\npython3 train.py"),
        ("unchecked-variable", f'{HEAD}###CGAUGE=1\n./a << EOF\ngauge = "$CGAUGE"\nEOF'),
        ("source-activate", f"{HEAD}export PATH=/act/Anaconda3-2.3.0/bin:$PATH\nsource activate a"),
        *(
            ("output-directory", f"{head}\nsrun ./a")
            for head in (
                f"{PBS}#PBS -o logs/a.log\nmkdir -p logs",
                f"{HEAD}#SBATCH -o ./a.log",
                f"{HEAD}#SBATCH -D /data/x -o logs/a.log",
            )
        ),
        ("no-walltime", "#!/bin/bash\n#SBATCH --nodes=2\n# srun hostname"),
        ("source-activate", f"{HEAD}source venv/bin/activate"),
        ("fixed-interface", f"{HEAD}export NCCL_SOCKET_IFNAME=eth0,en,eth,em,bond"),
        (
            "ranks-mismatch",
            f"{HEAD}#SBATCH --exclusive\n#SBATCH --gres=gpu:1\ntorchrun --nproc-per-node=4 t.py",
        ),
        ("trap-late", f"{PBS}trap 'cp -r $SCRATCHDIR out' TERM\npython3 t.py"),
        ("unset-variable", f"{HEAD}for i in 1 2; do ids[$i]=a; done\nid=3\necho $ids $id"),
        ("unset-variable", f"{HEAD}node=1\nunset $nodes"),
        ("sleep-as-sync", f"{HEAD}python3 a.py &\nsleep 20\npython3 b.py &\nwait"),
        ("lost-status", f"{HEAD}srun -l /bin/hostname | sort > nodes.log"),
        ("conda-hook", f"{HEAD}source activate base\nconda activate training"),
        ("download-in-job", f"{HEAD}pip install --no-deps ./own.whl"),
        ("exclusive-memory", f"{TWO}#SBATCH --exclusive\nexport FI_PROVIDER=efa\nsrun ./a"),
        ("exclusive-memory", f"{TWO}#SBATCH --exclusive\n#SBATCH -w gpu-st-p4d-24xlarge-[1-2]\nsrun ./a"),
        ("fixed-port", f"{TWO.replace('nodes=2', 'nodes=8')}MASTER_PORT=29500\nsrun ./a"),
        ("no-launcher", f"{TWO}N=$(python3 count.py)\n./run.sh $N"),
        ("no-launcher", f"{TWO}export SMARTSIM_LOG_LEVEL=debug\npython3 driver.py"),
        ("placeholder", f"{PBS}#PBS -v NUM_NODES,PLACE\n./a"),
        ("uneven-tasks", f"{HEAD}#SBATCH -N 2 -n 4 --exclusive --gres=gpu:2\nsrun ./a"),
        ("bad-count", f"{HEAD}#SBATCH --tasks-per-node=X\nsrun ./a"),
        ("placeholder", f"{HEAD}#SBATCH --mem=2G ; what your job needs\n./a"),
        ("no-shebang", f"#PBS -S /bin/bash\n{PBS[12:]}hostname"),
        ("mkdir-exists", f"{HEAD}mkdir results 2> /dev/null\nsrun ./a"),
        ("mkdir-exists", f"{HEAD}mkdir -m 755 $TMPDIR/a\nsrun ./a"),
        ("download-in-job", f"{HEAD}pip install /opt/wheels/a-1.0.whl b.whl\nsrun ./a"),
        *(
            ("download-in-job", f"{HEAD}curl -X POST {url}\nsrun ./a")
            for url in (
                "http://$gateway:80/x",
                '"http://${HOST}:$PORT"',
                "http://head:8265/api",
                "http://$IP/x",
            )
        ),
        ("download-in-job", f"{HEAD}curl -s http://169.254.169.254/instance/"),
        ("download-in-job", f'{HEAD}git clone "$HOME/source" work'),
        ("packed-chunks", f"{PBS}#PBS -l select=1:host=a:ncpus=4+1:host=b:ncpus=4\nmpirun -ppn 2 ./solver"),
        ("no-mpiprocs", f"{PBS}#PBS -l select=2:ncpus=8:ngpus=4\nmpiexec torchrun --nnodes=2 t.py"),
        # What reads all lines below, and what is to be filled in
        ("syntax-error", f"{HEAD}apptainer exec a.sif bash <<EOF > log\npython3 t.py"),
        ("unchecked-variable", f"{HEAD}./a $MOAB_JOBARRAYINDEX > out"),
        # Processes that end at once, or never
        ("bare-wait", f"{HEAD}./startCluster.sh &\nsrun ./a &\nwait"),
        ("single-wait", f"{HEAD}trap 'touch a' USR1\nsrun ./a\nwait"),
        (
            "blocking-steps",
            f"{HEAD}#SBATCH --ntasks=2\nsrun -n 1 cd a && ./b &\nsrun -n 1 cd c && ./b &\nwait",
        ),
        (
            "blocking-steps",
            f"{HEAD}#SBATCH -n 2\n#SBATCH --cpus-per-task=\nsrun -n 1 ./a &\nsrun -n 1 ./a &\nwait",
        ),
        ("no-pipefail", f"{HEAD}set -e\nsnakemake --dag | dot -Tpdf > dag.pdf"),
        ("trap-late", f"{HEAD}trap 'rm a' TERM EXIT\nsrun ./a"),
    ],
)
def test_what_is_right_is_not_reported(rule: str, text: str) -> None:
    assert levels(text, rule) == []


@pytest.mark.parametrize(
    ("rule", "text", "level"),
    [
        ("inert-directive", f"{HEAD}# SBATCH --nodes=2", "note"),
        ("inert-directive", f"{HEAD}# SBATCH --nodes=2\n#SBATCh --nodes=3", "note"),
        ("inert-directive", f"{PBS}# PBS -l select=2", "note"),
        ("inert-directive", f"{HEAD}#SBATCh --nodes=2", "warning"),
        ("inert-directive", "#!/bin/bash\n# SBATCH --nodes=2\nsrun hostname", "warning"),
        ("late-directive", f"{HEAD}hostname\n#SBATCH --nodes=2\nhostname", "error"),
        ("late-directive", "#!/bin/bash\n{{% if x %}}\n#SBATCH --nodes={{{{ n }}}}".format(), None),
        ("late-directive", f"{PBS}cd x\n#PBS -v OMP_NUM_THREADS\n#PBS -V\nhostname", "note"),
        ("late-directive", f"{PBS}cd x\n#PBS -l walltime=01:00:00\nhostname", None),
        ("late-directive", f"{PBS}cd x\n#PBS -l walltime=02:00:00\nhostname", "error"),
        ("late-directive", f"{HEAD}cd x\n#SBATCH -n 2\n#SBATCH -n 4\n#SBATCH -n 8\nhostname", "note"),
        ("late-directive", f"{HEAD}cd x\n#SBATCH -n 2\n#SBATCH -n 4\nhostname", "error"),
        ("late-directive", f"{HEAD}cd x\n#SBATCH -c 1\nhostname", None),
        ("late-directive", f"{HEAD}cd x\n#SBATCH -c 1\n./a $SLURM_CPUS_PER_TASK", "error"),
        ("late-directive", f"{HEAD}#SBATCH -n 4\ncd x\n#SBATCH -N 1\nhostname", "error"),
        ("bad-value", f"{PBS}#PBS -l nodes=1:ppn=2\n#PBS -l ppn=1", "warning"),
        ("bad-value", f"{PBS}#PBS -l nodes=1:ppn=2\n#PBS -l waltime=1:00:00", "error"),
        ("bad-value", f"{PBS}#PBS -l nodes=1:ppn=2:vmem=2gb", "error"),
        ("bad-name", f"{PBS}#PBS -N a$N", "warning"),
        ("bad-name", f"{PBS}#PBS -P project\n#PBS -N a$N", "error"),
        ("unknown-option", f"{PBS}#PBS -P project\n#PBS -wd", "warning"),
        ("unknown-option", f"{PBS}#PBS -P project\n#PBS -N a b", "error"),
        ("unknown-option", f"{PBS}#PBS -N a b", "warning"),
        ("bad-select", f"{PBS}#PBS -l place=excl", "error"),
        ("bad-select", "#!/bin/bash\n#PBS -l place=excl", "warning"),
        ("foreign-variable", f"{PBS}#PBS -P project\necho $PBS_NP", "note"),
        ("foreign-variable", f"{PBS}#PBS -P project\n./a $PBS_NP", "error"),
        ("foreign-variable", f"{PBS}#PBS -P project\n./a $((PBS_NP + 1))", "error"),
        ("foreign-variable", f"{PBS}#PBS -P project\n((n = PBS_NP * 2))\n./a $n", "error"),
        ("foreign-variable", f"{PBS}#PBS -P project\nN=$(echo $PBS_NP)\n./a $N", "error"),
        ("foreign-variable", f"{PBS}#PBS -P project\n./a $PBS_NUM_PPN", "warning"),
        ("ssh-eats-list", f'{TWO}while read -r h; do srun -n 1 -w "$h" date; done < hosts', "warning"),
        ("ssh-eats-list", f'{TWO}cat hosts | while IFS= read -r h; do ssh "$h" date; done', "warning"),
        ("ssh-eats-list", f'{TWO}while read -r h; do ssh "$h" date > $h & sleep 3; done < hosts', "warning"),
        ("ssh-eats-list", f'{TWO}while read -r h; do (ssh "$h" date) & wait; done <<< "$H"', "warning"),
        ("ssh-eats-list", f'{TWO}while read -r h; do ssh "$h" date & sleep 1; done < <(sort h)', "warning"),
        *(
            ("lost-status", f"{HEAD}srun ./a 2>&1 | tee log{line}\ndate", "warning")
            for line in (
                "\nif [ $? -eq 0 ]; then rm b; fi",
                "\nif [[ $? == 0 ]]; then rm b; fi",
                "\nif (( $? != 0 )); then exit 1; fi",
                "\n[ $? -eq 0 ] || exit 1",
                "\nrc=$?\nexit $rc",
                "\nrc=$?\nif [ $rc -ne 0 ]; then exit 1; fi",
                "\nexit $?",
                " || exit 1",
                " && ./b",
            )
        ),
        ("lost-status", f"{HEAD}if srun ./a | tee log; then rm b; fi", "warning"),
        ("lost-status", f"{HEAD}a() {{\n./b | cat > c\nreturn $?\n}}\na\ndate", "warning"),
        *(
            ("early-expansion", f"#!/bin/bash\n{text}", "error")
            for text in (
                "sbatch <<END\n#!/bin/bash\nA=\\$(hostname)\nsrun ./a $A\nEND\n",
                "cat <<END | qsub\n#!/bin/bash\nfor i in 1 2; do\n./a $i\ndone\nEND\n",
                "cat > j.sh <<END\n#!/bin/bash\nsort $PBS_NODEFILE > h\nEND\nqsub j.sh\n",
                "sbatch <<END\n#!/bin/bash\nA=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -1)\nEND\n",
                "sbatch <<END\n#!/bin/bash\npython t.py --rank $SLURM_PROCID\nEND\n",
                'sbatch --array=1-9 --wrap="./a $SLURM_ARRAY_TASK_ID"\n',
            )
        ),
        ("early-expansion", "#!/bin/bash\nsbatch <<END\n#!/bin/bash\necho in $SLURM_JOB_ID\nEND\n", "note"),
        ("rank-number", f"{ASKED}srun bash -c 'RANK=$OMPI_COMM_WORLD_RANK ./a'", "error"),
        ("rank-number", f"{ASKED}srun bash -c './a --local $MPI_LOCALRANKID'", "error"),
        ("rank-number", f"{ASKED}srun bash -c 'RANK=$PBS_TASKNUM ./a'", "error"),
        ("rank-number", f"{ASKED}srun --mpi=none bash -c 'RANK=$PMI_RANK ./a'", "error"),
        ("rank-number", f"{ASKED}srun --mpi=pmi2 bash -c 'LOCAL_RANK=$PMI_LOCAL_RANK ./a'", "error"),
        ("rank-number", f"{ASKED}#SBATCH -N 1\nmpirun -np 4 bash -c 'RANK=$SLURM_PROCID ./a'", "warning"),
        ("fixed-interface", f"{TWO}export NCCL_SOCKET_IFNAME==eth", "note"),
        ("sleep-as-sync", f"{HEAD}srun ./server &\nsleep 60\n./client", "warning"),
        ("forced-devices", f"{HEAD}CUDA_VISIBLE_DEVICES=3 ./a", "warning"),
        ("bad-walltime", "#!/bin/bash\n#SBATCH --time=<minutes>", None),
        ("bad-walltime", "#!/bin/bash\n#SBATCH --time=$TIME", "error"),
        ("bad-count", f"{HEAD}#SBATCH --ntasks=@TASKS@", None),
        ("unknown-option", f"{HEAD}#SBATCH --mail-user=<your address>", None),
        ("bad-choice", f"{HEAD}#SBATCH --mail-type=BEGIN,ABORT", "note"),
        ("bad-choice", f"{HEAD}#SBATCH --mail-type=ABORT", "error"),
        ("no-shebang", "#SBATCH --time=1\nhostname\n#!/bin/bash\n#SBATCH --time=1\nhostname", "note"),
        ("no-shebang", "\n#!/bin/bash\n#SBATCH --time=1\nhostname", "error"),
        ("srun-cpus", f"{ASKED}#SBATCH --cpus-per-task=8\nsrun python3 t.py", "note"),
        ("srun-cpus", f"{ASKED}#SBATCH --cpus-per-task=8\nml slurm/23.02.7\nsrun python3 t.py", "warning"),
        ("output-variable", f"{HEAD}#SBATCH --output=$HOME/x.log", "error"),
        ("output-variable", f"{HEAD}#SBATCH --output=x-$USER.log", "note"),
        ("uneven-tasks", f"{ASKED}#SBATCH --nodes=3", None),
        ("uneven-tasks", f"{ASKED}#SBATCH --nodes=3\nmpirun ./a", "note"),
        ("unchecked-cd", f"{HEAD}cd <TMPL_VAR NAME=base>\n./run.sh <TMPL_VAR NAME=out>/a.log", None),
        ("forced-devices", f"{HEAD}#SBATCH --gpus-per-node=2\nexport CUDA_VISIBLE_DEVICES=1", "note"),
        ("ranks-mismatch", f"{ASKED}mpirun -np 16 ./solver", "warning"),
        ("first-node-only", f"{TWO}torchrun --nnodes=1 train.py", "warning"),
        ("early-expansion", f"{TWO}srun ./prof --name=run_$SLURM_PROCID.log", "note"),
        ("packed-chunks", f"{PBS}#PBS -l select=2:ncpus=4\nmpirun ./solver", None),
        ("packed-chunks", f"{PBS}#PBS -l select=2:ncpus=4\nmpirun -ppn 2 ./solver", "warning"),
        ("packed-chunks", f"{PBS}#PBS -l select=2:ncpus=64\nmpirun -ppn 2 ./solver", None),
        ("packed-chunks", f"{PBS}#PBS -l select=2:ncpus=8:ngpus=4\nmpirun -ppn 2 ./solver", None),
        ("unset-variable", f'{HEAD}./train "$seed"', "note"),
        ("no-walltime", "#!/bin/bash\n##SBATCH --nodes=2\nsrun hostname", None),
        ("no-walltime", "#!/bin/bash\n#SBATCH --job-name=a\n#SBATCH --output=a.log\nsrun ./a", "note"),
        ("no-walltime", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --partition=cpu-2h\nsrun ./a", "note"),
        ("no-walltime", "#!/bin/bash\n#SBATCH --gpus=1\n#SBATCH --partition=a100\nsrun ./train", "warning"),
        ("no-walltime", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --partition=gpu-debug\nsrun ./a", "note"),
        ("no-walltime", "#!/bin/bash\n#PBS -l nodes=1:ppn=2\n#PBS -q test\n./a", "note"),
        ("no-walltime", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --partition=latest\nsrun ./a", "warning"),
        ("no-walltime", "#!/bin/bash\n#SBATCH --gpus=1 --partition=gpu-long\nsrun ./train", "warning"),
        ("no-shebang", "#SBATCH --nodes=2\n#SBATCH --time=1\nsrun ./a", "note"),
        # The same as the default, only a label, and a directive that others exclude
        ("inert-directive", f"{HEAD}#SBTACH --nodes=1\n#SBATCH --ntasks-per-node=8\nsrun ./a", "note"),
        ("inert-directive", f"{HEAD}#SBTACH --nodes=1\n#SBATCH --ntasks=8\nsrun ./a", "warning"),
        ("inert-directive", f"{HEAD}#SBTACH --ntasks=1\n#SBATCH --cpus-per-task=8\nsrun ./a", "note"),
        ("inert-directive", f"{HEAD}SBATCH --output=a.log\nsrun ./a", "note"),
        ("inert-directive", f"{HEAD}SBATCH --mem=8G\nsrun ./a", "warning"),
        ("inert-directive", f"{HEAD}#SBATCH --mem=8G\n#SBTACH --mem-per-cpu=1G\nsrun ./a", "note"),
        ("inert-directive", f"{HEAD}#SBTACH --mem-per-cpu=1G\nsrun ./a", "warning"),
        ("exclusive-memory", f"{TWO}#SBATCH --exclusive\nsrun ./a", "note"),
        ("uneven-tasks", f"{HEAD}#SBATCH -N 2 -n 4 --gres=gpu:2\nsrun ./a", "warning"),
        ("unexported-variable", f"{HEAD}PYTHONUNBUFFERED=1\npython3 t.py", "note"),
        ("unexported-variable", f"{HEAD}TF_CPP_MIN_LOG_LEVEL=0\npython3 t.py", "note"),
        ("unexported-variable", f"{HEAD}TRANSFORMERS_OFFLINE=1\npython3 t.py", "warning"),
        ("uneven-tasks", f"{HEAD}#SBATCH -N 2 -n 5 --exclusive\nsrun ./a", "note"),
        ("fixed-port", f"{TWO}MASTER_PORT=29500\nsrun ./a", "note"),
        ("no-launcher", f"{TWO}export OMP_NUM_THREADS=4\npython3 driver.py", "note"),
        ("repeated-count", f"{TWO}mpirun -np 2 ./a\nmpirun -np 4 ./a", "note"),
        ("personal-path", f'{HEAD}srun ./a "/home/alice/$JOB/x"', "note"),
        ("inert-directive", f"{HEAD}# the memory\n# SBATCH --nodes=2", "note"),
        ("unchecked-cd", f"{HEAD}cd $SLURM_SUBMIT_DIR\nrm *.tmp", None),
        ("unchecked-cd", f"{HEAD}W=$SLURM_SUBMIT_DIR\ncd $W\nrm *.tmp", None),
        ("unchecked-cd", f"{HEAD}mkdir /x\ncd /x\ncd $SLURM_SUBMIT_DIR\nrm *.tmp", "note"),
        ("unchecked-cd", f"{HEAD}#SBATCH --chdir=/tmp/x\ncd $SLURM_SUBMIT_DIR\nrm *.tmp", "warning"),
        ("unchecked-cd", f"{HEAD}cd $RUN\nsrun python3 $RUN/t.py --data /data", "note"),
        ("unchecked-cd", f"{HEAD}mkdir -p $RUN\ncd $RUN\nsrun python3 t.py", "note"),
        ("unchecked-cd", f"{HEAD}cd $RUN\nsrun python3 t.py", "warning"),
        ("unchecked-cd", f"{HEAD}cd $RUN\nsrun solver > out.log", "warning"),
        ("unchecked-cd", f"{HEAD}cd $RUN || return\nsrun solver", "note"),
        ("unchecked-cd", f"{HEAD}if [ ! -d $RUN ]; then\ncd $RUN\nfi\nsrun solver > a.log", "warning"),
        ("unchecked-cd", f"{HEAD}if [ -d $A ]; then\ncd b\nelse\ncd $A\nfi\nsrun solver > a.log", "warning"),
        ("unchecked-cd", f"{HEAD}cd $RUN || {{ echo no; return 1; }}\nsrun solver", "note"),
        ("unchecked-cd", f"{HEAD}cd $RUN || return\nrm *\nsrun solver", "warning"),
        ("no-errexit", f"{HEAD}#SBATCH --gpus=1\nmodule load cuda\nsrun python3 t.py", None),
        ("no-errexit", f"{HEAD}#SBATCH --gpus=1\nmodule load cuda\nsrun python3 -m tensorflow.t", "note"),
        ("no-errexit", f"{HEAD}mkdir -p out\nsrun pwd\nsrun python3 t.py", None),
        ("no-errexit", f"{HEAD}source env/bin/activate\nsrun python3 t.py", None),
        ("no-errexit", f"{HEAD}source env/bin/activate\npip install a\nsrun python3 t.py", "note"),
        ("no-errexit", f"{HEAD}bash hosts.sh\ndeepspeed t.py --version plain", None),
        ("no-errexit", f"{HEAD}srun python3 t.py\ndate", "warning"),
        ("no-errexit", f"{HEAD}for i in 1 2; do srun python3 t.py $i; done", "note"),
        ("no-errexit", f"{HEAD}if [ -f a ]; then\nsrun python3 a.py\nfi\nsrun python3 b.py", "note"),
        (
            "source-activate",
            f"{HEAD}#SBATCH --export=NONE\nmodule load cuda/11.7 gcc\nsource activate a",
            "warning",
        ),
        ("source-activate", f"{HEAD}#SBATCH --export=NONE\nmodule load anaconda3\nsource activate a", "note"),
        (
            "source-activate",
            f"{HEAD}#SBATCH --export=NONE\nexport PATH=/opt/conda/bin:$PATH\nsource activate a",
            "note",
        ),
        ("source-activate", f"{HEAD}#SBATCH --export=NONE\nsource ~/.bashrc\nsource activate a", "note"),
        (
            "source-activate",
            f"{HEAD}#SBATCH --export=NONE\nsource activate a\nmodule load anaconda3",
            "warning",
        ),
        ("source-activate", f"{HEAD}source activate a", "note"),
        ("source-activate", f"{HEAD}module load anaconda3/2020.11\nsource activate a", "note"),
        ("source-activate", f"{HEAD}source activate a || exit 1", "note"),
        ("source-activate", f"{HEAD.replace('bash', 'bash -l')}source activate a", "note"),
        ("mkdir-exists", f"{HEAD}set -e\nmkdir results 2> /dev/null\nsrun ./a", "note"),
        ("fixed-interface", f"{HEAD}export NCCL_SOCKET_IFNAME=eth0,eth1", "note"),
        ("trap-late", f"{HEAD}trap 'touch a' TERM\npython3 t.py", "note"),
        ("trap-late", f"{HEAD}#SBATCH --signal=B:TERM@60\ntrap 'touch a' TERM\npython3 t.py", "warning"),
        ("no-pipefail", f"{HEAD}set -e\ncat a | sed s/a/b/ > b\ngrep a b | sort > c", "warning"),
        ("fixed-port", f"{HEAD}#SBATCH --gres=gpu:8\nMASTER_PORT=29500\nsrun ./a", None),
        ("fixed-port", f"{HEAD}#SBATCH --gres=gpu:4\nMASTER_PORT=29500\nsrun ./a", "warning"),
        ("forced-devices", f"{HEAD}#SBATCH --exclusive\nexport CUDA_VISIBLE_DEVICES=1", None),
        ("forced-devices", f"{HEAD}#SBATCH --gpus-per-node=8\nexport CUDA_VISIBLE_DEVICES=1", None),
        ("no-walltime", "#!/bin/bash\n#SBATCH --exclusive\n#SBATCH --mem=0\nsrun ./a", "note"),
        *(
            ("no-errexit", f"{HEAD}{body}", "warning")
            for body in (
                "srun ./a\nwait",
                "srun ./a\nexit 0",
                "python3 t.py\nconda deactivate",
                "srun ./a\ncp out $HOME\nrm -rf tmp",
                "julia a.jl\nset +x",
                "srun ./a\nsrun ./b\necho done",
            )
        ),
        *(
            ("no-errexit", f"{HEAD}{body}", "note")
            for body in (
                "for i in 1 2; do srun ./a $i; done\necho done",
                "srun ./a 1\nsrun ./a 2\necho done",
                "srun ./a\ncp out $HOME",
                "python3 - <<E\ntrain()\nE\necho done",
                "python3 -m venv x\necho done",
                "train() { srun ./a; }\ntrain\necho done",
            )
        ),
        *(
            ("unquoted-path", f"{HEAD}{values}\ncd $D", "note")
            for values in (
                "D=$1",
                "D=$SLURM_SUBMIT_DIR/x",
                "D=$(date '+%Y %m')",
                "names=('a b' c)\nD=${names[0]}",
                "D=$D/x",
            )
        ),
        *(
            ("unquoted-path", f"{HEAD}cp {word} /data", "note")
            for word in ("$d/a.txt", "$d.txt", "a/$d", "$d/run_$x.txt", '"$x"/$d/b', "-I$d/a")
        ),
        *(
            ("personal-path", f"{HEAD}srun ./a {word}", "note")
            for word in (
                "/home/alice/projects/x",
                "/users/p1/alice/x",
            )
        ),
        ("personal-path", f"{HEAD}export PATH=$PATH:/home/alice/bin", "note"),
        ("output-directory", f"{HEAD}#SBATCH -o logs/%j.log\nmkdir -p logs\nsrun ./a", "warning"),
        (
            "output-directory",
            f"{HEAD}#SBATCH -o /x/logs/%j.log\nL=/x/logs\ncd /x\nmkdir -p $L\n./a",
            "warning",
        ),
        ("output-directory", f"{HEAD}#SBATCH -o logs/%j.log\nsrun ./a", "note"),
        ("output-directory", f"{HEAD}#SBATCH -o logs/%j.log\ncd /x\nmkdir -p logs", "note"),
        ("output-directory", f"{HEAD}#SBATCH -o logs/%j.log\nmkdir -p logs\nsbatch $0", "note"),
        ("output-directory", f"{PBS}#PBS -o logs/a.log\nsrun ./a", "note"),
        ("no-errexit", f"{HEAD}source /etc/profile\nmodule load python\nsrun python3 t.py", None),
        ("trap-late", f"{PBS}trap 'touch a' TERM USR1\npython3 t.py", "warning"),
        ("trap-late", f"{HEAD}trap 'touch a' USR1\npython3 t.py", "note"),
        ("bare-wait", f"{HEAD}./startCluster.sh &\nsrun ./a &\nkill $!\nwait", "warning"),
        ("syntax-error", f"{HEAD}python3 <<EOF > log\nprint(1)", "warning"),
        ("no-errexit", f"{HEAD}python3 setup.py\nctest -D Nightly\nexit 0", "note"),
        ("unset-variable", f"{HEAD}ids_list=1\n./a $id_list", "warning"),
        ("memory-unit", f"{HEAD}#SBATCH --mem=self.memory\nhostname", None),
        ("early-expansion", f"{TWO}export NODE_RANK=$SLURM_NODEID\nsrun python3 t.py", "warning"),
        ("early-expansion", f"{TWO}export RANK=$SLURM_PROCID\nsrun python3 t.py", "warning"),
        ("early-expansion", f"{TWO}export N=$SLURM_NODEID\nsrun python3 t.py --rank $N", "error"),
    ],
)
def test_the_level(rule: str, text: str, level: str | None) -> None:
    assert levels(text, rule)[:1] == ([] if level is None else [level])


def test_a_group_in_the_background_is_one_process() -> None:
    assert levels(f"{HEAD}{{\n./a\n./b &\n./c\n}} &", "unwaited-background") == ["warning"]
    assert levels(f"{HEAD}./a &\n./b &", "unwaited-background") == ["warning"] * 2


def test_a_line_has_one_finding_on_its_words() -> None:
    text = f"{PBS}#PBS -l nodes=1:ppn=2\n#PBS -q long a queue for days"
    assert levels(text, "unknown-option") == ["warning"]


def test_a_loop_has_one_finding_on_its_input() -> None:
    text = f'{TWO}while read -r h; do\nssh "$h" date\nssh "$h" uptime\ndone < hosts'
    assert levels(text, "ssh-eats-list") == ["warning"]


@pytest.mark.parametrize(
    ("rule", "text", "words"),
    [
        (
            "no-errexit",
            f"{HEAD}module load a\nsrun ./a\nexit 0",
            "if srun fails, the job counts as successful",
        ),
        (
            "no-errexit",
            f"{HEAD}#SBATCH --gpus=1\nmodule load cuda\nsrun python3 keras.py",
            "if 'module load cuda' fails, the script goes on, and TensorFlow goes on without the GPUs",
        ),
        (
            "no-errexit",
            f"{HEAD}for i in 1 2; do srun ./a $i; done",
            "else || failed=1, and exit ${failed:-0}",
        ),
        ("output-directory", f"{HEAD}#SBATCH -o a/b -e a/c\nsrun ./a", "the scheduler does not create it"),
        ("mkdir-exists", f"{HEAD}mkdir -m 755 out\nsrun ./a", "mkdir fails in the next job: out then exists"),
        (
            "personal-path",
            f"{HEAD}srun /home/bob/code/d/e",
            "/home/bob/code is below the home directory of one user",
        ),
        ("personal-path", f"{HEAD}cd /home/bob", "/home/bob is the home directory of one user"),
        ("personal-path", f"{HEAD}cd /home/users/lab/bob/a", "/home/users/lab/bob is below the home"),
        ("no-errexit", f"{HEAD}root -l a.C\ndate", "start root with -b -q, as it ends with 0"),
        (
            "no-errexit",
            f"{HEAD}root -lbq a.C\ndate",
            "write status=$? behind it, and exit $status at the end",
        ),
        ("no-errexit", f"{HEAD}srun ./a\ndate", "write status=$? behind it, and exit $status at the end"),
        (
            "no-errexit",
            f"{HEAD.replace('bash', 'sh')}srun ./a | tee b\ndate",
            "make the first line #!/bin/bash, and",
        ),
        ("no-errexit", f"#!/bin/sh\n{PBS[12:]}#PBS -S /bin/bash\n(python3 a.py)\ndate", "write set -eo"),
        (
            "no-errexit",
            f"{HEAD}srun julia -O3 a.jl\nsrun julia -O3 b.jl\ndate",
            "if srun fails, the job counts as successful",
        ),
        ("no-errexit", f"{HEAD}srun julia a.jl 1\nsrun julia a.jl 2", "write || exit 1 behind it if later"),
        (
            "no-errexit",
            "#!/bin/bash\nsbatch <<EOF\n#!/bin/bash\n#SBATCH -t 1:00:00\nsrun ./a 1\nsrun ./a 2\nEOF",
            r"exit \${failed:-0}",
        ),
        ("unchecked-cd", f"{HEAD}cd a || return\nls b/c", "return does not end a script"),
        ("unchecked-cd", f"{HEAD}cd a\nrm -rf *\nls b/c", "if cd fails, 'rm -rf *' deletes the files"),
        (
            "unchecked-cd",
            f"{HEAD}cd a\nfind . -name '*.o' -delete",
            "the following commands run in the wrong directory",
        ),
        ("unchecked-cd", f"{HEAD}cd a\nfind . ! -name b -exec rm {{}} +\nls b/c", "{} +' deletes the files"),
        ("unchecked-cd", f"{HEAD}cd a\nls b/c\nrm -rf *.o", "if cd fails, the following commands run"),
        ("bad-value", f"{HEAD}#SBATCH --gpus=gpu:a100:2\nsrun ./a", "write --gpus=a100:2"),
        ("misspelt-variable", f"{HEAD}RUN=a\nsrun ./a > $RUN_$SLURM_JOB_ID", "write ${RUN}_"),
        ("unknown-option", f"{HEAD}#SBATCH -p a, b\nsrun ./a", "remove the blank in front of it"),
        ("unknown-option", f"{HEAD}#SBATCH --mail-user = a@b.c\nsrun ./a", "remove the blanks around the ="),
        (
            "unknown-option",
            f"{PBS}#PBS -l ngpus = 1, at least 1\n./a",
            "remove the blanks around the =, and the words",
        ),
        (
            "unknown-option",
            f"{HEAD}#SBATCH --job-name= a b\nsrun ./a",
            "write the value in quotes, without the",
        ),
        ("unknown-option", f"{HEAD}#SBATCH --c 1\nsrun ./a", "write the whole name, or -c with one dash"),
        ("memory-unit", f"{HEAD}#SBATCH --mem=MaxMemPerNode\nsrun ./a", "or 0 for all memory of the node"),
        ("bad-value", f"{HEAD}#SBATCH -N GROMACS\nsrun ./a", "write --job-name=GROMACS if it is the name"),
        ("foreign-variable", f"{PBS}cd $SLURM_SUBMIT_DIR\n./a $PBS_JOBID", "use PBS_O_WORKDIR"),
        ("unknown-option", f"{PBS}#PBS ngpus=1\n./a", "write -l ngpus=1"),
        ("unknown-option", f"{PBS}#PBS output=a.out\n./a", "write -o a.out"),
        ("unknown-option", f"{HEAD}#SBATCH nodes=2\nsrun ./a", "write --nodes=2"),
        (
            "unknown-option",
            f"{HEAD}#SBATCH --export=all module load a\nsrun ./a",
            "write the command on a line",
        ),
        ("unknown-option", f"{HEAD}#SBATCH ---ntasks=16\nsrun ./a", "did you mean --ntasks?"),
        ("other-dialect", f"{HEAD}#SBATCH -joe\nsrun ./a", "remove it: one file has both outputs"),
        ("bad-value", f'{HEAD}#SBATCH --nodelist="*gr*"\nsrun ./a', "it takes names of nodes"),
        ("qsub-only", f"{PBS}#PBS -l ncpus=4,\n./a", "remove the comma that is one too many"),
        (
            "bad-select",
            f"{PBS}#PBS -P a\n#PBS -l ncpus=4 -l place=scatter\n./a",
            "remove it, or write the resources of its nodes as -l select=1:ncpus=8",
        ),
        (
            "late-directive",
            f"{PBS}cd a\n#PBS -o %N.$PBS_JOBID\n./a",
            "remove it: the name that the scheduler",
        ),
        ("late-directive", f"{PBS}id=${{PBS_JOBID%%.*}}\n#PBS -o log/$id\n./a", "write -o log/ above"),
        ("late-directive", f"{PBS}id=$PBS_JOBID\n#PBS -N a.$id\n./a", "remove it: directives expand no"),
        ("late-directive", f"{PBS}n=a\n#PBS -N $n\n./a", "give it to qsub: directives expand no"),
        (
            "late-directive",
            f"{PBS}#PBS -l nodes=1:ppn=4\nid=$PBS_JOBID\n#PBS -o a.$id\n./a",
            "write $PBS_JOBID for the id of the job",
        ),
        ("late-directive", f"{PBS}#PBS -l nodes=1:ppn=4\ncd a\n#PBS -o $PBS_JOBID.a\n./a", "move it above"),
        ("late-directive", f"{HEAD}cd a\n#SBATCH -o a.$SLURM_JOB_ID\n./a", "write %j for the id of the job"),
        ("no-errexit", f"{HEAD}nvidia-smi\npython3 a.py\necho done", "write status=$? behind it"),
        ("no-errexit", f"{HEAD}mkdir a\npython3 a.py\necho done", "write status=$? behind it"),
        ("no-errexit", f"{HEAD}mkdir -p a\n(python3 a.py)\necho done", "write set -eo pipefail"),
        (
            "late-directive",
            f"{HEAD}mkdir -p a\n#SBATCH -o a/%j\n./a",
            "above the first command, and make the directory a before you submit",
        ),
        ("late-directive", f"{HEAD}cd a\n#SBATCH --input=in/a\n./a", "move it above the first command"),
        (
            "late-directive",
            f"{HEAD}cd a\n#SBATCH -w *gr*\n./a",
            "correct it, and move it above the first command",
        ),
        (
            "late-directive",
            f"{HEAD}if a; then\n#SBATCH -p b\nelse\n./c\nfi",
            "give it to sbatch: no condition of the script decides",
        ),
        ("unknown-option", f"{HEAD}#SBATCH -p a ; queue\nsrun ./a", "begin a comment with #"),
        ("syntax-error", f"{HEAD}<<<<<<< Updated upstream\nsrun ./a", "resolve the conflict"),
        (
            "bad-value",
            f"{HEAD}#SBATCH --gres=gpu:2\u00a0\u00a0# two\nsrun ./a",
            "replace the no-break spaces",
        ),
        ("bad-value", f"{PBS}#PBS -l nodes=1:ncpus=4\necho $PBS_NP", "write ppn=4"),
        ("bad-value", f"{PBS}#PBS -l nodes=1:ppn=4:vmem=3gb\n./a", "write -l vmem=3gb in a line of its own"),
        ("bad-value", f"{HEAD}#SBATCH --mem=1G --mem-per-cpu=1G\nsrun ./a", "remove one of them"),
        ("bad-value", f"{HEAD}#SBATCH -n 8 -N 4 --ntasks-per-node=1\nsrun ./a", "change one of the numbers"),
        ("bad-value", f"{HEAD}#SBATCH --mem-per-gpu=1G\nsrun ./a", "add the other option"),
        ("first-node-only", f"{TWO}torchrun --nnodes=1 t.py", "request one node, or start it with srun"),
        ("first-node-only", f"{TWO}torchrun --nnodes=1 t.py", "with --nnodes=2 and the address"),
        ("first-node-only", f"{TWO}torchrun --nnodes=2 t.py", "or --node-rank with a value that differs"),
        ("signal-to-steps", f"{HEAD}#SBATCH --signal=USR1@60\ntrap 'rm a' USR1\nsrun ./a", "with & and wait"),
        (
            "signal-to-steps",
            f"{HEAD}#SBATCH --signal=INT@60\npython3 t.py",
            "srun if they catch INT, else remove",
        ),
        ("bad-count", f"{HEAD}#SBATCH --ntasks=\nsrun ./a", "write --ntasks=N, unless a program fills it in"),
        ("bare-wait", f"{HEAD}ls | while read -r a; do\nsrun ./a $a &\ndone\nwait", "a process of its own"),
        (
            "bare-wait",
            f"{HEAD}(\nsrun ./a &\nwait\n)",
            "before the ) of line 6, and with the status of that part",
        ),
        (
            "lost-status",
            f"{HEAD}set -e\nA=$(ls | head -1)\nsrun ./a $A | tee log",
            "pipefail above this line",
        ),
        (
            "old-nccl",
            f"{HEAD}export NCCL_ASYNC_ERROR_HANDLING=1\nsrun ./a",
            "an older PyTorch knows only the old",
        ),
        (
            "other-port",
            f"{HEAD}python3 -m vllm.entrypoints.openai.api_server &\ncurl http://localhost:9000/v1",
            "at which vllm.entrypoints.openai.api_server listens, 8000",
        ),
        ("bashrc", f"{HEAD}source ~/.bash_profile", "is for login shells"),
        ("bashrc", f"{HEAD}source ~/.bashrc", "is for interactive shells"),
        ("download-in-job", f"{HEAD}python3 -m pip install a\nsrun ./a", "python3 -m pip needs the internet"),
        *(
            ("download-in-job", f"{HEAD}{text}\npip install a\nsrun ./a", fix)
            for text, fix in (
                (
                    "cd /scratch/$SLURM_JOB_ID\npython3 -m venv e\nsource e/bin/activate",
                    "into a shared folder",
                ),
                ("cd $TMPDIR\nsource ~/e/bin/activate", "run it on the login node"),
                ("cd $TMPDIR", "run it on the login node"),
            )
        ),
        ("forced-devices", f"{HEAD}#SBATCH --gpus-per-task=4\nCUDA_VISIBLE_DEVICES=0,1 ./a", "remove it"),
        ("forced-devices", f"{HEAD}CUDA_VISIBLE_DEVICES=0,1 ./a", "request the devices"),
        (
            "forced-devices",
            f"{HEAD}#SBATCH --gres=gpu:2\nCUDA_VISIBLE_DEVICES=1 ./a",
            "request 1, or remove it",
        ),
        ("repeated-directive", f"{PBS}#PBS -m a\n#PBS -m e\n./a", "write the letters of both in one"),
        (
            "source-activate",
            f"{HEAD}. /opt/etc/profile.d/conda.sh\nsource activate a",
            "write conda activate",
        ),
        (
            "ssh-between-nodes",
            f"{TWO}a=$(ssh $head hostname -i | cut -f1)",
            "many clusters do not allow ssh between nodes start it",
        ),
        ("nodes-mismatch", f"{PBS}#PBS -l nodes=2:ppn=16\naprun -n 4 ./a", "start 2 ranks on each: -N 2"),
        ("nodes-mismatch", f"{PBS}#PBS -l nodes=2:ppn=16\nmpirun -n 4 ./a", "--map-by ppr:2:node"),
        ("ssh-between-nodes", f"{TWO}ssh $head ./server", "nodes, and its processes outlive the job"),
        (
            "ssh-between-nodes",
            f"{TWO}ssh $head 'conda activate a; ./server'",
            "write the commands into a script",
        ),
        ("source-activate", f"{HEAD}source activate a\n. /opt/etc/profile.d/conda.sh", "write eval"),
        *(
            ("overwritten-path", f"{HEAD}module load a\nexport PATH={value}\n./a", fix)
            for value, fix in (
                ("/opt/a:/\nall/bin:/opt/b:$PATH", "join line 5 to it"),
                ("/opt/a:PATH", "write $PATH, with the dollar sign"),
                ('"/opt/a:£PATH"', "write $PATH, with the dollar sign"),
                ("/opt/PATH/bin", "append the old one"),
            )
        ),
        (
            "ranks-mismatch",
            f"{HEAD}#SBATCH --gres=gpu:1\npython -m torch.distributed.launch --nproc_per_node=4 t.py",
            "torch.distributed.launch starts 4 ranks on a node of 1 GPU",
        ),
    ],
)
def test_the_words(rule: str, text: str, words: str) -> None:
    (found,) = (one for one in check(f"{text}\n".encode(), folder=".") if one.rule == rule)
    assert f"{found.reason} {found.fix}".count(words) == 1


@pytest.mark.parametrize(
    "text",
    [
        'CMD="torchrun --nnodes=4 t.py"; $CMD',
        'CMD="torchrun --nnodes=4 t.py"\neval "$CMD"',
        'CMD="torchrun --nnodes=4 t.py"\neval $CMD',
        'eval "torchrun --nnodes=4 t.py"',
        "eval torchrun --nnodes=4 t.py",
        "bash -c 'torchrun --nnodes=4 t.py'",
        'CMD="torchrun --nnodes=4 t.py"\nbash -lc "$CMD"',
        'env -S "torchrun --nnodes=4 t.py"',
        "train() { torchrun --nnodes=4 t.py; }\ntrain",
        "stdbuf -oL torchrun --nnodes=4 t.py",
        "python3.7 -m torch.distributed.run --nnodes=4 t.py",
        "poetry run torchrun --nnodes=4 t.py",
        "uv run torchrun --nnodes=4 t.py",
        "uv run -m torch.distributed.run --nnodes=4 t.py",
        "conda run -n base torchrun --nnodes=4 t.py",
        "singularity exec --nv image.sif torchrun --nnodes=4 t.py",
        'singularity exec --nv -B $A:$B "$IMAGE" torchrun --nnodes=4 t.py',
        "apptainer exec $OPTIONS docker://a/b python -m torch.distributed.run --nnodes=4 t.py",
        "numactl -N 0 torchrun --nnodes=4 t.py",
        "taskset -c 0-3 torchrun --nnodes=4 t.py",
        "time nice -n 10 timeout 5h torchrun --nnodes=4 t.py",
    ],
)
def test_a_launcher_is_found_in_strings_functions_and_behind_wrappers(text: str) -> None:
    """It gets more nodes than the job has, and only the first node starts it."""
    found = {one.rule for one in check(f"{TWO}{text}\n".encode()) if one.severity == "error"}
    assert {"nodes-mismatch", "first-node-only"} <= found


def test_a_function_that_srun_starts_is_not_started_by_the_script() -> None:
    body = "train() { torchrun --nnodes=2 t.py; }\nexport -f train\nsrun bash -c train"
    assert levels(f"{TWO}{body}", "first-node-only") == []


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("srun -lu -n 2 solver", "solver"),
        ("srun --pty --label --multi-prog programs.conf", "programs.conf"),
        ("mpirun --report-bindings --nolocal -np 2 solver", "solver"),
        ("mpirun --mca btl tcp,self -np 2 solver", "solver"),
        ("mpiexec -genvall -l -n 2 solver", "solver"),
        ('mpirun -np 2 "$SOLVER" -n 4', '"$SOLVER"'),
        ("deepspeed --no_local_rank --num_gpus 2 program", "program"),
        ("accelerate launch --multi_gpu --use_fsdp program", "program"),
    ],
)
def test_options_without_a_value_do_not_take_the_program(line: str, program: str) -> None:
    (launch,) = Script(f"{HEAD}{line}\n".encode(), "slurm").launches
    assert launch.program[0].text == program


@pytest.mark.parametrize(("quote", "dollar"), [("'", "$"), ("", "\\$")])
def test_scripts_for_sbatch_are_read_as_scripts(quote: str, dollar: str) -> None:
    text = (
        f"#!/bin/bash\nset -e\nsbatch <<{quote}END{quote}\n{TWO}#SBATCH --mem=1.5G\n"
        f"srun torchrun --node-rank={dollar}SLURM_NODEID t.py\nEND\n"
    )
    found = {(one.rule, one.line) for one in check(text.encode()) if one.severity == "error"}
    assert found == {("memory-unit", 9), ("early-expansion", 10)}
    silenced = text.replace("set -e", "# jobgen: disable=memory-unit\nset -e")
    assert "memory-unit" not in {one.rule for one in check(silenced.encode())}


def test_tabs_before_the_lines_of_a_here_document_are_removed() -> None:
    inner = "#!/bin/bash\n#SBATCH --time=01:00:00\n#SBATCH --mem=1.5G\nhostname\nEND".replace("\n", "\n\t")
    found = [(one.rule, one.line) for one in check(f"#!/bin/bash\nsbatch <<-END\n\t{inner}\n".encode())]
    assert found == [("memory-unit", 5)]
    indented = check(f"#!/bin/bash\nsbatch <<END\n\t{inner[:-4]}\nEND\n".encode())
    assert ("inert-directive", 4) in [(one.rule, one.line) for one in indented]


def test_values_that_the_outer_shell_sets_are_not_judged() -> None:
    directive = "#SBATCH --nodes=$((N / 2)) --mem=$M --time=$(hours $N)"
    text = f"#!/bin/bash\nsbatch -t $T <<END\n#!/bin/bash\n{directive}\ncd $DIR\nEND\n"
    assert {one.rule for one in check(text.encode())} <= {"unchecked-cd"}


def test_a_line_of_a_variable_alone_may_be_a_directive() -> None:
    text = (
        "#!/bin/bash\nset -e\nqsub <<END\n#PBS -l select=1:ncpus=1\n${project}\n#PBS -j oe\nhostname\nEND\n"
    )
    assert "late-directive" not in {one.rule for one in check(text.encode())}


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("conda activate x\nLD_LIBRARY_PATH=/a/lib", "note"),
        ('eval "$(conda shell.bash hook)"\nexport LD_LIBRARY_PATH=/a/lib', "note"),
        ("module purge\nexport LD_LIBRARY_PATH=/a/lib", "note"),
        ("conda activate x\nexport PATH=/a/bin", "warning"),
        ("module load cuda\nexport LD_LIBRARY_PATH=/a/lib", "warning"),
        ("source /opt/setvars.sh\nexport LD_LIBRARY_PATH=/a/lib", "warning"),
    ],
)
def test_a_search_path_is_lost_if_something_has_set_it(text: str, level: str) -> None:
    assert levels(f"{HEAD}{text}\nsrun python3 t.py", "overwritten-path") == [level]


def test_a_hostfile_on_the_disk_of_the_node_is_a_note() -> None:
    for path, level in (("/tmp/hostfile", "note"), ("hostfile", "warning")):
        text = f"{TWO}scontrol show hostnames > {path}\nmpirun --hostfile {path} ./a"
        assert levels(text, "shared-hostfile") == [level]


def test_several_hostfiles_are_one_finding() -> None:
    lines = (f"srun hostname > {name}_hosts\nmpirun --hostfile {name}_hosts ./a\n" for name in "ab")
    [only] = [one for one in check(f"{HEAD}{''.join(lines)}".encode()) if one.rule == "shared-hostfile"]
    assert "a_hosts and 1 other hostfile are the same files" in only.reason


def test_a_home_below_its_first_letter() -> None:
    [found] = [
        one for one in check(f"{HEAD}cat /home/mila/a/ann.x/data/y\n".encode()) if one.rule == "personal-path"
    ]
    assert "/home/mila/a/ann.x is below" in found.reason
