"""Hosts, ports and network interfaces by which the ranks connect. Does not import torch."""

import contextlib
import fcntl
import random
import re
import socket
import struct
from pathlib import Path

from .errors import BadInput

# Above the ports of the job script (templates/runtime/rendezvous.sh), and below those of outgoing connections
# of Linux (ip(7)), one of which could use the port first.
PORTS = range(30000, 32768)


def first_host(nodelist: str) -> str:
    """Return the first host of a Slurm list: 'n003' for 'n[003-005,9],m1'. Raise BadInput if it is empty."""
    host = re.sub(r"\[([^],-]+)[^]]*\]", r"\1", nodelist)
    host = host.split(",")[0]
    if not host:
        raise BadInput("Slurm started several ranks but names no hosts: set MASTER_ADDR and MASTER_PORT")
    return host


def own_address() -> str:
    """Return an address by which other hosts reach this host.

    This is the IP address of the host name, or the name itself if it has no address or maps to loopback.
    """
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError:
        return name
    return name if address.startswith("127.") else address


def free_port() -> int:
    """Return a TCP port that is currently free on this host, of PORTS if possible."""
    ports = random.SystemRandom().sample(PORTS, 100)  # the seed of the training is the same in all jobs
    for port in [*ports, 0]:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return int(probe.getsockname()[1])
    raise OSError("this host has no free TCP port")


def interface_to(address: str) -> str | None:
    """Return the network interface of the route to `address`, or None if it cannot be determined.

    By default, gloo uses the interface of the host's own name. On Debian this name maps to loopback, where no
    other host can connect.
    """
    with contextlib.suppress(OSError):
        for family, _, _, _, target in socket.getaddrinfo(address, 1, type=socket.SOCK_DGRAM):
            with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(target)  # UDP: sends no packet
                own = str(probe.getsockname()[0]).partition("%")[0]
                if (
                    name := _interface_of_ipv6(own)
                    if family == socket.AF_INET6
                    else _interface_of(probe, own)
                ):
                    return name
    return None


def _interface_of(probe: socket.socket, own: str) -> str | None:
    """Return the interface of an IPv4 address of this host."""
    siocgifaddr = 0x8915
    for _, name in socket.if_nameindex():
        with contextlib.suppress(OSError):
            reply = fcntl.ioctl(probe, siocgifaddr, struct.pack("256s", name.encode()))
            if socket.inet_ntoa(reply[20:24]) == own:
                return name
    return None


def _interface_of_ipv6(own: str) -> str | None:
    """Return the interface of an IPv6 address of this host."""
    digits = socket.inet_pton(socket.AF_INET6, own).hex()
    rows = (line.split() for line in Path("/proc/net/if_inet6").read_text("ascii").splitlines())
    return next((row[-1] for row in rows if row[0] == digits), None)
