"""The command: its output, its statuses, and whose script it takes one for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, jobs

from jobgen.check.checker import check
from jobgen.check.rules.table import RULES
from jobgen.script.directives import guess
from tools import write_rule_pages as pages

BAD, GOOD, WARNING = "bad.sh", "good.sh", "warning.sh"


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages.write(RULES["late-directive"], tmp_path)
    (tmp_path / WARNING).write_bytes(pages.script("lost-status", "bad"))
    monkeypatch.chdir(tmp_path)


def jobgen(*words: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return jobs.jobgen("check", *words, stdin=stdin)


def test_text_and_status_of_errors() -> None:
    done = jobgen(BAD)
    assert done.returncode == 1
    assert done.stdout.startswith(
        f"{BAD}:4: error: the directive is ignored: it follows the first command, in line 3"
    )
    assert "[late-directive]" in done.stdout
    assert done.stderr == "1 error found in 1 script\n"


def test_warnings_alone_are_no_failure() -> None:
    done = jobgen(WARNING)
    assert (done.returncode, done.stderr) == (0, "1 warning found in 1 script\n")


def test_several_files_and_standard_input() -> None:
    done = jobgen(GOOD, "-", stdin=Path(BAD).read_text())
    assert done.returncode == 1
    assert done.stdout.startswith("<stdin>:4: ")
    assert done.stderr == "1 error found in 2 scripts\n"


def test_json() -> None:
    (found,) = json.loads(jobgen("--json", BAD).stdout)
    assert found["file"] == BAD
    assert (found["line"], found["rule"], found["severity"]) == (4, "late-directive", "error")
    assert found["page"] == "docs/rules/late-directive.md"
    assert found["reason"]
    assert found["fix"]


def test_sarif() -> None:
    log = json.loads(jobgen("--sarif", BAD, WARNING).stdout)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    assert {rule["defaultConfiguration"]["level"] for rule in driver["rules"]} == {"error", "warning", "note"}
    assert all((ROOT / rule["help"]["text"]).is_file() for rule in driver["rules"])
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        (place,) = result["locations"]
        assert place["physicalLocation"]["region"]["startLine"] >= 1
        assert " " not in place["physicalLocation"]["artifactLocation"]["uri"]


def test_list() -> None:
    lines = jobgen("--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(RULES)
    assert [line.split()[1] for line in lines] == [rule.severity for rule in RULES.values()]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "check: name one script at least, or - for standard input"),
        (("/nowhere/job.sh",), "/nowhere/job.sh (command line): cannot be read: No such file or directory"),
        (("/",), "/ (command line): cannot be read: Is a directory"),
        (("--json", "--sarif", BAD), "--json and --sarif exclude each other"),
        (
            ("--scheduler", "slrm", BAD),
            "--scheduler slrm (command line): must be pbspro, torque, slurm or shell; did you mean slurm?",
        ),
    ],
)
def test_mistakes_are_one_sentence(words: tuple[object, ...], sentence: str) -> None:
    done = jobgen(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"jobgen: {sentence}\n")


def test_a_file_that_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "long.sh"
    path.write_bytes(b"#" * 1_000_001)
    done = jobgen(path)
    assert (done.returncode, "is longer than a megabyte" in done.stderr) == (2, True)


def test_without_tree_sitter_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['tree_sitter_bash'] = None; from jobgen.commands.cli import run; sys.exit(run(['check', sys.argv[1]]))"
    done = subprocess.run([sys.executable, "-c", code, BAD], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "jobgen: reading a script needs the Python packages tree-sitter and tree-sitter-bash: "
        "pip install tree-sitter tree-sitter-bash\n"
    )


def test_help_does_not_load_the_rules() -> None:
    code = "import sys; from jobgen.commands.cli import run; run(['--help']); print('jobgen.check.rules' in sys.modules, file=sys.stderr)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
        == "False\n"
    )


@pytest.mark.parametrize(
    ("text", "scheduler"),
    [
        ("echo hello", "shell"),
        ("#SBATCH -N 1", "slurm"),
        ("# SBATCH -N 1", "slurm"),
        ("#PBS -N x\n#PBS -l select=1", "pbspro"),
        ("#PBS -N x", "pbspro"),
        ("#PBS -l nodes=2:ppn=1:gpus=1", "torque"),
        ("#PBS -l nodes=2:ppn=4\nmpirun -np $PBS_NP ./a", "torque"),
        ("#PBS -t 0-9", "torque"),
        ("#PBS -J 0-9\n#PBS -l nodes=1:ppn=1:gpus=1", "pbspro"),
        ("#PBS -l nodes=2:ppn=1\n#SBATCH -N 2\n#SBATCH -n 2", "slurm"),
    ],
)
def test_whose_script_it_is(text: str, scheduler: str) -> None:
    assert guess(text.split("\n")) == scheduler


def test_the_scheduler_can_be_said() -> None:
    script = b"#!/bin/bash\n#PBS -l nodes=2:ppn=1:gpus=1\n#PBS -l walltime=01:00:00\nhostname\n"
    assert check(script) == []
    assert [one.rule for one in check(script, scheduler="pbspro")] == ["torque-gpus"]
