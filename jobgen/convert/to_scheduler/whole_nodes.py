"""Requests for nodes that a site gives as a whole: they name no cores and no devices."""

from __future__ import annotations

from jobgen.errors import JobgenError
from jobgen.script.dialects.script_request import ScriptRequest
from jobgen.script.script import Script
from jobgen.sites import search
from jobgen.sites.loader import load
from jobgen.sites.site_file import Site


def complete(script: Script, content: ScriptRequest) -> None:
    """Set the devices of whole nodes of a known site, and note a request that names no cores."""
    request, option = content.request, script.heeded.get("-l select")
    alone = not request.several and all(not name for name in request.chunks[0]) if request.chunks else True
    if (
        option is None
        or alone
        or len(request.chunks) != 1
        or {"ncpus", "mpiprocs", "ngpus"} & set(request.chunks[0])
    ):
        return
    text = f"-l select={option.value}"
    parts = {f"{name}={value}" for name, value in request.chunks[0].items() if name and value}
    if (site := _site(parts)) is None:
        why = "names no cores: if the site gives whole nodes, add --exclusive and --gpus-per-node"
    else:
        gpus = site.file.node.gpus or 0
        request.gpus_per_node, request.exclusive = gpus or None, True
        why = f"{site.title} gives whole nodes, of {gpus} GPUs"
    content.unsure.append((option, text, why))


def _site(parts: set[str]) -> Site | None:
    """Return the site whose own request names one of these resources of a node."""
    for name in search.names() if parts else ():
        try:
            site = load(name)
        except JobgenError:
            continue  # a file of the user that is wrong
        own = {part for line in site.file.request or () for part in line.split(":")}
        if parts & own:
            return site
    return None
