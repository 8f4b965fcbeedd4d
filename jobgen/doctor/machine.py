"""Checks of this host: its limits, disks and clock, and its access to the other nodes."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from jobgen.doctor.ops import nearest_directory
from jobgen.doctor.verdict import NOTE, OK, WARNING, Case, Verdict

_GIB = 1024**3
_LEAST = 5 * _GIB  # a checkpoint and its logs
_SKEW = 2  # s


def reach(case: Case) -> Iterator[Verdict]:
    """Check ssh, and the remote shell of the launcher, if the job uses them."""
    ssh = case.plan.spec.remote == "ssh" or case.plan.launch.agents[-1:] == ("ssh",)
    shell = case.plan.launch.row.remote_shell
    shell = shell if shell == case.plan.launch.start_nodes else ""
    if not ssh and not shell:
        return
    other = "" if case.plan.scheduler.behaviour.one_host else "--remote scheduler does not need it"
    for name in filter(None, (shell, "ssh")):
        if not case.here.which(name):
            yield Verdict(name, WARNING, "is not on PATH", "it starts the other nodes", other)
    if not case.here.which("ssh"):
        return
    words = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "StrictHostKeyChecking=accept-new")
    answer = case.here.ask((*words, os.uname().nodename, "true"), 15)
    if answer.status == 0:
        yield Verdict("ssh", OK, "connects to this host without a password")
    elif case.plan.launch.agents[:1] not in ((), ("ssh",)):
        yield Verdict("ssh", NOTE, answer.last, "it is only used if the scheduler's command fails")
    else:
        remedy = "ssh-keygen -t ed25519, then append its .pub to ~/.ssh/authorized_keys; " + other
        yield Verdict("ssh", WARNING, answer.last, "it starts the other nodes, without a terminal", remedy)


def interfaces(case: Case, known: Path = Path("/sys/class/net")) -> Iterator[Verdict]:
    """Check the network interfaces set for NCCL, HCCL and Gloo, which are prefixes of names. Gloo needs all
    of them, and takes no names to exclude.

    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    names = [path.name for path in known.glob("*")]
    for variable in ("NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        value, gloo = case.here.env.get(variable, ""), variable == "GLOO_SOCKET_IFNAME"
        listed = [word for word in (value if gloo else value.lstrip("=")).split(",") if word]
        if not listed or (value.startswith("^") and not gloo):
            continue
        found = [any(name.startswith(word) for name in names) for word in listed]
        if all(found) if gloo else any(found):
            yield Verdict(variable, OK, value)
        else:
            why = "the ranks wait for each other forever; compute nodes may have other interfaces"
            remedy = f"use --interface NAME; this host has {' '.join(sorted(names))}"
            yield Verdict(variable, WARNING, f"{value}: this host has no such interface", why, remedy)


def limits(case: Case) -> Iterator[Verdict]:
    """Check shared memory, and the limits of a process that large jobs may exceed."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= files < 4096:
        why = "every rank and data worker has sockets and files open"
        remedy = "ulimit -n 65536 at the start of the job"
        yield Verdict("open files", WARNING, f"at most {files}", why, remedy)
    else:
        yield Verdict("open files", OK, "no limit" if files < 0 else f"at most {files}")
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if locked >= 0 and any(Path("/sys/class/infiniband").glob("*")):
        why = "InfiniBand registers its buffers as locked memory"
        remedy = "ulimit -l unlimited; the site must allow it in jobs"
        yield Verdict("locked memory", WARNING, f"at most {locked >> 10} KiB", why, remedy)
    try:
        size = shutil.disk_usage("/dev/shm").total
    except OSError:
        return
    if size < _GIB:
        why = "data workers and NCCL exchange their data there"
        remedy = "in a container, --shm-size=8g or --ipc=host"
        yield Verdict("/dev/shm", WARNING, f"{size >> 20} MiB", why, remedy)
    else:
        yield Verdict("/dev/shm", OK, f"{size / _GIB:.0f} GiB")


def directories(case: Case) -> Iterator[Verdict]:
    """Check the place of the run directories: free space, permission to write, and its clock."""
    listed = Path(case.here.cwd, case.plan.spec.runs_dir)
    place = nearest_directory(listed)
    if not place.is_dir() or not os.access(place, os.W_OK):
        why = "the job writes its files there"
        yield Verdict("run directory", WARNING, f"{listed} cannot be written", why, "use --runs-dir DIR")
        return
    if (free := shutil.disk_usage(place).free) < _LEAST:
        why = "checkpoints are written there, and a full disk ends the training"
        found = f"{place} has {free / _GIB:.1f} GiB left"
        yield Verdict("run directory", WARNING, found, why, "use --runs-dir DIR on a larger disk")
    else:
        yield Verdict("run directory", OK, f"{listed}: {free / _GIB:.0f} GiB left")
    with tempfile.NamedTemporaryFile(dir=place, prefix=".jobgen-") as file:
        file.write(b"x")
        file.flush()
        skew = os.stat(file.name).st_mtime - time.time()
    if abs(skew) > _SKEW:
        why = "ninja compares times of files, and the deadline is computed from the clock"
        remedy = "tell the site's support: the clocks are not synchronized"
        yield Verdict("clock", WARNING, f"{skew:+.0f} s between {place} and this host", why, remedy)
    else:
        yield Verdict("clock", OK, f"agrees with that of {place}")
