"""Rules about programs that every node of a job starts: the master's address, the node rank and the port."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.ranks.environment import RankEnvironment
from jobgen.check.ranks.launcher_config import launches
from jobgen.check.ranks.model import RankGroup, ranks, step_of_script
from jobgen.check.rule import ERROR, WARNING, rule, rule_once
from jobgen.launch.command_line import is_python
from jobgen.script.launches import Launch
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import LOOPS, Node, expansions
from jobgen.script.word_lists import is_literal_document

_HOSTNAME = r"(?:\\?\$\(|\\?`)\s*(?:/bin/)?(?:hostname(?: -[a-zA-Z-]+)?|uname -n)\b[^)`]*[)`]|\\?\$\{?(?:HOSTNAME|SLURMD_NODENAME)\b\}?"
_OWN_MASTER = rf"(?:MASTER_ADDR=|--master[-_]addr[= ]|--main_process_ip[= ]|--rdzv[-_]endpoint[= ])\\?[\"']?(?:{_HOSTNAME})"
_HAS_HOSTNAME = re.compile(  # a variable with it
    rf"(?m)(?:^|[\s;'\"])(\w+)=\\?[\"']?(?:{_HOSTNAME})(?::[\w\\${{}}]+)?\\?[\"']?\s*(?:;|&|$)"
)
_RANKS = (
    r"\$\{?(SLURM_(PROCID|NODEID|LOCALID)|OMPI_COMM_WORLD_\w*RANK|PMI_RANK|PALS_RANKID|MV2_COMM_WORLD_RANK)\b"
)
_NUMBERED = ("--node-rank", "--machine-rank", "--config-file", "--standalone")
RENDEZVOUS = {
    "torchrun": "add --rdzv-backend=c10d and --rdzv-endpoint, or --node-rank with a value that differs on each node",
    "accelerate": "add --rdzv_backend=c10d, or --machine_rank with a value that differs on each node",
}
_OF_RANK_0 = r"(PROCID|NODEID|RANK|RANKID)\b.{0,9}(==| =|-eq) *[\"']?0"


@rule_once(
    "hostname-master",
    WARNING,
    "Each node uses its own name as the master",
    """`hostname` in a text that every node runs is a different host on each of them: each waits for the others
    at its own address. Determine the address in the batch script, which runs on the first node only, and
    export it.""",
    message="each node runs this, and uses its own name as the master: its ranks wait for those of the other nodes, which wait elsewhere",
    fix="set MASTER_ADDR in the batch script, above the launcher, and export it",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun bash -c 'export MASTER_ADDR=$(hostname) RANK=$SLURM_PROCID; exec python3 train.py'
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_ADDR=$(hostname)
    export MASTER_ADDR
    srun bash -c 'export RANK=$SLURM_PROCID; exec python3 train.py'
    """,
)
def hostname_master(script: Script) -> Iterator[Hit]:
    if script.in_job and not script.request.several:
        return
    for node in _run_by_all(script):
        names = "|".join(_HAS_HOSTNAME.findall(node.text))
        own = rf"(?:--master[-_]addr|--main_process_ip|--rdzv[-_]endpoint)[= ]\\?[\"']?\$\{{?(?:{names})\b"
        match = re.search(_OWN_MASTER, node.text) or (re.search(own, node.text) if names else None)
        if match and not re.search(_OF_RANK_0, node.text) and "scontrol" not in node.text:
            yield Hit(node.line + node.text[: match.start()].count("\n"))


def _run_by_all(script: Script) -> Iterator[Node]:
    """Yield the texts that every node of the job runs."""
    if not script.runs_once:
        outer = step_of_script(script)
        if (outer is not None and _is_for_all(outer)) or re.search(_RANKS, script.tree.text):
            yield script.tree  # a script that srun or mpirun starts
        return
    inner = [one for one in script.launches if one.outer is not None and one.outer.row.line.reaches_nodes]
    lines = {one.line for one in inner if one.outer is not None and _is_for_all(one.outer)}
    for node in script.tree.all("heredoc_body"):
        own = range(node.line, node.line + 1 + node.text.count("\n"))
        if (is_literal_document(node) and lines.intersection(own)) or re.search(_RANKS, node.text):
            yield node
    for launch in script.launches:
        if launch.outer is None and launch.row.line.reaches_nodes and _is_for_all(launch):
            words = [script.constants.origin(word) for word in launch.program]
            yield from (word for word in words if word.type == "raw_string")
            yield from (one for word in words for one in script.functions_named(word.text))
            yield from (word for word in words if word.type == "string" and "\\" in word.text)


def _is_for_all(launch: Launch) -> bool:
    one = launch.number("-n", "--ntasks", "-N", "--nodes", "-np") == 1
    return not one and not launch.has("-w", "--nodelist", "-host", "--host")


@rule_once(
    "missing-node-rank",
    ERROR,
    "No node rank on several nodes",
    """Without a rendezvous backend torchrun and accelerate take the static one, and 0 for a node rank that is
    not given (`torch/distributed/run.py`): every node believes to be the first one, and the rendezvous fails
    or hangs.""",
    fix=RENDEZVOUS["torchrun"],
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_ADDR=$(hostname)
    srun torchrun --nnodes=2 --nproc-per-node=4 --master-addr="$MASTER_ADDR" train.py
    """,
    good={
        'srun torchrun --nnodes=2 --nproc-per-node=4 --master-addr="$MASTER_ADDR" train.py': 'srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:0" train.py'
    },
)
def missing_node_rank(script: Script) -> Iterator[Hit]:
    for launch in _on_each_node(script):
        if not is_numbered(launch):
            effect = "each node waits for the ranks of the others, which never come"
            reason = f"{launch.title} runs on each node as node 0, without a node rank or a rendezvous backend: {effect}"
            yield Hit(launch.line, reason, RENDEZVOUS.get(launch.kind, ""))


def _on_each_node(script: Script) -> Iterator[Launch]:
    """Yield the launchers of a job of several nodes that something starts on each of them."""
    around = script.starter.script.tree.text if script.starter is not None else ""
    if not script.request.several or "PET_" in script.tree.text + around:  # variables of torchrun's options
        return
    for launch in launches(script):
        line, outer = launch.row.line, launch.outer
        if line.reaches_nodes or not line.nodes or not _on_all(launch):
            continue
        by_ssh = outer is None and launch.remote and script.only(launch)
        reaches = outer is not None and outer.row.line.reaches_nodes and not outer.unknown
        if by_ssh or (reaches and outer is not None and _is_for_all(outer)):
            yield launch


@rule_once(
    "missing-master",
    ERROR,
    "No address of the master",
    """torchrun does not read MASTER_ADDR. Without `--master-addr` the static rendezvous is at 127.0.0.1, and without
    `--rdzv-endpoint` the backend c10d is at localhost, whatever `--master-addr` says
    (`torch/distributed/run.py`, `torch/distributed/elastic/rendezvous/utils.py`): each node waits for the others
    at its own address. (A warning is a Python file beside the script that srun or mpirun start without a MASTER_ADDR: its
    init_process_group reads it.)""",
    fix="add --rdzv-backend=c10d and --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_ADDR=$(hostname)
    srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --master-addr="$MASTER_ADDR" train.py
    """,
    good={
        'srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --master-addr="$MASTER_ADDR" train.py': 'srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:0" train.py'
    },
)
def missing_master(script: Script) -> Iterator[Hit]:
    for launch in _on_each_node(script):
        backend = launch.options.get("--rdzv-backend", "static")
        option = {"static": "--master-addr", "c10d": "--rdzv-endpoint"}.get(backend or "")
        meets = "--rdzv-endpoint" in launch.row.line.from_script and option and is_numbered(launch)
        if meets and not (launch.unknown or launch.has(option or "", "--rdzv-endpoint", "--standalone")):
            host = "127.0.0.1" if backend == "static" else "localhost"
            effect = f"waits for the ranks of the others at {host}, its own address"
            yield Hit(
                launch.line,
                f"{launch.title} has no {option}: each of the {script.request.nodes} nodes {effect}",
            )
    environment = RankEnvironment.of(script)
    if environment.is_open or "--container-image" in script.tree.text or not script.is_batch:
        return  # pyxis sets it in the containers of PyTorch
    for one in ranks(script):
        if one.outer is not None and not one.sets_ranks and _lacks_address(script, one):
            reason = f"nothing sets MASTER_ADDR, which init_process_group in {one.program.file} reads: it fails in each rank"
            fix = "above the launcher, export MASTER_ADDR=$(hostname) and a MASTER_PORT"
            yield Hit(one.line, reason, fix, WARNING)


def _lacks_address(script: Script, one: RankGroup) -> bool:
    """Return whether ranks of torch.distributed meet at an address that neither the script nor the program sets."""
    source, words = one.program.source, one.program.arguments
    if source is None or one.total in (None, 1) or one.program.frameworks != {"torch"}:
        return False
    starts = words[0] if words else ""  # not a script, which may set it
    if not is_python(os.path.basename(starts)) and not starts.endswith(".py"):
        return False
    if one.text is not None and re.search(r"\bsource\b|\.sh\b|(^|;)\s*\.\s", one.text.unquoted):
        return False
    calls = re.search(r"\binit_process_group\(", source.text)
    ways = r"init_method\s*=(?!\s*[\"']env:)|(tcp|file)://|[\"']mpi[\"']|MASTER_|store\s*=|\bspawn\("
    other = re.search(ways, source.text)
    return calls is not None and other is None and source.is_plain and "MASTER_ADDR" not in script.tree.text


@rule_once(
    "serial-nodes",
    WARNING,
    "Nodes that are started one after the other",
    """The ranks of a node end only when those of all nodes have met. A loop without `&` starts those of the second
    node when those of the first have ended: the first ones wait until the rendezvous times out.""",
    message="the loop waits for the ranks of the first node, and these wait for those of the other nodes",
    fix="put each in the background with &, and wait for it behind the loop",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    rank=0
    for host in $(scontrol show hostnames); do
        srun --nodes=1 --ntasks=1 --nodelist="$host" torchrun --nnodes="$SLURM_NNODES" --nproc-per-node=4 \\
            --node-rank="$rank" --master-addr="$HOSTNAME" train.py
        rank=$((rank + 1))
    done
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    rank=0
    for host in $(scontrol show hostnames); do
        srun --nodes=1 --ntasks=1 --nodelist="$host" torchrun --nnodes="$SLURM_NNODES" --nproc-per-node=4 \\
            --node-rank="$rank" --master-addr="$HOSTNAME" train.py &
        rank=$((rank + 1))
    done
    for pid in $(jobs -p); do
        wait "$pid"
    done
    """,
)
def serial_nodes(script: Script) -> Iterator[Hit]:
    for launch in script.launches:
        loop = launch.command.node.around(*LOOPS)
        number = launch.place("--node-rank", "--machine-rank")
        names = {name for name, _ in expansions(number)} if number is not None else set()
        elsewhere = launch.remote or (launch.outer is not None and launch.outer.has("-w", "--nodelist"))
        if loop is None or not names or not elsewhere or not _on_all(launch):
            continue
        if re.search(r"(?<![&>])&(?![&>\d])", loop.text):
            continue
        changed = re.findall(r"\bfor\s+(\w+)|\b(\w+)\+?=|\(\(\s*(\w+)|(\w+)\+\+", loop.text)
        if names & {name for groups in changed for name in groups}:
            yield Hit(launch.line)


def is_numbered(launch: Launch) -> bool:
    """Return whether a launcher may have an option that makes the nodes differ."""
    static = launch.options.get("--rdzv-backend", "static") == "static"
    return bool(launch.unknown) or launch.has(*_NUMBERED) or not static


def _on_all(launch: Launch) -> bool:
    """Return whether a launcher is given more than one node."""
    given = [launch.options[name] for name in launch.row.line.nodes if name in launch.options]
    return bool(given) and given[0] != "1"


@rule(
    "used-port",
    WARNING,
    "A port from the list of ports in use",
    """`ss` and `netstat` list the ports that are in use. A number out of their output is a port that another
    process has. Compute the port from the job's id, or remove the used ones from the free ones:
    `comm -23 <(seq 20000 29999) USED`.""",
    message="the number comes from the list of ports in use: another process has this port",
    fix="compute it from the job id: MASTER_PORT=$((20000 + JOBID % 10000))",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_PORT=$(ss -tan | awk '{print $4}' | cut -d: -f2 | grep '^[2-9]...$' | sort -u | shuf -n 1)
    export MASTER_PORT
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
    srun python3 train.py
    """,
)
def used_port(script: Script) -> Iterator[Hit]:
    for command in script.named("ss", "netstat", "lsof"):
        around = command.node.around("command_substitution")
        others = around.text if around else ""
        picks = re.search(r"\|\s*(shuf|sort -R|head -n? ?1|tail -n? ?1)\b", others)
        if picks and not re.search(r"\b(comm|seq|wc|diff|while|until|python3?)\b|<\(|:\$|-v -?f", others):
            named = around.parent.text.partition("=")[0] if around and around.parent else ""
            if re.search(r"port", named, re.I) and _is_read(script, named):
                yield Hit(command.line)


def _is_read(script: Script, name: str) -> bool:
    """Return whether the script uses or exports a variable."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    exported = (one.text for one in script.tree.all("declaration_command"))
    return any(map(word.search, exported)) or any(name == one for one, _ in script.expansions)
