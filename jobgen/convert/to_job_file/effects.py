"""What the statements of a script do, and which of them may run after an option of the job file.

Options of the environment are set before the block ``setup``. A statement that stays in the block, and that
the script runs before such an option, must not depend on the order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobgen.convert.variable_names import read_names
from jobgen.script.command_kinds import PRINT, TOOLS
from jobgen.script.commands import Command, commands
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments, exported

# The kinds of commands by name; all others are programs.
_NAMES = {
    "text": """
echo date hostname printf whoami uptime true false : expr seq basename dirname wait sleep bc shuf nvidia-smi
npu-smi rocm-smi rocminfo lscpu lshw uname free id groups ps pidof nproc hostid hostnamectl squeue sacct sinfo
scontrol qstat checkjob clear top nodeset gpustat nvidia-modprobe tty uuidgen
modulecmd lstopo""",
    "state": "which env type command printenv nvcc ds_report ibv_devinfo ibstat",
    "function": "alias unalias trap",
    "shell": "set ulimit umask shopt exit return break continue shift let",
    "variable": "read mapfile readarray getopts",
    "directory": "cd pushd popd",
    "here": "pwd",
    "environment": """
module ml source . eval conda mamba micromamba spack nvm use uenv pyenv unset setenv unsetenv""",
    "copies": "cp mv ln tar gzip gunzip zip unzip rsync scp wget curl git",
    "files": f"{' '.join(TOOLS - PRINT)} [ test lfs truncate stat realpath readlink mktemp md5sum"
    " sha256sum getent jq",
}
_KIND_OF = {name: kind for kind, names in reversed(_NAMES.items()) for name in names.split()}
_OF_PACKAGES = re.compile("(PIP|VIRTUALENV)_")  # variables, whose values may be paths
# A package by its name and version, which pip does not look for in the current directory.
_PACKAGE = r" [\"']?(?!\S*\.(whl|zip|t?gz|bz2|tar))[A-Za-z][\w.-]*(\[[\w,-]+\])?([=<>~!]=?[\w.*]+,?)*[\"']?"
_SWITCH = r"(--(no-index|upgrade|user|quiet|no-deps|no-cache-dir|pre|force-reinstall)|-[Uq])"
# The kinds of commands by their words, before those by name.
_FORMS = (
    (r"(source |\. |conda )?deactivate", "deactivation"),
    (r"(module|ml)( (list|avail|av|spider|show|display)\b.*)?", "state"),
    (r"\S+ (--version|-V)", "state"),
    (r"\S+ (--help|--citation)", "text"),
    (r"(/\w+)*/(bin|lib|lib64)", "text"),  # a folder, and no command
    (r"(\S*/)?generate_pbs_nodefile(\.pl)?", "text"),
    (r"(\S*/)?python[\d.]* (-c|<<<) .*\b(print|sys\.stdout\.write)\(.*", "state"),
    (r"(srun|mpirun|mpiexec|ssh) ([^;|&>]* )?['\"]?(/bin/)?(hostname|echo|date)\b[^;|&>]*", "text"),
    (r"((srun|mpirun|mpiexec|ssh) ([^;|&>]* )?)?(/bin/)?pwd", "here"),
    (r"conda info .*", "text"),
    (r"(awk|cat|cut|grep|head|sed|sort|tail|uniq|wc)\b.* \"?\$\{?PBS_NODEFILE\}?\"?", "text"),
    (r"(ls|df|du|tree|quota|cat|head|tail|wc|md5sum|stat)( [^;|&<>]*)?", "reading"),  # they change nothing
    (r"(\S*/)?(deviceQuery|bandwidthTest)", "state"),  # samples of CUDA
    (r"numactl (-H|--hardware|-s|-?-show|.* numactl -?-s(how)?)", "text"),
    (r"[^\s'\"$]+/[^\s'\"$]+:/\S+", "text"),  # the end of a list of folders that is broken: no command
    (r"HOME", "text"),  # $(HOME) is a variable for make, and no command for a shell
    (r"(cat|grep|head|awk|wc)\b[^/;|&>]* /proc/\w+", "text"),
    ("", "text"),  # a here-document without a command
    (r"(/bin/)?bash", "text"),  # without a file or a text, it reads nothing in a job
    (r"make( (-j ?\d*|-C \S+|all|clean|install|\w+=\S+))*", "build"),
    (rf"pip3? (install( {_SWITCH}|{_PACKAGE})+|freeze|list)", "packages"),
    (r"(python3? -m )?(pip3?|venv|virtualenv|pyvenv)\b.*", "install"),
)
# Tools that read files, or the output of another command.
_FILTERS = "awk cat cut egrep fgrep fold grep head jq nl paste sed sort tac tail tr uniq wc"
TOOLS_OF_SYSTEM = frozenset((*_KIND_OF, *_FILTERS.split()))
_HARMLESS_REDIRECTION = re.compile(
    r"(\d*|&)>>?\s*/dev/(null|stderr|stdout)|\d*[<>]&\s*\d|<\s*\"?\$\{?PBS_NODEFILE\b"
)
# The names of files that only set variables.
ENVIRONMENT = re.compile(r"activate|profile|bashrc|conda|env|vars?(\.sh)?$|module|conf|/etc/|setup")
# Files of the login and of products, which read no variables of the script, except exported ones: those of
# products only these.
OF_LOGIN = re.compile(r"/etc/(profile|bashrc|bash\.bashrc)|.*/\.(bashrc|bash_profile|bash_login|profile)")
_PRODUCTS = r".*/(GMXRC(\.bash)?|\w*vars\.sh|setup-env\.sh|cmsset_default\.sh)"
OF_PRODUCTS = re.compile(rf"{OF_LOGIN.pattern}|{_PRODUCTS}")
_READ_BY_PRODUCTS = re.compile(
    r"SPACK_(?!VERSION|INSTANCE_\w+|PACKAGE|COMPILER|VARIANTS|DEPENDENCIES|SPEC)\w+"
    r"|(SETVARS|ONEAPI|INTEL|MKL|I_MPI|TBB|IPP|DAAL|DAL|CCL|DNNL|VT|GMX|CMS|VO_CMS|SCRAM|CVS)\w*|HOME|BASH\w*"
)
# Variables that modules and activated environments set or read.
PATHS = re.compile(
    r"((LD_)?(RUN|LIBRARY)_|(CPLUS|C|OBJC)_(INCLUDE_)?|INCLUDE_|PKG_CONFIG_|CMAKE_\w+_|JULIA_\w+_)?PATH"
    r"|(CLASS|MAN|INFO|C|PYTHON)PATH|PYTHON(HOME|USERBASE)|PERL5LIB|R_LIBS\w*|CC|CXX|FC|F77|F90|\w+_ROOT"
    r"|(CUDA|CUDNN|NCCL|MPI|MKL|JAVA|PYTHON|R)_?(HOME|DIR|LIBS?)|MODULEPATH|MODULESHOME"
    r"|LMOD_(?!EXPERT|QUIET|PAGER)\w+|CONDA(?!_ENVS_PATH|_PKGS_DIRS)\w*"
)
OF_ENVIRONMENTS = re.compile(r"PATH|PYTHON\w*")  # which a virtual environment sets
# Variables that installers read; those of programs with ranks or threads, which no tool that builds reads.
OF_INSTALLERS = re.compile(
    r"(PIP|VIRTUALENV|UV|PYTHON|CUDA|MAX_JOBS|.*(FLAGS|_ARCH|_proxy|_PROXY|TMPDIR))\w*"
)
OF_RANKS = re.compile(
    r"(NCCL|RCCL|OMP|KMP|GOMP|UCX|FI|TORCH(?!_CUDA_ARCH)|PYTORCH|HF|TRANSFORMERS|WANDB|I_MPI|OMPI|MPICH|PMIX|MV2|SLURM)_\w+"
    r"|(MKL|OPENBLAS|NUMEXPR)_NUM_THREADS|TOKENIZERS_PARALLELISM|PYTHON(UNBUFFERED|FAULTHANDLER)"
    r"|CUDA_(DEVICE_(ORDER|MAX_CONNECTIONS)|LAUNCH_BLOCKING)"
)
# Modules without Python, which a virtual environment does not hide, and which do not hide its commands: those
# of devices and of tools. They set no variables of compilers and of other products.
OF_TOOLS = re.compile(
    r"(?i)(?!.*py)(cuda|cudnn|nccl|cudatoolkit|rocm|git|cmake|singularity|apptainer|remora|matlab)(/[\w.+-]*)?"
)
OF_CONTAINERS = re.compile(r"(?i)(singularity|apptainer)(/[\w.+-]*)?")
_OF_OTHERS = re.compile(r"CC|CXX|FC|F77|F90|\w+_ROOT")
_IN_LOWER_CASE = re.compile(r"(?!\w+_proxy)[a-z_][a-z0-9_]*")  # which modules do not set
# Parts of the names of variables that they set.
OF_PLACES = re.compile("PATH|HOME|DIR|ROOT|LIB|INC|BIN|PREFIX|BASE|VERSION|_proxy", re.IGNORECASE)
# Directories of a site.
OF_SITE = re.compile(r"\w*SCRATCH\w*|(\w+_)?WORK(\d|_?DIR)?|(PROJ|MEMBER|WORLD|GROUP)WORK")
# Variables of the login and the scheduler, which these do not set.
LOGIN = re.compile(
    rf"HOME|USER|LOGNAME|HOSTNAME|SHELL|PWD|TMP(DIR)?|{OF_SITE.pattern}|\w+_VISIBLE_DEVICES|NCPUS"
    r"|SECONDS|RANDOM|UID|EUID|BASH\w*|PBS_\w+|(SLURM|SALLOC|SBATCH)\w*|\W|\d+"
)
_HARMLESS = frozenset(
    {"text", "report", "report of here", "shell", "variable", "export", "product", "function"}
)
_LIBRARIES = {"append", "library", "library of Python", "product of others"}
_OTHERS = _HARMLESS | _LIBRARIES | {
    "copies elsewhere", "state", "path", "append_path", "environment", "deactivation",
}  # fmt: skip
_HERE = {"directory", "here", "files", "elsewhere"}
_COPIES = {"copies", "copies elsewhere"}
# What a statement does in the current directory.
OF_DIRECTORY = frozenset({"here", "files", "copies", "build", "program"})
# Words that are no paths: options, modes, signs of a test; variables of absolute paths.
_NO_PATH = re.compile(r"-[\w-]*|!|\]|\d+|[ugoa]*[-+=][rwxXst]+|")
_FOLDER = re.compile(r"\$\{?(HOME|(?:SLURM_)?TMPDIR|PBS_O_WORKDIR|SLURM_SUBMIT_DIR|\w*SCRATCH\w*|WORK)(?!\w)")
# For each option, what a statement may do that the script runs before it, and the job after it.
_MAY_FOLLOW = {
    "workdir": _OTHERS | {"elsewhere", "packages"},
    "module": _HARMLESS | _HERE | _COPIES | {"append", "append_path"},
    "source": _HARMLESS - {"variable", "export", "product"},  # the file may read them
    "source of a login": (_HARMLESS | _HERE | _COPIES) - {"export", "product"},
    "source of a product": (_HARMLESS | _HERE) - {"product"},
    "conda": _HARMLESS | _HERE | {"append", "library of Python"},  # its packages may set the others
    "venv": _HARMLESS | _LIBRARIES | {"here", "files", "elsewhere"},
    "env": _OTHERS | _HERE | {"copies", "install", "packages"},
    "env of ranks": _OTHERS | _HERE | {"copies", "install", "packages", "build"},
    "env of installers": _OTHERS | _HERE | {"copies"},
}
_MAY_FOLLOW |= dict.fromkeys(("module_purge", "module_use"), _MAY_FOLLOW["module"])
_MAY_FOLLOW["module of a tool"] = _MAY_FOLLOW["module"] | {"product of others"}


class Effects(NamedTuple):
    """The kinds of what a statement does, and the variables that it reads and may get from elsewhere."""

    node: Node
    kinds: frozenset[str]
    foreign: frozenset[str]


def effects_of(script: Script, statement: Node) -> Effects:
    """Return what a statement does."""
    read = read_names(statement) if statement.type != "unset_command" else set()
    foreign = {name for name in read if name not in script.values and not LOGIN.fullmatch(name)}
    foreign -= script.loop_variables
    lets = (word.unquoted for one in script.named("let") for word in one.arguments)
    foreign -= {word.partition("=")[0] for word in lets if "=" in word}
    foreign -= {name for name in foreign if _IN_LOWER_CASE.fullmatch(name)}
    kinds = frozenset(_kinds(script, statement, 0))
    if kinds <= {"text", "state", "here"} and (foreign or kinds & {"state", "here"}):
        return Effects(statement, frozenset({"report", *["report of here"] * ("here" in kinds)}), frozenset())
    return Effects(statement, kinds, frozenset(foreign))


def may_follow(effects: Effects, option: str) -> bool:
    """Return whether a statement may run after an option that the script has behind the statement."""
    if option != "workdir" and not option.startswith("env") and effects.foreign:
        return False  # a module may set what the statement reads
    return effects.kinds <= _MAY_FOLLOW[option]


def prints_of_home(script: Script, found: Sequence[Effects]) -> Iterator[Node]:
    """Yield what prints something of the home directory, in which the scheduler starts the script."""
    moves = [] if script.starts_at_submission else script.named("cd", "pushd")
    first = min((one.node.start for one in moves), default=0)
    yield from (one.node for one in found if "report of here" in one.kinds and one.node.start < first)


def mentions(node: Node, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", node.text) is not None


def _kinds(script: Script, statement: Node, depth: int) -> Iterator[str]:
    if statement.type == "function_definition" or depth > 3:
        yield "program" if depth else "function"
        return
    after = statement.next()
    if (after is not None and after.type == "&") or any(True for _ in statement.all("&", "ERROR")):
        yield "program"
    for name, value, node in assignments(statement):
        if node.child_of("command"):
            continue
        if re.match(rf"\"?\$(?:{name}|\{{{name}\}}):[^$]*(\$\{{?(?!{name}\b)\w+[^$]*)*$", value.text):
            yield "append" if name != "PATH" else "append_path"
            continue
        is_path = re.fullmatch(r"(LD_LIBRARY_|PYTHON|MODULE|MAN|LIBRARY_|C)?PATH", name)
        plain = not exported(node) and not is_path
        if not plain and (name == "HOME" or PATHS.fullmatch(name)):
            whole = name == "HOME" or re.fullmatch(r"PATH|PYTHONHOME|CONDA\w*", name)
            other = "product of others" if _OF_OTHERS.fullmatch(name) else "library"
            yield "path" if whole else "library of Python" if name == "PYTHONPATH" else other
        else:
            yield "variable" if plain else "export"
        if not plain and _READ_BY_PRODUCTS.fullmatch(name):
            yield "product"
    for one in statement.all("variable_assignment"):
        if (element := one.get("name")) is not None and element.type == "subscript":
            yield "variable"  # an element of an array
    for one in statement.all("unset_command", "declaration_command"):
        names = [child.text for child in one.children if child.type == "variable_name"]
        yield "path" if any(map(PATHS.fullmatch, names)) else "export"
        if any(map(_READ_BY_PRODUCTS.fullmatch, names)) or (one.type == "unset_command" and not names):
            yield "product"
    for one in statement.all("file_redirect"):
        if not _HARMLESS_REDIRECTION.match(one.text):
            yield _of_paths(script, one.children[-1:])
    if "PWD" in statement.text:
        yield "here"
    for one in statement.all("unary_expression"):
        if re.match(r"-[a-hkprstuwxGLNOS]\s", one.text):  # a test of a file
            yield _of_paths(script, one.children[-1:])
    for command in commands(statement):
        yield from _of_command(script, command, depth)


def _of_command(script: Script, command: Command, depth: int) -> Iterator[str]:
    definitions = script.tree.all("function_definition")
    if (body := next((one.get("body") for one in definitions if one.name == command.name), None)) is not None:
        yield from _kinds(script, body, depth + 1)
        return
    around = command.node.parent or command.node
    given = any(one.type == "herestring_redirect" for one in around.children)
    text = " ".join((around if given else command.node).text.split())
    if command.name in ("source", "."):
        yield from {_of_paths(script, command.arguments[:1])} & {"files"}  # of the current directory
    if _KIND_OF.get(command.name) == "environment" and re.search(r"\s[\"']?\.{1,2}(/|$)", text):
        yield "here"  # such as spack env activate ../env
    if command.name in _FILTERS.split() and _has_input(command.node):
        yield "text"
        return
    forms = (kind for pattern, kind in _FORMS if re.fullmatch(pattern, text, re.DOTALL))
    kind = next(forms, _KIND_OF.get(command.name, "program"))
    if command.name == "virtualenv" and _of_paths(script, command.arguments) == "elsewhere":
        kind = "packages"
    if command.name in ("cp", "mv", "rsync") and _of_paths(script, command.arguments) == "elsewhere":
        kind = "copies elsewhere"
    if kind == "packages" and any(_OF_PACKAGES.match(name) for name in script.values):
        kind = "install"
    if kind in ("files", "reading"):
        place = _of_paths(script, command.arguments)
        kind = place if kind == "files" else {"elsewhere": "text", "files": "here"}[place]
    yield kind


def _of_paths(script: Script, words: Sequence[Node]) -> str:
    """Return whether files of the current directory may be among these words, or only others."""
    texts = [script.constants.text(one).strip("\"'") for one in words]
    paths = [one for one in texts if not _NO_PATH.fullmatch(one)]
    return "elsewhere" if paths and all(_is_absolute(script, one) for one in paths) else "files"


def _is_absolute(script: Script, path: str) -> bool:
    if re.match(r"/|~\w*/", path):
        return True
    return (variable := _FOLDER.match(path)) is not None and variable[1] not in script.values


def _has_input(node: Node) -> bool:
    """Return whether a command reads the output of another one, or the nodes of the job."""
    redirections = above.children if (above := node.child_of("redirected_statement")) is not None else ()
    if any("<" in one.text and _HARMLESS_REDIRECTION.match(one.text) for one in redirections):
        return True
    return (pipeline := (above or node).child_of("pipeline")) is not None and node.start > pipeline.start
