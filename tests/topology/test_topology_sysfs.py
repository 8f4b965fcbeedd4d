"""The topology of /sys: that of this machine, and that of directory trees."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.require import need_command
from topology_support import MACHINES, tree, write

from jobgen.topology import cpus, sysfs
from jobgen.topology.tools import Near

GPU = "0000:07:00.0"


def test_this_machine_as_lscpu_says_it() -> None:
    need_command("lscpu")
    said = subprocess.run(
        ["lscpu", "--parse=NODE,CORE,CPU"], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(",") for line in said.splitlines() if not line.startswith("#")]
    node = sysfs.node()
    assert node.allowed == os.sched_getaffinity(0)
    for number, here in node.domains.items():
        assert here == {int(cpu) for domain, _, cpu in rows if int(domain or 0) == number}
    assert node.cpus >= node.allowed
    assert sum(map(len, node.cores)) == len(rows)
    for core in node.cores:
        assert len({name for _, name, cpu in rows if int(cpu) in core}) == 1


def test_the_devices_of_this_machine() -> None:
    places = sorted(sysfs.SYS.glob("bus/pci/devices/*"))
    for place in places:
        near = sysfs.device(place.name)
        assert near is not None
        said = (place / "local_cpulist").read_text().strip()
        assert cpus.write(near.cpus) == said
        assert (near.domain is None) == (int((place / "numa_node").read_text()) < 0)


@pytest.mark.parametrize("name", ["polaris", "gh200_4", "gb10"])
def test_a_tree(name: str, tmp_path: Path) -> None:
    machine = MACHINES[name]
    node = sysfs.node(tree(tmp_path, machine), [0])
    assert {number: cpus.write(here) for number, here in node.domains.items()} == {
        number: machine.domain(number) for number in range(machine.domains)
    }
    assert len(node.cores) == machine.domains * machine.cores
    assert {len(core) for core in node.cores} == {machine.threads}
    assert node.allowed == {0}


def test_a_device_in_a_tree(tmp_path: Path) -> None:
    root = tree(tmp_path, MACHINES["polaris"], {GPU: 3, "0000:46:00.0": -1})
    assert sysfs.device(GPU, root) == Near(cpus.read("24-31,56-63"), 3)
    assert sysfs.device("0000:46:00.0", root) == Near()
    for address in ("0000:99:00.0", "", "../../../etc", "0000:07:00.0/..", "0000:07:00.0\n"):
        assert sysfs.device(address, root) is None


def test_a_tree_without_threads_and_one_without_anything(tmp_path: Path) -> None:
    write(tmp_path / "devices/system/node/node0/cpulist", "0-3")
    assert sysfs.node(tmp_path, [0]).cores == tuple(frozenset({cpu}) for cpu in range(4))
    assert sysfs.node(tmp_path / "none", [0])[:2] == ({}, ())


def test_files_of_which_nothing_can_be_read(tmp_path: Path) -> None:
    root = tree(tmp_path, MACHINES["polaris"], {GPU: 3})
    (root / "devices/system/node/node0/cpulist").write_bytes(b"\xff\xfe\x00")
    (root / "devices/system/node/node1/cpulist").unlink()
    (root / "devices/system/node/node1/cpulist").mkdir()
    (root / f"bus/pci/devices/{GPU}/numa_node").write_text("three")
    (root / f"bus/pci/devices/{GPU}/local_cpulist").write_text("0-")
    assert list(sysfs.node(root).domains) == [2, 3]
    assert sysfs.device(GPU, root) == Near()
