"""Fine-tuning: LoRA in each engine against loops by hand, kills, exports, weights to start from."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.finished import Finished
from test_train_language import documentation, killed
from train_support import clean_environment, launch_cases, module_needs, start

module_needs("torch", "deepspeed", "numpy", "transformers", "tokenizers", "peft", "safetensors")

import torch  # noqa: E402
from jobgen.train import checkpoints, config  # noqa: E402
from jobgen.train.checkpoints import foreign, initial, whole  # noqa: E402
from jobgen.train.commands import export  # noqa: E402
from jobgen.train.config import finetuning  # noqa: E402
from jobgen.train.errors import BadInput, CommonMistake  # noqa: E402
from jobgen.train.models import lora, selection  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from torch import nn  # noqa: E402

pytestmark = pytest.mark.xdist_group("finetuning")  # its tests share models and trainings
MODELS = ("gpt2", "llama", "qwen2")
ENGINES = {
    "ddp": "--engine ddp",
    "fsdp": "--engine fsdp",
    **{f"zero{stage}": f"--zero-stage {stage}" for stage in range(4)},
}
STEPS = 4
HALF = 1e-4  # measured: 6e-5, relative, of the losses in bf16


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with text.txt, tok.json and small models with random weights in several files."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    folder = tmp_path_factory.mktemp("models")
    (folder / "text.txt").write_text(documentation(6000), encoding="utf-8")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([documentation(20_000)], trainer)
    tokenizer.save(str(folder / "tok.json"))
    common = {"vocab_size": tokenizer.get_vocab_size(), "bos_token_id": 0, "eos_token_id": 0}
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"num_key_value_heads": 2, "max_position_embeddings": 64, **common}
    dropouts = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0)
    configs = {
        "gpt2": transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=64, **dropouts, **common),
        "llama": transformers.LlamaConfig(**sizes),
        "qwen2": transformers.Qwen2Config(**sizes, tie_word_embeddings=True),
    }
    for name, made in configs.items():
        torch.manual_seed(1)
        model = transformers.AutoModelForCausalLM.from_config(made)
        model.save_pretrained(folder / name, max_shard_size="20KB")
        shutil.copy(folder / "tok.json", folder / name / "tokenizer.json")
        assert len(list((folder / name).glob("*.safetensors"))) > 3
    return folder


def options(place: Path, *more: str, model: str = "gpt2") -> list[str]:
    text = ["--task", "text", "--data", f"{place / 'text.txt'}", "--tokenizer", f"{place / 'tok.json'}"]
    sizes = f"--context 32 --lr 0.01 --clip 0.5 --epochs 1 --max-steps {STEPS} --global-batch 8"
    return [*text, *sizes.split(), "--model", f"hf:{place / model}", *more]


def test_each_engine_and_a_loop_by_hand_have_the_same_losses(place: Path, tmp_path: Path) -> None:
    cases: dict[str, list[str]] = {}
    for model in MODELS:
        for name, engine in ENGINES.items():
            cases[f"{model} lora {name}"] = options(place, *engine.split(), "--lora", "4", model=model)
        for name in ("ddp", "fsdp", "zero3"):
            more = [*ENGINES[name].split(), "--recompute", "--attention", "eager"]
            cases[f"{model} all {name}"] = options(place, *ENGINES[name].split(), model=model)
            cases[f"{model} lora {name} recompute"] = options(place, *more, "--lora", "4", model=model)
        half = ["--zero-stage", "2", "--precision", "bf16", "--lora", "4"]
        cases[f"{model} lora zero2 bf16"] = options(place, *half, model=model)
    ours = launch_cases("languages.py", cases, 2, tmp_path)
    files = {"text": str(place / "text.txt"), "tokenizer": str(place / "tok.json"), "steps": STEPS}
    by_hand = {
        f"{model} {kind}": {**files, "model": str(place / model), "lora": rank}
        for model in MODELS
        for kind, rank in (("lora", 4), ("all", None))
    }
    (tmp_path / "hand").mkdir()
    hand = launch_cases("finetunes.py", by_hand, 1, tmp_path / "hand")
    for name, made in ours.items():
        expected = hand[" ".join(name.split()[:2])]
        assert len(made["losses"]) == STEPS, made
        assert made["losses"] == pytest.approx(expected, rel=HALF if "bf16" in name else 1e-6), name
    assert hand["llama lora"] != pytest.approx(hand["llama all"], rel=1e-3)


@pytest.fixture(scope="module")
def tuned(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run with --lora of two ranks, from a copy of a base that a test below changes."""
    folder = tmp_path_factory.mktemp("tuned")
    shutil.copytree(place / "gpt2", folder / "base")
    asked = [*options(place)[:-1], f"hf:{folder / 'base'}", *["--lora", "4", "--lora-dropout", "0.1"]]
    done = start(folder, "warm", [*asked, "--zero-stage", "2", "--save-every", "2"])
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("engine", ["ddp", "fsdp", "deepspeed --zero-stage 3"])
def test_a_killed_run_goes_on_exactly(engine: str, place: Path, tmp_path: Path) -> None:
    asked = options(place, "--engine", *engine.split(), "--log-every", "1", "--ema", "0.9")
    asked += [
        "--lora",
        "4",
        "--lora-dropout",
        "0.2",
        "--lora-targets",
        "c_attn,c_proj",
        "--scheduler",
        "cosine",
    ]
    asked[asked.index("--max-steps") + 1] = "9"
    asked[asked.index("--global-batch") + 1] = "4"
    undisturbed = start(tmp_path / "whole", "warm", asked)
    assert undisturbed.returncode == 0, undisturbed.stderr
    asked += ["--save-every", "2"]
    run = tmp_path / "run"
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(run)}
    killed(asked, env, run / "checkpoints/latest", tmp_path)
    resumed = start(tmp_path, "warm", [*asked, "--resume"])
    assert resumed.returncode == 0, resumed.stderr
    assert "resumes from" in resumed.stdout
    assert resumed.losses() == undisturbed.losses()
    assert resumed.metrics("epoch")[-1]["test_loss"] == undisturbed.metrics("epoch")[-1]["test_loss"]
    saved = whole.weights(checkpoints.at(run), ema=True)
    assert len(saved) == 2 * 2 * 3  # blocks, matrices, layers
    assert all(".lora_" in name for name in saved)


def command(folder: Path, *words: str) -> str:
    done = start(folder, "warm", words, ranks=1)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_exports_have_the_logits_of_the_base_and_its_adapters(
    tuned: Finished, place: Path, tmp_path: Path
) -> None:
    import peft
    import transformers
    from tokenizers import Tokenizer

    checkpoint = str(tuned.directory)
    for form, out in (("state_dict", "merged.safetensors"), ("hf", "merged"), ("peft", "adapter")):
        command(tmp_path, "export", checkpoint, out, "--format", form, "--max-shard-size", "20KB")
    base, merged = (
        transformers.AutoModelForCausalLM.from_pretrained(folder)
        for folder in (tuned.directory.parent / "base", tmp_path / "merged")
    )
    assert len(list((tmp_path / "merged").glob("*.safetensors"))) > 3
    tokens = Tokenizer.from_file(str(place / "tok.json")).encode("Return the value").ids
    assert (
        transformers.AutoTokenizer.from_pretrained(tmp_path / "merged").encode("Return the value") == tokens
    )
    assert merged.config.use_cache
    with_adapter = peft.PeftModel.from_pretrained(base, tmp_path / "adapter")
    plain = transformers.AutoModelForCausalLM.from_pretrained(place / "gpt2")
    plain_logits, *others = (logits(model) for model in (plain, with_adapter, merged))
    plain.load_state_dict(initial_state(tmp_path / "merged.safetensors"))
    for each in (*others[1:], logits(plain)):
        torch.testing.assert_close(each, others[0], rtol=0, atol=1e-6)
    assert (others[0] - plain_logits).abs().max() > 1e-3
    loss = tuned.metrics("epoch")[-1]["test_loss"]
    for source in (checkpoint, "merged.safetensors", "merged"):
        assert float(command(tmp_path, "evaluate", source).split()[2].rstrip(",")) == pytest.approx(
            loss, rel=1e-5
        ), source
    sampled = command(tmp_path, "sample", checkpoint, "--prompt", "The", "--tokens", "2")
    assert command(tmp_path, "sample", "merged", "--prompt", "The", "--tokens", "2") == sampled


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = model.eval()(torch.arange(32)[None]).logits
    return result


def initial_state(file: Path) -> dict[str, torch.Tensor]:
    source = initial.weights(file)
    return {name: source.read(name) for name in source.shapes}


@pytest.mark.parametrize("name", ["a.pt", "a.safetensors"])
def test_an_export_that_cannot_be_written_is_one_sentence(name: str, tmp_path: Path) -> None:
    """torch and safetensors have errors of their own, which are no OSError."""
    with pytest.raises(BadInput, match=rf"absent/{name} cannot be written: .*(does not exist|No such file)"):
        export.write({"weight": torch.zeros(2)}, tmp_path / "absent" / name)
    output = tmp_path / "out"
    with (
        pytest.raises(BadInput, match=r"out cannot be written: .*No such file"),
        export._new_directory(output) as draft,
    ):
        save_file({"weight": torch.zeros(2)}, draft / "absent" / name)
    assert not list(tmp_path.iterdir())


def test_adapters_have_the_same_gradients_with_recompute() -> None:
    """Behind an embedding that is not trained."""
    words = "--task text --data a.txt --init-from a.pt --lora 2 --engine ddp --layers 2 --width 32 --heads 2"
    gradients = []
    for more in ([], ["--recompute"]):
        settings = config.parse([*words.split(), *more])
        torch.manual_seed(0)
        model = lora.add(selection.build(settings, (16,), 256), settings)
        model(torch.arange(32).view(2, 16)).logsumexp(-1).sum().backward()
        gradients.append([p.grad for p in model.parameters() if p.requires_grad])
    assert len(gradients[0]) == 16
    torch.testing.assert_close(*gradients)


def test_another_base_is_refused(tuned: Finished, place: Path, tmp_path: Path) -> None:
    """One weight in one file is another."""
    from safetensors.torch import load_file, save_file

    base = tuned.directory.parent / "base"
    shutil.copytree(base, tmp_path / "kept")
    file = next(base.glob("*-00001-of-*.safetensors"))
    state = load_file(file)
    next(iter(state.values())).view(-1)[7] += 1e-3
    try:
        save_file(state, file, metadata={"format": "pt"})
        settings = json.loads(next(tuned.directory.glob("checkpoints/*/checkpoint.json")).read_text())
        assert settings["base"]["dtype"] == "float32"
        asked = [*options(place)[:-1], f"hf:{base}", *["--lora", "4", "--zero-stage", "2", "--resume"]]
        done = start(tuned.directory.parent, "warm", asked)
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("has adapters to other weights than those of --model hf:") == 1
        refused = start(tmp_path, "warm", ["evaluate", str(tuned.directory)], ranks=1)
        assert "has adapters to other weights" in refused.stderr
    finally:
        shutil.rmtree(base)
        shutil.copytree(tmp_path / "kept", base)


def test_trainings_start_from_weights_of_each_kind(place: Path, tmp_path: Path) -> None:
    """The loss of the first step is that of the weights, whatever holds them."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(place / "llama")
    model.save_pretrained(tmp_path / "whole")
    torch.save({"model": {f"module.{n}": t for n, t in model.state_dict().items()}}, tmp_path / "llama.pt")
    shutil.copytree(place / "llama", tmp_path / "empty", ignore=shutil.ignore_patterns("*.safetensors*"))
    (tmp_path / "empty/config.json").write_bytes((place / "llama/config.json").read_bytes())
    gpt = [
        *options(place)[:-2],
        *["--model", "gpt", "--layers", "1", "--width", "32", "--heads", "2", "--engine", "ddp"],
    ]
    first = start(tmp_path / "gpt", "warm", gpt, ranks=1)
    assert first.returncode == 0, first.stderr
    command(tmp_path, "export", str(first.directory), "gpt.safetensors")
    empty = [*options(place)[:-1], f"hf:{tmp_path / 'empty'}"]
    cases = {"direct": options(place, "--engine", "ddp", model="llama")}
    for name, source in {
        "sharded": place / "llama",
        "one": tmp_path / "whole",
        "file": tmp_path / "whole/model.safetensors",
        "pt": tmp_path / "llama.pt",
    }.items():
        cases[name] = [*empty, "--init-from", str(source), "--engine", "ddp"]
        cases[f"{name} zero3"] = [*empty, "--init-from", str(source), "--zero-stage", "3"]
    cases["model by default"] = [*options(place)[:-2], "--init-from", str(place / "llama"), "--engine", "ddp"]
    for name, source in {"run": first.directory, "exported": tmp_path / "gpt.safetensors"}.items():
        cases[f"gpt {name}"] = [*gpt, "--init-from", str(source)]
        cases[f"gpt {name} zero3"] = [*gpt[:-2], "--zero-stage", "3", "--init-from", str(source)]
        cases[f"gpt {name} lora"] = [*gpt, "--lora", "2", "--init-from", str(source)]
        for engine in ("fsdp", "pipeline"):
            cases[f"gpt {name} {engine}"] = [*gpt[:-2], "--engine", engine, "--init-from", str(source)]
    cases["gpt other"] = [*gpt, "--width", "64", "--init-from", str(first.directory)]
    # Pipelines come last: DeepSpeed keeps their grid.
    made = launch_cases(
        "languages.py", dict(sorted(cases.items(), key=lambda one: "pipeline" in one[0])), 2, tmp_path
    )
    error = made.pop("gpt other")["error"]
    assert "does not fit the model: 0.weight is [320, 32] there, and [320, 64] in the model" in error
    for name, each in made.items():
        assert "losses" in each, (name, each)
        if name.startswith("gpt"):
            assert each["losses"][0] == pytest.approx(made["gpt run"]["losses"][0], rel=1e-6), name
        else:
            assert each["losses"] == pytest.approx(made["direct"]["losses"], rel=1e-6), name
    assert made["gpt run"]["losses"][0] < first.losses()[0] - 0.1


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ("--lora-alpha 8", "--lora-alpha needs --lora R"),
        ("--lora 0", "'0' is not a whole number of at least 1"),
        ("--lora 4 --lora-dropout 1", "'1' is not a number from 0 to below 1"),
        ("--lora 4 --lora-targets a,,b", "'a,,b' is not a list of names, such as q_proj,v_proj"),
        (
            "--lora 4 --engine pipeline --model m:f",
            "--lora 4 needs --engine deepspeed, ddp or fsdp, not pipeline",
        ),
        ("--lora 4 --model mlp", "--model mlp begins with random ones: give --init-from PATH"),
        ("--lora 4 --model moe --init-from x.pt", "--lora 4 is not for a mixture of experts"),
        ("--attention eager", "--attention is for --model hf:DIR, not for cnn"),
        ("--attention flsh", r"'flsh' is not one of sdpa, eager, flash \(did you mean 'flash'\?\)"),
        ("--recompute", "--recompute is for --model gpt and hf:DIR, not for cnn"),
    ],
)
def test_options_that_do_not_fit(
    argv: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CommonMistake, match=says):
        config.parse(argv.split())


def test_flash_is_refused_where_it_cannot_run(place: Path) -> None:
    settings = config.parse([*options(place), "--attention", "flash"])
    with pytest.raises(
        CommonMistake, match="--attention flash needs CUDA devices, not cpu: use --attention sdpa"
    ):
        finetuning.check_device(settings, "bf16", "cpu")
    with pytest.raises(CommonMistake, match="--attention flash needs --precision bf16, fp16 or autocast"):
        finetuning.check_device(settings, "fp32", "cuda")
    finetuning.check_device(settings, "bf16", "cuda")


def test_layers_without_such_a_name_are_refused(place: Path) -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    settings = config.parse([*options(place), *["--lora", "2", "--lora-targets", "q_proj,0"]])
    with pytest.raises(CommonMistake, match="--lora-targets q_proj: no layer of .* named 0"):
        lora.add(network, settings)
    settings = config.parse([*options(place), *["--lora", "2", "--lora-targets", "1"]])
    with pytest.raises(CommonMistake, match="--lora-targets 1: 1 is a ReLU, not a linear layer; its linear"):
        lora.add(network, settings)
    tied = nn.Sequential(nn.Embedding(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    tied[0].weight = tied[2].weight
    settings = config.parse([*options(place), *["--lora", "2", "--lora-targets", "0"]])
    with pytest.raises(
        CommonMistake, match="--lora-targets 0: 0 shares its weights with other layers; its .* named 1"
    ):
        lora.add(tied, settings)
    settings = config.parse([*options(place), "--lora", "2"])
    with pytest.raises(CommonMistake, match="--lora 2: hf:.* has no linear layers"):
        lora.add(nn.ReLU(), settings)


def test_an_export_has_the_permissions_of_the_umask(tmp_path: Path) -> None:
    """A group can use it. safetensors makes files that only the user can read."""
    before = os.umask(0o027)
    try:
        export.write({"weight": torch.zeros(2)}, tmp_path / "a.safetensors")
        with export._new_directory(tmp_path / "tuned") as draft:
            save_file({"weight": torch.zeros(2)}, draft / "model.safetensors")
    finally:
        os.umask(before)
    for file in (tmp_path / "a.safetensors", tmp_path / "tuned/model.safetensors"):
        assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."])
def test_prefixes_of_wrappers_are_left_out(prefix: str, tmp_path: Path) -> None:
    """DistributedDataParallel, torch.compile, and one in the other."""
    network, other = nn.Linear(2, 3), nn.Linear(2, 3)
    torch.save({f"{prefix}{name}": each for name, each in network.state_dict().items()}, tmp_path / "a.pt")
    initial.load(other, tmp_path / "a.pt")
    assert torch.equal(other.weight, network.weight)


def test_weights_that_do_not_fit_are_named(tmp_path: Path) -> None:
    network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    state = network.state_dict()
    torch.save(state, tmp_path / "good.pt")
    initial.load(network, tmp_path / "good.pt")
    torch.save({**state, "0.weight": torch.zeros(3, 4)}, tmp_path / "shape.pt")
    torch.save({"0.weight": state["0.weight"], "head.weight": torch.zeros(1)}, tmp_path / "names.pt")
    torch.save({**state, "0.bias": torch.zeros(3, dtype=torch.int8)}, tmp_path / "quantised.pt")
    torch.save({"step": 3, "loss": [1.0]}, tmp_path / "none.pt")
    torch.save({"model": network}, tmp_path / "code.pt")
    (tmp_path / "text.pt").write_text("not weights")
    (tmp_path / "text.safetensors").write_text("not weights")
    for name, says in {
        "shape.pt": r"does not fit the model: 0.weight is \[3, 4\] there, and \[3, 2\] in the model",
        "names.pt": "of its 7 weights, 6 are missing there, such as 0.bias.* does not have 1, such as head.weight",
        "quantised.pt": "does not fit the model: 0.bias has torch.int8 there, and torch.float32 in the model",
        "none.pt": "has no weights by name, but step, loss: --init-from takes a state_dict",
        "code.pt": "it has torch.nn.modules.* not only tensors",
        "text.pt": "its 11 bytes begin with b'not weig'",
        "text.safetensors": "cannot be read as safetensors: .*; its 11 bytes begin with b'not weig'",
    }.items():
        with pytest.raises(BadInput, match=says):
            initial.load(network, tmp_path / name)


def test_adapters_of_random_weights_are_refused(place: Path, tmp_path: Path) -> None:
    """A directory without weights, before the data are read; with --init-from the same directory is of use."""
    (tmp_path / "empty").mkdir()
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(place / "llama" / name, tmp_path / "empty")
    words = [*options(place)[:-1], f"hf:{tmp_path / 'empty'}", "--lora", "2"]
    words[words.index("--data") + 1] = "absent.txt"
    done = start(tmp_path, "warm", words)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("--lora 2 trains adapters of weights that stay as they are") == 1
    assert "empty begins with random ones, as it has no *.safetensors or pytorch_model*.bin" in done.stderr
    finetuning.check_base(config.parse([*words, "--init-from", str(place / "llama")]))
    finetuning.check_base(config.parse([*words[:-1], "2", "--model", f"hf:{place / 'llama'}"]))


BAD = {
    "truncated": r"model-00003-of-00007.safetensors, of 500 bytes, cannot be read",
    "absent": "No such file or directory: .*model-00003-of-00007.safetensors",
    "shape": r"down_proj.weight is \[32, 64\] there, and \[32, 96\] in the model|shape torch.Size\(\[64, 32\]\)",
    "more": "9 are missing, such as model.layers.2.input_layernorm.weight",
    "fewer": "9 belong to other layers, such as model.layers.1.input_layernorm.weight",
    "nan": "nan: model.norm.weight has values that are not finite",
}
PICKLED = {
    **{f"{name} pickle": BAD[name] for name in ("shape", "more", "fewer")},
    "truncated pickle": r"pytorch_model.bin, of 500 bytes, cannot be read",
    "right pickle": "",
}


def pickled(source: Path, target: Path) -> None:
    """Copy a directory of transformers, with its weights in one pickle without the prefix of their names."""
    import transformers

    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.safetensors*"))
    model = transformers.AutoModelForCausalLM.from_pretrained(source)
    state = {name.removeprefix("model."): weight for name, weight in model.state_dict().items()}
    torch.save(state, target / "pytorch_model.bin")


def test_directories_that_do_not_fit_are_refused(place: Path, tmp_path: Path) -> None:
    """By all ranks, also at ZeRO 3, where rank 0 reads the weights: one that went on would wait in the next case."""
    cases = {}
    for name in (*BAD, *PICKLED):
        if name in BAD:
            shutil.copytree(place / "llama", tmp_path / name)
        else:
            pickled(place / "llama", tmp_path / name)
        for engine in ("ddp", "zero3"):
            words = options(place, *ENGINES[engine].split(), "--lora", "2")
            words[words.index("--model") + 1] = f"hf:{tmp_path / name}"
            cases[f"{name}, {engine}"] = words
    cases["fits"] = options(place, "--zero-stage", "3", "--lora", "2", model="llama")
    for file in ("truncated/model-00003-of-00007.safetensors", "truncated pickle/pytorch_model.bin"):
        (tmp_path / file).write_bytes((tmp_path / file).read_bytes()[:500])
    (tmp_path / "absent/model-00003-of-00007.safetensors").unlink()
    file = max((tmp_path / "nan").glob("*.safetensors"))
    weights = load_file(file)
    weights["model.norm.weight"][-1] = float("nan")
    save_file(weights, file, {"format": "pt"})
    for name, key, value in (
        ("shape", "intermediate_size", 96),
        ("more", "num_hidden_layers", 3),
        ("fewer", "num_hidden_layers", 1),
        ("shape pickle", "intermediate_size", 96),
        ("more pickle", "num_hidden_layers", 3),
        ("fewer pickle", "num_hidden_layers", 1),
    ):
        file = tmp_path / name / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))
    made = launch_cases("languages.py", cases, 2, tmp_path)
    right = made.pop("fits")["losses"]
    assert len(right) == STEPS
    for engine in ("ddp", "zero3"):
        assert made.pop(f"right pickle, {engine}")["losses"] == pytest.approx(right, rel=1e-6)
    for name, each in made.items():
        assert re.search({**BAD, **PICKLED}[name.partition(",")[0]], each["error"]), (name, each)


def test_checkpoints_of_other_programs_say_how_they_can_be_used(tmp_path: Path) -> None:
    """By --init-from and --resume, in the words of the other program."""
    deepspeed = tmp_path / "ds"
    (deepspeed / "global_step4").mkdir(parents=True)
    (deepspeed / "latest").write_text("global_step4")
    (deepspeed / "global_step4/zero_pp_rank_0_mp_rank_00_optim_states.pt").touch()
    (tmp_path / "ds0").mkdir()
    (tmp_path / "ds0/mp_rank_00_model_states.pt").touch()
    made = {
        "trainer": ["trainer_state.json", "optimizer.pt"],
        "adapter": ["adapter_config.json", "adapter_model.safetensors"],
        "dcp": [".metadata", "__0_0.distcp"],
        "trainer_fsdp": ["trainer_state.json", "pytorch_model_fsdp_0/.metadata"],
        "accelerate": ["optimizer_0/.metadata", "pytorch_model_fsdp_0/.metadata"],
        "nothing": ["a.txt", "b.txt"],
    }
    for folder, files in made.items():
        (tmp_path / folder).mkdir()
        for name in files:
            (tmp_path / folder / name).parent.mkdir(exist_ok=True)
            (tmp_path / folder / name).touch()
    (tmp_path / "lightning.ckpt").touch()
    os.mkfifo(tmp_path / "pipe")
    for name, says in {
        "ds": "DeepSpeed saved: python -m deepspeed.utils.zero_to_fp32 .*/ds DIR --safe_serialization makes",
        "ds/global_step4": "zero_to_fp32 .*/ds DIR --tag global_step4 --safe_serialization",
        "ds0": r"torch.load\('.*/ds0/mp_rank_00_model_states.pt', weights_only=False\)\['module'\]",
        "trainer": "a checkpoint of transformers' Trainer",
        "adapter": r"an adapter of peft: PeftModel.from_pretrained\(BASE, PATH\).merge_and_unload\(\)",
        "dcp": "format_utils dcp_to_torch .*/dcp weights.pt makes a file for --init-from",
        "trainer_fsdp": "dcp_to_torch .*/trainer_fsdp/pytorch_model_fsdp_0 weights.pt makes a file",
        "accelerate": "dcp_to_torch .*/accelerate/pytorch_model_fsdp_0 weights.pt makes a file",
        "pipe": "pipe: its suffix is unknown; --init-from takes",
        "nothing": "it has a.txt, b.txt; --init-from takes a checkpoint or run directory of this module, a file",
        "lightning.ckpt": r"torch.load\('.*/lightning.ckpt', weights_only=False\)\['state_dict'\]",
        "absent": "there is no such file or directory",
    }.items():
        with pytest.raises(CommonMistake, match=says):
            foreign.kind(tmp_path / name)
    (tmp_path / "trainer/model.safetensors").touch()
    assert foreign.kind(tmp_path / "trainer") == foreign.DIRECTORY
    for name in ("ds", "trainer", "adapter", "dcp"):
        with pytest.raises(BadInput, match=r"--init-from"):
            checkpoints.find(str(tmp_path / name), None)
