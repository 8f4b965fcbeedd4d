"""Rules about values that qsub and sbatch refuse; their grammar is in schedulers/*_values.py."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.rule import ERROR, WARNING, rule
from jobgen.check.rules.directive_effects import trailing
from jobgen.check.rules.options import accepted_elsewhere, without_dash
from jobgen.check.rules.slurm import COUNTS
from jobgen.errors import shown
from jobgen.schedulers.directive_options import unclosed
from jobgen.schedulers.request import DirectiveOption
from jobgen.script.dialects.pbspro_values import FOREIGN, place_fault, select_faults
from jobgen.script.dialects.value_forms import empty_part
from jobgen.script.script import Hit, Script

# Other rules report these.
_ELSEWHERE = ("-j", "-m", "-N", "-J", "-t", "--time", "--array", "--mail-type", "--dependency", *COUNTS)
_EMPTY = ("-N", "-t", "--array", "--dependency")  # an empty text is accepted


@rule(
    "bad-value",
    ERROR,
    "A value that the scheduler refuses",
    """qsub and sbatch check the values of options, and refuse a script with an invalid one: `-p 2000`,
    `-a 20:00`, `-S bash`, `-W depend=afterok:` for PBS, `--begin=4pm`, `--signal=WINCH`, `--gres=gpu=4` for
    Slurm. An option without its value is refused, too, and a quote that is not closed. (A warning are resources
    that Torque does not know, which a site's own qsub may know, and values that PBS Pro accepts and Torque does not,
    or the reverse, if the script does not show for which of them it is.)""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -p 2000
    hostname
    """,
    good={"#PBS -p 2000": "#PBS -p 1000"},
)
def bad_value(script: Script) -> Iterator[Hit]:
    commented, dialect, missing = trailing(script), script.dialect, "add a value, or remove the option"
    for option in script.options:
        if option.missing and (option.flag in _EMPTY or option.flag not in _ELSEWHERE):
            reason = f"{option.given} has no value: {dialect.command} refuses the script"
            yield Hit.at(option, reason, missing)
        elif option.lacks_value and option.value_line:
            reason = f"{option.given} has no value in its line: {dialect.command} reads {shown(option.value)} of line "
            yield Hit.at(option, f"{reason}{option.value_line} as the value", missing)
    for line in script.directives.live:
        if unclosed(line.rest, dialect.scheduler):
            yield Hit(line.number, f"a quote is not closed: {dialect.command} refuses the script", "close it")
    for key, option in script.settings:
        elsewhere = option.missing or key in _ELSEWHERE or key[3:] in dialect.foreign_resources
        if dialect.scheduler.grammar.long_options and len(option.given) == 2:
            elsewhere |= option.value.startswith("=")
        found = "" if elsewhere else dialect.value_fault(key, option.value, script.version)
        if found and option.line not in commented:
            level = WARNING if _is_local(script, key, option.value) else None
            fix = without_dash(option, dialect) or _other_form(key, option)
            yield Hit.at(option, found, fix or "correct the value, or remove the option", level)
    given = script.heeded
    values = {key: one.value for key, one in given.items()}
    for one in dialect.conflicts(values, in_array=script.is_array_by_command):
        yield Hit(given[one.key].line, one.reason, one.fix)


def _other_form(key: str, option: DirectiveOption) -> str:
    """Return the fix for a value in the form of another option, or with blanks that are no separators; empty for others."""
    if any(sign.isspace() and not sign.isascii() for sign in option.value):
        return "replace the no-break spaces in the line by plain ones"
    count = re.fullmatch(r"gpu:((?:\w+:)?\d+)", option.value)  # as of --gres
    if count and option.flag.startswith("--gpus"):
        return f"write {option.flag}={count[1]}"
    if key == "--nodes" and re.fullmatch(r"[A-Za-z][\w.-]*", option.value):
        return f"write --job-name={option.value} if it is the name of the job"
    other = re.search(r":(?!ppn=|gpus=|mics=)(\w+)=([^:+]*)", option.value) if key == "-l nodes" else None
    if other is None:
        return ""
    name, value = other.groups()
    return f"write ppn={value}" if name == "ncpus" else f"write -l {name}={value} in a line of its own"


def _is_local(script: Script, key: str, value: str) -> bool:
    """Return whether a site's own qsub may know an option, or the other qsub with these directives accepts it."""
    unknown = script.dialect.may_be_local(key) and not script.named_scheduler
    return unknown or accepted_elsewhere(script, lambda row: not row.value_fault(key, value))


@rule(
    "qsub-only",
    ERROR,
    "An option or a list that qsub refuses in a script",
    """qsub refuses `-I` in a script: it is for interactive jobs. A list of `-l` has no empty items; Torque
    needs a value for each. `-o` and `-e` take HOST:PATH; a job with an unknown host is refused.""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00,
    hostname
    """,
    good={"#PBS -l walltime=01:00:00,": "#PBS -l walltime=01:00:00"},
    schedulers=("pbs",),
)
def qsub_only(script: Script) -> Iterator[Hit]:
    for option in script.options:
        if option.flag in ("-I", *script.dialect.interactive_options):
            reason = f"{option.flag} is for interactive jobs: qsub refuses a script with it"
            yield Hit.at(option, reason, "remove it")
        elif option.flag == "-l" and (found := script.dialect.list_fault(option.value)):
            fix = "remove the comma that is one too many" if empty_part(option.value) else ""
            yield Hit.at(option, found, fix or "write NAME=VALUE,NAME=VALUE")
        elif option.flag in ("-o", "-e") and script.dialect.looks_up_hosts:
            yield from _unknown_host(option)


def _unknown_host(option: DirectiveOption) -> Iterator[Hit]:
    """Yield a hit for a path that begins with a host, which may not exist; two colons are refused."""
    host = option.value.partition("/")[0]
    if host == "localhost:" and "/" in option.value:
        return  # an absolute path on the node of the job
    if ":" in host and not host.startswith(":"):
        name = shown(host.partition(":")[0])
        reason = f"PBS reads {name} as a host name, and refuses the job if no such host exists"
        yield Hit.at(option, reason, "write an absolute path", None if host.count(":") > 1 else WARNING)


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
    good={"#PBS -l select=1:ncpus=8:ngpu=1": "#PBS -l select=1:ncpus=8:ngpus=1"},
    schedulers=("pbspro",),
)
def bad_select(script: Script) -> Iterator[Hit]:
    options = script.heeded
    if select := options.get("-l select"):
        fix = "write select=2:ncpus=8:mpiprocs=4"
        for fault in select_faults(select.value):
            yield Hit.at(select, f"select is refused: {fault}", fix)
    if place := options.get("-l place"):
        if not select and "-l nodes" not in options:
            others = any(option.flag == "-l" for option in options.values() if option is not place)
            # Otherwise the command line may have the whole request.
            level = None if others or script.named_scheduler else WARNING
            fix = "remove it, or write the resources of its nodes as -l select=1:ncpus=8"
            unless = "" if level is None else ", unless the command line has one"
            yield Hit(place.line, f"place without a select is refused{unless}", fix, level=level)
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
    good={"#PBS -l naccesspolicy=singlejob": "#PBS -l place=excl"},
    schedulers=("pbspro",),
)
def unknown_resource(script: Script) -> Iterator[Hit]:
    for key, option in script.heeded.items():
        if option.flag == "-l" and key[3:] in FOREIGN:
            yield Hit.at(option, f"PBS Pro has no resource {key[3:]} and refuses the job", FOREIGN[key[3:]])
