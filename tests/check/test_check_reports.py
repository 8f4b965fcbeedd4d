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
        ("bash -lc 'module load anaconda; ./a'", True),
        ("srun bash -c 'module load anaconda; ./a'", True),
        ("for m in gcc anaconda; do module load $m; done", True),
        ("NAME=anaconda/3; module load $NAME", True),
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
    assert "require = acount (jobgen.toml, line 2): must be account, name, queue" in done.stderr
    assert "did you mean account?" in done.stderr


def test_a_question_ends_with_its_own_mark() -> None:
    Path("job.sh").write_text("#!/bin/bash\n#SBATCH --time=01:00:00\n./a  # jobgen: disable=fixed-prt\n")
    assert "did you mean fixed-port? Fix: use" in jobs.jobgen("check", "--format", "github", "job.sh").stdout


def test_the_lines_of_a_reason_are_short() -> None:
    lines = jobs.jobgen("help", "fixed-port").stdout.splitlines()
    assert max(map(len, lines)) <= 100


def test_a_wrong_table_is_said_once() -> None:
    Path("jobgen.toml").write_text('[check]\nrequire = ["acount"]\n')
    Path("other.sh").write_text(Path("job.sh").read_text())
    done = jobs.jobgen("check", "job.sh", "other.sh")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("option", "required", "found"),
    [("--constraint=a100", "-C", False), ("-Ca100", "--constraint", False), ("--qos=a", "-C", True)],
)
def test_a_required_option_has_two_names(option: str, required: str, found: bool) -> None:
    Path("jobgen.toml").write_text(f'[check]\nrequire = ["{required}"]\n')
    Path("job.sh").write_text(f"#!/bin/bash\n#SBATCH --time=01:00:00 {option}\nsrun ./a\n")
    assert (("warning", "missing-directive") in findings()) == found


def test_the_nearest_table_holds_for_the_folders_below() -> None:
    Path("jobgen.toml").write_text('[check]\nrequire = ["account"]\n')
    Path("a/b").mkdir(parents=True)
    Path("a/b/job.sh").write_text("#!/bin/bash\n#SBATCH --time=01:00:00\nsrun ./a\n")
    assert "jobgen.toml requires it" in jobs.jobgen("check", "a/b/job.sh").stdout
    done = jobs.jobgen("check", "-", stdin="#!/bin/bash\n#SBATCH --time=01:00:00\nsrun ./a\n")
    assert "jobgen.toml requires it" in done.stdout
    Path("a/jobgen.toml").write_text('[check]\nforbidden_modules = ["gcc"]\n')
    assert jobs.jobgen("check", "a/b/job.sh").stdout == ""
    Path("a/jobgen.toml").write_text('scheduler = "slurm"\n')
    assert "jobgen.toml requires it" in jobs.jobgen("check", "a/b/job.sh").stdout


def test_a_job_file_with_a_table_for_scripts_only_is_no_job() -> None:
    Path("jobgen.toml").write_text('[check]\nsilence = ["unquoted-path"]\n')
    done = jobs.jobgen("check", "jobgen.toml")
    assert (done.returncode, done.stdout) == (0, "")
    assert "jobgen.toml: has no job: its table [check] is for the scripts" in done.stderr
    assert "jobgen.toml" not in jobs.jobgen("check", ".").stderr


MINE = 'title = "Mine"\nscheduler = "{}"\n[check]\nrequire = ["account"]\nforbidden_modules = ["gcc"]\n'


def test_a_job_file_is_checked_by_the_table_of_its_site() -> None:
    Path("mine.toml").write_text(MINE.format("slurm"))
    Path("gpu.toml").write_text(
        'site = "./mine.toml"\n[job]\nwalltime = "1h"\n[environment]\nmodule = ["gcc"]\n'
        '[program]\ncommand = ["./a"]\n'
    )
    text = jobs.jobgen("check", "gpu.toml").stdout
    assert "gpu.toml:3: warning: no account is requested: the site mine requires it" in text
    assert 'write account = "ACCOUNT" in [job]' in text
    assert "gpu.toml:5: warning: the site mine forbids the module gcc" in text


JOB_FOR_ANY = '[job]\nwalltime = "1h"\nlog = "logs/%x.out"\n[program]\ncommand = ["./a"]\n'


@pytest.mark.parametrize(
    ("options", "prefix"), [("slurm", "#SBATCH"), ("pbspro", "#PBS"), ("torque", "#PBS")]
)
@pytest.mark.parametrize("own", ["", 'scheduler = "slurm"\n'])
def test_the_scheduler_of_the_command_line_wins_over_that_of_a_job_file(
    options: str, prefix: str, own: str
) -> None:
    Path("gpu.toml").write_text(own + JOB_FOR_ANY)
    found = json.loads(jobs.jobgen("check", "--scheduler", options, "--format", "json", "gpu.toml").stdout)
    logs = [one for one in found if one["rule"] == "output-directory"]
    assert [one["line"] for one in logs] == [4 if own else 3]
    assert ("when the job ends" in logs[0]["reason"]) == (prefix == "#PBS")


def test_the_site_of_the_command_line_gives_a_job_file_its_scheduler() -> None:
    Path("mine.toml").write_text(MINE.format("pbs"))
    Path("gpu.toml").write_text(JOB_FOR_ANY)
    text = jobs.jobgen("check", "--site", "./mine.toml", "gpu.toml").stdout
    assert "the site mine requires it" in text
    assert "when the job ends" in text
    Path("job.sh").write_text("#!/bin/bash\n#SBATCH --time=01:00:00\nsrun ./a\n")
    done = jobs.jobgen("check", "--site", "./mine.toml", "job.sh")
    assert "job.sh: read as PBS Pro, which ignores its directives: they are for Slurm\n" in done.stderr
    done = jobs.jobgen("check", "--site", "./mine.toml", "--scheduler", "slurm", "job.sh")
    assert (done.returncode, done.stderr) == (
        2,
        "jobgen: --scheduler slurm (command line): Mine has PBS Pro; leave one of the two out\n",
    )


def test_a_site_that_silences_an_unknown_rule() -> None:
    Path("mine.toml").write_text(f"{MINE.format('slurm')}silence = ['late-directives']\n")
    done = jobs.jobgen("check", "--site", "./mine.toml", "job.sh")
    assert (
        "silence = late-directives (./mine.toml, line 6): there is no such rule; did you mean" in done.stderr
    )


@pytest.mark.parametrize(
    ("key", "name"),
    [("silense", "silence"), ("forbiden_modules", "forbidden_modules")],
)
def test_an_unknown_key_in_the_table_of_a_site(key: str, name: str) -> None:
    Path("mine.toml").write_text(f"{MINE.format('slurm')}{key} = []\n")
    done = jobs.jobgen("check", "--site", "./mine.toml", "job.sh")
    assert "[check] has no such key: use silence, require or forbidden_modules; did you mean" in done.stderr
    assert f"did you mean {name}?" in done.stderr


@pytest.mark.parametrize(
    ("line", "comment", "silent"),
    [
        ("module", "# jobgen: disable=forbidden-module", True),
        ("module", "# jobgen: disable=forced-devices", False),
        ("above", "# jobgen: disable=forbidden-module", True),
        ("top", "# jobgen: disable=forbidden-module", True),
    ],
)
def test_a_comment_of_a_job_file_disables_a_rule(line: str, comment: str, silent: bool) -> None:
    at = {line: comment}
    Path("gpu.toml").write_text(
        f'{at.get("top", "")}\nscheduler = "slurm"\n[job]\nwalltime = "1h"\n[environment]\n'
        f'{at.get("above", "")}\nmodule = ["gcc"]  {at.get("module", "")}\n[program]\ncommand = ["./a"]\n'
        '[check]\nforbidden_modules = ["gcc"]\n'
    )
    assert ("gpu.toml forbids" in jobs.jobgen("check", "gpu.toml").stdout) != silent


@pytest.mark.parametrize(
    "comment", ["disable", "disable personal-path", "ignore=personal-path", "noqa", "disable="]
)
def test_a_comment_in_another_form_is_no_silent_one(comment: str) -> None:
    Path("job.sh").write_text(f"#!/bin/bash\n#SBATCH --time=01:00:00\nsrun ./a # jobgen: {comment}\n")
    assert ("warning", "unknown-rule") in findings()


def test_the_fixes_of_a_job_file_are_left_to_a_person() -> None:
    Path("gpu.toml").write_text(f'scheduler = "slurm"\n{JOB_FOR_ANY}')
    done = jobs.jobgen("check", "--fix", "gpu.toml")
    assert "jobgen: note: gpu.toml: --fix mends scripts, not job files\n" in done.stderr


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
