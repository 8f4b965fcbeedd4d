"""Skipped on a user's machine, failed on CI."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from support import require
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


def test_what_is_there_is_found() -> None:
    assert require.need_command("sh").endswith("/sh")
    require.need_package("pytest")


def test_without_a_build_the_sentence_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("OPENPBS_BUILD", raising=False)
    monkeypatch.setattr(require, "need_root", lambda: None)
    with pytest.raises(
        pytest.skip.Exception, match=r"OPENPBS_BUILD must name a folder .*openpbs\.sh install"
    ):
        require.need_pbs(OPENPBS)


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
