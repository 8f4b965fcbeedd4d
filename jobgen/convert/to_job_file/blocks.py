"""The blocks of a job file: the commands of a script before and after its program."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from jobgen.convert import start_directory
from jobgen.convert.result import Edit, apply, remark_on
from jobgen.convert.to_job_file import definitions, processes, variables
from jobgen.convert.to_job_file.builder import END_OF_EARLY, JobFile
from jobgen.convert.to_job_file.definitions import by_value, definitions_of, reads_set_arguments, state
from jobgen.convert.to_job_file.effects import ENVIRONMENT, LOGIN, OF_DIRECTORY, OF_SITE, effects_of
from jobgen.convert.to_job_file.environment import OF_SHELL, take
from jobgen.convert.to_job_file.inherited import is_own_file, may_be_function, may_define_functions
from jobgen.convert.to_job_file.statements import END_OF_STRICT, Split, reads_status
from jobgen.convert.to_job_file.traps import actions_of
from jobgen.convert.to_job_file.working_directory import AT_HOME
from jobgen.launch.expansion import names
from jobgen.rendering.hooks import complaint
from jobgen.script.changed_variables import changed_variables
from jobgen.script.command_kinds import PRINT, STATE
from jobgen.script.commands import commands, names_command
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments, exported, parse

_IDLE = re.compile(r"(wait|true|:|deactivate)?")
# What only leaves an environment or modules.
_LEAVES = re.compile(r"(conda|source|\.) deactivate|(module|ml) (purge|(unload|rm)( [\w./+-]+)+)")
_EXIT = re.compile(r"exit( 0| \$\?| \"\$\?\")?")

# Commands that make programs or get them, and those that install commands.
BUILDS = re.compile(
    r"((\S*/)?(g?make|cmake|ninja|meson|scons|bazel|git|tar|unzip|wget|curl|rustc|cargo|go|javac|cc|CC|ftn|c\+\+"
    r"|(mpi)?(gcc|g\+\+|gfortran|clang(\+\+)?|nvcc|hipcc|nvc(\+\+)?|pgcc|pgf\w+|nvfortran|icpc|i[cf]x|icpx)"
    r"|ifort|icc|mpii?(cc|cxx|c\+\+|f77|f90|fort|cpc))"
    r"|((ba)?sh |\./)\S*(build|compile|install|configure)\S*)( |$)"
)
_INSTALLS = (
    r"(\S*python[\d.]* -m |uv )?pip\d? install |\S*python[\d.]* setup\.py (install|develop)"
    r"|(conda|mamba) install "
    r"|(make|ninja|cmake|cargo|go|npm|spack) (.* )?(--)?install( |$)"
)
# Commands with whose status set -e ends a script; that of a list may be another.
_ENDS = ("command", "redirected_statement", "variable_assignment", "declaration_command", "pipeline")
_STATUS = re.compile(r"\$\?|\$\{\?|\bPIPESTATUS\b")
_SETS = ("source", ".", "eval", "read", "mapfile", "readarray", "getopts", "let")


def misread(assignment: Node) -> bool:
    """Return whether tree-sitter has read ``A=$B/$C/d`` or ``A=$B\\_$C`` as the variable of a command."""
    after = assignment.next()
    goes_on = after is not None and after.start == assignment.end and after.text.startswith("\\")
    return assignment.text.endswith("$") or goes_on


def _working(script: Script, statements: Sequence[Node]) -> list[Node]:
    """Return the statements that do more than wait, up to the end of the script, with their separators."""
    found: list[Node] = []
    works = 0  # the length up to the last statement that does more than to leave an environment
    dropped = True
    for at, one in enumerate(statements):
        text = one.text.rstrip(";& ")
        if _EXIT.fullmatch(text):
            break
        if one.type not in (";", "&"):
            waits = text == "wait" and processes.unwaited(statements[:at], script.functions)
            dropped = bool(_IDLE.fullmatch(text)) and not waits
        found += [] if dropped else [one]
        works = works if dropped or _LEAVES.fullmatch(text) else len(found)
    return found[:works]


def _reads_status(statement: Node, strict: bool) -> bool:
    """Return whether the status of a pipeline matters: in a condition, or if an error ends the script."""
    places = ("if_statement", "while_statement", "list", "negated_command")
    found = list(statement.all("pipeline"))
    return any(strict or "$?" in statement.text or one.under(*places) for one in found)


def _end_before(statement: Node, start: int) -> int:
    """Return the end of the statement before, which may have left the block with the comments on it."""
    before = statement.previous()
    while before is not None and before.type == "comment":
        before = before.previous()
    return max(start, before.end if before is not None else start)


def _code(statement: Node) -> str:
    """Return the text of a statement. ``return`` leaves a block, a function; in a script it fails."""
    found = [one.node for one in commands(statement) if one.name == "return"]
    found = [one for one in found if not one.under("function_definition")]
    edits = (Edit(one.start - statement.start, one.end - statement.start, "false") for one in found)
    return apply(statement.text.encode(), edits).decode() if found else statement.text


def _sets(statement: Node) -> bool:
    """Return whether a statement sets variables of the shell otherwise than by an assignment."""
    found = commands(statement)
    named = any(one.name in _SETS or (one.name == "printf" and "-v" in one.literals) for one in found)
    return named or re.search(r"\$\{\w+:?=|(^|\s)\(\(", statement.text) is not None


class Body:
    """The blocks of a job file under construction."""

    def __init__(
        self,
        file: JobFile,
        script: Script,
        parts: Split,
        used: Sequence[str],
        lines: Sequence[str],
        traps: Sequence[Node],
    ) -> None:
        self.file, self.script, self.parts = file, script, parts
        self.used, self.lines = list(used), list(lines)
        self.traps, self.actions = traps, actions_of(traps)  # of the end of the script, and what they run
        self.files: list[Node] = []  # the options that may be files to source
        self.early: list[Node] = []  # the statements before the options
        self.conditions: list[Node] = []  # of the program, that are no options

    def write(self, replaced: Sequence[Node]) -> None:
        """Set the options, and the blocks. jobgen has code of its own for the nodes ``replaced``."""
        conditions = self.parts.conditions
        options, own, self.early = take(self.file, self.script, self.parts, self.lines, replaced)
        self.conditions = [one for one in own if one in conditions]
        own = [one for one in own if one not in conditions]
        self.files = [one for one in options if not re.search(r"activate|/conda\.sh", one.text)]
        strict = not options or self._strict(options[0].start)
        self.file.remarks += processes.background(self.script, self.parts)
        before, behind = self._split(own)
        behind = self._without_unused_functions(behind)
        last = [one for _, one in self.parts.last]
        after = [*last, *_working(self.script, self.parts.after)]
        # If a condition of the program fails, the script goes on with the commands after the program.
        ending = [one for one in options if after or one not in conditions]
        self.file.remarks += processes.options(ending, strict, self.script.asks_for_sh)
        self.file.remarks += processes.failures_of_files(self.script, options)
        why = "if it fails, the job ends here, and the script goes on"
        self.file.remarks += [remark_on(one, why) for one in self.conditions if after]
        self.file.remarks += processes.in_blocks(before, behind, self.parts.after)
        read = self._sourced([*self.files, *behind])
        self.file.remarks += processes.sourced(self.file, read, after)
        later = after if read is None else []
        self.file.remarks += processes.own_function(self.script, self.file, [*self.files, *behind], later)
        texts = {"before": self._text(before), "after_block": self._text(after[len(last) :])}
        if last:
            text = " ".join([self._status, *(f"{sign} {one.text}" for sign, one in self.parts.last)])
            texts["after_block"] = f"{text}\n{texts['after_block']}".strip()
        self._block("setup", self._setup(behind, [*before, *after, *self.actions]))
        if texts["before"]:
            self._block("before", self._with_options("before", texts["before"], before))
        if texts["after_block"] or self.traps:
            self._block("after_block", self._with_options("after_block", texts["after_block"], after))

    def _setup(self, statements: Sequence[Node], later: Sequence[Node]) -> str:
        text = self._text(statements)
        conditions = [f"{one.text} || exit" for one in self.conditions]
        code = "\n".join(filter(None, [text, *conditions, *self.lines]))
        if not re.sub(r"set [-+]\w+( \w+)?|#.*|[;\s]", "", code):
            code = ""
        unexported = self._unexported(statements, later)
        read = {*definitions_of(self.script, later).names, *self.used}
        for array in sorted(by_value(self.script)):
            if (name := f"{definitions.OF_ARRAY}{array}") in read:
                code += f'\nexport {name}="$(declare -p {array})"'
                self.file.remarks += variables.long_array(self.script, array)
        if reads_set_arguments(self.script, later) and definitions.ARGUMENTS_SET not in self.used:
            code += "\n" + "\n".join(definitions.PRINT_ARGUMENTS)
        if definitions.STACK in read:
            code += f"\n{definitions.PRINT_STACK}"
        code += "".join(f"\nexport {name}" for name in unexported)
        self.file.remarks += variables.exported_too(self.script, unexported, statements)
        strict = bool(statements) and self._strict(statements[0].start)
        piped = bool(statements) and self.script.has_option("", "pipefail", statements[0].start)
        pipes = not piped and any(_reads_status(one, self._strict(one.start)) for one in statements)
        unset = ["+e"] * (not strict) + ["+o pipefail"] * pipes
        start = [f"set {' '.join(unset)}"] if unset and code else []
        start += definitions.options_of_first_line(self.script, "BCPafk") if code else []
        of_shell = [one.text for one in statements if one in self.early and OF_SHELL.match(one.text)]
        code = code.replace(END_OF_EARLY, "\n".join([END_OF_EARLY, *start, *of_shell]))
        if self._starts_at_home(statements):
            self.file.remarks += start_directory.at_home(self.script)
            if not (self.script.starts_at_submission or self.file.try_add("workdir", AT_HOME)):
                start.append("cd")
        return "\n".join([*start, code.strip("\n")]) if code or start else ""

    def _without_unused_functions(self, statements: list[Node]) -> list[Node]:
        """Leave out functions that only the program calls, which has their definitions in its own words."""
        code = f"\n{self.file.shell_code}\n"
        functions = [one for one in statements if one.type == "function_definition"]
        unused = [one for one in functions if f"\n{one.text}\n" in code]
        if self._sourced([*self.files, *statements]) is not None:
            unused = []  # the file may call them
        others = [one for one in statements if one not in unused]
        texts = [*self.lines, *(one.text for one in (*self.files, *self.conditions, *self.traps, *others))]
        while called := [one for one in unused if any(names_command(text, one.name) for text in texts)]:
            unused = [one for one in unused if one not in called]
            texts = [one.text for one in called]
        return [one for one in statements if one not in unused]

    def _sourced(self, statements: Sequence[Node]) -> Node | None:
        """Return the last statement that reads a file of commands; environments have none for the script."""
        found = [one for one in statements if one.type == "command" and re.match(r"(source|\.)\s", one.text)]
        found = [one for one in found if not ENVIRONMENT.search(one.text)]
        return found[-1] if found else None

    def _strict(self, at: int) -> bool:
        """Return whether an error ends the script at this byte, or from the command there on."""
        return self.script.has_option("e", "errexit", at)

    def _starts_at_home(self, statements: Sequence[Node]) -> bool:
        """Return whether the script relies on the home directory, in which its scheduler starts it.

        ``statements`` are those of setup, without the changes of the directory that the job begins with.
        """
        if not self.script.dialect.starts_at_home or "workdir" in self.file.values:
            return False
        if {"-l wd", *self.script.dialect.directory_options} & self.script.heeded.keys():
            return False  # that of the submission
        first = next(self.script.named("cd", "pushd"), None)
        if first is None or not start_directory.leaves_start(self.script, first):
            return True
        if first.name == "pushd" and start_directory.reads_start(self.script, first):
            return True
        if not any(one.start <= first.node.start < one.end for one in statements):
            return False
        before = [one for one in self.script.tree.children if one.end <= first.node.start]
        return any(effects_of(self.script, one).kinds & OF_DIRECTORY for one in before)

    def _unexported(self, statements: Sequence[Node], later: Sequence[Node]) -> list[str]:
        """Return the variables that only the script has, but that other shells of the job read."""
        read = {*definitions_of(self.script, later).names, *self.used}
        known = {*self.file.variables, *by_value(self.script)}
        found: dict[str, None] = {}
        program = parse(code.encode()) if (code := self.file.shell_code) else None
        sourced = any(map(is_own_file, (two for one in (program, *later) if one for two in commands(one))))
        for one in statements:
            for name, value, node in assignments(one):
                if exported(node) and not misread(node):
                    known.add(name)
                elif (name in read or (sourced and value.type != "array")) and name not in known:
                    found[name] = None
            found |= dict.fromkeys(sorted(changed_variables(one) & read - known))
        if any(map(_sets, (*self.files, *statements))):
            assigned = {*self.script.values, *(name for one in later for name, _, _ in assignments(one))}
            unknown = [name for name in sorted(read - assigned) if re.fullmatch(r"[A-Za-z]\w*", name)]
            found |= {name: None for name in unknown if OF_SITE.fullmatch(name) or not LOGIN.fullmatch(name)}
        text = self._text(statements)
        if self.script.tree.damaged:  # assignments that tree-sitter has not read
            found |= {name: None for name in sorted(read) if re.search(rf"(?m)^\s*{re.escape(name)}=", text)}
        message = re.compile(r"^\s*export\b([^=\n;]*)", re.MULTILINE).findall(text)
        known |= {definitions.ARGUMENTS_SET, *" ".join(message).split()}
        known |= {f"{definitions.OF_ARRAY}{name}" for name in by_value(self.script)}
        return [name for name in found if name not in known]

    @property
    def _status(self) -> str:
        """A command with the status of the program, or of its pipeline, for the block ``after``."""
        return '(exit "$JOBGEN_STATUS")' + " | true" * (self.parts.piped is not None)

    def _with_options(self, key: str, text: str, statements: Sequence[Node]) -> str:
        """Return a block with the shell options and the definitions that hold for it in the script."""
        at = statements[0].start if statements else len(self.script.source)
        strict, nounset = self._strict(at), self.script.has_option("u", "nounset", at)
        unset = "e" * (not strict) + "u" * (not nounset)
        words = [f"+{unset}"] * bool(unset)
        words += ["+o pipefail"] * (not self.script.has_option("", "pipefail", at))
        start = [f"set {' '.join(words)}"] if words else []
        start += [*definitions.SET_ARGUMENTS] * reads_set_arguments(self.script, statements)
        actions = self.actions if key == "after_block" else []
        needs = definitions_of(self.script, [*statements, *actions]).definitions
        start += [*state(self.script, statements), *needs]
        if key == "before" and not (strict and statements[-1].type in _ENDS):
            text += "\ntrue  # whatever the status of the last command"
        start += [one.text for one in self.traps] if key != "before" else []
        if key == "before" or self.parts.last:
            return "\n".join([*start, text])
        traps_read = any(map(_STATUS.search, (*needs, *(one.text for one in actions))))
        alone = all(one.type == ";" for one in self.parts.after[: self.parts.sign or 0])
        ignored = self.parts.piped or (self.parts.background and alone)  # a failure, by set -e
        if text and strict and not ignored:
            status = '"$JOBGEN_STATUS"' if traps_read else "0"
            start.append(f'[ "$JOBGEN_STATUS" = 0 ] || exit {status}  {END_OF_STRICT}')
        if (not text and traps_read) or (text and reads_status(self.script, statements[0])):
            start.append(self._status)
        return "\n".join([*start, text])

    def _block(self, key: str, text: str) -> None:
        if not text.strip():
            return
        if message := complaint(text):
            self.file.lose(1, f"the commands of {key}", f"bash cannot read them: {message}")
        elif not self.file.try_add(key, text.strip("\n") + "\n"):
            self.file.lose(1, f"the commands of {key}", "contain characters that are not text")

    def _text(self, statements: Sequence[Node]) -> str:
        """Return statements as they are in the script, with the comments between them."""
        out: list[str] = []
        end: int | None = None
        directive = self.script.dialect.scheduler.prefix
        early = [one for one in statements if one in self.early]
        for one in statements:
            if one.type in (";", "&", ";;"):
                if out:
                    out.append(one.text)
                end = one.end
                continue
            between = one.source[end : one.start].decode("utf-8", "replace") if end is not None else ""
            own = one.source[_end_before(one, end or 0) : one.start].decode("utf-8", "replace")
            lines = own.split("\n") if between else []
            comments = [line for line in lines if line.lstrip().startswith("#") and directive not in line]
            joined = end is not None and end <= one.start and "\n" not in between
            above = "" if joined else "".join(f"{line.strip()}\n" for line in comments)
            if early and one not in early:
                above, joined, early = f"{END_OF_EARLY}\n{above}", False, []
            out.append((" " if joined and out else "\n") + above + _code(one))
            end = one.end
        while out and out[-1] == ";":
            out.pop()
        return "".join([*out, f"\n{END_OF_EARLY}" * bool(early)]).strip("\n ")

    def _split(self, own: list[Node]) -> tuple[list[Node], list[Node]]:
        """Split the statements before the program into the blocks ``before`` and ``setup``.

        ``before`` is the end of them, from where all statements only run programs. What installs commands or
        makes the image is in ``setup``: the job looks for the launcher and the image between the two blocks.
        """
        read = [one for each in [*self.files, *own] for one in commands(each) if may_define_functions(one)]
        functions = min((one.node.start for one in read), default=len(self.script.tree.source))
        at = len(own)
        while at and self._runs_only(own[at - 1], functions):
            at -= 1
        at = max([at, *(number + 1 for number, one in enumerate(own) if self._installs(one))])
        at = max([at, *(own.index(one) + 1 for one in self.early if one in own)])
        while at < len(own) and (own[at].type in (";", "&") or (at and reads_status(self.script, own[at]))):
            at += 1
        last = own[at:]
        if any(map(_STATUS.search, self.lines)) or self._sourced([*self.files, *own[:at]]) is not None:
            return [], own  # their status, and the functions of a file, are in the shell of setup only
        works = any(command.name not in PRINT for one in last for command in commands(one))
        return (last, own[:at]) if works and not self.conditions else ([], own)

    def _installs(self, statement: Node) -> bool:
        """Return whether a statement may install the launcher or a module of Python, or make the image."""
        image = re.escape(os.path.basename(self.file.text_of("image")))
        pattern = re.compile(_INSTALLS + (rf"|.*(?<![\w.-]){image}(?![\w.-])" if image else ""))
        texts = (" ".join(map(self.script.constants.text, one.words)) for one in commands(statement))
        return any(map(pattern.match, texts))

    def _runs_only(self, statement: Node, functions: int) -> bool:
        """Return whether a statement needs nothing of the shell.

        From the byte ``functions`` on, a command may be a function of a file.
        """
        if statement.type in (";", "&"):
            return True
        kinds = ("function_definition", "declaration_command", "unset_command", "variable_assignment")
        if any(not one.child_of("command") or misread(one) for one in statement.all(*kinds)):
            return False
        if processes.reads_match([statement]):
            return False
        if definitions_of(self.script, [statement]).definitions or _sets(statement):
            return False
        if changed_variables(statement) & {*self.used, *names(self.file.program)}:
            return False
        called = {command.name for command in commands(statement)}
        words = [command.words[0].text for command in commands(statement)]
        if statement.start > functions and any(may_be_function(self.script, word) for word in words):
            return False
        background = (after := statement.next()) is not None and after.type == "&"
        return not background and bool(called) and not called & {*STATE, "", *self.script.functions}
