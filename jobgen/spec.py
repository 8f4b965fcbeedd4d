"""What the user asked for, checked value by value, each with its origin."""

from collections.abc import Mapping
from typing import NamedTuple

from jobgen.errors import JobgenError, setting

Filter = tuple[tuple[str, tuple[int, ...]], ...]


class JobSpec(NamedTuple):
    """A job as it was asked for; None where nothing was said.

    ``mem`` is in MiB a node, ``walltime`` in seconds. ``program`` is what followed ``--``,
    or the job file's.
    """

    scheduler: str
    program: tuple[str, ...]
    name: str
    queue: str | None
    account: str | None
    walltime: int | None
    mail: str | None
    directive: tuple[str, ...]
    dialect: str | None
    nodes: int
    gpus_per_node: int | None
    ranks_per_node: int | None
    cpus_per_rank: int | None
    mem: int | None
    accelerator: str | None
    launcher: str
    mpi: str | None
    remote: str
    launcher_arg: tuple[str, ...]
    include: Filter | None
    exclude: Filter | None
    master_port: int | None
    grace: int | None
    signal: tuple[str, int | None] | None
    requeue: int | None
    preflight: bool | None
    spare_nodes: int | None
    stall: int | None
    module: tuple[str, ...]
    source: tuple[str, ...]
    conda: str | None
    venv: str | None
    env: tuple[tuple[str, str], ...]
    workdir: str | None
    run_dir: str
    origins: Mapping[str, str]
    given: Mapping[str, str]

    def origin(self, key: str) -> str:
        """Where the value of ``key`` came from."""
        return self.origins.get(key, "default")

    def said(self, key: str) -> str:
        """``--key value (origin)``, or ``key = value``, as an error names a setting."""
        value = self.given.get(key, getattr(self, key))
        return f"{setting(key, self.origin(key))} {value} ({self.origin(key)})"

    def refuse(self, key: str, reason: str) -> JobgenError:
        """The error that a setting is refused for a reason."""
        return JobgenError(f"{self.said(key)}: {reason}")
