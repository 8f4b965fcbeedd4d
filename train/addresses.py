"""Hosts, ports and network interfaces: where the ranks can meet. No torch here."""

import contextlib
import fcntl
import re
import socket
import struct

from .errors import BadInput


def first_host(nodelist: str) -> str:
    """The first host of a Slurm node list: 'n[003-005,9],m1' gives 'n003'.

    Raises BadInput for an empty list.
    """
    host = re.sub(r"\[([^],-]+)[^]]*\]", r"\1", nodelist)
    host = host.split(",")[0]
    if not host:
        raise BadInput("Slurm started several ranks but names no hosts: set MASTER_ADDR and MASTER_PORT")
    return host


def own_address() -> str:
    """An address by which other hosts reach this one: its IP, or its name if that maps to loopback."""
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError:
        return name
    return name if address.startswith("127.") else address


def free_port() -> int:
    """A TCP port that is free on this host at this moment."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def interface_to(address: str) -> str | None:
    """The network interface that leads to `address`, None where that cannot be found out.

    Left to itself, gloo takes the interface of the host's own name, and on Debian that name
    leads to loopback, where no other host can connect.
    """
    siocgifaddr = 0x8915
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 1))  # sends nothing
        own = probe.getsockname()[0]
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                reply = fcntl.ioctl(probe, siocgifaddr, struct.pack("256s", name.encode()))
                if socket.inet_ntoa(reply[20:24]) == own:
                    return name
    return None
