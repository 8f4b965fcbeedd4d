"""A backslash at the end of a directive: qsub joins the next line, sbatch does not."""

from __future__ import annotations

import pytest

from jobgen.check.checker import check
from jobgen.convert.to_job_file import translation
from jobgen.convert.to_scheduler import conversion
from jobgen.script.directives import guess
from jobgen.script.script import Script

HEAD = {"slurm": "#!/bin/bash\n#SBATCH ", "pbspro": "#!/bin/bash\n#PBS ", "torque": "#!/bin/bash\n#PBS "}
END = {
    "slurm": "\n#SBATCH --nice=5\ntrue\n",
    "pbspro": "\n#PBS -p 5\ntrue\n",
    "torque": "\n#PBS -p 5\ntrue\n",
}
# The lines of the directive, and the options that a scheduler reads besides the last line; None if it refuses them.
# tests/cluster/test_joined_directives.py asks the real schedulers.
LINES: list[tuple[str, str, dict[str, str] | None, bool]] = [
    ("pbspro", "-N x \\\n    -l walltime=02:00:00", {"name": "x", "time": "02:00:00"}, True),
    ("pbspro", "-N x \\  \n -l \\\n\twalltime=02:00:00", {"name": "x", "time": "02:00:00"}, True),
    ("pbspro", "-l walltime=02:\\\n00:00", {"time": "02:00:00"}, True),
    ("pbspro", "-N x \\\n", {"name": "x"}, True),
    ("pbspro", "-N x \\\n#PBS -l walltime=02:00:00", None, True),
    ("pbspro", "-N x \\\n# comment", None, True),
    ("torque", "-N x \\\n    -l walltime=02:00:00", {"name": "x", "time": "02:00:00"}, True),
    ("torque", "-N x \\\n -l \\\n\twalltime=02:00:00", {"name": "x", "time": "02:00:00"}, True),
    ("torque", "-N x \\  \n  -l walltime=02:00:00", {"name": "x"}, False),
    ("torque", "-N x \\\n#PBS -l walltime=02:00:00", {"name": "x", "time": "02:00:00"}, True),
    ("slurm", "--job-name=x \\\n  --time=02:00:00", {"name": "x"}, False),
    ("slurm", "--job-name=x \\\n#SBATCH --time=02:00:00", {"name": "x", "time": "02:00:00"}, True),
    ("slurm", "--job-name=x\\\n#SBATCH --time=02:00:00", {"name": "x", "time": "02:00:00"}, True),
]


@pytest.mark.parametrize(("row", "lines", "read", "goes_on"), LINES)
def test_a_backslash(row: str, lines: str, read: dict[str, str] | None, goes_on: bool) -> None:
    source = f"{HEAD[row]}{lines}{END[row]}".encode()
    errors = {one.rule for one in check(source, scheduler=row) if one.severity == "error"}
    if read is None:
        assert errors == {"trailing-comment"}
        return
    script = Script(source, row)
    asked = script.request
    assert asked.name == read["name"] if "name" in read else asked.name is None
    assert asked.walltime == (7200 if "time" in read else None)
    assert any(option.value == "5" for option in script.options) == goes_on
    assert errors == (set() if goes_on else {"split-directive", "late-directive"})


PBS = "#!/bin/bash\n#PBS -l nodes=1:ppn=1 \\\n    -l walltime=01:00:00 \\\n -N x\n/opt/a x\n"


def test_the_lines_of_a_directive_are_no_commands() -> None:
    script = Script(PBS.encode(), "torque")
    assert [(one.line, one.node.text) for one in script.commands] == [(5, "/opt/a x")]
    assert script.directives.first_command == 5


def test_a_joined_directive_is_converted_as_a_whole() -> None:
    done = conversion.convert(Script(PBS.encode(), "torque"), "slurm")
    assert "#SBATCH --time=01:00:00\n" in done.text
    assert "walltime" not in done.text
    assert "\\\n" not in done.text
    assert done.text.endswith("/opt/a x\n")
    assert done.remarks == ()


def test_a_directive_in_a_line_that_torque_joins() -> None:
    text = PBS.replace("\\\n -N x", "\\\n#PBS -N x")
    done = conversion.convert(Script(text.encode(), "torque"), "slurm")
    assert "#SBATCH --job-name=x\n" in done.text
    assert done.remarks == ()
    found = [(one.line, one.rule) for one in check(text.encode()) if one.rule == "trailing-comment"]
    assert found == [(2, "trailing-comment")]


@pytest.mark.parametrize("target", ["slurm", "torque", "toml"])
def test_comments_behind_directives_are_no_words_of_them(target: str) -> None:
    lines = (
        "#PBS -l select=1:ncpus=2 # -q b\n#PBS -l walltime=1:0:0\n#PBS -N 'a # b'\n#PBS -q long\t# an account"
    )
    script = Script(f"#!/bin/bash\n{lines}\n./a\n".encode(), "pbspro")
    done = translation.convert(script) if target == "toml" else conversion.convert(script, target)
    assert (script.request.queue, script.request.name) == ("long", "a # b")
    assert [one for one in done.remarks if one.lost] == []
    found = [(one.line, one.what, one.why) for one in done.remarks if one.what[0] == "#"]
    why = "is left out: qsub of PBS Pro reads it as words of the directive, and refuses the script"
    assert found == [(2, "# -q b", f"{why}; 1 more directive with a comment")]


@pytest.mark.parametrize("target", ["pbspro", "toml"])
def test_options_that_sbatch_does_not_join_are_named(target: str) -> None:
    source = b"#!/bin/bash\n#SBATCH -N 1 -t 10 \\\n  --mem=1G\nsrun ./a\n"
    script = Script(source, "slurm")
    done = translation.convert(script) if target == "toml" else conversion.convert(script, target)
    assert [(one.line, one.what) for one in done.remarks if "does not join" in one.why] == [(3, "--mem=1G")]


def test_a_command_behind_a_backslash() -> None:
    found = check(b"#!/bin/bash\n#SBATCH -N 1 -t 10 \\\nsrun ./a\n")
    assert "split-directive" not in {one.rule for one in found}


def test_a_joined_line_shows_the_scheduler() -> None:
    assert guess(["#!/bin/bash", "#PBS -N x \\", "  -l nodes=2:ppn=2:gpus=1", "./a"]) == "torque"
