"""Text as packed sequences of tokens: --task text, and models of transformers on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from train_support import module_needs, start

module_needs("torch", "numpy", "tokenizers", "transformers")

import numpy as np  # noqa: E402
from jobgen.train import config, data  # noqa: E402
from jobgen.train.config import language  # noqa: E402
from jobgen.train.data import documents, text, tokens  # noqa: E402
from jobgen.train.errors import BadInput, CommonMistake  # noqa: E402
from jobgen.train.models import selection  # noqa: E402


@settings(max_examples=50, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    context=st.integers(2, 9),
    held_out=st.floats(0.01, 1),
)
def test_every_token_is_predicted_once(lengths: list[int], context: int, held_out: float) -> None:
    """For any division into files, but for less than one sequence at the end."""
    every = np.arange(sum(lengths))
    corpus = tokens.Corpus(tuple(np.split(every, np.cumsum(lengths)[:-1])), None, np.zeros(1, np.int64))
    if len(every) < 2 * context + 1:
        with pytest.raises(CommonMistake, match=f"the data has {len(every)} tokens"):
            text.split(corpus, context, held_out)
        return
    train, test = text.split(corpus, context, held_out)
    assert min(len(train), len(test)) >= 1
    inputs, targets = zip(*(part.batch(np.arange(len(part))) for part in (train, test)), strict=True)
    seen = np.concatenate([each.flatten() for each in inputs])
    assert seen.tolist() == every[: len(seen)].tolist()
    assert len(every) - 1 - len(seen) < context
    assert all((after == before + 1).all() for before, after in zip(inputs, targets, strict=True))


def write(folder: Path, **files: str) -> Path:
    for name, content in files.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return folder


def asked(*options: str) -> config.Settings:
    return config.parse(["--task", "text", *options])


def test_files_follow_each_other(tmp_path: Path) -> None:
    place = write(tmp_path, b="cdé", a="ab", sub__c="0123456789", sub__d="x", **{".hidden": "no"})
    task = data.of(asked("--data", str(place / "a"), f"{place / 'b'},{place / 'sub'}", "--context", "4"))
    inputs, _ = task.train.batch(np.arange(len(task.train)))
    last, _ = task.test.batch(np.arange(len(task.test)))
    told = bytes([*inputs.flatten().tolist(), *last.flatten().tolist()])
    assert told == "ab\x00cdé\x000123456789\x00x".encode()[:16]
    assert documents.files([place]) == [place / name for name in ("a", "b", "sub/c", "sub/d")]


def test_a_tokenizer_file(tmp_path: Path) -> None:
    file, made = tokenizer(tmp_path)
    write(tmp_path, **{"text": "the cat and the dog\n" * 20})
    options = ["--data", str(tmp_path / "text"), "--tokenizer", str(file), "--context", "5"]
    plain = data.of(asked(*options))
    first = plain.train.batch(np.arange(1))[0][0].tolist()
    assert made.decode(first) == "the cat and the dog"
    assert plain.outputs == 64  # the vocabulary, rounded up
    kept = data.of(asked(*options, "--cache", str(tmp_path / "cache")))
    assert np.array_equal(kept.train.batch(np.arange(3))[0], plain.train.batch(np.arange(3))[0])
    [folder] = (tmp_path / "cache").iterdir()
    before = folder.stat().st_mtime_ns
    data.of(asked(*options, "--cache", str(tmp_path / "cache")))
    assert folder.stat().st_mtime_ns == before


def test_a_model_of_transformers_may_have_exactly_the_vocabulary_of_its_tokenizer(tmp_path: Path) -> None:
    """As GPT-2 has, whose 50257 tokens are no multiple of 64."""
    import transformers

    file, _ = tokenizer(tmp_path)
    write(tmp_path, **{"text": "the cat and the dog\n" * 20})
    options = ["--data", str(tmp_path / "text"), "--tokenizer", str(file), "--context", "5"]
    for vocabulary in (5, 4):
        form = transformers.GPT2Config(vocab_size=vocabulary, n_positions=8, n_embd=4, n_layer=1, n_head=1)
        form.save_pretrained(tmp_path / "model")
        made = asked(*options, "--model", f"hf:{tmp_path / 'model'}")
        task = data.of(made)
        if vocabulary == 5:
            assert list(selection.build(made, task.train.shape, task.outputs).parameters())
            continue
        with pytest.raises(CommonMistake, match="has a vocabulary of 4, and the text needs 5"):
            selection.build(made, task.train.shape, task.outputs)


def tokenizer(folder: Path) -> tuple[Path, object]:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["the", "cat", "and", "dog", "?"]
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(folder / "words.json"))
    return folder / "words.json", made


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--data", "none.txt"], "--data none.txt cannot be read: No such file or directory"),
        (["--data", "empty"], "--data empty is empty"),
        (["--data", "short"], "the data has 5 tokens, and --context 128 needs at least 257"),
        (["--data", "short", "--tokenizer", "short"], "--tokenizer short cannot be read: "),
        (["--data", "short", "--tokenizer", "nowhere"], "--tokenizer nowhere cannot be read: "),
    ],
)
def test_wrong_files(options: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, empty="", short="short")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=says):
        data.of(asked(*options))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--task text", "--task text needs --data"),
        ("--task text --data x --model cnn", "--model cnn is for images; --task text needs gpt, hf:DIR"),
        ("--model gpt", "it needs --task text, or your own --dataset, not digits"),
        ("--width 64", "--width is for --model gpt, not for cnn"),
        ("--context 64", "--context is for --task text, not for digits"),
        (
            "--task text --data x --width 60 --heads 4",
            "--width 60 with --heads 4: the width must be a multiple",
        ),
        ("--task text --data x --size 125m", "'125m' is not one of .*did you mean '124m'"),
        (
            "--task text --data x --top-k 2",
            "--top-k is for --model moe and for gpt with --experts, not for gpt",
        ),
        ("--task text --data x --experts 2 --engine ddp", "--experts 2 needs --engine deepspeed, not ddp"),
        ("--task text --data x --model hf:nowhere", "there is no file .*nowhere/config.json"),
        ("--task mnist --data a b", "--data takes one directory with --task mnist, not 2"),
        ("--task text --data a,,b", "'a,,b' is not a list of paths"),
    ],
)
def test_wrong_options(options: str, says: str) -> None:
    with pytest.raises(CommonMistake, match=says):
        config.parse(options.split())


def test_sizes() -> None:
    """Those of the papers, with GPT-2's vocabulary."""
    for name, millions in (("124m", 124), ("350m", 354), ("774m", 773), ("1.3b", 1312)):
        size = language.SIZES[name]
        weights = 50257 * size.width + size.layers * (12 * size.width**2 + 2 * size.width) + size.width
        assert round(weights / 1e6) == pytest.approx(millions, abs=1), name


def test_a_model_of_transformers(tmp_path: Path) -> None:
    """Trained from a config, sampled, and trained on from the weights that transformers wrote."""
    import transformers

    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    made = transformers.LlamaConfig(vocab_size=256, max_position_embeddings=64, **sizes)
    made.save_pretrained(tmp_path / "tiny")
    write(tmp_path, text="All that glitters is not gold.\n" * 30)
    asked = ["--task", "text", "--data", str(tmp_path / "text"), "--context", "16", "--engine", "ddp"]
    asked += ["--model", "hf:tiny", "--epochs", "4", "--save-every-epochs", "4", "--lr", "0.02"]
    done = start(tmp_path, "warm", asked)
    assert done.returncode == 0, done.stderr
    assert done.metrics("epoch")[-1]["perplexity"] < 100
    assert done.metrics("step")[-1]["tokens_per_second"] > 0
    ask = ["sample", str(done.directory), "--prompt", "All that", "--tokens", "8", "--temperature", "0"]
    told = start(tmp_path, "warm", ask, ranks=1)
    assert told.stdout.startswith("All that"), told.stderr
    transformers.AutoModelForCausalLM.from_config(made).save_pretrained(tmp_path / "pretrained")
    asked[asked.index("hf:tiny")] = "hf:pretrained"
    again = start(tmp_path, "warm", asked)
    assert again.returncode == 0, again.stderr
    small = start(tmp_path, "warm", [*asked, "--context", "65"])
    assert small.returncode == 2
    assert "has a number of positions of 64, and the text needs 65" in small.stderr
    (tmp_path / "tiny/config.json").write_text(json.dumps({"model_type": "nothing"}))
    asked[asked.index("hf:pretrained")] = "hf:tiny"
    wrong = start(tmp_path, "warm", asked)
    assert wrong.returncode == 2
    assert "its config.json cannot be used" in wrong.stderr
