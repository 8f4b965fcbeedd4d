"""run.sh, run_directory.sh, handover.sh, main.sh, doctor.sh, sweep.sh: the job from its directory to its end."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from support.runtime_shell import Done, Shell, alive, ends_within, listed, sources

FILES = ("run", "lost_nodes", "run_directory", "handover", "main", "doctor", "sweep")

RUN = "job_hosts=(a) JOBGEN_HERE=a; export JOBGEN_LOGS=$job_logs;"


def test_a_launcher_that_has_ended_already_has_its_status(shell: Shell) -> None:
    code = (
        "(exit 3) & p=$!; while kill -0 $p 2> /dev/null; do sleep 0.02; done; job_wait $p; echo $job_status"
    )
    assert shell.run("signals run", code).lines == ["3"]


def test_steps_side_by_side_heed_the_control(shell: Shell) -> None:
    code = "job_later() { echo $*; }; launch() { :; }; job_run; job_heed_control() { :; }; job_run"
    assert shell.run("signals run", f"{RUN} {code}").lines == ["0 job_heed_control"]


@pytest.mark.parametrize("status", [0, 3, 124])
def test_the_status_of_the_launcher(shell: Shell, status: int) -> None:
    code = f'launch() {{ cat; echo "launched $*"; [[ $- == *e*u* ]]; exit {status}; }}; job_run word; echo "$job_status [$job_launcher]"'
    done = shell.run("signals run", f"{RUN} {code}")
    assert done.lines == ["launched word", f"{status} []"], done.said


def test_errors_end_the_launcher(shell: Shell) -> None:
    done = shell.run("signals run", f"{RUN} launch() {{ false; echo never; }}; job_run; echo $job_status")
    assert done.out == "1\n"


def test_the_launcher_has_a_session_of_its_own_and_leaves_nothing(shell: Shell) -> None:
    code = "pkill() { return 127; }; launch() { echo $$ $(ps -o sid= $$); sleep 100 > /dev/null 2>&1 & echo $!; }; job_run; mkdir $job_logs/answers; job_run; ls run/attempt-1"
    done = shell.run("signals run", f"{RUN} {code}")
    pid, session = done.lines[0].split()
    assert pid == session != str(os.getsid(0))
    ends_within(int(done.lines[1]), 10)
    assert "answers" not in done.lines


@pytest.mark.parametrize("name", ["TERM", "USR1", "HUP"])
def test_a_signal_does_not_end_the_wait(shell: Shell, name: str) -> None:
    code = f"launch() {{ sleep 1; kill -{name} {{0}}; sleep 1; exit 7; }}".replace("{0}", '"$PPID"')
    done = shell.run("signals run", f"{RUN} {code}; job_listen; job_run; echo $job_status $job_signals")
    assert done.out == "7 1\n", done.said
    assert shell.control == f"save {name}\n"


def test_the_preflight_has_its_own_limit(shell: Shell) -> None:
    started = time.monotonic()
    code = "launch() { exec sleep 100; }; job_preflight_seconds=1; job_run preflight; echo $job_status"
    assert shell.run("signals run", f"{RUN} {code}").out == "143\n"
    assert time.monotonic() - started < 8


def test_who_ignores_term_is_killed(shell: Shell) -> None:
    code = "launch() { trap '' TERM; while :; do sleep 1; done; }; job_preflight_seconds=1; job_run preflight; echo $job_status"
    assert shell.run("signals run", f"{RUN} {code}").out == "137\n"
    assert shell.control == "stop timeout\n"


def test_the_limit_is_over_with_the_launcher(shell: Shell) -> None:
    code = "launch() { :; }; job_preflight_seconds=1; job_run preflight; job_run; sleep 2; echo $(jobs -pr | wc -l)"
    assert shell.run("signals run", f"{RUN} {code}").out == "0\n"
    assert shell.control == ""


# Shorter pauses, each noted when it is over.
PAUSES = (
    """sleep() { case $1 in 30) command sleep 1 ;; *) command sleep 0.2 ;; esac; echo "$1" >> pauses; };"""
)


@pytest.mark.parametrize(("hosts", "stopped"), [("a b", True), ("a", False)])
def test_stragglers_are_ended_when_a_rank_has_failed(shell: Shell, hosts: str, stopped: bool) -> None:
    (shell.logs / "failed").write_text("0 3 a\n")
    launch = 'trap "echo ended >> pauses; exit 143" TERM; command -p sleep 4 & wait'
    code = f"{PAUSES} launch() {{ {launch}; }}; job_hosts=({hosts}); job_run; echo $job_status"
    done = shell.run("signals run", f"{RUN} {code}")
    assert done.out == ("143\n" if stopped else "0\n"), done.said
    if stopped:
        assert (shell.folder / "pauses").read_text().split()[:3] == ["0", "30", "ended"]


def test_a_launcher_that_does_not_end_after_its_last_rank(shell: Shell) -> None:
    (shell.logs / "nodes" / "0" / "a.ranks").write_text("ended 0 0 1.5 a\n")
    launch = "sleep 2; echo ended 1 0 3.5 b > $JOBGEN_LOGS/nodes/0/b.ranks; exec sleep 60"
    code = f"""{PAUSES} launch() {{ {launch}; }}; job_hosts=(a b) JOBGEN_WORLD_SIZE=2 job_launcher_name=mpirun
    job_run; echo $job_status; job_save_requested() {{ false; }}; job_judge; echo $job_status"""
    done = shell.run("signals run verdict", f"{RUN} {code}")
    assert done.lines == ["143", "0"], done.said
    pauses = (shell.folder / "pauses").read_text().split()
    assert pauses[:3] == ["0", "5", "5"]  # rank 1 is waited for
    assert "30" in pauses


@pytest.mark.parametrize("last", ["", "ended 1 75 1.5 a\\n"])
def test_nobody_is_a_straggler_before_a_failure(shell: Shell, last: str) -> None:
    ended = f"printf 'ended 0 0 1.5 a\\n{last}' > $JOBGEN_LOGS/nodes/0/a.ranks"
    launch = f"{ended}; sleep 3"
    code = (
        f"{PAUSES} launch() {{ {launch}; }}; job_hosts=(a b) JOBGEN_WORLD_SIZE=2; job_run; echo $job_status"
    )
    assert shell.run("signals run verdict", f"{RUN} {code}").out == "0\n"
    pauses = (shell.folder / "pauses").read_text().split()
    assert 1 < len(pauses) <= 20
    assert set(pauses) == {"0", "5"}


def test_a_launcher_that_is_stopped_has_time_to_end(shell: Shell) -> None:
    code = """launch() { trap "sleep 1; exit 5" TERM; while :; do sleep 0.1; done; }
    job_preflight_seconds=1; job_run preflight; echo $job_status"""
    assert shell.run("signals run", f"{RUN} {code}").out == "5\n"


def test_commands_on_their_way_to_other_hosts_are_ended(shell: Shell) -> None:
    """Also those with a session of their own."""
    code = """launch() { JOBGEN_SENT_BY=$job_logs setsid sleep 100 > /dev/null 2>&1 & echo $!; }; export job_logs"""
    done = shell.run("signals run", f"{RUN} {code}; job_run; job_run; echo $job_status")
    first, second, status = done.lines
    assert status == "0"
    ends_within(int(first), 10)
    ends_within(int(second), 10)


def killed(shell: Shell, launch: str) -> tuple[subprocess.Popen[str], int]:
    """A script that runs a launcher, and is KILLed; and the process id of the launcher."""
    files = "\n".join(sources("messages signals run"))
    code = f"set -eu\njob_dir=$PWD/run job_logs=$PWD/run/attempt-1\n{files}\n{RUN}\nlaunch() {{ {launch}; }}\njob_run\n"
    process = shell.popen(["bash", "-c", code], {})
    pid = shell.folder / "pid"
    while not pid.exists() or not pid.read_text():
        time.sleep(0.1)
    time.sleep(1.5)  # the guard is there
    number = int(pid.read_text())
    assert alive(number)
    process.kill()
    process.wait()
    return process, number


def test_the_launcher_ends_with_the_script(shell: Shell) -> None:
    _, pid = killed(shell, "echo $$ > pid; exec sleep 100")
    ends_within(pid, 10)


def test_a_launcher_that_ignores_term_ends_with_the_script(shell: Shell) -> None:
    _, pid = killed(shell, "trap '' TERM; echo $$ > pid; while :; do sleep 1; done")
    assert ends_within(pid, 15) > 2


def test_the_guard_goes_with_the_launcher(shell: Shell) -> None:
    code = f'{RUN} launch() {{ :; }}; job_run; sleep 3; pgrep -f "guard $$ " || echo gone'
    assert shell.run("signals run", code).out == "gone\n"


def test_ranks_that_save_outlive_the_script_for_a_while(shell: Shell) -> None:
    (shell.logs / "control").write_text("save TERM\n")
    _, pid = killed(shell, "echo $$ > pid; exec sleep 100")
    assert ends_within(pid, 25) > 5


# ------------------------------------------------------------------------------------- the run directory

OPEN = 'job_open; echo "$PWD|$job_dir|$job_parent|$job_attempt|$job_logs|$job_submit_dir|$job_saved_before"'


def open_run(shell: Shell, settings: str, code: str = OPEN) -> Done:
    base = f"unset job_dir job_logs; job_runs_dir=runs job_name=my job_id=12.head job_submit_dir=$PWD; {settings}"
    script = (
        "set -euo pipefail\n" + "\n".join(sources("messages signals run_directory")) + f"\n{base}\n{code}\n"
    )
    (shell.folder / "script.sh").write_text(script)
    return shell.start(["bash", str(shell.folder / "script.sh")], {}, 60)


@pytest.mark.parametrize(("mask", "mode"), [("", 0o700), ("job_run_dir_umask=027", 0o750)])
def test_the_modes_of_a_run_directory(shell: Shell, mask: str, mode: int) -> None:
    done = open_run(shell, f"job_runs_dir=new/runs; umask 022; {mask}", "job_open; echo $job_umask")
    assert done.lines == ["0022"], done.said
    run = shell.folder / "new/runs/my-12.head"
    found = [path.stat().st_mode & 0o777 for path in (run.parent, run, run / "attempt-1")]
    assert found == [0o755, mode, mode]


def test_a_new_run_directory(shell: Shell) -> None:
    done = open_run(shell, "job_output=/out.log")
    run = shell.folder / "runs" / "my-12.head"
    assert done.lines == [f"{shell.folder}|{run}|{run}|1|{run}/attempt-1|{shell.folder}|"], done.said
    assert listed(run) == ["attempt-1", "job-id", "job.sh", "submitted-from"]
    assert listed(run / "attempt-1") == ["control", "events"]
    assert (run / "attempt-1" / "control").read_text() == ""
    assert [line.split()[1:] for line in (run / "attempt-1" / "events").read_text().splitlines()] == [
        ["began", "12.head"],
        ["output", "/out.log"],
    ]
    assert (run / "job.sh").read_text() == (shell.folder / "script.sh").read_text()
    assert (run / "submitted-from").read_text() == f"{shell.folder}\n"
    assert (run / "job-id").read_text() == "12.head\n"


def test_the_next_attempt(shell: Shell) -> None:
    open_run(shell, "")
    run = shell.folder / "runs" / "my-12.head"
    (run / "saved-step").write_text("7\n")
    for name in ("status.json", "cancelled"):
        (run / name).touch()
    done = open_run(shell, f"job_id=13.head job_submit_dir={run}")
    assert done.lines == [f"{shell.folder}|{run}|{run}|2|{run}/attempt-2|{shell.folder}|7"], done.said
    assert listed(run) == ["attempt-1", "attempt-2", "job-id", "job.sh", "saved-step", "submitted-from"]
    assert (run / "job-id").read_text() == "13.head\n"
    assert "output" not in (run / "attempt-2" / "events").read_text()


@pytest.mark.parametrize(
    ("known", "expected"), [("12;c2", "12;c2"), ("12", "12"), ("123;c2", "12"), ("9;c2", "12")]
)
def test_the_cluster_in_the_id_stays(known: str, expected: str, shell: Shell) -> None:
    run = shell.folder / "runs" / "my-12"
    run.mkdir(parents=True)
    (run / "job-id").write_text(f"{known}\n")
    open_run(shell, "job_id=12")
    assert (run / "job-id").read_text() == f"{expected}\n"


def test_a_folder_that_only_looks_like_a_run(shell: Shell) -> None:
    (shell.folder / "job.sh").touch()
    assert "/runs/my-12.head|" in open_run(shell, "").out


@pytest.mark.parametrize(
    ("settings", "where", "run"),
    [
        ("job_workdir=work", "work", "work/runs/my-12.head"),
        ("job_workdir=$PWD/work", "work", "work/runs/my-12.head"),
        ("mkdir -- -; job_workdir=-", "-", "-/runs/my-12.head"),
        ("job_runs_dir=$PWD/there", "", "there/my-12.head"),
        ("job_id='1[2].x y'", "", "runs/my-1_2_.x_y"),
        ("job_array_id=1 job_index=3 job_id='1[3]'", "", "runs/my-1/task-3"),
    ],
)
def test_where_it_is(shell: Shell, settings: str, where: str, run: str) -> None:
    (shell.folder / "work").mkdir()
    done = open_run(shell, settings)
    folder, directory, parent, *_ = done.out.split("|")
    assert (
        (folder, directory) == (str(shell.folder / where), str(shell.folder / run))
        if where
        else (str(shell.folder), str(shell.folder / run))
    )
    assert parent == (directory if "task" not in run else directory.rsplit("/", 1)[0])
    assert (Path(parent) / "job.sh").exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("job_submit_dir=/none", "cannot enter /none"),
        ("job_workdir=/none", "cannot enter /none"),
        ("job_runs_dir=/dev/null", "cannot make the run directory /dev/null/my-12.head"),
        ("job_runs_dir=/proc", "cannot make the run directory /proc/my-12.head"),
        ("job_runs_dir=$'a\\nb'", "the name of a run directory must not contain a line break: $'"),
        ("mkdir() { :; }", "cannot write into the run directory"),
        ("mkdir() { [[ $1 == -p ]] && command mkdir $*; }", "cannot make the directory"),
    ],
)
def test_a_directory_that_cannot_be_used(shell: Shell, settings: str, said: str) -> None:
    done = open_run(shell, settings, "job_open; echo never")
    assert (done.status, done.out) == (72, "")
    assert f"jobgen: {said}" in done.said


def test_a_signal_before_there_was_a_directory(shell: Shell) -> None:
    open_run(shell, "job_signals=1 job_last_signal=TERM")
    assert (shell.folder / "runs/my-12.head/attempt-1/control").read_text() == "save TERM\n"


def test_the_tasks_of_an_array_keep_the_script_once(shell: Shell) -> None:
    open_run(shell, "job_array_id=1 job_index=0")
    kept = shell.folder / "runs/my-1/job.sh"
    kept.write_text("first\n")
    open_run(shell, "job_array_id=1 job_index=1")
    assert kept.read_text() == "first\n"
    assert (kept.parent / "job-id").read_text() == "1\n"


def test_the_runtime_beside_is_kept_with_the_script(shell: Shell) -> None:
    (shell.folder / "runtime-1.sh").write_text("runtime\n")
    open_run(shell, "job_runtime=$PWD/runtime-1.sh")
    run = shell.folder / "runs/my-12.head"
    assert (run / "runtime-1.sh").read_text() == "runtime\n"
    done = open_run(shell, f"job_runtime={run}/runtime-1.sh job_submit_dir={run}")
    assert (done.status, done.said) == (0, "")
    assert (run / "runtime-1.sh").read_text() == "runtime\n"
    assert not list(run.glob("attempt-*/new"))


def test_a_job_from_its_own_script(shell: Shell) -> None:
    open_run(shell, "")
    run = shell.folder / "runs/my-12.head"
    done = shell.start(["bash", str(run / "job.sh")], {}, 60)
    assert done.status == 0
    assert (run / "job.sh").read_text() == (shell.folder / "script.sh").read_text()


# ------------------------------------------------------------------------------------------ the handover


def test_the_nodes_get_the_environment_and_the_functions(shell: Shell) -> None:
    env = {
        **dict.fromkeys(
            (
                "SLURM_X",
                "PMI_X",
                "CUDA_VISIBLE_DEVICES",
                "TMPDIR",
                "RANK",
                "LOCAL_RANK",
                "PBS_NODENUM",
                "JOBGEN_HOST",
                "HOSTNAME",
            ),
            "here alone",
        ),
        "PLAIN": "a 'b'\n$c",
        "NAMED": "here alone",
        "A_TOKEN": "here alone",
    }
    code = """job_secret_names=(NAMED); program() { echo program; }; other() { :; }; job_point=(--lr 'a b'); job_world_size=801
    job_file_rank() { echo rank; }; export JOBGEN_WORLD_SIZE=801; cd /tmp; job_handover; cd /
    env -i bash -c '. "$0/env.sh"; . "$0/functions.sh"; env; pwd; program; declare -F; echo "${job_point[1]}"' "$job_dir" """
    done = shell.run("secrets run_directory handover", code, env)
    assert done.status == 0, done.said
    assert (shell.run_dir / "environment").read_text() == "NAMED=here alone\0A_TOKEN=here alone\0"
    assert (shell.run_dir / "environment").stat().st_mode & 0o777 == 0o600
    assert "JOBGEN_SECRETS=NAMED A_TOKEN\n" in done.out
    assert "here alone" not in done.out
    assert "PLAIN=a 'b'\n$c\n" in done.out
    assert done.lines[-5:] == ["/tmp", "program", "declare -f job_secrets", "declare -f program", "a b"]
    assert (shell.run_dir / "rank.sh").read_text() == "rank\n"
    assert listed(shell.logs / "nodes") == ["0", "1", "2"]
    for name in ("env.sh", "functions.sh"):
        assert (shell.run_dir / name).stat().st_mode & 0o077 == 0
    assert not (shell.run_dir / "jobgen-remote").exists()


@pytest.fixture(autouse=True)
def no_nodes(shell: Shell, request: pytest.FixtureRequest) -> None:
    if "nodes_get" in request.node.name or "remote_start_is" in request.node.name:
        (shell.logs / "nodes" / "0").rmdir()
        (shell.logs / "nodes").rmdir()


def test_remote_start_is_a_command(shell: Shell) -> None:
    code = "job_file_remote() { echo 'echo remote'; }; JOBGEN_WORLD_SIZE=400; job_handover; bash run/jobgen-remote; ls run/attempt-1/nodes"
    assert shell.run("secrets handover", code).lines == ["remote", "0"]
    assert os.access(shell.run_dir / "jobgen-remote", os.X_OK)


# ------------------------------------------------------------------------------------------------- main

STEPS = [
    "job_listen",
    "overrides",
    "job_check_runtime",
    "job_scheduler",
    "job_open",
    "job_keep_secrets",
    "sweep",
    "job_count_nodes",
    "job_export",
    "environment",
    "job_make_hostfile",
    "job_filter",
    "job_rendezvous",
    "job_hccl_ports",
    "job_set_deadline",
    "job_read_program_variables",
    "job_handover",
    "job_find_address_or_end",
    "job_mpi",
    "job_check_mpi",
    "job_prepare_pdsh",
    "job_listen",
    "job_preflight_or_end",
    "job_arm_deadline",
    "job_run_before",
]
MAIN = """job_title=title job_launcher_name=torchrun job_hosts=(a b) MASTER_ADDR=a MASTER_PORT=7 job_parent='/p q' job_status=
job_run() { echo run; job_status=0; }; job_judge() { echo judge; job_status=$status; }
job_run_after() { echo "after $1"; }; job_go_on() { echo go on; }; job_submit_command() { echo qsub; }
job_save_requested() { [[ $asked == yes ]]; }; job_save_reason() { echo TERM; }; job_finish_with() { echo "finish $1"; exit; }
"""


@pytest.mark.parametrize(("status", "end"), [(0, []), (3, []), (75, ["go on"])])
def test_the_order_of_the_steps(shell: Shell, status: int, end: list[str]) -> None:
    steps = "\n".join(f"{name}() {{ echo {name}; }}" for name in STEPS)
    done = shell.run(
        "rendezvous main",
        f"{steps}\n{MAIN}\nasked=no status={status}; job_end_containers() {{ echo containers; }}\n"
        "job_judge_at_limit() { echo limit; }; job_main",
    )
    ran = ["run", "containers", "judge", "limit"]
    assert done.lines == [*STEPS, *ran, f"after {status}", *end, f"finish {status}"]
    assert done.said.startswith(f"jobgen: title: a b; rendezvous at a:7; files in {shell.run_dir}\n")
    assert ("jobgen: not finished; to go on: cd '/p q' && qsub job.sh\n" in done.said) == (status == 75)


def test_a_faster_network_is_named(shell: Shell) -> None:
    steps = "\n".join(f"{name}() {{ :; }}" for name in STEPS)
    code = f"{steps}\n{MAIN}\nasked=no status=0 job_faster_networks=plugin; job_main"
    said = "jobgen: the network is on its slow path: --network plugin is faster here"
    assert shell.run("rendezvous main", code).said.splitlines()[1] == said


def test_the_steps_that_every_job_has(shell: Shell) -> None:
    must = [
        "job_listen",
        "job_check_runtime",
        "job_scheduler",
        "job_open",
        "job_count_nodes",
        "job_export",
        "environment",
        "job_make_hostfile",
        "job_rendezvous",
        "job_handover",
        "job_listen",
    ]
    steps = "\n".join(f"{name}() {{ echo {name}; }}" for name in set(must))
    done = shell.run(
        "main", f"{steps}\n{MAIN}\nasked=yes status=; unset -f job_run_after job_go_on; job_main"
    )
    assert done.lines == [*must, "finish 75"]
    assert "jobgen: asked to exit (TERM) before the program started\n" in done.said


def test_a_job_of_steps_runs_them_instead(shell: Shell) -> None:
    code = f"{MAIN} asked=no; job_run_steps() {{ echo steps; job_status=4; }}; job_launch_and_judge"
    assert shell.run("main", code).lines == ["steps", "after 4", "finish 4"]


def test_the_users_umask_is_that_of_the_environment_alone(shell: Shell) -> None:
    code = "umask 022; environment() { umask; umask 007; }; job_environment; umask; echo $job_umask"
    assert shell.run("main", code).lines == ["0022", "0077", "0007"]
    code = f"job_run_dir_umask=027 job_umask=002; {code}"
    assert shell.run("main", code).lines == ["0002", "0027", "0007"]


@pytest.mark.parametrize(
    ("asked", "signals", "why", "told"),
    [
        ("yes", 0, "cancel", True),
        ("yes", 1, "cancel", False),  # the trap has said so
        ("no", 0, "cancel", False),
        ("yes", 0, "deadline", False),
    ],
)
def test_who_asked_a_job_that_ran(shell: Shell, asked: str, signals: int, why: str, told: bool) -> None:
    code = f"job_signals={signals}; job_run() {{ asked={asked}; }}; job_save_reason() {{ echo {why}; }}"
    said = shell.run("main", f"{MAIN} {code}; asked=no status=75; job_launch_and_judge").said
    assert ("jobgen: every rank was asked to save and exit, because of cancel\n" in said) == told
    assert ("because of cancel" in said) == told


def test_the_doctor_sees_the_environment_without_the_job(shell: Shell) -> None:
    (shell.folder / "doctor").mkdir()
    (shell.folder / "work").mkdir()
    code = """trap 'echo trapped' EXIT TERM; overrides() { export OVER=yes; }; job_workdir=work
    job_need_secrets() { job_die 71 'a secret'; }
    environment() { export SEEN=$OVER; job_die 71 'first thing'; job_die 71 second; job_listen; job_end; pwd; }; job_main"""
    done = shell.run("signals doctor", code, {"JOBGEN_DOCTOR": str(shell.folder / "doctor")})
    assert (done.status, done.lines) == (0, [str(shell.folder / "work")]), done.said
    assert (shell.folder / "doctor" / "deaths").read_text() == "a secret\0first thing\0second\0"
    assert (shell.folder / "doctor" / "directory").read_text() == f"{shell.folder}/work\n"
    assert "SEEN=yes" in (shell.folder / "doctor" / "environment").read_text().split("\0")
    done = shell.run(
        "signals doctor", code.replace("=work", "=/none"), {"JOBGEN_DOCTOR": str(shell.folder / "doctor")}
    )
    assert "cannot enter /none" in (shell.folder / "doctor" / "deaths").read_text()
    done = shell.run(
        "signals doctor",
        'environment() { echo "$job_dir"; }; unset job_workdir; job_main',
        {"JOBGEN_DOCTOR": str(shell.folder / "doctor")},
    )
    assert done.out == f"{shell.folder}/doctor\n"


# ----------------------------------------------------------------------------------------------- sweeps


def test_the_options_of_a_task(shell: Shell) -> None:
    odd = 'a "b"\\\n\t\x01ü'
    code = """job_index=2; job_sweep_begins 3; job_sweep_value lr number --lr 0.1; job_sweep_value my-name text --name "$ODD"
    job_sweep_value on switch --on true; job_sweep_value off switch --off false; job_sweep_value low number --low -5; job_sweep_ends
    printf '%s\\0' "${job_point[@]}"; env -0 | grep -z JOBGEN_SWEEP | sort -z"""
    done = shell.run("sweep", code, {"ODD": odd})
    words = done.out.split("\0")[:-1]
    assert words[:6] == ["--lr", "0.1", "--name", odd, "--on", "--low=-5"]
    assert words[6:] == [
        f"JOBGEN_SWEEP_{v}" for v in ("low=-5", "lr=0.1", f"my_name={odd}", "off=false", "on=true")
    ]
    assert json.loads((shell.run_dir / "sweep.json").read_text()) == {
        "lr": 0.1,
        "my-name": odd,
        "on": True,
        "off": False,
        "low": -5,
    }
    assert done.said.startswith("jobgen: point 2: '--lr' '0.1' '--name' ")


@pytest.mark.parametrize(("index", "status"), [(2, 0), (3, 70)])
def test_a_task_beyond_the_sweep(shell: Shell, index: int, status: int) -> None:
    done = shell.run("sweep", f"job_index={index}; job_sweep_begins 3; echo on")
    assert done.status == status
    assert done.said == (f"jobgen: the sweep has no point {index}, only 0 to 2\n" if status else "")


BEATS = """job_nodes=2 JOBGEN_BEAT=1 JOBGEN_WORLD_SIZE=2 job_hosts=(a b)
job_ask_host() { echo "$1" >> asked; [[ $1 != "$LOST" ]]; }
alive() { for ((n = 0; n < $2; n++)); do echo $n > $job_logs/nodes/0/$1.alive; command sleep 0.5; done; }"""


@pytest.mark.parametrize(
    ("hosts", "beats", "lost", "status"),
    [
        ("a b", "alive a 30 & alive b 2", "b", "143"),
        ("a b", "alive a 30 & alive b 2", "", "0"),
        ("a b", "alive a 2 & alive b 2", "b", "0"),
        ("b", "alive b 2", "b", "143"),
    ],
    ids=["lost", "slow", "file system", "without ranks here"],
)
def test_a_node_without_a_sign_of_life_is_asked(
    shell: Shell, hosts: str, beats: str, lost: str, status: str
) -> None:
    """The launcher may wait for it for ever. A node that answers is only slow. If none writes, none is asked."""
    launch = f"({beats}; wait) & exec sleep 14"
    code = f"{BEATS}; job_hosts=({hosts}); {PAUSES} launch() {{ {launch}; }}; export -f alive; export job_logs; job_run; echo $job_status"
    done = shell.run("signals remote_start lost_nodes run verdict", f"{RUN} {code}", {"LOST": lost})
    assert done.lines == [status], done.said
    path = shell.folder / "asked"
    assert set(path.read_text().split() if path.exists() else []) == (set() if "a 2" in beats else {"b"})
    assert ("b does not answer any more" in done.said) == (status == "143")
    assert (shell.logs / "nodes/0/b.silent").exists() == (status == "143")
