"""A process that has imported torch, and forks the programs that warm_client.py asks for.

    warm_server.py FOLDER MODULE...      # listens on FOLDER/socket while somebody holds a lock on FOLDER/lease

The program runs in the namespaces of its client, with all that it would inherit from it. This process tells the client
how it ends, and ends it with its process group when the client is gone.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib.util
import io
import marshal
import os
import resource
import runpy
import select
import shutil
import signal
import socket
import struct
import sys
import threading
import traceback
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

# Of <linux/sched.h> and <linux/prctl.h>.
NAMESPACES = {"mnt": 0x20000, "uts": 0x4000000, "ipc": 0x8000000, "pid": 0x20000000, "net": 0x40000000}
PR_SET_DUMPABLE, PR_SET_MM, PR_SET_MM_MAP = 4, 35, 14
HIGH = 400  # above the numbers of a program's files
KEPT: list[Any] = []

libc = ctypes.CDLL(None, use_errno=True)
libc.sbrk.restype = ctypes.c_uint64


def serve(folder: Path, modules: list[str]) -> None:
    """Fork for each client, until nobody holds the lease."""
    for name in modules:
        if importlib.util.find_spec(name.partition(".")[0]):
            importlib.import_module(name)
    gc.freeze()  # or every program would visit, and so copy, what it shares with this process
    for one in weakref.finalize._registry:  # type: ignore[attr-defined]
        one.atexit = False  # torch would release each of its operators, which takes 50 ms
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
        (folder / "lease").open("w") as lease,
    ):
        listener.bind(str(folder / "new"))
        (folder / "new").chmod(0o777)
        listener.listen(128)
        (folder / "new").rename(folder / "socket")
        waiting: set[socket.socket] = set()  # clients without a request yet
        programs: list[Program] = []
        while programs or waiting or not is_over(lease):
            files = [listener, *waiting, *(file for one in programs for file in one.files())]
            ready = select.select(files, [], [], 1)[0]
            programs = [one for one in programs if one.runs(ready)]
            for client in waiting.intersection(ready):
                waiting.remove(client)
                programs += started(client)
            if listener in ready:
                waiting.add(listener.accept()[0])
    shutil.rmtree(folder)


def is_over(lease: IO[str]) -> bool:
    """Return whether nobody holds the lease."""
    try:
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Program:
    """A program of a client. It ends, with its process group, when the client is gone."""

    def __init__(self, pid: int, client: socket.socket) -> None:
        self._pid, self._over, self._client = pid, os.pidfd_open(pid), client

    def files(self) -> list[int | socket.socket]:
        """Return what can be read at the end of the program, or of the client."""
        return [self._over, *([self._client] if self._client.fileno() >= 0 else [])]

    def runs(self, ready: Sequence[int | socket.socket]) -> bool:
        """Tell the client how the program ended, or end it; False if it has ended."""
        if self._over in ready:
            with contextlib.suppress(OSError):  # the client has gone
                self._client.send(str(os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])).encode())
            self._client.close()
            os.close(self._over)
            return False
        if self._client in ready:
            self._client.close()
            os.kill(self._pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
        return True


def started(client: socket.socket) -> list[Program]:
    """Start a client's program; none if it only tries whether this listens, or has users of its own."""
    fds: list[int] = []
    try:
        request, fds, _, _ = socket.recv_fds(client, 1 << 21, 250)
        if request:
            asked = marshal.loads(request)
            peer = Peer(client, asked["like"])
            if (pid := peer.fork()) == 0:
                try:
                    peer.enter()
                    become(peer, client, asked, fds)
                    end(asked)
                except BaseException:
                    traceback.print_exc()
                os._exit(1)
            if pid is not None:
                return [Program(pid, client)]
            client.send(b"0")  # it runs the program itself
    except Exception:
        traceback.print_exc()
    finally:
        for fd in fds:
            os.close(fd)
    client.close()
    return []


class Peer:
    """What a program inherits from its client, but for its files."""

    def __init__(self, client: socket.socket, like: int | None) -> None:
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self._pid, self._user, self._group = struct.unpack("3i", credentials)
        self._pid = like or self._pid
        lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
        self._facts = dict(line.split(":", 1) for line in lines)
        self._cores = os.sched_getaffinity(self._pid)
        self._nice = os.getpriority(os.PRIO_PROCESS, self._pid)
        own, theirs = (
            {name: os.readlink(f"/proc/{pid}/ns/{name}") for name in ("user", *NAMESPACES)}
            for pid in ("self", self._pid)
        )
        self._has_users = own["user"] != theirs["user"]
        self._others = {name for name in NAMESPACES if own[name] != theirs[name]}
        self._process = os.pidfd_open(self._pid)

    def fork(self) -> int | None:
        """Fork, among the processes of the client's host; None if the client has users of its own."""
        inside = "pid" in self._others
        pid = None
        try:
            if not self._has_users:
                self._join({"pid"} & self._others)
                pid = os.fork()
        finally:
            if pid != 0:
                os.close(self._process)
                if inside:  # and the next program is in those of its own client
                    with open("/proc/self/ns/pid") as own:
                        call(libc.setns, own.fileno(), NAMESPACES["pid"])
        return pid

    def enter(self) -> None:
        """Enter the other namespaces of the client."""
        self._join(self._others - {"pid"})

    def _join(self, names: set[str]) -> None:
        if names:
            call(libc.setns, self._process, sum(NAMESPACES[name] for name in names))

    def imitate(self) -> None:
        os.sched_setaffinity(0, self._cores)
        with contextlib.suppress(PermissionError):  # this process is nicer already
            os.setpriority(os.PRIO_PROCESS, 0, self._nice)
        os.umask(int(self._facts["Umask"], 8))
        if self._user != os.getuid():
            os.setgroups([int(number) for number in self._facts["Groups"].split()])
            os.setresgid(self._group, self._group, self._group)
            os.setresuid(self._user, self._user, self._user)
        call(libc.prctl, PR_SET_DUMPABLE, 1, 0, 0, 0)


def call(function: Callable[..., int], *words: int) -> None:
    if function(*map(ctypes.c_ulong, words)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def become(peer: Peer, client: socket.socket, asked: Mapping[str, Any], fds: Sequence[int]) -> None:
    """Turn into the process that python ARG... would be."""
    os.setpgid(0, 0)
    with contextlib.suppress(OSError):  # a kernel without CONFIG_CHECKPOINT_RESTORE
        show([sys.executable, *asked["argv"]], [f"{name}={value}" for name, value in asked["env"].items()])
    told, *high = (fcntl.fcntl(fd, fcntl.F_DUPFD, HIGH) for fd in (client.detach(), *fds))
    os.closerange(0, HIGH)
    for fd, number in zip(high, asked["files"], strict=True):
        os.dup2(fd, number)
        os.close(fd)
    for kind, limits in enumerate(asked["limits"]):
        resource.setrlimit(kind, limits)
    peer.imitate()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    for number in asked["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    sys.executable = asked["python"]
    threads = os.environ.get("OMP_NUM_THREADS", "")
    default = len(os.sched_getaffinity(0))
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(int(threads) if threads.isdecimal() else default)
    os.write(told, str(os.getpid()).encode())  # as the client's host counts
    os.close(told)


def show(arguments: Sequence[str], environment: Sequence[str]) -> None:
    """Let /proc show these as the arguments and the environment of this process (prctl(2), PR_SET_MM_MAP)."""
    texts = [b"".join(os.fsencode(word) + b"\0" for word in words) for words in (arguments, environment)]
    memory = ctypes.create_string_buffer(b"".join(texts))
    KEPT.append(memory)
    start = ctypes.addressof(memory)
    middle = start + len(texts[0])
    stat = [0, 0, 0, *map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[1:])]
    code, data, heap, stack = stat[25:27], stat[44:46], [stat[46], libc.sbrk(0)], stat[27:28]
    ends = [start, middle, middle, middle + len(texts[1])]
    neither_auxv_nor_executable = (0, 0xFFFFFFFF << 32)
    layout = (ctypes.c_uint64 * 13)(*code, *data, *heap, *stack, *ends, *neither_auxv_nor_executable)
    call(libc.prctl, PR_SET_MM, PR_SET_MM_MAP, ctypes.addressof(layout), ctypes.sizeof(layout), 0)


def end(asked: Mapping[str, Any]) -> NoReturn:
    """Run python ARG..., and end as it does, but for modules and objects, whose release takes a second."""
    status = 1
    try:
        run([*asked["argv"]])
        status = 0
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        else:
            status = (error.code or 0) & 0xFF
    except BaseException as error:
        trace = error.__traceback__
        for _ in (end, run):  # which are not of the program
            trace = trace.tb_next if trace else None
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    with contextlib.suppress(BaseException):
        threading._shutdown()
        if (mpi := sys.modules.get("mpi4py.MPI")) and not mpi.Is_finalized():
            mpi.Finalize()  # as mpi4py does when the interpreter ends
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def run(words: list[str]) -> None:
    if unbuffered := words[0] == "-u":
        del words[0]
    if unbuffered or os.environ.get("PYTHONUNBUFFERED"):
        for name, number in (("stdout", 1), ("stderr", 2)):
            raw = io.FileIO(number, "w", closefd=False)
            how = {"encoding": "utf-8", "errors": getattr(sys, name).errors, "write_through": True}
            setattr(sys, name, io.TextIOWrapper(raw, **how))
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.modules["__main__"] = main = types.ModuleType("__main__")  # which stays:
    # To delete a DistributedDataParallel may wait for a thread of gloo that waits for Python's lock.
    option, sys.argv = words[0], words
    if option == "-m":
        del words[0]
        sys.path[0] = os.getcwd()
        for name in (words[0], f"{words[0]}.__main__"):
            if not hasattr(sys.modules.get(name), "__path__"):
                sys.modules.pop(name, None)
        runpy._run_module_as_main(words[0])
    elif option == "-c":
        sys.path[0] = ""
        exec(words.pop(1), main.__dict__)
    else:
        sys.path[0] = os.path.dirname(os.path.realpath(option))
        main.__file__ = option
        exec(compile(Path(option).read_bytes(), option, "exec"), main.__dict__)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2:])
