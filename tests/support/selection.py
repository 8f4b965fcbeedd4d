"""``--cases N``: run at most N cases of each parametrized test, spread over all of its cases. ``--pbs only`` runs the
tests that use OpenPBS or Torque, which all workers share, ``--pbs none`` the others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import pytest

CLUSTERS = {"openpbs_cluster", "torque_cluster"}
WORDS = ("pbs", "torque")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=int, metavar="N", help="run at most N cases of each parametrized test")
    parser.addoption(
        "--pbs", choices=("only", "none"), help="run the tests that use OpenPBS or Torque, or the others"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = list(_kept(config, items))
    if len(kept) < len(items):
        chosen = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = kept


def _kept(config: pytest.Config, items: list[pytest.Item]) -> Iterator[pytest.Item]:
    limit, pbs = config.getoption("--cases"), config.getoption("--pbs")
    for _, group in groupby(items, _function):
        cases = [item for item in group if pbs is None or uses_pbs(item) == (pbs == "only")]
        yield from cases[:: -(-len(cases) // limit)] if limit and cases else cases


def uses_pbs(item: pytest.Item) -> bool:
    """Return whether a test may use a cluster of PBS: by a fixture, or by a name in its parameters or its module."""
    names = getattr(item, "fixturenames", ())
    return not CLUSTERS.isdisjoint(names) or any(word in item.nodeid for word in WORDS)


def need_part(config: pytest.Config) -> None:
    """Fail if a test that was taken for one without PBS uses it: nodes may lose their power at that time."""
    assert config.getoption("--pbs") != "none", "uses_pbs in support/selection.py does not know this test"


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
