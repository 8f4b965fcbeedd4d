"""The order of the folders of train/: an import may only go down, also one inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "train"

# The lowest first. A name is a folder of train/ or a module at its top. Those of one row do not import each other.
ORDER = (
    ("atomic", "errors", "flops", "host_files", "nodefiles", "signals", "trees"),
    ("addresses", "best", "npu", "report", "stop_vote", "user_code"),
    ("accelerators", "loss_functions", "ranks"),
    ("config", "device", "metrics"),
    ("randomness",),
    ("data", "explain", "models", "peers", "sinks", "watch"),
    ("checkpoints", "preflight", "size"),
    ("engines", "epoch_losses", "hang"),
    ("evaluation",),
    ("commands", "loop", "trial"),
    ("whole_run",),
    ("pieces",),
    ("__main__", "__init__"),
)
LEVELS = {name: level for level, row in enumerate(ORDER) for name in row}


def imports(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """Yield the folders and top modules of train/ that a module of `package` imports, not for types alone."""
    rest: list[ast.AST] = [ast.parse(source)]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            rest += node.orelse
        elif isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            parts = (*above, *(node.module or "").split(".")) if node.module else above
            yield from (parts[:1] if parts else (alias.name for alias in node.names))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = (
                [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
            )
            assert not any(name.startswith("jobgen.train") for name in names), (
                "imports in train/ are relative"
            )
        else:
            rest += ast.iter_child_nodes(node)


def upward(source: str, place: Path) -> list[str]:
    """Return the imports of a module, at `place` below train/, that do not go down."""
    unit = place.with_suffix("").parts[0]
    others = [name for name in imports(source, place.parent.parts) if name != unit]
    return [f"{place} imports {name}" for name in others if LEVELS[name] >= LEVELS[unit]]


def test_imports_go_down() -> None:
    files = sorted(FOLDER.rglob("*.py"))
    assert {file.relative_to(FOLDER).with_suffix("").parts[0] for file in files} == set(LEVELS)
    assert [line for file in files for line in upward(file.read_text(), file.relative_to(FOLDER))] == []


def test_an_import_that_goes_up_is_found() -> None:
    place = Path("data/feed.py")
    for source in (
        "from ..engines.base import Micro",
        "from .. import trees, engines",
        "def late():\n    from ..engines import base",
        "from ..models import gpt",
    ):
        assert len(upward(source, place)) == 1, source
    for source in (
        "from . import sampling\nfrom .sources import Source\nfrom ..config.converters import is_own",
        "if TYPE_CHECKING:\n    from ..engines import Engine",
    ):
        assert upward(source, place) == [], source
