"""Rules about the environment that launchers, and commands such as ssh, pass to other nodes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.ranks.environment import RankEnvironment, reads_others
from jobgen.check.ranks.model import RankGroup, code, is_work, ranks, start_of
from jobgen.check.ranks.passing import filters
from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.check.rules.deepspeed import run_by
from jobgen.check.rules.rank_environment import OF_LIBRARIES, needs, set_in
from jobgen.check.rules.rank_numbers import NUMBERS
from jobgen.errors import shown
from jobgen.launch.wrappers import REMOTE
from jobgen.script import code_files
from jobgen.script.commands import Command, commands
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, assignments, expansions, exported, is_plain, parse

_NAMED = 4  # variables in a message
# Prefixes of the variables that DeepSpeed's pdsh runner exports.
_OF_LOGIN = ("HOME", "USER", "LOGNAME", "SHELL", "PWD", "TERM", "HOSTNAME", "TMPDIR")
_FORWARDED = ("MLFLOW", "PYTHON", "MV2", "UCX", "NCCL", "ASCEND", "HCCL", "LD_LIBRARY")

_SILENT = (
    "PATH", "MASTER_", "PDSH_", "DS_ENV_FILE", "CUDA_VISIBLE_DEVICES", "SLURM_", "PBS_", "RANK",
    "WORLD_SIZE", "DLTS_",
)  # fmt: skip


@rule_once(
    "unforwarded",
    WARNING,
    "Variables that stay on the first node",
    """Over pdsh deepspeed forwards the variables that begin with NCCL, PYTHON, MV2, UCX and MLFLOW (on
    Ascend ASCEND, HCCL, LD_LIBRARY and PATH). All others are set only on the first node, unless the file
    named by `DS_ENV_FILE` contains them as `NAME=VALUE` lines, without blank lines and comments.""",
    fix='write them as NAME=VALUE into a file of the job and export DS_ENV_FILE="$file"',
    bad="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=4/' > "$hostfile"
    export OMP_NUM_THREADS=8
    deepspeed --hostfile "$hostfile" train.py
    """,
    good="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=4/' > "$hostfile"
    export DS_ENV_FILE=$PWD/environment.$SLURM_JOB_ID
    echo OMP_NUM_THREADS=8 > "$DS_ENV_FILE"
    deepspeed --hostfile "$hostfile" train.py
    """,
)
def unforwarded(script: Script) -> Iterator[Hit]:
    own = "deepspeed_env" in script.tree.text or "DS_ENV_FILE" in script.values
    for launch in run_by(script, "pdsh") if script.request.several and not own else ():
        if not launch.has("--hostfile", "-H") or launch.has("--no-ssh") or launch.outer:
            continue
        lost = [
            name
            for name, _, node in script.assignments
            if exported(node)
            and node.parent is not None
            and node.parent.type == "declaration_command"
            and not name.startswith((*_FORWARDED, *_SILENT))
            and name not in _OF_LOGIN
            and node.start < launch.command.node.start
        ]
        if lost:
            names = ", ".join(dict.fromkeys(lost))
            yield Hit(launch.line, f"deepspeed does not forward these variables to the other nodes: {names}")


@rule_once(
    "shared-deepspeed-env",
    WARNING,
    "One .deepspeed_env for all jobs",
    """Every job reads the `.deepspeed_env` in the home directory. Concurrent jobs mix their variables, and
    an old file changes later jobs.""",
    message="~/.deepspeed_env is the same file for all jobs: concurrent jobs mix their variables",
    fix="write a file for this job only, and name it in DS_ENV_FILE",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    echo OMP_NUM_THREADS=8 > ~/.deepspeed_env
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    export DS_ENV_FILE=$PWD/environment.$SLURM_JOB_ID
    echo OMP_NUM_THREADS=8 > "$DS_ENV_FILE"
    """,
)
def shared_ds_env(script: Script) -> Iterator[Hit]:
    for node in script.tree.all("file_redirect"):
        target = node.get("destination")
        text = target.unquoted if target is not None else ""
        if text.endswith("/.deepspeed_env") and text.startswith(("~", "$HOME", "${HOME}")):
            yield Hit(node.line)


@rule(
    "deepspeed-env-lines",
    ERROR,
    "Comments in DeepSpeed's environment file",
    """The launcher splits each line of `.deepspeed_env`, or of the file named by `DS_ENV_FILE`, at its `=`.
    On a blank line or a comment it fails with a traceback.""",
    message="a blank line or a comment in DeepSpeed's environment file crashes the launcher",
    fix="write NAME=VALUE lines only",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    export DS_ENV_FILE=$PWD/environment.$SLURM_JOB_ID
    cat > "$DS_ENV_FILE" <<END
    # the network
    UCX_TLS=all
    END
    """,
    good={"# the network": ""},
)
def env_lines(script: Script) -> Iterator[Hit]:
    for node in script.tree.all("redirected_statement"):
        body = next(node.all("heredoc_body"), None)
        target = " ".join(part.text for part in node.all("file_redirect"))
        if body is None or ("deepspeed_env" not in target and "DS_ENV_FILE" not in target):
            continue
        lines = body.text.rstrip("\n").split("\n")
        if any(not line.strip() or line.lstrip().startswith("#") for line in lines):
            yield Hit(body.line)


@rule(
    "unpassed-variable",
    WARNING,
    "An exported variable that does not reach the ranks",
    """`ssh`, `pdsh`, `clush` and `pbsdsh` start programs without the environment of the script. Over ssh the
    `mpirun` of Open MPI passes only the variables that `-x` names; that of MPICH and Intel MPI passes all,
    unless `-genvnone` or `-genvlist` says otherwise, and `srun` all without `--export`. (It is an error if the
    Python file beside the script reads the variable, and a note if the scheduler may pass it.)""",
    bad="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes,repeated-count
    #PBS -l select=2:ncpus=8:ngpus=4 -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    export NCCL_DEBUG=INFO
    main=$(head -n 1 "$PBS_NODEFILE")
    while read -r host; do
        ssh -n "$host" "torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$main:0 /opt/site/train.py" &
    done < "$PBS_NODEFILE"
    wait
    """,
    good={
        "export NCCL_DEBUG=INFO": "",
        'ssh -n "$host" "torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$main:0 /opt/site/train.py" &': 'ssh -n "$host" "NCCL_DEBUG=INFO torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$main:0 /opt/site/train.py" &',
    },
)
def unpassed(script: Script) -> Iterator[Hit]:
    environment = RankEnvironment.of(script)
    yield from _of_started(script)
    yield from _of_quotes(script)
    yield from _of_files(script)
    for one in ranks(script):
        exported_names = environment.exported_before(one.start)
        if one.inner is not None and not is_work(script, one.inner):
            continue
        source = one.program.source
        proof = source.needs if source is not None else frozenset()
        read = proof | needs(one) | {name for name in exported_names if OF_LIBRARIES.fullmatch(name)}
        sets, reads = _of_code(one)
        of_tasks = NUMBERS.keys() & (proof | reads) | sets & proof
        for found in filters(script, one) if exported_names or of_tasks else ():
            names = exported_names | (of_tasks if found.of_tasks else frozenset())
            names, needed = (names - sets, read | reads) if found.around_code else (names, read)
            lost = sorted(name for name in names & needed if found.drops(name))
            if lost:
                more = " and others" if len(lost) > _NAMED else ""
                level = None if found.certain else NOTE
                level = ERROR if found.certain and proof.intersection(lost) else level
                reason = f"{found.cause}: {one.name} does not get {', '.join(lost[:_NAMED])}{more}"
                yield Hit(one.line, reason, found.fix, level)
                break


def _of_started(script: Script) -> Iterator[Hit]:
    """Yield the variables of a job that a script reads which ssh or pbsdsh starts: it has none of them."""
    if script.starter is None or not script.starter.call.remote or RankEnvironment.of(script).is_open:
        return
    above, call = script.starter
    environment = RankEnvironment.of(above)
    around = call.file.around("command")
    own = {*script.values, *script.loop_variables, *re.findall(r"(\w+)=", around.text if around else "")}
    own |= {word for one in script.named("read", "mapfile", "readarray") for word in one.literals}
    start, seen = os.path.basename(call.remote), set[str]()
    exported_names = environment.exported_before(call.file.start)
    lost = sorted(name for name in exported_names - own if OF_LIBRARIES.fullmatch(name))
    effect = f"{start} passes no variables to the other nodes"
    exports = f"which {above.name or 'another script'} exports"
    if lost and (first := next(iter(ranks(script)), None)):
        reason = f"{effect}: {first.name} does not get {', '.join(lost[:_NAMED])}, {exports}"
        yield Hit(first.line, reason, "set them in this script")
    for name, node in script.expansions:
        known = name in own or name in seen or name in _OF_LOGIN or name.endswith("PATH")
        if known or not is_plain(node) or name not in exported_names:
            continue
        seen.add(name)
        fix = f"write it as an argument of this script, or set it here: {start} ... {name}=..."
        yield Hit.at(node, f"{effect}: ${name}, {exports}, is not set here", fix)


def _on_other_nodes(script: Script) -> Iterator[tuple[Command, str, tuple[Node, ...]]]:
    """Yield the commands that start others on another node, their names, and the words behind these."""
    for command in script.commands:
        at, start = start_of([script.constants.value(word) for word in command.words])
        if start in REMOTE and not command.node.under("function_definition"):
            yield command, start, command.words[at + 1 :]


def _of_quotes(script: Script) -> Iterator[Hit]:
    """Yield the variables in single quotes, or behind a backslash, that a shell on another node is to expand: it
    has none of them."""
    for command, start, words in _on_other_nodes(script):
        own_task = script.is_pbs and start in ("pbsdsh", "pbs_tmrsh")  # it gets the variables of PBS
        for text in (word for word in words if word.type in ("raw_string", "string")):
            if text.type == "string" and "\\$" not in text.text:
                continue
            tree = code(text)
            inner = list(commands(tree))
            if not inner or "SendEnv" in command.node.text:
                continue
            if reads_others(one for one in inner if one.name in ("source", ".", "eval")):
                continue
            known = set_in(tree.text)
            for name in _passed_names(text, tree):
                of_script = name in script.values or name in script.loop_variables
                of_job = not own_task and re.match(r"(SLURM|PBS)_", name) is not None
                if name in {*known, *_OF_LOGIN} or name.endswith("PATH") or not (of_script or of_job):
                    continue
                whose = "a variable of the job" if of_job else "set in this script"
                why, fix = "the backslash passes its name", "leave the backslash out"
                if text.type == "raw_string":
                    why = "single quotes pass its name"
                    fix = "write the code in double quotes: this script then expands it"
                where = f"in the code that {start} starts on another node"
                yield Hit.at(text, f"${name} is empty {where}: it is {whose}, and {why}", fix)
                return


def _of_files(script: Script) -> Iterator[Hit]:
    """Yield the variables of this script in files that it writes as they stand, and that run on another node."""
    files = code_files.written(script.commands, script.constants, literal=True)
    for command, start, words in _on_other_nodes(script) if files else ():
        inner = (
            one for text in words if text.type in ("raw_string", "string") for one in commands(code(text))
        )
        for word in (*words, *(word for one in inner for word in one.words)):
            file = files.get(name := code_files.name(word, script.constants))
            tree = parse(file[0].encode(), file[1]) if file is not None else None
            if tree is None or any(one.name in ("source", ".", "eval") for one in commands(tree)):
                continue
            known = {*set_in(tree.text), *set_in(command.node.text), *_OF_LOGIN}
            for variable, node in expansions(tree):
                of_script = variable in script.values and variable not in known
                if of_script and is_plain(node) and "PATH" not in variable:
                    reason = f"${variable} is empty in {name}, which {start} starts on another node: it is set in this script"
                    fix = "leave out the quotes around the word behind <<: this script then writes the value"
                    yield Hit.at(node, reason, fix)
                    return


def _passed_names(text: Node, tree: Node) -> Iterator[str]:
    """Yield the variables whose names a text passes to another shell, which reads them without a default."""
    if text.type == "string":
        pairs = re.findall(r"(?<!\\)\\\$(?:([A-Za-z_]\w*)|\{(\w+)\})", text.text)
        yield from (name or braced for name, braced in pairs)
        return
    for name, node in expansions(tree):
        if is_plain(node):
            yield name


def _of_code(one: RankGroup) -> tuple[frozenset[str], frozenset[str]]:
    """Return the variables that the code of each task sets, and the numbers of its task that it reads."""
    if one.text is None:
        return frozenset(), frozenset()
    tree = code(one.text)
    reads = frozenset(name for name, _ in expansions(tree)) & NUMBERS.keys()
    return frozenset(name for name, _, _ in assignments(tree)), reads


@rule_once(
    "remote-environment",
    WARNING,
    "An environment that is active on the first node only",
    """`conda activate`, `source venv/bin/activate` and `module load` change the variables of the shell of the script. A
    program that ssh, pdsh or pbsdsh starts on another node has none of them: its `python` and `torchrun` are
    those of the system, or are not found, unless a start-up file of the account activates the same.""",
    bad="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes,repeated-count
    #PBS -l select=2:ncpus=8:ngpus=4 -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    source /opt/site/venv/bin/activate
    main=$(head -n 1 "$PBS_NODEFILE")
    while read -r host; do
        ssh -n "$host" "torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$main:0 /opt/site/train.py" &
    done < <(sort -u "$PBS_NODEFILE")
    wait
    """,
    good={
        'ssh -n "$host" "torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$main:0 /opt/site/train.py" &': 'ssh -n "$host" "source /opt/site/venv/bin/activate; torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$main:0 /opt/site/train.py" &'
    },
)
def remote_environment(script: Script) -> Iterator[Hit]:
    if not script.in_job or script.starter is not None:
        return
    for one in ranks(script):
        launch = next((launch for launch in one.chain if launch.remote), None)
        if launch is None or one.command.node.under("function_definition"):
            continue
        active = [each for each in script.own_runs if each.node.start < one.start and _activates(each)]
        names = re.findall(r"\$\{?(\w+)", text := one.command.statement.text)
        whole = "\n".join([text, *(value.text for name in names for value in script.values.get(name, ()))])
        named = re.search(rf"(^|[\s\"';&(]){re.escape(launch.kind)}\b", whole)
        sets = _ANY_ENVIRONMENT.search(whole) or not named
        if active and not sets:
            how = active[-1].node.text.split("\n")[0]
            start = f"{os.path.basename(launch.remote)} starts {launch.title}"
            reason = f"{start} without the environment of this script ({shown(how)}): it is not found there, or another one"
            yield Hit(one.line, reason, "activate it in the command, too")


def _activates(command: Command) -> bool:
    words = command.literals
    if command.name in ("source", "."):
        return "activate" in command.node.text
    return command.name in ("conda", "mamba", "micromamba") and words[:1] == ["activate"]


# Words of a command that may set the environment of another node, or that name the program by its path.
_ANY_ENVIRONMENT = re.compile(
    r"activate|\bsource\b|\bmodule\b|\bml\b|PATH|(^|[\s;&\"'])\. |bash -\w*[il]|conda|uv run|\benv\b|apptainer|singularity|docker|podman|\.sh\b"
)
