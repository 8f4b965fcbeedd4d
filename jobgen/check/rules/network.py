"""Rules about the network, and about ssh between nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from jobgen.check.ignored_failures import QUERY
from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.check.rules.shell_and_paths import plain_sh
from jobgen.errors import shown
from jobgen.launch.command_line import is_python
from jobgen.script.commands import Command, commands, host_of_ssh
from jobgen.script.launches import Launch
from jobgen.script.loop_input import reads_list
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, expansions, in_background

_EXCLUDING = ("NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME")  # a list of these may begin with ^
_OPEN_MPI = ("btl_tcp_if_include", "oob_tcp_if_include")  # parameters of --mca
_NIC_VARIABLES = (
    *_EXCLUDING,
    *("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"),
    *(f"OMPI_MCA_{name}" for name in _OPEN_MPI),
)
_NIC_SETTING = rf"\b({'|'.join(_NIC_VARIABLES)})=[\"']?([\^=]*[a-z][\w,.=]*)"
_REMEDIES = {
    **dict.fromkeys(_EXCLUDING, "remove it, or exclude the wrong interfaces: ^lo,docker"),
    **dict.fromkeys(
        (name for name in (*_OPEN_MPI, *_NIC_VARIABLES) if name.endswith("_include")),
        "remove it, or exclude the wrong interfaces: btl_tcp_if_exclude lo,docker0",
    ),
}
_EACH_NODE = (
    "remove it, or let each node set the name of its own: ip -o route get ADDRESS prints it after dev"
)


@rule(
    "fixed-interface",
    NOTE,
    "A hand-written network interface",
    """Interface names differ between clusters, and sometimes between nodes of one cluster. NCCL
    fails at its start if no interface has the name, and hangs if one has it, but no route to the other
    nodes. It is safer to exclude wrong interfaces than to name the right one, where the library can: NCCL and
    HCCL read `^lo,docker`, Open MPI has parameters for it, Gloo and TensorPipe take names only. (The names of
    fast networks, such as `ib0` and `hsn0`, are only a note, `lo` in a job of several nodes whose
    ranks connect is an error. A prefix
    without a number, such as `eth`, is no fixed name, and one in a branch of an `if` or a `case` is chosen for its nodes.)""",
    fix="remove it",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    export NCCL_SOCKET_IFNAME=eth0
    srun python3 train.py
    """,
    good={"export NCCL_SOCKET_IFNAME=eth0": ""},
)
def interface(script: Script) -> Iterator[Hit]:
    seen: set[int] = set()
    for line, name, text in _interfaces(script):
        if line not in seen and not text.startswith("^") and not _has_prefix(text):
            seen.add(line)
            local = re.search(r"\b(eth\d|eno\d|ens\d|enp\d|em\d|docker\d)", text)
            if text == "lo":
                reason = f"{name} is lo, the interface within a node: no rank reaches those of other nodes"
                if script.in_job and script.request.several and _is_distributed(script):
                    yield Hit(line, reason, "remove it", ERROR)
                continue
            effect = "a node without it fails at the start, and one where it has no route hangs"
            reason = f"the interface {shown(text)} is written by hand: {effect}"
            yield Hit(line, reason, _REMEDIES.get(name, _EACH_NODE), None if local else NOTE)


def _is_distributed(script: Script) -> bool:
    """Return whether the ranks of a job connect, as far as the text shows it: by a launcher of a framework or of MPI,
    by an address, or as a program of Python and no script with programs of its own."""
    names = {name for name, _, _ in script.assignments} | {name for name, _ in script.expansions}
    programs = (word.text for one in script.launches for word in one.program[:1])
    others = any(not one.row.by_scheduler for one in script.launches)
    return "MASTER_ADDR" in names or others or any(map(is_python, programs))


@rule(
    "interface-list",
    ERROR,
    "A list of interfaces for a library that takes names",
    """Only NCCL, RCCL and HCCL read `^` as names to exclude, and `=` as exact names. Gloo searches an interface
    of this name and fails with "Unable to find address for: ^lo"; Open MPI ignores the name, and has
    `btl_tcp_if_exclude` for it. Gloo connects over every interface of a list: each node must have all of
    them, with a route to the others. TensorPipe takes a single name.""",
    fix="give it one name that all nodes have, or leave it out",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    export GLOO_SOCKET_IFNAME=^lo,docker
    srun python3 train.py
    """,
    good={"export GLOO_SOCKET_IFNAME=^lo,docker": "export NCCL_SOCKET_IFNAME=^lo,docker"},
)
def interface_list(script: Script) -> Iterator[Hit]:
    for line, name, text in dict.fromkeys(_interfaces(script)):
        if name in _EXCLUDING:
            continue
        if text.startswith(("^", "=")) and name in _REMEDIES:
            fix = "use btl_tcp_if_exclude and oob_tcp_if_exclude, which must name lo"
            yield Hit(line, f"Open MPI ignores {shown(text)}, which is no name of an interface", fix, WARNING)
        elif text.startswith(("^", "=")):
            reason = f"{name} takes names of interfaces, not {shown(text)}: the ranks fail at the start"
            yield Hit(line, reason)
        elif "," in text and name not in _REMEDIES:
            needs = (
                "takes one name" if name[:2] == "TP" else "needs every interface of the list on every node"
            )
            yield Hit(line, f"{name} {needs}: {shown(text)}", level=None if name[:2] == "TP" else WARNING)


def _has_prefix(text: str) -> bool:
    """Return whether NCCL reads a part of a list as the beginning of names, such as ``en``."""
    names = text.split(",")
    return not text.startswith("=") and any(re.fullmatch("[a-z]+", one) and one != "lo" for one in names)


_BRANCHES = ("if_statement", "case_statement")


def _interfaces(script: Script) -> Iterator[tuple[int, str, str]]:
    """Yield the interfaces in variables, and in options of ssh, pdsh and mpirun: line, variable or parameter,
    and value."""
    for name, value, node in script.assignments:
        if name in _NIC_VARIABLES and (text := script.constants.value(value)) and not node.under(*_BRANCHES):
            yield node.line, name, text
    for command in script.commands:
        if command.name in ("echo", "printf") or command.node.under(*_BRANCHES):
            continue
        arguments = (one for word in command.arguments for one in script.words_of(word, command))
        words = [(word.line, word.unquoted) for word in arguments]
        for line, text in words:
            yield from ((line, match[1], match[2]) for match in re.finditer(_NIC_SETTING, text))
        for (_, name), (line, text) in pairwise(words):
            if name in (*_OPEN_MPI, *_NIC_VARIABLES) and re.match(r"[\^=]*[a-z]", text):
                yield line, name, text


@rule_once(
    "ssh-between-nodes",
    NOTE,
    "ssh to another node",
    """Many clusters do not allow ssh between the nodes of a job. Where it works, the scheduler does not
    manage the processes that it starts. Use `srun` on Slurm, `pbs_tmrsh` on PBS Pro, `pbsdsh` on Torque. These start a
    program and no shell: several commands need a script. (ssh to the host of the script itself is silent.)""",
    message="many clusters do not allow ssh between nodes, and its processes outlive the job",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    for host in $(scontrol show hostnames); do
      ssh "$host" /opt/site/prepare
    done
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1 /opt/site/prepare
    """,
)
def ssh_nodes(script: Script) -> Iterator[Hit]:
    if not script.is_batch:
        return
    way = f"start it with {script.dialect.scheduler.node_step or 'pbs_tmrsh or pbsdsh'}"
    for command in script.named("ssh", "pdsh", "clush", "parallel-ssh", "pssh"):
        variable = any(word.type != "word" for word in command.arguments)
        elsewhere = command.name == "ssh" and _is_of_no_node(script, command)
        if variable and not elsewhere and not command.node.under("function_definition"):
            words = {word for text in command.literals for word in text.split()}
            reason = "many clusters do not allow ssh between nodes" if words & (QUERY - {"env"}) else ""
            several = _SEVERAL.search(" ".join(script.texts_of(command)[1:]))
            yield Hit.at(command.node, reason, f"{_OF_SEVERAL}{way}" if several else way)
    for launch in script.launches:
        if _starts_by_ssh(launch) and script.request.several:
            reason = f"{launch.title} starts its ranks by ssh, which many clusters do not allow between nodes"
            yield Hit(launch.line, reason, f"{way} on each node, or give --launcher")


# Commands that only a shell runs: ssh starts one for them.
_SEVERAL = re.compile(r"[;&|]|(?:^|\s)(?:cd|source|export|conda activate|module)\s")
_OF_SEVERAL = "write the commands into a script with a first line #!/bin/bash -l, and "


def _is_of_no_node(script: Script, command: Command) -> bool:
    """Return whether ssh runs no command, with -N, also in a variable, or has a host that the text names, or the own one."""
    hosts = (script.values.get(name, ()) for name, _ in expansions(command.node))
    if _OWN_HOST.fullmatch(next((one.text for values in hosts for one in values), "")):
        return True
    values = (one.text for name, _ in expansions(command.node) for one in script.values.get(name, ()))
    words = [*command.literals, *(word for value in values for word in value.strip("\"'").split())]
    if any(re.fullmatch(r"-[A-Za-z]*N", word) for word in words):
        return True
    return bool(host_of_ssh(script.texts_of(command)))


_OWN_HOST = re.compile(
    r"\"?(?:(?:\$\(|`)\s*(?:/bin/)?hostname(?: -\w+)?\s*[)`]|\$\{?(?:HOSTNAME|SLURMD_NODENAME)\}?)\"?"
)


def _starts_by_ssh(launch: Launch) -> bool:
    """Return whether a launcher calls ssh for the hosts of a list: deepspeed through pdsh, and colossalai."""
    row = launch.row
    by_ssh = row.line.reaches_nodes and not row.of_mpi and not row.by_scheduler
    here = launch.has("--launcher", "--no-ssh", "--no-ssh-check", "--node-rank") or launch.outer is not None
    return by_ssh and launch.has("--hostfile", "-H", "--host") and not here and not launch.unknown


@rule(
    "ssh-eats-list",
    WARNING,
    "A command that reads its loop's input",
    """ssh, srun and mpirun read their standard input, which in such a loop is the list of hosts: the first
    iteration reads the rest of it, and the loop ends. In the background they do so, too, if the loop sleeps or waits
    meanwhile: bash gives `/dev/null` to a command with `&` only if the loop has no redirection of its own.""",
    fix="redirect its input: < /dev/null",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=64
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    while read -r host; do
      pbs_tmrsh "$host" /opt/site/prepare
    done < "$PBS_NODEFILE"
    """,
    good={'pbs_tmrsh "$host" /opt/site/prepare': 'pbs_tmrsh "$host" /opt/site/prepare < /dev/null'},
)
def ssh_stdin(script: Script) -> Iterator[Hit]:
    seen: set[int] = set()
    for command in script.named(*_READERS):
        loop = command.node.around("while_statement")
        if loop is None or loop.start in seen or not reads_list(loop):
            continue
        behind = command.background and not in_background(loop)
        if behind and not (_pauses(loop) and _has_redirection(loop) and not plain_sh(script)):
            continue
        own = command.node.parent
        redirected = own is not None and own.type == "redirected_statement" and "<" in own.text
        if not redirected and not re.search(_READERS[command.name], " ".join(command.literals)):
            seen.add(loop.start)
            how, end = (", also in the background", "early") if behind else ("", "after the first host")
            reason = f"{command.name} reads the rest of the loop's input{how}: the loop ends {end}"
            yield Hit.at(command.node, reason)


# The options with which a command does not read its standard input.
_READERS = {
    "ssh": r"(?:^| )-[A-Zafgknqstvxy]*n",
    "srun": r"(?:^| )(?:-i|--input)[= ]?(?:none|\d+|/dev/null)",
    **dict.fromkeys(("mpirun", "mpiexec"), r"(?:^| )(?:--?stdin|-s)[= ]none"),
    "pbs_tmrsh": r"(?!)",
}


def _has_redirection(loop: Node) -> bool:
    """Return whether a loop itself has its input from a file, as ``done < hosts``."""
    whole = loop.child_of("redirected_statement")
    documents = ("heredoc_redirect", "herestring_redirect")
    given = whole.children if whole is not None else []
    return any(one.type in documents or one.text.startswith(("<", "0<")) for one in given)


def _pauses(loop: Node) -> bool:
    """Return whether a loop takes a second or more between two of its lines, in which a command connects to a host."""
    sleeps = (one for one in commands(loop) if one.name in ("sleep", "wait"))
    return any(not re.match(r"0?\.", "".join(one.literals)) for one in sleeps)
