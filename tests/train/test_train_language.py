"""Language models: text from files, gpt in every engine, checkpoints, samples, and models of transformers.

The text is Python's own documentation strings.
"""

from __future__ import annotations

import ast
import json
import math
import re
import sysconfig
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support import warm
from support.finished import Finished
from support.require import need_package
from train_support import clean_environment, launch_cases, split, start

pytestmark = pytest.mark.xdist_group("language")  # its tests share trainings, which one worker runs
Results = dict[str, dict[str, Any]]
STAGES = (0, 1, 2, 3)
SMALL = "--layers 2 --width 32 --heads 2 --context 32 --clip 0.5"
TWO = {
    "ddp": "--engine ddp",
    **{f"zero{stage}": f"--zero-stage {stage}" for stage in STAGES},
    "zero3 recompute": "--zero-stage 3 --recompute",
    "ddp recompute": "--engine ddp --recompute",
    "fsdp": "--engine fsdp",
    "fsdp recompute": "--engine fsdp --recompute --accumulation 2 --batch-size 2",
    "fsdp bf16": "--engine fsdp --precision bf16",
    "zero2 bf16": "--zero-stage 2 --precision bf16",
    "zero3 bf16": "--zero-stage 3 --precision bf16",
    "swiglu": "--engine ddp --mlp swiglu",
    "experts": "--experts 2",
    "experts shared": "--experts 2 --expert-parallel 2 --zero-stage 1",
}
PIPELINES = {
    "pipeline": "--engine pipeline --accumulation 2",
    "pipeline zero1": "--engine pipeline --accumulation 2 --zero-stage 1",
    "pipeline recompute": "--engine pipeline --accumulation 2 --recompute",
}
SAME = ("ddp", *(f"zero{stage}" for stage in STAGES), "zero3 recompute", "ddp recompute", *PIPELINES)
FSDP = ("fsdp", "fsdp recompute")


def documentation(characters: int) -> str:
    """The first characters of the documentation strings of Python's library, in the order of its files."""
    found = []
    for file in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
                text := ast.get_docstring(node)
            ):
                found.append(text)
        if sum(map(len, found)) > characters:
            break
    return "\n\n".join(found)[:characters]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("corpus") / "documentation.txt"
    file.write_text(documentation(60_000), encoding="utf-8")
    return file


def launch(cases: dict[str, str], ranks: int, batch: int, folder: Path) -> Results:
    need_package("torch", "deepspeed", "numpy")
    (folder / "text.txt").write_text(documentation(1500), encoding="utf-8")
    common = f"--task text --data {folder / 'text.txt'} {SMALL} --batch-size {batch}"
    return launch_cases(
        "languages.py", split({n: f"{common} {text}" for n, text in cases.items()}), ranks, folder
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    made = launch(TWO, 2, 4, tmp_path_factory.mktemp("two"))
    return made | launch(PIPELINES, 2, 4, tmp_path_factory.mktemp("pipelines"))


def test_every_engine_learns_the_same_on_one_and_two_ranks(results: Results, tmp_path: Path) -> None:
    alone = launch({"ddp": "--engine ddp"}, 1, 8, tmp_path)["ddp"]
    assert len(alone["losses"]) == 6
    assert alone["losses"][0] == pytest.approx(math.log(256), abs=0.05)
    for name in SAME:
        assert results[name]["losses"] == pytest.approx(alone["losses"], rel=1e-4), name
        assert results[name]["norms"] == pytest.approx(alone["norms"], rel=1e-3), name
        assert results[name]["perplexity"] == pytest.approx(alone["perplexity"], rel=1e-4), name
    for name in FSDP:
        assert results[name]["losses"] == pytest.approx(results["ddp"]["losses"], rel=1e-6), name
        assert results[name]["norms"] == pytest.approx(results["ddp"]["norms"], rel=1e-6), name
    for name in ("zero2 bf16", "zero3 bf16", "fsdp bf16"):
        assert results[name]["losses"] == pytest.approx(alone["losses"], rel=0.005), name
        assert results[name]["losses"] != pytest.approx(alone["losses"], rel=1e-5), name
    assert results["zero3 bf16"]["losses"] == pytest.approx(results["zero2 bf16"]["losses"], rel=1e-4)


def test_other_forms_of_the_model_learn(results: Results) -> None:
    for name in ("swiglu", "experts"):
        losses = results[name]["losses"]
        assert losses[-1] < losses[0] - 0.3, name
        assert losses != pytest.approx(results["ddp"]["losses"], rel=1e-4), name
    assert results["experts shared"]["losses"] == pytest.approx(results["experts"]["losses"], rel=1e-4)


def test_no_rank_holds_the_whole_model_at_stage_3(results: Results) -> None:
    whole = results["ddp"]["parameters"]
    assert results["zero2 bf16"]["held"] == whole
    # Half of what is there already, and one layer: the first block, after the embedding.
    block = 12 * 32 * 32 + 2 * 32
    assert results["zero3"]["held"] < whole / 2 + block
    assert results["zero3"]["held"] < whole - block / 2


def test_a_model_of_transformers_is_divided_at_stage_3(tmp_path: Path) -> None:
    import transformers

    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    made = transformers.LlamaConfig(vocab_size=256, max_position_embeddings=64, **sizes)
    made.save_pretrained(tmp_path / "fresh")
    transformers.AutoModelForCausalLM.from_config(made).save_pretrained(tmp_path / "pretrained")
    (tmp_path / "text.txt").write_text(documentation(1500), encoding="utf-8")
    common = f"--task text --data {tmp_path / 'text.txt'} --context 32 --batch-size 4 --lr 0.01"
    cases = {
        f"{name} {engine}": f"{common} --engine {engine} --model hf:{tmp_path / name}"
        for name in ("pretrained", "fresh")
        for engine in ("ddp", "fsdp", "deepspeed --zero-stage 3")
    }
    trained = launch_cases("languages.py", split(cases), 2, tmp_path)
    whole, divided = trained["pretrained ddp"], trained["pretrained deepspeed --zero-stage 3"]
    assert divided["losses"] == pytest.approx(whole["losses"], rel=1e-4)
    assert trained["pretrained fsdp"]["losses"] == pytest.approx(whole["losses"], rel=1e-6)
    assert trained["fresh fsdp"]["losses"] == pytest.approx(trained["fresh ddp"]["losses"], rel=1e-6)
    assert whole["held"] == whole["parameters"]
    assert divided["held"] == pytest.approx(whole["parameters"] / 2, rel=0.01)
    # transformers draws other weights for a model that is divided.
    losses = trained["fresh deepspeed --zero-stage 3"]["losses"]
    assert losses[0] == pytest.approx(trained["fresh ddp"]["losses"][0], abs=0.1)
    assert losses[-1] < losses[0] - 0.5
    assert trained["fresh deepspeed --zero-stage 3"]["held"] == divided["held"]


def options(corpus: Path, *more: str) -> list[str]:
    sizes = "--layers 2 --width 64 --heads 4 --context 32 --global-batch 8 --epochs 2"
    rates = "--lr 0.005 --scheduler warmup-cosine"
    return ["--task", "text", "--data", str(corpus), *sizes.split(), *rates.split(), *more]


@pytest.fixture(scope="module")
def learned(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run of two ranks with a checkpoint, which the tests below share."""
    more = ("--engine", "ddp", "--save-every-epochs", "2", "--peak-tflops", "0.1")
    return start(tmp_path_factory.mktemp("learned"), "warm", options(corpus, *more))


def test_documentation_is_learned(learned: Finished, corpus: Path) -> None:
    assert learned.returncode == 0, learned.stderr
    last = learned.metrics("epoch")[-1]
    shares = [count / 60_000 for count in Counter(corpus.read_bytes()).values()]
    frequencies_alone = math.exp(-sum(share * math.log(share) for share in shares))
    assert last["perplexity"] < 9 < frequencies_alone / 2
    assert last["perplexity"] == pytest.approx(math.exp(last["test_loss"]), rel=1e-3)
    assert f"perplexity {last['perplexity']:.4f}" in learned.stdout


def test_tokens_a_second_and_utilisation(learned: Finished) -> None:
    step = learned.metrics("step")[-1]
    assert step["tokens_per_second"] == pytest.approx(32 * step["samples_per_second"], rel=0.01)
    weights, attention = 256 * 64 + 2 * 12 * 64 * 64 + 5 * 64, 12 * 2 * 64 * 32
    used = step["tokens_per_second"] * (6 * weights + attention) / (2 * 0.1e12)
    assert step["model_flop_utilisation"] == pytest.approx(used, abs=1e-5)
    assert f"{step['tokens_per_second']:.0f} tokens/s MFU {used:.1%}" in learned.stdout


KINDS = ("ddp", "deepspeed --zero-stage 3", "deepspeed --experts 2", "pipeline --accumulation 2")


@pytest.mark.parametrize("engine", KINDS)
def test_killed_resumed_and_exported(engine: str, corpus: Path, tmp_path: Path) -> None:
    """A killed run goes on exactly, and its exported weights have the same perplexity."""
    (tmp_path / "text").mkdir()
    part = tmp_path / "text/part.txt"
    part.write_text(corpus.read_text()[:5_000])
    asked = options(part.parent, "--engine", *engine.split(), "--log-every", "1")
    whole = start(tmp_path / "whole", "warm", asked)
    assert whole.returncode == 0, whole.stderr
    asked += ["--save-every", "5"]
    place = tmp_path / "run"
    killed(
        asked, {**clean_environment(), "JOBGEN_RUN_DIR": str(place)}, place / "checkpoints/latest", tmp_path
    )
    resumed = start(tmp_path, "warm", [*asked, "--resume"])
    assert resumed.returncode == 0, resumed.stderr
    assert "resumes from" in resumed.stdout
    assert resumed.losses() == whole.losses()
    perplexity = resumed.metrics("epoch")[-1]["perplexity"]
    assert perplexity == whole.metrics("epoch")[-1]["perplexity"]
    out = tmp_path / "model.safetensors"
    exported = start(tmp_path, "warm", ["export", str(place), str(out)], ranks=1)
    assert exported.returncode == 0, exported.stderr
    evaluated = start(tmp_path, "warm", ["evaluate", str(out)], ranks=1)
    assert evaluated.returncode == 0, evaluated.stderr
    assert float(evaluated.stdout.split()[-1]) == pytest.approx(perplexity, rel=1e-4)
    both = start(tmp_path, "warm", ["evaluate", str(place)], ranks=2)
    assert both.returncode == 0, both.stderr
    # Two ranks add the losses in another order, which can round the last digit otherwise.
    assert numbers(both.stdout) == pytest.approx(numbers(evaluated.stdout), rel=5e-6)
    ask = ["sample", str(out), "--prompt", "The", "--tokens", "2"]
    assert start(tmp_path, "warm", ask, ranks=1).stdout.startswith("The")


def numbers(line: str) -> list[float]:
    """The loss and the perplexity of "test loss X, perplexity Y"."""
    [found] = re.findall(r"^test loss (\S+), perplexity (\S+)\n$", line)
    return [float(number) for number in found]


def killed(asked: list[str], env: dict[str, str], until: Path, place: Path) -> None:
    """Start two ranks, and kill both when the file `until` is there."""
    with warm.world(asked, env, place, 2) as ranks:
        patience = time.monotonic() + 120
        while not until.exists() and time.monotonic() < patience:
            time.sleep(0.01)
        for rank in ranks:
            rank.kill()
        warm.finish(ranks, 60)


def test_sample_goes_on_with_a_text(learned: Finished, tmp_path: Path) -> None:
    ask = ["sample", str(learned.directory), "--prompt", "Return the", "--tokens", "40", "--seed", "3"]
    first, again = (start(tmp_path, "warm", ask, ranks=1) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("Return the")
    assert len(first.stdout.rstrip("\n").encode()) >= len("Return the") + 20
    assert again.stdout == first.stdout
    certain = start(tmp_path, "warm", [*ask, "--temperature", "0"], ranks=1)
    best = start(tmp_path, "warm", [*ask, "--top-k", "1"], ranks=1)
    assert certain.stdout == best.stdout != first.stdout


def test_explain_counts_the_weights(corpus: Path, tmp_path: Path) -> None:
    asked = ["--task", "text", "--data", str(corpus), "--size", "124m", "--explain-for", "2x4"]
    done = start(tmp_path, "warm", asked, ranks=1)
    weights = 256 * 768 + 12 * (12 * 768 * 768 + 2 * 768) + 768
    assert f"{weights:,} parameters" in done.stdout, done.stderr


@pytest.mark.parametrize(("ranks", "near"), [(1, 0.1), (2, 0.2)])
def test_a_training_takes_the_memory_that_explain_says(ranks: int, near: float, tmp_path: Path) -> None:
    """With few activations, and with a bucket that is small beside the model, as on a GPU."""
    (tmp_path / "text.txt").write_text(documentation(300), encoding="utf-8")
    bucket = 500_000
    zero = {"reduce_bucket_size": bucket, "stage3_prefetch_bucket_size": 0}
    (tmp_path / "ds.json").write_text(json.dumps({"zero_optimization": zero}))
    common = f"--task text --data {tmp_path / 'text.txt'} --layers 8 --width 256 --heads 4 --context 16"
    common += " --batch-size 1 --max-steps 2 --precision bf16"
    cases = {"fsdp": f"{common} --engine fsdp --fused-optimizer torch"}
    for name, stage, kernel in (
        *((f"zero{n}", n, "torch") for n in STAGES),
        *((f"zero{n} plain", n, "none") for n in (1, 3)),
    ):
        more = f"--zero-stage {stage} --fused-optimizer {kernel} --deepspeed_config {tmp_path / 'ds.json'}"
        cases[name] = f"{common} {more}"
    made = launch_cases("peaks.py", split(cases), ranks, tmp_path, BUCKET=str(bucket))
    ratios = {name: each["peak"] / each["expected"] for name, each in made.items()}
    assert ratios == pytest.approx(dict.fromkeys(cases, 1), abs=near)
