"""The reference of job files and site files, made from the types that they are read with."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec

from jobgen.commands.schema import schema_text
from jobgen.sites import site_file
from tools.docsite.tables import cell, code, escaped, table

_JOB = """\
# Job file

The tables and keys of `jobgen.toml`, made from the JSON Schema that `jobgen schema` prints. [Job files](../jobfile.md) describes how
they are used, [Options](options.md) what each becomes in the script.
"""
_SITE = """\
# Site file

The tables and keys of a site file, made from `jobgen/sites/site_file.py`. [Sites](../sites.md) describes how they are used. A site file
may also have the tables of a [job file](job-file.md): they are the defaults of its jobs.
"""
_TABLES = {
    "(top)": site_file.SiteFile,
    "[[source]]": site_file.Source,
    "[detect]": site_file.Detect,
    "[node]": site_file.NodeTable,
    "[queues.NAME]": site_file.Queue,
    "[networks.NAME]": site_file.Network,
    "[rules]": site_file.Rules,
}


def job_page() -> str:
    """Return the page of job files."""
    known = json.loads(schema_text())["$defs"]
    top = known.pop("JobFile")
    sections = [f"## (top)\n\n{_keys(top)}"]
    sections += [f"## {escaped(f'[{name}]')} {{ #{name} }}\n\n{_keys(one)}" for name, one in known.items()]
    return "\n".join([_JOB, *sections])


def _keys(schema: dict[str, Any]) -> str:
    rows = [
        [code(key), cell(_schema_type(one)), cell(one.get("description", "")), _default(one)]
        for key, one in schema["properties"].items()
    ]
    return table(["key", "type", "meaning", "default"], rows)


def _default(schema: dict[str, Any]) -> str:
    return code(json.dumps(schema["default"])) if "default" in schema else ""


def _schema_type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_schema_type, schema["anyOf"])))
    if "$ref" in schema:
        return "table"
    names = {
        "array": "list",
        "object": "table",
        "string": "text",
        "integer": "whole number",
        "boolean": "true, false",
    }
    return names.get(schema.get("type", ""), schema.get("type", ""))


def site_page() -> str:
    """Return the page of site files."""
    return "\n".join([_SITE, *(_site_table(name, kind) for name, kind in _TABLES.items())])


def _site_table(name: str, kind: type[msgspec.Struct]) -> str:
    anchor = re.sub(r"\W+", "", name.partition(".")[0])
    about = cell((kind.__doc__ or "").replace("``", "`"))
    rows = [[code(key), code(meaning)] for key, meaning in _fields(kind)]
    return f"## {escaped(name)} {{ #{anchor} }}\n\n{about}\n\n{table(['key', 'type'], rows)}"


def _fields(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    hints = get_type_hints(kind)
    for name in kind.__struct_fields__:
        yield name, _type(hints[name])


def _type(hint: Any) -> str:
    plain = {str: "text", int: "whole number", bool: "true or false", datetime.date: "date"}
    if hint in plain:
        return plain[hint]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return "table"
    arguments = [one for one in getattr(hint, "__args__", ()) if one not in (type(None), Ellipsis)]
    origin = getattr(hint, "__origin__", None)
    if origin is dict:
        return f"table of {_type(arguments[1])}"
    if origin is tuple:
        return f"list of {', '.join(map(_type, arguments))}"
    return " or ".join(_type(one) if not isinstance(one, str) else repr(one) for one in arguments)
