"""Options of the training module are checked before a job is submitted, by a table made from its parser."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobgen.train.config.options import parser
from jobgen.train.errors import CommonMistake

from jobgen.commands import cli
from jobgen.commands.schema import schema_text
from jobgen.jobfile import training_options
from tools import write_training_options

ROWS = json.loads(write_training_options.TABLE.read_text(encoding="utf-8"))
VALUED = [row["names"][0] for row in ROWS if row.get("type") != "boolean"]
# The training module also looks for files and modules, which the login node need not have.
LOOSER = [row["names"][0] for row in ROWS if "pattern" in row]


def test_the_table_is_that_of_the_parser() -> None:
    assert write_training_options.TABLE.read_text(encoding="utf-8") == write_training_options.text()


@given(
    name=st.sampled_from(VALUED),
    value=st.one_of(
        st.sampled_from(
            [
                *("0", "1", "2", "3", "abc", "nan", "inf", "1e-3", "-1", "0.5", "1_0", "30,60", "90s"),
                *("crop,flip", "crop:2", "type:a", "2x4", "adam", "ddp"),
            ]
        ),
        st.sampled_from([one for row in ROWS for one in row.get("enum", ())]),
        st.integers(-9, 10**19).map(str),
        st.floats().map(str),
        st.text(max_size=5),
    ),
)
def test_it_accepts_what_the_parser_accepts(name: str, value: str) -> None:
    words = [f"{name}={value}"]
    ours = accepted(lambda: training_options.check(words), training_options.OptionError)
    theirs = accepted(lambda: parser().parse_args(words), CommonMistake)
    assert ours == theirs or (ours and name in (*LOOSER, "--local_rank")), words


def accepted(check: object, error: type[Exception]) -> bool:
    try:
        check()  # type: ignore[operator]
    except error:
        return False
    return True


MISTAKES = [
    ("--nosuch-option 3", "--nosuch-option (after --): is no option of the training module"),
    ("--epoch 3", "--epoch (after --): is no option of the training module; did you mean --epochs?"),
    ("--epochs abc", "--epochs abc (after --): must be a whole number of at least 1"),
    ("--lr", "--lr (after --): needs a value"),
    ("--lr 1 more", "more (after --): belongs to no option"),
    ("--engine dpp", "--engine dpp (after --): must be one of deepspeed, pipeline, ddp, fsdp, colossalai; did you mean ddp?"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), MISTAKES)
def test_a_mistake_of_the_command_line(words: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("pbs", "submit slurm --dry-run"):
        assert cli.run([*command.split(), "--", *shlex.split(words)]) == 2
        assert capsys.readouterr() == ("", f"jobgen: {sentence}\n")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("lr = nan", "lr = nan (job.toml, line 2): must be a number above 0"),
        ("lrr = 1", "lrr = 1 (job.toml, line 2): is no option of the training module; did you mean --lr?"),
        ("nosuch = false", "nosuch = false (job.toml, line 2): is no option of the training module"),
        ("epochs = 1\nresidual = 3", "residual = 3 (job.toml, line 3): must be true or false"),
        ("residual = 'yes'", "residual = yes (job.toml, line 2): must be true or false"),
        ("epochs = true", "epochs = true (job.toml, line 2): needs a value"),
        ("epochs = 2.0", "epochs = 2.0 (job.toml, line 2): must be a whole number of at least 1"),
        ("epochs = [1, 2]", "epochs = 1,2 (job.toml, line 2): must be a whole number of at least 1"),
        ("epochs = { a = 1 }", "(job.toml, line 2): must be a number, a text in quotes, true, false, or a list of "),
        ("data = []", "data = '' (job.toml, line 2): must be a file or a directory"),
        ("resume = ''", "resume = '' (job.toml, line 2): must be the id of a checkpoint, or a directory"),
        ("csv = ''", "csv = '' (job.toml, line 2): must be a path"),
        ("top_k = 2\ntop-k = 1", "top-k (job.toml, line 3): top_k is the same option; keep one of them"),
        ("epochs = 1\n[sweep]\nlr = [0.1, nan]", "sweep = lr (job.toml, line 3): lr = nan: must be a number above 0"),
        ("epochs = 1\n[sweep]\nlrr = [0.1]", "lrr = 0.1: is no option of the training module; did you mean --lr?"),
    ],
)  # fmt: skip
def test_a_mistake_of_a_job_file(
    lines: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.toml").write_text(f"[train]\n{lines}\n")
    assert cli.run(["slurm", "--job", "job.toml"]) == 2
    assert sentence in capsys.readouterr().err


def test_the_schema_has_each_option_of_the_module_in_both_spellings() -> None:
    keys = {action.dest for action in parser()._actions} - {"help"}
    train = json.loads(schema_text())["$defs"]["JobFile"]["properties"]["train"]
    assert train["properties"].keys() == keys
    assert train["patternProperties"].keys() == {f"^{key.replace('_', '-')}$" for key in keys if "_" in key}
    assert all(one["description"] for one in train["properties"].values())
    assert train["additionalProperties"] is False


@pytest.mark.parametrize("row", ROWS[1:], ids=[row["names"][0] for row in ROWS[1:]])
def test_each_option_of_a_job_file(
    row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that is nearly right, a wrong type and an empty value each give one sentence with the line."""
    monkeypatch.chdir(tmp_path)
    key = training_options.key_of(row)
    for name in (f"{key}z", key[:-1] + key[-1].upper()):
        sentence = refused(f"{name} = 1", capsys)
        assert sentence.startswith(
            f"jobgen: {name} = 1 (job.toml, line 2): is no option of the training module"
        )
        assert "did you mean --" in sentence or len(key) < 4
    typed = row.get("type") or row.get("enum")
    for value in ("{ a = 1 }", "[[1]]", "1979-05-27", *(["''", "'?!'"] if typed else [])):
        sentence = refused(f"{key} = {value}", capsys)
        assert re.fullmatch(rf"jobgen: {key} = .* \(job\.toml, line 2\): must be .*\n", sentence), sentence


def refused(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what is printed of a job file whose table [train] has this line."""
    Path("job.toml").write_text(f"[train]\n{line}\n")
    assert cli.run(["slurm", "--job", "job.toml"]) == 2
    out, sentence = capsys.readouterr()
    assert (out, sentence.count("\n")) == ("", 1)
    return sentence


@pytest.mark.parametrize(
    "words",
    ["--csv --lr 1e-3", "--residual --model moe", "--resume", "--model my.mod:f", "-m jobgen.train evaluate x", "./own --nosuch"],
)  # fmt: skip
def test_what_is_right(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["pbs", "--", *words.split()]) == 0
