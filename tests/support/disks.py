"""The disks of the nodes of a test cluster, whose hosts share the files of the machine: small file systems, one a node."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from support.cluster import Cluster, ClusterError
from support.processes import command
from support.story import AnyCluster
from support.waiting import wait_for


def _on(cluster: AnyCluster, host: str, *words: str | Path) -> str:
    """Run a command where the jobs of a host see its mounts."""
    if isinstance(cluster, Cluster):
        return cluster.exec(host, words).stdout
    wait_for(lambda: _daemon(host))
    inside = ["nsenter", "--mount", "--target", _daemon(host), *words]
    return subprocess.run(inside, capture_output=True, text=True, check=True).stdout


def _daemon(host: str) -> str:
    """The process of a node of PBS that starts its jobs; empty while the node has no power."""
    pids = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True, check=True)
    return next((pid for pid in pids.stdout.split() if "pbs_mom" in command(int(pid))), "")


class Disks:
    """The disks of the nodes: ``good`` on all, and ``bad``, which is small on the second node."""

    def __init__(self, cluster: AnyCluster) -> None:
        self.cluster = cluster
        self.folder = cluster.folder("disks")
        self.good, self.bad = (self.folder / name for name in ("good", "bad"))

    def mount(self) -> None:
        for place in (self.good, self.bad):
            place.mkdir()
            for host in self.cluster.nodes:
                size = "1m" if (place, host) == (self.bad, self.cluster.nodes[1]) else "64m"
                _on(self.cluster, host, "mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "none", place)

    def unmount(self) -> None:
        for place in (self.good, self.bad):
            for host in self.cluster.nodes:
                with suppress(subprocess.CalledProcessError, ClusterError):  # the host has no power
                    _on(self.cluster, host, "umount", "-l", place)

    def files(self) -> str:
        return "".join(
            _on(self.cluster, host, "find", place, "-mindepth", "1")
            for place in (self.good, self.bad)
            for host in self.cluster.nodes
        )
