"""The state of the git checkout that a job is submitted from."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from jobgen.schedulers.calls import SchedulerError, call

_PATIENCE = 20  # s; a checkout on a slow file system must not keep a job from being submitted


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
        if _git(directory, "rev-parse", "--is-inside-work-tree") != "true\n":
            return None
        commit = (_git(directory, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip() or None
        branch = (_git(directory, "symbolic-ref", "--short", "--quiet", "HEAD") or "").strip() or None
        against = ("HEAD",) if commit else ("--cached",)
        plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--binary")
        diff = _git(directory, "diff", *plain, *against) or ""
    except SchedulerError:
        return None
    return GitState(commit, branch, diff.encode("utf-8", "surrogateescape"))


def _git(directory: str, *words: str) -> str | None:
    done = call(("git", "--no-optional-locks", *words), directory, _PATIENCE)
    return done.out if done.status == 0 else None
