"""What is read from the outputs of nvidia-smi, rocm-smi and npu-smi, and that no output is an error."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from topology_support import MACHINES, OF_SITES, OUTPUTS, output

from jobgen.sites.loader import load
from jobgen.sites.search import names
from jobgen.topology import cpus, tools
from jobgen.topology.placement import with_domain
from jobgen.topology.tools import AMD, ASCEND, NVIDIA, Near, Tool

NAMES = sorted(path.stem for path in OUTPUTS.glob("*.txt"))
TOOLS = {"lumi_g": AMD, "mi210_8": AMD, "mi300x_8": AMD, "mi250_old_form": AMD, "ascend_910b3": ASCEND}


def read(name: str) -> dict[int, Near]:
    return TOOLS.get(name, NVIDIA).read(output(name))


# The domain of each device, and the adapters of those that have one beside them.
EXPECTED: dict[str, tuple[list[int | None], dict[int, str]]] = {
    "polaris": ([3, 2, 1, 0], {1: "mlx5_1", 3: "mlx5_0"}),
    "perlmutter": ([3, 2, 1, 0], {0: "cxi3", 1: "cxi2", 2: "cxi1", 3: "cxi0"}),
    "juwels_booster": ([3, 1, 7, 5], {0: "mlx5_0", 1: "mlx5_1", 2: "mlx5_2", 3: "mlx5_3"}),
    "dgx_a100": (
        [3, 3, 1, 1, 7, 7, 5, 5],
        {
            **dict.fromkeys((0, 1), "mlx5_0 mlx5_1"),
            **dict.fromkeys((2, 3), "mlx5_2 mlx5_3"),
            **dict.fromkeys((4, 5), "mlx5_6 mlx5_7"),
            **dict.fromkeys((6, 7), "mlx5_8 mlx5_9"),
        },
    ),
    "hopper_8x48": ([0] * 4 + [1] * 4, {gpu: f"NIC{gpu}" for gpu in range(8)}),
    "delta_a100_4": ([3, 2, 1, 0], {3: "HSN"}),
    "delta_h200_8": ([0] * 4 + [2] * 4, {}),
    "gh200_4": ([0, 1, 2, 3], {gpu: f"cxi{gpu}" for gpu in range(4)}),
    "v100_8": ([0] * 4 + [1] * 4, {gpu: f"mlx5_{gpu // 4}" for gpu in range(8)}),
    "slurm_share": ([0] * 4 + [1] * 4, dict.fromkeys(range(8), "NIC0")),
    "two_gpus_four_nics": ([0, 1], {0: "rocep4s0f0 rocep4s0f1", 1: "rocep137s0f0 rocep137s0f1"}),
    "gb10": ([0], {}),
    "lumi_g": ([3, 3, 1, 1, 0, 0, 2, 2], {}),
    "mi210_8": ([3, 2, 1, 0, 7, 6, 5, 4], {}),
    "mi300x_8": ([0] * 4 + [1] * 4, {}),
    "mi250_old_form": ([0, 1, 2, 3], {}),
    "ascend_910b3": ([None] * 8, {}),
}


def test_every_output_is_tested_and_has_a_machine() -> None:
    assert set(NAMES) == set(EXPECTED) == set(MACHINES)


def test_every_site_has_an_output_or_a_reason() -> None:
    assert set(names()) == set(OF_SITES)
    assert {name for shown in OF_SITES.values() if not isinstance(shown, str) for name in shown} <= set(NAMES)


@pytest.mark.parametrize("site", [name for name, shown in OF_SITES.items() if not isinstance(shown, str)])
def test_the_output_has_the_devices_of_a_node_of_the_site(site: str) -> None:
    nodes = [load(site).node(queue) for queue in (None, *load(site).queues)]
    shown = OF_SITES[site]
    for name in shown if not isinstance(shown, str) else ():
        assert len(read(name)) in {node.gpus for node in nodes}


@pytest.mark.parametrize("name", NAMES)
def test_domains_and_adapters_of_the_devices(name: str) -> None:
    found = read(name)
    domains, adapters = EXPECTED[name]
    assert list(found) == list(range(len(domains)))
    assert [near.domain for near in found.values()] == domains
    assert {number: " ".join(near.adapters) for number, near in found.items() if near.adapters} == adapters


@pytest.mark.parametrize("name", [name for name in NAMES if TOOLS.get(name) is not AMD])
def test_processors_of_the_devices_are_those_of_the_domain(name: str) -> None:
    for number, near in read(name).items():
        if name == "slurm_share":  # only those of the job
            assert near.cpus == (cpus.read("0-15,56-71") if number < 4 else frozenset())
        elif near.domain is not None:
            assert near.cpus == cpus.read(MACHINES[name].domain(near.domain))
        else:
            assert near.cpus in [cpus.read(MACHINES[name].domain(one)) for one in range(8)]


def test_a_terminal_s_underlines_are_no_part_of_the_table() -> None:
    """nvidia-smi underlines the head, also into a pipe."""
    plain = output("polaris")
    head, rest = plain.split("\n", 1)
    assert NVIDIA.read("\x1b[4m" + head.replace("\t", "\t\x1b[4m") + "\x1b[0m\n" + rest) == NVIDIA.read(plain)


@pytest.mark.parametrize(
    "text", ["", "No devices were found\n", "GPU0 GPU1", "Failed to initialize NVML: Driver/library"]
)
def test_an_output_without_devices(text: str) -> None:
    assert [tool.read(text) for tool in (NVIDIA, AMD, ASCEND)] == [{}, {}, {}]


def test_a_domain_that_rocm_smi_does_not_know() -> None:
    text = "GPU[0]\t\t: (Topology) Numa Node: -1\nGPU[0]\t\t: (Topology) Numa Affinity: -1\n"
    assert AMD.read(text) == {0: Near()}


LISTING = "0, GPU-5d8aba68-7076, 00000000:07:00.0\n1, GPU-4497e145-7ee3, 00000000:46:00.0\n2, GPU-4497ffff, 00010000:85:00.0\n"
KNOWN = {
    0: ("GPU-5d8aba68-7076", "0000:07:00.0"),
    1: ("GPU-4497e145-7ee3", "0000:46:00.0"),
    2: ("GPU-4497ffff", "10000:85:00.0"),
}


def test_the_listing_of_nvidia_smi() -> None:
    assert tools.listing(LISTING) == KNOWN
    assert tools.listing("[Not Supported], x\n0, GPU-1") == {}


@pytest.mark.parametrize(
    ("tool", "env", "seen"),
    [
        (NVIDIA, {}, [0, 1, 2, 3]),
        (NVIDIA, {"CUDA_VISIBLE_DEVICES": ""}, [0, 1, 2, 3]),
        (NVIDIA, {"CUDA_VISIBLE_DEVICES": "3,2,1,0"}, [3, 2, 1, 0]),
        (NVIDIA, {"CUDA_VISIBLE_DEVICES": "2"}, [2]),
        (NVIDIA, {"CUDA_VISIBLE_DEVICES": "GPU-5d8aba68-7076,GPU-4497e"}, [0, 1]),
        (NVIDIA, {"CUDA_VISIBLE_DEVICES": "GPU-4497"}, None),  # two of them
        (NVIDIA, {"CUDA_VISIBLE_DEVICES": "4"}, None),
        (NVIDIA, {"CUDA_VISIBLE_DEVICES": "MIG-1"}, None),
        (NVIDIA, {"ROCR_VISIBLE_DEVICES": "1"}, [0, 1, 2, 3]),
        (AMD, {"ROCR_VISIBLE_DEVICES": "3,1"}, [3, 1]),
        (AMD, {"ROCR_VISIBLE_DEVICES": "3,1", "HIP_VISIBLE_DEVICES": "1"}, [1]),  # of those that are left
        (AMD, {"ROCR_VISIBLE_DEVICES": "3,1", "HIP_VISIBLE_DEVICES": "2"}, None),
        (ASCEND, {"ASCEND_RT_VISIBLE_DEVICES": "0,2"}, [0, 2]),
    ],
)
def test_devices_that_a_process_sees(tool: Tool, env: dict[str, str], seen: list[int] | None) -> None:
    assert tools.visible(tool, env, range(4), KNOWN) == seen


@given(st.text() | st.text("0123456789,-x \n", max_size=60))
def test_any_text_is_a_list_a_mask_or_nothing(text: str) -> None:
    assert max(cpus.read(text), default=0) < 8192
    assert isinstance(cpus.read_mask(text), frozenset)


@given(st.frozensets(st.integers(0, 8191), min_size=1))
def test_a_list_is_read_as_it_was_written(some: frozenset[int]) -> None:
    assert cpus.read(cpus.write(some)) == some
    assert cpus.read_mask(hex(sum(1 << cpu for cpu in some))) == some


def test_a_list_that_would_take_hours() -> None:
    assert cpus.read("0-9999") == frozenset()
    assert cpus.read(",".join(["0-8191"] * 100_000)) == frozenset()


CELLS = st.sampled_from(
    [
        *(
            "GPU0",
            "GPU1",
            "GPU99999",
            "NPU0",
            " X ",
            "NV4",
            "PIX",
            "SYS",
            "0-7",
            "7-0",
            "0-99999",
            "-",
            "N/A",
        ),
        *(
            "3",
            "-1",
            "\x1b[4m",
            "CPU Affinity",
            "NUMA Affinity",
            "GPU NUMA ID",
            "NIC0",
            "NIC0: mlx5_0",
            "mlx5_0",
        ),
        *("\t", "  ", "\n", "\0", "\u0663", "GPU[0]", ": (Topology) Numa Affinity: ", ","),
        "0, GPU-1, 00000000:07:00.0",
    ]
)


@given(st.lists(CELLS | st.text(max_size=4), max_size=80), st.sampled_from(["\t", " ", ""]))
def test_no_words_in_any_order_are_an_error(words: list[str], between: str) -> None:
    text = between.join(words)
    for tool in (NVIDIA, AMD, ASCEND):
        found = tool.read(text)
        assert all(type(number) is int and isinstance(near, Near) for number, near in found.items())
    known = tools.listing(text)
    tools.visible(NVIDIA, {"CUDA_VISIBLE_DEVICES": text}, range(4), known)


@given(st.sampled_from(NAMES), st.data())
def test_an_output_that_is_cut_or_damaged(name: str, data: st.DataObject) -> None:
    """Cut: what is left is read as in the whole. Damaged: no error."""
    text, tool = output(name), TOOLS.get(name, NVIDIA)
    whole = tool.read(text)
    end = data.draw(st.integers(0, len(text)))
    cut = text[:end].rpartition("\n")[0] + "\n"  # whole lines
    assert {number: near.domain for number, near in tool.read(cut).items()}.items() <= {
        number: near.domain for number, near in whole.items()
    }.items()
    tool.read(text[:end])
    place = data.draw(st.integers(0, len(text)))
    damaged = text[:place] + data.draw(st.text(max_size=5)) + text[place + data.draw(st.integers(0, 9)) :]
    assert all(re.fullmatch(r"\d+", str(number)) for number in tool.read(damaged))


def test_a_line_that_is_cut_is_left_out() -> None:
    text = output("polaris")
    assert list(NVIDIA.read(text[: text.index("GPU2\tNV4\tNV4\t X ") + 14])) == [0, 1]


def test_the_domain_and_its_processors_follow_from_each_other() -> None:
    domains = {number: cpus.read(MACHINES["polaris"].domain(number)) for number in range(4)}
    assert with_domain(Near(domain=2), domains) == Near(domains[2], 2)
    assert with_domain(Near(cpus.read("16-17")), domains) == Near(domains[2], 2)  # a tool in a job
    assert with_domain(Near(cpus.read("0-15")), domains) == Near(cpus.read("0-15"))  # a socket of two domains
    assert with_domain(Near(domain=9), domains) == Near(domain=9)
    assert with_domain(Near(), domains) == Near()
