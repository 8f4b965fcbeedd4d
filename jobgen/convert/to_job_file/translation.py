"""Conversion of a script to a job file: options of jobgen in tables, and remarks on the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from jobgen.convert import aprun, misreadings
from jobgen.convert.request_reader import line_of
from jobgen.convert.result import Converted, Remark, hint, remark_on, shortened, shown
from jobgen.convert.to_job_file import (
    blocks,
    components,
    environment_file,
    launcher,
    other_scheduler,
    own_files,
    processes,
    program_line,
    programs,
    rendezvous,
    sizes,
    text_variables,
    threads,
    traps,
    variables,
    whole_statement,
    wrappers,
)
from jobgen.convert.to_job_file.builder import JobFile, accepted, make_portable
from jobgen.convert.to_job_file.directives import limits, read_directives, set_name, unpack
from jobgen.convert.to_job_file.function_calls import with_arguments
from jobgen.convert.to_job_file.host_code import HostCode
from jobgen.convert.to_job_file.main_command import last_launch, main_command, outermost
from jobgen.convert.to_job_file.program_line import OfScript, ProgramWords
from jobgen.convert.to_job_file.statements import Split, reached, redirections, split, without
from jobgen.convert.to_job_file.waiting import without_waiting
from jobgen.convert.to_scheduler.component_scripts import scripts_of
from jobgen.convert.variable_names import binds_threads
from jobgen.launch.accelerators import ACCELERATORS, of_devices
from jobgen.launch.command_line import SHELLS
from jobgen.launch.expansion import names
from jobgen.launch.launchers import LAUNCHERS, MPI_FLAVOURS
from jobgen.rendering.launch_words import RANK_VARIABLES
from jobgen.rendering.runtime import MADE_BY
from jobgen.schedulers.table import queued
from jobgen.script.commands import Command
from jobgen.script.constants import variable_name, whole_expansion
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments, exported
from jobgen.script.word_lists import expanded
from jobgen.values.parsers import number

_ALONE = "none"  # the launcher of a program without one
_NOTHING = "the script has no launcher and no program of its own: the ranks do nothing"
# Variables that the rendered script sets itself or does not need.
_OURS = (*launcher.OF_RANKS, "OMP_NUM_THREADS")
_LOG_OF_TASK = "task-INDEX/log of the run directory"

# What yields remarks on a script, on its job file, and on its program in the job file.
_OF_SCRIPT = (
    *(programs.without_directives, own_files.log_text, own_files.unread, variables.index),
    *(misreadings.own_name, misreadings.own_lines, misreadings.unreadable),
)
_OF_FILE = (
    *(processes.shell, variables.of_runtime, own_files.own_path, variables.contained, variables.arguments),
    *(own_files.own_text, own_files.run_directory, programs.by_other_command),
)
_OF_PROGRAM = (
    *(processes.process_number, variables.unset, variables.set_again, variables.left_out),
    *(programs.timed, processes.deactivation),
)


def convert(script: Script) -> Converted:
    """Return the job file of a script."""
    source = DIALECTS[script.scheduler]
    if not _is_own(script):
        script = with_arguments(text_variables.in_quotes(reached(script)))
    parts = scripts_of(script) if script.components or not _is_own(script) else [script]
    files = [_file(one) for one in parts]
    file = components.join(files, script) if len(files) > 1 else files[0]
    unpack(file, script)
    _own_launcher(file, script)
    _open_binding(file, script)
    make_portable(file, source.scheduler.command_name)
    _packed_tasks(file, script)
    _own_index(file, script)
    text = accepted(file, source.scheduler.command_name, partial(line_of, script))
    for one in parts if not _is_own(script) else ():
        file.remarks += other_scheduler.remarks(one, file, text)
    return Converted(text, tuple(sorted(set(file.remarks))))


def _packed_tasks(file: JobFile, script: Script) -> None:
    """Add a remark on the logs of an array whose tasks look up their index under another scheduler."""
    for other in (one for one, own in file.of_others.items() if own.get("pack")):
        why = f"with jobgen {other} the logs of its tasks count from 0, and what the program prints is in "
        file.hint(line_of(script, "array"), f"the array {script.request.array}", f"{why}{_LOG_OF_TASK}")


def _is_own(script: Script) -> bool:
    return any(re.match(MADE_BY, one) for one in script.lines[:5])


def _file(script: Script) -> JobFile:
    """Return the job file of a script without components."""
    file, source = JobFile(), DIALECTS[script.scheduler]
    read_directives(file, script, totals=True)
    limits(file, script)
    set_name(file, script)
    launch = last_launch(script)
    sizes.submitted_nodes(file, script, launch)
    if _is_own(script):
        _own_script(file, script, launch)
        components.of_chunks(file, source)
    else:
        sizes.write(file, script, launch)
        _accelerator(file, script)
        why = "has no effect in the script: it comes after the first command"
        file.remarks += [hint(one.number, one.text, why) for one in script.directives.late]
        _body(file, script, launch)
        threads.Threads(file, script, main_command(script, launch), launch).write()
        file.remarks += own_files.child_jobs(script, file)
    sizes.variables(file, script)
    return file


def _own_script(file: JobFile, script: Script, launch: Launch | None) -> None:
    """Set the options of a script that jobgen has made, except those of its body."""
    if launch is not None:
        file.values["launcher"] = launch.kind
    set_to = dict(re.findall(r"(?m)^(job_\w+)=([\w,:-]+)$", script.tree.text))
    file.try_add("accelerator", set_to.get("job_accelerator", ""))
    # The request is that of a task, the settings are those of a point.
    if pack := number(set_to.get("job_pack")):
        _, limited, limit = str(file.values["array"]).partition("%")
        array = set_to["job_points"] + limited + str(int(limit or 0) * pack or "")
        file.values |= {"pack": pack, "array": array}
    if ranks := number(set_to.get("job_ranks_per_node")):
        cores = number(set_to.get("job_cpus_per_node")) or ranks
        ranks *= number(set_to.get("job_points_per_node")) or 1
        file.values |= {"ranks_per_node": ranks, "cpus_per_rank": cores // ranks}
        if cores % ranks:
            file.values["cpus_per_node"] = cores
    of_mpi = {one.partition("=")[0] for mpi in MPI_FLAVOURS.values() for one in mpi.over_components}
    for name, value, node in script.assignments:
        text = script.constants.value(value) if exported(node) and name not in _OURS else None
        if text is not None and name not in of_mpi and file.accepts("env", f"{name}={text}"):
            file.set_variable(name, text)


def _own_launcher(file: JobFile, script: Script) -> None:
    """Keep a launcher of the scheduler for its jobs; others start one process, or the ranks with mpirun.

    One process gets no address and port, which a script that names them has a use for.
    """
    if "launcher" not in file.values or not LAUNCHERS[str(file.values["launcher"])].schedulers:
        return
    alone = all(file.values.get(key, 1) == 1 for key in ("ranks_per_node", "nodes"))
    alone &= not file.components and script.values.keys().isdisjoint(RANK_VARIABLES)
    file.keep_own("launcher", "none" if alone else "mpirun")
    for key in ("launcher_arg", *(("mpi",) if alone else ())):
        file.keep_own(key)


def _open_binding(file: JobFile, script: Script) -> None:
    """Add a remark on threads that are bound to the cores of their rank, to which mpirun binds none."""
    own, shared = (LAUNCHERS.get(str(one.get("launcher"))) for one in (file.values, file.shared))
    others = "launcher" in file.own and shared is not None and shared.of_mpi
    mpi = MPI_FLAVOURS.get(str(file.values.get("mpi", own and own.default_mpi)))
    several = file.count("ranks_per_node") > 1 and own is not None and own.of_mpi
    unbound = several and mpi is not None and any("bind-to none" in one for one in mpi.place)
    if not (others or unbound) or "cpu_bind" in file.values:
        return
    if name := binds_threads(script, file.variables):
        lines = (node.line for one, _, node in script.assignments if one == name)
        where = "for another scheduler add" if others else "jobgen binds none: add"
        why = f"binds threads to the cores of their rank: {where} cpu_bind = cores"
        file.hint(next(lines, max((one.line for one in script.launches), default=1)), name, why)


def _own_index(file: JobFile, script: Script) -> None:
    """Set the variable of the index in an array, which jobs of other schedulers do not have; add a remark if
    their arrays look it up."""
    name = script.dialect.variable("array_index")
    if "array" in file.values and name not in script.values and not _is_own(script):
        setup = file.text_of("setup")
        file.values["setup"] = f"export {name}=$JOBGEN_TASK  # also under another scheduler\n{setup}"
    for other, own in file.of_others.items() if not _is_own(script) else ():
        if "pack" in own:
            title = queued()[other].title
            why = f"is no array of {title}, whose job has a list of the indexes (pack): its log has another "
            why += "index, and the output of a task is in task-INDEX/log of the run directory"
            file.hint(line_of(script, "array"), f"array {file.values['array']}", why)


def _accelerator(file: JobFile, script: Script) -> None:
    if "accelerator" in file.values:
        return
    code = re.sub(r"(?m)^\s*#.*$", "", script.tree.text.lower())
    words = set(re.findall(r"(?<!~)\b[a-z]+", code))  # Spack: ~rocm is without it
    marked = [name for name, row in ACCELERATORS.items() if words.intersection(row.marks)]
    kind = marked[0] if marked else of_devices("", [script.request.gpu_type or ""])
    if kind != of_devices("", ()):  # that of GPUs without a type
        file.add("accelerator", kind)


def _body(file: JobFile, script: Script, launch: Launch | None) -> None:
    """Set the program, and the commands before and after it."""
    outer, command = outermost(launch), main_command(script, launch)
    if command is None:
        parts, words = _without_program(file, script)
    elif launch is None and (whole := whole_statement.of(script, command)) is not None:
        parts, words = whole_statement.program(script, split(script, whole, file.remarks), whole)
        file.values |= {"launcher": _ALONE, "command": words.words}
    else:
        file.remarks += redirections(command.node)  # <<<, which is a part of the command
        parts = split(script, command.node, file.remarks)
        words = _program(file, script, launch, command)
    if command is not None:
        file.remarks += programs.alone(script, file, command, launch)
    parts, replaced = without_waiting(script, parts, file.remarks)
    words.used += names(file.container_texts)
    words.expanded |= bool(names([*words.words, *file.container_texts]))
    passes_arguments = script.dialect.scheduler.behaviour.passes_arguments
    if not passes_arguments and any(name.isdecimal() for name in names(file.program)):
        _without_arguments(file, script.dialect, command)
    if words.expanded:
        file.values["expand"] = True
    ending = processes.status(script, parts)
    if command is not None:
        parts, of_hosts = _without_host_code(file, script, command, launch, parts, words)
        replaced += of_hosts
        if launch is None:
            _keep_rank_variables(file, script, words)
    rest, moved = traps.take(script, parts)
    blocks.Body(file, script, rest, words.used, words.setup, moved).write(replaced)
    programs.alone_in_blocks(file)
    file.remarks += ending
    file.remarks += traps.remarks(script, "".join(file.program[-1:]), parts, moved, replaced)
    file.remarks += _notes(file, script, launch, command, parts)
    if outer is not None and not outer.command.node.under("function_definition", "heredoc_body"):
        _earlier(file, script, outer)


def _notes(
    file: JobFile, script: Script, launch: Launch | None, command: Command | None, parts: Split
) -> Iterator[Remark]:
    """Yield the remarks on what a job file does otherwise than its script, once it is written."""
    for of_script in _OF_SCRIPT:
        yield from of_script(script)
    for of_file in _OF_FILE:
        yield from of_file(script, file)
    if command is not None:
        for of_program in _OF_PROGRAM:
            yield from of_program(script, file, command)
        yield from processes.number_of_program(script, parts)
        yield from processes.left_running(script, file, parts, command)
        yield from own_files.lost_files(script, file, parts, command)
    yield from programs.tasks(script, file, launch)
    yield from processes.ends(file, parts, command)
    yield from processes.own_state(script, file, parts)
    yield from variables.environment(script, launch)
    yield from variables.sizes_of_environment(script, file, launch)
    yield from variables.number_of_ranks(script, file, launch)
    yield from sizes.lines_of_site(script, file)
    yield from launcher.of_all_commands(script, file, launch)
    yield from misreadings.in_directory(script, launch.chain if launch else ())


_OF_HOSTS = "jobgen finds hosts, ranks, address and port itself"
_OF_PRINT = "it only prints the hosts, their number or an address, which jobgen finds itself"
_OF_ALL = "jobgen hands the environment of the script to the ranks of all nodes"


def _without_host_code(
    file: JobFile, script: Script, command: Command, launch: Launch | None, parts: Split, words: ProgramWords
) -> tuple[Split, list[Node]]:
    """Leave out what only the launch line of the script reads: its file of hosts, and the like."""
    lines = "\n".join([*words.setup, *file.program, *file.container_texts])
    ours = [name for name in _OURS if name != "OMP_NUM_THREADS"] if launch is not None else []
    code = HostCode(script, command, launch, lines, ours)
    unused = code.find(parts.before, parts.after)
    for one in unused:
        if one not in code.values:
            address = file.values.get("master_addr") if code.sets_address(one) else None
            of_hosts = _OF_PRINT if one in code.prints else f"{_OF_HOSTS}{code.loss(one)}"
            why = _OF_ALL if code.is_environment(one) else of_hosts
            why = f"becomes master_addr = {address}" if address else f"is left out: {why}"
            file.remarks.append(remark_on(one, why))
    before, after = (tuple(without(found, unused)) for found in (parts.before, parts.after))
    return parts._replace(before=before, after=after), [*unused, *code.words]


def _without_arguments(file: JobFile, source: Dialect, command: Command | None) -> None:
    """Take the arguments of the script out of the program: this scheduler passes none."""
    words = file.program
    file.values["command"] = [re.sub(r"\$\{?[1-9]\}?", "", word) for word in words]
    why = f"{source.title} passes no arguments to a script"
    file.lose(command.line if command else 1, shortened(" ".join(words)), why)


def _without_program(file: JobFile, script: Script) -> tuple[Split, ProgramWords]:
    """Set a program that does nothing, beside the commands of the script."""
    file.values |= {"launcher": _ALONE, "command": ["true"]}
    statements = tuple(one for one in script.tree.children if one.type != "comment")
    if not statements and any(line.strip() and not line.startswith("#") for line in script.lines):
        file.lose(1, shortened(script.lines[0]), "only scripts for bash and its like are read")
    else:
        file.hint(1, "the program", _NOTHING)
    ended = bool(statements) and statements[-1].text == "exit 0"
    while statements and re.fullmatch(r"exit( 0)?|[;&]", statements[-1].text):
        statements = statements[:-1]
    if statements and not ended:
        file.remarks += processes.without_program(script, statements[-1])
    return Split(statements, ()), ProgramWords()


def _without_conditional_parts(
    file: JobFile, script: Script, launch: Launch, nodes: tuple[Node, ...]
) -> tuple[Node, ...]:
    """Return the words of a program without the variable that has its launcher, too.

    Among them it stands for words that ``+=`` adds on a condition.
    """
    texts = {node.text for node in nodes}
    for word in launch.command.words:
        expansion = whole_expansion(word)
        known = {one.text for one in script.words_of(word, launch.command)} - {word.text}
        if expansion is None or word not in nodes or texts.isdisjoint(known):
            continue
        for value, assignment in script.constants.parts(variable_name(expansion), word):
            if value is None:
                why = "adds words on a condition: they are not in the program"
                file.lose(assignment.line, shown(assignment), why, of_program=True)
        nodes = tuple(one for one in nodes if one is not word)
    return nodes


def _program(file: JobFile, script: Script, launch: Launch | None, command: Command) -> ProgramWords:
    """Set the launcher and the program; return its words."""
    source = script.dialect
    nodes = tuple(one for word in command.words for one in expanded(word, script.constants))
    more, lines, wrapped = list[str](), list[str](), tuple[Node, ...]()
    kind, in_text, twice, own = _ALONE, None, False, OfScript()
    if launch is None:
        file.remarks += variables.quotes(script, command.line, nodes)
    else:
        kind = launch.kind
        if not LAUNCHERS[kind].starts(source.scheduler.command_name):
            why = f"is no launcher of {source.title}: becomes {source.scheduler.default_launcher}"
            file.lose(launch.line, kind, why)
            kind = source.scheduler.default_launcher
        nodes, more = launcher.program_of(script, launch), _rank_argument(launch)
        surroundings = wrappers.around(script, launch)
        wrapped = wrappers.apply(file, script, launch, surroundings)
        file.remarks += programs.measured(script, launch, wrapped)
        in_text = wrappers.text_program(file, launch, surroundings, nodes, more)
        nodes = program_line.inner(command.words, nodes) if launch.outer else nodes
        nodes = () if launch.has("--multi-prog") else _first_of_several(file, launch, nodes)
        nodes = _without_conditional_parts(file, script, launch, nodes)
        nodes = wrappers.in_container(file, script, launch, nodes)
        of_rank = surroundings.in_shell or surroundings.hidden or surroundings.text is not None
        twice = command.name == "eval" or surroundings.in_shell or surroundings.text is not None
        if twice and any(re.search(r'\\["$]', node.text) for node in nodes):
            nodes = program_line.evaluated(nodes)
        file.remarks += variables.run_twice(script, command, nodes)
        evaluated = twice or command.name in SHELLS
        if not (in_text and in_text.words):
            file.remarks += programs.in_texts(script, launch, evaluated)
        line = outermost(launch) or launch
        own = program_line.of_script(script, line.command.node, (*wrapped, *nodes), of_rank)
        if not (in_text and in_text.words):
            file.remarks += variables.own_ranks(script, file, launch, (*wrapped, *nodes), own.zeros, of_rank)
        if not (twice or surroundings.hidden):
            file.remarks += variables.quotes(script, launch.line, nodes)
        lines = [*_launcher(file, script, launch, kind), *(in_text.setup if in_text else ())]
        lines += environment_file.apply(file, script, launch)
    file.values["launcher"] = kind
    words = program_line.read(script, nodes, own=own)
    if in_text is not None and in_text.words:
        words = replace(in_text, setup=[])
    elif words.several or (twice and program_line.has_signs(script, nodes)):
        words = program_line.as_text(script, nodes, more, launch, twice, own)
    elif launch is not None and words.words:
        words.words = _of_launcher(launch, words.words, more)
    if wrapped:
        words = program_line.wrapped(script, wrapped, words, launch is not None and launch.row.once_a_node)
    words.setup += lines
    if not words.words or (words.words[0].startswith("-") and words.words[0] not in ("-m", "--module")):
        file.remarks.append(remark_on(command, "names no program", lost=True))
        words.words = ["true"]
    program = _prefixed(file, script, launch, command, words)
    file.values["command"], words.expanded = program, bool(names(program))
    return words


def _first_of_several(file: JobFile, launch: Launch, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the words of the first program of ``mpirun -n 1 a : -n 2 b``; add a remark on the others."""
    at = next((i for i, node in enumerate(nodes) if node.text == ":"), len(nodes))
    if not launch.row.starts_mpi or at == len(nodes):
        return nodes
    why = "jobgen starts one program with all ranks: the others are missing"
    file.lose(launch.line, shortened(" ".join(node.text for node in nodes[at:])), why)
    return nodes[:at]


def _prefixed(
    file: JobFile, script: Script, launch: Launch | None, command: Command, words: ProgramWords
) -> list[str]:
    """Return the program with the variables that the script sets for this command only."""
    old = program_line.old_python(script)
    by_launcher = launch is not None and launch.row.once_a_node
    plain = program_line.without_time(words.words)
    direct = plain[0].endswith(".py") and not by_launcher  # by the interpreter of its first line
    pairs = []
    ours = {*_OURS} - ({*RANK_VARIABLES} if launch is None else set())
    of_step = script.dialect.names_of_devices if launch is not None and launch.row.by_scheduler else ()
    for name, value, node in assignments(command.node):
        if node.parent is command.node and name in of_step:
            words.setup.append(f"export {node.text}")  # which the scheduler replaces in a step
        elif node.parent is command.node and name not in ours:
            text = program_line.read(script, [value], words).words if value is not node else []
            pairs.append(f"{name}={''.join(text)}")
    if plain[0] == "python" and (old or pairs):  # env finds it as the script does
        program = plain
    elif direct and (old or "/" not in plain[0]):  # in PATH
        program = ["env", *plain]
    else:
        program = program_line.command(words.words)
    if re.match(r"[A-Za-z_]\w*=", program[0]):  # which ibrun and mpirun_rsh set for the ranks
        program = ["env", *program]
    if plain[0] == "python" and program[0] != "python":
        file.remarks += programs.python(script, file, command)
    elif direct and program == plain:
        file.hint(command.line, plain[0], other_scheduler.OF_INTERPRETER)
    elif launch is not None and by_launcher:
        file.remarks += programs.old_launcher(launch, words.words, old)
        file.remarks += programs.python(script, file, command) if "python" in launch.front and not old else ()
    return _behind_env(pairs, program) if pairs else program


def _behind_env(pairs: list[str], program: list[str]) -> list[str]:
    """Return a program that env starts with these variables."""
    python = ["python3"] if program[0] == "-m" or program[0].endswith(".py") else []
    at = 0 if program[0] != "env" else next(i for i in range(1, len(program), 2) if program[i] != "-u")
    return [*(program[:at] or ["env"]), *pairs, *python, *program[at:]]


def _keep_rank_variables(file: JobFile, script: Script, words: ProgramWords) -> None:
    """Pass the rank variables of the script on to a program without a launcher; jobgen unsets others."""
    exports = (one.text for one in script.tree.all("declaration_command") if one.text.startswith("export"))
    exported_here = set(re.findall(rf"\b({'|'.join(RANK_VARIABLES)})\b", " ".join(exports)))
    command, set_here = file.program, script.values.keys()
    in_shell = bool(file.shell_code)
    read = {name for name in RANK_VARIABLES if re.search(rf"\$\{{?{name}\b", " ".join(command))}
    passed = exported_here | (read if in_shell else set())
    kept = [name for name in RANK_VARIABLES if name in set_here & (passed | read)]
    own = {name: name if name.startswith("MASTER_") else f"script_{name}" for name in kept}
    for name, value in own.items():
        if name != value:
            words.setup.append(f"{value}=${{{name}-}}")
        if not in_shell:
            command = [re.sub(rf"\$(\{{?){name}\b", rf"$\1{value}", word) for word in command]
    if kept:
        pairs = [f"{name}=${value}" for name, value in own.items() if name in passed]
        file.values |= {"command": _behind_env(pairs, command) if pairs else command, "expand": True}


def _of_launcher(launch: Launch, words: list[str], more: list[str]) -> list[str]:
    """Return a program with the Python and the argument that its launcher adds, and jobgen does not."""
    known = words[0].endswith(".py") or words[0] in ("-m", "--module")
    if launch.row.local_rank_option and known:
        return words  # jobgen adds both
    front = ["python3"] if not known and program_line.by_python(launch, words[0]) else []
    return program_line.with_argument([*front, *words], more)


def _rank_argument(launch: Launch) -> list[str]:
    """Return the argument that deepspeed and torch.distributed.launch add, and torchrun does not."""
    without = ("--no-local-rank", "--no_local_rank") if launch.row.local_rank_option else ("--use-env",)
    adds = (launch.row.local_rank_option or _is_old(launch)) and not launch.has(*without)
    return ["--local_rank=$LOCAL_RANK"] if adds else []


def _is_old(launch: Launch) -> bool:
    return any(word.endswith("torch.distributed.launch") for word in launch.front)


def _launcher(file: JobFile, script: Script, launch: Launch, kind: str) -> list[str]:
    """Set the launcher's options; return lines for setup."""
    named = wrappers.launcher_word(launch)
    word = next(iter(expanded(named, script.constants, named)))
    if "/" in (first := script.constants.value(word) or word.text):
        file.hint(launch.line, shortened(first), f"jobgen starts the {kind} that the job finds in PATH")
    if kind != launch.kind:
        file.hint(launch.line, launch.kind, f"becomes {kind}")
    if _is_old(launch):
        why = f"becomes {kind}, which PyTorch has since 1.10"
        if _rank_argument(launch):
            why += "; the program gets --local_rank, which PyTorch 2 names --local-rank"
        file.hint(launch.line, "torch.distributed.launch", why)
    if (name := launcher.name_of(launch)) in launcher.OTHERS:
        unset = name == aprun.NAME and aprun.RANK in script.tree.text
        file.hint(
            launch.line, name, f"becomes {kind}" + f", which does not set {aprun.RANK}: use RANK" * unset
        )
    launcher.set_mpi(file, script, launch, kind)
    launcher.ends(file, script, launch)
    launcher.cores_of_list(file, script, launch)
    file.remarks += launcher.without_terminal(script, launch)
    if (port := launch.number("--master-port", "--main-process-port")) is not None:
        file.add("master_port", port, launch.line)
    rendezvous.master_addr(file, script)
    return launcher.write(file, script, launch, kind)


def _earlier(file: JobFile, script: Script, outer: Launch) -> None:
    """Add a remark on each other launcher that is started beside the program."""
    for one in script.launches:
        top = one.outer is None and one.kind in LAUNCHERS and one.command.node is not outer.command.node
        if top and one.command.node.start > outer.command.node.start:
            file.hint(one.line, shown(one.command.node), "runs after the program, in the block after")
