"""The facts about a machine, read by its own shells and commands."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.require import need_command
from support.shell_host import ShellHost, busybox

from jobgen import JobgenError
from jobgen.hosts.calls import SchedulerError
from jobgen.site_making.host_cleaning import Amount, clean_store
from jobgen.site_making.remote_machine import Login, login, machine, try_folder
from jobgen.sites import host_file, host_match
from jobgen.sites.host_file import HostFile

HOSTILE = 'it\'s "a" $(touch x) `touch y` \\ % = ü'
FILES = {
    "bash": (".profile", "export"),
    "dash": (".profile", "export"),
    "fish": (".config/fish/config.fish", "set -gx"),
    "ksh": (".profile", "export"),
    "tcsh": (".login", "setenv"),
    "zsh": (".zprofile", "export"),
}


def host_with(shell: str, home: Path, path: str = os.environ["PATH"]) -> ShellHost:
    return ShellHost(("env", f"SHELL={shell}", f"HOME={home}", "sh"), path)


def plain(word: str) -> str:
    """The word in single quotes, which all these shells read alike."""
    return "'" + word.replace("\\", "").replace("'", "") + "'"


@pytest.mark.parametrize("shell", FILES)
def test_the_environment_of_a_login_shell(tmp_path: Path, shell: str) -> None:
    name, word = FILES[shell]
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    equals = "=" if word == "export" else " "
    values = {
        "SBATCH_ACCOUNT": HOSTILE.replace("\\", "").replace("'", ""),
        "PBS_SERVER": "server",
        "SECRET": "secret",
        "MACHINE": "department",
    }
    lines = [f"{word} {key}{equals}{plain(value)}" for key, value in values.items()]
    file.write_text("\n".join(["echo hello", *lines, ""]))
    user = login(host_with(need_command(shell), tmp_path), ["MACHINE", "$(touch z)"])
    assert (user.uid, user.shell) == (str(os.getuid()), shutil.which(shell))
    kept = {key: value for key, value in user.variables.items() if key != "PATH"}
    assert kept == {"SBATCH_ACCOUNT": values["SBATCH_ACCOUNT"], "PBS_SERVER": "server"}
    assert user.variables["PATH"]
    assert user.signs == {"MACHINE": "department"}
    assert not {"x", "y", "z"} & set(os.listdir())


def test_a_shell_that_runs_nothing(tmp_path: Path) -> None:
    with pytest.raises(SchedulerError, match="/bin/false -l does not run commands from its standard input"):
        login(host_with("/bin/false", tmp_path), [])


@pytest.mark.parametrize("is_busybox", [False, True])
def test_the_machine(tmp_path: Path, is_busybox: bool) -> None:
    host = busybox(tmp_path / "bin") if is_busybox else host_with("/bin/sh", tmp_path)
    scratch = tmp_path / HOSTILE.replace("/", "")
    scratch.mkdir()
    (tmp_path / "link").symlink_to(scratch)
    found = machine(host, Login("me", "1000", "/bin/sh", {}, {"SCRATCH": str(tmp_path / "link")}))
    assert found.name == os.uname().nodename
    assert found.groups
    assert found.scratch == str(scratch.resolve())
    if is_busybox:
        assert (found.python, found.rsync) == ("", False)


@pytest.mark.parametrize("is_busybox", [False, True])
def test_the_folder_of_the_runs(tmp_path: Path, is_busybox: bool) -> None:
    host = busybox(tmp_path / "bin") if is_busybox else host_with("/bin/sh", tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    folder = try_folder(host, f"{tmp_path}/link/{HOSTILE}/runs")
    assert folder.path == str(tmp_path.resolve() / "real" / HOSTILE / "runs")
    assert folder.free
    assert list(Path(folder.path).iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(JobgenError, match="the folder .*/file/runs cannot be written"):
        try_folder(host, f"{tmp_path}/file/runs")


@pytest.mark.parametrize("is_busybox", [False, True])
def test_the_store_is_cleaned(tmp_path: Path, is_busybox: bool) -> None:
    host = busybox(tmp_path / "bin") if is_busybox else host_with("/bin/sh", tmp_path)
    runs = tmp_path / HOSTILE
    file = HostFile("x", "slurm", str(runs), "me", "1000")
    assert clean_store(host, file) == Amount(0, 0)
    objects = runs / ".store/objects/ab"
    objects.mkdir(parents=True)
    (runs / ".store/incoming/new").mkdir(parents=True)
    for name in ("old", "new"):
        (objects / name).write_bytes(b"x" * 100_000)
    os.utime(objects / "old", (1e9, 1e9))
    removed = clean_store(host, file)
    assert (removed.files, 90 < removed.size < 120) == (1, True)
    assert [path.name for path in objects.iterdir()] == ["new"]
    assert (runs / ".store/incoming/new").is_dir()


def test_a_host_file_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = HostFile(
        "me@x", "torque", f"/{HOSTILE}", "me", "1000", variables={"PATH": f"/a:/{HOSTILE}", "SBATCH_X": "1"}
    )
    for site in (None, "narval"):
        written = HostFile(**{**{key: getattr(file, key) for key in file.__struct_fields__}, "site": site})
        host_file.write("me@x", written)
        assert host_file.read("me@x") == written
    assert host_file.names() == ["me@x"]
    assert [path.name for path in (tmp_path / "jobgen/hosts").iterdir()] == ["me@x.toml"]


def test_the_site_of_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def found(name: str = "x", cluster: str = "", scheduler: str = "", **env: str) -> str | None:
        signs = host_match.Machine(name, env, cluster, lambda: cluster, scheduler)
        return (host_match.detect(signs) or (None,))[0]

    assert "NERSC_HOST" in host_match.variables()
    assert found() is None
    assert found(NERSC_HOST="perlmutter") == "perlmutter"
    assert found(NERSC_HOST="perlmutter", scheduler="slurm") == "perlmutter"
    assert found(NERSC_HOST="perlmutter", scheduler="pbs") is None
    assert found("narval1.narval.calcul.quebec") == "narval"
