"""signals.sh and deadline.sh: who asks the ranks to save and exit, and when."""

from __future__ import annotations

import time

import pytest
from support.runtime_shell import Shell

FILES = ("signals", "deadline", "requeue_at_limit")

LAUNCHED = "job_launcher=1; job_stop() { echo stopped > stopped; }; job_listen"


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "USR1", "USR2", "URG"])
def test_the_first_signal_asks_to_save(shell: Shell, name: str) -> None:
    done = shell.run("signals", f"{LAUNCHED}; kill -{name} $$; echo $job_signals $job_last_signal $job_traps")
    assert (done.status, done.lines) == (0, [f"1 {name} 1"])
    assert shell.control == f"save {name}\n"
    assert (
        done.said
        == f"jobgen: got {name}: asking every rank to save and exit; a second signal stops at once\n"
    )
    assert (shell.logs / "events").read_text().endswith(f" signal {name}\n")


def test_before_the_launch_nothing_is_said(shell: Shell) -> None:
    done = shell.run("signals", "job_listen; kill -TERM $$; echo $job_signals")
    assert (done.status, done.out, done.said) == (0, "1\n", "")
    assert shell.control == "save TERM\n"


def test_a_pipe_that_nobody_reads_ends_nothing(shell: Shell) -> None:
    done = shell.run("signals", "job_listen; kill -PIPE $$; echo on $job_signals")
    assert (done.status, done.out) == (0, "on 0\n")


@pytest.mark.parametrize(("name", "pause"), [("TERM", 2), ("HUP", 5)])
def test_one_qsig_is_several_signals(shell: Shell, name: str, pause: int) -> None:
    """They are one request; what comes after the pause is the next."""
    code = f"{LAUNCHED}; SECONDS=0; for i in 1 2 3; do kill -{name} $$; done; SECONDS={pause - 1}; kill -{name} $$; echo $job_signals $job_traps"
    assert shell.run("signals", code).out == "1 4\n"
    assert shell.control == f"save {name}\n"


def test_the_first_second_of_the_script_counts(shell: Shell) -> None:
    assert shell.run("signals", f"{LAUNCHED}; SECONDS=0; kill -HUP $$; echo $job_signals").out == "1\n"


@pytest.mark.parametrize(("name", "pause"), [("TERM", 2), ("HUP", 5)])
def test_the_second_signal_stops_at_once(shell: Shell, name: str, pause: int) -> None:
    code = (
        f"{LAUNCHED}; SECONDS=0; kill -{name} $$; SECONDS={pause}; kill -{name} $$; echo $job_signals; wait"
    )
    done = shell.run("signals", code)
    assert done.out == "2\n"
    assert done.said.endswith(f"jobgen: got {name} again: stopping at once\n")
    assert shell.control == f"save {name}\nstop {name}\n"
    assert (shell.folder / "stopped").exists()


def test_a_pause_begins_anew_with_each_signal_that_counts(shell: Shell) -> None:
    code = f"{LAUNCHED}; for at in 0 2 3; do SECONDS=$at; kill -TERM $$; done; echo $job_signals; wait"
    assert shell.run("signals", code).out == "2\n"


def test_the_second_signal_before_the_launch_ends_the_script(shell: Shell) -> None:
    done = shell.run("signals", "job_listen; SECONDS=0; kill -TERM $$; SECONDS=3; kill -TERM $$; echo never")
    assert (done.status, done.out) == (75, "")
    assert shell.control == "save TERM\n"


def test_a_second_signal_is_no_exit_of_a_sourced_script(shell: Shell) -> None:
    code = (
        "trap job_end EXIT; job_listen; job_sourcing=my.sh SECONDS=0; kill -TERM $$; SECONDS=3; kill -TERM $$"
    )
    done = shell.run("signals finish", code)
    assert done.status == 75
    assert "has called exit" not in done.said


@pytest.mark.parametrize("gone", ["job_logs=", "rm -r run"])
def test_without_a_directory_nothing_is_asked(shell: Shell, gone: str) -> None:
    done = shell.run("signals", f"{gone}; job_control save X; echo $?")
    assert (done.out, done.said) == ("0\n", "")
    assert not (shell.logs / "control").exists() or not shell.control


@pytest.mark.parametrize(
    ("control", "asked", "why"),
    [
        ("", "no", ""),
        ("save USR1\nstop TERM\n", "yes", "USR1"),
        ("save\n", "yes", "save"),
        ("stop x\n", "no", "x"),
    ],
)
def test_who_asked(shell: Shell, control: str, asked: str, why: str) -> None:
    (shell.logs / "control").write_text(control)
    done = shell.run("signals", 'job_save_requested && echo yes || echo no; echo "[$(job_save_reason)]"')
    assert (done.lines, done.said) == ([asked, f"[{why}]"], "")


def test_later_and_not_when_it_was_ended(shell: Shell) -> None:
    code = """job_later 0.3 touch first; job_later 30 touch second; sleep 1; jobs -pr | wc -l
    kill $(jobs -pr); wait; pgrep -P $$ -x sleep || echo none"""
    done = shell.run("signals", code)
    assert done.lines == ["1", "none"]
    assert (shell.folder / "first").exists()
    assert not (shell.folder / "second").exists()


# ------------------------------------------------------------------------------------------- the deadline


def test_a_command_that_is_ended_after_its_pause_says_nothing(shell: Shell) -> None:
    code = "job_later 0 command sleep 1; sleep 0.3; kill $(jobs -pr); wait || true"
    assert shell.run("signals", code).said == ""


def test_the_deadline_is_the_grace_before_the_end(shell: Shell) -> None:
    code = "job_find_end() { job_ends=1000; }; job_grace_seconds=120; job_set_deadline; env | grep DEADLINE"
    assert shell.run("signals deadline", code).out == "JOBGEN_DEADLINE=880\n"
    short = f"JOBGEN_START_TIME=400 job_grace_at_most_a_tenth=yes; {code}"
    assert shell.run("signals deadline", short).out == "JOBGEN_DEADLINE=940\n"
    none = code.replace("job_ends=1000", ":")
    assert shell.run("signals deadline", f"{none} || true").out == ""
    assert (shell.logs / "events").read_text().count(" deadline 880\n") == 1


def test_without_an_end_there_is_no_deadline(shell: Shell) -> None:
    code = "job_ends=5; job_find_end() { :; }; job_grace_seconds=1 job_sends_signal_itself=yes; job_set_deadline; job_arm_deadline; echo ${JOBGEN_DEADLINE-none} $(jobs -pr | wc -l)"
    assert shell.run("signals deadline", code).out == "none 0\n"


@pytest.mark.parametrize("left", [-5, 1])
def test_at_the_deadline_the_ranks_are_asked(shell: Shell, left: int) -> None:
    started = time.monotonic()
    done = shell.run(
        "signals deadline",
        f"job_sends_signal_itself=yes JOBGEN_DEADLINE=$(($(date +%s) + {left})); job_arm_deadline; wait",
    )
    assert time.monotonic() - started >= left - 1
    assert shell.control == "save deadline\n"
    assert done.said == "jobgen: the wall time is nearly over: asking every rank to save and exit\n"


def test_a_deadline_to_come_asks_nobody(shell: Shell) -> None:
    code = "job_sends_signal_itself=yes JOBGEN_DEADLINE=$(($(date +%s) + 100)); job_arm_deadline; sleep 0.5; kill $(jobs -pr); wait"
    shell.run("signals deadline", code)
    assert shell.control == ""


def test_who_was_asked_is_not_asked_again(shell: Shell) -> None:
    (shell.logs / "control").write_text("save USR1\n")
    assert shell.run("signals deadline", "job_deadline; echo on").said == ""
    assert shell.control == "save USR1\n"


# ------------------------------------------------------------------------------------ requeue at the time limit


def test_a_program_that_does_not_end_is_stopped(shell: Shell) -> None:
    pause = "sleep() { echo $1 >> pauses; command sleep 0.2; ! grep -q stop run/attempt-1/control && echo waited; }"
    code = f"{LAUNCHED}; {pause}; job_grace_seconds=120; job_deadline"
    done = shell.run("signals deadline requeue_at_limit", code)
    assert "the wall time is nearly over, and the program has not ended: stopping it" in done.said
    assert done.lines == ["waited"]
    assert done.status == 0, done.said
    assert shell.control == "save deadline\nstop limit\n"
    assert (shell.folder / "pauses").read_text().split() == ["60"]


@pytest.mark.parametrize(
    ("status", "why", "ends"),
    [(138, "deadline", 75), (138, "USR1", 75), (0, "deadline", 0), (3, "TERM", 3), (3, "", 3)],
)
def test_the_status_at_the_limit_is_no_failure(shell: Shell, status: int, why: str, ends: int) -> None:
    asked = f"job_control save {why}; " if why else ""
    code = f"job_save_signal=USR1 job_status={status}; {asked}job_judge_at_limit; echo $job_status"
    assert shell.run("signals deadline requeue_at_limit", code).lines == [str(ends)]
