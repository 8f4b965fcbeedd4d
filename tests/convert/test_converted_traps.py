"""The node file that a converted script writes has a name that nobody can guess, and goes with the script."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from convert.conversions import convert
from support.jobs import path_with

HEAD = "#!/bin/bash\n#PBS -N x\n#PBS -l select=1:ncpus=2\n"
BODIES = {
    "": 3,
    "set -e\ncleanup() { echo status $?; }\ntrap cleanup EXIT": 3,
    "trap 'echo \"status $?\"' INT 0": 3,
    "trap 'echo never' EXIT\ntrap - EXIT": 3,
    "trap -- 'echo status $?; exit 5' EXIT": 5,
}


@pytest.mark.parametrize("body", BODIES)
def test_a_node_file_goes_with_its_script(body: str, tmp_path: Path) -> None:
    """Also beside traps of the script, which see its status."""
    script = convert(f'{HEAD}{body}\ncat "$PBS_NODEFILE" > seen\nls "$TMPDIR"\nexit 3\n', "slurm").text
    (tmp_path / "tmp").mkdir()
    tools = path_with(tmp_path / "bin", scontrol="echo node1")
    env = {
        **os.environ,
        "PATH": f"{tools}:/usr/bin:/bin",
        "TMPDIR": str(tmp_path / "tmp"),
        "SLURM_JOB_ID": "7",
    }
    env |= {"SLURM_JOB_NODELIST": "node1", "SLURM_SUBMIT_DIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == BODIES[body], done.stderr
    assert (tmp_path / "seen").read_text() == "node1\n"
    assert done.stdout.splitlines()[0] not in ("", "nodefile.7")
    assert ("status 3" in done.stdout) == ("status" in body)
    assert not list((tmp_path / "tmp").iterdir())
