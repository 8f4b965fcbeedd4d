"""The table of all rules: their names, their severities, and the functions that find them."""

from collections.abc import Iterator

from jobgen.check.rule import WARNING, Rule, rule
from jobgen.check.rules import (
    chunks,
    deepspeed,
    deepspeed_config,
    directive_effects,
    environment,
    forwarding,
    gpus,
    hostfile,
    hosts,
    launch,
    network,
    options,
    outputs,
    pbs,
    precision,
    processes,
    qsub,
    rendezvous,
    runners,
    shell,
    slurm,
    srun,
    traps,
    variables,
    walltime,
)
from jobgen.check.script import Hit, Script
from jobgen.errors import nearest, shown


@rule(
    "unknown-rule",
    WARNING,
    "A comment that silences no rule",
    """A comment that disables a rule must name it as `jobgen check --list` does; a misspelt name has no
    effect.""",
    fix="jobgen check --list names them all",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=1
    #SBATCH --time=01:00:00
    # jobgen: disable=personal-paths
    srun /opt/site/solver
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=1
    #SBATCH --time=01:00:00
    # jobgen: disable=personal-path
    srun /home/alice/solver
    """,
)
def unknown_rule(script: Script) -> Iterator[Hit]:
    for number, names in script.disabling:
        for name in names - RULES.keys():
            yield Hit(number, f"there is no rule {shown(name)}{nearest(name, RULES)}")


# In the order of `jobgen check --list`; in a module, the order is that of the functions.
_MODULES = (
    *(directive_effects, options, walltime, outputs, qsub, chunks, pbs, slurm, srun),
    *(hosts, hostfile, launch, rendezvous, deepspeed, runners, forwarding, network, environment, gpus),
    *(shell, variables, processes, traps, deepspeed_config, precision),
)
RULES: dict[str, Rule] = {
    found.id: found for module in _MODULES for found in vars(module).values() if isinstance(found, Rule)
} | {unknown_rule.id: unknown_rule}
