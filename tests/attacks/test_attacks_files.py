"""Awkward files as input, awkward paths for output, and streams that break."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attacks.targets import TARGETS, Target, attack, everything, forked, named, part

from jobgen.commands.streams import LOST

REAL = [one for one in TARGETS if named(one) != "doctor"]  # its probes take seconds
INPUTS: dict[str, bytes] = {
    "empty": b"",
    "nul": b"\x00",
    "bytes": bytes(range(256)) * 20,
    "utf16": "scheduler = 'slurm'".encode("utf-16"),
    "one-line": b"#" + b"x" * 900_000,
    "too-long": b"# x\n" * 400_000,
    "deep": b"a = " + b"[" * 50_000,
    "tables": b"[" + b"a." * 20_000 + b"a]",
    "number": b"[resources]\nnodes = " + b"9" * 100_000,
    "sweep": b"[sweep]\n" + b"".join(b"p%d = [1, 2]\n" % i for i in range(2000)),
    "huge-sweep": b"[sweep]\nlr = [1" + b"0" * 4000 + b"]",
    "wrong": b"scheduler = 3\nsite = []\n[job]\nname = {}\n[resources]\nnodes = nan\n",
    "date": b"[job]\nname = 1979-05-27\n[environment]\nenv = {A = 12:00:00}\n",
    "escapes": b'title = "\\u001b[31m"\nscheduler = "slurm"\n[job]\nname = "\\u202e\\u0007"\n',
    "heredoc": b"#!/bin/bash\ncat << EOF\n$(((((((\n",
}
PATHS = [
    "absent",
    "absent/x",
    "job.sh/x",
    "loop",
    "dangling",
    "folder",
    "x" * 300,
    "a\nb\x1b[0m",
    "\udcff",
    "/proc/self/mem",
]
READ = [("--job", "slurm"), ("--site", "slurm"), ("--template-dir", "slurm"), ("--runs-dir", "list")]


@pytest.fixture
def awkward(place: Path) -> list[str]:
    """The names of the inputs above, which are there as files and as folders of templates."""
    for name, content in INPUTS.items():
        (place / f"{name}.toml").write_bytes(content)
        (place / name).mkdir()
        (place / name / "slurm.sh.j2").write_bytes(content)
    return [*PATHS, *INPUTS, *(f"{name}.toml" for name in INPUTS)]


@pytest.mark.parametrize(
    "target", [one for one in TARGETS if named(one) not in ("logs", "doctor")], ids=named
)
def test_every_command_reads_every_file(target: Target, awkward: list[str], place: Path) -> None:
    takes = {flag for option in target.options() for flag in option.opts}
    for name in part(awkward, 2, named(target)):
        for flag in {"--job", "--site", "--template-dir", "--runs-dir"} & takes:
            if flag == "--job" or named(target) not in (
                "pbs",
                "local",
                "submit",
            ):  # they share the other readers
                attack([*target.base, flag, name])
        if target.command.params and not target.words[0].startswith(
            ("pbs", "slurm", "local", "submit", "init")
        ):
            attack([*target.words, name, *target.base[len(target.words) + 1 :]])


@pytest.mark.parametrize(
    "target", [one for one in TARGETS if "-o" in str([p.opts for p in one.command.params])], ids=named
)
def test_every_output_is_whole_or_absent(target: Target, place: Path) -> None:
    names = [*PATHS, "/dev/full", "/proc/x", "", "~", "job.sh/", "folder/", ".", "..", "two words"]
    for force in ([], ["--force"]):
        for name in part(names, 4 if named(target) == "web" else 1, *force):  # a page has 15 MB
            before = everything(str(place))
            done = attack([*target.base, "-o", name, *force])
            after = everything(str(place))
            if done.status == 2:
                assert after == before, name
            else:
                changed = {path for path in after if after[path] != before.get(path)}
                written = Path(name).resolve()
                assert all(Path(path).is_relative_to(written) for path in changed), name
                assert written.is_dir() or after[str(written)], name
            for path in sorted(set(after) - set(before), reverse=True):
                os.rmdir(path) if os.path.isdir(path) else os.unlink(path)


def _redirected(number: int, path: str | None) -> None:
    os.close(number)
    if path is not None:
        os.dup2(os.open(path, os.O_WRONLY), number)


def _unread() -> None:
    read, write = os.pipe()
    os.close(read)
    os.dup2(write, 1)


BREAKS = {
    "a full disk": (lambda: _redirected(1, "/dev/full"), LOST),
    "no output": (lambda: _redirected(1, None), LOST),
    "no reader": (_unread, 141),
    "full messages": (lambda: _redirected(2, "/dev/full"), None),
    "no messages": (lambda: _redirected(2, None), None),
    "no input": (lambda: _redirected(0, None), None),
}


@pytest.mark.parametrize("target", REAL, ids=named)
def test_streams_that_break(target: Target, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No script is lost with status 0, and no traceback is printed; without messages the status remains."""
    plain = attack(target.base)
    for breakage, (prepare, lost) in BREAKS.items():
        for made in ("jobgen.toml", "report.html"):
            (place / made).unlink(missing_ok=True)
        status, said = forked(target.base, prepare), capfd.readouterr().err
        assert "Traceback" not in said
        assert status == (lost if lost is not None and plain.out else plain.status), breakage
        if status == LOST:
            assert said.splitlines()[-1].startswith("jobgen: standard output cannot be written: ")


@pytest.mark.parametrize("target", REAL, ids=named)
def test_a_directory_that_is_gone(target: Target, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def leave() -> None:
        (place / "gone").mkdir()
        os.chdir(place / "gone")
        (place / "gone").rmdir()

    status, said = forked(target.base, leave), capfd.readouterr().err
    assert status in (0, 1, 2)
    assert "Traceback" not in said
    if status == 2:
        assert said.count("\n") == 1
