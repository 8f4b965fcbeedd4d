"""The scripts of each Slurm site on a real Slurm that has the queues, limits and nodes of its site file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.require import need_cluster, need_command
from support.site_lab import Lab, site_lab
from support.site_requests import Request, directives, plan, requests
from support.site_slurm import gres_of

from jobgen.rendering.render import render
from jobgen.sites import loader, search
from jobgen.sites.site_file import Site

pytestmark = pytest.mark.xdist_group("site-schedulers")
SITES = [
    site
    for path in sorted(Path(search.folders()[-1]).glob("*.toml"))
    if (site := loader.load(path.stem)).file.scheduler == "slurm" and site.queues
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    need_cluster()
    need_command("mariadbd", "slurmdbd")
    with site_lab(tmp_path_factory.mktemp("sites"), SITES) as found:
        yield found


def script(site: Site, request: Request, folder: Path) -> Path:
    path = folder / "job.sh"
    path.write_text(render(plan(site, request)), encoding="utf-8")
    return path


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_what_slurm_accepts_is_what_the_site_file_says(site: Site, lab: Lab, tmp_path: Path) -> None:
    lab.serve(site)
    wrong = []
    for queue in site.queues:
        for request in requests(site, queue):
            done = lab.test_only(script(site, request, tmp_path))
            fits = not request.beyond and site.queues[queue].enabled
            warned = bool(plan(site, request).site.warnings)
            if (done.returncode == 0) != fits or warned == fits:
                wrong.append(f"{request.name}: jobgen {'warns' if warned else 'is silent'}; {done.stderr}")
    assert not wrong, "\n".join(wrong)
    missing = _missing(site, lab, tmp_path)
    assert not missing, missing
    assert _requested(site, lab, tmp_path) == []


def _missing(site: Site, lab: Lab, folder: Path) -> list[str]:
    """Return what the site demands of every job, and Slurm does not miss."""
    accepted = []
    queue = str(site.values.get("queue", next(iter(site.queues))))
    path = script(site, next(requests(site, queue)), folder)
    for key, option in (("account", "--account="), ("queue", site.file.rules.queue or "--partition")):
        if key in site.file.mandatory:
            lines = path.read_text().splitlines(keepends=True)
            (folder / "less.sh").write_text(
                "".join(x for x in lines if not x.startswith(f"#SBATCH {option}"))
            )
            accepted += [] if lab.test_only(folder / "less.sh").returncode else [key]
    return accepted


def _requested(site: Site, lab: Lab, folder: Path) -> list[str]:
    """Return the queues whose jobs request other numbers of nodes or devices than was said."""
    wrong = []
    for queue, facts in site.queues.items():
        request = next(requests(site, queue))
        if facts.enabled:
            found = plan(site, request).resources
            tres = lab.held(script(site, request, folder))
            devices = found.allocated * found.gpus_per_node if gres_of(site, queue) else 0
            seen = sum(int(tres.get(f"gres/{kind}", 0)) for kind in ("gpu", "npu"))
            if (int(tres["node"]), seen) != (found.allocated, devices):
                wrong.append(f"{queue}: {tres} for {directives(plan(site, request))}")
    return wrong
