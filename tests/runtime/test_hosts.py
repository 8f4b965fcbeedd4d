"""hostfile.sh, filter.sh, local.sh, rendezvous.sh, spare_nodes.sh, remote_start.sh: which hosts take part, and where they meet."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest
from support.runtime_shell import Shell

FILES = (
    "hostfile",
    "filter",
    "local",
    "hosts",
    "rendezvous",
    "spare_nodes",
    "remote_start",
)

LISTS = {"once": "a\nb\nc\n", "again": "a\na\n\nb\nc\na\nb\n", "end": "a\nb\nc"}


def listing(hosts: str) -> str:
    return f"job_list_hosts() {{ printf %s {hosts!r} | sed 's/\\\\n/\\n/g'; }}"


@pytest.mark.parametrize("hosts", LISTS.values(), ids=LISTS)
def test_each_host_once_in_its_order(shell: Shell, hosts: str) -> None:
    (shell.folder / "list").write_text(hosts)
    code = "job_list_hosts() { cat list; }; job_nodes=3 job_ranks_per_node=4; job_make_hostfile"
    done = shell.run("hostfile", code + '; echo "${job_hosts[*]}"; env | grep JOBGEN')
    assert done.status == 0, done.said
    assert (shell.run_dir / "hostfile").read_text() == "a slots=4\nb slots=4\nc slots=4\n"
    assert (shell.run_dir / "hosts").read_text() == "a\nb\nc\n"
    assert done.lines == ["a b c", "JOBGEN_HERE=a"]


@pytest.mark.parametrize(("nodes", "hosts"), [(3, "a\nb\n"), (1, "a\nb\n"), (1, "")])
def test_an_allocation_of_another_size(shell: Shell, nodes: int, hosts: str) -> None:
    (shell.folder / "list").write_text(hosts)
    code = f"job_list_hosts() {{ cat list; }}; job_nodes={nodes} job_ranks_per_node=1; job_make_hostfile; echo never"
    done = shell.run("hostfile", code)
    names = hosts.split()
    assert (done.status, done.out) == (70, "")
    assert (
        done.said
        == f"jobgen: the allocation has {len(names)} hosts ({' '.join(names)}), but {nodes} were requested: leave out other options of the submission, or use --nodes submitted\n"
    )


@pytest.mark.parametrize(
    ("mixed", "share", "hosts", "slots"),
    [
        ("1x1+1x2", "", "a\nb\nb\n", "a slots=1\nb slots=2\n"),
        ("1x1+2x2", "", "b\na\nb\n\nc\nc\n", "b slots=2\na slots=1\nc slots=2\n"),
        ("1x1+1x2", "2", "a\na\nb\nb\nb\nb\n", "a slots=1\nb slots=2\n"),
    ],
)
def test_nodes_that_differ(shell: Shell, mixed: str, share: str, hosts: str, slots: str) -> None:
    (shell.folder / "list").write_text(hosts)
    code = f"job_list_hosts() {{ cat list; }}; job_node_groups={mixed} job_lines_per_rank={share} job_nodes={len(set(hosts.split()))}"
    done = shell.run("hostfile", code + "; job_make_hostfile")
    assert done.status == 0, done.said
    assert (shell.run_dir / "hostfile").read_text() == slots


@pytest.mark.parametrize(("hosts", "is_"), [("a\nb\n", "2x1"), ("", "empty")])
def test_nodes_that_differ_otherwise(shell: Shell, hosts: str, is_: str) -> None:
    (shell.folder / "list").write_text(hosts)
    done = shell.run(
        "hostfile",
        "job_list_hosts() { cat list; }; job_node_groups=1x1+1x2 job_nodes=2; job_make_hostfile; echo never",
    )
    assert (done.status, done.out) == (70, "")
    assert (
        f"the allocation is {is_} (nodes x ranks: {' '.join(hosts.split())}), but 1x1+1x2 was requested"
        in done.said
    )


@pytest.mark.parametrize(
    ("option", "whole", "named", "left"),
    [
        ("--include", "c a", "a c", "c a"),
        ("--exclude", "c a", "a c", "b"),
        ("--include", "", "b", "a b c"),
        ("--exclude", "", "b", "a b c"),
    ],
)
def test_the_hosts_that_deepspeed_keeps(shell: Shell, option: str, whole: str, named: str, left: str) -> None:
    (shell.run_dir / "hosts").write_text("a\nb\nc\n")
    code = f"job_hosts=(a b c) job_filter_option={option} job_filter_hosts=({named}) job_filter_whole_hosts=({whole}); job_filter"
    done = shell.run("filter", code + '; echo "${job_hosts[*]}"')
    kept = sorted(left.split()) if option == "--include" else left.split()
    assert sorted(done.out.split()) == kept, done.said
    assert sorted((shell.run_dir / "hosts").read_text().split()) == kept


def test_a_host_to_keep_that_is_not_there(shell: Shell) -> None:
    (shell.run_dir / "hosts").write_text("a\nb.c\n")
    code = "job_hosts=(a b.c) job_filter_option=--include job_filter_hosts=(bxc) job_filter_whole_hosts=(); job_filter; echo never"
    done = shell.run("filter", code)
    assert (done.status, done.out) == (70, "")
    assert done.said == "jobgen: --include names bxc, but the hosts are a b.c\n"


def test_this_machine_as_the_allocation(shell: Shell) -> None:
    code = 'job_scheduler; echo $job_id $job_number $job_submit_dir $$; job_list_hosts; JOBGEN_START_TIME=100; job_ends=""; job_find_end'
    done = shell.run(
        "local",
        code
        + '; echo "[$job_ends]"; job_walltime_seconds=20; job_find_end; echo $job_ends; job_submit_command',
    )
    job_id, number, folder, pid = done.lines[0].split()
    assert job_id.endswith(f"-{pid}")
    assert (number, folder) == (pid, str(shell.folder))
    assert done.lines[1:] == ["localhost", "[]", "120", "bash"]


@pytest.mark.parametrize(
    ("first", "status"), [("localhost", 0), ("127.0.0.1", 0), ("nosuchhost.invalid", 70)]
)
def test_the_hosts_of_a_file(shell: Shell, first: str, status: int) -> None:
    code = f"job_host_list=({first}:2 other:1); job_scheduler; echo $job_number $$; job_list_hosts"
    done = shell.run("hosts", code)
    assert done.status == status
    if status:
        assert f"run this script on {first}, the first host of the hostfile" in done.said
    else:
        number, *listed = done.lines
        assert len(set(number.split())) == 1
        assert listed == [first, first, "other"]


def test_addresses_of_ipv6_have_colons(shell: Shell) -> None:
    code = "job_host_list=(::1:12 fd07::2:1); job_scheduler; job_list_hosts | uniq -c | xargs"
    assert shell.run("hosts", code).lines == ["12 ::1 1 fd07::2"]


def test_the_first_host_of_a_file_by_another_name(shell: Shell) -> None:
    shell.commands(getent='[[ $* == "hosts alias" ]] && echo "127.0.0.1 alias"')
    code = "job_host_list=(alias:2); job_scheduler; job_list_hosts"
    assert shell.run("hosts", code).lines == ["alias", "alias"]


def test_the_end_of_a_run_on_the_hosts_of_a_file(shell: Shell) -> None:
    code = "JOBGEN_START_TIME=100 job_walltime_seconds=20; job_find_end; echo $job_ends; job_submit_command"
    assert shell.run("hosts", code).lines == ["120", "bash"]


def test_as_many_nodes_as_the_job_gets(shell: Shell) -> None:
    (shell.folder / "list").write_text("a\na\nb\nc\n")
    code = "job_list_hosts() { cat list; }; job_ranks_per_node=4; job_count_nodes; job_make_hostfile; echo $job_nodes $job_world_size"
    assert shell.run("hostfile", code).lines == ["3 12"]
    assert shell.run("hostfile", f"job_nodes=3 job_world_size=2; {code}").lines == ["3 2"]


RENDEZVOUS = """job_hosts=(a b) job_nodes=2 job_number=1234 job_id=1234.pbs job_attempt=1 job_world_size=4 job_accelerator=cuda
job_launcher_name=mpirun job_save_signal=USR1 job_rank_logs=node job_cpus_per_node=8 job_ranks_per_node=2
"""
PRINT = "job_export; job_rendezvous; env | grep -E '^(MASTER|JOBGEN)_' | sort"


def ports(number: int) -> list[int]:
    """The ports that a job with this number tries, one after the other."""
    return [20000 + (number + 3307 * step) % 10000 for step in range(5)]


def unused(number: int) -> int:
    """Return the first number, from this one on, whose first two ports are free."""
    with contextlib.ExitStack() as servers:
        try:
            for port in ports(number)[:2]:
                servers.enter_context(socket.create_server(("localhost", port)))
        except OSError:
            return unused(number + 1)
    return number


def exported(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_what_the_program_is_told(shell: Shell) -> None:
    number = unused(1234)
    done = shell.run("rendezvous", f"SECONDS=5; umask 027; {RENDEZVOUS} job_number={number}; {PRINT}")
    got = exported(done.out)
    assert abs(int(got.pop("JOBGEN_START_TIME")) + 5 - time.time()) < 5
    assert got.pop("MASTER_PORT") == f"{20000 + number}"
    assert got == {
        "JOBGEN_ACCELERATOR": "cuda",
        "JOBGEN_AGENTS": "",
        "JOBGEN_ATTEMPT": "1",
        "JOBGEN_BIND": "",
        "JOBGEN_CPUS_PER_NODE": "8",
        "JOBGEN_DEVICES_BY_NODE": "",
        "JOBGEN_JOB_ID": "1234.pbs",
        "JOBGEN_LAUNCHER": "mpirun",
        "JOBGEN_LOGS": str(shell.logs),
        "JOBGEN_POLL": "0.5",
        "JOBGEN_BEAT": "10",
        "JOBGEN_RANKS_PER_NODE": "2",
        "JOBGEN_RANK_LOGS": "node",
        "JOBGEN_RUN_DIR": str(shell.run_dir),
        "JOBGEN_SIGNAL": "USR1",
        "JOBGEN_TRAINING": "",
        "JOBGEN_UMASK": "0027",
        "JOBGEN_VISIBLE": "",
        "JOBGEN_WORLD_SIZE": "4",
        "MASTER_ADDR": "a",
    }


def test_what_the_program_is_told_of_more(shell: Shell) -> None:
    more = (
        "job_index=3 job_hang_timeout=60s job_master_port=777 job_nodes=3000 job_remote_commands='srun ssh'"
    )
    more += (
        " job_runs_training_module=yes job_cpu_bind=core job_device_variable=V job_lists_devices_of_nodes=yes"
    )
    got = exported(shell.run("rendezvous", f"{RENDEZVOUS} {more}; {PRINT}").out)
    assert got["JOBGEN_TASK"] == "3"
    assert got["JOBGEN_HANG_TIMEOUT"] == "60s"
    assert (got["MASTER_ADDR"], got["MASTER_PORT"]) == ("a", "777")
    assert got["JOBGEN_POLL"] == "3"
    assert got["JOBGEN_AGENTS"] == "srun ssh"
    assert [got[f"JOBGEN_{name}"] for name in ("TRAINING", "BIND", "VISIBLE", "DEVICES_BY_NODE")] == [
        "yes",
        "core",
        "V",
        "yes",
    ]


@pytest.mark.parametrize(("first", "taken"), [(2345, 1), (8765, 1), (5432, 2)])
def test_a_port_in_use_is_not_replaced_by_that_of_the_next_job(shell: Shell, first: int, taken: int) -> None:
    number = unused(first)
    with contextlib.ExitStack() as servers:
        for port in ports(number)[:taken]:
            servers.enter_context(socket.create_server(("localhost", port)))
        code = f"{RENDEZVOUS} job_number={number}; job_rendezvous; echo $MASTER_PORT"
        chosen = int(shell.run("rendezvous", code).out)
    assert chosen in ports(number)[taken:]


def test_a_port_in_use_at_any_address(shell: Shell) -> None:
    number = unused(4444)
    port = ports(number)[0]
    code = f"{RENDEZVOUS} job_number={number}; job_rendezvous; echo $MASTER_PORT"
    for family, host in ((socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.9")):
        with socket.create_server((host, port), family=family):
            assert int(shell.run("rendezvous", code).out) != port
    assert int(shell.run("rendezvous", code).out) == port


@pytest.mark.parametrize(
    ("address", "endpoint"), [("n1", "n1:777"), ("10.0.0.1", "10.0.0.1:777"), ("fd00::1", "[fd00::1]:777")]
)
def test_the_endpoint_of_an_address(shell: Shell, address: str, endpoint: str) -> None:
    assert shell.run("rendezvous", f"MASTER_ADDR={address} MASTER_PORT=777; job_endpoint").lines == [endpoint]


SPARE = """job_hosts=(a b c) job_needed_nodes=2 job_ranks_per_node=4
job_save_environment() { echo environment; }
"""


def test_spare_nodes_take_the_place_of_bad_ones(shell: Shell) -> None:
    code = (
        SPARE
        + 'job_preflight() { job_bad_hosts=(a); [[ ${job_hosts[0]} != a ]]; }; job_choose_hosts; echo "${job_hosts[*]}"'
    )
    done = shell.run("spare_nodes", code + "; env | grep -E 'MASTER|WORLD' | sort")
    assert done.lines == ["b c", "JOBGEN_WORLD_SIZE=8", "MASTER_ADDR=b"]
    assert done.said == "jobgen: excluding a: the preflight failed there\n"
    assert (shell.run_dir / "hosts").read_text() == "b\nc\n"
    assert (shell.run_dir / "hostfile").read_text() == "b slots=4\nc slots=4\n"
    assert (shell.run_dir / "env.sh").read_text() == "environment\n"
    assert (shell.run_dir / "env.sh").stat().st_mode & 0o077 == 0


def test_a_spare_node_takes_the_place_of_a_first_host_without_the_address(shell: Shell) -> None:
    code = """job_find_address() {
      [[ ${job_hosts[0]} != a ]] || { job_fault='no interface ib0'; return 1; }
      MASTER_ADDR=10.7.0.2
    }
    job_preflight() { echo "preflight at $MASTER_ADDR"; }
    job_choose_hosts; echo "$MASTER_ADDR ${job_hosts[*]}"
    """
    done = shell.run("spare_nodes", SPARE + code)
    assert done.lines == ["preflight at 10.7.0.2", "10.7.0.2 b c"]
    assert done.said == "jobgen: excluding a: no interface ib0\n"
    assert (shell.run_dir / "bad-hosts").read_text() == "a\tno interface ib0\n"


def test_spare_nodes_that_are_not_needed_are_left(shell: Shell) -> None:
    done = shell.run(
        "spare_nodes",
        SPARE
        + 'job_preflight() { echo ${job_hosts[*]} $JOBGEN_WORLD_SIZE; }; job_choose_hosts; echo "${job_hosts[*]}"',
    )
    assert done.lines == ["a b c 12", "a b"]
    assert (shell.run_dir / "hosts").read_text() == "a\nb\n"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("a b", "only 1 hosts are left, but 2 are needed"),
        ("", "the preflight ended with status 3 and names no host"),
    ],
)
def test_too_many_bad_nodes(shell: Shell, bad: str, said: str) -> None:
    code = f'job_status=3; job_preflight() {{ job_bad_hosts=({bad}); return 1; }}; job_choose_hosts || job_die 74 "$job_fault"; echo never'
    done = shell.run("spare_nodes", SPARE + code)
    assert (done.status, done.out) == (74, "")
    assert done.said.endswith(f"jobgen: {said}\n")


def test_all_hosts_are_started_with_a_limit(shell: Shell) -> None:
    """Eight hosts, of which one fails: two at a time, and all are waited for."""
    code = """job_hosts=(h{1..8})
    visit() { echo "begin $1 $2"; sleep 0.3; echo "end $1 $2"; [[ $2 != h3 ]]; }
    job_on_hosts 2 visit at; echo on"""
    done = shell.run("remote_start", code)
    assert done.status == 0
    assert sorted(done.lines[:-1]) == sorted(
        f"{what} at h{i}" for i in range(1, 9) for what in ("begin", "end")
    )
    assert done.lines[-1] == "on"
    under_way = most = 0
    for line in done.lines[:-1]:
        under_way += 1 if line.startswith("begin") else -1
        most = max(most, under_way)
    assert most == 2
