"""The scripts of each PBS site on a real OpenPBS that has the queues, limits and resources of its site file."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support.cluster import ClusterError
from support.pbs import PbsCluster
from support.site_pbs import called, chunks_of_a_node, commands, names, resources
from support.site_requests import Request, directives, plan, requests
from support.waiting import wait_until

from jobgen.plan.plan import Plan
from jobgen.rendering.render import render
from jobgen.sites import loader, search
from jobgen.sites.site_file import Site

pytestmark = pytest.mark.xdist_group("site-schedulers")
SITES = [
    site
    for path in sorted(Path(search.folders()[-1]).glob("*.toml"))
    if (site := loader.load(path.stem)).scheduler.name == "pbspro" and site.queues
]


@pytest.fixture
def folder(openpbs_cluster: PbsCluster) -> Iterator[Path]:
    made = openpbs_cluster.folder("sites")
    yield made
    shutil.rmtree(made, ignore_errors=True)


def qmgr(cluster: PbsCluster, folder: Path, lines: Sequence[str], *, check: bool = True) -> None:
    """Give these lines to qmgr."""
    (folder / "qmgr").write_text("\n".join(lines) + "\n")
    done = cluster.exec("head", ["sh", "-c", "qmgr < qmgr"], cwd=folder, root=True, check=False)
    if check and done.returncode:
        raise ClusterError(f"{lines}\n{done.stdout}{done.stderr}")


def prepare(cluster: PbsCluster, folder: Path, site: Site) -> None:
    """Make the queues of a site, and the resources that its scripts name; resources stay."""
    lines = [line for queue in site.queues for line in directives(plan(site, next(requests(site, queue))))]
    for name, kind in resources(lines).items():
        listed = cluster.exec("head", ["qmgr", "-c", f"list resource {name}"], root=True, check=False)
        if listed.returncode:
            qmgr(cluster, folder, [f"create resource {name} {kind}"])
    qmgr(cluster, folder, [*commands(site)])


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_what_pbs_accepts_is_what_the_site_file_says(
    site: Site, openpbs_cluster: PbsCluster, folder: Path
) -> None:
    gone = [f"delete queue {name}" for name in names(site)]
    qmgr(openpbs_cluster, folder, gone, check=False)
    prepare(openpbs_cluster, folder, site)
    try:
        wrong = [text for queue in site.queues for text in _wrong(openpbs_cluster, folder, site, queue)]
    finally:
        qmgr(openpbs_cluster, folder, gone)
    assert not wrong, "\n".join(wrong)


def _wrong(cluster: PbsCluster, folder: Path, site: Site, queue: str) -> Iterator[str]:
    """Yield the requests of which PBS, jobgen and the site file say different things."""
    routing = re.findall(r"^create queue (\S+) queue_type=route$", "\n".join(commands(site)), re.MULTILINE)
    for request in requests(site, queue, totals=True):
        found = plan(site, request)
        job, said = _submit(cluster, folder, found, queue, routing)
        fits = not request.beyond and site.queues[queue].enabled
        warned = bool(found.site.warnings)
        if bool(job) != fits or warned == fits:
            yield f"{request.name}: jobgen {'warns' if warned else 'is silent'}; {job or 'refused'} {said}"
        if job:
            facts = cluster.facts(job)
            cluster.exec("head", ["qdel", job])
            yield from _differences(site, request, found, facts)


def _submit(
    cluster: PbsCluster, folder: Path, found: Plan, queue: str, routing: Sequence[str]
) -> tuple[str, str]:
    """Submit the script of a plan; return the job, or nothing, and what qsub said."""
    (folder / "job.pbs").write_text(render(found), encoding="utf-8")
    words = ["-q", called(queue)] if called(queue) != queue else []
    done = cluster.exec("head", ["qsub", *words, "job.pbs"], cwd=folder, check=False)
    job = done.stdout.strip()
    if job and queue in routing and not wait_until(lambda: _arrived(cluster, job), 20):
        return job, "was not routed"
    return (job if job and cluster.facts(job) else ""), done.stderr


def _arrived(cluster: PbsCluster, job: str) -> bool:
    """Return whether a job is in an execution queue, or is gone: no queue to which it was routed took it."""
    queue = cluster.facts(job).get("queue")
    return queue is None or "queue_type = Route" not in cluster.exec("head", ["qstat", "-Qf", queue]).stdout


def _differences(site: Site, request: Request, found: Plan, facts: dict[str, str]) -> Iterator[str]:
    """Yield what PBS understood in another way than was said."""
    nodes, gpus = found.resources.allocated, found.resources.gpus_per_node
    each = chunks_of_a_node(site, request.queue)
    expected = {"Resource_List.nodect": str(nodes * (each if each == 1 else gpus))} if each else {}
    if any("ngpus=" in line for line in directives(found)):
        expected["Resource_List.ngpus"] = str(nodes * gpus)
    for key, value in expected.items():
        if facts.get(key) != value:
            yield f"{request.name}: {key} is {facts.get(key)}, not {value}"
