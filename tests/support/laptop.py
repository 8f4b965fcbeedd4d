"""A laptop in front of the Slurm of the tests, which shares nothing with it but a network, and the users who log in.

``minicluster.sh open`` makes the laptop, the login nodes and the jump host, and says what they are.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import random
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from support import ROOT
from support.cluster import SCRIPT, Cluster
from support.processes import kill, processes_of
from support.require import need_command

RELAY = ROOT / "tests/hosts/relay.py"
BANNERS = ("Welcome to the cluster.", "The quota of your project is 93 % used.")
"""What the files of a login shell print on standard output and on standard error."""
PASSWORD = "swordfish"
_HASH = "$6$jobgen$/iNknuRn1KPVqKcOy8.o4uA0KwVcUchUSlblklalycEpVHoujFxBCZgblSh6oR07pC9SyqpzoKGLPvAKQuU7H/"
_SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
_SLURM = ("sacct", "salloc", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun")
HOMES = Path("/run/home")
"""Where the hosts of the cluster have the home directories."""
LAPTOP_HOME = Path("/home/me")
"""The home directory on the laptop, as its processes see it."""
_RC_FILES = {
    "bash": {".bashrc": "", ".profile": "export PATH=PATHS"},
    "tcsh": {".cshrc": "", ".login": "setenv PATH PATHS"},
    "fish": {".config/fish/config.fish": "set -gx PATH (string split : PATHS)"},
}
"""The files that each shell reads, and the last line of each."""
LOSSY = "10.213.77.29"
"""The address of login1 at which the laptop loses one packet in twenty."""


@dataclass(frozen=True)
class User:
    """A user of the cluster, with a home directory on all of its hosts."""

    name: str
    shell: str
    home: Path
    """The home directory on the cluster."""
    files: Path
    """The same, as the tests see it, but for one on a small disk."""
    programs: Path
    """The folder that is first on the PATH of the user, on the cluster."""
    commands: Path
    """The same, as the tests see it."""
    system: str = "/usr/bin"
    """The folder of the scheduler's commands."""
    host: str = "login1"
    port: int = 22

    def command(self, name: str, script: str) -> None:
        """Put a program before that of the system on the PATH of the user. ``$real`` is the latter."""
        path = self.commands / name
        calls = f"echo >>{self.programs}/.{name}\n"
        path.write_text(f"#!/bin/bash\nreal={self.system}/{name}\n{calls}{script}\n")
        path.chmod(0o755)

    def hang(self, name: str, *, after: bool = False) -> None:
        """Let a command never end: before it does something, or after it has done all, without an answer."""
        self.command(name, ('"$real" "$@" >/dev/null\n' if after else "") + "exec sleep 1000")

    def fail(self, name: str, message: str, times: int) -> None:
        """Let the next calls of a command do nothing but to print a message and fail."""
        (self.commands / f".{name}").unlink(missing_ok=True)
        calls = f"$(wc -l <{self.programs}/.{name})"
        answer = f"printf '%s\\n' {shlex.quote(message)} >&2; exit 1"
        self.command(name, f'((({calls} <= {times}))) || exec "$real" "$@"\n{answer}')

    def calls(self, name: str) -> int:
        """How often a program that ``command`` has put there was called."""
        path = self.commands / f".{name}"
        return len(path.read_bytes()) if path.exists() else 0


@dataclass(frozen=True)
class Lab:
    """A Slurm, its login nodes, a jump host and a laptop."""

    cluster: Cluster

    @property
    def root(self) -> Path:
        return self.cluster.root

    @property
    def key(self) -> Path:
        """The private key of the laptop's user, which the hosts of the cluster know."""
        return self.root / "laptop/key"

    @property
    def loses_packets(self) -> bool:
        """Whether the laptop does so at LOSSY; the kernel may not be able to."""
        return (self.root / "laptop/loses-packets").exists()

    def up(self) -> None:
        """Bring up what is not up yet."""
        with _locked(self.root / "users/lock"):
            self.cluster.open()
            if not self.key.exists():
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
                _append(self.root / "etc/ssh/authorized_keys", self.key.with_suffix(".pub").read_text())

    def user(
        self,
        shell: str = "bash",
        *,
        home: str = "own",
        login: str = "key",
        banner: bool = True,
        without: Sequence[str] = (),
        tools: str = "Debian's",
    ) -> User:
        """A new user of the cluster.

        home: "own", "read-only", or "small", a disk of 1 MiB that login1 alone has. login: "key"; "asks" for a password
        alone; "two": for a password after the key. without: commands that are not on the PATH, such as rsync. tools: "Debian's", or
        "busybox", which has few of GNU's options. Jobs inherit this PATH.
        """
        path = need_command(shell)
        with _locked(self.root / "users/lock"):
            passwd = self.root / "etc/passwd"
            number = sum(f":{HOMES}/" in line for line in passwd.read_text().splitlines()) + 1
            name, uid = ("" if login == "key" else f"{login}-") + f"{shell}{number}", 4000 + number
            _append(self.root / "etc/group", f"{name}:x:{uid}:\n")
            _append(self.root / "etc/shadow", f"{name}:{_HASH}:19000:0:99999:7:::\n")
            _append(passwd, f"{name}:x:{uid}:{uid}:A user:{HOMES / name}:{path}\n")
        users, own = self.root / "users", f"{name}.bin"
        user = User(name, shell, HOMES / name, users / name, HOMES / own, users / own)
        user.files.mkdir()
        user.commands.mkdir()
        _write_rc_files(
            user, banner, ":".join([str(user.programs), *_programs(users, HOMES, without, tools)])
        )
        for place in (user.commands, user.files, *user.files.rglob("*")):
            os.chown(place, uid, uid)
        if home == "read-only":
            os.chown(user.files, 0, 0)
        if home == "small":
            self._put_on_a_small_disk(user)
        return user

    def _put_on_a_small_disk(self, user: User) -> None:
        disk = f"/run/{user.name}"
        commands = (
            f"mkdir {disk}",
            f"mount -t tmpfs -o size=1m tmpfs {disk}",
            f"cp -aT {user.home} {disk}",
            f"mount --move {disk} {user.home}",
        )
        self.cluster.exec("login1", ["sh", "-c", " && ".join(commands)])

    @contextmanager
    def laptop(self) -> Iterator[Laptop]:
        """The laptop, with a home directory and a working directory of its own."""
        folder = Path(tempfile.mkdtemp(prefix="test-", dir=self.root / "laptop"))
        laptop = Laptop(self, folder)
        ssh = laptop.home / ".ssh"
        for place in (ssh, laptop.work):
            place.mkdir(parents=True)
        ssh.chmod(0o700)
        shutil.copy(self.root / "ssh/known_hosts", ssh)
        try:
            yield laptop
        finally:
            laptop.disconnect()


@dataclass(frozen=True)
class Done:
    """What a command on the laptop has done."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Laptop:
    """A home directory and a working directory on the laptop."""

    lab: Lab
    folder: Path

    @property
    def home(self) -> Path:
        """The home directory, as the tests see it."""
        return self.folder / "home"

    @property
    def work(self) -> Path:
        """The working directory, which has the same path on the laptop."""
        return self.folder / "work"

    def knows(
        self, name: str, user: User, host: str = "", *, relay: Relay | None = None, **options: str
    ) -> None:
        """Write what ``ssh NAME`` is, into ~/.ssh/config: the host, by default the one on which the user logs in. The way
        to the host head is over gate.

        options: further options of ssh, such as IdentityFile or ProxyJump.
        """
        settings = {"HostName": host or user.host, "User": user.name, "IdentityFile": str(self.lab.key)}
        if user.port != 22:
            settings |= {"Port": str(user.port), "HostKeyAlias": "login1"}
        if host == "head":
            settings["ProxyJump"] = f"{name}-gate"
            self.knows(f"{name}-gate", user, "gate")
        if relay:
            settings["ProxyCommand"] = relay.command
        lines = [f"    {key} {value}\n" for key, value in (settings | options).items()]
        _append(self.home / ".ssh/config", f"Host {name}\n{''.join(lines)}")

    def relay(self, *hosts: str, **settings: object) -> Relay:
        """A bad connection to a host, to several in turn, by default to login1. tests/hosts/relay.py has the settings."""
        relay = Relay(Path(tempfile.mkdtemp(prefix="relay-", dir=self.folder)), hosts or ("login1",))
        relay.set(**settings)
        return relay

    def disconnect(self) -> None:
        """End all processes of this home directory, such as those that hold connections of ssh."""
        kill(self.folder)

    def run(
        self,
        *argv: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        input: str | None = None,
        timeout: float = 60,
        without: Sequence[str] = (),
    ) -> Done:
        """Run a command, which has no terminal. without: commands that are not on the PATH."""
        process = self.start(*argv, cwd=cwd, env=env, without=without)
        try:
            out, err = process.communicate(input, timeout)
        finally:
            process.kill()
        return Done(process.returncode, out, err)

    def start(
        self,
        *argv: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        without: Sequence[str] = (),
        streams: int = subprocess.PIPE,
    ) -> subprocess.Popen[str]:
        """Start a command. It ends with the process that is returned."""
        # OpenSSH takes the home directory from /etc/passwd, where it is the same for all who use the laptop.
        mounted = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$HOME" && exec "$@"', self.home)
        return subprocess.Popen(
            [SCRIPT, "exec", "laptop", *mounted, *argv],
            env={**self._environment(without), **(env or {}), "MINICLUSTER_ROOT": str(self.lab.root)},
            cwd=cwd or self.work,
            stdin=streams,
            stdout=streams,
            stderr=streams,
            text=True,
            errors="surrogateescape",
        )

    def run_on_a_terminal(
        self, *argv: str | Path, answers: Mapping[str, str] | None = None, timeout: float = 60
    ) -> Done:
        """Run a command on a terminal, and type a line after each of these questions. Both streams come as one."""
        outside, inside = pty.openpty()
        words = ("setsid", "--ctty", "--wait")
        process = self.start(*words, *argv, streams=inside)
        os.close(inside)
        try:
            shown = _converse(outside, dict(answers or {}), time.monotonic() + timeout)
            return Done(process.wait(timeout), shown, "")
        finally:
            process.kill()
            os.close(outside)

    def _environment(self, without: Sequence[str]) -> dict[str, str]:
        here = self.lab.root / "laptop"
        path = [str(Path(sys.executable).parent), *_programs(here, here, without)]
        return {
            "HOME": str(LAPTOP_HOME),
            "LANG": "C.UTF-8",
            "LOGNAME": "root",
            "PATH": os.pathsep.join(path),
            "TERM": "xterm",
            "USER": "root",
        }


@dataclass(frozen=True)
class Connection:
    """What a relay has carried."""

    up: int
    """Bytes to the host."""
    down: int
    state: str
    """open, closed or cut."""


@dataclass(frozen=True)
class Relay:
    """A program through which connections of the laptop go; its settings may change at any time, for new ones."""

    folder: Path
    hosts: tuple[str, ...]

    @property
    def command(self) -> str:
        """The ProxyCommand."""
        ports = [host if ":" in host else f"{host}:22" for host in self.hosts]
        return shlex.join([sys.executable, "-I", "-S", *map(str, (RELAY, self.folder)), *ports])

    @property
    def connections(self) -> list[Connection]:
        """All connections so far."""
        paths = sorted(
            (path for path in self.folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name)
        )
        words = [path.read_text().split() for path in paths]
        return [Connection(int(up), int(down), state) for up, down, state in words]

    def set(self, **settings: object) -> None:
        """Have these settings and no others."""
        new = self.folder / "settings.new"
        new.write_text(json.dumps(settings))
        new.rename(self.folder / "settings.json")

    def drop(self) -> None:
        """End the connections that are open."""
        for process in processes_of(self.folder):
            os.kill(process.pid, signal.SIGHUP)

    @contextmanager
    def sleep(self) -> Iterator[None]:
        """Carry nothing for a while, as a laptop that sleeps."""
        processes = processes_of(self.folder)
        for process in processes:
            os.kill(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGCONT)

    def cut_at_random(self, chance: random.Random, span: Connection, **settings: object) -> None:
        """Cut each new connection at a byte of one that was not cut, and print the byte."""
        direction = chance.choice(["up", "down"])
        cut = (direction, chance.randrange(getattr(span, direction)))
        print("cut:", *cut)
        self.set(cut=cut, **settings)


def _write_rc_files(user: User, banner: bool, path: str) -> None:
    """Files of the login shell, which print two lines, and set the PATH that the others have from sshd."""
    (user.files / ".ssh").mkdir()
    (user.files / ".ssh/environment").write_text(f"PATH={path}\n")
    to_out, to_error = (f"echo '{line}'" for line in BANNERS)
    lines = [to_out, f"sh -c {shlex.quote(f'{to_error} >&2')}"] if banner else []
    for name, assignment in _RC_FILES[user.shell].items():
        file = user.files / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join([*lines, assignment.replace("PATHS", path), ""]))


def _programs(place: Path, seen: Path, without: Sequence[str], tools: str = "Debian's") -> list[str]:
    """Folders with the programs of the system, for a PATH. Without some of them, or with other tools, it is a folder of
    links, below ``place``, which its users see at ``seen``."""
    is_busybox = tools == "busybox"
    if not without and not is_busybox:
        return list(_SYSTEM_FOLDERS)
    folder = place / "-".join([tools.partition("'")[0], "without", *sorted(without)])
    links = {path.name: path for path in Path("/usr/bin").iterdir()}
    if is_busybox:
        busybox = Path(need_command("busybox"))
        names = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
        links = {name: path for name, path in links.items() if name.startswith(_SLURM)} | dict.fromkeys(
            names, busybox
        )
    with _locked(place / "lock"):
        if not folder.exists():
            new = Path(tempfile.mkdtemp(dir=place))
            for name in links.keys() - set(without):
                (new / name).symlink_to(links[name])
            new.chmod(0o755)
            new.rename(folder)
    return [str(seen / folder.name)]


def _converse(terminal: int, answers: dict[str, str], deadline: float) -> str:
    """Type each answer when its question is there; return what was shown until the other side is closed."""
    shown = ""
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:  # nobody has the terminal any more
            break
        shown += data.decode(errors="surrogateescape")
        for question in [question for question in answers if question in shown]:
            os.write(terminal, f"{answers.pop(question)}\n".encode())
    return shown


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
