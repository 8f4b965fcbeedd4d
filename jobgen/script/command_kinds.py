"""Commands by what they do in a script: print something, change the shell, or handle files."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence

from jobgen.script.syntax import Node

# Managers of environments, and the words with which they change the shell; with others they install or run.
_OF_ENVIRONMENTS = "conda mamba micromamba spack pyenv nvm uenv"
_WITHIN = "activate deactivate init shell hook load unload use global local start config info list"
_PRINT = "echo date times dirs history jobs type hostname nvidia-smi npu-smi printf pwd which whoami uptime"
_STATE = """
module ml source . cd pushd popd conda mamba micromamba eval set shopt ulimit umask unset exec trap alias
export declare typeset readonly read mapfile readarray let wait exit return shift ssh-agent pyenv deactivate
uenv spack nvm use soft workon setpkgs vpkg_require resoft reuse unuse
hash disown unalias enable builtin getopts complete bind fg bg
"""
_OF_MODULES = """
avail av list purge spider unload rm del use unuse help show save restore reset keyword whatis update refresh
"""
_TOOLS = """
cp mv rm mkdir rmdir ln ls cat touch chmod tar gzip gunzip zip unzip rsync scp wget curl git pip pip3
sleep true false : test [ head tail grep sed awk sort cut wc find xargs tee df du free top env id groups
seq kill pkill killall ps nvcc sbatch qsub lscpu scontrol squeue sacct qstat seff
sinfo sstat sprio sshare pbsnodes jobinfo jobstats sreport checkjob showq tracejob scancel qdel
"""
PRINT = frozenset(_PRINT.split())
STATE = frozenset(_STATE.split())
_MANAGERS = frozenset(_OF_ENVIRONMENTS.split())
_CHANGES = frozenset(_WITHIN.split())
MODULE_COMMANDS = frozenset(_OF_MODULES.split())  # words of module and ml that load nothing
TOOLS = PRINT | frozenset(_TOOLS.split())


def changes_shell(name: str, arguments: Sequence[str]) -> bool:
    """Return whether a command changes the shell: ``conda activate`` does, and ``conda install`` does not."""
    words = [word for word in arguments if not word.startswith("-")][:2]
    return name in STATE and (name not in _MANAGERS or not words or not _CHANGES.isdisjoint(words))


def is_printed(node: Node, names: Collection[str] = PRINT, text: Node | None = None) -> bool:
    """Return whether one of these commands writes a value to the output of the job, and nothing else happens
    with it. The command may be in a ``text`` for another shell."""
    command = node.around("command")
    if command is None or os.path.basename(command.name) not in names:
        return False
    is_read = command.under(*_READ) or (text is not None and text.under(*_READ))
    return re.match(r"printf\s+-v\b", command.text) is None and not is_read


# Around a command whose output something reads.
_READ = ("command_substitution", "process_substitution", "pipeline", "redirected_statement")
