"""What is reported first, what is summarized, and what a project or a site asks of scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import jobs

SCRIPT = """\
#!/bin/bash
#SBATCH --time=01:00:00
cd $DATA
cp $SRC/a $SRC/b
cd $OUT
module load gcc cuda/10.2
python train.py > log.txt
#SBATCH --nodes=2
echo done
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.sh").write_text(SCRIPT)


def findings(*words: str) -> list[tuple[str, str]]:
    found = json.loads(jobs.jobgen("check", "--format", "json", *words, "job.sh").stdout)
    return [(one["severity"], one["rule"]) for one in found]


def test_errors_come_first_and_style_is_one_note_each() -> None:
    assert findings() == [
        ("error", "late-directive"),
        ("warning", "no-errexit"),
        ("note", "unchecked-cd"),
        ("note", "unquoted-path"),
    ]


def test_the_note_names_its_lines_and_the_option_that_reports_each() -> None:
    text = jobs.jobgen("check", "job.sh").stdout
    assert "a blank in a variable splits the path, in 4 places (lines 3, 4, 5) [unquoted-path]" in text
    assert "jobgen check --style reports each" in text
    rules = [rule for _, rule in findings("--style")]
    assert (rules.count("unquoted-path"), rules.count("unchecked-cd")) == (4, 2)


def test_style_is_no_warning_for_strict() -> None:
    Path("job.sh").write_text("#!/bin/bash\n#SBATCH --time=01:00:00\ncd $DATA\nls a.txt\n")
    assert jobs.jobgen("check", "--strict", "--ignore", "no-errexit", "job.sh").returncode == 0
    assert jobs.jobgen("check", "--strict", "--style", "--ignore", "no-errexit", "job.sh").returncode == 1


def test_a_project_requires_an_account_and_forbids_modules() -> None:
    Path("jobgen.toml").write_text(
        '[check]\nrequire = ["account", "-l filesystems"]\nforbidden_modules = ["cuda/10.*", "anaconda"]\n'
    )
    done = jobs.jobgen("check", "--select", "missing-directive,forbidden-module", "job.sh")
    assert done.stdout == (
        "job.sh:2: warning: no -l filesystems is requested: jobgen.toml requires it [missing-directive]\n"
        "    add #SBATCH -l filesystems...\n"
        "job.sh:2: warning: no account is requested: jobgen.toml requires it [missing-directive]\n"
        "    add #SBATCH --account=ACCOUNT\n"
        "job.sh:6: warning: jobgen.toml forbids the module cuda/10.2, by cuda/10.* [forbidden-module]\n"
        "    load another module\n"
    )


@pytest.mark.parametrize(
    ("command", "forbidden"),
    [
        ("module load anaconda/2023", True),
        ("ml gcc anaconda", True),
        ("ml load anaconda", True),
        ("module swap anaconda gcc", False),
        ("module swap gcc anaconda", True),
        ("module unload anaconda", False),
        ("module load anaconda3", False),
        ("ml spider anaconda", False),
    ],
)
def test_modules_that_a_script_loads(command: str, forbidden: bool) -> None:
    Path("jobgen.toml").write_text('[check]\nforbidden_modules = ["anaconda"]\n')
    Path("job.sh").write_text(f"#!/bin/bash\n#SBATCH --time=01:00:00\n{command}\n")
    assert ("warning", "forbidden-module") in findings() or not forbidden
    assert ("warning", "forbidden-module") not in findings() or forbidden


def test_a_requirement_that_is_not_known() -> None:
    Path("jobgen.toml").write_text('[check]\nrequire = ["acount"]\n')
    done = jobs.jobgen("check", "job.sh")
    assert done.returncode == 2
    assert "require = acount (jobgen.toml): must be account, name, queue" in done.stderr
    assert "did you mean account?" in done.stderr


def test_a_site_asks_what_it_makes_mandatory_and_its_own_table() -> None:
    Path("mine.toml").write_text(
        'title = "Mine"\nscheduler = "slurm"\n[mandatory]\naccount = "abc"\n'
        '[check]\nsilence = ["late-directive"]\nforbidden_modules = ["gcc"]\n'
    )
    found = findings("--site", "./mine.toml")
    assert ("warning", "missing-directive") in found
    assert ("warning", "forbidden-module") in found
    assert ("error", "late-directive") not in found
    Path("mine.toml").write_text('title = "Mine"\nscheduler = "slurm"\n[check]\nrequire = ["acount"]\n')
    done = jobs.jobgen("check", "--site", "./mine.toml", "job.sh")
    assert (done.returncode, "must be account, name, queue" in done.stderr) == (2, True)


def test_a_job_file_with_a_module_that_its_table_forbids() -> None:
    Path("jobgen.toml").write_text(
        'scheduler = "slurm"\n[job]\nwalltime = "1:00:00"\n[environment]\nmodule = ["cuda/10.2"]\n'
        '[program]\ncommand = ["train.py"]\n[check]\nforbidden_modules = ["cuda"]\nrequire = ["account"]\n'
    )
    found = json.loads(jobs.jobgen("check", "--format", "json", "jobgen.toml").stdout)
    assert [(one["rule"], one["line"]) for one in found if one["severity"] == "warning"] == [
        ("missing-directive", 3),
        ("forbidden-module", 5),
    ]
