"""Limits of queues: routing queues, queues that are not enabled, shared ones, and what one user may have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.jobs import LAUNCHER_NOTE
from support.sites import CLUSTER, jobgen

from jobgen import JobSpec, render
from jobgen.plan.plan import resolve
from jobgen.sites.limits import longest
from jobgen.sites.loader import load


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "big.toml").write_text(CLUSTER)
    return tmp_path / "big.toml"


def warnings(site: Path, **settings: object) -> list[str]:
    job = JobSpec("slurm", ["train.py"], site=str(site), **settings)  # type: ignore[arg-type]
    return [text.partition(" (material")[0] for text in resolve(job).site.warnings]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"nodes": 300}, None),
        ({"nodes": 2000, "walltime": "20h"}, None),
        (
            {"nodes": 8},
            "nodes = 8 (Python): queue prod of Big takes 256 to 10624 nodes; "
            "capacity takes 1 to 16 nodes: use --queue capacity",
        ),
        (
            {"nodes": 300, "walltime": "20h"},
            "walltime = 20h (Python): queue prod of Big takes at most 12:00:00 for a job of 300 nodes; "
            "no queue accepts it, but prod would with --walltime 12:00:00",
        ),
        (
            {"nodes": 300, "queue": "small"},
            "queue = small (Python): queue small of Big is not enabled; use --queue prod",
        ),
        (
            {"nodes": 300, "queue": "capacity"},
            "nodes = 300 (Python): queue capacity of Big takes 1 to 16 nodes; "
            "prod takes 256 to 10624 nodes: use --queue prod",
        ),
        (
            {"nodes": 100, "queue": "capacity", "gpus_per_node": 0},
            "nodes = 100 (Python): queue capacity of Big takes 1 to 16 nodes; "
            "no queue accepts it, but prod would with --nodes 256 or capacity would with --nodes 16",
        ),
        (
            {"nodes": 16, "queue": "capacity"},
            "nodes = 16 (Python): queue capacity of Big takes at most 32 accelerators of a user at a time, and "
            "the job has 64; no queue accepts it, but capacity would with 32 accelerators in all "
            "or shared would with --nodes 4",
        ),
        (
            {"nodes": 20_000},
            "nodes = 20000 (Python): queue prod of Big takes 256 to 10624 nodes; "
            "no queue accepts it, but prod would with --nodes 10624",
        ),
        (
            {"nodes": 2, "queue": "capacity", "array": "0-9%3"},
            "array = 0-9%3 (Python): queue capacity of Big runs 1 job of a user at a time: "
            "further tasks wait until others end",
        ),
        ({"nodes": 2, "queue": "capacity", "array": "0-9%1"}, None),
        (
            {"nodes": 2, "queue": "capacity", "after": "123"},
            "after = 123 (Python): queue capacity of Big runs 1 job of a user at a time: "
            "the job also waits for the end of the others there",
        ),
        (
            {"queue": "capcity"},
            "queue = capcity (Python): Big has no such queue: use prod, capacity or shared; did you mean capacity?",
        ),
    ],
)
def test_one_sentence_a_limit(site: Path, settings: dict[str, object], said: str | None) -> None:
    found = warnings(site, **settings)
    assert [re.sub(r"(\d)h ", r"\1h ", text) for text in found][:1] == ([said] if said else [])


def test_two_limits_share_one_advice_and_cores_that_come_with_gpus_are_no_second_one(site: Path) -> None:
    found = warnings(site, nodes=8, queue="shared", gpus_per_node=8)
    advice = "; no queue accepts it, but shared would with --nodes 4 and --gpus-per-node 4"
    assert [advice in text for text in found] == [True, False]
    assert [text.partition(" =")[0] for text in found] == ["nodes", "gpus_per_node"]
    assert "cores" not in " ".join(found)


def test_gpus_of_a_user_bound_the_tasks_of_an_array(site: Path) -> None:
    site.write_text(CLUSTER.replace("max_jobs = 1", "max_jobs = 9"))
    assert warnings(site, nodes=4, queue="capacity", array="0-1") == []
    assert warnings(site, nodes=4, queue="capacity", array="0-2") == [
        "array = 0-2 (Python): queue capacity of Big runs 32 accelerators of a user at a time: "
        "further tasks wait until others end"
    ]


def test_the_longest_time_of_a_routing_queue_is_that_of_the_route(site: Path) -> None:
    found = load(str(site))
    assert [longest(found, "prod", nodes) for nodes in (256, 1024, 1025)] == [12 * 3600, 12 * 3600, 24 * 3600]


def test_a_warning_has_the_confidence_and_the_date(site: Path) -> None:
    done = jobgen("slurm", "--site", "big.toml", "--nodes", "8", "--", "train.py", cwd=site.parent)
    assert (done.returncode, done.stdout.startswith("#!/bin/bash")) == (0, True)
    assert re.fullmatch(
        r"jobgen: warning: --nodes 8 \(command line\): .*capacity "
        r"\(material of the staff of 2026-02-03; jobgen site refresh asks the scheduler\)\n",
        LAUNCHER_NOTE.sub("", done.stderr),
    ), done.stderr


def test_python_prints_the_warning_too(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(JobSpec("slurm", ["train.py"], site=str(site), nodes=8))
    assert "jobgen: warning: nodes = 8 (Python): queue prod" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "bound"),
    [
        ({"queue": "capacity"}, True),
        ({"queue": "shared"}, True),
        ({"queue": "shared", "cpus_per_rank": 4}, False),
        ({"queue": "shared", "cpus_per_rank": 4, "exclusive": True}, True),
        ({"queue": "capacity", "cpus_per_rank": 4}, True),
    ],
)
def test_a_shared_queue_has_masks_for_whole_nodes_alone(
    site: Path, settings: dict[str, object], bound: bool
) -> None:
    text = render(JobSpec("slurm", ["train.py"], site=str(site), **settings))  # type: ignore[arg-type]
    assert ("mask_cpu" in text) is bound


def test_show_prints_the_keys(site: Path) -> None:
    shown = jobgen("site", "show", "big.toml", cwd=site.parent).stdout
    for line in ('routes_to = ["small", "large"]', "enabled = false", "max_jobs = 1", "max_gpus = 32"):
        assert f"\n{line}  # big.toml, line " in shown
