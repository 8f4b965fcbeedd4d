"""The facts about a login node that a site file needs beside those of the scheduler: its modules,
interfaces and groups."""

from __future__ import annotations

import getpass
import grp
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from jobgen.errors import JobgenError
from jobgen.hosts.calls import SchedulerError
from jobgen.hosts.host import HERE, Host
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.cluster import Facts
from jobgen.site_making.creation import LoginNode
from jobgen.values import parsers

_PATIENCE = 30  # s; the modules of large systems take long
# The programs of modules by the parts of their names: cuda/12.4, compilers/cuda/12.4.
_PROGRAMS = {
    "CUDA": r"cuda|cudatoolkit|cuda-toolkit|nvhpc|nvidia-hpc-sdk",
    "MPI": r"openmpi|ompi|mpich|mvapich2?|intel-?mpi|impi|intel-oneapi-mpi|hpcx|cray-mpich",
    "conda": r"(ana|mini)conda[23]?|miniforge3?|mambaforge|micromamba|mamba|conda",
    "CANN": r"cann|ascend|ascend-toolkit|cann-toolkit",
    "ROCm": r"rocm",
}
_VIRTUAL = r"lo|docker|veth|br-|virbr|cni|flannel|cali|tun|tap|podman|ifb|dummy|sit"
_INFINIBAND = "32"  # https://www.kernel.org/doc/html/latest/networking/ipoib.html: ARPHRD_INFINIBAND


def facts_of(scheduler: Scheduler, command: str, host: Host = HERE) -> Facts:
    """Return what the scheduler lists, for a command of jobgen.

    Raises:
        JobgenError: it is not on this host, does not answer, or lists no queue that can be read.
    """
    try:
        facts = scheduler.cluster().facts(host)
    except SchedulerError as error:
        raise JobgenError(f"{command}: {error}") from None
    if not facts.queues:
        quoted = "".join(f": {line}" for line in facts.unread[:1])
        raise JobgenError(f"{command}: no queue can be read in the output of {facts.commands}{quoted}")
    return facts


def host_facts(scheduler: Scheduler) -> LoginNode:
    """Return the facts about this host."""
    return user_facts()._replace(
        cluster=scheduler.cluster().configured(),
        modules=modules_in(available_modules()),
        interfaces=interfaces(),
    )


def user_facts(host: Host = HERE) -> LoginNode:
    """Return the name of a machine, and the user and the groups of its processes."""
    if host is not HERE:
        name, groups = (host.output(*words).strip() for words in (("hostname",), ("id", "-Gn")))
        return LoginNode(name, groups=tuple(groups.split()), user=host.user)
    return LoginNode(socket.gethostname(), groups=tuple(_groups()), user=getpass.getuser())


def available_modules(host: Host = HERE) -> str:
    """Return what ``module avail`` prints, in the short form of Lmod and of Environment Modules; empty
    without modules. ``module`` is a function of login shells."""
    try:
        done = host.call(("bash", "-lc", "module -t avail 2>&1"), patience=_PATIENCE)
    except JobgenError:
        return ""
    return done.out if done.status == 0 else ""


def modules_in(text: str) -> dict[str, tuple[str, ...]]:
    """Return the modules in the short form of ``module avail`` by what they are for, in its order."""
    found: dict[str, list[str]] = {what: [] for what in _PROGRAMS}
    for line in text.splitlines():
        name = re.sub(r"\s*[(<].*$", "", line.strip())
        if name.endswith((":", "/")) or not re.fullmatch(r"[\w.+@/-]{1,120}", name, re.ASCII):
            continue
        for what, pattern in _PROGRAMS.items():
            if any(re.fullmatch(pattern, part, re.IGNORECASE) for part in name.split("/")):
                found[what].append(parsers.module(name))
    return {what: tuple(dict.fromkeys(names)) for what, names in found.items()}


def interfaces(known: Path = Path("/sys/class/net")) -> tuple[str, ...]:
    """Return the network interfaces of this host without virtual ones; those of InfiniBand are the last."""
    return without_virtual({path.name: _type(path) for path in known.glob("*")})


def without_virtual(types: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of network interfaces, by their types, without virtual ones; those of InfiniBand are
    the last."""
    names = sorted(name for name in types if not re.match(_VIRTUAL, name))
    return tuple(sorted(names, key=lambda name: types[name] == _INFINIBAND))


def _type(path: Path) -> str:
    try:
        return (path / "type").read_text().strip()
    except OSError:
        return ""


def _groups() -> list[str]:
    """Return the names of the user's groups; those without a name are left out."""
    names: Mapping[int, str] = {one.gr_gid: one.gr_name for one in grp.getgrall()}
    # getgroups need not have the primary group.
    return [names[number] for number in dict.fromkeys((os.getgid(), *os.getgroups())) if number in names]
