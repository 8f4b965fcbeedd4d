"""Job files of scripts, as jobs on this machine: they do what the scripts do."""

from __future__ import annotations

import subprocess
from pathlib import Path

from convert.conversions import job_file
from support.jobs import run

BODY = """
cd work
NAME='two words'
export LEVEL=3
half() { echo "half of $1 is $(($1 / 2))"; }
if [ "$LEVEL" = 3 ]; then MORE='--more 1'; else MORE=; fi
false
half 8 > half.txt
TAG="$1" python3 show.py "$NAME" $MORE "$LEVEL-$1" '$NAME' "$(echo from a command)" *.dat
status=$?
echo "after: $NAME $status"
"""
SHOW = "import os, sys\nprint('program:', sys.argv[1:], os.environ['TAG'], os.getcwd())\n"


def test_the_job_does_what_the_script_does(tmp_path: Path) -> None:
    """The script by bash, and its job file as a job on this machine."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/show.py").write_text(SHOW)
    (tmp_path / "work/a.dat").touch()
    (tmp_path / "work/b.dat").touch()
    text = f"#!/bin/bash\n#SBATCH --job-name=x\n{BODY}"
    done = subprocess.run(
        ["bash", "-c", text, "x", "it's"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    (tmp_path / "job.toml").write_text(job_file(text).text)
    (tmp_path / "work/half.txt").unlink()
    got = run(
        tmp_path, "--job", str(tmp_path / "job.toml"), "--walltime", "1h", program=(), arguments=("it's",)
    )
    assert got.returncode == 0, got.stdout
    lines = [line for line in got.stdout.splitlines() if line.startswith(("program:", "after:"))]
    assert lines == done.stdout.splitlines()
    assert (tmp_path / "work/half.txt").read_text() == "half of 8 is 4\n"


SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=x
cp nosuch there
source settings.txt
IFS=,
shopt -s nullglob
grep -q nothing settings.txt
printf 'a,b\\n' | while read A B; do echo "out: $A $B $FOLDER" *.none; python3 -c pass; done
echo "after: $MORE"
"""


def test_a_job_has_the_shell_of_its_script(tmp_path: Path) -> None:
    """A command that fails, a sourced file without export, IFS and shopt: by bash, and as a job here."""
    (tmp_path / "settings.txt").write_text("FOLDER=/data/x\nMORE=more\n")
    (tmp_path / "job.toml").write_text(job_file(SCRIPT).text)
    done = subprocess.run(["bash", "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=True)
    got = run(tmp_path, "--job", str(tmp_path / "job.toml"), "--walltime", "1h", program=())
    assert got.returncode == 0, got.stdout
    lines = [line for line in got.stdout.splitlines() if line.startswith(("out:", "after:"))]
    assert lines == done.stdout.splitlines() == ["out: a b /data/x", "after: more"]
