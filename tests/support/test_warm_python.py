"""The python that has imported torch runs a program as python itself does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import warm_python
from support.require import need_package

SEEN = """
import json, os, resource, signal, sys
if sys.argv[-1] == "torch":
    print("warm", "torch" in sys.modules)
    sys.exit()
fd = lambda number: os.readlink(f"/proc/self/fd/{number}")
print(json.dumps({
    "argv": sys.argv, "cwd": os.getcwd(), "env": dict(os.environ), "path": sys.path, "name": __name__, "in": fd(0),
    "files": len(os.listdir("/proc/self/fd")), "user": [os.getuid(), os.getgid(), os.getgroups()],
    "environ": open("/proc/self/environ", "rb").read().decode(errors="surrogateescape"),
    "command": open("/proc/self/cmdline", "rb").read().decode(errors="surrogateescape").split("\\0")[1:],
    "limits": [resource.getrlimit(kind) for kind in range(16)], "umask": os.umask(0),
    "cores": sorted(os.sched_getaffinity(0)), "net": os.readlink("/proc/self/ns/net"), "host": os.uname().nodename,
    "hup": str(signal.getsignal(signal.SIGHUP)), "module": __file__ if "__file__" in globals() else None,
}))
"""
ENDS = (
    "pass",
    "sys.exit(3)",
    "sys.exit('no')",
    "1 / 0",
    "os.kill(os.getpid(), 9)",
    "os.kill(os.getpid(), 15)",
)


@pytest.fixture
def pythons() -> list[Path]:
    """Python itself, and the one that has imported torch."""
    need_package("torch")
    return [Path(sys.executable), warm_python.server() / "python"]


ENVIRONMENT = {
    **{"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"},
    **{"A": "a b\n\udcff", "PYTHONPATH": "/nowhere:/else where"},
}


@pytest.mark.parametrize("kind", ["-c", "-m", "file"])
def test_it_sees_what_python_sees(pythons: list[Path], tmp_path: Path, kind: str) -> None:
    (tmp_path / "seen.py").write_text(SEEN)
    words = {
        "-c": ["-c", SEEN],
        "-m": ["-u", "-m", "jobgen.train", "--help"],
        "file": [f"{tmp_path}/seen.py"],
    }[kind]
    host = (
        ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc"]
        if os.getuid() == 0
        else []
    )
    shell = "umask 27; ulimit -c 0; ulimit -n 300; trap '' HUP; exec \"$@\" < /dev/zero"
    alone = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]
    outputs = []
    for python in pythons:
        command = [*host, "bash", "-c", shell, "bash", *alone, python, *words, "x  y", "", "\udcfe"]
        done = subprocess.run(command, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, check=True)
        outputs.append(done.stdout if kind == "-m" else json.loads(done.stdout))
    cold, warm = outputs
    if kind != "-m" and host:
        assert cold.pop("net") != warm.pop("net")  # that of its own host
    assert warm == cold
    done = subprocess.run([pythons[1], *words, "torch"], stdout=subprocess.PIPE, text=True, check=True)
    assert kind == "-m" or done.stdout == "warm True\n"


@pytest.mark.parametrize(
    ("name", "value", "warm"),
    [
        ("LD_LIBRARY_PATH", ":/nowhere", True),
        ("LD_LIBRARY_PATH", "/nowhere:/usr", False),
        ("LD_PRELOAD", "libc.so.6", False),
        ("DS_ENV_FILE", "/nowhere", False),
    ],
)
def test_what_is_read_at_the_start_is_heeded(pythons: list[Path], name: str, value: str, warm: bool) -> None:
    command = [pythons[1], "-c", SEEN, "torch"]
    done = subprocess.run(command, env={**ENVIRONMENT, name: value}, stdout=subprocess.PIPE, text=True)
    assert done.stdout == f"warm {warm}\n"


@pytest.mark.parametrize("end", ENDS)
def test_it_ends_as_python_does(pythons: list[Path], end: str) -> None:
    code = f"import os, sys, atexit  # torch\natexit.register(print, 'bye')\nprint('hello')\n{end}"
    cold, warm = (subprocess.run([python, "-c", code], capture_output=True, text=True) for python in pythons)
    assert (warm.returncode, warm.stdout, warm.stderr) == (cold.returncode, cold.stdout, cold.stderr)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL])
def test_a_signal_reaches_the_program(pythons: list[Path], tmp_path: Path, number: signal.Signals) -> None:
    code = """
import os, signal, sys, time, torch
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda number, frame: sys.exit(number + 10))
print(os.getpid(), flush=True)
while True:  # a signal just before a call of sleep() does not end it
    time.sleep(0.1)
"""
    with subprocess.Popen([pythons[1], "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(10) == (-9 if number == signal.SIGKILL else number + 10)
        until = time.monotonic() + 10
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < until
            time.sleep(0.01)


def test_a_server_that_has_ended_is_replaced(tmp_path: Path) -> None:
    places = []
    for _ in range(2):
        with warm_python.folder(tmp_path, modules=()) as folder:
            places.append(folder)
        until = time.monotonic() + 10
        while folder.exists():
            assert time.monotonic() < until
            time.sleep(0.05)
    assert len(set(places)) == 2
