"""The options of directives, and the request that they make, in one form for all schedulers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from jobgen.values.parsers import number


class DirectiveOption(NamedTuple):
    """An option of a directive. On Slurm ``flag`` is the long name; ``given`` is the option as written.

    ``missing``: the directive ends before the value. ``value_line`` is the line of a value that is in a later
    directive.
    """

    line: int
    flag: str
    value: str
    given: str
    missing: bool = False
    value_line: int = 0

    @property
    def lacks_value(self) -> bool:
        """Return whether nothing follows the option, or only the next option, which it takes as its value."""
        return self.missing or (self.value_line > 0 and self.value.startswith("-"))


class Lack(NamedTuple):
    """A part of a request that a scheduler cannot express: the field, its text, and the reason.

    Without ``lost`` the nearest is written instead.
    """

    field: str
    what: str
    why: str
    lost: bool = True


GPUS_OF_NODE = 8  # few nodes have more


@dataclass
class Request:
    """The request of a script. Numbers are per node or per rank; what is missing or unreadable is None."""

    name: str | None = None
    queue: str | None = None
    account: str | None = None
    walltime: int | None = None  # in s
    nodes: int | None = None
    submitted: bool = False  # the script uses as many nodes as the submission names
    ranks_per_node: int | None = None
    cpus_per_rank: int | None = None
    gpus_per_node: int | None = None
    accelerator: str = "gpu"
    gpu_type: str | None = None
    mem: int | None = None  # in MiB, per node
    mem_per_node: int | None = None  # in MiB, if a directive requests this form
    mem_per_cpu: int | None = None  # in MiB, if a directive requests this form
    ranks: int | None = None  # of all nodes
    gpus: int | None = None  # of all nodes
    array: str | None = None
    depend: tuple[str, ...] = ()
    output: str | None = None
    error: str | None = None
    join: bool = False
    mail_user: str | None = None
    mail: str = ""  # letters of a, b and e; n for none
    mail_of_tasks: bool = False  # each task of an array sends it
    place: str | None = None
    exclusive: bool = False
    rerun: bool | None = None
    chunks: tuple[dict[str, str], ...] = ()  # of select; the count has the key ""
    totals: dict[str, str] = field(default_factory=dict)  # -l resources of the whole job

    @property
    def job_cpus(self) -> int | None:
        """The cores of the whole job, if ``-l ncpus`` names them."""
        return None if self.chunks else number(self.totals.get("ncpus"))

    @property
    def lines_per_node(self) -> int | None:
        """The number of lines per node in $PBS_NODEFILE; None if the request does not determine it."""
        if not self.chunks:
            return None
        key = "ppn" if any("ppn" in chunk for chunk in self.chunks) else "mpiprocs"
        return max(number(chunk.get(key)) or 1 for chunk in self.chunks)

    @property
    def unequal(self) -> bool:
        """Return whether it is that of several groups of chunks, with unequal numbers of ranks."""
        return bool(self.chunks) and self.ranks_per_node is None and (self.ranks or 0) > (self.nodes or 1)

    @property
    def has_whole_nodes(self) -> bool:
        """Return whether no other job is on the nodes: by the request, or by the number of GPUs."""
        gpus = self.gpus_per_node or (self.gpus or 0) // (self.nodes or 1)
        return self.exclusive or gpus >= GPUS_OF_NODE

    @property
    def several(self) -> bool:
        return (self.nodes or 1) > 1
