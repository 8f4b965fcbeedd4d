"""Remarks on what the job of a job file does otherwise than the script: its status, traps and steps."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from itertools import takewhile

from jobgen.convert import differences, submission, unread_files
from jobgen.convert.launch_nodes import ALL
from jobgen.convert.misreadings import WHOLE_ENVIRONMENT, is_narrow, names_devices, narrow_export
from jobgen.convert.request_reader import has_directives
from jobgen.convert.result import Remark, hint, remark_on, shortened, shown
from jobgen.convert.start_directory import path_of
from jobgen.convert.swept_files import sweeps, takers
from jobgen.convert.to_job_file import inherited
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.definitions import definitions_of
from jobgen.convert.to_job_file.effects import LOGIN
from jobgen.convert.to_job_file.host_code import target_of
from jobgen.convert.to_job_file.program_line import ARGUMENT, read_by
from jobgen.convert.to_job_file.statements import FAILURE, IN_LOG, SEPARATORS, Split
from jobgen.convert.unread_files import of_engines
from jobgen.convert.variable_names import names_read
from jobgen.launch.command_line import is_python
from jobgen.launch.containers import LEAKS
from jobgen.launch.expansion import names, of_ranks
from jobgen.launch.launchers import LAUNCHERS
from jobgen.launch.wrappers import command_start
from jobgen.options import BY_KEY, CODE
from jobgen.rendering.launch_words import RANK_VARIABLES
from jobgen.rendering.runtime import names as runtime_names
from jobgen.script.bare_names import bare_names
from jobgen.script.changed_variables import changed_variables
from jobgen.script.command_kinds import PRINT, STATE, TOOLS, changes_shell
from jobgen.script.commands import Command, commands
from jobgen.script.constants import ARGUMENTS
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.script_arguments import first_read
from jobgen.script.syntax import LATER, LOOPS, Node, assignments, expansions, exported, in_background, parse
from jobgen.script.word_lists import code_text
from jobgen.values.parsers import known_directory, mebibytes, number

_OTHER_SHELL = ("function_definition", "subshell", "command_substitution", "process_substitution", "pipeline")
_STATUS = {"?", "PIPESTATUS[0]"}
# The first command behind a program, which keeps its status.
_SETS_STATUS = re.compile(
    r"(?:(?:export|local|declare|readonly) )?(\w+)=\"?\$(?:\?|\{\?\}|\{PIPESTATUS\[0\]\})\"?"
)
_SUCCEEDS = re.compile(r"(echo|printf|true)\b(?!.*[|&>])")
_OF_PROGRAM = re.compile(r"exit( \"?\$\?\"?)?")
_OWN_SHELL = ("subshell", "command_substitution", "pipeline")
# Commands with few words of output, and those at the end of a pipeline with one line.
_SHORT = re.compile(
    r"(echo|printf)\b(?!.*[*?])|(scontrol|date|hostname|seq|basename|dirname|pwd|head|tail)\b"
)
_ONE_LINE = re.compile(r"(head|tail|wc)\b|sed -n\b|\bNR ?==")
# Commands that take no time beside a process in the background, or wait for a while.
_BRIEF = STATE | PRINT | {"sleep", "kill", "true", "rm", "mkdir", "[", "test"}
_NO_TIME = STATE | {"echo", "printf", "date", "hostname", "true", "[", "test"}
_OWN_NUMBER = re.compile(r"(?<![\\$])\$\$(?![\w$])")
_TASKS = "SLURM_NTASKS_PER_NODE"
_MOVES = ("cd", "pushd", "popd", "module", "ml", "source", ".", "conda")
# Commands whose failure only prints a warning as an option.
_WARNS = re.compile(r"(module|ml)( -\S+)* (purge|unload|rm|del|remove|use|reset|restore|r|list)\b|ml -\S+$")
# Tools that measure or debug what they start.
_WATCH = frozenset(("gdb", "ltrace", "ncu", "nsys", "nvprof", "perf", "strace", "time", "valgrind"))
# A text for eval that is known only when the job runs, except the hooks of environments.
_OUTPUT = re.compile(
    r"[\"']?(\$\(|`)(?!.*\b(conda|mamba|micromamba|module\w*|ssh-agent|spack|pyenv|brew|lmod)\b)"
)
_SETS = ("read", "mapfile", "readarray", "printf", "let", "eval", "getopts")  # variables, by their names
_HANDLES = ("cat", "cp", "mv", "tee")
_READS_TEXT = ("awk", "cut", "diff", "egrep", "grep", "head", "read", "sed", "sort", "tail", "wc")
_WITH_FILES = ("command", "test_command", "file_redirect")
_WORDS = ("word", "string", "raw_string", "concatenation", "simple_expansion", "expansion")
_FINDS_SCRIPT = re.compile(r"scontrol (-\S+ )*show job\b.*\bCommand=")
_NAMES_ONLY = {*PRINT, "rm", "mkdir", "tee"}
_READS_CODE = ("source", ".", "eval", "exec")
_NODE_FILE = r"\"?\$(?:\{(?:PBS_NODEFILE)\}|(?:PBS_NODEFILE)\b)\"?"
_COUNTS_LINES = "|".join(
    (
        r"\bwc( -l| --lines)?( -)?\s*<?\s*FILE",
        r"(\bcat\s+|<\s*)FILE\s*\|\s*wc (-l|--lines)\b",
        r"\bgrep -c (\.|'[.^$]?'|\"[.^$]?\")\s+FILE",
        r"\bawk 'END *\{ *print NR;? *\}'\s+<?\s*FILE",
        r"\$PBS_NP\b|\$\{PBS_NP\}",
    )
)  # of the file of hosts
_FINDS_PYTHON = ("module", "ml", "source", ".", "conda", "mamba", "micromamba", "spack", "eval", "pyenv")
_FINDS_NONE = re.compile(
    r"^(module|ml)( -\S+)* (purge|reset|list|avail|(use|unload|rm) [^;&|]*)$"
    r"|^(conda|mamba|micromamba) (install|create|info|env|list)\b"
    r"|^(source|\.) /etc/profile(\.d/(modules|lmod)\.\w+)?$"
)
_NO_PYTHON = re.compile(
    r"(?i)(load|add|unload|rm|swap|switch|-.*)$|(?!.*(python|conda|torch|tensorflow))(\S+/)?(cuda|cudnn|cudatoolkit"
    r"|nccl|gcc|gnu|nvhpc|openmpi|mpich|mvapich2?|impi|intel-?mpi|hdf5|fftw|mkl|openblas|gsl|boost|cmake|git|java"
    r"|singularity|apptainer|shifter|slurm|intel|nvidia|mpi|compilers?|netcdf|pgi|prgenv|craype)([-_/.\d]\S*)?$"
)  # modules with compilers, libraries and tools
# A value of PATH with a folder that may have a python.
_OF_PYTHON = re.compile(r"(?i)(?!.*cuda).*(python|conda|mamba|env/|\.local|/bin(?=:|\W*$))")


def shell(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield remarks on the first line, which may name another shell than that of the job."""
    first = script.lines[0].strip() if script.lines else ""
    if kind := re.match(r"#!.*\s-(?:\w*l|-login|\w*(i))", first):
        what, whose = ("interactive", "~/.bashrc") if kind[1] else ("login", "the profile")
        yield hint(1, first, f"jobgen's script is no {what} shell: source what {whose} sets")
    if trace := re.match(r"#!.*\s-\w*([vx])", first):
        yield hint(1, first, f"jobgen's script does not print its commands: put set -{trace[1]} into setup")
    behind = parse("\n".join([*file.blocks[2:], file.shell_code]).encode())  # where it prints them as there
    kept = list(filter(_prints, commands(behind)))
    own = next(iter(list(filter(_prints, script.running("set")))[: -len(kept) or None]), None)
    if own and not own.node.under("function_definition"):
        why = "holds for the commands before the program at most: jobgen's script does not print its commands"
        yield hint(own.line, own.node.text, why)
    for option in script.options:
        if option.flag == script.dialect.shell_option and not re.search(r"(^|/)(ba|da)?sh\b", option.value):
            yield Remark(option.line, f"{option.flag} {option.value}", "the job runs the commands in bash")
    if other := re.match(r"#!.*\b(zsh|ksh|csh|tcsh|fish)\b", first):
        why = "the job runs the commands in bash"
        if other[1] != "ksh":
            why += f", which splits words in another way than {other[1]}"
            why += ", and counts the elements of arrays from 0"
        yield hint(1, first, why)


def _prints(command: Command) -> bool:
    """Return whether a command makes the shell print its commands: ``set -x``."""
    words = " ".join(command.literals)
    return command.name == "set" and re.match(r"(?!--)(.* )?-(\w*[vx]|o (xtrace|verbose))", words) is not None


def status(script: Script, parts: Split) -> Iterator[Remark]:
    """Yield a remark if the script ends with another status than that of its program."""
    own = parts.behind
    while own and _OF_PROGRAM.fullmatch(own[-1].text):
        own.pop()
    why = "the job ends with the status of the program, and the script with that of this command"
    works = all(one.text == "exit 0" or _SUCCEEDS.match(_last_of_and(one).text) for one in own)
    same = works and script.errexit and not (parts.piped or parts.last or parts.background)
    if own and not same and not _keeps_status(own, parts.piped is not None):
        yield remark_on(own[-1], why)
    yield from (remark_on(one, why) for one in _exits(script, own) if one.line != own[-1].line)
    if parts.piped and not own and not parts.last:
        yield remark_on(parts.piped, why)
    elif parts.last and not own and not any(re.search(r"\bexit\b", one.text) for _, one in parts.last):
        yield remark_on(parts.last[-1][1], why)


def _keeps_status(own: Sequence[Node], piped: bool) -> bool:
    """Return whether commands behind a program end a script with the status of the program."""
    of_program = r"\$\{PIPESTATUS\[0\]\}" if piped else r"\$(?:\?|\{\?\}|\{PIPESTATUS\[0\]\})"
    first, ending = own[0].text, own[-1].text
    if re.fullmatch(rf"exit \"?{of_program}\"?", first):
        return len(own) == 1
    variable = re.fullmatch(rf"(\w+)=\"?{of_program}\"?", first)
    if variable is None or any(variable[1] == name for one in own[1:] for name, _, _ in assignments(one)):
        return False
    read = rf"\"?\$\{{?{variable[1]}\}}?\"?"
    failed = rf"if \[\[? {read} (?:-ne|!=|-gt) 0 \]\]?;?\s+then\b(?!.*\bel(?:if|se)\b).*\bexit {read};?\s+fi"
    worked = rf"\[\[? {read} (?:-eq|==?) 0 \]\]? \|\| exit {read}"
    return re.fullmatch(rf"(?s)exit {read}|{failed}|{worked}", ending) is not None


def _last_of_and(statement: Node) -> Node:
    """Return the last command of a list of ``&&``, in which the failure of another one ends no script."""
    is_and = statement.type == "list" and statement.children[1].text == "&&"
    return statement.children[2] if is_and and "exit" not in statement.text else statement


def _exits(script: Script, after: Sequence[Node]) -> Iterator[Node]:
    """Yield each command behind the program that may end with a status that is not the program's."""
    first = _SETS_STATUS.fullmatch(after[0].text) if after else None
    again = {name for one in after[1:] for name, _, _ in assignments(one)}
    later = {first[1]} - again if first else set[str]()
    functions = reversed(list(script.tree.all("function_definition")))
    calls = {one.name: list(_of_shell(body)) for one in functions if (body := one.get("body"))}
    ending = {name for name, found in calls.items() if any(_fails(script, one, later) for one in found)}
    while more := {name for name, found in calls.items() if ending & {one.name for one in found}} - ending:
        ending |= more
    for statement in after:
        status = later if statement is not after[0] else later | _STATUS
        for one in _of_shell(statement):
            fails = one.name in ending or _fails(script, one, status)
            if fails and not _after_failure(one.node, statement, status):
                yield one.node


def _of_shell(statement: Node) -> Iterator[Command]:
    """Yield the commands of a statement, or of the body of a function, that its own shell runs."""
    for one in commands(statement):
        around = (above for above in one.node.above() if above in statement)
        if not any(above.type in _OTHER_SHELL for above in around):
            yield one


def _fails(script: Script, command: Command, status: Set[str]) -> bool:
    """Return whether an exit may have a status that is neither 0 nor that of the program."""
    if command.name != "exit":
        return False
    if (text := " ".join(one.text.strip('"') for one in command.arguments)) in ("", "$?"):
        above = command.node.parent
        return above is not None and above.type == "list" and above.children[1].text == "||"
    return script.constants.value(command.arguments[0]) != "0" and re.sub("[${}]", "", text) not in status


def _after_failure(node: Node, top: Node, status: Set[str]) -> bool:
    """Return whether a command runs only if the program has failed, by a condition on its status."""
    words = "|".join(map(re.escape, sorted(status)))
    read = rf"(?<!\w)\"?\$?\{{?({words})\}}?\"?" if status else r"(?!)"
    failed = re.compile(rf"{read} *(-ne|!=|-gt|>) *[\"']?0\b|\(\( *{read} *\)\)")
    worked = re.compile(rf"{read} *(-eq|==?|-lt|<) *[\"']?[01]\b")
    while node is not top and (above := node.parent) is not None:
        first = above.children[0].text
        if above.type == "list" and node is above.children[-1]:
            if (failed if above.children[1].text == "&&" else worked).search(first):
                return True
        elif above.type in ("if_statement", "elif_clause"):
            text = condition.text if (condition := above.get("condition")) is not None else ""
            is_else = node.type == "else_clause"
            if node is not condition and (worked if is_else else failed).search(text):
                return True
        node = above
    return False


def without_program(script: Script, last: Node) -> Iterator[Remark]:
    """Yield a remark if the last command of a script without a program may fail, and the job goes on."""
    plain = [one for one in commands(last) if one.name not in PRINT]
    if last.text.startswith("exec "):
        return  # in place of jobgen's shell
    works = any(one.name in _READS_CODE or not changes_shell(one.name, one.literals) for one in plain)
    if works and not script.errexit:
        yield remark_on(last, "if it fails, the script has its status, and the job ends with 0")


def ends(file: JobFile, parts: Split, program: Command | None) -> Iterator[Remark]:
    """Yield a remark if an ``exit`` in the program, or in the statement around it, ends the script alone."""
    around = [one for one in program.node.above() if one.type in LATER] if program is not None else []
    around = [one for one in around[-1:] if one.text not in file.shell_code]
    kept = [one for _, one in parts.last]
    places = [(parse(file.shell_code.encode()), "in the program")]
    places += [(one, "on a condition of the program") for one in around]
    for code, where in places if parts.behind else ():
        exits = (one.node for one in commands(code) if one.name == "exit")
        found = (node for node in exits if not node.under(*_OWN_SHELL))
        if any(not any(node in one for one in kept) for node in found):
            yield remark_on(parts.behind[0], f"runs also after an exit {where}")


def own_state(script: Script, file: JobFile, parts: Split) -> Iterator[Remark]:
    """Yield remarks on what the program, as code of a process of its own, sets for the commands after it."""
    after = parts.behind
    clock = [node for one in after for node in one.all("variable_name") if node.text == "SECONDS"]
    clock += [one.node for statement in after for one in commands(statement) if one.name == "times"]
    for read in clock[:1]:
        why = "the commands after the program have a shell, and a clock, of their own"
        yield hint(read.line, shown(read), why)
    if not (file.shell_code and after):
        return
    code = parse(file.shell_code.encode())
    own = {name for one in after for name, _, _ in assignments(one)}
    names = {name for name, _, _ in assignments(code)} - own
    for name in definitions_of(script, after).names:
        if name in names:
            why = "keeps the value of setup after the program, which is a separate process"
            lines = (node.line for one in after for name_of, node in expansions(one) if name_of == name)
            yield hint(next(lines, after[0].line), f"${name}", why)
    for one in commands(code):
        moves = one.name in _MOVES and "-n" not in one.literals  # pushd -n stays
        if moves and not one.node.under("subshell", "command_substitution"):
            why = "has no effect on the commands after the program, which is a separate process"
            yield hint(after[0].line, shown(one.node), why)


def left_running(script: Script, file: JobFile, parts: Split, program: Command) -> Iterator[Remark]:
    """Yield a remark on a process that the program leaves in the background for the commands after it."""
    busy = {one.name for statement in parts.after for one in commands(statement)} - _BRIEF
    if started := unwaited([parse(file.shell_code.encode())], script.functions) if busy else []:
        yield Remark(program.line, shown(started[0]), "ends with the program, before the commands after it")


def process_number(script: Script, file: JobFile, program: Command) -> Iterator[Remark]:
    """Yield a remark on ``$$`` in several of the blocks and the program, which are separate processes."""
    code = _shell_code(file)
    if len([text for text in (*file.blocks, *code) if _OWN_NUMBER.search(text)]) > 1:
        why = "has another value in each block and in the program, which are separate processes"
        lost = any(map(_OWN_NUMBER.search, code))
        plain = (re.sub(r"(^|\s)#.*", "", line) for line in script.lines if not lost)
        lines = (at for at, line in enumerate(plain, 1) if _OWN_NUMBER.search(line))
        yield Remark(next(lines, program.line), "$$", f"{why}: set a variable in setup", lost)


def _shell_code(file: JobFile) -> list[str]:
    """Return the code that ``bash -c`` runs in the program."""
    words = file.program
    return [text for at, text in enumerate(words) if words[at - 2 : at] == ["bash", "-c"]]


def _other_code(file: JobFile) -> list[Node]:
    """Return the code of other shells than that of setup."""
    return [parse(text.encode()) for text in (*_shell_code(file), *file.blocks[1:])]


def _own_paths(file: JobFile) -> set[str]:
    """Return the variables with the path of the script that commands of other shells read."""
    found = {name for one in _other_code(file) for name, _ in expansions(one)} & {"0", "BASH_SOURCE"}
    return found | ({"BASH_SOURCE"} if "BASH_SOURCE" in file.blocks[0] else set())


def own_path(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on the path of the script in other shells, and on its name where it is submitted."""
    for name in sorted(_own_paths(file)):
        why = "is the path of this script, which the commands of a job file do not have"
        yield Remark(next((node.line for one, node in script.expansions if one == name), 1), f"${name}", why)
    variable = script.dialect.variable("job_name")
    for one in script.running(script.dialect.command) if script.request.name is None else ():
        if any(re.fullmatch(rf"\$\{{?{variable}\}}?", word.text.strip('"')) for word in one.arguments):
            why = "is the name of this script, after which its job is called, and not that of the new one"
            yield hint(one.line, f"${variable}", why)


def unset(script: Script, file: JobFile, program: Command) -> Iterator[Remark]:
    """Yield a remark on each argument of the script in the words of the program, and on each variable in them
    that nothing in the script sets."""
    dialect = script.dialect
    own = script.values.keys()
    goes_on = not script.has_option("u", "nounset", program.node.start)
    read = {name for name, _ in expansions(program.node)}
    # Without quotes: they may become several words, or none.
    bare_names = {name for name, node in expansions(program.node) if not node.under("string")}
    for name in names(file.program):
        of_scheduler = name.startswith(dialect.variable_prefix)
        if goes_on and of_scheduler and name not in {*dialect.environment, *own}:
            also = f", which sets {meant}" if (meant := dialect.meant(name)) else ""
            why = f"is not set by {dialect.title}{also}: the job ends, and the script would go on"
            yield hint(program.line, f"${name}", why)
        known = LOGIN.fullmatch(name) or (not name.islower() and inherited.may_be_inherited(script, name))
        ours = known or name.startswith("argument_")
        of_rank = name in of_ranks() or name.removeprefix("script_") in RANK_VARIABLES
        if name.isdigit() or not (of_rank or ours or inherited.is_set(script, name)):
            what = "an argument of the script" if name.isdigit() else "not set anywhere in the script"
            alone = any(node.parent is program.node for one, node in expansions(program.node) if one == name)
            several = name in bare_names if name.isdigit() else alone  # or none, such as options
            effects = ["in the program it is one word"] * several
            effects += ["if it is missing the job ends, and the script would go on"] * goes_on
            if effects:
                yield hint(program.line, f"${name}", f"is {what}: {'; '.join(effects)}")
        if goes_on and _in_conditions(script, name, program):
            why = "is set in a condition only: if it is unset the job ends, and the script would go on"
            yield hint(program.line, f"${name}", why)
    split = [name for name in names(file.program) if name not in read - bare_names]
    given = [one for name in split for one in script.values.get(name, ()) if ARGUMENT.fullmatch(one.text)]
    own_words = re.findall(r"(?m)^argument_\d+=(.*)", file.text_of("setup"))
    bare = (one for name, one in expansions(program.node) if name.isdigit() and name in bare_names)
    given += [one for one in bare if ARGUMENT.fullmatch(one.text) and one.text in " ".join(own_words)]
    values = (one for name in bare_names for one in script.values.get(name, ()))
    given += [one for one in values if ARGUMENT.fullmatch(one.unquoted) and one.unquoted in own_words]
    if given and ARGUMENTS not in script.changed:
        what = ", ".join(sorted({one.unquoted for one in given}))
        verb, each = ("are arguments", "each") if "," in what else ("is an argument", "it")
        why = f"{verb} of the script: in the program {each} is one word"
        strict = all(script.has_option("u", "nounset", one.start) for one in given)
        why += ", also if it is missing" if not strict else ""
        yield hint(min(one.line for one in given), what, why)


def without_directives(script: Script) -> Iterator[Remark]:
    """Yield a remark on a script that requests nothing."""
    if not has_directives(script):
        why = "the script requests nothing: the job has what its commands name, and jobgen's defaults"
        yield hint(1, f"without {script.dialect.scheduler.prefix}", why)
        yield from differences.own_jobs(script, "its options are none of the job file")


def arguments(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on arguments of the script in blocks; one in the program has another remark."""
    scheduler = script.dialect.scheduler
    if not scheduler.behaviour.passes_arguments or any(name.isdigit() for name in names(file.program)):
        return
    if any(first_read(file.text_of(key)) for key in CODE) and (read := submission.argument(script)):
        others = [one.title for one in DIALECTS.values() if not one.scheduler.behaviour.passes_arguments]
        why = f"reads arguments of the script: {scheduler.command} of the new script passes them, but "
        why += f"jobgen submit and {' and '.join(others)} pass none"
        yield hint(read[0], read[1], why)


def left_out(script: Script, file: JobFile, program: Command) -> Iterator[Remark]:
    """Yield a remark on each variable that the statement around the program sets, and setup does not."""
    if not (around := [one for one in program.node.above() if one.type in (*LATER, "subshell")]):
        return
    setup, read = file.blocks[0], set[str]()
    for one in _other_code(file):
        read |= _read_in(one) - changed_variables(one) - {name for name, _, _ in assignments(one)}
    given = [node for _, _, node in assignments(around[-1]) if node.text not in setup]
    found = {name for node in given for name, _, _ in assignments(node)}
    found |= changed_variables(around[-1]) - changed_variables(parse(setup.encode()))
    found -= {*file.variables, *RANK_VARIABLES, "OMP_NUM_THREADS"}
    numbers = {*re.findall(r"\b(\w+)(?:\[[^]]*\])?\+?=[^\n;]*\$!", around[-1].text)}  # of processes
    words = {*names(file.program)}
    for name, value in re.findall(r"(?m)^(?:export )?(argument_\d+)=(.*)", setup):
        words |= _read_in(parse(f"echo {value}".encode())) if name in words | read else set()
    for name in sorted((words | read) & found - numbers):
        why = "is set by the commands around the program, which are not in the job file: set it in setup"
        yield Remark(program.line, f"${name}", why)


def _read_in(node: Node) -> set[str]:
    return {one.text for one in (*node.all("variable_name"), *bare_names(node))}


def _in_conditions(script: Script, name: str, program: Command) -> bool:
    """Return whether only some branches before a program set a variable."""
    sets = [node for one, _, node in script.assignments if one == name and node.start < program.node.start]
    around = {one.start for one in program.node.above()}
    for node in sets:
        tops = [one for one in node.above() if _may_skip(one, node) and one.start not in around]
        branches = [one for one in node.above() if one.type in ("else_clause", "case_item")]
        others = any(one.type == "else_clause" or one.text.startswith("*)") for one in branches)
        # [ -f a ] && A=a || A=b
        others |= any(one.type == "list" and any(other in one.children[0] for other in sets) for one in tops)
        if not tops or others or any(_is_default(one, node, name) for one in tops):
            return False
    return bool(sets)


def _may_skip(above: Node, node: Node) -> bool:
    """Return whether a statement around a node may not run it: ``[ -f a ] && A=a``."""
    first = above.children[0]
    in_list = above.type == "list" and node not in first and first.type != "variable_assignment"
    return in_list or above.type in ("if_statement", "case_statement")


def _is_default(above: Node, node: Node, name: str) -> bool:
    """Return whether a statement sets a variable if it has no value: ``[ -z "$A" ] && A=a``."""
    test = above.source[above.start : node.start].decode("utf-8", "replace")
    return re.search(rf"(?:\[|test)\s+(?:!\s+)?(?:-[zn]\s+)?\"?\$\{{?{name}\b", test) is not None


def set_again(script: Script, file: JobFile, program: Command) -> Iterator[Remark]:
    """Yield a remark on each command that may set a variable again whose value the job file has."""
    read = {name for name, _ in expansions(program.node)}
    read -= {*re.findall(r"\$\{?(\w+)", " ".join(file.program))}  # whose values the job reads
    found = ((name, script.constants.node(name)) for name in read)
    values = {name: one for name, one in found if one and script.constants.value(one) is not None}
    for one in script.runs:
        text = " ".join(word.text for word in one.arguments)
        unknown = inherited.is_own_file(one) or (one.name == "eval" and _OUTPUT.match(text))
        before = sorted(name for name in values if values[name].start < one.node.start < program.node.start)
        if unknown and before:
            places = sorted({values[name].line for name in before})
            several = "s" * (len(places) > 1)
            of_lines = f"value{several} of line{several} {', '.join(map(str, places))}"
            yield remark_on(one, f"may set {', '.join(before)} again: the job file has the {of_lines}")


def timed(_: Script, file: JobFile, program: Command) -> Iterator[Remark]:
    """Yield a remark on a ``time`` that the program loses."""
    texts = [program.name, *map(os.path.basename, program.literals)]
    if texts.count("time") > len(re.findall(r"(?:^|[\s;|&])(?:/\S*/)?time\s", " ".join(file.program))):
        why = "is left out: the log of the job ends with the time of the whole job"
        yield hint(program.line, "time", why)


_NO_START = {"grep", "alias", "type", "which", "command", "hash", "man", "pkill", "killall", "pgrep"}
_NO_START |= PRINT | STATE
# An option whose value is the name of a launcher, and not a command.
_NAMES_LAUNCHER = re.compile(
    r"-[^=]*(launch|mpi|run|backend|sched|exec|cluster|engine|type|mode|param)[^=]*$"
)


def by_other_command(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on each command that gets a launcher and its program, as a tool that measures them."""
    known = {name for row in LAUNCHERS.values() if row.by_scheduler or row.of_mpi for name in row.names}
    of_launches = {id(one.command.node) for one in script.launches}
    each = file.values.get("ranks_per_node", 1)
    for one in script.runs:
        texts = [os.path.basename(text) for text in one.literals]
        pairs = zip(("", *one.literals), texts, strict=False)
        found = (name for before, name in pairs if name in known and not _NAMES_LAUNCHER.match(before))
        if (name := next(found, "")) and one.name not in _NO_START and id(one.node) not in of_launches:
            why = f"how it starts ranks by {name} is not read: the job requests {each} on a node"
            yield remark_on(one, why, lost=True)


def index(script: Script) -> Iterator[Remark]:
    """Yield a remark on the index of an array that only the submission of the script makes."""
    if read := submission.index_read(script):
        if_array = submission.if_array(script, read[0])
        yield hint(*read, f"no directive makes an array: {if_array}set array = 'FIRST-LAST' in [job]")


def own_text(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on each command that reads the text of the script, or asks for its path."""
    lost, query = _own_paths(file), script.dialect.show_job[:1]
    for one in script.running(*query):
        above = one.node.around("pipeline")
        writes = one.literals[:2] == ["write", "batch_script"]
        if writes or (above is not None and re.search(r"\bCommand\\?=", above.text)):
            why = "the script of jobgen, which has another text, and maybe another folder"
            yield remark_on(one, f"{'writes' if writes else 'names'} {why}")
    paths = [name for name, value, _ in script.assignments if _FINDS_SCRIPT.search(value.text)]
    own = re.compile(rf"\"?\$\{{?({'|'.join(['0', 'BASH_SOURCE', *paths])})(\[0\])?\}}?\"?")
    for one in script.runs:
        reads = one.name in (*_READS_TEXT, "cat", "cp", "less", "md5sum", "more", "sha256sum", "source", ".")
        words = (
            one.arguments[:1] if one.name in ("source", ".") else one.arguments
        )  # the others are handed on
        found = (own.fullmatch(word.text) for word in words)
        if reads and any(path[1] not in lost for path in found if path):
            why = "reads the script of jobgen, without the comments and the directives of this one"
            yield remark_on(one, why)


def log_text(script: Script) -> Iterator[Remark]:
    """Yield a remark on the first command that reads the log, or the file of errors, a part of it."""
    request, dialect = script.request, script.dialect
    job = request.name or script.name or "%x"
    codes = r"%\d*[a-zA-Z]|\$\{?\w+\}?"  # of the log and of the script: any text
    of_log = "reads the log, in which the job of jobgen writes lines of its own, too"
    of_errors = "handles the file of errors, which the job does not write: they are in its log"
    whys = dict.fromkeys([request.output] if request.output else dialect.own_log_names, of_log)
    whys = {request.error: of_errors, **whys} if request.error else whys
    logs = {re.sub(codes, "*", os.path.basename(path.replace("%x", job))): why for path, why in whys.items()}
    for one in script.runs:
        words = one.arguments if one.name in (*_READS_TEXT, *_HANDLES) else ()
        files = [script.constants.value(word) or word.text.strip("\"'") for word in words]
        if above := one.node.child_of("redirected_statement"):
            files += re.findall(r"(?<!<)<\s*[\"']?([\w./${}-]+)", above.text)
        names = {re.sub(codes, "*", os.path.basename(name)) for name in files} - {"null"}
        known = [name for name in names if name.strip("*")]
        pairs = ((name, log) for name in known for log in logs)
        found = (log for name, log in pairs if name == log or fnmatchcase(log.replace("*", "1"), name))
        why = next((logs[log] for log in found), "")
        handles = one.name in _HANDLES and not (one.name == "cat" and one.node.child_of("pipeline"))
        if why and (not handles or why == of_errors):
            yield remark_on(one, why)
            return


def lost_files(script: Script, file: JobFile, parts: Split, program: Command) -> Iterator[Remark]:
    """Yield a remark on the first command that names a file of output which the job does not write."""
    after = [one for statement in parts.behind for one in statement.all(*_WITH_FILES)]
    for place, target in _outputs(program):
        name = _path(script, target)
        if place.text in file.shell_code or name == "/dev/null":
            continue
        for one in after:
            if any(_is_file(_path(script, word), name) for word in _files(one)):
                why = f"names {shortened(name)}, which the job does not write: the output is in its log"
                yield remark_on(one, why, lost=True)
                break


def _outputs(program: Command) -> Iterator[tuple[Node, Node]]:
    """Yield each file with output of the program: its redirection, or its tee, and its name."""
    for above in program.node.above():
        for part in above.children if above.type in ("redirected_statement", "pipeline") else ():
            writes = part.type == "file_redirect" and target_of(part) is not None
            if writes and (target := part.get("destination")) is not None:
                yield part, target
            for one in commands(part) if part.start > program.node.start else ():
                words = one.arguments if one.name == "tee" else ()
                yield from ((part, word) for word in words if not word.text.startswith("-"))


def _files(node: Node) -> Iterator[Node]:
    """Yield the words that may be files which a command, a test or a redirection reads."""
    if node.type == "test_command":
        yield from (one for one in node.all(*_WORDS) if not one.under("string", "concatenation"))
    elif node.type == "command":
        yield from node.children[1:] if node.name not in _NAMES_ONLY else ()
    elif node.text.startswith("<"):
        yield from node.children[1:]


def _path(script: Script, word: Node) -> str:
    return re.sub(r"\$\{(\w+)\}", r"$\1", re.sub("[\"']", "", script.constants.text(word)))


def _is_file(text: str, name: str) -> bool:
    """Return whether a word, maybe a pattern or the value of an option, names a file."""
    folder, base = os.path.split(text.rpartition("=")[2])
    other, of_name = os.path.split(name)
    if folder == other:
        return bool(base.strip("*")) and fnmatchcase(of_name, base)
    return base == of_name and not (folder and other)


def child_jobs(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on a job that the script submits with its environment, which jobgen extends."""
    threads = {"OMP_NUM_THREADS"} - {*file.variables, *script.values}
    without_devices = file.values.get("accelerator") == "cpu" and names_devices(script)
    devices = ["DS_ACCELERATOR=cpu"] * without_devices
    texts = (*file.blocks[1:], *_shell_code(file))
    code = "\n".join(text for text in texts if not re.search(r"(?m)^unset OMP_NUM_THREADS$", text))
    why = "of this one, too, which the script leaves unset"
    for call in of_engines(script, "snakemake") if threads else ():  # which sets it for its jobs
        what = call.path.rpartition(" ")[2]
        yield hint(call.line, what, f"the jobs that it submits get OMP_NUM_THREADS {why}")
        return
    for one in script.running(script.dialect.scheduler.command):
        passes = "-V" in one.literals if script.is_pbs else "--export" not in one.node.text
        after = threads if one.node.text in code else set[str]()
        found = sorted({*after, *devices}) if after or one.node.text in file.blocks[0] else []
        if passes and found:
            yield remark_on(one, f"the new job gets {' and '.join(found)} {why}")
            return


def unread(script: Script) -> Iterator[Remark]:
    """Yield a remark on files of the user that may be for the scheduler of the script."""
    found = [one for one in unread_files.files(script) if unread_files.may_be_for(script, one)]
    yield from unread_files.remark(script, found, "another scheduler")
    yield from unread_files.of_programs(script, "another scheduler")


# Variables that compilers, interpreters and libraries read.
_READ_BY_PROGRAMS = re.compile(
    r"TE?MP|CC|CXX|FC|F77|F90|[A-Z]+FLAGS|LIBS|CLASSPATH|R_LIBS|PERL5LIB|PYTHON(PATH|HOME)|LD_PRELOAD|TZ"
    r"|(OMP|MKL|OPENBLAS|KMP|GOMP|NCCL|OMPI|I_MPI|MPICH|UCX|TF|TORCH|SINGULARITY(ENV)?|APPTAINER(ENV)?)_\w+"
)


def exported_too(script: Script, found: Sequence[str]) -> Iterator[Remark]:
    """Yield a remark on each variable that programs read, and that only setup exports."""
    for name in found:
        values = [value.text for one, value, _ in script.assignments if one == name]
        own = all(re.search(rf"\$\{{?{name}\b", text) for text in values)  # A=${A:-0}
        if _READ_BY_PROGRAMS.fullmatch(name) and name != "OMP_NUM_THREADS" and not own:
            why = "setup exports it for the other commands of the job, so that programs read it, too"
            yield hint(next((node.line for one, _, node in script.assignments if one == name), 1), name, why)


def contained(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield remarks on variables that the script exports, and that jobgen keeps out of a container."""
    if "container" not in file.values:
        return
    known = set(file.variables)
    for name, _, node in script.assignments:
        if name in LEAKS and name not in known and exported(node):
            known.add(name)
            why = "does not reach the container: set it in env, with a path in the image"
            yield Remark(node.line, f"export {name}", why)


def of_runtime(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on each name in setup and in the program that jobgen's script has for itself."""
    code = parse(file.text_of("setup").encode())
    found = {node.text for node in code.all("variable_name")}
    found |= {one.name for one in code.all("function_definition")}
    sets = [one.node.text for one in commands(code) if one.name in _SETS]
    words = found | set(re.findall(r"\bjob_[a-z]\w*", " ".join(sets)))
    for name in sorted((words | set(names(file.program))) & runtime_names()):
        line = next((at for at, text in enumerate(script.lines, 1) if re.search(rf"\b{name}\b", text)), 1)
        yield Remark(line, name, "jobgen's script has a variable of this name: give it another one")


def measured(script: Script, launch: Launch, words: Sequence[Node]) -> Iterator[Remark]:
    """Yield a remark on a tool that watches the launcher in the script, and ranks in the job."""
    first = words[0].text.strip('"') if words and launch.outer is None else ""
    values = [one.text for one in script.values.get(re.sub(r"[${}]", "", first), ())]
    if not _WATCH.isdisjoint(re.findall(r"[\w.-]+", " ".join([os.path.basename(first), *values]))):
        why = "watches the launcher in the script, and each rank in the job"
        yield hint(launch.line, os.path.basename(first), why)


def background(script: Script, parts: Split) -> Iterator[Remark]:
    """Yield a remark on each process that the script leaves in the background, before the program."""
    for command in unwaited(parts.before, script.functions):
        inside = {one.start for one in command.all("command")}
        lost = any(one.command.node.start in inside for one in script.launches)
        why = "holds cores and memory, for which the ranks may wait, and ends with the program"
        yield remark_on(command, why if lost else "runs beside the program, and ends with it", lost)
    at = parts.sign
    started = _in_a_loop(script, parts) if at is None else parts.after[at].previous()
    if started is not None:
        names = [({command.name for command in commands(one)}, one) for one in parts.after[at or 0 :]]
        beside = [one for one in takewhile(lambda one: "wait" not in one[0], names) if one[0] - _NO_TIME]
        busy = [one for has, one in beside if has - (_BRIEF - {"kill"})]
        if beside:
            first, *more = busy or [beside[0][1]]
            others = f" and the commands after it to line {more[-1].line}" if more else ""
            why = f"the job starts it{others} when the program of line {started.line} has ended, the script"
            yield remark_on(first, f"{why} beside it", lost=bool(busy))
        if not busy and not any(has & {"wait", "sleep"} for has, _ in names):
            why = "the script does not wait for it, and the scheduler ends it with the script; the job waits"
            yield remark_on(started, why)


def number_of_program(script: Script, parts: Split) -> Iterator[Remark]:
    """Yield a remark on each ``$!`` of the program, which is no process of the commands after it."""
    behind = parts.after[(parts.sign or 0) + 1 :] if parts.background and parts.sign is not None else ()
    read = {name for name, _ in script.expansions}
    for one in takewhile(lambda one: not any(one.all("&")), behind):
        kept = re.match(r"(\w+)=", one.text)
        if any(name == "!" for name, _ in expansions(one)) and not (kept and kept[1] not in read):
            yield remark_on(one, "the program is no process of the block after, in which $! has no value")


def long_array(script: Script, array: str) -> Iterator[Remark]:
    """Yield a remark on an array of unknown length that a variable hands on to other shells."""
    found = [node for name, value, node in script.assignments if name == array and _is_open(value, node)]
    found += [one.node for one in script.named("mapfile", "readarray") if array in one.literals]
    if found:
        why = f"{array} is handed on in one variable: with more than 128 KiB of it no program starts"
        yield remark_on(found[0], why)


def _is_open(value: Node, assignment: Node) -> bool:
    """Return whether the number of elements is that of files or lines, as that of a loop over such."""
    loops = [one for one in assignment.above() if one.type in LOOPS]
    words = [word for one in loops for word in one.children if word.field == "value"]
    words += [value] * (value.type == "array")
    return any(map(_names_files_or_lines, words)) or any(one.type == "while_statement" for one in loops)


def _names_files_or_lines(word: Node) -> bool:
    """Return whether a word is a pattern of files, or the output of commands that may be long."""
    texts = (one for one in word.all("word") if not one.under("command_substitution", "string"))
    outputs = [found for one in word.all("command_substitution") if (found := list(commands(one)))]
    short = (_SHORT.match(one[0].node.text) or _ONE_LINE.search(one[-1].node.text) for one in outputs)
    return any(re.search(r"(?<!\\)[*?]", one.text) for one in texts) or not all(short)


def _in_a_loop(script: Script, parts: Split) -> Node | None:
    """Return the program if a loop leaves it in the background."""
    loop = parts.after[0].previous() if parts.after else None
    if loop is None or loop.type not in LOOPS:
        return None
    inside = (one.command.node for one in script.launches if one.command.node in loop)
    return next(filter(in_background, inside), None)


def unwaited(statements: Sequence[Node], functions: Mapping[str, str]) -> list[Node]:
    """Return the statements that end in ``&``, also in loops and conditions, and that no ``wait`` follows.

    A call of one of the functions, which are texts by their names, is such a statement if its body has one.
    """
    found: list[Node] = []
    for one in (node for statement in statements for node in statement.all("&", "command")):
        if one.under("function_definition", "command_substitution", "process_substitution"):
            continue
        started = one.previous() if one.field is None else None  # else the operator of an expression
        if one.type == "&" and started is not None:
            found.append(started)
        elif one.type == "command" and re.match(r"wait\b", one.text):
            found = _running(found, one)
        elif one.type == "command" and _leaves_running(one.name, functions):
            found.append(one)
    return found


def _leaves_running(name: str, functions: Mapping[str, str]) -> bool:
    """Return whether the function of this name leaves a process in the background."""
    if "&" not in (text := functions.get(name, "")):
        return False
    body = next(parse(text.encode()).all("function_definition")).get("body")
    others = {one: code for one, code in functions.items() if one != name}
    return body is not None and unwaited([parse(body.text.encode())], others) != []


def _running(started: list[Node], wait: Node) -> list[Node]:
    """Return the processes that a ``wait`` does not wait for."""
    if not (names := {name for name, _ in expansions(wait)}) or wait.under(*LOOPS):
        return []
    running = started[:-1] if "!" in names else started
    return [one for one in running if _id_of(one) not in names]


def _id_of(started: Node) -> str:
    """Return the variable that the next statement sets to the id of a process; empty without one."""
    after = started.next()
    while after is not None and after.type in ("&", "comment", ";"):
        after = after.next()
    match = re.match(r"(\w+)(\[[^]]*\])?\+?=.*\$!", after.text) if after is not None else None
    return match[1] if match else ""


def options(statements: Sequence[Node], strict: bool, of_sh: bool) -> Iterator[Remark]:
    """Yield a remark if statements that became options end the job where the script goes on.

    A script ``of_sh`` ends at a file that ``.`` cannot read, too.
    """
    plain = [one for one in statements if one.type in ("command", "redirected_statement", "list")]
    fails = [one for one in plain if one.type == "list" and FAILURE.match(one.children[-1].text)]
    fails = [one for one in fails if not one.under("function_definition")]
    plain = [one.children[0] if one in fails else one for one in plain]
    plain = [one for one in plain if one.type != "list" or one.children[1].text == "&&"]  # not || exit
    found = [command for one in plain for command in commands(one)]
    for one in found:
        if "purge" in one.literals and {"--force", "-f"} & {*one.literals}:
            yield remark_on(one, "the job unloads all modules but the sticky ones")
        if "--ignore-cache" in one.literals:
            yield remark_on(one, "the job loads modules with the cache of Lmod")
    found = [one for one in found if not _WARNS.match(" ".join([one.name, *one.literals]))]
    files = [one for one in found if one.name in ("source", ".") and not _activates(one)]
    others = [one for one in found if one not in files]
    files = [one for one in files if not (of_sh and one.name == ".")]
    for which, failure in ((others, "it fails"), (files, "the file cannot be read")) if not strict else ():
        if which:
            what = ", ".join(dict.fromkeys(one.name for one in which))
            yield hint(which[0].line, what, f"if {failure}, the job ends here, and the script goes on")


def _activates(command: Command) -> bool:
    """Return whether ``source`` activates an environment of conda: ``source [DIR/]activate NAME``."""
    words = [word.text.strip("\"'") for word in command.arguments]
    return words[:1] == ["activate"] or (len(words) > 1 and words[0].endswith("/activate"))


def in_blocks(before: Sequence[Node], setup: Sequence[Node], after: Sequence[Node]) -> Iterator[Remark]:
    """Yield remarks on commands that do something else in a block of a job file."""
    ending = "ends the script; in setup it ends the job, too, without a record of jobgen in its run directory"
    for block, why in ((setup, ending), (before, "ends the script, and the job goes on with its program")):
        for one in (command for statement in block for command in commands(statement)):
            inside = one.node.under("function_definition", "subshell", "command_substitution")
            if not inside and one.name == "exit" and not re.match("[1-9]", "".join(one.literals)):
                yield hint(one.line, one.node.text, "before the program, the job ends with status 71 instead")
            if not inside and one.name == "exec" and one.arguments:
                yield remark_on(one, why, lost=block is before)
    own = [one for one in after if one.type not in SEPARATORS]
    for one in (command for statement in own[:-1] for command in commands(statement)):
        if one.name == "deactivate":
            why = "the commands after the program run in the environment, too"
            yield hint(one.line, one.name, why)


def quotes(script: Script, line: int, nodes: Sequence[Node]) -> Iterator[Remark]:
    """Yield a remark on quotes in the value of a variable, which the shell would not remove."""
    for node in nodes:
        text = node.type in ("string", "raw_string", "concatenation") and re.search("[\"']", node.text)
        if text and node.source is not script.tree.source and not node.under("command_substitution"):
            why = "the quotes are a part of the value of a variable, and the script passes them on"
            yield hint(line, shown(node), why)


def in_texts(script: Script, launch: Launch, evaluated: bool) -> Iterator[Remark]:
    """Yield a remark on what follows the program in the text that it is from: ``A="srun ./a > b"``.

    ``evaluated``: a shell reads the text, with its redirections and other commands.
    """
    inner = launch.around
    texts = [(inner.source, inner.end)] if inner and inner.source is not script.tree.source else []
    if launch.command.name == "eval":
        code = " ".join(map(code_text, launch.command.arguments)).encode()
        texts += [(code, one.node.end) for one in commands(parse(code))][:1]
    for source, end in texts:
        rest = source[end:].decode("utf-8", "replace").strip()
        if not re.match(r"\d?[<>|;&]", rest):
            continue
        into_file = re.fullmatch(r"(1?>|&>|\| *tee )[^;&|<]*(2>&1)?", rest)
        why = "is left out: bash reads no such signs in the value of a variable, and passes them as words"
        alone = "is left out: the job file starts one program, with its output in the log"
        why = (IN_LOG if into_file else alone) if evaluated else why
        what = rest if into_file or not rest.startswith(";") else source.decode("utf-8", "replace")
        yield Remark(launch.line, shortened(what), why, not (evaluated and into_file))


def run_twice(script: Script, command: Command, nodes: Sequence[Node]) -> Iterator[Remark]:
    """Yield a remark on each command in the value of a variable that becomes the words of the program."""
    values = [value.text for value in script.values_in([command.node])]
    for one in (part for node in nodes for part in node.all("command_substitution")):
        if any(one.text in value for value in values):
            why = "runs twice: where setup sets the variable, and for the words of the program"
            yield hint(command.line, shown(one), why)


def python(script: Script, file: JobFile, command: Command) -> Iterator[Remark]:
    """Yield a remark if jobgen's python3 may be another program than the python of the script, which is that
    of an image in a container."""
    values = (value.text for name, value, _ in assignments(script.tree) if name == "PATH")
    paths = any(map(_OF_PYTHON.match, values))
    if "container" in file.values or not (paths or any(map(_finds_python, script.running(*_FINDS_PYTHON)))):
        yield hint(command.line, "python", "jobgen runs it as python3")


def _finds_python(command: Command) -> bool:
    """Return whether the python of a script may be the one of a module, an environment or a sourced file."""
    words = [word.text.strip("\"'") for word in command.arguments]
    tools = command.name in ("module", "ml") and all(map(_NO_PYTHON.match, words))
    return not tools and not _FINDS_NONE.search(command.node.text)


def old_launcher(launch: Launch, program: Sequence[str], old: bool) -> Iterator[Remark]:
    """Yield a remark if a launcher of Python 2 starts a program that jobgen starts with python3.

    ``old``: the environment of the script is one of Python 2.
    """
    texts = map(os.path.basename, launch.front)
    named = next((text for text in texts if re.match(r"python(2|$)", text)), "")
    if (named[6:] or (old and named != "python3")) and (program[0] == "-m" or program[0].endswith(".py")):
        why = f"is of Python 2: jobgen starts {program[0]} with python3"
        yield Remark(launch.line, named or launch.kind, why)


def own_ranks(
    script: Script,
    file: JobFile,
    launch: Launch,
    program: Sequence[Node],
    zeros: frozenset[str],
    of_rank: bool,
) -> Iterator[Remark]:
    """Yield a remark on each variable of a rank in a launch line that the script itself expands.

    ``zeros`` are those that are 0 there; others are unset. ``of_rank``: a shell of the rank reads the
    program.
    """
    unset_here = frozenset[str]() if of_rank else of_ranks() - script.dialect.zeros - script.values.keys()
    own = (one for name, one, _ in assignments(launch.command.node) if name not in of_ranks())
    words = [*program, *own]
    in_program = {name for one in words for name in read_by(one) & (zeros | unset_here)}
    line = {name for one in launch.chain for name in read_by(one.command.node) & zeros}
    each = file.values.get("ranks_per_node", 1) != 1
    several = {"SLURM_NODEID": file.values.get("nodes", 1) != 1, "SLURM_LOCALID": each}
    for name in sorted(in_program | line):
        if name in unset_here:
            why = "is unset in the script, which expands it itself; each rank of the job has its own"
        elif name in in_program:
            why = "is 0 for all ranks, as in the script, which expands it itself; "
            why += f"for the number of each rank write ${name}, with expand = true"
        else:
            why = "is 0 for all ranks in the script, which expands it itself; jobgen numbers nodes and ranks"
        if several.get(name, each or several["SLURM_NODEID"]):
            yield hint(launch.line, f"${name}", why)


def alone(script: Script, file: JobFile, command: Command, launch: Launch | None) -> Iterator[Remark]:
    """Hide the number of tasks of a node, which jobgen requests, from a program that uses several GPUs and
    has no launcher, or one rank of Python on each node; yield a remark.

    Libraries that start their own processes, one for each GPU, compare the two numbers.
    """
    if launch is not None:
        of_step = launch.kind == script.dialect.node_step and "--ntasks-per-node" not in launch.options
        of_python = any(is_python(os.path.basename(word.text)) for word in launch.program)
        if not (of_step and of_python and file.count("ranks_per_node") == 1):
            return
    gpus = str(file.values.get("gpus_per_node", 0)).rpartition(":")[2]
    if int(gpus) < 2 or "--ntasks-per-node" in script.heeded or script.is_pbs:
        return
    file.hide(_TASKS)
    why = f"is not set, as in the script, so that a library starts its own ranks on {gpus} GPUs"
    yield hint(command.line, _TASKS, why)


def alone_in_blocks(file: JobFile) -> None:
    """Hide the number of tasks from Python in the blocks, too, if it is hidden from the program."""
    runs = any(is_python(one.name) for text in file.blocks for one in commands(parse(text.encode())))
    if runs and re.search(rf"(\bunset|^env -u) {_TASKS}\b", " ".join(file.program)):
        file.values["setup"] = f"unset {_TASKS}\n{file.text_of('setup')}"


def sizes_of_environment(script: Script, file: JobFile, launch: Launch | None) -> Iterator[Remark]:
    """Yield a remark on each variable of sizes that a launcher reads, other than the job file's."""
    nodes, each = (number(str(file.values.get(key, 1))) or 0 for key in ("nodes", "ranks_per_node"))
    for one in launch.chain if launch is not None else ():
        line = one.row.line
        for name, value, node in script.assignments if line.variables else ():
            option = line.variables.get(name, "")
            group = next((one for one in (line.nodes, line.ranks) if option in one), (option,))
            count = {line.nodes: nodes, line.ranks: nodes * each}.get(group, each)
            if not option or one.has(*group) or node.start > one.command.node.start:
                continue
            if script.constants.value(value) != str(count):
                why = f"{one.kind} reads it as its {option}: set nodes and ranks_per_node"
                yield Remark(value.line, shown(node), why)


def number_of_ranks(script: Script, file: JobFile, launch: Launch | None) -> Iterator[Remark]:
    """Yield a remark if programs may find another number of ranks than the one that the script exports."""
    if launch is None or any(one.row.once_a_node for one in launch.chain):
        return
    nodes, each = (number(str(file.values.get(key, 1))) or 0 for key in ("nodes", "ranks_per_node"))
    for name, value, node in script.assignments:
        if name != "WORLD_SIZE" or not exported(node) or node.child_of("command"):
            continue
        known = script.constants.value(value) or ""
        same = known == str(nodes * each) if known.isdecimal() else re.search("NTASKS|NPROCS", value.text)
        if not same:
            yield hint(node.line, "WORLD_SIZE", f"is the number of ranks in the job, {nodes * each}")


def environment(script: Script, launch: Launch | None) -> Iterator[Remark]:
    """Yield a remark on a srun that passes less of the environment than jobgen's."""
    for one in launch.chain if launch is not None else ():
        if one.kind == script.dialect.node_step:
            value = one.options.get("--export") if one.has("--export") else narrow_export(script)
            if value and is_narrow(value):
                yield hint(one.line, one.kind, WHOLE_ENVIRONMENT.format(value))
            return


def sourced(file: JobFile, statement: Node | None, after: Sequence[Node]) -> Iterator[Remark]:
    """Yield a remark if functions of a sourced file may be missing in the program or behind it."""
    names = {command.name for one in after for command in commands(one)} - {*TOOLS, *STATE, ""}
    if statement is not None and (names or file.shell_code):
        why = "functions and aliases of this file are not known to the program and to the commands after it"
        yield remark_on(statement, why)


def own_function(
    script: Script, file: JobFile, statements: Sequence[Node], after: Sequence[Node]
) -> Iterator[Remark]:
    """Yield a remark on a function of a file that setup reads, in the program or behind it."""
    found = (command for one in statements for command in commands(one))
    read = [command for command in found if inherited.may_define_functions(command, of_system=False)]
    called = file.program[command_start(file.program) :][:1] if file.values.get("launcher") == "none" else []
    own_shell = any("-c" in one.literals for one in script.running("bash", "sh"))  # which has no functions
    codes = [*(parse(text.encode()) for text in _shell_code(file) if not own_shell), *after]
    called += [command.words[0].text for one in codes for command in commands(one)]
    if (name := next((one for one in called if inherited.may_be_function(script, one)), "")) and read:
        why = f"if {name} is a function or an alias of this file, the job does not find it"
        yield remark_on(read[-1], why)


def deactivation(script: Script, file: JobFile, program: Command) -> Iterator[Remark]:
    """Yield a remark on the end of a virtual environment in the program, which setup has activated."""
    code = file.shell_code.partition("deactivate")
    ours = code[1] and not re.search(r"activate|(^|[\s;])\. ", code[0])
    for one in script.named("deactivate") if ours else ():
        if one.node.under(*LATER, "compound_statement"):
            why = "is a function of the environment, which the program, a process of its own, does not have"
            yield hint(one.line, "deactivate", why)
            return


def run_directory(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on each command that takes the run directory of the job with other files."""
    parent = str(BY_KEY["runs_dir"].default)
    folder = f"{parent}/{file.values.get('name', 'job')}-ID"
    start = path_of(script, known_directory(file.text_of("workdir")), "")
    paths = [os.path.join(start, one) for one in (f"{folder}/job.sh", f"{folder}/", f"{parent}/")]
    why = "too: the job writes its logs there, unless runs_dir is in another directory"
    swept = list(sweeps(script, paths[:1]))
    for one in swept:
        yield hint(one.command.line, shown(one.command.statement), f"{one.verb} {folder}, {why}")
    code = "\n".join([*file.blocks, *file.program])
    for node in takers(script, paths):
        kept = node.type == "command" or node.text.split("\n")[0] in code
        if kept and not any(one.command.node in node for one in swept):
            yield remark_on(node, f"takes {parent}, {why}")


def tasks(script: Script, file: JobFile, program: Launch | None) -> Iterator[Remark]:
    """Yield remarks on commands that read another number of tasks or cores, or start other ranks."""
    request = script.request
    each, nodes = request.ranks_per_node, request.nodes or 1
    total = request.ranks or (each and each * nodes)
    new_each, cores = file.count("ranks_per_node"), file.count("cpus_per_rank")
    own = {one.command.node.start for one in (program, program and program.outer) if one}
    words = " ".join(["\n".join(file.blocks), *file.program])
    per_node = file.count("cpus_per_node", new_each * cores)
    slots = per_node if script.dialect.scheduler.behaviour.hosts_by_core else new_each
    for launch in script.launches:
        # SLURM_NTASKS, which each job of jobgen has, limits --ntasks-per-node. Measured on Slurm 22.05.
        options = [one for one in launch.row.line.of_node if launch.has(one)]
        by_node = launch.kind == script.dialect.node_step and bool(options) and not total
        ranks = (launch.each or 0) * nodes if by_node else total or nodes
        counted_by_job = (launch.row.by_scheduler or launch.row.of_mpi) and not launch.has(*ALL)
        counted_by_job &= by_node or not (options or launch.text("--map-by", "-map-by").startswith("ppr:"))
        here = launch.command.node.start not in own and launch.command.node.text in words
        if counted_by_job and here and launch.program and ranks != slots * nodes:
            given = ranks or f"those of {options[0]}"
            why = f"starts {slots * nodes} in the job, as many as it has, and {given} in the script"
            yield hint(launch.line, f"the ranks of {shown(launch.command.node)}", why)
    if script.is_pbs:
        yield from _lines_of_hosts(script, words, nodes, slots)
        return
    old_cores = (request.cpus_per_rank or 1) * (each or -(-(total or 1) // nodes))
    new_mem = mebibytes(file.text_of("mem"))
    of_node = script.heeded.get("--gpus-per-node")
    by_gres = request.accelerator != "gpu" or any(one.startswith("--gres=") for one in file.list("directive"))
    new_gpus = None if by_gres else file.text_of("gpus_per_node") or None
    numbers: dict[str, tuple[int | str | None, int | str | None]] = {
        **dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), (total, new_each * nodes)),
        "SLURM_NTASKS_PER_NODE": (each if "--ntasks-per-node" in script.heeded else None, new_each),
        "SLURM_TASKS_PER_NODE": (each or -(-(total or 1) // nodes), new_each),
        "SLURM_CPUS_PER_TASK": (request.cpus_per_rank, cores),
        "SLURM_MEM_PER_NODE": (request.mem if "--mem" in script.heeded else None, new_mem),
        "SLURM_GPUS_PER_NODE": (of_node and of_node.value, new_gpus),
    }
    if not request.exclusive:
        numbers |= dict.fromkeys(("SLURM_CPUS_ON_NODE", "SLURM_JOB_CPUS_PER_NODE"), (old_cores, per_node))
    named = set(re.findall(r"\w+", words))
    read = sorted(names_read(script.tree), key=lambda one: -one[0].start)
    lines = {node.text: node.line for node, _ in read}
    for name, (old, new) in numbers.items():
        fixed = script.constants.named(name) if name not in named else None  # the number stands in its place
        if name in lines and (name in named or fixed) and str(old) != str(fixed or new):
            why = f"is {fixed or new or 'not set'} in the job, and "
            why += f"{'not set' if old is None else old} in the script"
            yield hint(lines[name], f"${name}", why)


def _lines_of_hosts(script: Script, code: str, nodes: int, new: int) -> Iterator[Remark]:
    """Yield a remark on a command in the code of a job that counts the lines of the file of hosts, or on a
    variable with their number, if the job has ``new`` of them for a node, and the script another number."""
    if (old := script.request.lines_per_node) is None or old == new or len(script.request.chunks) > 1:
        return
    names = [name for name, value, _ in script.assignments if re.fullmatch(_NODE_FILE, value.text)]
    file = _NODE_FILE.replace("PBS_NODEFILE", "|".join(["PBS_NODEFILE", *names]))
    pattern = re.compile(_COUNTS_LINES.replace("FILE", file))
    for at, line in enumerate(script.lines, 1):
        if (found := pattern.search(re.sub(r"(^|\s)#.*$", "", line))) and found[0] in code:
            yield hint(at, found[0], f"is {nodes * new} in the job, and {nodes * old} in the script")
            return
