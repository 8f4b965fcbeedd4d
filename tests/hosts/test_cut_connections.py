"""Submissions over connections that break at a random byte: no job is lost, and none is made twice."""

from __future__ import annotations

import os
import random
import time

import pytest
from support.hosts import SMALL, Login, add, offline, row_of
from support.laptop import Done, Laptop

pytestmark = pytest.mark.xdist_group("hosts")

CUTS = int(os.environ.get("JOBGEN_TEST_CUTS", "6"))


def submit(laptop: Laptop, name: str) -> Done:
    words = ("jobgen", "submit", "--host", "narval", *SMALL, "--walltime", "10m", "--name", name)
    return laptop.run(*words, "--", "sleep", "300", timeout=120)


def jobs_of(laptop: Laptop, name: str, query: str) -> list[str]:
    """Return the ids of the jobs with this name, and cancel them."""
    listed = laptop.run("ssh", "narval", query.format(name)).out.splitlines()
    jobs = [line for line in listed if line[:1].isdecimal()]
    cancel = "scancel" if query.startswith("squeue") else "qdel"
    for job in jobs:
        laptop.run("ssh", "narval", f"{cancel} {job}")
    return jobs


def test_no_job_is_lost_or_made_twice(laptop: Laptop, login: Login, chance: random.Random) -> None:
    on_slurm = login.cluster.name == "slurm"
    query = "squeue --noheader --states=all --name={} --format=%i" if on_slurm else "qselect -N {}"
    relay = laptop.relay(f"{login.user.host}:{login.user.port}")
    laptop.knows("narval", login.user, relay=relay)
    runs = None if on_slurm else login.cluster.folder("runs")
    if runs:
        runs.chmod(0o777)
    add(laptop, login.user, scheduler=row_of(login), runs=runs)
    whole = submit(laptop, "whole")
    assert (whole.status, jobs_of(laptop, "whole", query)) == (0, [whole.out.strip()])
    offline(laptop)
    span = relay.connections[0]
    outcomes: dict[str, int] = {}
    for number in range(CUTS):
        name = f"cut{number}"
        offline(laptop)  # only a new connection is cut
        relay.cut_at_random(chance, span)
        first = last = submit(laptop, name)
        offline(laptop)
        relay.set()
        deadline = time.monotonic() + 30
        while last.status != 0 and time.monotonic() < deadline:
            last = submit(laptop, name)
        assert (last.status, jobs_of(laptop, name, query)) == (0, [last.out.strip()]), (first, last)
        what = "submitted" if first.status == 0 else "found" if "earlier submission" in last.err else "again"
        outcomes[what] = outcomes.get(what, 0) + 1
    print(CUTS, "cuts:", outcomes)
