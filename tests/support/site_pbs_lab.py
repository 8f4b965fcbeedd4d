"""A machine with an OpenPBS of its own, whose nodes get the shape of a site's nodes. Nothing else sees it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobgen.sites.site_file import Site
from jobgen.values import parsers
from support.cluster import CLUSTER_DIR, ClusterError
from support.pbs import PbsCluster
from support.waiting import wait_until

_NAMESPACES = ("--mount", "--net", "--ipc", "--pid", "--uts")


@dataclass(frozen=True)
class HiddenPbs(PbsCluster):
    """The OpenPBS of a machine whose first process is ``pid`` and whose files are below ``root``."""

    root: Path
    pid: int

    @property
    def lab(self) -> Path:
        return self.root / "lab"

    def enter(self, folder: Path) -> tuple[str | Path, ...]:
        return ("nsenter", "-t", str(self.pid), *_NAMESPACES, f"--wdns={folder}", *super().enter(folder))

    def match(self, names: Sequence[str]) -> None:
        """Let the scheduler compare these resources, too."""
        place = self.root / "var" / self.kind.head / "sched_priv"
        config = (place / "sched_config").read_text()
        wanted = dict.fromkeys(("ncpus", "mem", "arch", "host", "vnode", "ngpus", *names))
        listed = f'resources: "{", ".join(wanted)}"'
        (place / "sched_config").write_text(re.sub(r'(?m)^resources: ".*"', listed, config))
        self.exec("head", ["sh", "-c", 'kill -HUP "$(cat "$0")"', place / "sched.lock"], root=True)


@contextmanager
def hidden_pbs(root: Path, like: PbsCluster) -> Iterator[HiddenPbs]:
    """Start the machine, with the OpenPBS of another cluster."""
    root.mkdir(parents=True)
    for folder in (root, *root.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o755)  # the user of the jobs reads its files
    unshare = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "unshare",
        *_NAMESPACES,
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]
    script = [CLUSTER_DIR / "site_pbs_host.sh", root, like.name]
    with (root / "host.log").open("wb") as log:
        host = subprocess.Popen([*unshare, "bash", *script], stdout=log, stderr=log)
    try:
        wait_until(lambda: (root / "ready").exists() or host.poll() is not None, 240)
        if host.poll() is not None or not (root / "ready").exists():
            raise ClusterError((root / "up.log").read_text())
        [child] = Path(f"/proc/{host.pid}/task/{host.pid}/children").read_text().split()
        yield HiddenPbs(like.kind, root, int(child))
    finally:
        host.kill()
        host.wait()


def shape(site: Site, queue: str, lines: Sequence[str]) -> dict[str, str]:
    """Return the resources of a node of a queue, and those that the request of a script names besides."""
    node = site.node(queue)
    found = {"ncpus": str(node.cores or 1), "ngpus": str(node.gpus or 0)}
    if node.memory:
        found["mem"] = f"{parsers.memory(node.memory)}mb"
    for line in lines:
        if line.startswith("-l select="):
            found |= {
                name: text for name, text in re.findall(r":(\w+)=([^:+]+)", line) if not text[0].isdigit()
            }
    return found


def smaller(text: str) -> str:
    """Return a little less of a resource, or another value of one that is a word."""
    match = re.fullmatch(r"(\d+)(\D*)", text)
    return f"{int(match[1]) - 1}{match[2]}" if match else f"other-{text}"


def placed(cluster: HiddenPbs, job: str) -> tuple[str, str]:
    """Return where a job runs, or nothing and the comment of the scheduler."""
    facts: Mapping[str, str] = {}

    def judged() -> bool:
        nonlocal facts
        facts = cluster.facts(job)
        return "exec_vnode" in facts or "comment" in facts

    wait_until(judged, 60)
    return facts.get("exec_vnode", ""), facts.get("comment", "")
