"""The network adapters that variables leave to a device, and nearer ones that they leave out. Pure.

NCCL_IB_HCA, NCCL_SOCKET_IFNAME:  https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
UCX_NET_DEVICES:                  https://openucx.readthedocs.io/en/master/faq.html
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

# How a device and an adapter are connected, the nearest first. SYS: they are of different domains.
LINKS = ("PIX", "PXB", "PHB", "NODE", "SYS")
_NAMED = 4  # devices that a sentence describes


class Variable(NamedTuple):
    """A variable that chooses adapters: whether it takes beginnings of names, and whether its adapters are
    network interfaces, whose data are TCP."""

    prefixes: bool
    interfaces: bool


VARIABLES = {
    "NCCL_IB_HCA": Variable(prefixes=True, interfaces=False),
    "UCX_NET_DEVICES": Variable(prefixes=False, interfaces=False),
    "NCCL_SOCKET_IFNAME": Variable(prefixes=True, interfaces=True),
}


class FarDevice(NamedTuple):
    """A device that a variable separates from its nearest adapters.

    ``has`` are the adapters that the variable leaves it, ``nearer`` those that it excludes; ``link`` and
    ``nearest`` are the kinds of their links to the device.
    """

    device: str
    has: tuple[str, ...]
    link: str
    nearer: tuple[str, ...]
    nearest: str


def matching_adapters(value: str, there: Iterable[str], prefixes: bool = True) -> list[str]:
    """Return the adapters of a host that a value chooses: ``mlx5_0:1,mlx5_1``, ``=mlx5_0``, ``^mlx5_2``.

    With ``prefixes`` a name is the beginning of names, unless the value has a ``=``. Ports are left out.
    """
    words = [word.partition(":")[0].strip() for word in value.lstrip("^=").split(",")]
    exact, out = not prefixes or "=" in value[:2], value.startswith("^")
    if not prefixes and words == ["all"]:
        return [*there]
    fits = {name: any(name == word if exact else name.startswith(word) for word in words) for name in there}
    return [name for name, fit in fits.items() if fit != out]


def near(links: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nearest adapters of a device; none if all are of other domains."""
    link = min((one for one in links.values() if one in LINKS), key=LINKS.index, default="SYS")
    return tuple(name for name, one in links.items() if one == link) if link != "SYS" else ()


def far_devices(variable: Variable, value: str, links: Mapping[str, Mapping[str, str]]) -> list[FarDevice]:
    """Return the devices whose nearest adapters a value leaves out.

    ``links`` has, for each device, the link of each adapter of the host. Devices without an adapter in their
    domain are left out, and so are all if the value names no adapter of this host.
    """
    far = []
    for device, each in links.items():
        has = matching_adapters(value, each, variable.prefixes)
        best = min((each[name] for name in has if each[name] in LINKS), key=LINKS.index, default="")
        nearest = near(each)
        if best and nearest and LINKS.index(best) > LINKS.index(each[nearest[0]]):
            far.append(
                FarDevice(device, tuple(n for n in has if each[n] == best), best, nearest, each[nearest[0]])
            )
    return far


def of_interfaces(value: str, domains: Mapping[str, int | None], home: int | None) -> dict[str, str]:
    """Return the links of a device of the domain ``home`` to interfaces of the kinds that a value chooses.

    ``domains`` has the domain of each interface of the host. The kind is the name without its numbers: the
    others of a host are of other networks.
    """
    kinds = {_kind(name) for name in matching_adapters(value, domains)}
    same = {name: at for name, at in domains.items() if _kind(name) in kinds and at is not None}
    return {name: "NODE" if at == home else "SYS" for name, at in same.items()} if home is not None else {}


def _kind(name: str) -> str:
    return re.sub(r"\d+", "", name)


def sentence(name: str, value: str, far: Sequence[FarDevice]) -> str:
    """Return what a value leaves to each of these devices; of many, to the first ones."""
    texts = [
        f"{name}={value} leaves {one.device} {' and '.join(one.has)} ({one.link}), "
        f"but {' and '.join(one.nearer)} ({one.nearest}) is nearer"
        for one in far[:_NAMED]
    ]
    more = f"; {len(far) - _NAMED} more devices" if len(far) > _NAMED else ""
    return "; ".join(texts) + more


def better(links: Mapping[str, Mapping[str, str]]) -> str:
    """Return a value that leaves the nearest adapters to each device."""
    return ",".join(dict.fromkeys(_names(links)))


def _names(links: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for each in links.values():
        yield from sorted(near(each))
