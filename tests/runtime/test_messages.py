"""messages.sh and finish.sh: what the job says, and with which status it ends."""

from __future__ import annotations

import re

import pytest
from support.runtime_shell import RUNTIME, Shell

FILES = ("messages", "finish")


def test_what_is_said_and_noted(shell: Shell) -> None:
    done = shell.run("", "job_say a b; job_note signal TERM; job_die 72 'no way'; echo never")
    assert (done.status, done.out, done.said) == (72, "", "jobgen: a b\njobgen: no way\n")
    events = (shell.logs / "events").read_text()
    assert re.fullmatch(r"\d{10} signal TERM\n\d{10} fault no way\n", events)


@pytest.mark.parametrize("gone", ["job_logs=", "rm -r run"])
def test_a_note_without_a_directory_is_left_out(shell: Shell, gone: str) -> None:
    done = shell.run("", f"{gone}; job_note signal TERM; echo on")
    assert (done.status, done.out, done.said) == (0, "on\n", "")


def test_nobody_reads_the_output_any_more(shell: Shell) -> None:
    assert shell.run("", "exec 2>&-; job_say hello; echo on").out == "on\n"


def test_a_function_that_this_job_may_not_have(shell: Shell) -> None:
    code = "there() { echo there $1; return 3; }; job_optional absent a; echo on; job_optional there a; echo never"
    done = shell.run("", code)
    assert (done.status, done.lines) == (3, ["on", "there a"])
    assert (
        "echo there" in shell.run("", f"{code.split(';  ')[0].split(' job_optional')[0]} job_body there").out
    )
    assert "there ()" not in shell.run("", "there() { echo a; }; job_body there").out


NO_CLOCK = "unset SECONDS; SECONDS=0"  # a plain variable from here on


@pytest.mark.parametrize(
    ("settings", "status", "said"),
    [
        ("job_over=yes", 0, "job 7 finished after 0 s"),
        ("job_over=yes", 3, "job 7 failed with status 3 after 0 s"),
        (
            "job_over=yes",
            75,
            "job 7 is not finished, but can go on: it ended with status 75 after 0 s; what to do: jobgen help 75",
        ),
        (
            "job_over=yes job_opened=yes job_dir=run",
            71,
            "failed with status 71 after 0 s; files in run; what to do: jobgen help 71",
        ),
        ("", 0, "job 7 was ended by a signal after 0 s"),
        ("job_over=yes job_output=/o", 0, "job 7 finished after 0 s; output in /o"),
        ("job_over=yes job_opened=yes job_dir=run", 0, "job 7 finished after 0 s; files in run"),
        ("job_sourcing=my.sh", 71, "my.sh has called exit: nothing was launched"),
    ],
)
def test_the_last_message(shell: Shell, settings: str, status: int, said: str) -> None:
    exits = 0 if "sourcing" in settings else status
    code = f"job_run_after() {{ echo after $1; }}; {NO_CLOCK} job_id=7 {settings}; trap job_end EXIT; exit {exits}"
    done = shell.run("finish", code)
    assert (done.status, done.out) == (status, f"after {status}\n")
    assert f"{said}\n" in done.said
    assert (shell.logs / "events").read_text().split()[-2:] == ["ended", str(status)]


def test_finish_with_is_no_signal(shell: Shell) -> None:
    done = shell.run("finish", f"{NO_CLOCK}; trap job_end EXIT; job_finish_with 0")
    assert done.said == "jobgen: job ? finished after 0 s\n"


@pytest.mark.parametrize(("main", "end"), [("main", ["end"]), ("doctor", [])])
def test_the_start(shell: Shell, main: str, end: list[str]) -> None:
    line = (RUNTIME / f"{main}.sh").read_text().splitlines()[-1]
    functions = 'job_main() { echo main; (IFS=,; echo "${job_arguments[*]}"); }; job_end() { echo end; }'
    done = shell.run("", f"{functions}; set -- a 'b c'\n{line}")
    assert done.lines == ["main", "a,b c", *end]


@pytest.mark.parametrize(
    ("status", "signals", "kept"), [(0, 0, False), (71, 0, False), (75, 0, True), (143, 1, True)]
)
def test_the_environment_goes_with_the_job(shell: Shell, status: int, signals: int, kept: bool) -> None:
    """Unless another attempt may follow: after status 75, or after a signal, by which a scheduler preempts."""
    (shell.run_dir / "step-2").mkdir()
    files = [
        shell.run_dir / name for name in ("env.sh", "environment", "step-2/env.sh", "step-2/environment")
    ]
    for path in files:
        path.touch()
    code = f"{NO_CLOCK}; job_signals={signals}; job_opened=yes; trap job_end EXIT; job_finish_with {status}"
    assert shell.run("finish", code).status == status
    assert [path.exists() for path in files] == [kept] * 4
