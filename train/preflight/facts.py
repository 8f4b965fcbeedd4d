"""Facts that one rank finds alone: its host, device, versions, network interface and directory.

Every error becomes a sentence in `problems`, so that rank 0 can name the host.
"""

import contextlib
import shutil
import socket
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobgen.topology.adapters import matching_adapters

from .. import atomic, device, report
from ..accelerators import Accelerator, find_version
from ..addresses import interface_to
from ..errors import BadInput
from ..ranks import Ranks
from .judge import short


def is_here(host: str, hostname: str) -> bool | None:
    """Return whether this machine is `host`, by name or by address; None if that is unknown."""
    if host == hostname or short(host) == short(hostname):
        return True
    try:
        addresses = {(info[0], info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return None
    return any(_is_own(family, str(address)) for family, address in addresses)


def _is_own(family: int, address: str) -> bool:
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((address, 0))  # succeeds only for an address of this machine
        return True
    return False


def own_device(me: Ranks, env: Mapping[str, str], problems: list[str]) -> device.Device | None:
    """Return the device of this rank, selected as in the training.

    Return None, and append to `problems`, if it is not available or does not compute a simple sum correctly.
    """
    import torch

    try:
        mine = device.choose(me, env)
        if torch.ones(8, device=mine.torch).sum().item() == 8:
            return mine
        problems.append(f"{mine.torch} does not add up 8 ones to 8")
    except BadInput as error:
        problems.append(str(error))
    except (RuntimeError, OSError) as error:  # raised by a broken driver or device
        reason = " ".join(str(error).split())[:300]
        problems.append(f"local rank {me.local_rank} cannot use its device: {reason}")
    return None


def devices(mine: device.Device, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the kind and names of the devices that this rank sees, and a unique id of its own device."""
    import torch

    if mine.kind == "cpu":
        return {"kind": "cpu", "names": [], "id": None}
    module = getattr(torch, mine.type)
    names = [str(module.get_device_name(index)) for index in range(module.device_count())]
    unique = getattr(module.get_device_properties(mine.index), "uuid", None) if mine.row.uuid else None
    visible = env.get(mine.row.visible, "")
    return {"kind": mine.kind, "names": names, "id": str(unique or f"{visible}/{mine.index}")}


def versions(mine: device.Device | None, env: Mapping[str, str]) -> dict[str, str | None]:
    """Return the versions of all software that must be equal on all hosts. Only torch is imported."""
    import torch

    result: dict[str, str | None] = {**report.versions("jobgen")}
    result["torch"] = str(torch.__version__)  # includes the kind of build
    if mine is None or mine.kind == "cpu":
        return result
    driver = mine.row.driver
    return {**result, "driver": driver and find_version([driver[0]], driver[1]), **mine.row.versions(env)}


def interface(row: Accelerator, address: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Return facts about the interface set for the collective library, or the one that leads to rank 0."""
    names = [name for _, name in socket.if_nameindex()]
    value = env.get(row.interface, "")
    name = value or interface_to(address)
    return {
        "variable": row.interface,
        "value": value,
        "name": name,
        "missing": bool(value) and not names_interfaces(value, names, row.backend),
        # By default, NCCL and HCCL use loopback only as the last choice.
        "loopback": name == "lo" and (row.backend == "gloo" or bool(value)),
        "all": names,
    }


def names_interfaces(value: str, names: list[str], backend: str) -> bool:
    """Return whether the value of the variable names interfaces of this host.

    gloo takes a list of names. NCCL and HCCL take a list of prefixes: with = of whole names, with ^ of names
    to exclude.
    """
    if backend == "gloo":
        return set(value.split(",")) <= set(names)
    return bool(matching_adapters(value, names))


def write(directory: Path, name: Path, problems: list[str]) -> dict[str, Any] | None:
    """Write a file in the same way as a checkpoint: under another name, forced to the disk, then renamed.

    Return facts about it, or None after an error.
    """
    start, nonce = time.monotonic(), uuid.uuid4().hex
    file = directory / name
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(file, nonce)
        free = shutil.disk_usage(directory).free
    except OSError as error:
        problems.append(f"cannot write into {directory}: {error.strerror or error}")
        return None
    seconds = round(time.monotonic() - start, 4)
    return {"directory": str(directory), "file": str(file), "nonce": nonce, "seconds": seconds, "free": free}
