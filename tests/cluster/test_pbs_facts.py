"""What jobgen takes for a fact about PBS Pro and Torque, asked of a real OpenPBS and a real Torque."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from support.require import absent

from jobgen import JobSpec, render
from jobgen.precedence import split_user_directives


class Lab(NamedTuple):
    """A real PBS: the folder of its clients, which run as its user, and one that this user can write."""

    row: str
    bin: Path
    folder: Path

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.bin / words[0]), *words[1:]]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60)

    def submit(self, lines: Sequence[str], *words: str) -> subprocess.CompletedProcess[str]:
        """Submit a job with these directives; it is held."""
        script = self.folder / "job.sh"
        script.write_text("#!/bin/bash\n" + "".join(f"#PBS {line}\n" for line in lines) + "true\n")
        return self.call("qsub", "-h", *words, script.name)

    def attributes(self, lines: Sequence[str]) -> dict[str, str]:
        """What qstat says of a job with these directives."""
        done = self.submit(lines)
        assert done.returncode == 0, (lines, done.stderr)
        text = self.call("qstat", "-f", done.stdout.strip()).stdout.replace("\n\t", "")
        self.call("qdel", done.stdout.strip())
        return dict(re.findall(r"^\s+(\S+) = (.*)$", text, re.MULTILINE))


def _lab(row: str, variable: str, default: str, name: str) -> Iterator[Lab]:
    top = Path(os.environ.get(variable, default))
    if not (top / "bin" / "qsub").exists():
        absent(f"no {name} runs here: {variable} names none")
    folder = top / "t" / f"facts-{os.getpid()}"
    folder.mkdir()
    shutil.chown(folder, "pbsu")
    yield Lab(row, top / "bin", folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def openpbs() -> Iterator[Lab]:
    yield from _lab("pbspro", "OPENPBS_LAB", "/tmp/openpbs", "OpenPBS")


@pytest.fixture(scope="module")
def torque() -> Iterator[Lab]:
    yield from _lab("torque", "TORQUE_LAB", "/tmp/torque", "Torque")


# The user's directive, and what qstat says of it.
COMMON = {
    "-N mine": ("Job_Name", "mine"),
    "-A mine": ("Account_Name", "mine"),
    "-p 3": ("Priority", "3"),
    "-j n": ("Join_Path", "n"),
    "-o /tmp/mine": ("Output_Path", ":/tmp/mine"),
    "-m n": ("Mail_Points", "n"),
    "-M mine@example.org": ("Mail_Users", "mine@example.org"),
    "-S /bin/sh": ("Shell_Path_List", "/bin/sh"),
    "-a 203101010101": ("Execution_Time", "2031"),
    "-l walltime=02:00:00": ("Resource_List.walltime", "02:00:00"),
    "-N mine -l walltime=02:00:00 -j n": ("Resource_List.walltime", "02:00:00"),
    "-l walltime=02:00:00 -N mine": ("Job_Name", "mine"),
}
PBSPRO = {
    **COMMON,
    "-l select=1:ncpus=1": ("Resource_List.select", "1:ncpus=1"),
    "-l place=pack:excl": ("Resource_List.place", "pack:excl"),
    "-J 0-5": ("array_indices_submitted", "0-5"),
    "-q workq": ("queue", "workq"),
}
TORQUE = {
    **COMMON,
    "-l nodes=1:ppn=3": ("Resource_List.nodes", "1:ppn=3"),
    "-t 0-5": ("job_array_request", "0-5"),
    "-q batch": ("queue", "batch"),
}
OURS = {
    "name": "ours", "account": "ours", "queue": "nowhere", "mail": "ours@example.org", "priority": 1,
    "log": "/tmp/ours", "begin": "2030-01-01T01:01", "walltime": "01:00:00", "nodes": 2,
}  # fmt: skip


def beside_ours(lab: Lab, line: str) -> dict[str, str]:
    """What qstat says of a job of ours with this directive of the user's."""
    options = dict(OURS)
    if not line.startswith("-q"):
        del options["queue"]
    if line.startswith(("-J", "-t")):
        options |= {"array": "0-3", "log": "/tmp/ours.%a"}
    script = render(
        JobSpec("pbs", ["true"], launcher="mpirun", accelerator="cpu", dialect=lab.row, **options)
    )
    ours = [one.removeprefix("#PBS ") for one in script.splitlines() if one.startswith("#PBS ")]
    first, last = split_user_directives([line], lab.row)
    return lab.attributes([*first, *ours, *last])


@pytest.mark.parametrize("line", PBSPRO)
def test_a_user_s_directive_wins_on_pbs_pro(openpbs: Lab, line: str) -> None:
    name, value = PBSPRO[line]
    assert value in beside_ours(openpbs, line)[name]


@pytest.mark.parametrize("line", TORQUE)
def test_a_user_s_directive_wins_on_torque(torque: Lab, line: str) -> None:
    name, value = TORQUE[line]
    assert value in beside_ours(torque, line)[name]
