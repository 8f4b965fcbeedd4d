"""No input makes check fail or hang: half scripts, nonsense, bytes."""

from __future__ import annotations

import time

import pytest
from check import pages
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobgen.check.checker import check
from jobgen.check.rules.table import RULES
from jobgen.schedulers.table import SCRIPT_SCHEDULERS

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


@pytest.mark.parametrize(
    "source",
    [
        b"$(" * 5000,
        b"((" * 5000,
        b"{ " * 5000,
        b'"$(' * 3000,
        b"if " * 5000,
        b"a=$a; " * 5000,
        b"a=$b\nb=$a\ntorchrun --nnodes=$a x.py\n",
        b"A=(${A[@]} x)\ntorchrun ${A[@]}\n",
        b"bash -c 'bash -c \"bash -c torchrun\"'\n" * 100,
        b"cat <<A\n" * 2000,
        b"x " * 100_000,
        b"echo hello | tee x\n" * 5000,
        b"#PBS -l select=" + b"1:ncpus=1+" * 20_000,
        b"\xff\xfe#!/bin/bash\n\x00",
    ],
    ids=lambda source: repr(source[:16]),
)
def test_nothing_hangs(source: bytes) -> None:
    start = time.perf_counter()
    check(source)
    assert time.perf_counter() - start < 20
