"""The laptop itself: what the tests of hosts rely on."""

from __future__ import annotations

import random
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import ROOT
from support.laptop import BANNERS, HOMES, LOSSY, PASSWORD, Lab, Laptop, User
from support.pbs import PbsCluster
from support.pbs_login import pbs_login
from support.processes import gone, processes_of
from support.require import absent, need_cluster
from support.waiting import wait_until

pytestmark = pytest.mark.xdist_group("host-command")

SBATCH = "sbatch --parsable --output=job.out --wrap='id -un; pwd'"


@pytest.mark.parametrize("way", ["direct", "jump", "relay"])
@pytest.mark.parametrize("shell", ["bash", "tcsh", "fish"])
def test_a_job_from_the_laptop(lab: Lab, laptop: Laptop, shell: str, way: str) -> None:
    user = lab.user(shell)
    if way == "relay":
        laptop.knows("narval", user, relay=laptop.relay())
    else:
        laptop.knows("narval", user, "head" if way == "jump" else "login1")
    done = laptop.run("ssh", "narval", SBATCH)
    assert done.status == 0, done
    banner, job = done.out.splitlines()
    assert banner == BANNERS[0]
    assert done.err.count(BANNERS[1]) >= 1
    assert lab.cluster.wait(job).ok
    assert (user.files / "job.out").read_text().splitlines()[-2:] == [user.name, str(user.home)]


@pytest.mark.parametrize(("name", "shell"), [("openpbs", "bash"), ("openpbs", "fish"), ("torque", "tcsh")])
def test_a_job_of_pbs_from_the_laptop(
    request: pytest.FixtureRequest, lab: Lab, laptop: Laptop, name: str, shell: str
) -> None:
    cluster: PbsCluster = request.getfixturevalue(f"{name}_cluster")
    with pbs_login(lab, cluster, shell) as user:
        laptop.knows("fir", user)
        submit = f"cd {cluster.folder('laptop')} && qsub -j oe -h -l walltime=60"
        done = laptop.run("ssh", "fir", submit, input="#!/bin/bash\nid -un\n")
        assert done.status == 0, done
        shown = laptop.run("ssh", "fir", f"qstat -f {done.out.strip()}").out
        assert f"Job_Owner = {user.name}@" in shown
        assert laptop.run("ssh", "fir", f"qdel {done.out.strip()}").status == 0
        assert laptop.run("ssh", "fir", f"ls {ROOT} {laptop.work}").out == f"{ROOT}:\n"
        user.hang("qsub")
        assert laptop.run("timeout", "2", "ssh", "fir", submit).status == 124


def test_it_shares_no_files_with_the_cluster(lab: Lab, laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    laptop.knows("inner", user, "head")
    laptop.knows("gate", user, "gate")
    (laptop.work / "mine").touch()
    (user.files / "theirs").touch()
    for name in ("narval", "inner", "gate"):
        seen = laptop.run("ssh", name, f"ls ~ {laptop.work}")
        assert (seen.status, "theirs" in seen.out, "mine" in seen.out) == (2, True, False), seen
        assert name == "inner" or "No such file or directory" in seen.err
    assert laptop.run("ssh", "narval", f"ls {ROOT}").out.splitlines()[1:] == []
    assert laptop.run("ls", laptop.work).out == "mine\n"
    hidden = [user.home, user.files, lab.cluster.root / "etc", HOMES]
    assert laptop.run("ls", "-d", *hidden).out == ""
    assert laptop.run("ls", laptop.lab.root.parent).out == f"{lab.root.name}\n"


def test_jobgen_is_on_the_laptop_only(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    assert laptop.run("jobgen", "--version").out.startswith("jobgen ")
    assert laptop.run("ssh", "narval", "jobgen --version").status == 127


def test_the_head_is_reached_over_the_jump_host_only(laptop: Laptop, user: User) -> None:
    laptop.knows("inner", user, "head")
    laptop.knows("head", user, "10.213.77.1")
    assert laptop.run("ssh", "inner", "hostname").out.splitlines()[1:] == ["head"]
    assert "No route to host" in laptop.run("ssh", "head", "hostname").err


def test_two_login_nodes_behind_one_name(laptop: Laptop, user: User) -> None:
    relay = laptop.relay("login1", "login2")
    laptop.knows("narval", user, "narval", relay=relay, StrictHostKeyChecking="accept-new")
    names = [laptop.run("ssh", "narval", "hostname").out.split()[-1] for _ in range(3)]
    assert names == ["login1", "login2", "login1"]


def test_connections_that_ssh_shares_end_with_the_test(lab: Lab, user: User) -> None:
    with lab.laptop() as laptop:
        relay = laptop.relay()
        shared = {"ControlMaster": "auto", "ControlPath": "~/.ssh/%C", "ControlPersist": "100"}
        laptop.knows("narval", user, relay=relay, **shared)
        for _ in range(2):
            assert laptop.run("ssh", "narval", "hostname").status == 0
        assert len(relay.connections) == 1
        assert processes_of(laptop.folder)
    assert wait_until(lambda: not processes_of(laptop.folder), 5)


def test_nothing_is_left_of_a_session_that_is_killed(tmp_path: Path) -> None:
    need_cluster()
    session = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT / "tests")!r})
from pathlib import Path
from support.cluster import shared_cluster
from support.laptop import Lab
with shared_cluster(Path({str(tmp_path)!r})) as cluster:
    lab = Lab(cluster)
    lab.up()
    with lab.laptop() as laptop:
        laptop.knows("narval", lab.user(), ControlMaster="yes", ControlPath="~/.ssh/%C", ControlPersist="100")
        assert laptop.run("ssh", "narval", "hostname").status == 0
        laptop.start("ssh", "narval", "sleep 1000")
        print("is up", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", session], capture_output=True, text=True)
    assert done.stdout == "is up\n", done.stderr
    assert gone(tmp_path) == []


# ------------------------------------------------------------------------------------------- connections


@pytest.mark.parametrize(("direction", "then"), [("up", "close"), ("down", "close"), ("down", "stall")])
def test_a_connection_is_cut_at_the_byte(laptop: Laptop, user: User, direction: str, then: str) -> None:
    relay = laptop.relay()
    laptop.knows("narval", user, relay=relay, ServerAliveInterval="1", ServerAliveCountMax="1")
    send = ("sh", "-c", "head -c 20000 /dev/zero | ssh narval 'cat; echo done'")
    assert laptop.run(*send).out.endswith("done\n")
    relay.set(cut=(direction, 15000), then=then)
    done = laptop.run(*send)
    assert (done.status, "done" in done.out) == (255, False)
    plain, cut = relay.connections
    assert (plain.state, cut.state, getattr(cut, direction)) == ("closed", "cut", 15000)
    assert min(plain.up, plain.down) > 20000


def test_each_random_cut_is_where_it_says(
    laptop: Laptop, user: User, chance: random.Random, capsys: pytest.CaptureFixture[str]
) -> None:
    relay = laptop.relay()
    laptop.knows("narval", user, relay=relay)
    assert laptop.run("ssh", "narval", "hostname").status == 0
    for _ in range(5):
        relay.cut_at_random(chance, relay.connections[0])
        assert laptop.run("ssh", "narval", "hostname").status in (0, 255)
        _, direction, byte = capsys.readouterr().out.split()
        last = relay.connections[-1]
        carried = getattr(last, direction)
        assert (last.state, carried) == ("cut", int(byte)) or (
            last.state == "closed" and carried <= int(byte)
        )


def test_a_connection_that_is_dropped_sleeps_or_is_not_there(laptop: Laptop, user: User) -> None:
    relay = laptop.relay()
    laptop.knows("narval", user, relay=relay)
    process = laptop.start("ssh", "narval", "echo begin; read line; echo $line; read line")
    assert process.stdin
    assert process.stdout
    begin = [process.stdout.readline() for _ in range(2)]
    assert begin == [f"{BANNERS[0]}\n", "begin\n"]
    with relay.sleep():
        process.stdin.write("end\n")
        process.stdin.flush()
        assert not select.select([process.stdout], [], [], 1)[0]
    assert process.stdout.readline() == "end\n"
    relay.drop()
    assert process.wait(10) == 255
    relay.set(offline=True)
    assert laptop.run("ssh", "narval", "hostname").status == 255
    assert len(relay.connections) == 1


def test_a_slow_connection(laptop: Laptop, user: User) -> None:
    relay = laptop.relay(delay=0.1, rate=50_000)
    laptop.knows("narval", user, relay=relay)
    begin = time.monotonic()
    assert laptop.run("ssh", "narval", "head -c 100000 /dev/zero").status == 0
    assert 2.5 < time.monotonic() - begin < 20


def test_packets_are_lost(lab: Lab, laptop: Laptop, user: User) -> None:
    if not lab.loses_packets:
        absent("iptables cannot lose packets here")
    laptop.knows("narval", user, LOSSY, HostKeyAlias="login1")
    assert laptop.run("ssh", "narval", "head -c 3000000 /dev/zero").out.count("\0") == 3_000_000
    lost = laptop.run("/usr/sbin/iptables", "-L", "-n", "-v", "-x").out
    assert sum(int(line.split()[0]) for line in lost.splitlines() if "statistic" in line) > 0


# -------------------------------------------------------------------------------------------------- users


def test_a_home_without_write_permission(lab: Lab, laptop: Laptop) -> None:
    laptop.knows("narval", lab.user(home="read-only"))
    done = laptop.run("ssh", "narval", "mkdir jobs")
    assert (done.status, "Permission denied" in done.err) == (1, True)


def test_a_small_disk(lab: Lab, laptop: Laptop) -> None:
    user = lab.user(home="small")
    laptop.knows("narval", user)
    assert laptop.run("ssh", "narval", "head -c 500000 /dev/zero >half").status == 0
    done = laptop.run("ssh", "narval", "head -c 1000000 /dev/zero >more")
    assert (done.status, "No space left on device" in done.err) == (1, True)


def test_a_user_who_has_two_factors(lab: Lab, laptop: Laptop) -> None:
    laptop.knows("narval", lab.user(login="two"))
    answers = {"password: ": PASSWORD}
    assert "login1\r\n" in laptop.run_on_a_terminal("ssh", "narval", "hostname", answers=answers).out
    assert laptop.run("ssh", "-o", "BatchMode=yes", "narval", "hostname").status == 255


def test_rsync_is_where_it_is_not_left_out(lab: Lab, laptop: Laptop) -> None:
    laptop.knows("with", lab.user(banner=False))
    laptop.knows("without", lab.user(banner=False, without=["rsync"]))
    (laptop.work / "file").write_text("text")
    copy = ("rsync", "file")
    assert laptop.run(*copy, "with:").status == 0
    assert laptop.run("ssh", "with", "cat file").out == "text"
    assert "rsync: command not found" in laptop.run(*copy, "without:").err
    assert laptop.run("ssh", "without", "bash -lc 'command -v rsync; command -v sbatch'").out.count("\n") == 1
    assert laptop.run("sh", "-c", "command -v rsync; command -v ssh", without=["rsync"]).out.count("\n") == 1


def test_tools_that_are_not_those_of_gnu(lab: Lab, laptop: Laptop) -> None:
    laptop.knows("narval", lab.user(banner=False, tools="busybox"))
    assert "BusyBox" in laptop.run("ssh", "narval", "tar --help").err
    assert laptop.run("ssh", "narval", "command -v python3; command -v sbatch").out.count("\n") == 1


def test_a_scheduler_that_hangs(lab: Lab, laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    for after in (False, True):
        user.hang("sbatch", after=after)
        assert laptop.run("timeout", "2", "ssh", "narval", f"{SBATCH} --job-name={user.name}").status == 124
        jobs = lab.cluster.exec("head", ["squeue", "-h", "-t", "all", "-n", user.name]).stdout
        assert jobs.count("\n") == after
    assert user.calls("sbatch") == 2


def test_a_scheduler_that_refuses_at_first(lab: Lab, laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    message = "sbatch: error: Batch job submission failed: Resource temporarily unavailable"
    user.fail("sbatch", message, times=2)
    done = [laptop.run("ssh", "narval", f"{SBATCH} --hold") for _ in range(3)]
    assert [one.status for one in done] == [1, 1, 0]
    assert [message in one.err for one in done] == [True, True, False]
    assert user.calls("sbatch") == 3
    lab.cluster.cancel(done[2].out.split()[-1])
