"""``--gpu-telemetry`` on each scheduler with a program that stands in for nvidia-smi: one a node, and none after any end."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from support.cluster import Cluster
from support.matrix import ENDS, Cell
from support.pbs import PbsCluster
from support.story import play_end

pytestmark = pytest.mark.timeout(600)

STAND_IN = Path(__file__).parents[1] / "support" / "nvidia-smi.sh"
LAUNCHERS = {
    "well": "torchrun",
    "killed": "mpirun4",
    "delete": "torchrun",
    "purge": "mpirun4",
    "cancel": "none",
}


@pytest.fixture(params=["slurm", "slurm24", "openpbs", "torque"])
def cluster(request: pytest.FixtureRequest) -> Cluster | PbsCluster:
    found: Cluster | PbsCluster = request.getfixturevalue(f"{request.param}_cluster")
    return found


def prepared(folder: Path) -> Path:
    """Return a script to source, which lets a job find the stand-in."""
    (folder / "smi").mkdir()
    (folder / "smi").chmod(0o777)
    (folder / "nvidia-smi").write_bytes(STAND_IN.read_bytes())
    (folder / "nvidia-smi").chmod(0o755)
    source = folder / "smi.sh"
    source.write_text(
        f"export PATH={shlex.quote(str(folder))}:$PATH SMI_PLACE={shlex.quote(str(folder / 'smi'))}\n"
    )
    return source


@pytest.mark.parametrize("end", LAUNCHERS)
def test_one_tool_a_node_ends_with_the_job(
    cluster: Cluster | PbsCluster, request: pytest.FixtureRequest, end: str
) -> None:
    kind = request.node.callspec.params["cluster"]
    folder = cluster.folder(f"telemetry-{end}")
    options = (
        "--source",
        str(prepared(folder)),
        "--accelerator",
        "cuda",
        "--gpus-per-node",
        "2",
        "--gpu-telemetry",
    )
    how = replace(ENDS[end], options=options, on_slurm=())
    outcome = play_end(cluster, Cell(kind, LAUNCHERS[end], f"telemetry-{end}"), how)
    assert not outcome.left, str(outcome)
    nodes = 1 if LAUNCHERS[end] == "none" else 2
    started = [path.read_text().splitlines() for path in (folder / "smi").iterdir()]
    assert [len(lines) for lines in started] == [1] * nodes, started
    assert "--loop=10" in started[0][0]
    files = list(outcome.folder.glob("runs/*/attempt-1/nodes/0/*.devices"))
    assert len(files) == nodes, str(outcome)
    for file in files:
        head, *samples = file.read_text().splitlines()
        assert head == "# 2 nvidia-smi"
        assert samples or end in ("delete", "purge"), str(outcome)
        # The tool may have been killed in its last sample.
        assert all(re.fullmatch(r"\d{10} 0:97/49 1:0/0", line) for line in samples[:-1]), samples
