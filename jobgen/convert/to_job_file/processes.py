"""Remarks on the shells and processes of a job: what they share, and how they and the job end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import takewhile

from jobgen.convert.result import Remark, hint, remark_on, shown
from jobgen.convert.to_job_file import inherited
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.definitions import definitions_of
from jobgen.convert.to_job_file.statements import END_OF_STRICT, FAILURE, OTHER_STATUS, SEPARATORS, Split
from jobgen.launch.wrappers import command_start
from jobgen.script.command_kinds import PRINT, STATE, TOOLS, changes_shell
from jobgen.script.commands import Command, commands
from jobgen.script.script import Script
from jobgen.script.syntax import LATER, LOOPS, Node, assignments, expansions, in_background, parse

_OTHER_SHELL = ("function_definition", "subshell", "command_substitution", "process_substitution", "pipeline")
_MATCH = "BASH_REMATCH"
_STATUS = {"?", "PIPESTATUS[0]"}
# The first command behind a program, which keeps its status.
_SETS_STATUS = re.compile(
    r"(?:(?:export|local|declare|readonly) )?(\w+)=\"?\$(?:\?|\{\?\}|\{PIPESTATUS\[0\]\})\"?"
)
_SUCCEEDS = re.compile(r"(echo|printf|true)\b(?!.*[|&>])")
_OF_PROGRAM = re.compile(r"exit( \"?\$\?\"?)?")
_OWN_SHELL = ("subshell", "command_substitution", "pipeline")
# Commands that take no time beside a process in the background, or wait for a while.
_BRIEF = STATE | PRINT | {"sleep", "kill", "true", "rm", "mkdir", "[", "test"}
_NO_TIME = STATE | {"echo", "printf", "date", "hostname", "true", "[", "test"}
_OWN_NUMBER = re.compile(r"(?<![\\$])\$\$(?![\w$])")

_MOVES = ("cd", "pushd", "popd", "module", "ml", "source", ".", "conda")
# Commands whose failure only prints a warning as an option.
_WARNS = re.compile(r"(module|ml)( -\S+)* (purge|unload|rm|del|remove|use|reset|restore|r|list)\b|ml -\S+$")
_READS_CODE = ("source", ".", "eval", "exec")


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
    works = all(one.text == "exit 0" or _SUCCEEDS.match(_last_of_and(one).text) for one in own)
    same = works and script.errexit and not (parts.piped or parts.last or parts.background)
    if own and not same and not _keeps_status(own, parts.piped is not None):
        yield remark_on(own[-1], OTHER_STATUS)
    yield from (remark_on(one, OTHER_STATUS) for one in _exits(script, own) if one.line != own[-1].line)
    if parts.piped and not own and not parts.last:
        yield remark_on(parts.piped, OTHER_STATUS)
    elif parts.last and not own and not any(re.search(r"\bexit\b", one.text) for _, one in parts.last):
        yield remark_on(parts.last[-1][1], OTHER_STATUS)


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
    guarded = END_OF_STRICT in file.text_of("after_block")
    for code, where in places if parts.behind else ():
        exits = (one for one in commands(code) if one.name == "exit")
        exits = (one for one in exits if not (guarded and _is_failure(one, code, program)))
        found = (one.node for one in exits if not one.node.under(*_OWN_SHELL))
        if any(not any(node in one for one in kept) for node in found):
            yield remark_on(parts.behind[0], f"runs also after an exit {where}")


def _is_failure(command: Command, code: Node, program: Command | None) -> bool:
    """Return whether an exit ends code with a failure for certain; in code around a program with the failure
    of this: ``exit 1`` behind ``if ! PROGRAM``."""
    if program is not None and program.node in code:
        tests = (above.get("condition") for above in command.node.above() if above.type == "if_statement")
        test = next((one for one in tests if one is not None and program.node in one), None)
        if test is None or test.text.startswith("!") == command.node.under("else_clause"):
            return False
    text = " ".join(re.sub('["{}]', "", one.text) for one in command.arguments)
    above = command.node.parent
    if text in ("", "$?"):
        return above is not None and above.type == "list" and above.children[1].text == "||"
    failed = re.fullmatch(r"[1-9]\d*", text) is not None
    return failed or _after_failure(command.node, code, {text.strip("$")})


def reads_match(nodes: Sequence[Node]) -> bool:
    """Return whether commands read what a test before them has matched."""
    return any(_MATCH in one.text for one in nodes) and not any("=~" in one.text for one in nodes)


def own_state(script: Script, file: JobFile, parts: Split) -> Iterator[Remark]:
    """Yield remarks on what the program, as code of a process of its own, sets for the commands after it."""
    after = parts.behind
    clock = [node for one in after for node in one.all("variable_name") if node.text == "SECONDS"]
    clock += [one.node for statement in after for one in commands(statement) if one.name == "times"]
    for read in clock[:1]:
        why = "the commands after the program have a shell, and a clock, of their own"
        yield hint(read.line, shown(read), why)
    for first in after[:1]:
        if re.search(r"PIPESTATUS\[(?!0\])", first.text):
            yield remark_on(first, "PIPESTATUS has the status of the program, and 0 for a command behind it")
    code = parse(file.shell_code.encode())
    if reads_match(after) or reads_match([code]):
        line = max(at for at, text in enumerate(script.lines, 1) if _MATCH in text)
        yield hint(
            line, f"${_MATCH}", "has no value in the program and behind it: these are separate processes"
        )
    if not (file.shell_code and after):
        return
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
    code = shell_texts(file)
    if len([text for text in (*file.blocks, *code) if _OWN_NUMBER.search(text)]) > 1:
        why = "has another value in each block and in the program, which are separate processes"
        lost = any(map(_OWN_NUMBER.search, code))
        plain = (re.sub(r"(^|\s)#.*", "", line) for line in script.lines if not lost)
        lines = (at for at, line in enumerate(plain, 1) if _OWN_NUMBER.search(line))
        yield Remark(next(lines, program.line), "$$", f"{why}: set a variable in setup", lost)


def shell_texts(file: JobFile) -> list[str]:
    """Return the code that ``bash -c`` runs in the program."""
    words = file.program
    return [text for at, text in enumerate(words) if words[at - 2 : at] == ["bash", "-c"]]


def other_code(file: JobFile) -> list[Node]:
    """Return the code of other shells than that of setup."""
    return [parse(text.encode()) for text in (*shell_texts(file), *file.blocks[1:])]


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


def failures_of_files(script: Script, statements: Sequence[Node]) -> Iterator[Remark]:
    """Yield a remark on each file that became an option, and in which a failure ends the script."""
    for one in (command for statement in statements for command in commands(statement)):
        given = any(
            script.has_option(*option, one.node.start) for option in (("e", "errexit"), ("u", "nounset"))
        )
        ends = given or any(above.type == "list" and "||" in above.text for above in one.node.above())
        if ends and inherited.is_own_file(one):
            yield remark_on(one, "a failure in this file ends the script, and not the job")


def _activates(command: Command) -> bool:
    """Return whether ``source`` activates an environment of conda: ``source [DIR/]activate NAME``."""
    words = [word.text.strip("\"'") for word in command.arguments]
    return words[:1] == ["activate"] or (len(words) > 1 and words[0].endswith("/activate"))


def in_blocks(before: Sequence[Node], setup: Sequence[Node], after: Sequence[Node]) -> Iterator[Remark]:
    """Yield remarks on commands that do something else in a block of a job file."""
    ending = "ends the script; in setup it ends the job, too, without a record of jobgen in its run directory"
    for block, why in ((setup, ending), (before, "ends the script, and the job goes on with its program")):
        found = [command for statement in block for command in commands(statement)]
        for one in found:
            shell = one.node.under("subshell", "command_substitution")
            function = one.node.around("function_definition")
            called = function is None or any(other.name == function.name for other in found)
            if called and not shell and one.name == "exit" and one.literals != ["1"]:
                yield hint(one.line, one.node.text, "before the program, the job ends with status 71 instead")
            inside = shell or function is not None
            if not inside and one.name == "exec" and one.arguments:
                yield remark_on(one, why, lost=block is before)
    for statement in setup:
        if re.match(r"exec\s+0?<(?![<&])", statement.text):
            yield remark_on(statement, "the program and the commands of other blocks have no standard input")
    own = [one for one in after if one.type not in SEPARATORS]
    for one in (command for statement in own[:-1] for command in commands(statement)):
        if one.name == "deactivate":
            why = "the commands after the program run in the environment, too"
            yield hint(one.line, one.name, why)


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
    codes = [*(parse(text.encode()) for text in shell_texts(file) if not own_shell), *after]
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
