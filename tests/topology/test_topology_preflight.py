"""The binding of ranks in the preflight: what a rank finds on a node like those of the outputs, and the notes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jobgen.train.accelerators import ACCELERATORS
from jobgen.train.preflight import binding, judge, table
from jobgen.train.preflight.judge import JobRequest
from jobgen.train.preflight.visit import reasons
from support.require import need_package
from topology_support import MACHINES, output, tree

from jobgen.topology import cpus

BY_DEPTH = ["0-7", "8-15", "16-23", "24-31"]
OWN = ["24-31", "16-23", "8-15", "0-7"]
OPTION = "--cpu-bind '24-31;16-23;8-15;0-7'"


def device(kind: str = "cuda", index: int = 0) -> Any:
    """A device as train/device.py describes it; torch on this machine has no property of one."""
    row = ACCELERATORS[kind]
    return SimpleNamespace(kind=kind, index=index, type=row.type, row=row)


@pytest.fixture
def polaris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The /sys of a node of Polaris, and its nvidia-smi."""
    tool = tmp_path / "bin/nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\n[ \"$*\" = 'topo -m' ] || exit 64\ncat <<'END'\n{output('polaris')}END\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=os.pathsep)
    return tree(tmp_path / "sys", MACHINES["polaris"])


def facts_of(
    lists: list[str], sys: Path, env: dict[str, str] | None = None, host: str = "a"
) -> dict[int, Any]:
    """The facts of the ranks of one host that are bound to these lists, as rank 0 gets them."""
    need_package("torch")
    found = {}
    for rank, own in enumerate(lists):
        fact = binding.fact(device(index=rank), rank, cpus.read(own), env or {}, sys)
        found[rank] = json.loads(json.dumps({"rank": rank, "host": host, "binding": fact}))
    return found


def test_ranks_by_depth_on_polaris_are_far(polaris: Path) -> None:
    facts = facts_of(BY_DEPTH, polaris)
    [found] = binding.findings(facts)
    assert (found.host, found.check, found.failed) == ("a", "binding", False)
    assert found.text.startswith(
        "rank 0 of the node runs on the processors 0-7 (NUMA 0), but device 0 is next to 24-31,56-63"
    )
    assert "rank 1 of the node" in found.text
    assert found.text.endswith(f"; 2 more ranks: use {OPTION}")
    assert binding.word(facts.values()) == "4 of 4 far"


def test_ranks_next_to_their_devices_are_well(polaris: Path) -> None:
    facts = facts_of(OWN, polaris)
    assert binding.findings(facts) == []
    assert binding.word(facts.values()) == "near"


def test_devices_in_reverse_order_fit_ranks_by_depth(polaris: Path) -> None:
    assert binding.findings(facts_of(BY_DEPTH, polaris, {"CUDA_VISIBLE_DEVICES": "3,2,1,0"})) == []


def test_ranks_that_may_run_everywhere(polaris: Path) -> None:
    facts = facts_of(["0-63"] * 4, polaris)
    [found] = binding.findings(facts)
    assert found.text == f"4 of 4 ranks may run on several NUMA domains: use {OPTION}"
    assert binding.word(facts.values()) == "wide"


def test_equal_hosts_share_one_note_and_none_is_bad(polaris: Path) -> None:
    facts = facts_of(BY_DEPTH, polaris)
    every = {
        4 * host + rank: {**each, "host": f"n{host}"} for host in range(64) for rank, each in facts.items()
    }
    findings = binding.findings(every)
    assert len(findings) == 64
    [note] = reasons(findings)
    assert note.startswith("n0, n1, n2, n3 and 60 more: rank 0 of the node runs on")
    assert judge.bad_hosts(findings) == {}


def test_a_node_without_the_tool_says_so_and_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = facts_of(BY_DEPTH, tree(tmp_path / "sys", MACHINES["polaris"]))
    assert binding.findings(facts) == []
    assert binding.word(facts.values()) == "unknown"


def test_one_domain_and_no_device(tmp_path: Path) -> None:
    one = binding.fact(None, 0, cpus.read("0-19"), {}, tree(tmp_path / "one", MACHINES["gb10"]))
    assert one == {"state": "one NUMA domain"}
    assert binding.findings({0: {"host": "a", "binding": one}}) == []
    assert binding.word([{"binding": one}]) == "one NUMA domain"
    several = tree(tmp_path / "several", MACHINES["polaris"])
    assert binding.fact(None, 0, cpus.read("0-7"), {}, several) is None
    assert binding.fact(device("cpu"), 0, cpus.read("0-7"), {}, several) is None
    assert binding.word([{"binding": None}, {}]) == ""


def test_a_device_that_torch_gives_the_address_of(polaris: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address counts, not the tool: the device of domain 0 is at 0000:c7:00.0."""
    need_package("torch")
    import torch

    known = SimpleNamespace(pci_domain_id=0, pci_bus_id=0xC7, pci_device_id=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: known)
    sys = tree(polaris.parent / "other", MACHINES["polaris"], {"0000:c7:00.0": 0})
    assert binding.fact(device(), 0, cpus.read("0-7"), {}, sys) == {
        "state": "near",
        "local_rank": 0,
        "near": "0-7",
        "text": "",
        "adapters": "",
    }
    far = binding.fact(device(), 0, cpus.read("8-15"), {}, sys)
    assert far is not None
    assert "(NUMA 1), but device 0000:c7:00.0 is next to 0-7,32-39 (NUMA 0)" in far["text"]


def test_the_table_keeps_hosts_of_another_binding_apart() -> None:
    def fact(rank: int, host: str, state: str) -> dict[str, Any]:
        return {"rank": rank, "host": host, "device": None, "write": None, "binding": {"state": state}}

    facts = {rank: fact(rank, f"n{rank}", "far" if rank == 5 else "near") for rank in range(40)}
    rows = table.short(table.rows(facts, {}, {}, []))
    assert [(row["host"], row["binding"]) for row in rows] == [
        ("n0 and 38 more", "near"),
        ("n5", "1 of 1 far"),
    ]


def test_the_processors_of_this_process() -> None:
    first = min(os.sched_getaffinity(0))
    code = "from jobgen.train.preflight import binding; print(sorted(binding.own_cpus()))"
    done = subprocess.run(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{first}]); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"[{first}]\n"


def test_the_binding_is_no_finding_of_the_judgement() -> None:
    """A rank without this fact, of a preflight of an older release, is judged as before."""
    assert binding.findings({0: {"rank": 0, "host": "a"}}) == []
    assert JobRequest((), None).slots == []
