"""Rules of a project or a site, from the tables [check] and [mandatory] of its files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from jobgen.check.rule import WARNING, rule
from jobgen.errors import shown
from jobgen.rendering.runtime import MADE_BY
from jobgen.schedulers.directive_options import read_options
from jobgen.script.command_kinds import MODULE_COMMANDS
from jobgen.script.commands import Command, commands
from jobgen.script.request import settings
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node

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
    scheduler = script.dialect.scheduler
    ours = any(re.match(MADE_BY, line) for line in script.lines[:5])
    for policy in script.policies:
        for name in policy.require:
            if name in REQUIRED:
                form, key = scheduler.request_forms[name].format(name.upper()), f'{name} = "{name.upper()}"'
                missing = getattr(script.request, name) is None
            else:
                form, key = f"{name}...", f'directive = ["{name}..."]'
                missing = not _begins(script, name)
            if missing:
                reason = f"no {name} is requested: {policy.source} requires it"
                fix = f"write {key} in [job]" if ours else f"add {scheduler.prefix} {form}"
                yield Hit(script.directives.live[-1].number if script.directives.live else 1, reason, fix)


def _begins(script: Script, begin: str) -> bool:
    """Return whether a directive begins with a text, or has the option that it is, by any of its names."""
    pattern = re.escape(begin).replace(r"-l\ ", r"-l\s*(\S*,)?")
    if any(re.search(rf"(^|\s){pattern}\b", line.rest) for line in script.directives.live):
        return True
    scheduler = script.dialect.scheduler
    options = read_options(begin, scheduler, 0)
    keys = {key for key, _ in settings(options, scheduler)}
    return len(options) == 1 and not options[0].value and bool(keys & script.heeded.keys())


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
    good={"module load gcc cuda/10.2": "module load gcc cuda/12.4"},
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
    texts = [one.text for one in script.started if one.text is not None]
    every = [*script.runs, *(one for text in texts for one in commands(text))]
    for command in every if patterns else ():
        for name in _loaded(script, command) if command.name in _COMMANDS else ():
            for pattern, source in patterns:
                if fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*"):
                    reason = f"{source} forbids the module {shown(name)}, by {shown(pattern)}"
                    yield Hit.at(command.node, reason)


_COMMANDS = ("module", "ml", "job_module")
_LOADS = ("load", "add", "try-load", "swap", "switch")


def _loaded(script: Script, command: Command) -> list[str]:
    """Return the modules that a command loads, without those that it replaces."""
    texts = [text for word in command.arguments for text in _texts(script, word)]
    words = [text for text in texts if not text.startswith("-")]
    if command.name == "job_module":  # of the runtime of jobgen
        return [one[-1] for one in map(str.split, words) if one and one[0] not in MODULE_COMMANDS]
    if words and words[0] in _LOADS:
        return words[2 if words[0].startswith("sw") and len(words) > 2 else 1 :]
    return words if command.name == "ml" and words and words[0] not in MODULE_COMMANDS else []


def _texts(script: Script, word: Node) -> list[str]:
    """Return the text of a word, or the words of the loop whose variable it is."""
    name = word.unquoted.strip("${}")
    loops = (one for one in script.tree.all("for_statement") if word in one) if "$" in word.text else ()
    for loop in loops:
        variable = loop.get("variable")
        if variable is not None and variable.text == name:
            return [one.unquoted for one in loop.children if one.type in ("word", "string", "raw_string")]
    return [word.unquoted]
