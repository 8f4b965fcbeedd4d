"""The common part of the dialects of PBS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from jobgen.schedulers.base import Scheduler, matches

if TYPE_CHECKING:
    from jobgen.schedulers.cluster import ClusterCommands
    from jobgen.schedulers.jobs import JobCommands

# Resources that the script itself requests, in the chunk of each node or outside of it.
OURS = ("ncpus", "mpiprocs", "ompthreads", "ngpus", "mem", "nodes", "select", "place", "walltime")
EVENT_LETTERS = {"begin": "b", "end": "e", "fail": "a", "none": "n"}  # of the events of mail


class Pbs(Scheduler):
    command_name = runtime = "pbs"
    command = "qsub"
    summary = "Print a script for OpenPBS, PBS Pro or Torque."
    example = "jobgen pbs --nodes 2 --launcher mpirun > job.pbs && qsub job.pbs"
    option_pattern = r"-[A-Za-z][^\x00-\x1f\x7f\u2028\u2029#]*"
    option_rule = "an option of qsub, such as -l place=scatter"
    dependency_form = "-W depend={}"
    queue_lists = False
    in_template: tuple[str, ...] = ("constraint",)
    loses_dependents = True
    submit_commands = ("qsub", "qstat")
    features: tuple[str, str]  # a pattern of what may be requested of a node, and the rule

    def jobs(self) -> JobCommands:
        from jobgen.schedulers import pbs_jobs

        return pbs_jobs

    def cluster(self) -> ClusterCommands:
        from jobgen.schedulers import pbs_cluster

        return pbs_cluster

    def probes(self) -> Mapping[str, tuple[str, ...]]:
        from jobgen.schedulers.pbs_cluster import PROBES

        return PROBES

    def misplaced(self, line: str) -> str | None:
        if re.search(r"\s#", line):
            return "PBS takes no comment after a directive; leave it out"
        return "is Slurm; PBS takes options such as -l filesystems=home" if line.startswith("--") else None

    def value(self, key: str, value: object) -> object:
        if key == "begin":
            return _begin(str(value))
        if key in ("qos", "reservation") and "," in str(value):
            raise ValueError("must be one name; PBS takes what follows a comma for something else")
        return value

    def constraint(self, text: str) -> str:
        pattern, rule = self.features
        if not matches(pattern, text):
            raise ValueError(f"must be {rule}")
        for name in re.findall(r"(\w+)=", text):
            if name in OURS:
                raise ValueError(f"{name} is asked for already; use the option that says it")
        return f":{text}"

    def dependency(self, kind: str, job: str) -> str:
        if kind == "aftercorr":
            raise ValueError("only Slurm knows aftercorr, task by task; use afterok")
        if "_" in job:
            raise ValueError(f"{job} is no id of PBS, which are 12.server or 12[].server")
        return kind

    def mail(self, events: Iterable[str]) -> str:
        return "".join(sorted(EVENT_LETTERS[event] for event in events))

    def log(self, name: str, path: str) -> str:
        if ":" in path and not path.startswith("/"):
            raise ValueError(
                "PBS takes what is before the : for a host; leave it out, or write the path from /"
            )
        known = {"x": name, **self.log_codes}
        if unknown := [code for code in re.findall(r"%(.?)", path) if code not in known]:
            raise ValueError(f"{self.title} puts no %{unknown[0]} into a name; leave it out")
        return re.sub(r"%(.)", lambda found: known[found[1]], path)


def _begin(begin: str) -> str:
    """Return a date and time as PBS's digits; there are no relative times."""
    if begin[0] == "+":
        raise ValueError("PBS takes a date or a time of day, such as 2030-01-31T20:00 or 20:00")
    digits = re.sub(r"[-T:]", "", begin)
    return f"{digits[:-2]}.{digits[-2:]}" if begin.count(":") == 2 else digits
