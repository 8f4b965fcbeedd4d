"""What the nodes leave in an attempt: ranks that began and ended, and the logs of single ranks."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import runs as made

from jobgen.runs import node_files, run_directory, states


def notes(attempt: Path, text: str, host: str = "a", folder: int = 0) -> None:
    (attempt / f"nodes/{folder}").mkdir(parents=True, exist_ok=True)
    (attempt / f"nodes/{folder}/{host}.ranks").write_text(text)


def test_statuses_that_are_complete_are_all_that_is_read(tmp_path: Path) -> None:
    made.nodes(tmp_path, ranks=1000, per_node=8, statuses=dict.fromkeys(range(1000), 0), over=True)
    whole = node_files.ranks(tmp_path)
    assert [rank.number for rank in whole] == list(range(1000))
    (tmp_path / "nodes").rename(tmp_path / "elsewhere")
    alone = node_files.ranks(tmp_path, complete=True)
    assert [(rank.number, rank.host, rank.ended, rank.status) for rank in alone] == [
        (rank.number, rank.host, rank.ended, rank.status) for rank in whole
    ]


def test_status_and_list_read_no_file_of_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made.run(tmp_path / "run", attempts=(75, 0))
    for name in ("ranks", "log_of", "times"):
        monkeypatch.delattr(node_files, name)
    [state], _ = states.states([run])
    assert (state.state, state.attempts) == ("finished", 2)


def test_ranks_that_gave_no_status_are_those_that_began(tmp_path: Path) -> None:
    made.run(tmp_path / "run", attempts=(75,))
    made.attempt(tmp_path / "run", 2, 137)
    statuses = {0: 0, 1: 137, 2: 0}
    made.nodes(tmp_path / "run/attempt-2", ranks=4, per_node=2, statuses=statuses, over=True)
    failed = run_directory.failed_ranks(run_directory.read(tmp_path / "run").attempts[1])
    assert [(rank.number, rank.host, rank.status) for rank in failed] == [
        (1, "node1", 137),
        (3, "node2", None),
    ]


def test_of_a_rank_that_began_twice_the_last_time_counts(tmp_path: Path) -> None:
    notes(tmp_path, "began 0 1 5.5 a\nended 0 1 6.5 a\nbegan 0 2 7.5 a\nended 0 0 9.5 a\n")
    notes(tmp_path, "began 1 1 5.5 a\nended 1 1 6.5 a\n", "b")
    notes(tmp_path, "began 1 1 7.5 c\n", "c")
    assert [(rank.number, rank.host, rank.began, rank.status) for rank in node_files.ranks(tmp_path)] == [
        (0, "a", 7.5, 0),
        (1, "c", 7.5, None),
    ]


@pytest.mark.parametrize(
    "torn", ["ended 0 0 6.", "ended 0 0 6.5 ", "ended 0 0 6.5 a", "ended x 0 6.5 a\n", "\0"]
)
def test_a_torn_line_is_none(torn: str, tmp_path: Path) -> None:
    notes(tmp_path, f"began 0 1 5.5 a\n{torn}")
    assert node_files.ranks(tmp_path) == (node_files.Rank(0, "a", 5.5, None, None),)


@pytest.mark.parametrize("others", [0, 1, 500_000])
def test_the_last_lines_of_a_rank_however_much_the_others_wrote_later(others: int, tmp_path: Path) -> None:
    notes(tmp_path, "began 1 1 5.5 a\nbegan 11 1 5.5 a\n")
    said = "".join(f"1: line {number}\n11: no\n" for number in range(30))
    (tmp_path / "nodes/0/a.log").write_text(said + "11: no\n" * others + "1: \xe4\r\n11: no")
    log = node_files.log_of(tmp_path, 1)
    assert log is not None
    expected = [*(f"line {number}" for number in range(11, 30)), "\xe4"]
    assert node_files.tail(log).split("\n") == expected
    assert node_files.tail(node_files.Log(log.path), 1) == "11: no"


def test_the_log_of_a_host_that_no_file_can_be_named_after(tmp_path: Path) -> None:
    notes(tmp_path, "began 0 1 5.5 ../x\n", "x")
    (tmp_path / "nodes/0/x.log").touch()
    assert node_files.log_of(tmp_path, 0, "../x") == node_files.Log(tmp_path / "nodes/0/x.log", b"0: ")
    assert node_files.log_of(tmp_path, 1, "../x") is None
