"""Images and container runtimes of the tests: Podman itself, and stand-ins for the others."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from support import ROOT, jobs
from support.require import absent, need_command

STAND_IN = Path(__file__).with_name("runtime.py")
# What the commands in a container need of this machine: its programs, and this Python with its packages.
BINDS = tuple(dict.fromkeys(("/usr", sys.base_prefix, str(Path(sys.prefix).parent), str(ROOT))))
PATH = f"{Path(sys.executable).parent}:/usr/bin:/bin"


def image(directory: Path) -> Path:
    """The root directory of an image: empty but for the names that /usr gives sense to, and a mark."""
    if os.geteuid():
        absent("containers of the tests need root")
    root = directory / "image"
    for name in ("usr", "etc", "tmp", "proc", "dev", "sys", "run"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / name).symlink_to(f"usr/{name}")
    for name in ("passwd", "group", "nsswitch.conf", "hosts"):
        (root / "etc" / name).write_bytes((Path("/etc") / name).read_bytes())
    (root / "mark").write_text("in the container\n")
    (root / ".path").write_text(PATH)
    return root


def binds(*more: object) -> list[str]:
    return [word for one in (*BINDS, *more) for word in ("--bind", str(one))]


def stand_ins(directory: Path, *names: str) -> str:
    """A PATH on which these runtimes are stand-ins."""
    need_command("unshare")
    return jobs.path_with(
        directory, **{name: f'exec {sys.executable} {STAND_IN} {name} "$@"' for name in names}
    )


def podman(directory: Path, name: str) -> tuple[str, str]:
    """A PATH on which ``name`` is Podman with a storage of its own, and the name of an image that it has."""
    need_command("podman", "runc")
    state = tempfile.mkdtemp(prefix="jobgen-")  # of at most 50 characters
    atexit.register(shutil.rmtree, state, ignore_errors=True)
    where = f"--root {directory / 'storage'} --runroot {state} --runtime runc --storage-driver vfs"
    # Limits of open files that it would raise, and locked memory, are more than a container may ask for.
    text = f"""[[ $1 != run ]] || set -- run --ulimit=nofile=1024:1024 --ulimit=nproc=10000:10000 "${{@:2}}"
for word; do shift; [[ $word == --ulimit=memlock=-1 ]] || set -- "$@" "$word"; done
exec /usr/bin/podman {where} "$@\""""
    path = jobs.path_with(directory / "bin", **{name: text})
    archive = directory / "image.tar"
    subprocess.run(["tar", "-C", image(directory), "-cf", archive, "."], check=True)
    command = [f"{path}/{name}", "import", "--change", f"ENV PATH={PATH}", archive, "jobgen-test:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        absent(f"podman cannot import an image here: {done.stderr.strip()}")
    probe = [f"{path}/{name}", "run", "--rm", "--network=host", "--pid=host", "--volume=/usr:/usr:ro"]
    done = subprocess.run([*probe, "localhost/jobgen-test:1", "true"], capture_output=True, text=True)
    if done.returncode:
        absent(f"podman cannot run a container here: {done.stderr.strip()}")
    return path, "localhost/jobgen-test:1"
