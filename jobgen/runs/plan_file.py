"""plan.json: all that determines a job, to compare it with another job and to render it again.

It contains no user name, no environment except ``--env``, and no secrets: ``***`` stands for them.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from jobgen import spec as spec_module
from jobgen.errors import JobgenError, shown
from jobgen.options import BY_KEY
from jobgen.plan.plan import Plan
from jobgen.rendering.explanation import rows
from jobgen.runs.regular_file import LARGEST, open_file
from jobgen.secrets import MASK, masked_data
from jobgen.spec import Component, Specification, Step, SweepRequest

FORMAT = 1
NAME = "plan.json"


class PlanValue(msgspec.Struct, frozen=True):
    """A resolved value, its origin, and the value of the request (null: none)."""

    value: Any
    origin: str
    request: Any = None


class SourceRecord(msgspec.Struct, frozen=True):
    """A file or folder that contributed to the script."""

    kind: str
    path: str
    sha256: str | None


class Git(msgspec.Struct, frozen=True):
    """The checkout that the job was submitted from.

    ``dirty``: tracked files have changed since the commit; ``diff`` is the file next to plan.json with the
    change, null if it is too large.
    """

    commit: str | None
    branch: str | None
    dirty: bool
    diff_sha256: str | None
    diff: str | None


class PlanFile(msgspec.Struct, frozen=True):
    """The whole file. Later formats only add keys; a reader ignores unknown keys."""

    format: int
    jobgen: str
    submitted: float
    """Seconds since 1970."""
    scheduler: str
    name: str
    command: list[str]
    directory: str
    host: str
    python: str
    program: PlanValue
    options: dict[str, PlanValue]
    derived: dict[str, PlanValue]
    script_sha256: str
    site: str | None = None
    kind: str = ""
    """The kind of nodes in the queue of the site."""
    sources: list[SourceRecord] = []
    templates: list[str] = []
    git: Git | None = None
    packages: dict[str, str] = {}
    sweep: SweepRequest | None = None
    steps: tuple[Step, ...] = ()
    components: tuple[Component, ...] = ()


def of(
    plan: Plan,
    text: str,
    command: Sequence[str],
    directory: str,
    sources: Sequence[SourceRecord],
    templates: Sequence[str],
    git: Git | None,
) -> PlanFile:
    """Return the file of a plan that was rendered as the script ``text``."""
    spec = plan.spec
    resolved = {row.name: row for row in rows(plan)}
    requests = msgspec.to_builtins({key: getattr(spec, key) for key in BY_KEY})
    words = resolved.pop("program")
    return PlanFile(
        format=FORMAT,
        jobgen=plan.version,
        submitted=round(time.time(), 3),
        scheduler=spec.scheduler,
        name=spec.name,
        command=list(command),
        directory=directory,
        host=platform.node(),
        python=platform.python_version(),
        program=PlanValue(list(plan.program.words), words.origin, list(spec.program)),
        options={key: PlanValue(resolved[key].value, resolved[key].origin, requests[key]) for key in BY_KEY},
        derived={key: PlanValue(row.value, row.origin) for key, row in resolved.items() if key not in BY_KEY},
        script_sha256=sha256(text.encode()),
        site=spec.site.name if spec.site else None,
        kind=spec.site.kind if spec.site else "",
        sources=list(sources),
        templates=list(templates),
        git=git,
        packages=packages(spec, directory),
        sweep=spec.sweep,
        steps=spec.steps,
        components=spec.components,
    )


def spec_of(file: PlanFile) -> Specification:
    """Return the specification of that job, which resolves to the same plan.

    Raises:
        JobgenError: this version lacks an option of the file, or does not accept a value.
    """
    hints = get_type_hints(Specification.__mro__[1], {**vars(spec_module), "Site": Any})
    if unknown := [
        key for key in file.options if key not in BY_KEY and file.options[key].request is not None
    ]:
        raise JobgenError(f"{NAME} has the option {shown(unknown[0])}, which this version of jobgen lacks")
    values: dict[str, Any] = {key: option.default for key, option in BY_KEY.items()}
    values |= {"scheduler": file.scheduler, "program": tuple(file.program.request or ()), "texts": {}}
    values["origins"] = {key: one.origin for key, one in file.options.items() if one.origin != "default"}
    values["origins"]["program"] = file.program.origin
    values |= {"site": _site(file), "sweep": file.sweep, "steps": file.steps, "away": False}
    values["components"] = file.components
    if file.components:
        values["origins"]["components"] = NAME
    if file.sweep and "sweep" in file.derived:
        values["origins"]["sweep"] = file.derived["sweep"].origin
    try:
        for key, one in file.options.items():
            if key in BY_KEY and one.request is not None:
                values[key] = msgspec.convert(one.request, hints[key])
    except msgspec.ValidationError as error:
        raise JobgenError(f"{NAME} cannot be read: {key}: {error}") from None
    return Specification._make(values[field] for field in Specification._fields)


def _site(file: PlanFile) -> Any:
    """Return the site as its file is now; the options contain its values already."""
    path = next((one.path for one in file.sources if one.kind == "site"), None)
    if path is None:
        return None
    from jobgen.sites.loader import load

    return load(path, f"{NAME} names the site {file.site}", os.path.dirname(path))._replace(kind=file.kind)


def text(file: PlanFile) -> str:
    """Return the file as text, in ASCII: words may contain bytes that are not UTF-8."""
    return json.dumps(masked_data(msgspec.to_builtins(file)), indent=1) + "\n"


def masked_keys(file: PlanFile) -> list[str]:
    """Return the options whose values a file contains only in part, without their secrets."""
    requests = {key: one.request for key, one in file.options.items()}
    requests |= {"program": file.program.request, "sweep": msgspec.to_builtins(file.sweep)}
    requests["steps"] = msgspec.to_builtins(file.steps)
    return [key for key, value in requests.items() if MASK in json.dumps(value)]


def read(directory: Path) -> PlanFile:
    """Return the plan of a run.

    Raises:
        JobgenError: there is none, or it cannot be read.
    """
    origin = f"{directory / NAME}"
    try:
        return msgspec.convert(_loaded(directory / NAME), PlanFile)
    except FileNotFoundError:
        raise JobgenError(
            f"{origin} is not there: jobgen submit writes it, a script alone does not"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise JobgenError(f"{origin} cannot be read: {error}") from None


def _loaded(path: Path) -> Any:
    with open_file(path) as file:
        return json.loads(file.read(LARGEST))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def source(kind: str, path: str) -> SourceRecord:
    """Return a file, or all templates in a folder, with the hash of the current content."""
    folder = Path(path)
    files = sorted(folder.glob("*.j2")) if folder.is_dir() else [folder]
    try:
        data = b"".join(file.read_bytes() for file in files)
    except OSError:
        return SourceRecord(kind, os.path.abspath(path), None)
    return SourceRecord(kind, os.path.abspath(path), sha256(data))


def packages(spec: Specification, directory: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the Python packages of the job's environment, from the names of directories only; empty if only
    the job can find the environment."""
    conda = spec.conda if spec.conda and "/" in spec.conda else None
    root = spec.venv or conda or (None if spec.conda else environ.get("VIRTUAL_ENV"))
    place = Path(spec.directory_on_this_machine(directory))
    found = (place / os.path.expanduser(root)).glob("lib/python3*/site-packages/*.dist-info") if root else ()
    names = (re.fullmatch(r"(.+)-([^-]+)\.dist-info", path.name) for path in found)
    return dict(sorted((name[1].replace("_", "-").lower(), name[2]) for name in names if name))
