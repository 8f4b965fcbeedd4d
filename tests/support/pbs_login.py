"""A login to OpenPBS or Torque for the laptop: an sshd on its server, for one of its users."""

from __future__ import annotations

import shlex
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import ROOT
from support.laptop import Lab, User
from support.pbs import TORQUE, PbsCluster
from support.processes import kill
from support.waiting import wait_for

_START = """
mount -t tmpfs tmpfs {laptop}
mount -t tmpfs tmpfs {checkout}
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/sshd
cp {keys} /run/keys
sed 's/^\\([^:]*\\):!/\\1:*/' /etc/shadow >/run/shadow # sshd refuses users without a password
mount --bind /run/shadow /etc/shadow
exec /usr/sbin/sshd -D -e -f {settings} -p {port} -o AuthorizedKeysFile=/run/keys -o SetEnv=PATH={path} -o ClientAliveInterval=10
"""


@contextmanager
def pbs_login(lab: Lab, cluster: PbsCluster, shell: str = "bash") -> Iterator[User]:
    """The user of the cluster who has this login shell, whom the laptop reaches on the server of the cluster."""
    name = cluster.user if shell == "bash" else f"pbs-{shell}"
    commands = cluster.folder("commands")
    commands.chmod(0o777)
    system = cluster.kind.installed.parents[1] / "bin"
    host = _connect(lab, cluster)
    port = _free_port()
    home = Path("/home", name)
    settings = {
        "laptop": lab.root / "laptop",
        "checkout": ROOT,
        "keys": lab.root / "etc/ssh/authorized_keys",
        "settings": lab.root / "etc/sshd_config",
        "port": port,
        "path": f"{commands}:{system}:/usr/local/bin:/usr/bin:/bin",
    }
    text = _START.format(**{key: shlex.quote(str(value)) for key, value in settings.items()})
    # Torque looks its clients up by their process ids.
    ends = () if cluster.kind is TORQUE else ("--pid", "--fork", "--kill-child", "--mount-proc")
    inside = ("unshare", "--mount", *ends, "sh", "-ec", text)
    with tempfile.TemporaryFile() as log:
        sshd = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *cluster.enter(commands), *inside],
            env={**cluster.env, "PBS_AS": "root"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            wait_for(lambda: sshd.poll() is not None or _answers(lab, host, port), 20)
            log.seek(0)
            assert sshd.poll() is None, log.read()
            yield User(name, shell, home, home, commands, commands, str(system), host, port)
        finally:
            sshd.kill()
            sshd.wait()
            kill(commands)  # what the user runs has it in PATH


def _connect(lab: Lab, cluster: PbsCluster) -> str:
    """Lay a cable from the laptop to the bridge of the cluster, if there is none; return the address of its server."""
    server = cluster.exec("head", ["ip", "-o", "-4", "address", "show", "br0"], root=True).stdout.split()[3]
    host = server.partition("/")[0]
    laptop = (lab.root / "run/laptop.pid").read_text().split()[0]
    end, inside = cluster.name, ("nsenter", "-t", laptop, "-n", "ip")
    if subprocess.run([*inside, "link", "show", end], capture_output=True).returncode != 0:
        number = next(number for number in range(150) if _lay(cluster, number, end, laptop))
        address = f"{host.rpartition('.')[0]}.{100 + number}/24"
        for words in (
            ("ip", "-n", cluster.kind.head, "link", "set", f"laptop-{number}", "master", "br0", "up"),
            (*inside, "address", "add", address, "dev", end),
            (*inside, "link", "set", end, "up"),
        ):
            subprocess.run(words, check=True)
    return host


def _lay(cluster: PbsCluster, number: int, end: str, laptop: str) -> bool:
    """Lay the cable of a number, which gives the laptop its address; return False if another laptop has the number."""
    words = ("add", f"laptop-{number}", "type", "veth", "peer", "name", end, "netns", laptop)
    done = subprocess.run(("ip", "-n", cluster.kind.head, "link", *words), capture_output=True, text=True)
    assert done.returncode == 0 or "File exists" in done.stderr, done.stderr
    return done.returncode == 0


def _answers(lab: Lab, host: str, port: int) -> bool:
    test = ["bash", "-c", f"exec 3<>/dev/tcp/{host}/{port}"]
    return lab.cluster.exec("laptop", test, cwd=Path("/"), check=False).returncode == 0


def _free_port() -> int:
    """Return a port that is free on this machine, and by chance on the server, on which several sessions may log in."""
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])
