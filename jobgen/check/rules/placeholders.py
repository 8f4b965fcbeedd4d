"""Rules about directives whose values are not there yet, or that name a variable."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.rule import NOTE, WARNING, rule
from jobgen.errors import shown
from jobgen.schedulers.request import DirectiveOption
from jobgen.script.other_text import has_variable, is_for_person, names_template, value_variables
from jobgen.script.script import Hit, Script

EXPANDS_NOTHING = "expands no variables in directives"
BY_COMMAND_LINE = (
    "write the value, or give the option on the command line instead, where the shell expands it"
)
# Options whose literal value is accepted; other rules report those that are refused. The job runs in the same way
# with another label.
_LABELS = ("--job-name", "--comment", "--mail-user", "--wckey", "-M")
_TEXTS = (*_LABELS, "--account", "--qos", "--chdir", "-A", "-P")


@rule(
    "placeholder",
    NOTE,
    "A directive with a placeholder",
    """`<account>`, `XXX`, `CHANGEME` and empty values are for a person: qsub and sbatch refuse them or take them as they
    are. Other rules do not report these values. (`{{ nodes }}`, `{nodes}`, `%s`, `@NODES@`, `$$nodes` and the like are for
    a program that fills in the template: check the script that it writes. Nothing is reported on a script that a file beside
    it completes.)""",
    fix="fill them in before you submit, unless a program does",
    bad="""
    #!/bin/bash
    #SBATCH --account=<your account>
    #SBATCH --nodes=2
    #SBATCH --time=XX:00:00
    srun /opt/site/solver
    """,
    good={
        "#SBATCH --account=<your account>": "#SBATCH --account=project1",
        "#SBATCH --time=XX:00:00": "#SBATCH --time=04:00:00",
    },
)
def placeholder(script: Script) -> Iterator[Hit]:
    lines = [line for line in script.directives.live if line.number in script.placeholders]
    first = next((line for line in lines if is_for_person(line.text)), None)
    of_next_rule = {one.line for one in script.options if value_variables(one.value)}
    fields = [line for line in lines if line.number not in of_next_rule]
    if script.callers.completed:
        return
    if first is not None and not names_template(script.name):
        yield Hit(first.number, f"placeholders in directives, such as {shown(first.rest)}")
    elif fields:
        what = f"placeholders of a template, such as {shown(fields[0].rest)}: no rule checks these values"
        yield Hit(fields[0].number, what, fix="check the script that is made of the template")


@rule(
    "literal-variable",
    WARNING,
    "A variable in a directive",
    """No shell reads directives: sbatch and qsub do not expand `$NAME` in them. A job with `--account=$PROJECT`
    is charged to `$PROJECT`, and refused. (It is a note if the job runs in the same way, as with a name, a comment or an
    address of mail. Values that are refused for it, such as `--time=$T`, are errors of the rules for these values; output-variable
    is about paths of logs. Several that the script never sets may be for a program that fills them in: one note.)""",
    fix=BY_COMMAND_LINE,
    bad="""
    #!/bin/bash
    #SBATCH --account=$PROJECT
    #SBATCH --time=01:00:00
    srun /opt/site/solver
    """,
    good={"#SBATCH --account=$PROJECT": "#SBATCH --account=project1"},
)
def literal_variable(script: Script) -> Iterator[Hit]:
    unset = [one for one in script.options if one.line in script.placeholders and value_variables(one.value)]
    for option in unset[:1] if not script.is_template else ():
        yield Hit.at(option, f"{_literally(script, option)}, unless a program fills it in", level=NOTE)
    for option in script.options:
        if option.flag in _TEXTS and option.line in script.unexpanded and has_variable(option.value):
            yield Hit.at(option, _literally(script, option), level=NOTE if option.flag in _LABELS else None)


def _literally(script: Script, option: DirectiveOption) -> str:
    return f"{script.dialect.command} {EXPANDS_NOTHING}: {option.flag} is {shown(option.value)} literally"
