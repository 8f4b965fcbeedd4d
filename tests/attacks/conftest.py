"""A directory with scripts, job files and runs, in which every command finds something to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden.cases import CASES, plan_of
from support import runs as made

from jobgen.rendering.render import render
from jobgen.runs import plan_file

SCRIPT = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --time=01:00:00\nset -euo pipefail\nsrun ./a.out\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: job.sh, and the runs ``one`` and ``two``. There is no scheduler."""
    (tmp_path / "job.sh").write_text(SCRIPT)
    (tmp_path / "bin").mkdir()
    plan = plan_of(CASES["slurm_one_node"])
    text = render(plan)
    for name, losses in (("one", [2.0, 1.0]), ("two", [2.0, 0.5])):
        run = made.run(
            tmp_path / "runs" / name, made.rows(losses), status={"state": "finished"}, job_id="4711\n"
        )
        (run / "job.sh").write_text(text)
        plan_file.write(plan_file.of(plan, text, ["jobgen"], "/", (), (), None), run)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "PATH",
        f"{tmp_path / 'bin'}:/bin:/usr/bin" if not Path("/bin/sbatch").exists() else str(tmp_path / "bin"),
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path
