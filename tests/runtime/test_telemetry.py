"""node/telemetry.sh with the tools of the vendors, which programs with recorded output stand in for."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from support.runtime_shell import Shell, alive
from support.waiting import wait_until

FILES = ("node/telemetry", "node/nvidia_smi", "node/npu_smi", "node/rocm_smi")

NVIDIA = """
0, 97, 40536, 81920
1, 0, 503, 81920
0, 96, 40536, 81920
1, [N/A], [Not Supported], 81920
Unable to determine the device handle for GPU0000:41:00.0: GPU is lost.  Reboot the system to recover this GPU
"""
# -s am; the numbers of the second are from the manual of Atlas 200I A2, which shows every column.
NPU = """
NpuID(Idx)  ChipId(Idx) AI Core(%)  Memory(%)
2           0           34          5
2           1           0           5
3           0           90          61
2           0           35          5
"""
NPU_ALL = """
NpuID(Idx)  ChipId(Idx) Pwr(W)      Temp(C)     AI Core(%)  AI Cpu(%)   Ctrl Cpu(%) Memory(%)   Memory BW(%)
0           0           8.7         56          25          2           67          71          7
"""
ROCM = """
WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status

device,GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B)
card0,0,68702699520,10960896
card1,99,68702699520,51527024640
device,Temperature (Sensor edge) (C),GPU use (%),GFX Activity,VRAM Total Memory (B),VRAM Total Used Memory (B)
card0,38.0,2,1,68702699520,10960896
"""
RECORDED = {
    "nvidia": (
        "nvidia_smi",
        NVIDIA,
        ["0:97/49 1:0/0", "0:96/49 1:-/-"],
        "# Unable to determine the device handle for GPU0000:41:00.0: GPU is lost.  "
        "Reboot the system to recover this GPU",
    ),
    "npu": ("npu_smi", NPU, ["2:34/5 2.1:0/5 3:90/61", "2:35/5"], ""),
    "npu-all": ("npu_smi", NPU_ALL, ["0:25/71"], ""),
    "rocm": (
        "rocm_smi",
        ROCM,
        ["0:0/0 1:99/75", "0:2/0"],
        "# WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status",
    ),
    "absent": (
        "nvidia_smi",
        None,
        [],
        "# stdbuf: failed to run command 'nvidia-smi': No such file or directory",
    ),
}


def measured(shell: Shell, tool: str, rank: int, **env: str) -> list[str]:
    """Return the file of the devices."""
    shell.node_file(tool)
    node = shell.logs / "nodes/0/here"
    shell.program("telemetry", tool, str(rank), str(node), "2", env=env)
    return Path(f"{node}.devices").read_text().splitlines()


@pytest.mark.parametrize("kind", RECORDED)
def test_the_output_of_the_tools(shell: Shell, kind: str) -> None:
    tool, text, samples, message = RECORDED[kind]
    name = tool.replace("_", "-")
    if text is not None:
        (shell.folder / "recorded").write_text(text[1:])
        shell.commands(**{name: f"echo $* > {shell.folder}/words; cat {shell.folder}/recorded; exit 1"})
    head, *lines = measured(shell, tool, os.getpid())
    assert head == f"# 2 {name}"
    assert [re.sub(r"^\d{10} ", "", line) for line in lines if line[0] != "#"] == samples
    messages = [line for line in lines if line[0] == "#"]
    assert messages == [*filter(None, [message]), f"# {name} has ended"]


@pytest.mark.parametrize(
    ("visible", "words"),
    [
        ("2,3", "--id=2,3 "),
        ("2", ""),
        ("", ""),
        ("GPU-1a,GPU-2b", "--id=GPU-1a,GPU-2b "),
        ("MIG-1a,MIG-2b", ""),
    ],
)
def test_only_the_devices_of_the_job(shell: Shell, visible: str, words: str) -> None:
    shell.commands(**{"nvidia-smi": f"echo $* > {shell.folder}/words"})
    measured(shell, "nvidia_smi", os.getpid(), CUDA_VISIBLE_DEVICES=visible)
    assert (shell.folder / "words").read_text().startswith(f"{words}--query-gpu=index,")


@pytest.mark.parametrize("killed", ["rank", "telemetry"])
def test_the_tool_ends_with_the_rank_and_with_the_telemetry(shell: Shell, killed: str) -> None:
    line = "printf '%s\\n' '0, 1, 1, 8' '1, 1, 1, 8'; read -rt 0.1 -u $no"
    shell.commands(
        **{"nvidia-smi": f"echo $$ > {shell.folder}/pid; exec {{no}}<> <(:); while :; do {line}; done"}
    )
    rank = subprocess.Popen(["sleep", "100"])
    shell.node_file("nvidia_smi")
    words = [
        str(shell.node_file("telemetry")),
        "nvidia_smi",
        str(rank.pid),
        str(shell.logs / "nodes/0/here"),
        "2",
    ]
    telemetry = shell.popen(["bash", *words], shell.contract())
    file = shell.logs / "nodes/0/here.devices"
    wait_until(lambda: file.exists() and file.read_text().count("\n") > 2, 20)
    tool = int((shell.folder / "pid").read_text())
    assert alive(tool)
    process = rank if killed == "rank" else telemetry
    process.kill()
    process.wait()
    assert wait_until(lambda: not alive(tool), 20)
    for process in (rank, telemetry):
        process.kill()
        process.wait()
