"""restart.sh, hang.sh: whether a job starts again in its allocation, with which hosts, and what is ended before."""

from __future__ import annotations

import os
import subprocess
import time

import pytest
from support.runtime_shell import RUNTIME, Shell

FILES = ("restart", "hang")

STUBS = """
job_max_restarts=2 job_attempt=1 job_number=10 job_id=12 job_status=137 job_saved_before= job_signals=0
job_hosts=(a b) job_spare_hosts=(c) job_silent_hosts=() job_ranks_per_node=1 JOBGEN_HERE=a job_host_access=ssh
job_save_requested() { [[ -e save ]]; }
job_control() { echo "control $*"; }
job_note() { echo "note $(basename "$job_logs") $*"; }
job_export() { :; }
job_handover() { :; }
job_starts_itself() { false; }
job_rendezvous() { MASTER_PORT=$((20000 + job_number)); }
job_endpoint() { echo "here:$MASTER_PORT"; }
job_on_hosts() { local host; for host in "${job_hosts[@]}"; do "$2" "$host"; done; }
job_ask_host() { [[ $1 != dead* && $2 != *$'\n'* ]] && bash -c "$2"; }  # by ssh, whose login shell may be csh
job_begin_attempt() { job_attempt=$((job_attempt + 1)); job_logs=${job_logs%-*}-$job_attempt; mkdir "$job_logs"; }
job_run_unless_ending() { echo "run ${job_hosts[*]}"; job_status=0; }
"""


def restarted(shell: Shell, before: str = "", files: str = "restart") -> tuple[list[str], list[str]]:
    """Return what is done, and the messages, of a job that has failed."""
    code = f'{STUBS}{before} job_restart_in_place; echo "status $job_status"'
    done = shell.run(f"signals {files}", code)
    assert done.status == 0, done.said
    return done.lines, done.said.splitlines()


def test_the_next_attempt(shell: Shell) -> None:
    """It begins before the one before it ends, and has a port of its own."""
    did, said = restarted(shell)
    assert did == [
        "note attempt-2 restart 1",
        "note attempt-1 ended 137",
        "run a b c",
        "status 0",
    ]
    assert said == [
        "jobgen: restart 1 of 2: ending what is left on a b",
        "jobgen: restart 1 of 2, attempt 2: a b c; rendezvous at here:23011",
    ]
    assert not (shell.run_dir / "bad-hosts").exists()
    assert not (shell.logs / "restart").exists()


def test_a_spare_node_takes_the_place_of_a_lost_one(shell: Shell) -> None:
    choose = "job_needed_nodes=2; job_save_environment() { :; }; job_spare_hosts=(c);"
    did, said = restarted(shell, f"{choose} job_hosts=(a dead);", "spare_nodes restart")
    assert did[-2:] == ["run a c", "status 0"]
    assert "jobgen: excluding dead: lost, or not usable any more" in said
    assert (shell.run_dir / "bad-hosts").read_text() == "dead\tdoes not answer\n"
    assert (shell.run_dir / "hosts").read_text() == "a\nc\n"


@pytest.mark.parametrize(
    ("before", "status", "why"),
    [
        ("job_hosts=(a dead)", 137, "dead is lost, and the job has no other nodes"),
        ("job_hosts=(a dead); job_max_requeues=1", 75, "dead is lost, and the job has no other nodes"),
        ("job_restart_count=2; job_saved_before=no", 137, "none of 2 restarts is left"),
        ("job_restart_count=2; job_saved_before=no job_max_requeues=1", 75, "none of 2 restarts is left"),
        ("JOBGEN_DEADLINE=$(($(date +%s) + 50))", 137, "the wall time is nearly over"),
        ("JOBGEN_DEADLINE=$(($(date +%s) + 90)) job_grace_seconds=99", 137, "the wall time is nearly over"),
        (
            "job_restart_count=1 job_runs_training_module=yes",
            137,
            "this attempt saved no step beyond the first",
        ),
        ("job_restart_count=1 job_saved_before=7; echo 7 > $job_dir/saved-step", 137, "no step beyond 7"),
        ("job_status=7 job_failure_before=7", 7, "the program failed with status 7 again"),
    ],
)
def test_a_job_that_is_not_restarted(shell: Shell, before: str, status: int, why: str) -> None:
    did, said = restarted(shell, f"job_spare_hosts=(); {before};")
    assert did[-1] == f"status {status}"
    assert "run" not in "".join(did)
    assert why in said[-1]
    assert said[-1].startswith("jobgen: not restarted in place: ")


@pytest.mark.parametrize(
    "ending",
    [
        "job_signals=1",
        "touch save",
        "touch $job_dir/cancelled",
        "job_status=124 job_launcher_timeout=1:00:00",
        "job_status=0",
    ],
)
def test_a_job_that_is_ending(shell: Shell, ending: str) -> None:
    did, said = restarted(shell, f"{ending};")
    assert did[0].startswith("status ")
    assert said == []


def test_a_second_death_after_a_saved_step(shell: Shell) -> None:
    again = "job_run_unless_ending() { job_status=137; echo run; echo $job_attempt > $job_dir/saved-step; };"
    did, said = restarted(shell, again)
    assert did.count("run") == 2
    assert said[-1] == "jobgen: not restarted in place: none of 2 restarts is left"


def test_the_preflight_again(shell: Shell) -> None:
    code = "job_preflight_mode=always; job_preflight() { job_bad_hosts=(b); job_status=9; return 1; };"
    did, said = restarted(shell, code)
    assert did[-1] == "status 74"
    assert said[-1] == "jobgen: not restarted in place: the preflight failed with status 9; bad hosts: b"
    did, _ = restarted(shell, f"rm -r {shell.run_dir}/attempt-2; {code} job_max_requeues=1;")
    assert did[-1] == "status 75"


def test_what_is_ended_on_a_host(shell: Shell) -> None:
    """The processes of the ranks, which may ignore TERM; not those that the user's own code has started."""
    logs = shell.logs
    env = {**os.environ, "JOBGEN_LOGS": str(logs)}
    deaf = ["bash", "-c", "trap '' TERM; while :; do sleep 0.2; done"]
    rank = subprocess.Popen(deaf, env={**env, "JOBGEN_NODE": f"{logs}/nodes/0/a"})
    own = subprocess.Popen(["sleep", "60"], env=env)
    other = subprocess.Popen(["sleep", "60"], env={**env, "JOBGEN_LOGS": "/other", "JOBGEN_NODE": "x"})
    try:
        time.sleep(0.3)
        script = f"set -e; logs={logs}; . {RUNTIME}/restart.sh; job_end_processes"
        subprocess.run(["bash", "-c", script], check=True, timeout=30)
        assert rank.wait(1) == -9
        assert own.poll() is None
        assert other.poll() is None
    finally:
        for process in (rank, own, other):
            process.kill()
            process.wait()


HANG = """job_hang_timeout=3s; job_stop() { echo stopped; }; job_note() { :; }; job_control() { echo "control $*"; }
touched() { for _ in {1..16}; do touch "$job_logs/progress"; sleep 0.25; done; }
"""


def test_a_program_that_hangs(shell: Shell) -> None:
    """Not as long as it touches the file, and its exit status is that of a job that can go on."""
    begun = time.monotonic()
    code = f"{HANG} touched & job_watch_progress; job_status=9; job_judge_hang; echo $job_status"
    done = shell.run("hang", code)
    assert time.monotonic() - begun > 6
    assert done.lines == ["control stop hang", "stopped", "75"]
    assert done.said.startswith("jobgen: the program hangs: no rank has touched ")


def test_a_program_that_never_touches_the_file(shell: Shell) -> None:
    code = f"{HANG} job_watch_progress & sleep 5; kill $!; job_status=9; job_judge_hang; echo $job_status"
    assert shell.run("hang", code).lines == ["9"]
