"""Steps that share nodes: two servers, and the trainer that asks them."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from support import boxes, jobs, warm_python
from support.cluster import SLURMS, Cluster
from support.processes import gone
from support.story import AnyCluster, clean, finish, lose, path_for
from support.waiting import wait_for

SERVER = """
import http.server, os, signal, sys, time

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ.get("CUDA_VISIBLE_DEVICES", "-").encode())

time.sleep(float(os.environ.get("DELAY", "0")))
if "DEAF" in os.environ:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "FAULT" in os.environ:
    sys.exit(int(os.environ["FAULT"]))
port = int(os.environ[f"JOBGEN_STEP_{sys.argv[-1]}_PORT"])
server = http.server.HTTPServer(("", port), Answer)
print("listening at", port, flush=True)
if os.path.exists("/mark"):  # of an image
    open("where", "w").write(open("/mark").read())
server.serve_forever()
"""
TRAINER = """
import os, pathlib, signal, sys, time, urllib.request

answers = []
for name in ("server", "judge"):
    hosts, port = (os.environ[f"JOBGEN_STEP_{name}_{key}"] for key in ("HOSTS", "PORT"))
    url = f"http://{hosts.split(',')[0]}:{port}"
    answers.append(urllib.request.urlopen(url, timeout=30).read().decode())
own, rank = os.environ.get("CUDA_VISIBLE_DEVICES", "-"), os.environ["RANK"]
pathlib.Path(f"seen-{rank}").write_text(" ".join([os.uname().nodename.partition(".")[0], own, *answers]))
if sys.argv[-1] == "deaf":
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(600)
if sys.argv[-1] == "wait":
    signal.signal(signal.SIGUSR1, lambda *_: (pathlib.Path(f"saved-{rank}").touch(), os._exit(75)))
    time.sleep(600)
if sys.argv[-1] == "again":
    sys.exit(75 if os.environ["JOBGEN_ATTEMPT"] == "1" else 0)
sys.exit(int(sys.argv[-1]))
"""
STEPS = """
[resources]
nodes = 2
{resources}
[launch]
launcher = "{launcher}"
[[step]]
name = "server"
command = ["server.py", "server"]
{part}
nodes = 1
ranks_per_node = 1
{server}
ready = {{ port = true, within = "{within}" }}
ends = "with trainer"
[[step]]
name = "judge"
command = ["server.py", "judge"]
{part}
nodes = 1
ranks_per_node = 1
parallel = true
env = {{ DELAY = "1" }}
ready = {{ line = "listening at", within = "60s" }}
ends = "with trainer"
[[step]]
name = "trainer"
command = ["train.py", "{act}"]
{rest}
starts = "after server and judge are ready"
"""
CORES = {
    "resources": 'ranks_per_node = 2\ncpus_per_node = 4\naccelerator = "cpu"',
    "part": "cores = 1",
    "rest": "cores = 2\nranks_per_node = 2",
}
DEVICES = {"resources": "gpus_per_node = 4\ncpus_per_node = 8", "part": "gpus = 1", "rest": "gpus = 2"}


def submit(
    cluster: AnyCluster,
    folder: Path,
    launcher: str,
    act: str = "0",
    options: Sequence[object] = (),
    **words: str,
) -> str:
    folder.chmod(0o777)
    (folder / "server.py").write_text(SERVER)
    (folder / "train.py").write_text(TRAINER)
    (folder / "path.sh").write_text(f"export PATH={shlex.quote(path_for(launcher, folder))}:$PATH\n")
    name, *more = ("mpirun", "--mpi", "mpich") if launcher == "mpich" else (launcher,)
    text = STEPS.format(**{**CORES, "server": "", "within": "60s", **words}, launcher=name, act=act)
    (folder / "job.toml").write_text(text)
    done = jobs.jobgen(
        *(*cluster.words, "--job", folder / "job.toml", "--source", folder / "path.sh", *more, *options),
        cwd=folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return cluster.submit(done.stdout, folder)


def check_that_nothing_is_left(folder: Path) -> None:
    assert not gone(folder, 30)


def seen(folder: Path) -> list[list[str]]:
    return [path.read_text().split() for path in sorted(folder.glob("seen-*"))]


CASES = [
    *(("slurm", launcher, "devices") for launcher in ("deepspeed", "accelerate", "mpich")),
    *((slurm, launcher, "devices") for slurm in SLURMS for launcher in ("srun", "torchrun", "mpirun")),
    *(
        (scheduler, launcher, "cores")
        for scheduler in ("openpbs", "torque")
        for launcher in ("torchrun", "mpirun")
    ),
]


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize(("scheduler", "launcher", "division"), CASES)
def test_two_servers_and_a_trainer(
    request: pytest.FixtureRequest, scheduler: str, launcher: str, division: str
) -> None:
    cluster: AnyCluster = request.getfixturevalue(f"{scheduler}_cluster")
    folder = cluster.folder("side")
    words = DEVICES if division == "devices" else CORES
    job = finish(cluster, submit(cluster, folder, launcher, **words))
    assert job.ok, job.output
    found = seen(folder)
    hosts = list(dict.fromkeys(host for host, *_ in found))
    assert (len(found), len(hosts)) == (4, 2), job.output
    expected = ["2,3", "0", "1"] if division == "devices" else ["-", "-", "-"]
    assert [rest for _, *rest in found] == [expected] * 4
    for number, name in enumerate(("server", "judge"), 1):
        assert re.search(rf"step {number} of 3, {name} is ready after \d+ s", job.output)
        assert re.search(rf"step {number} of 3, {name} was ended after \d+ s", job.output)
    check_that_nothing_is_left(folder)


class End(NamedTuple):
    """An end of the job: what TRAINER does, what the step server has in addition, what happens from outside when
    the trainer runs, the status of the job, a sentence, whether the trainer has saved (None: any), and options."""

    act: str
    server: str = ""
    outside: str = ""
    status: int | None = None
    sentence: str = ""
    saved: bool | None = False
    options: tuple[str, ...] = ()


ENDS = {
    "the trainer fails": End("7", status=7, sentence="step 3 of 3, trainer ended with status 7"),
    "a server dies before it is ready": End(
        *("0", 'env = { FAULT = "3" }', "", 3),
        "step 1 of 3, server has ended with status 3 before it was ready: nothing listens at port",
    ),
    "a server is late": End(
        *("0", 'env = { DELAY = "300" }', "", 124),
        "step 1 of 3, server is not ready after 5 s, its limit: nothing listens at port",
    ),
    "a server is killed": End("wait", "", "kill", 137, "step 1 of 3, server ended with status 137", True),
    "a signal": End("wait", "", "signal", 75, "step 1 of 3, server was ended", True),
    "jobgen cancel": End("wait", "", "cancel", 75, "step 1 of 3, server was ended", True),
    "the trainer is killed": End(
        "wait", "", "kill trainer", 137, "step 3 of 3, trainer ended with status 137"
    ),
    "it is deleted": End("wait", outside="delete", saved=None),  # Slurm itself ends its ranks
    "the deadline": End(
        *("wait", "", "", 75, "step 1 of 3, server was ended", True),
        ("--walltime", "2m", "--signal", "USR1@30"),
    ),
    "the wall time": End("deaf", 'env = { DEAF = "yes" }', options=("--walltime", "1m")),
}
ON_PBS = ("a server is killed", "the trainer is killed", "it is deleted", "the deadline", "the wall time")
VICTIMS = {"kill": "step-1", "kill trainer": "step-3"}


def act_on(cluster: AnyCluster, job: str, folder: Path, act: str) -> None:
    if act in VICTIMS:
        step = jobs.run_dir(folder / "runs") / "attempt-1" / VICTIMS[act]
        pid, host = jobs.process_of(step, 0)
        cluster.exec(host, ["kill", "-9", pid])
    elif act == "cancel":
        run = jobs.run_dir(folder / "runs")
        cluster.exec("head", [sys.executable, "-m", "jobgen", "cancel", run], cwd=folder)
    elif act == "delete":
        cluster.cancel(job)
    else:
        cluster.exec("head", ["scancel", "--batch", "--signal=USR1", job])


ENDINGS = [("slurm", end) for end in ENDS] + [(pbs, end) for pbs in ("openpbs", "torque") for end in ON_PBS]


@pytest.mark.parametrize(("scheduler", "name"), ENDINGS)
def test_an_end_leaves_nothing(request: pytest.FixtureRequest, scheduler: str, name: str) -> None:
    cluster: AnyCluster = request.getfixturevalue(f"{scheduler}_cluster")
    end, folder = ENDS[name], cluster.folder("end")
    launcher, words = ("srun", DEVICES) if scheduler == "slurm" else ("mpirun", CORES)
    words = {**words, "server": end.server, "within": "5s" if "late" in name else "60s"}
    job_id = submit(cluster, folder, launcher, end.act, end.options, **words)
    try:
        if end.outside:
            wait_for(lambda: len(seen(folder)) == 4, 150)
            time.sleep(1)
            act_on(cluster, job_id, folder, end.outside)
        job = finish(cluster, job_id)
        left = gone(folder, 40)
    finally:
        clean(cluster, job_id, folder)
    assert not left, job.output
    if end.status is not None:
        assert job.exit_code == end.status, job.output
    assert end.sentence in job.output
    assert end.act not in ("wait", "deaf") or len(seen(folder)) == 4, job.output
    saved = len(list(folder.glob("saved-*")))
    assert end.saved is None or saved == (4 if end.saved else 0), job.output


@pytest.mark.parametrize(
    "scheduler",
    [
        pytest.param(name, marks=pytest.mark.xdist_group(f"matrix-{name}"))
        for name in ("slurm", "openpbs", "torque")
    ],
)
def test_a_lost_node_leaves_nothing(request: pytest.FixtureRequest, scheduler: str) -> None:
    """The second node has two ranks of the trainer. It runs with the matrix, as others use the node, too."""
    cluster: AnyCluster = request.getfixturevalue(f"{scheduler}_cluster")
    folder = cluster.folder("lost")
    job_id = submit(cluster, folder, "torchrun", "wait")
    try:
        wait_for(lambda: len(seen(folder)) == 4, 150)
        hosts = [words[0] for words in seen(folder)]
        job = lose(cluster, job_id, folder, hosts[-1])
        left = gone(folder, 40)
    finally:
        clean(cluster, job_id, folder)
    assert job.exit_code != 0, job.output
    assert f"{hosts[-1]} does not answer any more" in job.output
    assert "step 1 of 3, server was ended" in job.output
    assert not left, job.output


def test_the_commands_show_the_steps(slurm_cluster: Cluster) -> None:
    folder = slurm_cluster.folder("shown")
    job_id = submit(slurm_cluster, folder, "srun", "wait")
    try:
        wait_for(lambda: len(seen(folder)) == 4, 150)
        run = jobs.run_dir(folder / "runs")
        shown = slurm_cluster.exec("head", [sys.executable, "-m", "jobgen", "status", run]).stdout
        assert re.search(
            r"step 1, server: ready, 00:00:\d\d\n  step 2, judge: ready, .*\n  step 3, trainer: running",
            shown,
        )
        assert jobs.jobgen("logs", run, "--step", "judge").stdout.startswith("0: listening at ")
        wrong = jobs.jobgen("logs", run, "--step", "juge")
        sentence = "no such step has begun in attempt-1: use server (1), judge (2) or trainer (3); did you mean judge?"
        assert sentence in wrong.stderr
        slurm_cluster.exec("head", ["scancel", "--batch", "--signal=USR1", job_id])
        slurm_cluster.wait(job_id)
    finally:
        clean(slurm_cluster, job_id, folder)
    steps = json.loads(jobs.jobgen("status", "--json", run).stdout)[0]["job_steps"]
    assert [(one["name"], one["state"], one["status"]) for one in steps] == [
        ("server", "stopped", None),
        ("judge", "stopped", None),
        ("trainer", "resumable", 75),
    ]
    assert jobs.jobgen("report", run, "-o", folder / "report.html").returncode == 0
    assert "<td>1 server</td><td>stopped</td>" in (folder / "report.html").read_text()


def test_a_server_that_no_launcher_starts(slurm_cluster: Cluster) -> None:
    folder = slurm_cluster.folder("none")
    job = finish(slurm_cluster, submit(slurm_cluster, folder, "srun", server='launcher = "none"'))
    assert job.ok, job.output
    assert "step 1 of 3, server, one process on 1 node" in job.output
    assert not gone(folder, 30)


def test_steps_of_an_array(slurm_cluster: Cluster) -> None:
    folder = slurm_cluster.folder("array")
    job_id = submit(slurm_cluster, folder, "srun", options=("--array", "0-1"))
    jobs_of_it = [slurm_cluster.wait(f"{job_id}_{task}") for task in (0, 1)]
    assert all(job.ok for job in jobs_of_it), jobs_of_it
    assert not gone(folder, 30)


@pytest.mark.parametrize(
    ("scheduler", "launcher"), [("slurm", "srun"), ("openpbs", "mpirun"), ("torque", "mpirun")]
)
def test_a_requeued_job_starts_its_servers_again(
    request: pytest.FixtureRequest, scheduler: str, launcher: str
) -> None:
    """With PBS the second attempt is another job."""
    cluster: AnyCluster = request.getfixturevalue(f"{scheduler}_cluster")
    folder = cluster.folder("again")
    job = finish(cluster, submit(cluster, folder, launcher, "again", ("--requeue", "1")))
    output = job.output
    if later := re.search(r"attempt 1 of 2; the next one is (\S+)", output):
        job = finish(cluster, later[1])
        output += job.output
    assert job.ok, output
    assert output.count("step 1 of 3, server is ready") == 2
    assert (jobs.run_dir(folder / "runs") / "steps-done").read_text() == "3\n"
    check_that_nothing_is_left(folder)


def test_the_spare_node_takes_part_in_the_preflight_only(slurm_cluster: Cluster) -> None:
    folder = slurm_cluster.folder("spare")
    options = ("--spare-nodes", "1", "--launcher", "srun")
    job = finish(slurm_cluster, submit(slurm_cluster, folder, "srun", options=options))
    assert job.ok, job.output
    assert "preflight passed: 3 host(s)" in job.output
    assert {host for host, *_ in seen(folder)} == {"node1", "node2"}
    assert not gone(folder, 30)


def test_a_step_in_a_container_beside_one_on_the_host(slurm_cluster: Cluster) -> None:
    folder = slurm_cluster.folder("box")
    image, path = boxes.image(folder), boxes.stand_ins(folder / "bin", "apptainer")
    binds = [*boxes.BINDS, *warm_python.folders()]
    more = f'container = "apptainer"\nimage = "{image}"\nbind = {json.dumps(binds)}'
    (folder / "apptainer.sh").write_text(f"export PATH={path}:$PATH\n")
    job_id = submit(slurm_cluster, folder, "srun", options=("--source", folder / "apptainer.sh"), server=more)
    job = finish(slurm_cluster, job_id)
    assert job.ok, job.output
    assert (folder / "where").read_text() == "in the container\n"
    assert not gone(folder, 30)
