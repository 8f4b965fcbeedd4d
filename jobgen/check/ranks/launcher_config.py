"""The config of accelerate that a script names: the sizes in the file beside those of the command line."""

from __future__ import annotations

import os
import re
from functools import lru_cache

from jobgen.check.ranks.program import stays
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import function_of
from jobgen.values.text_files import read_text

_FILE = "--config-file"
# accelerate/commands/config/config_args.py
_SIZES = ("num_machines", "num_processes", "rdzv_backend", "main_process_ip", "main_process_port")
_ON_DEVICES = ("MULTI_GPU", "MULTI_NPU", "FSDP", "MEGATRON_LM")


@lru_cache(maxsize=4)  # several rules read the same script
def launches(script: Script) -> tuple[Launch, ...]:
    """Return the launchers of a script, without those of functions that it does not use and those on hosts
    outside of the job; one with a config that can be read has its options, too."""
    readable, unused = stays(script), script.unused_functions
    used = (
        one
        for one in script.launches
        if function_of(one.command.node) not in unused and not (one.remote and script.is_outside(one.command))
    )
    return tuple(with_config(script, one) if readable else one for one in used)


def with_config(script: Script, launch: Launch) -> Launch:
    """Return a launcher with the sizes of its config; those of the command line come before them.

    The machine rank of the file is the same on all nodes, so it numbers none.
    """
    name = launch.options.get(_FILE) if launch.row.line.config_file else None
    path = script.path(name) if name else None
    values = _read(path) if path else {}
    starts = values.get("deepspeed_multinode_launcher") == "standard"  # else pdsh starts the other nodes
    if values.get("distributed_type") not in (*_ON_DEVICES, *["DEEPSPEED"] * starts):
        return launch
    options: dict[str, str | None] = {
        f"--{key.replace('_', '-')}": values[key] for key in _SIZES if values.get(key)
    }
    own = {key: value for key, value in launch.options.items() if key != _FILE}
    return launch._replace(options=options | own)


def _read(path: str) -> dict[str, str]:
    """Return the plain values of a file in YAML; empty if it cannot be read."""
    try:
        text = read_text(path) if os.path.isfile(path) else ""
    except (OSError, ValueError):
        return {}
    found = re.findall(r"^ *(\w+): *[\"']?([\w.:-]+)[\"']? *(?:#.*)?$", text, re.M)
    return {key: value for key, value in found if value != "null"}
