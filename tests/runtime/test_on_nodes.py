"""on_nodes.sh, stage.sh, local_caches.sh and node/on_node.sh: what a job does on each node besides the ranks."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from support.runtime_shell import RUNTIME, Done, Shell

FILES = ("on_nodes", "stage", "local_caches", "node/on_node")

BEGIN = f"""
job_node_limit=20 job_last_signal= job_signals=0 job_id=7 job_attempt=1 job_umask=077 job_hosts=(here) job_cpus_per_node=1
export JOBGEN_HERE=here JOBGEN_POLL=0.1 JOBGEN_RUN_DIR=$job_dir job_local_dir=$PWD/disk
job_save_requested() {{ return 1; }}
mkdir -p disk; : > $job_dir/env.sh
cp {RUNTIME}/node/on_node.sh $job_dir
declare -f on_each_node after_on_each_node > $job_dir/functions.sh || true
job_set_local_folder
job_begin_on_nodes
"""


def work(
    shell: Shell, code: str, more: str = "cat $JOBGEN_STAGE/* 2> /dev/null || true", status: int = 0
) -> Done:
    """Run what precedes and follows the ranks on this machine; ``more`` is run in between."""
    return shell.run("on_nodes stage local_caches", f"{code}\n{BEGIN}\n{more}\njob_end_on_nodes {status}")


NO_CACHES = "unset -f job_set_local_caches job_prepare_caches"


def test_commands_run_before_and_after_the_ranks(shell: Shell) -> None:
    done = work(
        shell,
        f"{NO_CACHES}\non_each_node() {{ echo before on $JOBGEN_HOST; }}\nafter_on_each_node() {{ echo after $JOBGEN_STATUS; }}",
        "echo rank",
        status=3,
    )
    assert (done.status, done.lines) == (0, ["rank"])
    assert (shell.logs / "on-nodes/here.log").read_text() == "before on here\nafter 3\n"
    assert (shell.logs / "on-nodes/here.state").read_text().split() == ["began", "folder", "ready", "ended"]
    assert not list((shell.folder / "disk").iterdir())


@pytest.mark.parametrize(
    ("hook", "fault"),
    [
        ("echo no disk >&2; exit 7", "here: on_each_node exited with status 7: no disk"),
        ("echo at it; sleep 60", "here: on_each_node did not end in 5 s, and was ended: at it"),
    ],
)
def test_a_command_that_fails_or_hangs_is_named_with_its_node(shell: Shell, hook: str, fault: str) -> None:
    begin = BEGIN.replace("job_node_limit=20", "job_node_limit=5")
    code = f"{NO_CACHES}\non_each_node() {{ {hook}; }}\n{begin}"
    done = shell.run("on_nodes stage local_caches", code, timeout=40)
    assert done.status == 71
    assert f"no node is ready; {fault}" in done.said


def test_nodes_that_are_not_ready_are_left_out_for_spare_ones(shell: Shell) -> None:
    code = """
job_hosts=(a b c) job_node_hosts=(a b c) job_needed_nodes=2 job_node_work=$job_logs
job_choose_hosts() { :; }
job_use_hosts() { echo "use $*"; }
echo ready > $job_logs/a.state; echo 'fault the disk is full' > $job_logs/b.state; echo ready > $job_logs/c.state
mapfile -t bad < <(job_failed_nodes)
job_leave_out_nodes "${bad[@]}"
"""
    done = shell.run("on_nodes spare_nodes", code)
    assert done.lines[-1] == "use a c"
    assert "b: the disk is full" in done.said
    assert (shell.run_dir / "bad-hosts").read_text() == "b\tthe disk is full\n"
    last = shell.run("on_nodes spare_nodes", code.replace("needed_nodes=2", "needed_nodes=3"))
    assert (last.status, "only 2 hosts are left, but 3 are needed" in last.said) == (74, True)


def test_files_are_copied_and_archives_are_unpacked(shell: Shell) -> None:
    (shell.folder / "data.bin").write_bytes(b"data\n")
    (shell.folder / "inner.txt").write_text("inner\n")
    with tarfile.open(shell.folder / "more.tar.gz", "w:gz") as archive:
        archive.add(shell.folder / "inner.txt", "inner.txt")
    more = "cat $JOBGEN_STAGE/x.bin $JOBGEN_STAGE/more/inner.txt; find $JOBGEN_STAGE -type f | wc -l"
    done = work(shell, f"{NO_CACHES}\njob_stage=(data.bin:x.bin more.tar.gz:more/)", more)
    assert (done.status, done.lines) == (0, ["data", "inner", "2"]), done.said
    assert not list((shell.folder / "disk").iterdir())


def test_a_copy_that_differs_is_refused(shell: Shell) -> None:
    (shell.folder / "data.bin").write_bytes(b"data\n")
    wrong = "sha256sum() { echo 'abc  -'; }; stat() { echo 5; }"
    done = work(shell, f"{NO_CACHES}\n{wrong}\njob_stage=(data.bin:x.bin)")
    assert done.status == 71
    assert "the copy of data.bin differs from it" in done.said


CACHES = "job_accelerator=cuda job_local_caches=(TRITON_CACHE_DIR=triton CUDA_CACHE_PATH=cuda_kernels)"


@pytest.mark.parametrize("status", [0, 1])
def test_caches_begin_with_those_of_the_user_and_are_saved_at_status_0(shell: Shell, status: int) -> None:
    old = shell.folder / ".triton/cache/old"
    old.parent.mkdir(parents=True)
    old.write_text("old\n")
    more = "cat $TRITON_CACHE_DIR/old; sleep 0.1; echo new > $TRITON_CACHE_DIR/new; ls -d $CUDA_CACHE_PATH > /dev/null"
    done = work(shell, CACHES, more, status=status)
    assert (done.status, done.lines) == (0, ["old"]), done.said
    stored = list((shell.folder / ".cache/jobgen").glob("local-caches-*-cuda.tar"))
    assert bool(stored) == (status == 0)
    if stored:
        with tarfile.open(stored[0]) as archive:
            assert {"./triton/old", "./triton/new"} <= set(archive.getnames())
        assert work(Shell(again(shell)).prepare(), CACHES, "cat $TRITON_CACHE_DIR/new").lines == ["new"]


def again(shell: Shell) -> Path:
    """Return a folder for another job of the same user."""
    folder = shell.folder / "again"
    folder.mkdir()
    (folder / ".cache").symlink_to(shell.folder / ".cache")
    return folder
