"""A job file in the making: values by the keys of jobgen's options, in tables."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from jobgen.convert.remark import Remark
from jobgen.jobtables import TABLES, known_keys
from jobgen.options import BY_KEY


@dataclass
class JobFile:
    """The values of the job file by their keys, and what is not in it."""

    values: dict[str, object] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)

    def add(self, key: str, value: object, line: int = 1) -> None:
        """Set a value, or add it to its list, if jobgen takes it."""
        option = BY_KEY.get(key)
        if option is not None and key != "env":
            try:
                option.parse(str(value))
            except ValueError as error:
                self.remarks.append(Remark(line, f"{key} {value}", str(error)))
                return
        if option is not None and option.multiple and key != "env":
            held = self.values.setdefault(key, [])
            assert isinstance(held, list)
            held.append(value)
        else:
            self.values[key] = value

    def set_variable(self, name: str, value: str) -> None:
        """Set a variable of every rank."""
        held = self.values.setdefault("env", {})
        assert isinstance(held, dict)
        held[name] = value

    def text(self, scheduler: str) -> str:
        """The file itself."""
        lines = [f"scheduler = {_value('slurm' if scheduler == 'slurm' else 'pbs')}"]
        for table in (*TABLES, "program"):
            keys = (key for key in known_keys((table,)) if key in self.values)
            held = [f"{key} = {_value(self.values[key])}" for key in keys]
            lines += ["", f"[{table}]", *held] if held else []
        return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    if isinstance(value, int):
        return str(value)
    # JSON's escapes are TOML's, but for the delete character.
    return re.sub("\x7f", r"\\u007f", json.dumps(str(value), ensure_ascii=False))
