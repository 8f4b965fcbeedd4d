"""What Slurm, PBS Pro, OpenPBS and Torque answer, in one language; the answers of qstat are in qstat/. What a real
OpenPBS and a real Torque answer, tests/cluster/test_pbs_facts.py asks."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.jobs import path_with

from jobgen.hosts import calls
from jobgen.hosts.calls import Done, SchedulerError
from jobgen.hosts.host import Host
from jobgen.runs import job_query
from jobgen.schedulers import pbs_jobs as pbs
from jobgen.schedulers import slurm_jobs as slurm
from jobgen.schedulers.jobs import Job
from jobgen.values.parsers import seconds

ANSWERS = Path(__file__).with_name("qstat")
OPENPBS = f"""
[[ $1 == -x ]] || exit 9
echo "$@" >> {{log}}
cat {ANSWERS}/openpbs.txt
"""
# Torque's -x is XML, of which nothing is read.
TORQUE = f"""
echo "$@" >> {{log}}
if [[ $1 == -x ]]; then echo '<Data><Job><Job_Id>815</Job_Id></Job></Data>'; else cat {ANSWERS}/torque.txt; fi
"""


def commands(monkeypatch: pytest.MonkeyPatch, directory: Path, **programs: str) -> Path:
    """Make these the commands of the scheduler; the answer is the file in which they note how they are called."""
    log = directory / "calls"
    texts = {name: text.replace("{log}", str(log)) for name, text in programs.items()}
    monkeypatch.setenv("PATH", f"{path_with(directory / 'bin', **texts)}:/usr/bin:/bin")
    return log


def test_openpbs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = commands(monkeypatch, tmp_path, qstat=OPENPBS)
    jobs = pbs.ask([*(f"{number}.pbs-server" for number in range(4711, 4717)), "4720[].pbs-server"])
    assert log.read_text() == "-x -E -t -f 4711 4712 4713 4714 4715 4716 4720[]\n"
    assert [(job.id.partition(".")[0], job.state, job.status) for job in jobs] == [
        ("4711", "running", None),
        ("4712", "pending", None),
        ("4713", "finished", 0),
        ("4714", "cancelled", 271),
        ("4715", "failed", 74),
        ("4716", "held", None),
        ("4720[]", "running", None),
        ("4720[0]", "finished", 0),
        ("4720[1]", "running", None),
        ("4720[2]", "pending", None),
    ]
    assert jobs[0].seconds_left == 4790
    assert jobs[1].reason == "Not Running: Insufficient amount of resource: ngpus (R: 16 A: 8 T: 24)"
    assert [job.task for job in jobs[-3:]] == ["0", "1", "2"]


def test_torque(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = commands(monkeypatch, tmp_path, qstat=TORQUE)
    jobs = pbs.ask(["815.torque.example.org", "816.torque.example.org"])
    assert log.read_text() == "-x -E -t -f 815 816\n-t -f 815 816\n"
    assert [(job.state, job.seconds_left, job.status) for job in jobs] == [
        ("running", 3000, None),
        ("failed", None, 1),
    ]


def test_pbs_knows_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands(monkeypatch, tmp_path, qstat="echo 'qstat: Unknown Job Id 9.pbs-server' >&2; exit 153")
    assert pbs.ask(["9.pbs-server"]) == []


@pytest.mark.parametrize("complaint", ["cannot connect to server pbs (errno=111)", ""])
def test_pbs_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, complaint: str) -> None:
    commands(monkeypatch, tmp_path, qstat=f"echo '{complaint}' >&2; exit 2")
    with pytest.raises(SchedulerError, match=f"qstat does not answer: {complaint[:10] or 'it ended'}"):
        pbs.ask(["9"])


SQUEUE = r"""
echo "squeue $@" >> {log}
echo '12|RUNNING|1-02:03:04|None'
echo '13|PENDING|UNLIMITED|Dependency'
echo '14_0|RUNNING|5:00|None'
echo '14_1|COMPLETED|0:00|None'
echo '15|PENDING|1:00|JobHeldUser'
echo '16|CANCELLED|1:00|a|b'
"""
SACCT = r"""
echo "sacct $@" >> {log}
echo '17|CANCELLED by 1000|0:15'
echo '18|OUT_OF_MEMORY|0:125'
echo '19|FAILED|71:0'
echo '20_[0-1,7]|CANCELLED by 1000|0:0'
"""


def test_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = commands(monkeypatch, tmp_path, squeue=SQUEUE, sacct=SACCT)
    jobs = slurm.ask(["12", "13", "14", "15", "16", "17", "18", "19", "20"])
    assert [(job.id, job.state, job.reason, job.status) for job in jobs] == [
        ("12", "running", "", None),
        ("13", "pending", "Dependency", None),
        ("14_0", "running", "", None),
        ("14_1", "finished", "", None),
        ("15", "held", "JobHeldUser", None),
        ("16", "cancelled", "", None),
        ("17", "cancelled", "", 143),
        ("18", "out of memory", "", 253),
        ("19", "failed", "", 71),
        *((f"20_{index}", "cancelled", "", 0) for index in (0, 1, 7)),
    ]
    assert (jobs[0].seconds_left, jobs[2].task) == (93784, "0")
    calls = log.read_text().splitlines()
    assert len(calls) == 2
    assert "--jobs=17,18,19,20" in calls[1]
    assert "--array" not in calls[1]  # sacct has it since 23.02


@pytest.mark.parametrize(
    ("sacct", "expected"),
    [
        ("echo 'Slurm accounting storage is disabled' >&2; exit 1", []),
        ("echo 'Problem talking to the database' >&2; exit 1", ["unknown"]),
        (None, ["unknown"]),
    ],
)
def test_slurm_without_accounting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sacct: str | None, expected: list[str]
) -> None:
    squeue = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"
    commands(monkeypatch, tmp_path, squeue=squeue, **({"sacct": sacct} if sacct else {"other": ""}))
    monkeypatch.setenv(
        "PATH", f"{tmp_path / 'bin'}:/bin" if sacct else f"{tmp_path / 'bin'}:{no_sacct(tmp_path)}"
    )
    jobs = slurm.ask(["9"])
    assert [job.state for job in jobs] == expected
    assert all("sacct" in job.reason for job in jobs)


def no_sacct(tmp_path: Path) -> Path:
    """A directory of programs in which there is only bash."""
    (tmp_path / "few").mkdir()
    (tmp_path / "few/bash").symlink_to("/bin/bash")
    return tmp_path / "few"


def test_lines_that_are_no_records_are_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    banner = "echo 'Maintenance | on Monday'; echo; echo '=== 7 | 8 ==='; echo '12 jobs'; printf '1\\xff|\\n'"
    squeue = f"{banner}\n{SQUEUE}\n{banner}"
    commands(monkeypatch, tmp_path, squeue=squeue, sacct="exit 1")
    assert [job.id for job in slurm.ask(["12", "13"])] == ["12", "13"]


DISABLED = "echo 'Slurm accounting storage is disabled' >&2; exit 1"


@pytest.mark.parametrize(
    ("squeue", "sacct", "reason"),
    [
        ("echo '<html>'", DISABLED, "squeue prints <html>, which is no record of a job"),
        ("echo '<html>'", "true", "squeue prints <html>, which is no record of a job"),
        ("echo '9|?|1:00|None'", DISABLED, "squeue prints 9|?|1:00|None, which is no record of a job"),
        ("echo '9|RUNNING'", DISABLED, "squeue prints 9|RUNNING, which is no record of a job"),
        ("echo '9|DREAMING|1:00|None'", DISABLED, "squeue shows the state DREAMING"),
        ("true", "echo '9|COMPLETED'", "sacct prints 9|COMPLETED, which is no record of a job"),
        ("true", "echo '9|?|0:0'", "sacct prints 9|?|0:0, which is no record of a job"),
        ("true", "echo '9|DREAMING|0:0'", "sacct shows the state DREAMING"),
        (
            "true",
            "exit 1",
            "squeue does not list it any more, and sacct does not answer: it ended with status 1",
        ),
    ],
)
def test_an_answer_that_cannot_be_read_is_not_taken_for_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, squeue: str, sacct: str, reason: str
) -> None:
    commands(monkeypatch, tmp_path, squeue=squeue, sacct=sacct)
    answer = job_query.ask([(job_query.HostScheduler("slurm"), "9")])
    [job] = answer.jobs[job_query.HostScheduler("slurm")]["9"]
    assert (job.state, job.reason) == ("unknown", reason)


CUT_OFF = "the output of squeue ends in the middle of a line: 9_1|RUNNI"


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("printf '9_1|RUNNI'", CUT_OFF),
        ("echo '<html>'", "squeue prints <html>, which is no record of a job"),
        ("echo '999|RUNNING|1:00|None'", "squeue shows job 999, which is another one"),
    ],
)
def test_an_array_of_which_not_all_tasks_can_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str, reason: str
) -> None:
    commands(monkeypatch, tmp_path, squeue=f"echo '9_0|COMPLETED|0:00|None'; {end}", sacct=DISABLED)
    jobs = [(job.id, job.state, job.reason) for job in slurm.ask(["9"])]
    assert jobs == [("9_0", "finished", ""), ("9", "unknown", reason)]


@pytest.mark.parametrize(
    ("squeue", "sacct", "reason"),
    [
        ("echo '999|RUNNING|1:00|None'", DISABLED, "squeue shows job 999, which is another one"),
        ("true", "echo '999|COMPLETED|0:0'", "sacct shows job 999, which is another one"),
    ],
)
def test_the_record_of_another_job_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, squeue: str, sacct: str, reason: str
) -> None:
    commands(monkeypatch, tmp_path, squeue=squeue, sacct=sacct)
    assert [(job.id, job.state, job.reason) for job in slurm.ask(["9"])] == [("9", "unknown", reason)]


@pytest.mark.parametrize(
    "squeue",
    [
        "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 255",
        "echo 'ssh: connection lost; Invalid job id specified' >&2; exit 1",
    ],
)
def test_an_invalid_job_id_is_an_answer_only_from_squeue(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, squeue: str
) -> None:
    commands(monkeypatch, tmp_path, squeue=squeue, sacct=DISABLED)
    with pytest.raises(SchedulerError, match="squeue does not answer: .*Invalid job id specified"):
        slurm.ask(["9"])


@pytest.mark.parametrize("sacct", [DISABLED, "true"])
def test_a_job_that_neither_knows_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sacct: str
) -> None:
    commands(monkeypatch, tmp_path, squeue="true", sacct=sacct)
    assert slurm.ask(["9"]) == []


@pytest.mark.parametrize(("squeue", "sacct"), [("echo '<html>'", "true"), ("true", "echo '<html>'")])
def test_an_unreadable_list_of_jobs_is_not_taken_for_an_empty_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, squeue: str, sacct: str
) -> None:
    commands(monkeypatch, tmp_path, squeue=squeue, sacct=sacct)
    with pytest.raises(SchedulerError, match="prints <html>, which is no record"):
        list(slurm.find(["/d"], time.time() - 1000))


@pytest.mark.parametrize(
    ("squeue", "why"),
    [
        ("echo '77|/other/job.sh'; echo junk", "squeue prints junk, which is no record of a job"),
        ("echo '77|/other/job.sh'; printf '66|/d/jo'", "squeue ends in the middle of a line: 66|/d/jo"),
    ],
)
def test_a_line_that_cannot_be_read_may_be_the_job_that_is_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, squeue: str, why: str
) -> None:
    commands(monkeypatch, tmp_path, squeue=squeue, sacct=DISABLED)
    with pytest.raises(SchedulerError, match=re.escape(why)):
        list(slurm.find(["/d"], time.time() - 1000))
    assert list(slurm.find(["/other"], time.time() - 1000)) == [("/other", "77")]


def test_jobs_on_another_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The commands name it, and equal numbers are not mixed up."""
    squeue = (
        'echo "squeue $@" >> {log}; [[ "$*" != *--clusters=c2* ]] || state=RUNNING\n'
        'echo "12|${state:-PENDING}|1:00|None"'
    )
    log = commands(monkeypatch, tmp_path, squeue=squeue, scancel='echo "scancel $@" >> {log}')
    answer = job_query.ask(
        [(job_query.HostScheduler("slurm"), "12"), (job_query.HostScheduler("slurm"), "12;c2")]
    )
    assert [job.state for job in answer.of(job_query.HostScheduler("slurm"), "12") or ()] == ["pending"]
    assert [(job.id, job.state) for job in answer.of(job_query.HostScheduler("slurm"), "12;c2") or ()] == [
        ("12;c2", "running")
    ]
    slurm.end(["12", "13_4;c2"])
    assert log.read_text().splitlines()[2:] == ["scancel --quiet 12", "scancel --clusters=c2 --quiet 13_4"]


def test_a_scheduler_that_is_not_here_is_told_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands(monkeypatch, tmp_path, squeue=SQUEUE)
    monkeypatch.setenv(
        "PATH", f"{tmp_path / 'bin'}:/bin" if not Path("/bin/qstat").exists() else str(tmp_path)
    )
    answer = job_query.ask([(job_query.HostScheduler("pbs"), "1"), (job_query.HostScheduler("pbs"), "2")])
    assert answer.of(job_query.HostScheduler("pbs"), "1") is None
    assert answer.silent[job_query.HostScheduler("pbs")].startswith("cannot find qstat on PATH")


def test_slurm_finds_jobs_by_their_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also by the accounting, on the clusters that the script names, and with any path."""
    places = [str(tmp_path / name) for name in ("a|b, c", "d", "e")]
    for place, line in zip(places, ("", "#SBATCH --clusters=c2,c3\n", ""), strict=True):
        Path(place).mkdir()
        Path(place, "job.sh").write_text(f"#!/bin/bash\n{line}")
    squeue = (
        f"if [[ $* == *c3* ]]; then exit; fi; echo; if [[ $* == *c2* ]]; then echo '7|{places[1]}/job.sh';\n"
        f"else printf '%s\\n' '5|{places[0]}/job.sh' '6|{places[0]}/job.sh' '8|/d/job.sh' '9|(null)'; fi"
    )
    sacct = f'echo "$@" >> {{log}}; echo "3_1|{places[2]}"'
    log = commands(monkeypatch, tmp_path, squeue=squeue, sacct=sacct)
    now = time.time()
    assert dict(slurm.find(places, now)) == {places[0]: "6", places[1]: "7;c2"}
    assert not log.exists()
    assert dict(slurm.find(places, now - 1000)) == {places[0]: "6", places[1]: "7;c2", places[2]: "3"}
    commands(monkeypatch, tmp_path, squeue=squeue, sacct="exit 1")
    with pytest.raises(SchedulerError, match="sacct does not answer"):
        list(slurm.find(places, now - 1000))


def test_pbs_finds_jobs_by_their_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """OpenPBS writes a backslash before commas, Torque removes it and blanks; its tasks are those of one array."""
    said = "Variable_List = A=x\\,y,PBS_O_WORKDIR={},PBS_O_HOST=h\n"
    answers = {"7": "/a\\, b\\\\c", "8[]": "/a,d", "9": "/other"}
    text = "".join(f"Job Id: {job}.head\n    {said.format(path)}\n" for job, path in answers.items())
    (tmp_path / "answer").write_text(text)
    qselect = "[[ $1 != -x ]] || exit 2; printf '%s\\n' 7.head '8[0].head' '8[1].head' 9.head"
    qstat = f'echo "$@" >> {{log}}; cat {tmp_path}/answer'
    log = commands(monkeypatch, tmp_path, qselect=qselect, qstat=qstat)
    places = ["/a, b\\c", "/a, d", "/e"]
    assert dict(pbs.find(places, time.time())) == {places[0]: "7.head", places[1]: "8[].head"}
    assert log.read_text() == "-x -E -f 7 8[] 9\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1-00:00:01", 86401),
        ("02:03:04", 7384),
        ("5:00", 300),
        (" 1:02:03:04 ", 93784),
        ("90", 90),
        ("x-5:00", None),
        ("UNLIMITED", None),
        ("INVALID", None),
        ("", None),
    ],
)
def test_durations(text: str, expected: int | None) -> None:
    assert seconds(text) == expected


def test_a_job_is_live_until_it_has_ended() -> None:
    assert Job("1", "ending").live
    assert not Job("1", "timeout").live


@pytest.mark.parametrize(("squeue", "refused"), [("exit 0", False), ("echo 7", True), ("exit 1", True)])
def test_scancel_that_finds_nothing_to_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, squeue: str, refused: bool
) -> None:
    commands(monkeypatch, tmp_path, scancel="exit 1", squeue=squeue)
    if refused:
        with pytest.raises(SchedulerError, match="scancel refuses 7"):
            slurm.end(["7"], strict=False)
    else:
        slurm.end(["7"], strict=False)
    with pytest.raises(SchedulerError, match="scancel refuses 7"):
        slurm.end(["7"])


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("qdel: Job has finished 12[3].pbssrv", ""),
        ("qdel: nonexistent job id: 12[3]", ""),
        ("qdel: Request invalid for state of job MSG=invalid state for job - COMPLETE 12[3].tqsrv", ""),
        ("qdel: Unauthorized Request  12[3].tqsrv", "Unauthorized Request"),
        ("qdel: Job has finished 1\nqdel: cannot connect", "cannot connect"),
        ("", "it ended with status 1"),
    ],
)
def test_qdel_of_jobs_that_may_have_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, refused: str
) -> None:
    commands(monkeypatch, tmp_path, qdel=f"printf %s {shlex.quote(said)} >&2; exit 1")
    if refused:
        with pytest.raises(SchedulerError, match=refused):
            pbs.end(["12[3].pbssrv"], strict=False)
    else:
        pbs.end(["12[3].pbssrv"], strict=False)
    with pytest.raises(SchedulerError, match=r"qdel refuses 12\[3\]"):
        pbs.end(["12[3].pbssrv"])


@pytest.mark.parametrize(
    ("lines", "state", "status"),
    [
        ("job_state = F\n substate = 91\n run_count = 1\n Exit_status = 271", "cancelled", 271),
        ("job_state = F\n substate = 91\n run_count = 1\n Exit_status = 265", "cancelled", 265),
        ("job_state = F\n substate = 93\n run_count = 1\n Exit_status = 266", "cancelled", 266),
        ("job_state = F\n substate = 93\n run_count = 1\n Exit_status = 267", "failed", 267),
        ("job_state = F\n substate = 93\n run_count = 1\n Exit_status = 137", "failed", 137),
        ("job_state = F\n substate = 91\n run_count = 1\n Exit_status = 137", "cancelled", 137),
        ("job_state = F\n substate = 93\n run_count = 1\n Exit_status = 143", "cancelled", 143),
        ("job_state = F\n substate = 91\n run_count = 1\n Exit_status = 1", "failed", 1),
        ("job_state = F\n substate = 92\n run_count = 1\n Exit_status = 0", "finished", 0),
        ("job_state = F\n substate = 91", "cancelled", None),
        ("job_state = X\n substate = 70\n Exit_status = 1", "cancelled", None),
        ("job_state = C\n fault_tolerant = False", "cancelled", None),
        ("job_state = C\n fault_tolerant = False\n start_time = now\n exit_status = 266", "cancelled", 266),
        ("job_state = C\n start_time = now", "ended", None),
    ],
)
def test_how_a_job_of_pbs_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lines: str, state: str, status: int | None
) -> None:
    commands(monkeypatch, tmp_path, qstat=f"printf 'Job Id: 9.server\n {lines}\n\n'")
    assert [(job.state, job.status) for job in pbs.ask(["9"])] == [(state, status)]


def test_a_job_that_waited_for_what_cannot_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands(monkeypatch, tmp_path, qstat="printf 'Job Id: 9.server\n job_state = F\n substate = 92\n\n'")
    [job] = pbs.ask(["9"])
    assert (job.state, "dependency could no longer be met" in job.reason) == ("cancelled", True)


class Vancouver(Host):
    """A host whose clock shows another time than that of this machine."""

    def call(
        self,
        words: Sequence[str],
        directory: object = None,
        patience: float = 60,
        more: Mapping[str, str] | None = None,
    ) -> Done:
        return calls.call(words, None, patience, {"TZ": "America/Vancouver", **(more or {})})


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Vancouver", "UTC"])
def test_jobs_are_searched_from_the_same_time_in_all_time_zones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, zone: str
) -> None:
    qselect = 'touch -t "${2#-tc.ge.}" {log}'
    commands(monkeypatch, tmp_path, squeue="", sacct='touch -d "${5#--starttime=}" {log}', qselect=qselect)
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    since = time.time() - 3600
    try:
        for jobs in (slurm, pbs):
            assert list(jobs.find({"/runs/a"}, since, Vancouver())) == []
            assert 600 <= since - (tmp_path / "calls").stat().st_mtime <= 2 * 86400
            (tmp_path / "calls").unlink()
    finally:
        monkeypatch.undo()
        time.tzset()
