"""Rules about the resource request of PBS: chunks of a select, nodes, totals."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.rule import ERROR, NOTE, WARNING, rule
from jobgen.check.script import Hit, Script
from jobgen.schedulers.request import number


def _totals(script: Script) -> dict[str, tuple[int, str]]:
    """Return PBS Pro's -l resources: name to line and value."""
    return {key[3:]: (one.line, one.value) for key, one in script.heeded.items() if one.flag == "-l"}


@rule(
    "select-with-nodes",
    ERROR,
    "select= or place= with nodes=",
    """`select=` and `place=` are the syntax of PBS Pro, `nodes=` is the old one: qsub refuses them together
    ("Cannot be used with select or place").""",
    fix="use select= and place= only",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=8
    #PBS -l place=scatter
    #PBS -l nodes=2
    #PBS -l walltime=01:00:00
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=2:ncpus=8
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    hostname
    """,
    schedulers=("pbspro",),
)
def select_with_nodes(script: Script) -> Iterator[Hit]:
    totals = _totals(script)
    for name in ("select", "place"):
        if name in totals and "nodes" in totals:
            line = max(totals[name][0], totals["nodes"][0])
            yield Hit(line, f"nodes= with {name}= is refused: they are two languages")
            return


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
    for name in ("ncpus", "mem", "ngpus", "mpiprocs"):
        if "select" in totals and name in totals:
            yield Hit(
                max(totals["select"][0], totals[name][0]),
                f"-l {name} beside a select is refused",
                f"say it of each chunk: select=N:{name}={totals[name][1]}",
            )


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
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    hostname
    """,
    schedulers=("pbspro",),
)
def walltime_in_select(script: Script) -> Iterator[Hit]:
    line, select = _totals(script).get("select", (0, ""))
    if match := re.search(r":(walltime|cput)=", select):
        yield Hit(
            line,
            f"{match[1]} belongs to the job, not to a chunk: PBS refuses it",
            f"write -l {match[1]}= on its own",
        )


@rule(
    "torque-gpus",
    ERROR,
    "Torque's gpus= in PBS Pro",
    """`nodes=2:ppn=1:gpus=1` is the syntax of Torque for GPUs. PBS Pro refuses it ("node(s) specification
    error", status 241). The rest of the script decides whether it is for PBS Pro or Torque; `--scheduler
    torque` or `--scheduler pbspro` overrides this.""",
    message="nodes=...:gpus= is Torque's: PBS Pro refuses it (node(s) specification error)",
    fix="write select=2:ncpus=8:ngpus=1; for Torque say --scheduler torque",
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
    "GPUs that are asked for, but not allocated",
    """`nodes=2:ppn=2,ngpus=2` is accepted by PBS Pro, but the GPUs are **not allocated**: the job runs
    beside others on the same cards.""",
    message="ngpus beside nodes= is accepted, but no GPU is allocated",
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
    """`select=2` requests two chunks, not two nodes. Without `place=scatter` PBS may pack both onto one
    host. The node file then lists this host twice, and a launcher that expects two hosts fails. (For
    chunks of the size of a node this is only a note.)""",
    message="without place=scatter PBS packs the chunks: several may share a host, which is then listed again",
    fix="add -l place=scatter",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=4:mpiprocs=2
    #PBS -l walltime=01:00:00
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=2:ncpus=4:mpiprocs=2
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    hostname
    """,
    schedulers=("pbspro",),
)
def packed_chunks(script: Script) -> Iterator[Hit]:
    totals = _totals(script)
    if "select" not in totals or "place" in totals or not script.request.several:
        return
    chunk = script.request.chunks[0]
    cpus, gpus = number(chunk.get("ncpus")), number(chunk.get("ngpus"))
    whole = cpus is None or cpus >= 32 or (gpus or 0) >= 4 or len(script.request.chunks) > 1
    yield Hit(totals["select"][0], level=NOTE if whole else None)


@rule(
    "no-mpiprocs",
    WARNING,
    "GPUs without mpiprocs",
    """The node file has `mpiprocs` lines for each chunk, or one line if `mpiprocs` is not given. An mpirun
    without a number of ranks then starts one rank for each chunk, and all GPUs but one stay idle.""",
    message="without mpiprocs the node file has one line a chunk, so that mpirun starts one rank a chunk",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:ngpus=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd "$PBS_O_WORKDIR"
    mpirun python3 train.py
    """,
    good="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd "$PBS_O_WORKDIR"
    mpirun python3 train.py
    """,
    schedulers=("pbspro",),
)
def no_mpiprocs(script: Script) -> Iterator[Hit]:
    line, select = _totals(script).get("select", (0, ""))
    chunk = script.request.chunks[0] if script.request.chunks else {}
    if not select or "mpiprocs=" in select or (number(chunk.get("ngpus")) or 0) < 2:
        return
    for launch in script.launched("mpirun"):
        told = launch.has("-n", "-np", "--np", "-ppn", "--ppn", "--npernode", "-npernode", "--map-by", "-N")
        if not told and launch.outer is None:
            yield Hit(line, fix=f"add :mpiprocs={chunk['ngpus']} to the select")
            return
