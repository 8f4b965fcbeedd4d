"""The names that texts of a site file may hold: numbers of the job in braces, and variables."""

from __future__ import annotations

import re

# The numbers that the lines of a site may name, in braces.
NUMBERS = (
    *("nodes", "ranks_per_node", "cpus_per_rank", "cpus_per_task", "cpus_per_node", "gpus_per_node"),
    *("cores_per_node", "gpus_total", "cores_total", "cpu_lists", "cpu_masks", "constraint", "mem"),
    "mem_total",
)


def names_in(line: str) -> list[str]:
    """Return the names in braces in a line."""
    return re.findall(r"\{(\w*)\}", line)


def reference(text: str) -> tuple[str, str]:
    """Return the name in a text such as ``$NAME/lib``, and the rest of it. Other texts have no name."""
    match = re.fullmatch(r"\$([A-Za-z_][A-Za-z0-9_]*)(/.*)?", text)
    return (match[1], match[2] or "") if match else ("", text)
