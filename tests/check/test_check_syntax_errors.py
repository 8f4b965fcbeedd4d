"""Scripts that bash cannot read: the line of the word that is not closed."""

from __future__ import annotations

import subprocess

import pytest

from jobgen.check.checker import Finding, check

HEAD = "#!/bin/bash\n#SBATCH --time=01:00:00\n"
# The text below two lines, the line of the finding, and a part of its reason.
BROKEN = [
    ("if true; then\n  echo a\necho b\n", 3, "if has no fi"),
    (
        "for i in 1 2; do\n  if true; then\n    echo\ndone\necho\n",
        4,
        "if has no fi before the done in line 6",
    ),
    ("for i in 1 2; do\n  if true; then\n    echo\n  fi\necho\n", 3, "for has no done"),
    ("if a; then\n  if b; then\n    x\nfi\necho\n", 4, "if has no fi"),
    ("while read -r a; do\n  for x in 1; do\n    echo\ndone < file\n", 4, "for has no done"),
    ("until a\ndo\n  b\ndoen\n", 3, "until has no done"),
    ("if true\n  echo\nfi\n", 3, "if has no then before the fi"),
    ("if a; then\n  b\nelif c\n  d\nfi\n", 5, "elif has no then before the fi"),
    ("for i in 1 2\n  echo\ndone\n", 3, "for has no do before the done"),
    ("if [ $A -gt 1 ] then\n  echo b\nfi\n", 3, "if has no then"),
    ("for i in 1; do\n  echo\nelse\n  x\ndone\n", 5, "else has no if above it"),
    ("echo\nfi\n", 4, "fi has no if above it"),
    ("echo\n}\n", 4, "} has no { above it"),
    ("echo a)\n", 3, ") has no ( above it"),
    ("f() {\n  echo a\nsrun b\n", 3, "{ has no }"),
    ("function f {\n  if b; then c; fi\n", 3, "{ has no }"),
    ("case $1 in\n  a) echo;;\n  b) echo\nsrun x\n", 3, "case has no esac"),
    ("case $1 in\n  a) if b; then c;;\nesac\n", 4, "if has no fi before the ;; in line 4"),
    ('echo "hello\ncd "$DIR"\necho "a b" \'c\'\n', 3, 'the quote " that begins here'),
    ("echo 'hello\ncd '$DIR'\nsrun x\n", 3, "the quote ' that begins here"),
    ("srun x\necho don't\nsrun y\n", 4, "the quote ' that begins here"),
    ("srun --x \"a b \\\n  c\nsrun --y 'c'\n", 3, 'the quote "'),
    ('text="several\nlines"\necho "a" "b\nsrun x\n', 5, 'the quote "'),
    ("echo $(date\nsrun x\n", 3, "$( has no )"),
    ('echo "$(date"\nsrun "x" y\n', 3, "$( has no )"),
    ("x=${A:-b\nsrun x\n", 3, "${ has no }"),
    ("echo `date\nsrun x\n", 3, "` has no `"),
    ("a=(1 2\nsrun x\n", 3, "( has no )"),
    ("(cd x; ls\nsrun x\n", 3, "( has no )"),
    ("echo a\necho (a)\n", 4, "syntax error near unexpected token"),
    ("for i in 1 2; do\ndone\n", 4, "near unexpected token `done'"),
    ("if a; then\n  # b\nelse\n  c\nfi\n", 5, "near unexpected token `else'"),
    ("x=f(1)\nfor a in b: c\n", 3, "near unexpected token `('"),
    ("srun a &; srun b\n", 3, "syntax error near unexpected token"),
]
READABLE = [
    "x=$(((1+2)*3)); y=$((1<<3)); ((y<<2)); for ((i=0; i<3; i++)); do echo; done; z=$(( (1<<2) + 16#ff ))\n",
    "a=$(((X)) && echo 0 || echo 1) b=$((cat x; cat y) | head -n 1)\n",
    "case $a in (x|y) echo \"${a#'}'}\" ;; *) if true; then :; fi ;; esac\n",
    'f(){ echo "${x:-its}"; }\nsrun bash -c "echo \\"a\\" $(echo ")") `echo "x"`"\n',
    "cat <<'E' > x &\nif (\nE\ncat <<-E\n\tfi\n\tE\necho fi done esac\n",
    "shopt -s extglob\nls !(a|b)\n[[ $a =~ ^(a|b)+$ ]] && echo\n",
    "if a; then b; fi | if c; then d; fi\n! { a; } && (b) || c # it's\n",
]


def found(body: str) -> list[Finding]:
    return [one for one in check((HEAD + body).encode()) if one.rule == "syntax-error"]


def bash_reads(body: str) -> bool:
    words = ["bash", "-O", "extglob", "-n"]
    return subprocess.run(words, input=body, text=True, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("body", "line", "reason"), BROKEN)
def test_the_line_of_the_word_that_is_not_closed(body: str, line: int, reason: str) -> None:
    assert not bash_reads(body)
    (one,) = found(body)
    assert (one.line, one.severity) == (line, "error")
    assert reason in one.reason


@pytest.mark.parametrize(
    ("body", "fix"),
    [
        ("if true; then\n  echo a\necho b\n", "write fi behind its last command"),
        (
            "for i in 1; do\n  if a; then\n    b\ndone\n",
            "write fi behind its last command before the done in line 6",
        ),
        (
            "if a; then\n  qsub b fi\necho\n",
            "begin a new line before the fi in line 4: it is an argument there",
        ),
        (
            "while a; do\n  b \\\ndone\n",
            "remove the backslash at the end of line 4: it makes done an argument",
        ),
        ("if true\n  echo\nfi\n", "write then behind the condition"),
        ("for i in 1 2\n  echo\ndone\n", "write do behind the list"),
        ("if intel\n  a\n", "write then behind the condition, and fi behind its last command"),
        ("case $1 in\n  a) x\n  b) y;;\nesac\n", "end the commands of the pattern above with ;;"),
        ("echo\nfi\n", "remove it, or write the if that it ends above"),
        ('A=$(a\necho "b"\n', "write ) where it ends"),
        ('A="$(date | sort"\nB="$(date"\n', 'write ) before the " in column 17 of this line'),
        ("A=\"$(echo \"$B\" | tr 'a' ','\"\n", 'write ) before the " in column 28 of this line'),
        ("A=`ls b/*.txt'\nmv $A c\n", "write ` in place of the ' at the end of this line"),
        ('a=seq("%04d" % $1)\n', "write NAME=$(COMMAND ARGUMENTS) for the output of a command"),
        ('echo "a\nsrun b\n', 'write " where the text ends, or remove the quote that is one too many'),
        ("if [[ -s a]]; then b; fi\n", "write a blank before ]]"),
        ("a=f(1)\n", "write the text with ( in quotes, or # in front of it if it is a comment"),
        ("ls !(*a*|*b*).csv\n", "write shopt -s extglob in a line above"),
        ("// a (b)\nsrun c\n", "begin a comment with #"),
        ("if a; then\n  run() --x 1\nfi\n", "call a function without (): they define one"),
        ("for i in 1 2; do\n  # x\ndone\n", "write a command behind line 3: a comment is none"),
        ("if a; then\n  b && \\\n\nfi\n", "write a command behind the && of line 4"),
        (
            "import glob\na = glob.glob('b')\n",
            "write the name of Python in the first line, if the text is Python",
        ),
        ("echo 'a' (b)\n", "correct the line, or what stands above it"),
        ('# a "x" "y\\\nz"\necho\n', "begin the line with #: a backslash does not continue a comment"),
        ("cat > a <<EOF\nb\n EOF\n", "write EOF alone, without blanks, in line 5"),
        ("export A=my_size(int)\n", "write a value in place of its description"),
        ('a=print("%04d" % $1)\n', "write NAME=$(printf FORMAT ARGUMENTS) for a text"),
        ("a 'b' 'c\na '{s(1)}' 'c\n", "write ' where the text of line 3 ends"),
        (
            "bash <<EOF\nb\nEOF > log\n",
            "write EOF alone, without blanks, in line 5, and its redirections behind the <<",
        ),
        ("cat > a <<EOF > log\nb\n", "end it with a line that is EOF alone, without blanks"),
    ],
)
def test_the_fix_says_what_to_write_and_where(body: str, fix: str) -> None:
    (one,) = found(body)
    assert one.fix == fix


@pytest.mark.parametrize("body", READABLE)
def test_what_bash_reads_has_no_finding(body: str) -> None:
    assert bash_reads(body)
    assert found(body) == []


@pytest.mark.parametrize("end", [" EOF", "EOF ", "", "EOFF"])
def test_a_here_document_without_its_end_is_a_warning(end: str) -> None:
    (one,) = found(f"cat > hosts <<EOF\na\n{end}\nsrun x\n")
    assert (one.line, one.severity, "no line EOF" in one.reason) == (3, "warning", True)


@pytest.mark.parametrize(
    ("begin", "close"),
    [
        ("if a; then", "fi"),
        ("for i in 1; do", "done"),
        ("while a; do", "done"),
        ("f() {", "}"),
        ("case a in a)", "esac"),
    ],
)
def test_a_here_document_that_swallows_the_closing_word_is_an_error(begin: str, close: str) -> None:
    body = f"{begin}\n  cat <<EOF\na\n  EOF\n{close}\nsrun x\n"
    assert not bash_reads(body)
    (one,) = found(body)
    assert (one.line, one.severity, "no line EOF" in one.reason) == (4, "error", True)


def test_a_placeholder_is_a_note() -> None:
    (one,) = found("a=<path>\n(b\n")
    assert (one.line, one.severity) == (3, "note")


@pytest.mark.parametrize(
    "script",
    [
        "#!/bin/zsh\n#SBATCH --time=1\nfor i (1 2) { echo $i }\n",
        "#!/usr/bin/env python3\n#SBATCH --time=1\nprint('if')\n",
        HEAD + "if {{ test }}; then\n",
        HEAD + "{% if test %}\nif a; then\n{% endif %}\n",
        HEAD + "srun x\nexit 0\nif a; then\n",
        HEAD + "#=\nsrun julia x.jl\nexit\n=#\nf(x) = [i for i in x]\n",
        HEAD.replace("\n", "\r\n") + "if a; then\r\n  b\r\nfi\r\n",
    ],
)
def test_other_shells_templates_and_what_never_runs(script: str) -> None:
    assert [one for one in check(script.encode()) if one.rule == "syntax-error"] == []
