"""The MPI that a script uses, by its modules, its variables and the options of mpirun."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from jobgen.launch.command_line import is_python
from jobgen.launch.launchers import DEFAULT_MPI, MPI_FLAVOURS
from jobgen.script.command_kinds import TOOLS
from jobgen.script.script import Script
from jobgen.script.syntax import Node, literal
from jobgen.script.word_lists import code_text

# Beginnings of modules of libraries and programs, whose names have the MPI that they are built for.
_BUILT = re.compile(
    r"(?:\S*/)?(?:p?hdf|fftw|p?netcdf|petsc|slepc|boost|lammps|gromacs|namd|esmf|vasp|espresso|quantum|openfoam"
    r"|scotch|metis|parmetis|scalapack|mumps|hypre|trilinos|cp2k|amber|relion|tensorflow|python|mpi4py|elpa|wrf)"
)
_COMPILERS = re.compile(r"(?:^|/)(?:intel|oneapi|composer\w*|psxe)(?![a-z])")  # which may bring an MPI
_BUILT_BY_OTHERS = re.compile(r"(.*?)/v?\d[\w.]*-(?!.*\bi(?:ntel|impi|ompi|omkl)).+")
_PROGRAMS = r"[-_](?:benchmark|test|example|sample|tutorial)"  # intel-mpi-benchmarks is for any MPI
# Open MPI before PMIx, which version 2 brought.
_OPEN_MPI_1 = re.compile(r"(?i)open-?mpi([/_-]?(gcc|gnu|intel|pgi)[\w.]*)?[/_-]?v?1\.\d+(\.\d+)?(?![\d.])")
_NETWORK_OF_CRAY = re.compile(r"MPICH_(GNI|OFI_NIC|RANK_REORDER|SMP_SINGLE)_")
_DEEPEST = 4  # functions in each other
_UNLOADS = ("purge", "reset", "unload", "rm", "del")
_LAUNCHER = re.compile(r"/(mpirun|mpiexec)[\w.]*$")


def mpi_of(
    script: Script, options: Collection[str] = (), at: int | None = None, target: str | None = None
) -> str:
    """Return the key of an MPI in MPI_FLAVOURS: by what names it, by the launchers or by their options.

    ``at`` is the offset of a launcher: the modules that are loaded there come before later ones. ``target``
    is the scheduler of the new job, whose modules may be of another launcher.
    """
    return recognized_mpi(script, options, at, target) or DEFAULT_MPI


def recognized_mpi(
    script: Script, options: Collection[str] = (), at: int | None = None, target: str | None = None
) -> str | None:
    """Return the key of the MPI that something in a script shows; None without one."""
    return named_mpi(script, options, at, target) or next(by_command(script), None)


def by_command(script: Script) -> Iterator[str]:
    """Yield the keys of the MPIs that have one of the commands of a script as their own."""
    values = (code_text(value).split() for _, value, node in script.assignments if value is not node)
    used = script.program_names | {words[0] for words in values if words}
    return (key for key, mpi in MPI_FLAVOURS.items() if used.intersection(mpi.commands))


def named_mpi(
    script: Script, options: Collection[str] = (), at: int | None = None, target: str | None = None
) -> str | None:
    """Return the key of the MPI that a script names, or that alone has most options of a launcher."""
    for loaded in (_loaded(script, at), *([_loaded(script)] if at is not None else [])):
        loaded = _without_built(loaded)
        for words in ([word for word in loaded if not _BUILT.match(word)], loaded):
            if key := _named_in(words, target):
                return key
    marks = {key: sum(mark in options for mark in mpi.marks) for key, mpi in MPI_FLAVOURS.items()}
    by_option = [key for key, count in marks.items() if count == max(marks.values()) > 0]
    others = MPI_FLAVOURS[DEFAULT_MPI].command in script.program_names
    others &= script.program_names.isdisjoint(("srun", "aprun"))
    for name, _, _ in script.assignments:
        if others and _NETWORK_OF_CRAY.match(name):
            continue  # Cray MPICH has no mpirun
        if keys := [key for key, mpi in MPI_FLAVOURS.items() if name.startswith(mpi.settings)]:
            return next((key for key in keys if key in by_option), keys[0])
    return _named_in(_paths(script), target) or next(iter(by_option), None)


def _without_built(words: Sequence[str]) -> list[str]:
    """Return modules without those that only behind their version name the MPI for which they are built, as
    ``a/1.0-foss-2020a``, before compilers that may bring another one."""
    last = max((at for at, word in enumerate(words) if _COMPILERS.search(word)), default=0)
    front = [
        word
        for word in words[:last]
        if not (built := _BUILT_BY_OTHERS.fullmatch(word)) or _named_in([built[1]], None)
    ]
    return [*front, *words[last:]]


def _named_in(words: Sequence[str], target: str | None) -> str | None:
    """Return the key of the MPI that the last of these words names which names one; None without one."""
    fitting = [one for one in MPI_FLAVOURS.items() if not one[1].dialects or target in one[1].dialects]
    fitting.sort(key=lambda one: not one[1].dialects)
    for word in reversed(words):
        for key, mpi in fitting:
            if mpi.modules and re.search(rf"(?:^|[\s/_.^-])(?:{mpi.modules})(?![a-z]|{_PROGRAMS})", word):
                return key
    return None


def with_own_options(script: Script, key: str) -> str:
    """Return the title of the MPI if its mpirun has other options than that of its kind; or ""."""
    title, pattern = MPI_FLAVOURS[key].own_options or ("", "")
    words = [*_loaded(script), *_paths(script), *(one.name for one in script.commands if "_" in one.name)]
    return title if _has_module(words, pattern) else ""


def own_plugin(script: Script, key: str) -> str:
    """Return the plugin of srun that clusters with the modules of a script have by default; empty without
    one that is not that of the MPI."""
    name, pattern = MPI_FLAVOURS[key].own_plugin or ("", "")
    return name if _has_module(_loaded(script), pattern) else ""


def _has_module(words: Sequence[str], pattern: str) -> bool:
    return bool(pattern) and any(re.search(rf"(?:^|[/_.-])(?:{pattern})(?![a-z])", one) for one in words)


def plugin_of(script: Script, key: str, at: int) -> str:
    """Return the plugin of srun for the MPI of a launcher at an offset; "none" is that of the cluster."""
    if own_plugin(script, key):
        return "none"
    plugin = MPI_FLAVOURS[key].srun
    if any(value.unquoted == "pmix" for name, value, _ in script.assignments if name in _OF_PMI):
        return "pmix"
    return "pmi2" if plugin == "pmix" and first_open_mpi(script, at) else plugin


# Variables of Cray's PALS and of oneCCL with the protocol by which ranks find each other.
_OF_PMI = ("PALS_PMI", "CCL_PROCESS_LAUNCHER")


def of_branch(script: Script, key: str) -> str:
    """Return the module of another MPI than ``key`` that a branch of a script may load, and in which none of
    ``key`` follows; or ""."""
    found: list[tuple[Node | None, str, str]] = []
    for command in script.named("module", "ml"):
        words = [(literal(word) or word.text).lower() for word in command.arguments]
        if words[:1] in ([one] for one in _UNLOADS) or script.constants.is_dead(command.node):
            continue
        words = words[2:] if words[:1] in (["swap"], ["switch"]) else words
        branch = command.node.around("if_statement", "elif_clause", "else_clause", "case_item")
        found += [(branch, named, word) for word in words if (named := _named_in([word], None))]
    last = {branch: at for at, (branch, named, _) in enumerate(found) if named == key}
    others = (one[2] for at, one in enumerate(found) if one[1] != key and at > last.get(one[0], -1))
    return next(others, "") if any(branch for branch, _, _ in found) else ""


def _paths(script: Script) -> list[str]:
    """Return the paths of launchers, libraries and sourced files, in lower case."""
    found = [value.text for name, value, _ in script.assignments if re.search("(?i)path$|mpi", name)]
    found += [word.text for one in script.named("source", ".") for word in one.arguments[:1]]
    first = [one.words[0].text for one in script.commands if one.words]
    return [text.lower() for text in (*found, *filter(_LAUNCHER.search, first)) if "/" in text]


def names_mpi_of_python(script: Script) -> bool:
    """Return whether the code of a script has words of MPI for Python."""
    code = re.sub(r"(?m)(^|\s)#.*$", "", script.tree.text)
    return re.search("mpi4py|horovod|hvd", code) is not None


def end_together(script: Script, name: str) -> bool:
    """Return whether ranks all end with one of them, as those of MPI, or wait for it, or need no other."""
    if is_python(name) or name.endswith(".py"):
        return names_mpi_of_python(script) or re.search("MASTER_ADDR|NCCL_", script.tree.text) is not None
    return name in TOOLS or (named_mpi(script) is not None and not re.search(r"^(ba)?sh$|\.sh$", name))


def first_open_mpi(script: Script, at: int) -> str:
    """Return the module or the part of a path that names an Open MPI 1 at an offset; empty without one."""
    texts = [word for word in _loaded(script, at) if re.search(r"(^|/)open-?mpi", word)]
    texts = texts or [value.text for _, value, _ in script.assignments]
    texts += [word.text for one in script.commands for word in one.words[:1]]
    found = (match for text in texts if (match := _OPEN_MPI_1.search(text)))
    return next((match[0] for match in found), "")


def late_module(script: Script, at: int) -> str:
    """Return the module of an MPI that a script loads only behind an offset; empty without one."""
    loaded = [] if _loaded(script, at) or named_mpi(script, at=at) is None else _loaded(script)
    return next((word for word in loaded if _named_in([word], None)), "")


def _loaded(script: Script, at: int | None = None) -> list[str]:
    """Return the words of the modules that a script loads, and does not unload before an offset, in lower
    case. Without an offset this is that of the last launcher, and later modules are loaded, too."""
    words: list[str] = []
    at = None if at is None else _run_at(script, at)
    launched = max((one.command.node.start for one in script.launches), default=len(script.tree.source))
    for command in script.named("module", "ml", "spack"):
        if at is not None and command.node.start > at:
            break
        if script.constants.is_dead(command.node):
            continue
        first, *rest = [(literal(word) or word.text).lower() for word in command.arguments] or [""]
        if command.name == "spack" and first not in ("load", "unload"):
            continue
        unloads = first in _UNLOADS
        if unloads and command.node.start > launched:
            continue
        if first in ("purge", "reset"):
            words.clear()
        elif first in ("swap", "switch"):
            words += rest[1:] or rest
        elif unloads:
            words = [word for word in words if word not in rest]
        else:
            words += [first, *rest]
    return words


def _run_at(script: Script, at: int) -> int:
    """Return the offset of the first call of the function around an offset; else the offset itself."""
    for _ in range(_DEEPEST):
        bodies = (one for one in script.tree.all("function_definition") if one.start < at < one.end)
        body = next(bodies, None)
        if body is None or not body.name:
            break
        calls = (one.node.start for one in script.named(body.name))
        at = min((one for one in calls if not body.start < one < body.end), default=at)
    return at
