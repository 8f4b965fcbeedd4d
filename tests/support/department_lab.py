"""A host with one Slurm after the other: that of a department, whose nodes are host names of this host. Nothing else on the
machine sees it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.cluster import CLUSTER_DIR, OLD, SYSTEMS, ClusterError, complaint, shared_places
from support.departments import USER, Department
from support.waiting import wait_for, wait_until

_NAMESPACES = ("--mount", "--net", "--uts", "--ipc", "--pid")
_NODE = ("unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BASE = """\
ClusterName={name}
SlurmctldHost=head
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={state}
SlurmctldPidFile=/run/slurmctld.pid
SlurmctldLogFile={state}/slurmctld.log
SlurmdSpoolDir=/run/slurm/{name}/%n
SlurmdPidFile=/run/slurmd.%n.pid
SlurmdLogFile={state}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
MailProg=/bin/true
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=2
KillWait=3
SlurmdTimeout=300
"""
_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=head
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu,gres/npu
"""
_SLURMDBD = """\
AuthType=auth/munge
DbdHost=head
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc={database}
LogFile={state}/slurmdbd.log
PidFile=/run/slurmdbd.pid
"""
_ENDED = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "TIMEOUT",
}


class DepartmentLab:
    """The host; ``serve`` starts the Slurm of a department."""

    def __init__(self, root: Path, pid: int, version: str) -> None:
        self.root, self.pid, self.version = root, pid, version
        self._daemons: list[subprocess.Popen[bytes]] = []

    def call(
        self,
        *words: str | Path,
        text: str = "",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        user: str = "root",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the host as a user."""
        who = (
            ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--") if user != "root" else ()
        )
        home = {"HOME": f"/home/{user}", "USER": user, "LOGNAME": user, "LANG": "C.UTF-8"}
        return subprocess.run(
            self._inside(*who, *words, cwd=cwd or Path("/")),
            input=text, capture_output=True, text=True, timeout=120, env={"PATH": _PATH, **home, **(env or {})},
        )  # fmt: skip

    def _inside(self, *words: str | Path, cwd: Path = Path("/")) -> list[str | Path]:
        return ["nsenter", "-t", str(self.pid), *_NAMESPACES, f"--wdns={cwd}", "--", *words]

    def folder(self, name: str) -> Path:
        """A new folder of the user, as the host sees it."""
        made = Path("/home", USER, name)
        self.call("mkdir", made, user=USER)
        return made

    def read(self, path: str | Path) -> str:
        return self.call("cat", path).stdout

    # ------------------------------------------------------------------------------------------------ its Slurm

    def serve(self, department: Department) -> None:
        """Start the Slurm of a department; that of the department before has ended."""
        self.stop()
        state = self.root / "state" / department.name
        state.mkdir(parents=True)
        lines = self._configuration(department, state)
        etc = self.root / "etc/slurm"
        (etc / "gres.conf").write_text(department.text("gres.conf"))
        (etc / "cgroup.conf").write_text("CgroupPlugin=disabled\n" if department.slurm != OLD else "")
        if accounts := department.text("accounts"):
            lines = _BASE.format(name=department.name, state=state) + _ACCOUNTING + lines
            self._make_accounts(department, accounts, lines, state)
        else:
            lines = _BASE.format(name=department.name, state=state) + lines
        (etc / "slurm.conf").write_text(lines)
        self._start_controller(state)
        names = self.call("scontrol", "show", "hostnames", self._node_names(department)).stdout.split()
        self.call("mkdir", "-p", *(f"/run/slurm/{department.name}/{name}" for name in names))
        for name in names:
            at = (*_NODE, "bash", "-c", 'hostname "$0"; slurmd -D & wait', name)  # PID 1, which reaps
            self._daemons.append(self._daemon(state / f"slurmd.{name}.out", *at))
        if not wait_until(self._all_nodes_answer, 60):
            raise ClusterError(self.call("sinfo", "--all", "-N", "-o", "%N %T %E").stdout)

    def _node_names(self, department: Department) -> str:
        """Return the nodes that start: those that are not down."""
        return ",".join(re.findall(r"(?m)^NodeName=(\S+)(?!.* State=DOWN)", department.text("slurm.conf")))

    def _configuration(self, department: Department, state: Path) -> str:
        """Return the lines of a department, with the addresses and ports of its nodes."""
        lines, port, hosts = [], 17000, ["127.0.0.1 localhost", "10.213.81.1 head"]
        (self.root / "etc/slurm/slurm.conf").write_text(_BASE.format(name=department.name, state=state))
        for line in department.text("slurm.conf").splitlines():
            if name := re.match(r"NodeName=(\S+)", line):
                names = self.call("scontrol", "show", "hostnames", name[1]).stdout.split()
                hosts += [f"10.213.81.1 {one}" for one in names]
                ports = f"[{port}-{port + len(names) - 1}]" if len(names) > 1 else str(port)
                line, port = f"{line} Port={ports}", port + len(names)
            lines.append(line)
        (self.root / "etc/hosts").write_text("\n".join([*hosts, ""]))
        return "\n".join([*lines, ""])

    def _make_accounts(self, department: Department, accounts: str, lines: str, state: Path) -> None:
        """Start slurmdbd with an empty database, and give it the accounts and QoS."""
        conf = self.root / "etc/slurm/slurmdbd.conf"
        database = re.sub(r"\W", "_", department.name)
        conf.write_text(_SLURMDBD.format(database=database, state=state))
        conf.chmod(0o600)
        # Partitions name QoS that do not exist yet; slurmctld registers the devices that a QoS may limit.
        (self.root / "etc/slurm/slurm.conf").write_text(re.sub(r" QOS=\S+", "", lines, flags=re.IGNORECASE))
        self._daemons.append(self._daemon(state / "slurmdbd.out", "slurmdbd", "-D"))
        wait_for(lambda: self.call("sacctmgr", "-n", "show", "qos").returncode == 0, 60)
        self._sacctmgr(f"add cluster {department.name}")
        controller = self._start_controller(state)
        self._sacctmgr(*accounts.splitlines())
        self.call("pkill", "-KILL", "slurmctld")
        controller.wait()

    def _sacctmgr(self, *lines: str) -> None:
        done = self.call("sacctmgr", "-i", text="\n".join((*lines, "quit")) + "\n")
        if done.returncode or re.search("error|problem|unknown", done.stdout + done.stderr, re.IGNORECASE):
            raise ClusterError(complaint(["sacctmgr", *lines], done))

    def _start_controller(self, state: Path) -> subprocess.Popen[bytes]:
        controller = self._daemon(state / "slurmctld.out", "slurmctld", "-D", "-i")
        self._daemons.append(controller)
        wait_until(lambda: self._is_up() or controller.poll() is not None, 60)
        if not self._is_up():
            raise ClusterError((state / "slurmctld.out").read_text())
        return controller

    def _daemon(self, log: Path, *words: str) -> subprocess.Popen[bytes]:
        with log.open("wb") as out:
            return subprocess.Popen(self._inside(*words), stdout=out, stderr=out, env={"PATH": _PATH})

    def _is_up(self) -> bool:
        return "is UP" in self.call("scontrol", "ping").stdout

    def _all_nodes_answer(self) -> bool:
        states = self.call("sinfo", "--all", "-h", "-N", "-o", "%N %T").stdout.split("\n")
        return not any(re.search(r"unk|\*", line) for line in states)

    def stop(self) -> None:
        """End the Slurm of a department, jobs included."""
        for name in ("slurmctld", "slurmd", "slurmstepd", "slurmdbd"):
            self.call("pkill", "-KILL", "-x", name)  # of this host: it sees no other processes
        self.call("pkill", "-KILL", "-u", USER)
        for daemon in self._daemons:
            daemon.wait()
        self._daemons.clear()

    # ------------------------------------------------------------------------------------------------- its jobs

    def fields(self, job: str) -> dict[str, str]:
        """Return the fields of ``scontrol show job``."""
        text = self.call("scontrol", "--oneliner", "show", "job", job).stdout
        fields = dict(word.split("=", 1) for word in text.split() if "=" in word)
        return fields | {"NumNodes": fields["NumNodes"].partition("-")[0]}  # 2-2 while it waits

    def end(self, job: str, seconds: float = 90) -> dict[str, str]:
        """Return the fields of a job that has ended, or has not in time."""
        wait_until(lambda: self.fields(job)["JobState"] in _ENDED, seconds)
        return self.fields(job)

    def output(self, job: str) -> str:
        return self.read(self.fields(job)["StdOut"])


@contextmanager
def department_lab(root: Path, version: str = OLD) -> Iterator[DepartmentLab]:
    """The host."""
    root.mkdir(parents=True, exist_ok=True)
    system = SYSTEMS[version]
    shared = ":".join(map(str, (root, *shared_places())))
    enter = ("bash", CLUSTER_DIR / "enter_system.sh", system, shared) if system else ()
    words: Sequence[str | Path] = [
        *(
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            *_NAMESPACES,
            "--fork",
            "--kill-child",
            "--mount-proc",
        ),
        *(*enter, "bash", CLUSTER_DIR / "department_host.sh", root),
    ]
    with (root / "host.log").open("wb") as log:
        host = subprocess.Popen(words, stdout=log, stderr=log, env={"PATH": _PATH})
    try:
        wait_until(lambda: (root / "ready").exists() or host.poll() is not None, 60)
        if not (root / "ready").exists():
            raise ClusterError((root / "host.log").read_text())
        [child] = Path(f"/proc/{host.pid}/task/{host.pid}/children").read_text().split()
        lab = DepartmentLab(root, int(child), version)
        yield lab
        lab.stop()
    finally:
        host.kill()
        host.wait()
