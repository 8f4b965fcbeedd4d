"""Checkpoints: going on from one is exact, none is ever half, exported weights are the engine's."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from support import warm
from support.require import need_package
from train_support import (
    Finished,
    clean_environment,
    launch_cases,
    module_needs,
    start,
)

module_needs("torch", "deepspeed", "numpy", "sklearn")

import torch  # noqa: E402
from jobgen.train import checkpoints, config  # noqa: E402
from jobgen.train.checkpoints import directory, storage  # noqa: E402
from jobgen.train.errors import BadInput, CommonMistake  # noqa: E402

pytestmark = pytest.mark.xdist_group("checkpoints")  # its tests share trainings, which one worker runs
NOISY = ["--model", "resumes:noisy"]  # dropout and running statistics
BATCH = ["--global-batch", "64"]  # the same for one and two ranks
# One process runs all of them, but for the last: DeepSpeed keeps a pipeline's grid, and autocast's state.
CASES: dict[str, list[str]] = {
    "ddp": ["--engine", "ddp", *NOISY, "--ema", "0.9", "--scheduler", "warmup-cosine"],
    "ddp-plateau": [
        *("--engine", "ddp", *NOISY, "--scheduler", "plateau", "--patience", "0", "--lr", "0.1"),
        *("--epochs", "3", "--max-steps", "13", "--eval-every", "2", "--keep-best", "accuracy"),
    ],
    "ddp-fp16": ["--engine", "ddp", "--precision", "autocast-fp16", "--optimizer", "sgd"],
    "zero0": ["--ema", "0.9", "--scheduler", "cosine", "--scheduler-unit", "epoch"],
    "zero1": ["--zero-stage", "1", *NOISY, "--ema", "0.9"],
    "ddp-augmented": ["--engine", "ddp", "--augment", "crop:2,flip", "--workers", "2", "--accumulation", "2"],
    "zero2-augmented": ["--zero-stage", "2", "--augment", "crop:1,flip", "--scheduler", "warmup-cosine"],
    "zero1-bf16": ["--zero-stage", "1", "--precision", "bf16"],
    "zero2": ["--zero-stage", "2", *NOISY, "--optimizer", "sgd", "--scheduler", "onecycle"],
    "zero2-plateau": [
        *("--zero-stage", "2", *NOISY, "--scheduler", "plateau", "--patience", "0", "--lr", "0.1"),
        *("--max-steps", "13", "--epochs", "3", "--eval-every", "3", "--drop-last"),
    ],
    "zero3": ["--zero-stage", "3", *NOISY],
    "zero3-offload": ["--zero-stage", "3", "--offload", "all", "--accumulation", "2"],
    "pipeline": ["--engine", "pipeline", *NOISY, "--ema", "0.9", "--scheduler", "warmup"],
    "pipeline-augmented": [
        *("--engine", "pipeline", "--augment", "flip", "--accumulation", "2", "--workers", "1"),
        *("--scheduler", "cosine", "--scheduler-unit", "epoch"),
    ],
    "pipeline-bf16": ["--engine", "pipeline", "--precision", "bf16"],  # at ZeRO stage 1
    "pipeline-dp": ["--engine", "pipeline", "--stages", "1", "--zero-stage", "1"],
    "fsdp": ["--engine", "fsdp", *NOISY, "--ema", "0.9", "--scheduler", "warmup-cosine"],
    "fsdp-sgd": ["--engine", "fsdp", "--optimizer", "sgd", "--momentum", "0.9", "--accumulation", "2"],
    "fsdp-ema": ["--engine", "fsdp", "--ema", "0.9", "--zero-stage", "2"],
    "fsdp-fp16": ["--engine", "fsdp", "--precision", "fp16", "--ema", "0.9"],
    **{
        f"{name}-async": [
            *("--engine", name, *NOISY, "--ema", "0.9", "--scheduler", "warmup-cosine", "--async-save")
        ]
        for name in ("ddp", "fsdp")
    },
    "fsdp-bf16": ["--engine", "fsdp", "--precision", "bf16"],
    "moe": ["--model", "moe", "--noisy-gate", "rsample"],
    "moe-ep2": ["--model", "moe", "--expert-parallel", "2", "--zero-stage", "2", "--ema", "0.9"],
    "zero1-fp16": ["--zero-stage", "1", "--precision", "autocast-fp16", "--accumulation", "2"],
}
RESIZED = {
    "ddp-fp16": 1e-3,
    "zero1-fp16": 1e-2,
    "zero2-augmented": 1e-4,
    "zero0": 1e-4,
    "zero1-bf16": 1e-2,
    "zero3-offload": 1e-4,
    "pipeline-dp": 1e-4,
    "fsdp-sgd": 1e-6,
    "fsdp-fp16": 1e-3,
    "fsdp-bf16": 1e-3,
}
REFUSED = {
    "zero2": "supports only adam, adamw and lamb, not sgd",
    "pipeline": "was trained with --stages 2, but this run has --stages 1",
    "moe": "does not contain the experts",
}
ALONE = "zero1-fp16"
Results = dict[str, dict[str, Any]]


def run_cases(names: list[str], ranks: int, folder: Path) -> Results:
    together = [name for name in names if name != ALONE]
    return run_in_one_process(together, ranks, folder) | run_in_one_process([ALONE], ranks, folder)


def run_in_one_process(names: list[str], ranks: int, folder: Path) -> Results:
    cases = {name: [*CASES[name], *BATCH] for name in names}
    return launch_cases("resumes.py", cases, ranks, folder, str(folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("resumes")


@pytest.fixture(scope="module")
def two_ranks(folder: Path) -> Results:
    """Each case, undisturbed and from its checkpoint, on two ranks."""
    return run_cases(list(CASES), 2, folder)


@pytest.fixture(scope="module")
def one_rank(two_ranks: Results, folder: Path) -> Results:
    """The checkpoints of two ranks, gone on with by one."""
    return run_cases([*RESIZED, *REFUSED], 1, folder)


@pytest.mark.parametrize("stop", ["resumed", "later"])
@pytest.mark.parametrize("name", CASES)
def test_going_on_is_exact(name: str, stop: str, two_ranks: Results) -> None:
    whole, resumed = two_ranks[name]["whole"], two_ranks[name][stop]
    after = [row for row in whole["rows"] if row["step"] > (3 if stop == "resumed" else 9)]
    assert len(after) >= (6 if stop == "resumed" else 2)
    assert resumed["rows"] == after  # losses, rates and scores, to the last bit
    assert resumed["logits"] == whole["logits"]
    assert (resumed["scores"], resumed["steps"]) == (whole["scores"], whole["steps"])


@pytest.mark.parametrize("name", [name for name in CASES if name != "moe-ep2"])
def test_exported_weights_are_the_engine_s(name: str, two_ranks: Results) -> None:
    exported, engine = two_ranks[name]["exported"], torch.tensor(two_ranks[name]["resumed"]["logits"])
    half = {"bf16": 0.05, "fp16": 0.01}.get(name.rpartition("-")[2], 0.0)
    # An engine with averaged weights evaluates these.
    ours = torch.tensor(exported.get("ema", exported["plain"]))
    torch.testing.assert_close(ours, engine, rtol=half, atol=half or 1e-6)
    if "ema" in exported:
        assert exported["plain"] != exported["ema"]


def test_experts_of_all_ranks_are_exported(two_ranks: Results, folder: Path) -> None:
    from jobgen.train.checkpoints import whole

    assert "error" not in two_ranks["moe-ep2"]
    both = [
        whole.weights(checkpoints.at(folder / name / "first"), ema=ema)
        for name, ema in (("moe", False), ("moe-ep2", False), ("moe-ep2", True))
    ]
    assert both[0].keys() == both[1].keys() == both[2].keys()
    assert sum(".deepspeed_experts.3." in name for name in both[0]) == 2
    experts = [name for name in both[1] if "deepspeed_experts" in name and name.endswith("weight")]
    assert not any(torch.equal(both[1][name], both[2][name]) for name in experts)


@pytest.mark.parametrize("engine", ["ddp", "fsdp"])
def test_asynchronous_saves_change_nothing(engine: str, two_ranks: Results, folder: Path) -> None:
    from jobgen.train.checkpoints import whole

    assert two_ranks[f"{engine}-async"]["whole"] == two_ranks[engine]["whole"]
    both = [folder / name / "first" / "checkpoints" for name in (engine, f"{engine}-async")]
    assert checkpoints.ids(both[0]) == checkpoints.ids(both[1])
    for name in checkpoints.ids(both[0]):
        for ema in (False, True):
            plain, later = (whole.weights(checkpoints.at(place / name), ema) for place in both)
            assert plain.keys() == later.keys()
            assert all(torch.equal(value, later[key]) for key, value in plain.items()), name


@pytest.mark.parametrize("name", RESIZED)
def test_another_number_of_ranks(name: str, two_ranks: Results, one_rank: Results) -> None:
    resumed = one_rank[name]["resumed"]
    assert resumed["universal"] == (name.startswith(("zero", "pipeline")) and name != "zero0")
    after = [row for row in two_ranks[name]["whole"]["rows"] if row["step"] > 3 and row["event"] == "step"]
    ours = [row for row in resumed["rows"] if row["event"] == "step"]
    assert [(row["step"], row["lr"]) for row in ours] == [(row["step"], row["lr"]) for row in after]
    losses = [row["loss"] for row in after]
    assert [row["loss"] for row in ours] == pytest.approx(losses, rel=RESIZED[name])


def test_more_ranks_than_before(tmp_path: Path) -> None:
    """One rank saves, two go on: --engine fsdp divides the states anew."""
    names = ["fsdp-sgd", "fsdp-ema"]
    one, two = (run_in_one_process(names, ranks, tmp_path) for ranks in (1, 2))
    for name in names:
        before = {row["step"]: row["loss"] for row in one[name]["whole"]["rows"] if row["event"] == "step"}
        after = {row["step"]: row["loss"] for row in two[name]["resumed"]["rows"] if row["event"] == "step"}
        assert after == pytest.approx({step: before[step] for step in after}, rel=1e-6)
        assert max(after) == 10
        scores = one[name]["whole"]["scores"][0], two[name]["resumed"]["scores"][0]
        assert scores[1] == pytest.approx(scores[0], rel=1e-5)


@pytest.mark.parametrize("name", REFUSED)
def test_where_another_number_of_ranks_cannot_work(name: str, one_rank: Results) -> None:
    assert REFUSED[name] in one_rank[name]["error"]


RUN = ["--engine", "ddp", "--epochs", "1", "--save-every", "2", "--keep", "3", "--log-every", "5"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    done = start(tmp_path_factory.mktemp("whole"), "warm", RUN, ranks=1)
    assert done.returncode == 0, done.stderr
    return done


def test_a_killed_run_goes_on_as_if_nothing_had_been(finished: Finished, tmp_path: Path) -> None:
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(tmp_path / "run")}
    place = tmp_path / "run" / "checkpoints"
    for after in (3, 8):  # checkpoints; saving is most of what this run does, so that is where it is hit
        more = ["--resume"] if after > 3 else []
        process = warm.Rank([*RUN, *more], env, tmp_path)
        deadline = time.monotonic() + 120
        while not (place / "latest").exists() or (place / "latest").read_text() < f"step-{2 * after:06d}":
            assert time.monotonic() < deadline
            time.sleep(0.001)
        process.kill()
        process.wait(60)
        found = checkpoints.at(place)
        directory.verify(found.directory, found.record["files"])
    done = start(tmp_path, "warm", [*RUN, "--resume"], ranks=1)
    assert done.returncode == 0, done.stderr
    assert "resumes from" in done.stdout
    keys = ("epoch", "step", "loss", "lr")
    steps, undisturbed = (
        [{key: row[key] for key in keys} for row in each.metrics("step")] for each in (done, finished)
    )
    assert steps == undisturbed  # one file, each step once, the same numbers
    assert done.metrics("epoch")[-1]["test_loss"] == finished.metrics("epoch")[-1]["test_loss"]
    assert len(done.metrics("start")) == 3
    assert sorted(path.name for path in place.iterdir()) == [
        "latest",
        "step-000042",
        "step-000044",
        "step-000045",
    ]


def command(cwd: Path, *words: str) -> Finished:
    return Finished(*warm.run(words, clean_environment(), cwd, 1), cwd)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_export_and_evaluate_from_the_command_line(suffix: str, finished: Finished, tmp_path: Path) -> None:
    if suffix == ".safetensors":
        need_package("safetensors")
    file = tmp_path / f"weights{suffix}"
    done = command(tmp_path, "export", str(finished.directory), str(file))
    assert done.returncode == 0, done.stderr
    engine = "torch" if suffix == ".pt" else "deepspeed"
    done = command(tmp_path, "evaluate", str(file), "--with", engine, "--target-accuracy", "1")
    accuracy = finished.status["accuracy"]
    assert f"accuracy {accuracy:.2%}" in done.stdout
    assert f"test loss {finished.metrics('epoch')[-1]['test_loss']:.6f}" in done.stdout
    per_class = [f"{name} {value:.1%}" for name, value in finished.status["per_class"].items()]
    assert [" ".join(line.split()) for line in done.stdout.splitlines()[:10]] == per_class
    assert done.returncode == 3
    assert done.stderr.count("is below --target-accuracy 100.00%") == 1
    assert finished.status["state"] == "finished"  # another command's status is not this run's


def test_an_accuracy_below_the_target_has_its_own_status(finished: Finished, tmp_path: Path) -> None:
    """A finished run that goes on has nothing left to do but to say how it was."""
    place = str(finished.directory / "checkpoints")
    done = start(tmp_path, "warm", [*RUN[:4], "--resume", place, "--target-accuracy", "0.999"], ranks=1)
    assert done.returncode == 3, done.stderr
    assert (done.status["state"], done.status["exit_status"]) == ("failed", 3)
    assert done.status["accuracy"] == finished.status["accuracy"]
    assert "is below --target-accuracy 99.90%" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_cannot_be_gone_on_from(finished: Finished, tmp_path: Path) -> None:
    place = finished.directory / "checkpoints"
    with pytest.raises(
        BadInput, match=r"no such checkpoint .*; it has .*step-000045 \(did you mean 'step-00004"
    ):
        checkpoints.find("step-000046", place)
    with pytest.raises(BadInput, match="there is no checkpoint in .*: neither checkpoint.json nor latest"):
        checkpoints.find("latest", tmp_path)
    with pytest.raises(CommonMistake, match="--resume: give --checkpoint-dir DIR, or JOBGEN_RUN_DIR"):
        checkpoints.find("latest", None)
    (tmp_path / "latest").write_text("step-000007\n")
    with pytest.raises(BadInput, match="can be used: .*names 'step-000007', which does not exist"):
        checkpoints.at(tmp_path)
    for way in (place, place / "step-000045", finished.directory):
        assert checkpoints.find(str(way), None).directory == place / "step-000045"


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (["--model", "mlp"], "trained with --model cnn, but this run has --model mlp"),
        (["--ema", "0.9"], "trained with no --ema, but this run has --ema 0.9"),
        (["--batch-size", "16"], "trained with --global-batch 32, but this run has --global-batch 16"),
    ],
)
def test_another_run_s_checkpoint(option: list[str], says: str, finished: Finished) -> None:
    from jobgen.train.config import recipe

    found = checkpoints.at(finished.directory)
    how = recipe.resolve(config.parse(["--engine", "ddp", *option]), 1)
    with pytest.raises(CommonMistake, match=says):
        checkpoints.check(found, how, 1)
    assert (
        checkpoints.check(found, recipe.resolve(config.parse(["--engine", "ddp", "--epochs", "9"]), 1), 1)
        is False
    )


def test_damage_is_noticed(tmp_path: Path) -> None:
    written = storage.FileWriter(tmp_path)
    written.save({"weight": torch.arange(1000)}, tmp_path / "model.pt")
    directory.verify(tmp_path, written.entries)
    assert torch.equal(storage.load(tmp_path / "model.pt")["weight"], torch.arange(1000))
    content = bytearray((tmp_path / "model.pt").read_bytes())
    content[-3000] ^= 1
    (tmp_path / "model.pt").write_bytes(content)
    with pytest.raises(BadInput, match="model.pt is damaged: its SHA-256"):
        directory.verify(tmp_path, written.entries)
    (tmp_path / "model.pt").write_bytes(content[:-1])
    with pytest.raises(BadInput, match="model.pt is damaged: it has"):
        directory.verify(tmp_path, written.entries)
    (tmp_path / "model.pt").unlink()
    with pytest.raises(BadInput, match="model.pt cannot be read: No such file"):
        directory.verify(tmp_path, written.entries)


def test_those_saved_last_are_kept(tmp_path: Path) -> None:
    for age, name in enumerate(["step-000020", "step-000010", "step-000008", "step-000030"]):
        (tmp_path / name).mkdir()
        (tmp_path / name / "checkpoint.json").write_text("{}")
        os.utime(tmp_path / name / "checkpoint.json", (1000 - age, 1000 - age))
    (tmp_path / ".step-000040.writing").mkdir()
    checkpoints.prune(tmp_path, 2)
    assert checkpoints.ids(tmp_path) == ["step-000010", "step-000020"]
    assert len(list(tmp_path.iterdir())) == 2


def test_settings_come_back(tmp_path: Path) -> None:
    argv = ["--task", "mnist", "--data", "files", "--augment", "crop:2,flip", "--milestones", "3,6"]
    settings = config.parse([*argv, "--scheduler", "multistep"])
    values = json.loads(json.dumps(config.to_record(settings)))
    back = config.from_record({**values, "an_option_of_later": 1})
    assert back.data == (Path.cwd() / "files",)
    assert (back.augment, back.milestones) == (settings.augment, settings.milestones)
    assert config.to_record(back) == config.to_record(settings)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--keep", "2"], "--keep 2 needs --save-every, --save-every-epochs or --keep-best"),
        (["--no-save", "--save-every", "3"], "--no-save and --save-every 3 contradict each other"),
        (["--keep-best", "test loss"], "'test loss' is not the name of a metric"),
        (["--max-steps", "0"], "'0' is not a whole number of at least 1"),
        (["--patience", "2"], "--patience is for --scheduler plateau, not for none"),
        (["--gamma", "2", "--scheduler", "cosine"], "--gamma is for --scheduler multistep or plateau"),
        (["--scheduler", "plateau", "--scheduler-unit", "epoch"], "whose unit is an evaluation"),
        (["--save-every", "0"], "'0' is not a whole number of at least 1"),
        (["--target-accuracy", "97"], "'97' is not a fraction above 0 and up to 1"),
    ],
)
def test_options_that_cannot_be(argv: list[str], says: str) -> None:
    with pytest.raises(CommonMistake, match=says):
        config.parse(argv)


def test_mistakes_of_the_commands_are_told_in_one_sentence(tmp_path: Path) -> None:
    nothing, file = str(tmp_path / "nothing"), str(tmp_path / "weights.bin")
    (tmp_path / "weights.pt").write_bytes(b"no weights")
    for words, says in (
        (["export", nothing, "out.pt"], "there is no checkpoint in"),
        (["export", nothing, file], "does not end in .pt or .safetensors"),
        (["evaluate", str(tmp_path / "weights.pt")], "which describes weights.pt, cannot be read"),
        (["--resume", "--engine", "ddp"], "--resume: give --checkpoint-dir DIR"),
    ):
        done = command(tmp_path, *words)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
