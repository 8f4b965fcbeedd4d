"""Part losses: the losses of the first steps on the device, beside those of plain fp32 on the CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.gpu import ours
from benchmarks.gpu.rows import Row

STEPS, BATCH = 8, 32
EXACT = ("--matmul-precision", "highest")
# Options of each case and the largest relative difference of a loss.
CASES: dict[str, tuple[list[str], float]] = {
    "ddp, fp32": (["--engine", "ddp", *EXACT, "--deterministic"], 1e-4),
    "ddp, fp32, plain optimizer": (["--engine", "ddp", *EXACT, "--fused-optimizer", "none"], 1e-4),
    "ddp, default (TF32 on a GPU)": (["--engine", "ddp"], 1e-2),
    "ddp, autocast to bf16": (["--engine", "ddp", "--precision", "autocast"], 3e-2),
    "ddp, fp16 with loss scaling": (["--engine", "ddp", "--precision", "autocast-fp16"], 3e-2),
    "ddp, channels_last": (["--engine", "ddp", *EXACT, "--channels-last", "on"], 1e-4),
    "ddp, compiled": (["--engine", "ddp", *EXACT, "--compile"], 1e-3),
}
DEEPSPEED: dict[str, tuple[list[str], float]] = {
    **{f"ZeRO {stage}, fp32": (["--zero-stage", str(stage), *EXACT], 1e-4) for stage in range(4)},
    **{
        f"ZeRO {stage}, bf16": (["--zero-stage", str(stage), "--precision", "bf16"], 5e-2) for stage in (1, 3)
    },
    "ZeRO 2, states on the host": (["--zero-stage", "2", "--offload", "optimizer", *EXACT], 1e-4),
}
TINY = ("ddp, fp32", "ddp, compiled", "ZeRO 3, fp32")
CONTEXT, VOCABULARY = 64, 512
MODELS = {
    "conv net": [*ours.IMAGES, "--model", "cnn"],
    "small GPT": ours.language("tiny", "--context", str(CONTEXT), "--layers", "2"),
}


def rows(name: str, device: str, tiny: bool) -> Iterator[Row]:
    program = [sys.executable, "-m", "benchmarks.gpu.losses"]
    env = {**ours.os.environ, "JOBGEN_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(program, env=env, stdout=subprocess.PIPE, text=True) as reference:
        me, mine = ours.alone()
        cases = CASES | (DEEPSPEED if ours.importable("deepspeed") else {})
        expected = json.loads(reference.communicate()[0].splitlines()[-1])
    if tiny:
        cases = {case: cases[case] for case in TINY if case in cases}
    for case, (options, tolerance) in cases.items():
        for model, chosen in MODELS.items():
            what = f"{model}, {case}"
            try:
                found = losses([*chosen, *options], model, me, mine)
            except Exception as error:  # one case must not hide the others
                said = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
                yield Row(name, what, said, verdict="wrong")
                continue
            yield compared(name, what, found, expected[model], tolerance)
    if not ours.importable("deepspeed"):
        yield Row(name, "ZeRO", "deepspeed cannot be imported", verdict="left out")


def compared(name: str, what: str, found: list[float], expected: list[float], tolerance: float) -> Row:
    away = max(abs(a - b) / abs(b) for a, b in zip(found, expected, strict=True))
    verdict = "ok" if away <= tolerance else "wrong"
    return Row(name, what, away, "relative", None, f"CPU in fp32, at most {tolerance:g}", verdict)


def losses(options: list[str], model: str, me: ours.ranks.Ranks, mine: ours.Device) -> list[float]:
    """Return the losses of STEPS steps with these options."""
    count = STEPS * BATCH
    task = ours.images(count).task()
    if "GPT" in model:
        task = ours.text(ours.tokens(count, CONTEXT, VOCABULARY), count, CONTEXT, VOCABULARY)
    fixed = ["--batch-size", str(BATCH), "--log-every", "1", "--lr", "0.0005"]
    training = ours.Ours([*options, *fixed], task, me, mine)
    training.epoch()
    found = training.losses()
    del training
    ours.forget(mine)
    return found


def main() -> None:
    """Print the losses of every model in plain fp32 on the CPU."""
    me, mine = ours.alone()
    plain = ["--engine", "ddp", "--fused-optimizer", "none"]
    print(json.dumps({name: losses([*chosen, *plain], name, me, mine) for name, chosen in MODELS.items()}))
    sys.stdout.flush()
    ours.os._exit(0)


if __name__ == "__main__":
    main()
