"""What the tests of hosts share: the options of a small job, the file of a host, and the life of a run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.laptop import Laptop, User
from support.story import AnyCluster
from support.waiting import wait_for

SMALL = ("--nodes", "1", "--ranks-per-node", "1", "--launcher", "none", "--accelerator", "cpu", "--no-job")


@dataclass(frozen=True)
class Login:
    """A user of a cluster that the laptop reaches."""

    cluster: AnyCluster
    user: User


def row_of(login: Login) -> str:
    """Return the scheduler of a cluster, as host files name it."""
    return {"slurm": "slurm", "openpbs": "pbspro", "torque": "torque"}[login.cluster.name]


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


def status(laptop: Laptop, *words: str) -> dict[str, Any]:
    """Return what jobgen status says of one run."""
    done = laptop.run("jobgen", "status", "--json", *words)
    assert done.status == 0, done
    [state] = json.loads(done.out)
    return state


def live(laptop: Laptop, end: Path, *words: str) -> None:
    """Submit, watch and end a job that waits for a file."""
    script = "echo begins; while [ ! -e end ]; do sleep 0.2; done; echo ends"
    done = laptop.run("jobgen", "submit", "--host", "narval", *SMALL, *words, "--", "sh", "-c", script)
    assert done.status == 0, done
    job = done.out.strip()
    wait_for(lambda: status(laptop)["state"] == "running", 60)
    state = status(laptop)
    assert (state["id"], state["host"], state["reachable"]) == (job, "narval", True)
    wait_for(lambda: "begins" in laptop.run("jobgen", "logs").out, 30)
    [run] = (path for path in end.iterdir() if path.name.startswith("exp-"))
    (run / "code/end").touch()
    done = laptop.run("jobgen", "logs", "-f")
    assert [word in done.out for word in ("begins", "ends")] == [True, True], done
    wait_for(lambda: status(laptop)["state"] == "finished", 60)


def submitted(laptop: Laptop, script: str, *words: str) -> str:
    """Submit a shell script and return the name of its run."""
    done = laptop.run(
        "jobgen", "submit", "--host", "narval", *SMALL, "--name", "exp", *words, "--", "sh", "-c", script
    )
    assert done.status == 0, done
    return max((laptop.work / "runs").iterdir()).name


def folder_there(user: User) -> Path:
    """Return the directory of the only run of a user, as the tests see it."""
    [run] = (path for path in (user.files / "jobgen").iterdir() if path.name.startswith("exp-"))
    return run
