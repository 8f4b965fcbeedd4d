"""Every rule: a script that breaks it alone, one that does not, and the page that explains it."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden import cases

from jobgen.check.checker import check, check_file
from jobgen.check.rules.table import RULES

ROOT = Path(__file__).resolve().parent.parent.parent
FIXTURES = Path(__file__).parent / "fixtures"
OWN = {name: cases.whole(command) for name, command in cases.CASES.items()}
OWN |= {path.parent.name: path.read_text() for path in sorted((ROOT / "examples").glob("*/job.*"))}

# The line of bad.sh that each rule reports.
LINES = {
    "inert-directive": 3,
    "late-directive": 4,
    "trailing-comment": 2,
    "carriage-return": 1,
    "repeated-directive": 4,
    "unknown-option": 3,
    "other-dialect": 4,
    "no-walltime": 2,
    "bad-walltime": 3,
    "short-walltime": 2,
    "bad-name": 2,
    "output-variable": 3,
    "output-directory": 3,
    "no-shebang": 1,
    "memory-unit": 3,
    "bad-array": 4,
    "array-output": 4,
    "bad-value": 4,
    "bad-select": 2,
    "unknown-resource": 4,
    "bad-choice": 3,
    "select-with-nodes": 4,
    "select-with-totals": 3,
    "walltime-in-select": 2,
    "torque-gpus": 2,
    "unallocated-gpus": 2,
    "packed-chunks": 2,
    "no-mpiprocs": 2,
    "pbs-export-list": 4,
    "afterok-array": 4,
    "home-directory": 5,
    "pbsdsh-status": 6,
    "setsid-outlives": 5,
    "tmrsh-agent": 6,
    "foreign-variable": 5,
    "srun-cpus": 7,
    "export-commas": 2,
    "gres-total": 3,
    "uneven-tasks": 3,
    "early-expansion": 7,
    "signal-to-steps": 2,
    "mpi-plugin": 6,
    "bad-dependency": 2,
    "bad-count": 2,
    "nodefile-count": 6,
    "sorted-hosts": 6,
    "shared-hostfile": 7,
    "appended-hostfile": 7,
    "hand-written-hosts": 5,
    "bare-hostfile": 7,
    "duplicate-hosts": 8,
    "hostfile-format": 5,
    "nodes-mismatch": 7,
    "ranks-mismatch": 5,
    "first-node-only": 7,
    "nested-tasks": 7,
    "local-master": 6,
    "fixed-master": 6,
    "fixed-node-rank": 7,
    "no-hostfile": 6,
    "absent-hostfile": 6,
    "mpi-discovery": 6,
    "deepspeed-env-lines": 6,
    "colossalai-ranks": 5,
    "config-pipeline": 5,
    "ignored-launcher": 5,
    "deepspeed-slurm": 9,
    "deepspeed-mpich": 8,
    "deepspeed-openmpi": 8,
    "deepspeed-filter": 8,
    "filter-range": 5,
    "unforwarded": 9,
    "shared-deepspeed-env": 4,
    "pdsh-rsh": 5,
    "fixed-port": 5,
    "fixed-interface": 5,
    "personal-path": 4,
    "download-in-job": 4,
    "ssh-between-nodes": 6,
    "ssh-eats-list": 7,
    "source-activate": 4,
    "conda-init": 4,
    "bashrc": 4,
    "conda-hook": 4,
    "forced-devices": 5,
    "old-nccl": 4,
    "cann-not-sourced": 6,
    "rank-table": 6,
    "root-mpirun": 5,
    "no-errexit": 3,
    "no-pipefail": 4,
    "lost-status": 4,
    "unchecked-cd": 4,
    "unquoted-path": 5,
    "unset-variable": 5,
    "bare-wait": 7,
    "unwaited-background": 4,
    "sleep-as-sync": 6,
    "trap-kill": 4,
    "trap-status": 4,
    "trap-late": 5,
    "single-wait": 8,
    "config-json": 5,
    "config-batch": 5,
    "config-precision": 5,
    "config-amp": 5,
    "config-optimizer": 5,
    "config-key": 5,
    "unknown-rule": 4,
}


def test_every_rule_has_its_scripts() -> None:
    assert set(LINES) == set(RULES) == {path.name for path in FIXTURES.iterdir()}


@pytest.mark.parametrize("rule", LINES)
def test_the_bad_script_breaks_this_rule_alone(rule: str) -> None:
    found = check_file(str(FIXTURES / rule / "bad.sh"))
    assert [(one.rule, one.line) for one in found] == [(rule, LINES[rule])]
    assert found[0].severity == RULES[rule].severity
    assert found[0].reason
    assert found[0].fix
    assert not found[0].reason.endswith(".")


@pytest.mark.parametrize("rule", LINES)
def test_the_good_script_breaks_none(rule: str) -> None:
    assert check_file(str(FIXTURES / rule / "good.sh")) == []


@pytest.mark.parametrize("rule", LINES)
def test_the_page_shows_both_scripts(rule: str) -> None:
    page = (ROOT / f"docs/rules/{rule}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {rule}\n\n{RULES[rule].title} ({RULES[rule].severity}).\n")
    for path in (FIXTURES / rule).iterdir():
        fence = "json" if path.suffix == ".json" else "sh"
        text = path.read_bytes().decode().replace("\r", "")  # a page cannot show a carriage return
        assert f"```{fence}\n{text}```\n" in page


def test_no_page_is_left_over() -> None:
    assert {path.stem for path in (ROOT / "docs/rules").glob("*.md")} == set(RULES)


@pytest.mark.parametrize("rule", [rule for rule in LINES if rule != "unknown-rule"])
def test_a_comment_silences_the_rule(rule: str) -> None:
    path = FIXTURES / rule / "bad.sh"
    lines = path.read_bytes().split(b"\n")
    at = 1 if lines[0].startswith(b"#!") else 0  # for the file: above the first command
    lines.insert(at, f"# jobgen: disable={rule}".encode())
    silenced = check(b"\n".join(lines), folder=str(path.parent))
    assert [one.rule for one in silenced if one.rule == rule] == []


def test_a_comment_in_the_body_silences_the_next_line_only() -> None:
    script = (
        b"#!/bin/bash\n#SBATCH --time=01:00:00\n# jobgen: disable=unchecked-cd, no-errexit\n\ncd /a\ncd /b\n"
    )
    assert [(one.rule, one.line) for one in check(script)] == []
    script = b"#!/bin/bash\n#SBATCH --time=01:00:00\nhostname\n# jobgen: disable=unchecked-cd\ncd /a\ncd /b\n"
    assert [(one.rule, one.line) for one in check(script)] == [("unchecked-cd", 6)]


def test_mail_types_of_slurm_add_up() -> None:
    script = (
        b"#!/bin/bash\n#SBATCH --time=01:00:00\n#SBATCH --mail-type=END\n#SBATCH --mail-type=FAIL\nhostname\n"
    )
    assert check(script) == []


@pytest.mark.parametrize("name", OWN)
def test_our_own_scripts_are_quiet(name: str) -> None:
    found = [one for one in check(OWN[name].encode()) if one.severity != "note"]
    if name == "slurm_extra_directives_and_launcher_arguments":
        # The user's own directive, which is handed on as it is, has a blank that sbatch refuses.
        found = [one for one in found if (one.rule, "shift" in one.reason) != ("unknown-option", True)]
    assert found == []
