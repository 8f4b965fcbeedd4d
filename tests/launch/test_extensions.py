"""A launcher, an accelerator and directives that jobgen does not have, added by a row and a template each."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from support.walkthroughs import block, row

from jobgen import JobgenError, JobSpec, render
from jobgen.launch import accelerators, launchers
from jobgen.launch.accelerators import ACCELERATORS
from jobgen.launch.launchers import LAUNCHERS

JSRUN = row("Add a launcher", launchers)
GAUDI = row("Add an accelerator", accelerators)
# Each starts the processes of one node, with variables of its own.
RUN_JSRUN = """\
for ((rank = 0; rank < $2; rank++)); do
  JSM_NAMESPACE_RANK=$rank JSM_NAMESPACE_SIZE=$2 JSM_NAMESPACE_LOCAL_RANK=$((rank % $4)) "${@:5}" &
done
"""
RUN_DEEPSPEED = """\
while [[ $1 != bash ]]; do shift; done
export HABANA_VISIBLE_DEVICES=0,1 WORLD_SIZE=2 LOCAL_SIZE=2 CROSS_RANK=0
for rank in 0 1; do RANK=$rank LOCAL_RANK=$rank "$@" & done
"""
WAIT = 'status=0; for child in $(jobs -p); do wait "$child" || status=$?; done; exit "$status"\n'
TWO = ("bash", "-c", 'echo "saw $RANK $WORLD_SIZE $LOCAL_RANK ${HABANA_VISIBLE_DEVICES:-}"')


def add_template(folder: Path, name: str, text: str) -> list[Path]:
    """Write a template and return the template folders."""
    path = folder / "templates" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return [folder / "templates"]


@pytest.fixture
def jsrun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    monkeypatch.setitem(LAUNCHERS, "jsrun", JSRUN)
    return add_template(tmp_path, "launcher/jsrun.sh.j2", block("Add a launcher", "jinja"))


@pytest.fixture
def gaudi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    monkeypatch.setitem(ACCELERATORS, "gaudi", GAUDI)
    return add_template(tmp_path, "accelerator/gaudi.sh.j2", block("Add an accelerator", "jinja"))


def run(script: str, folder: Path, command: str, text: str, **env: str) -> list[str]:
    """Run a local script with a toy launcher on PATH, and return the lines of the ranks in order."""
    tool = folder / "bin" / command
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/bash\n{text}{WAIT}")
    tool.chmod(0o755)
    path = f"{tool.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-s"],
        input=script,
        cwd=folder,
        env={"HOME": str(folder), "PATH": path, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(re.findall("saw (.*)", done.stdout))


@pytest.mark.parametrize("scheduler", JSRUN.schedulers)
def test_the_ranks_of_a_launcher_come_from_its_own_variables(scheduler: str, jsrun: list[Path]) -> None:
    nodes = {"slurm": 2, "local": 1}[scheduler]
    spec = JobSpec(scheduler, TWO, nodes=nodes, ranks_per_node=2)._replace(launcher="jsrun")
    script = render(spec, template_dirs=jsrun)
    assert f'exec jsrun -n {2 * nodes} -r 2 bash "$JOBGEN_RUN_DIR/rank.sh"' in script
    assert (
        "export RANK=$JSM_NAMESPACE_RANK WORLD_SIZE=$JSM_NAMESPACE_SIZE "
        "LOCAL_RANK=$JSM_NAMESPACE_LOCAL_RANK LOCAL_WORLD_SIZE=2\n"
    ) in script
    assert "node() {" not in script


def test_the_ranks_of_a_launcher_see_their_numbers(jsrun: list[Path], tmp_path: Path) -> None:
    spec = JobSpec("local", TWO, ranks_per_node=3)._replace(launcher="jsrun")
    seen = run(render(spec, template_dirs=jsrun), tmp_path, "jsrun", RUN_JSRUN)
    assert seen == ["0 3 0 ", "1 3 1 ", "2 3 2 "]


@pytest.mark.parametrize(
    ("scheduler", "settings", "sentence"),
    [
        (
            "slurm",
            {"remote": "ssh", "nodes": 2},
            "jsrun starts processes through the scheduler, never through ssh",
        ),
        ("slurm", {"mpi": "openmpi"}, "--launcher jsrun starts no MPI; remove it or use mpirun"),
        ("slurm", {"include": "a:0"}, "only the deepspeed launcher filters devices; jsrun ignores it"),
        (
            "slurm",
            {"container": "pyxis", "image": "a"},
            "but jsrun starts the ranks; use --launcher srun, or enroot",
        ),
        ("pbs", {"nodes": 2}, "use deepspeed, mpirun, torchrun, accelerate, colossalai or none"),
    ],
)
def test_a_launcher_refuses_what_it_cannot_do(
    scheduler: str, settings: dict[str, str], sentence: str, jsrun: list[Path]
) -> None:
    spec = JobSpec(scheduler, TWO, **settings)._replace(launcher="jsrun")  # type: ignore[arg-type]
    with pytest.raises(JobgenError, match=re.escape(sentence)) as error:
        render(spec, template_dirs=jsrun)
    assert "\n" not in str(error.value)


def test_an_accelerator_is_requested_and_set_up(gaudi: list[Path]) -> None:
    spec = JobSpec("slurm", TWO, nodes=2, gpus_per_node=4, launcher="deepspeed")._replace(accelerator="gaudi")
    script = render(spec, template_dirs=gaudi)
    assert "#SBATCH --gres=gaudi:4\n" in script
    assert "  export DS_ACCELERATOR=hpu\n" in script
    assert "job_device_variable=HABANA_VISIBLE_DEVICES" in script


def test_the_ranks_of_an_accelerator_see_the_devices_of_the_job(gaudi: list[Path], tmp_path: Path) -> None:
    spec = JobSpec("local", TWO, gpus_per_node=2, launcher="deepspeed")._replace(accelerator="gaudi")
    script = render(spec, template_dirs=gaudi)
    seen = run(script, tmp_path, "deepspeed", RUN_DEEPSPEED, HABANA_VISIBLE_DEVICES="4,6")
    assert seen == ["0 2 0 4,6", "1 2 1 4,6"]


def test_a_container_gets_the_options_of_an_accelerator(gaudi: list[Path]) -> None:
    spec = JobSpec("slurm", TWO, gpus_per_node=1, container="docker", image="a")
    assert "--runtime=habana" in render(spec._replace(accelerator="gaudi"), template_dirs=gaudi)


@pytest.mark.parametrize(("containers", "way"), [(GAUDI.containers, "use docker"), ({}, "leave it out")])
def test_a_container_without_the_accelerator_is_refused(
    containers: dict[str, str], way: str, gaudi: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ACCELERATORS, "gaudi", GAUDI._replace(containers=containers))
    spec = JobSpec("slurm", TWO, gpus_per_node=1, container="apptainer", image="a")
    with pytest.raises(JobgenError) as error:
        render(spec._replace(accelerator="gaudi"), template_dirs=gaudi)
    sentence = f"container = apptainer (Python): Apptainer does not support gaudi; {way}"
    assert str(error.value) == sentence


def test_a_template_has_the_parts_of_the_plan_and_words(tmp_path: Path) -> None:
    block = "{{ resources.nodes }} {{ nodes_word }} {{ spec.launcher }} {{ launch.mpi.title }} {{ walltime }}"
    text = '{% extends "builtin/pbs.sh.j2" %}{% block launch %}' + block + "{% endblock %}"
    script = render(
        JobSpec("pbs", nodes=2, launcher="mpirun"), template_dirs=add_template(tmp_path, "pbs.sh.j2", text)
    )
    assert "2 2 mpirun Open MPI 01:00:00" in script
