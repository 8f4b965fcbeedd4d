"""What jobgen takes for a fact about PBS Pro and Torque, asked of a real OpenPBS and a real Torque."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support import ROOT, warm_python
from support.pbs import PbsCluster
from support.waiting import wait_until

from jobgen import JobgenError, JobSpec, render
from jobgen.check.checker import check
from jobgen.runs import logs
from jobgen.runs.node_files import Log


class Lab(NamedTuple):
    """A real PBS, and a folder that its user can write."""

    cluster: PbsCluster
    folder: Path

    @property
    def row(self) -> str:
        return self.cluster.kind.dialect

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.cluster.exec("head", words, cwd=self.folder, check=False)

    def qsub(self, lines: Sequence[str], *words: str, body: str = "true") -> subprocess.CompletedProcess[str]:
        """Submit a job with these directives."""
        script = self.folder / "job.sh"
        script.write_text("#!/bin/bash\n" + "".join(f"#PBS {line}\n" for line in lines) + f"{body}\n")
        return self.call("qsub", *words, script.name)

    def attributes(self, lines: Sequence[str]) -> dict[str, str]:
        """What qstat says of a job with these directives, which is held."""
        done = self.qsub(lines, "-h")
        assert done.returncode == 0, (lines, done.stderr)
        try:
            return self.cluster.facts(done.stdout.strip())
        finally:
            self.call("qdel", done.stdout.strip())

    def jobgen(self, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        command = [*warm_python.jobgen(), *map(str, words)]
        env |= {"PYTHONPATH": str(ROOT)}
        return self.cluster.exec("head", command, cwd=self.folder, env=env, check=False, timeout=120)

    def state(self, run: Path) -> dict[str, Any]:
        [found] = json.loads(self.jobgen("status", "--json", run).stdout)
        assert isinstance(found, dict)
        return found


def lab(cluster: PbsCluster) -> Iterator[Lab]:
    folder = cluster.folder("facts")
    yield Lab(cluster, folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def openpbs(openpbs_cluster: PbsCluster) -> Iterator[Lab]:
    yield from lab(openpbs_cluster)


@pytest.fixture
def torque(torque_cluster: PbsCluster) -> Iterator[Lab]:
    yield from lab(torque_cluster)


@pytest.fixture(params=["openpbs", "torque"])
def either(request: pytest.FixtureRequest) -> Lab:
    found: Lab = request.getfixturevalue(request.param)
    return found


# The user's directive, and what qstat says of it.
COMMON = {
    "-N mine": ("Job_Name", "mine"),
    "-A mine": ("Account_Name", "mine"),
    "-p 3": ("Priority", "3"),
    "-j n": ("Join_Path", "n"),
    "-e /tmp/mine": ("Join_Path", "n"),
    "-o /tmp/mine": ("Output_Path", ":/tmp/mine"),
    "-m n": ("Mail_Points", "n"),
    "-M mine@example.org": ("Mail_Users", "mine@example.org"),
    "-S /bin/sh": ("Shell_Path_List", "/bin/sh"),
    "-a 203101010101": ("Execution_Time", "2031"),
    "-l walltime=02:00:00": ("Resource_List.walltime", "02:00:00"),
    "-N mine -l walltime=02:00:00 -j n": ("Resource_List.walltime", "02:00:00"),
    "-l walltime=02:00:00 -N mine": ("Job_Name", "mine"),
}
PBSPRO = {
    **COMMON,
    "-l select=1:ncpus=1": ("Resource_List.select", "1:ncpus=1"),
    "-l place=pack:excl": ("Resource_List.place", "pack:excl"),
    "-J 0-5": ("array_indices_submitted", "0-5"),
    "-q workq": ("queue", "workq"),
}
TORQUE = {
    **COMMON,
    "-l nodes=1:ppn=3": ("Resource_List.nodes", "1:ppn=3"),
    "-t 0-5": ("job_array_request", "0-5"),
    "-q batch": ("queue", "batch"),
}
OURS = {
    "name": "ours", "account": "ours", "queue": "nowhere", "mail": "ours@example.org", "priority": 1,
    "log": "/tmp/ours", "begin": "2030-01-01T01:01", "walltime": "01:00:00", "nodes": 2,
}  # fmt: skip


def beside_ours(lab: Lab, line: str) -> dict[str, str]:
    """What qstat says of a job of ours with this directive of the user's."""
    options = dict(OURS)
    if not line.startswith("-q"):
        del options["queue"]
    if line.startswith(("-J", "-t")):
        options |= {"array": "0-3", "log": "/tmp/ours.%a"}
    if line.startswith(("-l select", "-l nodes")):
        del options["nodes"]
    spec = JobSpec(
        "pbs", ["true"], launcher="mpirun", accelerator="cpu", dialect=lab.row, directive=[line], **options
    )
    ours = [one.removeprefix("#PBS ") for one in render(spec).splitlines() if one.startswith("#PBS ")]
    return lab.attributes(ours)


@pytest.mark.parametrize("line", PBSPRO)
def test_a_user_s_directive_wins_on_pbs_pro(openpbs: Lab, line: str) -> None:
    name, value = PBSPRO[line]
    assert value in beside_ours(openpbs, line)[name]


@pytest.mark.parametrize("line", TORQUE)
def test_a_user_s_directive_wins_on_torque(torque: Lab, line: str) -> None:
    name, value = TORQUE[line]
    assert value in beside_ours(torque, line)[name]


# -------------------------------------------------------------------------------------------------- cancel

# What a script of jobgen does for this: it makes the file, and saves and leaves when it is asked.
ASKED = """
cd "$PBS_O_WORKDIR"
index=${PBS_ARRAY_INDEX:-${PBS_ARRAYID:-}}
[[ -z $index ]] || cd "task-$index"
mkdir attempt-1
: > attempt-1/control
echo "1 began $PBS_JOBID" > attempt-1/events
for _ in {1..240}; do
  if grep -q '^save' attempt-1/control; then echo '2 ended 75' >> attempt-1/events; exit 75; fi
  sleep 0.25
done
"""


def run_of(lab: Lab, body: str, *words: str, tasks: int = 0) -> Path:
    """A run as `jobgen submit` leaves it, of a script with this body."""
    run = lab.folder / "runs" / "exp-1"
    for directory in (run, *(run / f"task-{index}" for index in range(tasks))):
        directory.mkdir(parents=True)
        (directory / "job.sh").write_text(f"#!/bin/bash\n#PBS -l walltime=0:05:00\n{body}\n")
        shutil.chown(directory, "pbsu", "pbsu")
    (run / "plan.json").write_text('{"scheduler": "pbs"}')
    done = lab.cluster.exec("head", ["qsub", *words, "job.sh"], cwd=run)
    (run / "job-id").write_text(done.stdout)
    return run


def control(run: Path) -> str:
    path = run / "attempt-1/control"
    return path.read_text() if path.exists() else "absent"


def test_a_job_that_runs_is_asked_to_save(either: Lab) -> None:
    run = run_of(either, ASKED, "-N", "exp")
    assert wait_until(lambda: control(run) == "", 60)
    assert wait_until(lambda: either.state(run)["state"] == "running", 30)
    said = either.jobgen("cancel", "--yes")  # the newest one
    assert "is asked to save and end; cancel it again to end it at once" in said.stderr, said
    assert control(run) == "save cancel\n"
    assert wait_until(lambda: either.state(run)["state"] != "running", 60)
    assert wait_until(lambda: either.state(run)["state"] == "cancelled", 60), either.state(run)
    assert either.state(run)["status"] == 75
    said = either.jobgen("cancel", "exp")
    assert (said.returncode, "there is nothing to cancel" in said.stderr) == (2, True)


def test_a_job_that_does_not_listen_is_ended_the_second_time(either: Lab) -> None:
    run = run_of(either, ASKED.replace("^save", "never"), "-N", "exp")
    assert wait_until(lambda: control(run) == "" and either.state(run)["state"] == "running", 60)
    assert "is asked to save and end" in either.jobgen("cancel", run).stderr
    assert "is cancelled" in either.jobgen("cancel", run).stderr
    assert wait_until(lambda: either.state(run)["state"] == "cancelled", 60), either.state(run)


def test_a_job_that_waits_is_cancelled(either: Lab) -> None:
    run = run_of(either, ASKED, "-h")
    assert either.state(run)["state"] == "held"
    assert re.search(r"job \S+ is cancelled", either.jobgen("cancel", run).stderr)
    assert wait_until(lambda: either.state(run)["state"] == "cancelled", 30), either.state(run)
    assert either.state(run)["reason"] == ""


def test_the_tasks_of_an_array(either: Lab) -> None:
    """The one that runs is asked, those that wait leave the queue, and the one that has ended stays as it is."""
    array = ("-J", "0-3%1") if either.row == "pbspro" else ("-t", "0-3%1")
    done_first = ASKED.replace(
        "for _", '[[ $index != 0 ]] || { echo "2 ended 0" >> attempt-1/events; exit; }\nfor _'
    )
    run = run_of(either, done_first, *array, tasks=4)
    assert wait_until(lambda: control(run / "task-1") == "", 90)
    assert wait_until(lambda: either.state(run)["tasks"].get("running") == 1, 30), either.state(run)
    said = either.jobgen("cancel", run).stderr
    assert "is asked to save and end, and 2 of its tasks are taken out of the queue" in said
    assert control(run / "task-1") == "save cancel\n"
    assert wait_until(lambda: (run / "task-1/attempt-1/events").read_text().endswith("ended 75\n"), 60)
    assert wait_until(lambda: "running" not in either.state(run)["tasks"], 30)
    assert [control(run / f"task-{index}") for index in (0, 2, 3)] == ["", "absent", "absent"]
    assert either.state(run)["tasks"] == {"cancelled": 3, "finished": 1}


# -------------------------------------------------------------------------------------------------- states


@pytest.mark.parametrize("name", ["TERM", "USR1"])
def test_a_job_that_a_signal_ends(either: Lab, name: str) -> None:
    run = run_of(either, "sleep 60")
    assert wait_until(lambda: either.state(run)["state"] == "running", 60)
    either.cluster.signal((run / "job-id").read_text().strip(), name)
    assert wait_until(lambda: either.state(run)["state"] == "cancelled", 60), either.state(run)


def test_a_script_that_is_killed_has_failed(either: Lab) -> None:
    run = run_of(either, "kill -KILL $$")
    assert wait_until(lambda: either.state(run)["state"] == "failed", 60), either.state(run)
    assert either.state(run)["reason"] == "status 137: killed by SIGKILL"


def test_a_job_whose_dependency_cannot_come_about(openpbs: Lab) -> None:
    bad = openpbs.qsub([], body="exit 3").stdout.strip()
    openpbs.cluster.wait(bad)
    run = run_of(openpbs, ASKED, "-W", f"depend=afterok:{bad}")
    assert wait_until(lambda: openpbs.state(run)["state"] == "cancelled", 30), openpbs.state(run)
    assert "dependency could no longer be met" in openpbs.state(run)["reason"]


# ------------------------------------------------------------------------------------------- what is asked for


@pytest.fixture
def queues(either: Lab) -> Iterator[dict[str, str]]:
    """Queues of which qsub takes no job, none at once, and none that is large or long."""
    made = {
        "bare": "",
        "stopped": "queue_type=Execution,enabled=True",
        "short": "queue_type=Execution,enabled=True,started=True,resources_max.walltime=24:00:00",
    }
    names = {key: f"{key}{either.folder.name[-8:]}".replace("_", "x") for key in made}
    for key, attributes in made.items():
        qmgr(either, f"create queue {names[key]} {attributes}")
    yield names
    for name in names.values():
        qmgr(either, f"delete queue {name}")


def qmgr(lab: Lab, line: str) -> None:
    lab.cluster.exec("head", ["qmgr", "-c", line.strip()], root=True)


def test_the_doctor_knows_what_qsub_refuses(either: Lab, queues: dict[str, str]) -> None:
    job = (*either.cluster.words, "--accelerator", "cpu", "--launcher", "torchrun", "--no-preflight")
    no_torch = "/usr/local/bin:/usr/bin:/bin"  # which takes seconds to look at
    for words, states in {
        ("--queue", "nowhere"): ("problem", "ok"),
        ("--queue", queues["bare"]): ("problem", "ok"),
        ("--queue", queues["stopped"]): ("warning", "ok"),
        ("--queue", queues["short"], "--walltime", "48h"): ("problem", "ok"),
        ("--nodes", "9"): ("ok", "problem"),
        ("--cpus-per-rank", "9"): ("ok", "problem"),
        ("--nodes", "3"): ("ok", "ok"),
    }.items():
        done = either.jobgen("doctor", "--json", *job, *words, "--", "true", PATH=no_torch)
        found = json.loads(done.stdout)["findings"]
        said = {one["check"]: one["state"] for one in found}
        assert (said["queue"], said["nodes"]) == states, (words, found)


def test_a_new_site_has_the_queues_that_take_jobs(either: Lab, queues: dict[str, str]) -> None:
    path = "/opt/pbs/bin" if either.row == "pbspro" else "/opt/torque/bin"  # no other scheduler is there
    command = [
        "/usr/bin/env",
        f"PATH={path}",
        sys.executable,
        "-m",
        "jobgen",
        "site",
        "new",
        "-o",
        "new.toml",
        "--force",
        "--submit-test",
    ]
    done = either.cluster.exec("head", command, cwd=either.folder, env={"PYTHONPATH": str(ROOT)})
    assert "the hosts have what a job of" in done.stderr, done.stderr
    assert re.search(r"\(qsub, job \d+", done.stderr), done.stderr
    text = (either.folder / "new.toml").read_text()
    assert [name in text for name in (queues["bare"], queues["stopped"], queues["short"])] == [
        False,
        False,
        True,
    ]


def test_a_reservation_by_the_name_that_is_printed(openpbs: Lab) -> None:
    """It is a queue without the name of the server."""
    begin = time.strftime("%H%M", time.localtime(time.time() + 7200))
    name = openpbs.call("pbs_rsub", "-R", begin, "-D", "7200", "-l", "select=1:ncpus=8").stdout.split()[0]
    try:
        script = render(JobSpec("pbs", ["true"], reservation=name, accelerator="cpu", launcher="mpirun"))
        lines = [one.removeprefix("#PBS ") for one in script.splitlines() if one.startswith("#PBS ")]
        assert wait_until(lambda: openpbs.qsub([f"-q {name.partition('.')[0]}"], "-h").returncode == 0, 30)
        assert openpbs.attributes(lines)["queue"] == name.partition(".")[0]
    finally:
        openpbs.call("pbs_rdel", name)


def test_a_log_with_a_colon(either: Lab) -> None:
    """qsub takes what is before it for a host, but not in a path from the root."""
    options = {"accelerator": "cpu", "launcher": "mpirun", "dialect": either.row}
    with pytest.raises(JobgenError, match="as a host"):
        render(JobSpec("pbs", ["true"], log="x:y.log", **options))
    assert "tmp/x:y.log" not in either.attributes(["-o x.log"])["Output_Path"]
    assert either.attributes(["-o /tmp/x:y.log"])["Output_Path"].endswith(":/tmp/x:y.log")


# ------------------------------------------------------------------------------------------------ dependencies


def ended(lab: Lab, status: int) -> str:
    job = lab.qsub([], body=f"exit {status}").stdout.strip()
    lab.cluster.wait(job)
    return job


def submit_after(lab: Lab, after: str) -> subprocess.CompletedProcess[str]:
    options = ("--accelerator", "cpu", "--launcher", "torchrun", "--no-preflight", "--directive=-h")
    return lab.jobgen("submit", *lab.cluster.words, *options, "--after", after, "--", "true")


@pytest.mark.parametrize(
    ("kind", "status"), [("afterok", 0), ("afterany", 3), ("afternotok", 3), ("after", 0)]
)
def test_a_dependency_that_is_met_already(either: Lab, kind: str, status: int) -> None:
    done = submit_after(either, f"{kind}:{ended(either, status)}")
    assert done.returncode == 0, done.stderr
    assert f"is {'failed' if status else 'finished'} already: the new one does not wait for it" in done.stderr
    facts = either.cluster.facts(done.stdout.strip())
    either.call("qdel", done.stdout.strip())
    assert (facts["job_state"], "depend" in facts) == ("H", False)


@pytest.mark.parametrize(("kind", "status"), [("afterok", 3), ("afternotok", 0)])
def test_a_dependency_that_cannot_be_met(either: Lab, kind: str, status: int) -> None:
    done = submit_after(either, f"{kind}:{ended(either, status)}")
    assert (done.returncode, "and the new one would never begin" in done.stderr) == (2, True)
    assert not (either.folder / "runs").exists()


def test_a_dependency_on_a_job_that_runs_and_on_none(either: Lab) -> None:
    job = either.qsub([], "-h").stdout.strip()
    done = submit_after(either, job)
    assert "depend" in either.cluster.facts(done.stdout.strip()), done.stderr
    either.call("qdel", done.stdout.strip())
    either.call("qdel", job)
    assert "does not know job 999999" in submit_after(either, "999999").stderr


def test_a_dependency_on_a_run_that_pbs_has_forgotten(either: Lab) -> None:
    run = run_of(either, "true")
    (run / "job-id").write_text("999999.server\n")
    (run / "attempt-1").mkdir()
    (run / "attempt-1/events").write_text("1 began 999999.server\n2 ended 0\n")
    done = submit_after(either, "999999")
    assert "job 999999 is finished already" in done.stderr, done
    either.call("qdel", done.stdout.strip())
    (run / "attempt-1/events").write_text("1 began 999999.server\n2 ended 1\n")
    assert "job 999999 is failed, and the new one would never begin" in submit_after(either, "999999").stderr


# --------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["1st", "x" * 20, "a.b_c-d+e", "x" * 230])
def test_names(either: Lab, name: str) -> None:
    render(JobSpec("pbs", ["true"], name=name, accelerator="cpu", launcher="mpirun", dialect=either.row))
    assert either.attributes([f"-N {name}"])["Job_Name"] == name


def test_where_the_output_of_a_task_is(either: Lab) -> None:
    array = ("-J", "0-1") if either.row == "pbspro" else ("-t", "0-1")
    run = run_of(either, 'echo "this is $PBS_JOBNAME"', "-N", "exp", "-j", "oe", *array, tasks=2)
    number = (run / "job-id").read_text().partition("[")[0]
    separator = "." if either.row == "pbspro" else "-"
    expected = run / f"exp.o{number}{separator}1"
    assert wait_until(expected.exists, 60), list(run.iterdir())
    (run / "task-1/job-id").write_text(f"{number}[1].server\n")
    assert logs.find(run / "task-1", logs.Which(None, None)) == (0, Log(expected))


# --------------------------------------------------------------------------------------------------- check

REFUSED = (
    "-l select=0:ncpus=1",
    "-l select=1:ncpu=4",
    "-l select=1:ncpus=four",
    "-l select=1:ncpus=-4",
    "-l select=1:gpus=1",
    "-l select=1:mpiprocs=x",
    "-l select=1:mpiprocs=1.5",
    "-l select=1:ncpus=4:",
    "-l select=:ncpus=4",
    "-l select=1:ncpus=4;place=scatter",
    "-l place=scatter",
    "-l select=1:ncpus=1 -l place=spread",
    "-l select=1:ncpus=1 -l place=scatter:exclusive",
    "-l select=1:ncpus=1 -l place=scatter:excl:shared",
    "-l gpus=2",
    "-l procs=4",
    "-l qos=high",
    "-l advres=x",
    "-l naccesspolicy=singlejob",
    "-l feature=x",
    "-l cput=1h",
    "-J 0-9:0",
    "-J 0-9 -r n",
    "-r maybe",
    "-p 2000",
    "-p -1025",
    "-p high",
    "-c x",
    "-k x",
    "-a 20:00",
    "-a 2030-01-31",
    "-S bash",
    "-S /bin/bash,/bin/sh",
    "-S /bin/bash -l",
    "-o x:y:z",
    "-W depend=afterok:",
    "-W depend=foo:1",
    "-W depend:afterok:1",
    "-W depend=aftercorr:1",
    "-W block=yes",
    "-W x=y",
    "-W stagein=x",
    "-A",
    "-l",
    "-Z",
    "-I",
    "-c w=0",
    "-k d",
    "-k en",
    "-r Y",
    "-a 2561",
    "-S bin/bash",
    "-R x",
    "-W depend=AFTEROK:1",
    "-W depend=afterok:x",
    "-W umask=x",
    "-W sandbox=x",
    "-W run_count=x",
    "-W stagein=a@b",
    "-l cput=x",
    "-l walltime=-5",
    "-l select=1+",
    "-l select=a",
    "-l select=1:ncpus=1:ncpus=2",
    "-l select=1:ncpus=4:mem",
    "-l select=1:ncpus=1 -l place=scatter:",
    "-q",
    "-J 5-5",
)
TAKEN = (
    "-l walltime=1:00:00.5",
    "-C #XX",
    "-p 1023",
    "-p -1024",
    "-p +5",
    "-c c=10",
    "-c s",
    "-k doe",
    "-k oed",
    "-k n",
    "-r n",
    "-a 2000",
    "-a 203101012000.30",
    "-a 01012000",
    "-S /bin/bash@pbsn1,/bin/sh",
    "-W depend=afterok:1:2,afterany:3.pbssrv",
    "-W depend=on:1,beforeok:2",
    "-W umask=022",
    "-W sandbox=PRIVATE",
    "-W stagein=/a@h:/b",
    "-W run_count=3",
    "-W tolerate_node_failures=all",
    "-l select=1+2:ncpus=2",
    "-l select=ncpus=4",
    "-l select=1:ncpus=0",
    "-l select=1:ncpus=1 -l place=Scatter",
    "-l select=1:ncpus=1 -l place=group=host:scatter",
    "-l select=1:ncpus=1 -l place=vscatter:exclhost:group=host",
    "-l cput=1:00:00",
    "-o /tmp/a:b",
    "-R oe",
    "-J 0-9:2%3",
)


def errors(line: str) -> list[str]:
    source = f"#!/bin/bash\n#PBS {line}\ntrue\n".encode()
    return [one.reason for one in check(source, scheduler="pbspro") if one.severity == "error"]


@pytest.mark.parametrize("line", REFUSED)
def test_check_finds_what_qsub_refuses(openpbs: Lab, line: str) -> None:
    assert openpbs.qsub([line], "-h").returncode != 0
    assert errors(line)


@pytest.mark.parametrize("line", TAKEN)
def test_check_has_nothing_against_what_qsub_takes(openpbs: Lab, line: str) -> None:
    done = openpbs.qsub([line], "-h")
    assert done.returncode == 0, done.stderr
    openpbs.call("qdel", done.stdout.strip())
    assert errors(line) == []


def test_many_jobs_are_asked_for_by_one_connection(openpbs: Lab) -> None:
    """Each connection uses up a reserved port of the host for a minute."""
    count = "ss --no-header --tcp --numeric state time-wait | wc -l"
    ask = "from jobgen.schedulers import pbs_jobs; print(pbs_jobs.ask(list(map(str, range(900000, 900050)))))"
    before = int(openpbs.call("sh", "-c", count).stdout)
    words = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-c", ask]
    assert openpbs.call(*words).stdout == "[]\n"
    assert int(openpbs.call("sh", "-c", count).stdout) < before + 20


def test_torque_appends_the_index_to_the_name_of_each_log(torque: Lab) -> None:
    """As its server writes the paths of a task: src/server/job_func.c."""
    folder = torque.folder / "logs"
    folder.mkdir()
    (folder / "job.sh").write_text("#!/bin/bash\n#PBS -l walltime=0:01:00\necho a\n")
    shutil.chown(folder, "pbsu", "pbsu")
    torque.cluster.exec("head", ["qsub", "-t", "2", "-o", "a.$PBS_ARRAYID", "-e", "b", "job.sh"], cwd=folder)
    assert wait_until(lambda: len([*folder.iterdir()]) == 3, 60)
    assert sorted(one.name for one in folder.iterdir()) == ["a.2-2", "b-2", "job.sh"]
