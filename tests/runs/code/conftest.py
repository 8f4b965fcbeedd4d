"""A project to send, and hosts that are this machine with other shells and commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.checkouts import git
from support.require import need_command
from support.shell_host import ShellHost, busybox


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep git and the cache away from the files of this user."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with a program."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text("print('it runs')\n")
    return folder


@pytest.fixture
def checkout(work: Path) -> Path:
    """A checkout with a program."""
    need_command("git")
    git(work, "init", "--quiet")
    git(work, "add", ".")
    return work


@pytest.fixture(params=["dash", "bash", "busybox"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> ShellHost:
    """A host with this shell; that of busybox has no other commands."""
    need_command(request.param)
    return busybox(tmp_path / "busybox") if request.param == "busybox" else ShellHost((request.param,))
