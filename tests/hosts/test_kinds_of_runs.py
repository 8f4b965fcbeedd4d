"""Runs of several parts on a host: steps, sweeps, arrays, attempts; and runs of several machines."""

from __future__ import annotations

import json

import pytest
from support.cluster import Cluster, start_now
from support.hosts import SMALL, Login, add, live, offline, row_of, status, submitted
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
    first = status(laptop)["id"]

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
