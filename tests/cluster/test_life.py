"""The life of jobs on the test cluster, by the commands that a person types: submit, status, logs, cancel, list,
diff, on Slurm, OpenPBS and Torque."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, warm_python
from support.cluster import SLURMS, Cluster, start_now
from support.jobs import PROBE, env_options
from support.pbs import PbsCluster
from support.story import AnyCluster
from support.waiting import wait_for, wait_until

# One after the other, so that a job begins as soon as it is submitted.
pytestmark = pytest.mark.xdist_group("life")

STOPPABLE = Path(PROBE).with_name("stoppable.py")
LEARNING = """
import json, os, sys, time
rate = float(sys.argv[sys.argv.index("--lr") + 1])
while "--wait" in sys.argv and not os.path.exists("begin"):
    time.sleep(0.1)
for step in range(1, 4):
    print("step", step, "of rank", os.environ["RANK"], flush=True)
    if os.environ["RANK"] == "0":
        with open(os.environ["JOBGEN_RUN_DIR"] + "/metrics.jsonl", "a") as file:
            print(json.dumps({"event": "step", "step": step, "loss": 2.5 - rate * step}), file=file)
    time.sleep(0.5)
"""
SMALL = (
    "--nodes",
    "2",
    "--ranks-per-node",
    "1",
    "--accelerator",
    "cpu",
    "--cpus-per-rank",
    "1",
    "--no-preflight",
    "--venv",
    sys.prefix,
)


@pytest.fixture(params=[*SLURMS, "openpbs", "torque"])
def cluster(request: pytest.FixtureRequest) -> AnyCluster:
    found: AnyCluster = request.getfixturevalue(f"{request.param}_cluster")
    return found


@pytest.fixture
def here(request: pytest.FixtureRequest) -> Path:
    name = "cluster" if "cluster" in request.fixturenames else "each_slurm"
    folder: Path = request.getfixturevalue(name).folder("life")
    (folder / "learn.py").write_text(LEARNING)
    return folder


def jobgen(
    cluster: AnyCluster, cwd: Path, *words: object, check: bool = True
) -> subprocess.CompletedProcess[str]:
    command = [*warm_python.jobgen(), *map(str, words)]
    environment = {"PYTHONPATH": str(ROOT)}
    return cluster.exec("head", command, cwd=cwd, check=check, timeout=120, env=environment)


def submit(cluster: AnyCluster, cwd: Path, *words: object) -> tuple[str, Path]:
    """The id, which is all that is printed, and the run directory."""
    launcher = ("--launcher", "srun" if cluster.name == "slurm" else "mpirun")
    done = jobgen(cluster, cwd, "submit", *cluster.words, *SMALL, *launcher, *words)
    assert re.fullmatch(r"\d+(\[\])?(\.\w+)?\n", done.stdout), done
    return done.stdout.strip(), Path(re.findall(r"files are in (.*)", done.stderr)[-1])


def state(cluster: AnyCluster, cwd: Path, *names: object) -> dict[str, Any]:
    [found] = json.loads(jobgen(cluster, cwd, "status", "--json", *names).stdout)
    assert isinstance(found, dict)
    return found


def test_submitted_watched_and_finished(cluster: AnyCluster, here: Path) -> None:
    job, run = submit(cluster, here, "--name", "exp", "--", "learn.py", "--lr", "0.1", "--wait")
    assert run.parent == here / "runs"
    assert re.fullmatch(r"exp-\d{8}-\d{6}", run.name)
    assert (run / "submitted-from").read_text() == f"{here}\n"
    now = state(cluster, here)
    assert (now["name"], now["id"].partition(".")[0]) == (run.name, job.partition(".")[0])
    assert now["state"] in ("pending", "running")
    (here / "begin").touch()
    said = jobgen(cluster, here, "logs", "-f", run.name).stdout
    # PBS brings the output at the end: until then it is the log of the first node, with the numbers of its ranks.
    for rank, number in ((0, ""), (1, "")) if cluster.name == "slurm" else ((0, "(?:0: )?"),):
        assert re.findall(rf"^{number}step (\d) of rank {rank}\n", said, re.MULTILINE) == ["1", "2", "3"]
    over = state(cluster, here, "exp")
    assert (over["state"], over["status"], over["attempts"]) == ("finished", 0, 1)
    assert (over["step"], over["loss"]) == (3, pytest.approx(2.2))
    # PBS calls a job finished before its output has come.
    wait_for(lambda: f"job {job} finished after" in jobgen(cluster, here, "logs", job).stdout)
    assert jobgen(cluster, here, "logs", "--rank", "1").stdout.count("of rank 1") == 3
    assert "finished" in jobgen(cluster, here, "status", run).stdout
    head, line = jobgen(cluster, here, "list").stdout.splitlines()
    assert head.split() == ["RUN", "JOB", "SCHEDULER", "STATE", "ATTEMPTS", "STEP", "TIME", "AGE"]
    assert line.split()[0] == run.name
    title = "Slurm" if cluster.name == "slurm" else "PBS"
    assert line.split()[2:6] == [title, "finished", "1", "3"]
    assert [path.name for path in (here / "runs").iterdir()] == [run.name]  # the job made no other


def test_a_refusal_is_one_sentence_and_leaves_nothing(cluster: AnyCluster, here: Path) -> None:
    words = ("submit", *cluster.words, *SMALL, "--launcher", "mpirun", "--queue", "nowhere", "--", "learn.py")
    done = jobgen(cluster, here, *words, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert line.startswith(f"jobgen: {'sbatch' if cluster.name == 'slurm' else 'qsub'} refuses the job: ")
    assert re.search("nvalid partition|Unknown queue", line)
    assert not (here / "runs").exists()


def stoppable(cluster: AnyCluster, here: Path, *words: object) -> Path:
    """A run whose ranks wait to be stopped, and have begun."""
    (here / "seen").mkdir()
    (here / "seen").chmod(0o777)
    _, run = submit(cluster, here, *env_options({"PROBE_DIR": here / "seen"}), *words, "--", STOPPABLE)
    wait_for(lambda: len(list((here / "seen").glob("ready-*"))) == 2)
    (run / "first-id").write_text((run / "job-id").read_text())
    return run


def test_a_cancelled_job_saves_first_and_is_not_submitted_again(cluster: AnyCluster, here: Path) -> None:
    run = stoppable(cluster, here, "--requeue", "3")
    assert "is asked to save and end" in jobgen(cluster, here, "cancel", run.name).stderr
    wait_for(lambda: state(cluster, here)["state"] not in ("running", "ending"))
    assert list((here / "seen").glob("stopped-*"))  # srun ends the other one when the first is gone
    over = state(cluster, here)
    assert over["state"] == "cancelled", over
    assert [path.name for path in run.glob("attempt-*")] == ["attempt-1"]
    done = jobgen(cluster, here, "cancel", run.name, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        f"jobgen: {run.name} is cancelled: there is nothing to cancel\n",
    )


def test_logs_are_followed_over_attempts_and_the_run_keeps_its_name(cluster: AnyCluster, here: Path) -> None:
    """On Slurm the job is requeued, on PBS another one goes on."""
    run = stoppable(cluster, here, "--requeue", "3", "--env", "PROBE_LAST=2")
    with ThreadPoolExecutor() as pool:
        reader = pool.submit(jobgen, cluster, here, "logs", "-f", "--rank", "0")
        for attempt in (1, 2):
            wait_for(lambda attempt=attempt: begun(cluster, here, attempt))
            now = state(cluster, here)
            assert (now["name"], now["state"], now["attempts"]) == (run.name, "running", attempt)
            with (run / f"attempt-{attempt}" / "control").open("a") as control:
                control.write("save test\n")
        assert reader.result(timeout=60).returncode == 0
    over = state(cluster, here)
    assert (over["state"], over["attempts"]) == ("finished", 2)
    assert (over["id"] != (run / "first-id").read_text().strip()) == (cluster.name != "slurm")


def begun(cluster: AnyCluster, here: Path, attempt: int) -> bool:
    """Whether both ranks of the attempt have; one that is requeued is saved the pause that Slurm makes."""
    ready = [here / "seen" / f"ready-{rank}" for rank in (0, 1)]
    if all(path.exists() and path.read_text() == str(attempt) for path in ready):
        return True
    if isinstance(cluster, Cluster) and (now := state(cluster, here))["state"] == "pending":
        start_now(cluster, now["id"])
    return False


def test_cancelled_at_once(each_slurm: Cluster, here: Path) -> None:
    run = stoppable(each_slurm, here, "--env", "PROBE_ACT=deaf")
    assert "is cancelled" in jobgen(each_slurm, here, "cancel", "--now", run.name).stderr
    wait_for(lambda: state(each_slurm, here)["state"] == "cancelled")


@pytest.mark.parametrize("array", [(), ("--array", "0-2")])
def test_a_waiting_job_is_cancelled(each_slurm: Cluster, here: Path, array: tuple[str, ...]) -> None:
    """scancel finds no job any more that it could signal."""
    _, run = submit(each_slurm, here, *array, "--begin", "+2h", "--", "learn.py", "--lr", "0.1")
    said = jobgen(each_slurm, here, "cancel", run.name).stderr
    assert re.fullmatch(rf"jobgen: {run.name}: job \d+ is cancelled\n", said)


def test_the_same_once_more(cluster: AnyCluster, here: Path) -> None:
    """The same script byte for byte, from the plan alone, wherever that is said."""
    _, first = submit(
        cluster, here, *env_options({"ODD": "it's $(odd)\n\udcff"}), "--", "learn.py", "--lr", "1"
    )
    done = jobgen(cluster, here.parent, "submit", "--again", first)
    second = Path(re.findall(r"files are in (.*)", done.stderr)[-1])
    assert second.parent == first.parent
    assert (second / "job.sh").read_bytes() == (first / "job.sh").read_bytes()
    assert "warning" not in done.stderr
    jobgen(cluster, here, "cancel", "--now", first, second, check=False)


def test_an_array_is_counted_and_its_tasks_have_logs(each_slurm: Cluster, here: Path) -> None:
    _, run = submit(each_slurm, here, "--array", "0-2", "--", "learn.py", "--lr", "0.1")
    wait_for(lambda: state(each_slurm, here)["tasks"] == {"finished": 3})
    assert state(each_slurm, here)["state"] == "finished"
    done = jobgen(each_slurm, here, "logs", check=False)
    assert (done.returncode, done.stderr) == (
        2,
        f"jobgen: {run.name} is an array: say which task, such as {run.name}/task-0\n",
    )
    assert "step 3 of rank 0" in jobgen(each_slurm, here, "logs", "-f", f"{run.name}/task-2").stdout
    job = (run / "job-id").read_text().strip()
    assert state(each_slurm, here, f"{job}_1")["step"] == 3


def test_a_cancelled_array_counts_the_tasks_that_waited(cluster: AnyCluster, here: Path) -> None:
    _, run = submit(cluster, here, "--array", "0-9%2", "--", "learn.py", "--lr", "0.1", "--wait")
    wait_for(lambda: state(cluster, here)["tasks"].get("running") == 2)
    wait_for(lambda: len(list(run.glob("task-*/attempt-1"))) == 2)
    jobgen(cluster, here, "cancel", "--now", run.name)
    wait_for(lambda: state(cluster, here)["state"] == "cancelled")
    assert state(cluster, here)["tasks"] == {"cancelled": 10}


@pytest.mark.parametrize("name", ["openpbs", "torque"])
def test_a_forgotten_job_says_nothing_about_the_others(name: str, request: pytest.FixtureRequest) -> None:
    """The scheduler keeps no record of it, as after some minutes on Torque."""
    cluster: PbsCluster = request.getfixturevalue(f"{name}_cluster")
    here = cluster.folder("forgotten")
    (here / "learn.py").write_text(LEARNING)
    words = ("--", "learn.py", "--lr", "0.1", "--wait")
    live, first = submit(cluster, here, *words)
    try:
        job, second = submit(cluster, here, "--directive=-h", *words)
        cluster.purge(job)
        if name == "openpbs":
            cluster.exec("head", ["qdel", "-x", job], root=True)  # out of the history, too
        wait_for(lambda: "Unknown Job Id" in cluster.exec("head", ["qstat", job], check=False).stderr)
        found = json.loads(jobgen(cluster, here, "list", "--json").stdout)
        states = {one["name"]: one["state"] for one in found}
        assert (states[first.name] in ("pending", "running"), states[second.name]) == (True, "gone")
        nowhere = {"PBS_SERVER": "nowhere", "PBS_DEFAULT": "nowhere", "PYTHONPATH": str(ROOT)}
        done = cluster.exec("head", [*warm_python.jobgen(), "list", "--json"], cwd=here, env=nowhere)
        assert {one["state"] for one in json.loads(done.stdout)} == {"unknown"}
        assert "cannot connect to server nowhere" in done.stderr
    finally:  # it would hold its nodes
        cluster.cancel(live)


def test_what_the_ranks_saved_is_said_after_qdel(torque_cluster: PbsCluster) -> None:
    here = torque_cluster.folder("saved")
    run = stoppable(torque_cluster, here)
    torque_cluster.cancel((run / "job-id").read_text().strip())
    how = f"all 2 ranks saved (status 75); to go on, submit job.sh again from runs/{run.name}"
    # Torque calls a job completed before its ranks have ended.
    wait_for(lambda: state(torque_cluster, here)["reason"] == how, 60)
    assert state(torque_cluster, here)["state"] == "cancelled"


def test_diff_shows_what_was_changed_and_what_came_of_it(each_slurm: Cluster, here: Path) -> None:
    runs = [submit(each_slurm, here, "--", "learn.py", "--lr", rate)[1] for rate in ("0.1", "0.2")]
    for run in runs:
        jobgen(each_slurm, here, "logs", "-f", run)
    done = jobgen(each_slurm, here, "diff", *runs, check=False)
    expected = "program\n  --lr: 0.1 -> 0.2\nresults\n  loss: 2.2 -> 1.9\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, expected, "")
    assert jobgen(each_slurm, here, "submit", "--again", runs[0]).returncode == 0
    jobgen(each_slurm, here, "logs", "-f")
    newest = max((here / "runs").iterdir(), key=lambda run: (run / "plan.json").stat().st_mtime)
    assert jobgen(each_slurm, here, "diff", runs[0], newest).stdout == ""


SECRETIVE = """
import hashlib, os, sys, time
place = f"{sys.argv[1]}/{os.environ['JOBGEN_ATTEMPT']}-"
run = os.environ["JOBGEN_RUN_DIR"]
with open(run + "/env.sh") as file:
    shown = [one for one in ("HF_TOKEN", "MY_API_KEY") if os.environ[one] in file.read()]
mode = oct(os.stat(run + "/environment").st_mode & 0o777)
with open(place + os.environ["RANK"], "w") as file:
    words = (os.environ["HF_TOKEN"] + os.environ["MY_API_KEY"]).encode()
    file.write(f"{hashlib.sha256(words).hexdigest()} {mode} {shown}")
while not all(os.path.exists(place + rank) and os.path.getsize(place + rank) for rank in "01"):
    time.sleep(0.1)  # the end of one rank ends the other
sys.exit(75 if os.environ["JOBGEN_ATTEMPT"] == "1" else 0)
"""


@pytest.mark.parametrize("other", [False, True])
def test_a_secret_reaches_each_rank_of_each_attempt_and_no_other_file(
    cluster: AnyCluster, here: Path, other: bool
) -> None:
    """On the other node, too, by srun, pbs_tmrsh, pbsdsh or ssh; on Slurm the job is requeued, on PBS another one
    goes on. One variable is named, and the other one is set by a script that the job sources."""
    (here / "seen").mkdir()
    (here / "seen").chmod(0o777)
    (here / "secretive.py").write_text(SECRETIVE)
    secret = "xyzzy 'of' xyzzy"
    (here / "own.sh").write_text("MY_API_KEY=xyzzy$((40 + 2))\nexport MY_API_KEY\n")
    on_slurm = (["srun"], ["mpirun", "--remote", "ssh"])
    launcher = [
        "--launcher",
        *(on_slurm if isinstance(cluster, Cluster) else (["mpirun"], ["torchrun"]))[other],
    ]
    words = ["submit", *cluster.words, *SMALL, *launcher, "--requeue", "2", "--env", "HF_TOKEN"]
    words += ["--source", str(here / "own.sh")]
    command = [*warm_python.jobgen(), *words, "--", "secretive.py", str(here / "seen")]
    cluster.exec("head", command, cwd=here, env={"HF_TOKEN": secret}, timeout=120)
    seen = [here / "seen" / f"{attempt}-{rank}" for attempt in (1, 2) for rank in (0, 1)]

    def over() -> bool:
        now = state(cluster, here)
        if isinstance(cluster, Cluster) and now["state"] == "pending" and now["attempts"]:
            start_now(cluster, now["id"])
        return now["state"] in ("finished", "failed")

    assert wait_until(over, 200), cluster.facts(state(cluster, here)["id"])
    said = [path.read_text() for path in here.glob("runs/*/jobgen*.*")]
    assert state(cluster, here)["state"] == "finished", said
    both = hashlib.sha256(f"{secret}xyzzy42".encode()).hexdigest()
    assert {path.read_text() for path in seen} == {f"{both} 0o600 []"}
    holders = [path for path in here.rglob("*") if path.is_file() and b"xyzzy" in path.read_bytes()]
    assert holders == [here / "own.sh"]
    assert not [*here.glob("runs/*/env*")]
