"""Results of conversions: those of the scripts beside this file are golden and clean; job files of jobgen's scripts request the same."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomllib
from convert import golden_cases
from convert.conversions import job_file
from golden import cases
from support.require import need_command

from jobgen import JobSpec, render
from jobgen.check.checker import check
from jobgen.jobfile.schema import COMPONENT_KEYS
from jobgen.options import BY_KEY

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("path", "target"), golden_cases.CASES, ids=lambda value: value if isinstance(value, str) else value.stem
)
def test_golden(path: Path, target: str) -> None:
    assert golden_cases.result(path, target) == golden_cases.golden(path, target).read_text(encoding="utf-8")


def test_no_golden_is_left_over() -> None:
    assert {golden_cases.golden(*case) for case in golden_cases.CASES} == set((HERE / "golden").iterdir())


@pytest.mark.parametrize("path", sorted((HERE / "golden").glob("*.sh")), ids=lambda path: path.stem)
def test_converted_scripts_are_as_clean_as_their_source(path: Path) -> None:
    # SC1091: a file that is not here. SC2016: for the shell of the ranks.
    done = subprocess.run(
        [need_command("shellcheck"), "--exclude=SC1091,SC2016", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
    target = path.suffixes[0][1:]
    assert [one for one in check(path.read_bytes(), scheduler=target) if one.severity == "error"] == []


@pytest.mark.parametrize("path", sorted((HERE / "golden").glob("*.toml")), ids=lambda path: path.stem)
def test_job_files_hold_jobgens_own_options(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    file: dict[str, Any] = tomllib.loads(text)
    assert file.pop("scheduler") in ("pbs", "slurm")
    program = file.pop("program", {})
    assert {key for one in file.pop("component", []) for key in one} <= {*COMPONENT_KEYS}
    assert set(program) <= {"command"}
    options = {key: value for table in file.values() for key, value in table.items()}
    assert set(options) <= set(BY_KEY)
    for name, value in options.pop("env", {}).items():
        BY_KEY["env"].parse(f"{name}={value}")
    for key, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            BY_KEY[key].parse(("yes" if one else "no") if isinstance(one, bool) else str(one))


def schedulers_lines(text: str) -> list[str]:
    """Return the directives. Those of a user are written for each component of a job."""
    return sorted({line for line in text.split("\n") if line.startswith(("#PBS", "#SBATCH"))})


# Without those with directives of a site, and those for this machine.
OWN_SCRIPTS = [
    name for name, command in cases.CASES.items() if "--site" not in command and not name.startswith("local_")
]


@pytest.mark.parametrize("name", OWN_SCRIPTS)
def test_a_job_file_of_our_script_requests_the_same(name: str, tmp_path: Path) -> None:
    text = cases.script(cases.CASES[name])
    path = tmp_path / "job.toml"
    own = "[program]\ncommand = ['train.py']\n" if name.endswith("_components") else ""
    path.write_text(job_file(text, "torque" if name.startswith("torque_") else None).text + own)
    again = render(JobSpec.from_file(path))
    assert schedulers_lines(again) == schedulers_lines(text)
