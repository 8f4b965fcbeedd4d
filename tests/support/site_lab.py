"""A host with one Slurm after the other: that of a site, made from its file. Nothing else on the machine sees it."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jobgen.sites.site_file import Site
from support.cluster import CLUSTER_DIR, ClusterError, complaint
from support.site_slurm import all_accounts, configuration, job_submit, qos
from support.waiting import wait_for, wait_until

_NAMESPACES = ("--mount", "--net", "--uts", "--ipc", "--pid")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Lab:
    """The host; ``serve`` starts the Slurm of a site."""

    def __init__(self, root: Path, pid: int) -> None:
        self.root, self.pid = root, pid
        self.qos: list[str] = []
        self.controller: subprocess.Popen[bytes] | None = None
        self._registered = False

    def call(self, *words: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command on the host."""
        return subprocess.run(
            self._inside(*words), input=text, capture_output=True, text=True, timeout=60, env={"PATH": _PATH}
        )

    def _inside(self, *words: str | Path) -> list[str | Path]:
        return ["nsenter", "-t", str(self.pid), *_NAMESPACES, "--", *words]

    def accounting(self, *lines: str) -> None:
        """Give these lines to sacctmgr."""
        done = self.call("sacctmgr", "-i", text="\n".join((*lines, "quit")) + "\n")
        if done.returncode or re.search("error|problem", done.stdout + done.stderr, re.IGNORECASE):
            raise ClusterError(complaint(["sacctmgr", *lines], done))

    def serve(self, site: Site) -> None:
        """Start the Slurm of a site; that of the site before has ended."""
        self.stop()
        state = self.root / "state" / site.name
        state.mkdir(parents=True)
        etc = self.root / "etc/slurm"
        lines = configuration(site, str(state))
        (etc / "job_submit.lua").write_text(job_submit(site))
        if not self._registered:  # slurmctld registers the GPUs that a QoS may limit
            (etc / "slurm.conf").write_text(re.sub(r" QOS=\S+", "", lines))  # which does not exist yet
            self._start(state)
            self.stop()
            self._registered = True
        (etc / "slurm.conf").write_text(lines)
        wanted = qos(site)
        orders = [f"delete qos {','.join(self.qos)}"] if self.qos else []
        orders += [f"add qos {name} {limits}" for name, limits in wanted.items()]
        orders += [f"modify user root set qos={','.join(('normal', *wanted))}"]
        self.accounting(*orders)
        self.qos = list(wanted)
        self._start(state)

    def _start(self, state: Path) -> None:
        with (state / "out").open("wb") as log:
            controller = subprocess.Popen(self._inside("slurmctld", "-D", "-i"), stdout=log, stderr=log)
        self.controller = controller
        wait_until(lambda: self._is_up() or controller.poll() is not None, 120)
        if not self._is_up():
            raise ClusterError((state / "out").read_text())

    def _is_up(self) -> bool:
        return "is UP" in self.call("scontrol", "ping").stdout

    def stop(self) -> None:
        if self.controller is not None:
            self.call("pkill", "-KILL", "slurmctld")  # of this host: it sees no other processes
            self.controller.wait()

    def test_only(self, script: Path, *options: str) -> subprocess.CompletedProcess[str]:
        """Ask whether Slurm would accept a script."""
        return self.call("sbatch", "--test-only", *options, script)

    def held(self, script: Path) -> dict[str, str]:
        """Submit a job that is held, and return what it requests: ``node=2``, ``gres/gpu=8`` and so on."""
        done = self.call("sbatch", "--hold", "--parsable", script)
        if done.returncode:
            raise ClusterError(complaint(["sbatch", script], done))
        shown = self.call("scontrol", "show", "job", done.stdout.strip()).stdout
        self.call("scancel", done.stdout.strip())
        words = re.search(r"TRES=(\S+)", shown)
        assert words, shown
        return dict(pair.split("=", 1) for pair in words[1].split(","))


@contextmanager
def site_lab(root: Path, sites: Sequence[Site]) -> Iterator[Lab]:
    """The host, with the accounts of all sites."""
    (root / "log").mkdir(parents=True)
    (root / "etc/slurm").mkdir(parents=True)
    (root / "etc/slurm/gres.conf").write_text("AutoDetect=off\n")
    (root / "etc/slurm/slurm.conf").write_text(configuration(sites[0], str(root)))
    words = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "unshare",
        *_NAMESPACES,
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]
    with (root / "log/host.log").open("wb") as log:
        host = subprocess.Popen(
            [*words, "bash", CLUSTER_DIR / "site_host.sh", root], stdout=log, stderr=log, env={"PATH": _PATH}
        )
    try:
        yield _with_accounts(Lab(root, _child(host.pid)), sites)
    finally:
        host.kill()
        host.wait()


def _child(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    wait_for(lambda: children.read_text().split(), 10)
    return int(children.read_text().split()[0])


def _with_accounts(lab: Lab, sites: Sequence[Site]) -> Lab:
    try:
        wait_for(lambda: lab.call("sacctmgr", "-n", "show", "qos").returncode == 0, 60)
    except AssertionError:
        raise ClusterError(f"no accounting: see the logs in {lab.root / 'log'}") from None
    time.sleep(0.1)
    lab.accounting("add cluster sites")
    names = all_accounts(list(sites))
    lab.accounting(f"add account {','.join(names)}")
    lab.accounting(f"add user root account={','.join(names)} defaultaccount=everyone")
    return lab
