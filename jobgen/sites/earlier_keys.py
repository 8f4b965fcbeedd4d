"""Keys of a site file that have been replaced: ``manual`` and ``read`` are tables ``[[source]]`` now."""

from __future__ import annotations

from typing import Any

from jobgen.options import note
from jobgen.sites.site_file import GROUPS


def with_sources(data: dict[str, Any], origin: str) -> dict[str, Any]:
    """Return the content of a file with a source for each address of ``manual``, of the date ``read``."""
    earlier = [key for key in ("manual", "read") if key in data]
    sources = data.get("source", [])
    if not earlier or not isinstance(sources, list):
        return data
    for key in earlier:
        note(key, "[[source]]", origin)
    rest = {key: value for key, value in data.items() if key not in earlier}
    date = {"confidence": "manual", "date": data["read"]} if "read" in data else {"confidence": "unknown"}
    pages = data.get("manual", [])
    pages = pages if isinstance(pages, list) else [pages]
    return rest | {"source": [*sources, *({"facts": [*GROUPS], **date, "page": page} for page in pages)]}
