"""Skipped on a user's machine, failed on CI."""

from __future__ import annotations

import pytest

from support import require


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
