"""Every option on every scheduler: it changes the script, or it is refused with a sentence that names it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.boxes import ROOT

from jobgen import JobgenError, JobSpec, render
from jobgen.commands.init import example
from jobgen.options import OPTIONS, Option
from jobgen.schedulers.table import SCHEDULERS

# What an option needs beside it. Without one of these it is refused.
NEEDS: dict[str, dict[str, Any]] = {
    "mail_on": {"mail": "me@example.org"},
    "container": {"image": "a.sif"},
    "image": {"container": "apptainer"},
    "bind": {"container": "apptainer", "image": "a.sif"},
    "container_arg": {"container": "apptainer", "image": "a.sif"},
    "include": {"launcher": "deepspeed"},
    "exclude": {"launcher": "deepspeed"},
    "mpi": {"launcher": "mpirun"},
    "remote": {"launcher": "torchrun"},
    "launcher_arg": {"launcher": "torchrun"},
}
# Values that differ from the defaults and suit every scheduler, where the example does not.
VALUES: dict[str, Any] = {
    "mpi": "mpich",
    "launcher": "mpirun",
    "accelerator": "npu",
    "rank_logs": "rank",
    "runtime": "beside",
    "include": "host1:0",
    "nodes": 3,
    "name": "other",
    "walltime": "2h",
    "runs_dir": "elsewhere",
    "remote": "ssh",
}


def value(option: Option, kind: str) -> Any:
    """Return a value that is not the default."""
    if option.key == "preflight":  # it is on by default where there are several nodes
        return SCHEDULERS[kind].one_host
    if option.key == "dialect":
        return "pbspro" if kind == "torque" else "torque"
    return VALUES.get(option.key, example(option, kind))


def rendered(kind: str, **values: Any) -> tuple[str, str]:
    """Return the script, or the error."""
    scheduler = SCHEDULERS[kind]
    shape = {"ranks_per_node": 2} if scheduler.one_host else {"nodes": 2, "gpus_per_node": 2}
    dialect = {} if "dialect" in scheduler.lacks else {"dialect": kind}
    try:
        return render(JobSpec(scheduler.command_name, ("true",), **{**shape, **dialect, **values})), ""
    except JobgenError as error:
        return "", str(error)


@pytest.fixture(autouse=True)
def _variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of variables in the example of --env-file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokens.env").write_text("HF_TOKEN=x\n")


@pytest.mark.parametrize("kind", SCHEDULERS)
@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_an_option_is_seen_or_refused(option: Option, kind: str) -> None:
    lacks = SCHEDULERS[kind].lacks
    needs = {key: one for key, one in NEEDS.get(option.key, {}).items() if key not in lacks}
    script, error = rendered(kind, **needs, **{option.key: value(option, kind)})
    if error:
        assert error.startswith(f"{option.key} = ")
        assert "\n" not in error
    else:
        assert option.key not in lacks
        assert script != rendered(kind, **needs)[0]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_an_option_is_described(option: Option) -> None:
    """It has help, an example, an entry in the schema and a place in the docs; tests/test_completion.py completes it."""
    assert option.help.rstrip().endswith((".", "]"))
    assert example(option, "pbspro") not in (None, "")
    schema = (ROOT / "jobgen/jobgen.schema.json").read_text()
    assert any(option.name in one["properties"] for one in json.loads(schema)["$defs"].values())
    docs = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    assert re.search(rf"{option.flag}\b(?!-)|`{option.name}`", docs)
