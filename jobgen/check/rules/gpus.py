"""Rules about GPUs and NPUs: their variables and libraries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from jobgen.check.ranks.containers import SEALED
from jobgen.check.ranks.devices import VISIBLE, numbers_of_job
from jobgen.check.rule import NOTE, WARNING, rule, rule_once
from jobgen.errors import shown
from jobgen.launch.accelerators import ACCELERATORS
from jobgen.launch.command_line import is_python
from jobgen.launch.launchers import LAUNCHERS
from jobgen.script.commands import Command
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, function_of, literal

# The commands that start a Python program.
_STARTS = ("python", "python3", "vllm", "sglang", *(name for row in LAUNCHERS.values() for name in row.names))
_ON_CANN = tuple(name for name, row in ACCELERATORS.items() if row.cann)

_OLD_NCCL = {
    "NCCL_ASYNC_ERROR_HANDLING": "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT": "TORCH_NCCL_BLOCKING_WAIT",
    "NCCL_DESYNC_DEBUG": "TORCH_NCCL_DESYNC_DEBUG",
    "NCCL_ENABLE_TIMING": "TORCH_NCCL_ENABLE_TIMING",
    "NCCL_IB_CUDA_SUPPORT": "NCCL_NET_GDR_LEVEL",
    "NCCL_LL_THRESHOLD": "NCCL_PROTO",
    "NCCL_MAX_NRINGS": "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NRINGS": "NCCL_MIN_NCHANNELS",
    "NCCL_SINGLE_RING_THRESHOLD": "NCCL_ALGO",
    "NCCL_TREE_THRESHOLD": "NCCL_ALGO",
}

_NCCL = r"(?<![\w$\{])NCCL_\w+"  # a name that is set or passed on, as in -x NAME and -genv NAME VALUE

_NPU = (
    "torch_npu", "ASCEND_RT_VISIBLE_DEVICES", "HCCL_CONNECT_TIMEOUT", "HCCL_IF_BASE_PORT", "HCCL_IF_IP",
    "ASCEND_DEVICE_ID",
)  # fmt: skip


@rule(
    "forced-devices",
    WARNING,
    "Hand-written device numbers",
    """The scheduler assigns some devices of a node to a job. Hand-written numbers may belong to another
    job. (Numbers below the number of devices that the job requests are only a note: where
    the scheduler hides the others, the rest is idle, and all of them change nothing. There is no finding in a job
    with whole nodes, by `--exclusive`, with eight GPUs of each or at a site that gives them, nor if each process gets its part of the devices.)""",
    fix="remove it: the scheduler sets it",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    export CUDA_VISIBLE_DEVICES=2,3
    srun python3 train.py
    """,
    good={"export CUDA_VISIBLE_DEVICES=2,3": ""},
)
def forced_devices(script: Script) -> Iterator[Hit]:
    found = [
        (name, {int(number) for number in text.split(",")}, node)
        for name, value, node in script.assignments
        if name in VISIBLE and (text := literal(value)) and re.fullmatch(r"\d+(,\d+)*", text, re.ASCII)
    ]
    parts = {frozenset(numbers) for _, numbers, _ in found}
    apart = len(parts) > 1 and sum(map(len, parts)) == len(frozenset().union(*parts))
    for name, numbers, node in found if script.is_batch else ():
        # Where the scheduler hides all others, the devices of a job have the numbers from 0.
        requested = script.request.gpus_per_node or script.request.gpus
        count = requested or len(numbers)
        if not requested and apart:  # a whole node, whose devices the processes share
            count = max(map(max, parts)) + 1
        own = numbers <= set(range(count))
        same = script.dialect.hides_devices and numbers == set(range(requested or 0))
        if script.has_whole_nodes or same or (own and apart):
            continue  # no other job is on the node, these are all that the job sees, or each process gets its part
        alone = "unless the node is its own, " if own else ""
        reason = f"{name} is set by hand, and the job requests no devices: {alone}another job may use these"
        given = requested or any(map(script.heeded.get, script.dialect.scheduler.keys.devices))
        if given:
            effect = (
                "the scheduler may have allocated other devices, and the job then uses those of another job"
            )
            reason = f"{name} is set by hand: {effect}"
        if requested and not own and script.dialect.hides_devices:
            there = numbers_of_job(requested)
            reason = f"{name} is set by hand: {there}, {max(numbers)} is none of them, or one of another job"
        fix = "" if given else "request the devices: the scheduler sets it"
        if own and requested and script.dialect.hides_devices:
            reason = f"{name} is set by hand: of the {requested} devices of the job this uses {len(numbers)}"
            fix = f"request {len(numbers)}, or remove it"
        yield Hit.at(node, reason, fix, NOTE if own else None)


@rule_once(
    "container-driver",
    NOTE,
    "A container that sees no GPU",
    """apptainer and singularity put the driver of NVIDIA into a container only with `--nv`, that of AMD with
    `--rocm`, unless the site has set it for all containers, docker with `--gpus all`. Without it the program runs on the cores, or ends
    with "no CUDA GPUs are available", while the GPUs of the job are idle. `--nv` beside an image or a module of ROCm, and
    `--rocm` beside those of CUDA, find no driver.""",
    fix="add --nv, or --rocm for AMD",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun apptainer exec torch.sif python3 train.py
    """,
    good={
        "srun apptainer exec torch.sif python3 train.py": "srun apptainer exec --nv torch.sif python3 train.py"
    },
)
def container_driver(script: Script) -> Iterator[Hit]:
    request, text = script.request, script.tree.text
    if not (request.gpus_per_node or request.gpus):
        return
    have_gpus = re.search(_HAVE_GPUS, text) is not None
    for command in script.commands:
        words = _words(script, command)
        values = [script.constants.value(word) for word in words]
        names = [os.path.basename(value or "") for value in values]
        at = next((at for at, name in enumerate(names) if name in _DRIVERS), None)
        subcommands = {"run"} if at is not None and names[at] in SEALED else {"exec", "run"}
        if at is None or not subcommands & set(names[at + 1 : at + 4]):
            continue
        program, title = _program(names, words, at)
        between = zip(values[at:program], words[at:program], strict=True)
        unknown = any(value is None and _MAY_BE_OPTIONS.match(word.text) for value, word in between)
        before = " ".join(word.text for word in words[at:program])
        if program is not None and (other := _other_driver(script, names[at], before, values[at:program])):
            yield Hit(command.line, *other)
        if have_gpus:
            continue
        opens = _OPENS.search(before)
        unknown |= re.search(r"--nv|--rocm", before) is not None
        if program is None or unknown or (names[at] in SEALED and opens):
            continue
        if any("instance://" in (value or "") for value in values):
            continue
        if "-c" not in names[program + 1 : program + 2]:
            reason = f"{names[at]} has no {_DRIVERS[names[at]]}: {title} sees none of the GPUs of the job"
            yield Hit(command.line, reason, f"add {_DRIVERS[names[at]]}" if names[at] in SEALED else "")


def _other_driver(
    script: Script, name: str, options: str, values: Sequence[str | None]
) -> tuple[str, str] | None:
    """Return the reason and the remedy if apptainer gets the driver of one maker, and the image and the modules are for
    the GPUs of the other one."""
    flags = set(re.findall(r"(?<!\S)--(nv|rocm)(?!\S)", options))
    if name in SEALED or len(flags) != 1:
        return None
    modules = (word for one in script.named("module", "ml") for word in one.literals)
    names = [
        *(one for one in values if one and not one.startswith("-")),
        *modules,
        script.request.gpu_type or "",
    ]
    of_amd, of_nvidia = ([one for one in names if sign.search(one)] for sign in (_AMD, _NVIDIA))
    flag = flags.pop()
    others, own = (of_amd, of_nvidia) if flag == "nv" else (of_nvidia, of_amd)
    if own or not others:
        return None
    maker, user, right = ("NVIDIA", "AMD", "--rocm") if flag == "nv" else ("AMD", "NVIDIA", "--nv")
    reason = f"--{flag} puts the driver of {maker} into the container, but {shown(others[0])} is for GPUs of {user}"
    return reason, f"write {right}"


def _words(script: Script, command: Command) -> list[Node]:
    """Return the words of a command; ``"$@"`` in a function is what its first call passes."""
    words = [one for word in command.words for one in script.words_of(word, command)]
    if not words or words[-1].text.strip('"') not in ("$@", "${@}", "$*"):
        return words
    call = next(script.named(function_of(command.node)), None)
    return words if call is None else [*words[:-1], *call.arguments]


def _program(names: Sequence[str], words: Sequence[Node], first: int) -> tuple[int | None, str]:
    """Return the place and the name of the program of Python behind a word, or in a text for a shell."""
    for at, name in enumerate(names[first:], first):
        if name in _STARTS or is_python(name):
            return at, name
        if inner := _IN_SHELL.match(words[at].text):
            return at, inner[1]
    return None, ""


# The option that gives a container the GPUs.
_DRIVERS = {
    **dict.fromkeys(("singularity", "apptainer"), "--nv"),
    **{"docker": "--gpus all", "podman": "--device nvidia.com/gpu=all", "podman-hpc": "--gpu"},
}
_OPENS = re.compile(
    r"--(gpus?|device|runtime|privileged|hooks-dir|annotation|security-opt)\b|VISIBLE_DEVICES|nvidia-docker"
)
_IN_SHELL = re.compile(r"[\"'](?:.*[\s;&])?(python3?|torchrun|accelerate|deepspeed|vllm)\s", re.S)
_MAY_BE_OPTIONS = re.compile(r"\$(?!.*(im|sif|cont|/))", re.I)  # and no image or path
_AMD = re.compile(r"(?i)rocm|\bamd|\bmi\d00|gfx9")
_NVIDIA = re.compile(r"(?i)cuda|nvidia|nvcr|\b[vahp]\d00|\b(rtx|gtx|tesla|volta|t4)")
# Options and variables that give a container GPUs, and signs of AMD, whose devices need no option.
_HAVE_GPUS = (
    r"(?i)--rocm|--nvccli|_NV(CCLI)?=|_ROCM=|/dev/(kfd|dri|nvidia)|rocm|\bamd|\blumi|\bhip|\bmi\d00|gfx9"
)


@rule(
    "old-nccl",
    NOTE,
    "Obsolete variables of NCCL and PyTorch",
    """NCCL has removed some of its variables, and ignores them. PyTorch 2.2 has renamed its own to
    `TORCH_NCCL_*`: it still reads the old names, and prints a warning. (Variables of InfiniBand are not reported if
    `NCCL_IB_DISABLE=1` disables it.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    export NCCL_TREE_THRESHOLD=0
    srun python3 train.py
    """,
    good={"export NCCL_TREE_THRESHOLD=0": "export NCCL_ALGO=Ring"},
)
def old_nccl(script: Script) -> Iterator[Hit]:
    found = [(node.line, name) for name, _, node in script.assignments]
    for command in script.commands:
        words = (one for word in command.arguments for one in script.words_of(word, command))
        found += [(word.line, name) for word in words for name in re.findall(_NCCL, word.text)]
    without_ib = any(literal(value) == "1" for value in script.values.get("NCCL_IB_DISABLE", ()))
    for line, name in dict.fromkeys(found):
        if name in _OLD_NCCL and not (without_ib and name.startswith("NCCL_IB_")):
            renamed = _OLD_NCCL[name].startswith("TORCH_")
            reason = f"PyTorch 2.2 has renamed {name}" if renamed else f"NCCL ignores {name}"
            older = ", or both names: an older PyTorch knows only the old one" if renamed else ""
            yield Hit(line, reason, f"use {_OLD_NCCL[name]}{older}")


@rule(
    "cann-not-sourced",
    WARNING,
    "CANN's set_env.sh is not sourced",
    """`torch_npu` needs the libraries of the CANN toolkit, which its `set_env.sh` puts on the path. Without
    it the import fails with `libhccl.so: cannot open shared object file`. Three of six Ascend scripts
    do not source it.""",
    message="CANN's set_env.sh is not sourced: torch_npu does not find its libraries (libhccl.so)",
    fix="source /usr/local/Ascend/ascend-toolkit/set_env.sh first",
    bad="""
    #!/bin/bash
    #SBATCH --gres=npu:8
    #SBATCH --ntasks-per-node=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --gres=npu:8
    #SBATCH --ntasks-per-node=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    source /usr/local/Ascend/ascend-toolkit/set_env.sh
    srun python3 train.py
    """,
)
def cann(script: Script) -> Iterator[Hit]:
    words = script.tree.all("word", "variable_name", "string_content", "raw_string")
    text = " ".join(node.text for node in words)
    named = any(name in text.split() or f" {name}" in text for name in _NPU)
    on_cann = named or script.request.accelerator in _ON_CANN
    if not on_cann or "set_env.sh" in text or any(script.named(*_SETS_CANN)):
        return
    options = (one.line for one in script.options if any(name in one.value for name in _ON_CANN))
    work = (command.line for command in script.named(*_STARTS))
    if line := next(work, None) or next(options, None):
        yield Hit(line)


# What may set the variables of CANN.
_SETS_CANN = ("module", "ml", "singularity", "apptainer", "docker", "source", ".", "job_cann")


@rule(
    "rank-table",
    WARNING,
    "A rank table and variables for HCCL",
    """HCCL reads the placement of the ranks from a rank table **or** from environment variables; with both
    it does not start.""",
    fix="keep one of them",
    bad="""
    #!/bin/bash
    #SBATCH --ntasks=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    source /usr/local/Ascend/ascend-toolkit/set_env.sh
    export RANK_TABLE_FILE=/opt/site/ranks.json
    export CM_CHIEF_IP=10.0.0.1 CM_CHIEF_PORT=6000
    srun python3 train.py
    """,
    good={"export CM_CHIEF_IP=10.0.0.1 CM_CHIEF_PORT=6000": ""},
)
def rank_table(script: Script) -> Iterator[Hit]:
    names = {name: node for name, _, node in script.assignments}
    variables = ("CM_CHIEF_IP", "CM_CHIEF_PORT", "CM_WORKER_SIZE", "CM_WORKER_IP")
    others = [name for name in variables if name in names]
    if "RANK_TABLE_FILE" in names and others:
        reason = (
            f"HCCL does not start with both a rank table and environment variables: {others[0]} is set, too"
        )
        yield Hit(names["RANK_TABLE_FILE"].line, reason)
