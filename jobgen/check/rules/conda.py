"""Rules about conda in a job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from jobgen.check.rule import NOTE, WARNING, rule, rule_once
from jobgen.check.rules.environment import START_UP
from jobgen.script.command_kinds import MODULE_COMMANDS
from jobgen.script.commands import Command
from jobgen.script.script import Edit, Hit, Script
from jobgen.script.syntax import LATER

_HOOK = b'eval "$(conda shell.bash hook)"'


@rule(
    "source-activate",
    WARNING,
    "source activate",
    """conda 4.4 has replaced `source activate` by `conda activate`. It still ships `bin/activate`, but
    `source` finds this file only if conda's `bin` is on PATH; with several installations the first on PATH
    is taken. (It is a note if something may put conda on PATH: a module, a start-up file, or the shell that
    submits, whose variables the job has. With Anaconda 5.3 and older, which have no such hook, and an Anaconda2 without a version there is no
    note.)""",
    message="nothing above puts conda on PATH: source activate finds no file, or that of another installation",
    fix='write eval "$(conda shell.bash hook)", then conda activate',
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00 --export=NONE
    set -euo pipefail
    source activate training
    srun --export=ALL python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    eval "$(conda shell.bash hook)"
    conda activate training
    srun --export=ALL python3 train.py
    """,
)
def source_activate(script: Script) -> Iterator[Hit]:
    chosen = script.heeded.get("--export")
    of_submitter = chosen is None or "ALL" in chosen.value.upper()  # sbatch passes its PATH by default
    providers = [command.node.start for command in script.commands if _provides_conda(command)]
    providers += [node.start for name, _, node in script.assignments if name in ("PATH", "BASH_ENV")]
    for command in script.own_running("source", "."):
        # The file may be that of a virtual environment, in a directory that the script enters.
        moved = any(one.node.start < command.node.start for one in script.named("cd", "pushd"))
        second = "conda activate" in command.statement.text.partition(command.node.text)[0]
        if command.literals[:1] == ["activate"] and not (second or (moved and len(command.arguments) == 1)):
            provided = any(start < command.node.start for start in providers)
            if provided or _login(script) or of_submitter:
                above = (one.node for one in script.commands if one.node.start < command.node.start)
                fix = "write conda activate" if any(_DEFINES.search(node.text) for node in above) else ""
                if not _OLD.search(script.tree.text):
                    yield Hit.at(command.node, "conda activate has replaced source activate", fix, NOTE)
            else:
                yield Hit(command.line)


_DEFINES = re.compile(r"\bconda\.sh\b|\bconda\b.*\bhook\b")

# Versions whose conda is older than 4.6, which has no hook, or may be.
_OLD = re.compile(
    r"(?i)python/2\.\d\S*-anaconda\b|conda(?:py)?[23]?[-/]?(?:[23]-)?(?:2\.\d|4\.[0-5](?!\d)|5\.[0-3])|(?:ana|mini)conda2(?![-/]?(?:\d|py))"
)


# Modules of compilers, libraries and tools, which bring no conda.
_NO_CONDA = re.compile(
    r"(?i)(cuda|cudnn|nccl|gcc|gnu|cmake|git|intel|openmpi|impi|mpich|mvapich|mkl|hdf5|ffmpeg|glibc|java|slurm|"
    r"pbs|tmux|vim|htop|zlib|openblas|fftw|nvidia|nvhpc|rocm|llvm|clang|boost|opencv|eigen|shared|load|add|unload|"
    r"purge|list|swap|use|avail|rm|del|restore|default\w*|opengl|xorg|devtoolset|binutils|gsl|lapack|blas)"
    r"(?![a-z])|-|/"
)


def _provides_conda(command: Command) -> bool:
    if command.name in ("module", "ml"):
        return any(not _NO_CONDA.match(word.unquoted) for word in command.arguments)
    if command.name in ("source", "."):
        return command.literals[:1] not in (["activate"], ["deactivate"])
    return command.name in _PROVIDERS


_PROVIDERS = ("eval", "conda", "mamba", "micromamba", "spack", "setpkgs", "vpkg_require", "soft", "use")


def _login(script: Script) -> bool:
    """Return whether the script runs in a login shell, which reads start-up files."""
    first = any("-l" in line.split() or "--login" in line for line in script.lines[:1])
    return first or script.dialect.login_shell


@rule(
    "conda-init",
    WARNING,
    "conda init in a job",
    """`conda init` edits `~/.bashrc`, for shells that start later. In the script itself `conda activate`
    fails as before, and every job edits the file again. (It is silent if the script reads the file before it
    activates an environment, and a note if the script reads conda's hook or `~/.bashrc` elsewhere, or activates none behind it.)""",
    message="conda init edits ~/.bashrc for later shells, and defines nothing in this one",
    fix='write eval "$(conda shell.bash hook)"',
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    conda init bash
    conda activate training
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    eval "$(conda shell.bash hook)"
    conda activate training
    srun python3 train.py
    """,
)
def conda_init(script: Script) -> Iterator[Hit]:
    for command in script.own_running("conda", "mamba"):
        if command.literals[:1] == ["init"] and not _is_read(script, command):
            if _is_hooked(script, command):
                fix = "remove it: another command defines conda activate"
                yield Hit.at(command.node, fix=fix, level=NOTE)
            elif not any("activate" in one.literals for one in _behind(script, command)):
                start, end = script.start_of(command.line), script.start_of(command.line + 1)
                alone = script.source[start:end].strip() == command.node.text.encode()
                edits = (Edit(start, end),) if alone else ()
                fix = "remove it: nothing here activates an environment"
                yield Hit.at(command.node, fix=fix, level=NOTE, edits=edits)
            else:
                yield Hit.at(command.node, edits=(Edit(command.node.start, command.node.end, _HOOK),))


def _is_hooked(script: Script, init: Command) -> bool:
    """Return whether another command defines ``conda activate`` before its first use behind ``conda init``."""
    later = (one.node.start for one in _behind(script, init) if "activate" in one.literals)
    end = next(later, init.node.start)
    before = (one.node.text for one in script.named("eval", "source", ".") if one.node.start < end)
    return any(_DEFINES.search(text) for text in before)


def _behind(script: Script, init: Command) -> Iterator[Command]:
    """Yield the commands of conda and of ``source`` behind ``conda init``."""
    found = script.own_running("conda", "mamba", "micromamba", "source", ".")
    return (one for one in found if one.node.start > init.node.start)


_DEFINES = re.compile(
    r"conda[\w ._-]*hook|conda\.sh\b|conda\S*/activate\b|conda_setup|\.bashrc\b|^(source|\.)\s+activate\b"
)


def _is_read(script: Script, init: Command) -> bool:
    """Return whether the script sources a start-up file behind ``conda init``, before it activates an environment."""
    for command in script.commands:
        if command.node.start < init.node.start:
            continue
        names = (word.unquoted for word in command.arguments)
        if command.name in ("source", ".") and any(name.endswith(START_UP) for name in names):
            return True
        if command.literals[:1] == ["activate"]:
            break
    return False


@rule_once(
    "conda-hook",
    WARNING,
    "conda activate without its hook",
    """`conda activate` is a shell function that conda's hook defines. A batch script on Slurm is not a
    login shell and reads no start-up file.""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    conda activate training
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    eval "$(conda shell.bash hook)"
    conda activate training
    srun python3 train.py
    """,
)
def conda_hook(script: Script) -> Iterator[Hit]:
    ready = [
        command.node.start
        for command in script.named("source", ".", "eval", "module", "ml", "conda", "mamba")
        if command.name in ("source", ".") or "activate" not in command.literals
    ]
    if _login(script) or "BASH_ENV" in script.values:
        return
    for command in script.own_running("conda", "mamba"):
        if command.literals[:1] == ["activate"] and not any(start < command.node.start for start in ready):
            start = script.start_of(command.line)
            indent = script.source[start : command.node.start]
            alone, hook = not indent.strip(), _HOOK
            if re.search(r"\bzsh\b", script.line(1)):
                hook = _HOOK.replace(b"bash", b"zsh")
            edits = (Edit(start, start, indent + hook + b"\n"),) if alone and command.name == "conda" else ()
            reason = f"{command.name} activate is a shell function, which is not defined here"
            fix = f"write {hook.decode()} before it" + ", and conda in its place" * (command.name == "mamba")
            yield Hit.at(command.node, reason, fix, edits=edits)


@rule_once(
    "module-after-environment",
    WARNING,
    "A module that takes the place of an environment",
    """`module load` puts the directory of its programs in front of `PATH`. A module of Python, or one that brings it, such
    as PyTorch without a module of Python in front of it, behind an activated environment replaces the environment's `python`, `torchrun` and `pip` by its own, which
    lack the packages. `module purge` behind a virtual environment takes the Python away that it was made with. (It is a note
    for PyTorch, TensorFlow and the like: the job may need the packages of the module, too.)""",
    fix="load the modules first, then activate the environment",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    source "$HOME/venv/bin/activate"
    module load python/3.11
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    module load python/3.11
    source "$HOME/venv/bin/activate"
    srun python3 train.py
    """,
)
def module_after_environment(script: Script) -> Iterator[Hit]:
    changes = _changes(script)
    environment: _Change | None = None  # the last one that is active
    python = ""  # the last module of Python in front of it
    for at, change in enumerate(changes):
        pythons = [name for name in change.names if _PYTHON.search(name)]
        if environment is not None and _PLAIN_PYTHON.search(python):  # which these do not load again
            pythons = [name for name in pythons if not _ON_PYTHON.search(name)]
        if change.kind == "activate":
            environment = change
        elif change.kind == "deactivate":
            environment = None
        elif environment is None:
            python = next(iter(pythons), python if change.kind == "load" else "")
        elif pythons if change.kind == "load" else python and environment.names == ("venv",):
            after = changes[at + 1 :]
            again = any(_PYTHON.search(name) for one in after for name in one.names)
            activates = any(one.kind == "activate" for one in after)
            later = (one.node for one in script.commands if one.node.start > change.command.node.start)
            by_path = any(_BY_PATH.search(node.text) for node in later)  # Python, or a launcher of it
            if activates or (again and not pythons) or not by_path:
                return
            line = environment.command.line
            reason = f"this unloads {python}, the Python of the environment of line {line}"
            level = NOTE if pythons and all(map(_ON_PYTHON.search, pythons)) else None
            if pythons:
                reason = f"the module {pythons[0]} comes in front of the environment of line {line}: python or its packages are the module's"
            yield Hit.at(change.command.node, reason, level=level)


_BY_PATH = re.compile(r"(?<![\w/.$-])(?:python[\d.]*|torchrun|accelerate|deepspeed|pip3?)\s")


class _Change(NamedTuple):
    """A command that changes where programs are found: what it does, and the modules."""

    command: Command
    kind: str
    names: tuple[str, ...] = ()


def _changes(script: Script) -> list[_Change]:
    """Return the changes outside of functions, branches and loops."""
    found = (one for command in script.own_runs if (one := _change(command)) is not None)
    return [one for one in found if not one.command.node.under(*LATER)]


def is_in_front_of_modules(script: Script, at: int) -> bool:
    """Return whether an environment of conda, which may bring programs of its own, is activated behind all modules."""
    before = [one for one in _changes(script) if one.command.node.start < at]
    last = before[-1] if before else None
    return last is not None and last.kind == "activate" and last.names == ("conda",)


def _change(command: Command) -> _Change | None:
    words = [word for word in command.literals if not word.startswith("-") or command.name == "ml"]
    changes = words[:1] in (["activate"], ["deactivate"])
    if changes and command.name in ("conda", "mamba", "micromamba", "pyenv"):
        return _Change(command, words[0], ("conda",))
    if command.name == "deactivate":
        return _Change(command, "deactivate")
    if command.name in ("source", ".") and command.arguments:
        file = words[0] if words else command.arguments[0].unquoted
        venv = file.endswith("bin/activate") and len(words) < 2
        found = _Change(command, "activate", ("venv" if venv else "conda",))
        return found if venv or (words and "activate" in file) else None
    if command.name not in ("module", "ml") or not words:
        return None
    if words[0] in ("purge", "reset"):
        return _Change(command, "purge")
    if words[0] in ("load", "add", "swap", "switch"):
        return _Change(command, "load", tuple(words[1:]))
    loads = command.name == "ml" and not words[0].startswith("-") and words[0] not in MODULE_COMMANDS
    return _Change(command, "load", tuple(words)) if loads else None


# Modules of Python, and those that bring one.
_PYTHON = re.compile(
    r"(?i)(?:^|/)(?:cray-)?(?:i?python\d*|intelpython\d*|anaconda\d*|miniconda\d*|miniforge\d*|mambaforge|conda|mamba|"
    r"pytorch|tensorflow|scipy-bundle|jupyter\w*)(?=[/.\d_-]|$)"
)
_PLAIN_PYTHON = re.compile(r"(?i)(?:^|/)python\d*(?:[/-][\d.]|$)")
_ON_PYTHON = re.compile(r"(?i)pytorch|tensorflow|scipy-bundle|jupyter")


@rule_once(
    "purged-modules",
    WARNING,
    "module purge behind the modules",
    """`module purge` unloads all modules, also those that the script has just loaded. What is started behind it finds none
    of them. (It is silent if other modules are loaded behind it, or if something was built or run with these.)""",
    fix="write module purge first",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    module load cuda/12.4 python/3.11
    module purge
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    module purge
    module load cuda/12.4 python/3.11
    srun python3 train.py
    """,
)
def purged_modules(script: Script) -> Iterator[Hit]:
    changes = [one for one in _changes(script) if not one.command.node.under("command_substitution")]
    for at, change in enumerate(changes):
        before = changes[at - 1] if at else None
        if change.kind != "purge" or before is None or before.kind != "load":
            continue
        own = (one.command.node.start for one in changes)
        first, last = before.command.node.start, change.command.node.start
        between = {
            one.name for one in script.commands if first < one.node.start < last and one.node.start not in own
        }
        others = any(one.kind != "purge" for one in changes[at:]) or any(
            script.named("spack", "conda", "eval")
        )
        if not others and between <= {"module", "ml", "echo", "export", "set", ":"}:
            reason = (
                f"this unloads {' '.join(before.names)} of line {before.command.line} before anything uses it"
            )
            yield Hit.at(change.command.node, reason)
