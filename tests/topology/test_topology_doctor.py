"""``jobgen doctor`` on nodes of several NUMA domains: which rank is far from its device, and the line to change."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from topology_support import MACHINES, Machine, output, tree

from jobgen.config import read_spec
from jobgen.doctor.binding import binding
from jobgen.doctor.job_environment import CommandResult, JobEnvironment
from jobgen.doctor.verdict import Case, Verdict
from jobgen.plan.plan import resolve
from jobgen.sites.loader import load
from jobgen.spec import SiteName
from jobgen.topology import cpus
from jobgen.topology.binding import of_option, shares
from jobgen.topology.sysfs import node

HOME = {"HOME": "/nowhere", "PATH": os.environ["PATH"]}
OFF_ANSWER = CommandResult(None, "", "nvidia-smi is not on PATH")


def site(folder: Path, above: str, text: str) -> str:
    """A site that is another one but for these lines."""
    file = folder / "site.toml"
    file.write_text(f'extends = "{above}"\n{text}', encoding="utf-8")
    return str(file)


def case(
    scheduler: str,
    given: dict[str, Any],
    said: str | CommandResult,
    name: str | None = None,
    env: dict[str, str] | None = None,
    in_job: bool = True,
    listing: str = "",
) -> Case:
    chosen = SiteName(name, "command line", "") if name else None
    plan = resolve(
        read_spec(scheduler, {**given, "nodes": None if scheduler == "local" else "1"}, ("x",), site=chosen)
    )
    answer = said if isinstance(said, CommandResult) else CommandResult(0, said, "")
    return Case(
        plan,
        JobEnvironment(HOME | (env or {}), "/tmp"),
        {"topology": answer, "devices": CommandResult(0, listing, "")},
        in_job,
    )


def judged(one: Case, root: Path, name: str) -> Verdict:
    """The finding on a machine where all processors are those of the job."""
    [finding] = binding(one, tree(root / "sys", MACHINES[name]), range(8192))
    assert finding.check == "binding"
    return finding


POLARIS: dict[str, Any] = {"account": "x", "mpi": "pals", "launcher": "mpirun"}
REVERSED = 'cpu_lists = ["24-31", "16-23", "8-15", "0-7"]'


def polaris(folder: Path, text: str, **more: Any) -> Case:
    name = site(folder, "polaris", text)
    return case("pbs", POLARIS, output("polaris"), name, **more)


def test_the_binding_of_polaris_by_depth_is_far_for_every_rank(tmp_path: Path) -> None:
    found = judged(polaris(tmp_path, '[rules]\nbind = "--cpu-bind depth"\n'), tmp_path, "polaris")
    assert found.state == "warning"
    for rank in range(4):
        own = f"rank {rank} of the node runs on the processors {8 * rank}-{8 * rank + 7} (NUMA {rank})"
        assert own in found.text
    assert "but device 0 is next to 24-31,56-63 (NUMA 3);" in found.text
    assert "but device 1 is next to 16-23,48-55 (NUMA 2, beside mlx5_1);" in found.text
    assert f"{tmp_path}/site.toml:3: [node] {REVERSED}" in found.remedy
    assert '[rules] bind = "--cpu-bind list:{cpu_lists}"' in found.remedy
    assert found.remedy.endswith("for this job --cpu-bind '24-31;16-23;8-15;0-7'")


def test_the_binding_of_polaris_by_the_lists_of_the_remedy_is_well(tmp_path: Path) -> None:
    text = f'[node]\n{REVERSED}\n[rules]\nbind = "--cpu-bind list:{{cpu_lists}}"\n'
    found = judged(polaris(tmp_path, text), tmp_path, "polaris")
    assert (found.state, found.remedy) == ("ok", found.remedy)
    assert (
        "device 0: NUMA 3; device 1: NUMA 2, beside mlx5_1; device 2: NUMA 1; device 3: NUMA 0, beside"
        in found.text
    )


def test_the_devices_of_polaris_in_reverse_order_fit_the_binding_by_depth(tmp_path: Path) -> None:
    """What the manual's own script does: rank 0 takes device 3."""
    text = '[rules]\nbind = "--cpu-bind depth"\n'
    found = judged(polaris(tmp_path, text, env={"CUDA_VISIBLE_DEVICES": "3,2,1,0"}), tmp_path, "polaris")
    assert found.state == "ok"
    assert found.text.startswith(
        "every rank runs next to its device; device 3: NUMA 0, beside mlx5_0; device 2: "
    )


def test_an_option_of_the_launcher_counts_more_than_the_site(tmp_path: Path) -> None:
    name = site(tmp_path, "polaris", f'[node]\n{REVERSED}\n[rules]\nbind = "--cpu-bind list:{{cpu_lists}}"\n')
    given = {**POLARIS, "launcher_arg": ["--cpu-bind", "depth"]}
    assert judged(case("pbs", given, output("polaris"), name), tmp_path, "polaris").state == "warning"


def test_lists_in_the_wrong_order_name_their_line(tmp_path: Path) -> None:
    text = '[node]\ncpu_lists = ["0-7", "16-23", "8-15", "24-31"]\n[rules]\nbind = "--cpu-bind list:{cpu_lists}"\n'
    found = judged(polaris(tmp_path, text), tmp_path, "polaris")
    assert found.state == "warning"
    assert "rank 0 of" in found.text
    assert "rank 3 of" in found.text
    assert "rank 1 of" not in found.text
    assert found.remedy.startswith(f"in {tmp_path}/site.toml:3: [node] {REVERSED}; or for this job")


# The lists of processors that keep the ranks next to the devices 0, 1, 2, ...
LISTS = {
    "polaris": "24-31;16-23;8-15;0-7",
    "perlmutter": "48-63;32-47;16-31;0-15",
    "juwels_booster": "18-23;6-11;42-47;30-35",
    "dgx_a100": "48-55;56-63;16-23;24-31;112-119;120-127;80-87;88-95",
    "hopper_8x48": "0-11;12-23;24-35;36-47;48-59;60-71;72-83;84-95",
    "delta_a100_4": "48-63;32-47;16-31;0-15",
    "delta_h200_8": "0-5;6-11;12-17;18-23;48-53;54-59;60-65;66-71",
    "gh200_4": "0-71;72-143;144-215;216-287",
    "v100_8": "0-5;6-11;12-17;18-23;24-29;30-35;36-41;42-47",
    "slurm_share": "0-6;7-13;14-20;21-27;28-34;35-41;42-48;49-55",
    "two_gpus_four_nics": "0-13;14-27",
    "lumi_g": "48-55;56-63;16-23;24-31;0-7;8-15;32-39;40-47",
    "mi210_8": "48-63;32-47;16-31;0-15;112-127;96-111;80-95;64-79",
    "mi300x_8": "0-11;12-23;24-35;36-47;48-59;60-71;72-83;84-95",
    "mi250_old_form": "0-15;16-31;32-47;48-63",
    "ascend_910b3": "144-155;156-167;96-107;108-119;0-11;12-23;48-59;60-71",
}
KINDS = {
    "lumi_g": "rocm",
    "mi210_8": "rocm",
    "mi300x_8": "rocm",
    "mi250_old_form": "rocm",
    "ascend_910b3": "npu",
}


def of_kind(name: str, bind: str | None, **more: Any) -> Case:
    given = {
        "launcher": "srun",
        "accelerator": KINDS.get(name, "cuda"),
        "gpus_per_node": str(LISTS[name].count(";") + 1),
        "cpu_bind": bind,
        "cpus_per_rank": "1",
    }
    return case("slurm", given, output(name), **more)


@pytest.mark.parametrize("name", LISTS)
def test_every_kind_of_node(name: str, tmp_path: Path) -> None:
    """Lists in reverse order are far, unless all devices are of the same half; those of the remedy are well."""
    loose = judged(of_kind(name, None), tmp_path, name)
    assert loose.state == "note"
    assert loose.remedy == f"use --cpu-bind '{LISTS[name]}'"
    assert judged(of_kind(name, LISTS[name]), tmp_path / "well", name).state == "ok"
    wrong = judged(of_kind(name, ";".join(reversed(LISTS[name].split(";")))), tmp_path / "wrong", name)
    assert wrong.state == "warning"
    assert wrong.remedy == loose.remedy


def test_all_threads_of_the_cores_if_the_ranks_ask_for_them(tmp_path: Path) -> None:
    """Perlmutter's 32 CPUs of a rank are 16 cores; the line of the site file is that of masks."""
    name = site(tmp_path, "perlmutter", '[rules]\nbind = "--cpu-bind=map_cpu:0,16,32,48"\n')
    found = judged(case("slurm", {"account": "x"}, output("perlmutter"), name), tmp_path, "perlmutter")
    assert found.state == "warning"
    assert '"48-63,112-127", "32-47,96-111", "16-31,80-95", "0-15,64-79"' in found.remedy
    assert '[rules] bind = "--cpu-bind=mask_cpu:{cpu_masks}"' in found.remedy


def test_the_site_file_of_lumi_is_well(tmp_path: Path) -> None:
    found = judged(case("slurm", {"account": "x"}, output("lumi_g"), "lumi"), tmp_path, "lumi_g")
    assert found.state == "ok", found
    assert load("lumi").file.node.cpu_lists


def test_processors_that_the_job_does_not_have_are_left_out(tmp_path: Path) -> None:
    """On LUMI-G, the first core of each group of eight is the system's."""
    allowed = [cpu for cpu in range(128) if cpu % 8]
    root = tree(tmp_path, MACHINES["lumi_g"])
    [found] = binding(of_kind("lumi_g", "none"), root, allowed)
    assert found.state == "note"
    assert found.text.startswith("8 of 8 ranks may run on several NUMA domains; device 0: NUMA 3; ")
    assert found.remedy == "use --cpu-bind '49-55;57-63;17-23;25-31;1-7;9-15;33-39;41-47'"
    [found] = binding(of_kind("lumi_g", "none"), root, [0])  # the doctor itself has one processor
    assert LISTS["lumi_g"] in found.remedy


def test_the_kernel_s_word_counts_if_the_listing_has_addresses(tmp_path: Path) -> None:
    """nvidia-smi says domain 3 of device 0, the kernel says 0."""
    listing = "".join(f"{gpu}, GPU-{gpu}, 00000000:0{gpu}:00.0\n" for gpu in range(4))
    places = {f"0000:0{gpu}:00.0": gpu for gpu in range(4)}
    root = tree(tmp_path, MACHINES["polaris"], places)
    one = of_kind(
        "polaris",
        "0-7;8-15;16-23;24-31",
        listing=listing,
        env={"CUDA_VISIBLE_DEVICES": "GPU-0,GPU-1,GPU-2,GPU-3"},
    )
    [found] = binding(one, root, range(64))
    assert found.state == "ok"
    assert "device 1: NUMA 1, beside mlx5_1" in found.text


@pytest.mark.parametrize(
    ("bind", "state", "says"),
    [
        (
            "numa",
            "warning",
            "rank 0 of the node runs on the processors 0-7,32-39 (NUMA 0), but device 0 is next to",
        ),
        (
            "cores",
            "warning",
            "rank 3 of the node runs on the processors 24-31,56-63 (NUMA 3), but device 3 is",
        ),
        ("none", "note", "4 of 4 ranks may run on several NUMA domains"),
    ],
)
def test_shares_of_the_script(bind: str, state: str, says: str, tmp_path: Path) -> None:
    found = judged(of_kind("polaris", bind), tmp_path, "polaris")
    assert found.state == state
    assert says in found.text


def test_many_ranks_are_told_in_a_short_sentence(tmp_path: Path) -> None:
    found = judged(of_kind("dgx_a100", "cores"), tmp_path, "dgx_a100")
    assert found.state == "warning"
    assert re.search(r"; \d more ranks$", found.text)


def test_the_doctor_as_a_rank_looks_at_its_own_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    root = tree(tmp_path, MACHINES["polaris"])
    [found] = binding(of_kind("polaris", None), root, range(8, 16))
    assert found.state == "warning"
    assert found.text.startswith(
        "rank 1 of the node runs on the processors 8-15 (NUMA 1), but device 1 is next to 16-23"
    )
    [found] = binding(of_kind("polaris", None, env={"CUDA_VISIBLE_DEVICES": "2"}), root, range(8, 16))
    assert (found.state, found.text) == ("ok", "every rank runs next to its device; device 2: NUMA 1")


NOT_COMPARED = [
    ({"said": OFF_ANSWER}, "nvidia-smi topo -m: nvidia-smi is not on PATH"),
    ({"said": "No devices were found"}, "its output names no processors"),
    (
        {"said": output("polaris"), "env": {"CUDA_VISIBLE_DEVICES": "0"}},
        "1 devices are visible here, for 4 ranks",
    ),
    (
        {"said": output("polaris"), "env": {"CUDA_VISIBLE_DEVICES": "7"}},
        "CUDA_VISIBLE_DEVICES=7 names devices",
    ),
]


@pytest.mark.parametrize(("more", "says"), NOT_COMPARED)
def test_what_cannot_be_compared_is_one_line_and_passes(
    more: dict[str, Any], says: str, tmp_path: Path
) -> None:
    found = judged(case("slurm", {"gpus_per_node": "4", "launcher": "srun"}, **more), tmp_path, "polaris")
    assert (found.state, found.why, found.remedy) == ("ok", "", "")
    assert says in found.text


def test_devices_that_slurm_chooses_are_not_compared(tmp_path: Path) -> None:
    name = site(tmp_path, "lumi", '[rules]\nsrun_ranks = ["--gpus-per-task=1", "--gpu-bind=closest"]\n')
    found = judged(case("slurm", {"account": "x"}, output("lumi_g"), name), tmp_path, "lumi_g")
    assert found.state == "ok"
    assert "--gpu-bind gives each rank the device" in found.text


def test_no_command_shows_the_topology_of_intel_gpus(tmp_path: Path) -> None:
    given = {"gpus_per_node": "4", "launcher": "srun", "accelerator": "xpu"}
    found = judged(case("slurm", given, OFF_ANSWER), tmp_path, "polaris")
    assert found.text == "cannot be compared with the devices: no command shows the topology of Intel GPUs"


def test_one_domain_is_one_line(tmp_path: Path) -> None:
    one = case("slurm", {"gpus_per_node": "1", "launcher": "srun"}, output("gb10"))
    found = judged(one, tmp_path, "gb10")
    assert (found.state, found.text) == (
        "ok",
        "this host has one NUMA domain: every rank is next to its device",
    )


def test_nothing_is_said_on_a_login_node_or_without_devices(tmp_path: Path) -> None:
    root = tree(tmp_path, MACHINES["polaris"])
    given = {"gpus_per_node": "4", "launcher": "srun"}
    assert list(binding(case("slurm", given, output("polaris"), in_job=False), root)) == []
    assert list(binding(case("slurm", {"accelerator": "cpu", "launcher": "srun"}, ""), root)) == []


def test_the_command_with_a_tool_that_answers_as_on_polaris(tmp_path: Path) -> None:
    """The whole way: the tool is called with these arguments, and this machine's /sys counts."""
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin/nvidia-smi"
    tool.write_text(f"#!/bin/sh\n[ \"$*\" = 'topo -m' ] || exit 64\ncat <<'END'\n{output('polaris')}END\n")
    tool.chmod(0o755)
    words = ("local", "--json", "--limit", "4", "--gpus-per-node", "4", "--launcher", "mpirun", "--", "true")
    path = f"{tmp_path}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "jobgen", "doctor", *words],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    [found] = [one for one in json.loads(done.stdout)["findings"] if one["check"] == "binding"]
    several = len(node().domains) > 1
    assert ("NUMA 3" if several else "this host has one NUMA domain") in found["found"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--cpu-bind list:24-31,56-63:16-23", ["24-31,56-63", "16-23"]),
        ("--cpu-bind verbose,list:4:5", ["4", "5"]),
        ("--gpus=2 --cpu-bind=mask_cpu:0xff00,0xff --mem=1", ["8-15", "0-7"]),
        ("--cpu-bind=v,map_cpu:3,1", ["3", "1"]),
        ("--cpu-bind=map_cpu:3", ["3", "3"]),  # they are used again from the beginning
        ("--cpu-bind depth", ["0-3", "4-7"]),
        ("--cpu-bind=none", ["0-63", "0-63"]),
        ("--cpu-bind depth --exclusive --cpu-bind=map_cpu:3,1", ["3", "1"]),
        ("--cpu-bind=cores", None),
        ("--cpu-bind=ldoms", None),
        ("--cpu-bind=mask_cpu:xyz", None),
        ("--cpu-bind list:", None),
        ("", None),
    ],
)
def test_processors_by_an_option(words: str, expected: list[str] | None) -> None:
    found = of_option(words, 2, 4, frozenset(range(64)))
    assert found == (expected and [cpus.read(one) for one in expected])


def test_shares_are_those_of_the_script(tmp_path: Path) -> None:
    """Also with fewer domains than ranks, and with a part of the processors; see tests/local/test_binding.py."""
    here = node(tree(tmp_path, Machine(2, 4)), range(4, 16))
    made = {
        (kind, ranks): [
            cpus.write(one) for one in shares(kind, ranks, here.domains, here.cores, here.allowed)
        ]
        for kind in ("numa", "cores")
        for ranks in (2, 3)
    }
    assert made == {
        ("numa", 2): ["8-11", "4-7,12-15"],
        ("numa", 3): ["8-11", "8-11", "4-7,12-15"],
        ("cores", 2): ["8-11", "4-7,12-15"],
        ("cores", 3): ["8-9", "4,10-12", "5-7,13-15"],
    }
