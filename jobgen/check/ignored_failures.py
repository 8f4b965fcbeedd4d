"""The commands whose failure a script without ``set -e`` ignores, and for which that matters.

These are runs whose status is lost, preparations without which another program of the same name runs, and
commands that make what a later one reads. For others it cannot be seen that a failure matters: a program may
only print, and the script may judge its results itself.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from jobgen.check.rules.downloads import sends
from jobgen.launch.command_line import is_python, read_call
from jobgen.launch.wrappers import CONTAINERS
from jobgen.script.command_kinds import STATE, TOOLS, changes_shell
from jobgen.script.commands import Command
from jobgen.script.other_text import has_gap, is_template
from jobgen.script.script import Script
from jobgen.script.syntax import LOOPS, expansions, function_of
from jobgen.script.word_lists import runs_once

# Commands that print.
INFORM = {
    "echo", "printf", "date", "hostname", "pwd", "nvidia-smi", "rocm-smi", "npu-smi", "which", "type",
    "sleep", "env", "printenv", "uname", "whoami", "id", "ls", "lscpu", "free", "df", "du", "cat", "nproc",
    "squeue",
    "head", "tail", "nvcc", "ulimit", "umask", "uptime", "true", "false", ":", "[", "test", "let", "read",
    "clear", "deactivate", "sinfo", "sacct", "seff", "sprio", "sshare", "sreport", "qstat", "pbsnodes",
    "rocminfo", "clinfo", "lshw", "gpustat", "ibstat", "ibv_devinfo", "ds_report", "hostnamectl", "checkjob",
    "nodeset", "pidof", "ps", "groups", "deviceQuery", "locale",
}  # fmt: skip
# Tools that measure, send a message, or change jobs, keys, devices and text: they are not the work of a job.
_ASIDE = {
    "top", "mail", "mailx", "sendmail", "bandwidthTest", "dcgmi", "nvidia-modprobe", "gpuseff", "scontrol",
    "nvidia-cuda-mps-control", "sacctmgr", "scancel", "qdel", "qalter", "uniq", "tr", "paste", "diff", "comm",
    "basename", "dirname", "readlink", "realpath", "stat", "expr", "bc", "tput", "sstat", "tracejob",
    "jobstats", "quota", "lfs", "ldd", "lsof", "xset", "rev", "tac", "join", "column", "shuf", "dos2unix",
    "ssh-add", "ssh-agent", "ssh-keygen", "ssh-keyscan", "keychain", "kinit", "klist", "aklog", "mkfifo",
    "dot",
}  # fmt: skip
# Programs that print what a node, an installation or a job has, or where ranks and threads run.
_PRINTS = re.compile(
    r"(?i)(\w*?(info|query|quota|version|stats|status|report|collect_env|mail|bandwidth\w*|latency\w*)|"
    r"(query|show|list|print|which)_?\w+|xthi(?:[-._]\w+)*|(?:mpi|omp|hybrid|gpu)[-_]check|acheck\S*)(\.(py|sh))?"
)
_TOOL_IN_VARIABLE = re.compile(
    r"\"?\$\{?(?:COPY|MOVE|REMOVE|LINK|CP|MV|RM|LN|MKDIR|ECHO|CAT|SED|AWK|GREP)\}?\"?"
)
_PRINTING_CODE = re.compile(  # of bash
    r"\s-c\s+(['\"])\s*(?:(?:echo|hostname|date|nvidia-smi)\b[^;&|]*|python3?\s+-c\s[^&|]*)\1$"
)
# Parts of the shell's language, and commands that end the script.
_SHELL = {
    "export", "declare", "typeset", "local", "readonly", "set", "unset", "shift", "alias", "shopt", "trap",
    "wait", "exit", "return", "break", "continue", "unalias", "hash", "complete", "kill", "cmsenv",
}  # fmt: skip
# Commands that print or change text: they fail if nothing is found, too.
TEXT = {
    *("grep", "egrep", "diff", "cmp", "find", "sort", "sed", "awk", "cut", "wc", "tr", "tee", "seq", "xargs"),
    *("uniq", "fgrep", "zgrep", "zcat"),
}
# Commands without which what follows fails, or that fail without harm.
_PREPARE = {
    "cd", "pushd", "popd", "mkdir", "rmdir", "rm", "chmod", "chgrp", "chown", "setfacl", "touch", "ln",
    "enable_lmod", "jutil",
}  # fmt: skip
# What is not there cannot be removed, what is there is not made or pulled again, and cmake -E handles files.
_HARMLESS = re.compile(
    r"(?:(?:conda|mamba|micromamba|pip3?|python3? -m pip|git)\s+(?:env\s+)?(?:remove|uninstall)|"
    r"(?:singularity|apptainer|shifterimg|docker|podman)\s+pull|cmake\s+-E|spack\s+unload|"
    r"(?:conda|mamba|micromamba)\s+(?:env\s+)?(?:create|init|config|clean|deactivate)|g?make\s+(?:dist)?clean|"
    r"g?make\s+(?:info|help|print\w*|show\w*)|ctest\s+(?:-N|--show-only)|taskset\s+(?:-\w+\s+)*-\w*p|"
    r"(?:wandb|huggingface-cli|hf)\s+(?:auth\s+)?(?:login|disabled|enabled|offline|online|artifact\s+cache))\b|"
    r"(?:\S*/)?[a-z]\w*\s+(?:del|delete|destroy)\s|"
    r"(?:python[\d.]* -m )?pip[\d.]*\s+install\s(?:-\S+\s)*pip(?=\s|$)|"
    r"(?:source|\.)\s+(?:\S*/)?deactivate\b|(?:singularity|apptainer)\s.*\spython3?\s+-c\b"
)
# Without a package that they install, the program behind them fails at once, and the job with it. (Of a
# package in this folder an earlier version may be installed.)
_INSTALLS = re.compile(
    r"(?:python[\d.]* -m )?(?:ensurepip|spacy download|nltk\.downloader|"
    r"(?:pip[\d.]*|uv pip|conda|mamba|micromamba)\s(?:.*\s)?install\b(?!(?!.*\s-e\s).*\s\.)|"
    r"(?:\S*/)?(?:poetry|pipenv|pdm|uv)\s+(?:install|sync)\b)"
)
# Commands that only clean up, print, or submit other jobs.
_CLEANS = re.compile(
    r"(?i)ws_release|(?:re)?(?:submit|sbatch|qsub)\w*(?:\.\w+)?|run_?all\w*\.(?:sh|bash)|(.*[-_.])?(clea[nr]([-_]?(up|sync))?|epilog(ue)?|finali[sz]e)([-_.].*)?|print_\w+|log(_\w+|msg)?|info|msg|banner"
)
_ENDS = ("stop", "shutdown", "close-session", "--shutdown", "--stop")  # words that end a service: ray stop
_SHELLS = {"bash", "sh", "zsh", "ksh", "dash", "tcsh", "csh"}
# Words with which a program does nothing but print.
QUERY = {"hostname", "pwd", "nvidia-smi", "date", "env", "printenv", "ldd", "uname", "lscpu", "which"}
_ASKS = {
    "--version", "-V", "-version", "--help", "--list", "--dry-run", "--dryrun", "--unlock", "instance.stop",
    "--dag", "--rulegraph", "--filegraph",
}  # fmt: skip
# Programs that a person or a time limit ends.
INTERRUPTED = {
    "timeout", "jupyter", "jupyter-lab", "jupyter-notebook", "tensorboard", "code-server", "sshd", "ssh",
    "--pty", "xterm", "vncserver", "rserver",
}  # fmt: skip


class Reason(Enum):
    """Why the failure of a command matters."""

    STATUS = "its status is that of a later command"
    ENVIRONMENT = "python goes on with the packages of another installation"
    DEVICES = "TensorFlow goes on without the GPUs"
    INPUT = "a later command reads what this one makes"


class Ignored(NamedTuple):
    command: Command
    reason: Reason


def run(script: Script) -> list[Command]:
    """Return the commands that may run: not behind an exit or an error of syntax, in no dead branch."""
    error = next(script.tree.all("ERROR"), None) if script.tree.damaged else None
    end = script.last_line if error is None else min(script.last_line, error.line - 1)
    found = [one for one in script.commands if one.line <= end and not is_template(one.words[0].text)]
    return [one for one in found if one.name not in _MISREAD and not script.constants.is_dead(one.node)]


_MISREAD = {"if", "then", "elif", "else", "fi", "do", "done", "case", "esac"}  # no names of commands


def named(command: Command) -> set[str]:
    """Return the arguments of a command that are plain text, without directories."""
    return {os.path.basename(word) for word in command.literals}


def asks(command: Command) -> bool:
    """Return whether a program only prints, or what it would do: ``--version``, but not ``--version 2``."""
    pairs = pairwise((*command.literals, "-"))
    words = {word for word, after in pairs if word != "--version" or after.startswith("-")}
    return bool((QUERY | _ASKS) & {os.path.basename(word) for word in words})


def is_probe(command: Command) -> bool:
    """Return whether a launcher starts a test of the network, which takes seconds."""
    return any(map(_PROBE.fullmatch, named(command)))


_PROBE = re.compile(r"(\w+_perf(_mpi)?|ib_\w+|osu_\w+)(?:_\d+)?")


def is_work(command: Command) -> bool:
    query = asks(command) or _PRINTING_CODE.search(command.node.text) or prepares_nodes(command)
    query = query or _started(command) in {*_COPIES, "tar", "unzip"}  # files for the programs below
    return command.works and not query and not command.node.under("command_substitution")


def prepares_nodes(command: Command) -> bool:
    """Return whether a launcher only prints, ends a service, or makes and removes files: ``srun mkdir a``."""
    name = _started(command)
    quick = {*INFORM, *_PREPARE, "sync", "killall", "find"} - {"test"}
    return name in quick or any(known.fullmatch(name) for known in (_PRINTS, _CLEANS))


def _started(command: Command) -> str:
    """Return the name of the program that a launcher starts on the nodes; empty for other commands."""
    call = read_call([word.text for word in command.words])
    return os.path.basename(call.program[0]) if call is not None and call.program else ""


def programs(script: Script) -> list[Command]:
    """Return the commands of a job that run a program which is neither a tool nor a part of the shell."""
    common = {*TOOLS, *STATE, *INFORM, *_ASIDE, *_SHELL, *script.functions}
    found = [one for one in run(script) if script.is_batch and one.program not in common and _is_command(one)]
    found = [one for one in found if one.program or one.name != "eval"]
    known = [one for one in found if one.program or one.program_word.text.startswith(("$", '"$'))]
    return [
        one
        for one in known
        if not asks(one)
        and not prepares_nodes(one)
        and not _elsewhere(one)
        and not _lists(one)
        and not _INSTALLS.match(one.node.text)
        if not any(word.startswith(_ENDS) for word in one.literals[:2]) and not _cleans(one)
        if not _TOOL_IN_VARIABLE.fullmatch(one.words[0].text)
    ]


def does_little(script: Script) -> bool:
    """Return whether a job only prints, loads modules, makes folders or submits other jobs."""
    read = script.for_a_shell and not script.tree.damaged
    return read and all(_is_quick(script, one) for one in script.commands)


_HELLO = re.compile(r"(?i)(?:^|[\s/])(?:\w+_)?hello[\w-]*(?:\.\w+)?(?=\s|$)")


def _is_quick(script: Script, command: Command) -> bool:
    name, words, text = command.name, command.literals, command.node.text
    if name == "sleep":
        return re.fullmatch(r"\d{1,2}s?", "".join(words)) is not None and not command.node.under(*LOOPS)
    if name in ("source", "."):
        return activates(command) or _OTHER_SOURCE.search(text) is not None
    changes = (name in _ACTIVATE and changes_shell(name, words)) or (name == "eval" and "hook" in text)
    own = _HELLO.search(text) or ("/" not in command.words[0].text and name in {*_QUICK, *script.functions})
    return bool(own) or changes or asks(command) or _lists(command) or prepares_nodes(command)


def shows_installation(script: Script, command: Command) -> bool:
    """Return whether Python only imports and prints, has a module that prints versions, or tests what the
    script has installed."""
    words = [word.unquoted for word in command.words]
    triples = zip(words, words[1:], words[2:], strict=False)
    found = {option: text for name, option, text in triples if is_python(os.path.basename(name))}
    if re.fullmatch(
        r"\w+\.utils\.collect_env|deepspeed\.env_report|site|sysconfig|platform", found.get("-m", "")
    ):
        return True
    code = found.get("-c", "")
    prints = all(re.match(r"\s*(?:(?:import|from|print)\b|$)", part) for part in re.split(r"[;\n]", code))
    return bool(code) and (prints or any("install" in one.literals for one in script.commands))


def _cleans(command: Command) -> bool:
    """Return whether a program, or the script of a shell, cleans up, prints or submits, by its name."""
    name, *words = _program(command) or [""]
    own = command.program or os.path.basename(command.words[0].unquoted)
    scripts = words if os.path.basename(name) in _SHELLS else []
    return any(_CLEANS.fullmatch(os.path.basename(one)) for one in (own, *scripts))


def handled(command: Command) -> bool:
    """Return whether a failure is handled, or is that of another process."""
    whole = command.statement
    after_or = whole.type == "list" and "||" in {part.type for part in whole.children}
    return _elsewhere(command) or after_or or command.guarded or command.tested or command.background


def repeats(works: Sequence[Command], work: Command) -> bool:
    """Return whether the script runs a program several times, with other arguments: one may fail alone."""
    same = [one for one in works if _program(one) == _program(work) and not alternative(one, work)]
    return work.node.under(*LOOPS) or len(same) > 1


def ignored(script: Script, works: Sequence[Command]) -> Ignored | None:
    """Return the first command whose failure the script ignores: a run, else an environment, else an input.

    ``works`` are the programs of the job; the status of the last one may be that of the script.
    """
    own = [one for one in run(script) if not handled(one) and not alternative(one, works[-1])]
    own = [one for one in own if _may_fail(script, one) and not has_gap(_unquoted(one))]
    own = [one for one in own if one.node.start >= works[-1].node.start or not _INSTALLS.match(one.node.text)]
    finders = (_runs, _environments, _modules_of_gpus, _inputs)  # in the order of the reasons
    for reason, find in zip(Reason, finders, strict=True):
        if first := next(find(script, works, own), None):
            return Ignored(first, reason)
    return None


# Runs


def _runs(script: Script, works: Sequence[Command], own: Sequence[Command]) -> Iterator[Command]:
    """Yield the programs whose status is lost, and which nothing else judges."""
    last, whole = works[-1], works[-1].statement  # the pipeline of it
    waited = max((one.node.start for one in script.named("wait") if one.tested), default=0)
    started = min((one.node.end for one in run(script) if one.background), default=waited)
    for one in own:
        if one not in works or is_judged(script, works, one) or is_sent_again(script, one):
            continue
        if started < one.node.start < waited:
            continue  # beside the program whose status the script waits for
        if (function := function_of(one.node)) and len(_uses(script, function)) < 2:
            continue  # nothing calls it
        if one == last:
            loops = (above for above in one.node.above() if above.type in LOOPS)
            lost = _is_followed(script, one) or not all(runs_once(loop, script.constants) for loop in loops)
        else:
            lost = one.node not in whole
        if lost:
            yield one


def _uses(script: Script, name: str) -> list[str]:
    code = "\n".join(line for line in script.tree.text.split("\n") if not line.lstrip().startswith("#"))
    return re.findall(rf"(?<![\w-]){re.escape(name)}(?![\w-])", code)


def only_cleanup(script: Script, work: Command) -> bool:
    """Return whether the commands behind a program only save its results, remove files and print."""
    after = (one for one in run(script) if one.node.start > work.statement.end)
    return all(one.name in _AT_THE_END or _HARMLESS.match(one.node.text) for one in after)


_OTHERS_AT_THE_END = (
    *("cp", "mv", "rsync", "scp", "tar", "zip", "gzip"),  # which save results
    *("curl", "deactivate", "conda", "module"),
)
_AT_THE_END = {*INFORM, *_ASIDE, *_PREPARE, *_SHELL, *TEXT, *_OTHERS_AT_THE_END}


def _is_followed(script: Script, work: Command) -> bool:
    """Return whether a later command changes the status of the script."""
    function, kept, end = function_of(work.node), ("wait", "trap", "set"), work.statement.end
    calls = [one for one in run(script) if function and one.name == function]
    inner = (one for one in run(script) if calls and function_of(one.node) == function)
    if calls and not any(one.node.start > end for one in inner):
        if len(calls) > 1 or calls[0].node.under(*LOOPS):
            return True
        end = calls[0].statement.end  # the status of the function is that of the program
    after = [one for one in run(script) if one.node.start > end and _is_command(one)]
    after = [one for one in after if not handled(one) and not alternative(one, work)]
    return any(one.arguments if one.name == "exit" else one.name not in kept for one in after)


@lru_cache(maxsize=4)
def _checks(script: Script) -> dict[str, list[int]]:
    """Return the variables that get the result of a search or a check, and where."""
    found: dict[str, list[int]] = {}
    for name, value, _ in script.assignments:
        if _CHECK.match(value.text):
            found.setdefault(name, []).append(value.start)
    return found


_CHECK = re.compile(r"\"?(?:\$\(|`)\s*(?:\S*/)?(?:e?grep\b|\w*check)")
_CHECKS = re.compile(r"(?:e?grep|diff|cmp|\w*(?:check|score|compare|verify|validate)\w*)$")


@lru_cache(maxsize=4)
def _tests(script: Script) -> dict[int, int]:
    """Return the conditions on the status of a check, itself or by ``$?``, and where the check stands."""
    found: dict[int, int] = {}
    starts = [one.node.start for one in script.commands]
    for node in script.tree.all("if_statement"):
        first = node.get("condition") or node
        at = bisect_left(starts, first.start) - ("$?" in first.text)
        if 0 <= at < len(starts) and starts[at] < first.end and _CHECKS.match(script.commands[at].name):
            found[first.start] = starts[at]
    return found


_MISSES = re.compile(r"\[+\s+!\s*-[efs]\s")  # a message that a file is missing
_SEARCHES = re.compile(r"!?\s*e?grep\b")
_FAILURE = re.compile(r"\belse\b(?s:.*?)(?i:error|fail)")  # the branch that reports it
_SEARCHED_LOG = re.compile(r"grep\b.*(?i:log|out|err|slurm|result)")
JUDGES = re.compile(r"\b(?:e?grep|diff|cmp)\b|\[+\s+(?:!\s*)?-[efs]\s")


def is_judged(script: Script, works: Sequence[Command], work: Command) -> bool:
    """Return whether a later condition searches the log or a result of a program, or ends the script."""
    files = [word.unquoted for word in (*work.arguments, *work.files())]
    files = [text for text in files if re.search(r"[\w}]\.\w|[/$]", text)]
    for node in script.tree.all("if_statement", "list"):
        first = node.get("condition") or next(iter(node.children), node)
        if first.start < work.node.end:
            continue
        checks = (at for name, _ in expansions(first) for at in _checks(script).get(name, ()))
        if any(work.node.end < at < first.start for at in checks):
            return True
        if _tests(script).get(first.start, 0) > work.node.end and not any(one.node in node for one in works):
            return True
        if not JUDGES.search(first.text):
            continue
        if any(one.node in node for one in works):
            continue  # it decides on a further run
        inner = {one.name for one in script.commands if one.node in node and one.node not in first}
        between = any(work.node.end < one.node.start < first.start for one in works)
        tells = not between and _MISSES.search(first.text) and inner <= {"echo", "printf"}
        branches = _SEARCHES.match(first.text) and _FAILURE.search(node.text)
        named = any(text in first.text for text in files) or _SEARCHED_LOG.search(first.text)
        if tells or named or "exit" in inner or (branches and not between):
            return True
    return False


_ITSELF = r"\$\{?0\b|BASH_SOURCE|JOB_?NAME"


def is_sent_again(script: Script, work: Command) -> bool:
    """Return whether the script submits itself after a program: a chain may go on after a failure."""
    for one in script.named("sbatch", "qsub", "msub"):
        words = [word.text for word in (*one.arguments, *one.files("<"))]
        names = [word for word in words if re.search(_ITSELF, word) or os.path.basename(word) == script.name]
        if names or not any(map(_OF_SCRIPT.search, words)):
            words = names or [word for word in words if re.fullmatch(r"\"?\$\{?\w+\}?\"?", word)]
            if one.node.start > work.node.end and words:
                return True  # a variable may have the name of the script
    later = (one for one in run(script) if one.node.start > work.node.end)
    return any("resub" in name.lower() for one in later for name in _program(one))


# Environments

# Commands that select the python of the programs behind them. (A program fails without a module of python: it
# finds none, or one without its packages.)
_ACTIVATE = {"conda", "mamba", "micromamba", "pyenv", "workon"}
_LOAD = {"module", "ml", "setpkgs", "vpkg_require", "soft", "use"}
_ELSEWHERE = {"torchrun", "deepspeed", "accelerate", "colossalai", "horovodrun"}
_IMAGES = CONTAINERS | {"charliecloud", "enroot", "udocker"}
_MANAGERS = ("conda", "mamba", "micromamba", "uv", "poetry", "pipenv", "pixi", "hatch")  # behind them: run
_SENDS = ("sbatch", "qsub", "msub", "grep", "sed", "cut", "seq")  # other jobs, written from a text
_QUICK = {*INFORM, *_ASIDE, *_SHELL, *_PREPARE, *_LOAD, *_SENDS}
# Files that set up a shell, the command module or a compiler.
_OTHER_SOURCE = re.compile(
    r"(?i)/etc/profile|profile$|\w*rc$|/init/|/(?:gcc|intel|oneapi|pgi|\w*mpi)[-/\d]|conda\.sh\b"
)
_OF_GPU = re.compile(r"(?i)(?:^|/)(?:foss)?(?:cuda|cudnn|nccl|rocm|nvhpc)")
_ENVIRONMENT = re.compile(r"(?i)activate\b|env|conda|torch|tensorflow|py")  # in the name of a sourced file


def _environments(script: Script, works: Sequence[Command], own: Sequence[Command]) -> Iterator[Command]:
    """Yield the last activation, if another python has packages that a program may go on with."""
    ends = ("source", ".") if script.asks_for_sh else ()  # sh ends at a file that it cannot read
    found = _before_python(script, works, [one for one in own if one.name not in ends and activates(one)])
    found.sort(key=lambda one: "activate" in one.node.text)
    yield from (one for one in found[-1:] if _goes_on_with_others(script, one))


def _modules_of_gpus(script: Script, works: Sequence[Command], own: Sequence[Command]) -> Iterator[Command]:
    """Yield the modules of the GPUs without which TensorFlow computes on the CPUs; PyTorch brings its own."""
    uses = (one for one in run(script) if one.name not in _LOAD and _TENSORFLOW.search(one.node.text))
    if _has_gpus(script) and any(uses):
        yield from _before_python(script, works, [one for one in own if _loads_gpu(one)])


_TENSORFLOW = re.compile(r"(?i)tensorflow|keras|theano|(?<![a-z])tf(?![a-z])")


def _before_python(script: Script, works: Sequence[Command], found: list[Command]) -> list[Command]:
    last = max((one.node.start for one in works if found and _is_of_python(script, one)), default=0)
    return [one for one in found if one.node.start < last]


def _has_gpus(script: Script) -> bool:
    return any(request.gpus or request.gpus_per_node for request in script.requests)


def _goes_on_with_others(script: Script, activation: Command) -> bool:
    """Return whether a module with the packages of a program is loaded above its environment, or pip
    installs them below. Other programs fail at once without their environment, and the job with them.
    """
    packages = _LEARNS if _has_gpus(script) else _PACKAGES
    for one in run(script):
        if one.node.start > activation.node.end:
            if _INSTALLS.match(one.node.text):
                return True
        elif one.name in _LOAD and any(map(packages.search, one.literals)):
            return True
    return False


_LEARNS = re.compile(r"(?i)torch|tensorflow|keras|(?<![a-z])tf(?![a-z])")
_PACKAGES = re.compile(rf"(?i)anaconda|{_LEARNS.pattern[4:]}")


def activates(command: Command) -> bool:
    """Return whether a command activates an environment, or sources a file that is called so."""
    if command.name in ("source", "."):
        text = command.node.text
        return _ENVIRONMENT.search(text) is not None and not _OTHER_SOURCE.search(text)
    return command.name in _ACTIVATE and "install" not in command.literals and not _lists(command)


def _loads_gpu(command: Command) -> bool:
    words = command.literals
    other = {"purge", "list", "avail", "unload", "rm", "use", "restore"}.intersection(words)
    return command.name in _LOAD and not other and any(map(_OF_GPU.search, words))


def _is_of_python(script: Script, work: Command) -> bool:
    """Return whether the search path selects the python of a program."""
    words = [part for word in work.words for part in script.constants.text(word).split()]
    if _IMAGES.intersection(words) or any(one.startswith("--container-image") for one in words):
        return False
    if any(one in _MANAGERS and "run" in words[at + 1 : at + 3] for at, one in enumerate(words)):
        return False
    return any(one in _ELSEWHERE or ("/" not in one and is_python(one)) for one in words)


# Inputs

_COMPILERS = re.compile(
    r"c?make3?|gmake|ninja|configure|\w*gcc|\w*g\+\+|g?fortran|cc|CC|ftn|ic(?:c|pc|x|px)|ifort|ifx|clang(?:\+\+)?|"
    r"mpi(?:cc|cxx|c\+\+|CC|f77|f90|fort|icc|icpc|ifort)|hipcc|cargo|javac|virtualenv|pyvenv|pip[\d.]*|grompp\w*"
)
_FETCHES = {"pull", "checkout", "switch", "fetch", "submodule", "lfs"}  # of git; clone fails at a second time
_COPIES = {"cp", "rsync", "scp", "sbcast", "gsutil", "rclone", "aws"}
_OF_SCRIPT = re.compile(
    r"\$\{?0\b|BASH_SOURCE|(?i:script)|\.(?:sh|bash|slurm|sbatch|pbs|job|sub|qsub|log|md)[\"']?$"
)


def _inputs(script: Script, works: Sequence[Command], own: Sequence[Command]) -> Iterator[Command]:
    """Yield the commands that make or fetch what a later one reads, as far as the text shows it."""
    for one in own:
        later = [other for other in run(script) if other.node.start > one.node.end]
        if one.node.start < works[-1].node.start and one not in works and _feeds(script, one, later):
            yield one


def _feeds(script: Script, command: Command, later: Sequence[Command]) -> bool:
    """Return whether later commands read what a command writes."""
    texts = [text for word in command.arguments if not (text := word.unquoted).startswith("-")]
    program, *sources = command.program, *texts[:-1]
    target = texts[-1] if texts else ""
    if program == "git":
        return bool(_FETCHES & set(texts[:2]))
    if program in ("tar", "unzip", "wget"):
        extracts = program != "tar" or any("x" in word.text for word in command.arguments[:1])
        pairs = pairwise(word.unquoted for word in command.arguments)
        folder = next((text for name, text in pairs if name in ("-C", "-d", "-P", "--directory")), ".")
        return extracts and not _is_new(script, command, folder)
    if command.name in _COPIES:
        record = all(_OF_SCRIPT.search(text) or text == script.name for text in sources)
        read = target in (".", "./") or (len(target) > 1 and _is_named(target.rstrip("/."), later))
        return not record and read and not _is_new(script, command, target)
    outputs = [word.unquoted for word in command.files(">", ">>", "&>", "&>>", ">|")]
    words = [word.unquoted for word in command.arguments]
    outputs += [value for name, value in pairwise(words) if _OUTPUT.fullmatch(name)]
    outputs = [text for text in outputs if len(text) > 3 and not text.startswith("/dev/")]
    compiles = _COMPILERS.fullmatch(program) is not None and not _is_emptied(script, command)
    return compiles or any(_is_named(text, later) for text in outputs)


_OUTPUT = re.compile(r"--?(?:o|O|out\w*|output[-_\w]*|save[-_\w]*|dest\w*|prefix|results?[-_\w]*)")


def _is_emptied(script: Script, command: Command) -> bool:
    """Return whether the folder of a build is emptied before: no old program is left that could run."""
    before = (one for one in script.named("rm") if one.node.start < command.node.start)
    return any(word.text in ("*", "./*") for one in before for word in one.arguments)


def _is_new(script: Script, command: Command, target: str) -> bool:
    """Return whether a command writes into a folder of this job, or one that the script has made or emptied:
    what reads it fails itself if a file is missing.
    """
    before = [one for one in run(script) if one.node.start < command.node.start and one.arguments]
    if target in (".", "./"):
        moves = (one.arguments[-1].unquoted for one in reversed(before) if one.name in ("cd", "pushd"))
        target = next(moves, "")
    folder = target.rstrip("/*.")
    makes = (one for one in before if one.name in ("mkdir", "rm", "\\rm"))
    made = {word.unquoted.rstrip("/*") for one in makes for word in one.arguments}
    values = (folder, *(one.text for one in script.values.get(folder.strip("${}"), [])))
    return bool(folder) and (folder in made or any(map(_OF_JOB.search, values)))


_OF_JOB = re.compile(r"JOB_?ID|\$\$|TMPDIR|mktemp|\bdate\b")


def _is_named(text: str, later: Sequence[Command]) -> bool:
    """Return whether a later command has a path, or one below it, among its words."""
    return any(text in word.text for one in later for word in (*one.words, *one.files("<")))


# Commands


def _program(command: Command) -> list[str]:
    """Return the program of a command or of its launcher, and the file or the first word that it gets."""
    words = [word.text for word in command.words]
    call = read_call(words)
    if call is not None and call.program:
        name, *words = call.program
        files = [word for word in words if re.search(r"\.(?:py|jl|R|sh|pl)[\"']?$", word)]
        # gmx mdrun
        action = [word for word in words[:1] if re.fullmatch(r"[a-z_]+", word) and "/" not in name]
        return [name, *(files or action)[:1]]
    return [word for word in words if not re.match(r"-|\d+$", word)][:2]


def _is_command(command: Command) -> bool:
    """Return whether the first word may be a command: no option, no invisible sign, no name before =."""
    text, *others = [word.text for word in command.words[:2]]
    return others != ["="] and not text.startswith("-") and re.search(r"[A-Za-z0-9$.]", text) is not None


def _unquoted(command: Command) -> str:
    return " ".join(word.text for word in command.words if word.type not in ("string", "raw_string"))


def _elsewhere(command: Command) -> bool:
    """Return whether another process runs a command."""
    return command.node.under("command_substitution", "process_substitution", "heredoc_body")


def _may_fail(script: Script, command: Command) -> bool:
    """Return whether a command does more than to print, to clean up or to change text. (A `cd` is the matter
    of unchecked-cd.)
    """
    if command.name in {*_SHELL, *_PREPARE, *INFORM, *_ASIDE, *TEXT} or command.name in script.functions:
        return False
    if command.name == "eval" and next(command.node.all("command_substitution"), None):
        return False  # such as the hook of conda
    ends = _cleans(command) or sends(command) or _HARMLESS.match(command.node.text)
    query = command.name not in {*_ACTIVATE, "source", "."} and asks(command)
    other = query or _lists(command) or is_work(command) != command.works
    names = {command.name, command.program, *command.literals[:1]}
    waits = names & INTERRUPTED or "--pty" in command.literals
    none = ends or other or waits or _prints(command) or _is_unknown(script, command)
    return not none and _is_command(command)


def _is_unknown(script: Script, command: Command) -> bool:
    """Return whether a name without a path may be a function of a sourced file."""
    name = command.words[0].text
    if "/" in name or "$" in name or command.works:
        return False
    of_file = re.fullmatch(r"[a-z]+(_[a-z]+)+", name) and any(script.named("source", "."))
    return bool(of_file) or (len(command.words) == 1 and not command.files())


def _prints(command: Command) -> bool:
    """Return whether a program only prints, as far as its name or its code shows it."""
    program, words = command.program, command.literals
    if program in {*INFORM, *_ASIDE} or _PRINTS.fullmatch(program):
        return True
    if any(_PRINTS.fullmatch(word.rpartition(".")[2]) for word in words[:2] if "torch" in word):
        return True  # python -m torch.utils.collect_env
    if not is_python(program):
        return program in _SHELLS and len(command.words) == 1 and not _code(command).strip()
    file = os.path.basename(command.arguments[0].text) if command.arguments else ""
    if "-c" in words[:1] or re.fullmatch(r"(?i)\w*(?:mail|version)\.py|(?:print|show)_\w+\.py", file):
        return True
    code = _code(command)
    shows = (re.match(r"\s*(?:import |from |print\s*\(|#|$)", line) is not None for line in code.splitlines())
    return bool(code.strip()) and all(shows)


def _code(command: Command) -> str:
    """Return the here-document that a command reads; a mark if its input is a file or another command."""
    above = command.node.parent
    if above is not None and above.type == "pipeline" and above.children[0] is not command.node:
        return "<"
    if above is None or above.type != "redirected_statement":
        return ""
    body = next((one.text for one in above.all("heredoc_body")), "")
    return body or ("<" if command.files("<") else "")


def _lists(command: Command) -> bool:
    """Return whether conda or pip only show what is installed."""
    if command.name.endswith("sum"):  # the checksum of a file, which is compared with none
        return not {"-c", "--check"} & set(command.literals)
    shown = command.literals[:1] in (["list"], ["info"], ["show"], ["freeze"], ["--version"])
    return shown and command.name in ("conda", "mamba", "micromamba", "pip", "pip3", "spack", "git")


def alternative(one: Command, other: Command) -> bool:
    """Return whether at most one of two commands runs: they are in different branches."""
    cases = _case(one), _case(other)
    if cases[0][:1] == cases[1][:1] != () and cases[0] != cases[1]:
        return True
    mine = [one.node, *one.node.above()]
    common = {id(node) for node in (other.node, *other.node.above())}
    at = next(at for at, node in enumerate(mine) if id(node) in common)
    if mine[at].type not in ("if_statement", "case_statement") or at == 0:
        return False
    below = next(one for one in mine[at].children if other.node in one)
    branches = {mine[at - 1].type, below.type}
    return bool(branches & {"elif_clause", "else_clause", "case_item"})


def _case(command: Command) -> tuple[str, ...]:
    """Return the variable and the value of the condition ``[ "$NAME" = value ]`` around a command."""
    conditions = (one.get("condition") for one in command.node.above() if one.type == "if_statement")
    matches = (re.fullmatch(_EQUALS, one.text) for one in conditions if one is not None)
    return next((one.groups() for one in matches if one), ())


_EQUALS = r"\[+\s+\"?\$\{?(\w+)\}?\"?\s+==?\s+[\"']?(\w+)[\"']?\s+\]+"
