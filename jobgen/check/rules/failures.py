"""Rules about bash: ignored failures."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from jobgen.check.ignored_failures import (
    INFORM,
    INTERRUPTED,
    JUDGES,
    QUERY,
    TEXT,
    Reason,
    activates,
    alternative,
    asks,
    handled,
    ignored,
    is_judged,
    is_probe,
    is_sent_again,
    is_work,
    named,
    only_cleanup,
    prepares_nodes,
    programs,
    repeats,
    run,
    shows_installation,
)
from jobgen.check.rule import NOTE, WARNING, rule, rule_once
from jobgen.check.rules.deletion import deletes_all
from jobgen.check.rules.processes import is_service
from jobgen.check.rules.shell_and_paths import plain_sh
from jobgen.check.rules.syntax_errors import cannot_be_read
from jobgen.errors import shown
from jobgen.launch.command_line import is_python
from jobgen.script.command_kinds import is_printed
from jobgen.script.commands import Command, commands
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import LATER, LOOPS, Node, assignments, expansions, function_of, uses


@rule(
    "no-errexit",
    WARNING,
    "No set -e",
    """Without `set -e` a script continues after a failed command, and exits with the status of its last
    command: a job whose training failed counts as successful if `echo` or `exit 0` follows. Its dependent jobs
    start, and no mail says that it failed. Keep the status of the program: `status=$?`, and `exit $status` at the end.
    A new script begins with `set -eo pipefail`, which ends it at each other command that fails, too; `~/.bashrc` and
    other files of a site may do so: write it behind them. `set -u` ends many scripts at an activation of conda or at a
    variable that may be unset: add it only after a test. dash, which is `sh` on Debian and Ubuntu, has no `pipefail`.
    MATLAB has a status of its own with `-batch`, or where its code catches errors, and ROOT with `-q`. (It
    is a note in a short trial, if the program is one of several runs, if a later command may fail with it, if one reads what it makes, such as
    a compiler, if its failure is reported, by `ctest` to a dashboard or with a mail of a file, if bash cannot read the script, if TensorFlow would go on
    without the GPUs, and if python would go on with the packages of a module, or pip install others, without the
    environment that is activated. It is silent about commands that only print or install packages, where the script judges
    the results, ends with 0 after a failure that it reports, or submits itself again, and where nothing is hidden: without its environment or a module a program fails at
    once, and the job with it. `cd` is the matter of unchecked-cd.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    module load cuda
    srun python3 train.py
    echo finished
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eo pipefail
    module load cuda
    srun python3 train.py
    echo finished
    """,
    style=True,
)
def no_errexit(script: Script) -> Iterator[Hit]:
    if script.errexit or not run(script) or _keeps_status(script):
        return
    works = [command for command in run(script) if is_work(command)] or programs(script)
    works = [one for one in works if not is_service(one) and not shows_installation(script, one)]
    works = [one for one in works if not one.node.text.startswith("$? ")]  # a damaged [ $? ... ]
    if not works:
        return
    work, end = works[-1], _end(script, works[-1])
    known = (
        repeats(works, work) or _reports(script, work) or is_sent_again(script, work) or _ends_well(script)
    )
    hides = script.in_job and not known and not cannot_be_read(script)
    lost = hides and end is not None and _is_lost(script, work, end)
    if lost and end is not None and not is_judged(script, works, work):
        failure = f"if {_title(work)} fails, the job counts as successful"
        reason = f"{failure}: its status is that of the last command, {_shown(end.last)}"
        yield Hit(work.line, reason, _remedy(script, work))
    elif found := ignored(script, works):
        yield _note(script, works, *found)


def _note(script: Script, works: Sequence[Command], command: Command, why: Reason) -> Hit:
    """Return the note on a command whose failure the script ignores."""
    reason = f"if {_shown(command.node)} fails, the script goes on, and {why.value}"
    fix = f"|| exit 1 behind it{_OF_A_RUN if why is Reason.STATUS else ''}"
    single = why is Reason.STATUS and command == works[-1] and not repeats(works, command)
    if single and only_cleanup(script, command):
        fix = _remedy(script, command)
    else:
        fix = _with_pipe(script, command, fix)
    return Hit(command.line, reason, fix, NOTE)


def _title(work: Command) -> str:
    """Return the name of a program, or that of the wrapper around it where a variable may be the program."""
    first, *words = [word.text for word in work.words if word.start <= work.program_word.start]
    unknown = any(text.lstrip('"').startswith("$") for text in words[:-1])
    return os.path.basename(first) if unknown else work.program or work.program_word.text


def _with_pipe(script: Script, command: Command, fix: str) -> str:
    """Return a fix that reads the status of a command, which may be in a pipe."""
    known = _place_in_pipe(command) is None or script.pipefail
    return f"write {fix}" if known else f"{_set(script, '-o')}, and {fix}"


_OF_A_RUN = " if later commands need its results, else || failed=1, and exit ${failed:-0} at the end"


def _remedy(script: Script, work: Command) -> str:
    """Return the fix of a lost status: to keep it, as ``set -e`` would end the script at other commands, too."""
    at, name = (
        _place_in_pipe(work),
        work.program or os.path.basename(script.constants.text(work.program_word)),
    )
    first = ""
    if name.lower().startswith("matlab") and _hides_errors(work):
        first = _OF_OLD_MATLAB if _OLD_MATLAB.search(script.tree.text) else _OF_MATLAB
    elif name == "root" and _reads_on(work):
        first = _OF_ROOT
    if work.node.under("subshell") or (at is not None and plain_sh(script)):
        return f"{first}{_set(script, '-eo', work)}"
    if _deletes(script, work):
        return first + _with_pipe(script, work, "|| exit 1 behind it, before the files are removed")
    status = "$?" if at is None else f"${{PIPESTATUS[{at}]}}"
    same = (one for one in run(script) if is_work(one) or one.program == work.program != "")
    others = (f"line {one.line}" for one in same if alternative(one, work))
    behind = " and ".join(["it", *dict.fromkeys(others)])  # also behind the program of another branch
    return f"{first}write status={status} behind {behind}, and exit $status at the end"


def _deletes(script: Script, work: Command) -> bool:
    """Return whether a command behind a program removes a folder that is neither of this job nor a temporary one."""
    after = [
        one for one in run(script) if one.program.lstrip("\\") == "rm" and one.node.start > work.node.end
    ]
    folders = [word.unquoted for one in after if deletes_all(one) for word in one.arguments]
    return any(_LASTING.match(folder) and not _PASSING.search(folder) for folder in folders)


_LASTING = re.compile(r"(?:[~/]|\.\.?/|\$\{?(?:HOME|\w*SUBMIT_DIR|PBS_O_WORKDIR)\b).*\w")
_PASSING = re.compile(r"(?i)te?mp|cache|\bold|log|(?:JOB|TASK)_?ID|\$\$|core\.|^/(?:scratch|dev/shm)\b")


def _hides_errors(work: Command) -> bool:
    """Return whether MATLAB reads commands up to the end of its input: after an error it goes on with the next one."""
    text = work.statement.text
    known = re.search(r"\s-r\s|<|\|\s*\S*matlab", text) is not None
    return known and re.search(r"-batch\b|\bcatch\b|\b(?:exit|quit)\(\s*[^0)\s]", text) is None


def _reads_on(work: Command) -> bool:
    """Return whether ROOT reads commands behind a macro: at the end of its input its status is 0."""
    return not any(re.match(r"-[a-z]*q", word) for word in work.literals)


# What to do first, so that a program has a status of its own. MATLAB has -batch since R2019a, which is 9.6.
_OF_MATLAB = "start matlab with -batch (R2019a or newer), as it ends with 0 after an error otherwise, and "
_OF_OLD_MATLAB = "start matlab with -r 'try, ..., catch e, disp(e.message), exit(1), end, exit', as it ends with 0 after an error otherwise, and "
_OF_ROOT = "start root with -b -q, as it ends with 0 after an error otherwise, and "
_OLD_MATLAB = re.compile(r"(?i)\bmatlab[-_/]*(?:\w+/)?(?:r?20(?:0\d|1[0-8])[ab]?|[78]\.\d+|9\.[0-5])\b")


def _place_in_pipe(command: Command) -> int | None:
    """Return the place of a command in its pipeline, if its status is not that of the pipeline."""
    above = command.node.parent
    documents = (one for one in above.children if one.type == "heredoc_redirect") if above is not None else ()
    if any(part.type == "pipeline" for one in documents for part in one.children):
        return 0  # a <<END | b
    pipeline = next((above for above in command.node.above() if above.type == "pipeline"), None)
    parts = [part for part in pipeline.children if part.type not in ("|", "|&")] if pipeline else []
    return next((at for at, part in enumerate(parts[:-1]) if command.node in part), None)


def _reports(script: Script, work: Command) -> bool:
    """Return whether a failure is reported in another way: by ctest to its dashboard, with a mail of results, or
    by a function that ends the job or others."""
    later = [one for one in run(script) if one.node.start > work.node.end]
    tests = (one for one in (work, *later) if one.program == "ctest")
    if any(
        re.match(r"-[DST]|--(dashboard|script|test-action)\b", word) for one in tests for word in one.literals
    ):
        return True
    texts = [script.functions.get(one.name, one.statement.text) for one in later]
    mailed = any(re.search(_MAIL, text) and re.search(_RESULTS, text) for text in texts)
    called = (script.functions.get(one.name, "") for one in later if one.node.under("if_statement"))
    return mailed or any(re.search(_ENDING, text) for text in called)


def _ends_well(script: Script) -> bool:
    """Return whether the script ends with success after a failure that it has seen: its status says nothing."""
    for node in script.tree.all("if_statement"):
        condition, *others = [one for one in node.children if one.type != "if"]
        exits = (
            one for part in others if part.type == "command" for one in commands(part) if one.name == "exit"
        )
        if _FAILED.search(condition.text) and any(one.literals in ([], ["0"]) for one in exits):
            return True
    return False


_FAILED = re.compile(r"!\s+\"?\$\?\"?\s+-eq\s+0\b|\$\?\"?\s+(?:-ne|!=|-gt)\s+0\b")
_MAIL = r"\b(?:mailx?|sendmail|mutt)\s"
_ENDING = r"\b(?:exit|scancel|qdel)\s"
_RESULTS = r"\bcat\s|<\s*[^<\s]|\s-[aA]\s"  # a file in a mail


def _shown(node: Node) -> str:
    """Return the first line of a command for a message, without the variables that it sets for its program."""
    name = node.get("name") or node
    lines = node.source[name.start : node.end].decode("utf-8", "replace").splitlines() or [""]
    return shown(f"{lines[0].rstrip(chr(92)).rstrip()} ..." if lines[1:] else lines[0])


class _End(NamedTuple):
    """The last statement of a script, and the command in it whose status is that of the script."""

    statement: Node
    last: Node


def _end(script: Script, work: Command) -> _End | None:
    """Return the end of the script behind a program, if it succeeds whatever has failed before."""
    ends = [node for node in _statements(script.tree) if node.line <= script.last_line]
    ends = [node for node in ends if node.type != "function_definition" and node.text != "exit"]
    last = _succeeding(script, ends[-1], work) if ends else None
    return None if last is None else _End(ends[-1], last)


_CLAUSES = ("elif_clause", "else_clause", "case_item")
_GROUPS = ("compound_statement", "do_group", *_CLAUSES)
_STATEMENTS = {
    *("command", "list", "pipeline", "redirected_statement", "subshell", "negated_command", "test_command"),
    *("variable_assignment", "declaration_command", "unset_command", *_GROUPS, *LATER),
}


def _statements(node: Node) -> list[Node]:
    return [one for one in node.children if one.type in _STATEMENTS and one.field != "condition"]


def _succeeding(script: Script, node: Node, work: Command, calls: tuple[str, ...] = ()) -> Node | None:
    """Return the last command of a statement, if it succeeds: the one behind a program, of several branches."""
    if node.type in ("declaration_command", "unset_command"):
        return node
    inner = next(commands(node), None) if node.type == "command" else None
    if inner is None:
        ends = _ends(node)
    elif inner.name not in script.functions or inner.name in calls:
        return node if _succeeds(script, inner) else None
    else:
        ends, calls = _body(script, inner.name), (*calls, inner.name)
    lasts = [_succeeding(script, end, work, calls) for end in ends]
    if not lasts or None in lasts:
        return None
    around = (last for end, last in zip(ends, lasts, strict=True) if end.parent and work.node in end.parent)
    return next(around, lasts[0])


def _body(script: Script, function: str) -> list[Node]:
    """Return the body of a function, if nothing in it returns or exits."""
    named = (node for node in script.tree.all("function_definition") if node.name == function)
    bodies = [body for node in named if (body := node.get("body")) is not None][:1]
    return [one for one in bodies if not any(inner.name in ("return", "exit") for inner in commands(one))]


def _ends(node: Node) -> list[Node]:
    """Return the statements that have to succeed for a statement to succeed; none if others have to."""
    parts = _statements(node)
    if node.type == "list":
        return parts[::-1]
    if node.type in ("if_statement", "case_statement"):
        condition = node.get("condition")
        if condition is not None and JUDGES.search(condition.text):
            return []  # the script tests its results
        clauses = [one for one in parts if one.type in _CLAUSES]
        return [*clauses, *[one for one in parts if one not in clauses][-1:]]
    return parts[-1:] if node.type in ("redirected_statement", *LOOPS, *_GROUPS) else []


def _succeeds(script: Script, command: Command) -> bool:
    name, words = command.name, command.literals
    if name in ("exit", "wait"):
        return words == (["0"] if name == "exit" else []) and len(command.arguments) == len(words)
    if name == "eval":
        return re.fullmatch(r"eval\s+[\"']?(?:echo|printf)\b[^;&|]*", command.node.text) is not None
    if name in _SUCCEED_WITH:
        return words[:1] in _SUCCEED_WITH[name]
    if name == "rm":
        forced = any(re.match("-[a-zA-Z]*f", word) for word in words)
        made = {word.text for one in script.named("mkdir") for word in one.arguments}
        return forced or all(word.text in made for word in command.arguments if word.text[0] != "-")
    alone = name in ("cat", "ls") and all(word.text[0] == "-" for word in command.arguments)
    return alone or name in _SUCCEED


def _is_lost(script: Script, work: Command, end: _End) -> bool:
    """Return whether only the exit status could say that a program failed, and is that of another command."""
    function = function_of(work.node)
    together = function == function_of(end.last)
    if work.node.end > (end.last if together else end.statement).start:
        return False
    if function and (not together or len(list(script.named(function))) > 1):
        return False  # it may run several times
    words = {work.name, *named(work)}
    from_input = is_python(work.program) and (not work.arguments or words & {"-", "venv", "pip"})
    if from_input or words & INTERRUPTED or handled(work) or work.node.under(*LOOPS):
        return False
    beside = (one for one in run(script) if one.background and end.last.text == "wait")
    if any(_SERVES.search(one.node.text) for one in beside):
        return False  # the job lasts until its time limit
    after = [one for one in run(script) if work.node.end < one.node.start]
    return not any(one.name == "exit" and one.arguments and one.node is not end.last for one in after)


# Programs that do not end by themselves.
_SERVES = re.compile(r"(?i)ipcontroller|ipengine|jupyter|dask|scheduler|server|redis|ray start|mongod|daemon")
# Commands that succeed whatever failed before them, and those that do with some first words.
_FAIL = {"false", "[", "test", "let", "read", "which", "type", "pidof", "nvcc", "head", "tail", "cat", "ls"}
_SUCCEED = (INFORM - _FAIL) | {"set", "unset", "trap", "times", "export", "touch", "sync", "clean_scratch"}
_SUCCEED_WITH = {
    **dict.fromkeys(("conda", "mamba"), (["deactivate"],)),
    **dict.fromkeys(("module", "ml"), (["purge"], ["unload"], ["list"])),
    **{"scontrol": (["show"],), "ray": (["stop"],), "mkdir": (["-p"],)},
}


def _set(script: Script, options: str, work: Command | None = None) -> str:
    """Return the fix that sets options of the shell, behind the files that it sources before a program: these may
    end with a failure. dash has no pipefail."""
    first = "make the first line #!/bin/bash, and " if plain_sh(script) else ""
    files = [one for one in script.named("source", ".") if work and one.node.start < work.node.start]
    files = [one for one in files if not activates(one) and not one.node.under("function_definition")]
    ends = ([one.node, *one.node.above()][-2] for one in files)  # of the statements around them
    lines = [end.line + end.text.count("\n") for end in ends]
    where = f"behind line {lines[-1]}, which reads another file" if lines else "after the directives"
    if options == "-o" and script.errexit and any(map(_ends_early, script.tree.all("pipeline"))):
        where = "above this line"
    return f"{first}write set {options} pipefail {where}"


def _keeps_status(script: Script) -> bool:
    """Return whether the script exits with a status that it has kept, or traps each failure."""
    last = run(script)[-1]
    kept = last.name == "exit" and any(True for word in last.arguments for _ in expansions(word))
    return kept or any("ERR" in command.literals for command in script.named("trap"))


@rule_once(
    "no-pipefail",
    WARNING,
    "set -e without pipefail",
    """`set -e` checks only the last command of a pipeline. (One that ends with `head` is silent: what writes to it is
    ended by SIGPIPE, which is a failure under `pipefail`.)""",
    message="set -e checks only the last command of a pipeline: a failure before the | is ignored",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eu
    scontrol show hostnames | sed 's/$/ slots=4/' > "hostfile.$SLURM_JOB_ID"
    """,
    good={"set -eu": "set -euo pipefail"},
)
def no_pipefail(script: Script) -> Iterator[Hit]:
    if not script.errexit or script.pipefail:
        return
    begin = _errexit_from(script)
    for node in script.tree.all("pipeline"):
        if node.start < begin:
            continue
        names = [one.name for one in commands(node) if not one.node.under("command_substitution")]
        if _ends_early(node) or any(map(asks, commands(node))):
            continue  # it ends what writes to it, which is a failure under pipefail; or a program only prints
        tested = node.under("command_substitution", "if_statement", "while_statement") or _prints_text(node)
        sums = {name for name in names if name.endswith("sum") and " -c" not in node.text}  # of files
        prints = {*INFORM, *sums}.issuperset(names[:-1]) or _shows_found(node, names)
        if not tested and not _finds(node) and not _teed(node) and not prints:
            yield Hit.at(node, fix=_set(script, "-o"))


def _shows_found(pipeline: Node, names: Sequence[str]) -> bool:
    """Return whether a pipeline prints what grep finds, which fails under pipefail if it finds nothing."""
    above = pipeline.parent
    written = any(pipeline.all("file_redirect")) or (
        above is not None and above.type == "redirected_statement"
    )
    return "grep" in names[1:] and _PRINTS.issuperset(names[1:]) and not written and "tee" not in names


def _ends_early(pipeline: Node) -> bool:
    """Return whether a pipeline ends with ``head``, which ends what writes to it."""
    last = next(commands(pipeline.children[-1]), None)
    return last is not None and last.name == "head"


def _finds(pipeline: Node) -> bool:
    """Return whether a pipeline ends with a grep that finds nothing after a failure, which the script handles."""
    greps = (one for one in commands(pipeline) if one.name in ("grep", "egrep", "fgrep"))
    return any(one.guarded and not _INVERTS.search(one.node.text) for one in greps)


_INVERTS = re.compile(r"\s-[a-zA-Z]*[vL]|--invert|--files-without")
_PRINTS = {*TEXT, *INFORM, "column"}


def _prints_text(pipeline: Node) -> bool:
    """Return whether a pipeline prints lines of files, and writes no file."""
    above = pipeline.parent
    whole = above if above is not None and above.type == "redirected_statement" else pipeline
    return not any(whole.all("file_redirect")) and all(one.name in _PRINTS for one in commands(pipeline))


_SETS_E = re.compile(r"(-\w+ )*-(\w*e|o errexit)")


def _errexit_from(script: Script) -> int:
    """Return where ``set -e`` is; 0 if the first line has -e."""
    return next((one.node.start for one in script.named("set") if _SETS_E.match(" ".join(one.literals))), 0)


def _teed(pipeline: Node) -> bool:
    """Return whether the rule lost-status applies: work, and then tee or another filter."""
    inner = list(commands(pipeline))
    works = [one for one in inner[:-1] if one.works and not prepares_nodes(one)]
    return any(not QUERY & named(one) and not is_probe(one) for one in works)


@rule(
    "lost-status",
    WARNING,
    "The status of the training is lost in a pipe",
    """The status of `training | tee log` is that of tee, 0: the scheduler records the job as completed, and
    dependent jobs start. `if [ $? -eq 0 ]`, `status=$?` and `|| exit 1` behind it see the status of tee, too.
    (It is a note in a short trial. Reported are pipelines whose status is that of the job, or checked by `set -e`, or read by the script; for the
    others see `no-errexit`.)""",
    message="the status of the pipeline is that of its last command: the job succeeds although the program fails",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -e
    srun python3 train.py 2>&1 | tee "train.$SLURM_JOB_ID.log"
    """,
    good={"set -e": "set -eo pipefail"},
)
def lost_status(script: Script) -> Iterator[Hit]:
    if script.pipefail or any(name == "PIPESTATUS" for name, _ in script.expansions):
        return
    last = script.commands[-1].node.start if script.commands else 0
    begin = _errexit_from(script) if script.errexit else sys.maxsize
    for node in script.tree.all("pipeline"):
        decides = begin <= node.start or (node.start <= last < node.end and not node.under(*LOOPS))
        dead = script.constants.is_dead(node) or node.under("command_substitution")
        if decides and _teed(node) and not dead:
            yield Hit.at(node, fix=_set(script, "-o"))
        elif not dead and (line := _line_of_test(script, node)):
            where = "the test" if line == node.line else f"line {line}"
            tee = next(commands(node.children[-1])).name
            reason = f"{where} sees the status of {tee}, 0, also if the program in front of the | fails"
            yield Hit.at(node, reason, f"{_set(script, '-o')}, or test ${{PIPESTATUS[0]}}")


# Programs that pass on what they read: their status says nothing about it.
_PASS_ON = {"tee", "cat", "tail", "sed", "ts", "sort", "tr", "cut", "nl", "logger", "pv"}


def _line_of_test(script: Script, pipeline: Node) -> int:
    """Return the line in which a script decides by the status of a pipeline that is not the one of its program;
    0 without."""
    inner, part = list(commands(pipeline)), pipeline.children[-1]
    last = next((one for one in inner if one.node in part), None)
    if last is None or last.name not in _PASS_ON or not (last.guarded or last.test):
        return 0
    works = (one.works or one.node.start in _works(script).programs for one in inner if one.node not in part)
    if not any(works):
        return 0
    if (test := last.test) is None or last.guarded:
        return pipeline.line
    begin = next(test.all("command", "test_command"), test)
    if test.name in ("echo", "printf") or all(
        node.start > begin.end for name, node in expansions(test) if name == "?"
    ):
        return 0  # it prints the status, or reads that of another command
    kept = {name for name, value, _ in assignments(test) if uses(value, "?")}
    return test.line if not kept or kept & _works(script).read else 0


class _Works(NamedTuple):
    """Where the programs of a script begin, and the variables that it does not only print."""

    programs: frozenset[int]
    read: frozenset[str]


@lru_cache(maxsize=4)
def _works(script: Script) -> _Works:
    starts = frozenset(one.node.start for one in programs(script))
    return _Works(starts, frozenset(name for name, node in script.expansions if not is_printed(node)))
