"""components.sh, and what node/remote.sh reads of it: the hosts of a heterogeneous job, and the component of each."""

from __future__ import annotations

import pytest
from support.runtime_shell import Shell

FILES = ("components",)

JOB = {
    "job_components": "1x1x4 2x3x6",
    "SLURM_JOB_NODELIST_HET_GROUP_0": "a",
    "SLURM_JOB_NODELIST_HET_GROUP_1": "b c",
}


def test_each_host_has_a_line_for_each_rank(shell: Shell) -> None:
    shell.commands(scontrol='printf "%s\\n" $3')
    done = shell.run("components", 'job_list_hosts; echo "$JOBGEN_COMPONENTS"', JOB)
    assert done.lines == ["a", *"bbbccc", "1x1x4 2x3x6"]


def test_a_job_that_is_none_has_no_hosts(shell: Shell) -> None:
    assert shell.run("components", "job_list_hosts", {"job_components": "1x1x4 2x3x6"}).out == ""


@pytest.mark.parametrize(
    ("host", "words"),
    [("a", "--het-group=0 4"), ("b", "--het-group=1 6"), ("c", "--het-group=1 6"), ("other", "9")],
)
def test_a_host_is_reached_in_its_component(shell: Shell, host: str, words: str) -> None:
    (shell.run_dir / "hosts").write_text("a\nb\nc\n")
    code = f'group=() cpus=9; job_find_component {host}; echo ${{group[@]+"${{group[@]}}"}} $cpus'
    env = {"JOBGEN_COMPONENTS": JOB["job_components"], "JOBGEN_RUN_DIR": str(shell.run_dir)}
    done = shell.run("node/remote", code, env)
    assert done.out == f"{words}\n", done.said
