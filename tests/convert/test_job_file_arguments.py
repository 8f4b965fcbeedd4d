"""Job files: arguments of a script in the words of its program."""

from __future__ import annotations

import pytest
from convert.conversions import job_file, remarks


@pytest.mark.parametrize(
    ("words", "named"), [("$2", True), ("--x=$2", True), ('"$2"', False), ('"a $2" b', False)]
)
def test_an_argument_without_quotes_is_one_word_of_the_program(words: str, named: bool) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 1 -t 10\nsrun ./a {words}\n")
    found = [one.why for one in done.remarks if one.what == "$2" and "if it is missing" in one.why]
    assert len(found) == 1, remarks(done)
    assert ("it is one word" in found[0]) is named


@pytest.mark.parametrize(
    ("words", "named"),
    [("--x=${2}", True), ('"--x=${2}"', False), ("--x=${2:-3}", False), ("$@ ${2}", False)],
)
def test_an_argument_in_a_variable_of_setup_is_one_word(words: str, named: bool) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 1 -t 10\nsrun ./a {words}\n")
    assert any("one word, also if it is missing" in one.why for one in done.remarks) is named, remarks(done)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ('"$A" -b x"$B"', []),
        ('"$A" -b $B', ["$2"]),
        ('-a "${A}_$B" $A', ["$1"]),
        ("$FLAGS", ["$1"]),
        ("$B $A", ["$1, $2"]),
        ("$C", ["${3}"]),
        ('"$C"', []),
    ],
)
def test_a_variable_in_quotes_is_one_word_in_the_script_too(words: str, named: list[str]) -> None:
    lines = f'A=$1\nB=$2\nC="${{3}}"\nFLAGS="-a $A"\nsrun ./a {words}'
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 1 -t 10\n{lines}\n")
    assert [one.what for one in done.remarks if "one word, also if it is missing" in one.why] == named


@pytest.mark.parametrize(("strict", "named"), [("", True), ("set -u", False), ("set +u", True)])
def test_an_argument_that_the_script_may_lack(strict: str, named: bool) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 1 -t 10\n{strict}\nA=$1\nsrun ./a $A\n")
    whys = [one.why for one in done.remarks if "in the program it is one word" in one.why]
    assert [why.endswith(", also if it is missing") for why in whys] == [named]
