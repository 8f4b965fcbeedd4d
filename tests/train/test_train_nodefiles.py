"""Files that the ranks of a node share."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from jobgen.train import nodefiles


def test_no_folder_is_long(tmp_path: Path) -> None:
    for per_node in (1, 4, 8, 128):
        ranks = range(0, 80_000, per_node)
        folders = Counter(nodefiles.place(tmp_path, rank, 0, "n").parent for rank in ranks)
        assert len(folders) <= 200
        assert max(folders.values()) <= 400
        last = nodefiles.place(tmp_path, 800 + per_node - 1, per_node - 1, "n")
        assert last == nodefiles.place(tmp_path, 800, 0, "n")
    assert nodefiles.place(tmp_path, 1, 3, "n").parent.name == "0"  # ranks that go round the hosts


def write(file: Path, rank: int) -> None:
    for number in range(50):
        nodefiles.append(file, json.dumps({"rank": rank, "number": number, "long": "x" * 5000}) + "\n")


def test_what_several_ranks_add_at_once_does_not_mix(tmp_path: Path) -> None:
    file = tmp_path / "nodes" / "0" / "n.json"
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(write, [file] * 4, range(4)))
    found = list(nodefiles.objects(file))
    assert len(found) == len(file.read_text().splitlines()) == 200
    for rank in range(4):
        assert [each["number"] for each in found if each["rank"] == rank] == list(range(50))


def test_what_is_not_there_or_not_whole_is_left_out(tmp_path: Path) -> None:
    assert list(nodefiles.files(tmp_path / "nowhere")) == []
    assert list(nodefiles.objects(tmp_path / "nowhere")) == []
    nodefiles.append(tmp_path / "0" / "b", '{"rank": 1}\n[1]\n{"rank": 2')
    nodefiles.append(tmp_path / "10" / "a", "")
    nodefiles.append(tmp_path / "9" / "a", "")
    assert [str(file.relative_to(tmp_path)) for file in nodefiles.files(tmp_path)] == ["0/b", "9/a", "10/a"]
    assert list(nodefiles.objects(tmp_path / "0" / "b")) == [{"rank": 1}]
