"""The structure of the packages: their imports, read from the syntax trees, and the names that they compare with."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import jobgen.train.accelerators as training
import pytest
from support import ROOT

import jobgen
from jobgen.launch.accelerators import ACCELERATORS
from jobgen.launch.launchers import LAUNCHERS, MPI_FLAVOURS
from jobgen.schedulers.table import COMMANDS as SCHEDULER_COMMANDS
from jobgen.schedulers.table import SCHEDULERS

ACYCLIC = ("jobgen", "train")
# The folders and top modules of jobgen, the lowest first.
ORDER = (
    ("topology",),
    ("errors", "secrets", "values"),
    ("hosts",),
    ("launch", "schedulers"),
    ("options", "spec"),
    ("jobfile", "sites"),
    ("config",),
    ("plan",),
    ("rendering",),
    ("script",),
    ("check", "convert", "runs"),
    ("doctor", "report", "site_making"),
    ("api",),
    ("__main__", "commands", "jobgen"),
)
HEAVY = ("torch", "deepspeed", "mpi4py", "jobgen.train")
COMMANDS = "jobgen.commands"
PUBLIC = {f"jobgen.{name}" for name in jobgen.__all__}
MAY_IMPORT_COMMANDS = ("jobgen.__main__", COMMANDS)
# Names that only the modules of their rows compare with; elsewhere the row says what differs.
ROWS = {
    "jobgen.launch.launchers": (
        *("mpirun", "deepspeed", "torchrun", "srun", "accelerate", "colossalai"),
        *("openmpi", "mpich", "intel", "pals"),
    ),
    "jobgen.launch.accelerators": ("cuda", "npu", "rocm", "xpu"),
    "jobgen.schedulers": ("pbs", "pbspro", "torque", "slurm", "local"),
}


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "jobgen" else ("jobgen", *parts)  # train/ is installed as jobgen.train
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@lru_cache
def modules(top: str) -> dict[str, tuple[Path, ast.Module]]:
    """Return the modules of a folder by name, with their paths and syntax trees."""
    paths = sorted((ROOT / top).rglob("*.py"))
    return {_name(path): (path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths}


def _statements(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports, those inside of functions too, but not those below ``if TYPE_CHECKING``."""
    rest: list[ast.AST] = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            rest += node.orelse
        elif not isinstance(node, ast.expr):
            rest += ast.iter_child_nodes(node)


@cache
def imported(top: str, name: str) -> frozenset[str]:
    """Return the full names that a module imports: a module of the same folder by its own name."""
    return frozenset(_imported(top, name))


def _imported(top: str, name: str) -> Iterator[str]:
    known = modules(top)
    path, tree = known[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            continue
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        stem = ".".join((*above, *([node.module] if node.module else [])))
        for alias in node.names:
            whole = f"{stem}.{alias.name}"
            yield whole if whole in known or stem == "jobgen" else stem


def _within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def cycle(edges: dict[str, set[str]]) -> list[str]:
    """Return the modules of one import cycle in order; empty if there is none."""
    done: set[str] = set()

    def walk(name: str, trail: list[str]) -> list[str]:
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done:
            return []
        for other in sorted(edges[name]):
            if found := walk(other, [*trail, name]):
                return found
        done.add(name)
        return []

    return next((found for name in edges if (found := walk(name, []))), [])


@pytest.mark.parametrize("top", ACYCLIC)
def test_no_import_cycle(top: str) -> None:
    known = modules(top)
    edges = {name: {one for one in imported(top, name) if one in known and one != name} for name in known}
    assert not cycle(edges), " -> ".join(cycle(edges))


def test_a_cycle_is_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def unit(name: str) -> str:
    """Return the folder of a module below jobgen/, or the module itself if it is at the top."""
    return name.split(".")[1] if "." in name else "jobgen"


def units() -> dict[str, set[str]]:
    """Return the units that each unit imports. Late imports count, those for types alone do not."""
    known = modules("jobgen").keys()
    found: dict[str, set[str]] = {unit(name): set() for name in known}
    for name in known:
        own = (one for one in imported("jobgen", name) if one in known or one in PUBLIC)
        found[unit(name)] |= {unit(one) if one in known else "jobgen" for one in own} - {unit(name)}
    return found


def test_imports_go_down() -> None:
    level = {name: number for number, names in enumerate(ORDER) for name in names}
    edges = units()
    assert edges.keys() == level.keys()
    assert not [(one, other) for one, below in edges.items() for other in below if level[one] < level[other]]


def test_no_cycle_of_units() -> None:
    assert not cycle(units()), " -> ".join(cycle(units()))


def test_nothing_heavy_is_imported() -> None:
    heavy = {
        (name, one) for name in modules("jobgen") for one in imported("jobgen", name) if _within(one, HEAVY)
    }
    assert not heavy


def test_nothing_imports_the_command_line() -> None:
    below = [name for name in modules("jobgen") if not _within(name, MAY_IMPORT_COMMANDS)]
    wrong = {(name, one) for name in below for one in imported("jobgen", name) if _within(one, (COMMANDS,))}
    assert not wrong


def test_packages_hold_no_code() -> None:
    """``__init__.py`` files hold exports only; that of jobgen makes templates and train importable."""
    for name, (path, tree) in modules("jobgen").items():
        if path.name == "__init__.py" and name != "jobgen":
            assert not [
                node for node in tree.body[1:] if not isinstance(node, (ast.Import, ast.ImportFrom))
            ], name


def test_every_package_is_installed() -> None:
    listed = (ROOT / "setup.cfg").read_text(encoding="utf-8").split("packages =\n")[1].split("package_dir")[0]
    packages = {name for name, (path, _) in modules("jobgen").items() if path.name == "__init__.py"}
    assert packages <= set(listed.split())


def comparisons(tree: ast.Module) -> Iterator[set[str]]:
    """Yield the strings of each comparison, and of each case of a ``match`` statement."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Compare, ast.MatchValue)):
            inner = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
            yield {one for one in inner if isinstance(one, str)}


@pytest.mark.parametrize("home", ROWS)
def test_only_a_row_knows_its_name(home: str) -> None:
    wrong = {
        (name, word)
        for name, (_, tree) in modules("jobgen").items()
        for words in comparisons(tree)
        for word in words & set(ROWS[home])
        if not _within(name, (home,))
    }
    assert not wrong


def test_train_knows_no_device_by_name() -> None:
    """What differs between devices is in the rows of train/accelerators.py."""
    names = set(ACCELERATORS) - {"cpu"}
    assert not {
        (name, word)
        for name, (_, tree) in modules("train").items()
        for words in comparisons(tree)
        for word in words & names
    }
    assert set(training.ACCELERATORS) == set(ACCELERATORS)


def test_the_names_of_rows_are_complete() -> None:
    known = {*LAUNCHERS, *MPI_FLAVOURS} - {"none"}  # which is a value of many options
    assert known == set(ROWS["jobgen.launch.launchers"])
    # cpu is the absence of an accelerator.
    assert set(ACCELERATORS) - {"cpu"} == set(ROWS["jobgen.launch.accelerators"])
    assert {*SCHEDULERS, *SCHEDULER_COMMANDS} == set(ROWS["jobgen.schedulers"])


def test_a_comparison_is_found() -> None:
    tree = ast.parse("if kind in ('srun', *others) or 'npu' == kind: say('rocm')")
    assert list(comparisons(tree)) == [{"srun"}, {"npu"}]
