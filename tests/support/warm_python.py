"""A ``python`` for jobs, in which a program that uses torch or jobgen need not import it: warm_server.py forks it.

The launcher, the script and the program are the real ones, and so are the user and the host. What is not: parents and
sessions of processes, and modules that are imported already. Tests of how jobs are ended do not use it.
"""

from __future__ import annotations

import fcntl
import functools
import os
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support import ROOT

JOBGEN = tuple(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "jobgen").rglob("*.py"))
    if path.name != "__main__.py"
)
"""All modules of jobgen but the training, which are imported in a third of a second."""
TRAINING = (
    *("data", "loop", "whole_run", "commands.evaluate", "commands.export", "commands.sample"),
    *("models.hf", "models.moe"),
    *(f"checkpoints.{name}" for name in ("initial", "save", "sharded", "whole")),
    *(f"engines.{name}" for name in ("ddp", "deepspeed", "fsdp", "pipeline")),
)
"""What jobgen.train imports only when it needs it."""
TORCH = ("torch.distributed", "torch.distributed.run", "torch._inductor.compile_fx")
"""For programs that use torch_npu, which must be imported before deepspeed."""
MODULES = (
    *TORCH,
    *("deepspeed.launcher.runner", "jobgen.train.__main__", "jobgen.train.preflight.together"),
    *("jobgen.train.pieces.deadline", "accelerate", "lightning", "transformers.trainer", *JOBGEN),
    *(f"jobgen.train.{name}" for name in TRAINING),
    *("deepspeed.comm.mori", "deepspeed.module_inject.auto_ep_layer"),
    *("torch.profiler._cupti_monitor", "torch.utils.serialization.config"),
)
COMMANDS = ("python", "python3", "accelerate", "deepspeed", "jobgen", "torchrun")
FIRST: list[str] = []
"""The folder that comes first on PATH now, if any; see the fixture warm_python."""
_SERVER = Path(__file__).with_name("warm_server.py")
SESSION: list[Path] = []
"""The directory of the test session."""
_HELD = ExitStack()
_CLIENT = Path(__file__).with_name("warm_client.py")


def path(*last: str) -> str:
    """A PATH on which they come first."""
    return os.pathsep.join([*folders(), *last])


def environment() -> dict[str, str]:
    """This environment, in which they come first."""
    return os.environ | {"PATH": path(os.environ["PATH"])}


def folders() -> list[str]:
    """The folders of python and the launchers, first those that come first."""
    return [*FIRST, str(Path(sys.executable).parent)]


def command(name: str) -> str:
    """The first of them that has this name."""
    return f"{folders()[0]}/{name}"


@functools.cache
def server(python: str = sys.executable, modules: tuple[str, ...] = MODULES) -> Path:
    """The folder of all test sessions of the same code, until this process ends."""
    code = [
        path.stat().st_mtime_ns for folder in ("jobgen", "train") for path in (ROOT / folder).rglob("*.py")
    ]
    place = (
        SESSION[0].parent
        / f"python-{zlib.crc32(repr((python, os.environ.get('PYTHONPATH'), modules, sorted(code))).encode())}"
    )
    return _HELD.enter_context(folder(place, python, modules))


def jobgen() -> list[str]:
    """The words before those of a command of jobgen, also on the hosts of a cluster."""
    return [f"{server(sys.executable, JOBGEN)}/python", "-m", "jobgen"]


@contextmanager
def first(folder: Path) -> Iterator[None]:
    """Let jobs find the commands of this folder first."""
    FIRST.append(str(folder))
    try:
        yield
    finally:
        FIRST.clear()


@contextmanager
def folder(place: Path, python: str = sys.executable, modules: Sequence[str] = MODULES) -> Iterator[Path]:
    """A folder for PATH with ``python``, ``torchrun`` and the like, of all processes that name the same place.

    The first one starts the server, which ends when nobody uses it. Any user may use the folder.
    """
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lease").open("w") as lease:
        fcntl.flock(lease, fcntl.LOCK_SH)
        with (place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            current = place / "current"
            if not _listens(current / "socket"):
                current.unlink(missing_ok=True)
                current.symlink_to(_started(place, python, modules))
        yield current.readlink()


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        return client.connect_ex(str(path)) == 0


def _started(place: Path, python: str, modules: Sequence[str]) -> Path:
    made = Path(tempfile.mkdtemp(prefix="jobgen-python-", dir="/tmp"))
    made.chmod(0o755)
    (made / "lease").symlink_to(place / "lease")
    for name in COMMANDS:
        if Path(python).with_name(name).exists():
            (made / name).write_text(f"#!{python} -IS\n{_CLIENT.read_text()}")
            (made / name).chmod(0o755)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(made),
        "LANG": "C.UTF-8",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "DS_ACCELERATOR": "cpu",
        "OMP_WAIT_POLICY": "PASSIVE",
        # With large pages a fork takes a fifth of the time.
        "PYTHONMALLOC": "malloc",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # of a copy of the checkout
    }
    with (place / "server.log").open("w") as log:
        subprocess.Popen(
            [python, _SERVER, made, *modules],
            env=env,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    until = time.monotonic() + 120
    while not (made / "socket").exists():
        assert time.monotonic() < until, (place / "server.log").read_text()
        time.sleep(0.05)
    return made
