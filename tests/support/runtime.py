"""Stands in for apptainer, singularity, enroot, shifter, and for srun with pyxis or CSCS's container engine, by the name it is called by.

The command runs under another root in a mount namespace, with the environment that the real one gives it. The
options are those of the manuals that a job may use; any other is an error. An image is a directory, whose
file .path holds the image's PATH. Needs root. It proves that a script says what it means, not that the real
runtime hears it.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

# Under /mnt, a copy of the image with what is bound; it is gone with the last process of the namespace.
ENTER = """
set -e
mount -t tmpfs none /mnt
cp -a "$1/." /mnt
cp /etc/hosts /etc/resolv.conf /mnt/etc 2> /dev/null || true
mkdir -p /mnt/proc /mnt/dev
mount --rbind /proc /mnt/proc
mount --rbind /dev /mnt/dev
directory=$2
shift 2
while [ "$1" != -- ]; do
  IFS=: read -r from to mode <<< "$1"
  if [ -d "$from" ]; then mkdir -p "/mnt$to"; else mkdir -p "/mnt${to%/*}"; : >> "/mnt$to"; fi
  mount --rbind "$from" "/mnt$to"
  [ "$mode" != ro ] || mount -o remount,bind,ro "/mnt$to"
  shift
done
shift
[ -d "/mnt$directory" ] || { echo "no directory $directory in the container" >&2; exit 255; }
PATH=$IMAGE_PATH exec /usr/bin/unshare --root=/mnt --wd="$directory" "$@"
"""


def enter(image: str, directory: str, binds: list[str], env: dict[str, str], words: list[str]) -> list[str]:
    """The command that runs ``words`` in the container; ``env`` becomes its environment."""
    path = env.pop("PATH", None) or (Path(image) / ".path").read_text().strip()
    os.environ.clear()
    os.environ.update(env, IMAGE_PATH=path, PATH="/usr/sbin:/usr/bin:/sbin:/bin")
    return ["unshare", "--mount", "bash", "-c", ENTER, "enter", image, directory, *binds, "--", *words]


def parser(name: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(name, allow_abbrev=False, add_help=False)
    return made


def apptainer(name: str, words: list[str]) -> int:
    """It stays beside the command, hands signals on to it and returns its status."""
    if words[:1] != ["exec"]:
        sys.exit(f"{name}: unknown command {words[:1]}")
    options = parser(name)
    for flag in ("--nv", "--rocm", "--no-home"):
        options.add_argument(flag, action="store_true")
    options.add_argument("--pwd", required=True)
    options.add_argument("--bind", action="append", default=[])
    options.add_argument("image")
    options.add_argument("words", nargs=argparse.REMAINDER)
    said = options.parse_args(words[1:])
    env = {k: v for k, v in os.environ.items() if k not in ("PATH", "LD_LIBRARY_PATH")}
    prefix = f"{name.upper()}ENV_"
    env |= {key.removeprefix(prefix): value for key, value in env.items() if key.startswith(prefix)}
    binds = [one for each in said.bind for one in each.split(",")]
    child = subprocess.Popen(enter(said.image, said.pwd, binds, env, said.words))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, frame: child.send_signal(number))
    status = child.wait()
    return 128 - status if status < 0 else status


def enroot(name: str, words: list[str]) -> int:
    """It gives the command only the variables that are named."""
    if words[:1] != ["start"]:
        sys.exit(f"{name}: unknown command {words[:1]}")
    options = parser(name)
    options.add_argument("--env", action="append", default=[])
    options.add_argument("--mount", action="append", default=[])
    options.add_argument("image")
    options.add_argument("words", nargs=argparse.REMAINDER)
    said = options.parse_args(words[1:])
    env = {one: os.environ[one] for one in said.env if "=" not in one}
    env |= dict(one.split("=", 1) for one in said.env if "=" in one)
    binds = []
    for mount in said.mount:
        source, target, kind, flags = mount.split(":")
        assert kind == "none"
        assert flags.split(",")[:2] == ["x-create=auto", "rbind"]
        binds.append(f"{source}:{target}:{flags.removeprefix('x-create=auto,rbind').strip(',')}")
    command = enter(said.image, "/", binds, env, said.words)
    os.execv("/usr/bin/unshare", command)


def shifter(name: str, words: list[str]) -> int:
    """It mounts what the site has set up: here, what SITE_FS names."""
    options = parser(name)
    options.add_argument("--image", required=True)
    options.add_argument("--module", choices=["gpu"])
    options.add_argument("--volume", action="append", default=[])
    options.add_argument("words", nargs=argparse.REMAINDER)
    said = options.parse_args(words)
    binds = [f"{one}:{one}" for one in os.environ["SITE_FS"].split(",")]
    image = os.path.join("/", *said.image.removeprefix("docker:").split("/"))
    env = {k: v for k, v in os.environ.items() if k != "PATH"}
    os.execv("/usr/bin/unshare", enter(image, os.getcwd(), [*binds, *said.volume], env, said.words))


def srun(name: str, words: list[str]) -> int:
    """With --container-image, or --environment, the tasks run in it; the rest is srun's.

    CSCS's container engine takes the image from a file of TOML, by its path.
    """
    options = parser(name)
    options.add_argument("--environment")
    for flag in ("image", "workdir", "mounts"):
        options.add_argument(f"--container-{flag}")
    said, rest = options.parse_known_args(words)
    if unknown := [word for word in rest if word.startswith("--container-")]:
        sys.exit(f"srun: unrecognized option {unknown[0]}")
    if said.environment:
        if not said.environment.startswith(("/", "./")):
            sys.exit(f"srun: there is no EDF {said.environment}")
        [said.container_image] = re.findall('^image = "(.*)"$', Path(said.environment).read_text())
    if said.container_image:
        first = next(i for i, word in enumerate(rest) if not word.startswith("-"))
        task = [str(Path(__file__).resolve()), "task", said.container_image, said.container_workdir]
        rest[first:first] = [sys.executable, *task, said.container_mounts]
    os.execv("/usr/bin/srun", ["srun", *rest])


def task(image: str, directory: str, mounts: str, *words: str) -> None:
    """A task of srun in its container."""
    env = {k: v for k, v in os.environ.items() if k != "PATH"}
    os.execv("/usr/bin/unshare", enter(image, directory, mounts.split(","), env, list(words)))


NAMES = {"apptainer": apptainer, "singularity": apptainer, "enroot": enroot, "shifter": shifter, "srun": srun}

if __name__ == "__main__":
    if sys.argv[1] == "task":
        task(*sys.argv[2:])
    sys.exit(NAMES[sys.argv[1]](sys.argv[1], sys.argv[2:]))
