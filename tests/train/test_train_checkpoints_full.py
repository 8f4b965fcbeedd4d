"""A disk that is full, or that may not be written to: the run says so in one sentence, keeps the last good
checkpoint and leaves, on all ranks, with a status of its own. On a small tmpfs that only the run sees."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.require import absent, need_command, need_root
from train_support import clean_environment, launcher_command, module_needs, start

module_needs("torch", "numpy", "sklearn")

from jobgen.train import checkpoints  # noqa: E402
from jobgen.train.checkpoints import directory  # noqa: E402

RUN = ["--epochs", "1", "--save-every", "2", "--log-every", "2"]
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


def on_a_small_disk(
    folder: Path, command: list[str], size: str, inside: str = "", run_on_it: bool = False
) -> Left:
    """Run `command` with checkpoints on a tmpfs of that size, seen by nobody else; `inside` is shell that
    goes on beside it, with $disk. What it holds in the end is copied to folder/kept."""
    need_root()
    unshare, mount = need_command("unshare"), need_command("mount")
    disk, kept, run = folder / "disk", folder / "kept", folder / "run"
    disk.mkdir(parents=True)
    quoted = shlex.join(command)
    script = f"""
        disk={shlex.quote(str(disk))}
        {mount} -t tmpfs -o size={size} tmpfs "$disk" || exit 99
        {{ {inside or ":"}; }} &
        {quoted}
        status=$?
        kill $! 2>/dev/null
        cp -r "$disk" {shlex.quote(str(kept))}
        exit $status
    """
    began = time.monotonic()
    place = disk / "run" if run_on_it else run
    done = subprocess.run(
        [unshare, "--mount", "bash", "-c", script],
        env={**clean_environment(), "JOBGEN_RUN_DIR": str(place)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=folder,
    )
    if done.returncode == 99 or "unshare failed" in done.stderr:
        absent("this container may not mount a tmpfs")
    assert time.monotonic() - began < PATIENCE
    return Left(done.returncode, done.stderr, kept, kept / "run" if run_on_it else run)


def assert_whole(place: Path) -> str:
    """All checkpoints in `place` are whole, and nothing else is there; returns the latest's id."""
    found = checkpoints.at(place)
    assert found.trouble == ()
    for name in checkpoints.ids(place):
        directory.verify(place / name, checkpoints.at(place / name).record["files"])
    assert sorted(path.name for path in place.iterdir()) == sorted(["latest", *checkpoints.ids(place)])
    assert found.directory.name == checkpoints.ids(place)[-1]
    return found.directory.name


@pytest.mark.parametrize("options", [["--engine", "ddp"], ["--zero-stage", "1"], ["--engine", "pipeline"]])
def test_a_full_disk(options: list[str], tmp_path: Path) -> None:
    disk = str(tmp_path / "disk" / "checkpoints")
    command = [*launcher_command("mpirun", 2), *RUN, *options, "--checkpoint-dir", disk]
    left = on_a_small_disk(tmp_path, command, "4m")
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


def test_one_rank_s_trouble_ends_all(tmp_path: Path) -> None:
    """Here rank 1 alone may not write large files; rank 0 would wait for it inside DeepSpeed."""
    *launch, python, dash_m, module = launcher_command("mpirun", 1)
    run = [python, dash_m, module, *RUN, "--zero-stage", "1"]
    limited = ["-np", "1", "bash", "-c", f"ulimit -f 20 && exec {shlex.join(run)}"]
    began = time.monotonic()
    done = subprocess.run(
        [*launch, *run, ":", *limited],
        env={**clean_environment(), "JOBGEN_RUN_DIR": str(tmp_path / "run")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert time.monotonic() - began < PATIENCE
    assert done.returncode == 4
    left = Left(done.returncode, done.stderr, tmp_path, tmp_path / "run")
    assert "checkpoint step-000002 cannot be written: File too large: " in left.complaint
    assert "(rank 1 on " in left.complaint
    assert left.complaint.endswith("; there is no earlier one")
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []


def test_a_full_disk_on_which_everything_is(tmp_path: Path) -> None:
    """Metrics, status and checkpoints; and somebody else fills it, at once."""
    command = [*launcher_command("mpirun", 2), *RUN, "--engine", "ddp"]
    fill = (
        'until [ -e "$disk"/run/checkpoints/step-000004 ]; do sleep 0.01; done; cat /dev/zero > "$disk"/rest'
    )
    left = on_a_small_disk(tmp_path, command, "20m", fill, run_on_it=True)
    assert left.returncode == 4
    last = assert_whole(left.disk / "run" / "checkpoints")
    assert "No space left on device" in left.complaint
    assert left.complaint.endswith(f"; {last} is intact and is kept")
    assert left.stderr.count("warning") <= 1


def test_a_run_goes_on_when_there_is_space_again(tmp_path: Path) -> None:
    disk = tmp_path / "disk" / "checkpoints"
    command = [*launcher_command("one", 1), *RUN, "--engine", "ddp", "--checkpoint-dir", str(disk)]
    left = on_a_small_disk(tmp_path, command, "4m")
    assert left.returncode == 4
    (left.disk / "checkpoints").rename(disk)
    options = [*RUN, "--engine", "ddp", "--resume", "--keep", "1", "--checkpoint-dir", str(disk)]
    resumed = start(tmp_path, "warm", options, ranks=1)
    assert resumed.returncode == 0, resumed.stderr
    undisturbed = start(tmp_path / "other", "warm", [*RUN[:2], "--engine", "ddp", *RUN[4:]], ranks=1)
    assert resumed.metrics("epoch")[-1]["test_loss"] == undisturbed.metrics("epoch")[-1]["test_loss"]


def test_a_directory_that_becomes_read_only(tmp_path: Path) -> None:
    disk = str(tmp_path / "disk" / "checkpoints")
    command = [*launcher_command("mpirun", 2), *RUN, "--zero-stage", "2", "--checkpoint-dir", disk]
    # It cannot while a file is open for writing: until a moment when none is.
    lock = 'until [ -e "$disk"/checkpoints/latest ] && mount -o remount,ro "$disk" 2>/dev/null; do :; done'
    left = on_a_small_disk(tmp_path, command, "500m", lock)
    assert left.returncode == 4
    assert "cannot be written: Read-only file system: " in left.complaint
    kept = left.status["checkpoint"]
    assert kept == checkpoints.at(left.disk / "checkpoints").directory.name
    assert left.complaint.endswith(f"; {kept} is intact and is kept")


def test_a_directory_that_is_read_only_from_the_start(tmp_path: Path) -> None:
    """Before torch is imported."""
    command = [*launcher_command("one", 1), *RUN, "--checkpoint-dir", str(tmp_path / "disk" / "a" / "b")]
    lock = shlex.join(["mount", "-o", "remount,ro", str(tmp_path / "disk")])
    left = on_a_small_disk(tmp_path, ["bash", "-c", f"{lock} && exec {shlex.join(command)}"], "4m")
    assert left.returncode == 4
    assert left.complaint == (
        f"jobgen.train: checkpoints cannot be written to {tmp_path}/disk/a/b: Read-only file system; "
        "nothing was trained"
    )
    assert (left.status["state"], left.status["exit_status"]) == ("failed", 4)
    assert "torch" not in left.status["startup"]


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = start(tmp_path, "warm", [*RUN, "--checkpoint-dir", str(tmp_path / "file")], ranks=1)
    assert done.returncode == 4
    assert "checkpoints cannot be written to" in done.stderr
    assert done.stderr.count("\n") == 1
