"""The code on its way to a host whose shell and commands differ."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.require import absent, need_command
from support.shell_host import ShellHost

from jobgen.errors import JobgenError
from jobgen.hosts.ssh import UnreachableError
from jobgen.runs.code import store_script
from jobgen.runs.code.digests import Count
from jobgen.runs.code.selection import Selection, Upload, selection
from jobgen.runs.code.travel import Sent, travel

EVERY_BYTE = [bytes([byte]) for byte in range(1, 256) if byte != ord("/")]


def of(folder: Path) -> Selection:
    return selection(str(folder), Upload())


def send(host: ShellHost, code: Selection, runs: Path, name: str = "a") -> Sent:
    (runs / name).mkdir(parents=True, exist_ok=True)
    return travel(host, str(runs), str(runs / name), code)


def assert_same(here: Path, there: Path) -> None:
    """Two folders have the same files, links, executable bits and folders."""

    def content(top: bytes) -> dict[bytes, object]:
        found: dict[bytes, object] = {}
        for folder, folders, names in os.walk(top):
            for name in (*folders, *names):
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    found[os.path.relpath(path, top)] = os.readlink(path)
                elif os.path.isdir(path):
                    found[os.path.relpath(path, top)] = "folder"
                else:
                    with open(path, "rb") as file:
                        found[os.path.relpath(path, top)] = (
                            file.read(),
                            os.stat(path).st_mode & stat.S_IXUSR,
                        )
        return found

    assert content(os.fsencode(there)) == content(os.fsencode(here))


def assert_clean(runs: Path) -> None:
    """Nothing half-made is on the host."""
    patience = time.monotonic() + 20  # what a call no longer needs is removed behind it
    while list((runs / ".store").glob("incoming/*")):
        assert time.monotonic() < patience
        time.sleep(0.05)
    for run in runs.iterdir():
        assert run.name == ".store" or {one.name for one in run.iterdir()} <= {"code"}
    for file in (runs / ".store/objects").rglob("*"):
        if file.is_file():
            need = subprocess.run(["sha256sum", file], capture_output=True, text=True, check=True).stdout
            assert need.split()[0].removeprefix("\\") == file.parent.name + file.name


def test_all_arrives_and_an_unchanged_tree_is_sent_once(host: ShellHost, work: Path, tmp_path: Path) -> None:
    for byte in EVERY_BYTE:
        folder = os.path.join(os.fsencode(work), b"bytes", b"in " + byte)
        os.makedirs(folder)
        for name, text in ((b"-" + byte, byte), (byte + b"\n'$(touch evil)", b"x")):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(text)
            os.chmod(os.path.join(folder, name), 0o755 if byte > b"z" else 0o644)
    (work / "void/inner").mkdir(parents=True)
    (work / "empty").write_text("")
    (work / ("deep/" * 30)).mkdir(parents=True)
    (work / ("deep/" * 30) / ("long" * 50)).write_text("deep")
    (work / "a link").symlink_to("bytes")
    (work / "code").mkdir()
    (work / "code/link").symlink_to("../train.py")
    runs = tmp_path / "the runs' $HOME"
    code = of(work)
    first = send(host, code, runs)
    assert_same(work, runs / "a/code")
    assert (first.start, first.files, first.size) == (".", len(code.files), code.size)
    assert host.inputs == [host.inputs[0], first.sent - host.inputs[0]]
    second = send(host, of(work), runs, "b")
    assert_same(work, runs / "b/code")
    assert second.sent == host.inputs[0]
    assert_clean(runs)
    (runs / "b/code/train.py").write_text("another")
    assert (runs / "a/code/train.py").read_text() == (work / "train.py").read_text()
    send(host, of(work), runs, "b")
    assert_same(work, runs / "b/code")
    assert (
        stat.S_IMODE((runs / ".store").stat().st_mode)
        == stat.S_IMODE((runs / "a/code").stat().st_mode)
        == 0o700
    )


def test_the_program_starts_in_the_same_folder(host: ShellHost, checkout: Path, tmp_path: Path) -> None:
    (checkout / "sub/inner").mkdir(parents=True)
    (checkout / "sub/inner/x.py").write_text("")
    sent = send(host, of(checkout / "sub/inner"), tmp_path / "runs")
    assert (tmp_path / "runs/a/code" / sent.start / "x.py").exists()
    assert not (tmp_path / "runs/a/code/.git").exists()


def test_only_what_has_changed_is_sent(host: ShellHost, work: Path, tmp_path: Path) -> None:
    (work / "large").write_bytes(random.Random(1).randbytes(1 << 20))
    send(host, of(work), tmp_path / "runs")
    (work / "train.py").write_text("changed")
    (work / "copy").write_bytes((work / "large").read_bytes())
    assert send(host, of(work), tmp_path / "runs").sent < 2000
    assert_same(work, tmp_path / "runs/a/code")


@pytest.mark.parametrize("seed", range(4))
def test_a_connection_breaks_at_any_byte(host: ShellHost, seed: int, work: Path, tmp_path: Path) -> None:
    """The second try completes the first, and no half object is in the store."""
    chance = random.Random(seed)
    for number in range(12):
        (work / f"file{number}").write_bytes(chance.randbytes(chance.choice((10, 1000, 50_000))))
    runs, code = tmp_path / "runs", of(work)
    if seed % 2:
        host.cut = chance.randrange(2000)
        with pytest.raises(UnreachableError):
            send(host, code, runs)
        assert_clean(runs)
    host.run, run = _cut_second(host, chance), host.run  # type: ignore[method-assign]
    with pytest.raises(UnreachableError):
        send(host, code, runs)
    assert_clean(runs)
    assert not (runs / "a/code").exists()
    host.run = run  # type: ignore[method-assign]
    host.inputs.clear()
    send(host, code, runs)
    assert_same(work, runs / "a/code")
    assert_clean(runs)


def _cut_second(host: ShellHost, chance: random.Random):  # type: ignore[no-untyped-def]
    """Return a run() whose second input breaks."""
    run, calls = host.run, []

    def cut(script: str, stdin, patience: float):  # type: ignore[no-untyped-def]
        calls.append(script)
        host.cut = chance.randrange(150_000) if len(calls) == 2 else None
        return run(script, stdin, patience)

    return cut


def test_a_damaged_object_is_not_stored(host: ShellHost, work: Path, tmp_path: Path) -> None:
    code = of(work)
    (work / "train.py").write_text("print('it RUNS')\n")
    with pytest.raises(JobgenError, match=r"train\.py has changed while the code was sent; submit again"):
        send(host, code, tmp_path / "runs")
    assert_clean(tmp_path / "runs")
    (work / "train.py").write_text("short")
    with pytest.raises(JobgenError, match=r"train\.py has changed"):
        send(host, code, tmp_path / "runs")
    (work / "train.py").unlink()
    with pytest.raises(JobgenError, match=r"train\.py: No such file"):
        send(host, code, tmp_path / "runs")
    assert_clean(tmp_path / "runs")


def test_submissions_at_the_same_time(host: ShellHost, work: Path, tmp_path: Path) -> None:
    for number in range(50):
        (work / f"file{number}").write_text(str(number))
    code = of(work)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: send(host, code, tmp_path / "runs", name), "aabc"))
    for name in "abc":
        assert_same(work, tmp_path / "runs" / name / "code")
    assert_clean(tmp_path / "runs")


def test_another_submission_makes_the_folder_while_mv_runs(work: Path, tmp_path: Path) -> None:
    folder, made = tmp_path / "bin", tmp_path / "runs/a/code"
    folder.mkdir()
    (folder / "mv").write_text(
        f"#!/bin/sh\nfor to; do :; done\n"
        f'if [ "$to" = {made} ] && [ ! -e {made} ]; then mkdir {made}; echo 1 > {made}/a; exit 1; fi\n'
        f'exec {need_command("mv")} "$@"\n'
    )
    (folder / "mv").chmod(0o755)
    send(ShellHost((need_command("dash"),), f"{folder}:{os.environ['PATH']}"), of(work), tmp_path / "runs")
    assert [one.name for one in made.iterdir()] == ["a"]
    assert_clean(tmp_path / "runs")


@pytest.mark.parametrize("tool", ["gzip", "sha256sum", "shasum", "openssl", "none"])
def test_commands_that_are_absent(tool: str, work: Path, tmp_path: Path) -> None:
    """Without gzip all is sent as it is; there are three commands for SHA-256, and none is needed."""
    folder, sums = tmp_path / "bin", ("sha256sum", "shasum", "openssl")
    folder.mkdir()
    common = ("awk", "cat", "chmod", "cp", "df", "find", "grep", "mkdir", "mv", "printf", "rm", "tail", "tar")
    for name in (
        *common,
        *(("sha256sum",) if tool == "gzip" else ("gzip",)),
        *((tool,) if tool in sums else ()),
    ):
        (folder / name).symlink_to(need_command(name))
    host = ShellHost((need_command("dash"),), str(folder))
    if tool == "shasum":
        host = ShellHost((need_command("dash"),), f"{folder}:{os.path.dirname(need_command('perl'))}")
    sent = send(host, of(work), tmp_path / "runs")
    assert len(host.inputs) == (3 if tool == "gzip" else 2)
    assert sent.files == 1
    assert_same(work, tmp_path / "runs/a/code")
    assert_clean(tmp_path / "runs")


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A folder of runs with 2 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=False).returncode:
        absent("this user or container may not mount a tmpfs")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_full_disk(host: ShellHost, work: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "large").write_bytes(random.Random(1).randbytes(1_200_000))
    with pytest.raises(JobgenError) as error:
        send(host, of(work), small_disk)
    text = str(error.value)
    assert text.startswith("lab has too little space for the code: 2.3 MiB are needed in "), text
    assert text.endswith((" MiB are free", " KiB are free")), text
    assert_clean(small_disk)
    # As for a quota, which df does not know.
    monkeypatch.setattr("jobgen.runs.code.travel._space", lambda files: 0)
    with pytest.raises(JobgenError, match=r"too little space .*\((?i:.*space.*)\)$"):
        send(host, of(work), small_disk)
    assert_clean(small_disk)
    assert not list(small_disk.glob("*/code"))
    (work / "large").write_bytes(b"small")
    send(host, of(work), small_disk)


def test_a_folder_that_cannot_be_written(host: ShellHost, work: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    (runs / "a").mkdir(parents=True)
    (runs / ".store").write_text("a file")
    with pytest.raises(JobgenError, match="lab cannot store the code in .*: .*(Not a directory|File exists)"):
        send(host, of(work), runs)


def test_what_others_leave_is_removed_later(host: ShellHost, work: Path, tmp_path: Path) -> None:
    for name, age in {"old": 4 * 86400, "new": 100}.items():
        folder = tmp_path / "runs/.store/incoming" / name
        (folder / "objects").mkdir(parents=True)
        then = folder.stat().st_mtime - age
        os.utime(folder, (then, then))
    send(host, of(work), tmp_path / "runs")
    names = os.listdir(tmp_path / "runs/.store/incoming")
    assert "old" not in names
    assert "new" in names


def test_progress_counts_kibibytes(work: Path, tmp_path: Path) -> None:
    (tmp_path / "runs/a").mkdir(parents=True)
    (work / "train.py").write_bytes(bytes(5000))
    progress = Count()
    travel(ShellHost(), str(tmp_path / "runs"), str(tmp_path / "runs/a"), of(work), progress)
    assert progress.done == progress.total == 4


def test_shellcheck(tmp_path: Path) -> None:
    file = tmp_path / "script.sh"
    file.write_text(f"#!/bin/sh\n{store_script.store_script('/r', '/r/a', 'x', 1, True)}")
    command = [need_command("shellcheck"), "--shell=sh", "--exclude=SC1091,SC2016,SC2086", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
