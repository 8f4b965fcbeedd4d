"""Rules about the environment of a job: start-up files, paths and users."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.ranks.environment import reads_others
from jobgen.check.rule import NOTE, WARNING, rule, rule_once
from jobgen.script.commands import Command
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, literal

START_UP = (".bashrc", ".bash_profile", ".profile", ".zshrc")


@rule(
    "bashrc",
    NOTE,
    "A shell start-up file in a job",
    """Start-up files are for interactive and login shells. Many return at once in other shells, some wait for
    input, and they differ between users.""",
    fix="write what the job needs of it in its place: modules, variables, an environment",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    source ~/.bashrc
    srun python3 train.py
    """,
    good={"source ~/.bashrc": "module load cuda python"},
)
def bashrc(script: Script) -> Iterator[Hit]:
    if not script.in_job and any(line.startswith("#!/") for line in script.lines[1:]):
        return  # lines for a person, with a script in between
    for command in script.named("source", "."):
        name = command.arguments[0].unquoted if command.arguments else ""
        if name.endswith(START_UP) and re.search("~|HOME|/home", name):
            own = re.search(r"[~$]", name) is not None
            whose = "differs between users" if own else "is the file of one user"
            reason = f"{name} is for login shells: it {whose}"
            if name.endswith("rc"):
                reason = f"{name} is for interactive shells: it may return at once in a job, and {whose}"
            yield Hit.at(command.node, reason, _fix_for_conda(script, command))


def _fix_for_conda(script: Script, command: Command) -> str:
    """Return the fix where a start-up file defines conda for an activation below it; empty for others."""
    later = [one for one in script.commands if one.node.start > command.node.end]
    activates = {one.name for one in later if one.literals[:1] == ["activate"]}
    old, by_module = activates & {"source", "."}, any(map(_MODULE.match, (one.node.text for one in later)))
    known = any(_HOOK.match(one.node.text) for one in later) or (by_module and "conda" not in activates)
    if known or not activates & {"source", ".", *_SET_UPS}:
        return ""
    also = ", and conda activate for source activate" if old else ""
    set_up = next((text for name, text in _SET_UPS.items() if name in activates), _SET_UPS["conda"])
    return f"{set_up}{also}; write what else the job needs of the file, too"


_MODULE = re.compile(r"(?i)(?:module|ml)\s.*(?:conda|python)")
_DIR = "in its place: conda info --base prints DIR"
_SET_UPS = {
    "micromamba": 'write export MAMBA_ROOT_PREFIX=DIR and eval "$(BIN/micromamba shell hook --shell bash)" in its place',
    "mamba": f"write source DIR/etc/profile.d/conda.sh and source DIR/etc/profile.d/mamba.sh {_DIR}",
    "conda": f"write source DIR/etc/profile.d/conda.sh {_DIR}",
}


_SOURCES = r"(source|\.)\s+[\"']?(?:/|~/|\$\{?HOME\b)\S+"
_HOOK = re.compile(rf"{_SOURCES}/profile\.d/conda\.sh")


@rule_once(
    "personal-path",
    NOTE,
    "The home directory of one user",
    """A script that names the home directory of a user depends on the files of this user. 21 of 45 public
    scripts do so. (Directories that a group shares by their names, such as `/home/projects`, and homes in
    containers are not reported.)""",
    fix="write $HOME if this user submits the script, else a variable at the top that each user sets",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 /home/alice/train.py
    """,
    good={"srun python3 /home/alice/train.py": 'srun python3 "$HOME/train.py"'},
)
def personal_path(script: Script) -> Iterator[Hit]:
    inner, read = _targets(script.tree.text), _read(script)
    for node in script.tree.all("word", "string_content", "raw_string"):
        for match in _HOME.finditer(node.text):
            inside = _is_inside(node, match.start()) or _is_behind(node, match.start())
            inside = inside or f"{match[0]}/".startswith(inner) or _is_unread(node, read)
            inside = inside or _ONE_FILE.fullmatch(match[0]) is not None or _is_of_user(node, match.end())
            if not _SHARED.search(match[0]) and not inside:
                # /home/GROUP/A/ALICE, /home/users/GROUP/ALICE
                parts = re.findall(r"^(/\w+/(?:users/|home/)?[^/]+)((?:/[^/](?=/))?(?:/[^/]+)?)", match[0])
                [(home, below)] = parts
                place = "below the home" if below else "the home"
                reason = f"{home}{below} is {place} directory of one user: the script depends on it"
                yield Hit.at(node, reason)


_HOME = re.compile(r"(?<![\w$}.])/(home|Users|users)(/[\w.@+-]+)+")
_ONE_FILE = re.compile(
    r"/home/[\w+-]+\.(py|sh|jl|R|m|c|cpp|x|exe|out|txt|ya?ml|json|sif|img)"
)  # in a container
# Directories of a group, homes in containers and on machines of clouds, and names to be filled in.
_SHARED = re.compile(
    r"(?i)/(shared?|common|public|people|data-?_?sets?)(/|$)"
    r"|^/\w+/(data|groups?|research|projects?|projets?|proj|soft[\w.-]*|apps?|opt|modules?|modulefiles|packages|easybuild|spack|scratch|work|store"
    r"|local|user|username|usr|your\w*|my\w*|name|me|x+|ubuntu|centos|rocky|debian|fedora|ec2-user|opc|vagrant|jovyan|runner|docker|container|root|linuxbrew)(/|$)"
)


def _read(script: Script) -> set[str] | None:
    """Return the variables that a script reads or exports; None if other files may read any."""
    if reads_others(script.named("source", ".", "eval")):
        return None
    declared = script.tree.all("declaration_command")
    exported = (word.text for one in declared for word in one.all("variable_name"))
    return {*(name for name, _ in script.expansions), *exported}


def _is_unread(node: Node, read: set[str] | None) -> bool:
    """Return whether a text is the value of a variable that nothing reads."""
    above = node.around("command", "variable_assignment", "declaration_command")
    if read is None or above is None or above.type != "variable_assignment" or above.parent is None:
        return False
    name = above.text.partition("=")[0]
    passed = above.parent.type in ("command", "declaration_command") or re.search("PATH|^HOME$|^TMP", name)
    return not passed and name not in read


def _targets(text: str) -> tuple[str, ...]:
    """Return the directories at which containers have others: ``/home/`` of ``--bind /data/ann:/home``."""
    mounts = [mount.split(":") for match in _MOUNTS.finditer(text) for mount in match[1].split(",")]
    pairs = [(mount[0].rstrip("/"), mount[1].rstrip("/")) for mount in mounts if len(mount) > 1]
    return tuple(f"{target}/" for source, target in pairs if target not in ("", source))


_MOUNTS = re.compile(
    r"(?:\s-[Bv]|--bind|--volume|--container-mounts|\w*(?:BIND|MOUNT)\w*)[=\s][\"']?([^\s\"']+)"
)


def _is_behind(node: Node, start: int) -> bool:
    """Return whether a path goes on with the value of a variable or a command: ``$DISK/users/alice``."""
    before = node.source[max(0, node.start - 1) : node.start].decode("latin-1")
    joined = node.parent is not None and node.parent.type == "concatenation" and node.previous() is not None
    return start == 0 and (joined or re.match(r"[\w})`]", before) is not None)


def _is_of_user(node: Node, end: int) -> bool:
    """Return whether the name of the user follows a part of a path: ``/home/group/$USER``."""
    behind = node.source[node.start + len(node.text[:end].encode()) :][:_FAR].decode("latin-1")
    return re.match(r"/(?:\$\{?(?:USER|LOGNAME)\b|(?:\$\(|`)whoami\b)", behind) is not None


_FAR = 12  # characters


def _is_inside(node: Node, start: int) -> bool:
    """Return whether a path is one in a container, or only in a message."""
    above = node.around("command", "variable_assignment")
    if above is None or re.match(r"(SINGULARITY|APPTAINER)ENV_", above.text):
        return above is not None
    if above.type != "command" or not above.name:
        return False
    before = node.source[above.start : node.start].decode("utf-8", "replace")
    return (
        above.name in ("echo", "printf")
        or re.search(r"\b(ch-run|docker|podman|shifter)\s.*\s--\s", before, re.S) is not None
        or node.text[:start].endswith((":", "target=", "dst="))
        or (start == 0 and node.source[node.start - 1 : node.start] == b":")
    )


@rule(
    "root-mpirun",
    WARNING,
    "mpirun as root with one variable of two",
    """In a container the user is often root. Open MPI's mpirun runs as root only if both variables are
    set.""",
    bad="""
    #!/bin/bash
    #SBATCH --ntasks=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    export OMPI_ALLOW_RUN_AS_ROOT=1
    mpirun /opt/site/solver
    """,
    good={
        "export OMPI_ALLOW_RUN_AS_ROOT=1": "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    },
)
def root_mpirun(script: Script) -> Iterator[Hit]:
    names = {name: node for name, _, node in script.assignments}
    for prefix in ("OMPI", "PRTE"):
        first, second = f"{prefix}_ALLOW_RUN_AS_ROOT", f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"
        if (first in names) != (second in names):
            there, missing = (first, second) if first in names else (second, first)
            reason = f"mpirun runs as root only if both {first} and {second} are set"
            yield Hit(names[there].line, reason, f"export {missing}=1, too")


# Variables for the search of a fault, and what they do.
_OF_DEBUGGING = {
    "CUDA_LAUNCH_BLOCKING": ("1", "each kernel waits for the one before"),
    "ASCEND_LAUNCH_BLOCKING": ("1", "each kernel waits for the one before"),
    "AMD_SERIALIZE_KERNEL": ("[123]", "each kernel waits for the one before"),
    "TORCH_DISTRIBUTED_DEBUG": ("(?i)DETAIL", "each collective operation is checked by one more"),
    "NCCL_DEBUG": ("(?i)TRACE", "NCCL prints each call"),
}


@rule(
    "debug-setting",
    NOTE,
    "A setting for debugging in a training",
    """Variables such as `CUDA_LAUNCH_BLOCKING=1` help to find the place of a fault, and slow down the program: the
    processor no longer works ahead of the GPU. They often stay in a script after the fault was found. (It is silent
    where a comment says why the setting stays, and with Kokkos, which asks for it.)""",
    fix="remove it when the fault is found",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=24:00:00
    set -euo pipefail
    export CUDA_LAUNCH_BLOCKING=1
    srun python3 train.py
    """,
    good={"#SBATCH --time=24:00:00": "#SBATCH --time=01:00:00", "export CUDA_LAUNCH_BLOCKING=1": ""},
)
def debug_setting(script: Script) -> Iterator[Hit]:
    for name, value, node in script.assignments:
        pattern, effect = _OF_DEBUGGING.get(name, ("", ""))
        text = literal(value)
        short = (script.request.walltime or 7200) < 7200
        comment = _MEANT.search(f"{script.line(node.line - 1)}\n{script.line(node.line)}")
        # With unified memory Kokkos needs it. With NCCL_DEBUG_SUBSYS it prints the calls of these parts.
        of_kokkos = name == "CUDA_LAUNCH_BLOCKING" and re.search("(?i)kokkos", script.tree.text)
        meant = comment or of_kokkos or f"{name}_SUBSYS" in script.values
        if pattern and text and re.fullmatch(pattern, text) and script.is_batch and not short and not meant:
            yield Hit.at(node, f"{name}={text} is for the search of a fault: {effect}")


# A comment that says why the setting stays.
_MEANT = re.compile(
    r"(?i)#.*\b(?:do ?n[o']t remove|keep|hangs?|deadlocks?|work-?around|needed|requires?d?|must|crash(?:es)?|fix(?:es)?)\b"
)
