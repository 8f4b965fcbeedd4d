"""The processors of ranks compared with those next to their devices, and lists of processors that match.
Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from jobgen.topology import cpus
from jobgen.topology.cpus import Cpus
from jobgen.topology.tools import Near

_NAMED = 4  # ranks that a sentence describes


class Seat(NamedTuple):
    """A rank by its number on its node, with its processors, its device, and the topology next to the
    device."""

    rank: int
    cpus: Cpus
    device: str
    near: Near


def with_domain(near: Near, domains: Mapping[int, Cpus]) -> Near:
    """Return the topology next to a device; the domain follows from the processors, or these from the domain.

    The processors of the domain count: in a job, a tool may list only those that the job has.
    """
    if near.domain is not None and near.domain in domains:
        return near._replace(cpus=domains[near.domain])
    homes = [domain for domain, those in domains.items() if near.cpus and near.cpus <= those]
    return near._replace(cpus=domains[homes[0]], domain=homes[0]) if homes else near


def far(seats: Sequence[Seat]) -> list[Seat]:
    """Return the ranks that have no processor of the domain of their device."""
    return [one for one in seats if one.cpus and one.near.cpus and not one.cpus & one.near.cpus]


def wide(seats: Sequence[Seat]) -> list[Seat]:
    """Return the ranks that have processors of the domain of their device, and of other domains."""
    return [one for one in seats if one.cpus & one.near.cpus and one.cpus - one.near.cpus]


def sentence(seats: Sequence[Seat], domains: Mapping[int, Cpus]) -> str:
    """Return a sentence on the domains of these ranks and of their devices; of many ranks, the first ones."""
    texts = [
        f"rank {one.rank} of the node runs on the processors {cpus.write(one.cpus)} "
        f"({numa(one.cpus, domains)}), but {one.device} is next to {cpus.write(one.near.cpus)} "
        f"({numa(one.near.cpus, domains)}{beside(one.near)})"
        for one in seats[:_NAMED]
    ]
    more = f"; {len(seats) - _NAMED} more ranks" if len(seats) > _NAMED else ""
    return "; ".join(texts) + more


def numa(those: Cpus, domains: Mapping[int, Cpus]) -> str:
    """Return a text such as ``NUMA 0`` or ``NUMA 0-3`` for the domains of these processors."""
    return f"NUMA {cpus.write(domain for domain, here in domains.items() if here & those) or '?'}"


def beside(near: Near) -> str:
    """Return a text such as ``, beside mlx5_1`` if the nearest network adapters are known."""
    return f", beside {' and '.join(near.adapters)}" if near.adapters else ""


def lists(nears: Sequence[Cpus], cores: Sequence[Cpus], allowed: Cpus, each: int = 1) -> list[str]:
    """Return a list of processors for each rank, next to its device. Ranks of one domain share its cores.

    ``nears`` are the processors next to the device of each rank. Processors outside of ``allowed`` are left
    out if enough others remain. A rank gets the first hardware threads of its cores, and the others if these
    are fewer than ``each``. Empty if the ranks do not fit.
    """
    found = _lists(nears, [core & allowed for core in cores], each)
    return found or _lists(nears, cores, each)


def _lists(nears: Sequence[Cpus], cores: Sequence[Cpus], each: int) -> list[str]:
    listed = []
    for rank, near in enumerate(nears):
        home = sorted((core & near for core in cores if core & near), key=min)
        others = [one for one, those in enumerate(nears) if those == near]
        place = others.index(rank)
        first, last = (len(home) * end // len(others) for end in (place, place + 1))
        if first == last:
            return []
        listed.append(cpus.write(_threads(home[first:last], each)))
    return listed


def _threads(cores: Sequence[Cpus], each: int) -> Collection[int]:
    """Return the first hardware thread of each core; if these are fewer than ``each``, all of them."""
    firsts = [min(core) for core in cores]
    return firsts if len(firsts) >= each else frozenset().union(*cores)
