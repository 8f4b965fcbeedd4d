"""The parts of a node: which devices and processors a process of a part gets."""

from __future__ import annotations

import pytest
from support.runtime_shell import RUNTIME, Shell

FILES = ("node_parts", "node/part")
PART = f"{RUNTIME}/node/part.sh"


@pytest.mark.parametrize(
    ("seen", "devices", "own"),
    [
        ("2,5,6,7", "0,1", "2,5"),
        ("2,5,6,7", "3", "7"),
        ("", "0,3", "0,3"),
        ("GPU-a,GPU-b", "1", "GPU-b"),
        ("2,5", "none", "-1"),
    ],
)
def test_devices_are_those_of_the_job(shell: Shell, seen: str, devices: str, own: str) -> None:
    code = f"job_part_variable=CUDA_VISIBLE_DEVICES job_part_devices={devices} job_part_cores=0 job_cpus_per_node=1"
    code = f"{code}; export CUDA_VISIBLE_DEVICES={seen}; . {{part}}; . {{part}}; echo $CUDA_VISIBLE_DEVICES"
    done = shell.run("node_parts", code.replace("{part}", PART))
    assert done.lines == [own], done.said


def test_a_device_that_the_job_does_not_have(shell: Shell) -> None:
    code = "job_part_variable=V job_part_devices=2 job_part_cores=0 job_cpus_per_node=1; export V=4,6"
    done = shell.run("node_parts", f"{code}; . {PART}; echo never")
    assert (done.status, done.out) == (70, "")
    assert "the job has only the devices 4,6, not number 2 of them" in done.said


@pytest.mark.parametrize(
    ("cores", "own", "cpus"),
    [(4, "1", "2"), (4, "2-3", "1,3"), (2, "0", "0,2"), (2, "1", "1,3"), (3, "0-1", "0,2")],
)
def test_cores_are_processors_of_the_job(shell: Shell, cores: int, own: str, cpus: str) -> None:
    """Four processors: 0 and 2 are those of the first NUMA domain."""
    shell.commands(
        lscpu="printf '%s\\n' '# NODE,CORE,CPU' 0,0,0 1,1,1 0,2,2 1,3,3 1,4,9",
        taskset='echo "$3" >&2',
    )
    allowed = 'awk() { if [[ $1 == /^Cpus* ]]; then echo 0-3; else command awk "$@"; fi; }'
    code = f"{allowed}; job_part_cores={own} job_cpus_per_node={cores}; . {PART}"
    assert shell.run("node_parts", code).said == f"{cpus}\n"


def test_too_few_processors_are_left_as_they_are(shell: Shell) -> None:
    done = shell.run("node_parts", f"job_part_cores=0 job_cpus_per_node=9999; . {PART}")
    assert "has fewer than the 9999 processors of the job: its steps are not bound" in done.said


def test_the_functions_of_a_part(shell: Shell) -> None:
    code = "job_part_cores=0-1 job_part_devices=1 job_part_variable=V job_cpus_per_node=4; job_hand_over_part"
    done = shell.run(
        "node_parts", f"job_hand_over_part; [[ ! -s run/functions.sh ]]; {code}; cat run/functions.sh"
    )
    assert done.lines[-1] == '. "${BASH_SOURCE[0]%/*}/part.sh"'
    assert 'declare -- job_part_cores="0-1"' in done.lines
