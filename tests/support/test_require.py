"""Skipped on a user's machine, failed on CI."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from support import ROOT, require
from support.cluster import SYSTEMS
from support.pbs import OPENPBS


@pytest.mark.parametrize("ci", [None, "", "false", "False"])
def test_what_is_absent_is_skipped(monkeypatch: pytest.MonkeyPatch, ci: str | None) -> None:
    monkeypatch.delenv("CI", raising=False)
    if ci is not None:
        monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.skip.Exception, match="no-such-command"):
        require.need_command("sh", "no-such-command")


@pytest.mark.parametrize("ci", ["true", "1", "woodpecker"])
def test_what_is_absent_fails_on_ci(monkeypatch: pytest.MonkeyPatch, ci: str) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.fail.Exception, match="no_such_package"):
        require.need_package("json", "no_such_package")


def test_a_slurm_that_is_not_installed_is_skipped_on_ci_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setitem(SYSTEMS, "24.11", "/nosuch")
    with pytest.raises(pytest.skip.Exception, match="Slurm 24.11 is not installed"):
        require.need_cluster("24.11")


def test_what_is_there_is_found() -> None:
    assert require.need_command("sh").endswith("/sh")
    require.need_package("pytest")


def test_a_scheduler_without_a_package_is_skipped_on_ci_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    absent = replace(OPENPBS, installed=Path("/nowhere/pbs_mom"))
    with pytest.raises(pytest.skip.Exception, match="OpenPBS is not installed here"):
        require.need_pbs(absent)


TESTS = """
import pytest
from support import not_installed

@pytest.mark.parametrize("number", range(3))
def test_of_openpbs(number): not_installed.skip("OpenPBS")

def test_of_torque(): not_installed.skip("Torque")

def test_other(): pytest.skip("for another reason")
"""


def test_skipped_tests_are_counted_over_all_sessions_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "test_them.py").write_text(TESTS)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "JOBGEN_NOT_INSTALLED": "numbers"}

    def printed(*words: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        ).stdout

    for _ in range(2):
        summary = printed("pytest", "-p", "support.not_installed", "-p", "no:cacheprovider")
        assert (
            "OpenPBS is not installed: 3 tests skipped\nTorque is not installed: 1 test skipped\n" in summary
        )
    assert printed("support.not_installed", "numbers").splitlines() == [
        "OpenPBS is not installed: 6 tests skipped",
        "Torque is not installed: 2 tests skipped",
    ]


def test_what_the_user_of_the_jobs_cannot_reach_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """On CI the way is opened, but no further than to those who know it."""
    monkeypatch.delenv("CI", raising=False)
    with tempfile.TemporaryDirectory() as closed:
        inside = Path(closed, "folder")
        inside.mkdir()
        with pytest.raises(pytest.skip.Exception, match=rf"chmod o\+x {closed}"):
            require.need_readable(inside)
        monkeypatch.setenv("CI", "true")
        require.need_readable(inside)
        assert Path(closed).stat().st_mode & 0o777 == 0o701
