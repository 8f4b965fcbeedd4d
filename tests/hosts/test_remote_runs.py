"""The life of a run on a host, by the commands that a person types on the laptop."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from support import ROOT
from support.hosts import SMALL, Login, add, folder_there, live, offline, row_of, status, submitted
from support.laptop import LAPTOP_HOME, PASSWORD, Lab, Laptop, User
from support.waiting import wait_for

pytestmark = pytest.mark.xdist_group("remote-runs")


@pytest.mark.parametrize("shell", ["bash", "tcsh", "fish"])
def test_a_whole_life(lab: Lab, laptop: Laptop, shell: str) -> None:
    user = lab.user(shell)
    laptop.knows("narval", user)
    add(laptop, user)
    live(laptop, user.files / "jobgen", "--name", "exp")


def test_a_whole_life_on_slurm_24(new_lab: Lab) -> None:
    with new_lab.laptop() as laptop:
        user = new_lab.user()
        laptop.knows("narval", user)
        add(laptop, user)
        live(laptop, user.files / "jobgen", "--name", "exp")
        assert laptop.run("jobgen", "fetch", "exp").status == 0
        assert laptop.run("jobgen", "report", "exp").status == 0


@pytest.mark.parametrize("login", ["openpbs", "torque"], indirect=True)
def test_a_whole_life_on_pbs(laptop: Laptop, login: Login) -> None:
    runs = login.cluster.folder("runs")
    runs.chmod(0o777)
    laptop.knows("narval", login.user)
    add(laptop, login.user, scheduler=row_of(login), runs=runs)
    live(laptop, runs, "--name", "exp")


def test_files_are_fetched_and_verified(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    script = "mkdir -p ../checkpoints/step-1; head -c 9000000 /dev/urandom > ../checkpoints/step-1/weights; "
    run = submitted(laptop, script + 'echo \'{"step": 1, "loss": 2.5}\' > ../metrics.jsonl')
    wait_for(lambda: status(laptop)["state"] == "finished", 30)
    there, here = folder_there(user), laptop.work / "runs" / run
    assert status(laptop)["loss"] == 2.5
    assert not (here / "checkpoints").exists()
    done = laptop.run("jobgen", "fetch", run)
    assert done.status == 0, done
    assert not (here / "checkpoints").exists()
    (here / "checkpoints/step-1").mkdir(parents=True)
    weights = (there / "checkpoints/step-1/weights").read_bytes()
    (here / "checkpoints/step-1/weights.part").write_bytes(weights[:5_000_000])  # an earlier call was cut
    done = laptop.run("jobgen", "fetch", run, "checkpoints/step-1")
    assert done.status == 0, done
    assert (here / "checkpoints/step-1/weights").read_bytes() == weights
    assert [path.name for path in (here / "checkpoints/step-1").iterdir()] == ["weights"]
    inode = (here / "checkpoints/step-1/weights").stat().st_ino
    assert laptop.run("jobgen", "fetch", run, "checkpoints/step-1").status == 0
    assert (here / "checkpoints/step-1/weights").stat().st_ino == inode  # it was here
    (there / "[a]*").write_text("text")
    assert laptop.run("jobgen", "fetch", run, "[a]*").status == 0  # a name, and no pattern
    done = laptop.run("jobgen", "fetch", run, "checkpoint/*")
    assert (done.status, "has no file checkpoint/* at narval" in done.err) == (2, True), done


def test_the_laptop_needs_only_ssh_and_git(laptop: Laptop, user: User) -> None:
    """As macOS has them: none of the other commands are those of GNU there."""
    laptop.knows("narval", user)
    programs = laptop.home / "programs"
    programs.mkdir()
    for name in ("ssh", "git"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    jobgen = (sys.executable, "-m", "jobgen")
    path = f"PATH={LAPTOP_HOME}/programs"
    assert laptop.run("git", "init", "-q").status == 0
    commands = (
        ("host", "add", "narval"),
        ("host", "check", "narval"),
        ("submit", "--host", "narval", *SMALL, "--name", "exp", "--", "sh", "-c", "echo hello"),
        ("logs", "-f"),
        ("status",),
        ("fetch", "exp", "*"),
        ("report", "exp"),
        ("submit", "--host", "narval", *SMALL, "--name", "other", "--", "sleep", "1000"),
        ("cancel", "--now", "other"),
    )
    for words in commands:
        done = laptop.run(
            "/usr/bin/env", "-i", path, f"HOME={LAPTOP_HOME}", f"PYTHONPATH={ROOT}", *jobgen, *words
        )
        assert done.status == 0, done
        assert words[0] != "logs" or "hello\n" in done.out


def test_cancel_saves_first(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    run = submitted(laptop, "while :; do sleep 0.2; done")
    wait_for(lambda: status(laptop)["state"] == "running", 30)
    wait_for(lambda: status(laptop)["attempts"] == 1, 30)
    done = laptop.run("jobgen", "cancel", run)
    assert (done.status, "is asked to save and end" in done.err) == (0, True), done
    done = laptop.run("jobgen", "cancel", run)
    wait_for(lambda: status(laptop)["state"] == "cancelled", 60)


def test_without_a_connection_the_last_state_is_shown(laptop: Laptop, user: User) -> None:
    relay = laptop.relay()
    laptop.knows("narval", user, relay=relay)
    add(laptop, user)
    run = submitted(laptop, "sleep 1000")
    relay.set(offline=True)
    laptop.disconnect()
    state = status(laptop)  # nobody has looked at it
    assert (state["state"], state["reachable"], state["as_of"] > 0) == ("pending", False, True), state
    relay.set()
    wait_for(lambda: status(laptop)["state"] == "running", 30)
    laptop.run("ssh", "-O", "exit", "narval")
    relay.set(cut=("up", 0))
    offline(laptop)
    state = status(laptop)
    assert (state["state"], state["reachable"]) == ("running", False), state
    listed = laptop.run("jobgen", "list")
    assert (listed.status, "running" in listed.out, "narval" in listed.err) == (0, True, True), listed
    for command in ("cancel", "fetch"):
        done = laptop.run("jobgen", command, run)
        assert (done.status, len(done.err.splitlines())) == (5, 1), done
    relay.set()
    assert laptop.run("jobgen", "cancel", "--now", run).status == 0


def test_the_end_of_a_long_log_is_fetched_alone(laptop: Laptop, user: User) -> None:
    relay = laptop.relay()
    laptop.knows("narval", user, relay=relay)
    add(laptop, user)
    run = submitted(laptop, "seq -f 'line %.0f of the log' 1000000; exit 3")
    wait_for(lambda: status(laptop)["state"] == "failed", 60)
    done = laptop.run("jobgen", "logs", "--tail", "3", run)
    assert "line 1000000 of the log" in done.out, done
    report = laptop.run("jobgen", "report", run)
    assert report.status == 0, report
    assert "line 1000000 of the log" in (laptop.work / "report.html").read_text()
    offline(laptop)
    assert sum(one.down for one in relay.connections) < 12_000_000
    whole = laptop.run("jobgen", "logs", run)
    assert "\nline 1 of the log\n" in whole.out
    assert "\0" not in whole.out


def test_the_code_travels_with_its_changes(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    project = laptop.work / "project"
    (project / "exp").mkdir(parents=True)
    (project / "lib.py").write_text("WORD = 'before'\n")
    (project / "exp/train.py").write_text(
        "import sys; sys.path.insert(0, '..'); import lib; print('word', lib.WORD)\n"
    )
    for words in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x"),
    ):
        assert laptop.run("git", *words, cwd=project).status == 0
    (project / "lib.py").write_text("WORD = 'after'\n")
    done = laptop.run(
        *(
            "jobgen",
            "submit",
            "--host",
            "narval",
            *SMALL,
            "--name",
            "exp",
            "--",
            "/usr/bin/python3",
            "train.py",
        ),
        cwd=project / "exp",
    )
    assert (done.status, "is sent, what git does not ignore: 2 files" in done.err) == (0, True), done
    done = laptop.run("jobgen", "logs", "-f", cwd=project / "exp")
    assert "word after\n" in done.out, done


def test_secrets_are_in_no_command_line_and_not_here(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    user.command("ps-log", ":")
    (laptop.work / ".jobgenignore").write_text("*.env\n")
    (laptop.work / "my.env").write_text("SECOND_TOKEN=hunter3\n")
    done = laptop.run(
        *("jobgen", "submit", "--host", "narval", *SMALL, "--name", "exp", "--env", "HF_TOKEN"),
        *("--env-file", "my.env", "--", "sh", "-c", 'echo "${#HF_TOKEN} ${#SECOND_TOKEN}"; sleep 1'),
        env={"HF_TOKEN": "hunter22"},
    )
    assert done.status == 0, done
    there = folder_there(user)
    assert (there / "environment").stat().st_mode & 0o777 == 0o600
    for place in (laptop.work / "runs", laptop.home):
        found = subprocess.run(["grep", "-rl", "hunter", place], capture_output=True, text=True).stdout
        assert found == ""
    done = laptop.run("jobgen", "logs", "-f")
    assert "8 7\n" in done.out, done
    wait_for(lambda: status(laptop)["state"] == "finished", 30)
    wait_for(lambda: not (there / "environment").exists(), 30)


def test_two_login_nodes_behind_one_name(laptop: Laptop, user: User) -> None:
    relay = laptop.relay("login1", "login2")
    laptop.knows("narval", user, relay=relay, HostKeyAlias="login1")
    add(laptop, user)
    run = submitted(laptop, "sleep 1000")
    laptop.disconnect()
    wait_for(lambda: status(laptop)["state"] == "running", 30)
    laptop.disconnect()
    assert laptop.run("jobgen", "cancel", "--now", run).status == 0
    assert len(relay.connections) >= 3


def test_a_command_that_hangs_there_makes_one_job(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    user.hang("sbatch", after=True)
    words = ("jobgen", "submit", "--host", "narval", *SMALL, "--name", "hangs", "--", "sleep", "1000")
    first = laptop.start(*words)
    wait_for(lambda: user.calls("sbatch") == 1, 30)
    first.kill()
    first.wait()
    laptop.disconnect()
    user.command("sbatch", 'exec "$real" "$@"')
    done = laptop.run(*words)
    assert (done.status, "earlier submission" in done.err) == (0, True), done
    listed = laptop.run("ssh", "narval", "squeue --noheader --states=all --name=hangs --format=%i")
    assert [line for line in listed.out.splitlines() if line.isdecimal()] == [done.out.strip()]
    assert laptop.run("jobgen", "cancel", "--now", "hangs").status == 0


def test_a_busy_scheduler_is_asked_again(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    user.fail("sbatch", "sbatch: error: Batch job submission failed: Resource temporarily unavailable", 1)
    done = laptop.run("jobgen", "submit", "--host", "narval", *SMALL, "--name", "exp", "--", "true")
    assert (done.status, user.calls("sbatch")) == (0, 2), done


def test_a_refused_job_leaves_nothing(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    words = ("--host", "narval", *SMALL, "--name", "exp", "--queue", "nowhere", "--", "true")
    done = laptop.run("jobgen", "submit", *words)
    assert (done.status, "nvalid partition" in done.err) == (1, True), done
    assert not (laptop.work / "runs").exists()
    assert [path.name for path in (user.files / "jobgen").iterdir()] == [".store"]


def test_a_run_is_submitted_again_at_its_host(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    first = submitted(laptop, "true")
    done = laptop.run("jobgen", "submit", "--again", first)
    assert done.status == 0, done
    assert len([path for path in (user.files / "jobgen").iterdir() if path.name.startswith("exp-")]) == 2


def test_only_a_command_on_a_terminal_asks_for_the_second_factor(lab: Lab, laptop: Laptop) -> None:
    user = lab.user(login="two")
    laptop.knows("narval", user)
    add(laptop, user)
    words = ("jobgen", "submit", "--host", "narval", *SMALL, "--name", "exp", "--", "true")
    began = time.monotonic()
    done = laptop.run(*words)
    assert (done.status, "narval cannot be reached" in done.err) == (5, True), done
    assert time.monotonic() - began < 20
    done = laptop.run_on_a_terminal(*words, answers={"assword:": PASSWORD})
    assert done.status == 0, done
    assert status(laptop)["reachable"]


def test_the_whole_life_of_a_run_that_is_resumed(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    script = (
        'trap \'exit 75\' USR1 TERM; echo \'{"event": "step", "step": 1, "loss": 2.5}\' >> ../metrics.jsonl; '
        "[ ! -e ../second ] || exit 0; : > ../second; while :; do sleep 0.2; done"
    )
    run = submitted(laptop, script)
    wait_for(lambda: status(laptop)["step"] == 1, 30)
    assert laptop.run("jobgen", "cancel", run).status == 0
    wait_for(lambda: status(laptop)["status"] == 75, 60)
    there = folder_there(user)
    state = status(laptop)
    assert f"submit job.sh again at narval, from {user.home / 'jobgen' / there.name}" in state["reason"], (
        state
    )
    done = laptop.run("ssh", "narval", f"cd {user.home / 'jobgen' / there.name} && sbatch job.sh")
    assert "Submitted batch job" in done.out
    wait_for(lambda: status(laptop)["attempts"] == 2, 60)
    watched = laptop.run("jobgen", "status", run, "--watch", timeout=120)
    assert "attempt 2, finished" in watched.out, watched
    assert (status(laptop)["attempts"], status(laptop)["state"]) == (2, "finished")
    assert laptop.run("jobgen", "fetch", run).status == 0
    assert laptop.run("jobgen", "report", run).status == 0
    assert "2.5" in (laptop.work / "report.html").read_text()
