"""Rules about values that PBS Pro's qsub refuses; their grammar is in schedulers/pbspro_values.py."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.rule import ERROR, WARNING, rule
from jobgen.check.rules.directive_effects import trailing
from jobgen.check.script import Hit, Script
from jobgen.errors import shown
from jobgen.schedulers.pbspro_values import FOREIGN, place_fault, select_faults, value_fault

_ELSEWHERE = ("-j", "-m", "-N", "-J")  # other rules report these


@rule(
    "bad-value",
    ERROR,
    "A value that qsub refuses",
    """PBS Pro's qsub checks the values of `-a -c -k -o -p -r -R -S` and of `-W`, and refuses a script with
    an invalid one: `-p 2000`, `-a 20:00`, `-S bash`, `-W depend=afterok:`. An option without its value is
    refused, too.""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -p 2000
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -p 1000
    hostname
    """,
    schedulers=("pbspro",),
)
def bad_value(script: Script) -> Iterator[Hit]:
    commented = trailing(script)
    for option in script.options:
        takes = len(option.flag) == 2 and f"{option.flag[1]}:" in script.dialect.letters
        if takes and not option.value and option.flag not in _ELSEWHERE:
            yield Hit(
                option.line,
                f"{option.flag} has no value: qsub refuses the script",
                "add a value, or remove the option",
            )
        elif option.flag == "-I":
            yield Hit(option.line, "-I is for interactive jobs: qsub refuses a script with it", "remove it")
        elif option.flag in ("-o", "-e") and ":" in (host := option.value.partition("/")[0]):
            level = None if host.count(":") > 1 else WARNING
            reason = f"PBS reads {shown(host.partition(':')[0])} as a host name, and refuses the job if no such host exists"
            yield Hit(option.line, reason, "write an absolute path", level)
    for key, option in script.settings:
        if option.line in commented or not (option.value or key.startswith("-W ")):
            continue
        if fault := value_fault(key, option.value):
            yield Hit(option.line, fault, "correct the value, or remove the option")
        elif key == "-W x" or (key.startswith("-W ") and not option.value):
            reason = f"{key} is refused: " + (
                "it is an option of Moab" if key == "-W x" else "-W takes NAME=VALUE"
            )
            yield Hit(option.line, reason, "remove it")


@rule(
    "bad-select",
    ERROR,
    "A select or place that qsub refuses",
    """A chunk is a number and `NAME=VALUE` between colons, such as `2:ncpus=8:mpiprocs=4`; `place` has at
    most one word of `free pack scatter vscatter`, one of `excl shared exclhost`, and `group=NAME`, and
    needs a `select`. qsub refuses all others.""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8:ngpu=1
    #PBS -l walltime=01:00:00
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8:ngpus=1
    #PBS -l walltime=01:00:00
    hostname
    """,
    schedulers=("pbspro",),
)
def bad_select(script: Script) -> Iterator[Hit]:
    said = script.heeded
    if select := said.get("-l select"):
        fix = "write select=2:ncpus=8:mpiprocs=4"
        yield from (
            Hit(select.line, f"select is refused: {fault}", fix) for fault in select_faults(select.value)
        )
    if place := said.get("-l place"):
        if not select and "-l nodes" not in said:
            yield Hit(place.line, "place without a select is refused", "add -l select=1:ncpus=8")
        if fault := place_fault(place.value):
            yield Hit(place.line, f"place is refused: {fault}", "write place=scatter:excl")


@rule(
    "unknown-resource",
    ERROR,
    "A resource of another scheduler",
    """`-l gpus`, `procs`, `qos`, `advres`, `naccesspolicy` and `feature` are resources of Torque and Moab.
    PBS Pro's qsub refuses unknown resources.""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8:ngpus=1
    #PBS -l walltime=01:00:00
    #PBS -l naccesspolicy=singlejob
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8:ngpus=1
    #PBS -l walltime=01:00:00
    #PBS -l place=excl
    hostname
    """,
    schedulers=("pbspro",),
)
def unknown_resource(script: Script) -> Iterator[Hit]:
    for key, option in script.heeded.items():
        if option.flag == "-l" and key[3:] in FOREIGN:
            yield Hit(option.line, f"PBS Pro has no resource {key[3:]} and refuses the job", FOREIGN[key[3:]])
