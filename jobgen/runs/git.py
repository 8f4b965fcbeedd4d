"""The state of the git checkout that a job is submitted from.

A checkout may come from somebody else, and its configuration may name programs: fsmonitor, filters, hooks,
ways to reach a remote. So the changes are read with another configuration, that of an empty repository.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from jobgen.hosts.calls import SchedulerError, call

_PATIENCE = 20  # s; a checkout on a slow file system must not keep a job from being submitted
# The settings of a checkout that say what its files look like.
_KEPT = r"core\.(filemode|autocrlf|eol|symlinks|ignorecase|precomposeunicode)|extensions\.objectformat"
_NO_CONFIGURATION = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
}
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--binary", "--ignore-submodules=dirty")


class GitState(NamedTuple):
    """A commit and the changes since; ``diff`` is the change of tracked files, as git prints it."""

    commit: str | None
    branch: str | None
    diff: bytes

    @property
    def sha256(self) -> str | None:
        """The hash of the diff; None if it is empty."""
        return hashlib.sha256(self.diff).hexdigest() if self.diff else None


def state(directory: str) -> GitState | None:
    """Return the state of the checkout around ``directory``; None if there is no checkout or no git."""
    try:
        paths = ("--show-toplevel", "--git-path", "index", "--git-path", "objects")
        places = _git(directory, "rev-parse", *paths)  # starts no other program, nor do the next ones
        if places is None:
            return None
        commit = (_git(directory, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip() or None
        branch = (_git(directory, "symbolic-ref", "--short", "--quiet", "HEAD") or "").strip() or None
        top, *others = places.removesuffix("\n").split("\n")
        index, objects = (os.path.abspath(os.path.join(directory, one)) for one in others)
        diff = _diff(directory, top, index, objects, commit)
    except (OSError, SchedulerError, ValueError):
        return None
    return None if diff is None else GitState(commit, branch, diff.encode("utf-8", "surrogateescape"))


def _diff(directory: str, top: str, index: str, objects: str, commit: str | None) -> str | None:
    """Return the changes of tracked files; None if they cannot be read."""
    kept = _git(directory, "config", "--get-regexp", f"^({_KEPT})$") or ""
    with tempfile.TemporaryDirectory(prefix="jobgen-git-") as folder:
        repository = Path(folder)
        for name in ("objects", "refs"):
            (repository / name).mkdir()
        (repository / "HEAD").write_text(f"{commit or 'ref: refs/heads/none'}\n")
        (repository / "config").write_text(_configuration(kept))
        places = {"GIT_DIR": folder, "GIT_WORK_TREE": top, "GIT_INDEX_FILE": index, "HOME": folder}
        places |= {"GIT_OBJECT_DIRECTORY": objects, "XDG_CONFIG_HOME": folder, **_NO_CONFIGURATION}
        return _git(top, "diff", *_PLAIN, *(("HEAD",) if commit else ("--cached",)), **places)


def _configuration(kept: str) -> str:
    """Return the file of these settings, lines of a name and a value."""
    sha256 = re.search(r"^extensions\.objectformat sha256$", kept, re.MULTILINE)
    lines = ["[core]", f"repositoryformatversion = {1 if sha256 else 0}", "bare = false"]
    lines += [f"{name} = {value}" for name, value in re.findall(r"^core\.(\w+) (\w+)$", kept, re.MULTILINE)]
    return "\n".join([*lines, *(["[extensions]", "objectformat = sha256"] if sha256 else []), ""])


def _git(directory: str, *words: str, **env: str) -> str | None:
    done = call(("git", "--no-optional-locks", *words), directory, _PATIENCE, env)
    return done.out if done.status == 0 else None
