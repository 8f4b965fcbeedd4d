"""Which of repeated directives counts, and on which side of ours a user's have to stand."""

from __future__ import annotations

import pytest

from jobgen.check.checker import check
from jobgen.schedulers.precedence import split_user_directives
from jobgen.schedulers.table import SCHEDULERS
from jobgen.script.script import Script


@pytest.mark.parametrize(
    ("key", "row", "which"),
    [
        ("-l walltime", "pbspro", "first"),
        ("-l select", "pbspro", "first"),
        ("-N", "pbspro", "last"),
        ("-W umask", "pbspro", "last"),
        ("-W depend", "pbspro", "all"),
        ("-l walltime", "torque", "last"),
        ("-W depend", "torque", "last"),
        ("-W stagein", "torque", "all"),
        ("--time", "slurm", "last"),
        ("--mail-type", "slurm", "all"),
    ],
)
def test_which_one_counts(key: str, row: str, which: str) -> None:
    assert SCHEDULERS[row].grammar.precedence(key) == which


@pytest.mark.parametrize(
    ("line", "first", "last"),
    [
        ("-l walltime=2:00:00", ["-l walltime=2:00:00"], []),
        ("-lwalltime=2:00:00", ["-lwalltime=2:00:00"], []),
        ("-q debug", [], ["-q debug"]),
        ("-q debug  -l walltime=2:00:00", ["-l walltime=2:00:00"], ["-q debug"]),
        ("-l a=1 -N x -l b=2 -j n", ["-l a=1 -l b=2"], ["-N x -j n"]),
        ("-A 'two -l words' -l \"a='x y'\"", ["-l \"a='x y'\""], ["-A 'two -l words'"]),
        ("-hl a=1 -z", ["-hl a=1"], ["-z"]),
        ("-N -l", [], ["-N -l"]),
        ("-A 'open -l a=1", [], ["-A 'open -l a=1"]),
        ("-l a=1 stray -q b", ["-l a=1 stray"], ["-q b"]),
        ("-q", [], ["-q"]),
    ],
)
def test_a_user_s_directives_on_pbs_pro(line: str, first: list[str], last: list[str]) -> None:
    assert split_user_directives([line], SCHEDULERS["pbspro"].grammar) == (tuple(first), tuple(last))


def test_a_user_s_directives_elsewhere_stand_behind_ours() -> None:
    lines = ("-l walltime=2:00:00 -q debug", "-A one")
    for row in ("torque", "slurm", "local"):
        assert split_user_directives(lines, SCHEDULERS[row].grammar) == ((), lines)


@pytest.mark.parametrize(
    ("lines", "scheduler", "said"),
    [
        (["-N a", "-N b"], "pbspro", "last"),
        (["-l mem=1gb,walltime=1:00:00", "-l mem=2gb"], "pbspro", "first"),
        (["-W umask=022", "-W depend=afterok:1,umask=027"], "pbspro", "last"),
        (["-v A=1", "-v B=1"], "pbspro", "last"),
        (["-l walltime=1:00:00", "-l walltime=2:00:00"], "torque", "last"),
        (["-W depend=afterok:1", "-W depend=afterok:2"], "pbspro", None),
        (["-W depend=afterok:1", "-W depend=afterok:2"], "torque", "last"),
    ],
)
def test_check_says_which_one_counts(lines: list[str], scheduler: str, said: str | None) -> None:
    source = "#!/bin/bash\n" + "".join(f"#PBS {line}\n" for line in (*lines, "-l cput=1:00:00")) + "true\n"
    found = [
        one.reason for one in check(source.encode(), scheduler=scheduler) if one.rule == "repeated-directive"
    ]
    assert [said is not None and f"uses the {said} of repeated directives" in one for one in found] == [
        True
    ] * bool(said)


def test_what_check_reads_is_what_counts() -> None:
    source = b"#PBS -N a\n#PBS -l walltime=1:00:00\n#PBS -W depend=afterok:1\n#PBS -W umask=022,depend=afterany:2\n"
    source += b"#PBS -N b\n#PBS -l walltime=2:00:00\n"
    pro, torque = Script(source, "pbspro").request, Script(source, "torque").request
    assert (pro.name, pro.walltime, pro.depend) == ("b", 3600, ("afterok:1", "afterany:2"))
    assert (torque.name, torque.walltime, torque.depend) == ("b", 7200, ("afterok:1",))
