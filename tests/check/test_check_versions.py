"""Rules that depend on the version of the scheduler, and the choice between schedulers with one prefix."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from golden.cases import CASES, plan_of, script
from support.site_manuals import JOBS

from jobgen.check.checker import check
from jobgen.errors import one_of
from jobgen.schedulers.versions import Span, version
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.directives import guess, recognized

SRUN = b"""#!/bin/bash
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
set -euo pipefail
srun python3 train.py
"""


@pytest.mark.parametrize("text", ["", "23", "x", "23.", "23.02-1", "v23.02", "23.02\n", "99999.1"])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be a version such as 23\.02"):
        version(text)


def test_spans() -> None:
    span = Span(since="22.05", before="23.11")
    texts = ("20.11", "22.05", "22.05.8", "23.02.7", "23.11", "23.11.4", None)
    assert [span.holds(text) for text in texts] == [False, True, True, True, False, False, True]
    assert str(span) == "since 22.05 and before 23.11"


def rules(script: bytes, text: str | None) -> list[tuple[str, str]]:
    return [(one.rule, one.severity) for one in check(script, version=text)]


def test_srun_reads_the_cores_of_a_task_in_some_versions() -> None:
    found = {
        text: [one for one, _ in rules(SRUN, text)] for text in ("21.08", "22.05", "23.02.7", "23.11", None)
    }
    hit = ["srun-cpus"]
    assert found == {"21.08": [], "22.05": hit, "23.02.7": hit, "23.11": [], None: hit}


@pytest.mark.parametrize(
    ("option", "expected"),
    {
        "--segment=2": {"23.11": "error", "24.05": "", None: ""},
        "--oom-kill-step": {"24.05": "error", "24.11.1": "", None: ""},
        "--tres-per-task=cpu:2": {"22.05": "error", "23.02": "", None: ""},
        "--export-file=x": {"23.02": "", "23.11": "error", None: "warning"},
        "--workdir=/tmp": {"17.11": "", "22.05": "error", None: "warning"},
    }.items(),
)
def test_options_of_some_versions(option: str, expected: dict[str | None, str]) -> None:
    script = f"#!/bin/bash\n#SBATCH {option}\n#SBATCH --time=01:00:00\nhostname\n".encode()
    found = {text: "".join(level for _, level in rules(script, text)) for text in expected}
    assert found == expected


def run(*words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "jobgen", *words], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_the_version_on_the_command_line_and_in_a_site(tmp_path: Path) -> None:
    job, site = tmp_path / "job.sh", tmp_path / "own.toml"
    job.write_bytes(SRUN)
    site.write_text('title = "Own"\nscheduler = "slurm"\nscheduler_version = "23.11"\n')
    assert "srun-cpus" in run("check", str(job))[1]
    assert "srun-cpus" not in run("check", "--scheduler-version", "23.11.4", str(job))[1]
    assert "srun-cpus" not in run("check", "--site", str(site), str(job))[1]
    status, _, said = run("check", "--scheduler-version", "twenty", str(job))
    assert (status, said.count("\n"), "must be a version such as 23.02" in said) == (2, 1, True)
    site.write_text(site.read_text().replace("23.11", "new"))
    status, _, said = run("check", "--site", str(site), str(job))
    assert (status, "scheduler_version" in said and "must be a version" in said) == (2, True)


MARKS = {
    "-l nodes=2:ppn=4": "torque",
    "-l nodes=2": "pbspro",
    "-l walltime=1:00:00": "pbspro",
    "-l select=2:ncpus=4": "pbspro",
    "-l nodes=1:ppn=4 -J 0-9": "pbspro",
    "-l nodes=1:ppn=4 -l place=scatter": "pbspro",
    "-l nodes=2:ppn=4:gpus=1": "torque",
    "-l ncpus=4 -t 0-9": "torque",
    "-l nodes=2 -W x=FLAGS:ADVRES:x": "torque",
    "-l walltime=1:00:00:00": "torque",
    "-l select=1:ncpus=4 -t 0-9": "pbspro",
    "-l nodes=2\ncd $PBS_O_WORKDIR; echo $PBS_NUM_NODES": "torque",
    "-l nodes=2\necho ${PBS_ARRAYID}": "torque",
    "-l nodes=2:ppn=1\necho ${PBS_ARRAY_INDEX:-0}": "pbspro",
    "-l nodes=2:ppn=1\nwhile read -r host; do pbs_tmrsh $host date; done": "pbspro",
    "-l nodes=2\npbsdsh -u hostname": "torque",
    "-l nodes=2\n# PBS_NP is not used": "pbspro",
}


@pytest.mark.parametrize("text", MARKS)
def test_pbs_pro_or_torque(text: str) -> None:
    found = recognized(f"#!/bin/bash\n#PBS {text}\n".split("\n"))
    assert (found.scheduler, found.reason.startswith("read as ")) == (MARKS[text], True)


def test_scripts_of_jobgen_are_recognized() -> None:
    """Their runtime is for all schedulers, so only the part above it counts."""
    seen = set()
    for command in (*CASES.values(), *JOBS):
        if command.startswith("pbs"):
            expected = plan_of(command).scheduler.name
            assert guess(script(command).split("\n")) == expected, command
            seen.add(expected)
    assert seen == {"pbspro", "torque"}


def test_the_guess_is_said_and_overruled(tmp_path: Path) -> None:
    job = tmp_path / "job.pbs"
    job.write_text("#!/bin/bash\n#PBS -l nodes=2:ppn=4\n#PBS -l walltime=01:00:00\n./a $PBS_NP\n")
    status, _, said = run("check", str(job))
    words = "read as Torque because of PBS_NP (line 4), nodes=2:ppn=4 (line 2); --scheduler overrides this"
    assert (status, said.splitlines()[0]) == (0, f"{job}: {words}")
    status, found, said = run("check", "--scheduler", "pbspro", str(job))
    assert (status, "foreign-variable" in found, "read as" in said) == (1, True, False)
    assert words in run("convert", str(job), "--to", "slurm")[2]


def test_a_file_without_directives_is_said_to_be_read_as_a_shell_script(tmp_path: Path) -> None:
    program = tmp_path / "run.sh"
    program.write_text("#!/bin/sh\necho here\n")
    families = one_of(dict.fromkeys(row.scheduler.family for row in DIALECTS.values()))
    words = f"read as a shell script: it has no directive of {families}; --scheduler overrides this"
    assert run("check", str(program)) == (0, "", f"{program}: {words}\nnothing found in 1 script\n")
    job = tmp_path / "job.sh"
    job.write_text(run("local", "--", "true")[1])
    assert run("check", str(job)) == (0, "", "nothing found in 1 script\n")
