"""Damaged run directories, and schedulers that lie."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from attacks.targets import TARGETS, Target, attack, named, part

READERS = [
    one for one in TARGETS if named(one) in ("status", "list", "logs", "cancel", "diff", "report", "submit")
]
FILES = (
    *("plan.json", "job.sh", "job-id", "submission", "status.json", "metrics.jsonl", "attempt-1/events"),
    *("attempt-1/statuses", "attempt-1", "hosts", "bad-hosts", "attempt-1/nodes", "task-0", "sweep.json"),
    *("attempt-1/control", "cancelled"),
)
CONTENTS = [
    *(b"", b"\x00\xff\x1b]0;x\x07", b"{", b"[]", b"null", b"[" * 100_000, b"9" * 5000, b'{"format": 1}', b"\n" * 1000),
    *(b"1 began 5\n9 ended 99999999999999999999\n", b"nan began x\ninf ended -1\n", b"0 1 5.0 \x1b[31mhost\n", b"1 output /dev/zero\n"),
    *(b'{"step": 1e400, "loss": NaN, "event": [], "seconds": {}}\n', b'{"step": 1' + b"0" * 4000 + b"}\n", b'{"state": {}, "exit_status": "x"}'),
]  # fmt: skip
WRONG = [None, True, -1, 10**400, "", "\x1b[31m\n", [], [[]], {}, {"value": []}, "../../x", "slurm", 1.5]


def _absent(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


SHAPES: list[Callable[[Path], None]] = [lambda _: None, Path.mkdir, _loop, os.mkfifo]


def _words(target: Target) -> list[str]:
    return {"diff": ["diff", "one", "two"], "submit": ["submit", "--again", "one", "--dry-run"], "list": ["list"], "report": ["report", "one", "--force"]}.get(named(target), [named(target), "one"])  # fmt: skip


def _everywhere(target: Target) -> None:
    done = attack(_words(target))
    assert "\x1b" not in done.err
    assert "\x1b" not in done.out or named(target) in ("logs", "submit")  # a log and a script are as they are


@pytest.mark.parametrize("target", READERS, ids=named)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file(target: Target, name: str, place: Path) -> None:
    path = place / "runs/one" / name
    for shape in SHAPES:
        _absent(path)
        path.parent.mkdir(exist_ok=True)
        shape(path)
        _everywhere(target)
    for content in part(CONTENTS, 3, name, named(target)):
        _absent(path)
        path.write_bytes(content)
        _everywhere(target)


@pytest.mark.parametrize("target", READERS, ids=named)
def test_a_plan_with_values_of_other_types(target: Target, place: Path) -> None:
    path = place / "runs/one/plan.json"
    plan = json.loads(path.read_text())
    changes = [(plan, key) for key in plan] + [
        (plan["options"], key) for key in ("name", "nodes", "env", "program") if key in plan["options"]
    ]
    for table, key in changes:
        before = table[key]
        for value in part(WRONG, 5, key, named(target)):
            table[key] = value if table is plan else {"value": value, "origin": value, "asked": value}
            path.write_text(json.dumps(plan))
            _everywhere(target)
        table[key] = before
