"""A directory with scripts, job files and runs, in which every command finds something to do."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from golden.cases import CASES, plan_of
from support import runs as made

from jobgen.rendering.render import render
from jobgen.runs import plan_file

SCRIPT = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --time=01:00:00\nset -euo pipefail\nsrun ./a.out\n"


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of this machine without those of schedulers."""
    folder = tmp_path_factory.mktemp("tools")
    for path in Path("/usr/bin").iterdir():
        if not re.match(
            r"s(acct|alloc|attach|bcast|batch|cancel|control|diag|info|prio|queue|run|share|stat)|q[a-z]+|pbs",
            path.name,
        ):
            (folder / path.name).symlink_to(path)
    return folder


def fill(folder: Path) -> None:
    """Write job.sh and the runs into a directory."""
    (folder / "job.sh").write_text(SCRIPT)
    (folder / "bin").mkdir()
    plan = plan_of(CASES["slurm_one_node"])
    text = render(plan)
    for name, losses in (("one", [2.0, 1.0]), ("two", [2.0, 0.5])):
        run = made.run(
            folder / "runs" / name, made.rows(losses), status={"state": "finished"}, job_id="4711\n"
        )
        (run / "job.sh").write_text(text)
        (run / plan_file.NAME).write_text(
            plan_file.text(plan_file.of(plan, text, ["jobgen"], "/", (), (), None))
        )


@pytest.fixture
def place(tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: job.sh, and the runs ``one`` and ``two``. There is no scheduler on PATH.

    Its parent has nothing else: other tests write beside ``tmp_path`` while a command reads ``..``.
    """
    here = tmp_path / "place"
    here.mkdir()
    fill(here)
    (here / "folder").mkdir()
    (here / "loop").symlink_to("loop")
    (here / "dangling").symlink_to("nowhere")
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", f"{here / 'bin'}:{tools}")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    monkeypatch.setenv("XDG_CACHE_HOME", cache)  # what a test has downloaded serves all
    monkeypatch.setenv("HOME", str(here))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(here / "config"))
    return here
