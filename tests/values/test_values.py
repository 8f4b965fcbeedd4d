"""What people type, and what it means."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobgen.schedulers.base import clock, size
from jobgen.schedulers.torque import TORQUE
from jobgen.values import parsers


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h30m", 9000),
        ("90m", 5400),
        ("45s", 45),
        ("1d", 86400),
        ("1d12h", 129600),
        ("02:30:00", 9000),
        ("48:00:00", 172800),
        ("1-12:00:00", 129600),
        ("2-00:00:01", 172801),
    ],
)
def test_walltime(text: str, seconds: int) -> None:
    assert parsers.walltime(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "24:00", "90", "1:30", "2h30", "30m2h", "00:00:00", "0h", "01:60:00", "1-24:00:00", "-1h"),
        *("1.5h", "2 h", "١h", "1h\n"),
    ],
)
def test_walltime_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must|ambiguous"):
        parsers.walltime(text)


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("64G", 65536),
        ("64GB", 65536),
        ("64GiB", 65536),
        ("64g", 65536),
        ("512M", 512),
        ("1.5T", 1572864),
        ("0.5G", 512),
    ],
)
def test_memory(text: str, mib: int) -> None:
    assert parsers.memory(text) == mib


@pytest.mark.parametrize("text", ["", "64", "64K", "0G", "-1G", "1.0001M", "G", "64 G B", "64GG"])
def test_memory_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        parsers.memory(text)


def test_sizes_and_clocks_as_schedulers_write_them() -> None:
    assert clock(9000) == "02:30:00"
    assert clock(172800) == "48:00:00"
    assert size(65536, "b") == "64gb"
    assert size(1536, "b") == "1536mb"
    assert TORQUE.memory(1024, 1) == "mem=1gb"
    assert TORQUE.memory(1000, 3) == "mem=3000mb"  # of all nodes


@pytest.mark.parametrize("name", ["PATH", "LD_LIBRARY_PATH", "_x", "http_proxy", "nodes", "status"])
def test_environment_names(name: str) -> None:
    assert parsers.assignment(f"{name}=a=b") == (name, "a=b")


@pytest.mark.parametrize(
    "text",
    ["=x", "IFS", "1A=x", "A-B=x", "A B=x", "é=x", "BASH_ENV=x", "IFS=x", "SECONDS=1", "PWD=/", "RANK=0", "MASTER_PORT=1",
     "JOBGEN_RUN_DIR=x", "job_dir=x", "UID=0", "_=x"],
)  # fmt: skip
def test_environment_names_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must|cannot"):
        parsers.assignment(text)


def test_device_filter() -> None:
    assert parsers.device_filter("n1:0,2@n2") == (("n1", (0, 2)), ("n2", ()))
    for bad in ("", "n1:", "n1:0-2", "@n1", "n1@n1", "n1:0,", "n 1", "-n1"):
        with pytest.raises(ValueError, match="must|twice"):
            parsers.device_filter(bad)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        *((text, text) for text in ("ic-{host}", "{host}.hpc.example.org", "{host}-ib0", "ic-{host}.x", "{host}", "n1", "a_b.x", "localhost")),
        *((text, text) for text in ("interface:ib0", "interface:ib0.8001", "interface:enp65s0f0np0", "10.7.0.1", "169.254.0.1")),
        *((text, "fd07::1") for text in ("fd07::1", "FD07:0:0::1", "[fd07::1]", "fd07:0000:0000:0000:0000:0000:0000:0001")),
    ],
)  # fmt: skip
def test_addresses_of_the_rendezvous(text: str, address: str) -> None:
    assert parsers.master_addr(text) == address


@pytest.mark.parametrize(
    "text",
    ["", "-x", "-{host}", ".{host}", "{host}{host}", "{Host}", "{}", "${host}", "$(id)", "a b", "a;b", "n1:29500", "[fd07::1]:29500",
     "10.0.0.300", "1.2.3", "fe80::1", "fe80::1%ib0", "[n1]", "interface:", "interface:ib0;id", "interface:$x", "interface:ib0,ib1",
     "interface:abcdefghijklmnop", "interface:fd07::1", "n1\n", "{host}\n", "٣.example.org", "é{host}", "a" * 256],
)  # fmt: skip
def test_addresses_of_the_rendezvous_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a host name"):
        parsers.master_addr(text)


@given(st.text(st.sampled_from("ahost{}-._:;$`'\"\\ \n\t/%[]01interface~*?&|<>()!#"), max_size=24))
@example("interface:{host}")
def test_no_address_of_the_rendezvous_is_code(text: str) -> None:
    try:
        address = parsers.master_addr(text)
    except ValueError:
        return
    assert re.fullmatch(r"[\w.:-]+", address.replace("{host}", "n1", 1), re.ASCII)
    assert not address.startswith("-")
