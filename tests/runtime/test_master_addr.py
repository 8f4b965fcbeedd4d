"""master_addr.sh and node/address.sh: the address of the rendezvous, in a network namespace with interfaces of every kind."""

from __future__ import annotations

import pytest
from support.require import need_command, need_root
from support.runtime_shell import Done, Shell

FILES = ("master_addr", "node/address")

HOSTS = """127.0.0.1 localhost
127.0.1.1 self
10.1.0.1 n1
10.7.0.1 ic-n1
fd08::1 n1.six.example.org
10.1.0.2 ic-n2
10.1.0.9 two
10.7.0.1 two
"""


@pytest.fixture
def node(shell: Shell) -> Shell:
    need_root()
    need_command("unshare", "ip")
    (shell.folder / "hosts").write_text(HOSTS)
    return shell


SETUP = """set -e
mount --bind hosts /etc/hosts
ip link set lo up
for name in eth0 ib0 six0 link0 down0; do
  ip link add $name type veth peer name to-$name
  ip link set $name up
  ip link set to-$name up
done
ip address add 10.1.0.1/24 dev eth0
ip address add 10.7.0.1/24 dev ib0
ip address add fd07::1/64 dev ib0 nodad
ip address add fd08::2/64 dev six0 nodad preferred_lft 0
ip address add fd08::1/64 dev six0 nodad
ip address add 10.9.0.1/24 dev down0
ip link set down0 down
"$@"
"""


def printed(node: Shell, value: str, before: str = "") -> Done:
    """What address.sh prints on the host n1 for a value."""
    words = ["bash", str(node.node_file("address")), value, "n1"]
    setup = SETUP.replace('"$@"', f'{before}\n"$@"')
    return node.start(["unshare", "--net", "--mount", "bash", "-c", setup, "node", *words], None, 60)


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("n1", "n1"),
        ("ic-n1", "ic-n1"),
        ("n1.six.example.org", "n1.six.example.org"),
        ("self", "self"),
        ("two", "two"),
        ("10.7.0.1", "10.7.0.1"),
        ("fd07::1", "fd07::1"),
        ("interface:eth0", "10.1.0.1"),
        ("interface:ib0", "10.7.0.1"),
        ("interface:six0", "fd08::1"),
        ("interface:lo", "127.0.0.1"),
    ],
)
def test_an_address_of_the_host(node: Shell, value: str, address: str) -> None:
    done = printed(node, value)
    assert (done.status, done.out, done.said) == (0, f"{address}\n", "")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("nosuchhost.invalid", "the first host n1 cannot resolve nosuchhost.invalid"),
        ("ic-n2", "ic-n2 (10.1.0.2) is no address of the first host n1, which has "),
        ("10.1.0.2", "10.1.0.2 is no address of the first host n1, which has "),
        ("fd07::2", "fd07::2 is no address of the first host n1, which has "),
        ("interface:ib1", "the first host n1 has no interface ib1, but lo "),
        ("interface:link0", "the interface link0 of the first host n1 is down, or has no address that other hosts can reach"),
        ("interface:down0", "the interface down0 of the first host n1 is down, or has no address that other hosts can reach"),
    ],
)  # fmt: skip
def test_no_address_of_the_host(node: Shell, value: str, sentence: str) -> None:
    done = printed(node, value)
    assert done.status == 70
    assert done.out.startswith(sentence)
    assert done.out.count("\n") == 1
    assert done.said == ""
    if "which has" in sentence:
        assert {"127.0.0.1", "10.1.0.1", "10.7.0.1", "fd07::1"} <= set(done.out.split())


def test_a_host_without_the_command_that_lists_addresses(node: Shell) -> None:
    (node.folder / "few").mkdir()
    (node.folder / "few/bash").symlink_to("/bin/bash")
    done = printed(node, "ic-n1", "mount -t tmpfs none /usr/sbin; PATH=$PWD/few")
    assert done.status == 71
    assert done.out == "the first host n1 has no command ip on PATH, which lists its addresses\n"


# ------------------------------------------------------------------------------------- the first host

ADDRESS = 'echo "$1 of $2"; exit ${STATUS:-0}\n'
CODE = """job_hosts=(a b) JOBGEN_HERE=a job_master_addr='ic-{host}.x' MASTER_ADDR=
job_ask_host() { echo "asked $1"; bash -c "$2"; }
job_save_environment() { echo "MASTER_ADDR=$MASTER_ADDR"; }
"""


def found(shell: Shell, code: str = "", env: dict[str, str] | None = None) -> Done:
    (shell.run_dir / "address.sh").write_text(ADDRESS)
    return shell.run("master_addr", f'{CODE}{code}\njob_find_address_or_end; echo "$MASTER_ADDR"', env)


def test_the_first_host_is_this_one(shell: Shell) -> None:
    assert found(shell).lines == ["ic-a.x of a"]
    assert (shell.run_dir / "env.sh").read_text() == "MASTER_ADDR=ic-a.x of a\n"
    assert (shell.run_dir / "env.sh").stat().st_mode & 0o077 == 0


def test_the_first_host_is_another_one(shell: Shell) -> None:
    assert found(shell, "job_hosts=(b a)").lines == ["asked b", "ic-b.x of b"]
    assert found(shell, "job_hosts=(b a) job_master_addr=interface:ib0").lines[-1] == "interface:ib0 of b"


@pytest.mark.parametrize(
    ("value", "host", "name"),
    [
        ("ic-{host}", "a", "ic-a"),
        ("ic-{host}", "a.cluster.local", "ic-a.cluster.local"),
        ("{host}-ib0", "a.cluster.local", "a-ib0.cluster.local"),
        ("{host}.hpc.example.org", "a.cluster.local", "a.hpc.example.org"),
        ("{host}", "a.cluster.local", "a.cluster.local"),
        ("b.example.org", "a.cluster.local", "b.example.org"),
        ("interface:ib0.1", "a.cluster.local", "interface:ib0.1"),
        ("fd07::1", "a", "fd07::1"),
    ],
)
def test_the_value_for_a_host(shell: Shell, value: str, host: str, name: str) -> None:
    code = f"job_master_addr='{value}'; job_name_address {host}"
    assert shell.run("master_addr", code).lines == [name]


@pytest.mark.parametrize(("status", "end"), [("70", 70), ("71", 71), ("1", 70), ("124", 70)])
def test_the_first_host_has_no_such_address(shell: Shell, status: str, end: int) -> None:
    done = found(shell, env={"STATUS": status})
    assert (done.status, done.out) == (end, "")
    assert done.said == "jobgen: --master-addr ic-{host}.x: ic-a.x of a\n"


def test_the_first_host_does_not_answer(shell: Shell) -> None:
    (shell.run_dir / "address").write_text("of the attempt before\n")
    done = found(shell, "job_hosts=(b a); job_ask_host() { return 255; }")
    assert done.status == 70
    assert done.said == "jobgen: --master-addr ic-{host}.x: the first host b does not answer\n"


def test_spare_nodes_look_later(shell: Shell) -> None:
    done = found(shell, "job_choose_hosts() { :; }", env={"STATUS": "70"})
    assert (done.status, done.lines) == (0, [""])
