"""Jobs that run, and waste what they have or lose what they make: what is found, and what is right and looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobgen.check.checker import check

SLURM = """#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=24:00:00
"""
TASKS = SLURM.replace("ntasks-per-node=1", "ntasks-per-node=4")
ARRAY = SLURM.replace("gpus-per-node=4", "gpus-per-node=1") + "#SBATCH --array=0-4\n"
PBS = "#!/bin/bash\n#PBS -l select=1:ncpus=8:ngpus=1\n#PBS -l walltime=06:00:00\n#PBS -J 0-9\n"
RUN = "torchrun --standalone --nproc-per-node=4 t.py"
VENV = "source $HOME/v/bin/activate\n"
TWO = "CUDA_VISIBLE_DEVICES={} torchrun {} --nproc-per-node=2 t.py &\n"
IN_PORT = "run() {\nlocal p=$((2000 + $1))\nCUDA_VISIBLE_DEVICES=$1 torchrun --master-port=$p --nproc-per-node=1 t.py\n}\n"
SORTED = "sort -u $PBS_NODEFILE > h.$PBS_JOBID\nmpirun -np 8 -hostfile h.$PBS_JOBID python t.py\n"
IN_FUNCTION = "run() {{\nCUDA_VISIBLE_DEVICES=$1 torchrun {} --nproc-per-node=2 t.py{}\n}}\n"

FOUND = [
    # the devices that a program sees, and those that it names
    ("visible-devices", "warning", SLURM + f"export CUDA_VISIBLE_DEVICES=\n{RUN}\n"),
    (
        "visible-devices",
        "warning",
        SLURM + "export HIP_VISIBLE_DEVICES=''\npython prepare.py\nsrun python t.py\n",
    ),
    (
        "visible-devices",
        "warning",
        SLURM + "CUDA_VISIBLE_DEVICES=-1\nexport CUDA_VISIBLE_DEVICES\npython t.py\n",
    ),
    ("visible-devices", "warning", SLURM + "export CUDA_VISIBLE_DEVICES=0,1\npython t.py\n"),
    (
        "visible-devices",
        "warning",
        SLURM + "for g in 1 2 3 4; do CUDA_VISIBLE_DEVICES=$g python t.py &\ndone\nwait\n",
    ),
    (
        "visible-devices",
        "warning",
        SLURM + "for g in {1..4}; do\nexport CUDA_VISIBLE_DEVICES=${g}\npython t.py &\ndone\nwait\n",
    ),
    (
        "visible-devices",
        "warning",
        SLURM + "for g in $(seq 1 4); do python t.py --device cuda:$g &\ndone\nwait\n",
    ),
    ("visible-devices", "error", SLURM + f"export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID\n{RUN}\n"),
    ("ranks-mismatch", "warning", SLURM + "python t.py fit --trainer.devices=8\n"),
    ("ranks-mismatch", "warning", SLURM + "python t.py --num-gpus 8\n"),
    ("ranks-mismatch", "warning", SLURM + "vllm serve model --tensor-parallel-size=8\n"),
    ("ranks-mismatch", "warning", SLURM + "python -m sglang.launch --tp-size 8\n".replace(".launch", ".run")),
    ("ranks-mismatch", "error", TASKS + "srun --gres=gpu:8 python t.py\n"),
    ("ranks-mismatch", "error", TASKS + "srun --gpus a100:5 python t.py\n"),
    ("ranks-mismatch", "warning", SLURM + "srun bash -c 'RANK=$SLURM_PROCID python t.py'\n"),
    ("gres-total", "warning", TASKS.replace("gpus-per-node", "gpus-per-task") + "srun python t.py\n"),
    # runs beside each other
    ("shared-devices", "warning", SLURM + f"{RUN} --fold 1 &\n{RUN} --fold 2 &\nwait\n"),
    ("shared-devices", "warning", SLURM + "for s in 1 2; do python t.py --gpu 0 --seed $s &\ndone\nwait\n"),
    (
        "shared-devices",
        "warning",
        SLURM + "export CUDA_VISIBLE_DEVICES=1\npython t.py 1 &\npython t.py 2 &\nwait\n",
    ),
    ("shared-devices", "note", SLURM + "for s in 1 2; do python t.py --seed $s &\ndone\nwait\n"),
    ("sorted-hosts", "note", PBS.replace("=1:", "=2:") + SORTED),
    ("sorted-hosts", "warning", PBS.replace("=1:", "=2:") + "export MASTER_ADDR=$H\n" + SORTED),
    ("shared-port", "error", SLURM + TWO.format("0,1", "") + TWO.format("2,3", "") + "wait\n"),
    ("shared-port", "error", SLURM + IN_FUNCTION.format("", " &") + "run 0,1 2001\nrun 2,3 2002\nwait\n"),
    ("shared-port", "error", SLURM + IN_FUNCTION.format("", "") + "for g in 0 1; do run $g & done\nwait\n"),
    (
        "shared-port",
        "error",
        SLURM + IN_FUNCTION.format("--master-port=$2", "") + "run 0,1 2001 &\nrun 2,3 2001 &\nwait\n",
    ),
    (
        "shared-port",
        "error",
        SLURM
        + "P=$((2000 + RANDOM))\n"
        + TWO.format("0,1", "--master-port=$P")
        + TWO.format("2,3", "--master_port $P"),
    ),
    ("unfinished-copy", "warning", SLURM + "rsync -a data/ /tmp/data/ &\npython t.py --data /tmp/data\n"),
    ("unfinished-copy", "warning", SLURM + "tar xf d.tar -C $TMPDIR/d &\nsrun python t.py $TMPDIR/d\nwait\n"),
    ("identical-tasks", "warning", TASKS + "srun cp data.tar /tmp/\n"),
    ("identical-tasks", "warning", TASKS + "srun -n 4 tar -C /tmp -xzf data.tar\n"),
    ("identical-tasks", "warning", TASKS + "srun pip install -e .\n"),
    # modules
    ("module-after-environment", "warning", SLURM + VENV + f"module load cuda python/3.11\n{RUN}\n"),
    ("module-after-environment", "note", SLURM + f"conda activate x\nml PyTorch/2.1\n{RUN}\n"),
    (
        "module-after-environment",
        "warning",
        SLURM + f". v/bin/activate\nmodule load lang/Anaconda3/2020\n{RUN}\n",
    ),
    ("module-after-environment", "warning", SLURM + f"ml Python/3.11\n{VENV}ml purge\nml cuda\n{RUN}\n"),
    ("purged-modules", "warning", SLURM + f"ml cuda nccl\necho a\nml purge\n{RUN}\n"),
    # limits of time
    ("late-limit", "warning", SLURM + f"timeout -k 60 1d {RUN} || cp -r a b\n"),
    (
        "late-limit",
        "warning",
        SLURM + f"srun timeout --signal=TERM 1500m {RUN}\nif [ $? = 124 ]; then ./a; fi\n",
    ),
    ("late-limit", "note", SLURM + "timeout 90000 python t.py\n"),
    (
        "late-limit",
        "warning",
        SLURM + "#SBATCH --signal=B:TERM@86400\ntrap 'a' TERM\npython t.py &\nwait $!\n",
    ),
    ("late-limit", "warning", SLURM + "python t.py fit --trainer.max_time=01:00:00:00\n"),
    # arrays
    ("unread-index", "note", ARRAY + VENV + "python t.py --seed 42\n"),
    ("unread-index", "note", PBS + "cd $PBS_O_WORKDIR\npython t.py --results a.csv\n"),
    ("array-range", "warning", ARRAY + 'a=(1 2 3 4)\npython t.py "${a[$SLURM_ARRAY_TASK_ID]}"\n'),
    ("array-range", "warning", ARRAY + "a=(1 2 3 4)\ni=$((SLURM_ARRAY_TASK_ID + 1))\npython t.py ${a[i]}\n"),
    ("array-range", "warning", PBS + "a=(\n1\n2 # two\n)\n./t ${a[PBS_ARRAY_INDEX]}\n"),
    # tasks, requeue, results, settings
    ("task-total", "warning", TASKS + "#SBATCH --ntasks=2\nsrun python t.py\n"),
    ("task-total", "note", TASKS + "#SBATCH --ntasks=2\nmpirun ./a\n"),
    ("refused-requeue", "error", SLURM + '#SBATCH --no-requeue\n./a || scontrol requeue "$SLURM_JOB_ID"\n'),
    ("lost-output", "warning", SLURM + "python t.py --output_dir=/tmp/model\n"),
    ("lost-output", "warning", SLURM + "o=$SCRATCH/o\ntrap 'rm -r \"$o\"' EXIT\npython t.py --save-dir $o\n"),
    ("lost-output", "warning", SLURM + "cp -r d $TMPDIR/\npython t.py $TMPDIR/d --out_dir $TMPDIR/o\n"),
    ("debug-setting", "note", SLURM + "export CUDA_LAUNCH_BLOCKING=1\npython t.py\n"),
]
RIGHT = [
    ("visible-devices", SLURM + f"CUDA_VISIBLE_DEVICES= python prepare.py\n{RUN}\n"),
    ("visible-devices", SLURM + f"{RUN}\nexport CUDA_VISIBLE_DEVICES=\npython report.py\n"),
    (
        "visible-devices",
        SLURM.replace("--gpus-per-node=4", "--mem=8G") + "export CUDA_VISIBLE_DEVICES=\npython t.py\n",
    ),
    ("visible-devices", SLURM + "srun bash -c 'CUDA_VISIBLE_DEVICES=$SLURM_LOCALID python t.py'\n"),
    ("ranks-mismatch", SLURM + "python submit.py --gpus 8\npython t.py --devices 4 --gpus_total 8\n"),
    ("ranks-mismatch", SLURM + "python t.py --devices 8 --accelerator cpu\n"),
    ("ranks-mismatch", TASKS.replace("nodes=1", "nodes=2") + "srun --gpus=8 python t.py --gpus 8\n"),
    ("ranks-mismatch", SLURM + "srun bash -c 'RANK=$SLURM_PROCID python t.py' &\nsrun ./a &\nwait\n"),
    ("gres-total", TASKS.replace("gpus-per-node=4", "gpus-per-task=1") + "srun python t.py\n"),
    ("shared-devices", SLURM + f"{RUN} --fold 1\n{RUN} --fold 2\n"),
    ("shared-devices", SLURM + f"{RUN} &\nwait $!\n{RUN} &\nwait $!\n"),
    ("shared-devices", SLURM + "for g in 0 1 2 3; do CUDA_VISIBLE_DEVICES=$g python t.py &\ndone\nwait\n"),
    ("shared-devices", SLURM + "for g in 0 1 2 3; do python t.py --device cuda:$g &\ndone\nwait\n"),
    ("visible-devices", SLURM + "for g in {0..3}; do python t.py --device cuda:$g &\ndone\nwait\n"),
    (
        "visible-devices",
        SLURM + "for g in 1 2 3 4; do CUDA_VISIBLE_DEVICES=$((g - 1)) python t.py &\ndone\nwait\n",
    ),
    (
        "visible-devices",
        SLURM + "for g in 1 2 3 4; do\ng=$((g - 1))\nCUDA_VISIBLE_DEVICES=$g python t.py &\ndone\nwait\n",
    ),
    (
        "shared-devices",
        SLURM + "for i in 1 2; do for g in 0 1 2 3; do python t.py --gpu $g &\ndone; done\nwait\n",
    ),
    ("shared-devices", ARRAY + "python t.py 1 &\npython t.py 2 &\nwait\n"),
    ("shared-devices", SLURM + "for h in $H; do ssh $h torchrun --nproc-per-node=4 t.py &\ndone\nwait\n"),
    (
        "shared-port",
        SLURM + IN_FUNCTION.format("--master-port=$2", " &") + "run 0,1 2001\nrun 2,3 2002\nwait\n",
    ),
    (
        "shared-port",
        SLURM + IN_FUNCTION.format("--master-port=$2", "") + "for g in 0 1; do run $g 200$g & done\nwait\n",
    ),
    ("shared-port", SLURM + IN_PORT + "for g in 0 1; do run $g & done\nwait\n"),
    ("ranks-mismatch", SLURM + IN_PORT + "for g in 0 1 2 3; do run $g & done\nwait\n"),
    ("shared-port", SLURM + IN_FUNCTION.format("", "") + "run 0,1 &\nwait\nrun 2,3 &\nwait\n"),
    ("shared-port", SLURM + IN_FUNCTION.format("", " &\nwait") + "run 0,1\nrun 2,3\n"),
    ("shared-port", SLURM + TWO.format("0,1", "--standalone") + TWO.format("2,3", "--standalone") + "wait\n"),
    (
        "shared-port",
        SLURM
        + TWO.format("0,1", "--master-port=$P")
        + TWO.format("2,3", "--master-port=$((P + 1))")
        + "wait\n",
    ),
    ("unfinished-copy", SLURM + "cp -r data /tmp/data &\nwait\npython t.py --data /tmp/data\n"),
    ("unfinished-copy", SLURM + "cp -r log /tmp/log &\npython t.py --data /tmp/data\nwait\n"),
    ("identical-tasks", TASKS + "srun --ntasks=1 --ntasks-per-node=1 cp data.tar /tmp/\n"),
    ("identical-tasks", TASKS + "srun bash -c 'cp d.$SLURM_PROCID /tmp/'\nsrun tar -tf a.tar\n"),
    ("module-after-environment", SLURM + f"ml Python\n{VENV}ml cuda cuDNN pythonic-tools\n{RUN}\n"),
    ("module-after-environment", SLURM + VENV + "deactivate\nmodule load python\npython t.py\n"),
    ("module-after-environment", SLURM + f"{VENV}module load python\n{VENV}{RUN}\n"),
    ("module-after-environment", SLURM + VENV + "module load python\n$HOME/v/bin/python t.py\n"),
    ("module-after-environment", SLURM + f"{VENV}module purge\n{RUN}\n"),
    ("purged-modules", SLURM + f"ml gcc\nmake\nml purge\n{RUN}\n"),
    ("purged-modules", SLURM + f"ml env\nml purge\nml cuda\n{RUN}\n"),
    ("late-limit", SLURM + f"timeout 23h {RUN} || ./a\ntimeout 30 hostname\n"),
    (
        "late-limit",
        SLURM + "#SBATCH --signal=B:TERM@600\ntrap 'a' TERM\npython t.py --max_time=00:20:00:00 &\nwait $!\n",
    ),
    ("late-limit", SLURM + f"timeout $LIMIT {RUN} || ./a\n"),
    ("unread-index", ARRAY.replace("0-4", "1-9%1") + "python t.py --output_dir runs\n"),
    ("unread-index", ARRAY + "python t.py --seed 42 --output_dir runs/$SLURM_ARRAY_TASK_ID\n"),
    ("unread-index", ARRAY + "python t.py --output_dir runs/$SLURM_JOB_ID\n"),
    ("unread-index", ARRAY + "source settings.sh\npython t.py --seed 1\n"),
    ("unread-index", ARRAY + "python t.py\n"),
    ("array-range", ARRAY + "a=(1 2 3 4 5)\npython t.py ${a[$SLURM_ARRAY_TASK_ID]}\n"),
    ("array-range", ARRAY + "a=(1 2)\npython t.py ${a[$((SLURM_ARRAY_TASK_ID % 2))]}\n"),
    ("array-range", ARRAY + "declare -A a=([0]=x [9]=y)\npython t.py ${a[$SLURM_ARRAY_TASK_ID]}\n"),
    ("array-range", ARRAY + "a=(data/*.txt)\npython t.py ${a[$SLURM_ARRAY_TASK_ID]}\n"),
    ("array-range", ARRAY + "a=(1 2)\na+=(3 4 5)\npython t.py ${a[$SLURM_ARRAY_TASK_ID]}\n"),
    ("array-range", ARRAY.replace("0-4", "1-5%9") + "a=(1 2 3 4 5)\n./t ${a[$SLURM_ARRAY_TASK_ID-1]}\n"),
    ("task-total", TASKS + "#SBATCH --ntasks=4\nsrun python t.py\n"),
    ("task-total", TASKS.replace("nodes=1", "nodes=1-2") + "#SBATCH --ntasks=2\nsrun python t.py\n"),
    ("refused-requeue", SLURM + '#SBATCH --requeue\n./a || scontrol requeue "$SLURM_JOB_ID"\n'),
    ("refused-requeue", SLURM + "#SBATCH --no-requeue\n# scontrol requeue $SLURM_JOB_ID\n./a\n"),
    ("lost-output", SLURM + "python t.py --output_dir=/tmp/model\ncp -r /tmp/model $HOME\n"),
    ("lost-output", SLURM + "trap 'cp -r $TMPDIR/o $HOME' EXIT\npython t.py --output_dir ${TMPDIR}/o\n"),
    (
        "lost-output",
        SLURM + "python t.py --cache_dir /tmp/cache --output_dir $SCRATCH/o\nrm -rf /tmp/cache\n",
    ),
    ("lost-output", SLURM + "python t.py --output_dir $TMPDIR/o1\ncd $TMPDIR\ncp -r o1 $HOME\n"),
    ("lost-output", SLURM + "python t.py --output_dir $TMPDIR/o1\nrsync -a $TMPDIR/ $HOME/r\n"),
    ("lost-output", SLURM + "rm -rf $OUT\npython t.py --output_dir $OUT\n"),
    ("lost-output", SLURM + "python t.py --checkpoint /tmp/m.pt --model $TMPDIR/model\n"),
    ("ranks-mismatch", SLURM + "python t.py -tp 100 -n_gpu 8\n"),
    ("debug-setting", SLURM.replace("24:00:00", "00:30:00") + "export CUDA_LAUNCH_BLOCKING=1\n./a\n"),
]


def findings(script: str, folder: Path) -> list[tuple[str, str]]:
    return [(one.rule, one.severity) for one in check(script.encode(), folder=str(folder))]


@pytest.mark.parametrize(("rule", "severity", "script"), FOUND)
def test_the_mistake_is_found(rule: str, severity: str, script: str, tmp_path: Path) -> None:
    assert (rule, severity) in findings(script, tmp_path)


@pytest.mark.parametrize(("rule", "script"), RIGHT)
def test_what_is_right_is_not(rule: str, script: str, tmp_path: Path) -> None:
    assert rule not in [name for name, _ in findings(script, tmp_path)]


COUNTS = [
    # measured with sbatch of Slurm 22.05 and 24.11: both refuse these
    ("--gres=gpus:4", False),
    ("--gres=gpu4", False),
    ("--gres=GPU:4", False),
    ("--gres=gpu-4", False),
    ("--gpus-per-node=gpu:4", False),
    ("--gpus=gpu", False),
    ("--gpus-per-task=gpu:1", False),
    ("--nodes=1 --gpus-per-node=2 --gpus=4", False),
    ("--nodes=2 --gres=gpu:4 --gpus=4", False),
    ("--gpus-per-node=3 --gpus=4", False),
    ("--nodes=1 --ntasks-per-node=2 --gpus-per-task=1 --gres=gpu:4", False),
    ("--nodes=1 --ntasks=2 --gpus-per-task=1 --gres=gpu:4", False),
    ("--ntasks=4 --gpus-per-task=1 --gpus=2", False),
    ("--nodes=2 --ntasks=16 --ntasks-per-node=4", False),
    ("--nodes=1 --ntasks-per-node=4 --ntasks-per-gpu=1 --gpus-per-node=4", False),
    ("--time=10 --time-min=20", False),
    # and accept these
    ("--gres=gpu:4", True),
    ("--gres=gpu:a100:4,nvme:100", True),
    ("--gres=gpumem:20g", True),
    ("--gpus-per-node=a100:4", True),
    ("--nodes=2 --gpus-per-node=2 --gpus=4", True),
    ("--gpus-per-node=2 --gpus=4", True),
    ("--nodes=1 --ntasks-per-node=4 --gpus-per-task=1 --gpus-per-node=4", True),
    ("--ntasks=8 --gpus-per-task=1 --gpus-per-node=4", True),
    ("--nodes=1 --gpus-per-task=1 --gpus=4", True),
    ("--nodes=1-2 --ntasks=8 --ntasks-per-node=4", True),
    ("--nodes=1 --ntasks-per-gpu=1 --gpus=4", True),
    ("--time=1-00 --time-min=12:00:00", True),
]


@pytest.mark.parametrize(("options", "accepted"), COUNTS)
def test_counts_that_sbatch_refuses(options: str, accepted: bool, tmp_path: Path) -> None:
    time = "" if "--time" in options else "#SBATCH --time=60\n"
    found = findings(f"#!/bin/bash\n#SBATCH {options}\n{time}hostname\n", tmp_path)
    assert (("bad-value", "error") in found) is not accepted
