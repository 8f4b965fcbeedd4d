"""``jobgen host``: what it asks a host, and what it writes here and there."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import tomllib
from support.hosts import SMALL
from support.laptop import LAPTOP_HOME, PASSWORD, Done, Lab, Laptop, User
from support.pbs import PbsCluster
from support.pbs_login import pbs_login
from support.waiting import wait_for

pytestmark = pytest.mark.xdist_group("host-command")

CONFIG = ".config/jobgen"


def settings(laptop: Laptop) -> list[str]:
    """The files that jobgen has written on the laptop, but for those of connections."""
    folder = laptop.home / CONFIG
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def host_file(laptop: Laptop, name: str = "narval") -> dict[str, Any]:
    return tomllib.loads((laptop.home / CONFIG / f"hosts/{name}.toml").read_text())


def added(laptop: Laptop, *words: str, name: str = "narval") -> Done:
    done = laptop.run("jobgen", "host", "add", name, *words)
    assert done.status == 0, done
    return done


@pytest.mark.parametrize("shell", ["bash", "tcsh", "fish"])
def test_a_host_is_asked_once_and_runs_a_job(lab: Lab, laptop: Laptop, shell: str) -> None:
    user = lab.user(shell)
    laptop.knows("narval", user)
    done = added(laptop)
    assert done.out == "jobgen host check narval\n"
    assert f"you: {user.name}, whose login shell is /usr/bin/{shell}" in done.err
    assert f"runs: {user.home}/jobgen, " in done.err
    assert settings(laptop) == ["hosts/narval.toml", "sites/narval.toml"]
    file = host_file(laptop)
    uid = user.files.stat().st_uid
    assert file == {
        "ssh": "narval",
        "scheduler": "slurm",
        "runs": f"{user.home}/jobgen",
        "user": user.name,
        "uid": str(uid),
        "site": "narval",
        "rsync": True,
        "variables": {"PATH": f"{user.programs}:/usr/local/bin:/usr/bin:/bin"},
    }
    assert (user.files / "jobgen").stat().st_mode & 0o777 == 0o700
    assert list((user.files / "jobgen").iterdir()) == []
    done = laptop.run("jobgen", "submit", "--host", "narval", *SMALL, "--name", "exp", "--", "true")
    assert done.status == 0, done

    def ended() -> bool:
        [state] = json.loads(laptop.run("jobgen", "status", "--json").out)
        return bool(state["state"] == "finished")

    wait_for(ended, 30)


@pytest.mark.parametrize("kind", ["openpbs", "torque"])
def test_a_host_with_pbs(request: pytest.FixtureRequest, lab: Lab, laptop: Laptop, kind: str) -> None:
    row, other = ("pbspro", "torque") if kind == "openpbs" else ("torque", "pbspro")
    cluster: PbsCluster = request.getfixturevalue(f"{kind}_cluster")
    with pbs_login(lab, cluster) as user:
        laptop.knows("fir", user)
        runs = str(cluster.folder("runs"))
        wrong = laptop.run("jobgen", "host", "add", "fir", "--scheduler", other)
        assert (wrong.status, "its qsub is that of" in wrong.err) == (2, True), wrong
        added(laptop, "--runs", runs, "--scheduler", row, name="fir")
        file = host_file(laptop, "fir")
    assert file["scheduler"] == row
    assert file["runs"] == runs
    assert settings(laptop) == ["hosts/fir.toml", "sites/fir.toml"]


def test_defaults_go_to_the_site_file(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    added(laptop, "--account", "def-me", "--venv", "/opt/venv", "--module", "cuda/12", "--module", "gcc")
    site = tomllib.loads((laptop.home / CONFIG / "sites/narval.toml").read_text())
    assert site["job"]["account"] == "def-me"
    assert site["environment"] == {"venv": "/opt/venv", "module": ["cuda/12", "gcc"]}
    script = laptop.run("jobgen", "submit", "--host", "narval", *SMALL, "--dry-run", "--", "true").out
    assert "#SBATCH --account=def-me" in script
    assert "/opt/venv" in script


def test_defaults_of_a_site_that_is_there(laptop: Laptop, user: User) -> None:
    laptop.knows("fir", user)
    added(laptop, "--site", "narval", "--account", "def-me", name="fir")
    path = laptop.home / CONFIG / "sites/fir.toml"
    assert tomllib.loads(path.read_text()) == {"extends": "narval", "job": {"account": "def-me"}}
    added(laptop, "--site", "fir", "--account", "def-you", name="fir")
    assert tomllib.loads(path.read_text()) == {"extends": "narval", "job": {"account": "def-you"}}
    path.write_text('extends = "narval"  # mine\n')
    done = laptop.run("jobgen", "host", "add", "fir", "--site", "fir", "--account", "def-you")
    assert (done.status, "write the defaults into it" in done.err) == (2, True), done
    assert path.read_text() == 'extends = "narval"  # mine\n'


def test_the_site_is_known_by_the_variables_of_a_login_shell(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    scratch = user.files / "scratch"
    scratch.mkdir()
    scratch.chmod(0o777)
    (user.files / "link").symlink_to("scratch")
    profile = user.files / ".profile"
    profile.write_text(
        f"{profile.read_text()}export NERSC_HOST=perlmutter SCRATCH=~/link SBATCH_ACCOUNT=def-me TOKEN=secret\n"
    )
    done = added(laptop)
    assert "site: perlmutter, NERSC_HOST is perlmutter" in done.err
    assert "demands an account of each job: --account is its default" in done.err
    assert settings(laptop) == ["hosts/narval.toml"]
    file = host_file(laptop)
    assert (file["site"], file["runs"]) == ("perlmutter", f"{user.home}/scratch/jobgen")
    assert file["variables"].keys() == {"PATH", "SBATCH_ACCOUNT"}


def test_a_terminal_is_asked_for_what_ssh_and_the_site_want(lab: Lab, laptop: Laptop) -> None:
    user = lab.user(login="two")
    laptop.knows("narval", user)
    done = laptop.run("jobgen", "host", "add", "narval", "--site", "perlmutter")
    assert (done.status, "host add narval: connection: narval cannot be reached" in done.err) == (5, True), (
        done
    )
    answers = {"assword:": PASSWORD, "Account of your jobs": "def-me"}
    done = laptop.run_on_a_terminal(
        "jobgen", "host", "add", "narval", "--site", "perlmutter", answers=answers, timeout=90
    )
    assert done.status == 0, done
    site = tomllib.loads((laptop.home / CONFIG / "sites/narval.toml").read_text())
    assert site["job"]["account"] == "def-me"


def test_the_site_of_a_host_is_refreshed(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    added(laptop)
    done = laptop.run("jobgen", "site", "refresh", "--host", "narval")
    assert (done.status, "queues of minicluster by scontrol" in done.err) == (0, True), done
    [path] = (path for path in (laptop.home / CONFIG).rglob("*.toml") if "refreshed = " in path.read_text())
    assert tomllib.loads(path.read_text())["host"] == "login1"
    done = laptop.run("jobgen", "submit", "--host", "narval", *SMALL, "--nodes", "50", "--", "true")
    assert (done.status, "scontrol on " in done.err) == (2, True), done


def failed(laptop: Laptop, status: int, *parts: str, words: tuple[str, ...] = ()) -> None:
    """Let the addition of a host fail with these parts of one sentence, and leave nothing here."""
    done = laptop.run("jobgen", "host", "add", "narval", *words)
    assert done.status == status, done
    assert [part for part in parts if part not in done.err] == [], done
    assert len(done.err.splitlines()) == 1, done
    assert (done.out, settings(laptop)) == ("", []), done


def test_a_host_that_does_not_answer(lab: Lab, laptop: Laptop) -> None:
    laptop.knows("narval", lab.user(), Port="9")
    failed(laptop, 5, "connection: narval cannot be reached", "Connection refused", "ssh narval shows more")


def test_a_host_that_refuses_the_key(lab: Lab, laptop: Laptop) -> None:
    laptop.knows("narval", lab.user(), IdentityFile="/dev/null")
    failed(laptop, 5, "connection: narval cannot be reached", "Permission denied")


def test_a_host_without_a_scheduler(lab: Lab, laptop: Laptop) -> None:
    laptop.knows("narval", lab.user(without=["sbatch"]))
    for words in ((), ("--scheduler", "torque")):
        failed(
            laptop, 2, "scheduler: neither sbatch nor qsub is on the PATH of a login shell there", words=words
        )


def test_a_host_with_another_scheduler(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    failed(
        laptop,
        2,
        "scheduler: --scheduler torque: qsub is not on the PATH",
        "the host has Slurm",
        words=("--scheduler", "torque"),
    )
    failed(
        laptop, 2, "site: ALCF Polaris has PBS Pro", "leave out --site polaris", words=("--site", "polaris")
    )


def test_a_scheduler_that_does_not_answer(laptop: Laptop, user: User) -> None:
    user.fail("scontrol", "slurm_load_ctl_conf error: Unable to contact slurm controller", 9)
    laptop.knows("narval", user)
    failed(laptop, 1, "scheduler: ", "scontrol show config failed", "Unable to contact slurm controller")
    assert not (user.files / "jobgen").exists()


def test_a_home_that_cannot_be_written(lab: Lab, laptop: Laptop) -> None:
    user = lab.user(home="read-only")
    laptop.knows("narval", user)
    failed(
        laptop, 2, f"folder of the runs: the folder {user.home}/jobgen cannot be written", "Permission denied"
    )


def test_too_little_space(lab: Lab, laptop: Laptop) -> None:
    user = lab.user(home="small")
    laptop.knows("narval", user)
    failed(laptop, 2, "folder of the runs: ", "No space left on device")
    there = lab.cluster.exec("login1", ["ls", "-A", str(user.home)]).stdout.split()
    assert "jobgen" not in there


def test_a_login_shell_that_runs_no_commands(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    profile = user.files / ".profile"
    profile.write_text("cat > /dev/null\n")
    failed(laptop, 1, "login shell: /usr/bin/bash -l does not run commands from its standard input")


def test_tools_that_are_not_there(lab: Lab, laptop: Laptop) -> None:
    laptop.knows("narval", lab.user(without=["tar", "awk"]))
    failed(laptop, 2, "login shell: there is no awk, tar on the PATH")


def test_busybox(lab: Lab, laptop: Laptop) -> None:
    user = lab.user(tools="busybox")
    laptop.knows("narval", user)
    added(laptop)
    assert host_file(laptop)["rsync"] is False


@pytest.mark.parametrize("name", ["-oProxyCommand=touch x", "../x", "a/b", "a b", "", "$(touch x)"])
def test_names_that_are_none(laptop: Laptop, name: str) -> None:
    done = laptop.run("jobgen", "host", "add", "--", name)
    done = laptop.run("jobgen", "host", "add", name) if name[:1] != "-" else done
    assert done.status == 2, done
    assert settings(laptop) == []
    assert list(laptop.work.iterdir()) == []


def test_hostile_paths(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    name = "it's $(touch x) `touch y` ; touch z"
    added(laptop, "--runs", f"{name}/runs")
    assert host_file(laptop)["runs"] == f"{user.home}/{name}/runs"
    there = {path.name for path in user.files.iterdir()}
    assert there & {"x", "y", "z"} == set()
    assert name in there


def test_list_show_and_remove(laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    added(laptop)
    assert laptop.run("jobgen", "host", "list").out.split() == [
        *("NAME", "SCHEDULER", "SITE", "RUNS"),
        *("narval", "slurm", "narval", f"{user.home}/jobgen"),
    ]
    [row] = json.loads(laptop.run("jobgen", "host", "list", "--json").out)
    path = LAPTOP_HOME / CONFIG / "hosts/narval.toml"
    assert row == {"name": "narval", "file": str(path), **host_file(laptop)}
    shown = tomllib.loads(laptop.run("jobgen", "host", "show", "narval").out)
    assert shown == {"file": str(path), **host_file(laptop)}
    near = laptop.run("jobgen", "host", "show", "narvl")
    assert (near.status, "did you mean narval?" in near.err) == (2, True), near
    words = laptop.run("jobgen", "host", "show", "n", env={"_JOBGEN_COMPLETE": "fish"}).out.split()
    assert words == ["narval"]
    words = laptop.run("jobgen", "submit", "--host", "", env={"_JOBGEN_COMPLETE": "bash"}).out.split()
    assert words == ["narval"]
    queues = laptop.run(
        "jobgen", "submit", "--host", "narval", "--queue", "", env={"_JOBGEN_COMPLETE": "bash"}
    ).out.split()
    assert queues
    done = laptop.run("jobgen", "host", "remove", "narval")
    assert (done.status, f"{user.home}/jobgen stays at narval" in done.err) == (0, True), done
    assert settings(laptop) == ["sites/narval.toml"]
    assert laptop.run("jobgen", "host", "remove", "narval").status == 2


def steps(done: Done) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in done.out.splitlines())


def test_check(laptop: Laptop, user: User) -> None:
    relay = laptop.relay()
    laptop.knows("narval", user, relay=relay)
    added(laptop)
    done = laptop.run("jobgen", "host", "check", "narval")
    assert done.status == 0, done
    assert list(steps(done)) == ["connection", "folder of the runs", "scheduler", "job"]
    assert "(sbatch --test-only)" in steps(done)["job"]
    assert list((user.files / "jobgen").iterdir()) == []
    user.fail("sbatch", "sbatch: error: Batch job submission failed: Invalid account", 1)
    done = laptop.run("jobgen", "host", "check", "narval")
    assert (done.status, "job: failed: " in done.out, "Invalid account" in done.out) == (1, True, True), done
    (user.files / "jobgen").chmod(0o500)
    done = laptop.run("jobgen", "host", "check", "narval")
    assert (done.status, list(steps(done))[-1]) == (1, "folder of the runs"), done
    assert "Permission denied" in done.out
    laptop.disconnect()
    relay.set(cut=("up", 0))
    done = laptop.run("jobgen", "host", "check", "narval")
    assert (done.status, done.out, "narval cannot be reached" in done.err) == (5, "", True), done


@pytest.mark.parametrize("kind", ["openpbs", "torque"])
def test_check_of_pbs(request: pytest.FixtureRequest, lab: Lab, laptop: Laptop, kind: str) -> None:
    cluster: PbsCluster = request.getfixturevalue(f"{kind}_cluster")
    row = "pbspro" if kind == "openpbs" else "torque"
    with pbs_login(lab, cluster) as user:
        laptop.knows("fir", user)
        runs = cluster.folder("runs")
        added(laptop, "--runs", str(runs), "--scheduler", row, name="fir")
        done = laptop.run("jobgen", "host", "check", "fir")
        assert (done.status, "(pbsnodes -a)" in steps(done)["job"]) == (0, True), done
        done = laptop.run("jobgen", "host", "check", "fir", "--submit-test")
        assert (done.status, "(qsub, job " in steps(done)["job"]) == (0, True), done
        assert list(runs.iterdir()) == []


def test_clean(lab: Lab, laptop: Laptop, user: User) -> None:
    laptop.knows("narval", user)
    added(laptop)
    (laptop.work / "big.txt").write_text("x" * 200_000)
    assert laptop.run("git", "init", "-q").status == 0
    submit = ("jobgen", "submit", "--host", "narval", *SMALL, "--name")
    for name in ("waits", "old"):
        more = ("--begin", "2099-01-01T00:00") if name == "waits" else ()
        done = laptop.run(*submit, name, *more, "--", "true")
        assert done.status == 0, done
    runs = user.files / "jobgen"
    old, waits = (next(runs.glob(f"{name}-*")) for name in ("old", "waits"))
    assert lab.cluster.wait(done.out.strip()).ok
    done = laptop.run("jobgen", "host", "clean", "narval")
    assert (done.status, "0 files of code removed" in done.out) == (0, True), done
    for path in runs.rglob("*"):
        os.utime(path, (1e9, 1e9))
    done = laptop.run("jobgen", "host", "clean", "narval")
    assert (done.status, "1 file of code removed" in done.out) == (0, True), done
    assert (old / "code/big.txt").exists()
    assert not any(path.is_file() for path in (runs / ".store").rglob("*"))
    done = laptop.run("jobgen", "host", "clean", "narval", "--older-than", "90d")
    assert (done.status, str(old.name) in done.err, "--yes" in done.err) == (2, True, True), done
    (runs / "mine").mkdir()
    done = laptop.run("jobgen", "host", "clean", "narval", "--older-than", "90d", "--yes")
    assert (done.status, "1 run removed" in done.out) == (0, True), done
    assert {path.name for path in runs.iterdir()} == {".store", "mine", waits.name}
    done = laptop.run("jobgen", "host", "clean", "narval", "--older-than", "90d")
    assert (done.status, "no run is that old" in done.out) == (0, True), done
    assert laptop.run(*submit, "next", "--", "true").status == 0
    lab.cluster.exec("head", ["scancel", "--user", user.name])
