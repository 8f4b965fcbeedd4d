"""Each launcher x each way in which a job can end x each scheduler, all of them real.

The jobs of one scheduler run side by side, from the first test of it on; each test looks at one of them.
What is expected, and what a scheduler makes impossible, is in support/matrix.py.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from support import old_bash
from support.matrix import BAD, LOST, Cell, cells
from support.pbs import PbsCluster
from support.story import AnyCluster, Outcome, faults, play, play_end

SIDE_BY_SIDE = int(os.environ.get("JOBGEN_MATRIX_JOBS", "6"))

Outcomes = Mapping[Cell, "Future[Outcome]"]


def parameters() -> list[object]:
    """One worker has all cells of a scheduler."""
    return [
        pytest.param(cell, id=cell.name, marks=pytest.mark.xdist_group(f"matrix-{cell.scheduler}"))
        for cell in cells()
    ]


def record(cell: Cell, outcome: Outcome) -> None:
    """Append a line of JSON to the file that JOBGEN_MATRIX_RECORD names: tools/write_matrix.py makes the page of it."""
    if path := os.environ.get("JOBGEN_MATRIX_RECORD"):
        line = {
            "cell": [cell.scheduler, cell.launcher, cell.end],
            "bash": ".".join(map(str, old_bash.version())),
            "faults": faults(cell, outcome),
            "status": outcome.job.exit_code,
            "saved": len(outcome.saved),
            "bad": outcome.bad,
            "left": len(outcome.left),
            "seconds": round(outcome.seconds),
            "report": str(outcome),
        }
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def played(cluster: AnyCluster, cell: Cell) -> Outcome:
    outcome = play(cluster, cell)
    record(cell, outcome)
    return outcome


@pytest.fixture(scope="module")
def wanted(request: pytest.FixtureRequest) -> list[Cell]:
    """The cells that this session was asked for."""
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    return [call.params["cell"] for call in calls if call and isinstance(call.params.get("cell"), Cell)]


@pytest.fixture(scope="module")
def jobs_of(request: pytest.FixtureRequest, wanted: list[Cell]) -> Iterator[Callable[[str], Outcomes]]:
    """The outcomes of all jobs of a scheduler, which begin when the first of them is asked for."""
    with ExitStack() as pools:

        @functools.cache
        def begin(scheduler: str) -> Outcomes:
            cluster = request.getfixturevalue(f"{scheduler}_cluster")
            pool = pools.enter_context(ThreadPoolExecutor(SIDE_BY_SIDE))
            return {
                cell: pool.submit(played, cluster, cell) for cell in wanted if cell.scheduler == scheduler
            }

        yield begin


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cell", parameters())
def test_what_comes_of_the_job(cell: Cell, jobs_of: Callable[[str], Outcomes]) -> None:
    outcome = jobs_of(cell.scheduler)[cell].result()
    assert not faults(cell, outcome), str(outcome)


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("matrix-torque")
def test_a_node_dies_and_the_launcher_waits_for_it(torque_cluster: PbsCluster) -> None:
    """pbsdsh never returns from a node that has lost power, and the other ranks do not notice it."""
    outcome = play_end(torque_cluster, Cell("torque", "torchrun", "lost"), LOST)
    assert outcome.job.exit_code in BAD, str(outcome)
    assert f"{outcome.host} does not answer any more" in outcome.job.output, str(outcome)
    assert outcome.bad == f"{outcome.host}\tdoes not answer\n", str(outcome)
    [events] = outcome.folder.glob("runs/*/attempt-1/events")
    begun, *_, ended = (int(line.split()[0]) for line in events.read_text().splitlines())
    assert ended - begun < 120 + 20, events.read_text()
