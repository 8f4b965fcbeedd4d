"""Rules about the resource request of PBS: chunks of a select, nodes, totals."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.ranks.model import A_NODE
from jobgen.check.rule import ERROR, WARNING, rule, rule_once
from jobgen.schedulers.pbs import IN_CHUNKS
from jobgen.script.script import Hit, Script
from jobgen.values.parsers import number


def _totals(script: Script) -> dict[str, tuple[int, str]]:
    """Return PBS Pro's -l resources: name to line and value."""
    return {key[3:]: (one.line, one.value) for key, one in script.heeded.items() if one.flag == "-l"}


@rule_once(
    "select-with-nodes",
    ERROR,
    "select= or place= with nodes=",
    """`nodes=` is the old syntax of `select=` and `place=`: qsub refuses them together ("Cannot be used with
    select or place").""",
    fix="use select= and place= only",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=8
    #PBS -l place=scatter
    #PBS -l nodes=2
    #PBS -l walltime=01:00:00
    hostname
    """,
    good={"#PBS -l nodes=2": ""},
    schedulers=("pbspro",),
)
def select_with_nodes(script: Script) -> Iterator[Hit]:
    totals = _totals(script)
    for name in ("select", "place"):
        if name in totals and "nodes" in totals:
            line = max(totals[name][0], totals["nodes"][0])
            yield Hit(line, f"qsub refuses nodes= together with {name}=")


@rule(
    "select-with-totals",
    ERROR,
    "select= with a total of the job",
    """`-l ncpus=`, `-l mem=` and `-l ngpus=` count for the whole job, `select=` for each chunk: qsub
    refuses them together.""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l mem=64gb
    #PBS -l walltime=01:00:00
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8:mem=64gb
    #PBS -l walltime=01:00:00
    hostname
    """,
    schedulers=("pbspro",),
)
def select_with_totals(script: Script) -> Iterator[Hit]:
    totals = _totals(script)
    for name in IN_CHUNKS:
        if "select" in totals and name in totals:
            reason = f"qsub refuses -l {name} together with select="
            fix = f"request it for each chunk: select=N:{name}={totals[name][1]}"
            yield Hit(max(totals["select"][0], totals[name][0]), reason, fix)


@rule(
    "walltime-in-select",
    ERROR,
    "walltime inside select=",
    """A chunk has no time limit, the job has one: qsub refuses `walltime` inside `select=`.""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8:walltime=01:00:00
    #PBS -l walltime=01:00:00
    hostname
    """,
    good={"#PBS -l select=1:ncpus=8:walltime=01:00:00": "#PBS -l select=1:ncpus=8"},
    schedulers=("pbspro",),
)
def walltime_in_select(script: Script) -> Iterator[Hit]:
    line, select = _totals(script).get("select", (0, ""))
    if match := re.search(r":(walltime|cput)=", select):
        reason = f"{match[1]} is a limit of the job, not of a chunk: PBS refuses it"
        yield Hit(line, reason, f"write -l {match[1]}= on its own")


@rule(
    "torque-gpus",
    ERROR,
    "Torque's gpus= in PBS Pro",
    """`nodes=2:ppn=1:gpus=1` is the syntax of Torque for GPUs. PBS Pro refuses it ("node(s) specification
    error", status 241). The rest of the script decides whether it is for PBS Pro or Torque; `--scheduler
    torque` or `--scheduler pbspro` overrides this.""",
    message="nodes=...:gpus= is the syntax of Torque: PBS Pro refuses it (node(s) specification error)",
    fix="write select=2:ncpus=8:ngpus=1; for Torque use --scheduler torque",
    bad="""
    #!/bin/bash
    #PBS -l nodes=2:ppn=1:gpus=1
    #PBS -l walltime=01:00:00
    #PBS -J 0-9
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=2:ncpus=1:ngpus=1
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    #PBS -J 0-9
    hostname
    """,
    schedulers=("pbspro",),
)
def torque_gpus(script: Script) -> Iterator[Hit]:
    line, nodes = _totals(script).get("nodes", (0, ""))
    if re.search(r":gpus=", nodes):
        yield Hit(line)


@rule(
    "unallocated-gpus",
    ERROR,
    "GPUs requested, but not allocated",
    """PBS Pro accepts `nodes=2:ppn=2,ngpus=2`, but does **not** allocate the GPUs: the job shares them with
    other jobs.""",
    message="PBS Pro accepts ngpus together with nodes=, but allocates no GPU",
    fix="write select=2:ncpus=8:ngpus=4",
    bad="""
    #!/bin/bash
    #PBS -l nodes=2:ppn=2,ngpus=2
    #PBS -l walltime=01:00:00
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=2:ncpus=2:ngpus=2
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    hostname
    """,
    schedulers=("pbspro",),
)
def unallocated_gpus(script: Script) -> Iterator[Hit]:
    totals = _totals(script)
    if "nodes" in totals and "ngpus" in totals:
        yield Hit(totals["ngpus"][0])


@rule(
    "packed-chunks",
    WARNING,
    "Chunks that may share a host",
    """`select=2` requests two chunks, not two nodes. Without `place=scatter` PBS may allocate both on one
    host. The node file then lists this host twice, and a launcher that expects two hosts fails. (It is
    silent if no launcher is told a number of nodes or of ranks on a node, about chunks that name their `host=` or `vnode=` or
    have the size of a node, and about a number alone, as in `select=2`: it is for sites whose chunks are whole nodes.)""",
    message="without place=scatter several chunks may share a host, which the node file lists once a chunk",
    fix="add -l place=scatter",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=4:mpiprocs=2
    #PBS -l walltime=01:00:00
    set -euo pipefail
    # jobgen: disable=repeated-count
    mpirun -n 4 -ppn 2 /opt/site/solver
    """,
    good="""
    #!/bin/bash
    #PBS -l select=2:ncpus=4:mpiprocs=2
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    # jobgen: disable=repeated-count
    mpirun -n 4 -ppn 2 /opt/site/solver
    """,
    schedulers=("pbspro",),
)
def packed_chunks(script: Script) -> Iterator[Hit]:
    totals = _totals(script)
    if "select" not in totals or "place" in totals or not script.request.several:
        return
    if re.search(r":(host|vnode|model)=", totals["select"][1]) or re.fullmatch(r"\d+", totals["select"][1]):
        return
    chunk = script.request.chunks[0]
    cpus, gpus = number(chunk.get("ncpus")), number(chunk.get("ngpus"))
    whole = cpus is None or cpus >= 32 or (gpus or 0) >= 4 or len(script.request.chunks) > 1
    # The launchers that need a host of its own for each chunk.
    placed = any(one.row.once_a_node or one.has(*A_NODE, "--map-by") for one in script.launches)
    if placed and not whole:
        yield Hit(totals["select"][0])


@rule_once(
    "no-mpiprocs",
    WARNING,
    "GPUs without mpiprocs",
    """The node file has `mpiprocs` lines for each chunk, or one line if `mpiprocs` is not given. An mpirun
    without a number of ranks then starts one rank for each chunk, and all GPUs but one stay idle.""",
    message="without mpiprocs the node file has one line a chunk, and mpirun starts one rank a chunk",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:ngpus=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    export OMP_NUM_THREADS=8
    cd "$PBS_O_WORKDIR"
    mpirun python3 train.py
    """,
    good={"#PBS -l select=2:ncpus=32:ngpus=4": "#PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4"},
    schedulers=("pbspro",),
)
def no_mpiprocs(script: Script) -> Iterator[Hit]:
    line, select = _totals(script).get("select", (0, ""))
    chunk = script.request.chunks[0] if script.request.chunks else {}
    if not select or "mpiprocs=" in select or (number(chunk.get("ngpus")) or 0) < 2:
        return
    once = {id(inner.outer) for inner in script.launches if inner.row.once_a_node}
    for launch in script.launched("mpirun"):
        has_counts = launch.has(
            "-n", "-np", "--np", "-ppn", "--ppn", "--npernode", "-npernode", "--map-by", "-N"
        )
        if not has_counts and id(launch) not in once and launch.outer is None:
            yield Hit(line, fix=f"add :mpiprocs={chunk['ngpus']} to the select")
