"""The components of a job of Slurm (hetjob): each has a request of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import jobs

from jobgen.script.script import Script

TEXT = """#!/bin/bash
#SBATCH --nodes=1 --mem=10G --time=10
#SBATCH {}
#SBATCH --nodes=2 --mem=20G
srun ./a : ./b
"""


@pytest.mark.parametrize("word", ["hetjob", "packjob"])
def test_the_directives_of_two_components_do_not_repeat_each_other(word: str, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(TEXT.format(word))
    assert "repeated-directive" not in jobs.jobgen("check", tmp_path / "job.sh").stdout


def test_a_directive_twice_in_one_component_is_reported(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(TEXT.format("hetjob").replace("--mem=20G", "--mem=20G --mem=5G"))
    assert ":4: warning: --mem has the value 20G above" in jobs.jobgen("check", tmp_path / "job.sh").stdout


def test_the_request_is_that_of_all_components() -> None:
    """Whose nodes differ in their memory; the first one runs the script."""
    script = Script(TEXT.format("hetjob").encode(), "slurm")
    assert (script.request.nodes, script.request.mem) == (3, None)
    assert script.requests[0].nodes == 1
