"""The words of a launch that commands make: the program of a job file gets those of the script."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from convert.conversions import convert, job_file, remarks, values

from jobgen.launch.expansion import parts

START = "#!/bin/bash\n#SBATCH -N 2 -n 8\n"
PROGRAM = '#!/bin/bash\nprintf "<%s>" "${0##*/}" "$@"\necho\n'
LAUNCHER = '#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nexec "$@"\n'


def printed(code: str, folder: Path) -> str:
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "X": "x y"}
    done = subprocess.run(
        ["bash", "-c", code], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=20
    )
    return done.stdout


def word(text: str) -> str:
    """Return a word of the program as the shell of a job reads it."""
    [pairs] = parts([text])
    return "".join(shlex.quote(plain) + f'"${{{name}}}"' * bool(name) for plain, name in pairs)


def of_job_file(text: str) -> str:
    """Return the code of a job file whose ranks are on another node: they get no functions."""
    found = values(text)
    command = found["command"]
    words = map(word if found.get("expand") else shlex.quote, command)
    program = " ".join(words).replace("'bash'", "bash", 1)
    functions = "for name in $(compgen -A function); do unset -f $name; done"
    files = [f". {one}" for one in found.get("source", ())]
    return "\n".join([found.get("early_setup", ""), *files, found.get("setup", ""), functions, program])


IDIOMS = {
    "set": 'set -- a "b c"\nsrun ./p "$@"',
    "set twice": 'set -- a\nset -- "$@" c\nsrun ./p "$@"',
    "set in a condition": 'if true; then set -- x "y z"; fi\nsrun ./p "$1" "$2" $2',
    "set in a list": 'true && set -- x y\nsrun ./p "$@"',
    "set without --": "set a b\nsrun ./p $2 $1",
    "set of output": 'set -- $(echo a b)\nsrun ./p "$1"',
    "set of a variable": 'set -- $X\nsrun ./p "$#" "$2"',
    "a value from before set": "Y=$1\nset -- b\nsrun ./p x$Y $1",
    "shift in a list": 'set -- a b c\ntrue && shift\nsrun ./p "$@"',
    "a reference": 'A=(./p q)\nadd() { local -n R=$1; R+=(z); }\nadd A\nsrun "${A[@]}"',
    "a reference without a value": 'make() { local -n R=$1; R=(./p q); }\nmake A\nsrun "${A[@]}"',
    "a declared reference": 'A=(./p q)\ndeclare -n R=A\nR=(./q k)\nsrun "${A[@]}"',
    "printf of an element": "A=(./p q)\nprintf -v 'A[0]' ./q\nsrun \"${A[@]}\"",
    "printf": "B=q\nprintf -v B %s r\nsrun ./p $B",
    "printf by name": 'B=q\nN=B\nprintf -v "$N" %s r\nsrun ./p $B',
    "eval": 'A=(./p q)\neval "A+=(b)"\nsrun "${A[@]}"',
    "eval by name": 'B=q\nset_to() { eval "$1=$2"; }\nset_to B r\nsrun ./p $B',
    "a subshell": 'A=(./p q)\n(A+=(z))\nsrun "${A[@]}"',
    "a pipeline": 'A=(./p q)\necho x | while read l; do A+=($l); done\nsrun "${A[@]}"',
    "a local array": 'A=(./p q)\nf() { local A=(z); }\nf\nsrun "${A[@]}"',
    "mapfile": 'A=(./p q)\nmapfile -t A < <(printf "%s\\n" ./q "a b")\nsrun "${A[@]}"',
    "mapfile without a name": 'mapfile -t < <(printf "%s\\n" a "b c")\nsrun ./p "${MAPFILE[@]}"',
    "an element of lines": 'readarray A <<< "q r"\nB=${A[0]}\nsrun ./p $B',
    "an alias with a variable": "N=3\nalias e='./p -n ${N}'\nshopt -s expand_aliases\ne x",
    "readarray of a part": 'A=(./p q)\nreadarray -t -O 2 A < <(echo z)\nsrun "${A[@]}"',
    "read -a": 'A=(./p q)\nread -ra A <<< "./q y"\nsrun "${A[@]}"',
    "read": 'B=q\nread -r B <<< "r s"\nsrun ./p $B',
    "read of a document": "read -r -d '' C <<'END'\n./p q\nEND\nsrun $C",
    "read of code": "read -r -d '' C <<'END'\nt=r\n./p $t\nEND\nsrun bash -c \"$C\"",
    "keys": 'declare -A A=([x]=1)\nA[y]=2\nsrun ./p "${A[y]}" "${A[x]}"',
    "unset": "A=q\nunset A\nsrun ./p a $A",
    "unset of an element": 'A=(./p q r)\nunset A[1]\nsrun "${A[@]}"',
    "let": "A=2\nlet A=A+1\nsrun ./p $A",
    "an expression": "A=2\n((A += 2, A++))\nsrun ./p $A",
    "an integer": "declare -i A=2+3\nsrun ./p $A",
    "capitals": "declare -u A=abc\nsrun ./p $A",
    "a loop": "A=x\nfor A in y z; do :; done\nsrun ./p $A",
    "a change of its own": 'A=(q r)\nA=("${A[@]/#/-D}")\nsrun ./p "${A[@]}"',
    "output": 'A=(./p $(echo run >> count; wc -l < count))\nsrun "${A[@]}"',
    "output in a text": 'srun bash -c "./p $(echo run >> count; wc -l < count)"',
    "output that is split": "srun ./p $(echo a b) \"$(echo c d)\"",
    "a sourced array": 'echo "A=(q r)" > list.inc\nsource ./list.inc\nsrun ./p "${A[@]}"',
    "a function": 'run() { ./p "$1"; }\nexport -f run\nsrun bash -c "run 3"',
    "functions": 'run() { show "$1"; }\nshow() { ./p "$1"; }\nexport -f run show\nsrun bash -c \'run "a b"\' $OPTIONS',
    "a declared function": "run() { ./p a; }\ndeclare -fx run\nsrun bash -c run",
    "the text of a function": 'run() { ./p "$1"; }\nsrun bash -c "$(declare -f run); run 3"',
}  # fmt: skip


@pytest.mark.parametrize("body", IDIOMS.values(), ids=IDIOMS)
def test_the_program_gets_the_words_of_the_script(body: str, tmp_path: Path) -> None:
    for name, text in (("p", PROGRAM), ("q", PROGRAM), ("srun", LAUNCHER)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    expected = printed(body, tmp_path)
    (tmp_path / "count").unlink(missing_ok=True)
    done = job_file(f"{START}{body}\n")
    assert re.fullmatch(r"(<[^<>]*>)+\n", expected)
    found = printed(of_job_file(done.text), tmp_path)
    lost = [one.what for one in done.remarks if one.lost and "is known only when the job runs" in one.why]
    assert found == expected or lost


@pytest.mark.parametrize(
    "body",
    [
        'A=(-n 4 ./p)\neval "A+=(x)"\nsrun "${A[@]}"',
        'A=(-n 4)\nfor one in 1 2; do A+=(-c $one); done\nsrun "${A[@]}" ./p',
        'set -- -n 4 ./p\nset -- "$@" -x\nsrun "$@"',
        'run() { srun "$@"; }\nrun -n 4 ./p',
        'make() { local -n R=$1; R=(./p q); }\nmake A\nsrun "${A[@]}"',
        "A='-n 2'\nprintf -v A %s '-n 4'\nsrun $A ./p",
    ],
)
def test_options_that_only_the_job_knows_have_a_remark(body: str) -> None:
    assert any(
        one.lost and "is not known" in one.why for one in convert(f"{START}{body}\n", "pbspro").remarks
    )
    assert any(one.lost for one in job_file(f"{START}{body}\n").remarks)


def test_a_command_in_the_words_of_a_variable_has_a_remark() -> None:
    body = 'run="srun ./p $(mktemp)"\n$run\n'
    assert (False, 4, "$(mktemp)") in remarks(job_file(START + body))


def test_a_file_that_may_set_a_variable_again_has_a_remark() -> None:
    done = job_file(f"{START}N=4\n. ./sizes\nsrun ./a $N\n")
    assert (False, 4, ". ./sizes") in remarks(done)
    assert not any("again" in one.why for one in job_file(f"{START}. ./sizes\nN=4\nsrun ./a $N\n").remarks)


@pytest.mark.parametrize(("program", "lost"), [("bash -c run", True), ("./run.sh", False)])
def test_functions_for_other_nodes_have_a_remark(program: str, lost: bool) -> None:
    done = convert(f"{START}run() {{ ./p; }}\nexport -f run\nsrun {program}\n", "pbspro")
    assert (lost, 5, "export -f run") in remarks(done)
