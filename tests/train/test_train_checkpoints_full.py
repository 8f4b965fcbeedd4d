"""A disk that is full, or that may not be written to: the run says so in one sentence, keeps the last good
checkpoint and leaves, on all ranks, with a status of its own. On a small tmpfs that only the run sees."""

from __future__ import annotations

import functools
import json
import os
import resource
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import warm
from support.require import absent, need_command, need_package, need_root
from train_support import clean_environment, module_needs, start

module_needs("torch", "numpy", "sklearn")

from jobgen.train import checkpoints  # noqa: E402
from jobgen.train.checkpoints import directory  # noqa: E402

RUN = ["--epochs", "1", "--save-every", "2", "--log-every", "2"]
LONG = ["--epochs", "100", *RUN[2:]]  # something else ends it
PATIENCE = 120  # seconds; a rank that waited for another would wait ten minutes


@dataclass
class Left:
    """What a run left: on the small disk, and elsewhere."""

    returncode: int
    stderr: str
    disk: Path
    run: Path

    @property
    def status(self) -> dict[str, Any]:
        return json.loads((self.run / "status.json").read_text())

    @property
    def complaint(self) -> str:
        [line] = [
            line for line in self.stderr.splitlines() if "jobgen.train: " in line and "warning" not in line
        ]
        assert "Traceback" not in self.stderr
        return line


@functools.cache
def apart() -> subprocess.Popen[bytes]:
    """A process that sees mounts that nobody else does."""
    unshare = need_command("unshare")
    if subprocess.run([unshare, "--mount", "true"], check=False, capture_output=True).returncode:
        absent("this container may not mount a tmpfs")
    made = subprocess.Popen([unshare, "--mount", "cat"], stdin=subprocess.PIPE)  # it ends with this process
    while Path(f"/proc/{made.pid}/comm").read_text() != "cat\n":
        time.sleep(0.01)  # it is not apart yet
    return made


def there(*words: object) -> list[str]:
    """The command in the ranks' view of the files."""
    return [need_command("nsenter"), "--mount", "--target", str(apart().pid), *map(str, words)]


def on_a_small_disk(
    folder: Path, options: list[str], size: str, beside: str = "", run_on_it: bool = False, ranks: int = 2
) -> Left:
    """Train with checkpoints on a tmpfs of that size, seen by nobody else; `beside` is shell that goes on at
    the same time, with $disk. What it holds in the end is copied to folder/kept."""
    need_root()
    need_package("torch", "deepspeed", "numpy", "sklearn")
    disk, kept, run = folder / "disk", folder / "kept", folder / "run"
    disk.mkdir(parents=True)
    subprocess.run(there("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk), check=True)
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(disk / "run" if run_on_it else run)}
    began = time.monotonic()
    with subprocess.Popen(there("bash", "-c", beside or ":"), env={**os.environ, "disk": str(disk)}) as other:
        if "until" not in beside:
            other.wait()
        status, _, err = warm.run(options, env, folder, ranks, apart().pid)
        other.kill()
    assert time.monotonic() - began < PATIENCE
    subprocess.run(there("cp", "-r", disk, kept), check=True)
    subprocess.run(there("umount", "--lazy", disk), check=True)
    return Left(status, err, kept, kept / "run" if run_on_it else run)


def assert_whole(place: Path) -> str:
    """All checkpoints in `place` are whole, and nothing else is there; returns the latest's id."""
    found = checkpoints.at(place)
    assert found.trouble == ()
    for name in checkpoints.ids(place):
        directory.verify(place / name, checkpoints.at(place / name).record["files"])
    assert sorted(path.name for path in place.iterdir()) == sorted(["latest", *checkpoints.ids(place)])
    assert found.directory.name == checkpoints.ids(place)[-1]
    return found.directory.name


ENGINES = ("ddp", "fsdp", "pipeline", "ddp --async-save", "fsdp --async-save", "deepspeed --zero-stage 1")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_full_disk(engine: str, tmp_path: Path) -> None:
    disk = str(tmp_path / "disk" / "checkpoints")
    options = [*RUN, "--engine", *engine.split(), "--checkpoint-dir", disk]
    left = on_a_small_disk(tmp_path, options, "4m")
    assert left.returncode == 4
    last = assert_whole(left.disk / "checkpoints")
    failed = f"step-{int(last[5:]) + 2:06d}"
    assert (
        f"checkpoint {failed} cannot be written: No space left on device: {disk}/.{failed}." in left.complaint
    )
    assert " MiB free); " in left.complaint
    assert left.complaint.endswith(f"; {last} is intact and is kept")
    assert (left.status["state"], left.status["exit_status"]) == ("failed", 4)
    assert left.status["checkpoint"] == last


@pytest.mark.parametrize("engine", ["fsdp", "fsdp --async-save", "deepspeed --zero-stage 1"])
def test_one_rank_s_trouble_ends_all(engine: str, tmp_path: Path) -> None:
    """Here rank 1 alone may not write large files; rank 0 would wait for it inside DeepSpeed or torch."""
    need_package("torch", "deepspeed", "numpy", "sklearn")
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(tmp_path / "run")}
    with warm.world([*RUN, "--engine", *engine.split()], env, tmp_path, 2, apart().pid) as ranks:
        resource.prlimit(ranks[1].pid, resource.RLIMIT_FSIZE, (20 << 10, 20 << 10))
        statuses, _, err = warm.finish(ranks, PATIENCE)
    assert statuses == [4, 4]
    left = Left(4, err, tmp_path, tmp_path / "run")
    assert "checkpoint step-000002 cannot be written: File too large: " in left.complaint
    assert "(rank 1 on " in left.complaint
    assert left.complaint.endswith("; there is no earlier one")
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []


def test_a_full_disk_on_which_everything_is(tmp_path: Path) -> None:
    """Metrics, status and checkpoints; and somebody else fills it, at once."""
    options = [*LONG, "--engine", "ddp"]
    fill = 'until [ -e "$disk"/run/checkpoints/latest ]; do sleep 0.01; done; cat /dev/zero > "$disk"/rest'
    left = on_a_small_disk(tmp_path, options, "20m", fill, run_on_it=True)
    assert left.returncode == 4
    last = assert_whole(left.disk / "run" / "checkpoints")
    assert "No space left on device" in left.complaint
    assert left.complaint.endswith(f"; {last} is intact and is kept")
    assert left.stderr.count("warning") <= 1


def test_a_run_goes_on_when_there_is_space_again(tmp_path: Path) -> None:
    disk = tmp_path / "disk" / "checkpoints"
    options = [*RUN, "--engine", "ddp", "--checkpoint-dir", str(disk)]
    left = on_a_small_disk(tmp_path, options, "4m", ranks=1)
    assert left.returncode == 4
    (left.disk / "checkpoints").rename(disk)
    options = [*RUN, "--engine", "ddp", "--resume", "--keep", "1", "--checkpoint-dir", str(disk)]
    resumed = start(tmp_path, "warm", options, ranks=1, like=apart().pid)
    assert resumed.returncode == 0, resumed.stderr
    undisturbed = start(
        tmp_path / "other", "warm", [*RUN[:2], "--engine", "ddp", *RUN[4:]], ranks=1, like=apart().pid
    )
    assert resumed.metrics("epoch")[-1]["test_loss"] == undisturbed.metrics("epoch")[-1]["test_loss"]


def test_a_directory_that_becomes_read_only(tmp_path: Path) -> None:
    disk = str(tmp_path / "disk" / "checkpoints")
    options = [*LONG, "--zero-stage", "2", "--checkpoint-dir", disk]
    # It cannot while a file is open for writing: until a moment when none is.
    lock = 'until [ -e "$disk"/checkpoints/latest ] && mount -o remount,ro "$disk" 2>/dev/null; do :; done'
    left = on_a_small_disk(tmp_path, options, "500m", lock)
    assert left.returncode == 4
    assert "cannot be written: Read-only file system: " in left.complaint
    kept = left.status["checkpoint"]
    assert kept == checkpoints.at(left.disk / "checkpoints").directory.name
    assert left.complaint.endswith(f"; {kept} is intact and is kept")


def test_a_directory_that_is_read_only_from_the_start(tmp_path: Path) -> None:
    """Before torch is imported."""
    options = [*RUN, "--checkpoint-dir", str(tmp_path / "disk" / "a" / "b")]
    left = on_a_small_disk(tmp_path, options, "4m", 'mount -o remount,ro "$disk"', ranks=1)
    assert left.returncode == 4
    assert left.complaint == (
        f"jobgen.train: checkpoints cannot be written to {tmp_path}/disk/a/b: Read-only file system; "
        "nothing was trained"
    )
    assert (left.status["state"], left.status["exit_status"]) == ("failed", 4)
    assert "torch" not in left.status["startup"]


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = start(
        tmp_path, "warm", [*RUN, "--checkpoint-dir", str(tmp_path / "file")], ranks=1, like=apart().pid
    )
    assert done.returncode == 4
    assert "checkpoints cannot be written to" in done.stderr
    assert done.stderr.count("\n") == 1
