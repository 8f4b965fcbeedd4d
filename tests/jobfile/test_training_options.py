"""Options of the training module are checked before a job is submitted, by a table made from its parser."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobgen.train.config.options import parser
from jobgen.train.errors import CommonMistake

from jobgen.commands import cli
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
        ("nosuch = false", "nosuch = False (job.toml, line 2): is no option of the training module"),
        ("epochs = 1\nresidual = 3", "residual = 3 (job.toml, line 3): "),
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


@pytest.mark.parametrize(
    "words",
    ["--csv --lr 1e-3", "--residual --model moe", "--resume", "--model my.mod:f", "-m jobgen.train evaluate x", "./own --nosuch"],
)  # fmt: skip
def test_what_is_right(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["pbs", "--", *words.split()]) == 0
