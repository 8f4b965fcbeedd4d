"""``--cases N``: run at most N cases of each parametrized test, spread over all of its cases."""

from __future__ import annotations

from itertools import groupby

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=int, metavar="N", help="run at most N cases of each parametrized test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if limit := config.getoption("--cases"):
        kept = [item for _, cases in groupby(items, _function) for item in _spread(list(cases), limit)]
        chosen = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = kept


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _spread(cases: list[pytest.Item], limit: int) -> list[pytest.Item]:
    return cases[:: -(-len(cases) // limit)]
