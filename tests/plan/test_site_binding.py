"""Ranks that bind themselves to the cores that a site lists, and the job that does not choose the fast network."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from golden.cases import job_part
from support.sites import LOADED, spec

from jobgen.config import read_spec
from jobgen.jobfile.reader import read_job
from jobgen.plan.plan import Plan, resolve
from jobgen.rendering.explanation import rows
from jobgen.rendering.render import render
from jobgen.runs import plan_file
from jobgen.spec import COMMAND_LINE, SiteName

POLARIS = ("24-31", "16-23", "8-15", "0-7")


def plan(command: str) -> Plan:
    return resolve(spec(command))


@pytest.mark.parametrize("launcher", ["torchrun", "deepspeed", "accelerate"])
@pytest.mark.parametrize(
    ("site", "first"),
    [
        ("pbs polaris", "24-31"),
        ("pbs aurora", "4-7"),
        ("pbs derecho", "0-15"),
        ("slurm perlmutter", "48-63,112-127"),
        ("slurm frontier", "49-55"),
        ("slurm lumi", "49-55"),
        ("slurm setonix", "48-55"),
        ("slurm daint", "0-71"),
        ("slurm clariden", "0-71"),
        ("slurm jupiter", "0-71"),
        ("slurm delta", "48-63"),
    ],
)
def test_launchers_that_do_not_bind_use_the_lists_of_the_site(site: str, first: str, launcher: str) -> None:
    one = plan(f"{site} account=x-gpu nodes=2 launcher={launcher}")
    cpus = one.resources.cpus
    assert (cpus.bind, cpus.lists[0], len(cpus.lists)) == ("site", first, one.resources.ranks_per_node)
    text = job_part(render(one))
    assert "\njob_cpu_bind=site\n" in text
    assert text.count("--cpu-bind=none") == (site.startswith("slurm"))
    [row] = [row for row in rows(one) if row.name == "cpu_bind"]
    assert (row.value, row.origin) == (";".join(cpus.lists), f"site {site.split()[1]}")


@pytest.mark.parametrize(
    "options",
    [
        "pbs polaris cpu_bind=none launcher=torchrun",
        "pbs polaris cpu_bind=cores launcher=torchrun",
        "pbs polaris launcher=torchrun ranks_per_node=2",
        "pbs polaris launcher=torchrun cpus_per_rank=4",
        "pbs polaris launcher=torchrun gpus_per_node=2",
        "pbs aurora launcher=torchrun cpus_per_rank=8",
        "pbs polaris launcher=deepspeed launcher_arg=--bind_cores_to_rank",
        "pbs polaris launcher=accelerate launcher_arg=--enable_cpu_affinity",
        "pbs polaris launcher=mpirun",
        "slurm frontier launcher=srun",
        "slurm snellius launcher=torchrun",
        "pbs derecho launcher=torchrun accelerator=cpu mem=10G request=own",
        "slurm setonix launcher=torchrun gpus_per_node=4",
        "slurm delta launcher=torchrun gpus_per_node=2",
        "slurm delta launcher=torchrun queue=gpuA100x8",
        "slurm perlmutter launcher=torchrun queue=shared",
    ],
)
def test_ranks_that_the_lists_do_not_fit_are_not_bound_to_them(options: str) -> None:
    if "request=own" in options:
        options = "pbs polaris launcher=torchrun accelerator=cpu ranks_per_node=4"
    one = plan(f"{options} account=x-gpu")
    assert one.resources.cpus.bind == {"none": "none", "cores": "cores"}.get(
        dict(re.findall(r"(\w+)=(\w+)", options)).get("cpu_bind", "")
    )


@pytest.mark.parametrize(("exclusive", "bound"), [("", None), (" exclusive=yes", "site")])
def test_shared_nodes(exclusive: str, bound: str | None) -> None:
    """Without all cores of the node, other jobs may have the listed ones."""
    one = plan(f"slurm delta account=x launcher=torchrun cpus_per_node=80 cpus_per_rank=16{exclusive}")
    assert one.resources.cpus.bind == bound


def test_each_step_has_the_binding_of_its_launcher(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(
        """site = "polaris"
[job]
account = "x"
[[step]]
command = ["./prepare"]
[[step]]
command = ["train.py"]
launcher = "torchrun"
[[step]]
command = ["one.py"]
launcher = "torchrun"
ranks_per_node = 1
"""
    )
    one = resolve(read_spec("pbs", {}, (), read_job(str(tmp_path / "job.toml"), (), ())))
    assert [step.resources.cpus.bind for step in one.steps] == [None, "site", None]
    assert one.resources.cpus.bind is None
    assert re.findall("^  job_cpu_bind=(.*)$", render(one), re.MULTILINE) == ["''", "site", "''"]


STEPS = """
[[step]]
command = ["./all"]
[[step]]
command = ["./one"]
ranks_per_node = 1
"""


@pytest.mark.parametrize(
    ("scheduler", "site", "options"),
    [
        ("pbs", "polaris", ["--cpu-bind list:24-31:16-23:8-15:0-7", "--cpu-bind depth"]),
        (
            "slurm",
            "frontier",
            ["--gpus-per-node=8 --cpu-bind=mask_cpu:0xfe000000000000,", "--gpus-per-node=8 bash"],
        ),
    ],
)
def test_a_step_has_the_lists_for_its_ranks(
    scheduler: str, site: str, options: list[str], tmp_path: Path
) -> None:
    (tmp_path / "job.toml").write_text(f'site = "{site}"\n[job]\naccount = "x"\n{STEPS}')
    text = render(resolve(read_spec(scheduler, {}, (), read_job(str(tmp_path / "job.toml"), (), ()))))
    for step, option in zip(text.split("\nstep_")[1:], options, strict=True):
        assert option in step.partition("\n}\n")[0]
        assert "list:" not in step or "list:" in option


def test_the_plan_of_a_run_has_the_binding(tmp_path: Path) -> None:
    one = plan("pbs polaris account=x launcher=torchrun")
    text = render(one)
    assert one.resources.cpus.lists == POLARIS
    file = plan_file.of(one, text, (), str(tmp_path), (), (), None)
    (tmp_path / plan_file.NAME).write_text(plan_file.text(file))
    again = plan_file.spec_of(plan_file.read(tmp_path))
    assert resolve(again._replace(site=one.spec.site)).resources.cpus == one.resources.cpus


def test_each_plug_in_of_a_network_is_the_fast_setting() -> None:
    networks = [pair for site in LOADED.values() for pair in site.file.networks.items()]
    assert [name for name, one in networks if one.fast] == [name for name, _ in networks if name == "plugin"]


@pytest.mark.parametrize(
    ("command", "slow"),
    [
        ("pbs --site polaris --nodes 2", True),
        ("pbs --site derecho --nodes 2", True),
        ("slurm --site perlmutter --nodes 2", True),
        ("slurm --site lumi --nodes 2 --launcher torchrun", True),
        ("slurm --site daint --nodes 2", True),
        ("slurm --site clariden --nodes 2", True),
        ("slurm --site delta --nodes 2", True),
        ("slurm --site olivia --nodes 2", True),
        ("pbs --site polaris --nodes 2 --network plugin", False),
        ("pbs --site polaris", False),
        ("pbs --site polaris --nodes 2 --accelerator cpu --ranks-per-node 4", False),
        ("pbs --site aurora --nodes 2", False),
        ("slurm --site setonix --nodes 2", False),
        ("slurm --site frontier --nodes 2", False),
        ("slurm --site clariden --nodes 2 --container edf --image train", False),
    ],
)
def test_a_job_on_the_slow_network_says_so(command: str, slow: bool) -> None:
    scheduler, _, site, *options = shlex.split(command)
    given: dict[str, str | list[str] | None] = {"account": "x-gpu"}
    given |= {
        key[2:].replace("-", "_"): value for key, value in zip(options[::2], options[1::2], strict=True)
    }
    one = resolve(read_spec(scheduler, given, ("train.py",), site=SiteName(site, COMMAND_LINE)))
    text = job_part(render(one))
    comments = [line for line in text.splitlines() if line.startswith("# Network: ")]
    start = "# Network: the slow path; --network plugin is faster: "
    assert [line.startswith(start) for line in comments] == [True] * slow
    assert text.count("\njob_faster_networks=plugin\n") == slow
