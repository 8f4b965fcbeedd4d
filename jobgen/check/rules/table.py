"""The table of all rules: their names, their severities, and the functions that find them."""

from jobgen.check.rule import WARNING, Rule
from jobgen.check.rules import (
    deepspeed,
    deepspeed_config,
    directive_effects,
    directive_values,
    environment,
    hostfile,
    hosts,
    launch,
    network,
    pbs,
    processes,
    qsub,
    shell,
    slurm,
)

# checker.py itself reports this one.
UNKNOWN_RULE = Rule("unknown-rule", WARNING, "A comment that silences no rule", lambda script: iter(()))

_MODULES = (
    directive_effects,
    directive_values,
    qsub,
    pbs,
    slurm,
    hosts,
    hostfile,
    launch,
    deepspeed,
    network,
    environment,
)
RULES: dict[str, Rule] = {
    rule.id: rule
    for rules in (
        *(module.RULES for module in (*_MODULES, shell, processes, deepspeed_config)),
        (UNKNOWN_RULE,),
    )
    for rule in rules
}
