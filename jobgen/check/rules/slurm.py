"""Rules about the directives of Slurm."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.check.rules.options import without_dash
from jobgen.errors import counted, shown
from jobgen.schedulers.request import GPUS_OF_NODE
from jobgen.script.script import Hit, Script


@rule(
    "gres-total",
    WARNING,
    "The GPUs of all nodes requested on each",
    """`--gres` and `--gpus-per-node` count per node. 16 GPUs on two nodes are `--gres=gpu:8`; `gpu:16`
    requests 32, and the job waits forever if no node has 16. `--gpus-per-task` counts for each task.""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --gres=gpu:16
    #SBATCH --time=01:00:00
    hostname
    """,
    good={"#SBATCH --gres=gpu:16": "#SBATCH --gres=gpu:8"},
    schedulers=("slurm",),
)
def gres_total(script: Script) -> Iterator[Hit]:
    request = script.request
    of_task, tasks = script.heeded.get("--gpus-per-task"), request.ranks_per_node
    if of_task and tasks and tasks > 1 and (request.gpus_per_node or 0) > GPUS_OF_NODE:
        of_one = (request.gpus_per_node or 0) // tasks
        reason = f"{of_task.flag} counts for each of the {tasks} tasks of a node: this requests {tasks * of_one} GPUs of one node"
        yield Hit.at(of_task, reason, f"for {of_one} in total, write --gpus-per-node={of_one}")
    if not request.several or not request.nodes:
        return
    count = request.gpus_per_node or 0
    each = [launch.number("--nproc-per-node", "--num-gpus") for launch in script.launches]
    proof = any(one and one * request.nodes == count for one in each)
    for option in script.options_of("--gres", "--gpus-per-node") if count else ():
        if proof or (count > 8 and count % request.nodes == 0 and request.accelerator == "gpu"):
            total = request.nodes * count
            reason = f"{option.flag} counts per node: this requests {request.nodes} x {count} = {total}"
            yield Hit.at(option, reason, f"for {count} in total, write {count // request.nodes}")


@rule(
    "uneven-tasks",
    WARNING,
    "Tasks without --ntasks-per-node",
    """`--nodes=2 --ntasks=4` may put three tasks on one node and one on the other (measured on Slurm
    22.05). Ranks that each use a GPU then find too few on one node. Use `--ntasks-per-node`. (Without GPUs
    this is only a note, and without a launcher, or with equal numbers on whole nodes (measured with `--exclusive`), it is silent.)""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks=4
    #SBATCH --gres=gpu:2
    #SBATCH --time=01:00:00
    srun python3 train.py
    """,
    good={"#SBATCH --ntasks=4": "#SBATCH --ntasks-per-node=2"},
    schedulers=("slurm",),
)
def uneven_tasks(script: Script) -> Iterator[Hit]:
    request = script.request
    totals = list(script.options_of("--ntasks"))
    if not totals or not request.ranks or not request.nodes or not 1 < request.nodes < request.ranks:
        return
    placed = any(
        script.options_of("--ntasks-per-node", "--distribution", "--ntasks-per-gpu", "--gpus-per-task")
    )
    placed |= any(launch.has("--ntasks-per-node") for launch in script.launches)
    starts = any(launch.row.line.reaches_nodes for launch in script.launches)
    whole = request.exclusive or script.site_of_whole_nodes
    if starts and not placed and (request.ranks % request.nodes or (request.gpus_per_node and not whole)):
        reason = f"{request.ranks} tasks on {request.nodes} nodes may be distributed unevenly"
        fix = f"add --ntasks-per-node={-(-request.ranks // request.nodes)}"
        yield Hit(totals[-1].line, reason, fix, None if request.gpus_per_node else NOTE)


@rule(
    "task-total",
    WARNING,
    "Fewer tasks than the nodes are to have",
    """With `--ntasks` beside it, `--ntasks-per-node` is only the most that a node gets: `--nodes=4 --ntasks=4
    --ntasks-per-node=4` is a job of 4 tasks, not of 16. `srun` starts one on each node, and Slurm 24.11 allocates the
    cores of 4 tasks. (It is a note if no `srun` starts tasks by this number.)""",
    fix="leave --ntasks out",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=4
    #SBATCH --ntasks=4
    #SBATCH --ntasks-per-node=4
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py
    """,
    good={"#SBATCH --ntasks=4": ""},
    schedulers=("slurm",),
)
def task_total(script: Script) -> Iterator[Hit]:
    request, total = script.request, script.heeded.get("--ntasks")
    nodes, each, tasks = request.nodes, request.ranks_per_node, request.ranks
    if total is None or "--nodes" not in script.heeded or "-" in script.heeded["--nodes"].value:
        return
    if "--ntasks-per-node" in script.heeded and nodes and each and tasks and tasks < nodes * each:
        steps = [one for one in script.launched("srun") if not one.has(*_SIZES)]
        if any(one.number("-n", "-np", "--np", "--ntasks") == tasks for one in script.launches):
            return
        if not steps and nodes == 1 and (tasks == 1 or not request.gpus_per_node):
            return  # the most that a node gets, or the first job of a series with more tasks
        limit = f"beside --ntasks, --ntasks-per-node={each} is only the most that a node gets"
        reason = f"the job has {counted(tasks, 'task')}, not {nodes} x {each}: {limit}"
        yield Hit.at(total, reason, level=None if steps else NOTE)


_SIZES = ("-n", "--ntasks", "--ntasks-per-node", "-N", "--nodes")


@rule(
    "refused-requeue",
    ERROR,
    "scontrol requeue of a job that may not start again",
    """`--no-requeue` is for the command, too: `scontrol requeue` fails with "Requested operation is presently disabled"
    (measured on Slurm 22.05 and 24.11).""",
    fix="write --requeue",
    bad="""
    #!/bin/bash
    #SBATCH --time=24:00:00
    #SBATCH --no-requeue
    set -euo pipefail
    srun python3 train.py
    if [ ! -e finished ]; then
      scontrol requeue "$SLURM_JOB_ID"
    fi
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=24:00:00
    #SBATCH --requeue
    #SBATCH --open-mode=append
    set -euo pipefail
    srun python3 train.py
    if [ ! -e finished ]; then
      scontrol requeue "$SLURM_JOB_ID"
    fi
    """,
    schedulers=("slurm",),
)
def refused_requeue(script: Script) -> Iterator[Hit]:
    option = script.heeded.get("--no-requeue")
    call = _REQUEUE.search(re.sub(r"(?m)^\s*#.*", "", script.tree.text))
    if option is not None and "--requeue" not in script.heeded and call:
        reason = "scontrol requeue, which the script calls, is refused for a job with --no-requeue"
        yield Hit.at(option, reason)


_REQUEUE = re.compile(r"\bscontrol\s+requeue\s+[\"']?\$\{?SLURM_(ARRAY_)?JOB_?ID")


@rule(
    "bad-dependency",
    ERROR,
    "A dependency that Slurm refuses",
    """sbatch refuses a dependency without a job id, and an unknown type of dependency.""",
    fix="write afterok:JOBID",
    bad="""
    #!/bin/bash
    #SBATCH --dependency=afterok
    #SBATCH --time=01:00:00
    hostname
    """,
    good={"#SBATCH --dependency=afterok": "#SBATCH --dependency=afterok:1234"},
)
def empty_dependency(script: Script) -> Iterator[Hit]:
    for option in script.options_of("--dependency"):
        if script.dialect.value_fault(option.flag, option.value):
            yield Hit.at(option, f"sbatch refuses the dependency {option.value}")


COUNTS = ("--ntasks", "--ntasks-per-node", "--cpus-per-task")
_OTHERS = ("--time", "--array")  # whose values other rules test, too


@rule_once(
    "submission-text",
    ERROR,
    "The whole message of sbatch as the id of a job",
    """sbatch prints "Submitted batch job 1234". With `--parsable` it prints the number alone, which `--dependency` needs: a
    dependency with the whole text, or another field of it than the fourth, is refused.""",
    fix="write sbatch --parsable",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    evaluation=$(sbatch --dependency=afterok:"$SLURM_JOB_ID" evaluate.sh)
    sbatch --dependency=afterok:"$evaluation" report.sh
    srun ./solver
    """,
    good={
        'evaluation=$(sbatch --dependency=afterok:"$SLURM_JOB_ID" evaluate.sh)': 'evaluation=$(sbatch --parsable --dependency=afterok:"$SLURM_JOB_ID" evaluate.sh)'
    },
)
def submission_text(script: Script) -> Iterator[Hit]:
    for command in script.own_running("sbatch"):
        for word in command.words:
            names = re.findall(r"(?:after\w*|--dependency).*?[:=]\"?\$(?:(\w+)|\{(\w+)\})", word.text)
            for name in filter(None, (one for pair in names for one in pair)):
                values = script.values.get(name, []) if name not in script.changed else []
                text = values[0].text if len(values) == 1 else ""
                field = re.fullmatch(_FIELD_OF_TEXT, text)
                number = int(next(filter(None, field.groups()))) if field else _NUMBER
                if re.fullmatch(_WHOLE_TEXT, text):
                    reason = f"${name} is the whole message of sbatch, such as Submitted batch job 1234, and not the number"
                    yield Hit.at(word, reason)
                elif number != _NUMBER:
                    part = (*_MESSAGE, "")[min(number, _NUMBER) - 1]
                    part = f"the word {part!r}" if part else "empty"
                    reason = (
                        f"field {number} of Submitted batch job 1234 is {part}: ${name} is not the number"
                    )
                    yield Hit.at(word, reason, f"write field {_NUMBER}, or sbatch --parsable")


# A call whose output is used as it is. A name of a function may be in its place.
_CALL = r"[\"']?(?:\$\(|`)\s*sbatch\s(?!.*--parsable)[^|;&]*"
_WHOLE_TEXT = rf"{_CALL}(?:\)|`)[\"']?"
_MESSAGE = ("Submitted", "batch", "job")  # and the number behind them
_NUMBER = len(_MESSAGE) + 1
# A pipe that cuts one field from the message.
_DELIMITER = r"(?:-d *(?:\\ |\" \"|' ')|--delimiter=(?:\\ |\" \"|' '))"
_FIELD_OF_TEXT = (
    rf"{_CALL}(?:2>&1\s*)?\|\s*(?:cut\s+{_DELIMITER}\s+-f\s*(\d)|cut\s+-f\s*(\d)\s+{_DELIMITER}"
    r"|awk\s+'\{\s*print\s*\(?\$(\d)\)?;?\s*\}')\s*(?:\)|`)[\"']?"
)


@rule(
    "bad-count",
    ERROR,
    "A number that Slurm refuses",
    """After a short option `=` is a part of the value: `-N=2` requests "=2" nodes. sbatch refuses it, as it
    refuses a count of 0 or a word; a name may begin with `=`, which is only a note. A directive
    that ends with `=`, which a program may fill in, is a warning.""",
    bad="""
    #!/bin/bash
    #SBATCH -N=2
    #SBATCH --time=01:00:00
    hostname
    """,
    good={"#SBATCH -N=2": "#SBATCH -N 2"},
    schedulers=("slurm",),
)
def bad_count(script: Script) -> Iterator[Hit]:
    for option in script.options:
        if len(option.given) == 2 and option.value.startswith("="):
            refused = option.flag in _OTHERS or script.dialect.value_fault(option.flag, option.value)
            why = f"{option.given}{option.value}: the value is '{option.value}', with the equals sign"
            fix = f"write {option.given} {option.value[1:]}"
            yield Hit.at(option, why, fix, None if refused else NOTE)
        elif option.flag in COUNTS and script.dialect.value_fault(option.flag, option.value):
            reason = (
                f"{option.given} takes a number, not {shown(option.value) if option.value else 'nothing'}"
            )
            fix = f"write {option.flag}=N{'' if option.value else ', unless a program fills it in'}"
            empty = not option.value and script.lines[option.line - 1].rstrip().endswith("=")
            level = WARNING if empty else None
            yield Hit.at(option, reason, without_dash(option, script.dialect) or fix, level)
