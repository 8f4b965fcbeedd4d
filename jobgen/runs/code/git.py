"""The state of the git checkout that a job is submitted from.

A checkout may come from somebody else, and its configuration may name programs: fsmonitor, filters, hooks,
ways to reach a remote. So its files and changes are read with another configuration, that of an empty
repository.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from jobgen.errors import JobgenError, shown
from jobgen.hosts.calls import SchedulerError, call, complaint

_PATIENCE = 20  # s; a checkout on a slow file system must not keep a job from being submitted
_LIST_PATIENCE = 300  # s; without the list of the files no code can be sent
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
        checkout = _checkout(directory)
        if checkout is None:
            return None
        commit = _commit(directory)
        branch = (_git(directory, "symbolic-ref", "--short", "--quiet", "HEAD") or "").strip() or None
        diff = _diff(checkout, commit)
    except (OSError, SchedulerError, ValueError):
        return None
    return None if diff is None else GitState(commit, branch, diff.encode("utf-8", "surrogateescape"))


def _commit(directory: str) -> str | None:
    return (_git(directory, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip() or None


def top_of(directory: str) -> str | None:
    """Return the folder of the checkout around ``directory``; None if there is none.

    Raises:
        JobgenError: there is a checkout that git cannot be used for.
    """
    real = Path(os.path.realpath(directory))
    parents = (str(real), *map(str, real.parents))
    if not any(os.path.lexists(os.path.join(one, ".git")) for one in parents):
        return None
    try:
        done = call(("git", "rev-parse", "--show-toplevel"), directory, _PATIENCE, {"LC_ALL": "C"})
    except SchedulerError as error:
        raise JobgenError(f"the files of the checkout {shown(directory)} cannot be listed: {error}") from None
    if done.status != 0 and "not a git repository (or any" in done.err:
        return None  # and not: the repository that a file .git names is gone
    top = done.out.removesuffix("\n")
    if done.status != 0 or not os.path.lexists(os.path.join(top, ".git")) or top not in parents:
        why = complaint(done) if done.status != 0 else f"git says that its files are in {shown(top)}"
        raise JobgenError(f"the files of the checkout {shown(directory)} cannot be listed: {why}")
    return top


def files(top: str) -> set[str]:
    """Return the paths in the checkout ``top`` of the files that git knows, and of those that it does not
    ignore. A submodule is one path; an untracked repository is one that ends with a slash.

    Raises:
        JobgenError: git fails.
    """
    if (checkout := _checkout(top)) is None:
        raise JobgenError(f"the files of {shown(top)} cannot be listed: git does not find its index")
    excludes = (_git(top, "config", "--type=path", "--get", "core.excludesFile") or "").removesuffix("\n")
    if not excludes:
        own = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        excludes = os.path.join(own, "git", "ignore")
    words = ("-c", f"core.excludesFile={excludes}", "ls-files", "-z", "--cached", "--others")
    return _listed(checkout, *words, "--exclude-standard")


def ignored(folder: str, name: str) -> set[str]:
    """Return the paths that files called ``name`` exclude from a folder that is no checkout, in the syntax of
    .gitignore. A folder whose files are all excluded is one path, which ends with a slash.

    Raises:
        JobgenError: git fails.
    """
    words = ("--others", "--ignored", "--directory", f"--exclude-per-directory={name}")
    return _listed(_Checkout(folder), "ls-files", "-z", *words)


class _Checkout(NamedTuple):
    """A folder with files, and the paths of what git knows of them."""

    top: str
    index_file: str = os.devnull
    objects: str = os.devnull
    exclude: str = os.devnull


def _checkout(directory: str) -> _Checkout | None:
    """Return the checkout around ``directory``. This starts no other program, nor does reading a ref."""
    names = ("index", "objects", "info/exclude")
    paths = (word for name in names for word in ("--git-path", name))
    places = _git(directory, "rev-parse", "--show-toplevel", *paths)
    if places is None:
        return None
    top, *others = places.removesuffix("\n").split("\n")
    return _Checkout(top, *(os.path.abspath(os.path.join(directory, one)) for one in others))


def _listed(checkout: _Checkout, *words: str) -> set[str]:
    try:
        with _repository(checkout) as places:
            done = call(("git", "--no-optional-locks", *words), checkout.top, _LIST_PATIENCE, places)
    except (OSError, SchedulerError) as error:
        raise JobgenError(f"the files of {shown(checkout.top)} cannot be listed: {error}") from None
    if done.status != 0:
        raise JobgenError(f"the files of {shown(checkout.top)} cannot be listed: {complaint(done)}")
    return set(done.out.split("\0")) - {""}


def _diff(checkout: _Checkout, commit: str | None, inside: str = "") -> str | None:
    """Return the changes of tracked files, also in submodules; None if they cannot be read. ``inside`` is the
    path of a submodule, with a slash."""
    prefixes = (f"--src-prefix=a/{inside}", f"--dst-prefix=b/{inside}")
    with _repository(checkout, commit) as places:
        since = ("HEAD",) if commit else ("--cached",)
        own = _git(checkout.top, "diff", *_PLAIN, *prefixes, *since, **places)
        has_modules = own is not None and os.path.exists(os.path.join(checkout.top, ".gitmodules"))
        known = _git(checkout.top, "ls-files", "--stage", "-z", **places) if has_modules else ""
    for path in re.findall(r"(?:^|\0)160000 [^\t\0]*\t([^\0]+)", known or ""):
        folder = os.path.join(checkout.top, path)
        module = _checkout(folder) if os.path.isdir(folder) else None
        if module and module.top == folder:
            own = f"{own}{_diff(module, _commit(folder), f'{inside}{path}/') or ''}"
    return own


@contextmanager
def _repository(checkout: _Checkout, commit: str | None = None) -> Iterator[dict[str, str]]:
    """Make an empty repository that has the index and the objects of a checkout; yield the variables with
    which git uses it."""
    kept = _git(checkout.top, "config", "--get-regexp", f"^({_KEPT})$") or ""
    with tempfile.TemporaryDirectory(prefix="jobgen-git-") as folder:
        repository = Path(folder)
        for name in ("objects", "refs", "info"):
            (repository / name).mkdir()
        (repository / "HEAD").write_text(f"{commit or 'ref: refs/heads/none'}\n")
        (repository / "config").write_text(_configuration(kept))
        (repository / "info" / "exclude").symlink_to(checkout.exclude)
        for part in Path(checkout.index_file).parent.glob("sharedindex.*"):  # of a split index
            (repository / part.name).symlink_to(part)
        places = {"GIT_DIR": folder, "GIT_WORK_TREE": checkout.top, "HOME": folder, "XDG_CONFIG_HOME": folder}
        if checkout.index_file != os.devnull:
            places |= {"GIT_INDEX_FILE": checkout.index_file, "GIT_OBJECT_DIRECTORY": checkout.objects}
        yield {**places, **_NO_CONFIGURATION}


def _configuration(kept: str) -> str:
    """Return the file of these settings, lines of a name and a value."""
    sha256 = re.search(r"^extensions\.objectformat sha256$", kept, re.MULTILINE)
    lines = ["[core]", f"repositoryformatversion = {1 if sha256 else 0}", "bare = false"]
    lines += [f"{name} = {value}" for name, value in re.findall(r"^core\.(\w+) (\w+)$", kept, re.MULTILINE)]
    return "\n".join([*lines, *(["[extensions]", "objectformat = sha256"] if sha256 else []), ""])


def _git(directory: str, *words: str, **env: str) -> str | None:
    done = call(("git", "--no-optional-locks", *words), directory, _PATIENCE, env)
    return done.out if done.status == 0 else None
