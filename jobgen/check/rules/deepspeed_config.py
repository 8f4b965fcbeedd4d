"""Rules about the DeepSpeed config that a script names, if the file can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check import dsconfig
from jobgen.check.dsconfig import contents, find
from jobgen.check.ranks.model import RankGroup, ranks
from jobgen.check.rule import ERROR, rule
from jobgen.errors import nearest
from jobgen.script.deepspeed_config import PARALLEL, batch_fault
from jobgen.script.script import Hit, Script

_GONE = {"elasticity": "0.19.8", "sparse_attention": "0.19.7"}


@rule(
    "config-json",
    ERROR,
    "A DeepSpeed config that is not JSON",
    """The config that the script names is neither JSON nor Hjson, its form with comments, which DeepSpeed
    reads: every rank fails when it reads the file.""",
    fix="correct the file",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config bad.json
    """,
    good="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config good.json
    """,
    files={
        "bad.json": '{"train_batch_size": 32',
        "good.json": '{"train_batch_size": 32,  // global\n}',
    },
)
def not_json(script: Script) -> Iterator[Hit]:
    found = find(script)
    if found and isinstance(found[2], str):
        yield Hit(found[0], f"{found[1]} is not valid JSON: {found[2]}")


@rule(
    "config-batch",
    ERROR,
    "Batch sizes that do not multiply",
    """`train_batch_size` is micro batch x accumulation steps x data-parallel ranks. If all three are given
    and the product differs, `deepspeed.initialize` fails on every rank. The number of ranks comes from
    the request. Scripts with pipeline or tensor parallelism, which divide the ranks, are not checked.""",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config bad.json
    """,
    good="""
    #!/bin/bash
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config good.json
    """,
    files={
        "bad.json": '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1}',
        "good.json": '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2}',
    },
)
def batch(script: Script) -> Iterator[Hit]:
    found = contents(script)
    world = _world(script)
    if not found or not world:
        return
    line, name, config = found
    if fault := batch_fault(name, config, world):
        yield Hit(line, *fault)


def _world(script: Script) -> int | None:
    """Return the number of ranks of the program that reads a config, if the text determines it, and no filter or
    model parallelism divides them."""
    if not script.is_batch or len(script.request.chunks) > 1 or PARALLEL.search(script.tree.text):
        return None
    if own := _OWN_RANKS.search(script.tree.text):
        return int(own[1])
    if any(one.row.filters_devices and one.has("--include", "--exclude") for one in script.launches):
        return None
    reading = [
        one for one in ranks(script) if any(word.startswith(_CONFIGS) for word in one.program.arguments)
    ]
    return _total(script, reading[0]) if len(reading) == 1 else None


_OWN_RANKS = re.compile(r"^job_title='.*?(\d+) ranks? in all", re.MULTILINE)  # of a script of jobgen
_CONFIGS = ("--deepspeed", "--ds_config", "--ds-config")


def _total(script: Script, one: RankGroup) -> int | None:
    """Return the number of ranks of a program; a launcher without their number starts one on each device."""
    request = script.request
    if not one.sets_ranks:
        return one.total if one.chain else None
    nodes = request.nodes or (None if request.ranks else script.dialect.default_nodes)
    each = (
        one.each
        if one.inner is not None and one.inner.has(*one.inner.row.line.local_ranks)
        else request.gpus_per_node
    )
    return nodes * each if nodes and each else None


@rule(
    "config-key",
    ERROR,
    "A key that DeepSpeed ignores",
    """DeepSpeed accepts unknown keys at the top level of its config without a message, and ignores them.""",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config bad.json
    """,
    good="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config good.json
    """,
    files={
        "bad.json": '{"train_batch_size": 32, "gradient_cliping": 1.0}',
        "good.json": '{"train_batch_size": 32, "gradient_clipping": 1.0}',
    },
)
def keys(script: Script) -> Iterator[Hit]:
    if found := contents(script):
        line, name, config = found
        known = dsconfig.keys() - _GONE.keys()
        for key in config:
            if key in _GONE:
                yield Hit(line, f"{name}: DeepSpeed {_GONE[key]} removed the key {key}", "remove it")
            elif key not in known and (hint := nearest(key, known, cutoff=0.75)):
                yield Hit(
                    line,
                    f"{name}: DeepSpeed has no key {key} and ignores it{hint}",
                    "correct the name",
                )
