"""On which machine the path of each option lies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from golden.cases import plan_of
from support import ROOT
from support.shell_host import ShellHost

from jobgen.errors import JobgenError
from jobgen.options import HERE, OPTIONS, THERE
from jobgen.plan.plan import Plan
from jobgen.runs.code import sides
from jobgen.runs.code.selection import Upload, selection


class Other(ShellHost):
    """A host that has only what is in its root."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = root

    def run(self, script, *rest):  # type: ignore[no-untyped-def]
        return super().run(script.replace("[ -e ", f"[ -e {self._root}"), *rest)


def plan(options: str) -> Plan:
    return plan_of(f"slurm --nodes 1 {options}")


def test_the_page_has_all_options() -> None:
    page = (ROOT / "docs/code-travels.md").read_text()
    rows = dict(re.findall(r"^\| `(--[\w-]+)` \| (the host|your machine) \|$", page, re.MULTILINE))
    names = {HERE: "your machine", THERE: "the host"}
    assert rows == {row.flag: names[row.place] for row in OPTIONS if row.place}


def test_the_paths_of_a_job() -> None:
    options = "--source /etc/x --bind /data:/d:ro --log logs/%x.log --workdir sub --stage /data/a.tar:a"
    job = plan(f"{options} --container apptainer --image image.sif -- train.py --data /data")
    assert sides.lines(job) == [
        "--log logs: a path of the host, or in the code",
        "--source /etc/x: a path of the host, or in the code",
        "--image image.sif: a path of the host, or in the code",
        "--bind /data: a path of the host, or in the code",
        "--workdir sub: a path of the host, or in the code",
        "--stage /data/a.tar: a path of the host, or in the code",
    ]
    assert sides.paths(plan("-- sub/train.py")) == [sides.Path("the program", "sub/train.py", THERE)]


def test_a_path_on_the_wrong_side_is_refused(checkout: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (checkout / ".gitignore").write_text("local*\n.venv\n")
    for name in ("local.py", "local.sif", ".venv/pyvenv.cfg"):
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text("")
    code = selection(str(checkout), Upload())

    def refusal(options: str) -> str:
        with pytest.raises(JobgenError) as error:
            sides.check(Other(root), plan(options), code, str(checkout))
        return str(error.value)

    both = checkout / "train.py"
    sides.check(Other(root), plan("--venv /nowhere/venv --workdir other -- train.py"), code, str(checkout))
    for place in ("~/other", "$OTHER/x"):
        sides.check(Other(root), plan(f"--workdir {place} -- local.py"), code, str(checkout))
    assert refusal(f"--source {both} -- train.py").startswith("--source ")
    assert refusal(f"--source {both} -- train.py").endswith(
        "exists here, and not on lab, where the job needs it"
    )
    assert refusal(f"-- {both}").startswith("the program ")
    assert refusal("-- local.py").endswith("is not sent to lab: --upload local.py sends it")
    assert refusal("--venv .venv -- train.py").endswith("make it there, and give its absolute path")
    (root / str(both)[1:]).parent.mkdir(parents=True)
    (root / str(both)[1:]).write_text("")
    sides.check(Other(root), plan(f"--source {both} -- train.py"), code, str(checkout))
