"""Hosts that fail, connections that die unseen, and jobs that write hostile files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from support.hosts import SMALL, add, folder_there, offline, status
from support.laptop import LAPTOP_HOME, Done, Lab, Laptop, User
from support.processes import processes_of
from support.waiting import wait_for

pytestmark = pytest.mark.xdist_group("bad-hosts")


def submit(laptop: Laptop, *program: str) -> Done:
    return laptop.run("jobgen", "submit", "--host", "narval", *SMALL, "--name", "exp", "--", *program)


def run_of(laptop: Laptop) -> Path:
    [run] = (laptop.work / "runs").glob("exp-*")
    return run


def is_over(laptop: Laptop) -> bool:
    done = laptop.run("jobgen", "status", "--json")
    return bool(json.loads(done.out)[0]["state"] == "finished")


def test_a_host_without_the_command_of_the_scheduler(lab: Lab, laptop: Laptop) -> None:
    user = lab.user(without=["sbatch", "squeue"])
    laptop.knows("narval", user)
    add(laptop, user)
    file = laptop.home / ".config/jobgen/hosts/narval.toml"
    text = file.read_text().partition("[variables]")[0]
    file.write_text(f'{text}[variables]\nPATH = "{user.home.parent}/Debian-without-sbatch-squeue"\n')
    done = submit(laptop, "true")
    assert (done.status, "cannot find sbatch on the PATH of narval" in done.err) == (1, True), done
    assert not (laptop.work / "runs").exists()
    assert not (user.files / "jobgen").exists()


def test_a_folder_of_runs_that_cannot_be_used(lab: Lab, laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user, runs=user.home / "100%j")
    done = submit(laptop, "true")
    assert (done.status, "has a % or" in done.err) == (2, True), done
    small = lab.user(home="small")
    laptop.knows("small", small)
    laptop.run("ssh", "small", "head -c 1000000 /dev/zero > full")
    add(laptop, small, name="small")
    done = laptop.run("jobgen", "submit", "--host", "small", *SMALL, "--", "true")
    assert (done.status, "No space left on device" in done.err) == (2, True), done
    assert "exp" not in laptop.run("ssh", "small", "ls jobgen").out
    assert not (laptop.work / "runs").exists()


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ("echo no more >&2; exit 3", 1, "no command runs at narval: the files of the login shell there"),
        ("cat > /dev/null", 1, "such as ~/.bashrc, read the input of each command; let them read only if"),
        ("read -r answer", 1, "nothing can be sent to narval"),
        ("exec 2>&1", 0, "submitted"),
        ("yes x | head -c 1000000; set -u", 0, "submitted"),
    ],
)
def test_files_of_the_login_shell(laptop: Laptop, user: User, line: str, status: int, words: str) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    file = user.files / ".bashrc"
    file.write_text(f"{line}\n{file.read_text()}")
    done = submit(laptop, "true")
    assert (done.status, words in done.err) == (status, True), done
    assert status == 0 or not (laptop.work / "runs").exists()


def test_a_host_that_stops_answering_is_left_in_time(laptop: Laptop, user: User) -> None:
    """Before its name, in the exchange of keys, and while the user logs in."""
    relay = laptop.relay()
    laptop.knows("whole", user, relay=relay)
    assert laptop.run("ssh", "whole", "exit 255").status == 255
    begin, processes = time.monotonic(), []
    for number, after in enumerate((0, 100, relay.connections[0].down - 800)):
        name = f"narval{number}"
        laptop.knows(name, user, relay=laptop.relay(cut=("down", after), then="stall"))
        add(laptop, user, name=name)
        words = ("jobgen", "submit", "--host", name, *SMALL, "--", "true")
        processes += [laptop.start(*words) for _ in range(2)]  # the second one waits for the first
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert (process.returncode, "has not answered in time" in err or "cannot be reached" in err) == (
            5,
            True,
        )
    assert time.monotonic() - begin < 60  # 19 s on an idle machine
    assert not (laptop.work / "runs").exists()


def test_a_dead_connection_is_replaced(laptop: Laptop, user: User) -> None:
    relay = laptop.relay()
    laptop.knows("narval", user, relay=relay)
    add(laptop, user)
    assert submit(laptop, "sleep", "1000").status == 0
    offline(laptop)  # the process is killed, and its socket stays
    for _ in range(2):
        assert laptop.run("jobgen", "status").status == 0
    assert len(relay.connections) == 2
    for file in (laptop.home / ".cache/jobgen/ssh").glob("used-*"):
        os.utime(file, (0, 0))
    with relay.sleep():
        begin = time.monotonic()
        done = laptop.run("jobgen", "status")
        assert ("running" in done.out or "pending" in done.out, done.err) == (True, ""), done
        assert time.monotonic() - begin < 20
    assert len(relay.connections) == 3
    assert laptop.run("jobgen", "cancel", "--now", "exp").status == 0


_HOSTILE = r"""
cd ..
there=$PWD
host='{"host": "evil", "directory": "/x"}'
echo "$host" > host.json
echo 'another text' > job.sh
record=$(printf 'x\ngrow 0 %d ' "${#host}")$there/host.json
mkdir -p "$record"
echo > "$record/$(printf '\n%s\n' "$host")a.log"
mkdir attempt-2
echo hostile > ../../victim
echo "1 output $there/../../victim" > attempt-2/events
mkfifo status.json fifo.log
ln -s /etc/passwd linked.log
echo text > "$(printf 'broken\nline.log')"
"""


def test_a_hostile_job_changes_nothing_outside_of_its_files(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    (laptop.work / "hostile.sh").write_text(_HOSTILE)
    (laptop.work / "victim").write_text("mine\n")
    assert submit(laptop, "bash", "hostile.sh").status == 0
    run = run_of(laptop)
    before = [(run / name).read_bytes() for name in ("host.json", "job.sh")]
    wait_for(lambda: is_over(laptop), 30)
    laptop.run("jobgen", "logs")
    laptop.run("jobgen", "fetch", "exp", "*")
    assert [(run / name).read_bytes() for name in ("host.json", "job.sh")] == before
    assert (laptop.work / "victim").read_text() == "mine\n"
    assert not [path for path in run.rglob("*") if path.is_symlink() or "\n" in path.name]


def test_a_job_that_ended_unseen_is_not_made_again(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    user.hang("sbatch", after=True)
    words = ("jobgen", "submit", "--host", "narval", *SMALL, "--name", "exp", "--", "true")
    first = laptop.start(*words)
    wait_for(lambda: user.calls("sbatch") == 1, 30)
    offline(laptop)
    first.communicate(timeout=60)
    user.command("sbatch", 'exec "$real" "$@"')
    there = user.files / "jobgen"
    wait_for(lambda: any(" ended " in file.read_text() for file in there.glob("exp-*/*/events")), 30)
    done = laptop.run(*words)
    assert (done.status, "it has ended: finished" in done.err) == (0, True), done
    assert len(list(there.glob("exp-*"))) == 1
    again = laptop.run(*words)  # the user knows that it has ended
    assert (again.status, again.out != done.out) == (0, True), again


def test_what_is_here_of_a_log_is_printed_without_a_connection(laptop: Laptop, user: User) -> None:
    relay = laptop.relay()
    laptop.knows("narval", user, relay=relay)
    add(laptop, user)
    assert submit(laptop, "echo", "hello").status == 0
    wait_for(lambda: "\nhello\n" in laptop.run("jobgen", "logs").out, 30)
    relay.set(offline=True)
    offline(laptop)
    done = laptop.run("jobgen", "logs")
    assert (done.status, "\nhello\n" in done.out) == (0, True), done
    assert done.err.count("narval cannot be reached") == 1, done


def test_a_log_goes_on_where_the_connection_broke(laptop: Laptop, user: User) -> None:
    relay = laptop.relay()
    laptop.knows("narval", user, relay=relay)
    add(laptop, user)
    script = "for i in $(seq 20); do echo line $i; sleep 0.5; done"
    assert submit(laptop, "sh", "-c", script).status == 0
    wait_for(lambda: "line 1\n" in laptop.run("jobgen", "logs").out, 30)
    process = laptop.start("jobgen", "logs", "-f")
    time.sleep(2)
    relay.set(offline=True)
    relay.drop()
    time.sleep(6)
    relay.set()
    out, err = process.communicate(timeout=60)
    lines = [line for line in out.splitlines() if line.startswith("line ")]
    assert lines == [f"line {number}" for number in range(1, 21)]
    assert err.count("the log goes on when it answers") <= 2, err  # the last lines of two failures may differ


def test_ctrl_c_while_files_are_sent_leaves_nothing(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    user.command("tar", 'sleep 5; exec "$real" "$@"')
    with_ctrl_c = (
        "import os, signal, sys; signal.signal(2, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])"
    )
    words = ("jobgen", "submit", "--host", "narval", *SMALL, "--name", "exp", "--", "true")
    process = laptop.start("python", "-c", with_ctrl_c, *words)
    wait_for(lambda: user.calls("tar") == 1, 30)
    [number] = (one.pid for one in processes_of(laptop.folder) if "bin/jobgen submit" in one.command)
    os.kill(number, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not list((user.files / "jobgen").glob("exp-*"))
    assert not (laptop.work / "runs").exists()


@pytest.mark.parametrize("name", ["a b", "100%h", "ü", "#", "quo'te", 'quo"te', "$HOME"])
def test_the_folder_of_the_sockets_has_any_name(laptop: Laptop, user: User, name: str) -> None:
    relay = laptop.relay()
    laptop.knows("narval", user, relay=relay)
    add(laptop, user)
    cache = laptop.home / name
    cache.mkdir()
    for _ in range(2):
        done = laptop.run(
            "jobgen", "host", "check", "narval", env={"XDG_CACHE_HOME": f"{LAPTOP_HOME}/{name}"}
        )
        assert done.status == 0, done
    assert len(relay.connections) == 1
    assert (cache / "jobgen/ssh").exists() == (name in ("a b", "100%h", "ü", "#"))


def test_the_directory_at_the_host_is_gone(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    assert submit(laptop, "sh", "-c", "echo hello; exec sleep 1000").status == 0
    wait_for(lambda: status(laptop)["attempts"] == 1 and list(run_of(laptop).glob("exp-*.log")), 30)
    there = folder_there(user)
    there.rename(there.with_name("elsewhere"))  # the job may still write into it
    for words in (("logs",), ("fetch", "exp"), ("fetch", "exp", "*")):
        done = laptop.run("jobgen", *words)
        assert (done.status, "is not at narval any more" in done.err) == (2, True), done
    done = laptop.run("jobgen", "cancel", "exp")
    assert (done.status, "the directory of the run is gone; jobgen cancel --now exp-" in done.err) == (
        2,
        True,
    )
    done = laptop.run("jobgen", "cancel", "--now", "exp")
    assert (done.status, "may submit itself again" in done.err) == (0, True), done
    wait_for(lambda: status(laptop)["state"] == "cancelled", 30)


def test_a_run_is_removed_here_while_commands_wait_for_it(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    add(laptop, user)
    assert submit(laptop, "sh", "-c", "echo hello; exec sleep 30").status == 0
    wait_for(lambda: status(laptop)["attempts"] == 1, 30)
    processes = [laptop.start("jobgen", *words) for words in (("logs", "-f"), ("status", "--watch"))]
    first = [process.stdout.readline() if process.stdout else "" for process in processes]
    assert all(first)
    run = run_of(laptop)
    shutil.rmtree(run)
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2, err
        assert f"{run.name} was removed meanwhile; its job goes on at narval, in {user.home}" in err
