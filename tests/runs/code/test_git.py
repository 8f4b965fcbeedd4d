"""The state of a checkout, read with the real git: no program that the checkout names is started."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.require import need_command

from jobgen.runs.code import git

FILTERS = ("filter.evil.clean", "filter.evil.process", "diff.evil.command", "diff.evil.textconv")
# Settings of a checkout that make git start EVIL, and the command with which git itself does so.
HOSTILE = {
    "fsmonitor": ({"core.fsmonitor": "EVIL"}, "status"),
    **{name: ({name: "EVIL", "filter.evil.required": "false"}, "diff HEAD") for name in FILTERS},
    "external diff": ({"diff.external": "EVIL"}, "diff HEAD"),
    "hooks": ({"core.hooksPath": "HOOKS"}, "update-index --force-write-index"),
    "pager": ({"core.pager": "EVIL", "pager.diff": "EVIL"}, "--paginate diff HEAD"),
    "include": ({"include.path": "INCLUDED"}, "diff HEAD"),
    "attributes": ({"core.attributesFile": "ATTRIBUTES", "filter.more.clean": "EVIL"}, "diff HEAD"),
    "ssh": (
        {
            "core.repositoryformatversion": "1",
            "extensions.partialClone": "origin",
            "remote.origin.url": "ssh://nowhere/x",
            "remote.origin.promisor": "true",
            "core.sshCommand": "EVIL",
        },
        "diff HEAD",
    ),
    "upload": (
        {
            "core.repositoryformatversion": "1",
            "extensions.partialClone": "origin",
            "remote.origin.url": "REPOSITORY",
            "remote.origin.uploadpack": "EVIL",
            "remote.origin.promisor": "true",
        },
        "diff HEAD",
    ),
}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a changed file, whose filter and ways of diff are named evil."""
    need_command("git")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (tmp_path / ".gitconfig").write_text(
        "[user]\nname = me\nemail = me@example.org\n[init]\ndefaultBranch = main\n"
    )
    made = checkout(tmp_path / "work")
    (made / "a.txt").write_text("second\n")
    return made


def checkout(folder: Path, *options: str) -> Path:
    folder.mkdir()
    run(folder, "init", "--quiet", *options)
    (folder / "a.txt").write_text("first\n")
    (folder / ".gitattributes").write_text("*.txt filter=evil diff=evil\n")
    run(folder, "add", ".")
    run(folder, "commit", "--quiet", "--message", "first")
    return folder


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def evil(folder: Path) -> Path:
    """A command that says that it was started."""
    (folder / "hooks").mkdir()
    for path in (folder / "evil", folder / "hooks/post-index-change"):
        path.write_text(
            f'#!/bin/sh\ntouch {folder}/started\n[ -t 0 ] || cat "${{1:-/dev/null}}" 2> /dev/null\n'
        )
        path.chmod(0o755)
    (folder / "included").write_text(f'[filter "evil"]\nclean = {folder}/evil\n')
    (folder / "attributes").write_text("*.txt filter=more\n")
    return folder / "started"


@pytest.mark.parametrize("case", HOSTILE)
def test_no_program_of_a_checkout_is_started(case: str, repository: Path) -> None:
    settings, command = HOSTILE[case]
    folder = repository.parent
    started = evil(folder)
    if "extensions.partialClone" in settings:  # the blob is missing, and git would fetch it
        blob = run(repository, "rev-parse", "HEAD:a.txt").strip()
        (repository / f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    if case == "attributes":
        (repository / ".gitattributes").write_text("")
    places = {"EVIL": f"{folder}/evil", "HOOKS": f"{folder}/hooks", "INCLUDED": f"{folder}/included"}
    places |= {"ATTRIBUTES": f"{folder}/attributes", "REPOSITORY": str(repository)}
    for name, value in settings.items():
        run(repository, "config", name, places.get(value, value))
    found = git.state(str(repository))
    assert not started.exists()
    assert found is None or b"+second" in found.diff
    assert found is not None or "extensions.partialClone" in settings
    subprocess.run(["git", *command.split()], cwd=repository, capture_output=True, timeout=20)
    assert started.exists() or case == "pager"  # which git starts only on a terminal


def test_no_program_of_a_submodule_is_started(repository: Path) -> None:
    started = evil(repository.parent)
    checkout(repository.parent / "other")
    run(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../other", "sub")
    run(repository, "commit", "--quiet", "--message", "with a submodule")
    run(repository / "sub", "config", "core.fsmonitor", f"{repository.parent}/evil")
    (repository / "sub/a.txt").write_text("changed\n")
    found = git.state(str(repository))
    assert not started.exists()
    assert found
    assert b"+second" in found.diff
    subprocess.run(["git", "status"], cwd=repository, capture_output=True)
    assert started.exists()


@pytest.mark.parametrize("options", [(), ("--object-format=sha256",)])
def test_the_changes_are_those_that_git_prints(options: tuple[str, ...], repository: Path) -> None:
    """In a folder of a checkout, in a second work tree, with ends of lines of another system; they can be applied."""
    made = checkout(repository.parent / "made", *options)
    run(made, "worktree", "add", "--quiet", "../second")
    second = repository.parent / "second"
    run(made, "config", "core.autocrlf", "true")
    for place in (made, second):
        (place / "sub").mkdir()
        assert git.state(str(place / "sub")) == git.GitState(
            run(made, "rev-parse", "HEAD").strip(), run(place, "symbolic-ref", "--short", "HEAD").strip(), b""
        )
        (place / "a.txt").write_bytes(b"first\r\nsecond\r\n")
        (place / "new.txt").write_bytes(b"\0\1\2")
        run(place, "add", "new.txt")
        found = git.state(str(place / "sub"))
        assert found
        assert found.diff.decode() == run(place, "diff", "--binary", "HEAD")
    index = (made / ".git/index").read_bytes()
    shutil.copytree(made, repository.parent / "copy")
    run(repository.parent / "copy", "reset", "--quiet", "--hard")
    subprocess.run(["git", "apply"], input=found.diff, cwd=repository.parent / "copy", check=True)
    assert (made / ".git/index").read_bytes() == index


def test_the_changes_of_submodules_are_among_them(repository: Path) -> None:
    inner, outer = checkout(repository.parent / "inner"), checkout(repository.parent / "outer")
    add = ("-c", "protocol.file.allow=always", "submodule", "add", "--quiet")
    run(outer, *add, str(inner), "the module")
    run(outer, "commit", "--quiet", "--message", "module")
    (outer / "the module/a.txt").write_text("changed\n")
    (outer / "a.txt").write_text("changed, too\n")
    found = git.state(str(outer))
    assert found
    copy = repository.parent / "copy"
    shutil.copytree(outer, copy)
    for place in (copy, copy / "the module"):
        run(place, "checkout", "--quiet", "--", "a.txt")
    (copy / "the module/.git").rename(copy / "the module/git")
    subprocess.run(["git", "apply"], input=found.diff, cwd=copy, check=True)
    assert [(copy / name).read_text() for name in ("a.txt", "the module/a.txt")] == [
        "changed, too\n",
        "changed\n",
    ]


def test_what_is_no_checkout(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "new").mkdir()
    assert git.state(str(tmp_path / "new")) is None
    assert git.state(str(repository / ".git")) is None
    run(tmp_path / "new", "init", "--quiet")
    (tmp_path / "new/a").write_text("a\n")
    run(tmp_path / "new", "add", "a")
    found = git.state(str(tmp_path / "new"))
    assert found
    assert (found.commit, found.branch) == (None, "main")
    assert b"+a" in found.diff
