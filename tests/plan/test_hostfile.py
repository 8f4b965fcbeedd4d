"""--hostfile: static lists of hosts."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from support import jobs

PLAIN = "node1\nnode2 # the second\n\n# none\nnode3\n"


@pytest.mark.parametrize(
    ("text", "options", "listed"),
    [
        (PLAIN, "--ranks-per-node 2", "node1:2 node2:2 node3:2"),
        (PLAIN, "--gpus-per-node 4 --nodes 2", "node1:4 node2:4"),
        (PLAIN, "", "node1:1 node2:1 node3:1"),
        ("a slots=4 max_slots=8\nb slots = 4\n", "", "a:4 b:4"),
        ("a:4\nb*4\n", "--ranks-per-node 2", "a:2 b:2"),
        ("a\na\nb\nb\n", "", "a:2 b:2"),
        ("a:4\nb:4\nc:8\n", "--launcher torchrun", "a:4 b:4 c:8"),
        ("fd07:0::1 slots=2\n[fd07::2]:2\n[FD07::3]*2\n", "", "fd07::1:2 fd07::2:2 fd07::3:2"),
        ("fd07::1\n[fd07::2]\n", "--ranks-per-node 2", "fd07::1:2 fd07::2:2"),
    ],
)
def test_the_hosts_of_a_file(text: str, options: str, listed: str, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(text)
    script = jobs.render("local", "--hostfile", tmp_path / "hosts", *shlex.split(options), program=["x"])
    [words] = re.findall(r"job_host_list=\((.*?)\)", script)
    assert words == listed
    slots = [int(word.rpartition(":")[2]) for word in listed.split()]
    assert f"job_nodes={len(slots)}\n" in script
    assert f"job_world_size={sum(slots)}\n" in script


@pytest.mark.parametrize(
    ("text", "options", "fault"),
    [
        (None, "", "cannot be read: No such file or directory"),
        ("# none\n", "", "has no hosts"),
        ("a\nb c\n", "", "line 2 must be HOST, HOST slots=N, HOST:N or HOST*N, not 'b c'"),
        ("a\n$(touch canary)\n", "", "line 2 must be HOST"),
        ("a:0\n", "", "line 1 must be HOST"),
        ("fd07::1::2\n", "", "line 1 must be HOST"),
        ("fe80::1%ib0\n", "", "line 1 must be HOST"),
        ("[n1]:2\n", "", "line 1 must be HOST"),
        ("[fd07::1]:2\n", "--launcher mpirun --mpi mpich", "mpich cannot read the address fd07::1; use names of hosts"),
        ("fd07::1\n", "--launcher deepspeed --remote ssh", "pdsh cannot read the address fd07::1; use names of hosts"),
        ("a:2\nb\n", "", "line 2 has no number of slots, but line 1 has"),
        ("a\nb\n", "--nodes 3", "--nodes 3 (command line): the hostfile has only 2 hosts"),
        ("a:4\nb:2\n", "--ranks-per-node 3", "--ranks-per-node 3 (command line): b has fewer slots in the hostfile"),
        ("a:4\nb:2\n", "--nodes 1x4+1x2", "the hostfile has the slots of each host"),
        ("a:4\nb:2\n", "--launcher none", "nodes = 1x2+1x4 (--hostfile): has several ranks, and --launcher none starts one process"),
    ],
)  # fmt: skip
def test_a_fault_is_one_sentence(text: str | None, options: str, fault: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "hosts").write_text(text)
    done = jobs.jobgen("local", "--hostfile", tmp_path / "hosts", *shlex.split(options), "--", "x")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert fault in done.stderr


def test_it_runs_only_on_the_first_host(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("nosuchhost.invalid:1\nlocalhost:1\n")
    script = jobs.render(
        "local", "--hostfile", tmp_path / "hosts", "--launcher", "torchrun", program=["true"]
    )
    (tmp_path / "job.sh").write_text(script)
    done = subprocess.run(
        ["bash", "job.sh"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 70
    assert "run this script on nosuchhost.invalid, the first host of the hostfile" in done.stderr
