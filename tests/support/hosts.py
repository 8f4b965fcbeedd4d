"""What the tests of hosts share: the options of a small job, and the file of a host."""

from __future__ import annotations

from support.laptop import Laptop, User

SMALL = ("--nodes", "1", "--ranks-per-node", "1", "--launcher", "none", "--accelerator", "cpu", "--no-job")


def add(laptop: Laptop, user: User, name: str = "narval") -> None:
    """Write the host file, as ``jobgen host add`` does."""
    folder = laptop.home / ".config/jobgen/hosts"
    folder.mkdir(parents=True, exist_ok=True)
    uid = user.files.stat().st_uid
    (folder / f"{name}.toml").write_text(
        f'ssh = "{name}"\nscheduler = "slurm"\nruns = "{user.home}/jobgen"\nuser = "{user.name}"\nuid = "{uid}"\n'
        f'[variables]\nPATH = "/run/home/{user.commands.name}:/usr/local/bin:/usr/bin:/bin"\n'
    )


def offline(laptop: Laptop) -> None:
    """End the connection that commands share."""
    laptop.run("pkill", "-f", "ControlPersist")
