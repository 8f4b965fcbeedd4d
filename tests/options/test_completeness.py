"""Every option on every scheduler: it changes the script, or it is refused with a sentence that names it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from support import ROOT
from support.option_cases import job, needs_of, rendered, value

from jobgen.commands.init import example
from jobgen.errors import JobgenError
from jobgen.options import OPTIONS, Option
from jobgen.plan.plan import resolve
from jobgen.rendering.explanation import as_table
from jobgen.schedulers.table import SCHEDULERS


@pytest.fixture(autouse=True)
def _variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of variables in the example of --env-file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokens.env").write_text("HF_TOKEN=x\n")
    (tmp_path / "hosts").write_text("node1 slots=2\n")


@pytest.mark.parametrize("kind", SCHEDULERS)
@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_an_option_is_seen_or_refused(option: Option, kind: str) -> None:
    lacks = SCHEDULERS[kind].lacks
    needs = needs_of(option, kind)
    script, error = rendered(kind, **needs, **{option.key: value(option, kind)})
    if error:
        assert error.startswith(f"{option.key} = ")
        assert "\n" not in error
    else:
        assert option.key not in lacks
        assert script != rendered(kind, **needs)[0]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_an_option_is_described(option: Option) -> None:
    """It has help, an example, an entry in the schema and a place in the docs; tests/commands/test_completion.py completes it."""
    assert option.help.rstrip().endswith((".", "]"))
    assert example(option, "pbspro") not in (None, "")
    schema = (ROOT / "jobgen/jobgen.schema.json").read_text()
    assert any(option.name in one["properties"] for one in json.loads(schema)["$defs"].values())
    docs = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    assert re.search(rf"{option.flag}\b(?!-)|`{option.name}`", docs)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_an_option_is_explained(option: Option) -> None:
    tables = []
    for kind in SCHEDULERS:
        with suppress(JobgenError):
            plan = resolve(job(kind, **needs_of(option, kind), **{option.key: value(option, kind)}))
            tables.append(as_table(plan, 200, every=True))
    assert all(f"\n{option.key} " in one for one in tables)
