"""The command: its output, its statuses, and whose script it takes one for."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, jobs

from jobgen.check import files
from jobgen.check.checker import Finding, check
from jobgen.check.formats import for_terminal
from jobgen.check.rules.table import RULES
from jobgen.errors import JobgenError
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
    (found,) = json.loads(jobgen("--format", "json", BAD).stdout)
    assert found["file"] == BAD
    assert (found["line"], found["rule"], found["severity"]) == (4, "late-directive", "error")
    assert found["help"] == "jobgen help late-directive"
    assert found["reason"]
    assert found["fix"]


def test_sarif() -> None:
    log = json.loads(jobgen("--format", "sarif", BAD, WARNING).stdout)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    assert {rule["defaultConfiguration"]["level"] for rule in driver["rules"]} == {"error", "warning", "note"}
    assert all(RULES[rule["id"]].title in rule["help"]["text"] for rule in driver["rules"])
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        (place,) = result["locations"]
        assert place["physicalLocation"]["region"]["startLine"] >= 1
        assert " " not in place["physicalLocation"]["artifactLocation"]["uri"]


def test_github() -> None:
    Path("a:b,c%.sh").write_bytes(Path(BAD).read_bytes())
    (line,) = jobgen("--format", "github", "a:b,c%.sh").stdout.splitlines()
    assert line.startswith(
        "::error file=a%3Ab%2Cc%25.sh,line=4,col=1,endColumn=18,title=late-directive::the directive is ignored: "
    )


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/bash\n#SBATCH --time=1:00:00\nset -e\ncd $DATA/ä\ncd /y/z; rm -r $OUT\n",
        "#!/bin/bash\nset -e\necho\n#SBATCH --time=1:00:00\nconda activate x\n",
        "#!/bin/bash\r\n#SBATCH --time=1:00:00\r\nsrun ./a\r\n",
    ],
)
def test_the_fixes_of_sarif_are_those_of_fix(text: str) -> None:
    path = Path("fix.sh")
    path.write_bytes(text.encode())
    (run,) = json.loads(jobgen("--format", "sarif", path).stdout)["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    regions = []
    for result in run["results"]:
        for one in result.get("fixes", ()):
            assert one["description"]["text"]
            (change,) = one["artifactChanges"]
            assert change["artifactLocation"]["uri"] == "fix.sh"
            regions += change["replacements"]
    assert regions
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)

    def place(region: dict[str, int], end: str) -> int:
        names = ("endLine", "endColumn") if end else ("startLine", "startColumn")
        line, column = (region[name] for name in names)
        return starts[line - 1] + column - 1

    edits = {
        (
            place(one["deletedRegion"], ""),
            place(one["deletedRegion"], "end"),
            one["insertedContent"]["text"],
        )
        for one in regions
    }
    new = text
    for start, end, inserted in sorted(edits, reverse=True):
        new = new[:start] + inserted + new[end:]
    jobgen("--fix", "--write", path)
    assert path.read_bytes().decode() == new


@pytest.mark.parametrize(
    ("rule", "script", "part"),
    [
        ("unquoted-path", "#!/bin/bash\n#SBATCH --time=1:00:00\necho é; rm -r $OUT $OUT/b\n", "$OUT"),
        ("short-walltime", "#!/bin/bash\n#SBATCH -J a24:00 --time=24:00\n", "24:00"),
        (
            "nodes-mismatch",
            "#!/bin/bash\n#SBATCH --nodes=2 --time=1:00:00\n\tsrun torchrun --nnodes=4 t.py\n",
            "--nnodes=4",
        ),
        (
            "ranks-mismatch",
            "#!/bin/bash\n#SBATCH --gpus-per-node=4\n#SBATCH --time=1:00:00\ntorchrun --nproc-per-node 8 8.py\n",
            "8",
        ),
        (
            "unchecked-cd",
            "#!/bin/bash\n#SBATCH --time=1:00:00\necho cd /a/b\ntrue; cd /a/b\nsrun ./a\n",
            "cd /a/b",
        ),
    ],
)
def test_the_columns_of_a_finding(rule: str, script: str, part: str) -> None:
    """They are the same in all forms, and count characters."""
    Path("one.sh").write_text(script)
    (found,) = json.loads(jobgen("--style", "--select", rule, "--format", "json", "one.sh").stdout)[:1]
    line = script.splitlines()[found["line"] - 1]
    assert line[found["column"] - 1 : found["end_column"] - 1] == part
    log = json.loads(jobgen("--style", "--select", rule, "--format", "sarif", "one.sh").stdout)
    region = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]
    columns = {"startColumn": found["column"], "endColumn": found["end_column"]}
    assert region == {"startLine": found["line"]} | columns
    text = jobgen("--style", "--select", rule, "--format", "github", "one.sh").stdout
    assert f",col={found['column']},endColumn={found['end_column']}," in text
    (one, *_) = (one for one in check(script.encode(), "one.sh") if one.rule == rule)
    source, marks = (text.split("| ", 1)[1] for text in for_terminal([one], colours=False).splitlines()[1:3])
    assert source[marks.index("^") : len(marks)] == part


def test_severity_and_strict() -> None:
    assert jobgen("--strict", WARNING).returncode == 1
    done = jobgen("--severity", "error", "--strict", WARNING)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "nothing found in 1 script\n")


def test_select_and_ignore() -> None:
    assert jobgen("--select", "lost-status", BAD).returncode == 0
    assert jobgen("--select", "lost-status,late-directive", BAD).returncode == 1
    assert jobgen("--ignore", "late-directive", BAD).returncode == 0


@pytest.mark.parametrize("words", [("help", "late-directive"), ("check", "--explain", "late-directive")])
def test_the_text_of_a_rule(words: tuple[str, ...]) -> None:
    text = jobs.jobgen(*words).stdout
    rule = RULES["late-directive"]
    assert text.startswith(f"late-directive: {rule.title} (error)\n")
    assert all(f"    {line}" in text for line in pages.files(rule)["bad.sh"].splitlines() if line)


def test_help_of_an_unknown_rule() -> None:
    done = jobs.jobgen("help", "late-directves")
    assert (done.returncode, "did you mean late-directive?" in done.stderr) == (2, True)


def test_a_folder(tmp_path: Path) -> None:
    Path("below/.git").mkdir(parents=True)
    Path("below/.git/job.sh").write_bytes(Path(BAD).read_bytes())
    Path("below/tool.sh").write_text("#!/bin/bash\necho hello\n")
    empty = jobgen("below")
    assert (empty.returncode, "neither a job file nor a file with directives" in empty.stderr) == (2, True)
    Path("below/night").write_bytes(Path(BAD).read_bytes())
    done = jobgen("below", "below/night")
    assert done.stdout.startswith("below/night:4: error")
    assert done.stderr == "1 error found in 1 script\n"


JOB_FILE = """\
scheduler = "slurm"

[job]
walltime = "00:30:00"

[resources]
nodes = 2

[launch]
launcher = "torchrun"

[environment]
env = { HF_TOKEN = "hf_abcdefghijklmnopqrstuvwxyz123456" }

[blocks]
setup = '''
echo start
rm -rf $RESULTS/old
'''

[program]
command = ["train.py"]
"""


def test_a_job_file_is_checked_by_its_lines() -> None:
    Path("jobgen.toml").write_text(JOB_FILE)
    found = json.loads(jobgen("--format", "json", "jobgen.toml").stdout)
    lines = JOB_FILE.splitlines()
    assert [(one["file"], lines[one["line"] - 1][:8], one["rule"]) for one in found] == [
        ("jobgen.toml", "env = { ", "secret-in-script"),
        ("jobgen.toml", "rm -rf $", "unquoted-path"),
    ]


def test_a_value_in_the_table_of_one_scheduler_has_its_own_line() -> None:
    Path("jobgen.toml").write_text(
        'scheduler = "slurm"\n[job]\nname = "a"\n[program]\ncommand = ["env", "a"]\n'
        '[slurm]\ndirective = [\n  "--exclude=a",\n  "--mem=3X",\n]\n'
    )
    found = jobgen("--severity", "error", "jobgen.toml").stdout
    assert found.startswith("jobgen.toml:9: error: --mem=3X is refused")


def test_a_job_file_silences_rules_of_the_scripts_beside_it() -> None:
    Path("jobgen.toml").write_text(JOB_FILE + '\n[check]\nsilence = ["late-directive", "secret-in-script"]\n')
    assert jobgen(BAD).stderr == "nothing found in 1 script\n"
    assert jobgen("jobgen.toml").stderr == "1 note found in 1 script\n"
    Path("jobgen.toml").write_text('[check]\nsilence = ["late-directves"]\n')
    done = jobgen(BAD)
    assert (done.returncode, "did you mean late-directive?" in done.stderr) == (2, True)


def test_a_folder_with_a_job_file() -> None:
    Path("jobs").mkdir()
    Path("jobs/jobgen.toml").write_text(JOB_FILE)
    assert jobgen("jobs").stdout.startswith("jobs/jobgen.toml:")


def test_a_job_file_with_a_mistake_names_its_line() -> None:
    Path("jobgen.toml").write_text(JOB_FILE.replace("nodes = 2", "nodes = -2"))
    done = jobgen("jobgen.toml")
    assert (done.returncode, "jobgen.toml, line 7" in done.stderr) == (2, True)


def test_the_source_line_on_a_terminal() -> None:
    script = b"#!/bin/bash\n#SBATCH --time=24:00\nsrun ./a\n"
    (found,) = (one for one in check(script, "job.sh") if one.rule == "short-walltime")
    lines = for_terminal([found], colours=True).splitlines()
    assert lines[0].startswith("job.sh:2: \x1b[33mwarning\x1b[0m: ")
    assert lines[1:3] == ["     2 | #SBATCH --time=24:00", "       | \x1b[33m               ^~~~~\x1b[0m"]
    assert "\x1b" not in for_terminal([found], colours=False)


def test_a_terminal_names_the_help_of_the_rules() -> None:
    here, there = pty.openpty()
    command = [sys.executable, "-m", "jobgen", "check", BAD]
    done = subprocess.run(
        command, stdout=there, stderr=subprocess.PIPE, text=True, env={**os.environ, "TERM": "xterm"}
    )
    os.close(there)
    os.close(here)
    assert done.stderr == "1 error found in 1 script; jobgen help RULE explains a rule\n"


def test_the_caret_is_below_its_word_also_behind_wide_characters() -> None:
    script = "#!/bin/bash\n#SBATCH --nodes=2 --time=1:00:00\necho 数据 && srun torchrun --nnodes=4 t.py\n"
    (found,) = (one for one in check(script.encode(), "job.sh") if one.rule == "nodes-mismatch")
    lines = for_terminal([found], colours=False).splitlines()
    assert lines[2].index("^") == lines[1].index("--nnodes") + 2


def test_the_source_line_shows_no_secret_and_moves_no_cursor() -> None:
    found = Finding(
        "job.sh", 1, "a-rule", "error", "bad", "mend it", "export HF_TOKEN=hf_abcdefgh1234567890 \x1b[2J"
    )
    text = for_terminal([found], colours=False)
    assert "hf_abcdefgh" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "body",
    [
        "torchrun --nnodes=4 train.py # jobgen: disable=nodes-mismatch",
        "torchrun --nnodes=4 \\\n  train.py # jobgen: disable=nodes-mismatch",
        "# jobgen: disable=nodes-mismatch\ntorchrun \\\n  --nnodes=4 train.py",
    ],
)
def test_a_comment_disables_a_rule_for_its_line(body: str) -> None:
    script = f"#!/bin/bash\n#SBATCH --nodes=2 --time=1:00:00\nset -e\n{body}\n"
    assert "nodes-mismatch" not in {one.rule for one in check(script.encode())}
    script += "torchrun --nnodes=4 train.py\n"
    assert "nodes-mismatch" in {one.rule for one in check(script.encode())}


def test_list() -> None:
    lines = jobgen("--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(RULES)
    assert [line.split()[1] for line in lines] == [rule.severity for rule in RULES.values()]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "check: name one script at least, or - for standard input"),
        (("/nowhere/job.sh",), "/nowhere/job.sh (command line): cannot be read: No such file or directory"),
        (
            ("--format", "xml", BAD),
            "--format xml (command line): must be text, json, sarif or github",
        ),
        (
            ("--select", "late-directives", BAD),
            "--select late-directives (command line): there is no rule late-directives: jobgen check --list; "
            "did you mean late-directive?",
        ),
        (
            ("--scheduler", "slrm", BAD),
            "--scheduler slrm (command line): must be pbspro, torque, slurm or shell; did you mean slurm?",
        ),
    ],
)
def test_mistakes_are_one_sentence(words: tuple[object, ...], sentence: str) -> None:
    done = jobgen(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"jobgen: {sentence}\n")


@pytest.mark.parametrize(
    ("name", "reason"), [("absent.sh", "cannot be read"), ("tool.toml", "a job file has no such key")]
)
def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "tool.toml").write_text("x = 1\n")
    done = jobgen(tmp_path / name, BAD)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stdout == jobgen(BAD).stdout


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


def test_a_folder_of_too_many_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(files, "_MOST", 3)
    with pytest.raises(JobgenError, match="has more than 3 files: name the folders of scripts"):
        files.scripts_in([str(ROOT / "tests/check")])


def test_a_toml_with_directives_in_a_folder_is_no_job_file() -> None:
    Path("jobs").mkdir()
    Path("jobs/notes.toml").write_text("#SBATCH --nodes=1\n")
    Path("jobs/job.sh").write_bytes(Path(BAD).read_bytes())
    Path("jobs/job.sh~").write_bytes(Path(BAD).read_bytes())  # the copy of an editor
    Path("jobs/README.md").write_bytes(Path(BAD).read_bytes())
    assert jobgen("jobs").stderr == "1 error found in 1 script\n"


OTHERS = {
    "empty.sh": (b"", "is empty"),
    "blank.sh": (b" \n\n", "is empty"),
    "picture.png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is no text, so no batch script"),
    "wide.sh": ("#!/bin/bash\n".encode("utf-16"), "is in UTF-16, which no shell reads: save it in UTF-8"),
    "README.md": (b"# Title\n\nText about it.\n", "is no batch script: it has no #! line and no directive"),
    "LICENSE": (b"You may (or may not) use it; that's it.\n", "is no batch script: it has no #! line"),
    "slurm-12.out": (b"srun: error: node1: task 0\n", "is no batch script: it has no #! line"),
    "slurm-13.out": (
        b"#!/bin/bash\n#SBATCH -t 60\na\nEpoch 1 (loss 3)\n",
        "is no batch script: it has the name",
    ),
    "train.py": (b"import torch\n", "is no batch script: it has no #! line and no directive"),
    "tool": (b"#!/usr/bin/env python3\nprint()\n", "is a program of another language"),
    "flow.nf": (b"#!/bin/bash nextflow\nprocess a {\n}\n", "is a program of another language"),
    "nextflow.config": (b"process {\n  executor = 'slurm'\n}\n", "is no batch script: it has no #! line"),
    "docker.config": (b"docker {\n  enabled = true\n}\n", "is no batch script: it has no #! line"),
    "run.ini": (b"[run]\nsteps = 3\n", "is no batch script: it has no #! line"),
    "VERSION": (b"1.0.0\n", "is no batch script: it has no #! line"),
    "Makefile": (b".PHONY: all\nall:\n\tcd src && make\n", "is no batch script: it has no #! line"),
    "water.pdb": (b"ATOM 1 O HOH\nATOM 2 H HOH\n", "is no batch script: it has no #! line"),
    **dict.fromkeys(
        ("job.sh~", ".goutputstream-2245L1"),
        (b"#!/bin/bash\n#SBATCH -t 60\nif true\n", "is the backup copy that an editor keeps of a file"),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("options", [(), ("--fix",), ("--format", "json")])
def test_what_is_no_script_has_a_sentence(name: str, options: tuple[str, ...]) -> None:
    """Alone it is a mistake; beside scripts it is left out, as in ``jobgen check *``."""
    content, sentence = OTHERS[name]
    Path(name).write_bytes(content)
    done = jobgen(*options, name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"jobgen: {name} (command line): {sentence}")
    beside = jobgen(*options, name, GOOD)
    assert beside.returncode == 0
    assert sentence in beside.stderr
    assert jobgen(name, BAD).returncode == 1


@pytest.mark.parametrize(
    "text",
    [
        "#SBATCH -N 1\nhostname\n",
        "srun python3 x.py\n",
        "#!/bin/bash\nhostname\n",
        "#!/usr/bin/env bash\necho\n",
        "#!/bin/bash -l\nsolver\n",
        "# a comment\nN=4\nmpirun -np $N solver\n",
        'cd "$PBS_O_WORKDIR"\n./solver\n',
        "if [ -d data ]; then\n  ./solver\nfi\n",
        "export N=4\n./solver\n",
    ],
)
def test_what_may_be_a_script_is_checked(text: str) -> None:
    Path("job").write_text(text)
    assert jobgen("job").stderr.endswith(" in 1 script\n")
    assert jobgen("-", stdin=text).stderr.endswith(" in 1 script\n")
    python = Path("job.py")
    python.write_text("#!/usr/bin/env python3\n#SBATCH -N 1\nprint()\n")  # sbatch runs it
    assert jobgen(python).stderr.endswith(" in 1 script\n")
