"""A script and its conversions run the same programs, with the same words, in the same directories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from convert.conversions import convert, job_file, rendered

# The program of all scripts: it writes its directory and its words, in the background after a while, when the job
# may have ended it.
STEP = '#!/bin/bash\nsleep $DELAY\necho "$(printf "%s|" "${PWD##*/}" "$MODE" "$@" $(cat))" >> "$STEPS"\n'
SCONTROL = '#!/bin/sh\nif [ "$2" = hostnames ]; then echo n1; fi\n'
SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1", "SLURM_JOB_NUM_NODES": "1", "SLURM_NTASKS": "1"}
PBS = {"PBS_JOBID": "7.srv", "PBS_ENVIRONMENT": "PBS_BATCH", "PBS_NUM_PPN": "1"}
HEAD = "#!/bin/bash\n#SBATCH --job-name=steps --nodes=1 --ntasks=1 --time=10\n"
SCRIPTS = {
    "words": "A='x  y'\nB=(1 '2 3')\nstep $A \"$A\" \"${B[@]}\" $((1 + 2)) '$A' < /dev/null\n",
    "a loop": "for i in 1 2; do\n  step $i < /dev/null\ndone\n",
    "a function of processes": "run() {\n  for i in 1 2; do step $i < /dev/null & done\n}\nrun\nwait\necho end\n",
    "processes of a loop": "step 0 < /dev/null\nfor i in 1 2; do step $i < /dev/null & done\nwait\nstep 3 < /dev/null\n",
    "two processes": "step 1 < /dev/null &\nstep 2 < /dev/null &\nwait\n",
    "directories": "mkdir -p a b\ncd a\nstep 1 < /dev/null\ncd ../b\nstep 2 < /dev/null\n",
    "a subshell": "mkdir -p a\n(cd a; export MODE=1; step 1 < /dev/null)\nstep 2 < /dev/null\n",
    "an environment of one command": "export MODE=a\nMODE=b step 1 < /dev/null\nstep 2 < /dev/null\n",
    "files": "echo in > f\nstep 1 < f > out\ncat f out | tr a-z A-Z > g\nstep 2 < g\n",
    "a text": "N=3\nstep 1 << END\n$N '$N'\nEND\n",
    "a condition": "step 1 < /dev/null && step 2 < /dev/null || step 3 < /dev/null\n[ -e no ] || step 4 < /dev/null\n",
    "a substitution": 'echo 4 > n\nstep $(cat n) "$(echo a b)" < /dev/null\nstep ${N:-5} < /dev/null\n',
    "a trap": "trap 'step end < /dev/null' EXIT\nstep 1 < /dev/null\n",
    "a file with a variable": "set -u\nN=3\necho 'export MODE=$N' > env.sh\n. ./env.sh\nN=4\nstep $N < /dev/null\n",
    "a status": "ls no 2> no\nif [ $? = 0 ]; then step 1 < /dev/null; else step 2 < no; fi\n",
    "a status of a pipeline": "false | cat\nif ((PIPESTATUS[0] == 1)); then step 1 < /dev/null; fi\n",
    "a status of a value": "N=$(false)\n[ $? = 0 ] || step 1 < /dev/null\nstep 2 < /dev/null\n",
    "an alias": "shopt -s expand_aliases\nalias run='step -v'\nrun 1 < /dev/null\nrun 2 < /dev/null\n",
    "an alias without an effect": "alias step='step -v'\nstep 1 < /dev/null\nstep 2 < /dev/null\n",
    "fields": "OLD=$IFS\nIFS=,\nread -ra A <<< 1,2\nIFS=$OLD\nB='3 4'\nstep $B ${A[1]} < /dev/null\n",
    "fields for a while": "IFS=,\nA=1,2\nB=($A)\nunset IFS\nC='3 4'\nfor i in $C ${B[1]}; do step $i < /dev/null; done\n",
    "fields of a command": "OLD=$IFS\nIFS=,\nread -ra A <<< 1,2\nIFS=$OLD\nstep ${A[1]} < /dev/null\nstep 3 < /dev/null\n",
    "a trap for a while": "trap 'step end < /dev/null' EXIT\nstep 1 < /dev/null\ntrap - EXIT\nstep 2 < /dev/null\n",
    "an alias with a word": "shopt -s expand_aliases\nalias s='step x'\ns 1 < /dev/null\nstep 2 < /dev/null\ns 3 < /dev/null\n",
    "fields of before": "A='x y'\nOLD=$IFS\nIFS=,\nstep $A < /dev/null\nIFS=$OLD\nstep $A < /dev/null\n",
    "fields that are unset": "A=x,y\nIFS=,\nstep $A < /dev/null\nunset IFS\nstep $A < /dev/null\n",
    "a match": "[[ ab-12 =~ ([0-9]+) ]]\nstep ${BASH_REMATCH[1]} < /dev/null\nstep 2 < /dev/null\n",
    "a directory that is left": "mkdir a\necho 1 > f\ncd a\nexport MODE=$(cat ../f)\nstep < /dev/null\ncd -\ncat f > g\n",
    "a command of the shell at the end": "step 1 < /dev/null\nhash -r\n",
    "a case": "X=b\ncase $X in\n  a) step 1 < /dev/null;;\n  *) step 2 < /dev/null;;\nesac\n",
}


def _steps(
    folder: Path, text: str, environment: dict[str, str], delay: float
) -> tuple[list[str], dict[str, str]]:
    """Run a script in a directory; return what its programs wrote, sorted, and the files that it made."""
    work, programs = folder / "work", folder / "bin"
    work.mkdir(parents=True)
    programs.mkdir()
    for name, code in {"step": STEP, "scontrol": SCONTROL}.items():
        (programs / name).write_text(code)
        (programs / name).chmod(0o755)
    (folder / "job").write_text(text)
    (folder / "hosts").write_text("n1\n")
    places = {
        "SLURM_SUBMIT_DIR": work,
        "PBS_O_WORKDIR": work,
        "PBS_NODEFILE": folder / "hosts",
        "HOME": folder,
    }
    shared = {"PATH": f"{programs}:{os.environ['PATH']}", "STEPS": str(folder / "steps"), "DELAY": str(delay)}
    scheduler = next(iter(environment)).partition("_")[0]
    own = {name: str(path) for name, path in places.items() if name.startswith((scheduler, "HOME"))}
    start = folder if scheduler == "PBS" else work
    done = subprocess.run(
        ["bash", folder / "job"], cwd=start, env={**shared, **own, **environment}, timeout=60
    )
    assert done.returncode == 0
    files = {
        path.name: path.read_text() for path in work.rglob("*") if path.is_file() and "runs" not in path.parts
    }
    return sorted((folder / "steps").read_text().splitlines()), files


@pytest.mark.parametrize("body", SCRIPTS.values(), ids=SCRIPTS)
def test_the_same_programs_run(body: str, tmp_path: Path) -> None:
    text, delay = f"{HEAD}{body}", 1.5 * ("wait" in body)
    expected = _steps(tmp_path / "script", text, SLURM, delay)
    for target in ("pbspro", "torque"):
        assert _steps(tmp_path / target, convert(text, target).text, PBS, delay) == expected
    assert _steps(tmp_path / "job_file", rendered(job_file(text).text), SLURM, delay) == expected
