"""Rules about the DeepSpeed config that a script names, if the file can be read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from jobgen.check.ranks.model import RankGroup, ranks
from jobgen.check.rule import ERROR, WARNING, rule
from jobgen.errors import nearest
from jobgen.script.deepspeed_config import PARALLEL, batch_fault, file_in, read
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import literal
from jobgen.script.written_files import made

_GONE = {"elasticity": "0.19.8", "sparse_attention": "0.19.7"}
_TESTED = ("adam", "adamw", "lamb", "adagrad", "lion", "muon")
_ONE_BIT = ("onebitadam", "onebitlamb", "zerooneadam")


@lru_cache(maxsize=4)  # several rules read the same config
def _find(script: Script) -> tuple[int, str, Any] | None:
    """Return the line that names a config, its name, and its content: the JSON value, or the error text."""
    for lines, words in _command_lines(script):
        if (named := file_in(words)) and (path := script.path(named[1])):
            if os.path.normpath(named[1]) in map(os.path.normpath, made(script)):
                return None  # the script writes it
            return lines[named[0]], named[1], read(path)
    return None


def _command_lines(script: Script) -> Iterator[tuple[list[int], Sequence[str | None]]]:
    """Yield the words of each command, and of each program in the code of ranks, with their lines."""
    for command in script.commands:
        yield [word.line for word in command.arguments], [literal(word) for word in command.arguments]
    for one in ranks(script):
        yield [one.line] * len(one.program.words), one.program.words


def _contents(script: Script) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the line that names a config, its name, and its content, if that is an object of JSON."""
    found = _find(script)
    if found and isinstance(found[2], dict):
        yield found


def _block(config: dict[str, Any], name: str) -> dict[str, Any]:
    block = config.get(name)
    return block if isinstance(block, dict) else {}


def _is_on(config: dict[str, Any], name: str) -> bool:
    return _block(config, name).get("enabled") is True


def _zero_stage(config: dict[str, Any]) -> int:
    stage = _block(config, "zero_optimization").get("stage", 0)
    return stage if isinstance(stage, int) else 0


# The scripts of these rules, which differ in the files.
_WITH_BAD_FILE = """
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config bad.json
    """
_WITH_GOOD_FILE = {
    "deepspeed train.py --deepspeed_config bad.json": "deepspeed train.py --deepspeed_config good.json"
}


@rule(
    "config-json",
    ERROR,
    "A DeepSpeed config that is not JSON",
    """The config that the script names is neither JSON nor Hjson, its form with comments, which DeepSpeed
    reads: every rank fails when it reads the file.""",
    fix="correct the file",
    bad=_WITH_BAD_FILE,
    good=_WITH_GOOD_FILE,
    files={"bad.json": '{"train_batch_size": 32', "good.json": '{"train_batch_size": 32,  // global\n}'},
)
def not_json(script: Script) -> Iterator[Hit]:
    found = _find(script)
    if found and isinstance(found[2], str):
        yield Hit(found[0], f"{found[1]} is not valid JSON: {found[2]}")


@rule(
    "config-batch",
    ERROR,
    "Batch sizes that do not multiply",
    """`train_batch_size` is micro batch x accumulation steps x data-parallel ranks. If all three are given
    and the product differs, `deepspeed.initialize` fails on every rank. The number of ranks comes from
    the request. Scripts with pipeline or tensor parallelism, which divide the ranks, are not checked.""",
    bad=_WITH_BAD_FILE.replace("node=1", "node=4"),
    good=_WITH_GOOD_FILE,
    files={
        "bad.json": '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1}',
        "good.json": '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2}',
    },
)
def batch(script: Script) -> Iterator[Hit]:
    for line, name, config in _contents(script):
        world = _world(script)
        if world and (fault := batch_fault(name, config, world)):
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
        one
        for one in ranks(script)
        if any(word.startswith(_CONFIGS) for word in one.program.arguments)
        or (one.inner is not None and one.inner.has("--deepspeed-config-file"))
    ]
    return _total(script, reading[0]) if len(reading) == 1 else None


_OWN_RANKS = re.compile(r"^job_title='.*?(\d+) ranks? in all", re.MULTILINE)  # of a script of jobgen
_CONFIGS = ("--deepspeed", "--ds_config", "--ds-config")


def _total(script: Script, one: RankGroup) -> int | None:
    """Return the number of ranks of a program; a launcher without their number starts one on each device."""
    request = script.request
    if not one.sets_ranks:
        return one.total if one.chain else None
    if one.inner is not None and (total := one.inner.number("--num-processes")):
        return total
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
    bad=_WITH_BAD_FILE,
    good=_WITH_GOOD_FILE,
    files={
        "bad.json": '{"train_batch_size": 32, "gradient_cliping": 1.0}',
        "good.json": '{"train_batch_size": 32, "gradient_clipping": 1.0}',
    },
)
def keys(script: Script) -> Iterator[Hit]:
    for line, name, config in _contents(script):
        known = _known_keys() - _GONE.keys()
        for key in config:
            if key in _GONE:
                yield Hit(line, f"{name}: DeepSpeed {_GONE[key]} removed the key {key}", "remove it")
            elif key not in known and (hint := nearest(key, known, cutoff=0.75)):
                reason = f"{name}: DeepSpeed has no key {key} and ignores it{hint}"
                yield Hit(line, reason, "correct the name")


def _known_keys() -> frozenset[str]:
    """Return the top-level keys of DeepSpeed's config, which ignores any other key without a message."""
    import json
    from importlib.resources import files

    schema = json.loads((files("jobgen.train") / "config/deepspeed/schema.json").read_text(encoding="utf-8"))
    return frozenset((*schema["properties"], *schema["removed"]))


@rule(
    "config-precision",
    ERROR,
    "Precisions that exclude each other",
    """fp16 and bf16 exclude each other. At ZeRO stage 0, fp16 never scales the loss but unscales the
    gradients (DeepSpeed 0.18.9 to 0.19.8): a warning.""",
    bad=_WITH_BAD_FILE,
    good=_WITH_GOOD_FILE,
    files={
        "bad.json": '{"train_batch_size": 32, "fp16": {"enabled": true}, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}',
        "good.json": '{"train_batch_size": 32, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}',
    },
)
def precisions(script: Script) -> Iterator[Hit]:
    for line, name, config in _contents(script):
        half = _is_on(config, "fp16")
        if half and (_is_on(config, "bf16") or _is_on(config, "bfloat16")):
            yield Hit(line, f"{name}: fp16 and bf16 are both enabled", "disable one of them")
        if half and _zero_stage(config) == 0:
            reason = f"{name}: fp16 at ZeRO stage 0 unscales the gradients, but never scales the loss"
            yield Hit(line, reason, "set zero_optimization.stage to 1, or use bf16", WARNING)


@rule(
    "config-amp",
    ERROR,
    "AMP with ZeRO or another precision",
    """AMP cannot be combined with fp16, bf16 or ZeRO.""",
    fix="keep one of them",
    bad=_WITH_BAD_FILE,
    good=_WITH_GOOD_FILE,
    files={
        "bad.json": '{"train_batch_size": 32, "amp": {"enabled": true, "opt_level": "O1"}, "zero_optimization": {"stage": 2}}',
        "good.json": '{"train_batch_size": 32, "amp": {"enabled": true, "opt_level": "O1"}}',
    },
)
def amp(script: Script) -> Iterator[Hit]:
    for line, name, config in _contents(script):
        others = [key for key in ("fp16", "bf16") if _is_on(config, key)]
        others += ["ZeRO"] if _zero_stage(config) else []
        if _is_on(config, "amp") and others:
            yield Hit(line, f"{name}: amp cannot be combined with {others[0]}")


@rule(
    "config-pipeline",
    ERROR,
    "ZeRO 2 or 3 with a pipeline",
    """A pipeline splits the gradients by time, ZeRO 2 and 3 split them by parameters: DeepSpeed refuses
    both together. A pipeline works with ZeRO 0 and 1.""",
    fix="set zero_optimization.stage to 1",
    bad=_WITH_BAD_FILE.replace("node=1", "node=4"),
    good=_WITH_GOOD_FILE,
    files={
        "bad.json": '{"train_batch_size": 32, "pipeline": {"stages": 2}, "zero_optimization": {"stage": 2}}',
        "good.json": '{"train_batch_size": 32, "pipeline": {"stages": 2}, "zero_optimization": {"stage": 1}}',
    },
)
def pipeline(script: Script) -> Iterator[Hit]:
    for line, name, config in _contents(script):
        stages = _block(config, "pipeline").get("stages")
        if isinstance(stages, int) and stages > 1 and _zero_stage(config) > 1:
            yield Hit(line, f"{name}: a pipeline supports ZeRO stages 0 and 1, not {_zero_stage(config)}")


@rule(
    "config-optimizer",
    ERROR,
    "An optimizer that ZeRO refuses",
    """With ZeRO, DeepSpeed refuses optimizers that it has not tested, such as SGD, unless
    `zero_allow_untested_optimizer` is true. The 1-bit optimizers were removed in 0.19.7.""",
    bad=_WITH_BAD_FILE,
    good=_WITH_GOOD_FILE,
    files={
        "bad.json": '{"train_batch_size": 32, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 1}}',
        "good.json": '{"train_batch_size": 32, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": true}',
    },
)
def optimizer(script: Script) -> Iterator[Hit]:
    for line, name, config in _contents(script):
        kind = str(_block(config, "optimizer").get("type", "")).lower()
        tested = kind in ("", *_TESTED) or config.get("zero_allow_untested_optimizer")
        if kind in _ONE_BIT:
            yield Hit(line, f"{name}: DeepSpeed 0.19.7 removed the 1-bit optimizers", "use Adam")
        elif _zero_stage(config) and not tested:
            reason = f"{name}: DeepSpeed refuses {kind} with ZeRO, because it is untested"
            yield Hit(line, reason, 'add "zero_allow_untested_optimizer": true')
