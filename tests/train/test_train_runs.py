"""Real runs on the CPU: one and two ranks, under every launcher."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from support import warm, warm_python
from support.require import need_command, need_package
from train_support import (
    Finished,
    clean_environment,
    launcher_command,
    start,
    write_cifar,
    write_mnist,
)

pytestmark = pytest.mark.usefixtures("warm_python")
ONE_EPOCH = ("--epochs", "1", "--log-every", "1")


# A model whose loss is finite, but not its gradients: a square root at zero.
CORNERED = """
import torch

class Cornered(torch.nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.inner = torch.nn.Linear(shape[1] * shape[2], classes)
        self.zero = torch.nn.Parameter(torch.zeros(1))

    def forward(self, images):
        return self.inner(images.flatten(1)) + (0 * self.zero).sqrt()
"""

Train = Callable[..., Finished]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """train(launcher, *options, ranks=2, env={}) runs to the end and returns what was left."""

    def run(launcher: str, *options: str, ranks: int = 2, env: dict[str, str] | None = None) -> Finished:
        return start(tmp_path / launcher, launcher, options, ranks, env)

    return run


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """One epoch of the digits on one rank, with the global batch of the two-rank runs."""
    done = start(tmp_path_factory.mktemp("one"), "warm", [*ONE_EPOCH, "--batch-size", "64"], ranks=1)
    assert done.returncode == 0, done.stderr
    return done


def test_default_settings_learn_the_digits_on_two_ranks(train: Train) -> None:
    env = {"JOBGEN_WORLD_SIZE": "2", "JOBGEN_START_TIME": str(time.time())}
    done = train("mpirun", env=env)
    assert done.returncode == 0, done.stderr
    status = done.status
    assert status["state"] == "finished"
    assert status["accuracy"] >= 0.97
    assert len(status["per_class"]) == 10
    assert (status["world_size"], status["epochs"], status["steps"]) == (2, 10, 230)
    assert len(status["hosts"]) == 1
    assert (
        0
        < status["startup"]["first_step"]
        <= status["startup"]["first_step_from_job_start"]
        < status["seconds"] + 60
    )
    assert done.metrics("start")[0]["source"] == "mpi4py"
    assert {"python", "torch", "numpy"} <= done.metrics("start")[0]["versions"].keys()
    assert len(done.metrics("epoch")) == 10
    assert "samples/s" in done.stdout
    assert done.stdout.count("finished: accuracy") == 1  # rank 0 only
    assert "step/s" not in done.stderr  # no bar, since this is no terminal


@pytest.mark.parametrize(
    ("launcher", "options", "tolerance"),
    [
        pytest.param("torchrun", [], 1e-4, id="torchrun"),
        pytest.param("warm", ["--zero-stage", "3"], 1e-4, id="zero3"),
        pytest.param("warm", ["--precision", "bf16"], 0.1, id="bf16"),
    ],
)
def test_two_ranks_lose_what_one_rank_loses(
    train: Train, reference: Finished, launcher: str, options: list[str], tolerance: float
) -> None:
    done = train(launcher, *ONE_EPOCH, *options)
    assert done.returncode == 0, done.stderr
    assert len(done.losses()) == 23  # the last of 29 samples in place of 64
    assert done.losses() == pytest.approx(reference.losses(), rel=tolerance, abs=tolerance)
    if tolerance < 0.01:
        assert done.status["accuracy"] == pytest.approx(reference.status["accuracy"], abs=0.01)


def test_config_file(train: Train, tmp_path: Path) -> None:
    file = tmp_path / "ds config.json"
    file.write_text(
        json.dumps(
            {
                "train_batch_size": 60,
                "optimizer": {"type": "AdamW", "params": {"lr": 0.001}},
                "scheduler": {
                    "type": "WarmupDecayLR",
                    "params": {"warmup_num_steps": 5, "warmup_type": "linear"},
                },
                "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
            }
        )
    )
    done = train("warm", "--deepspeed_config", str(file), *ONE_EPOCH, "--lr", "0.01")
    assert done.returncode == 0, done.stderr
    assert "note: --lr 0.01 overrides the config file's 0.001" in done.stdout
    steps = done.metrics("step")
    assert len(steps) == 24
    assert steps[-1]["lr"] < steps[10]["lr"]


def test_mnist_and_cifar10_files(train: Train, tmp_path: Path) -> None:
    write_mnist(tmp_path, compress=True)
    write_cifar(tmp_path)
    options = ["--data", str(tmp_path), "--epochs", "1", "--batch-size", "8"]
    # Seven test images on two ranks: one rank has fewer, and nothing is counted twice.
    done = train("warm", "--task", "mnist", "--model", "mlp", *options)
    assert done.returncode == 0, done.stderr
    assert done.status["accuracy"] * 7 == pytest.approx(round(done.status["accuracy"] * 7), abs=1e-4)
    done = train(
        "warm", "--task", "cifar10", "--optimizer", "sgd", "--scheduler", "warmup", *options, ranks=1
    )
    assert done.returncode == 0, done.stderr
    assert "plane" in done.status["per_class"]


def test_run_directory_is_made_where_none_is_given(tmp_path: Path) -> None:
    need_package("torch", "deepspeed", "numpy", "sklearn")
    status, out, err = warm.run(["--epochs", "1"], clean_environment(), tmp_path, 2)
    assert status == 0, err
    (made,) = (tmp_path / "runs").iterdir()
    written = {"checkpoints", "metrics.jsonl", "saved-step", "status.json"}
    assert {file.name for file in made.iterdir()} == written
    assert str(made) in out


def test_progress_bar_on_a_terminal(tmp_path: Path) -> None:
    need_package("tqdm")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))  # a bar needs a width
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [*launcher_command("one", 1), "--epochs", "1", "--engine", "ddp"],
        env=env,
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"epoch 1/1" in shown
    assert b"/45" in shown
    assert "step 10/45" not in stdout


def test_a_mistake_is_told_once_and_ends_with_2(train: Train) -> None:
    done = train("mpirun", "--optimizer", "adm")
    assert done.returncode == 2
    assert done.stderr.count("did you mean 'adam'") == 1
    assert "Traceback" not in done.stderr
    assert (done.status["state"], done.status["exit_status"]) == ("failed", 2)


def test_another_world_size_than_the_job_s(train: Train) -> None:
    done = train("mpirun", env={"JOBGEN_WORLD_SIZE": "4"})
    assert done.returncode == 2
    assert done.stderr.count("requested 4 ranks (JOBGEN_WORLD_SIZE=4) but mpi4py started 2") == 1


@pytest.mark.parametrize(
    ("accelerator", "says"),
    [
        ("cuda", "JOBGEN_ACCELERATOR=cuda but"),
        ("npu", "JOBGEN_ACCELERATOR=npu but"),
        ("xpu", "JOBGEN_ACCELERATOR=xpu but torch finds no xpu device"),
        ("cpuu", "did you mean 'cpu'"),
    ],
)
def test_an_accelerator_that_is_not_there(
    accelerator: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_package("torch")
    import torch
    from jobgen.train import device
    from jobgen.train.errors import BadInput
    from jobgen.train.ranks import Ranks

    if accelerator == "cuda" and torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    me = Ranks(0, 1, 0, 1, "127.0.0.1", 1, "one process")
    with pytest.raises(BadInput, match=says):
        device.choose(me, {"JOBGEN_ACCELERATOR": accelerator})


def test_an_accelerator_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    need_package("torch")
    from jobgen.train import accelerators, device
    from jobgen.train.errors import BadInput
    from jobgen.train.ranks import Ranks

    def refuse(env: Mapping[str, str]) -> None:
        if env.get("TOYS") != "1":
            raise BadInput("TOYS is not 1")

    toy = accelerators.Accelerator("cpu", "toys", check_environment=refuse)
    monkeypatch.setitem(accelerators.ACCELERATORS, "toy", toy)
    me = Ranks(0, 1, 0, 1, "127.0.0.1", 1, "one process")
    mine = device.choose(me, {"JOBGEN_ACCELERATOR": "toy", "TOYS": "1"})
    assert (mine.type, mine.backend, mine.torch.type) == ("cpu", "toys", "cpu")
    with pytest.raises(BadInput, match="TOYS is not 1"):
        device.choose(me, {"JOBGEN_ACCELERATOR": "toy"})


def test_threads_are_shared_by_the_ranks_of_a_host() -> None:
    need_package("torch")
    from jobgen.train.peers import share_of_cores

    every = list(range(8))
    assert share_of_cores(0, ["a", "a", "b"], [every, every, every]) == 4
    assert share_of_cores(2, ["a", "a", "b"], [every, every, every]) == 8
    assert share_of_cores(1, ["a", "a"], [every[:4], every[4:]]) == 4  # bound by the launcher
    assert share_of_cores(0, ["a"] * 9, [every] * 9) == 1


def test_a_loss_that_is_not_finite_fails_the_run(train: Train) -> None:
    done = train("warm", "--optimizer", "sgd", "--lr", "1e30", ranks=1)
    assert done.returncode == 1
    assert done.status["state"] == "failed"
    assert "the loss is" in done.status["message"]
    assert "--lr" in done.stderr


@pytest.mark.parametrize(
    "options", ["--zero-stage 1", "--zero-stage 2", "--zero-stage 3", "--zero-stage 2 --precision bf16"]
)
def test_gradients_that_are_not_finite_fail_the_run(train: Train, options: str, tmp_path: Path) -> None:
    """DeepSpeed skips such a step, and each one after it: the loss stays finite, and nothing is learned."""
    (tmp_path / "cornered.py").write_text(CORNERED)
    env = {"PYTHONPATH": str(tmp_path)}
    done = train("warm", "--model", "cornered:Cornered", *options.split(), ranks=1, env=env)
    assert (done.returncode, done.status["state"]) == (1, "failed")
    assert "the gradients of step 1 are not finite" in done.status["message"]


def test_a_rank_with_a_mistake_of_its_own_is_named(tmp_path: Path) -> None:
    """Rank 1's host lacks a file: its reason is what status.json keeps, and the whole job ends."""
    mpirun = need_command("mpirun")
    need_package("torch", "deepspeed", "mpi4py")
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    bad.mkdir()
    write_mnist(good)
    run = [f"{warm_python.server()}/python", "-m", "jobgen.train", "--task", "mnist", "--data"]
    command = [mpirun, "--oversubscribe", "-np", "1", *run, str(good), ":", "-np", "1", *run, str(bad)]
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(tmp_path / "run")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    status = json.loads((tmp_path / "run" / "status.json").read_text())
    assert (status["state"], status["rank"], status["exit_status"]) == ("failed", 1, 2)
    assert "train-images-idx3-ubyte" in status["message"]
    assert "rank 1 on" in done.stderr


def test_a_rank_that_dies_takes_the_others_with_it(tmp_path: Path) -> None:
    """No launcher here that would end them: rank 0 must notice by itself."""
    need_package("torch", "deepspeed", "numpy", "sklearn")
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(tmp_path)}
    with warm.world(["--epochs", "1000"], env, tmp_path, 2) as ranks:
        metrics = tmp_path / "metrics.jsonl"
        deadline = time.monotonic() + 120
        while not (metrics.exists() and '"step"' in metrics.read_text()):
            assert time.monotonic() < deadline, "training never began"
            time.sleep(0.2)
        ranks[1].send_signal(signal.SIGKILL)
        _, stderr = ranks[0].communicate(timeout=60)
    assert ranks[0].returncode == 1
    status = json.loads((tmp_path / "status.json").read_text())
    assert (status["state"], status["rank"]) == ("failed", 0)
    assert "rank 0 on" in stderr
