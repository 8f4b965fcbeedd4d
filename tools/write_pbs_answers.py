"""Records what the commands of a real OpenPBS and a real Torque print, in tests/answers: tests/schedulers/test_recorded_pbs.py
reads it on machines that have neither. Run it as root where they are installed; it takes some minutes.

A file has one or more calls: the command after ``$``, the lines of its output after ``|``, those of its errors after ``!``,
and its exit status after ``=``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence

from support.answers import ANSWERS
from support.pbs import OPENPBS, TORQUE, PbsCluster, shared_pbs
from support.require import need_pbs
from support.waiting import wait_until

UNKNOWN = ("999998", "999999")
PLAIN = {"PATH": "/usr/bin:/bin"}
OF_THIS_MACHINE = (r"(?<=uname=)[^,]*", r"(?<=macaddr=)[^,]*", r"(?<=,sessions=)[\d ]*")
LONG = "#!/bin/bash\nexec sleep 300\n"
# The options of the jobs and their scripts.
JOBS: dict[str, tuple[tuple[str, ...], str]] = {
    "done": ((), "#!/bin/bash\nexit 0\n"),
    "failed": ((), "#!/bin/bash\nexit 3\n"),
    "walltime": (("-l", "walltime=00:00:02"), LONG),
    "cput": (("-l", "cput=00:00:02"), "#!/bin/bash\nwhile :; do :; done\n"),
    "deleted": ((), LONG),
    "never": (("-h",), LONG),
    "live": (("-l", "walltime=01:00:00"), LONG),
    "held": (("-h",), LONG),
}
ARRAY = {"openpbs": ("-J", "0-3%2"), "torque": ("-t", "0-3%2")}


class Recorder:
    """The jobs on a cluster, and the files that are written."""

    def __init__(self, cluster: PbsCluster) -> None:
        self.cluster = cluster
        self.folder = cluster.folder("answers")
        self.ids: dict[str, str] = {}

    def call(self, *words: str) -> str:
        """Run a command and return the block of a file; names of jobs in braces become their numbers."""
        words = tuple(word.format(**self.ids) for word in words)
        done = self.cluster.exec("head", ["env", *words], cwd=self.folder, env=PLAIN, check=False)
        lines = [f"$ {' '.join(words)}"]
        lines += [f"| {line}".rstrip("\n") for line in done.stdout.splitlines()]
        lines += [f"! {line}" for line in done.stderr.splitlines()]
        text = "\n".join([*lines, f"= {done.returncode}", ""])
        text = text.replace(str(self.folder), "/home/me/runs")
        return re.sub("|".join(OF_THIS_MACHINE), "X", text)

    def write(self, name: str, *calls: Sequence[str]) -> None:
        path = ANSWERS / self.cluster.name / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(self.call(*words) for words in calls))

    def submit(self) -> None:
        for name, (options, script) in JOBS.items():
            self.ids[name] = self._submit(name, *options, script=script)
        for name in ("array", "ended"):
            self.ids[name] = self._submit(name, *ARRAY[self.cluster.name], script=LONG)
        self._until(self._run, "deleted", "live")
        self._until(self._run_two, "array", "ended")
        self.call("qdel", "{never}", "{deleted}", "{ended}")
        self._until(self._ended, "done", "failed", "walltime", "cput", "deleted", "ended")

    def _submit(self, name: str, *options: str, script: str) -> str:
        path = self.folder / f"{name}.sh"
        path.write_text(script)
        return self.cluster.submit(path, self.folder, *options, env=PLAIN).partition(".")[0]

    def _states(self, name: str) -> list[str]:
        history = ("-x",) if self.cluster.name == "openpbs" else ()
        done = self.cluster.exec("head", ["qstat", *history, "-t", "-f", self.ids[name]], check=False)
        return re.findall(r"job_state = (\w)", done.stdout)

    def _run(self, name: str) -> bool:
        return "R" in self._states(name)

    def _run_two(self, name: str) -> bool:
        return self._states(name).count("R") == 2

    def _ended(self, name: str) -> bool:
        return set(self._states(name)) == {self.cluster.kind.ended}

    def _until(self, check: Callable[[str], bool], *names: str) -> None:
        for name in names:
            if not wait_until(lambda name=name: check(name), 300):  # type: ignore[misc]
                raise TimeoutError(f"{self.cluster.name}: job {name}: {self._states(name)}")


def record(cluster: PbsCluster) -> None:
    made = Recorder(cluster)
    made.submit()
    jobs = [f"{{{name}}}" for name in JOBS]
    arrays = ["{array}", "{ended}"]
    if cluster.name == "openpbs":
        elsewhere, ask = "PBS_SERVER=nowhere", ("qstat", "-x", "-E", "-t", "-f")
    else:
        elsewhere, ask = "PBS_DEFAULT=nowhere", ("qstat", "-t", "-f")
    express = ("qstat", "-x", "-E", "-t", "-f")
    made.write("version", ("qsub", "--version"))
    made.write("jobs", *_questions(express, ask, [*jobs, *UNKNOWN], UNKNOWN))
    made.write("arrays", *_questions(express, ask, [*arrays, "999999[]"], ["999999[]"]))
    made.write("unknown", (*express, *UNKNOWN))
    made.write(
        "no-server",
        *(
            (elsewhere, *form, "{live}")
            for form in dict.fromkeys((express, ("qstat", "-t", "-f"), ("qstat", "-f")))
        ),
    )
    made.write("no-id", (*express, "12x"), ("qstat", "-t", "-f", "12x"), ("qstat", "-f", "12x"))
    made.write("queues", ("qstat", "-Q", "-f"), ("qstat", "-B", "-f"), ("pbsnodes", "-a"))
    since = "-tc.ge.202601010000.00"
    made.write("none", ("qselect", "-x", since, "-u", "root"), ("qselect", "-u", "root"))
    made.write("qsub", ("qsub", "-h", "live.sh"))
    made.write(
        "qsub-errors",
        ("qsub", "-q", "nosuch", "live.sh"),
        ("qsub", "-l", "walltime=1d", "live.sh"),
        ("qsub", "nosuch.sh"),
    )
    made.write("qdel-errors", ("qdel", "999999"), ("qdel", "{done}"))
    made.call("qdel", *jobs, *arrays)


def _questions(
    express: Sequence[str], ask: Sequence[str], ids: Sequence[str], unknown: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yield the questions for some jobs, then what is asked for those about which the first answer says nothing."""
    yield (*express, *ids)
    if tuple(ask) == tuple(express):
        yield (*express, *unknown)
    else:
        yield (*ask, *(word for word in ids if word not in unknown))


def main(names: Sequence[str]) -> None:
    for kind in (OPENPBS, TORQUE):
        if not names or kind.name in names:
            with shared_pbs(need_pbs(kind)) as cluster:
                record(cluster)


if __name__ == "__main__":
    main(sys.argv[1:])
