"""Every rule: a script that breaks it alone, one that does not, and the page that explains it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from golden import cases
from support import ROOT
from support.site_manuals import JOBS

from jobgen import render
from jobgen.check.checker import check
from jobgen.check.own_runtime import shortened
from jobgen.check.rules.table import RULES
from tools import write_rule_pages as pages
from tools.write_examples import NAMES, spec

OWN = cases.CASES | {job: job for job in JOBS}


def own(name: str) -> str:
    """The script of an example or of a command line, which is rendered in the test alone."""
    return render(spec(name)) if name in NAMES else cases.whole(OWN[name])


def test_every_rule_is_in_the_table_once() -> None:
    modules = (ROOT / "jobgen/check/rules").glob("*.py")
    declared = [
        name
        for path in modules
        for name in re.findall(r'^@rule(?:_once)?\(\s+"([^"]+)"', path.read_text(), re.M)
    ]
    assert sorted(declared) == sorted(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_the_bad_script_breaks_this_rule_alone(rule: str) -> None:
    (found,) = pages.findings(RULES[rule], "bad")
    assert (found.rule, found.severity) == (rule, RULES[rule].severity)
    assert found.reason
    assert found.fix
    assert not found.reason.endswith(".")


@pytest.mark.parametrize("rule", RULES)
def test_the_good_script_breaks_none(rule: str) -> None:
    assert pages.findings(RULES[rule], "good") == []


@pytest.mark.parametrize("rule", RULES)
def test_the_page_is_generated(rule: str) -> None:
    """The page also has the finding with its line: the line and the sentence of every rule are tested here."""
    assert RULES[rule].reason
    path = pages.DOCS / f"{rule}.md"
    assert path.read_text(encoding="utf-8") == pages.page(RULES[rule]), (
        "write it: python -m tools.write_rule_pages"
    )


def test_no_page_is_left_over() -> None:
    assert {path.stem for path in pages.DOCS.glob("*.md")} == set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_a_comment_silences_the_rule(rule: str, tmp_path: Path) -> None:
    pages.write(RULES[rule], tmp_path)
    lines = pages.script(rule, "bad").split(b"\n")
    at = 1 if lines[0].startswith(b"#!") else 0  # for the file: above the first command
    lines.insert(at, f"# jobgen: disable={rule}".encode())
    silenced = check(b"\n".join(lines), folder=str(tmp_path))
    assert [one.rule for one in silenced if one.rule == rule] == []


def test_a_comment_in_the_body_silences_the_next_line_only() -> None:
    script = (
        b"#!/bin/bash\n#SBATCH --time=01:00:00\n# jobgen: disable=unchecked-cd, no-errexit\n\ncd /a\ncd /b\n"
    )
    assert [(one.rule, one.line) for one in check(script)] == []
    script = (
        b"#!/bin/bash\n#SBATCH --time=01:00:00\nhostname\n# jobgen: disable=unchecked-cd\ncd /a\ncd /b\nls\n"
    )
    assert [(one.rule, one.line) for one in check(script)] == [("unchecked-cd", 6)]


def test_mail_types_of_slurm_add_up() -> None:
    script = (
        b"#!/bin/bash\n#SBATCH --time=01:00:00\n#SBATCH --mail-type=END\n#SBATCH --mail-type=FAIL\nhostname\n"
    )
    assert check(script) == []


@pytest.mark.parametrize("name", [*OWN, *NAMES])
def test_our_own_scripts_are_quiet(name: str) -> None:
    found = [one for one in check(own(name).encode()) if one.severity != "note"]
    if name == "slurm_extra_directives_and_launcher_arguments":
        # The user's own directive, which is handed on as it is, has a blank that sbatch refuses.
        found = [one for one in found if (one.rule, "shift" in one.reason) != ("unknown-option", True)]
    assert found == []


WITH_RUNTIME = (
    *("slurm_gpu_telemetry", "slurm_sweep_in_a_container", "pbspro_deepspeed_over_ssh_with_pdsh"),
    *("pbspro_pals_on_polaris", "torque_mpirun_ucx"),
)


@pytest.mark.parametrize("name", WITH_RUNTIME)
def test_the_findings_do_not_depend_on_the_text_of_the_runtime(name: str) -> None:
    """An edited runtime is read."""
    call = "\nsrun torchrun --standalone --nproc-per-node=64 train.py\n"
    source = own(name).replace("\nprogram() {", f"\nprogram() {{{call}").encode()
    edited = source + b"# a comment\n"
    assert (len(shortened(source)) < len(source) / 2, shortened(edited)) == (True, edited)
    found = check(source)
    assert found
    assert found == check(edited)


def test_carriage_returns_of_our_own_script_are_removed_as_a_whole() -> None:
    source = own("slurm_one_node").replace("\nprogram() {", "\r\nprogram() {").encode()
    (fix,) = next(one.edits for one in check(source) if one.rule == "carriage-return")
    assert (fix.start, fix.end, fix.text) == (0, len(source), source.replace(b"\r\n", b"\n"))
