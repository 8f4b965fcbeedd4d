"""Losses on the device beside those of plain fp32 on the CPU, and killed runs that are resumed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from jobgen.train.config.language import SIZES

from benchmarks.gpu import ours
from benchmarks.gpu.ours import Here
from benchmarks.gpu.rows import Row

STEPS, BATCH = 8, 32
CONTEXT, VOCABULARY = 64, 512
EXACT = "--matmul-precision highest"
# Options of each case and the largest relative difference of a loss.
CASES = {
    f"--engine ddp {EXACT} --deterministic": 1e-4,
    f"--engine ddp {EXACT} --fused-optimizer none": 1e-4,
    "--engine ddp": 1e-2,  # TF32 on a GPU
    "--engine ddp --precision autocast": 3e-2,
    "--engine ddp --precision autocast-fp16": 3e-2,
    f"--engine ddp {EXACT} --channels-last on": 1e-4,
    f"--engine ddp {EXACT} --compile": 1e-3,
    **{f"--zero-stage {stage} {EXACT}": 1e-4 for stage in range(4)},
    **{f"--zero-stage {stage} --precision bf16": 5e-2 for stage in (1, 3)},
    f"--zero-stage 2 --offload optimizer {EXACT}": 1e-4,
    f"--engine fsdp {EXACT}": 1e-4,
    "--engine fsdp --precision bf16": 5e-2,
}
MODELS = {
    "conv net": [*ours.IMAGES, "--model", "cnn"],
    "small GPT": ours.language(SIZES["tiny"]._replace(context=CONTEXT, layers=2)),
}
SAVE_EVERY = 4
RESUMED = (
    "--engine ddp --precision autocast",
    "--engine fsdp --precision bf16",
    "--engine deepspeed --zero-stage 2 --precision bf16",
)
ON_CPU = {"JOBGEN_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": ""}
RUN = "--dataset benchmarks.gpu.data:images --epochs 2 --batch-size 64 --log-every 1 --deterministic"
RUN += f" --save-every {SAVE_EVERY} --augment crop,flip"


def correctness(here: Here, tiny: bool, size: str) -> Iterator[Row]:
    """Compare losses while other processes are killed and resumed."""
    resumable = RESUMED[: 1 if tiny else None if find_spec("deepspeed") else 2]
    words = [f"{RUN} --model {'lenet' if tiny else 'resnet18'} {case}".split() for case in resumable]
    cases = [case for case in CASES if "zero" not in case or find_spec("deepspeed")]
    program, env = [sys.executable, "-m", "benchmarks.gpu.correctness"], {**here.env, **ON_CPU}
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor() as pool,
        subprocess.Popen(program, env=env, stdout=subprocess.PIPE, text=True) as reference,
    ):
        places = [Path(folder, str(number)) for number in range(len(words))]
        runs = pool.map(resumed, resumable, words, places, [here.env] * len(words))
        few = [cases[0], *cases[6:7], *cases[10:11]]
        yield from losses(here, few if tiny else cases, lambda: reference.communicate()[0])
        yield from runs


def losses(here: Here, cases: list[str], reference: Callable[[], str]) -> Iterator[Row]:
    """Compare the losses of each case with those that the reference prints in its last line."""
    expected: dict[str, list[float]] = {}
    for case, model in product(cases, MODELS):
        what = f"{model}, {case}"
        try:
            found = trained(model, case.split(), here)
        except Exception as error:  # one case must not hide the others
            text = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
            yield Row("losses", what, text, verdict="wrong")
            continue
        expected = expected or json.loads(reference().splitlines()[-1])
        pairs = zip(found, expected[model], strict=True)
        away, limit = max(abs(a - b) / abs(b) for a, b in pairs), CASES[case]
        verdict = "ok" if away <= limit else "wrong"
        yield Row("losses", what, away, "relative", None, f"CPU in fp32, at most {limit:g}", verdict)


def trained(model: str, options: list[str], here: Here) -> list[float]:
    """Return the losses of STEPS steps with these options."""
    count = STEPS * BATCH
    task = ours.images(count).task()
    if "GPT" in model:
        task = ours.text(ours.tokens(count, CONTEXT, VOCABULARY), count, CONTEXT, VOCABULARY)
    fixed = f"--batch-size {BATCH} --log-every 1 --lr 0.0005 --epochs 1".split()
    training = ours.Ours([*MODELS[model], *options, *fixed], task, here)
    training.rounds()
    ours.forget(here)
    return training.losses()


def resumed(case: str, options: list[str], folder: Path, env: dict[str, str]) -> Row:
    """Kill a run after a checkpoint and resume it: its losses must be those of a whole run."""
    whole = start(folder / "whole", options, env)
    step = killed(folder / "killed", options, env)
    for process in (whole, start(folder / "killed", [*options, "--resume"], env)):
        output = process.communicate()[0]
        if process.returncode:
            return Row("resume", case, (output.splitlines() or ["no message"])[-1][:300], verdict="wrong")
    expected, found = (reported(folder / run) for run in ("whole", "killed"))
    differ = sum(found.get(step) != loss for step, loss in expected.items())
    against, verdict = f"of {len(expected)} losses; killed at step {step}", "wrong" if differ else "ok"
    return Row("resume", case, float(differ), "different", None, against, verdict)


def start(run: Path, options: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "jobgen.train", *options]
    env = {**env, "JOBGEN_RUN_DIR": str(run)}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def killed(run: Path, options: list[str], env: dict[str, str]) -> int:
    """Start a run and kill it after its second checkpoint. Return the last step that it has reported."""
    latest = run / "checkpoints" / "latest"
    with start(run, options, env) as process:
        while process.poll() is None:
            if latest.exists() and latest.read_text().strip() >= f"step-{2 * SAVE_EVERY:06d}":
                process.kill()
            time.sleep(0.01)
    return max(reported(run), default=0)


def reported(run: Path) -> dict[int, float]:
    """Return the losses by step. The last line of a killed run may end in the middle."""
    file = run / "metrics.jsonl"
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines if line.endswith("\n")]
    return {row["step"]: row["loss"] for row in rows if row["event"] == "step"}


if __name__ == "__main__":  # the losses of every model in plain fp32 on the CPU
    cpu = ours.alone()
    plain = ["--engine", "ddp", "--fused-optimizer", "none"]
    print(json.dumps({model: trained(model, plain, cpu) for model in MODELS}), flush=True)
    os._exit(0)
