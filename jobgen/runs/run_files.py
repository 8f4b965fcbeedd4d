"""The files of a new run directory, with their contents and modes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from jobgen.errors import JobgenError, setting, shown
from jobgen.plan.plan import Plan
from jobgen.rendering.runtime import runtime
from jobgen.runs import plan_file
from jobgen.runs.code import git
from jobgen.runs.plan_file import Git, PlanFile
from jobgen.runs.run_directory import SCRIPT, START
from jobgen.spec import Specification
from jobgen.values.parsers import read_env_file

ENVIRONMENT = "environment"  # the variables whose values the script does not contain
_DIFF = "git.diff"
_PRIVATE = (SCRIPT, ENVIRONMENT, _DIFF)  # only the user can read them, also with --group-readable
_DIFF_LIMIT = 1_000_000  # bytes; of a larger change only the hash is kept


def make_run_dir(root: Path, name: str, group: bool = False) -> Path:
    """Make a new directory NAME-YYYYMMDD-HHMMSS (UTC); further ones of the same second get a number.

    Raises:
        JobgenError: it cannot be made.
    """
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        for number in range(1, 10_000):
            path = root / (stem if number == 1 else f"{stem}-{number}")
            with suppress(FileExistsError):
                _make(path, group)
                return path
    except OSError as error:
        raise JobgenError(f"the run directory {shown(str(root))} cannot be made: {error.strerror}") from None
    raise JobgenError(f"{root} has 9999 runs of this second already")


def git_of(directory: str) -> tuple[Git | None, bytes]:
    """Return the checkout as plan.json describes it, and the diff to store next to plan.json."""
    state = git.state(directory)
    if state is None:
        return None, b""
    kept = 0 < len(state.diff) <= _DIFF_LIMIT
    about = Git(state.commit, state.branch, bool(state.diff), state.sha256, _DIFF if kept else None)
    return about, state.diff if kept else b""


def contents(plan: Plan, file: PlanFile, text: str, diff: bytes) -> dict[str, bytes]:
    """Return the contents of the files of a run directory by their names."""
    files = {
        SCRIPT: text.encode(),
        START: os.fsencode(f"{file.directory}\n"),
        plan_file.NAME: plan_file.text(file).encode("ascii"),
        _DIFF: diff,
        ENVIRONMENT: _environment(plan.spec),
    }
    if plan.spec.runtime == "beside":
        beside = runtime(plan)
        files[beside.file] = beside.text.encode()
    return {name: data for name, data in files.items() if data}


def fill(directory: Path, files: Mapping[str, bytes], group: bool) -> None:
    """Write the files into a run directory; the group may read those that hold no secrets.

    Raises:
        JobgenError: one cannot be written.
    """
    try:
        for name, data in files.items():
            _write(directory / name, data, mode_of(name, group))
    except OSError as error:
        raise JobgenError(f"{shown(str(directory))} cannot be written: {error.strerror}") from None


def mode_of(name: str, group: bool) -> int:
    """Return the mode of a file of a run; the group may read those that hold no secrets."""
    return 0o700 if name == SCRIPT else 0o640 if group and name not in _PRIVATE else 0o600


def _environment(spec: Specification) -> bytes:
    """Return NAME=VALUE and a NUL for each variable; the values are of this process and of ``--env-file``."""
    read = {name: value for path, _ in spec.env_file for name, value in _variables(spec, path).items()}
    named = dict(spec.env)
    found = {name: os.environ.get(name) if name in named else read.get(name) for name in spec.secrets}
    for name, value in found.items():
        if value is None:
            key = "env" if name in named else "env_file"
            what = "is not set here: export it first" if name in named else "is not in the file any more"
            raise JobgenError(
                f"{setting(key, spec.origin(key))} {name} ({spec.origin(key)}): the variable {what}"
            )
    return b"".join(os.fsencode(f"{name}={value}\0") for name, value in found.items())


def _variables(spec: Specification, path: str) -> dict[str, str]:
    try:
        return read_env_file(path)
    except (OSError, ValueError) as error:
        origin = spec.origin("env_file")
        raise JobgenError(f"{setting('env_file', origin)} {shown(path)} ({origin}): {error}") from None


def _make(directory: Path, group: bool) -> None:
    """Make a directory with the mode 0700, or 0750; the bit setgid of its parent stays."""
    directory.mkdir(mode=0o700)
    if group:
        directory.chmod(directory.stat().st_mode & 0o7777 | 0o050)


def _write(path: Path, data: bytes, mode: int) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
