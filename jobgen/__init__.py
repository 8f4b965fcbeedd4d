"""Batch-job scripts for training networks on PBS and Slurm clusters.

One job description becomes one readable, self-contained script:
flags -> JobSpec (spec.py) -> Plan (plan/) -> text (rendering/, templates/).

From Python: ``from jobgen import JobSpec, render`` (docs/api.md), ``submit, Run`` (docs/notebook.md).
"""

from __future__ import annotations

import os

# That of typing, which takes 5 ms to load: until main() runs, Ctrl-C shows a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jobgen.api.jobs import JobSpec as JobSpec
    from jobgen.api.jobs import render as render
    from jobgen.api.jobs import submit as submit
    from jobgen.api.run import Run as Run
    from jobgen.errors import JobgenError as JobgenError
    from jobgen.values.version import __version__ as __version__

__all__ = ["JobSpec", "JobgenError", "Run", "__version__", "render", "submit"]

# In a checkout, templates/ and train/ are next to this package, not inside it: make
# jobgen.templates and jobgen.train importable from there, as in an installation.
_ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # pathlib would take 3 ms
if os.path.isfile(os.path.join(_ROOT, "setup.cfg")):
    __path__.append(_ROOT)

_HOMES = {
    **dict.fromkeys(("JobSpec", "render", "submit"), "jobgen.api.jobs"),
    "JobgenError": "jobgen.errors",
    "__version__": "jobgen.values.version",
    "Run": "jobgen.api.run",
}


if not TYPE_CHECKING:  # type checkers would apply it to the submodules, too

    def __getattr__(name: str) -> Any:
        """Import and return a public name at its first use: the command line starts without these modules."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
