"""What a fetch does that a host cannot be made to do in a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobgen.runs.remote import fetch
from jobgen.runs.remote.place import Place


def test_of_a_file_that_grows_faster_than_it_is_fetched_the_first_part_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[int] = []

    def pull(place: Place, name: str, path: Path) -> bool:
        assert len(shown) < 10
        with path.open("ab") as file:
            file.write(b"0123456789")
        return True

    known = [fetch.RemoteFile("grows", 25)]
    monkeypatch.setattr(fetch, "listed", lambda place: known)
    monkeypatch.setattr(fetch, "pull_from", pull)
    monkeypatch.setattr(fetch, "_different", lambda place, files: [])
    place = Place(tmp_path, "narval", "/there")
    assert fetch.fetch(place, ["grows"], lambda file, size: shown.append(size)) == known
    assert ((tmp_path / "grows").stat().st_size, shown) == (30, [0, 10, 20])
