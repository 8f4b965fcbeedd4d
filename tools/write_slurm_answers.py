"""Records what the commands of a real Slurm 22.05 and 24.11 print, in tests/answers: tests/schedulers/test_recorded_slurm.py
reads it on machines that have neither. Run it as root where they are installed; it takes two minutes.

A file has one or more calls: the command after ``$``, the lines of its output after ``|``, those of its errors after ``!``,
and its exit status after ``=``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from support.answers import ANSWERS
from support.cluster import OLD, SYSTEMS, Cluster, shared_cluster
from support.require import need_cluster
from support.waiting import wait_for

UNKNOWN = ("999998", "999999")
LONG = "#!/bin/bash\nexec sleep 300\n"
# The options of the jobs and their scripts.
JOBS: dict[str, tuple[tuple[str, ...], str]] = {
    "done": ((), "#!/bin/bash\nexit 0\n"),
    "failed": ((), "#!/bin/bash\nexit 3\n"),
    "killed": ((), "#!/bin/bash\nkill -KILL $$\n"),
    "deleted": ((), LONG),
    "never": (("--hold",), LONG),
    "live": (("--time=60", "--comment=two words"), LONG),
    "held": (("--hold",), LONG),
    "ended": (("--hold", "--array=0-3"), LONG),
    "components": ((), LONG.replace("\n", "\n#SBATCH --nodes=1\n#SBATCH hetjob\n#SBATCH --nodes=1\n", 1)),
    "array": (("--array=0-3,7%2",), LONG),  # the last one: tasks that begin take numbers
}
CANCELLED = ("deleted", "never", "ended")
QUEUE = ("squeue", "--noheader", "--states=all", "--array")
FIELDS = "--format=%i|%T|%L|%r"
ACCOUNTING = ("sacct", "--allocations", "--noheader", "--parsable2")


class Recorder:
    """The jobs on a cluster, and the files that are written."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.folder = cluster.folder("answers")
        self.ids: dict[str, str] = {}

    def submit(self) -> None:
        for name, (options, text) in JOBS.items():
            script = self.folder / f"{name}.sh"
            script.write_text(text)
            self.ids[name] = self.cluster.sbatch(script, self.folder, *options)
        for name in ("deleted", "live", "array", "components"):
            wait_for(lambda name=name: "RUNNING" in self._states(name))  # type: ignore[misc]
        self.cluster.exec("head", ["scancel", *(self.ids[name] for name in CANCELLED)])
        for name in ("done", "failed", "killed", *CANCELLED):
            wait_for(lambda name=name: not {"RUNNING", "PENDING", "COMPLETING"} & self._states(name))  # type: ignore[misc]

    def _states(self, name: str) -> set[str]:
        queue = (*QUEUE, f"--jobs={self.ids[name]}", "--format=%T")
        return {*self.cluster.exec("head", queue, check=False).stdout.split()}

    def numbers(self, *names: str) -> list[str]:
        return sorted(self.ids[name] for name in names)

    def call(self, words: Sequence[str]) -> str:
        """Run a command and return the block of a file."""
        done = self.cluster.exec("head", words, cwd=self.folder, check=False)
        lines = [f"$ {' '.join(words)}"]
        lines += [f"| {line}" for line in done.stdout.splitlines()]
        lines += [f"! {line}" for line in done.stderr.splitlines()]
        text = "\n".join([*lines, f"= {done.returncode}", ""])
        return text.replace(str(self.folder), "/home/me/runs").replace(sys.prefix, "/home/me/venv")

    def write(self, name: str, *calls: Sequence[str]) -> None:
        path = ANSWERS / f"slurm-{self.cluster.version}" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(map(self.call, calls)))


def record(cluster: Cluster) -> None:
    made = Recorder(cluster)
    made.submit()
    everything = ",".join([*made.numbers(*JOBS), *UNKNOWN])
    missing = ",".join(UNKNOWN)
    fields = "--format=JobID,State,ExitCode"
    made.write("version", ("sbatch", "--version"))
    made.write("jobs", (*QUEUE, f"--jobs={everything}", FIELDS), (*ACCOUNTING, f"--jobs={missing}", fields))
    made.write(
        "unknown",
        (*QUEUE, f"--jobs={UNKNOWN[0]}", FIELDS),
        (*ACCOUNTING, f"--jobs={UNKNOWN[0]}", fields),
        ("scontrol", "show", "job", UNKNOWN[0]),
        ("scontrol", "show", "job", f"{made.ids['array']}_99"),
    )
    made.write("paths", ("squeue", "--noheader", "--states=all", "--user=0", "--format=%i|%o"))
    made.write("show", ("scontrol", "show", "job", made.ids["live"]))
    made.write("sbatch", ("sbatch", "live.sh"), ("sbatch", "--parsable", "live.sh"))
    made.write(
        "sbatch-errors",
        ("sbatch", "--parsable", "--partition=nosuch", "live.sh"),
        ("sbatch", "--parsable", "--time=1d", "live.sh"),
        ("sbatch", "--parsable", "nosuch.sh"),
    )
    made.write("scancel-errors", ("scancel", "--quiet", UNKNOWN[0]), ("scancel", "--quiet", made.ids["done"]))
    cluster.exec("head", ["scontrol", "shutdown", "slurmctld"])
    down = (*QUEUE, f"--jobs={UNKNOWN[0]}", FIELDS)
    wait_for(lambda: cluster.exec("head", down, check=False, timeout=120).returncode, 60)
    made.write("no-server", down)


def record_accounting(cluster: Cluster) -> None:
    """What sacct answers for the jobs; all have ended."""
    made = Recorder(cluster)
    made.submit()
    cluster.exec("head", ["scancel", *made.numbers("live", "held", "array", "components")])
    wait_for(lambda: not cluster.exec("head", ["squeue", "--noheader", "--states=all"]).stdout, 200)
    everything = ",".join([*made.numbers(*JOBS), *UNKNOWN])
    made.write(
        "forgotten",
        (*QUEUE, f"--jobs={everything}", FIELDS),
        (*ACCOUNTING, f"--jobs={everything}", "--format=JobID,State,ExitCode"),
    )


if __name__ == "__main__":
    for version in SYSTEMS:
        need_cluster(version)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            with shared_cluster(Path(folder, "plain"), version) as plain:
                record(plain)
            if version == OLD:
                with shared_cluster(Path(folder, "accounting"), version, accounting=True) as accounting:
                    record_accounting(accounting)
