"""Text that people have: kinds of files, chats, masks, documents apart, and tokens that are made once a host."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from train_support import clean_environment, launch_cases, module_needs, split, start

module_needs("torch", "numpy", "tokenizers", "transformers", "pyarrow")

import numpy as np  # noqa: E402
import pyarrow  # noqa: E402
import pyarrow.parquet  # noqa: E402
import torch  # noqa: E402
from jobgen.train import config, data, trial  # noqa: E402
from jobgen.train.config import language  # noqa: E402
from jobgen.train.config.language import Size  # noqa: E402
from jobgen.train.data import cache, chat, documents, tokens  # noqa: E402
from jobgen.train.data.documents import Reading  # noqa: E402
from jobgen.train.errors import BadInput, CommonMistake  # noqa: E402
from jobgen.train.models import gpt  # noqa: E402

TEXTS = ["the cat", "and the dog", "a dog\nand a cat", "ünïcödé 漢字 🐈"]
RECORDS = [{"text": text, "id": number} for number, text in enumerate(TEXTS)]
LINES = "".join(json.dumps(row) + "\n" for row in RECORDS)


def zstandard(content: bytes) -> bytes:
    packed: bytes = pyarrow.compress(content, codec="zstd", asbytes=True)
    return packed


def arrow(file: Path) -> None:
    table = pyarrow.Table.from_pylist(RECORDS)
    with pyarrow.OSFile(str(file), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def on_disk(folder: Path) -> None:
    """A data set as save_to_disk of the package datasets writes it."""
    folder.mkdir()
    arrow(folder / "data-00000-of-00001.arrow")
    (folder / "dataset_info.json").write_text("{}")
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))


def table(delimiter: str) -> str:
    made = io.StringIO()
    csv.writer(made, delimiter=delimiter).writerows(
        [("id", "text"), *((row["id"], row["text"]) for row in RECORDS)]
    )
    return made.getvalue()


WRITERS: dict[str, Callable[[Path], Any]] = {
    "a.jsonl": lambda file: file.write_text(LINES),
    "a.ndjson": lambda file: file.write_text(LINES.replace("\n", "\n\n")),
    "a.json": lambda file: file.write_text(json.dumps(RECORDS)),
    "lines.json": lambda file: file.write_text(LINES),
    "a.jsonl.gz": lambda file: file.write_bytes(gzip.compress(LINES.encode())),
    "a.jsonl.zst": lambda file: file.write_bytes(zstandard(LINES.encode())),
    "a.parquet": lambda file: pyarrow.parquet.write_table(pyarrow.Table.from_pylist(RECORDS), file),
    "without_suffix": lambda file: pyarrow.parquet.write_table(pyarrow.Table.from_pylist(RECORDS), file),
    "a.arrow": arrow,
    "saved": on_disk,
    "strings.json": lambda file: file.write_text(json.dumps(TEXTS)),
    "texts.jsonl": lambda file: file.write_text(LINES.replace('"text"', '"body"')),
    "of_windows.jsonl": lambda file: file.write_text(LINES.replace("\n", "\r\n"), encoding="utf-8-sig"),
    "a.csv": lambda file: file.write_text(table(",")),
    "a.tsv": lambda file: file.write_text(table("\t"), encoding="utf-8-sig"),
    "of_windows.json": lambda file: file.write_text(json.dumps(RECORDS), encoding="utf-8-sig"),
    "pzstd.jsonl.zst": lambda file: file.write_bytes(b"P*M\x18\4\0\0\0\1\2\3\4" + zstandard(LINES.encode())),
    "a.jsonl.GZ": lambda file: file.write_bytes(gzip.compress(LINES.encode())),
    "a.csv.gzip": lambda file: file.write_bytes(gzip.compress(table(",").encode())),
    "a.jsonl.zstd": lambda file: file.write_bytes(zstandard(LINES.encode())),
    "part-00000": lambda file: file.write_text(LINES, encoding="utf-8-sig"),
    "a.jsonl.1": lambda file: file.write_text(LINES),
    "part-00001": lambda file: file.write_bytes(zstandard(LINES.encode())),
    "dates.parquet": lambda file: pyarrow.parquet.write_table(FAR, file),
}
# A column beside the text with a time that Python does not have.
FAR = pyarrow.table({"time": pyarrow.array([253402300800000000] * 4, pyarrow.timestamp("us")), "text": TEXTS})


def test_files_about_the_data_are_not_read(tmp_path: Path) -> None:
    """A folder of the hub has a README.md, one of Spark an empty _SUCCESS."""
    for name in ("README.md", "LICENSE", "_SUCCESS"):
        (tmp_path / name).write_text("" if name == "_SUCCESS" else "about")
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    assert documents.files([tmp_path]) == [tmp_path / "a.jsonl"]
    assert documents.files([tmp_path / "README.md"]) == [tmp_path / "README.md"]
    for name in ("a.jsonl", "_SUCCESS", "LICENSE"):
        (tmp_path / name).unlink()
    assert documents.files([tmp_path]) == [tmp_path / "README.md"]


@pytest.mark.parametrize("name", WRITERS)
def test_documents_of_each_kind_of_file(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    reading = Reading("body" if name == "texts.jsonl" else None)
    [file] = documents.files([tmp_path / name])
    assert [part.text for part in documents.parts(file, reading)] == TEXTS


@pytest.mark.parametrize("pack", [gzip.compress, zstandard], ids=["gz", "zst"])
def test_a_text_that_is_compressed_is_that_text(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    content = "".join(f"line {number} ü\r\n" for number in range(30))
    (tmp_path / "plain.txt").write_bytes(content.encode())
    (tmp_path / "packed.txt.gz").write_bytes(pack(content.encode()))  # of any name
    both = [sequences(tmp_path / name, "--context", "8") for name in ("plain.txt", "packed.txt.gz")]
    assert np.array_equal(*both)


def task(*options: str) -> data.Task:
    return data.of(config.parse(["--task", "text", *options]))


def sequences(place: Path, *options: str) -> np.ndarray:
    """The targets of all sequences."""
    made = task("--data", str(place), *options)
    return np.concatenate(
        [source.batch(np.arange(len(source)))[1].numpy() for source in (made.train, made.test)]
    )


SECOND = b"\x80\x04\x95"
REFUSED = {
    "zip.txt": (
        b"PK\x03\x04\0\0",
        "is not JSON Lines, JSON, .*: its first bytes are 50 4b 03 04 00 00 .* as of a zip",
    ),
    "archive.xz": (b"\xfd7zXZ\0\0", "fd 37 7a 58 5a 00 00 .* as of xz"),
    "x.parquet": (b"PAR2abc", r"x.parquet is not Parquet: its first bytes are 50 41 52 32 61 62 63"),
    "half.parquet": (b"PAR1abcdef", "half.parquet is damaged as Parquet: "),
    "x.gz": (b"no gzip", "x.gz is not .*: its first bytes are 6e 6f 20 67 7a 69 70"),
    "half.gz": (gzip.compress(b"text " * 999)[:30], "half.gz .*(damaged|cannot be read): "),
    "two.jsonl.gz": (
        gzip.compress(LINES.encode()) + b"more",
        "two.jsonl.gz cannot be read: Not a gzipped file",
    ),
    "wrong.txt.zst": (zstandard(b"")[:4] + b"\xff" * 50, "wrong.txt.zst cannot be read: "),
    "half.jsonl.zst": (
        zstandard(LINES.encode() * 999)[:-9],
        "half.jsonl.zst is damaged as JSON Lines: Truncated",
    ),
    "latin.txt": ("déjà vu, often enough".encode("latin-1"), "first bytes are 64 e9 6a e0"),
    "late.txt": (b"a" * 999 + b"\xe9" + b"b" * 9, "byte 999 is e9, which is no UTF-8"),
    "late.txt.gz": (
        gzip.compress("é\r\n".encode() * 900_000 + b"\xc3\n"),
        r"late.txt.gz: byte 3600000 is c3, which is no UTF-8",
    ),
    "late.csv": (
        b"text\n" + "é\n".encode() * 90_000 + b"\xe9\n",
        "late.csv: line 90002 has the byte e9, which",
    ),
    "utf16.txt": ("text".encode("utf-16"), "ff fe 74 00 .* as of UTF-16"),
    "weights.bin": (bytes(range(64)), "first bytes are 00 01 02 03 04 05 06 07"),
    "a.pdf": (b"%PDF-1.4 text", "25 50 44 46 2d 31 2e 34 .* as of PDF"),
    "columns.csv": (b"a,b\n1,2\n", "record 1 has no text, messages, .*; it has a, b: name one"),
    "pickle.pkl": (SECOND, "80 04 95"),
    "broken.jsonl": (b'{"text": "a"}\n{"text"\n', "broken.jsonl: line 2 is not JSON: "),
    "keys.jsonl": (
        b'{"body": "a", "id": 3}\n',
        "record 1 has no text, messages, .*; it has body, id: name one",
    ),
    "nothing.jsonl": (
        b'{"text": "a"}\n{"text": null, "id": 1}\n',
        "record 2 has None as text, not a text or messages",
    ),
    "deep.jsonl": (b"[" * 100_000 + b"]" * 100_000, "deep.jsonl: line 1 is not JSON: maximum recursion"),
    "deep.json": (b"[" * 100_000 + b"]" * 100_000, "deep.json: line 1 is not JSON: maximum recursion"),
    "text.jsonl": (
        b'{"messages": "[]"}\n',
        r"record 1 has '\[\]' as messages, not a list of messages; --text-key messages takes it as a text",
    ),
    "bytes.jsonl": (
        b'{"text": "a"}\n' * 9999 + b'{"text": "\xe9"}\n',
        "line 10000 has the byte e9, which is no UTF-8",
    ),
    "list.jsonl": (b"[1, 2]\n", r"record 1 is \[1, 2\], not an object with a text"),
    "mixed.jsonl": (
        b'{"prompt": "a", "completion": [{"role": "assistant", "content": "b"}]}\n',
        r"record 1 has the prompt 'a' and the completion \[.*: both must be texts, or both lists",
    ),
    "number.jsonl": (b'{"prompt": "7 + 1 is ", "completion": 8}\n', "the completion 8: both must be texts"),
    "chat.jsonl": (
        b'{"messages": [{"role": "user", "content": "a"}]}\n',
        "record 1 has messages, which need a chat",
    ),
}


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_key_of_the_text_may_be_nested(form: str, tmp_path: Path) -> None:
    rows = [{"id": 1, "data": {"text": "one", "more": {"body": "two"}}}, {"id": 2, "data": {"text": "three"}}]
    file = tmp_path / f"a.{form}"
    if form == "jsonl":
        file.write_text("\n".join(map(json.dumps, rows)))
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    found = [part.text for part in documents.parts(file, documents.Reading("data.text"))]
    assert found == ["one", "three"]
    assert next(documents.parts(file, documents.Reading("data.more.body"))).text == "two"
    with pytest.raises(
        BadInput, match=r"record 1 has no text or messages in --text-key data.body; it has id, data"
    ):
        [*documents.parts(file, documents.Reading("data.body"))]


def test_the_keys_of_nested_records_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "data": {"text": "a", "at": 2}, "data.x": "b", "none": {}}')
    with pytest.raises(BadInput, match=r"it has id, data\.text, data\.at, data\.x: name one by --text-key"):
        [*documents.parts(tmp_path / "a.jsonl", documents.Reading())]
    [part] = documents.parts(tmp_path / "a.jsonl", documents.Reading("data.x"))
    assert part.text == "b"


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_read_is_named_with_its_first_bytes(name: str, tmp_path: Path) -> None:
    content, says = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=says):
        task("--data", str(tmp_path / name))


def test_a_file_that_no_rank_can_read_is_reported_once(tmp_path: Path) -> None:
    """Also without a script, whose ranks have a run directory in common."""
    (tmp_path / "a.bin").write_bytes(bytes(99))
    options = ["--task", "text", "--data", "a.bin", "--engine", "ddp"]
    done = start(tmp_path, "torchrun", options, env={"JOBGEN_RUN_DIR": ""})
    assert done.returncode
    assert done.stderr.count("a.bin is not JSON Lines") == 1


def test_a_data_set_without_its_state_is_named(tmp_path: Path) -> None:
    on_disk(tmp_path / "saved")
    (tmp_path / "saved/state.json").write_text("{}")
    with pytest.raises(BadInput, match="state.json is not of a data set: KeyError"):
        task("--data", str(tmp_path / "saved"))
    on_disk(tmp_path / "rows")
    state = json.loads((tmp_path / "rows/state.json").read_text())
    arrow(tmp_path / "rows/indices.arrow")
    state["_indices_data_files"] = [{"filename": "indices.arrow"}]
    (tmp_path / "rows/state.json").write_text(json.dumps(state))
    with pytest.raises(
        CommonMistake, match=r"rows is a selection of the rows of its files: flatten_indices\(\)"
    ):
        task("--data", str(tmp_path / "rows"))
    on_disk(tmp_path / "other")
    (tmp_path / "other/data-00000-of-00001.arrow").unlink()
    with pytest.raises(CommonMistake, match="data-00000-of-00001.arrow cannot be read: No such file"):
        task("--data", str(tmp_path / "other"))


def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    WRITERS["a.parquet"](tmp_path / "a.parquet")
    monkeypatch.setattr(documents, "find_spec", lambda name: None)
    with pytest.raises(
        CommonMistake, match="a.parquet needs the Python package pyarrow: pip install pyarrow"
    ):
        task("--data", str(tmp_path / "a.parquet"))


def test_a_data_set_with_parts_is_refused_with_their_names(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    for part in ("train", "test"):
        on_disk(tmp_path / part)
    with pytest.raises(
        CommonMistake, match="a data set with the parts test, train: name one, such as .*/train"
    ):
        task("--data", str(tmp_path))
    assert len(sequences(tmp_path / "train", "--context", "4")) == 14


TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}> {{ m.content }} <end>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)
MARKED = (
    "{% for m in messages %} <{{ m.role }}> "
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }} <end>{% endgeneration %} "
    "{% else %}{{ m.content }} <end>{% endif %}\n{% endfor %}"
)
CHAT = [
    {"role": "user", "content": "the cat"},
    {"role": "assistant", "content": "and the dog"},
    {"role": "user", "content": "a dog"},
    {"role": "assistant", "content": "a cat"},
]
SHARED = [{"from": {"user": "human", "assistant": "gpt"}[m["role"]], "value": m["content"]} for m in CHAT]


def model_directory(folder: Path, template: str = TEMPLATE) -> Path:
    """The directory of a tokenizer with a chat template, as transformers writes it."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = [
        "?",
        *["the", "cat", "and", "dog", "a", "question", ":", "answer"],
        "<user>",
        "<assistant>",
        "<end>",
        "<eos>",
    ]
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(["<eos>"])
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<eos>")
    fast.chat_template = template
    fast.save_pretrained(folder)
    return folder


def learned(place: Path, tokenizer: Path, *options: str) -> list[str]:
    """The words that are targets, with one text for each run of them."""
    made = tokens.OfFile(tokenizer)
    targets = sequences(place, "--tokenizer", str(tokenizer), "--context", "4", *options).flatten().tolist()
    runs, before = [], -100
    for token in targets:
        if token != -100:
            word = made.decode([token])
            runs = [*runs[:-1], f"{runs[-1]} {word}"] if before != -100 else [*runs, word]
        before = token
    return runs


@pytest.mark.parametrize("template", [TEMPLATE, MARKED], ids=["plain", "marked"])
@pytest.mark.parametrize("key", ["messages", "conversations", "turns"])
def test_only_the_answers_of_chats_are_learned(tmp_path: Path, template: str, key: str) -> None:
    tokenizer = model_directory(tmp_path / "model", template)
    content = SHARED if key == "conversations" else CHAT
    (tmp_path / "chats.jsonl").write_text((json.dumps({key: content}) + "\n") * 3)
    more = ("--text-key", "turns") if key == "turns" else ()
    runs = learned(tmp_path / "chats.jsonl", tokenizer, *more)
    after = "" if template == MARKED else " <eos>"  # the end of a document that is learned
    assert [run.removesuffix(" <eos>") for run in runs[:4]] == 2 * ["and the dog <end>", "a cat <end>"]
    assert runs[1].endswith(after or "<eos>")
    every = learned(tmp_path / "chats.jsonl", tokenizer, *more, "--learn", "all")
    assert len(every) == 1
    assert every[0].startswith("the cat <end> <assistant> and the dog <end> <user> a dog")


@pytest.mark.parametrize("template", [TEMPLATE, MARKED], ids=["plain", "marked"])
def test_an_answer_of_weight_0_is_not_learned(tmp_path: Path, template: str) -> None:
    tokenizer = model_directory(tmp_path / "model", template)
    chat_ = [CHAT[0], CHAT[1] | {"weight": 0}, CHAT[2], CHAT[3] | {"weight": 1}]
    (tmp_path / "chats.jsonl").write_text((json.dumps({"messages": chat_}) + "\n") * 4)
    runs = learned(tmp_path / "chats.jsonl", tokenizer)
    assert [run.removesuffix(" <eos>") for run in runs[:2]] == ["a cat <end>"] * 2


def test_of_chats_that_are_prompts_only_the_completion_is_learned(tmp_path: Path) -> None:
    tokenizer = model_directory(tmp_path / "model")
    (tmp_path / "a.jsonl").write_text((json.dumps({"prompt": CHAT[:3], "completion": CHAT[3:]}) + "\n") * 4)
    assert learned(tmp_path / "a.jsonl", tokenizer)[:2] == 2 * ["a cat <end> <eos>"]


def byte_level(folder: Path) -> Path:
    """The directory of a tokenizer like GPT-2's, whose words begin with the blank before them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator([" a dog and a cat ü"] * 9, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=made)
    fast.chat_template = (
        "{% for m in messages %}{{ m.role }}: {% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
        "{% endgeneration %}{% else %}{{ m.content }}{% endif %}\n{% endfor %}"
    )
    fast.save_pretrained(folder)
    return folder


def test_the_first_word_of_an_answer_is_learned_with_the_blank_before_it(tmp_path: Path) -> None:
    """As transformers marks it."""
    from transformers import AutoTokenizer

    place = byte_level(tmp_path / "model")
    letters, fast = tokens.OfFile(place), AutoTokenizer.from_pretrained(place)
    [code] = letters.codes([documents.Part("say: a dog ü", learn=((5, 12),))])
    assert letters.decode(code.tokens[code.learn].tolist()) == " a dog ü"
    template = chat.template(place, None)
    assert template
    made = documents.Part(*template.text(CHAT, None, True))
    [code] = letters.codes([made])
    expected = fast.apply_chat_template(CHAT, return_assistant_tokens_mask=True, return_dict=True)
    assert code.tokens.tolist() == expected["input_ids"]
    assert code.learn.astype(int).tolist() == expected["assistant_masks"]


@given(borders=st.lists(st.integers(0, 12), max_size=8), lengths=st.lists(st.integers(0, 4), max_size=6))
def test_a_token_with_a_character_of_an_answer_is_learned(borders: list[int], lengths: list[int]) -> None:
    places = sorted(borders[: len(borders) // 2 * 2])
    spans = tuple(zip(places[::2], places[1::2], strict=True))
    ends = np.cumsum([0, *lengths])
    starts, ends = ends[:-1], ends[1:]
    characters = {each for span in spans for each in range(*span)}
    expected = [
        any(each in characters for each in range(start, max(end, start + 1)))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    assert tokens._of(starts, ends, spans).tolist() == expected


def test_tools_are_a_list_or_its_json(tmp_path: Path) -> None:
    template = "{% for each in tools or [] %}<{{ each.name }}> {% endfor %}" + TEMPLATE
    own, chats = tmp_path / "own.jinja", tmp_path / "a.jsonl"
    own.write_text(template)
    found = []
    for tools in ([{"name": "weather"}], '[{"name": "weather"}]', None, ""):
        chats.write_text(json.dumps({"messages": CHAT, "tools": tools}))
        [part] = documents.parts(chats, Reading(template=chat.template(None, own)))
        found.append(part.text.partition(">")[0])
    assert found == ["<weather", "<weather", "<user", "<user"]
    chats.write_text(json.dumps({"messages": CHAT, "tools": "["}))
    with pytest.raises(BadInput, match="record 1: its tools are not JSON: "):
        task("--data", str(chats), "--chat-template", str(own))


def test_half_a_character_is_a_question_mark(tmp_path: Path) -> None:
    """JSON can have half of a surrogate pair."""
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "the \ud800 cat " * 9}) + "\n")
    tokenizer = model_directory(tmp_path / "model")
    unknown = sequences(tmp_path / "a.jsonl", "--tokenizer", str(tokenizer), "--context", "3")
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "the ? cat " * 9}) + "\n")
    assert np.array_equal(
        unknown, sequences(tmp_path / "a.jsonl", "--tokenizer", str(tokenizer), "--context", "3")
    )


def test_prompts_and_completions(tmp_path: Path) -> None:
    tokenizer = model_directory(tmp_path / "model")
    row = {"prompt": "question : the cat", "completion": " answer : a dog"}
    (tmp_path / "a.jsonl").write_text((json.dumps(row) + "\n") * 4)
    assert learned(tmp_path / "a.jsonl", tokenizer)[:2] == 2 * ["answer : a dog <eos>"]
    assert len(learned(tmp_path / "a.jsonl", tokenizer, "--learn", "all")) == 1


def test_a_default_that_is_given_is_the_same_run() -> None:
    """Such as --documents joined, with a checkpoint of a run without it."""
    words = ["--task", "text", "--data", "a.txt"]
    given = [*words, "--documents", "joined", "--learn", "answers", "--held-out", "0.1"]
    assert language.identity(config.parse(given)) == language.identity(config.parse(words))
    other = config.parse([*words, "--documents", "apart"])
    assert language.identity(other) != language.identity(config.parse(words))


def test_a_run_resumes_with_the_same_tokens(tmp_path: Path) -> None:
    """Whatever changes what is learned is refused: the template, the tokenizer, the data, the unit of the loss."""
    model_directory(tmp_path / "model")
    own = tmp_path / "own.jinja"
    own.write_text(TEMPLATE)
    chats = tmp_path / "chats.jsonl"
    chats.write_text((json.dumps({"messages": CHAT}) + "\n") * 20)
    size = "--context 8 --layers 1 --width 16 --heads 2 --engine ddp --global-batch 8 --max-steps 2"
    words = ["--task", "text", "--data", str(chats), "--tokenizer", str(tmp_path / "model"), *size.split()]
    done = start(tmp_path, "warm", words, ranks=1)
    assert done.returncode == 0, done.stderr
    words[-1] = "3"
    longer = [*words, "--resume", str(done.directory)]

    def refused(*more: str) -> str:
        again = start(tmp_path / "again", "warm", [*longer, *more], ranks=1)
        assert again.returncode == 2, again.stderr
        return again.stderr

    assert "was trained with --loss-by token, but this run has --loss-by sample" in refused(
        "--loss-by", "sample"
    )
    assert "was trained with no --learn, but this run has --learn all" in refused("--learn", "all")
    own.write_text(TEMPLATE.replace("<end>", "<end> <end>"))
    changed = refused("--chat-template", str(own))
    assert re.search(
        r"was trained on \d+ tokens of 20 documents, \d+ of them to learn \(SHA-256 \w{12}\)", changed
    )
    assert "resume with the same data, tokenizer and chat template; --init-from begins anew" in changed
    kept = chats.read_text()
    chats.write_text(kept.replace("dog", "cat", 1))  # of as many tokens
    assert "was trained on" in refused()
    chats.write_text(kept)
    own.write_text(TEMPLATE)
    same = [*longer, "--chat-template", str(own), "--loss-by", "token", "--text-key", "messages"]
    again = start(tmp_path / "again", "warm", same, ranks=1)
    assert again.returncode == 0, again.stderr


def test_a_template_that_hides_the_answers_is_refused(tmp_path: Path) -> None:
    last = "{% for m in messages %}{{ m.content if loop.last else '...' }} {% endfor %}"
    (tmp_path / "own.jinja").write_text(last)
    (tmp_path / "a.jsonl").write_text(json.dumps({"messages": CHAT}) + "\n")
    options = ["--data", str(tmp_path / "a.jsonl"), "--chat-template", str(tmp_path / "own.jinja")]
    with pytest.raises(
        BadInput, match=r"record 1: the chat template writes message 2 in another way .* --learn all"
    ):
        task(*options)
    task(*options, "--learn", "all", "--context", "2")
    (tmp_path / "own.jinja").write_text("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(
        BadInput, match="record 1: the chat template refuses the messages: roles must alternate"
    ):
        task(*options)


@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(st.integers(1, 9), min_size=2, max_size=12), context=st.integers(2, 7))
def test_documents_apart(lengths: list[int], context: int) -> None:
    """No target crosses the border of two documents; all others are as before."""
    total, starts = sum(lengths), np.cumsum([0, *lengths[:-1]])
    if total < 2 * context + 1:
        return
    corpus = tokens.Corpus((np.arange(total),), None, starts)
    whole = data.text.Sequences(corpus, context, 0, (total - 1) // context, "documents")
    (inputs, document), targets = whole.batch(np.arange(len(whole)))
    assert np.array_equal((targets == -100).numpy(), np.isin((inputs + 1).numpy(), starts))
    assert np.array_equal(document.numpy(), np.searchsorted(starts, inputs.numpy(), side="right"))
    for each in range(len(whole)):  # a single sequence is the same
        (one, _), _ = whole.batch(np.array([each]))
        assert torch.equal(one[0], inputs[each])
    by_position = data.text.Sequences(corpus, context, 0, len(whole), "positions").batch(
        np.arange(len(whole))
    )
    for row, places in zip(document.tolist(), by_position[0]["position_ids"].tolist(), strict=True):
        assert places == [at - row.index(one) for at, one in enumerate(row)]


def alone(model: Any, tokens_: torch.Tensor, document: torch.Tensor) -> torch.Tensor:
    """The logits of each document by itself."""
    parts = [tokens_[document == each][None] for each in document.unique()]
    outputs = [model(part) for part in parts]
    return torch.cat([getattr(each, "logits", each)[0] for each in outputs])


DOCUMENT = torch.tensor([[1, 1, 1, 2, 2, 3, 3, 3], [3, 3, 4, 4, 4, 4, 4, 5]])


def test_a_gpt_keeps_documents_apart() -> None:
    torch.manual_seed(0)
    model = gpt.Decoder(*gpt.layers(Size(2, 32, 2, 8), 64))
    rows = torch.randint(0, 64, DOCUMENT.shape)
    expected = torch.stack([alone(model, *pair) for pair in zip(rows, DOCUMENT, strict=True)])
    assert torch.allclose(model(rows, DOCUMENT), expected, atol=1e-6)
    assert not torch.allclose(model(rows), expected, atol=1e-3)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "qwen2"])
def test_models_of_transformers_keep_documents_apart(kind: str) -> None:
    import transformers

    sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {} if kind == "gpt2" else {"intermediate_size": 64, "num_key_value_heads": 2}
    torch.manual_seed(0)
    made = transformers.AutoConfig.for_model(kind, **sizes, use_cache=False)
    model = transformers.AutoModelForCausalLM.from_config(made).eval()
    rows = torch.randint(0, 64, DOCUMENT.shape)
    places = torch.tensor([[row.index(each) for each in row] for row in DOCUMENT.tolist()])
    with torch.no_grad():
        expected = torch.stack([alone(model, *pair) for pair in zip(rows, DOCUMENT, strict=True)])
        found = model(input_ids=rows, position_ids=torch.arange(8) - places).logits
    assert torch.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "joins"), [("qwen2", False), ("bloom", True), ("opt", True), ("rwkv", True)]
)
def test_a_model_that_joins_documents_is_found(kind: str, joins: bool) -> None:
    """These take position_ids, or any argument, and attend to all documents before, or are recurrent."""
    import transformers

    sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"opt": {"word_embed_proj_dim": 32}, "qwen2": {"num_key_value_heads": 2}}.get(kind, {})
    torch.manual_seed(0)
    made = transformers.AutoConfig.for_model(kind, **sizes, use_cache=False)
    model = transformers.AutoModelForCausalLM.from_config(made).eval()
    with torch.no_grad():
        found = trial.joins_documents(lambda inputs: model(**inputs), torch.randint(0, 64, (1, 9)))
    assert found == joins


def test_a_model_that_joins_documents_is_refused_before_the_first_step(tmp_path: Path) -> None:
    import transformers

    sizes = {"vocab_size": 256, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    transformers.AutoConfig.for_model("opt", word_embed_proj_dim=32, **sizes).save_pretrained(
        tmp_path / "opt"
    )
    (tmp_path / "a.jsonl").write_text(LINES * 30)
    options = f"--task text --data a.jsonl --model hf:{tmp_path / 'opt'} --context 8 --max-steps 1 --no-save"
    done = start(tmp_path, "warm", [*options.split(), "--engine", "fsdp", "--documents", "apart"])
    assert done.returncode == 2
    assert done.stderr.count("--documents apart: in hf:") == 1
    assert "a document depends on the one before it in its sequence" in done.stderr
    assert "step 1/" not in done.stdout


def test_gaps_in_a_vocabulary_are_counted(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"?": 0, "cat": 100}, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.enable_truncation(2)  # of its former use
    made.save(str(tmp_path / "gaps.json"))
    (tmp_path / "a.txt").write_text("cat " * 40)
    made_task = task(
        "--data", str(tmp_path / "a.txt"), "--tokenizer", str(tmp_path / "gaps.json"), "--context", "3"
    )
    assert made_task.outputs == 128
    assert len(made_task.train) + len(made_task.test) == 13


def test_the_ranks_of_a_host_encode_once(tmp_path: Path) -> None:
    """The first one writes, the others wait for it, and nothing is left when all have read."""
    model_directory(tmp_path / "model")
    (tmp_path / "a.jsonl").write_text((json.dumps({"text": "the cat and a dog " * 40}) + "\n") * 400)
    code = (
        "import sys, time; from jobgen.train import config, data; from jobgen.train.data import tokens\n"
        "count = []; write = tokens._write\n"
        "tokens._write = lambda *words: (count.append(1), time.sleep(1), write(*words))\n"
        "task = data.of(config.parse(['--task', 'text', '--data', 'a.jsonl', '--tokenizer', 'model']))\n"
        "print(len(count), len(task.train), task.temporary.folder, flush=True); sys.stdin.read()"
    )
    env = clean_environment() | {
        "LOCAL_WORLD_SIZE": "3",
        "MASTER_PORT": "1234",
        "TMPDIR": str(tmp_path / "tmp"),
    }
    (tmp_path / "tmp").mkdir()
    words = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    ranks = [
        subprocess.Popen(words, cwd=tmp_path, env=env, stdin=pipe, stdout=pipe, text=True) for _ in range(3)
    ]
    # Each lives until all have read.
    lines = [rank.stdout.readline().split() for rank in ranks if rank.stdout]
    for rank in ranks:
        rank.communicate(timeout=120)
    assert sorted(line[0] for line in lines) == ["0", "0", "1"]
    assert len({(line[1], line[2]) for line in lines}) == 1
    assert Path(lines[0][2]).is_dir()
    assert [each.name for each in Path(lines[0][2]).parent.iterdir()] == [Path(lines[0][2]).name]


@pytest.mark.parametrize("what", ["directory", "file", "link"])
def test_a_user_is_not_blocked_by_what_another_one_has_made(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In /tmp anybody can make the directory of a user first. All ranks then use the next name."""
    folder, user = tmp_path / "tmp", os.getuid()
    theirs = folder / f"jobgen-{user}"
    folder.mkdir()
    {
        "directory": lambda: theirs.mkdir(),
        "file": lambda: theirs.touch(),
        "link": lambda: theirs.symlink_to(tmp_path),
    }[what]()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    if what == "directory":
        if user:
            pytest.skip("only root can make a directory of another user")
        os.chown(theirs, 12345, -1)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    (tmp_path / "a.jsonl").write_text(LINES * 9)
    options = ["--data", str(tmp_path / "a.jsonl"), "--context", "8"]
    made, other = task(*options), task(*options)
    assert made.temporary
    assert other.temporary
    assert made.temporary.folder == other.temporary.folder
    for each in (made, other):
        each.release()
    cached = task(*options, "--cache", str(tmp_path / "cache"))
    every = np.arange(len(cached.train))
    assert torch.equal(made.train.batch(every)[1], cached.train.batch(every)[1])
    assert sorted(folder.iterdir()) == [theirs, folder / f"jobgen-{user}-1"]
    assert not list((folder / f"jobgen-{user}-1").iterdir())


def test_what_killed_runs_have_left_is_removed(tmp_path: Path) -> None:
    """The next run on the host removes it, and nothing that a process still uses."""
    (tmp_path / "tmp").mkdir()
    host = tmp_path / f"tmp/jobgen-{os.getuid()}"
    code = (
        "import sys, time; from jobgen.train import config, data; from jobgen.train.data import tokens\n"
        "name, what, *more = sys.argv[1:]; codes = tokens._codes\n"
        "wait = lambda *words: (print(flush=True), time.sleep(600))\n"
        "if what == 'writes': tokens._codes = wait\n"
        "task = data.of(config.parse(['--task', 'text', '--data', name, '--context', '8', *more]))\n"
        "if what == 'reads': wait()\n"
        "task.release()\n"
    )
    env = clean_environment() | {"LOCAL_WORLD_SIZE": "2", "TMPDIR": str(tmp_path / "tmp")}

    def run(name: str, what: str, *more: str) -> subprocess.Popen[str]:
        (tmp_path / name).write_text(LINES * 9)
        words = [sys.executable, "-c", code, name, what, *more]
        return subprocess.Popen(words, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)

    kept = ("--cache", "cache")
    waiting = [
        run("a.jsonl", "writes"),
        run("b.jsonl", "reads"),
        run("c.jsonl", "writes", *kept),
    ]
    for process in waiting:
        assert process.stdout
        process.stdout.readline()
    before = sorted(host.iterdir())
    assert len(before) == 4  # a draft, two locks, and what is read
    assert run("d.jsonl", "ends", *kept).wait(120) == 0
    assert sorted(host.iterdir()) == before
    assert len(list((tmp_path / "cache").iterdir())) == 2
    for process in waiting:
        process.kill()
        process.communicate()
    assert run("e.jsonl", "ends", *kept).wait(120) == 0
    assert not list(host.iterdir())
    assert sorted(each.name[:5] for each in (tmp_path / "cache").iterdir()) == ["text-", "text-"]


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_a_group_can_share_a_cache(umask: int, tmp_path: Path) -> None:
    """As far as the umask of the user allows it, as everywhere."""
    (tmp_path / "a.jsonl").write_text(LINES * 9)
    before = os.umask(umask)
    try:
        task("--data", str(tmp_path / "a.jsonl"), "--context", "8", "--cache", str(tmp_path / "cache"))
        cache.through(tmp_path / "cache", "digits", None, lambda: data.load("digits", None).data())  # type: ignore[arg-type,return-value]
    finally:
        os.umask(before)
    made = sorted((tmp_path / "cache").rglob("*"))
    assert len(made) > 8
    for each in made:
        assert each.stat().st_mode & 0o777 == (0o777 if each.is_dir() else 0o666) & ~umask, each


def test_many_processes_take_turns_at_a_lock_that_each_removes(tmp_path: Path) -> None:
    """None fails because another one removes the file between two looks at it, and two are never inside."""
    code = (
        "import sys; from pathlib import Path; from jobgen.train import host_files\n"
        "inside = Path('inside')\n"
        "for _ in range(300):\n"
        "    with host_files.alone(Path('lock')):\n"
        "        inside.mkdir(); inside.rmdir()\n"
    )
    ranks = [subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path) for _ in range(4)]
    assert [rank.wait(120) for rank in ranks] == [0] * 4
    assert not list(tmp_path.iterdir())


def test_without_affinity_the_cores_are_those_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS."""
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    with tokens._all_cores() as cores:
        assert cores == 3


def test_engines_learn_the_same_from_chats(tmp_path: Path) -> None:
    """With masks and documents apart: ddp and ZeRO on two ranks as ddp on one, with other micro batches."""
    tokenizer = model_directory(tmp_path / "model")
    lines = [json.dumps({"messages": CHAT[: 2 + 2 * (n % 2)]}) + "\n" for n in range(60)]
    (tmp_path / "chats.jsonl").write_text("".join(lines))
    common = (
        f"--task text --data {tmp_path / 'chats.jsonl'} --tokenizer {tokenizer} --context 16 --max-steps 4 "
    )
    common += "--layers 2 --width 32 --heads 2 --global-batch 8"
    cases = {
        "ddp": "--engine ddp --accumulation 2 --documents apart",
        "zero1": "--zero-stage 1 --documents apart",
        "zero3 recompute": "--zero-stage 3 --recompute --documents apart",
        "fsdp": "--engine fsdp --documents apart",
        "joined": "--engine ddp",
    }
    (tmp_path / "one").mkdir()
    two = launch_cases(
        "languages.py", split({n: f"{common} {text}" for n, text in cases.items()}), 2, tmp_path
    )
    one = launch_cases(
        "languages.py", split({"ddp": f"{common} --engine ddp --documents apart"}), 1, tmp_path / "one"
    )
    for name in ("ddp", "zero1", "zero3 recompute", "fsdp"):
        assert two[name]["losses"] == pytest.approx(one["ddp"]["losses"], rel=2e-6), name
        assert two[name]["norms"] == pytest.approx(one["ddp"]["norms"], rel=1e-4), name
        assert two[name]["perplexity"] == pytest.approx(one["ddp"]["perplexity"], rel=1e-5), name
    assert two["joined"]["losses"] != pytest.approx(one["ddp"]["losses"], rel=1e-4)
