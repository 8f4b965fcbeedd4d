"""No input makes check fail or hang: half scripts, nonsense, bytes."""

from __future__ import annotations

import enum
import os
import re
import sys
import time
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobgen.check.checker import check
from jobgen.check.rules.table import RULES
from jobgen.script.dialects.table import SCRIPT_SCHEDULERS
from tools import write_rule_pages as pages

SCRIPTS = [pages.script(rule, name) for rule in sorted(RULES) for name in ("bad", "good")]
PIECES = st.sampled_from(
    [
        "#PBS",
        "#SBATCH",
        "-l",
        "select=",
        "nodes=2:ppn=",
        ":",
        "+",
        ",",
        "-N",
        "--nodes=",
        "--time=1:",
        "walltime=",
        "::",
        "-",
        "--",
        "=",
        "%",
        "--array=1-",
        "$(",
        "`",
        '"',
        "'",
        "<<",
        "EOF",
        "${",
        "}",
        "$((",
        "))",
        "((",
        "[[",
        "]]",
        "{",
        "(",
        ")",
        "case",
        "esac",
        "if",
        "then",
        "fi",
        "for",
        "in",
        "do",
        "done",
        "while",
        "||",
        "&&",
        "|",
        "&",
        ";",
        ">",
        ">>",
        "2>&1",
        "\\",
        "trap",
        "EXIT",
        "wait",
        "$!",
        "cd",
        "srun",
        "mpirun",
        "-np",
        "torchrun",
        "--nnodes=",
        "--master_port",
        "deepspeed",
        "--hostfile",
        "--include",
        "bash",
        "-c",
        "export",
        "MASTER_PORT=",
        "A=(",
        "$A",
        "${A[@]}",
        '"${A[@]}"',
        "$PBS_NODEFILE",
        "wc",
        "-l",
        "sort",
        "-u",
        "sleep",
        "1",
        "python3",
        "--deepspeed_config",
        "x.json",
        "#",
        "é",
        "\x00",
        "\ufeff",
        "9999999999999",
    ]
)
SEPARATORS = st.sampled_from([" ", "\n", "", "\r\n", "\t"])


@given(st.binary(max_size=300), st.sampled_from([*SCRIPT_SCHEDULERS, None]))
@settings(deadline=None, max_examples=200)
def test_any_bytes(source: bytes, scheduler: str | None) -> None:
    check(source, scheduler=scheduler)


@given(st.lists(st.tuples(PIECES, SEPARATORS), max_size=60), st.sampled_from([*SCRIPT_SCHEDULERS, None]))
@settings(deadline=None, max_examples=400)
@example([("#PBS", " "), ("-l", " "), ("select=", "\n")], "pbspro")
def test_pieces_of_scripts(pieces: list[tuple[str, str]], scheduler: str | None) -> None:
    source = "#!/bin/bash\n" + "".join(piece + separator for piece, separator in pieces)
    check(source.encode(), scheduler=scheduler, folder="/nowhere")


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("configs")
    pages.write(RULES["config-batch"], folder)
    return str(folder)


@given(source=st.sampled_from(SCRIPTS), start=st.floats(0, 1), length=st.floats(0, 0.3))
@settings(deadline=None, max_examples=200)
def test_scripts_that_are_cut(configs: str, source: bytes, start: float, length: float) -> None:
    at = int(start * len(source))
    check(source[:at] + source[at + int(length * len(source)) :], folder=configs)


HEAD = "#!/bin/bash\n#SBATCH --time=01:00:00\n#SBATCH --nodes=2\nset -euo pipefail\n"
# A piece that is repeated, what stands before it and after it; I is the number of the piece.
SHAPES = [
    ("mpirun -np 4 ./a 2>&1 | tee x\n", HEAD, ""),
    ("srun ./a && mpirun ./b || true\nif srun ./a; then echo; fi\n", HEAD, ""),
    ("torchrun --nnodes=2 --master_port=29500 t.py --deepspeed &\nwait\n", HEAD, ""),
    ("torchrun --standalone --nnodes=1 t.py &\n", HEAD, ""),
    ("deepspeed --hostfile hI t.py --deepspeed_config d.json\nx > hI\n", HEAD, ""),
    ("srun bash -c 'torchrun --nnodes=2 t.py'\n", HEAD, ""),
    ("fI() {\n  srun ./a\n}\ntrap fI TERM\n", HEAD, "srun ./a\n"),
    ("module load openmpi/4\nsrun --mpi=pmi2 ./a\ncd x\n", HEAD, ""),
    ("export AI=$BI\nrm $AI > hostfile$AI\n", HEAD, ""),
    ("cat > x << EOF\n$a\nEOF\n", HEAD, ""),
    ("for i in 1 2; do python3 t.py & done\n", HEAD, "wait\n"),
    ("a) echo $(srun ./a) ;;\n", HEAD + "case $x in\n", "esac\n"),
    ("# jobgen: disable=no-errexit\n", HEAD, "srun ./a\n"),
    ("# jobgen: disable=no-errexit\nsrun ./a\n", HEAD, ""),
    ("#SBATCH --signal=USR1\n#SBATCH --gres=gpu:16\n#SBATCH --export=A=1\n", "#!/bin/bash\n", "srun ./a\n"),
    ("#PBS -W depend=afterok:1\n#PBS -v A=1\n#PBS -l select=2:ncpus=4\n", "#!/bin/bash\n", "mpirun ./a\n"),
    ("#SBATCH --nodes=2\n", "#!/bin/bash\nhostname\n", ""),
    ("srun ./a; ", HEAD, "\n"),
    ("a|", HEAD, "a\n"),
    (" A=1 B=$C", HEAD + "export", "\n"),
    (" --a=1 word", HEAD + "srun", "\n"),
    ("$a ", HEAD + 'echo "', '"\n'),
    (" --x=1", HEAD + "A=(", ")\nsrun ${A[@]} ./a\n"),
]


def source(shape: tuple[str, str, str], count: int) -> bytes:
    piece, before, after = shape
    return (before + "".join(piece.replace("I", str(at)) for at in range(count)) + after).encode()


_COMPILER = (os.path.dirname(re.__file__), enum.__file__)  # of patterns, with its flags


def steps(source: bytes) -> int:
    """Return the number of lines that Python executes to check a script, without those that compile patterns:
    they depend on what the tests before have left in the cache of ``re``."""
    count = 0

    def trace(frame: FrameType, *_: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename.startswith(_COMPILER):
            return None
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        check(source)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: repr(shape[0]))
def test_the_work_grows_with_the_length(shape: tuple[str, str, str]) -> None:
    """Of three equal steps in length, the second adds no more work than the first: it would, if any rule
    looked at all lines for each line."""
    check(source(shape, 30))  # what is imported and compiled at first use
    small, middle, large = (steps(source(shape, 30 * times)) for times in (1, 2, 3))
    assert large - middle <= 1.01 * (middle - small)


@pytest.mark.parametrize(
    "source",
    [
        b"$(" * 5000,
        b"{ " * 5000,
        b'"$(' * 3000,
        b"if " * 5000,
        b"a && " * 25_000,
        b"#SBATCH -t 1\n./a\necho" + b" && echo" * 5000,
        b"a=$b\nb=$a\ntorchrun --nnodes=$a x.py\n",
        b"A=(${A[@]} x)\ntorchrun ${A[@]}\n",
        b"A=(" + b"--x=1 " * 5000 + b")\n" + b"srun ${A[@]} x\n" * 3000,
        b"".join(b"a%d='%s'\n" % (i, b"$a%d" % (i - 1) * 50) for i in range(9)).replace(b"'", b'"')
        + b"srun --nodes=$a8 x\n",
        b"bash -c 'bash -c \"bash -c torchrun\"'\n" * 100,
        b"cat <<A\n" * 2000,
        b"#PBS -l select=" + b"1:ncpus=1+" * 20_000,
        b"\xff\xfe#!/bin/bash\n\x00",
    ],
    ids=lambda source: repr(source[:16]),
)
def test_nothing_hangs(source: bytes) -> None:
    start = time.process_time()
    check(source)
    assert time.process_time() - start < 20
