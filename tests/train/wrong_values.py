"""Every key of DeepSpeed's config with values that it may not have, each in a run of two steps of its own, in
one process. wrong_values.py CONFIG OUT: both are JSON, CONFIG the rest of the config, OUT what each case came to
where that is neither a run nor one sentence."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from jobgen.train import data, device, peers, ranks
from jobgen.train.config.deepspeed import keys as deepspeed_keys
from jobgen.train.errors import BadInput
from matrix import numbered_digits, run_case

VALUES: tuple[Any, ...] = ("x", -1, 1.5, True, None, [])


def cases(base: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The config with one key of it changed, by the key and the value."""
    made = {}
    for path in sorted(keys(deepspeed_keys.schema())):
        for value in VALUES:
            config = copy.deepcopy(base)
            block = config
            for part in path[:-1]:
                block = block.setdefault(part, {})
            block[path[-1]] = value
            if path[0] in ("flops_profiler", "comms_logger"):  # which look at their values only then
                config[path[0]] = {"enabled": True, **block}
            made[f"{'.'.join(path)} = {json.dumps(value)}"] = config
    return made


def keys(schema: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """The path of each key of a schema."""
    for one in schema.get("anyOf", [schema]):
        for key, inner in one.get("properties", {}).items():
            yield (key,)
            yield from ((key, *path) for path in keys(inner))


def main() -> None:
    me = ranks.discover(os.environ)
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    torch.set_num_threads(1)
    peers.connect(me, mine)
    whole = numbered_digits()
    few = [data.Split(split.images[:64], split.labels[:64]) for split in whole[:2]]
    samples = whole._replace(train=few[0], test=few[1])
    traces = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        file = Path(folder, "ds.json")
        for name, config in cases(json.loads(Path(sys.argv[1]).read_text())).items():
            file.write_text(json.dumps(config))
            try:
                run_case(["--deepspeed_config", str(file)], samples, me, mine)
            except BadInput as error:
                if "\n" in str(error):
                    traces[name] = str(error)
            except Exception as error:
                traces[name] = repr(error)
    Path(sys.argv[2]).write_text(json.dumps(traces))
    os._exit(0)  # as jobgen.train does


if __name__ == "__main__":
    main()
