"""Rules about arrays and the names of output files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise

from jobgen.check.ranks.environment import ACTIVATES
from jobgen.check.ranks.model import ranks
from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.check.rules.directories import at_start, exists, folder_of, to_submission
from jobgen.check.rules.options import without_dash
from jobgen.check.rules.placeholders import EXPANDS_NOTHING
from jobgen.errors import counted, shown
from jobgen.schedulers.request import DirectiveOption
from jobgen.script.callers import makes_folder
from jobgen.script.commands import Command
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, literal
from jobgen.script.written_files import is_shared, written


def _outputs(script: Script) -> Iterator[DirectiveOption]:
    """Yield the options with the paths of logs; of two logs in one the other path has no effect."""
    options = script.options_of(*script.dialect.output_options)
    return (one for one in options if one.flag != script.unused_log)


@rule(
    "output-variable",
    ERROR,
    "A variable in the path of an output file",
    """Directives are not read by a shell: `-o $HOME/x` is a file with a dollar sign in its name, on PBS Pro
    and on Slurm (`src/slurmd/slurmstepd/fname.c`). PBS Pro supports only `^array_index^`; Slurm supports `%j`,
    `%x`, `%A` and `%a`. Slurm does not start a job whose output is in a directory that does not exist. (It
    is a warning on PBS, which runs the job and cannot deliver such a log, and a note if the variable is only in the name
    of the file, and in a script that may be for Torque, which expands variables.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --output=$HOME/train.log
    hostname
    """,
    good={"#SBATCH --output=$HOME/train.log": "#SBATCH --output=train-%j.log"},
)
def output_variable(script: Script) -> Iterator[Hit]:
    for option in _outputs(script):
        if not script.dialect.log_variables and re.search(r"\$\{?[A-Za-z_]", option.value):
            why = f"{script.dialect.command} {EXPANDS_NOTHING}: the file is called {shown(option.value)}"
            what = "write the full path" if _FOLDER.search(option.value) else "remove the variable"
            fix = f"{what}; the scheduler supports {script.dialect.log_words}"
            yield Hit.at(option, why, fix, _lost(script, option.value) if script.is_sure else NOTE)
        elif option.value.startswith("~"):
            reason = f"a directive does not expand ~: the file is called {shown(option.value)}"
            yield Hit.at(option, reason, "write the full path", _lost(script, option.value))
        elif not script.dialect.percent_codes and re.search(r"%[jJAaxNu]", option.value):
            reason = f"PBS does not expand Slurm's %j and the like: the file is called {shown(option.value)}"
            yield Hit.at(option, reason, "remove the option: PBS names the file NAME.oJOBID", NOTE)


def _lost(script: Script, path: str) -> str | None:
    """Return the level of an output with a literal variable: whether its directory is missing, and the job fails."""
    if not _FOLDER.search(path):
        return NOTE
    return WARNING if script.dialect.copies_logs else None


_FOLDER = re.compile(r"[$~].*/")


@rule(
    "output-directory",
    WARNING,
    "The directory of an output file may be missing",
    """The scheduler does not create the directory of an output file. Slurm opens the file before the script
    starts, and the job fails without a log; a `mkdir` in the script runs too late. PBS runs the job, ends it
    with status 0, and loses the output. (In a short trial it is a note, and without a `mkdir`: the directory may exist where the
    job is submitted. It is silent if the directory is beside the script, or above it in its repository, if it is that
    of the script, if a file beside it makes it, and for other absolute paths.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --output=logs/train-%j.log
    set -euo pipefail
    mkdir -p logs
    srun python3 train.py
    """,
    good={
        "#SBATCH --output=logs/train-%j.log": "#SBATCH --output=train-%j.log",
        "mkdir -p logs": "mkdir -p results",
    },
)
def output_directory(script: Script) -> Iterator[Hit]:
    copied = script.dialect.copies_logs
    found: dict[str, DirectiveOption] = {}
    in_effect = [option for part in script.heeded_by_component for option in part.values()]
    for option in _outputs(script):
        # Another one below may have its place.
        if option in in_effect and (folder := folder_of(script, option)):
            found.setdefault(folder, option)
    for folder, option in found.items():
        made = _made(script, folder)
        if exists(script, folder) or (made is None and os.path.isabs(folder)) or (made and copied):
            continue
        filled = script.placeholders or script.is_template  # the folder may be another one
        if made is None and (filled or _is_made_elsewhere(script, folder)):
            continue
        loss = (
            "the output is lost when the job ends"
            if copied
            else "the job fails when it starts, without a log"
        )
        reason = f"without the directory {shown(folder)} {loss}: the scheduler does not create it"
        if made:
            reason = f"the directory {shown(folder)} must exist when the job starts: mkdir in line {made.line} is too late"
        fix = f"mkdir -p {folder} before you submit"
        yield Hit.at(option, reason, fix if made else f"{fix}, if it is not there", None if made else NOTE)


def _is_made_elsewhere(script: Script, folder: str) -> bool:
    """Return whether a file beside the script makes a folder, before it submits the script perhaps, or whether a
    job whose logs are copied at its end makes one below it: ``mkdir -p logs/$PBS_JOBID``."""
    if script.folder is not None and makes_folder(script.folder, script.name, folder):
        return True
    if not script.dialect.copies_logs:
        return False
    words = (word for command in script.named("mkdir") for word in command.arguments)
    return any(os.path.normpath(script.constants.text(word)).startswith(f"{folder}/") for word in words)


def _made(script: Script, folder: str) -> Command | None:
    """Return the mkdir of the job itself that makes a folder, in the directory where the job starts."""
    if any(script.named("sbatch", "qsub")):
        return None  # it may run before the submission
    for command in script.commands:
        there = to_submission if script.dialect.copies_logs else at_start
        moves = command.name in ("cd", "pushd") and not there(script, command)
        if moves and not os.path.isabs(folder):
            return None
        words = [script.constants.value(word) for word in command.arguments]
        if command.name == "mkdir" and folder in (os.path.normpath(word) for word in words if word):
            return command
    return None


@rule(
    "bad-array",
    ERROR,
    "An array that the scheduler refuses",
    """PBS Pro takes `0-9`, `0-9:2` and `0-9%3`, and neither a single number nor a list; Torque takes lists
    and ranges; Slurm takes both, with steps.""",
    fix="write 0-9",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -J 3,5,7
    hostname
    """,
    good={"#PBS -J 3,5,7": "#PBS -J 3-7:2"},
)
def bad_array(script: Script) -> Iterator[Hit]:
    yield from rerun_array(script)
    dialect = script.dialect
    for option in script.options_of(dialect.key("array")):
        if not dialect.accepts_array(option.value):
            reason = f"the array {shown(option.value)} is refused: allowed are {dialect.array_forms}"
            yield Hit.at(option, reason, without_dash(option, dialect))


def rerun_array(script: Script) -> Iterator[Hit]:
    """Yield a hit for an array with -r n: PBS Pro refuses it."""
    options = {option.flag: option for option in script.options}
    if script.dialect.array_needs_rerun and "-J" in options and options.get("-r", options["-J"]).value == "n":
        yield Hit(options["-J"].line, "an array with -r n is refused", "remove -r n")


@rule(
    "array-output",
    WARNING,
    "One output file for all tasks of an array",
    """Without `%a` (or `%j`) in the name, all tasks of an array write to the same file and overwrite each
    other. `%x` is the name of the job and `%A` the id of the whole array: they are the same in all tasks
    (`src/slurmd/slurmstepd/fname.c`). The same holds for a file that a command with the index of the task writes with
    `>` or gets as `--out`. (With `--open-mode=append` their lines are mixed, which is a note.)""",
    message="all tasks of the array write to this file and overwrite each other",
    fix="name it after the task: %A_%a",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --array=0-9
    #SBATCH --output=train.log
    hostname
    """,
    good={"#SBATCH --output=train.log": "#SBATCH --output=train-%A_%a.log"},
    schedulers=("slurm",),
)
def array_output(script: Script) -> Iterator[Hit]:
    tasks = script.request.array
    modes = [option.value for option in script.options_of("--open-mode")]
    mixed = bool(modes) and modes[-1].startswith("a")
    reason = "all tasks of the array append to this file: their lines are mixed" if mixed else ""
    if tasks and not re.fullmatch(r"(\d+)(-\1)?(%\d+)?", tasks):
        for option in _outputs(script):
            shared = not re.search(r"%\d*[ajJb]|\\", option.value.replace("%%", ""))
            if option.flag != "--input" and shared and not re.match(r"/dev/|.*{{", option.value):
                yield Hit(option.line, reason, level=NOTE if mixed else None)
        yield from _of_programs(script) if script.is_batch else ()


def _of_programs(script: Script) -> Iterator[Hit]:
    """Yield the files with one name that the commands with the index of the task write."""
    seen = set[str]()
    for node, sign, path in written(script):
        command = next((above for above in node.above() if above.type != "heredoc_redirect"), None)
        if command is None or sign == ">>" or path in seen or not _by_task(script, command, node):
            continue
        seen.add(path)
        reason = f"all tasks of the array write to {shown(path)}: each one empties the file of the others"
        yield Hit.at(node, reason, _OWN_NAME)
    for one in ranks(script):
        for option, value in pairwise((*one.command.words, *one.command.words[-1:])):
            name, equals, rest = option.text.partition("=")
            path = rest.strip("\"'") if equals else script.constants.value(value) or ""
            word = option if equals else value
            if not _OUTPUT.fullmatch(name) or not _FILE.fullmatch(path) or path in seen:
                continue
            if _by_task(script, one.command.node, word):
                seen.add(path)
                reason = f"all tasks of the array get the output file {shown(path)}, and may overwrite it"
                yield Hit.at(word, reason, _OWN_NAME, NOTE)


_OWN_NAME = "write $SLURM_ARRAY_TASK_ID into its name"
_OUTPUT = re.compile(r"-o|--?out(put)?([-_]?(file|path|name))?|--?(result|save)s?[-_]?(file|path)")
_FILE = re.compile(r"[\w./~-]*\w\.[A-Za-z]\w{0,9}")
_LOCAL = re.compile(r"[\"']?(/(dev|tmp|var|local|l?scratch|run|proc)\b|&|\$\{?(TMP|TEMP))")


def _by_task(script: Script, command: Node, path: Node) -> bool:
    """Return whether a command has the index of the task, its path of an output is the same in all tasks, and
    neither a condition nor a directory of its own is around it."""
    file = path.get("destination") or path
    texts = [command, *script.values_in([command])]
    own = any("SLURM_ARRAY_TASK_ID" in one.text for one in texts)
    moved = re.search(r"(--chdir|--cwd|--pwd|-wdir|-D)\b|\bcd\s", command.text)
    around = command.under("if_statement", "case_statement", "list", "function_definition", "subshell")
    return own and not moved and not around and not _LOCAL.match(file.text) and is_shared(script, file)


@rule_once(
    "unread-index",
    NOTE,
    "An array whose index nothing reads",
    """The tasks of an array differ by their index only, `SLURM_ARRAY_TASK_ID` or `PBS_ARRAY_INDEX`. Where neither the
    script nor the files beside it read the index, the id of the job, a random number or the like, all tasks do the same
    work and write the same files, unless the program reads the index itself. (It is silent for an array with `%1`, whose
    tasks go on one after the other, and for a program that gets its work from a server, such as `wandb agent`.)""",
    fix="give the program the index, or remove the array",
    bad="""
    #!/bin/bash
    #SBATCH --array=0-4
    #SBATCH --time=01:00:00
    set -euo pipefail
    python3 train.py --seed 42 --output runs
    """,
    good={
        "python3 train.py --seed 42 --output runs": 'python3 train.py --seed "$SLURM_ARRAY_TASK_ID" --output "runs/$SLURM_ARRAY_TASK_ID"'
    },
)
def unread_index(script: Script) -> Iterator[Hit]:
    option = script.heeded.get(script.dialect.key("array"))
    if option is None or re.search(r"%0*1$", option.value) or not _has_several(option.value):
        return
    groups = ranks(script)
    body = "\n".join(line for line in script.lines if not line.lstrip().startswith("#"))
    sources = [one.program.source for one in groups]
    if _DIFFERS.search(body) or any(one and _DIFFERS.search(one.text) for one in sources):
        return
    others = [one for one in script.commands if not ACTIVATES.search(one.node.text)]
    words = [word for one in others for word in (*one.literals, one.words[0].text)]
    if any(word in _READERS or re.search(r"\.(sh|bash)$", word) for word in words):
        return
    for one in groups:
        names = [option for option, name, value in one.program.options if value and _SAME.search(name)]
        if names:
            same = f"all tasks run {one.name} with the same {names[-1]}, unless it reads the index itself"
            yield Hit.at(option, f"nothing here reads the index of the array: {same}")


def _has_several(array: str) -> bool:
    ends = re.search(r"(\d+)-(\d+)", array, re.ASCII)
    return "," in array or (ends is not None and int(ends[1]) < int(ends[2]))


# What makes the tasks of an array differ, and the options whose values would differ, too.
_DIFFERS = re.compile(
    r"(?i)ARRAY_?(TASK|INDEX|ID)|TASK_ID|JOB_?ID|\bdate\b|mktemp|uuid|\$\$|hostname|wandb\s+agent|\bnni|optuna|study|"
    r"worker|queue|claim|lock|shuf\b|random"
)
_SAME = re.compile(
    r"(?i)out|save|result|seed|log_?dir|work_?dir|run_?(name|dir|id)|exp(eriment)?_?name|^name$"
)
_READERS = ("source", ".", "eval", "bash", "sh", "zsh", "make", "snakemake", "parallel", "xargs", "matlab")


@rule_once(
    "array-range",
    WARNING,
    "Indices of an array beyond the list that they read",
    """The first item of an array of bash has the number 0. A task of a job array whose index is beyond the last item reads
    an empty text, without a message: `--array=1-5` and five items leave the first one out, and task 5 gets nothing. The
    first line of a file has the number 1: sed and awk have none for task 0.""",
    bad="""
    #!/bin/bash
    #SBATCH --array=1-3
    #SBATCH --time=01:00:00
    set -euo pipefail
    rates=(0.1 0.01 0.001)
    python3 train.py --lr "${rates[$SLURM_ARRAY_TASK_ID]}"
    """,
    good={"#SBATCH --array=1-3": "#SBATCH --array=0-2"},
)
def array_range(script: Script) -> Iterator[Hit]:
    option = script.heeded.get(script.dialect.key("array"))
    ends = [int(number) for number in re.findall(r"(?<![:%\d])\d+", option.value, re.ASCII)] if option else []
    if not ends or "SLURM_ARRAY_TASK_COUNT" in script.tree.text:
        return
    for word in (word for one in script.named("sed", "awk") for word in one.arguments):
        line = _LINE.fullmatch(word.text)
        if line and min(ends) == 0 and _shift(script, line[1]) == 0:
            reason = "task 0 of the array gets nothing: the lines of a file are numbered from 1"
            yield Hit.at(word, reason, "start the array at 1")
    for node in script.tree.all("subscript"):
        name, index = node.name, node.get("index")
        values = script.values.get(name, [])
        if index is None or len(values) != 1 or values[0].type != "array":
            continue
        items = [child for child in values[0].children if child.type not in ("(", ")", "comment")]
        shift = _shift(script, index.text)
        changes = rf"\b{name}(\[[^]]*\])?\+?=(?!\()|\{{#{name}|-A\s+{name}\b"
        other = re.search(changes, script.tree.text)
        plain = (literal(item) is not None and not re.search(r"[*?{}]|^\[.*=", item.text) for item in items)
        if shift is not None and not other and max(ends) + shift >= len(items) and all(plain):
            last = len(items) - 1
            fix = "give the array as many tasks as the list has items"
            if min(ends) == 1 and max(ends) == len(items) and shift == 0:
                fix = f"write {option.flag if option else ''}{' ' if script.is_pbs else '='}0-{last}"
            items_of = f"{name} has {counted(len(items), 'item')}, with the numbers from 0 to {last}"
            yield Hit.at(node, f"task {max(ends)} of the array gets nothing: {items_of}", fix)


# The line of a file with a number, as sed and awk print it.
_LINE = re.compile(r"[\"']?(?:NR==)?[\"']?\$\{?(\w+)\}?[\"']? *(?:p|q;d|q ?; ?d|!d)?[\"']?")
_INDEX = r"(?:SLURM_ARRAY_TASK_ID|PBS_ARRAY_INDEX|PBS_ARRAYID)"


def _shift(script: Script, text: str, depth: int = 0) -> int | None:
    """Return what an index adds to that of the array's task; None if it is something else."""
    text = re.sub(r"[\s\"'${}()]", "", text)
    match = re.fullmatch(r"(\w+)([+-]\d{1,6})?", text, re.ASCII)
    if match is None or depth > 3:
        return None
    if re.fullmatch(_INDEX, match[1]):
        return int(match[2] or 0) if match[1] not in script.values else None
    values = script.values.get(match[1], [])
    inner = _shift(script, values[0].text, depth + 1) if len(values) == 1 and not match[1].isdigit() else None
    return None if inner is None else inner + int(match[2] or 0)
