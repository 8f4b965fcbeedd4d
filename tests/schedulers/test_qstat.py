"""What is known of jobs by qstat: a job is gone only if the answer says so, and never because it cannot be read.

The programs print what OpenPBS 23.06, Torque 6.1.3 and Slurm's qstat print; tests/answers has recorded answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.jobs import path_with

from jobgen.hosts.calls import SchedulerError
from jobgen.runs import job_query
from jobgen.schedulers import pbs_jobs as pbs

JOBS = "1 R\n2[] B\n2[0] R\n3 C\n"
# Each reads the ids and the states of its jobs from the file JOBS, and writes its arguments to CALLS.
COMMON = """
echo "$@" >> CALLS
options=() ids=()
for word; do if [[ $word == -* ]]; then options+=("$word"); else ids+=("$word"); fi; done
has() { [[ " ${options[*]} " == *" $1 "* ]]; }
show() { printf 'Job Id: %s.head\\n    Job_Name = exp\\n    job_state = %s\\n    Variable_List = A=1\\n\\n' "$1" "$2"; }
state() { awk -v id="$1" '$1 == id { print $2 }' JOBS; }
"""
# Every id that is not known is named after all records.
TORQUE = f"""{COMMON}
unknown=()
for id in "${{ids[@]}}"; do
  state=$(state "$id")
  if [[ -z $state ]]; then unknown+=("$id")
  elif has -x; then printf '<?xml version="1.0"?>\\n<Data><Job><Job_Id>%s.head</Job_Id></Job></Data>\\n' "$id"
  else show "$id" "$state"; fi
done
for id in "${{unknown[@]}}"; do echo "qstat: Unknown Job Id Error $id.head" >&2; done
((${{#unknown[@]}} == 0)) || exit 153
"""
# With -E there is one question for all: an id that is not known is named only if none is known, and is the last.
OPENPBS = f"""{COMMON}
found=0 status=0
for id in "${{ids[@]}}"; do
  state=$(state "$id")
  if [[ -n $state ]]; then show "$id" "$state"; found=1
  elif ! has -E; then echo "qstat: Unknown Job Id $id.head" >&2; status=153; fi
done
if has -E && ((found == 0)); then echo "qstat: Unknown Job Id $id.head" >&2; status=153; fi
exit $status
"""
# It names none.
SLURM = f"""{COMMON}
for option in x E t; do has -$option && {{ echo "Unknown option: $option" >&2; exit 2; }}; done
status=153
for id in "${{ids[@]}}"; do [[ -z $(state "$id") ]] || {{ show "$id" "$(state "$id")"; status=0; }}; done
exit $status
"""
NO_OPTION = "echo 'Unknown option: x' >&2; exit 2"
Queue = Callable[..., Path]


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Queue:
    """Make a program the qstat, with these jobs in its queue; the answer is the file of its calls."""

    def make(program: str, jobs: str = JOBS, **more: str) -> Path:
        log, listed = tmp_path / "calls", tmp_path / "jobs"
        listed.write_text(jobs)
        texts = {"qstat": program, **more}
        texts = {
            name: text.replace("CALLS", str(log)).replace("JOBS", str(listed)) for name, text in texts.items()
        }
        monkeypatch.setenv("PATH", f"{path_with(tmp_path / 'bin', **texts)}:/usr/bin:/bin")
        return log

    return make


def states(*ids: str) -> list[tuple[str, str]]:
    return [(job.id.partition(".")[0], job.state) for job in pbs.ask(ids)]


@pytest.mark.parametrize("program", [TORQUE, OPENPBS], ids=["Torque", "OpenPBS"])
def test_forgotten_jobs_beside_others(program: str, queue: Queue) -> None:
    queue(program)
    live = [("1", "running"), ("2[]", "running"), ("3", "ended")]
    assert states("1.head", "2[].head", "3.head") == live
    assert states("1.head", "8.head", "2[].head", "9[].head", "3.head") == live
    assert states("8.head", "1.head", "9.head") == live[:1]
    assert states("8.head", "9.head") == []


def test_the_jobs_that_openpbs_does_not_know_are_not_asked_for_one_by_one(queue: Queue) -> None:
    log = queue(OPENPBS)
    assert states(*(f"{number}.head" for number in range(1, 100))) == [("1", "running"), ("3", "ended")]
    assert [line.split()[:4] for line in log.read_text().splitlines()] == [["-x", "-E", "-t", "-f"]] * 2


def test_the_qstat_of_slurm(queue: Queue) -> None:
    log = queue(SLURM, "1 R\n2 R\n")
    assert states("1", "2[]", "8", "9[]") == [("1", "running"), ("2", "running")]
    assert log.read_text().splitlines()[-1] == "-f 1 2 8 9"
    assert states("8") == []


OUTPUTS = {
    "nothing": ("exit 0", "qstat says nothing about the job, and ends with status 0"),
    "a status alone": ("exit 153", "qstat says nothing about the job, and ends with status 153"),
    "a banner": (
        "echo Maintenance on Monday",
        "qstat prints 'Maintenance on Monday', which is no record of a job",
    ),
    "XML": ("echo '<Data></Data>'", "qstat prints <Data></Data>, which is no record of a job"),
    "no server": (
        "echo 'qstat: cannot connect to server nowhere (errno=15010)' >&2; exit 255",
        r"qstat does not answer: qstat: cannot connect to server nowhere \(errno=15010\)",
    ),
    "no server, status 0": ("echo 'cannot connect' >&2; exit 0", "qstat does not answer: cannot connect"),
    "no id": (
        "echo 'qstat: illegally formed job identifier: 1' >&2; exit 1",
        "qstat does not answer: qstat: illegally formed job identifier: 1",
    ),
    "another job": (
        "echo 'qstat: Unknown Job Id 11.head' >&2; exit 153",
        "qstat says nothing about the job, and ends with status 153",
    ),
    "a job that is cut off": (
        "printf 'Job Id: 1.head\\n    Job_Name = exp\\n    job_state = F\\n    Exit_st'; exit 137",
        "qstat does not answer: it ended with status 137",
    ),
    "a job that is cut off, status 0": (
        "printf 'Job Id: 1.head\\n    Job_Name = exp\\n'",
        "the answer of qstat ends in the middle of a job",
    ),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_that_says_nothing_about_the_job(name: str, queue: Queue) -> None:
    program, why = OUTPUTS[name]
    queue(program)
    with pytest.raises(SchedulerError, match=why):
        pbs.ask(["1.head"])


def test_the_last_job_is_cut_off(queue: Queue) -> None:
    """The others are known, and it is neither ended nor gone."""
    shown = (
        "printf 'Job Id: 1.head\\n    job_state = R\\n\\nJob Id: 2.head\\n    job_state = F\\n    Exit_st'"
    )
    queue(shown)
    jobs = {job.id: job for job in pbs.ask(["1.head", "2.head"])}
    assert {name: job.state for name, job in jobs.items()} == {"1.head": "running", "2.head": "unknown"}
    assert jobs["2.head"].reason == "the answer of qstat ends in the middle of a job"


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("Job Id: 2[1].head\\n    job_st", "the answer of qstat ends in the middle of a job"),
        ("<html>\\n", "qstat prints <html>, which is no record of a job"),
    ],
)
def test_an_array_of_which_not_all_tasks_can_be_read(end: str, why: str, queue: Queue) -> None:
    queue(
        f"printf 'Job Id: 2[0].head\\n    job_state = F\\n    run_count = 1\\n    Exit_status = 0\\n\\n{end}'"
    )
    jobs = pbs.ask(["2[].head"])
    assert [(job.id, job.state, job.reason) for job in jobs] == [
        ("2[0].head", "finished", ""),
        ("2[].head", "unknown", why),
    ]


@pytest.mark.parametrize("word", ["9999.head", "11.head"])
def test_an_unknown_id_that_is_none_of_those_in_the_question(word: str, queue: Queue) -> None:
    queue(f"echo 'qstat: Unknown Job Id {word}' >&2; exit 153")
    with pytest.raises(SchedulerError, match="qstat says nothing about the job"):
        pbs.ask(["1.head", "2.head"])


@pytest.mark.parametrize(
    "program",
    [
        "printf 'Job Id: 1.other\\n    job_state = R\\n\\n'",
        "echo 'qstat: Unknown Job Id 1.other' >&2; exit 153",
        "echo 'qstat: 1.other Job has finished' >&2; exit 35",
    ],
)
def test_an_answer_of_another_server(program: str, queue: Queue) -> None:
    queue(program)
    why = "1.head is a job of the server head, and qstat answers for other"
    if "35" in program:
        why = "qstat does not answer: it ended with status 35"
    with pytest.raises(SchedulerError, match=why):
        pbs.ask(["1.head"])


def test_equal_numbers_on_two_servers(queue: Queue) -> None:
    queue("printf 'Job Id: 1.head\\n    job_state = R\\n\\n'")
    answer = job_query.ask(
        [(job_query.HostScheduler("pbs"), "1.other"), (job_query.HostScheduler("pbs"), "1.head")]
    )
    assert [job.state for job in answer.of(job_query.HostScheduler("pbs"), "1.head") or ()] == ["running"]
    assert answer.of(job_query.HostScheduler("pbs"), "1.other") is None
    assert "server other, and qstat answers for head" in answer.reason(
        job_query.HostScheduler("pbs"), "1.other"
    )


@pytest.mark.parametrize("recorded", ["1", "1.head", "1.HEAD", "1.head.cluster", "1.head.cluster.org"])
def test_the_name_of_a_server_may_be_short(recorded: str, queue: Queue) -> None:
    queue("printf 'Job Id: 1.head.cluster\\n    job_state = R\\n\\n'")
    assert states(recorded) == [("1", "running")]
    queue("echo 'qstat: Unknown Job Id 1.head.cluster' >&2; exit 153")
    assert states(recorded) == []


def test_the_qstat_of_slurm_shows_another_job(queue: Queue) -> None:
    queue(f"[[ $* == -f* ]] || {{ {NO_OPTION}; }}; printf 'Job Id: 9\\n    job_state = R\\n\\n'")
    with pytest.raises(SchedulerError, match="qstat says nothing about the job"):
        pbs.ask(["1"])


def test_some_jobs_are_unclear(queue: Queue) -> None:
    """Torque cannot reach the server of one of them; its message about another one comes twice."""
    wrong = "qstat: cannot connect to server far (errno=111)"
    error = (
        f"echo '{wrong}' >&2; for i in 1 2; do echo 'qstat: Unknown Job Id Error 8.head' >&2; done; exit 153"
    )
    xml = f"[[ $* != *-x* ]] || {{ echo '<Data></Data>'; {error}; }}"
    shown = "[[ $* != *' 1 '* ]] || printf 'Job Id: 1.head\\n    job_state = R\\n\\n'"
    queue(f"{xml}; {shown}; {error}")
    jobs = pbs.ask(["1.head", "8.head", "9.far"])
    assert [(job.id, job.state, job.reason) for job in jobs] == [
        ("1.head", "running", ""),
        ("9.far", "unknown", f"qstat does not answer: {wrong}"),
    ]
    answer = job_query.ask(
        [
            (job_query.HostScheduler("pbs"), "1.head"),
            (job_query.HostScheduler("pbs"), "8.head"),
            (job_query.HostScheduler("pbs"), "9.far"),
        ]
    )
    assert [job.state for job in answer.of(job_query.HostScheduler("pbs"), "1.head") or ()] == ["running"]
    assert answer.of(job_query.HostScheduler("pbs"), "8.head") == []
    assert answer.of(job_query.HostScheduler("pbs"), "9.far") is None
    assert answer.reason(job_query.HostScheduler("pbs"), "9.far") == f"qstat does not answer: {wrong}"


def test_a_job_that_has_finished_and_no_history(queue: Queue) -> None:
    queue(
        "[[ $* != *-x* ]] || { echo 'qstat: illegal option' >&2; exit 2; }\n"
        "echo 'qstat: 1.head Job has finished, use -x or -H to obtain historical job information' >&2; exit 35"
    )
    assert states("1.head") == [("1", "ended")]


@pytest.mark.parametrize("line", ["", "job_state = Z"])
def test_a_state_that_is_not_known(line: str, queue: Queue) -> None:
    queue(f"printf 'Job Id: 1.head\\n    Job_Name = exp\\n    {line}\\n\\n'")
    [job] = pbs.ask(["1.head"])
    assert (job.state, job.reason) == (
        "unknown",
        "qstat shows the state Z" if line else "qstat shows no state of the job",
    )


def test_a_search_that_is_not_answered_for_all_jobs(queue: Queue) -> None:
    """A job of this user that qstat neither shows nor calls unknown may be the one that is looked for."""
    queue(TORQUE, qselect="printf '%s\\n' 1.head 8.head")
    assert list(pbs.find(["/a"], time.time())) == []
    queue("printf 'Job Id: 1.head\\n    Variable_List = A=1\\n\\n'", qselect="printf '%s\\n' 1.head 8.head")
    with pytest.raises(SchedulerError, match="qstat says nothing about the job"):
        list(pbs.find(["/a"], time.time()))


RECORD = "printf 'Job Id: 1.head\\n    Variable_List = PBS_O_WORKDIR=/a\\n\\n'"


@pytest.mark.parametrize(
    ("qselect", "qstat", "why"),
    [
        ("echo hi there", RECORD, "qselect prints 'hi there', which is no record of a job"),
        ("echo 1.head; echo hi there", RECORD, "qselect prints 'hi there'"),
        ("echo 1.head; printf 2.he", RECORD, "the output of qselect ends in the middle of a line: 2.he"),
        ("echo 'cannot connect' >&2", RECORD, "qselect does not answer: cannot connect"),
        (
            "echo 1.head",
            "printf 'Job Id: 1.head\\n    job_state = R\\n\\n'",
            "no Variable_List of job 1.head",
        ),
    ],
)
def test_a_search_that_finds_nothing_in_an_answer_that_cannot_be_read(
    qselect: str, qstat: str, why: str, queue: Queue
) -> None:
    queue(qstat, qselect=qselect)
    with pytest.raises(SchedulerError, match=why):
        list(pbs.find(["/b"], time.time()))


def test_a_job_that_is_found_beside_what_cannot_be_read(queue: Queue) -> None:
    shown = f"{RECORD}; printf 'Job Id: 2.head\\n    job_state = R\\n\\n'"
    queue(shown, qselect="echo Welcome; printf '%s\\n' 1.head 2.head 3.head")
    assert list(pbs.find(["/a"], time.time())) == [("/a", "1.head")]


def test_openpbs_without_a_history(queue: Queue) -> None:
    """qselect -x ends with status 0 and an error: this is not the answer that there are no jobs."""
    said = "echo 'PBS is not configured to maintain job history' >&2; exit 0"
    record = "Job Id: 1.head\\n    Variable_List = PBS_O_WORKDIR=/a\\n\\n"
    queue(
        f"[[ $* != *-x* ]] || {{ {said}; }}; printf '{record}'",
        qselect=f"[[ $* != *-x* ]] || {{ {said}; }}; echo 1.head",
    )
    assert list(pbs.find(["/a"], time.time())) == [("/a", "1.head")]


LIMITS = [
    ("substate = 92\n run_count = 1\n Exit_status = -29", "timeout", "it exceeded its wall time"),
    ("substate = 92\n run_count = 1\n Exit_status = -28", "timeout", "it exceeded its CPU time (cput)"),
    ("substate = 92\n run_count = 1\n Exit_status = -27", "out of memory", "it exceeded its memory (mem)"),
    (
        "substate = 92\n run_count = 1\n Exit_status = -26",
        "out of memory",
        "it exceeded its virtual memory (vmem)",
    ),
    (
        "substate = 92\n run_count = 1\n Exit_status = -25",
        "failed",
        "it used more processors than it requested",
    ),
    ("substate = 92\n run_count = 1\n Exit_status = -11", "failed", ""),
    (
        "fault_tolerant = False\n start_time = now\n exit_status = -10",
        "out of memory",
        "it exceeded a limit of memory",
    ),
    ("fault_tolerant = False\n start_time = now\n exit_status = -11", "timeout", "it exceeded its wall time"),
    (
        "fault_tolerant = False\n start_time = now\n exit_status = -12",
        "timeout",
        "it exceeded its CPU time (cput)",
    ),
    ("fault_tolerant = False\n start_time = now\n exit_status = -29", "failed", ""),
]


@pytest.mark.parametrize(("lines", "state", "reason"), LIMITS)
def test_the_limits_of_both_pbs_have_statuses_of_their_own(
    lines: str, state: str, reason: str, queue: Queue
) -> None:
    letter = "F" if "substate" in lines else "C"
    queue(f"printf 'Job Id: 9.server\n job_state = {letter}\n {lines}\n\n'")
    [job] = pbs.ask(["9"])
    assert (job.state, job.reason) == (state, reason)
