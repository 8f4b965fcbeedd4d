"""Runs of several parts on a host: steps, sweeps, arrays, attempts; and runs of several machines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.cluster import Cluster, start_now
from support.hosts import SMALL, Login, add, folder_there, live, offline, row_of, status, submitted
from support.laptop import LOSSY, Lab, Laptop, User
from support.require import absent
from support.waiting import wait_for

pytestmark = pytest.mark.xdist_group("hosts")

ON_PBS = pytest.mark.parametrize("login", ["openpbs", "torque"], indirect=True)


def add_login(laptop: Laptop, login: Login) -> None:
    """Write the host file of a login, whose runs are where its cluster has them."""
    laptop.knows("narval", login.user)
    runs = None if login.cluster.name == "slurm" else login.cluster.folder("runs")
    if runs:
        runs.chmod(0o777)
    add(laptop, login.user, scheduler=row_of(login), runs=runs)


def is_in(laptop: Laptop, state: str, *words: str) -> bool:
    return bool(status(laptop, *words)["state"] == state)


def test_a_line_that_loses_packets(lab: Lab, laptop: Laptop, user: User) -> None:
    if not lab.loses_packets:
        absent("iptables cannot lose packets here")
    laptop.knows("narval", user, LOSSY, HostKeyAlias="login1")
    add(laptop, user)
    (laptop.work / "data.bin").write_bytes(bytes(range(256)) * 8000)
    live(laptop, user.files / "jobgen", "--name", "exp")
    [there] = (user.files / "jobgen").glob("exp-*")
    assert (there / "code/data.bin").read_bytes() == (laptop.work / "data.bin").read_bytes()


STEPS = """
scheduler = "slurm"
[job]
name = "exp"
[resources]
nodes = 2
ranks_per_node = 1
accelerator = "cpu"
[launch]
launcher = "srun"
[[step]]
command = ["sh", "-c", "echo prepared > ../prepared"]
nodes = 1
[[step]]
command = ["sh", "-c", "cat ../prepared; echo '{\\"step\\": 3}' > $JOBGEN_RUN_DIR/metrics.jsonl"]
nodes = 1
[[step]]
command = ["sh", "-c", "echo beside"]
nodes = 1
parallel = true
"""


def test_steps(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    (laptop.work / "jobgen.toml").write_text(STEPS)
    done = laptop.run("jobgen", "submit", "--host", "narval")
    assert done.status == 0, done
    wait_for(lambda: is_in(laptop, "finished"), 60)
    out = laptop.run("jobgen", "logs").out
    assert ("prepared\n" in out, "beside\n" in out) == (True, True), out
    [run] = (laptop.work / "runs").iterdir()
    assert laptop.run("jobgen", "report", "exp").status == 0
    found = [path.relative_to(run).as_posix() for path in run.rglob("metrics.jsonl")]
    assert found == ["step-2/metrics.jsonl"]


SWEEP = """
scheduler = "slurm"
[job]
name = "exp"
[resources]
nodes = 1
ranks_per_node = 1
accelerator = "cpu"
[launch]
launcher = "none"
[program]
command = ["sh", "-c", "echo lr $1; [ $1 != 0.1 ]", "sh"]
[sweep]
lr = [0.1, 0.01]
"""


def test_a_sweep(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    (laptop.work / "jobgen.toml").write_text(SWEEP.replace("$1", "$JOBGEN_SWEEP_lr"))
    done = laptop.run("jobgen", "submit", "--host", "narval")
    assert done.status == 0, done
    wait_for(lambda: status(laptop)["tasks"] == {"failed": 1, "finished": 1}, 60)
    done = laptop.run("jobgen", "logs")
    assert (done.status, "is an array: say which task" in done.err) == (2, True), done
    [run] = (laptop.work / "runs").iterdir()
    for task, lr in enumerate(("0.1", "0.01")):
        assert f"lr {lr}\n" in laptop.run("jobgen", "logs", f"{run.name}/task-{task}").out
    done = laptop.run("jobgen", "fetch", f"{run.name}/task-1")
    assert done.status == 0, done
    assert laptop.run("jobgen", "report", run.name).status == 0


STAND_IN = Path(__file__).parents[1] / "support" / "nvidia-smi.sh"
PATH = "export PATH=$PWD:$PATH SMI_PLACE=$PWD SMI_PAUSE=0.1"


def test_work_on_each_node(laptop: Laptop, user: User) -> None:
    """Commands, staged files, caches and telemetry: the files are those of the code that travels."""
    laptop.knows("narval", user)
    add(laptop, user)
    (laptop.work / "data.txt").write_text("staged\n")
    (laptop.work / "nvidia-smi").write_bytes(STAND_IN.read_bytes())
    (laptop.work / "nvidia-smi").chmod(0o755)
    script = 'cat "$JOBGEN_STAGE/data.txt"; echo in $TRITON_CACHE_DIR; sleep 2'
    sizes = ("--nodes", "1", "--gpus-per-node", "1", "--launcher", "none", "--name", "exp", "--no-job")
    work = ("--stage", "data.txt", "--local-caches", "--gpu-telemetry", "--setup", PATH)
    hooks = ("--on-each-node", "echo before", "--after-on-each-node", "echo after")
    done = laptop.run("jobgen", "submit", "--host", "narval", *sizes, *work, *hooks, "--", "sh", "-c", script)
    assert done.status == 0, done
    wait_for(lambda: is_in(laptop, "finished"), 60)
    out = laptop.run("jobgen", "logs").out
    assert re.search(r"staged\nin /tmp/jobgen-\d+-1/caches/triton\n", out), out
    run = folder_there(user)
    [log] = run.glob("attempt-1/on-nodes/*.log")
    assert log.read_text() == "before\nafter\n"
    [devices] = run.glob("attempt-1/nodes/*/*.devices")
    assert devices.read_text().startswith("# 1 nvidia-smi\n")


@pytest.mark.parametrize("login", ["slurm", "torque"], indirect=True)
@pytest.mark.parametrize("pack", [(), ("--pack", "3")], ids=["array", "packed"])
def test_the_rest_of_an_array_goes_on_where_it_was(
    laptop: Laptop, login: Login, pack: tuple[str, ...]
) -> None:
    """Twice: the points that failed, in the directories of the first run."""
    add_login(laptop, login)
    script = 'echo "attempt $JOBGEN_ATTEMPT"; cd "$JOBGEN_RUN_DIR"; echo >> begun; [ $(wc -l < begun) -gt $JOBGEN_TASK ]'
    run = submitted(laptop, script, "--array", "0-2", *pack)

    def is_over(name: str, **tasks: int) -> None:
        wait_for(lambda: status(laptop, name)["tasks"] == tasks, 90)

    is_over(run, finished=1, failed=2)
    for number in (2, 3):
        done = laptop.run("jobgen", "submit", "--again", run)
        assert done.status == 0, done
        later = max(path.name for path in (laptop.work / "runs").iterdir() if path.name != run)
        if number == 2:
            is_over(run, finished=2, failed=1)
            is_over(later, finished=1, failed=1)
        else:
            is_over(run, finished=3)
            is_over(later, finished=1)
        logs = laptop.run("jobgen", "logs", f"{later}/task-2")
        assert f"attempt {number}\n" in logs.out, logs
    assert laptop.run("jobgen", "fetch", later, "task-2/begun").status == 0
    assert (laptop.work / "runs" / run / "task-2/begun").read_text() == "\n" * 3
    done = laptop.run("jobgen", "submit", "--again", run)
    assert (done.status, "all of its 3 tasks have finished" in done.err) == (2, True), done


@ON_PBS
def test_one_task_of_an_array_on_pbs(laptop: Laptop, login: Login) -> None:
    add_login(laptop, login)
    run = submitted(laptop, "echo task $JOBGEN_TASK; sleep 1000", "--array", "0-1")
    one = f"{run}/task-1"
    both = {"running": 2}
    wait_for(lambda: status(laptop)["tasks"] == both and (laptop.work / "runs" / one).exists(), 90)
    array = status(laptop)["id"]
    state = status(laptop, one)
    assert (state["state"], state["id"]) == ("running", array.replace("[]", "[1]")), state
    done = laptop.run("jobgen", "cancel", "--now", one)
    assert done.status == 0, done
    wait_for(lambda: is_in(laptop, "cancelled", one), 60)
    assert status(laptop, f"{run}/task-0")["state"] == "running"
    assert laptop.run("jobgen", "cancel", "--now", run).status == 0


def test_a_job_that_requeues_itself(laptop: Laptop, login: Login) -> None:
    """On Slurm as the same job, on PBS as another one, whose id is fetched."""
    add_login(laptop, login)
    script = 'echo "$JOBGEN_ATTEMPT" > "$JOBGEN_RUN_DIR/saved-step"; echo attempt $JOBGEN_ATTEMPT; '
    run = submitted(laptop, f"{script} [ $JOBGEN_ATTEMPT = 2 ] || exit 75", "--requeue", "2")
    first = (laptop.work / "runs" / run / "job-id").read_text().strip()  # before any look at the host

    def is_over() -> bool:
        state = status(laptop)
        if isinstance(login.cluster, Cluster) and state["attempts"] == 1 and state["state"] == "pending":
            start_now(login.cluster, first)
        return bool(state["state"] == "finished")

    wait_for(is_over, 120)
    state = status(laptop, run)
    assert (state["attempts"], state["id"] == first) == (2, login.cluster.name == "slurm"), state
    for attempt in (1, 2):
        assert f"attempt {attempt}\n" in laptop.run("jobgen", "logs", "--attempt", str(attempt)).out


def test_runs_of_two_hosts_and_of_this_machine(lab: Lab, laptop: Laptop, user: User) -> None:
    relay, other = laptop.relay(), lab.user("tcsh")
    laptop.knows("narval", user)
    laptop.knows("fir", other, relay=relay)
    for name, account in (("narval", user), ("fir", other)):
        add(laptop, account, name=name)
        words = ("submit", "--host", name, *SMALL, "--name", f"at-{name}", "--", "sleep", "1000")
        assert laptop.run("jobgen", *words).status == 0
    script = laptop.run("jobgen", "local", "--name", "here", *SMALL, "--", "true")
    assert laptop.run("bash", input=script.out).status == 0

    def listed() -> dict[str, tuple[str, str | None, bool]]:
        rows = json.loads(laptop.run("jobgen", "list", "--json").out)
        return {
            row["name"].partition("-20")[0]: (row["state"], row["host"], row["reachable"]) for row in rows
        }

    both = {"at-narval": ("running", "narval", True), "at-fir": ("running", "fir", True)}
    here = {"here": ("finished", None, True)}
    wait_for(lambda: listed() == both | here, 60)
    for run in (laptop.work / "runs").glob("at-*"):
        (run / "job-id").write_text("4711\n")  # of two schedulers
    done = laptop.run("jobgen", "cancel", "4711")
    assert (done.status, "4711 is a job's id on several machines, of 2 runs: at-" in done.err) == (2, True), (
        done
    )
    offline(laptop)
    relay.set(offline=True)
    assert listed() == both | here | {"at-fir": ("running", "fir", False)}
    relay.set()
    assert laptop.run("jobgen", "cancel", "--now", "at-narval", "at-fir").status == 0
