"""Machines that OpenSSH reaches. All that it needs, keys, agents, jump hosts, Kerberos, is in its own config.

The commands of a while share one connection (ControlMaster): a process in the background holds it, and ends
when nothing has used it for some minutes. https://man.openbsd.org/ssh_config
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from jobgen.errors import UNREACHABLE, shown
from jobgen.hosts import shell_text
from jobgen.hosts.calls import PATIENCE, Done, SchedulerError, on_path
from jobgen.hosts.host import Host, ScriptOutput

CONNECT = 18  # s, without a terminal
_LEAST = 2  # s of these, after another command has given up
_FIRST_ANSWER = 15  # s, of the host; then ssh itself says what is wrong
_PROBE = 8  # s for the answer over a connection that has not been used for _UNUSED s
_UNUSED = 30  # s; while ssh is used, it finds itself that a connection is dead
_INPUT = b"jobgen\n"
IDLE = 300  # s, after which a connection that nothing uses is closed
_SSH_FAILED = 255
_LONGEST = 104 - 1 - 40 - 18  # bytes of a folder: those of a socket's path, less %C and what ssh appends
_FOLDER = re.compile(r"""/[^"'\\$\x00-\x1f]*""")
_OPTIONS = {
    "ClearAllForwardings": "yes", "ForwardX11": "no", "PermitLocalCommand": "no", "RemoteCommand": "none",
    "RequestTTY": "no", "ServerAliveInterval": "5", "ServerAliveCountMax": "3",
}  # fmt: skip


class UnreachableError(SchedulerError):
    """A host does not answer, or the connection has ended before the answer."""

    status = UNREACHABLE


class SshHost(Host):
    """A machine that ``ssh target`` reaches; ``variables`` are set for every command there."""

    def __init__(
        self,
        name: str,
        target: str,
        user: str = "",
        uid: str = "",
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.name, self.target, self._user, self._uid = name, target, user, uid
        self.variables = dict(variables)
        self._folder = control_folder()

    @property
    def uid(self) -> str:
        return self._uid

    @property
    def user(self) -> str:
        return self._user

    def variable(self, name: str) -> str:
        return self.variables.get(name, "")

    def call(
        self,
        words: Sequence[str],
        directory: str | os.PathLike[str] | None = None,
        patience: float = PATIENCE,
        more: Mapping[str, str] | None = None,
    ) -> Done:
        """Run a command on the host; see Host.call.

        Raises:
            SchedulerError: it is not on the PATH there, or takes longer than ``patience`` seconds.
            UnreachableError: the host does not answer.
        """
        missing = f"command -v {shlex.quote(words[0])} > /dev/null || exit 127"
        place = f"cd {shlex.quote(os.fspath(directory))} || exit 126" if directory is not None else ":"
        lines = (missing, place, f"{shell_text.assignments(more or {})}exec {shlex.join(words)} < /dev/null")
        answer = self.run("\n".join(lines), patience=patience)
        if answer.status == 127 and not answer.out:
            raise SchedulerError(f"cannot find {words[0]} on the PATH of {self.name}")
        return Done(answer.status, answer.out.decode("utf-8", "surrogateescape"), answer.err)

    def which(self, command: str) -> str:
        answer = self.run(f"command -v {shlex.quote(command)}")
        return answer.out.decode("utf-8", "surrogateescape").strip()

    def read(self, path: str, limit: int) -> bytes:
        answer = self.run(f"head -c {limit} < {shlex.quote(path)} 2> /dev/null")
        return answer.out if answer.status == 0 else b""

    def run(self, script: str, stdin: bytes | BinaryIO = b"", patience: float = PATIENCE) -> ScriptOutput:
        """Run a script of POSIX sh on the host; see Host.run."""
        self.connect()
        mark = f"jobgen-{secrets.token_hex(8)}"
        text = shell_text.framed(shell_text.assignments(self.variables) + script, mark)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, _file(stdin) as source:
            status = self._ssh((shell_text.for_any_shell(text),), source, out, err, patience)
            printed, errors = _content(out), _content(err)
        found = shell_text.unframed(printed, mark)
        if found is None:
            raise self._failure(status, printed, errors, mark)
        if found[1] and stdin and self.run("cat", _INPUT).out != _INPUT:
            raise SchedulerError(
                f"nothing can be sent to {self.name}: the files of the login shell there, such as ~/.bashrc, "
                "read the input of each command; let them read only if the shell is interactive"
            )
        return ScriptOutput(found[1], found[0], shell_text.after_mark(errors, mark))

    def connect(self) -> None:
        """Open the connection that the commands share, unless there is one.

        Only a process with a terminal may answer questions, such as those of two-factor logins, and then
        without a limit of time.

        Raises:
            UnreachableError: there is no connection; the message has ssh's own last line.
        """
        on_path("ssh")
        if self._folder is not None:
            end = time.monotonic() + CONNECT
            with self._alone(self._folder, end):
                if self._ssh(("-O", "check"), None, None, None, CONNECT) != 0 or self._is_dead():
                    self._open(max(_LEAST, end - time.monotonic()))
                Path(self._folder, self._stamp()).touch()

    @contextmanager
    def _alone(self, folder: str, end: float) -> Iterator[None]:
        """Keep other processes from opening a second connection meanwhile.

        Raises:
            UnreachableError: another process is opening it until ``end``.
        """
        with open(Path(folder, f"{self._stamp()}.lock"), "w", encoding="ascii") as file:
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if time.monotonic() > end:
                    raise UnreachableError(
                        f"{self.name} cannot be reached: another command is still connecting to it"
                    )
                time.sleep(0.05)
            yield

    def _is_dead(self) -> bool:
        """Return whether the connection that is there carries nothing, as after a sleep of the laptop or on
        another network. The commands that wait for it keep it."""
        with suppress(OSError):
            if abs(time.time() - Path(self._folder or "", self._stamp()).stat().st_mtime) < _UNUSED:
                return False
        if self._ssh(("true",), None, None, None, _PROBE) is not None:
            return False
        self._ssh(("-O", "stop"), None, None, None, CONNECT)
        return True

    def _stamp(self) -> str:
        """Return the name of a file whose time is that of the last use of the connection."""
        return f"used-{hashlib.sha256(self.target.encode()).hexdigest()[:16]}"

    def _open(self, patience: float) -> None:
        """Start the process that holds the connection."""
        # auto replaces the socket of a process that was killed; yes (-M) does without a shared connection
        words = ("-f", "-N", "-o", "ControlMaster=auto", "-o", f"ControlPersist={IDLE}")
        if sys.stdin and sys.stdin.isatty() and sys.stderr.isatty():
            if (status := subprocess.call(self._command(words, batch=False))) != 0:
                raise UnreachableError(f"{self.name} cannot be reached: ssh ended with status {status}")
            return
        with tempfile.TemporaryFile() as err:
            ended = self._ssh(words, None, err, err, patience)
            if ended != 0:
                raise self._lost(ended, _content(err))

    def _ssh(
        self,
        words: Sequence[str],
        stdin: BinaryIO | None,
        out: BinaryIO | None,
        err: BinaryIO | None,
        patience: float,
    ) -> int | None:
        """Run ssh with options, or a command, and return its exit status; None if it took too long."""
        command = self._command(words if words[0].startswith("-") else (), batch=True)
        command += [] if words[0].startswith("-") else words
        null = subprocess.DEVNULL
        try:
            return subprocess.run(
                command,
                stdin=stdin or null,
                stdout=out or null,
                stderr=err or null,
                timeout=patience,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return None

    def _command(self, options: Sequence[str], batch: bool) -> list[str]:
        path = "none" if self._folder is None else '"{}/%C"'.format(self._folder.replace("%", "%%"))
        settings = {**_OPTIONS, "ControlPath": path, "ConnectTimeout": str(_FIRST_ANSWER)}
        settings |= {"BatchMode": "yes"} if batch else {}
        own = [word for item in settings.items() for word in ("-o", "=".join(item))]
        return ["ssh", *own, *options, "--", self.target]

    def _failure(self, status: int | None, out: bytes, err: bytes, mark: str) -> SchedulerError:
        """Return the error of a script that did not end."""
        if status in (None, _SSH_FAILED) or shell_text.has_begun(out, mark):
            return self._lost(status, err)
        last = _last_line(err) or _last_line(out) or "it prints nothing"
        files = f"the files of the login shell there, such as ~/.bashrc, end it with status {status}"
        return SchedulerError(f"no command runs at {self.name}: {files} ({last})")

    def _lost(self, status: int | None, err: bytes) -> UnreachableError:
        """Return the error of a connection that failed, with ssh's own last line."""
        why, more = _last_line(err), f"ssh {self.target} shows more"
        if status is None:
            text = f"has not answered in time ({why or 'ssh prints nothing'})"
        else:
            text = f"cannot be reached: {why or 'the connection has ended'}"
        return UnreachableError(f"{self.name} {text}; {more}")


def _last_line(printed: bytes) -> str:
    """Return the last line that another program printed, without control characters."""
    lines = printed[-10_000:].decode(errors="replace").splitlines()
    line = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return line.rstrip(".") if line.isprintable() and len(line) <= 300 else shown(line)


def control_folder() -> str | None:
    """Return the private folder of the shared connections; None if no path is short enough for a socket, and
    means itself between the quotes of ssh."""
    runtime, home = os.environ.get("XDG_RUNTIME_DIR"), os.path.expanduser("~")
    cache = os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    for folder in (f"{runtime}/jobgen" if runtime else "", f"{cache}/jobgen/ssh", f"{home}/.ssh/jobgen"):
        if not _FOLDER.fullmatch(folder) or len(os.fsencode(folder)) > _LONGEST:
            continue
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            about = os.stat(folder)
        except OSError:
            continue
        if about.st_uid == os.getuid() and not about.st_mode & 0o077:
            return folder
    return None


@contextmanager
def _file(data: bytes | BinaryIO) -> Iterator[BinaryIO]:
    """Yield a file with this content, from its beginning."""
    if not isinstance(data, bytes):
        yield data
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()
