"""The settings of the network that a job chooses by a name of its site: ``--network NAME``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from jobgen.errors import nearest, one_of

if TYPE_CHECKING:
    from jobgen.spec import Specification


class NetworkWords(NamedTuple):
    """Modules to load, variables, folders for the front of search paths, by the variable of the path, and
    variables to unset."""

    modules: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    prepended: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unset: tuple[str, ...] = ()


def network_words(spec: Specification) -> NetworkWords:
    """Return the settings of the site for every job, and those of the network that the job chooses.

    Raises:
        JobgenError: the job has no site, or the site offers no network of this name.
    """
    if spec.site is None and spec.network is not None:
        raise spec.refuse("network", "is a name of settings of a site: add --site, or remove it")
    if spec.site is None:
        return NetworkWords()
    always = tuple(spec.site.file.rules.prepend.items())
    if spec.network is None:
        return NetworkWords(prepended=always)
    networks = spec.site.file.networks
    if (chosen := networks.get(spec.network)) is None:
        offers = f"offers {one_of(networks)}" if networks else "offers no network settings; remove it"
        raise spec.refuse("network", f"{spec.site.title} {offers}{nearest(spec.network, networks)}")
    paths = (*always, *chosen.prepend.items())
    return NetworkWords(chosen.modules, tuple(chosen.env.items()), paths, chosen.unset)


def reference(text: str) -> tuple[str, str]:
    """Return the name in a text such as ``$NAME/lib``, and the rest of it. Other texts have no name."""
    match = re.fullmatch(r"\$([A-Za-z_][A-Za-z0-9_]*)(/.*)?", text)
    return (match[1], match[2] or "") if match else ("", text)
