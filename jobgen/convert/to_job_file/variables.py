"""Remarks on the variables of a job: which have another value than in the script, or none."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from jobgen.convert import submission
from jobgen.convert.misreadings import WHOLE_ENVIRONMENT, is_narrow, narrow_export
from jobgen.convert.result import Remark, hint, remark_on, shown
from jobgen.convert.to_job_file import inherited
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.effects import LOGIN
from jobgen.convert.to_job_file.processes import other_code
from jobgen.convert.to_job_file.program_line import ARGUMENT, read_by
from jobgen.launch.containers import LEAKS
from jobgen.launch.expansion import names, of_ranks
from jobgen.options import CODE
from jobgen.rendering.launch_words import RANK_VARIABLES
from jobgen.rendering.runtime import names as runtime_names
from jobgen.script.bare_names import bare_names
from jobgen.script.changed_variables import changed_variables
from jobgen.script.commands import Command, commands
from jobgen.script.constants import ARGUMENTS
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.script_arguments import first_read
from jobgen.script.syntax import LATER, LOOPS, Node, assignments, expansions, exported, parse
from jobgen.values.parsers import number

_PARSES = re.compile(r"(?i)(pars|get)\w*?(opt|arg)")  # parse_options.sh of Kaldi, and the like
# Commands with few words of output, and those at the end of a pipeline with one line.
_SHORT = re.compile(
    r"(echo|printf)\b(?!.*[*?])|(scontrol|date|hostname|seq|basename|dirname|pwd|head|tail)\b"
)
_ONE_LINE = re.compile(r"(head|tail|wc)\b|sed -n\b|\bNR ?==")
# A text for eval that is known only when the job runs, except the hooks of environments.
_OUTPUT = re.compile(
    r"[\"']?(\$\(|`)(?!.*\b(conda|mamba|micromamba|module\w*|ssh-agent|spack|pyenv|brew|lmod)\b)"
)
_SETS = ("read", "mapfile", "readarray", "printf", "let", "eval", "getopts")  # variables, by their names
# Variables that compilers, interpreters and libraries read.
_READ_BY_PROGRAMS = re.compile(
    r"TE?MP|CC|CXX|FC|F77|F90|[A-Z]+FLAGS|LIBS|CLASSPATH|R_LIBS|PERL5LIB|PYTHON(PATH|HOME)|LD_PRELOAD|TZ"
    r"|(OMP|MKL|OPENBLAS|KMP|GOMP|NCCL|OMPI|I_MPI|MPICH|UCX|TF|TORCH|SINGULARITY(ENV)?|APPTAINER(ENV)?)_\w+"
)


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


def arguments(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on arguments of the script in blocks; one in the program has another remark."""
    scheduler = script.dialect.scheduler
    if not scheduler.behaviour.passes_arguments:
        return
    sourced = {os.path.basename(one) for key in ("source", "module_init") for one in file.list(key)}
    for call in script.named("source", "."):
        name = os.path.basename(call.arguments[0].text) if len(call.arguments) == 1 else ""
        if name in sourced and _PARSES.search(name):
            why = "finds the arguments of the script there, and none as an option: move it to setup"
            yield hint(call.line, name, why)
    if any(name.isdigit() for name in names(file.program)):
        return
    if any(first_read(file.text_of(key)) for key in CODE) and (read := submission.argument(script)):
        others = [one.title for one in DIALECTS.values() if not one.scheduler.behaviour.passes_arguments]
        why = f"reads arguments of the script: {scheduler.command} of the new script passes them, but "
        why += f"jobgen submit and {' and '.join(others)} pass none"
        yield hint(read[0], read[1], why)


def left_out(script: Script, file: JobFile, program: Command) -> Iterator[Remark]:
    """Yield a remark on each variable that the statement around the program sets, and setup does not."""
    around = [one for one in program.node.above() if one.type in (*LATER, "subshell")]
    if not around or around[-1].text in file.shell_code:
        return
    setup, read = file.blocks[0], set[str]()
    for one in other_code(file):
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


def index(script: Script) -> Iterator[Remark]:
    """Yield a remark on the index of an array that only the submission of the script makes."""
    if read := submission.index_read(script):
        if_array = submission.if_array(script, read[0])
        yield hint(*read, f"no directive makes an array: {if_array}set array = 'FIRST-LAST' in [job]")


def exported_too(script: Script, found: Sequence[str], setup: Sequence[Node]) -> Iterator[Remark]:
    """Yield a remark on each variable that programs read, and that only setup exports. make reads all."""
    makes = [one.node for one in commands(script.tree) if one.name in ("make", "gmake")]
    makes = [node for node in makes if not any(one.start <= node.start < one.end for one in setup)]
    for name in found:
        values = [value.text for one, value, _ in script.assignments if one == name]
        own = all(re.search(rf"\$\{{?{name}\b", text) for text in values)  # A=${A:-0}
        is_read = _READ_BY_PROGRAMS.fullmatch(name) or any(f" {name}=" not in node.text for node in makes)
        if is_read and name != "OMP_NUM_THREADS" and not own:
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


def quotes(script: Script, line: int, nodes: Sequence[Node]) -> Iterator[Remark]:
    """Yield a remark on quotes in the value of a variable, which the shell would not remove."""
    for node in nodes:
        text = node.type in ("string", "raw_string", "concatenation") and re.search("[\"']", node.text)
        if text and node.source is not script.tree.source and not node.under("command_substitution"):
            why = "the quotes are a part of the value of a variable, and the script passes them on"
            yield hint(line, shown(node), why)


def run_twice(script: Script, command: Command, nodes: Sequence[Node]) -> Iterator[Remark]:
    """Yield a remark on each command in the value of a variable that becomes the words of the program."""
    values = [value.text for value in script.values_in([command.node])]
    for one in (part for node in nodes for part in node.all("command_substitution")):
        if any(one.text in value for value in values):
            why = "runs twice: where setup sets the variable, and for the words of the program"
            yield hint(command.line, shown(one), why)


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
