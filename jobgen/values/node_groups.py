"""Groups of nodes: ``2x4+1x8`` is 2 nodes of 4 ranks and 1 node of 8."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobgen.values.parsers import Whole


class Group(NamedTuple):
    """A number of nodes with the same number of ranks."""

    nodes: int
    ranks: int


SUBMITTED = 0  # the number of nodes that the script is submitted with


Nodes = int | tuple[Group, ...]


class NodeCount(Whole):
    """A parser for a number of nodes, or for groups of nodes with different numbers of ranks."""

    def __call__(self, text: str) -> Nodes:  # type: ignore[override]
        if text == "submitted":
            return SUBMITTED
        if re.fullmatch(r"-?[0-9]+", text):
            return super().__call__(text)
        number = "[1-9][0-9]{0,4}"
        if not re.fullmatch(rf"{number}x{number}(\+{number}x{number})*", text):
            raise ValueError(
                "must be a whole number of at least 1, the word submitted, or groups of nodes: 2x4+1x8 is 2 "
                "nodes of 4 ranks and 1 of 8"
            )
        groups = tuple(Group(*map(int, part.split("x"))) for part in text.split("+"))
        if len({group.ranks for group in groups}) == 1:
            raise ValueError(
                "must be nodes that differ, such as 2x4+1x8; for equal nodes "
                f"use --nodes {total(groups)} --ranks-per-node {groups[0].ranks}"
            )
        return groups


def total(nodes: Nodes) -> int:
    """Return the number of nodes."""
    return nodes if isinstance(nodes, int) else sum(group.nodes for group in nodes)


def world_size(nodes: Nodes, ranks: int) -> int:
    """Return the number of ranks; equal nodes have ``ranks`` each."""
    return sum(group.nodes * group.ranks for group in groups_of(nodes, ranks))


def groups_of(nodes: Nodes, ranks: int) -> tuple[Group, ...]:
    """Return the groups; equal nodes, with ``ranks`` each, are one group."""
    return (Group(nodes, ranks),) if isinstance(nodes, int) else nodes


def most_ranks(nodes: Nodes) -> int | None:
    """Return the ranks of the largest node; None if the nodes are equal."""
    return None if isinstance(nodes, int) else max(group.ranks for group in nodes)


def groups_text(nodes: Nodes) -> str | None:
    """Return groups as text, such as ``2x4+1x8``: each number of ranks once, as the script counts its
    nodes."""
    if isinstance(nodes, int):
        return None
    counts = dict.fromkeys(sorted(group.ranks for group in nodes), 0)
    for group in nodes:
        counts[group.ranks] += group.nodes
    return "+".join(f"{count}x{size}" for size, count in counts.items())
