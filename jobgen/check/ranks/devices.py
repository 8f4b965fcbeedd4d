"""The devices of each program: those that the script lets it see, and those that its words name."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobgen.check.ranks.environment import RankEnvironment
from jobgen.check.ranks.model import RankGroup
from jobgen.check.ranks.program import RankProgram
from jobgen.script.script import Script
from jobgen.script.syntax import Node, exported
from jobgen.values.parsers import number

VISIBLE: tuple[str, ...] = (
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES",
)  # fmt: skip
VISIBLE += tuple(f"{before}ENV_{name}" for before in ("APPTAINER", "SINGULARITY") for name in VISIBLE)
# Options of programs with a number of devices on a node, and those with the numbers of devices.
COUNTS = (
    *("devices", "num_devices", "n_devices", "gpus", "num_gpus", "n_gpus", "ngpus", "num_gpu", "n_gpu"),
    *("ngpu", "gpus_per_node", "ngpus_per_node", "n_gpus_per_node", "num_gpus_per_node", "nproc_per_node"),
    *("tensor_parallel_size", "tp_size", "tp", "tensor_parallel", "num_shard"),
)
_NUMBERS = (
    *("device", "devices", "device_id", "device_ids", "cuda_device", "cuda", "gpu", "gpus", "gpu_id"),
    *("gpu_ids", "gpu_idx", "gpu_index"),
)
_HIDDEN = ("", "-1", "NoDevFiles", "none")  # values without a device


class Visible(NamedTuple):
    """A variable with the devices that a program sees: the assignment, its text, and the devices.

    ``own``: it is set for this program alone.
    """

    node: Node
    text: str
    numbers: tuple[int, ...]
    own: bool


def visible(environment: RankEnvironment, group: RankGroup) -> Visible | None:
    """Return the setting of the devices that a program or its launcher sees; None if it is unknown."""
    script, place = environment.script, group.command.node
    found = [(name, node) for name, _, node in script.assignments if name in VISIBLE]
    if group.text is not None and any(name in group.text.text for name in VISIBLE):
        return None  # the code of the task sets it
    own = [(name, node) for name, node in found if node.parent is place]
    for name in dict.fromkeys(name for name, _ in own or found):
        parts = [] if own else script.constants.parts(name, place)
        nodes = [node for key, node in own if key == name] or [part.assignment for part in parts]
        node = nodes[0] if own or len(nodes) == 1 else None
        if node is None or node.start > place.start:
            continue
        if not own and not exported(node) and name not in environment.exports:
            continue
        text = _value(script, node.get("value"))
        if text is not None and (text in _HIDDEN or re.fullmatch(r"\d+(,\d+)*", text, re.ASCII)):
            numbers = () if text in _HIDDEN else tuple(map(int, text.split(",")))
            return Visible(node, f"{name}={text}", numbers, bool(own))
    return None


def _value(script: Script, value: Node | None) -> str | None:
    """Return the value of an assignment; the batch script has the numbers of the first task."""
    if value is None:
        return ""
    zero = script.is_batch and value.text.strip('"${}') in script.dialect.zeros
    return "0" if zero else script.constants.value(value)


def numbers_of_job(devices: int) -> str:
    """Return the numbers of the devices of a job, which sees no others, as part of a message."""
    return f"the devices of the job are 0 to {devices - 1}" if devices > 1 else "the job has device 0 only"


def count(program: RankProgram) -> tuple[str, int] | None:
    """Return the option of a program with a number of devices, and the number."""
    for option, name, value in program.options:
        short = re.match(r"-\w", option) and program.words[0] != "vllm"  # -tp of others is anything
        devices = number(value, 4) if name.rpartition(".")[2] in COUNTS and not short else None
        if devices is not None:
            return option, devices
    return None


def numbers(program: RankProgram) -> tuple[str, tuple[int, ...]] | None:
    """Return the option of a program with numbers of devices, as ``--device cuda:1``, and the numbers."""
    for option, name, value in program.options:
        found = re.fullmatch(r"(?:cuda|gpu|npu)?:?(\d\d?(?:,\d\d?)*),?", value, re.ASCII)
        if name.rpartition(".")[2] in _NUMBERS and found:
            return option, tuple(map(int, found[1].split(",")))
    return None
