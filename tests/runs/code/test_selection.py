"""Which files travel."""

from __future__ import annotations

import os
import shutil
import socket
import time
from pathlib import Path

import pytest
from support.checkouts import git

from jobgen.errors import JobgenError
from jobgen.runs.code import kinds
from jobgen.runs.code.digests import opened
from jobgen.runs.code.selection import Selection, Upload, remarks, selection

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n"


def write(folder: Path, *paths: str, text: str = "text\n") -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def paths(start: Path, *named: str, **settings: int) -> set[str]:
    return paths_of(selection(str(start), Upload(named, **settings)))


def paths_of(some: Selection) -> set[str]:
    return {one.path for one in some.files} | {path for path, _ in some.links} | set(some.folders)


def refusal(start: Path, *named: str, **settings: int) -> str:
    with pytest.raises(JobgenError) as error:
        selection(str(start), Upload(named, **settings))
    return str(error.value)


def test_a_checkout_as_it_is_in_the_working_tree(checkout: Path) -> None:
    write(checkout, "gone.py", "new.py", "a/b.py", "data/x", "own/y", "global/z")
    git(checkout, "add", "gone.py", "a/b.py")
    (checkout / "gone.py").unlink()
    write(checkout, ".gitignore", text="data/\n")
    write(checkout, ".git/info/exclude", text="own\n")
    write(Path(os.environ["HOME"]), ".config/git/ignore", text="global\n")
    some = selection(str(checkout / "a"), Upload())
    assert paths_of(some) == {"train.py", "new.py", "a/b.py", ".gitignore"}
    assert (some.root, some.start, some.checkout) == (str(checkout), "a", True)
    assert remarks(some)[0].endswith(" is sent, what git does not ignore: 4 files, 33 bytes")


def test_no_setting_of_the_checkout_starts_a_program(checkout: Path, tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    write(tmp_path, "evil", text=f"#!/bin/sh\ntouch {sign}\n")
    (tmp_path / "evil").chmod(0o755)
    git(checkout, "config", "core.fsmonitor", str(tmp_path / "evil"))
    git(checkout, "config", "filter.evil.clean", str(tmp_path / "evil"))
    write(checkout, ".gitattributes", text="* filter=evil\n")
    sign.unlink(missing_ok=True)
    assert paths(checkout) == {"train.py", ".gitattributes"}
    assert not sign.exists()


def test_files_elsewhere_are_not_of_the_checkout(checkout: Path, tmp_path: Path) -> None:
    """The index, or the configuration, of a foreign checkout may name files of the user."""
    write(tmp_path, "private/letter")
    write(checkout, "inner/letter")
    git(checkout, "add", "inner/letter")
    shutil.rmtree(checkout / "inner")
    (checkout / "inner").symlink_to(tmp_path / "private")
    assert "inner (to " in refusal(checkout)
    write(checkout, ".gitignore", text="inner\n")
    assert paths(checkout) == {"train.py", ".gitignore"}
    git(checkout, "config", "core.worktree", str(tmp_path))
    assert "git says that its files are in" in refusal(checkout)


def test_submodules_and_other_repositories(checkout: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(other, "module.py", ".gitignore", text="*.log\n")
    git(other, "init", "--quiet")
    git(other, "add", ".")
    git(other, "commit", "--quiet", "-m", "one")
    git(checkout, "submodule", "add", "--quiet", str(other), "sub")
    git(checkout, "submodule", "add", "--quiet", str(other), "empty")
    git(checkout, "submodule", "deinit", "--quiet", "--force", "empty")
    shutil.copytree(other, checkout / "untracked")
    write(checkout, "sub/new.py", "sub/x.log", "untracked/new.py", "untracked/x.log")
    inner = {
        f"{name}/{file}" for name in ("sub", "untracked") for file in ("module.py", ".gitignore", "new.py")
    }
    assert paths(checkout) == {"train.py", ".gitmodules", "empty", *inner}
    assert selection(str(checkout / "sub"), Upload()).root == str(checkout / "sub")


def test_a_split_index(checkout: Path) -> None:
    git(checkout, "update-index", "--split-index")
    write(checkout, "b.py")
    git(checkout, "add", "b.py")
    assert paths(checkout) == {"train.py", "b.py"}


def test_without_git_all_but_jobgenignore(work: Path) -> None:
    write(work, "data/x", "a/data/y", "a/b.log", "a/keep.log", "logs/z", "c.log")
    (work / "void").mkdir()
    assert paths(work) == {
        *("train.py", "data/x", "a/data/y", "a/b.log", "a/keep.log", "logs/z", "c.log", "void")
    }
    write(work, ".jobgenignore", text="/data\n*.log\n!keep.log\nlogs/\nvoid/\n")
    assert paths(work) == {"train.py", ".jobgenignore", "a/data/y", "a/keep.log"}
    assert "all that .jobgenignore does not exclude: 4 files" in remarks(selection(str(work), Upload()))[0]
    write(work, "a/.jobgenignore", text="data\n")
    assert paths(work) == {"train.py", ".jobgenignore", "a/.jobgenignore", "a/keep.log"}


def test_jobgenignore_in_a_checkout(checkout: Path) -> None:
    write(
        checkout,
        "data/big.bin",
        "data/keep",
        "a/notes.ipynb",
        ".jobgenignore",
        text="data/*\n!keep\n*.ipynb\n",
    )
    git(checkout, "add", ".")
    write(checkout, "new.ipynb", "new.py")
    assert paths(checkout) == {"train.py", ".jobgenignore", "data/keep", "new.py"}
    assert paths(checkout, "a") >= {"a/notes.ipynb"}


def test_a_checkout_without_git_here(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "cannot find git" in refusal(checkout)
    shutil.rmtree(checkout / ".git")
    assert paths(checkout) == {"train.py"}


def test_a_checkout_whose_repository_is_gone(work: Path) -> None:
    """It has moved, or is not in the container: without it nobody knows what git ignores."""
    write(work, ".git", text="gitdir: /nowhere\n")
    assert "cannot be listed: fatal: not a git repository: /nowhere" in refusal(work)
    (work / ".git").rename(work / "git")
    write(work, "inner/.git", "inner/a.py")
    assert paths(work) == paths(work, "inner") - {"inner"} == {"train.py", "git", "inner/a.py"}


@pytest.mark.parametrize("kind", ["checkout", "work"])
def test_what_never_travels(kind: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(kind)
    write(folder, "runs/a-1/job.sh", "old/x/job.sh", "old/x/plan.json", "env/pyvenv.cfg", "env/bin/python")
    write(folder, "conda/conda-meta/history", "conda/bin/python", "a/__pycache__/b.pyc", "model/last.ckpt")
    write(folder, "checkpoints/step-1/weights.bin", "out/step-2/checkpoint.json", "out/checkpoint-3/a.bin")
    write(folder, "a/checkpoints/read.py", "a/runs/b.py")
    some = selection(str(folder), Upload())
    assert paths_of(some) == {"train.py", "a/checkpoints/read.py", "a/runs/b.py"}
    assert some.stays == {
        "runs": ("old/x/", "runs/"),
        "environments": ("conda/", "env/"),
        "checkpoints": ("checkpoints/", "model/last.ckpt", "out/checkpoint-3/", "out/step-2/"),
    }
    assert remarks(some)[1:] == [
        "checkpoints are not sent: checkpoints/, model/last.ckpt, out/checkpoint-3/, out/step-2/",
        "environments are not sent: conda/, env/",
        "runs are not sent: old/x/, runs/",
    ]
    named = paths(folder, "checkpoints/step-1", "model/last.ckpt")
    assert named >= {"checkpoints/step-1/weights.bin", "model/last.ckpt"}
    assert "an environment works only where it was made" in refusal(folder, "env")


def test_a_named_path_travels_although_git_ignores_it(checkout: Path) -> None:
    write(checkout, ".gitignore", text="data\n")
    write(checkout, "a/data/x", "a/data/.git/config", "a/b.py", "data/y")
    assert paths(checkout / "a", "data") == {"train.py", ".gitignore", "a/b.py", "a/data", "a/data/x"}
    assert "git ignores it all; --upload . sends it" in refusal(checkout / "data")
    assert paths(checkout / "data", ".") >= {"data/y"}
    assert "no such file" in refusal(checkout, "nothing")
    assert "lies outside of the code" in refusal(checkout, "..")
    assert "no file or directory" in refusal(checkout, _socket(checkout))


SECRETS = (
    *(
        ".env",
        ".env.local",
        "server.pem",
        "id_rsa",
        "id_ed25519",
        ".netrc",
        "credentials",
        "credentials.json",
    ),
    *("CREDENTIALS.TXT", "x.p12", ".git-credentials", ".pypirc"),
)
NO_SECRETS = (".env.example", "id_map.py", "id_rsa.pub", "environment.yml", "pem.py", "env", "key.txt")


def test_secrets_are_refused_until_they_are_named(checkout: Path) -> None:
    write(checkout, *NO_SECRETS)
    write(checkout, "late", text=f"# text\n{KEY}")
    assert paths(checkout) == {"train.py", "late", *NO_SECRETS}
    write(checkout, *(f"a/{name}" for name in SECRETS))
    text = refusal(checkout)
    assert all(f"a/{name}" in text for name in SECRETS), text
    assert text.endswith(
        "look like a secret: --upload FILE sends such a file, and an ignored file stays here"
    )
    text = refusal(checkout, "a", *(f"a/{name}" for name in SECRETS if name != ".env"))
    assert text.startswith("a/.env looks like a secret")
    assert paths(checkout, *(f"a/{name}" for name in SECRETS)) >= {f"a/{name}" for name in SECRETS}
    write(checkout, ".gitignore", text="/a\n")
    assert "a/.env" not in paths(checkout)


@pytest.mark.parametrize("head", ["", "\n", "\ufeff"])
def test_a_key_is_known_by_its_first_line(checkout: Path, head: str) -> None:
    write(checkout, "harmless.txt", text=head + KEY)
    for _ in range(2):  # the second time from the cache
        assert refusal(checkout).startswith("harmless.txt looks like a secret")
    assert "harmless.txt" in paths(checkout, "harmless.txt")


def test_all_keys() -> None:
    for line in (
        b"-----BEGIN RSA PRIVATE KEY-----",
        b"PuTTY-User-Key-File-3: ssh-ed25519",
        b"AGE-SECRET-KEY-1Q",
    ):
        assert kinds.is_key(line)
    assert not kinds.is_key(b"-----BEGIN CERTIFICATE-----")


def test_links_inside_stay_links(checkout: Path, tmp_path: Path) -> None:
    write(checkout, "a/b/c.py")
    (checkout / "near").symlink_to("a/b/c.py")
    (checkout / "a/up").symlink_to("../train.py")
    (checkout / "folder").symlink_to("a/b")
    (checkout / "whole").symlink_to(checkout / "a" / "b")
    (checkout / "a/around").symlink_to("../../work/train.py")
    (checkout / "broken").symlink_to("nothing")
    assert dict(selection(str(checkout), Upload()).links) == {
        **{"near": "a/b/c.py", "a/up": "../train.py", "folder": "a/b", "whole": "a/b"},
        **{"a/around": "../train.py", "broken": "nothing"},
    }


def test_links_that_point_out_are_refused_until_they_are_named(checkout: Path, tmp_path: Path) -> None:
    write(tmp_path, "data/x", "data/sub/y")
    (checkout / "data").symlink_to("../data")
    (checkout / "a").mkdir()
    (checkout / "a/etc").symlink_to("/etc/hostname")
    (checkout / "chain").symlink_to("data/x")
    text = refusal(checkout)
    assert text.startswith(
        "links point out of the code: a/etc (to /etc/hostname), chain (to data/x), data (to ../data)"
    )
    sent = selection(str(checkout), Upload(("data", "chain", "a/etc")))
    assert paths_of(sent) == {"train.py", "data", "data/x", "data/sub", "data/sub/y", "chain", "a/etc"}
    assert not sent.links


def _socket(folder: Path) -> str:
    """Make a socket and a pipe in a folder; return the name of one."""
    os.mkfifo(folder / "pipe")
    here = os.getcwd()
    os.chdir(folder)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
    finally:
        os.chdir(here)
    return "socket"


def test_sockets_and_pipes_stay(work: Path) -> None:
    _socket(work)
    some = selection(str(work), Upload())
    assert paths_of(some) == {"train.py"}
    assert some.stays == {"sockets, pipes and devices": ("pipe", "socket")}


def test_too_much_names_the_largest(checkout: Path) -> None:
    for number in range(7):
        write(checkout, f"file{number}", text="x" * (number * 400_000))
    text = refusal(checkout, limit=1 << 20)
    assert "has 8.0 MiB in 8 files, more than --upload-limit allows (1.0 MiB)" in text
    assert "file6 (2.3 MiB), file5 (1.9 MiB), file4 (1.5 MiB), file3 (1.1 MiB), file2 (781 KiB):" in text
    assert len(paths(checkout)) == 8


def test_only_regular_files_are_read(work: Path) -> None:
    (work / "link").symlink_to("train.py")
    _socket(work)
    for name, reason in {
        "link": "Too many levels",
        "pipe": "no regular file",
        "gone": "No such file",
    }.items():
        with pytest.raises(JobgenError, match=reason):
            opened(str(work / name), name)


def test_the_cache_of_digests(checkout: Path, tmp_path: Path) -> None:
    file = checkout / "train.py"

    def digest() -> str:
        return selection(str(checkout), Upload()).files[0].sha256

    first = digest()
    assert not list((tmp_path / "cache").glob("jobgen/digests/*"))  # it may change again within the moment
    time.sleep(2.1)
    assert digest() == first
    (cache,) = (tmp_path / "cache/jobgen/digests").iterdir()
    assert cache.stat().st_mode & 0o777 == 0o600
    cache.write_text(cache.read_text().replace(first, "0" * 64))
    assert digest() == "0" * 64  # the file is not read
    before = file.stat()
    file.write_text(file.read_text().upper())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digest() not in (first, "0" * 64)
    cache.write_text("no JSON")
    assert digest() not in (first, "0" * 64)
