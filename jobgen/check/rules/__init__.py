"""The table of all rules: their names, their severities, and the functions that find them."""

from jobgen.check.rule import WARNING, Rule
from jobgen.check.rules import (
    config,
    deepspeed,
    directives,
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
    values,
)

# checking.py itself reports this one.
UNKNOWN_RULE = Rule("unknown-rule", WARNING, "A comment that silences no rule", lambda script: iter(()))

_MODULES = (directives, values, qsub, pbs, slurm, hosts, hostfile, launch, deepspeed, network, environment)
RULES: dict[str, Rule] = {
    rule.id: rule
    for rules in (*(module.RULES for module in (*_MODULES, shell, processes, config)), (UNKNOWN_RULE,))
    for rule in rules
}
