"""A job on each kind of node of each PBS site: a real OpenPBS places it on nodes of that shape, and on no smaller ones.

Sites that request no cores and no devices, as they give whole nodes, have only their words to match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pbs import PbsCluster
from support.site_pbs import called, chunks_of_a_node, names
from support.site_pbs_lab import HiddenPbs, hidden_pbs, placed, shape, smaller
from support.site_requests import Request, directives, plan
from test_site_queues_on_pbs import SITES, prepare, qmgr

from jobgen.rendering.render import render
from jobgen.sites.limits import ranges
from jobgen.sites.site_file import Site

pytestmark = pytest.mark.xdist_group("site-schedulers")


def kinds(site: Site) -> Iterator[Request]:
    """Yield a job for each kind of node and way to ask for it, on two nodes where the queue takes two."""
    found = set()
    for name, queue in site.queues.items():
        spans = ranges(site, name) or [(1, 2)]
        kind = (site.node(name), site.request(name), queue.directives)
        totals = "select=" not in "".join(site.request(name))
        if queue.enabled and spans[0][0] <= 2 and kind not in found:
            found.add(kind)
            nodes = 1 if totals else max(spans[0][0], min(2, spans[0][1]))
            yield Request(name, {"nodes": str(nodes), "walltime": "00:10:00"})


@pytest.fixture(scope="module")
def machine(openpbs_cluster: PbsCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiddenPbs]:
    with hidden_pbs(tmp_path_factory.mktemp("pbs") / "machine", openpbs_cluster) as cluster:
        yield cluster


def form(cluster: HiddenPbs, folder: Path, resources: dict[str, str]) -> None:
    """Give all nodes these resources."""
    words = [f"resources_available.{name}={text}" for name, text in resources.items()]
    qmgr(cluster, folder, [f"set node {node} {word}" for node in cluster.nodes for word in words])


def run(cluster: HiddenPbs, folder: Path, site: Site, request: Request) -> tuple[str, str]:
    """Submit the script of a request, and return where it ran, or nothing and why not."""
    (folder / "job.pbs").write_text(render(plan(site, request)), encoding="utf-8")
    done = cluster.exec("head", ["qsub", "-q", called(request.queue), "job.pbs"], cwd=folder, check=False)
    assert done.returncode == 0, (request.name, done.stderr)
    job = done.stdout.strip()
    try:
        return placed(cluster, job)
    finally:  # the job may have ended
        cluster.purge(job, check=False)


def start(cluster: HiddenPbs, folder: Path, site: Site) -> None:
    """Start the queues of a site, with no memory by default. Where a site's queue says what a chunk is, it does."""
    lines = []
    for name in names(site):
        lines += [f"set queue {name} started=true", f"unset queue {name} resources_max.mem"]
    for name, queue in site.queues.items():
        said = "\n".join((*site.request(name), *site.file.directives))
        if "place=" not in said and "select=" in said and not queue.routes_to:
            cores = (site.node(name).cores or 1) // chunks_of_a_node(site, name)
            lines.append(f"set queue {called(name)} default_chunk.ncpus={cores}")
    qmgr(cluster, folder, lines)


def needs(lines: list[str], full: dict[str, str]) -> list[str]:
    """Return the resources of which a job needs all that a node has."""
    asked = dict(re.findall(r"\b([a-z_]+)=([\w.-]+)", "\n".join(lines)))
    return [name for name, text in full.items() if asked.get(name) == text]


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_pbs_places_a_job_on_each_kind_of_node(site: Site, machine: HiddenPbs) -> None:
    folder = machine.folder("nodes")
    prepare(machine, folder, site)
    start(machine, folder, site)
    try:
        for request in kinds(site):
            lines = directives(plan(site, request))
            full = shape(site, request.queue, lines)
            machine.match([*full])
            form(machine, folder, full)
            where, comment = run(machine, folder, site, request)
            hosts = set(re.findall(r"\((\w+)", where))
            assert len(hosts) == int(request.options["nodes"]), (request.name, where, comment)
            for name in needs(lines, full):
                form(machine, folder, {**full, name: smaller(full[name])})
                where, comment = run(machine, folder, site, request)
                assert (where, "Run" in comment) == ("", True), (request.name, name, where, comment)
    finally:
        form(machine, folder, {"ncpus": "8", "ngpus": "2"})
        qmgr(machine, folder, [f"delete queue {name}" for name in names(site)])
