"""verdict.sh: which rank failed first, which ones are silent, and what that means for the job and its hosts."""

from __future__ import annotations

import pytest
from support.runtime_shell import Done, Shell

FILES = ("verdict",)


def judge(shell: Shell, launcher: int, code: str = "", world: int = 3) -> Done:
    lines = f"""JOBGEN_WORLD_SIZE={world} job_launcher_name=mpirun job_status={launcher} job_save_signal=USR1 job_hosts=(a b) JOBGEN_HERE=${{HERE-a}}
    sleep() {{ command sleep 0.05; }}
    {code or ":"}
    job_judge
    echo "$job_status"
    """
    return shell.run("signals remote_start verdict", lines)


def ranks(shell: Shell, host: str, *lines: str, folder: str = "0") -> None:
    (shell.logs / "nodes" / folder).mkdir(exist_ok=True)
    (shell.logs / "nodes" / folder / f"{host}.ranks").write_text("".join(f"{line}\n" for line in lines))


def all_end(shell: Shell, *statuses: int) -> None:
    lines = [
        line
        for rank, status in enumerate(statuses)
        for line in (f"began {rank} 7 1 a", f"ended {rank} {status} {rank + 10}.5 a")
    ]
    ranks(shell, "a", *lines)


def test_all_ranks_end_well(shell: Shell) -> None:
    ranks(shell, "a", "began 0 7 1.0 a", "began 1 8 1.0 a", "ended 1 0 2.5 a", "ended 0 0 2.0 a")
    ranks(shell, "b", "began 2 7 1.0 b", "ended 2 0 3.0 b", folder="1")
    done = judge(shell, 0, "sleep() { echo slept; }")  # no rank is waited for
    assert (done.status, done.out, done.said) == (0, "0\n", "")
    assert (shell.logs / "statuses").read_text() == "0 0 2.0 a\n1 0 2.5 a\n2 0 3.0 b\n"
    assert sorted(path.name for path in shell.logs.iterdir()) == ["control", "nodes", "statuses"]


def test_a_rank_that_writes_its_last_line_late(shell: Shell) -> None:
    all_end(shell, 0, 0)
    late = f"echo 'ended 2 0 3.0 b' >> {shell.logs}/nodes/0/a.ranks"
    done = judge(shell, 0, f"sleep() {{ {late}; }}; echo 'began 2 7 1.0 b' >> {shell.logs}/nodes/0/a.ranks")
    assert (done.out, done.said) == ("0\n", "")


def test_who_failed_first_by_time_and_not_by_number(shell: Shell) -> None:
    ranks(shell, "a", "ended 0 3 9.5 a", "ended 1 0 1.0 a")
    ranks(shell, "b", "ended 2 4 10.25 b")
    (shell.logs / "nodes" / "0" / "a.log").write_text("".join(f"0: line {i}\n1: other\n" for i in range(30)))
    done = judge(shell, 1)
    assert done.out == "3\n"
    said = done.said.splitlines()
    assert said[0] == "jobgen: rank 0 on a failed first, with status 3; the end of its log:"
    assert said[1:] == [f"line {i}" for i in range(10, 30)]


def test_the_log_of_a_rank_by_itself(shell: Shell) -> None:
    all_end(shell, 0, 5, 0)
    (shell.logs / "nodes" / "0" / "rank-1.log").write_text("".join(f"line {i}\n" for i in range(30)))
    (shell.logs / "nodes" / "0" / "a.log").write_text("1: not this\n")
    assert judge(shell, 1).said.splitlines()[1:] == [f"line {i}" for i in range(10, 30)]


def test_no_log_at_all(shell: Shell) -> None:
    all_end(shell, 0, 5, 0)
    assert judge(shell, 1).out == "5\n"


def test_the_last_line_of_a_rank_counts(shell: Shell) -> None:
    ranks(shell, "a", "ended 0 9 1.0 a", "ended 0 0 2.0 a")
    assert judge(shell, 0, world=1).out == "0\n"


def test_the_launcher_failed_alone(shell: Shell) -> None:
    all_end(shell, 0, 0, 0)
    assert judge(shell, 6).out == "6\n"


@pytest.mark.parametrize(
    ("launcher", "statuses", "control", "code", "status", "said"),
    [
        (1, (75, 75, 75), "save USR1", "", 75, ""),
        (0, (0, 75, 75), "save USR1", "", 75, ""),
        (124, (0, 0, 0), "", "job_launcher_timeout=60s", 124, "stopped by timeout after 60s, the wall time"),
        (124, (75, 75, 75), "save deadline", "job_launcher_timeout=60s", 75, ""),
        (124, (0, 0, 0), "", "", 124, ""),
        (124, (143, 0, 0), "", "job_launcher_timeout=60s", 124, "stopped by timeout after 60s"),
        (1, (143, 0, 0), "save TERM", "", 143, "rank 0 on a was ended by TERM before it could save"),
        (1, (143, 0, 0), "", "", 143, "rank 0 on a failed first, with status 143"),
        (1, (5, 0, 0), "save TERM", "", 5, "rank 0 on a failed first, with status 5"),
        (143, (0, 0, 0), "stop timeout", "", 0, "mpirun was ended by a signal after every rank had ended"),
        (137, (0, 0), "", "", 137, "rank 2 recorded no status"),
        (143, (0, 75, 0), "", "", 75, ""),
        (143, (0, 0, 0), "save TERM", "", 143, ""),
    ],
)
def test_the_status(
    shell: Shell, launcher: int, statuses: tuple[int, ...], control: str, code: str, status: int, said: str
) -> None:
    all_end(shell, *statuses)
    (shell.logs / "control").write_text(f"{control}\n" if control else "")
    done = judge(shell, launcher, code)
    assert done.out == f"{status}\n"
    assert said in done.said
    assert bool(said) == bool(done.said), done.said


def test_asked_before_any_rank_began(shell: Shell) -> None:
    (shell.logs / "control").write_text("save TERM\n")
    done = judge(shell, 143)
    assert (done.out, done.said) == ("75\n", "")
    assert judge(shell, 143, ": > $job_logs/control").out == "143\n"


def test_asked_when_one_had_begun(shell: Shell) -> None:
    (shell.logs / "control").write_text("save TERM\n")
    ranks(shell, "a", "began 0 7 1 a")
    assert judge(shell, 143).out == "143\n"


def test_a_rank_may_write_its_last_line_late(shell: Shell) -> None:
    ranks(shell, "a", "began 0 7 1.0 a")
    late = '(command sleep 0.1; echo "ended 0 0 2.0 a" >> $job_logs/nodes/0/a.ranks) &'
    assert judge(shell, 0, late, world=1).out == "0\n"


# -------------------------------------------------------------------------------------- ranks without status

REACH = 'job_host_access=ssh; job_reach_host() { echo "$1" >> "$PWD/asked-$1"; [[ $1 != b ]]; }'


def test_a_launcher_that_says_nothing_failed(shell: Shell) -> None:
    ranks(shell, "a", "began 0 7 1.0 a", "ended 0 0 1.0 a")
    done = judge(shell, 0)
    assert (done.status, done.out) == (73, "")
    assert done.said.splitlines() == [
        "jobgen: rank 1 2 recorded no status: killed by the launcher, or lost with its node",
        "jobgen: mpirun ended with status 0, but rank 1 2 recorded no status",
    ]


def test_at_most_eight_silent_ranks_are_named(shell: Shell) -> None:
    ranks(shell, "a", "began 8 7 1.0 a")
    assert "rank 0 1 2 3 4 5 6 7 recorded" in judge(shell, 1, world=12).said


def test_a_launcher_that_fails_before_any_rank_begins(shell: Shell) -> None:
    sentence = "jobgen: no rank began: mpirun ended with status 213 before; its own messages are above\n"
    assert judge(shell, 213).said == sentence


@pytest.mark.parametrize(
    ("launcher", "code", "status"),
    [(0, "", 1), (3, "", 3), (3, "job_max_requeues=2", 75), (0, "job_runs_training_module=yes", 75)],
)
def test_a_host_that_does_not_answer(shell: Shell, launcher: int, code: str, status: int) -> None:
    ranks(shell, "a", "began 0 7 1.0 a", "ended 0 0 1.0 a", "began 1 7 1.0 a")
    done = judge(shell, launcher, f"{REACH}; {code}")
    assert done.out == f"{status}\n"
    assert "jobgen: b does not answer\n" in done.said
    assert (shell.run_dir / "bad-hosts").read_text() == "b\tdoes not answer\n"
    assert not (shell.folder / "asked-a").exists()  # a rank there gave its status
    assert (shell.folder / "asked-b").exists()
    assert not list(shell.logs.glob("nodes/*/*.silent"))


@pytest.mark.parametrize(
    "code",
    [
        "echo save TERM > $job_logs/control; job_host_access=ssh",
        "job_signals=1; job_host_access=ssh",
        "job_host_access=",
    ],
)
def test_who_ends_a_job_calls_no_host_bad(shell: Shell, code: str) -> None:
    ranks(shell, "a", "began 0 7 1.0 a")
    done = judge(shell, 3, f"{REACH}; {code}")
    assert done.out == "3\n"
    assert not (shell.run_dir / "bad-hosts").exists()
    assert not list(shell.folder.glob("asked-*"))


@pytest.mark.parametrize("reach", ["job_host_access=", REACH.replace("!= b", "!= c")])
def test_a_host_without_room_for_temporary_files_is_named(shell: Shell, reach: str) -> None:
    ranks(shell, "b", "began 1 7 1.0 b")
    done = judge(shell, 3, f"{reach}; JOBGEN_HERE=a; export TMPDIR=/dev/full/x")
    assert done.out == "3\n"
    assert "jobgen: cannot write temporary files on a: its /dev/full/x is full or read-only\n" in done.said
    assert not (shell.run_dir / "bad-hosts").exists()


def test_hosts_that_answer_are_not_bad(shell: Shell) -> None:
    done = judge(shell, 3, REACH.replace("!= b", "!= c"))
    assert done.out == "3\n"
    assert not (shell.run_dir / "bad-hosts").exists()
    assert "does not answer" not in done.said


def test_silent_ranks_of_a_job_that_can_go_on(shell: Shell) -> None:
    ranks(shell, "a", "began 0 7 1.0 a", "ended 0 75 1.0 a")
    done = judge(shell, 1, REACH)
    assert (done.out, done.said) == ("75\n", "")


# ---------------------------------------------------------------------------------------------- our training


@pytest.mark.parametrize(
    ("state", "status"),
    [('{"state": "finished"}', 0), ('{"state":"finished"}', 0), ('{"state": "running"}', 73), (None, 73)],
)
def test_the_training_module_says_that_it_finished(shell: Shell, state: str | None, status: int) -> None:
    all_end(shell, 0, 0, 0)
    if state:
        (shell.run_dir / "status.json").write_text(state)
    done = judge(shell, 0, "job_runs_training_module=yes")
    assert done.status == status
    if status:
        assert (
            done.said
            == f"jobgen: mpirun ended with status 0, but {shell.run_dir}/status.json does not say that the training finished\n"
        )


def test_a_training_that_failed_needs_no_such_file(shell: Shell) -> None:
    all_end(shell, 0, 4, 0)
    assert judge(shell, 1, "job_runs_training_module=yes").out == "4\n"


def test_the_host_of_the_script_is_not_asked(shell: Shell) -> None:
    ranks(shell, "a", "began 0 7 1.0 a", "ended 0 0 1.0 a")
    judge(shell, 3, f"{REACH}; JOBGEN_HERE=b")
    assert not list(shell.folder.glob("asked-*"))
    assert not (shell.run_dir / "bad-hosts").exists()


@pytest.mark.parametrize(
    ("control", "last", "status", "result"),
    [
        ("save INT", "INT", 138, 130),
        ("save INT", "INT", 143, 130),
        ("save INT", "INT", 3, 3),
        ("save deadline", "", 138, 138),
        ("save TERM", "TERM", 138, 138),
        ("", "", 138, 138),
    ],
)
def test_a_program_without_a_handler(shell: Shell, control: str, last: str, status: int, result: int) -> None:
    """It did not fail, it was asked to leave; Ctrl-C is an interruption."""
    all_end(shell, 0, status, 0)
    (shell.logs / "control").write_text(f"{control}\n" if control else "")
    done = judge(shell, 1, f"job_last_signal={last}")
    assert done.out == f"{result}\n"
    sentence = "rank 1 on a was ended by USR1, the request to save, which its program does not handle"
    assert (sentence in done.said) == bool(control and status == 138)
