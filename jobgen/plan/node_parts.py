"""Parts of each node of a job, for programs that run side by side: some of its devices and cores.

The numbers of devices and cores are those within the job: device 1 is the second one that the job has on a
node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jobgen.errors import JobgenError, counted
from jobgen.topology.cpus import write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobgen.spec import Specification

Amount = int | tuple[int, ...]  # how many, the next free ones; or which


class PartRequest(NamedTuple):
    """A request for a part of a node; ``name`` is that of its program in messages.

    Without ``devices`` it is a part without devices. Cores that are not given are in proportion to them.
    """

    name: str
    devices: Amount | None
    cores: Amount | None


class NodePart(NamedTuple):
    """The devices and the cores of a part, and the variable that shows the devices to a program (None: the
    node has none)."""

    devices: tuple[int, ...]
    cores: tuple[int, ...]
    variable: str | None

    @property
    def device_text(self) -> str:
        """Return the devices as the runtime reads them."""
        return ",".join(map(str, self.devices)) or "none"

    @property
    def core_text(self) -> str:
        """Return the cores as a list of ranges."""
        return write(self.cores)

    def ranks(self, of_node: int, devices: int, cores: int) -> int:
        """Return the number of ranks in proportion, if the whole node has ``of_node``."""
        share = of_node * len(self.devices) // devices if self.devices else of_node * len(self.cores) // cores
        return max(1, share)


def divide(
    requests: Sequence[PartRequest], devices: int, cores: int, variable: str | None
) -> tuple[NodePart, ...]:
    """Return the parts of a node with so many devices and cores, for requests at the same time.

    Raises:
        JobgenError: together they need more than there is, or share a device or a core.
    """
    for one in requests:
        if one.devices and not devices:
            raise JobgenError(f"gpus = {_text(one.devices)} ({one.name}): the job has no devices; use cores")
        if not one.devices and one.cores is None:
            raise JobgenError(f"gpus = 0 ({one.name}): a part without devices needs cores, such as cores = 4")
    of_devices = _Supply("gpus", "GPUs", devices).serve([(one.name, one.devices or 0) for one in requests])
    shares = [
        (one.name, one.cores if one.cores is not None else max(1, cores * len(own) // devices))
        for one, own in zip(requests, of_devices, strict=True)
    ]
    of_cores = _Supply("cores", "cores", cores).serve(shares)
    return tuple(
        NodePart(tuple(own), tuple(its), variable if devices else None)
        for own, its in zip(of_devices, of_cores, strict=True)
    )


class _Supply(NamedTuple):
    """What the job has of one kind on each node."""

    key: str
    unit: str
    total: int

    def serve(self, requests: Sequence[tuple[str, Amount]]) -> list[list[int]]:
        """Return the numbers for each request: those that it names, or the lowest that no other one has."""
        owners: dict[int, str] = {}
        for name, amount in requests:
            for number in amount if isinstance(amount, tuple) else ():
                self._check(name, amount, number, owners)
                owners[number] = name
        free = [number for number in range(self.total) if number not in owners]
        counts = [amount for _, amount in requests if isinstance(amount, int)]
        if sum(counts) > len(free):
            raise self._too_many(requests)
        numbers = iter(free)
        return [
            list(amount) if isinstance(amount, tuple) else [next(numbers) for _ in range(amount)]
            for _, amount in requests
        ]

    def _check(self, name: str, amount: Amount, number: int, owners: dict[int, str]) -> None:
        place = f"{self.key} = {_text(amount)} ({name})"
        if number >= self.total:
            last = f", 0 to {self.total - 1}" if self.total else ""
            raise JobgenError(f"{place}: the job has {self.total} {self.unit} on each node{last}")
        if number in owners:
            raise JobgenError(f"{place}: number {number} is that of {owners[number]}, too; give each its own")

    def _too_many(self, requests: Sequence[tuple[str, Amount]]) -> JobgenError:
        sizes = [len(one) if isinstance(one, tuple) else one for _, one in requests]
        name, last = next(one for one in reversed(requests) if one[1])
        more = "gpus_per_node" if self.key == "gpus" else "cpus_per_rank or cpus_per_node"
        total = " + ".join(str(size) for size in sizes if size)
        total += f" = {sum(sizes)}" if "+" in total else ""
        return JobgenError(
            f"{self.key} = {_text(last)} ({name}): programs at the same time need {total} {self.unit} of "
            f"each node, but the job has {counted(self.total, self.unit[:-1])}; give each fewer, "
            f"or the job more, by {more} in [resources]"
        )


def _text(amount: Amount) -> str:
    return str(amount) if isinstance(amount, int) else write(amount)


def check_variable(spec: Specification, part: NodePart, owner: str, remedy: str) -> None:
    """Refuse the variable of the devices in the environment of a job; ``remedy`` helps where a site sets it.

    Raises:
        JobgenError: it would replace the devices of the part.
    """
    if part.variable not in dict(spec.env):
        return
    reason = f"{part.variable} would replace the devices of {owner}; leave it out"
    if not spec.is_of_site("env"):
        raise spec.refuse("env", reason)
    where = f"env {part.variable} ({spec.origin('env')})"
    raise JobgenError(f"{where}: {reason}, or, where the site sets it, {remedy}", "env")
