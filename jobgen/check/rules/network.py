"""Rules about networks: interfaces, ports, downloads, ssh."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.bash import Node, literal
from jobgen.check.rule import NOTE, WARNING, Rule
from jobgen.check.script import Hit, Script
from jobgen.errors import shown

_NIC_VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
# The ports of tutorials and defaults, which other jobs use, too.
_USUAL_PORTS = {
    *range(29400, 29411),
    *range(29500, 29511),
    6000,
    6001,
    1234,
    12345,
    12355,
    8888,
    9901,
    10000,
    12340,
    23456,
    60000,
}
_USUAL_PORTS -= {23456}
_DOWNLOADS = {
    "pip": ("install", "download"), "pip3": ("install", "download"), "conda": ("install", "create", "update"),
    "mamba": ("install", "create"), "git": ("clone", "pull", "fetch"), "wget": (), "curl": (),
    "huggingface-cli": ("download",), "hf": ("download",), "apt-get": ("install",), "apt": ("install",),
    "uv": ("pip", "sync"),
}  # fmt: skip


def interface(script: Script) -> Iterator[Hit]:
    for name, value, node in script.assignments:
        text = literal(value) or ""
        if name in _NIC_VARIABLES and text:
            local = re.search(r"\b(eth\d|eno\d|ens\d|enp\d|em\d|docker\d|lo\b)", text)
            yield Hit(
                node.line,
                f"the interface {shown(text)} is written by hand: a node that calls it otherwise hangs "
                "at the first collective",
                "leave it out, or exclude what is wrong: ^lo,docker",
                None if local and not text.startswith("^") else NOTE,
            )


def fixed_port(script: Script) -> Iterator[Hit]:
    found = [(node.line, literal(value)) for name, value, node in script.assignments if name == "MASTER_PORT"]
    for launch in script.launches:
        for option in ("--master-port", "--main-process-port"):
            node = launch.nodes.get(option)
            if node is not None and (text := literal(node)) is not None:
                found.append((launch.line, text.rpartition("=")[2]))
        endpoint = launch.options.get("--rdzv-endpoint") or ""
        if endpoint.rpartition(":")[2].isdigit() and script.request.several:
            found.append((launch.line, endpoint.rpartition(":")[2]))
        elif (node := launch.nodes.get("--rdzv-endpoint")) is not None and (
            match := re.search(r":(\d{4,5})\"?$", node.text)
        ):
            found.append((launch.line, match[1]))
    seen: set[str] = set()
    for line, port in found:
        if (
            port
            and port.isdigit()
            and port != "0"
            and script.is_batch
            and not script.request.exclusive
            and port not in seen
        ):
            seen.add(port)
            yield Hit(
                line,
                f"the port {port} is fixed: a second job on the same node meets this one, or cannot start",
                "take it from the job id: MASTER_PORT=$((20000 + JOBID % 10000))",
                None if int(port) in _USUAL_PORTS else NOTE,
            )


def download(script: Script) -> Iterator[Hit]:
    if not script.is_batch:
        return
    for command in script.commands:
        verbs = _DOWNLOADS.get(command.name)
        words = command.literals
        if command.name in ("python", "python3") and words[:2] == ["-m", "pip"]:
            verbs, words = ("install", "download"), words[2:]
        if verbs is None or "--no-index" in words or (verbs and not set(words) & set(verbs)):
            continue
        if not verbs and not any(
            word.text.strip("\"'").startswith(("http", "ftp")) for word in command.arguments
        ):
            continue
        yield Hit(
            command.line,
            f"{command.name} needs the internet, which many compute nodes do not have, on time that the "
            "GPUs wait",
            "do it on the login node, before the job",
        )
        return


def _is_ssh(node: Node) -> bool:
    return not node.under("function_definition")


def ssh_nodes(script: Script) -> Iterator[Hit]:
    for command in script.named("ssh"):
        if (
            script.is_batch
            and any(word.type != "word" for word in command.arguments)
            and _is_ssh(command.node)
        ):
            way = "srun" if script.scheduler == "slurm" else "pbs_tmrsh or pbsdsh"
            yield Hit(
                command.line,
                "many clusters allow no ssh between nodes, and what it starts outlives the job",
                f"start it with {way}",
            )
            return


def ssh_stdin(script: Script) -> Iterator[Hit]:
    """Yield a hit for ``while read host; do ssh $host ...; done < hosts``: it ends after the first host."""
    for command in script.named("ssh", "srun", "mpirun", "mpiexec", "pbs_tmrsh"):
        loop = next((above for above in command.node.above() if above.type == "while_statement"), None)
        if loop is None or command.background or {"-n", "--input=none", "-nf", "-fn"} & set(command.literals):
            continue
        reads = any(node.text == "read" for node in loop.all("command_name"))
        own = command.node.parent
        if reads and not (own is not None and own.type == "redirected_statement" and "<" in own.text):
            yield Hit(
                command.line,
                f"{command.name} reads the rest of the list that the loop reads: only the first host "
                "gets its turn",
                "give it no input: < /dev/null",
            )


RULES = (
    Rule("fixed-interface", WARNING, "A network interface by its name", interface),
    Rule("fixed-port", WARNING, "A fixed port", fixed_port),
    Rule("download-in-job", WARNING, "Downloads inside the job", download),
    Rule("ssh-between-nodes", NOTE, "ssh to another node", ssh_nodes),
    Rule("ssh-eats-list", WARNING, "A command that reads its loop's input", ssh_stdin),
)
