"""Writes jobgen/training_options.json, the options of the training module and what each accepts, from its
parser: ``python -m tools.write_training_options``, after a change of its options or engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jobgen.train.config.options import parser

TABLE = Path(__file__).resolve().parent.parent / "jobgen/training_options.json"


def table() -> list[dict[str, Any]]:
    """Return each option with its names, group, help and schema, and whether its value may be missing."""
    made = parser()
    groups = {id(one): group.title for group in made._action_groups for one in group._group_actions}
    rows = []
    for action in made._actions:
        row: dict[str, Any] = {"names": list(action.option_strings), "group": groups[id(action)]}
        row["help"] = action.help
        if action.nargs == 0:
            row["type"] = "boolean"
        else:
            row |= {"metavar": action.metavar, **getattr(action.type, "schema", {})}
        if action.nargs == "?":
            row["optional"] = True
        if action.nargs == "+":
            row["several"] = True
        rows.append(row)
    return rows


def text() -> str:
    return "[\n" + ",\n".join(f" {json.dumps(row)}" for row in table()) + "\n]\n"


if __name__ == "__main__":
    TABLE.write_text(text(), encoding="utf-8")
