"""The lab of Torque starts although processes have got the ids in its old locks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.pbs import TORQUE, PbsCluster


@pytest.mark.parametrize("runs", [False, True])
def test_only_the_locks_of_ended_daemons_are_removed(
    runs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PbsCluster, "_pids", lambda self, host: ["1"] if runs and host == "tqn2" else [])
    lock, job = tmp_path / "tqsrv/server_priv/server.lock", tmp_path / "tqn1/mom_priv/jobs"
    for path in (lock, job):
        path.parent.mkdir(parents=True)
        path.write_text("1\n")
    (tmp_path / "torque.sh").write_text("#!/bin/sh\n")
    (tmp_path / "torque.sh").chmod(0o755)
    PbsCluster(replace(TORQUE, spool=tmp_path, settings=(), node_settings=()), tmp_path).up()
    assert (lock.exists(), job.exists()) == (runs, True)
