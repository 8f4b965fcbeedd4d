"""The findings of a script do not depend on its form: other forms that do the same in bash have the same."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.variants import Variant, variants

from jobgen.check.checker import Finding, check
from jobgen.check.files import FileChecks
from jobgen.check.rules.table import RULES
from tools import write_rule_pages as pages

_SHARE = 40  # each script in one of so many of its forms, chosen by a checksum
# Rules about the form itself, with the reason why another form has no finding.
EXCEPTIONS = {
    "carriage-return": "each line has its own end",
    "blank-after-backslash": "the line is the finding",
    "split-directive": "the second line of the directive is the command that a form changes",
    "late-directive": "the order of directives and commands is the finding",
    "syntax-error": "a form of a text that bash cannot read is another fault",
    "placeholder": "a short option with a placeholder is a value that Slurm refuses",
    "debug-setting": "a comment that explains the setting is an intention",
    "unquoted-path": "the quotes are the finding",
    "mpi-options": "the MPI of a module in a variable is unknown",
    "launcher-binding": "the MPI of a module in an array is unknown",
    "module-after-environment": "the rule reads the words of programs as they are written",
    "purged-modules": "the rule reads the words of programs as they are written",
    "shared-config": "the rule reads the words of programs as they are written",
    "secret-argument": "the rule reads the words of programs as they are written",
    "unfinished-copy": "the rule reads the words of programs as they are written",
    "remote-environment": "the files of a loop in a function are not read",
}


def chosen(rule: str, name: str) -> Iterator[Variant]:
    """Yield some forms of a script of a rule."""
    text = pages.script(rule, name).decode()
    for one in variants(text):
        if one.text != text and zlib.crc32(f"{rule} {name} {one.form}".encode()) % _SHARE == 0:
            yield one


def findings(rule: str, name: str, text: str, folder: Path) -> list[Finding]:
    pages.write(RULES[rule], folder)
    return FileChecks(style=True).findings(str(folder / f"{name}.sh"), text.encode())


@pytest.mark.parametrize("rule", [one for one in RULES if one not in EXCEPTIONS])
def test_another_form_has_the_same_findings(rule: str, tmp_path: Path) -> None:
    for one in chosen(rule, "bad"):
        found = findings(rule, "bad", one.text, tmp_path)
        assert rule in {each.rule for each in found}, f"{one.form}:\n{one.text}"
        others = [each for each in found if each.rule != rule and each.severity != "note"]
        assert others == [], f"{one.form}:\n{one.text}"
    for one in chosen(rule, "good"):
        found = [each for each in findings(rule, "good", one.text, tmp_path) if each.severity != "note"]
        assert found == [], f"{one.form}:\n{one.text}"


_SLURM = "#!/bin/bash\n#SBATCH --time=01:00:00\n"
_PBS = "#!/bin/bash\n#PBS -l walltime=01:00:00\n"
_ON_TWO = f"{_SLURM}#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\nset -euo pipefail\n"
_WORLD = "export WORLD_SIZE=16\nsrun bash -c 'export RANK=$SLURM_PROCID; exec python3 train.py'"


@pytest.mark.parametrize(
    ("rule", "text", "line"),
    [
        ("world-size", f"{_ON_TWO}main() {{\n{_WORLD}\n}}\nmain\n", 8),
        ("world-size", f'{_ON_TWO}main() {{\n{_WORLD}\n}}\nhelp() {{ echo; }}\nmain "$@"\n', 8),
        ("world-size", f"{_ON_TWO}main() {{\n{_WORLD}\n}}\nmain\nmain\n", 0),  # twice
        ("setsid-outlives", f'{_PBS}a=(setsid ./a)\n"${{a[@]}}" &\nwait "$!"\n', 4),
        ("setsid-outlives", f"{_PBS}bash -c 'setsid ./a' &\nwait \"$!\"\n", 0),  # another shell
        ("home-directory", f"{_PBS}set -e\nnice python3 train.py\n", 4),
        ("container-files", f"{_SLURM}echo\nnice docker run a:1 python /home/me/t.py\n", 4),
        ("syntax-error", f"{_SLURM}if [ -d a ];\n  ls a\nelse\n  ls\nfi\n", 3),
    ],
)
def test_a_form_of_a_command(rule: str, text: str, line: int) -> None:
    assert next((one.line for one in check(text.encode()) if one.rule == rule), 0) == line


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            f"{_SLURM}#SBATCH --gpus-per-node=4\n#SBATCH --cpus-per-task=1\ntorchrun --nproc-per-node=4 a.py\n",
            "torchrun starts 4 ranks on a node, but the job requests 1 core there: they share them",
        ),
        (
            f"{_SLURM}#SBATCH --gpus-per-node=4\n#SBATCH --cpus-per-task=4\ntorchrun --nproc-per-node=4 a.py\n",
            "",
        ),
        (
            f"{_SLURM}#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=32\nmpiexec -n 128 -ppn 64 ./a\n",
            "mpiexec gets 64 ranks on a node, but the job requests 32 cores there",
        ),
        (
            f"{_PBS}#PBS -l select=2:ncpus=32\n#PBS -l place=scatter\nmpiexec -n 128 -ppn 64 ./a\n",
            "mpiexec gets 64 ranks on a node, but the job requests 32 cores there",
        ),
        (
            f"{_PBS}#PBS -l nodes=2:ppn=32\nmpiexec -n 128 -ppn 64 ./a\n",
            "mpiexec gets 64 ranks on a node, but the job requests 32 cores there",
        ),
        (f"{_PBS}#PBS -l nodes=2:ppn=32\nmpiexec -n 64 -ppn 32 ./a\n", ""),
    ],
)
def test_more_ranks_on_a_node_than_its_cores(text: str, reason: str) -> None:
    found = [one.reason for one in check(text.encode()) if one.rule == "ranks-mismatch"]
    assert found == [reason] * bool(reason)
