"""Mechanical fixes: the diff, what is written, and that a fixed script has the finding no more."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import jobs

from jobgen.check.checker import Finding, check
from jobgen.check.fix import difference, fixed

HEAD = "#!/bin/bash\n#SBATCH --time=01:00:00\n"
SCRIPTS = {
    "late-directive": HEAD + "set -e\n#SBATCH --nodes=2\nhostname\n",
    "inert-directive": HEAD + "#SBTACH --nodes=2\n#sbatch --mem=1G\nhostname\n",
    "carriage-return": HEAD.replace("\n", "\r\n") + "hostname\r\n",
    "unquoted-path": HEAD + "set -e\nread data\nmkdir $data\ncp a $data/b > $data/log\necho `rm $data/a`\n",
    "unchecked-cd": HEAD + 'cd "$DATA"\nif true; then\n  cd a > /dev/null\nfi\ncd b; ls a.txt\n',
    "conda-init": HEAD + "set -e\nconda init bash\nsrun hostname\n",
    "conda-hook": HEAD + "set -e\nif true; then\n    conda activate x\nfi\nsrun hostname\n",
}


def fix(text: str | bytes, rule: str = "") -> str:
    source = text.encode() if isinstance(text, str) else text

    def find(script: bytes) -> list[Finding]:
        return [one for one in check(script) if rule in ("", one.rule)]

    return fixed(source, find).decode()


@pytest.mark.parametrize("rule", SCRIPTS)
def test_a_fixed_script_has_the_finding_no_more(rule: str) -> None:
    assert rule in {one.rule for one in check(SCRIPTS[rule].encode())}
    new = fix(SCRIPTS[rule], rule)
    assert rule not in {one.rule for one in check(new.encode())}
    assert subprocess.run(["bash", "-n"], input=new, text=True, check=False).returncode == 0


def test_all_fixes_together() -> None:
    script = HEAD + "cd $DATA/run\n#SBATCH --nodes=2\nconda activate x\npython train.py > $OUT\n"
    assert fix(script.replace("\n", "\r\n")) == (
        HEAD + "#SBATCH --nodes=2\n"
        'cd "$DATA"/run || exit 1\neval "$(conda shell.bash hook)"\nconda activate x\npython train.py > "$OUT"\n'
    )


def test_what_takes_a_decision_stays() -> None:
    late = HEAD + "hostname\n#SBATCH --time=02:00:00\n"  # which of the two times
    listed = HEAD + "make && cd build\nls a.txt\n"  # || exit 1 would be of make, too
    in_string = HEAD + 'set -e\nread d\necho "`mkdir $d`"\n'  # quotes would end the string
    assert (fix(late), fix(listed), fix(in_string)) == (late, listed, in_string)


@given(
    st.lists(st.sampled_from([*SCRIPTS.values(), "cd $A\r\n", "ls \\\n", "cat <<E\n$X/a\nE\n"]), max_size=4)
)
@settings(max_examples=60, deadline=None)
def test_a_fix_comes_to_an_end_and_keeps_the_syntax(parts: list[str]) -> None:
    script = "".join(parts)
    new = fix(script)
    assert fix(new) == new
    before, after = (
        subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False).returncode
        for text in (script.replace("\r\n", "\n"), new.replace("\r\n", "\n"))
    )
    assert before or not after


def test_the_diff_comes_first_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.sh").write_text(SCRIPTS["late-directive"])
    Path("job.sh").chmod(0o750)
    done = jobs.jobgen("check", "--fix", "job.sh")
    assert (done.returncode, done.stderr) == (0, "nothing found in 1 script after these fixes\n")
    assert "\n+#SBATCH --nodes=2\n" in done.stdout
    assert Path("job.sh").read_text() == SCRIPTS["late-directive"]
    assert jobs.jobgen("check", "--fix", "--write", "job.sh").stdout == done.stdout
    assert Path("job.sh").read_text() == HEAD + "#SBATCH --nodes=2\nset -e\nhostname\n"
    assert stat.S_IMODE(Path("job.sh").stat().st_mode) == 0o750


def test_fixes_are_of_the_chosen_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.sh").write_text(HEAD + "cd $DATA\n#SBATCH --nodes=2\nls a.txt\n")
    done = jobs.jobgen("check", "--fix", "--select", "unquoted-path", "job.sh")
    assert [line for line in done.stdout.splitlines() if line[:2] in ("+c", "+#")] == ['+cd "$DATA"']


def test_combinations_that_are_refused() -> None:
    for words in (["--fix", "--format", "json", "a.sh"], ["--write", "a.sh"], ["--fix", "--write", "-"]):
        assert jobs.jobgen("check", *words, stdin=HEAD).returncode == 2


def test_a_diff_of_a_file_without_a_last_newline() -> None:
    assert (
        difference("a", b"x", b"y\n") == "--- a\n+++ a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n"
    )
