"""Every file of the runtime has tests of its own: a list FILES at the head of a module here names it."""

from __future__ import annotations

import ast
from pathlib import Path

from support.runtime_shell import RUNTIME


def files_with_tests() -> set[str]:
    found: set[str] = set()
    for module in Path(__file__).parent.glob("test_*.py"):
        for statement in ast.parse(module.read_text()).body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "FILES":
                found |= set(ast.literal_eval(statement.value))
    return found


def test_every_file_has_tests() -> None:
    files = {str(path.relative_to(RUNTIME).with_suffix("")) for path in RUNTIME.rglob("*.sh")}
    assert files_with_tests() == files
