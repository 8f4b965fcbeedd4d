"""The table of dialects."""

from jobgen.schedulers.local import LOCAL
from jobgen.schedulers.table import COMMANDS
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.pbspro import PBSPRO_DIALECT
from jobgen.script.dialects.slurm import SLURM_DIALECT
from jobgen.script.dialects.torque import TORQUE_DIALECT

DIALECTS: dict[str, Dialect] = {one.name: one for one in (PBSPRO_DIALECT, TORQUE_DIALECT, SLURM_DIALECT)}
SHELL = "shell"  # the word for a script without a scheduler


class _Shell(Dialect):
    """A script without a scheduler: it is for this machine."""

    scheduler = LOCAL


_SHELL = _Shell()
# In the order of jobgen's commands.
SCRIPT_SCHEDULERS = (
    *(name for one in COMMANDS for name, row in DIALECTS.items() if row.scheduler.command_name == one),
    SHELL,
)


def of_script(name: str) -> Dialect:
    """Return the dialect of a script by the name of its scheduler."""
    return DIALECTS.get(name, _SHELL)
