"""What a script has from elsewhere: variables of the environment, to which programs get a new value, too, and
functions of files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from jobgen.convert.misreadings import INSTALLED
from jobgen.convert.to_job_file import effects
from jobgen.convert.to_job_file.effects import LOGIN, OF_PRODUCTS, PATHS
from jobgen.convert.variable_names import exports_all, names_read
from jobgen.launch.command_line import is_python
from jobgen.launch.wrappers import WRAPPERS
from jobgen.script.command_kinds import STATE
from jobgen.script.commands import Command, commands
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments, exported

# Variables of a login, and the usual ones of programs and libraries.
_USUAL = re.compile(
    r"HOME|USER|LOGNAME|SHELL|HOSTNAME|TERM|DISPLAY|TZ|LANG|LANGUAGE|LC_[A-Z]+|TMP|TEMP|TMPDIR|SCRATCH|WORK"
    r"|\w+_VISIBLE_DEVICES|LD_\w+|\w+_OPTS|\w+_(proxy|PROXY|CACHEDIR|TMPDIR|LICENSE_FILE)|MPLBACKEND"
    r"|(NXF|_?JAVA|(SINGULARITY|APPTAINER)(ENV)?|GMX|JULIA|TF|XLA|JAX|HDF5|KOKKOS|CRAY|ROCR|HIP|XDG)_[A-Z]\w*"
)
_OF_SHELL = re.compile(
    r"IFS|OLDPWD|PPID|REPLY|LINENO|OPT(ARG|IND|ERR)|FUNCNAME|PIPESTATUS|(HOST|MACH|OS)TYPE|DIRSTACK|GROUPS"
    r"|EPOCH(SECONDS|REALTIME)|LINES|COLUMNS|MAIL|PS\d|_"
)
_READ_BY_BASH = re.compile(r"IFS|OPTIND|GLOBIGNORE|TIMEFORMAT|RANDOM|SECONDS|PS4|CDPATH|PATH|TMPDIR|LC_\w+")
_OF_ENVIRONMENT = (PATHS, effects.OF_INSTALLERS, effects.OF_RANKS, _USUAL)
_OF_SLURM = re.compile(r"(SLURM|SALLOC|SBATCH)_[A-Z]\w*|SRUN_(CPUS_PER_TASK|EXPORT_ENV)")
_OF_PBS = re.compile(r"PBS_[A-Z]\w*|NCPUS")
_OF_MODULES = re.compile(r"EB[A-Z]\w+|[A-Z]\w*_(HOME|ROOT)")
# Families of modules, and the variables of programs that both they and users set.
_OF_FAMILIES = (
    (re.compile(r"(intel|impi|oneapi)\b|intelmpi"), re.compile("I_MPI_")),
    (re.compile(r"(intel|oneapi|i?mkl)\b"), re.compile(r"MKL(?!_NUM_THREADS)")),
    (re.compile("openmpi|ompi|hpcx"), re.compile("OMPI_")),
    (re.compile("mvapich"), re.compile("MV2_")),
    (re.compile("(cray-)?mpich"), re.compile("MPICH_")),
)
# Variables of an environment of Python that is active, and commands that may activate one.
_OF_ACTIVATION = ("CONDA_PREFIX", "CONDA_DEFAULT_ENV", "VIRTUAL_ENV")
_ENTERS = re.compile(r"module|ml|source|\.|eval|conda|mamba|micromamba|spack|pyenv|bash").fullmatch
# Commands that set the variables of an environment only, or none.
SETS_NO_OTHERS = re.compile(r"\bactivate\b|shell\.bash hook|/conda\.sh|^(module|ml) (list|purge)\b")
_OF_SYSTEM = r"^/(?!home)(\w+/)?(opt|sw|s?soft(ware)?|apps?|usr|cvmfs)/"
# Files that set none but the variables above, and those of environments.
_KNOWN_FILES = re.compile(rf"activate|profile|bashrc|conda|(?i:module|lmod)|spack|/etc/|{_OF_SYSTEM}")

# Files without functions for the script: those of the system, of environments and of modules.
_WITHOUT_FUNCTIONS = re.compile(
    r"^/etc/|activate|conda|mamba|modules?\b|lmod|spack|GMXRC|vars\.sh|cmsset_default"
)
_OF_VERSIONS = re.compile(r"(?i)version|\.ver\b")  # files that set the versions of modules


def may_be_inherited(script: Script, name: str, *, of_files: bool = True) -> bool:
    """Return whether the name of a variable is one that the environment of the script may have.

    ``of_files``: also from a file of the script, which may export any name in capitals.
    """
    known = (*_OF_ENVIRONMENT, _OF_PBS if script.is_pbs else _OF_SLURM)
    given = [script.heeded[flag].value for flag in ("--export", "-v") if flag in script.heeded]
    passed = {one for value in given for one in re.findall(r"(?:^|[\s,\"'])(\w+)", value)}  # to the job
    if name in passed or any(one.fullmatch(name) for one in known):
        return True
    if exports_all(script) or _of_module(script, name):
        return True
    return of_files and name.isupper() and any(map(is_own_file, script.commands))


def is_set(script: Script, name: str) -> bool:
    """Return whether a script may set a variable: by an assignment, a command such as read, or in a sum."""
    if name in script.values:
        return True
    code = re.sub(r"(?m)(^|\s)#.*$", "", script.tree.text)
    word = rf"(?<![${{\w.-]){name}\b"
    sets = r"read|export|declare|typeset|readonly|local|mapfile|readarray|for|getopts|printf|let"
    start = r"(^|[;&|({]|\b(then|do|else)\s)[ \t]*"
    pattern = rf"(?m){start}{word}(\+?=|\[)|(\b({sets})\s[^\n;|&]*|\(\([^)]*|<<<\s*){word}|\$\{{{name}:?="
    return re.search(pattern, code) is not None


def optional(script: Script) -> Iterator[Node]:
    """Yield the variables that the environment of the submission may have: scripts read them with a default,
    as in ``${NAME:-DEFAULT}`` and ``[ -z "$NAME" ]``, and do not set them before; or nothing sets them."""
    known = (*_OF_ENVIRONMENT, _OF_PBS, _OF_SLURM, LOGIN, _OF_SHELL)
    files = (one.node.end for one in script.commands if is_own_file(one))
    end = min(files, default=script.tree.end)
    others = script.named("module", "ml", "source", ".", "eval")
    sets = [one for one in others if not SETS_NO_OTHERS.search(one.node.text)]
    start = min((one.node.end for one in sets), default=script.tree.end)
    start_of_others = min((one.node.end for one in sets if not _is_of_tools(one)), default=script.tree.end)
    start_of_environment = min(
        (one.node.end for one in script.commands if _ENTERS(one.name)), default=script.tree.end
    )
    given, of_module = cache(lambda name: is_set(script, name)), cache(lambda name: _of_module(script, name))
    for node in script.tree.all("variable_name"):
        if node.start > end or node.under("function_definition"):
            continue
        of_tool = node.start > start and of_module(node.text)
        of_others = node.text.isupper() and (node.start > start_of_others or of_tool)
        of_no_module = node.text.endswith("_ROOT") and not of_others
        of_no_module |= node.text in _OF_ACTIVATION and node.start < start_of_environment
        if any(one.fullmatch(node.text) for one in known) and not of_no_module:
            continue
        if not _may_be_unset(node) and (of_others or not _is_read(node) or given(node.text)):
            continue
        place = (node.around("variable_assignment") or node).start
        if all(one.start >= place for name, _, one in script.assignments if name == node.text):
            yield node


def _is_of_tools(command: Command) -> bool:
    """Return whether a command loads modules of tools only, which set no variables but their own."""
    words = [word.text for word in command.arguments if word.text not in ("load", "add")]
    return command.name in ("module", "ml") and all(map(effects.OF_TOOLS.fullmatch, words))


def _is_read(name: Node) -> bool:
    """Return whether a place reads the value of a variable, outside of a sum, which may have its own."""
    if name.parent is None or name.under("arithmetic_expansion", "for_statement", "c_style_for_statement"):
        return False
    return re.match(rf"\$\{{?[#!]?(?!\d){name.text}\b", name.parent.text) is not None


def _may_be_unset(name: Node) -> bool:
    """Return whether a place where a variable is read has a default for it, or is a test of its existence."""
    above, test = name.parent, name.around("unary_expression")
    if above is None or above.type == "variable_assignment":
        return False
    signs = [one.text for one in above.children[2:3] if above.type == "expansion"]
    tested = test is not None and test.children[0].text in ("-z", "-n")
    return tested or any(re.fullmatch(r":?[-=?+]", one) for one in signs)


def _of_module(script: Script, name: str) -> bool:
    """Return whether a module that the script loads may set a variable."""
    titles = _titles([word for one in script.named("module", "ml") for word in _words(script, one)])
    return bool(titles) and (_OF_MODULES.fullmatch(name) is not None or _title_of(name) in titles)


def _words(script: Script, command: Command) -> list[str]:
    """Return the words of a command of modules, with the values of constants."""
    return [part for word in command.arguments for part in script.constants.text(word).strip("\"'").split()]


def is_of_module(script: Script, name: str) -> bool:
    """Return whether a module that the script loads may set a variable, or those of others."""
    return PATHS.fullmatch(name) is not None or _of_module(script, name)


def depends_on_modules(script: Script, statement: Node) -> bool:
    """Return whether a statement exports a variable, sets one of a module, or runs the command of one."""
    if any(exported(one) or is_of_module(script, name) for name, _, one in assignments(statement)):
        return True
    return any(_of_module(script, one.name.upper()) for one in commands(statement))


def _title_of(name: str) -> str:
    """Return the name of the module of a variable: that of ``MATLABPATH`` is that of ``MATLAB_HOME``."""
    return re.sub(r"_.*|(?<=\w)(PATH|HOME|ROOT|DIR)$", "", name)


def _titles(words: Sequence[str]) -> set[str]:
    """Return the names of modules as they begin those of variables."""
    names = {re.sub(r"\W", "", word.partition("/")[0]).upper() for word in words if word != "load"}
    return names | {name.rstrip("0123456789") for name in names}


def has_name_of_module(words: Sequence[str], name: str) -> bool:
    """Return whether a variable has the name of a module in a command, which then sets it, and is none with
    which only a user sets up the program: NETCDF_DIR and I_MPI_PIN, but not NCCL_DEBUG."""
    parts = [part for word in words for part in word.lower().split("/")]
    if any(variables.match(name) and any(map(family.match, parts)) for family, variables in _OF_FAMILIES):
        return True
    usual = any(one.fullmatch(name) for one in (effects.OF_RANKS, _USUAL, LOGIN))
    return _title_of(name) in _titles(words) and not usual


def is_own_file(command: Command) -> bool:
    """Return whether a command reads a file that may set any variable."""
    if command.name not in ("source", "."):
        return False
    file = (command.arguments or command.words)[0].text.strip("\"'")
    return not _KNOWN_FILES.search(file) and not OF_PRODUCTS.fullmatch(file)


def may_define_functions(command: Command, of_system: bool = True) -> bool:
    """Return whether a command reads a file that may define functions for the script, such as ``~/.bashrc``.

    ``of_system``: also if it is a file of the software of the cluster, most of which only set variables.
    """
    given = " ".join(one.text for one in command.arguments).strip("\"'")
    if command.name == "eval":
        return re.match(r"(\$\(|`)\s*(cat\b|<)", given) is not None
    if command.name not in ("source", ".") or _WITHOUT_FUNCTIONS.search(given.partition(" ")[0]):
        return False
    return of_system or not re.match(_OF_SYSTEM, given)


def may_be_function(script: Script, name: str) -> bool:
    """Return whether a command may be a function or an alias that a file defines."""
    of_schedulers = (one for dialect in DIALECTS.values() for one in dialect.commands)
    known = name in {*effects.TOOLS_OF_SYSTEM, *STATE, *WRAPPERS, *script.functions, "bash", "sh"}
    known = known or name in of_schedulers or is_python(name) or INSTALLED.match(name) is not None
    return re.fullmatch(r"[A-Za-z_]\w*", name) is not None and not known


def may_set(script: Script, statement: Node, name: str) -> bool:
    """Return whether a module or a file of a statement may set a variable."""
    of_module = is_of_module(script, name)
    for one in commands(statement):
        of_versions = _OF_VERSIONS.search(one.node.text) and "ver" not in name.lower()
        if is_own_file(one) and not of_versions:
            return True
        if one.name in ("module", "ml") and (of_module or has_name_of_module(_words(script, one), name)):
            return True
    return False


def is_for_programs(script: Script, name: str) -> bool:
    """Return whether nothing in the script reads a variable, or its first value has the value before, or bash
    itself reads it."""
    if _READ_BY_BASH.fullmatch(name):
        return True
    first = next((value.text for other, value, _ in script.assignments if other == name), "")
    if not name.isupper() or first.startswith("("):  # no array is in the environment
        return False
    if re.search(rf"\$(\{{{name}\}}|{name}\b)", first):
        return True
    return not any(node.text == name for node, _ in names_read(script.tree))
