"""The table of all rules: their names, their severities, and the functions that find them."""

import re
from collections.abc import Iterator
from importlib import import_module

from jobgen.check.rule import WARNING, Rule, rule
from jobgen.errors import nearest, shown
from jobgen.script.script import Hit, Script

# Comments like those that other programs have.
_OTHER_FORM = re.compile(r"#\s*jobgen\s*:?\s*(disable|ignore|silence|noqa|skip)\b", re.I)


@rule(
    "unknown-rule",
    WARNING,
    "A comment that disables no rule",
    """A comment that disables a rule must name it as `jobgen check --list` does; a misspelt name, and another form
    than `# jobgen: disable=RULE`, have no effect.""",
    fix="use a name of jobgen check --list",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=1
    #SBATCH --time=01:00:00
    # jobgen: disable=personal-paths
    srun /opt/site/solver
    """,
    good={
        "# jobgen: disable=personal-paths": "# jobgen: disable=personal-path",
        "srun /opt/site/solver": "srun /home/alice/solver",
    },
)
def unknown_rule(script: Script) -> Iterator[Hit]:
    for number, names in script.disabling:
        for name in names - RULES.keys():
            yield Hit(number, f"there is no rule {shown(name)}{nearest(name, RULES)}")
    right = {number for number, names in script.disabling if names}
    for number, line in enumerate(script.lines, 1):
        if number not in right and (found := _OTHER_FORM.search(line)):
            yield Hit(number, f"{shown(found[0])} disables no rule", "write # jobgen: disable=RULE,RULE")


# In the order of `jobgen check --list`; in a module, the order is that of the functions.
_MODULES = """
directive_effects placeholders options walltime outputs qsub chunks pbs slurm signals srun steps
node_list hostfile totals launcher_options counts rendezvous addresses node_ranks deepspeed forwarding
network downloads conda environment syntax_errors shell_and_paths bash_pitfalls files deletion
node_files credentials gpus containers devices rank_environment rank_numbers failures directories
variables processes traps deepspeed_config policy
"""
_FOUND = (vars(import_module(f"jobgen.check.rules.{name}")).values() for name in _MODULES.split())
RULES: dict[str, Rule] = {one.id: one for found in _FOUND for one in found if isinstance(one, Rule)}
RULES[unknown_rule.id] = unknown_rule
