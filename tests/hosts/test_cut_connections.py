"""Submissions over connections that break at a random byte: no job is lost, and none is made twice."""

from __future__ import annotations

import os
import random
import time

import pytest
from support.hosts import SMALL, add, offline
from support.laptop import Done, Laptop, User

pytestmark = pytest.mark.xdist_group("hosts")

CUTS = int(os.environ.get("JOBGEN_TEST_CUTS", "6"))


def submit(laptop: Laptop, name: str) -> Done:
    return laptop.run(
        *("jobgen", "submit", "--host", "narval", *SMALL, "--name", name, "--", "sh", "-c", ":"), timeout=120
    )


def test_no_job_is_lost_or_made_twice(laptop: Laptop, user: User, chance: random.Random) -> None:
    relay = laptop.relay()
    laptop.knows("narval", user, relay=relay)
    add(laptop, user)
    assert submit(laptop, "whole").status == 0
    offline(laptop)
    [span] = relay.connections
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
        listed = laptop.run("ssh", "narval", f"squeue --noheader --states=all --name={name} --format=%i")
        jobs = [line for line in listed.out.splitlines() if line.isdecimal()]
        assert (last.status, jobs) == (0, [last.out.strip()]), (first, last, listed)
        what = "submitted" if first.status == 0 else "found" if "earlier submission" in last.err else "again"
        outcomes[what] = outcomes.get(what, 0) + 1
    print(CUTS, "cuts:", outcomes)
