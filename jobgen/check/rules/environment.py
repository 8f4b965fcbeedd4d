"""Rules about the environment of a job: conda, CANN, devices, paths."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.bash import literal
from jobgen.check.rule import ERROR, NOTE, WARNING, Rule
from jobgen.check.script import Hit, Script
from jobgen.launchers import LAUNCHERS
from jobgen.resources.accelerators import ACCELERATORS

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
_DEVICES = (
    "CUDA_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
)
# The commands that start a Python program.
_STARTS = ("python", "python3", *(name for row in LAUNCHERS.values() for name in row.names))
_ON_CANN = tuple(name for name, row in ACCELERATORS.items() if row.cann)
_NPU = (
    "torch_npu",
    "ASCEND_RT_VISIBLE_DEVICES",
    "HCCL_CONNECT_TIMEOUT",
    "HCCL_IF_BASE_PORT",
    "HCCL_IF_IP",
    "ASCEND_DEVICE_ID",
)


def source_activate(script: Script) -> Iterator[Hit]:
    for command in script.named("source", "."):
        words = command.literals
        if words and words[0] == "activate":
            yield Hit(
                command.line,
                "source activate is conda's old way: it finds no such file, or another environment's",
                'write eval "$(conda shell.bash hook)" and then conda activate',
            )


def conda_init(script: Script) -> Iterator[Hit]:
    for command in script.named("conda", "mamba"):
        if command.literals[:1] == ["init"]:
            yield Hit(
                command.line,
                "conda init edits ~/.bashrc, for later shells: in this one conda activate still fails",
                'write eval "$(conda shell.bash hook)"',
            )


def bashrc(script: Script) -> Iterator[Hit]:
    for command in script.named("source", "."):
        name = command.arguments[0].text.strip("\"'") if command.arguments else ""
        if name.endswith((".bashrc", ".bash_profile", ".profile", ".zshrc")) and (
            "~" in name or "HOME" in name or "/home" in name
        ):
            yield Hit(
                command.line,
                f"{name} is for people: it often ends at once in a job, or differs from one user to the next",
                "load the modules and the environment here",
            )


def conda_hook(script: Script) -> Iterator[Hit]:
    ready = [
        command.node.start
        for command in script.named("source", ".", "eval", "module", "ml", "conda", "mamba")
        if "activate" not in command.literals
    ]
    if any(name in ("BASH_ENV",) for name, _, _ in script.assignments) or any(
        "-l" in line.split() or "--login" in line for line in script.lines[:1]
    ):
        return
    if script.is_pbs:
        return  # PBS runs the script in a login shell
    for command in script.named("conda", "mamba"):
        if command.literals[:1] == ["activate"] and not any(start < command.node.start for start in ready):
            yield Hit(
                command.line,
                "conda activate is a function of the shell, and nothing has defined it here",
                'write eval "$(conda shell.bash hook)" before it',
            )
            return


def forced_devices(script: Script) -> Iterator[Hit]:
    for name, value, node in script.assignments:
        text = literal(value) or ""
        if name in _DEVICES and re.fullmatch(r"\d+(,\d+)*", text, re.ASCII) and script.is_batch:
            # All devices of the job, in any order: a job that has the whole node may set them.
            whole = {int(number) for number in text.split(",")} == set(
                range(script.request.gpus_per_node or 0)
            )
            yield Hit(
                node.line,
                f"{name} is set by hand: the scheduler may have given the job other devices, and those "
                "of others are used",
                "leave it to the scheduler",
                NOTE if whole else None,
            )


def old_nccl(script: Script) -> Iterator[Hit]:
    for name, _, node in script.assignments:
        if name in _OLD_NCCL:
            yield Hit(
                node.line, f"{name} is obsolete: it is ignored, or warned about", f"use {_OLD_NCCL[name]}"
            )


def personal_path(script: Script) -> Iterator[Hit]:
    for node in script.tree.all("word", "string_content", "raw_string"):
        if match := re.search(r"(?<![\w$}])/(home|Users|users)/[\w.-]+", node.text):
            yield Hit(
                node.line,
                f"{match[0]} is one person's directory: nobody else can run this",
                "write $HOME, or a variable at the top",
            )
            return


def cann(script: Script) -> Iterator[Hit]:
    text = " ".join(
        node.text for node in script.tree.all("word", "variable_name", "string_content", "raw_string")
    )
    asked = script.request.accelerator in _ON_CANN or any(
        name in text.split() or f" {name}" in text for name in _NPU
    )
    sourced = any(
        "set_env" in word.text or "setenv" in word.text or "scend" in word.text
        for command in script.named("source", ".")
        for word in command.arguments
    )
    if (
        not asked
        or sourced
        or any(script.named("module", "ml", "singularity", "apptainer", "docker"))
        or any(script.named("source", ".", "job_cann"))
    ):
        return
    where = next(
        (option.line for option in script.options if any(name in option.value for name in _ON_CANN)), None
    )
    work = next(
        (command.line for command in script.commands if command.name in _STARTS),
        None,
    )
    if line := work or where:
        yield Hit(
            line,
            "CANN is never sourced: torch_npu does not find its libraries (libhccl.so)",
            "source /usr/local/Ascend/ascend-toolkit/set_env.sh first",
        )


def rank_table(script: Script) -> Iterator[Hit]:
    names = {name: node for name, _, node in script.assignments}
    others = [
        name for name in ("CM_CHIEF_IP", "CM_CHIEF_PORT", "CM_WORKER_SIZE", "CM_WORKER_IP") if name in names
    ]
    if "RANK_TABLE_FILE" in names and others:
        yield Hit(
            names["RANK_TABLE_FILE"].line,
            f"HCCL takes a rank table or environment variables, never both; {others[0]} is set, too",
            "keep one of them",
        )


def root_mpirun(script: Script) -> Iterator[Hit]:
    names = {name: node for name, _, node in script.assignments}
    for prefix in ("OMPI", "PRTE"):
        first, second = f"{prefix}_ALLOW_RUN_AS_ROOT", f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"
        if (first in names) != (second in names):
            there = first if first in names else second
            yield Hit(
                names[there].line,
                f"mpirun believes root only when both {first} and {second} are set",
                f"export {second if there == first else first}=1, too",
            )


RULES = (
    Rule("source-activate", WARNING, "source activate", source_activate),
    Rule("conda-init", WARNING, "conda init in a job", conda_init),
    Rule("bashrc", WARNING, "A person's start-up file in a job", bashrc),
    Rule("conda-hook", WARNING, "conda activate without its hook", conda_hook),
    Rule("forced-devices", WARNING, "Devices chosen by hand", forced_devices),
    Rule("old-nccl", WARNING, "Names that NCCL and PyTorch have given up", old_nccl),
    Rule("personal-path", NOTE, "One person's directory", personal_path),
    Rule("cann-not-sourced", WARNING, "CANN is never sourced", cann),
    Rule("rank-table", WARNING, "A rank table and variables for HCCL", rank_table),
    Rule("root-mpirun", ERROR, "Half of what mpirun asks of root", root_mpirun),
)
