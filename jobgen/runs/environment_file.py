"""The file ``environment`` of a run: the variables whose values its script does not contain."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from jobgen.errors import JobgenError, setting, shown
from jobgen.spec import Specification
from jobgen.values.parsers import read_env_file

NAME = "environment"


def content(spec: Specification, environ: Mapping[str, str] = os.environ) -> bytes:
    """Return NAME=VALUE and a NUL for each variable; values are those of ``environ`` and of ``--env-file``.

    Raises:
        JobgenError: a variable is not set, or a file cannot be read any more.
    """
    read = {name: value for path, _ in spec.env_file for name, value in _read(spec, path).items()}
    named = dict(spec.env)
    found = {name: environ.get(name) if name in named else read.get(name) for name in spec.secrets}
    for name, value in found.items():
        if value is None:
            key = "env" if name in named else "env_file"
            what = "is not set here: export it first" if name in named else "is not in the file any more"
            raise JobgenError(
                f"{setting(key, spec.origin(key))} {name} ({spec.origin(key)}): the variable {what}"
            )
    return b"".join(os.fsencode(f"{name}={value}\0") for name, value in found.items())


def _read(spec: Specification, path: str) -> dict[str, str]:
    try:
        values = read_env_file(path)
        if os.stat(path).st_mode & 0o077:
            print(f"jobgen: warning: others may read {shown(path)}: chmod 600 it", file=sys.stderr)
    except (OSError, ValueError) as error:
        origin = spec.origin("env_file")
        raise JobgenError(f"{setting('env_file', origin)} {shown(path)} ({origin}): {error}") from None
    return values
