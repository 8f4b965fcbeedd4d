"""The program of a command line: its Python file, if it stands beside the script, and what it reads."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from jobgen.check.ranks.frameworks import FRAMEWORKS
from jobgen.launch.command_line import is_python
from jobgen.script.script import Script
from jobgen.values.parsers import number

_LARGEST = 500_000
_KNOWN = sys.stdlib_module_names | {
    *("torch", "torchvision", "numpy", "pandas", "sklearn", "scipy", "tqdm", "yaml", "PIL")
}
_STARTERS = ("subprocess", "multiprocessing", "torch.multiprocessing", "submitit", "concurrent", "joblib")
_WORKERS = ("num_workers", "dataloader_num_workers")  # arguments of data loaders
_WORKERS_OPTIONS = (*_WORKERS, "workers")


class PythonSource(NamedTuple):
    """What a Python file shows: its modules, the variables that it needs and sets, and its data loaders."""

    text: str
    modules: frozenset[str]
    needs: frozenset[str]  # os.environ["NAME"], which fails without the variable
    reads: frozenset[str]  # also with a default
    sets: frozenset[str]
    workers: int | None
    trainer: dict[str, int]  # devices and num_nodes of Lightning's Trainer

    @property
    def is_plain(self) -> bool:
        """Return whether the file imports nothing that may set variables, or start processes, of its own."""
        return {one.partition(".")[0] for one in self.modules} <= _KNOWN

    def imports(self, *names: str) -> bool:
        """Return whether the file imports one of these modules, or a part of it."""
        return any(one == name or one.startswith(f"{name}.") for one in self.modules for name in names)


class RankProgram(NamedTuple):
    """The words of a program, and its file; without a file only the words are known."""

    words: tuple[str | None, ...]
    file: str = ""
    source: PythonSource | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(word for word in self.words if word is not None)

    @property
    def frameworks(self) -> frozenset[str]:
        """The keys of the frameworks that the program certainly uses."""
        if self.source is not None:
            return frozenset(key for key, row in FRAMEWORKS.items() if self.source.imports(*row.modules))
        return frozenset(
            key
            for key, row in FRAMEWORKS.items()
            if row.options and any(word.startswith(row.options) for word in self.arguments)
        )

    @property
    def is_single(self) -> bool:
        """Return whether neither the file nor what it imports knows several ranks."""
        if self.source is None or self.frameworks or self.source.imports(*_STARTERS, "torch.distributed"):
            return False
        reads = any(re.search(r"RANK|SLURM_|OMPI_|PMI|PALS", name) for name in self.source.reads)
        return self.source.is_plain and not reads

    @property
    def workers(self) -> int | None:
        """The processes of a data loader: an option, or the number in the file."""
        for _, name, text in self.options:
            if name.rpartition(".")[2] in _WORKERS_OPTIONS:
                return number(text, 4)
        return None if self.source is None else self.source.workers

    @property
    def options(self) -> Iterator[tuple[str, str, str]]:
        """The options: as written, with underscores and no dashes, and the value; empty if it is unknown.

        Both ``--trainer.devices 4`` and ``trainer.devices=4`` are options.
        """
        for word, after in pairwise((*self.words, None)):
            name, equals, value = (word or "").partition("=")
            if word and (equals or word.startswith("-")):
                yield name, name.lstrip("-").replace("-", "_"), value if equals else after or ""

    def number(self, *names: str) -> int | None:
        """Return the number that an argument sets, as ``--trainer.devices 4`` or ``trainer.devices=4``."""
        return number(next((value for _, name, value in self.options if name in names), None), 5)


def program(script: Script, words: Sequence[str | None], readable: bool) -> RankProgram:
    """Return the program that words call, with its file if files can be read."""
    at = next((at for at, word in enumerate(words[:6]) if is_python(os.path.basename(word or ""))), -1)
    file = next((word for word in words[at + 1 :] if word and word.endswith(".py")), "")
    if "-m" in words[: words.index(file) if file else None]:
        file = ""
    path = script.path(_relative(file)) if file and readable else None
    return RankProgram(tuple(words), file, _source(path) if path and os.path.isfile(path) else None)


def _relative(file: str) -> str:
    for name in ("SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "PWD"):
        file = file.removeprefix(f"${name}/").removeprefix(f"${{{name}}}/")
    return file


def stays(script: Script) -> bool:
    """Return whether the script stays in the directory of its submission, where its files are."""
    own = {"$PBS_O_WORKDIR", "${PBS_O_WORKDIR}", "$SLURM_SUBMIT_DIR", "${SLURM_SUBMIT_DIR}", "$PWD", "."}
    moved = [word.unquoted for one in script.named("cd", "pushd") for word in one.arguments[:1]]
    options = any(key in script.heeded for key in script.dialect.directory_options)
    return not options and all(text in own for text in moved)


def _source(path: str) -> PythonSource | None:
    try:
        stamp = os.stat(path)
        return None if stamp.st_size > _LARGEST else _parsed(path, stamp.st_mtime_ns)
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=64)
def _parsed(path: str, stamp: int) -> PythonSource | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # another Python, or none
    nodes = list(ast.walk(tree))
    needs, reads, sets = _environment(nodes)
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    keywords = [one for call in calls for one in call.keywords]
    workers = [_number(one.value) for one in keywords if one.arg in _WORKERS]
    trainer = {
        one.arg: number
        for call in calls
        if _last(call.func) == "Trainer"
        for one in call.keywords
        if one.arg in ("devices", "num_nodes") and (number := _number(one.value)) is not None
    }
    known = [number for number in workers if number]
    modules, most = frozenset(_modules(nodes)), max(known, default=None)
    return PythonSource(text, modules, needs, reads, sets, most, trainer)


def _modules(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield "."  # of the folder of the file
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Attribute) and node.attr == "distributed" and _last(node.value) == "torch":
            yield "torch.distributed"


def _environment(nodes: Sequence[ast.AST]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the variables that a file needs, reads, and sets itself."""
    needs: set[str] = set()
    reads: set[str] = set()
    sets: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Subscript) and _last(node.value) == "environ" and (name := _text(node.slice)):
            (needs if isinstance(node.ctx, ast.Load) else sets).add(name)
        elif isinstance(node, ast.Call) and node.args and (name := _text(node.args[0])):
            if _last(node.func) == "setdefault":
                sets.add(name)
            elif _last(node.func) == "getenv" or (
                isinstance(node.func, ast.Attribute) and _last(node.func.value) == "environ"
            ):
                reads.add(name)
        elif isinstance(node, ast.Compare) and any(_last(one) == "environ" for one in node.comparators):
            reads.add(_text(node.left) or "")
            sets.add(_text(node.left) or "")  # the file tests whether the variable is there
    return frozenset(needs - sets), frozenset(needs | reads), frozenset(sets)


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _number(node: ast.AST) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None
