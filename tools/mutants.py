"""Which line of the runtime has no test: each command is taken out or its condition negated, one at a time.

    .venv/bin/python -m tools.mutants [--jobs N] [FILE...]      # FILE as in hostfile, node/rank

Every mutant stands in a copy of the tree, in which the tests of tests/runtime that read its file run; where they
pass, a few jobs from one end to the other run, too. Where this is root, the tests see their own processes alone
and may write into the copy alone. The exit status is 1 where fewer than 95 % of the mutants are found.
Survivors that are accepted stand in tests/runtime/accepted_mutants.toml with the reason.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import tree_sitter_bash
from tree_sitter import Language, Node, Parser

ROOT = Path(__file__).resolve().parent.parent
RUNTIME = ROOT / "templates" / "runtime"
ACCEPTED = ROOT / "tests" / "runtime" / "accepted_mutants.toml"
END_TO_END = ("tests/local/test_blocks.py",)
LEAST_SHARE = 95  # percent

# In namespaces of their own: a mutant can neither end foreign processes nor write outside of its copy.
APART = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c")
ENTER = 'mount --bind "$0" "$0" && mount -o remount,bind,ro / && cd "$0/tree" && exec "$@"'

SIMPLE = {
    *("command", "redirected_statement", "list", "pipeline", "variable_assignment", "variable_assignments"),
    *("declaration_command", "unset_command", "test_command", "negated_command"),
}
BODIES = {
    *("program", "compound_statement", "do_group", "subshell", "if_statement", "elif_clause"),
    *("else_clause", "case_item", "list"),
}


class Mutant(NamedTuple):
    file: str
    line: int
    kind: str  # out, not
    source: str  # the line as it is
    text: str  # of the whole file

    def __str__(self) -> str:
        return f"{self.file}.sh:{self.line} {self.kind}: {self.source}"


class Accepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file: str
    kind: str
    source: str
    reason: str


# ---------------------------------------------------------------------------------------- the mutants


def mutants(file: str) -> list[Mutant]:
    """All of one file that bash can read."""
    text = (RUNTIME / f"{file}.sh").read_bytes()
    lines = text.decode().splitlines()
    root = Parser(Language(tree_sitter_bash.language())).parse(text).root_node
    found: dict[str, Mutant] = {}
    for kind, start, end, new in edits(root):
        made = (text[:start] + new + text[end:]).decode()
        line = text.count(b"\n", 0, start) + 1
        if made.encode() != text and readable(made):
            found.setdefault(made, Mutant(file, line, kind, lines[line - 1].strip(), made))
    return list(found.values())


def edits(node: Node) -> Iterator[tuple[str, int, int, bytes]]:
    """What is replaced: the kind, from, to, by what."""
    yield from (edit for edit in edits_here(node) if edit)
    for child in node.children:
        yield from edits(child)


def edits_here(node: Node) -> Iterator[tuple[str, int, int, bytes]]:
    where = (node.start_byte, node.end_byte)
    text = node.text or b""
    if is_statement(node) and not is_bare_local(node):
        yield ("out", *where, b":")
    if node.type == "negated_command":
        inner = node.named_children[0]
        yield ("not", *where, inner.text or b"")
    elif is_condition(node):
        yield ("not", *where, b"! " + text)
    if node.type in ("&&", "||") and node.parent and node.parent.type == "list":
        left, right = node.prev_named_sibling, node.next_named_sibling
        if left and right and right.text == b"true":  # `&& true` is the same to set -e
            yield ("not", node.start_byte, right.end_byte, b"")
        elif left and left.type not in ("test_command", "negated_command"):
            yield ("not", *where, b"||" if node.type == "&&" else b"&&")
    if node.type == "raw_string" and b"\n" in text:
        yield from lines_of_program(node, text)


def is_statement(node: Node) -> bool:
    parent = node.parent
    if node.type not in SIMPLE or parent is None or parent.type not in BODIES:
        return False
    if node.type == "redirected_statement" and node.named_children[0].type not in SIMPLE:
        return False  # a whole block
    if parent.type == "list":  # what is done under a condition
        return node == parent.named_children[-1] and node.text not in (b"true", b":")
    return not (parent.type in ("if_statement", "elif_clause") and is_first(node, parent))


def is_first(node: Node, parent: Node) -> bool:
    return node == parent.named_children[0]


def is_bare_local(node: Node) -> bool:
    return (
        node.type == "declaration_command"
        and (node.text or b"").startswith(b"local")
        and b"=" not in (node.text or b"")
    )


def is_condition(node: Node) -> bool:
    parent = node.parent
    if parent is None or parent.type == "negated_command":
        return False
    if node.type == "test_command":
        return True
    heads = ("if_statement", "elif_clause", "while_statement")
    return node.type in SIMPLE - {"list"} and parent.type in heads and is_first(node, parent)


def lines_of_program(node: Node, text: bytes) -> Iterator[tuple[str, int, int, bytes]]:
    """The lines of a program in quotes, of awk or for another bash, whose brackets are in pairs."""
    start = node.start_byte + text.index(b"\n") + 1
    for line in text.split(b"\n")[1:-1]:
        code = line.strip()
        pairs = all(
            code.count(one) == code.count(two) for one, two in ((b"{", b"}"), (b"(", b")"), (b"[", b"]"))
        )
        if pairs and code and code not in (b"do", b"done", b"then", b"fi", b"else"):
            indent = len(line) - len(line.lstrip())
            yield ("out", start + indent, start + len(line), b"")
        start += len(line) + 1


def readable(text: str) -> bool:
    return (
        subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False).returncode
        == 0
    )


# --------------------------------------------------------------------------------------------- the tests


class Recorder:
    """A plug-in of pytest: which files of the runtime each test reads, and how long it takes."""

    def __init__(self) -> None:
        self.files: dict[str, frozenset[str]] = {}
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            assert report.passed, f"{report.nodeid} fails without a mutant"
            self.files[report.nodeid] = frozenset(runtime_shell().READ)
            self.seconds[report.nodeid] = report.duration
            runtime_shell().READ.clear()

    def tests(self, file: str) -> list[str]:
        """Those that read a file, the quickest first; where none does, those of whole scripts."""
        found = [test for test, files in self.files.items() if file in files]
        found = found or [test for test, files in self.files.items() if not files]
        return sorted(found, key=self.seconds.__getitem__)


def runtime_shell() -> Any:
    return sys.modules["support.runtime_shell"]


def record() -> Recorder:
    """What a run of tests/runtime without a mutant shows."""
    recorder = Recorder()
    pytest.main(["-q", "-x", "-p", "no:xdist", "tests/runtime"], plugins=[recorder])
    return recorder


def copy_tree(target: Path) -> Path:
    """The tree as the tests need it; a package's folder comes before what is installed."""
    for name in ("jobgen", "templates", "tests"):
        shutil.copytree(ROOT / name, target / "tree" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.cfg"):
        shutil.copy(ROOT / name, target / "tree" / name)
    (target / "tree" / "jobgen" / "templates").symlink_to("../templates")
    (target / "tree" / "jobgen" / "train").symlink_to(ROOT / "train")
    (target / "tmp").mkdir()
    return target


def passes(copy: Path, tests: list[str], limit: float) -> bool:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--failed-first",  # what found one mutant of a file often finds the next
        "-o",
        f"cache_dir={copy}/cache",
        *tests,
    ]
    if os.geteuid() == 0:
        command = [*APART, ENTER, str(copy), *command]
    env = {**os.environ, "PYTHONPATH": str(copy / "tree"), "TMPDIR": str(copy / "tmp")}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take longer to load than most tests
    process = subprocess.Popen(
        command,
        cwd=copy / "tree",
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        status = 1
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    shutil.rmtree(copy / "tmp", ignore_errors=True)
    (copy / "tmp").mkdir(exist_ok=True)
    return status == 0


def survives(mutant: Mutant, copy: Path, tests: list[str], limit: float) -> bool:
    target = copy / "tree" / "templates" / "runtime" / f"{mutant.file}.sh"
    original = target.read_text()
    target.write_text(mutant.text)
    try:
        return passes(copy, tests, limit) and passes(copy, list(END_TO_END), limit + 120)
    finally:
        target.write_text(original)


# -------------------------------------------------------------------------------------------- the report


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options.add_argument("--limit", type=float, default=120, help="seconds for the tests of a mutant")
    options.add_argument("files", nargs="*")
    arguments = options.parse_args()
    recorder = record()
    every = sorted(str(path.relative_to(RUNTIME).with_suffix("")) for path in RUNTIME.rglob("*.sh"))
    accepted = {(one.file, one.kind, one.source) for one in read_accepted()}
    total = found = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: queue.Queue[Path] = queue.Queue()
        for number in range(arguments.jobs):
            copies.put(copy_tree(Path(folder, str(number))))

        def survivor(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                return survives(mutant, copy, recorder.tests(mutant.file), arguments.limit)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(arguments.jobs) as pool:
            print(f"{'file':24} {'mutants':>8} {'found':>8}", flush=True)
            for file in arguments.files or every:
                made = mutants(file)
                survivors = [
                    mutant for mutant, lives in zip(made, pool.map(survivor, made), strict=True) if lives
                ]
                total += len(made)
                found += len(made) - len(survivors)
                print(f"{file:24} {len(made):8} {len(made) - len(survivors):8}", flush=True)
                for mutant in survivors:
                    known = (mutant.file, mutant.kind, mutant.source) in accepted
                    print(f"    {'accepted' if known else 'SURVIVOR'} {mutant}", flush=True)
    share = 100 * found / max(total, 1)
    print(f"{'all':24} {total:8} {found:8}   {share:.1f} %")
    return int(share < LEAST_SHARE)


def read_accepted() -> list[Accepted]:
    return (
        msgspec.toml.decode(ACCEPTED.read_bytes(), type=dict[str, list[Accepted]])["mutant"]
        if ACCEPTED.exists()
        else []
    )


if __name__ == "__main__":
    sys.exit(main())
