"""The protocol of tasks: own data, models, losses, metrics and optimizers, in every engine."""

# ruff: noqa: E402 (packages are looked for before they are imported)
from __future__ import annotations

import csv
import functools
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from train_support import launch_cases, module_needs, split, start

module_needs("numpy", "torch", "deepspeed")

import numpy as np
import own_tasks
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jobgen.train import config, data, loss_functions, metrics, trees
from jobgen.train.errors import BadInput, CommonMistake
from support.finished import Finished
from torch.nn import functional

pytestmark = pytest.mark.xdist_group("tasks")  # its tests share trainings, which one worker runs
Results = dict[str, dict[str, Any]]

ENGINES = {
    "ddp": "--engine ddp",
    "zero0": "--zero-stage 0",
    "zero1 bf16": "--zero-stage 1 --precision bf16",
    "zero2": "--zero-stage 2",
    "zero3": "--zero-stage 3",
    "pipeline": "--engine pipeline",
}
TASKS = {
    "regression": "--dataset own_tasks:regression --model own_tasks:linear",
    "pairs": "--dataset own_tasks:pairs --model mlp",
    "words": "--dataset own_tasks:words --model own_tasks:language",
    "tokens": "--dataset own_tasks:words --model own_tasks:language --loss-by token",
    "optimizer": "--dataset own_tasks:regression --model own_tasks:linear --lr 0.02 "
    "--optimizer own_tasks:grouped --scheduler cosine",
}
ALIKE = {  # the words in other forms; each has the losses of `words`
    "mapped": "--dataset own_tasks:mapped --data . --model own_tasks:language",
    "collated": "--dataset own_tasks:collated --model own_tasks:Whole",
    "loaders": "--dataset own_tasks:loaders --model own_tasks:language",
    "objects": "--dataset own_tasks:sentences --model own_tasks:Whole",
    "dicts": "--dataset own_tasks:sentences --model own_tasks:Dicts",
    "own loss": "--dataset own_tasks:words --model own_tasks:language --loss own_tasks:of_tokens",
}
R, S = "--dataset own_tasks:regression", "--dataset own_tasks:sentences"
REFUSED = {
    f"{R} --model own_tasks:wide": "the model returns float32 [8, 2] and the targets are float32 [8]",
    f"{R} --model own_tasks:linear --loss own_tasks:pair_of_losses": "returned float32 [2, 2] for 8 samples",
    f"{R} --model own_tasks:linear --loss-by token": "--loss-by token needs --loss cross_entropy or nll, not mse",
    f"{S} --model own_tasks:Whole --loss-by token --loss model": "--loss-by token needs --loss cross_entropy or",
    f"{R} --model own_tasks:linear --metric perplexity": "needs class indices as targets; they are float32",
    f"{R} --model own_tasks:linear --augment flip": "the inputs of this data set are not images",
    f"{R} --model cnn": "needs images, [channels, height, width]; the inputs of a sample have the shape (3,)",
    f"{R} --model own_tasks:linear --optimizer own_tasks:no_optimizer": "returned str, not a torch.optim",
    f"{R} --model own_tasks:linear --optimizer sgd --betas 0.8,0.9": "--betas is for --optimizer adam, adamw",
    "--dataset own_tasks:uneven --model own_tasks:language": "int64 [8, 6], the targets float32 [9]; each",
    "--dataset own_tasks:unreadable --model own_tasks:language": "train: its first sample cannot be read",
}
REFUSED_BY = {
    "ddp": {f"{R} --model own_tasks:two_inputs": "a model is called as model(inputs), as model(*inputs)"},
    "deepspeed": {f"{S} --model own_tasks:linear": "the inputs are {tokens: int64 [8, 6], labels:"},
    "pipeline": {
        f"{S} --model own_tasks:linear --loss mse": "takes one tensor or a tuple of tensors, not values by name",
        f"{R} --model own_tasks:linear --loss model": "--loss model needs another engine than pipeline",
        f"{R} --model own_tasks:balanced": "does not add auxiliary_loss() of the model",
    },
}
BY_ENGINE = {engine: {**REFUSED, **own} for engine, own in REFUSED_BY.items()}


def launch(cases: dict[str, str], ranks: int, folder: Path) -> Results:
    return launch_cases("tasks.py", split(cases), ranks, folder)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The reference: plain torch on one rank."""
    cases = {name: f"{text} --engine ddp --batch-size 16" for name, text in TASKS.items()}
    streams = ("--loss own_tasks:squared", "--metric own_tasks:worst,mae", "--eval-steps 1")
    cases |= {
        text: f"--dataset own_tasks:stream --model own_tasks:linear --batch-size 16 {text}"
        for text in streams
    }
    return launch(cases, 1, tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("two")
    own_tasks.write(folder)
    by_engine = {f"{task} {name}": f"{TASKS[task]} {ENGINES[name]}" for name in ENGINES for task in TASKS}
    alike = {name: f"{text} --engine ddp" for name, text in ALIKE.items()}
    alike["objects zero3"] = f"{ALIKE['objects']} --zero-stage 3"
    streams = ("--loss own_tasks:squared", "--metric own_tasks:worst,mae", "--eval-steps 1")
    alike |= {text: f"--dataset own_tasks:stream --model own_tasks:linear {text}" for text in streams}
    alike["in order"] = "--dataset own_tasks:in_order --model own_tasks:language"
    alike["balanced"] = f"{R} --model own_tasks:balanced"
    noisy = f"{R} --model own_tasks:noisy"
    alike |= {f"{word} {n}": f"{noisy} --zero-stage {n}" for word in ("tried", "untried") for n in (0, 3)}
    refused = {
        f"{engine}: {text}": f"{text} --engine {engine} --batch-size 8"
        for engine in BY_ENGINE
        for text in BY_ENGINE[engine]
    }
    cases = refused | {name: f"{text} --global-batch 16" for name, text in (alike | by_engine).items()}
    # DeepSpeed keeps a pipeline's grid: the pipelines come last.
    ordered = sorted(cases.items(), key=lambda case: "pipeline" in case[1])
    return launch(dict(ordered), 2, folder)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("task", TASKS)
def test_each_engine_trains_each_task(one: Results, two: Results, task: str, engine: str) -> None:
    near = {"rel": 0.01 if "bf16" in engine else 1e-4, "abs": 2e-3 if "bf16" in engine else 1e-6}
    reference, found = one[task], two[f"{task} {engine}"]
    assert found["losses"] == pytest.approx(reference["losses"], **near)
    assert len(found["losses"]) == 10  # of 70 samples, the last batch of an epoch smaller
    last, wanted = found["epochs"][-1], reference["epochs"][-1]
    for name in wanted.keys() - {"event", "epoch", "step", "seconds", "samples_per_second"}:
        assert last[name] == pytest.approx(wanted[name], **near), name


def test_the_metrics_of_a_task(one: Results) -> None:
    def measured(name: str) -> set[str]:
        return one[name]["epochs"][-1].keys() - {"event", "epoch", "step", "seconds", "samples_per_second"}

    assert measured("regression") == {"train_loss", "test_loss", "mae"}
    assert measured("pairs") == {"train_loss", "test_loss", "accuracy", "mae"}
    assert measured("words") == {"train_loss", "test_loss", "perplexity", "accuracy"}
    assert measured("tokens") == measured("words")
    assert measured("--metric own_tasks:worst,mae") == {"train_loss", "test_loss", "worst", "mae"}


def test_the_first_loss_is_that_of_plain_torch(one: Results) -> None:
    """Mean over the samples of the mean over a sample's tokens, computed here by hand."""
    torch.manual_seed(0)
    model, task = own_tasks.language(), data.load("own_tasks:words", None)
    inputs, targets = task.train.batch(task.train.order(0, 1)[:16])
    assert (inputs.dtype, int(inputs.max()) > 256) == (torch.int64, True)
    by_sample = [functional.cross_entropy(model(inputs)[i], targets[i]).item() for i in range(16)]
    assert one["words"]["losses"][0] == pytest.approx(np.mean(by_sample), rel=1e-6)


def test_a_loss_by_token_is_that_of_plain_torch(one: Results, two: Results) -> None:
    """The mean over all tokens of a step that are not to be ignored, for two steps, computed here by hand."""
    torch.manual_seed(0)
    model, task = own_tasks.language(), data.load("own_tasks:words", None)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    order = task.train.order(0, 1)
    for step in range(2):
        inputs, targets = task.train.batch(order[16 * step : 16 * step + 16])
        assert len(set((targets != -100).sum(1).tolist())) > 1
        loss = functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        assert one["tokens"]["losses"][step] == pytest.approx(loss.item(), rel=1e-6)
        assert two["tokens ddp"]["losses"][step] == pytest.approx(loss.item(), rel=1e-6)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    last = one["tokens"]["epochs"][-1]
    assert math.exp(last["test_loss"]) == pytest.approx(last["perplexity"], rel=1e-5)
    assert one["words"]["losses"][0] != pytest.approx(one["tokens"]["losses"][0], rel=1e-4)


@pytest.mark.parametrize("name", [*ALIKE, "objects zero3"])
def test_the_form_of_the_data_changes_nothing(one: Results, two: Results, name: str) -> None:
    assert two[name]["losses"] == pytest.approx(one["words"]["losses"], rel=1e-5)


@pytest.mark.parametrize(
    "name", ["--loss own_tasks:squared", "--metric own_tasks:worst,mae", "--eval-steps 1"]
)
def test_a_stream_is_the_same_for_any_number_of_ranks(one: Results, two: Results, name: str) -> None:
    assert two[name]["losses"] == pytest.approx(one[name]["losses"], rel=1e-5)
    last, wanted = (each[name]["epochs"][-1] for each in (two, one))
    assert {**last, "seconds": 0, "samples_per_second": 0} == pytest.approx(
        {**wanted, "seconds": 0, "samples_per_second": 0}, rel=1e-5
    )


def test_an_evaluation_of_some_steps_takes_the_first_samples(one: Results) -> None:
    some, every = (one[name]["epochs"][0] for name in ("--eval-steps 1", "--metric own_tasks:worst,mae"))
    assert some["train_loss"] == pytest.approx(every["train_loss"], rel=1e-6)
    assert some["test_loss"] != pytest.approx(every["test_loss"], rel=1e-3)


def test_the_sampler_of_a_loader_is_followed(one: Results, two: Results) -> None:
    assert two["in order"]["losses"][0] != pytest.approx(one["words"]["losses"][0], rel=1e-4)
    task = data.load("own_tasks:in_order", None)
    assert task.train.order(3, 4).tolist() == list(range(70))
    assert task.notes == ("the DataLoader is used without its batch_size, which --batch-size replaces",)


def test_a_sampler_is_the_same_after_a_resume_and_for_the_evaluation() -> None:
    generator = torch.Generator()
    some = torch.utils.data.SubsetRandomSampler([4, 5, 6, 7], generator)
    source = data.dataset_sources.Items(list(range(9)), torch.tensor, some)
    orders = [source.order(0, 1).tolist(), source.order(0, 2).tolist(), source.order(0, 1).tolist()]
    assert orders[0] == orders[2] != orders[1]
    assert sorted(source.indices().tolist()) == [4, 5, 6, 7]
    assert len(source) == 4


def test_the_model_s_auxiliary_loss_is_added(one: Results, two: Results) -> None:
    assert two["balanced"]["losses"][0] == pytest.approx(one["regression"]["losses"][0] + 1, rel=1e-5)


@pytest.mark.parametrize(
    ("engine", "options"), [(engine, text) for engine in BY_ENGINE for text in BY_ENGINE[engine]]
)
def test_what_does_not_fit_is_refused_before_the_first_step(two: Results, engine: str, options: str) -> None:
    found = two[f"{engine}: {options}"]
    assert BY_ENGINE[engine][options] in found.get("error", str(found))


@pytest.mark.parametrize("stage", [0, 3])
def test_the_trial_changes_no_bit(two: Results, stage: int) -> None:
    tried, untried = two[f"tried {stage}"], two[f"untried {stage}"]
    assert tried["losses"] == untried["losses"]
    assert tried["epochs"][-1]["mae"] == untried["epochs"][-1]["mae"]


def test_one_rank_tells_what_does_not_fit(tmp_path: Path) -> None:
    options = ["--dataset", "own_tasks:regression", "--model", "own_tasks:wide", "--batch-size", "8"]
    for engine in ("ddp", "pipeline"):
        done = begin(tmp_path / engine, *options, "--engine", engine)
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("--loss mse does not fit") == 1
        assert "Traceback" not in done.stderr
        assert done.status["exit_status"] == 2


def begin(directory: Path, *options: str, ranks: int = 2) -> Finished:
    """Start a run in a directory with the module of the user."""
    directory.mkdir(exist_ok=True)
    shutil.copy(own_tasks.__file__, directory)
    return start(directory, "warm", options, ranks)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Any:
    options = ["--dataset", "own_tasks:stream", "--model", "own_tasks:linear", "--engine", "ddp"]
    options += ["--batch-size", "8", "--epochs", "2", "--csv", "--save-every", "2", "--log-every", "1"]
    return options, begin(tmp_path_factory.mktemp("watched"), *options)


def test_a_run_without_accuracy_is_reported(watched: Any) -> None:
    _, done = watched
    assert done.returncode == 0, done.stderr
    last = done.metrics("epoch")[-1]
    assert done.status["mae"] == last["mae"]
    assert done.status["message"] == f"mae {last['mae']:.4f} on the test set"
    assert not {"accuracy", "per_class"} & done.status.keys()
    with open(done.directory / "metrics.csv", encoding="utf-8") as stream:
        assert float(list(csv.DictReader(stream))[-1]["mae"]) == last["mae"]
    lines = done.stdout.splitlines()
    assert "epoch  train loss   test loss       mae  samples/s   seconds" in lines
    best = min(row["mae"] for row in done.metrics("epoch"))
    assert any(line.startswith(f"best mae {best:.4f} in epoch") for line in lines)


def test_a_stream_goes_on_exactly(watched: Any, tmp_path: Path) -> None:
    options, whole = watched
    first = whole.directory / "checkpoints" / "step-000002"
    again = begin(tmp_path, *options, "--resume", str(first))
    assert again.returncode == 0, again.stderr
    assert again.losses() == whole.losses()[-len(again.losses()) :]
    assert len(again.losses()) == len(whole.losses()) - 2
    assert again.status["mae"] == whole.status["mae"]


def test_a_target_needs_the_metric(tmp_path: Path) -> None:
    options = ["--dataset", "own_tasks:regression", "--model", "own_tasks:linear"]
    done = begin(tmp_path, *options, "--target-accuracy", "0.5", ranks=1)
    assert done.returncode == 2
    assert "--target-accuracy 0.5 needs --metric accuracy, not mae" in done.stderr


def test_files_stay_mapped_and_samples_are_read_when_needed(tmp_path: Path) -> None:
    own_tasks.write(tmp_path)
    mapped = data.load("own_tasks:mapped", tmp_path)
    assert isinstance(mapped.train.inputs, np.memmap)
    task = data.load("own_tasks:sentences", None)
    own_tasks.READ.clear()
    inputs, targets = task.train.batch(np.array([5, 6]))
    assert own_tasks.READ == {"train": 2}
    assert (inputs["tokens"].shape, targets.shape) == ((2, 6), (2, 6))


def test_an_object_with_batches_is_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    class Batches:
        def __len__(self) -> int:
            return 20

        def batch(self, indices: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
            return indices[:, None].astype(np.float32), {"double": 2.0 * indices}

    monkeypatch.setattr(
        own_tasks, "made", lambda: {"train": Batches(), "test": Batches(), "loss": "mse"}, raising=False
    )
    task = data.load("own_tasks:made", None)
    inputs, targets = task.train.batch(np.array([3, 5]))
    assert (inputs.tolist(), targets["double"].tolist()) == ([[3.0], [5.0]], [6.0, 10.0])
    assert (task.train.shape, task.train.scale, task.metrics) == ((1,), None, ())


def test_small_types_and_trees_reach_the_model_unchanged() -> None:
    tree = {"a": (torch.tensor([300, 301]), [torch.ones(2, 3)]), "b": None}
    half = trees.cast(tree, torch.bfloat16)
    assert half["a"][0].tolist() == [300, 301]
    assert half["a"][1][0].dtype == torch.bfloat16
    assert trees.shapes(half) == "{a: (int64 [2], (bfloat16 [2, 3])), b: None}"
    assert trees.call(lambda a, b: (a, b), tree) == (tree["a"], None)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ({"train": 5}, "train is int; it must be"),
        ({"train": (np.zeros((3, 2)), np.zeros(4))}, "all need the same number of samples"),
        ({"train": (np.zeros((0, 2)), np.zeros(0))}, "all need the same number of samples"),
        ({"train": iter([1])}, "is an iterable data set: give the number of samples"),
        ({"train": iter([1]), "train_samples": 5}, "is an iterator, which ends after one epoch"),
        ({"train": own_tasks.Endless(), "train_samples": True}, "a whole number from 1, not True"),
        ({"train": torch.utils.data.DataLoader([1, 2], batch_size=None)}, "the DataLoader yields batches"),
        ({"train": []}, "train has no samples"),
        ({"trian": 5}, "'trian', which is not one of"),
        ({"std": 2.0}, "returns std, which is for images; here it would have no effect"),
        ({"collate": list}, "returns collate, which is for samples of data sets"),
        ({"train_samples": 9}, "returns train_samples, which is for iterable data sets"),
    ],
)
def test_data_that_do_not_fit_are_refused(
    made: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_tasks, "made", lambda: {**own_tasks.regression(), **made}, raising=False)
    with pytest.raises(BadInput) as error:
        data.load("own_tasks:made", None)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--loss", "mes"], "did you mean 'mse'"),
        (["--metric", "accuracy,perplxity"], "did you mean 'perplexity'"),
        (["--betas", "0.9"], "not two numbers from 0 to below 1"),
        (["--betas", "0.9,1"], "not two numbers from 0 to below 1"),
        (["--optimizer", "own_taks:grouped"], "there is no module 'own_taks'"),
    ],
)
def test_option_mistakes(argv: list[str], says: str) -> None:
    with pytest.raises(CommonMistake, match=says):
        config.parse(argv)


def test_the_options_name_what_there_is() -> None:
    from jobgen.train.config import options

    assert set(options.LOSSES) == {*loss_functions.BY_NAME, loss_functions.OF_THE_MODEL}
    assert set(options.METRICS) == set(metrics.METRICS)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(loss_functions.BY_NAME)),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(0, 2**16),
)
def test_losses_of_parts_add_up(name: str, sizes: list[int], length: int, seed: int) -> None:
    """For any division into micro batches, padded or not, the sums over samples give the mean of all."""
    random = torch.Generator().manual_seed(seed)
    total = sum(sizes)
    outputs = torch.randn(total, length, 7, generator=random)
    outputs = outputs.log_softmax(-1) if name == "nll" else outputs
    targets = torch.randint(0, 7, (total, length), generator=random)
    if name in ("mse", "l1", "bce"):
        targets = functional.one_hot(targets, 7).float()
    loss = loss_functions.build(name)
    parts, begin = 0.0, 0
    for size in sizes:
        rows = torch.arange(begin, begin + size + 2).clamp(max=total - 1)  # two more that do not count
        parts += loss(outputs[rows], targets[rows], size, size + 2).item()
        begin += size
    assert parts == pytest.approx(loss(outputs, targets, total, total).item(), rel=1e-4)
    assert loss(outputs, targets, 0, total).item() == 0


@pytest.mark.parametrize("name", loss_functions.BY_NAME)
@pytest.mark.parametrize("shape", [(6, 4), (6, 3, 4)])
def test_a_loss_by_name_is_the_loss_of_each_sample(name: str, shape: tuple[int, ...]) -> None:
    """Only Objective adds losses: as a function it has the same value, not one that grows with the batch."""
    outputs = torch.linspace(-2, -0.1, math.prod(shape)).view(shape)
    targets = torch.arange(math.prod(shape[:-1])).view(shape[:-1]) % 4
    if name == "bce":
        targets = functional.one_hot(targets, 4).float()
    losses = loss_functions.BY_NAME[name](outputs, targets)
    assert losses.shape == (6,)
    assert losses[0] == loss_functions.BY_NAME[name](outputs[:1], targets[:1])
    by_name = loss_functions.build(name)(outputs, targets, 6, 6)
    assert by_name == losses.sum()
    assert by_name == loss_functions.Objective("fn", loss_functions.BY_NAME[name])(outputs, targets, 6, 6)
    assert by_name.item() == pytest.approx(
        loss_functions.Objective("mean", lambda *pair: loss_functions.BY_NAME[name](*pair).mean())(
            outputs, targets, 6, 6
        ).item()
    )


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_loss_by_name_is_neither_mean_nor_sum(reduction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    smooth = functools.partial(functional.cross_entropy, label_smoothing=0.1, reduction=reduction)
    monkeypatch.setitem(loss_functions.BY_NAME, "smooth", smooth)
    outputs, targets = torch.zeros(6, 4), torch.zeros(6, dtype=torch.int64)
    with pytest.raises(TypeError, match=r"smooth returned float32 \[\], not the losses of 6 samples"):
        loss_functions.build("smooth")(outputs, targets, 6, 6)


def test_perplexity_and_accuracy_leave_out_what_is_ignored() -> None:
    logits = torch.zeros(2, 3, 5)
    logits[..., 1] = 2.0
    targets = torch.tensor([[1, 1, -100], [0, -100, -100]])
    total, count = metrics.METRICS["accuracy"].count(logits, targets)
    assert (int(total), int(count)) == (2, 3)
    metric = metrics.METRICS["perplexity"]
    total, count = metric.count(logits, targets)
    right = math.exp(2) / (4 + math.exp(2))
    assert metric.value(float(total), float(count)) == pytest.approx(
        (right * right * right / math.exp(2)) ** (-1 / 3), rel=1e-5
    )
