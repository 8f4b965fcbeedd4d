"""A machine with an OpenPBS or a Torque that is configured as a department. Nothing else on the machine sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.cluster import ClusterError, complaint
from support.departments import Department
from support.pbs import PbsCluster
from support.site_pbs_lab import HiddenPbs, hidden_pbs
from support.waiting import wait_until

_OWN = {"openpbs": "workq", "torque": "batch"}
"""The queue of a new server."""


@contextmanager
def department_pbs(root: Path, like: PbsCluster, department: Department) -> Iterator[HiddenPbs]:
    """Start the machine, and give its server the queues, nodes and resources of a department."""
    with hidden_pbs(root, like) as cluster:
        for path in department.vnodes:
            _make_vnodes(cluster, path.stem, path.read_text())
        lines = department.text("qmgr").splitlines()
        made = {kind: [words[2] for line in lines if (words := line.split())[:2] == ["create", kind]]
                for kind in ("queue", "resource")}  # fmt: skip
        if _OWN[like.name] not in made["queue"]:
            lines.append(f"delete queue {_OWN[like.name]}")
        _qmgr(cluster, lines)
        if like.name == "openpbs":
            cluster.match(made["resource"])
        if not wait_until(cluster.status, 60):
            raise ClusterError(cluster.exec("head", ["pbsnodes", "-a"]).stdout)
        yield cluster


def _qmgr(cluster: HiddenPbs, lines: list[str]) -> None:
    argv = ["sh", "-c", 'printf %s "$0" | qmgr', "".join(f"{line}\n" for line in lines)]
    done = cluster.exec("head", argv, root=True, check=False)
    if done.returncode:
        raise ClusterError(complaint(["qmgr", *lines], done))


def _make_vnodes(cluster: HiddenPbs, node: str, text: str) -> None:
    """Let a node of OpenPBS have the vnodes of a file for its pbs_mom."""
    path = cluster.lab / f"{node}.vnodes"
    path.write_text(text)
    lock = cluster.root / "var" / node / "mom_priv/mom.lock"
    _qmgr(cluster, [f"delete node {node}"])
    cluster.exec(node, ["pbs_mom", "-s", "insert", "department", path], root=True)
    cluster.exec(node, ["sh", "-c", 'kill -HUP "$(cat "$0")"', lock], root=True)
    _qmgr(cluster, [f"create node {node}"])
    if not wait_until(lambda: f"{node}[" in cluster.exec("head", ["pbsnodes", "-av"]).stdout, 60):
        raise ClusterError(cluster.exec("head", ["pbsnodes", "-av"]).stdout)
