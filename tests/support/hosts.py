"""What the tests of hosts share: the options of a small job, and the file of a host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from support.laptop import Laptop, User
from support.story import AnyCluster

SMALL = ("--nodes", "1", "--ranks-per-node", "1", "--launcher", "none", "--accelerator", "cpu", "--no-job")


@dataclass(frozen=True)
class Login:
    """A user of a cluster that the laptop reaches."""

    cluster: AnyCluster
    user: User


def add(
    laptop: Laptop, user: User, name: str = "narval", scheduler: str = "slurm", runs: Path | None = None
) -> None:
    """Write the host file, as ``jobgen host add`` does."""
    folder = laptop.home / ".config/jobgen/hosts"
    folder.mkdir(parents=True, exist_ok=True)
    uid = user.files.stat().st_uid
    (folder / f"{name}.toml").write_text(
        f'ssh = "{name}"\nscheduler = "{scheduler}"\nruns = "{runs or user.home / "jobgen"}"\n'
        f'user = "{user.name}"\nuid = "{uid}"\n'
        f'[variables]\nPATH = "{user.programs}:{user.system}:/usr/local/bin:/usr/bin:/bin"\n'
    )


def offline(laptop: Laptop) -> None:
    """End the connection that commands share."""
    laptop.disconnect()
