"""Network adapters: which ones a variable leaves to a device, in the doctor and in the preflight."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobgen.train.preflight import binding
from test_topology_doctor import case, of_kind, site
from test_topology_preflight import device
from test_topology_tools import NAMES, read
from topology_support import MACHINES, output, tree

from jobgen.doctor.adapters import adapters
from jobgen.doctor.verdict import Case, Verdict
from jobgen.topology import cpus, sysfs
from jobgen.topology.adapters import VARIABLES, better, far_devices, matching_adapters, near, of_interfaces

HCA = VARIABLES["NCCL_IB_HCA"]
HERE = ["mlx5_0", "mlx5_1", "mlx5_10", "ib0"]


@pytest.mark.parametrize(
    ("value", "prefixes", "left"),
    [
        ("mlx5_1", True, ["mlx5_1", "mlx5_10"]),
        ("=mlx5_1", True, ["mlx5_1"]),
        ("mlx5_0:1,mlx5_10:1", True, ["mlx5_0", "mlx5_10"]),
        ("^mlx5_1", True, ["mlx5_0", "ib0"]),
        ("^=mlx5_1,ib0", True, ["mlx5_0", "mlx5_10"]),
        ("mlx5_1:1", False, ["mlx5_1"]),
        ("all", False, HERE),
        ("eth", True, []),
    ],
)
def test_adapters_that_a_value_chooses(value: str, prefixes: bool, left: list[str]) -> None:
    assert matching_adapters(value, HERE, prefixes) == left


@given(st.text(max_size=20), st.lists(st.text(max_size=6), max_size=4, unique=True), st.booleans())
def test_any_value_chooses_adapters_of_the_host(value: str, there: list[str], prefixes: bool) -> None:
    assert set(matching_adapters(value, there, prefixes)) <= set(there)


@pytest.mark.parametrize("name", NAMES)
def test_the_nearest_adapters_of_every_kind_of_node(name: str) -> None:
    """The value of the remedy leaves each device its nearest adapters; one far adapter alone does not."""
    links = {f"device {number}": dict(one.links) for number, one in read(name).items()}
    for number, one in read(name).items():
        assert near(links[f"device {number}"]) == one.adapters
    assert far_devices(HCA, f"={better(links)}", links) == []
    for device_name, each in links.items():
        for far in (adapter for adapter, link in each.items() if link == "SYS"):
            found = [one.device for one in far_devices(HCA, f"={far}", links)]
            assert (device_name in found) == bool(near(each))


def judged(one: Case, root: Path, name: str, interfaces: dict[str, int] | None = None) -> list[Verdict]:
    return [*adapters(one, tree(root / "sys", MACHINES[name], interfaces=interfaces), range(8192))]


def booster(env: dict[str, str], name: str | None = None) -> Case:
    if name is None:
        return of_kind("juwels_booster", None, env=env)
    return case("slurm", {"account": "x"}, output("juwels_booster"), name, env=env)


def test_a_variable_that_leaves_out_the_nearest_adapters(tmp_path: Path) -> None:
    [found] = judged(booster({"NCCL_IB_HCA": "mlx5_0"}), tmp_path, "juwels_booster")
    assert (found.check, found.state) == ("adapters", "warning")
    assert found.text.startswith(
        "NCCL_IB_HCA=mlx5_0 leaves device 1 mlx5_0 (SYS), but mlx5_1 (PIX) is nearer; NCCL_IB_HCA=mlx5_0 leaves "
    )
    assert found.remedy == "use --env NCCL_IB_HCA=mlx5_0,mlx5_1,mlx5_2,mlx5_3"
    [found] = judged(booster({"UCX_NET_DEVICES": "mlx5_3:1"}), tmp_path, "juwels_booster")
    assert "UCX_NET_DEVICES=mlx5_3:1 leaves device 0 mlx5_3 (SYS)" in found.text


@pytest.mark.parametrize("value", ["mlx5", "mlx5_0,mlx5_1,mlx5_2,mlx5_3", "^eth"])
def test_a_variable_that_leaves_them(value: str, tmp_path: Path) -> None:
    [found] = judged(booster({"NCCL_IB_HCA": value}), tmp_path, "juwels_booster")
    assert (found.state, found.text) == (
        "ok",
        f"NCCL_IB_HCA={value} leaves each device its nearest adapters",
    )


def test_a_name_of_another_machine(tmp_path: Path) -> None:
    [found] = judged(booster({"NCCL_IB_HCA": "hfi1"}), tmp_path, "juwels_booster")
    assert found.state == "warning"
    assert found.text.endswith("names none of the adapters here: mlx5_0, mlx5_1, mlx5_2, mlx5_3")


def test_the_devices_of_the_ranks_count(tmp_path: Path) -> None:
    env = {"NCCL_IB_HCA": "mlx5_0", "CUDA_VISIBLE_DEVICES": "0", "LOCAL_RANK": "0"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCAL_RANK", "0")
        [found] = judged(booster(env), tmp_path, "juwels_booster")
    assert found.state == "ok"


def test_no_variable_no_finding_and_no_tool_no_finding(tmp_path: Path) -> None:
    assert judged(booster({}), tmp_path, "juwels_booster") == []
    amd = of_kind("lumi_g", None, env={"NCCL_IB_HCA": "mlx5_0"})
    assert judged(amd, tmp_path / "amd", "lumi_g") == []
    off = case("slurm", {"gpus_per_node": "4"}, "No devices were found", env={"NCCL_IB_HCA": "mlx5_0"})
    assert judged(off, tmp_path / "off", "juwels_booster") == []


@pytest.mark.parametrize(
    ("text", "line", "option"),
    [
        (
            '[environment.env]\nNCCL_IB_HCA = "mlx5_0"\n',
            'line 3: NCCL_IB_HCA = "mlx5_0,',
            "--env NCCL_IB_HCA=",
        ),
        (
            '[networks.x.env]\nNCCL_IB_HCA = "mlx5_0"\n',
            'line 3: NCCL_IB_HCA = "mlx5_0,',
            "--env NCCL_IB_HCA=",
        ),
    ],
)
def test_the_line_of_the_site_file(text: str, line: str, option: str, tmp_path: Path) -> None:
    name = site(tmp_path, "juwels-booster", text)
    given = {"account": "x", **({"network": "x"} if "networks" in text else {})}
    one = case("slurm", given, output("juwels_booster"), name, env={"NCCL_IB_HCA": "mlx5_0"})
    [found] = judged(one, tmp_path, "juwels_booster")
    assert f"in {tmp_path}/site.toml, {line}" in found.remedy
    assert f"or for this job {option}mlx5_0,mlx5_1" in found.remedy


SLINGSHOT = {"hsn0": 3, "hsn1": 1, "hsn2": 0, "hsn3": 2, "eth0": 0}


def test_an_interface_of_another_domain_is_a_note_with_the_line(tmp_path: Path) -> None:
    """Setonix has hsn0 for all ranks; LUMI-G's nodes are of the same kind."""
    env = {"NCCL_SOCKET_IFNAME": "hsn0"}
    one = case("slurm", {"account": "x-gpu"}, output("lumi_g"), "setonix", env=env)
    [found] = judged(one, tmp_path, "lumi_g", SLINGSHOT)
    assert found.state == "note"
    assert "leaves device 2 hsn0 (SYS), but hsn1 (NODE) is nearer" in found.text
    assert 'setonix.toml, line 61: NCCL_SOCKET_IFNAME = "hsn0,hsn1,hsn2,hsn3"' in found.remedy
    named = case("slurm", {"account": "x"}, output("lumi_g"), "frontier", env={"NCCL_SOCKET_IFNAME": "hsn"})
    [found] = judged(named, tmp_path / "all", "lumi_g", SLINGSHOT)
    assert found.state == "ok"


def test_an_interface_of_the_job_names_its_option(tmp_path: Path) -> None:
    given = {"account": "x", "interface": "hsn2"}
    one = case("slurm", given, output("lumi_g"), "frontier", env={"NCCL_SOCKET_IFNAME": "hsn2"})
    [found] = judged(one, tmp_path, "lumi_g", SLINGSHOT)
    assert found.remedy.endswith("for this job --interface hsn0,hsn1,hsn2,hsn3")


def test_interfaces_of_other_kinds_do_not_count() -> None:
    assert of_interfaces("hsn0", SLINGSHOT, 0) == {
        "hsn0": "SYS",
        "hsn1": "SYS",
        "hsn2": "NODE",
        "hsn3": "SYS",
    }
    assert of_interfaces("hsn0", SLINGSHOT, None) == {}


def test_interfaces_of_a_tree_and_of_this_machine(tmp_path: Path) -> None:
    found = sysfs.interfaces(tree(tmp_path, MACHINES["lumi_g"], interfaces={**SLINGSHOT, "eth1": -1}))
    assert found == {**SLINGSHOT, "eth1": None}
    assert set(sysfs.interfaces()) <= set(os.listdir("/sys/class/net"))


def fact(root: Path, rank: int, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    tool = root / "bin/nvidia-smi"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(
        f"#!/bin/sh\n[ \"$*\" = 'topo -m' ] || exit 64\ncat <<'END'\n{output('juwels_booster')}END\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    found = binding.fact(
        device(index=rank), rank, cpus.read("0-47"), env, tree(root / "sys", MACHINES["juwels_booster"])
    )
    assert found is not None
    return found


def test_the_preflight_notes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    env = {"NCCL_IB_HCA": "mlx5_0"}
    facts = {rank: {"host": "a", "binding": fact(tmp_path, rank, env, monkeypatch)} for rank in range(4)}
    [found] = [one for one in binding.findings(facts) if one.check == "adapters"]
    assert not found.failed
    assert "leaves device 1 mlx5_0 (SYS), but mlx5_1 (PIX) is nearer" in found.text
    assert found.text.endswith("; 1 more ranks")
    near_one = {0: {"host": "a", "binding": fact(tmp_path, 0, env, monkeypatch)}}
    assert [one for one in binding.findings(near_one) if one.check == "adapters"] == []
