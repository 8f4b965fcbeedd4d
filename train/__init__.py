"""The training module that the generated scripts launch: python -m jobgen.train.

The order of a run is a good order for reading: __main__ (commands and exit statuses), whole_run, config/
(options and DeepSpeed's config), ranks (rank discovery), device, data/ (tasks and sources), peers (process
group), models/, loss_functions, engines/, checkpoints/, loop, metrics, evaluation, report (files of the run).
commands/ has the commands that do not train. tests/train/test_train_order.py has the order of imports.

From Python: `from jobgen.train import train, init, Checkpoints, Deadline`, see pieces/.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .pieces.api import train as train
    from .pieces.deadline import Deadline as Deadline
    from .pieces.process import init as init
    from .pieces.states import Checkpoints as Checkpoints

__all__ = ["Checkpoints", "Deadline", "init", "train"]
_HOMES = {
    "Checkpoints": ".pieces.states",
    "Deadline": ".pieces.deadline",
    "init": ".pieces.process",
    "train": ".pieces.api",
}

if not TYPE_CHECKING:  # type checkers would apply it to the submodules, too

    def __getattr__(name: str) -> Any:
        """Import and return one of the pieces at its first use: most of them import torch."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name], __name__), name)
