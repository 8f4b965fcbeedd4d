"""The pieces for one's own program: the programs of docs/own-programs.md, killed and resumed, and what is refused."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import processes, programs, warm
from support.require import need_package
from train_support import clean_environment, launcher_command, module_needs

module_needs("torch")
pytestmark = pytest.mark.usefixtures("warm_python")


def warmly(folder: Path, program: str | Path, count: int = 2, **more: str) -> tuple[int, str, str]:
    """Run a program, a path or its text, with ranks that need not import torch."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(program, str):
        (folder / "program.py").write_text(program)
        program = folder / "program.py"
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(folder / "run"), **more}
    (folder / "run").mkdir(exist_ok=True)
    return warm.run([str(program)], env, folder, count)


def launched(launcher: str, program: Path, run: Path, **more: str) -> subprocess.Popen[str]:
    """Start two ranks of a program."""
    words = launcher_command(launcher, 2)[:-2]  # without -m jobgen.train
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(run), **more}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen([*words, program], cwd=program.parent, env=env, text=True, **pipes)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("plain", "torchrun", "mpirun"),
        ("hf", "mpirun", "torchrun"),
        ("lit", "torchrun", "mpirun"),
        ("acc", "mpirun", "torchrun"),
    ],
)
def test_left_at_the_deadline_then_killed_it_ends_as_if_never_stopped(
    name: str, first: str, second: str, tmp_path: Path
) -> None:
    """Below the schedulers: tests/cluster/test_own_programs.py."""
    need_package("mpi4py", *programs.NEEDS[name])
    status, out, err = warmly(tmp_path / "whole", programs.write(tmp_path / "whole", name))
    assert status == 0, out + err
    here, run = tmp_path / "stopped", tmp_path / "stopped" / "run"
    program = programs.write(here, name)
    status, out, err = warmly(here, program, JOBGEN_DEADLINE=str(time.time() - 1))
    assert status == 75, out + err
    assert "leaves with status 75, because the job's time is nearly over" in err
    assert 0 < programs.saved_step(run) < 5
    killed = launched(first, program, run, JOBGEN_ATTEMPT="1")
    try:
        while programs.saved_step(run) < 20:
            assert killed.poll() is None, killed.communicate()
            time.sleep(0.05)
    finally:
        processes.kill(here)
        killed.kill()
    killed.communicate()
    assert not (here / "final.pt").exists()
    resumed = launched(second, program, run)
    said, _ = resumed.communicate(timeout=500)
    assert resumed.returncode == 0, said
    assert "finished" in said
    assert programs.weights(here) == programs.weights(tmp_path / "whole")


# ------------------------------------------------------------------------------------------------- leaving in time


LEAVING = """
import os, signal, time
from jobgen.train import Checkpoints, Deadline, init

me = init()
checkpoints = Checkpoints()
deadline = Deadline(checkpoints)
for step in range(1, 200):
    time.sleep(0.01)
    if step == 5 and me.rank == 1:
        os.kill(os.getpid(), signal.SIGUSR1)
    if deadline.reached():
        checkpoints.save(step, per_rank={"step": step})
        deadline.leave()
"""


def test_a_signal_to_one_rank_makes_all_leave_after_the_same_step(tmp_path: Path) -> None:
    status, _, err = warmly(tmp_path, LEAVING)
    assert (status, err.count("because a signal requested it")) == (75, 1)
    assert programs.saved_step(tmp_path / "run") in (5, 6)
    said = warmly(
        tmp_path, "from jobgen.train import Checkpoints\nprint(*Checkpoints().resume().values.values())"
    )
    assert said[1].splitlines()[1] == said[1].splitlines()[-1]


# ----------------------------------------------------------------------------------------------------- checkpoints

STATES = """
import numpy
import torch
from jobgen.train import Checkpoints, init

me = init()
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
model[1].running_mean.fill_(me.rank)
optimizer = torch.optim.SGD(model.parameters(), lr=1, momentum=0.9)
checkpoints = Checkpoints()
"""
SAVING = "checkpoints.save({step}, model=model, optimizer=optimizer, epoch=3, names=['a'], rate=numpy.float64(2))\n"
RESUMING = """
found = checkpoints.resume(model=model, optimizer=optimizer)
if me.is_main:
    print(found.step, {**found.values, 'rate': float(found.values['rate'])} if found.step else {}, model[1].running_mean.tolist())
"""


def test_values_come_back_and_another_number_of_ranks_averages_the_buffers(tmp_path: Path) -> None:
    assert warmly(tmp_path, STATES + RESUMING)[1] == "0 {} [0.0, 0.0]\n"
    saved = STATES + "".join(SAVING.format(step=step) for step in (1, 2, 3))
    assert warmly(tmp_path, saved) == (0, "", "")
    place = tmp_path / "run" / "checkpoints"
    assert sorted(path.name for path in place.iterdir()) == ["latest", "step-000002", "step-000003"]
    found = "3 {'epoch': 3, 'names': ['a'], 'rate': 2.0} "
    resumes = f"resumes from {place}/step-000003, after step 3\n"
    assert warmly(tmp_path, STATES + RESUMING)[1] == f"{resumes}{found}[0.0, 0.0]\n"
    assert warmly(tmp_path, STATES + RESUMING, count=1)[1] == f"{resumes}{found}[0.5, 0.5]\n"


def test_a_damaged_checkpoint_is_reported_and_an_older_one_is_used(tmp_path: Path) -> None:
    assert warmly(tmp_path, STATES + SAVING.format(step=1) + SAVING.format(step=2))[0] == 0
    place = tmp_path / "run" / "checkpoints"
    file = place / "step-000002" / "rank-00001.pt"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    status, out, err = warmly(tmp_path, STATES + RESUMING)
    assert (status, "after step 1" in out) == (0, True)
    assert err == (
        f"jobgen.train: warning: {file} is damaged: its SHA-256 differs from that of the written data; "
        "step-000001, the newest intact one, is used instead\n"
    )
    (place / "step-000001" / "state.pt").unlink()
    status, _, err = warmly(tmp_path, STATES + RESUMING)
    assert status == 1
    assert "state.pt cannot be read: No such file or directory" in err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "checkpoints.resume(model=model)",
            "has the object optimizer: give optimizer= to resume, or optimizer=None",
        ),
        (
            "checkpoints.resume(model=model, optimiser=optimizer)",
            "has no object optimiser; it has model, optimizer (did you mean 'optimizer'?)",
        ),
        ("checkpoints.resume(model=model, optimizer=3)", "optimizer has no load_state_dict()"),
        (
            "import decimal\ncheckpoints.save(2, rate=decimal.Decimal(1))",
            "rate is a decimal.Decimal: save numbers, texts",
        ),
        ("checkpoints.save(2, model={'a': [object()]})", "model['a'][0] is a builtins.object: save"),
        ("Checkpoints(keep=0)", "Checkpoints(keep=0): keep must be a whole number from 1, or None for all"),
        ("Checkpoints('/proc/here')", "checkpoints cannot be written to /proc/here: "),
    ],
)
def test_what_is_refused(line: str, message: str, tmp_path: Path) -> None:
    status, _, err = warmly(tmp_path, f"{STATES}{SAVING.format(step=1)}{line}\n", count=1)
    assert (status, message in err.splitlines()[-1]) == (1, True), err


LATE = """
import json, time
from pathlib import Path

from jobgen.train.checkpoints.directory import RECORD
from jobgen.train.pieces.sealer import Sealer

sealer = Sealer(Path("checkpoints"))
time.sleep(sealer.me.rank)
folder = Path("checkpoints/one")
folder.mkdir(parents=True, exist_ok=True)
(folder / f"state-{sealer.me.rank}").write_text("")
sealer.add("one", 1)
if sealer.me.is_main:
    print(*json.loads((folder / RECORD).read_text())["files"])
"""


def test_what_a_rank_writes_later_than_the_others_is_recorded(tmp_path: Path) -> None:
    assert warmly(tmp_path, LATE)[:2] == (0, "state-0 state-1\n")


def test_states_per_rank_need_the_same_number_of_ranks(tmp_path: Path) -> None:
    save = "checkpoints.save(4, per_rank={'mine': me.rank, 'optimizer': optimizer})\n"
    again = "print(checkpoints.resume(per_rank={'optimizer': optimizer}).values)"
    assert warmly(tmp_path, STATES + save)[0] == 0
    out = warmly(tmp_path, STATES + again)[1]
    assert ("{'mine': 0}" in out, "{'mine': 1}" in out) == (True, True)
    err = warmly(tmp_path, STATES + again, count=1)[2]
    assert "has states per rank, of 2 ranks: it cannot resume with 1" in err


def test_checkpoints_of_a_training_and_of_a_program_are_not_mixed_up(tmp_path: Path) -> None:
    need_package("sklearn", "numpy")
    assert warmly(tmp_path, STATES + SAVING.format(step=1), count=1)[0] == 0
    env = clean_environment()
    place = str(tmp_path / "run" / "checkpoints")
    digits = ["--task", "digits", "--epochs", "1", "--engine", "ddp"]
    for words in (["evaluate", place], [*digits, "--resume", place]):
        status, _, err = warm.run(words, env, tmp_path, 1)
        assert (status, "is a checkpoint of another program" in err) == (2, True), err
    folder = tmp_path / "other"
    folder.mkdir()
    words = [*digits, "--save-every-epochs", "1"]
    assert warm.run(words, env | {"JOBGEN_RUN_DIR": str(folder / "run")}, folder, 1)[0] == 0
    err = warmly(folder, STATES + RESUMING, count=1)[2]
    assert "is a checkpoint of python -m jobgen.train, not of Checkpoints" in err


# --------------------------------------------------------------------------------------------- init, and Lightning


def test_the_pieces_are_found_without_importing_torch() -> None:
    code = (
        "import jobgen.train as t, sys; print(sorted(t.__all__), 'torch' in sys.modules, hasattr(t, 'inot'))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.stdout == "['Checkpoints', 'Deadline', 'init', 'train'] False False\n", said.stderr


PLACES = """
import os, sys
from jobgen.train import init
me = init()
assert init() == me
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
words = me.rank, me.world_size, me.device, *(os.environ[name] for name in names)
sys.stdout.write(" ".join(map(str, words)) + "\\n")  # at once: ranks share the pipe
"""


def test_init_and_an_existing_process_group(tmp_path: Path) -> None:
    connect = (
        "import torch\ntorch.distributed.init_process_group('gloo', rank={0}, world_size={1}, store=store)\n"
    )
    store = "from torch.distributed import HashStore\nstore = HashStore()\n"
    assert warmly(tmp_path, store + connect.format(0, 1) + PLACES, count=1)[1] == "0 1 cpu 0 1 0 1\n"
    found = "import os\nos.environ.update(RANK='1', WORLD_SIZE='2', LOCAL_RANK='1', MASTER_ADDR='a', MASTER_PORT='9')\n"
    err = warmly(tmp_path, found + store + connect.format(0, 1) + PLACES, count=1)[2]
    assert (
        "this process is rank 0 of 1 in torch's process group, but rank 1 of 2 according to the launcher"
        in err
    )


def test_init_without_a_launcher(tmp_path: Path) -> None:
    assert warmly(tmp_path, PLACES, count=1)[1] == "0 1 cpu 0 1 0 1\n"


@pytest.mark.parametrize("launcher", ["mpirun", "deepspeed"])
def test_init_below_launchers(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "places.py").write_text(PLACES)
    words = launcher_command(launcher, 2)[:-2]  # without -m jobgen.train
    done = subprocess.run(
        [*words, "places.py"], cwd=tmp_path, env=clean_environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    wanted = [f"{rank} 2 cpu {rank} 2 {rank} 2" for rank in range(2)]
    lines = sorted(line.rpartition("]: ")[2] for line in done.stdout.splitlines() if " cpu " in line)
    assert lines == wanted


ENVIRONMENT = """
import os
import lightning
from jobgen.train.pieces.lightning import Environment
os.environ.update(RANK="2", WORLD_SIZE="{world}", LOCAL_RANK="0", LOCAL_WORLD_SIZE="2", MASTER_ADDR="a", MASTER_PORT="1")
found = Environment()
print(found.global_rank(), found.local_rank(), found.node_rank(), found.main_address, found.main_port)
print({name: value for name, value in found.trainer.items() if name != "plugins"})
lightning.Trainer(accelerator="cpu", plugins=[found], devices=1, num_nodes=2).strategy.setup_environment()
"""

LONELY = """
import lightning
from jobgen.train import init
from jobgen.train.pieces.lightning import SaveAndLeave
from lightning.pytorch.demos.boring_classes import BoringModel
trainer = lightning.Trainer(accelerator="cpu", devices=1, callbacks=[SaveAndLeave()], logger=False)
trainer.fit(BoringModel())
"""


def test_lightning_is_told_the_ranks_of_the_launcher(tmp_path: Path) -> None:
    need_package("lightning")
    status, out, err = warmly(tmp_path, ENVIRONMENT.replace("{world}", "4"), count=1)
    assert out.splitlines()[:2] == ["2 0 1 a 1", "{'devices': 2, 'num_nodes': 2, 'strategy': 'ddp'}"], err
    assert (status, "Trainer has 2 rank(s), but the launcher started 4: use" in err) == (1, True), err
    err = warmly(tmp_path, ENVIRONMENT.replace("{world}", "5"), count=1)[2]
    assert "Lightning needs equal numbers of ranks on all hosts: this one has 2 of 5" in err
    err = warmly(tmp_path, LONELY)[2]
    assert "Lightning's Trainer has 1 rank(s), but the launcher started 2: use" in err


# --------------------------------------------------------------------------------------------------- train(config)

CALLING = """
import torch
from jobgen.train import init, train
me = init()
settings = {"task": "digits", "epochs": 1, "log_every": 9, "batch_size": 16, "engine": "ddp", "csv": None}
found = train({**settings, "deepspeed_config": {"optimizer": {"type": "SGD", "params": {"lr": 0.1}}}})
again = train({**settings, "lr": 0.1, "optimizer": "sgd", "momentum": 0})
if me.is_main:
    print(found["accuracy"] == again["accuracy"] > 0.3, found["steps"], found["world_size"])
for config in ({"epoch": 3}, {"residual": 3}, {"deepspeed_config": {"optimiser": 1}}, {"epochs": "x"}):
    try:
        train(config)
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_train_takes_a_dict_and_returns_the_results(tmp_path: Path) -> None:
    need_package("sklearn", "numpy", "deepspeed")
    status, out, err = warmly(tmp_path, CALLING)
    assert status == 0, err
    assert "True 45 2\n" in out, out
    for said in (
        "CommonMistake train(config): unknown key 'epoch' (did you mean 'epochs'?)\n",
        "CommonMistake train(config): residual=3 must be True or False\n",
        "has no key 'optimiser' (did you mean 'optimizer'?)\n",
        "CommonMistake argument --epochs: 'x' is not a whole number of at least 1\n",
    ):
        assert out.count(said) == 2, out


def test_train_that_is_stopped_exits_with_75(tmp_path: Path) -> None:
    need_package("sklearn", "numpy")
    program = "from jobgen.train import train\ntrain({'task': 'digits', 'engine': 'ddp', 'epochs': 3})"
    assert warmly(tmp_path, program, count=1, JOBGEN_DEADLINE="1")[0] == 75
