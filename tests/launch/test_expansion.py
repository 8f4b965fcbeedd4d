"""``--expand``: run-time values in the words of a program, in bash: one word each, and never code."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT
from support.jobs import run

from jobgen import JobgenError, JobSpec, render

NAMED = r"\$(?:\{([A-Za-z_]\w*|[1-9])\}|([A-Za-z_]\w*|[1-9]))"
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9)
ODD = [
    "$(touch pwned)",
    "`id`",
    "a'b",
    '"',
    "\\",
    "*",
    "$$",
    "${A:-x}",
    "$((1))",
    "~",
    "{a,b}",
    "-n",
    "$0",
    "$@",
]
PART = st.one_of(TEXT, st.sampled_from([*ODD, " ", "\n", "$A", "${B}", "$1", "${2}", "$2x", "$RANK", "$A_"]))
WORD = st.lists(PART, max_size=4).map("".join)
VALUE = st.one_of(TEXT, st.sampled_from(ODD))


@settings(max_examples=20)
@given(st.lists(WORD, min_size=1, max_size=16), VALUE, VALUE, VALUE)
def test_only_plain_names_are_replaced_and_no_value_is_code(
    words: list[str], a: str, b: str, one: str
) -> None:
    values = {"A": a, "B": b, "1": one, "2": "$1", "RANK": "7", "A_": "", "_": "_"}

    def value(match: re.Match[str]) -> str:
        return values.setdefault(match[1] or match[2], "")

    expected = [re.sub(NAMED, value, word, flags=re.ASCII) for word in words]
    script = render(JobSpec("local", ("printf", "<%s>", *words), expand=True))
    [program] = re.findall(r"^program\(\) .*?^}", script, re.MULTILINE | re.DOTALL)
    code = [f"set -u\n{program}"]
    if names := re.search(r"job_program_variables=\(.*?\)", script):
        code += [
            names[0],
            (ROOT / "templates/runtime/expand.sh").read_text(),
            'job_arguments=("$@")',
            "job_read_program_variables",
        ]
    env = {"PATH": os.environ["PATH"], **{name: one for name, one in values.items() if not name.isdecimal()}}
    arguments = [values.get(str(at), "") for at in range(1, 10)]
    done = subprocess.run(
        ["bash", "-c", "\n".join([*code, "program"]), "x", *arguments],
        env=env,
        capture_output=True,
        check=False,
    )
    assert done.stdout.decode() == "".join(f"<{word}>" for word in expected), done.stderr


def test_the_values_are_those_before_the_launch_and_of_each_rank(tmp_path: Path) -> None:
    """A variable that only the script has, one of the rank, and the text of another shell."""
    words = ("bash", "-c", 'echo "$0 of $1: $HOME"', "$colour $JOBGEN_ATTEMPT", "rank$RANK ${HOME}")
    done = run(tmp_path, "--expand", "--setup", "colour='light blue'", program=words)
    assert f"light blue 1 of rank0 {tmp_path}: {tmp_path}" in done.stdout.splitlines(), done.stdout


def test_each_step_has_the_values_of_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "jobgen.toml").write_text(
        '[launch]\nexpand = true\n[blocks]\nsetup = "A=one; B=two"\n[[step]]\ncommand = ["echo", "first $A"]\n'
        '[[step]]\ncommand = ["echo", "second $B"]\n'
    )
    done = run(tmp_path, "--job", str(tmp_path / "jobgen.toml"), program=())
    assert done.returncode == 0, done.stdout
    assert {"first one", "second two"} <= set(done.stdout.splitlines())


def test_a_value_that_is_missing_ends_the_job_before_the_launch(tmp_path: Path) -> None:
    done = run(tmp_path, "--expand", program=("echo", "never", "$1"))
    assert "the words of the job contain $1, which is not set; the script has 0 arguments" in done.stdout
    assert done.returncode == 71
    assert "never" not in done.stdout.replace("words", "").splitlines()


def test_what_cannot_be_expanded_is_refused() -> None:
    with pytest.raises(JobgenError, match=r"^expand = yes .*PBS Pro passes no arguments to a script, so \$1"):
        render(JobSpec("pbs", ("train.py", "$1"), expand=True))
    assert "job_value[1]" in render(JobSpec("pbs", ("train.py", "$1"), expand=True, dialect="torque"))
    with pytest.raises(JobgenError, match="--lr"):
        render(JobSpec("slurm", ("--lr", "$LR"), gpus_per_node=1))
    for key in ({"image": "$W/i.sif"}, {"image": "i.sif", "bind": ("$W:/w",)}):
        with pytest.raises(
            JobgenError, match=r"^(image|bind) = \$W.*\$W is passed as it is: --expand replaces it"
        ):
            render(JobSpec("slurm", ("train.py",), container="apptainer", **key))
    assert '--lr "${job_value[LR]}"' in render(
        JobSpec("slurm", ("--lr", "$LR"), gpus_per_node=1, expand=True)
    )
