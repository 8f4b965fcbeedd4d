"""Options of sbatch, qsub and the launchers, typed for jobgen: one sentence names jobgen's options, status 2."""

from __future__ import annotations

import contextlib
import io
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import foreign_forms

from jobgen.check.checker import check
from jobgen.check.rule import ERROR
from jobgen.commands import cli
from jobgen.schedulers.table import SCHEDULERS
from jobgen.script.script import Script

SBATCH = "of sbatch; use "
QSUB = "of qsub; use "
CASES = [
    *((f"slurm {two}", f"{SBATCH}--nodes 2") for two in ("-N 2", "-N2", "--nodes 4 -N 2")[:2]),
    ("slurm -t 1:00:00", f"{SBATCH}--walltime 01:00:00"),
    ("slurm -t 90", f"{SBATCH}--walltime 01:30:00"),
    ("slurm --time=2-0", f"{SBATCH}--walltime 48:00:00"),
    ("slurm --time 2h", f"{SBATCH}--walltime 2h"),
    ("slurm -t 1d", f"{SBATCH}--walltime 1d"),
    ("slurm -l walltime=2h", f"{QSUB}--walltime 2h"),
    ("local -t 2h", f"{SBATCH}--walltime 2h"),
    ("pbs -t 2h", f"{SBATCH}--walltime 2h"),
    ("pbs -l walltime=1-12:00:00", f"{QSUB}--walltime 1-12:00:00"),
    ("slurm --time 1.5h", "--time=1.5h: --walltime must be a duration such as 2h30m"),
    ("slurm -t 0", f"{SBATCH}--directive=--time=0 --walltime queue"),
    ("slurm --time-min 1h", f"{SBATCH}--directive=--time-min=01:00:00"),
    ("pbs -l cput=2h", f"{QSUB}--directive='-l cput=02:00:00'"),
    ("pbs -l cput=x", "-l cput=x: is no duration"),
    ("slurm -b 2h", "--begin must be a date and time such as 2030-01-31T20:00, a time such as 20:00, or +2h"),
    ("pbs -a 20:00", f"{QSUB}--begin 20:00"),
    ("slurm --deadline 2h", "--deadline 2h is refused: it takes a time such as"),
    ("slurm --ntasks-per-gpu 1", "of sbatch; use --ranks-per-node 1\n"),
    ("pbs -l host=n1", "of qsub; use --constraint host=n1\n"),
    ("slurm -p=gpu", f"{SBATCH}--queue gpu"),
    ("slurm -p gpu -A acct -J name", f"{SBATCH}--name name --queue gpu --account acct"),
    ("slurm --nodes 2 -n 8", f"{SBATCH}--ranks-per-node 4"),
    ("slurm -c 4", f"{SBATCH}--cpus-per-rank 4"),
    ("slurm --ntasks-per-node=4 --gpus-per-task=1", f"{SBATCH}--gpus-per-node 4 --ranks-per-node 4"),
    ("slurm --ntasks=64 --gpus-per-node=8", f"{SBATCH}--ranks 64\n"),
    ("slurm --site perlmutter --account a -n 64", f"{SBATCH}--ranks 64\n"),
    ("pbs -np 12 --gpus-per-node 8", "of mpirun; use --ranks 12\n"),
    ("slurm -np 12 --gpus-per-node 8", "of mpirun; use --ranks 12\n"),
    ("slurm --site perlmutter --account a -n 18", "there is no counterpart, as jobgen refuses --ranks 18"),
    ("slurm -N 2 --ntasks=8 --gpus-per-task=1", f"{SBATCH}--nodes 2 --gpus-per-node 4 --ranks-per-node 4"),
    ("slurm -N 2 --gpus 8", f"{SBATCH}--nodes 2 --gpus-per-node 4"),
    ("slurm --gres=gpu:4", f"{SBATCH}--gpus-per-node 4"),
    ("slurm --gpus-per-node 4 --mem-per-cpu 2G -c 4", f"{SBATCH}--cpus-per-rank 1 --mem 8192M; 4 ranks"),
    ("slurm --dependency afterok:12", f"{SBATCH}--after afterok:12"),
    ("slurm --mail-user a@b.c --mail-type END", f"{SBATCH}--mail a@b.c --mail-on end"),
    ("slurm --nodelist n1,n2", f"{SBATCH}--directive=--nodelist=n1,n2"),
    ("slurm --hold", f"{SBATCH}--directive=--hold"),
    ("slurm --export=ALL", "of sbatch; leave it out"),
    ("slurm --export ALL,A=1", f"{SBATCH}--env A=1"),
    ("slurm --nice=10", f"{SBATCH}--priority=-10"),
    ("slurm -e err.txt", "jobs of jobgen have one log file"),
    ("slurm --nodes 2 -N 4", "--nodes is given already"),
    ("slurm -t", "-t needs a value"),
    ("slurm -l nodes=2:ppn=8", f"{QSUB}--nodes 2 --ranks-per-node 8 --cpus-per-rank 1"),
    ("pbs -N train -q gpu -A acct", f"{QSUB}--name train --queue gpu --account acct"),
    ("pbs -l select=2:ncpus=4", f"{QSUB}--nodes 2 --cpus-per-rank 4"),
    ("pbs -lselect=2:ncpus=8:mpiprocs=4:ngpus=4", "--nodes 2 --gpus-per-node 4 --ranks-per-node 4 --cpus-per-rank 2"),
    (
        "pbs -l nodes=2:ppn=8,walltime=1:00:00",
        f"{QSUB}--walltime 01:00:00 --nodes 2 --ranks-per-node 8 --cpus-per-rank 1",
    ),
    ("pbs -l nodes=2:ppn=4:gpus=4", f"{QSUB}--dialect torque --nodes 2 --gpus-per-node 4 --ranks-per-node 4"),
    ("pbs -l place=excl", f"{QSUB}--exclusive --directive='-l place=excl'"),
    ("pbs -j oe", "of qsub; leave -j out"),
    ("pbs -m abe -M a@b.c", f"{QSUB}--mail a@b.c"),
    ("pbs -J 0-9", f"{QSUB}--array 0-9"),
    ("pbs --dialect torque -t 0-9", f"{QSUB}--array 0-9"),
    ("pbs -W group_list=x", f"{QSUB}--directive='-W group_list=x'"),
    ("pbs -t 1:00:00", f"{SBATCH}--walltime 01:00:00"),
    ("pbs -p gpu", f"{SBATCH}--queue gpu"),
    ("pbs --ntasks 4 --nodelist n1", "use --ranks-per-node 4; PBS Pro has no counterpart of --nodelist=n1"),
    ("slurm --nproc_per_node=8 --nnodes=2", "use --ranks-per-node 8 --nodes 2"),
    ("slurm --nproc-per-node 8", "of deepspeed, torchrun and colossalai; use --ranks-per-node 8"),
    ("slurm --nodes 2 --num-processes 8", "of accelerate; use --ranks-per-node 4"),
    ("pbs --num_gpus 4 --num_nodes=2", "use --ranks-per-node 4 --nodes 2"),
    ("pbs --master_port 29500", "use --master-port 29500"),
    ("slurm --max_restarts=3", "of torchrun; use --launcher torchrun --launcher-arg=--max_restarts=3"),
    ("slurm --max-restarts 3", "of torchrun; use --launcher torchrun --launcher-arg=--max-restarts=3"),
    ("slurm --bind_cores_to_rank", "of deepspeed; use --launcher deepspeed --launcher-arg=--bind_cores_to_rank"),
    ("slurm --save-pid", "of deepspeed; use --launcher deepspeed --launcher-arg=--save_pid"),
    ("slurm --venv_script=x.sh", "of deepspeed; use --launcher deepspeed --launcher-arg=--venv_script=x.sh"),
    ("slurm --logs-specs x", "of torchrun; use --launcher torchrun --launcher-arg=--logs-specs=x"),
    ("slurm --no_python", "of deepspeed and torchrun; leave --no_python out, the script sets it"),
    ("slurm --use_env", "of torchrun; leave it out, every rank has LOCAL_RANK in its environment"),
    ("slurm --force_multi", "of deepspeed; leave it out, the script starts the launcher on all nodes"),
    ("slurm --autotuning=run", "of deepspeed; jobgen has no autotuning"),
    ("slurm -H hostfile", "of deepspeed and colossalai; leave -H out, the script sets it"),
    ("slurm -H", f"{SBATCH}--directive=--hold"),
    ("slurm --nproc-per-node=gpu", "leave --nproc-per-node out, each device has a rank"),
    ("slurm --nnodes=1:4", "a range of nodes has no counterpart: --nodes is one number"),
    *((f"slurm {one}", f"{SBATCH}jobgen submit slurm --wait") for one in ("-W", "--wait")),
    ("slurm --test-only", f"{SBATCH}jobgen submit slurm --dry-run"),
    ("slurm --wait -N 2", f"{SBATCH}jobgen submit slurm --wait --nodes 2\n"),
    ("submit slurm --test-only -N 2", f"{SBATCH}--dry-run --nodes 2\n"),
    *((f"slurm {one}", f"of sbatch; leave {one} out") for one in ("--parsable", "-Q", "--quiet", "-v", "-vv")),
    ("slurm --wrap=hostname -N 2", f"{SBATCH}--nodes 2 -- hostname\n"),
    ("submit --wrap=hostname -N 1", f"{SBATCH}--nodes 1 -- hostname\n"),
    ("slurm --wrap 'a && b'", f"{SBATCH}-- bash -c 'a && b'"),
    *((f"pbs {one}", f"of qsub; leave {one} out") for one in ("-z", "-f", "-X")),
    ("pbs -W block=true", f"{QSUB}jobgen submit pbs --wait"),
    ("slurm --exclusive=user", f"{SBATCH}--directive=--exclusive=user\n"),
    ("slurm -N 2 --exclusive=mcs", f"{SBATCH}--nodes 2 --directive=--exclusive=mcs\n"),
    ("pbs --exclusive=user", "PBS Pro has no counterpart of --exclusive=user"),
    ("slurm --no-exclusive=user", "--no-exclusive (command line): does not take a value"),
    ("slurm --nodes 2-4", "; use --directive=--nodes=2-4"),
    ("slurm --gres gpu:4 --time 2h --nodes 2-4", f"{SBATCH}--gpus-per-node 4 --directive=--nodes=2-4 --walltime 2h\n"),
    ("slurm -n 8 -W 2:00 -q gpu", "-W 2:00 (command line): is an option of bsub; there is no counterpart, as jobgen makes no scripts for LSF\n"),
    ("slurm -J a -gpu num=4", "-gpu num=4 (command line): is an option of bsub"),
    ("slurm --nproc_per_node 2 -m pkg.train", "; use --ranks-per-node 2 -- -m pkg.train;"),
    ("slurm -H a:4,b:8", "of mpirun; unequal numbers of ranks on nodes have no counterpart"),
    ("slurm -H a,a,b,b", "; use --nodes 2 --ranks-per-node 2; leave -H out"),
    ("slurm -m abe", "--distribution abe is refused"),
    ("slurm -n 8 --nodes 2-4", "8 ranks on a range of nodes have no counterpart"),
    ("slurm -N 1 --mem 4000 --exclude=n3", "use --nodes 1 --mem 4000M; --exclude n3 (command line): leaves no device; use --directive=--exclude=n3\n"),
    ("slurm --gres gpu:2 --nodes abc --walltime x", f"{SBATCH}--gpus-per-node 2; --walltime x (command line): must be a duration"),
    ("slurm --gres gpu:2 --walltime x --nodes abc", "; --nodes abc (command line): must be a whole number"),
    ("slurm -N 2 --launcher foo", f"{SBATCH}--nodes 2; --launcher foo (command line): must be deepspeed"),
    ("pbs -l mem=10gb", f"{QSUB}--mem 10240M"),
    ("pbs --nodes 2 -l mem=10gb,ncpus=8,ngpus=4", f"{QSUB}--gpus-per-node 2 --cpus-per-rank 2 --mem 5120M"),
    ("pbs --dialect torque -l nodes=2:ppn=8,mem=64gb", "--cpus-per-rank 1 --mem 32768M"),
    ("pbs --nodes 2 -l ngpus=3", "-l ngpus=3: has no counterpart, as 2 parts of it are not equal"),
    ("slurm -l mem=10gb", f"{QSUB}--mem 10240M"),
    ("pbs -v HF_TOKEN,A=1", f"{QSUB}--env A=1 --env HF_TOKEN"),
    ("slurm --env B=1 --export=HF_TOKEN", f"{SBATCH}--env HF_TOKEN"),
    ("slurm --export HF_TOKEN=abc", f"--export HF_TOKEN=*** (command line): is an option {SBATCH}--env HF_TOKEN\n"),
    ("slurm --export-file=x", f"{SBATCH}--directive=--export-file=x"),
    ("slurm --export=NONE", f"{SBATCH}--directive=--export=NONE"),
    ("slurm --begin=now+1hour", "; use --begin +1h"),
    ("slurm --signal=B:USR1@120", "; use --signal USR1@120"),
    ("slurm --exclude=n3", "; use --directive=--exclude=n3"),
    ("slurm --begin=soon", "or +2h\n"),
    ("slurm --gpus=v100:2,k80:1", f"{SBATCH}--gpus-per-node 3"),
    ("slurm --tim=10", f"{SBATCH}--walltime 00:10:00"),
    ("slurm --ntas 4", f"{SBATCH}--ranks-per-node 4"),
    ("slurm --part=gpu", "there is no option --part; did you mean --partition?"),
    ("slurm --test 1", "there is no option --test; the program's own options go after --"),
    ("local -np 4", "of mpirun; use --ranks-per-node 4"),
    ("local -n 4", f"{SBATCH}--ranks-per-node 4"),
    ("local -p gpu", "of sbatch; a local run has no queue"),
    ("submit slurm -n 8", f"{SBATCH}--ranks-per-node 8"),
    ("doctor slurm -N 2", f"{SBATCH}--nodes 2"),
    ("slurm --ppn 4", "of mpirun; use --ranks-per-node 4"),
    ("slurm -n 16 --gres=gpu:4", "use --ranks-per-node 16 --launcher srun --accelerator cpu --directive=--gpus-per-node=4; 16 ranks share 4 devices"),
    ("slurm --gpus-per-node 4 -n 18", "--directive=--gpus-per-node=4 --gpus-per-node 0; 18 ranks share 4 devices"),
    ("pbs -n 16 --gres=gpu:4", "--directive='-l select=1:ncpus=32:mpiprocs=16:ngpus=4'; 16 ranks share 4 devices"),
    ("slurm -c 8 --gres=gpu:4", "use --gpus-per-node 4 --cpus-per-rank 2; 4 ranks, one for each device, share the 8 cores"),
    ("slurm -c 6 --gres=gpu:4", "--cpus-per-rank 6 --ranks-per-node 1 --launcher none; 4 ranks, one for each device, cannot share 6 cores"),
    *((f"slurm {one}", "this requests 8 GPUs a node, one for each rank; --accelerator cpu requests none") for one in ("--ntasks=8", "-N2 -n16", "-np 8")),
    ("slurm -N 2 --ranks-per-node 8 --gpus-per-node 4", f"{SBATCH}--nodes 2; --ranks-per-node 8 (command line): 8 ranks do not fit"),
    ("slurm -n 5 -N 2", "unequal numbers of ranks on nodes have no counterpart"),
    ("slurm -n 8 -N 1-4", "8 ranks on a range of nodes have no counterpart"),
    ("slurm --launcher srun --max-restarts=3 -n 4", "srun has no counterpart of --max-restarts=3"),
    ("slurm --launcher none -n 4", "there is no counterpart, as jobgen refuses --ranks-per-node 4"),
    ("slurm --gres=gpu:2 --cpus-per-gpu=4 --mem-per-cpu=1G", "--gpus-per-node 2 --cpus-per-rank 4 --mem 8192M"),
    ("slurm --requeue", f"{SBATCH}--directive=--requeue"),
    ("slurm --requeue -l mem=1gb", "use --directive=--requeue --mem 1024M"),
    ("pbs -l select=1:ngpus=4+1:ngpus=2", f"{QSUB}--nodes 1x4+1x2\n"),
    ("pbs -l select=1:ncpus=8:ngpus=4+1:ncpus=8:ngpus=2", "has no counterpart: nodes may differ in their ranks only"),
    ("pbs --dialect torque -l procs=8,walltime=2h", f"{QSUB}--walltime 2h; -l procs and -L tasks let Torque choose the nodes"),
    ("pbs -I", "leave -I out: bash FILE runs the script of -o FILE in an interactive job of qsub -I"),
    ("slurm --error=err.txt", "leave --error out, jobs of jobgen have one log file, which --log names"),
    ("slurm --lr 1", "there is no option --lr; the program's own options go after --"),
    ("pbs --node 2", "there is no option --node; did you mean --nodes?"),
    ("slurm -nodes=2", "there is no option -nodes; did you mean --nodes?"),
    ("slurm \N{EM DASH}nodes 2", "is no option; did you mean --nodes, with hyphens?"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "sentence"), CASES)
def test_the_answer_has_the_same_value(
    command: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in answer(shlex.split(command), capsys)


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    status = cli.run(words)
    done = capsys.readouterr()
    assert (status, done.out, done.err.count("\n")) == (2, "", 1), done
    return done.err


PROGRAMS = [
    ("slurm --ntasks-per-node=1 --gres=gpu:4 -c 32", "torchrun --nproc_per_node=gpu train.py", (4, 8, 4)),
    ("slurm --ntasks-per-node=1 -c 32", "torchrun --nproc_per_node=4 train.py", (4, 8, 4)),
    ("slurm -N 2 -n 2 --gpus-per-node=4", "torchrun --nproc_per_node gpu train.py", (4, 2, 4)),
    ("slurm --gpus-per-node 4 --ranks-per-node 1", "torchrun --nproc_per_node=gpu train.py", (4, 2, 4)),
    ("slurm --gpus-per-node 4 --ranks-per-node 1", "srun torchrun --nproc_per_node=2 train.py", (2, 2, 4)),
    ("slurm --ntasks-per-node=1 --gres=gpu:2 -c 8", "deepspeed train.py", (2, 4, 2)),
    ("pbs -l select=1:ncpus=32:mpiprocs=1:ngpus=4", "torchrun --nproc_per_node=gpu train.py", (4, 8, 4)),
]


@pytest.mark.parametrize(("options", "program", "sizes"), PROGRAMS)
def test_a_launcher_in_the_program_starts_the_ranks(
    options: str, program: str, sizes: tuple[int, int, int]
) -> None:
    """The ranks of a node, their cores, and the devices, after all answers."""
    state = foreign_forms.Followed(shlex.split(options), shlex.split(program), (), 2, "")
    state = foreign_forms.followed(state)
    request = Script(state.script.encode(), "pbspro" if options.startswith("pbs") else "slurm").request
    assert (request.ranks_per_node, request.cpus_per_rank, request.gpus_per_node) == sizes, state.answers


REQUESTS = [
    ("slurm", "-N 3 --ntasks-per-node=4 -c 6 --gpus-per-task=1 -t 90 -p gpu -A acct -J one"),
    ("slurm", "-N 2 -n 16 --gres=gpu:8 --mem-per-cpu=2G -c 4 --time=1-2"),
    ("slurm", "-N2 --gpus=8 --ntasks-per-node 4 -t2:00:00"),
    ("pbspro", "-l select=3:ncpus=24:mpiprocs=4:ngpus=4:mem=64gb -l walltime=5400 -q gpu -A acct -N one"),
    ("torque", "-l nodes=2:ppn=4:gpus=4,walltime=1:00:00 -N one"),
]
FIELDS = [
    "name",
    "nodes",
    "ranks",
    "ranks_per_node",
    "cpus_per_rank",
    "gpus_per_node",
    "mem",
    "walltime",
    "queue",
    "account",
]


@pytest.mark.parametrize(("name", "options"), REQUESTS)
def test_the_answer_makes_the_same_request(name: str, options: str) -> None:
    """The script of the command that the sentence gives requests what the foreign options request."""
    row = SCHEDULERS[name]
    sentence, _ = run([row.command_name, *shlex.split(options)])
    _, script = run([row.command_name, *shlex.split(sentence.partition("; use ")[2])])
    wanted = Script(f"{row.prefix} {options}\n".encode(), name).request
    made = Script(script.encode(), name).request
    asked = {key: value for key in FIELDS if (value := getattr(wanted, key)) is not None}
    assert asked == {key: getattr(made, key) for key in asked}, sentence


LIMITS = [
    *((f"slurm --time {two}", 7200) for two in ("2h", "120m", "7200s", "2:0:0", "120", "0-2", "0-2:00")),
    *((f"slurm -t {day}", 86400) for day in ("1d", "24h", "1-0", "1-00:00:00", "24:00:00")),
    ("slurm -t2h30m", 9000),
    ("slurm -t=2h", 7200),
    ("slurm --tim=2h", 7200),
    ("slurm --time=1-12:00:00", 129600),
    ("slurm -l walltime=2h", 7200),
    *((f"pbs -l walltime={two}", 7200) for two in ("2h", "120m", "7200", "2:00:00", "120:00", "0-02:00:00")),
    ("pbs -l select=2:ncpus=4,walltime=90m", 5400),
    ("pbs --time 2h", 7200),
    ("pbs -t 1d", 86400),
    ("pbs -t 0-4 -l walltime=2h", 7200),
    ("pbs --dialect torque -l nodes=2:ppn=4,walltime=2h", 7200),
]


@pytest.mark.parametrize(("command", "seconds"), LIMITS)
def test_the_answer_makes_the_same_time_limit(command: str, seconds: int) -> None:
    """With a unit, too, which jobgen accepts and the scheduler does not; the script of the answer has no error."""
    name, *words = shlex.split(command)
    sentence, _ = run([name, *words])
    dialect = "torque" if "torque" in command + sentence else {"pbs": "pbspro"}.get(name, name)
    kept = words[:2] if words[0] == "--dialect" else []
    _, script = run([name, *kept, *shlex.split(sentence.partition("; use ")[2].partition(";")[0])])
    assert Script(script.encode(), dialect).request.walltime == seconds, sentence
    assert not [one for one in check(script.encode(), scheduler=dialect) if one.level == ERROR], sentence


def run(words: list[str]) -> tuple[str, str]:
    """Return standard error and standard output."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        cli.run(words)
    return err.getvalue(), out.getvalue()


FLAG = st.sampled_from(
    [
        "-N",
        "-l",
        "-t",
        "-n",
        "-W",
        "-J",
        "--ntasks",
        "--gres",
        "--nproc_per_node",
        "--hostfile",
        "-np",
        "--export",
        "--wrap",
        "--tim",
        "-v",
        "-m",
        "-j",
    ]
)


@given(
    command=st.sampled_from(["slurm", "pbs", "local", "submit"]),
    words=st.lists(
        st.one_of(
            FLAG,
            st.text(max_size=9),
            st.sampled_from(["select=1:ncpus=x", "mem=9gb,ncpus=0", "A,B=1"]),
            st.just("--nodes"),
        )
    ),
)
def test_no_words_break_it(command: str, words: list[str]) -> None:
    """Whatever follows an option of another program, the answer is one sentence."""
    err, _ = run([command, "-N", *[word for word in words if word not in ("--", "-h", "--help")]])
    assert (err[:8], err.count("\n")) == ("jobgen: ", 1)
