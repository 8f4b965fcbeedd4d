"""Words as bash reads them: with escaped signs, blanks in strings, and the ends of lines that continue."""

from __future__ import annotations

import random
import re
import subprocess

import pytest
from convert.conversions import job_file, remarks, values

from jobgen.script.script import Script

SLURM = "#!/bin/bash\n#SBATCH {}\n{}\n"
JOIN = "\\\n"
WORDS = (
    *("a", "-x", "$A", "${A}", '"$A"', "'q r'", '"q  $A"', "\\ ", "\\$", "/", ".", "_", ":", "=", "1"),
    *(f'"{JOIN}"', JOIN, f'"a {JOIN} $A"', f'"{JOIN}   $A {JOIN}\t${{A}}  "', "${A:-z}", '"  "', '""', "''"),
    *("$B", '"$B"', '\\"', '"\\a"', "${A}_", '"${B}/"', f'"$B  {JOIN}  "', '"\\$A"'),
)


def test_values_of_words_are_those_of_bash() -> None:
    choose = random.Random(1)
    texts = {"".join(choose.choices(WORDS, k=choose.randint(1, 5))) for _ in range(400)}
    apart = [one for one in sorted(texts) if not re.search(r"(\\ |\\\n)\\\n|\\\n$", one)]
    lines = [f"X{number}={text}" for number, text in enumerate(apart)]
    code = "\n".join(["#!/bin/bash", "A=1", 'B="b c"', *lines, ""])
    script = Script(code.encode(), "slurm")
    print_all = f'for i in {{0..{len(lines) - 1}}}; do n=X$i; printf "%s\\0" "${{!n}}"; done'
    done = subprocess.run(["bash", "-c", code + print_all], capture_output=True, text=True, check=True)
    found = {name: script.constants.value(value) for name, value, _ in script.assignments}
    real = done.stdout.split("\0")
    known = [(text, found[name], real[n]) for n, text in enumerate(apart) if found.get(name := f"X{n}")]
    assert len(known) > 250
    assert [one for one in known if one[1] != one[2]] == []


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (f"./a -i x.txt,{JOIN}y.txt,{JOIN}z.txt -o b", ["./a", "-i", "x.txt,y.txt,z.txt", "-o", "b"]),
        (f'./a "x",{JOIN}"y" 1', ["./a", "x,y", "1"]),
        (f"./a --out={JOIN}/data/x", ["./a", "--out=/data/x"]),
        (f"./a 1{JOIN}--b 2", ["./a", "1--b", "2"]),
        (f"./a 1 {JOIN}--b 2", ["./a", "1", "--b", "2"]),
        (f"./a 1{JOIN} --b 2", ["./a", "1", "--b", "2"]),
        (f'D=/d\nX="$D {JOIN}    $D"\n./a "$X"', ["./a", "/d     /d"]),
        (f"P={JOIN}'--b 2'\n./a \"$P\"", ["./a", "--b 2"]),
        (f'D=/d\nX="a {JOIN}    $D"\n./a "$X"', ["./a", "a     /d"]),
        (f"# ./b x,{JOIN}./a 1", ["./a", "1"]),
        (f"cat > f <<'END'\nx,{JOIN}END\n./a 1", ["./a", "1"]),
        ('D=/d\nX="$D"\\ x\n./a "$X"', ["./a", "/d x"]),
    ],
)
def test_the_words_of_the_program(line: str, command: list[str]) -> None:
    assert values(job_file(SLURM.format("-n 1", line)).text)["command"] == command


def test_lines_behind_a_word_of_two_lines() -> None:
    done = job_file(SLURM.format("-n 1", f"echo a,{JOIN}b,{JOIN}c\nexport D=$1\n./a x,{JOIN}y $D"))
    assert {line for _, line, what in remarks(done) if what == "$1"} == {6}
