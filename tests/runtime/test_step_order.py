"""steps.sh: which steps of a job run, and with which hosts."""

from __future__ import annotations

import pytest
from support.runtime_shell import Shell

FILES = ("steps", "parallel_steps", "ready_steps", "named_steps")

STUBS = """
job_say() { echo "$*" >&2; }
job_note() { :; }
job_optional() { :; }
job_save_requested() { [[ -e asked ]]; }
job_export() { :; }
job_rendezvous() { MASTER_ADDR=${job_hosts[0]} MASTER_PORT=$job_number; }
job_handover() { declare -F | grep -c ' rank$' > "$job_dir/functions.sh" || true; }
job_run_and_judge() { program; echo "$MASTER_PORT ${job_hosts[*]} $(cat "$job_dir/functions.sh") $(basename "$job_logs")"; }
step_1() { job_nodes=1; rank() { :; }; program() { job_status=0; }; }
step_2() { job_nodes=2; program() { job_status=${SECOND:-0}; }; }
step_3() { job_nodes=3; program() { job_status=0; }; }
job_hosts=(a b c) job_steps=3 job_number=10 job_ranks_per_node=2 job_title=x
"""
RUNS = ["2013 a 1 step-1", "4016 a b 0 step-2", "6019 a b c 0 step-3"]


@pytest.mark.parametrize(
    ("before", "ran", "status", "finished"),
    [
        ("", RUNS, 0, "1 2 3"),
        ("SECOND=7;", RUNS[:2], 7, "1"),
        ("SECOND=75;", RUNS[:2], 75, "1"),
        ("touch asked;", RUNS[:1], 75, "1"),
        ("seq 2 > $job_dir/steps-done;", RUNS[2:], 0, "1 2 3"),
    ],
)
def test_the_steps_that_run(shell: Shell, before: str, ran: list[str], status: int, finished: str) -> None:
    code = f"{STUBS}{before} job_run_steps; echo $job_status"
    done = shell.run("rendezvous steps", code)
    assert done.lines == [*ran, str(status)], done.said
    assert (shell.run_dir / "steps-done").read_text().split() == finished.split()
    assert f"step {len(finished.split())}" in done.said or status


def test_what_a_step_gets_and_leaves(shell: Shell) -> None:
    record = """
    job_optional() { echo "${step-} ${*: -1}" >> calls; }; job_note() { echo "$step note $2" >> calls; }
    job_export() { echo "$step export $(basename "$job_logs")" >> calls; ! [[ -e run/status.json ]] || exit 9; }
    job_run_and_judge() { program; echo "rank $step" > "$job_logs/statuses"; mkdir "$job_logs/nodes"
      touch "$job_logs/nodes/$step" run/status.json; [[ $job_logs/control -ef run/attempt-1/control ]]; }
    """
    done = shell.run(
        "rendezvous steps", f"{STUBS}{record}SECOND=7; job_run_steps; echo $job_status $(basename $job_logs)"
    )
    assert done.lines == ["7 attempt-1"], done.said
    optional = ["job_hccl_ports", "job_mpi", "job_check_mpi", "job_hand_over_part", "job_find_address_or_end"]
    calls = [
        [" job_export_steps", "1 note 1", "1 export step-1", *(f"1 {one}" for one in optional), "1 note 1 0"]
    ]
    calls += [
        ["2 note 2", "2 export step-2", *(f"2 {one}" for one in optional), "2 job_arm_deadline", "2 note 2 7"]
    ]
    assert (shell.folder / "calls").read_text().splitlines() == [*calls[0], *calls[1]]
    assert (shell.logs / "statuses").read_text() == "rank 2\n"
    assert [path.name for path in (shell.logs / "nodes").iterdir()] == ["2"]
    assert (shell.run_dir / "hostfile").read_text() == "a slots=2\nb slots=2\n"
    assert done.said.splitlines() == [
        "step 1 of 3, x: a; rendezvous at a:2013",
        "step 2 of 3, x: a b; rendezvous at a:4016",
        "step 2 of 3 ended with status 7",
    ]
    done = shell.run(
        "rendezvous steps", f"{STUBS}rm -r run/attempt-1/step-*; job_run_steps; echo $job_status"
    )
    assert done.said.splitlines()[0] == "step 1 has finished in an earlier attempt"


BESIDE = """
job_wait() { wait "$1" && job_status=0 || job_status=$?; }
job_run() { program; echo "$MASTER_PORT ${job_hosts[*]} $(cat "$job_dir/functions.sh") $(basename "$job_logs")"; }
job_report_save() { :; }
job_judge() { :; }
job_read_ends() { job_silent_count=0; }
job_control() { echo "$1 $2" >> "$job_logs/control"; }
touch run/attempt-1/control
job_parallel_steps=(2)
step_1() { job_nodes=1 job_first_node=; program() { job_status=${FIRST:-0}; }; }
step_2() { job_nodes=2 job_first_node=1; program() { job_status=${SECOND:-0}; }; }
step_3() { job_nodes=3 job_first_node=; program() { job_status=0; }; }
"""


@pytest.mark.parametrize(
    ("before", "status", "finished", "third"),
    [
        ("", 0, "1 2 3", True),
        ("FIRST=3 SECOND=75;", 3, "", False),
        ("FIRST=75 SECOND=4;", 4, "", False),
        ("SECOND=75;", 75, "1", False),
        ("echo 1 > $job_dir/steps-done;", 0, "1 2 3", True),
        ("seq 2 > $job_dir/steps-done;", 0, "1 2 3", True),
    ],
)
def test_steps_at_the_same_time(shell: Shell, before: str, status: int, finished: str, third: bool) -> None:
    done = shell.run("steps parallel_steps", f"{STUBS}{BESIDE}{before} job_run_steps; echo $job_status")
    ran = [*(["2013 a 0 step-1"] if "steps-done" not in before else []), "4016 b c 0 step-2"]
    ran = [line for line in ran if "seq 2" not in before]
    assert sorted(done.lines) == sorted([*ran, *(RUNS[2:] if third else []), str(status)])
    assert (shell.run_dir / "steps-done").exists() == bool(finished)
    if finished:
        assert sorted((shell.run_dir / "steps-done").read_text().split()) == finished.split()
    if ran:
        assert (shell.run_dir / "step-2/hosts").read_text() == "b\nc\n"


def test_what_steps_at_the_same_time_leave(shell: Shell) -> None:
    record = """
    job_optional() { [[ $1 != job_arm_deadline ]] || echo "${step-} $1" >> calls; }
    job_wait() { echo "launcher ${job_launcher:+set}"; wait "$1" && job_status=0 || job_status=$?; }
    job_run() { kill -TERM "$BASHPID"; program; mkdir "$job_logs/nodes"; touch "$job_logs/nodes/$step"
      echo "rank $step" > "$job_logs/statuses"; }
    """
    code = f"{STUBS}{BESIDE}{record}SECOND=7; job_run_steps; echo $job_status [$job_launcher]"
    done = shell.run("steps parallel_steps", code)
    assert done.lines == ["launcher set", "launcher set", "7 []"], done.said
    assert not (shell.folder / "calls").exists()  # of the first steps, the job has armed it
    assert (shell.logs / "statuses").read_text() == "rank 2\n"
    assert [path.name for path in (shell.logs / "nodes").iterdir()] == ["2"]
    code = f"{STUBS}{BESIDE}{record}job_parallel_steps=(3) job_steps=3; rm -r run/step-* run/attempt-1/step-*; job_run_steps"
    done = shell.run("steps parallel_steps", f"{code}; cat calls")

    assert done.lines[-1].strip() == "job_arm_deadline", done.said


def test_the_control_is_heeded(shell: Shell) -> None:
    code = """job_stop() { echo stopped; }; sleep() { echo pause; command sleep 0.05; }
    echo save > run/attempt-1/control; job_heed_control & command sleep 0.3; echo; echo stop >> run/attempt-1/control; wait"""
    before, _, after = shell.run("parallel_steps", code).out.partition("\n\n")
    assert set(before.split()) == {"pause"}
    assert after.split()[-1] == "stopped"


SERVED = f"""
{BESIDE}
step_1() {{ job_nodes=1 job_step_name=server job_ends_with=2 job_waits_for=() job_ready_seconds=${{LIMIT:-60}} job_ready_file=up
  program() {{ eval "$SERVER"; }}; }}
step_2() {{ job_nodes=1 job_step_name=trainer job_ends_with= job_waits_for=(1) job_ready_seconds= job_ready_file=
  program() {{ echo trains; job_status=${{SECOND:-0}}; }}; }}
step_3() {{ job_nodes=3 job_step_name= job_waits_for=(); program() {{ job_status=0; }}; }}
job_wait() {{ wait "$1" && job_status=0 || job_status=$?; }}
job_optional() {{ ! declare -F "$1" > /dev/null || "$@"; }}
job_steps=2
"""
SERVES = "touch up; until grep -qs ^end $job_logs/control; do sleep 0.1; done; job_status=143"


@pytest.mark.parametrize(
    ("before", "server", "status", "said"),
    [
        ("", SERVES, 0, ["server is ready after", "server was ended after"]),
        ("SECOND=7;", SERVES, 7, ["step 2 of 2, trainer ended with status 7", "server was ended after"]),
        (
            "",
            "job_status=3",
            3,
            ["server has ended with status 3 before it was ready: there is no new file up"],
        ),
        ("", "job_status=0", 73, ["server has ended with status 0 before it was ready"]),
        ("LIMIT=1;", SERVES.replace("touch up;", ""), 124, ["server is not ready after 1 s, its limit"]),
    ],
)
def test_a_server_and_its_trainer(
    shell: Shell, before: str, server: str, status: int, said: list[str]
) -> None:
    code = (
        f"{STUBS}{SERVED}{before} SERVER='{server}'; job_run_steps; echo $job_status; cat $job_dir/steps-done"
    )
    done = shell.run("steps parallel_steps ready_steps", code)
    lines = [line for line in done.lines if not line[0].isdigit() or line.isdigit()]
    ran = ["trains"] if "before it" not in said[0] and "limit" not in said[0] else []
    assert lines == [*ran, str(status), *(["2"] if status == 0 else [])], done.said
    assert all(one in done.said for one in said), done.said


def test_the_hosts_and_ports_of_named_steps(shell: Shell) -> None:
    steps = """
    job_hosts=(a b c) job_steps=3 job_number=10
    step_1() { job_step_name=one job_first_node=1 job_nodes=2 job_ready_port=; }
    step_2() { job_step_name=; }
    step_3() { job_step_name=two job_first_node= job_nodes=1 job_ready_port=8000; }
    job_port_in_use() { ((MASTER_PORT == 27016)); }
    """
    code = "all=(a b c) number=10; job_export_steps; env | grep ^JOBGEN_STEP | sort"
    done = shell.run("steps named_steps", steps + code)
    assert done.lines == [
        *("JOBGEN_STEP_one_HOSTS=b,c", "JOBGEN_STEP_one_PORT=20323"),
        *("JOBGEN_STEP_two_HOSTS=a", "JOBGEN_STEP_two_PORT=8000"),
    ], done.said
