"""Data sets in Python, prepared in processes: the samples, order and resume of a run without them."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from train_support import clean_environment, module_needs, start

module_needs("torch", "numpy")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from jobgen.train import data  # noqa: E402
from jobgen.train.data import dataset_sources, processes, sampling  # noqa: E402
from support.finished import Finished  # noqa: E402

MODULE = """
import os
import random
import signal
import time

import numpy as np
import torch
from torch import nn


def sample(index):
    inputs = np.random.default_rng(index).standard_normal(3).astype("float32")
    return inputs, np.float32(inputs.sum())


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, index):
        inputs, target = sample(index)
        return inputs + np.float32(random.random() + np.random.rand() + torch.rand(1).item()), target


class Exact(Noisy):
    def __getitem__(self, index):
        with open("pids", "a") as file:
            file.write(f"{os.getpid()}\\n")
        return sample(index)


class Slow(Exact):
    def __getitem__(self, index):
        time.sleep(0.02)
        return sample(index)


class Wrong(Exact):
    def __getitem__(self, index):
        return sample(index) if index < 50 else {}[index]


class Ending(Exact):
    def __getitem__(self, index):
        if index == 50:
            open(f"ended-{os.getpid()}", "w").close()
            end = os.environ["END"]
            os._exit(int(end)) if end.isdecimal() else os.kill(os.getpid(), getattr(signal, end))
        return sample(index)


class Lines(torch.utils.data.IterableDataset):
    def __init__(self, samples, rank=0, ranks=1):
        self.samples, self.rank, self.ranks = samples, rank, ranks

    def shard(self, rank, ranks):
        return Lines(self.samples, rank, ranks)

    def __iter__(self):
        for index in range(self.rank, self.samples, self.ranks):
            with open(f"read-{self.rank}-of-{self.ranks}", "a") as file:
                file.write(f"{index}\\n")
            yield sample(index)


def noisy():
    return {"train": Noisy(), "test": Noisy()}


def exact():
    return {"train": Exact(), "test": Exact()}


def slow():
    return {"train": Slow(), "test": Exact()}


def wrong():
    return {"train": Wrong(), "test": Exact()}


def ending():
    return {"train": Ending(), "test": Exact()}


def loader():
    made = torch.utils.data.DataLoader(Exact(), batch_size=8, num_workers=2, shuffle=True)
    return {"train": made, "test": Exact()}


def unsendable():
    return {"train": Exact(), "test": Exact(), "collate": lambda rows: torch.utils.data.default_collate(rows)}


def lines():
    return {"train": Lines(48), "test": Lines(16), "train_samples": 48, "test_samples": 16}


class Whole(Lines):
    shard = None


def whole_stream():
    return {"train": Whole(48), "test": Whole(16), "train_samples": 48, "test_samples": 16}


def short():
    return {"train": Lines(40), "test": Lines(16), "train_samples": 48, "test_samples": 16}


def model():
    return nn.Linear(3, 1)
"""
COMMON = ("--model", "mydata:model", "--engine", "ddp", "--batch-size", "8", "--log-every", "1")


def train(folder: Path, name: str, *options: str, ranks: int = 1) -> Finished:
    folder.mkdir(exist_ok=True)
    (folder / "mydata.py").write_text(MODULE)
    return start(folder, "warm", ["--dataset", f"mydata:{name}", *COMMON, *options], ranks)


def test_processes_change_nothing(tmp_path: Path) -> None:
    """Also the workers of a DataLoader, evaluations between steps, and the second epoch."""
    options = ("--epochs", "2", "--eval-every", "3")
    whole = train(tmp_path / "0", "exact", *options, "--workers", "0")
    assert whole.returncode == 0, whole.stderr
    cores = len(os.sched_getaffinity(0))
    for name, more in (("exact", ("--workers", str(cores + 1))), ("loader", ())):
        done = train(tmp_path / name, name, *options, *more)
        assert done.returncode == 0, done.stderr
        assert done.losses() == whole.losses()
        assert "UserWarning" not in done.stdout + done.stderr
        shared = f"note: the {cores + 1} workers of a rank share {cores} core(s)"
        assert (shared in done.stdout + done.stderr) == (name == "exact" or cores == 1)
        assert done.metrics("evaluation")[-1]["mae"] == whole.metrics("evaluation")[-1]["mae"]
        pids = set((tmp_path / name / "pids").read_text().split())
        assert len(pids) >= 3  # the rank, and two workers
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("name", ["lines", "whole_stream"])
def test_a_stream_of_a_generator_is_read_in_a_process(name: str, tmp_path: Path) -> None:
    whole, done = (train(tmp_path / count, name, "--epochs", "2", "--workers", count) for count in ("0", "2"))
    assert done.returncode == 0, done.stderr
    assert done.losses() == whole.losses()


def test_a_killed_run_leaves_nothing_that_the_next_one_does_not_remove(tmp_path: Path) -> None:
    (tmp_path / "mydata.py").write_text(MODULE)
    words = ["--dataset", "mydata:slow", *COMMON, "--workers", "1", "--epochs"]
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="w") as temporary:  # a socket has a short path
        env = clean_environment() | {"JOBGEN_RUN_DIR": str(tmp_path / "run"), "TMPDIR": temporary}
        run = subprocess.Popen([sys.executable, "-m", "jobgen.train", *words, "50"], cwd=tmp_path, env=env)
        metrics, patience = tmp_path / "run/metrics.jsonl", time.monotonic() + 120
        while not (metrics.exists() and '"step": 2' in metrics.read_text()) and time.monotonic() < patience:
            time.sleep(0.1)
        run.kill()
        run.wait()
        assert list(Path(temporary).rglob("listener-*"))
        workers = set((tmp_path / "pids").read_text().split()) - {str(run.pid)}
        patience = time.monotonic() + 60
        while any(Path(f"/proc/{pid}").exists() for pid in workers):
            assert time.monotonic() < patience, "a worker has not ended"
            time.sleep(0.1)
        done = start(tmp_path, "one", [*words, "1"], 1, env)
        assert done.returncode == 0, done.stderr
        left = [each.name for each in Path(temporary).rglob("*")]
        assert all(name.startswith(("jobgen-", "torch")) for name in left), left


def test_random_numbers_of_a_data_set_are_repeated_after_a_resume(tmp_path: Path) -> None:
    options = ("--epochs", "2", "--save-every", "3")
    whole = train(tmp_path / "whole", "noisy", *options, "--workers", "2")
    assert whole.returncode == 0, whole.stderr
    first = whole.directory / "checkpoints/step-000003"
    again = train(tmp_path / "again", "noisy", *options, "--workers", "1", "--resume", str(first))
    assert again.losses() == whole.losses()[3:], again.stderr


class Drawn(torch.utils.data.Dataset[Any]):
    """Samples that are random numbers."""

    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> tuple[list[float], int]:
        return [random.random(), np.random.rand(), torch.rand(1).item()], 0


class Shuffled(torch.utils.data.IterableDataset[Any]):
    """Samples whose order is drawn at the begin of an epoch."""

    def __iter__(self) -> Iterator[tuple[list[float], int]]:
        yield from [([float(number)], 0) for number in random.sample(range(60), 60)]


@pytest.mark.parametrize("kind", [Drawn, Shuffled])
def test_random_numbers_of_a_data_set_depend_on_the_seed(kind: Any) -> None:
    collate = torch.utils.data.default_collate
    source = (
        dataset_sources.Items(kind(), collate)
        if kind is Drawn
        else dataset_sources.Stream(kind(), collate, 60)
    )
    drawn = []
    for seed, epoch, first in ((3, 1, 0), (3, 1, 0), (4, 1, 0), (3, 2, 0), (3, 1, 8)):
        [step] = sampling.steps(np.arange(first, first + 8), 8, 1, 0, 1)
        inputs, _ = processes._Samples(source, seed)[processes._Request(1, epoch, step)][0]
        drawn.append(torch.stack(inputs).tolist())
    assert drawn[0] == drawn[1]
    assert all(other != drawn[0] for other in drawn[2:])


def test_a_signal_to_all_processes_stops_and_saves(tmp_path: Path) -> None:
    """Batch systems send it to the workers and to their server, too."""
    (tmp_path / "mydata.py").write_text(MODULE)
    env = clean_environment() | {"JOBGEN_RUN_DIR": str(tmp_path / "run")}
    options = ["--dataset", "mydata:slow", *COMMON, "--epochs", "50", "--workers", "2"]
    words = [sys.executable, "-m", "jobgen.train", *options]
    run = subprocess.Popen(
        words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    metrics = tmp_path / "run/metrics.jsonl"
    patience = time.monotonic() + 120
    while not (metrics.exists() and '"step": 9' in metrics.read_text()) and time.monotonic() < patience:
        time.sleep(0.1)
    os.killpg(run.pid, signal.SIGUSR1)
    _, errors = run.communicate(timeout=120)
    assert run.returncode == 75, errors
    assert (tmp_path / "run/checkpoints/latest").is_file()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("wrong", "KeyError"),
        ("unsendable", "--workers 2 sends the data set to other processes, and it is no pickle: "),
    ],
)
def test_what_workers_cannot_do(tmp_path: Path, name: str, says: str) -> None:
    done = train(tmp_path, name, "--workers", "2")
    assert done.returncode in (1, 2)
    assert says in done.stderr


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("3", "ended with exit status 3"),
        ("0", "ended with exit status 0"),
        ("SIGKILL", "was killed by SIGKILL, as by the kernel when the memory is used up"),
    ],
)
def test_the_end_of_a_worker_is_one_sentence_of_its_rank(
    end: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("END", end)
    done = train(tmp_path, "ending", "--workers", "2", "--batch-size", "4", ranks=2)
    assert done.returncode == 1
    rest = (
        rf"of 2 of the data set mydata:ending {how}; with --workers 0 the ranks read the samples themselves"
    )
    assert len(re.findall(rf"jobgen.train: rank \d on \S+: worker \d {rest}\n", done.stderr)) == 1, (
        done.stderr
    )
    assert "dataloader.py" not in done.stderr
    assert len([*tmp_path.glob("ended-*")]) == 1
    assert rest in done.status["message"]


def test_a_stream_with_shards_is_divided(tmp_path: Path) -> None:
    """Each rank reads its own samples only, all are used, and a resumed run goes on with the next ones."""
    options = ("--epochs", "2", "--save-every", "2")
    whole = train(tmp_path / "whole", "lines", *options, "--workers", "1", ranks=2)
    assert whole.returncode == 0, whole.stderr
    for rank in (0, 1):
        read = (tmp_path / f"whole/read-{rank}-of-2").read_text().split()
        assert {int(index) % 2 for index in read} == {rank}
        assert {int(index) for index in read} == set(range(rank, 48, 2))
    first = whole.directory / "checkpoints/step-000002"
    again = train(tmp_path / "again", "lines", *options, "--resume", str(first), ranks=2)
    assert again.losses() == whole.losses()[2:], again.stderr
    short = train(tmp_path / "short", "short", ranks=2)
    assert short.returncode == 2
    assert "shard 0 of the iterable data set ended after 20 of its 24 samples" in short.stderr


@settings(max_examples=100, deadline=None)
@given(
    length=st.integers(1, 60),
    micro=st.integers(1, 5),
    accumulation=st.integers(1, 3),
    ranks=st.integers(1, 4),
)
def test_each_sample_of_a_shard_is_taken_once_in_order(
    length: int, micro: int, accumulation: int, ranks: int
) -> None:
    counts = []
    for rank in range(ranks):
        share = dataset_sources.Share(rank, ranks, micro, accumulation)
        steps = sampling.steps(np.arange(length), micro, accumulation, rank, ranks)
        real = [piece.indices[: piece.real] for step in steps for piece in step.pieces]
        places = np.concatenate([share.places(each, length) for each in real])
        assert places.tolist() == list(range(len(places)))
        assert share.count(length) == len(places)
        counts.append(len(places))
    assert sum(counts) == length


@pytest.mark.parametrize("part", [slice(None), slice(2, 5), np.s_[1:, ::2]])
def test_a_worker_maps_the_files_of_a_data_set(tmp_path: Path, part: Any) -> None:
    np.save(tmp_path / "table.npy", np.arange(24).reshape(6, 4))
    for array in (
        np.load(tmp_path / "table.npy", mmap_mode="r"),
        np.memmap(tmp_path / "table.npy", "u1", "r", 9),
    ):
        rows = array[part] if array.ndim == 2 or isinstance(part, slice) else array
        kind, words = processes._reopened(rows)[:2]
        assert (kind is np.memmap) == rows.flags.c_contiguous
        if kind is np.memmap:
            assert np.array_equal(kind(*words), rows)
            assert not kind(*words).flags.writeable


def test_arrays_stay_in_threads() -> None:
    digits = data.load("digits", None)
    assert not digits.train.in_python
