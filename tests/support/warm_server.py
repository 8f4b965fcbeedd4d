"""A process that has imported torch, and forks the programs that warm_client.py asks for.

    warm_server.py FOLDER MODULE...      # listens on FOLDER/socket while somebody holds a lock on FOLDER/lease

Two processes a program: the program, in the namespaces of its client and with all that it would inherit from it, and
one that tells the client how it ends, and ends it with its process group when the client is gone.
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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

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
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that tell
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
        (folder / "lease").open("w") as lease,
    ):
        listener.bind(str(folder / "new"))
        (folder / "new").chmod(0o777)
        listener.listen(128)
        (folder / "new").rename(folder / "socket")
        while True:
            if select.select([listener], [], [], 1)[0]:
                client, _ = listener.accept()
                if os.fork() == 0:
                    listener.close()
                    lease.close()
                    attend(client)
                client.close()
                continue
            try:
                fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(folder)
            return


def attend(client: socket.socket) -> NoReturn:
    """Run a client's program, tell how it ends, and end it when the client is gone."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        request, fds, _, _ = socket.recv_fds(client, 1 << 21, 250)
        if not request:
            os._exit(0)  # whether this listens is all that was asked
        asked = marshal.loads(request)
        peer = Peer(client, asked["like"])
        if not peer.enter():
            client.send(b"0")  # it runs the program itself
            os._exit(0)
        if not (pid := os.fork()):
            become(peer, client, asked, fds)
            end(asked)
        for fd in fds:
            os.close(fd)
        over = os.pidfd_open(pid)
        if over not in select.select([over, client], [], [])[0]:  # the client has been killed
            os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os._exit(0)
        client.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    except BaseException:
        traceback.print_exc()
    os._exit(1)


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

    def enter(self) -> bool:
        """Let the next child be in the namespaces of the client; False if it has users of its own."""
        own, theirs = (
            {name: os.readlink(f"/proc/{pid}/ns/{name}") for name in ("user", *NAMESPACES)}
            for pid in ("self", self._pid)
        )
        if own["user"] != theirs["user"]:
            return False
        if others := sum(NAMESPACES[name] for name in NAMESPACES if own[name] != theirs[name]):
            call(libc.setns, os.pidfd_open(self._pid), others)
        return True

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
