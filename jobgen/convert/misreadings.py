"""Parts of a script that its scheduler or bash reads otherwise than a reader expects."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from jobgen.convert.result import Remark, hint, remark_on, shortened
from jobgen.errors import counted
from jobgen.launch.command_line import is_python
from jobgen.launch.containers import RUNTIMES
from jobgen.launch.launchers import LAUNCHERS, MPI_FLAVOURS
from jobgen.launch.wrappers import CONTAINERS, WRAPPERS
from jobgen.rendering.hooks import complaint
from jobgen.script.command_kinds import PRINT, STATE, TOOLS
from jobgen.script.commands import Command
from jobgen.script.directives import apart
from jobgen.script.launches import Launch
from jobgen.script.own_folder import COPY, uses_of_folder
from jobgen.script.script import Script
from jobgen.script.syntax import LOOPS, MISSING, Node, expansions, function_of
from jobgen.values import parsers


def refusal(script: Script) -> tuple[int, str] | None:
    """Return the line and the reason if the text is no script that bash can run up to its end.

    Behind an ``exit`` or ``exec`` it reads nothing.
    """
    if not script.for_a_shell:
        return None
    number = script.directives.first_command or 1
    if (match := _OF_OTHER_TEXT.match(script.line(number).lstrip())) and not script.line(1).startswith("#!"):
        return number, f"{match[0].split()[0]} is no command: the text is no script for a shell"
    whole = script.source.replace(b"\r\n", b"\n").decode("utf-8", "replace")
    ends = [one.end for one in script.tree.children if re.match(r"(exit|exec)\b[^<>]*$", one.text)]
    texts = [whole, *(script.tree.source[:end].decode("utf-8", "replace") for end in ends[:1])]
    messages = [re.match(r"line (\d+): ((?!warning).*)", complaint(text)) for text in texts]
    if not all(messages) or messages[0] is None:
        return _unread_launch(script)
    return int(messages[0][1]), f"bash cannot read it: {messages[0][2]}"


def _unread_launch(script: Script) -> tuple[int, str] | None:
    """Return the line and the reason if a launcher is in a text that only bash reads."""
    for node in sorted((one for one in _errors(script) if one.type != "program"), key=lambda one: one.start):
        lines = enumerate(node.text.split("\n"), node.line)
        code = [(at, one) for at, one in lines if one.strip() and not one.lstrip().startswith("#")]
        if match := next((found for _, one in code if (found := _LAUNCHER.search(one))), None):
            return code[0][0], f"{match[0]} is in a text that cannot be read from here on: write it otherwise"
    return None


def _errors(script: Script) -> list[Node]:
    """Return the texts with an error of syntax for tree-sitter."""
    errors = [node for node in script.tree.all("ERROR") if node.text.strip("\\ \n")]
    return errors + [node.parent or node for node in script.tree.all(MISSING)]


def unreadable(script: Script) -> Iterator[Remark]:
    """Yield remarks on what the scheduler or bash reads otherwise than a reader expects."""
    source = script.dialect
    for option in script.options:
        if option.lacks_value:
            why = f"has no value: {source.command} refuses the script, or uses the next words as the value"
            yield Remark(option.line, option.given, why)
        if (image := re.search(r"(?i)\w*(docker|image|container)\w*=", option.value)) and option.flag == "-v":
            why = "is set when the job runs: a site that starts the job in this container does not see it"
            yield Remark(option.line, f"{option.flag} {image[0][:-1]}", why)
    if source.refuses_comments:
        yield from _comments(script)
    for number in apart(script.lines, script.directives):
        why = f"{source.command} does not join it with the line above: it is a command"
        yield Remark(number, script.lines[number - 1].strip(), why)
    comments = script.lines[: script.directives.first_command or None]
    buffers = (at for at, line in enumerate(comments, 1) if re.match("#(DW|BB) ", line))
    if source.node_step and (at := next(buffers, None)):
        why = f"is a directive for the burst buffer of {source.title}, which the new job does not have"
        yield Remark(at, shortened(script.line(at).strip()), why)
    yield from other_directives(script)
    first = script.directives.first_command or len(script.lines)
    shebangs = (one for one in script.tree.all("comment") if re.match(r"#! */", one.text))
    for node in islice((one for one in shebangs if one.line > first), 1):
        why = "begins another script in the same file: its commands run, and its directives have no effect"
        yield remark_on(node, why)
    if wrong := min((node.line for node in _errors(script)), default=0):
        why = "cannot be read: check the commands from here on"
        yield Remark(wrong, shortened(script.lines[wrong - 1].strip()), why)
    if at := min(_lines_of(script, _LETTERS), default=0):
        why = "has a character that is no blank for bash, but a part of a word, which jobgen reads without it"
        yield Remark(at, shortened(script.line(at).strip()), why)
    for at in _lines_of(script, _BLANK_AT_END, *_TEXTS):
        why = "has a blank behind the backslash: the command ends here, and the next line is another one"
        yield hint(at, shortened(script.line(at).strip()), why)
    yield from (remark_on(node, COPY) for node in islice(uses_of_folder(script), 1))
    if b"\r\n" in script.source:
        yield hint(1, "carriage returns", "are removed: bash reads them as letters of the words")


def _comments(script: Script) -> Iterator[Remark]:
    """Yield a remark on the first comment behind a directive that the scheduler reads as words of it."""
    found = [(one.number, one.comment) for one in script.directives.live if one.comment]
    for number, comment in found[:1]:
        why = f"is left out: {script.dialect.command} of {script.dialect.title} reads it as words of the "
        why += "directive, and refuses the script"
        why += f"; {counted(len(found) - 1, 'more directive')} with a comment" if len(found) > 1 else ""
        yield hint(number, shortened(comment), why)


_MOST_COMMANDS = 100  # lines that are no comments, after which sbatch reads no directives


def other_directives(script: Script) -> Iterator[Remark]:
    """Yield a remark on each directive of another scheduler that the source reads, too."""
    source = script.dialect
    if source.ignores_others in script.heeded:
        return
    prefix = next((one for one in source.also_reads if any(map(re.compile(one).match, script.lines))), None)
    commands = 0
    for number, line in enumerate(script.lines, 1):
        commands += not line.startswith("#")
        if prefix is None or commands > _MOST_COMMANDS:
            return
        rest = line.removeprefix(prefix).strip() if line.startswith(prefix) else ""
        options = re.findall(r"(?<!\S)-(?=([A-Za-z].*))", rest)  # each with the text behind it
        own, (effective, others) = source.scheduler.prefix, source.also_reads[prefix]
        if rest[:1] not in ("", "-") or not all(re.match(f"{effective}|{others}", one) for one in options):
            yield Remark(
                number, line.strip(), f"{source.command} reads it, too, and refuses the script for it"
            )
        elif any(re.match(effective, one) for one in options):
            why = f"{source.command} reads it, too, and it overrides {own}: write it as {own}"
            yield Remark(number, line.strip(), why)


def reads_others(text: str, scheduler: str) -> bool:
    """Return whether the command of a scheduler reads directives of another one in a script, too."""
    return any(other_directives(Script(text.encode(), scheduler)))


_TEXTS = ("comment", "heredoc_body", "string", "raw_string")
_BLANK_AT_END = re.compile(rb"(?<=[ \t])\\[ \t]+\n")  # behind the backslash of a line
_LETTERS = re.compile(rb"[\v\f]")  # blanks that are letters for bash


def _lines_of(script: Script, pattern: re.Pattern[bytes], *texts: str) -> Iterator[int]:
    """Yield the lines with a sign in commands, outside of the ``texts``, by default nodes without parts."""
    found = [match.start() for match in pattern.finditer(script.tree.source)]
    all_nodes = script.tree.all(*texts) if found else ()
    nodes = [one for one in all_nodes if texts or not one.children or one.type in _TEXTS]
    for start in found:
        if not any(one.start <= start < one.end for one in nodes):
            yield script.tree.line + script.tree.source.count(b"\n", 0, start)


_NAMES = "|".join(re.escape(name) for row in LAUNCHERS.values() for name in (*row.names, *row.line.modules))
_LAUNCHER = re.compile(rf"(?<![\w/.$-])({_NAMES})(?![\w/.=-])")
# The beginnings of a Dockerfile, a definition of a container, YAML, JSON, Python and a Makefile.
_OF_OTHER_TEXT = re.compile(
    r"(FROM|ARG|RUN|COPY) |[\w-]+:( |$)|[{\[]$|(from [\w.]+ )?import \w|def \w+\(|<\w"
)
# Names with gpu, but for those of programs without one: no_gpu, --n_gpu=0.
_GPU = (
    r"(?<!no)(?<!no[_-])(\b|(?<=_)|(?=gpus?_)|(?<=[a-z])(?=gpus?\b))gpu"
    r"(?!\w*[= ][\"']?(0\b|false|off|no\b|none))"
)
_OF_GPUS = re.compile(
    r"(?<!no)(?<!no[_-])gpu|cuda|nvidia|tesla|volta|ampere|[gr]tx|titan|quadro|\bxk(himem|\d)?\b"  # xk: Cray
    r"|\b(fermi|pascal|kepler|hopper|[cm]20[5-9]0|k[1248]0|p40|p100|v100|a100|a[1-5]0|g?h[12]00|l40|mi\d{3,4})[a-z]?\b",
    re.IGNORECASE,
)
_OF_NODES = ("-l", "-C", "--constraint")


def names_devices(script: Script) -> bool:
    """Return whether the code, the queue or the properties of nodes have words of accelerators; code that ssh
    runs on a host outside of the job is none."""
    code = re.sub(r"(?m)(^|\s)#.*$", "", script.tree.text)
    for command in script.commands if "ssh" in code else ():
        text = command.node.text
        if _NAMES_DEVICES.search(text) and script.is_outside(command):  # with what it reads, and its modules
            own = "|".join(re.escape(f"{name}=") for name, _ in expansions(command.node))
            code = re.sub(rf"(?m)^\s*({own or '(?!)'}|module\s|ml\s).*", "", code.replace(text, ""))
    return bool(_NAMES_DEVICES.search(code) or directive_of_gpus(script))


_NAMES_DEVICES = re.compile(
    r"(?i)(?<!~)(\b(cuda|nccl|nvshmem|roc(m|shmem|blas)|gfx\d|xpus?\b|nvidia-smi|craype-accel)|"
    rf"{_GPU})|\s--nv\b"
)


def directive_of_gpus(script: Script) -> tuple[int, str] | None:
    """Return the line and the value of a directive whose queue or properties of nodes have words of GPUs."""
    queue = script.request.queue or ""
    values = [(one.line, one.value) for one in script.options if one.flag.startswith(_OF_NODES)]
    values += [(next((one.line for one in script.options if one.value == queue), 1), queue)]
    return next((one for one in values if _OF_GPUS.search(one[1])), None)


# Settings of ROCm and of Cray's MPI, numbers of GPUs, modules of CUDA, what uses GPUs beside them, and
# requests in directives of others. A module of CUDA alone is often one that a compiler or an MPI needs.
_OF_ROCM = r"(HIP|ROCR)_VISIBLE_DEVICES|(HSA|MIOPEN|ROCFFT)_\w+"
_OF_CRAY = r"MPICH_GPU_SUPPORT_ENABLED|MPICH_RDMA_ENABLED_CUDA|CRAY_CUDA_(MPS|PROXY)"
_COUNT_OF_GPUS = re.compile(rf"(?i)n(um|umber_of)?_?gpus?(_per_node)?|gpus?_per_node|{_OF_CRAY}")
_GPUS_OF_PROGRAM = re.compile(
    r"(?is)\b(?:python[\d.]*|docker|podman)\s.*\s--?"
    r"((n(um|umber_of)?[_-]?)?gpus?([_-]per[_-]node)?[ =][\"']?([1-9]\d*|all))\b"
)
_OF_CUDA = re.compile(r"(?i)(\w+/)?cuda(toolkit)?([-_/.\d]|$)")
_USES_GPUS = re.compile(
    r"(?i)\bnccl|(?<!echo )\bnvidia-smi\b|\s--nv\b|\bCUDA_VISIBLE_DEVICES=[\"']?[\d$]"
    r"|\bnvidia-docker\b|\s--runtime[= ]nvidia\b"
)
_OTHER_REQUEST = re.compile(r"#(?!SBATCH)[A-Z]+BATCH\s+-")
_STARTS_RANKS = {name for one in LAUNCHERS.values() for name in one.names}
_STARTS_RANKS |= {name for one in MPI_FLAVOURS.values() for name in one.commands}
_NOT_LOADED = {"unload", "rm", "del", "use", "show", "avail", "list"}


def use_of_cuda(script: Script) -> tuple[int, str] | None:
    """Return the line and the words of a number or list of GPUs, a setting of their libraries, or a module of
    CUDA, for programs."""
    if not any(one.works or one.name in _STARTS_RANKS for one in script.runs):
        return None
    for name, value, node in script.assignments:
        count = parsers.number(script.constants.value(value))
        listed = name == "CUDA_VISIBLE_DEVICES" and re.match(r"[\"']?\d", value.text)
        if listed or (count and _COUNT_OF_GPUS.fullmatch(name)) or re.fullmatch(_OF_ROCM, name):
            return node.line, node.text
    for command in script.runs:
        if command.works and (option := _GPUS_OF_PROGRAM.search(command.node.text)):
            return command.line, f"--{option[1]}"
    code = re.sub(r"(?m)(^|\s)#.*$", "", script.tree.text)
    if not _USES_GPUS.search(code) and not any(map(_OTHER_REQUEST.match, script.lines)):
        return None
    loads = (one for one in script.running("module", "ml") if _NOT_LOADED.isdisjoint(one.literals[:1]))
    modules = ((one.line, word) for one in loads for word in one.literals)
    return next((one for one in modules if _OF_CUDA.match(one[1])), None)


def own_name(script: Script) -> Iterator[Remark]:
    """Yield a remark on each command that names the file of the script, except a program in another folder
    that a launcher or a container starts."""
    folder = re.compile(r"['\"]?(\./)?\w[\w.-]*/.")
    programs = {one.program[0].start for one in script.launches if one.program}
    for command in script.runs:
        starts = programs | (_contained(command, script) if script.name else set())
        words = [one for one in command.arguments if one.start not in starts or not folder.match(one.text)]
        names = [list(_names(word, script)) for word in [*words, *_inputs(command.node)]]
        if script.name and command.name not in PRINT and any(script.name in one for one in names):
            may_be = "is" if script.name in [first for first, *_ in names] else "may be"
            why = f"{may_be} the file of this script, and not that of the new one"
            yield hint(command.line, script.name, why)


_OF_LINE = re.compile(r"\$\{?((?:BASH_)?LINENO)\b")


def own_lines(script: Script) -> Iterator[Remark]:
    """Yield a remark on the first number of a line, also in a trap or a prompt."""
    for node in script.tree.all("simple_expansion", "expansion", "raw_string"):
        number = _OF_LINE.match(node.text) or (_is_for_shell(node) and _OF_LINE.search(node.text))
        if number:
            yield hint(node.line, f"${number[1]}", "is a line of this script, and not that of the new one")
            return


def _is_for_shell(text: Node) -> bool:
    """Return whether the shell of the script itself expands a text in quotes later."""
    command = text.around("command")
    traps = command is not None and command.name == "trap"
    return traps or text.child_of("variable_assignment") is not None


def _names(word: Node, script: Script) -> Iterator[str]:
    """Yield the name of a file in a word, and those with each value of a variable in it."""
    text = word.text.strip("'\"").rpartition("/")[2]
    yield text
    loops = [one for one in word.above() if one.type in LOOPS]
    for name, node in expansions(word) if "$" in text else ():
        of_loops = [one for one in loops if (variable := one.get("variable")) and variable.text == name]
        values = [value for one in of_loops for value in one.children if value.field == "value"]
        known = filter(None, map(script.constants.value, [*values, *script.values.get(name, ())]))
        yield from (text.replace(node.text, value) for value in known)


def _contained(command: Command, script: Script) -> set[int]:
    """Return where the words behind the name of a container begin."""
    names = [os.path.basename(script.constants.value(word) or "") for word in command.words]
    first = next((at for at, name in enumerate(names) if name in CONTAINERS), len(names))
    return {word.start for word in command.words[first + 1 :]}


def _inputs(command: Node) -> Iterator[Node]:
    """Yield the files that a command reads by a redirection."""
    above = command.child_of("redirected_statement")
    for one in above.children if above is not None else ():
        target = one.get("destination") if re.match(r"0?<[^<&]", one.text) else None
        if target is not None:
            yield target


WHOLE_ENVIRONMENT = "the ranks get the environment of the script, too, which --export={} keeps from it"


def narrow_export(script: Script) -> str:
    """Return the value of --export in the directives, or of its variable, if it keeps variables from srun."""
    name = "SLURM_EXPORT_ENV"
    value = script.heeded["--export"].value if "--export" in script.heeded else "ALL"
    if name in script.tree.text:
        value = next((script.constants.value(one) or "ALL" for one in script.values.get(name, ())), "ALL")
    return value if is_narrow(value) else ""


def is_narrow(value: str) -> bool:
    """Return whether a value of --export keeps variables of the script from what is started."""
    return "ALL" not in value.strip("\"'").upper().split(",")


_CONTAINERS = {row.command for row in RUNTIMES.values()} | {"sh", "bash", "docker", "podman"}
# Beginnings of programs that are installed, and not compiled beside the script.
INSTALLED = re.compile(
    r"gmx|lmp|namd|vasp|cp2k|osu_|IMB|pw\.x|ph\.x|pmemd|sander|orca|dask|ray|matlab|julia|java|perl|Rscript|R$"
    r"|torchrun|accelerate|deepspeed|jupyter|hpcrun|tau_exec|ncu|nsys|nvprof|ffmpeg|valgrind|spack|make|cmake|nextflow|snakemake"
    r"|\w*Foam$|wandb|dplace|stdbuf|taskset|numactl|parallel|xargs|nvidia|roc|ibrun|mpi(run|exec)"
    r"|ibv_|(dd|truncate|unsquashfs|udocker)$"
)


# Files that set PATH, but not those of a login and of compilers.
_OF_PROGRAMS = re.compile(r"(source|\.)\s(?!\S*(/etc/(profile|bash)|\.bash|\.profile|vars\.sh))")


def in_directory(script: Script, program: Sequence[Launch] | None = None) -> Iterator[Remark]:
    """Yield a remark on each program that srun finds in the working directory, and a shell does not: each one
    whose name is not known otherwise, or, of the launches of the ``program`` of a job file, those of them
    whose name no module, environment or path has."""
    step = script.dialect.node_step
    launches = [one for one in script.launches if one.kind == step and one.program and not one.unknown]
    launches = [one for one in launches if "--multi-prog" not in one.options]
    starts = {one.command.node.start for one in launches}
    modules = list(script.running("module", "ml", "conda", "mamba", "spack"))
    others = [one for one in script.runs if one.node.start not in starts and one not in modules]
    programs = {one.program[0].start for one in script.launches if one.program}
    words = [word for one in others for word in one.arguments if word.start not in programs]
    files = {word.text.strip("'\"").rpartition("/")[2] for word in words}
    packages = {word.text.partition("/")[0].lower() for one in modules for word in one.arguments}
    texts = [one.node.text for one in [*modules, *script.running("source", ".", "eval")]]
    texts += [value.text for name, value, _ in script.assignments if name.endswith("PATH")]
    for launch in launches if program is None else (one for one in launches if one in program):
        name = script.constants.value(launch.program[0]) or "/"
        made = name in files or re.search(r"\.(out|x|exe|bin|sh|bash|pl|jl)$", name)
        known = name in STATE | TOOLS or name in WRAPPERS or is_python(name) or name in _CONTAINERS
        known |= name.lower() in packages
        stem = (re.match("[a-zA-Z]{3,}", name) or [name])[0][:4]
        elsewhere = any(stem.lower() in text.lower() or _OF_PROGRAMS.match(text) for text in texts)
        plain = re.fullmatch(r"[\w.+-]+", name) is not None
        other = plain and (program is None or not elsewhere) and not INSTALLED.match(name)
        if "/" not in name and not known and (made or other):
            why = f"{step} finds it in the working directory, too: write ./{name} if it is there"
            yield hint(launch.line, name, why)


# Programs that may use the threads of OMP_NUM_THREADS, beside those with a path.
_THREADED = re.compile(
    r"julia|Rscript|matlab|octave|torchrun|\$(?![\w{}]+=)|(?!(/usr)?/s?bin/)\S*/.*(?<!\.sh)$"
    r"|[\w-]+\.(x|exe|out|bin)$"
)


def threads_outside(script: Script, others: Sequence[Node] = ()) -> Iterator[Remark]:
    """Yield a remark on each program outside a launcher, which gets the threads of a rank, too.

    ``others`` are the commands of launchers that are not known.
    """
    launched = [*(launch.command.node for launch in script.launches), *others]
    of_ranks = {one.name for node in launched for one in script.functions_named(node.text)}
    for command in script.runs:
        program = command.node.get("name")
        threaded = (
            program is not None
            and _THREADED.match(program.text)
            and command.name not in STATE | TOOLS
            and script.constants.value(program) not in ("true", "false")
            and not (command.node.field == "condition" and command.node.text.startswith("$"))
        )
        python = is_python(command.name) and any(word.text.endswith(".py") for word in command.arguments)
        started = any(node.start <= command.node.start < node.end for node in launched)
        started |= function_of(command.node) in of_ranks
        if not started and (threaded or python):
            why = f"gets OMP_NUM_THREADS of one rank; with {script.dialect.title} it may use "
            yield remark_on(command, f"{why}all cores of the node")
