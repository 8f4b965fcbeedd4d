"""What jobgen reads in the recorded answers of OpenPBS 23.06 and Torque 6.1.3, which tools/write_pbs_answers.py writes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.answers import ANSWERS, commands, read

from jobgen.hosts.calls import Done, SchedulerError, complaint
from jobgen.schedulers import detection, pbs_cluster
from jobgen.schedulers import pbs_jobs as pbs
from tools.write_pbs_answers import JOBS, UNKNOWN

KINDS = ("openpbs", "torque")
DIALECTS = {"openpbs": "pbspro", "torque": "torque"}
ENDS = {
    "done": ("finished", 0, ""),
    "failed": ("failed", 3, ""),
    "walltime": ("timeout", {"openpbs": -29, "torque": -11}, "it exceeded its wall time"),
    "cput": ("timeout", {"openpbs": 137, "torque": -12}, "it exceeded its CPU time (cput)"),
    "deleted": ("cancelled", 271, ""),
    "never": ("cancelled", None, ""),
    "live": ("running", None, ""),
    "held": ("held", None, ""),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def recorded(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of one of them print its answers."""
    answers = [answer for path in sorted((ANSWERS / kind).glob("*.txt")) for answer in read(path)]
    monkeypatch.setenv("PATH", commands(tmp_path, answers))


def asked(kind: str, name: str) -> list[str]:
    """The ids in the first question of a file."""
    return [word for word in read(ANSWERS / kind / f"{name}.txt")[0].words[1:] if not word.startswith("-")]


@pytest.mark.usefixtures("recorded")
def test_live_ended_and_unknown_jobs_in_one_question(kind: str) -> None:
    ids = asked(kind, "jobs")
    assert ids[len(JOBS) :] == list(UNKNOWN)
    jobs = {job.id.partition(".")[0]: job for job in pbs.ask(ids)}
    assert list(jobs) == ids[: len(JOBS)]
    expected = {
        name: (state, status[kind] if isinstance(status, dict) else status, reason)
        for name, (state, status, reason) in ENDS.items()
    }
    found = {name: jobs[word] for name, word in zip(JOBS, ids, strict=False)}
    assert {name: (job.state, job.status, job.reason) for name, job in found.items()} == expected
    assert 3500 < (found["live"].seconds_left or 0) <= 3600


@pytest.mark.usefixtures("recorded")
def test_arrays_that_run_and_that_were_deleted(kind: str) -> None:
    live, ended, _ = asked(kind, "arrays")
    jobs = pbs.ask(asked(kind, "arrays"))
    states = {
        array: [job.state for job in jobs if job.id.startswith(array[:-1]) and job.task is not None]
        for array in (live, ended)
    }
    waiting = "pending" if kind == "openpbs" else "held"
    assert states == {live: ["running", "running", waiting, waiting], ended: ["cancelled"] * 4}
    whole = [job.state for job in jobs if job.task is None]
    assert whole == (["running", "cancelled"] if kind == "openpbs" else [])


@pytest.mark.usefixtures("recorded")
def test_jobs_of_which_none_is_known() -> None:
    assert pbs.ask(UNKNOWN) == []


@pytest.mark.usefixtures("recorded")
def test_a_word_that_is_no_id() -> None:
    with pytest.raises(SchedulerError, match="illegally formed job identifier: 12x"):
        pbs.ask(["12x"])


def test_a_server_that_cannot_be_reached(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = read(ANSWERS / kind / "no-server.txt")
    monkeypatch.setenv("PATH", commands(tmp_path, answers))
    with pytest.raises(SchedulerError, match="cannot connect to server nowhere"):
        pbs.ask([answers[0].words[-1]])


@pytest.mark.usefixtures("recorded")
def test_a_user_without_jobs() -> None:
    assert list(pbs.find(["/home/me/runs"], time.time())) == []


@pytest.mark.usefixtures("recorded")
def test_queues_and_nodes(kind: str) -> None:
    facts = pbs_cluster.facts()
    [queue] = facts.queues
    assert queue.name == {"openpbs": "workq", "torque": "batch"}[kind]
    assert (queue.enabled, queue.started, queue.most_nodes) == (True, True, 3)
    [nodes] = queue.kinds
    assert (nodes.nodes, nodes.cores, nodes.devices) == (3, 8, (("", 2),))
    assert nodes.memory
    assert facts.unread == ()


def test_its_version_tells_which_it_is(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = commands(tmp_path, read(ANSWERS / kind / "version.txt"))
    monkeypatch.setenv("PATH", path.partition(":")[0])  # this machine may have a Slurm
    assert detection.detect()[0] == DIALECTS[kind]


def test_the_answers_of_qsub(kind: str) -> None:
    [made] = read(ANSWERS / kind / "qsub.txt")
    [job] = pbs.submitted(made.out)
    assert job.partition(".")[0].isdecimal()
    for refused in read(ANSWERS / kind / "qsub-errors.txt"):
        assert pbs.submitted(refused.out + refused.err) == []
        assert complaint(Done(refused.status, refused.out, refused.err)).startswith("qsub: ")


@pytest.mark.usefixtures("recorded")
def test_qdel_of_jobs_that_have_ended(kind: str) -> None:
    for answer in read(ANSWERS / kind / "qdel-errors.txt"):
        job = answer.words[-1]
        pbs.end([job], strict=False)
        with pytest.raises(SchedulerError, match=f"qdel refuses {job}"):
            pbs.end([job])
