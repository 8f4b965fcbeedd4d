"""Rules about files and directories that the jobs of a user share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from jobgen.check.ranks.model import ranks
from jobgen.check.rule import NOTE, WARNING, rule, rule_once
from jobgen.errors import shown
from jobgen.schedulers.directive_options import read_options
from jobgen.schedulers.request import DirectiveOption
from jobgen.script.commands import Command
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, expansions, on_condition
from jobgen.script.written_files import is_shared, may_have_reader, target, written


@rule_once(
    "shared-log",
    NOTE,
    "One output file for all jobs",
    """Without the id of the job in its name, all jobs of a script write to the same file. Slurm empties it
    when a job starts, unless `--open-mode=append` is given: the output of the job before is lost, and two
    jobs at once write into each other's. PBS overwrites the file when a job ends. (Arrays, and names with the index
    of a task, are the matter of `array-output`. A name such as `RUN_NAME.out` is for a program that fills it in.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --output=train.log
    hostname
    """,
    good={"#SBATCH --output=train.log": "#SBATCH --output=train-%j.log"},
)
def shared_log(script: Script) -> Iterator[Hit]:
    if script.request.array or any(option.flag == "--open-mode" for option in script.options):
        return
    for option in script.heeded.values():
        if option.flag in script.dialect.output_options and _is_one_file(script, option.value):
            if _is_given(script, option):
                return
            reason = f"all jobs of this script write to {shown(option.value)}: a later one overwrites it"
            by_code = script.dialect.percent_codes
            fix = "write %j into the name" if by_code else "remove it: PBS names the file NAME.oJOBID"
            yield Hit.at(option, reason, fix)


@rule(
    "requeue-log",
    NOTE,
    "A log that a second start empties",
    """When Slurm starts a job again, after `scontrol requeue` or the failure of a node, it empties the files of
    `--output` and `--error`, which have the same names: why the first start ended is lost. `--open-mode=append`
    keeps it.""",
    message="when the job starts again, Slurm empties its log: the output of the first start is lost",
    fix="add #SBATCH --open-mode=append",
    bad="""
    #!/bin/bash
    #SBATCH --requeue
    #SBATCH --time=01:00:00
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --requeue
    #SBATCH --open-mode=append
    #SBATCH --time=01:00:00
    srun python3 train.py
    """,
    schedulers=("slurm",),
)
def requeue_log(script: Script) -> Iterator[Hit]:
    flags = {option.flag: option for option in script.options}
    outputs = [flags[flag].value for flag in ("--output", "--error") if flag in flags]
    if "--open-mode" in flags or any(value == "/dev/null" for value in outputs):
        return
    if (option := flags.get("--requeue")) is not None:
        yield Hit.at(option)


@rule_once(
    "requeue-folder",
    WARNING,
    "A folder that a second start does not find",
    """A job with `--requeue`, or `-r y` of PBS, starts its script again from the first line. The time, `$RANDOM`, `$$` and `mktemp`
    then make another name: the script looks for its checkpoint in a new folder, and the training starts from the beginning. The
    number of the job is the same in each start.""",
    bad="""
    #!/bin/bash
    #SBATCH --requeue
    #SBATCH --open-mode=append
    #SBATCH --time=01:00:00
    set -euo pipefail
    out=runs/$(date +%Y%m%d-%H%M%S)
    resume=()
    if [ -e "$out/last.pt" ]; then resume=(--resume "$out/last.pt"); fi
    srun python3 train.py --out "$out" "${resume[@]}"
    """,
    good={"out=runs/$(date +%Y%m%d-%H%M%S)": "out=runs/$SLURM_JOB_ID"},
)
def requeue_folder(script: Script) -> Iterator[Hit]:
    rerun = script.heeded.get("-r")
    again = "--requeue" in script.heeded or (rerun is not None and rerun.value == "y")
    again |= re.search(r"\bscontrol\s+requeue\s", script.tree.text) is not None
    if not script.is_batch or not again or "RESTART_COUNT" in script.tree.text:
        return
    starts = sorted(one.start for one in ranks(script))
    for name, value, node in script.assignments:
        varies = _AT_START.search(" ".join([value.text, *(one.text for one in script.values_in([value]))]))
        if not varies or len(script.values.get(name, ())) != 1 or on_condition(node):
            continue
        end = next((start for start in starts if start > node.end), node.end)
        line = _looks_into(script, name, node.end, end)
        if line:
            number = script.dialect.variable("job_id") or "the number of the job"
            reason = f"a second start of the job has another {name}: line {line} does not find the checkpoint of the first"
            yield Hit.at(node, reason, f"write ${number} into the name, and not {varies[0].strip('$(`')}")


# What differs at each start; a date alone may be the same one.
_AT_START = re.compile(r"(?:\$\(|`)\s*(?:date\b(?=[^)`]*(?:%[HMSsTNRXc]|[)`]$))|mktemp)|\$\{?RANDOM\b|\$\$")
_CHECKPOINT = re.compile(r"(?i)ckpt|checkpoint|last|latest|resume|restart|snapshot|state|\.pth?\b|\.pkl\b")
_FILLS = ("cp", "rsync", "ln", "mv", "tar")


def _looks_into(script: Script, name: str, first: int, end: int) -> int | None:
    """Return the line of the first test for a checkpoint below a folder, or of the option that gives it to the program,
    before or at the first program; None if a command fills the folder."""
    own = rf"\$(?:{name}\b|\{{{name}\}})"
    found = None
    for command in script.commands:
        if not first < command.node.start <= end:
            continue
        text = command.node.text
        if command.name in _FILLS and re.search(own, text):
            return None
        if re.search(rf"--?\w*resume[\w-]*[= ]+[\"']?{own}", text):
            found = found or command.line
    for test in script.tree.all("test_command"):
        below = re.search(rf"-[efs]\s+[\"']?{own}[\"']?/(\S+)", test.text)
        if first < test.start < end and below and _CHECKPOINT.search(below[1]):
            found = found or test.line
    return found


# A date with a time, as a program writes it into the name of a log: 2024-05-01T12:30, 20240501_123000.
_MOMENT = re.compile(r"20\d\d[-_.]?[01]\d[-_.]?[0-3]\d[-_.T]?[0-2]\d[-_.:]?[0-5]\d")
# A word in capitals in the place of which a program writes the name of a job: RUN_NAME.out, NAME2.log, log_VAR_T.
_FIELD = re.compile(r"(?<![A-Za-z])(?:[A-Z]+_)?NAME\d?(?![A-Za-z])|(?<![A-Za-z])VAR_|^OUTPUT_PATH$")


def _is_given(script: Script, option: DirectiveOption) -> bool:
    """Return whether a command that submits the script has the option, too: in a file beside it or in a comment."""
    comments = (re.search(r"^\s*#.*?\b(?:sbatch|qsub)\s+(-.*)", line) for line in script.lines)
    scheduler = script.dialect.scheduler
    given = [one for found in comments if found for one in read_options(found[1], scheduler)]
    return option.flag in {one.flag for one in (*given, *script.given)}


def _is_one_file(script: Script, value: str) -> bool:
    """Return whether a path is that of a file, the same for all jobs."""
    if re.search(r"[$^{<]|^/dev/", value) or _MOMENT.search(value) or _FIELD.search(value):
        return False
    if script.dialect.percent_codes:
        return bool(value) and not re.search(r"%\d*[jJAa]|\\", value)
    return re.search(r"\w\.[A-Za-z]\w*$", value) is not None  # without an extension it may be a directory


_MOST = 100  # files and directories that are compared with the rest of the script
_CONFIG = r".*\w\.(json|ya?ml|toml|ini|cfg|conf)"


@rule(
    "shared-config",
    WARNING,
    "A configuration that all jobs write to one path",
    """The values of a job are written into a file with the same name in all jobs. The next job that starts
    overwrites it, and a job that reads it later, at a restart for example, gets the values of the other one.""",
    fix="put the job's id into the name",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    batch=$((16 * SLURM_NNODES))
    cat > ds.json <<END
    {"train_batch_size": $batch}
    END
    srun python3 train.py --config ds.json
    """,
    good={
        "cat > ds.json <<END": 'cat > "settings.$SLURM_JOB_ID" <<END',
        "srun python3 train.py --config ds.json": 'srun python3 train.py --config "settings.$SLURM_JOB_ID"',
    },
)
def shared_config(script: Script) -> Iterator[Hit]:
    if not script.is_batch:
        return
    seen = set()
    for node, sign, text in islice(written(script), _MOST):
        file = node.get("destination")
        name = target(script, node)
        if file is None or sign == ">>" or name in seen or not re.fullmatch(_CONFIG, name):
            continue
        values = list(_values(node))
        last = text.rpartition("/")[2]
        read = any(last in one.node.text for one in script.commands if one.node.start > node.end)
        if values and read and is_shared(script, file):
            seen.add(name)
            known = [script.constants.node(value) for value in values]
            constant = all(one is not None and script.constants.value(one) is not None for one in known)
            reason = f"all jobs write their values to {shown(name)}: a later one overwrites those of this job"
            yield Hit.at(node, reason, level=NOTE if constant else None)


def _values(redirection: Node) -> Iterator[str]:
    """Yield the variables in the text that echo, printf, cat or sed write."""
    whole = next((above for above in redirection.above() if above.type != "heredoc_redirect"), None)
    if whole is None or not re.match(r"(echo|printf|cat|sed|envsubst|jq|tee)\b", whole.text):
        return
    for part in (*whole.all("heredoc_body"), *(node for node in whole.children if node is not redirection)):
        yield from (name for name, _ in expansions(part))


@rule_once(
    "appended-deepspeed-env",
    WARNING,
    "A .deepspeed_env that grows",
    """`>>` keeps the lines that earlier jobs have written. The deepspeed launcher exports every line of the
    file, the last one of a name: variables that this script no longer writes still reach the ranks, and
    concurrent jobs mix theirs (`deepspeed/launcher/runner.py`).""",
    message=">> keeps the variables of earlier jobs in the file: they reach the ranks of this one",
    fix='write a new file of this job, and name it in DS_ENV_FILE: > "$DS_ENV_FILE"',
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    echo "OMP_NUM_THREADS=8" >> .deepspeed_env
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    export DS_ENV_FILE=$PWD/environment.$SLURM_JOB_ID
    echo OMP_NUM_THREADS=8 > "$DS_ENV_FILE"
    """,
)
def appended_ds_env(script: Script) -> Iterator[Hit]:
    emptied = [text for _, sign, text in written(script) if sign != ">>"]
    writers = (one for one in script.named("rm", "truncate", "cp", "mv", "tee") if "-a" not in one.literals)
    emptied += [word.text for one in writers for word in one.arguments]
    if any(".deepspeed_env" in text for text in emptied):
        return
    appended = [(node.line, _path(script, text)) for node, sign, text in written(script) if sign == ">>"]
    adding = (one for one in script.named("tee") if {"-a", "--append"} & set(one.literals))
    appended += [(one.line, word.unquoted) for one in adding for word in one.arguments]
    others = any(script.launches) and not any(script.launched("deepspeed"))
    for line, text in (
        appended if not others or may_have_reader(script, script.launches[-1].command.node) else ()
    ):
        if text.rpartition("/")[2] == ".deepspeed_env":
            yield Hit(line)


def _path(script: Script, text: str) -> str:
    """Return the words of a path, or those of the variable that it consists of."""
    value = script.constants.node(text.strip("${}")) if text.startswith("$") else None
    return text if value is None else value.unquoted


@rule_once(
    "mkdir-exists",
    NOTE,
    "mkdir without -p",
    """`mkdir` fails if the directory exists, which it does in the second job of a script, and if the directory
    above is missing. With `set -e` the job then ends. `mkdir -p` accepts both.""",
    fix="write mkdir -p",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    mkdir results
    srun python3 train.py --output results
    """,
    good={"mkdir results": "mkdir -p results"},
)
def mkdir_exists(script: Script) -> Iterator[Hit]:
    if not script.is_batch:
        return
    for command in islice(script.own_running("mkdir"), _MOST):
        if _may_fail(script, command) and (
            words := [word for word in command.arguments if not word.text.startswith("-")]
        ):
            modes = {word.next() for word in command.arguments if word.text in ("-m", "--mode")}
            path = next((word for word in words if word not in modes and is_shared(script, word)), None)
            if path is not None:
                end = ": with set -e the job ends" if script.errexit else ""
                reason = f"mkdir fails in the next job: {shown(path.text)} then exists{end}"
                yield Hit.at(command.node, reason)


def _may_fail(script: Script, command: Command) -> bool:
    """Return whether nothing prepares for the directory that exists, or handles the failure."""
    options = [word for word in command.literals if word.startswith("-")]
    if any(re.match(r"--parents|-[a-z]*p", word) for word in options) or command.guarded:
        return False
    if "/dev/null" in command.statement.text and not script.errexit:
        return False  # the message is not wanted
    if command.node.under("if_statement", "case_statement", "list", "subshell"):
        return False
    if any("clone" in one.literals for one in script.named("git")):
        return False  # the directory around it is a new one
    paths = [word.unquoted for word in command.arguments]
    removed = (word for one in script.own_running("rm", "rmdir", "mv") for word in one.arguments)
    gone = tuple(word.unquoted.rstrip("/*") for word in removed)
    return not any(path.startswith(gone) for path in paths)
