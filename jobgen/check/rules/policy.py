"""Rules of a project or a site, from the tables [check] and [mandatory] of its files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from jobgen.check.rule import WARNING, rule
from jobgen.errors import shown
from jobgen.script.command_kinds import MODULE_COMMANDS
from jobgen.script.commands import Command
from jobgen.script.script import Hit, Script

REQUIRED = ("account", "name", "queue", "walltime")  # options that a policy may require


@rule(
    "missing-directive",
    WARNING,
    "A directive that the project or the site requires",
    """`require` in the table `[check]` of a job file or of a site file names what the directives of each
    script must request: `account`, `name`, `queue`, `walltime`, or the beginning of a directive such as
    `-l filesystems`. With `--site`, this holds for what the site makes mandatory, too.""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    hostname
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --account=project42
    hostname
    """,
    files={
        "jobgen.toml": """
        [check]
        require = ["account"]
        """
    },
)
def missing_directive(script: Script) -> Iterator[Hit]:
    if not script.is_batch:
        return
    for policy in script.policies:
        for name in policy.require:
            if name in REQUIRED:
                form = script.dialect.scheduler.request_forms[name].format(name.upper())
                missing = getattr(script.request, name) is None
            else:
                form = f"{name}..."
                pattern = re.escape(name).replace(r"-l\ ", r"-l\s*(\S*,)?")
                missing = not any(
                    re.search(rf"(^|\s){pattern}\b", line.rest) for line in script.directives.live
                )
            if missing:
                yield Hit(
                    script.directives.live[-1].number if script.directives.live else 1,
                    f"no {name} is requested: {policy.source} requires it",
                    f"add {script.dialect.scheduler.prefix} {form}",
                )


@rule(
    "forbidden-module",
    WARNING,
    "A module that the project or the site forbids",
    """`forbidden_modules` in the table `[check]` of a job file or of a site file names modules that no script
    may load, such as old versions of CUDA.""",
    fix="load another module",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eo pipefail
    module load gcc cuda/10.2
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eo pipefail
    module load gcc cuda/12.4
    srun python3 train.py
    """,
    files={
        "jobgen.toml": """
        [check]
        forbidden_modules = ["cuda/10.*", "anaconda"]
        """
    },
)
def forbidden_module(script: Script) -> Iterator[Hit]:
    patterns = [
        (pattern, policy.source) for policy in script.policies for pattern in policy.forbidden_modules
    ]
    for command in script.own_running("module", "ml", "job_module") if patterns else ():
        for name in _loaded(command):
            for pattern, source in patterns:
                if fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*"):
                    yield Hit.at(
                        command.node, f"{source} forbids the module {shown(name)}, by {shown(pattern)}"
                    )


_LOADS = ("load", "add", "try-load", "swap", "switch")


def _loaded(command: Command) -> list[str]:
    """Return the modules that a command loads, without those that it replaces."""
    words = [word for word in command.literals if not word.startswith("-")]
    if command.name == "job_module":  # of the runtime of jobgen
        return [one[-1] for one in map(str.split, words) if one and one[0] not in MODULE_COMMANDS]
    if words and words[0] in _LOADS:
        return words[2 if words[0].startswith("sw") and len(words) > 2 else 1 :]
    return words if command.name == "ml" and words and words[0] not in MODULE_COMMANDS else []
