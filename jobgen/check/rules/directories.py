"""Rules about the working directory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.rule import NOTE, WARNING, rule, rule_once
from jobgen.errors import shown
from jobgen.schedulers.request import DirectiveOption
from jobgen.script.commands import Command
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.own_folder import COPY, uses_of_folder
from jobgen.script.script import Edit, Hit, Script
from jobgen.script.syntax import LATER, Node, exported

# Directories that always exist: this one, those above it, the home directory and the root.
_EXISTING = re.compile(r"\.{1,2}(/\.{1,2})*/?|\$\{?(PWD|OLDPWD|HOME)\}?|\$\(pwd\)|`pwd`|-|~/?|/(tmp/?)?")
# The value of a variable that names a directory, or nothing: that of a cd in front of it, a new one, that of the script.
_RESOLVED = re.compile(
    r"(\bpwd( -P)?|\bmktemp [^|;]*)\s*[)`]\"?$|^\"?(\$\(|`)dirname -?-? ?\"?\$\{?(0|BASH_SOURCE)[^/|;]*[)`]\"?$"
)
# What depends on the working directory: a relative path, a file with an extension, a pattern.
_RELATIVE = re.compile(
    r"(?![-/~$\"'`<&(]|\w+:/)[\w@%+.,:=-]*(/|\.[A-Za-z]\w{0,4}$)|.*[*?]|[\w-]+=(?![/~$\"'])[\w.-]+(/|\.[a-z])"
)
_FILE_COMMANDS = ("rm", "rmdir", "mkdir", "mv", "cp", "touch", "git", "find", "tar", "sbatch")


@rule(
    "unchecked-cd",
    WARNING,
    "A cd whose failure is ignored",
    """If `cd` fails in a script without `set -e`, the following commands run in the wrong directory and may
    overwrite or delete files there. `cd DIR || return` does not help: outside of a function bash prints an
    error and goes on. (It is a note if no later command names a relative path, if the script makes the
    directory itself, or if it goes back to the one where the job starts. Before `rm *` and `find . -delete` it is a warning of its own. A `cd` to where the
    job is is silent, and one before programs of which all paths are absolute.)""",
    message="if cd fails, the following commands run in the wrong directory",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    cd "$PBS_O_WORKDIR"
    rm -f core.*
    """,
    good={'cd "$PBS_O_WORKDIR"': 'cd "$PBS_O_WORKDIR" || exit 1'},
    style=True,
    fix="write || exit 1 behind each cd",
    summary="if cd fails, the following commands run in the wrong directory",
)
def unchecked_cd(script: Script) -> Iterator[Hit]:
    if script.errexit:
        return
    moves = list(script.named("cd", "pushd", "popd"))
    for before, command in zip([None, *moves], moves, strict=False):
        after = list(_in_directory(script, command))
        apart = command.name == "popd" or not may_miss(script, command)
        if apart or all(_is_apart(script, one) or _reads_there(command, one) for one in after):
            continue
        if not (_proven(script, command) or stays(script, command) or _is_there(script, before, command)):
            fix = f"write {command.node.text} || exit 1"
            if _returns(command):
                reason = "return does not end a script: if cd fails, bash goes on"
                yield Hit.at(command.node, reason, fix, None if _deletion(after) else NOTE)
            elif not command.guarded and not command.tested:
                level = _level(script, command, after)
                deletion = "" if level == NOTE else _deletion(after)
                effect = f"if cd fails, {shown(deletion)} deletes the files of another directory"
                name = _ONE_VARIABLE.fullmatch(command.node.text)  # cd succeeds if it is empty
                if (
                    deletion
                    and name
                    and name[1] not in script.dialect.job_variables.keys() | script.values.keys()
                ):
                    yield Hit.at(command.node, effect, f'write cd "${{{name[1]}:?}}" || exit 1', level)
                    continue
                yield Hit.at(command.node, effect * bool(deletion), fix, level, edits=_or_exit(command))


_ONE_VARIABLE = re.compile(r"cd\s+\"?\$\{?(\w+)\}?/?\"?")


def _in_directory(script: Script, command: Command) -> Iterator[Command]:
    """Yield the commands behind a cd, up to another one that runs in any case, to an absolute path."""
    after = (one for one in script.commands if one.node.start > command.node.end and one.name != "exit")
    for one in after:
        fixed = one.arguments and _FIXED.match(script.path_text(one.arguments[-1]))
        if one.name == "cd" and fixed and _runs_always(one):
            return
        yield one


def _is_there(script: Script, before: Command | None, command: Command) -> bool:
    """Return whether a cd is to the absolute path to which the one before it is."""
    if before is None or not before.arguments or not command.arguments:
        return False
    paths = [_path(_value(script, one.arguments[-1])) for one in (before, command)]
    return paths[0] == paths[1] and _FIXED.match(paths[0]) is not None and _runs_always(before)


def _runs_always(command: Command) -> bool:
    """Return whether a command runs in the shell of the script itself and on no condition."""
    first = all(one.start == command.node.start for one in command.node.above() if one.type == "list")
    return first and not command.node.under(*LATER, "subshell", "command_substitution", "pipeline")


_FIXED = re.compile(r"[/~]|\$\{?(HOME|PBS_O_WORKDIR|SLURM_SUBMIT_DIR)\b")


def _deletion(after: list[Command]) -> str:
    """Return the first call of rm or find behind a cd that deletes all files of the directory."""
    for one in after:
        if one.name in ("cd", "pushd", "popd"):
            break
        words = [word.text for word in one.arguments]
        if one.name == "rm" and {"*", "./*", "*.*"} & set(words):
            return one.node.text
        if one.name == "find" and "-empty" not in words and _REMOVES.match(" ".join(words)):
            return one.node.text
    return ""


# The words of a find that deletes all files but some here.
_REMOVES = re.compile(r"\.(?!.*(?<!! )(?<!-not )-i?name).* -(?:exec(?:dir)? rm\b|delete)")
# What starts its command in the home directory of another node.
_REMOTE = ("ssh", "rsh", "pdsh", "clush", "pbs_tmrsh", "pbsdsh")
_RELATIVE_FILE = re.compile(r"(?![-/~$])[\w./-]+\.(py|sh)")
_MOVES = re.compile(
    r"\b(cd|pushd|env -C|--chdir|--cwd)\b|(\bsource|(^|[\s;&\"'])\.)\s+(?!\S*(activate|profile|bashrc|conda|\.venv|/venv))"
)


@rule_once(
    "remote-directory",
    WARNING,
    "A relative path in the shell of another node",
    """ssh, pdsh and `pbs_tmrsh` start a command in the home directory, wherever the script is: a relative path is
    resolved there, and the program is not found. Slurm's `srun` starts the tasks in the directory of the script. (The
    rule home-directory is about the script itself.)""",
    bad="""
    #!/bin/bash
    # jobgen: disable=repeated-count
    #PBS -l select=2:ncpus=64:mpiprocs=1:ngpus=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd "$PBS_O_WORKDIR"
    rank=0
    for host in $(sort -u "$PBS_NODEFILE"); do
        pbs_tmrsh "$host" torchrun --nnodes=2 --nproc-per-node=4 --node-rank="$rank" --master-addr="$HOSTNAME" train.py &
        rank=$((rank + 1))
    done
    wait -n
    wait -n
    """,
    good={
        'pbs_tmrsh "$host" torchrun --nnodes=2 --nproc-per-node=4 --node-rank="$rank" --master-addr="$HOSTNAME" train.py &': 'pbs_tmrsh "$host" bash -lc "cd $PWD && torchrun --nnodes=2 --nproc-per-node=4 --node-rank=$rank --master-addr=$HOSTNAME train.py" &'
    },
)
def remote_directory(script: Script) -> Iterator[Hit]:
    for launch in script.launches:
        words = [word for word in launch.program if word.type in ("word", "string", "raw_string")]
        named = next((word for word in words if _RELATIVE_FILE.fullmatch(word.unquoted)), None)
        if launch.remote not in _REMOTE or named is None or not script.in_job:
            continue
        text = f"{launch.command.statement.text};"
        if named.source is not script.tree.source and b"\n" in named.source:
            text += named.source.decode(errors="replace")  # the code of a file that the script writes
        if script.starter is not None:
            text += script.starter.script.line(script.starter.call.file.line)
            text += "".join(f"{one.node.text};" for one in script.named("cd", "pushd"))
        if not _MOVES.search(text):
            start = "pbsdsh -- bash -c" if launch.remote == "pbsdsh" else f"{launch.remote} HOST"
            reason = f"{launch.remote} starts in the home directory of the node, and {shown(named.unquoted)} is resolved there"
            yield Hit(launch.line, reason, f'begin the command with cd: {start} "cd $PWD && ..."')


@rule_once(
    "own-folder",
    WARNING,
    "A file beside $0",
    """A job runs a copy of its script in a spool folder of the node: `$0` and `${BASH_SOURCE[0]}` are
    `/var/spool/slurmd/job123/slurm_script` on Slurm and `mom_priv/jobs/123.server.SC` on PBS. The files beside the
    script are not there. (A use on a condition is silent, and a script that names the spool folder or asks
    `scontrol show job` for its own path. It is a note in `PYTHONPATH`: Python also looks elsewhere.)""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    srun python3 "$here/train.py"
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 "$SLURM_SUBMIT_DIR/train.py"
    """,
)
def own_folder(script: Script) -> Iterator[Hit]:
    for node in uses_of_folder(script):
        start = f"${script.dialect.variable('submit_dir')}, where {script.dialect.command} was called"
        level = NOTE if node.type == "variable_assignment" and node.name == "PYTHONPATH" else None
        yield Hit.at(node, COPY, f"write the path of the folder, or {start}", level)


_BODIES = (
    *("program", "compound_statement", "do_group", "if_statement", "elif_clause", "else_clause", "case_item"),
)


def _or_exit(command: Command) -> tuple[Edit, ...]:
    """Return the edit that ends the script if a cd fails, where it is a statement of its own."""
    node = command.node
    while node.parent is not None and node.parent.type == "redirected_statement":
        node = node.parent
    alone = node.parent is not None and node.parent.type in _BODIES
    return (Edit(node.end, node.end, b" || exit 1"),) if alone else ()


def may_miss(script: Script, command: Command) -> bool:
    """Return whether a cd may fail, and changes the directory of the script itself."""
    inner = command.node.under("subshell", "command_substitution")
    if inner or not command.arguments or command.files("<"):
        return False  # cd <NAME of a template>
    word = command.arguments[-1]
    values = script.values.get(_path(word).strip("${}"), [])
    resolved = values and all(_RESOLVED.search(one.text) for one in values)
    return not (resolved or any(_EXISTING.fullmatch(one.unquoted) for one in (word, _value(script, word))))


def _value(script: Script, word: Node) -> Node:
    """Return the value of a variable that is set once, or the word itself."""
    return script.constants.node(_path(word).strip("${}")) or word


def to_submission(script: Script, command: Command) -> bool:
    """Return whether a cd is into the directory from which the job was submitted."""
    word = command.arguments[-1] if command.arguments else command.node
    name = _path(word).strip("${}")
    names = {_path(one).strip("${}") for one in script.values.get(name, ())} or {name}
    submit_dir = {
        one
        for dialect in DIALECTS.values()
        for one, key in dialect.job_variables.items()
        if key == "submit_dir"
    }
    own = {one for one in names if script.dialect.job_variables.get(one) == "submit_dir"}
    return bool(own) and names <= submit_dir


def at_start(script: Script, command: Command) -> bool:
    """Return whether a cd is into the directory in which the job starts."""
    moved = any(script.options_of(*script.dialect.directory_options))
    return to_submission(script, command) and not script.dialect.starts_at_home and not moved


def stays(script: Script, command: Command) -> bool:
    """Return whether a cd is into the directory in which the job starts, and the script still is."""
    before = (one for one in script.named("cd", "pushd") if one.node.start < command.node.start)
    path = _path(_value(script, command.arguments[-1])) if command.arguments else ""
    here = at_start(script, command) or _HERE.fullmatch(path) is not None
    return here and all(at_start(script, one) for one in before)


_HERE = re.compile(r"\$\{?(PWD|LS_SUBCWD)\}?|\$\(pwd\)|`pwd`|\.")


def _path(word: Node) -> str:
    return word.unquoted.rstrip("/")


def _returns(command: Command) -> bool:
    """Return whether only ``|| return`` outside of a function handles the failure."""
    above = command.statement
    last = above.children[-1] if above.type == "list" else None
    return (
        last is not None
        and re.fullmatch(r"return(\s+\d+)?|\{[^|&]*\breturn(\s+\d+)?\s*;\s*\}", last.text) is not None
        and "&&" not in {part.type for part in above.children}
        and not command.node.under("function_definition")
    )


def _proven(script: Script, command: Command) -> bool:
    """Return whether a command above, whose failure ends the script, has used the same directory, or whether the cd
    is behind the test that it exists."""
    path = _path(command.arguments[-1])
    if any(test in one.text for one in _conditions(command) for test in (f"-d {path}", f'-d "{path}')):
        return True
    for one in script.commands:
        if one.node.start >= command.node.start:
            return False
        named = any(_path(word) == path for word in one.arguments)
        if named and one.guarded and re.search(r"\|\|.*\bexit\b", one.statement.text, re.S):
            return True
    return False


def _conditions(command: Command) -> Iterator[Node]:
    """Yield the conditions without ``!`` on which a command runs."""
    for one in command.node.above():
        if one.type in ("elif_clause", "else_clause"):
            return
        first = one.get("condition") if one.type == "if_statement" else None
        if one.type == "list" and one.children[1].type == "&&" and one.children[0].end <= command.node.start:
            first = one.children[0]
            while first.type == "list":
                first = first.children[-1]
        if first is not None and "!" not in first.text:
            yield first


def _level(script: Script, command: Command, after: list[Command]) -> str | None:
    path = _path(command.arguments[-1])
    before = (one for one in script.named("mkdir") if one.node.start < command.node.start)
    made = any(_path(word) == path for one in before for word in one.arguments)
    return NOTE if made or at_start(script, command) or not any(map(_depends, after)) else None


def _depends(command: Command) -> bool:
    """Return whether what a command does depends on the working directory."""
    if command.name in _FILE_COMMANDS:
        return any(not re.match(r"[-/~$\"]", word.text) for word in command.arguments)
    hook = command.name == "conda" and "shell.bash" in command.literals
    if hook or command.name in ("echo", "printf", "module", "ml", "cd", "export"):
        return _writes_here(command)
    words = [word.text for word in command.words if not _EXPRESSION.match(word.text)]
    relative = command.name == "make" or any(_RELATIVE.match(word.strip("\"'")) for word in words)
    return relative or _writes_here(command)


_EXPRESSION = re.compile(r"['\"]?[sy]([/|#@,]).+\1.*\1")  # of sed


# Commands that neither read nor write a file, unless a word names one.
_APART = re.compile(
    r"echo|printf|date|hostname|module|ml|export|sleep|exit|wait|set|unset|ulimit|true|:|which|type|ps|pwd|whoami|uname|"
    r"printenv|conda|deactivate|kill|free|df|squeue|scontrol|sacct|sstat|qstat|qdel|scancel|nproc|lscpu|"
    r"nvidia-(smi|cuda-mps-control)|rocm-smi|seq|expr|let|read|local|declare|typeset|shift|return|break|continue|trap|"
    r"umask|basename|dirname|id|uptime|limit|test|\["
)
# Commands that use the files which their words name, and no others.
_ON_FILES = re.compile(
    r"rm|rmdir|mkdir|mv|cp|ls|cat|touch|chmod|gzip|gunzip|zcat|head|tail|sort|cut|wc|tee|grep|sed|awk|ldd|bc|tr|uniq|cd|"
    r"samtools|bcftools|bedtools|tabix|bgzip|bwa|bowtie2|hisat2|minimap2|pairtools"
)
_INTERPRETERS = re.compile(r"python[\d.]*|Rscript|julia|perl|bash|sh|java")
_ABSOLUTE = re.compile(r"[\w.:=-]*?(/|~/|\$\{?(HOME|PBS_O_WORKDIR|SLURM_SUBMIT_DIR|PBS_NODEFILE)\b\}?)")
# A variable of the scheduler that is a number or a name.
_NUMBER = re.compile(r"\$\{?(PBS_(ARRAY\w*|JOBID)|SLURM_(ARRAY_\w+|JOB_?ID|CPUS\w*|NTASKS\w*))\b\}?")


def _is_apart(script: Script, command: Command) -> bool:
    """Return whether a command certainly does the same in another directory: it uses no files, or it runs a script, and
    the paths of both are absolute."""
    if _depends(command):
        return False
    words = [
        _NUMBER.sub("0", part.strip("\"'"))
        for word in (command.arguments if command.name == "exec" else command.words)
        for part in _parts(script.constants.text(word))
    ]
    if not words:
        return True  # exec with redirections only
    if command.name == "pwd" and command.node.around("variable_assignment") is not None:
        return False  # it keeps the name of the directory
    if len(words) == 1 and words[0].startswith("/"):  # a program that gets its paths from its environment
        return any(
            name != "PATH" and exported(node) and value.text[:1] == "/"
            for name, value, node in script.assignments
        )
    if command.name in ("source", "."):
        return _ABSOLUTE.match(words[-1]) is not None or words[1:2] == ["activate"]
    if _APART.fullmatch(command.name) or (command.name == "eval" and "conda" in command.node.text):
        return True
    unknown = any("$" in word and not _ABSOLUTE.match(word) for word in words)
    if _is_filter(command, words):
        return True
    if _ON_FILES.fullmatch(command.name):
        named = any(_ABSOLUTE.match(word) for word in words[1:])
        here = unknown or not {".", ".."}.isdisjoint(words)
        return not here and (named or command.node.under("pipeline") or bool(command.files("<")))
    return not unknown and _names_all(words)


def _reads_there(move: Command, command: Command) -> bool:
    """Return whether a command reads its input from the directory of a cd by its name: without it neither works."""
    folder = f"{_path(move.arguments[-1])}/"
    return any(word.unquoted.startswith(folder) for word in command.files("<"))


def _parts(text: str) -> list[str]:
    """Return the words that a text becomes; of an absolute path with the output of a command, what is in front of it."""
    path = re.match(r"(?=[/~])[^\s`]*?(?=`|\$\()", text)
    return [path[0]] if path is not None else text.split() or [""]


def _is_filter(command: Command, words: list[str]) -> bool:
    """Return whether a command is code that Perl runs on the lines of a pipeline."""
    code = words[0] == "perl" and re.match(r"-[a-z]*[np][a-z]*e|-e", "".join(words[1:2]))
    return bool(code) and len(command.arguments) == 2 and command.node.under("pipeline")


def _names_all(words: list[str]) -> bool:
    """Return whether the words of a program are several absolute paths, numbers and options, or those of an interpreter
    the path of a file and another one."""
    names = [word.rpartition("/")[2] for word in words]
    interpreters = (at for at, name in enumerate(names) if _INTERPRETERS.fullmatch(name))
    at = 0 if words[0].startswith("/") else next(interpreters, None)
    given = [word for word in words[(at or 0) + 1 :] if not re.fullmatch(r"-[^=]*|[\d.]+", word)]
    absolute = [_ABSOLUTE.match(word) is not None for word in given]
    if sum(absolute) + words[0].startswith("/") > _FOLDERS:  # names of files in the folders of its options
        absolute = [
            one or re.fullmatch(r"\w+", word) is not None for one, word in zip(absolute, given, strict=True)
        ]
    some = any(absolute[1:]) if at is not None and not words[0].startswith("/") else all(absolute)
    return len(absolute) > 1 and absolute[0] and some and not _WRITES_THERE.fullmatch(names[0])


_FOLDERS = 2  # absolute paths: a program and one folder
# Programs that write into the directory where they run, whatever their words are.
_WRITES_THERE = re.compile(r"cmake|configure|ctest|multiqc|matlab|STAR|unzip|tar|wget|curl")


def _writes_here(command: Command) -> bool:
    return any(re.match(r"[\w.]*[A-Za-z.]", file.unquoted) for file in command.files())


def folder_of(script: Script, option: DirectiveOption) -> str:
    """Return the folder of an output; empty without one, and for one that is known only when the job runs."""
    path = option.value.rpartition(":")[2] if script.dialect.copies_logs else option.value
    folder = os.path.dirname(path)
    return os.path.normpath(folder) if folder and not re.search(r"[%$~^]", folder) else ""


def exists(script: Script, folder: str) -> bool:
    """Return whether a folder is beside the script, is its own, or is below the directory of the job."""
    path = script.path(folder)
    moved = (script.heeded[key].value for key in script.dialect.directory_options if key in script.heeded)
    own = f"/{script.folder}".endswith(f"/{folder}")  # the script is submitted from above
    if folder == "." or path is None or own or any(map(os.path.isabs, moved)):
        return True
    return any(os.path.isdir(os.path.join(one, folder)) for one in _above(script))


def _above(script: Script) -> Iterator[str]:
    """Yield the folder of a script, and those above it up to the root of its repository."""
    place = os.path.abspath(script.folder or ".")
    yield place
    found = []
    while (parent := os.path.dirname(place)) != place and not os.path.exists(os.path.join(place, ".git")):
        place = parent
        found.append(place)
    if os.path.exists(os.path.join(place, ".git")):
        yield from found
