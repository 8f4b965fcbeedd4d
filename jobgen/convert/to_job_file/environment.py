"""The commands of a script that are options of a job file: modules, files, environments, variables."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from jobgen.convert import start_directory
from jobgen.convert.result import Remark, hint, remark_on, shown
from jobgen.convert.to_job_file import effects, inherited
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.effects import Effects, effects_of, may_follow, mentions
from jobgen.convert.to_job_file.program_line import has_home
from jobgen.convert.to_job_file.statements import FAILURE, Split, without
from jobgen.launch.expansion import names as expanded_names
from jobgen.rendering.quoting import VARIABLE
from jobgen.script.commands import Command, commands
from jobgen.script.constants import certain
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments, expansions, exported, without_parts
from jobgen.values.parsers import is_whole, known_directory

Setting = tuple[str, str]  # an option and its value, or what the statement does instead of an option

_VERBS = """
unload rm del swap switch sw reset restore r save s list avail av spider show help whatis keyword key refresh
update collection savelist describe overview is-loaded unuse try-load load-any purge use load add tablelist
"""

# Commands of modules that are values of the option for modules, by their names and short forms.
_FORMS = ("unload rm del remove", "swap switch sw", "use", "reset", "restore r", "list")
_COMMANDS = {short: forms.split()[0] for forms in _FORMS for short in forms.split()}
_OPTIONS = ("-s", "-q", "-t", "--silent", "--quiet", "--terse", "--force", "-f", "--ignore-cache")
_OTHER_OPTION = re.compile(r"--|-[dDhHrRTvwy]$")
_OF_MODULES = ("module_purge", "module_use", "module")
_STAGES = ("module_init", *_OF_MODULES, "source", "conda", "venv")  # in the order of jobgen's script
_LISTS = ("module_init", "module_use", "module", "source")
# Files that define the command module, and files of a login shell.
_MODULES = re.compile(
    r"/etc/profile\.d/(\w+-)?(modules|lmod)(\.sh)?"
    r"|(/usr/share/(\w+/)*|\$\{?MODULESHOME\}?/)init/(ba)?sh"
)
# The function itself, as these files define it.
_MODULE_COMMAND = re.compile(
    r"(function )?module *\(\) *\{\s*eval \"?(\$\(|`)\s*((/usr|\$\{?MODULESHOME\}?)/bin/)?"
    r"modulecmd bash \"?\$[*@]\W*\}"
)
_READINGS = 4  # of the statements, at most
OF_SHELL = re.compile(r"(set [-+](?!-)|shopt )")  # options of the shell, which end with a block
_OF_MODULES_ONLY = re.compile(r"MODULE|LMOD|_LM")  # variables that the command module reads
_TRACE = re.compile(r"set [-+][xv]+$")  # which only prints
_SETTING = {"source", ".", "cd", "pushd", "module", "ml", "conda", "mamba", "eval"}
_AT_HOME = re.compile(r"(?:~|\$HOME|\$\{HOME\})(/[\w./+@%:-]+)")
_CHANGES_DIRECTORY = re.compile(r"(cd|pushd)\b")
AT_HOME = "~/."  # the home directory itself
_LOGIN_FILES = re.compile(
    r"(~|\$HOME|\$\{HOME\}|/homes?/(\w+|\$USER|\$\{USER\}|\$\(whoami\)|`whoami`))/\.(bashrc|bash_profile|profile|bash_login)"
)
# A file of the system, or of the login shell, that is read if it is there.
_IF_THERE = re.compile(
    r"if (?:\[+|test) -[efr] "
    r"(/etc/bashrc|/etc/profile(?:\.d/(?:\w+-)?(?:modules|lmod)\.sh)?|(?:~|\$HOME)/\.bashrc)"
    r"(?: \]+)?\s*;?\s*then\s+(?:source|\.) \1\s*;?\s*fi"
)
_CONDA_AT_HOME = re.compile(
    r"(~|\$HOME|\$\{HOME\})/(miniforge3|miniconda3|mambaforge|anaconda3)/(etc/profile\.d/conda\.sh|bin/activate)"
)
_CONDA = re.compile(r"~?/(?:[^/]+/)*\.?(?:(?:mini|ana)?conda|miniforge|mambaforge)\d*", re.IGNORECASE)
_NAMES_CONDA = re.compile(r"(conda|mamba|miniforge)(?!.*/envs/)", re.IGNORECASE)
_BEHIND_PATH = re.compile(r"\"?\$\{?PATH\b")  # folders behind those that PATH has
_CONDA_ON_PATH = re.compile(
    rf"export PATH=\"?((?:\$HOME|\$\{{HOME\}})?(?:{_CONDA.pattern}))/bin/?:\$\{{?PATH\}}?\"?", re.IGNORECASE
)
_CONDA_BEHIND_PATH = re.compile(
    rf"export PATH=\"?\$\{{?PATH\}}?:((?:\$HOME|\$\{{HOME\}})?(?:{_CONDA.pattern}))/bin/?\"?", re.IGNORECASE
)
_HOOK = re.compile(
    r"[\s('\"`](?:((?:~|\$HOME|\$\{HOME\})?/[\w./-]+)/bin/)?conda['\")]* ['\"]?shell\.(?:bash|posix)['\"]? "
)
_OF_JOB_ONLY = re.compile(r"\$\{?(SLURM_)?TMPDIR\b")  # a folder that is made for the job
_OF_NODE = re.compile(r"/(dev|tmp|var/tmp)(/|$)")  # folders of a node, in which no home is
# The directory of the submission, which is set in a job, so that no default of it is used.
_DEFAULT = r"(?::?[-=?](?:[^{}]|\{[^{}]*\})*)?"
_SUBMISSION = re.compile(rf"\$(\{{)?(PBS_O_WORKDIR|SLURM_SUBMIT_DIR)(?(1){_DEFAULT}\}}|)(/[\w./-]*)?")
# What only prints and ends the shell of a script.
_END_OF_SHELL = re.compile(
    r"exit\b|\{\s*((echo|printf) ([^$`;|&>\n]|\$(?!\())*(1?>&2\s*)?[;\n]\s*)*exit\b[^;\n]*[;\n]?\s*\}$"
)
_QUIET_OUTPUT = re.compile(r"(^|[^2\d])(1|&)?>>?\s*/dev/null")
_CURRENT = r"(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`)"
_HERE = re.compile(rf"\"?{_CURRENT}/?\"?")
_BELOW_HERE = re.compile(rf"{_CURRENT}(/[\w./+@%:-]+)")
# Variables of the scheduler and the shell.
_OF_JOB = re.compile(r"(PBS|SLURM|SALLOC|SBATCH)_|((OLD)?PWD|S?RANDOM|SECONDS|LINENO|BASHPID|EPOCH\w+)$")
_CHANGING = {"PWD", "OLDPWD", "_", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "EPOCHSECONDS", "EPOCHREALTIME"}
_MODULEPATH = re.compile(r"(?:export )?MODULEPATH=\"?(/[\w./-]+):\$\{?MODULEPATH\}?\"?")
_IF_UNSET = "if a variable in it is not set, the job ends here, and the script goes on"
_WHY = {
    "modules": "is left out: the job finds the command module itself",
    "hook": "is left out: the job finds conda itself, and activates the environment by its shell hook",
    "base": "is left out: the job finds conda by its file; commands of its base environment are not on PATH",
    "names": "is left out: it only prints names",
    "mistake": "is left out: module has no such command, and only prints an error",
}
# Commands that print the names of modules and environments, and what is none of the command module.
_OF_NAMES = re.compile(
    r"(module|ml) (-[qrt] |--terse )*(avail|av|spider|keyword|key)\b.*|conda (info (-e|--envs?)|env list)"
)
_IDLE = ("names", "mistake")
_NO_VERB = re.compile(r"(?!-)\S*[^\w\s-]\S*")


def take(
    file: JobFile, script: Script, parts: Split, lines: Sequence[str], replaced: Sequence[Node]
) -> tuple[list[Node], list[Node], list[Node]]:
    """Set the options that the statements before the program are; return the statements that are options,
    those that stay, and those of them that the job runs before the options.

    ``lines``: other code of the job file that reads variables. ``replaced``: what reads none in it.
    """
    statements = [*parts.before, *parts.conditions]
    for preparations in (("hook", "modules"), ("modules",), ("hook",), ()):
        found = _read(Environment(file, script, preparations, parts.conditions), statements)
        if found.replaces_preparations:
            break
    found.write()
    removed = [*found.statements, *found.without_effect]
    texts = [*lines, *file.program, *file.container_texts, found.late_workdir]
    read = {*re.findall(r"\w+", " ".join(texts))}
    read |= {name for values in found.values.values() for value in values for name in _names(value)}
    only = [one.node for one in found.staying if _only_for(script, one, [*removed, *replaced])]
    removed += [one for one in only if not read & {name for name, _, _ in assignments(one)}]
    return found.statements, without(statements, removed), [one.node for one in found.early]


def _read(found: Environment, statements: Sequence[Node]) -> Environment:
    """Find the options; return the reading with the fewest statements that stay: that in which the first
    modules, files or environments are options, or those behind a statement that they may not pass."""
    found.read(statements)
    readings = [found]
    while (start := readings[-1].refusal) > readings[-1].start and len(readings) < _READINGS:
        readings.append(Environment(found.file, found.script, found.preparations, found.conditions, start))
        readings[-1].read(statements)
    return min(readings, key=lambda one: len(one.staying))


def _only_for(script: Script, block: Effects, options: Sequence[Node]) -> bool:
    """Return whether a statement sets a variable that only statements read that are options."""
    statement, name = block.node, block.node.get("name")
    if statement.type != "variable_assignment" or name is None or name.type == "subscript":
        return False
    if not block.kinds <= {"variable", "text"}:
        return False
    if inherited.may_be_inherited(script, name.text) or inherited.is_for_programs(script, name.text):
        return False
    if any(inherited.is_own_file(one) and one.node.start > statement.start for one in script.commands):
        return False  # which may read it
    parts = [(one.start, one.end) for one in (statement, *options, *script.tree.all("comment"))]
    text = without_parts(script.tree.source, parts)
    return bool(options) and not re.search(rf"\b{re.escape(name.text)}\b|\$\{{!|\beval\b".encode(), text)


@dataclass
class Environment:
    """The options that the statements before the program are.

    ``preparations``: the statements that have no effect beside the options for conda and modules.
    ``block``: the statements that stay, and that the job runs after the options; ``early``: those that it
    runs before them, up to the byte ``start``. ``group``: the start of the modules, files and environments
    behind the last statement that stays. ``refusal``: that of the first one that stays, or of its group.
    """

    file: JobFile
    script: Script
    preparations: Sequence[str]
    conditions: Sequence[Node] = ()
    start: int = 0
    refusal: int = 0
    group: int = 0
    values: dict[str, list[str]] = field(default_factory=dict)
    variables: dict[str, tuple[str, int]] = field(default_factory=dict)
    statements: list[Node] = field(default_factory=list)
    without_effect: list[Node] = field(default_factory=list)
    block: list[Effects] = field(default_factory=list)
    early: list[Effects] = field(default_factory=list)
    reports: dict[int, Node] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)
    stage: int = 0
    stage_of_modules: int = 0  # that which the first of them follows
    end: int = 0  # of the statements
    at_submission: bool = False  # the directory is that of the submission

    def read(self, statements: Sequence[Node]) -> None:
        """Find each statement that is an option, and that may change places with those that stay."""
        plain = [one for one in statements if one.type not in (";", "&")]
        self.end = max((one.end for one in plain), default=0)
        for at, one in enumerate(plain):
            if (settings := self._settings(one)) is not None:
                settings = [_in_order(*setting, self.values) for setting in settings]
            kind, value = settings[0] if settings else ("", "")
            if kind == "threads" and value and not self._is_default(plain[at + 1 :]):
                settings = [("env", f"OMP_NUM_THREADS={value}")]
            later = plain[at + 1 :]
            at_start = one.start == self.start and not self.late_workdir
            late = self._late_settings(one, settings, later) if self.block else None
            if self.block and (at_start or late) and self._may_run_early():
                self.early, self.block = [*self.early, *self.block], []
                settings = late or settings
            if settings is None or not self._fit(one, settings, later):
                self.block.append(effects_of(self.script, one))
                self.group = 0
                continue
            for setting in settings:
                self._set(one, *setting)
            prints = [kind for kind, _ in settings if kind in ("source", "module")]
            if prints and one.type == "redirected_statement" and _QUIET_OUTPUT.search(one.text):
                self.remarks.append(remark_on(one, "its text is in the log of the job, and not in /dev/null"))
            if any(kind in (*_STAGES, "workdir") for kind, _ in settings):
                at_once = settings[0][0] == "workdir" and not self.late_workdir
                stay = self.staying if at_once else self.block
                self.reports |= {one.node.line: one.node for one in stay if "report" in one.kinds}
                self.group = self.group or one.start
            if one.start < self.start and ("module", "list") in settings:
                self.reports[one.line] = one
            own = any(kind not in (*_WHY, "submission") for kind, _ in settings)
            (self.statements if own else self.without_effect).append(one)

    @property
    def staying(self) -> list[Effects]:
        """Return the statements that are no options."""
        return [*self.early, *self.block]

    def _fit(self, statement: Node, settings: Sequence[Setting], later: Sequence[Node]) -> bool:
        """Return whether the options do what a statement does."""
        of_stage = any(kind in (*_STAGES, *_WHY) and kind not in _IDLE for kind, _ in settings)
        early = of_stage and statement.start < self.start and not self._may_wait(settings, later)
        names = {name for _, value in settings for name in _names(value)}
        early |= any(_sets(one.node, name) for one in self.block for name in names)
        fits = not early and all(self._fits(*setting, later) for setting in settings)
        if of_stage and statement.start >= self.start and not (fits or self.refusal):
            self.refusal = self.group if self.block and self.group > self.start else statement.start
        return fits

    @property
    def late_workdir(self) -> str:
        """Return the working directory if the job enters it behind the block ``early_setup``."""
        here = self.values.get("workdir", [""])[0]
        return "" if known_directory(here) else here

    def _late_settings(
        self, statement: Node, settings: Sequence[Setting] | None, later: Sequence[Node]
    ) -> list[Setting] | None:
        """Return the working directory that a change of the directory is if the statements that stay run
        before it, and so before the modules, files and environments; None if it is none."""
        if not settings or settings[0][0] != "workdir" or self._fit(statement, settings, later):
            return None
        found = [("workdir", self._late_form(statement, settings[0][1])), *settings[1:]]
        late = replace(self, early=self.staying, block=[])
        stages = [kind.replace("module_init", "source") for kind in _STAGES if kind in self.values]
        printed = bool(stages) and any(one.kinds & {"report", "state"} for one in self.block)
        starts = (one.start for one in self.statements if "environment" in effects_of(self.script, one).kinds)
        start = min(starts, default=self.end)
        behind = [one for one in self.block if one.node.start > start]
        commute = all(may_follow(one, kind) for one in behind for kind in stages)
        commute &= not any(inherited.depends_on_modules(self.script, one.node) for one in behind)
        fits = commute and not printed and found[0][1] and late._fit(statement, found, later)
        return found if fits else None

    def _late_form(self, statement: Node, directory: str) -> str:
        """Return a directory with variables, with which the job enters it late; empty if it has none."""
        if not known_directory(directory):
            return directory
        command = next(one for one in commands(statement) if one.name in ("cd", "pushd"))
        if text := self._late_directory(command, command.arguments[0], resolves=False):
            return text
        at_home = directory.startswith("~/.")
        if is_whole(directory) and (at_home or not directory.startswith("~")):
            return ""
        return (
            re.sub(r"^~", "$HOME", directory)
            if is_whole(directory)
            else f"$PWD/{directory.removeprefix('./')}"
        )

    def _may_wait(self, settings: Sequence[Setting], later: Sequence[Node]) -> bool:
        """Return whether an option may follow the statements behind it that run early: the list of modules
        those that change none of them, and a purge what only prints or unsets a variable, besides variables
        that are options."""
        behind = [one for one in later if one.start < self.start]
        if settings == [("module", "list")]:
            return all(not effects_of(self.script, one).kinds & {"environment", "program"} for one in behind)
        unsets = [
            one for one in behind if one.type == "unset_command" and not _OF_MODULES_ONLY.search(one.text)
        ]
        others = [one for one in behind if one not in unsets and not self._is_env(one, later)]
        texts = all(effects_of(self.script, one).kinds <= {"text", "shell"} for one in others)
        return settings == [("module_purge", "")] and texts

    def _is_env(self, statement: Node, later: Sequence[Node]) -> bool:
        settings = self._settings(statement) or [("", "")]
        later = [one for one in later if one.start > statement.start]
        return all(kind == "env" and self._is_variable(value, later) for kind, value in settings)

    def _may_run_early(self) -> bool:
        """Return whether the statements that stay leave nothing for later ones that ends with their block."""
        nodes = [one.node for one in self.staying]
        comments = ((one.start, one.end) for one in self.script.tree.all("comment"))
        if re.search(rb"\$(!|\{!\})", without_parts(self.script.tree.source, comments)):
            return False
        if any(one in self.conditions or _sets(one, "IFS") for one in nodes):
            return False
        text = self.script.tree.text
        aliases = ["alias"] * (self.script.asks_for_sh or "expand_aliases" in text)  # else they do nothing
        ends = self.script.named("trap", *aliases, "shift", "exec", "set", "shopt")
        above = (one.node for one in ends if one.node.start < nodes[-1].end)
        return all((one in nodes and OF_SHELL.match(one.text)) or _TRACE.match(one.text) for one in above)

    @property
    def replaces_preparations(self) -> bool:
        """Return whether the options do what the preparations do for it."""
        texts = {one.what for one in self.remarks if one.why in (_WHY["hook"], _WHY["base"])}
        modules = any(one.why == _WHY["modules"] for one in self.remarks)
        uses = any(re.search(r"\b(module|ml)\b", one.node.text) for one in self.staying)
        found = any(kind in self.values for kind in _OF_MODULES)
        has_conda = self._is_base or "conda" in {*self.values, *self.file.values}
        return not (texts and not has_conda) and not (modules and uses and not found)

    def write(self) -> None:
        """Set the options in the job file."""
        for kind, values in self.values.items():
            self.file.try_add(kind, [*self.file.list(kind), *values] if kind in _LISTS else values[0])
        if "module_purge" in self.values:
            self.file.values["module_purge"] = True
        for name, (value, line) in self.variables.items():
            self.file.set_variable(name, value, line)
        self.file.remarks += self.remarks
        why = "prints its text later, when the job has its environment and its directory"
        for line, node in self.reports.items():
            self.file.hint(line, shown(node), why)
        why = "is of the directory of the submission, and in the script of the home directory"
        prints = effects.prints_of_home(self.script, self.staying)
        for node in prints if self.at_submission or self.late_workdir else ():
            if node.line not in self.reports:
                self.file.hint(node.line, shown(node), why)

    def _set(self, statement: Node, kind: str, value: str) -> None:
        if kind == "submission" or (kind == "workdir" and is_whole(value)):  # whatever the directory before
            replaced = [one for one in self.statements if _CHANGES_DIRECTORY.match(one.text)]
            self.without_effect += [one for one in replaced if one.type != "list"]
            self.statements = [one for one in self.statements if one not in self.without_effect]
        if kind in _WHY:
            self.remarks.append(hint(statement.line, shown(statement), _WHY[kind]))
        elif kind == "env":
            name, _, text = value.partition("=")
            self.variables[name] = (text, statement.line)
        elif kind == "submission":
            self.at_submission = True
            self.values.pop("workdir", None)
            if value:
                self.values["workdir"] = [value]
        elif kind == "workdir":
            here = self.values.get("workdir", [self.file.text_of("workdir")])[0]
            whole = is_whole(value) or not known_directory(value)
            path = value if whole else os.path.join(here.removesuffix("/."), value)
            self.values["workdir"] = [path]
            names = () if self.script.has_option("u", "nounset", statement.start) else expanded_names([value])
            if not all(effects.LOGIN.fullmatch(one) or inherited.is_set(self.script, one) for one in names):
                self.remarks.append(remark_on(statement, _IF_UNSET))
        elif kind != "threads":
            late = self.stage > _STAGES.index("module")
            if late and self._is_first(kind) and not self._passes_venv(kind, value):
                files = [f"{folder}/bin/activate" for folder in self.values.pop("venv", ())]
                files = [*self.values.pop("source", ()), *map(self._in_directory, files)]
                self.values["module_init"] = [*self.values.get("module_init", ()), *files]
                self.stage = _STAGES.index("module_init")
            if self._is_first(kind):
                self.stage_of_modules = self.stage
            if kind == "conda" and self._is_base:
                self.values.pop("conda", None)
                for folder in self.values.pop("venv", ()):
                    self.values.setdefault("source", []).append(f"{folder}/etc/profile.d/conda.sh")
            self.values.setdefault(kind, []).append(value)
            warns = kind == "module_use" or value.startswith(("use ", "unload ", "restore "))
            if "$" in value and warns and not self.script.has_option("u", "nounset", statement.start):
                self.remarks.append(remark_on(statement, _IF_UNSET))
            if re.fullmatch(VARIABLE, value, re.ASCII) and f'"{value}"' not in statement.text:
                why = "if it is not set, or has several words, the job ends here, and the script goes on"
                self.remarks.append(remark_on(statement, why))
            defines = value.endswith("/conda.sh")  # a function, and nothing else
            before = kind == "module" and self.stage > _STAGES.index(kind)  # its place does not matter
            if before and value != "list" and "conda" in self.values:
                why = "is loaded before the environment: of a command in both, that of the environment runs"
                self.remarks.append(remark_on(statement, why))
            if before and value == "list" and any(map(_is_file, self.values.get("source", ()))):
                why = "lists the modules of the options before the files of source, which may load others"
                self.remarks.append(remark_on(statement, why))
            if kind in _STAGES and not defines and not before:
                self.stage = _STAGES.index(kind)

    def _settings(self, statement: Node) -> list[Setting] | None:
        """Return the options that a statement is; None if it is another one."""
        if (after := statement.next()) is not None and after.type == "&":
            return None
        if statement.type == "redirected_statement":
            quiet = r"(\d*|&)>>?\s*/dev/null|2>&1"
            inner = [one for one in statement.children if not re.fullmatch(quiet, one.text)]
            return self._settings(inner[0]) if len(inner) == 1 else None
        if statement.type == "list":
            first, sign, last = statement.children[0], statement.children[1].text, statement.children[-1]
            left, right = self._settings(first), self._settings(last)
            if sign == "||":
                return left if FAILURE.match(last.text) or self._ends_shell(last) else None
            return None if left is None or right is None else [*left, *right]
        if statement.type in ("variable_assignment", "declaration_command"):
            return self._of_variables(statement)
        if statement.type == "if_statement" and (match := _IF_THERE.fullmatch(statement.text)):
            return [("hook" if _LOGIN_FILES.fullmatch(match[1]) else "modules", "")]
        if statement.type in ("if_statement", "unset_command") and "__conda_setup" in statement.text:
            return [("hook", "")]
        if statement.type == "if_statement" and start_directory.always_holds(self.script, statement):
            found = self._of_command(next(one for one in commands(statement) if one.name == "cd"))
            return found if found and found[0][0] == "submission" else None
        if statement.type == "function_definition" and _MODULE_COMMAND.fullmatch(statement.text):
            return [("modules", "")]
        prefixed = any(one.type == "variable_assignment" for one in statement.children)
        if statement.type != "command" or prefixed:
            return None
        command = next((one for one in commands(statement) if one.node is statement), None)
        function = self.script.functions.get(command.name) if command is not None else None
        own = function is not None and not _MODULE_COMMAND.fullmatch(function)
        return None if command is None or own else self._of_command(command)

    def _ends_shell(self, statement: Node) -> bool:
        """Return whether a statement only prints and ends the shell, itself or by a function."""
        name = statement.text.split(maxsplit=1)[0]
        functions = (one for one in self.script.tree.all("function_definition") if one.name == name)
        bodies = [one.text for function in functions if (one := function.get("body")) is not None]
        return any(map(_END_OF_SHELL.match, bodies or [statement.text]))

    def _of_variables(self, statement: Node) -> list[Setting] | None:
        pairs = list(assignments(statement))
        if match := _MODULEPATH.fullmatch(statement.text):
            return [("module_use", match[1])]
        if (match := self._conda_on_path(statement)) and self._activates_later(statement):
            return [("base", ""), *_at(match[1])] if "hook" in self.preparations else None
        exports = statement.type == "declaration_command"
        given = [name for name, _, _ in pairs]
        if given == ["OMP_NUM_THREADS"]:
            return [("threads", self._value("OMP_NUM_THREADS", pairs[0][1]) or "")]
        if given == ["__conda_setup"] and (match := _HOOK.search(statement.text)):
            return _at(match[1]) if "hook" in self.preparations else None
        names = [one.text for one in statement.children if one.type == "variable_name"]
        exports = exports and statement.children[0].type == "export"
        if not exports or len(pairs) + len(names) != len(statement.children) - 1:
            return None
        nodes = {name: value for name, value, _ in pairs}
        nodes |= {name: values[0] for name in names if (values := self.script.values.get(name))}
        if names == ["OMP_NUM_THREADS"]:
            return [("threads", "")]
        found = [(name, self._value(name, node, here=name not in names)) for name, node in nodes.items()]
        known = len(nodes) == len(pairs) + len(names) and all(value is not None for _, value in found)
        return [("env", f"{name}={value}") for name, value in found] if known else None

    def _conda_on_path(self, statement: Node) -> re.Match[str] | None:
        """Return the match of a statement that puts conda on PATH, behind no other one."""
        others = [one.node for one in self.script.named("module", "ml", "source", ".", "eval")]
        others = [one for one in others if one.start < statement.start and _NAMES_CONDA.search(one.text)]
        behind = None if others else _CONDA_BEHIND_PATH.fullmatch(statement.text)
        return _CONDA_ON_PATH.fullmatch(statement.text) or behind

    def _activates_later(self, statement: Node) -> bool:
        """Return whether the script activates an environment of conda by its name behind a statement."""
        later = (one.text for one in self.script.tree.children if one.start >= statement.end)
        return any(re.match(r"(source|\.|conda) activate (?!base\b)[\w.]", text) for text in later)

    def _is_of_conda(self, statement: Node) -> bool:
        """Return whether the file ``activate`` on PATH is that of conda: the script activates an environment
        with it later; or the folder that the script puts in front of PATH is conda's, or else a module.
        """
        sets = ((name, value) for name, value, one in self.script.assignments if one.start < statement.start)
        paths = [self.script.constants.text(value) for name, value in sets if name == "PATH"]
        front = [one for one in paths if not _BEHIND_PATH.match(one)]
        others = [one.node.text for one in self.script.named("module", "ml", "source", ".", "eval")]
        return self._activates_later(statement) or any(map(_NAMES_CONDA.search, front[-1:] or others))

    def _value(self, name: str, node: Node, *, here: bool = False) -> str | None:
        """Return the one value that a variable has up to the program; None if it is not known.

        ``here``: the value is set here; other exports may set other ones before and after it.
        """
        sets = self._sets_before_program(name)
        unsets = self.script.tree.all("unset_command")
        unset = any(one.start < self.end and mentions(one, name) for one in unsets)
        signs = {child.type for _, one in sets for child in one.children}
        added = "+=" in signs or any(one.text.endswith("$") for _, one in sets)
        if not sets or not _runs_once(sets[0][1]) or unset or added or name in self.script.loop_variables:
            return None
        value = self._constant(node)
        one_by_one = here and all(_runs_once(one) and exported(one) for _, one in sets)
        return value if one_by_one or all(other == value for other, _ in sets) else None

    def _sets_before_program(self, name: str) -> list[tuple[str | None, Node]]:
        """Return the values and the assignments of a variable, but for those of one command only."""
        sets = ((value, one) for other, value, one in self.script.assignments if other == name)
        sets = (pair for pair in sets if pair[1].start < self.end and not pair[1].child_of("command"))
        return [(self._constant(value), one) for value, one in sets]

    def _constant(self, node: Node) -> str | None:
        """Return the known value of an assignment without a home directory or later variables."""
        value = self.script.constants.value(node)
        parts = [self.script.constants.node(name) for name, _ in expansions(node)]
        if any(one is not None and one.start > node.start for one in parts):
            return None
        if value is not None and re.match(r"~|.*:~", value) and node.type in ("word", "concatenation"):
            return None
        if has_home(self.script, node):
            return None
        return value if value is not None or node.type != "variable_assignment" else ""

    def _of_command(self, command: Command) -> list[Setting] | None:
        name = command.name
        if name in ("source", ".") and (found := self._of_file(command)) is not None:
            return found
        if name == "eval" and (match := _HOOK.search(command.node.text)):
            return _at(match[1]) if "hook" in self.preparations else None
        if name == "pushd" and command.arguments and not any(self.script.named("popd", "dirs")):
            name = "cd"  # nothing leaves the directory
        word = command.arguments[0] if name == "cd" and len(command.arguments) == 1 else None
        if word is not None and _HERE.fullmatch(word.text):
            return []  # the directory stays the same
        match = _SUBMISSION.fullmatch(self._resolved(word)) if word is not None else None
        of_job = match and self.script.dialect.job_variables.get(match[2]) == "submit_dir"
        if match and of_job and match[2] not in self.script.values:
            return [("submission", (match[3] or "").strip("/"))]
        home = word is not None and re.fullmatch(r"(~|\$HOME|\$\{HOME\})/?", self._resolved(word))
        if name == "cd" and (home or not command.arguments):
            return [("workdir", AT_HOME)] if "HOME" not in self.script.values else None
        if _OF_NAMES.fullmatch(" ".join(command.node.text.split())):
            return [("names", "")]
        words = self._words(command)
        if word is not None and (words is None or "$" in words[0]):
            text = self._late_directory(command, word)
            return [("workdir", text)] if text else None
        if words is None:
            return None
        if name in ("module", "ml"):
            at_home = words[:1] != ["use"] and any(one.startswith("~") for one in words)
            if name == "module" and words and _NO_VERB.fullmatch(words[0]):
                ends = self.script.has_option("e", "errexit", command.node.start)
                return None if ends else [("mistake", "")]
            return None if at_home else _of_module(name, words)
        if name in ("conda", "mamba"):
            if words[:1] in (["init"], ["deactivate"]):
                return [("hook", "")]
            activates = words[:1] == ["activate"] and len(words) < 3
            return [("conda", (words[1:] or ["base"])[0])] if activates else None
        if name == "cd" and len(words) == 1 and words[0] not in ("-", ""):
            here = words[0] in (".", "./") and self.script.starts_at_submission
            of_home = self._at_home and not is_whole(words[0])
            if of_home and "HOME" in self.script.values:
                return None
            return [("submission", "")] if here else [("workdir", "~/" * of_home + words[0])]
        return None

    def _resolved(self, word: Node) -> str:
        """Return the text of a word without quotes, with the text of the variable that it begins with."""
        text = word.text
        name = re.match(r"\"?\$(\w+|\{\w+\})(?=[\"/]|$)", text)
        node = self.script.constants.node(name[1].strip("{}")) if name else None
        if name and node is not None and node.start < word.start:
            text = node.text + text[name.end() :]
        return "" if text.startswith('"~') else text.replace('"', "")

    def _of_file(self, command: Command) -> list[Setting] | None:
        """Return the options that a sourced file is."""
        given = " ".join(one.text for one in command.arguments).replace('"', "")
        if given == "deactivate" or ("hook" in self.preparations and _LOGIN_FILES.fullmatch(given)):
            return [("hook", "")]
        if _MODULES.fullmatch(given) and "modules" in self.preparations:
            return [("modules", "")]
        path, _, name = given.partition(" ")
        if match := _CONDA_AT_HOME.fullmatch(path):
            activates = [("conda", name or "base")] * (match[3] == "bin/activate")
            return [("hook", ""), *activates] if re.fullmatch("~?[\\w./-]*", name) else None
        names = (one.text for one in command.node.all("variable_name"))
        texts = [value.text for name in names for value in self.script.values.get(name, ())]
        of_conda = any("conda info --base" in text for text in (command.node.text, *texts))
        if given.endswith("/etc/profile.d/conda.sh") and of_conda:
            return [("hook", "")]
        below = self._below(command.arguments[0]) if len(command.arguments) == 1 else ""
        words = [below] if below else self._words(command)
        if not words or self.script.has_option("a", "allexport", command.node.start):
            return None  # the job would not export what the file sets
        path, name = words[0], words[-1]
        if words[1:] and path.endswith(".sh") and all(re.fullmatch(r"\S+", one) for one in words):
            return [("source", " ".join([self._in_directory(path), *words[1:]]))]
        if len(words) > 2:
            return None
        if path == "activate":
            known = len(words) == 2 or self._is_of_conda(command.node)
            return [("conda", name if len(words) == 2 else "base")] if known else None
        if len(words) == 2:
            folder = path.removesuffix("/bin/activate")
            fits = folder != path and _is_whole(path) and not name.startswith("-")
            return [("source", f"{folder}/etc/profile.d/conda.sh"), ("conda", name)] if fits else None
        venv = path.removesuffix("/bin/activate")
        return [("venv", venv)] if venv != path else [("source", self._in_directory(path))]

    def _below(self, word: Node) -> str:
        """Return the path of a file that the script names by its current directory; empty for another one."""
        text = self._resolved(word)
        here = self.script.starts_at_submission or self.at_submission
        here &= "workdir" not in {*self.values, *self.file.values}
        match = _SUBMISSION.fullmatch(text)
        if match and here and self.script.dialect.job_variables.get(match[2]) == "submit_dir":
            return f".{match[3] or ''}" * (match[2] not in self.script.values)
        match = _BELOW_HERE.fullmatch(text)
        return f".{match[1]}" if match else ""

    def _in_directory(self, path: str) -> str:
        """Return the path of a file of the script in the job, which may be in its working directory; bash
        finds a plain name there, too, unless it is on PATH."""
        here = self.values.get("workdir", [self.file.text_of("workdir")])[0]
        if _is_whole(path) or not re.search(r"/|\.\w+$", path):
            return path
        relative = path if path.startswith("../") else f"./{path.removeprefix('./')}"
        return os.path.normpath(os.path.join(here, path)) if is_whole(here) else relative

    def _words(self, command: Command) -> list[str] | None:
        """Return the arguments of a command as the shell splits them; None if one is not known."""
        found: list[str] = []
        for node in command.arguments:
            if (home := _AT_HOME.fullmatch(self._resolved(node))) and "HOME" not in self.script.values:
                found.append(f"~{home[1] or '/.'}")
                continue
            value = self.script.constants.value(node)
            bare = node.type not in ("string", "raw_string")
            if (value is None or value.startswith("~")) and (text := self._open(command, node)):
                found.append(text)
                continue
            if value is None or "$" in value or value.startswith("~") or not self._is_set_above(node):
                return None
            if bare and re.search(r"[*?{}~]|\[", value):
                return None
            found += value.split() if bare else [value]
        return found

    def _late_directory(self, command: Command, word: Node, *, resolves: bool = True) -> str:
        """Return a directory with variables that the script has before it, with the known values of others if
        it ``resolves`` them; empty for another one."""
        text = self.script.constants.text(word) if resolves else word.text.replace('"', "")
        names = {*expanded_names([text])}
        changes = not names or names & _CHANGING or any(inherited.is_set(self.script, one) for one in names)
        if changes or not self._is_set_above(word):
            text = word.text.replace('"', "")
            names = {*expanded_names([text])}
        plain = re.fullmatch(r"(~/)?[\w./+@%:-]*", re.sub(VARIABLE, "", text, flags=re.ASCII))
        if not names or names & _CHANGING or plain is None or start_directory.returns(self.script, command):
            return ""
        at_home = self._at_home and not start_directory.leaves_start(self.script, command)
        own = self.script.dialect.variable_prefix
        others = any(_OF_JOB.match(one) and not one.startswith(own) for one in names)
        sets = ((one, self.script.values[one]) for one in names if one in self.script.values)
        later = any(all(value.start > word.start for value in values) for _, values in sets)
        given = {one for one in names if inherited.is_set(self.script, one) or effects.LOGIN.fullmatch(one)}
        of_modules = names - given if any(kind in self.values for kind in _STAGES) else ()
        return "" if at_home or others or later or of_modules else text

    def _open(self, command: Command, word: Node) -> str:
        """Return a word with the variables of the environment in which the job runs, or of a file, a module
        or a command above; empty for another one, and for perhaps several modules."""
        text = self.script.constants.text(word)
        if text.startswith("~") and not word.text.startswith("~/"):
            return ""  # in quotes, or the home of another user
        if re.search(r"[($`]", re.sub(VARIABLE, "", text, flags=re.ASCII)):
            text = word.text.replace('"', "")  # with values that are known only when the job runs
        text = re.sub(r"^\$(HOME\b|\{HOME\})(?=/.)", "~", text)
        names = _names(text)
        several = word.type in ("simple_expansion", "expansion") and command.name in ("module", "ml")
        others = re.search(r"[^\w./+@%:~-]", re.sub(VARIABLE, "", text, flags=re.ASCII)) or "~" in text[1:]
        above = text == word.text.replace('"', "") or self._is_set_above(word)
        if several or others or not above or "HOME" in self.script.values:
            return ""
        if any(mentions(one, name) for one in self.script.tree.all("unset_command") for name in names):
            return ""
        known = not any(_OF_JOB.match(one) or self._is_changed(one, word.start) for one in names)
        return text if known and self.script.loop_variables.isdisjoint(names) else ""

    def _is_changed(self, name: str, place: int) -> bool:
        """Return whether a script may set a variable, but by assignments above a place only."""
        sets = [node for other, _, node in self.script.assignments if other == name]
        above = all(one.start < place and not one.under("function_definition", "command") for one in sets)
        reads = self.script.named("read", "mapfile", "readarray", "getopts", "let")
        fixed = above and not any(mentions(one.node, name) for one in reads)
        return not fixed if sets else inherited.is_set(self.script, name)

    def _is_set_above(self, node: Node) -> bool:
        """Return whether the constants in a node are set before it, and those in their values before them."""
        nodes = [self.script.constants.node(name) for name, _ in expansions(node)]
        return all(one is None or (one.start < node.start and self._is_set_above(one)) for one in nodes)

    def _fits(self, kind: str, value: str, later: Sequence[Node]) -> bool:
        """Return whether an option does what a statement does at its place."""
        if kind in _IDLE:
            return True
        if kind in _WHY:
            preparation = "hook" if kind == "base" else kind
            option = "module" if kind == "modules" else "conda"
            return preparation in self.preparations and self._passes(option)
        if kind == "threads":
            return self._is_default(later)
        if kind == "env":
            return self._is_variable(value, later)
        if kind in ("workdir", "submission"):
            return self._moves(kind, value)
        if kind == "conda" and self._is_base:
            return self.file.accepts(kind, value) and self._passes(kind)
        if kind in ("conda", "venv") and {kind, "container"} & {*self.values, *self.file.values}:
            return False
        moved = self._at_home or any(one.kinds & {"directory", "here"} for one in self.staying)
        if _is_relative(kind, value) and moved:
            return False
        fits = kind == "module_purge" or self.file.accepts(kind, value)
        defines = value.endswith("/conda.sh")  # a function, and nothing else
        file = value.partition(".sh ")[0] + ".sh" * (".sh " in value)  # without its arguments
        login = kind == "source" and effects.OF_LOGIN.fullmatch(file) is not None
        product = kind == "source" and effects.OF_PRODUCTS.fullmatch(file) is not None
        of_file = "source of a login" if login else "source of a product" if product else kind
        tool = kind == "module" and effects.OF_TOOLS.fullmatch(value) is not None
        of_file = "module of a tool" if tool else of_file
        if product and any(mentions(one.node, os.path.basename(file)) for one in self.block):
            return False  # which may write it
        return fits and self._in_time(kind, value) and self._passes("conda" if defines else of_file, value)

    @property
    def _is_base(self) -> bool:
        """Return whether the environment is that of conda itself, which another one replaces."""
        venv = self.values.get("venv", [""])[0]
        return self.values.get("conda") == ["base"] or _CONDA.fullmatch(venv) is not None

    def _in_time(self, kind: str, value: str) -> bool:
        """Return whether the job sets an option behind those that the script has before it, or may do so."""
        first = self._is_first(kind) and "conda" not in self.values
        in_order = value == "list" or self.stage <= _STAGES.index(kind)
        return first or in_order or self._passes_venv(kind, value)

    def _passes_venv(self, kind: str, value: str) -> bool:
        """Return whether a command of modules may come before an environment of Python."""
        if kind == "module" and effects.OF_CONTAINERS.fullmatch(value) and "conda" in self.values:
            return "source" not in self.values or not any(map(_is_file, self.values["source"]))
        alone = not {"source", "conda"} & self.values.keys() and not self._is_base
        tool = value == "list" or (effects.OF_TOOLS.fullmatch(value) is not None and alone)
        return kind == "module" and "venv" in self.values and tool

    def _is_first(self, kind: str) -> bool:
        """Return whether no module comes before the files and environments up to here."""
        none = self.values.keys().isdisjoint(_OF_MODULES)
        return kind in _OF_MODULES and (none or self.stage_of_modules > _STAGES.index("module"))

    def _passes(self, kind: str, value: str = "") -> bool:
        """Return whether all statements that the job runs after an option may do so."""
        names = {name for one in self.block for name, _, _ in assignments(one.node)}
        of_module = kind in ("module", "module of a tool")
        if of_module and any(inherited.has_name_of_module(value, name) for name in names):
            return False
        behind = self.staying if kind.startswith("env") or kind == "workdir" else self.block
        return all(may_follow(self._without_kept(one), kind) for one in behind)

    def _without_kept(self, one: Effects) -> Effects:
        """Return the effects of a statement without the variables that the program reads, too: nothing before
        it sets them, or the two would not have the same value."""
        names = {name for name in one.foreign if not effects.OF_PLACES.search(name)}
        if not names:
            return one
        read = {name for name, node in self.script.expansions if node.start >= self.end}
        kept = {name for name in names & read if not inherited.is_of_module(self.script, name)}
        return one._replace(foreign=one.foreign - kept)

    def _is_default(self, later: Sequence[Node]) -> bool:
        """Return whether only the program reads the number of threads, which the job sets for it."""
        read = any(mentions(one.node, "OMP_NUM_THREADS") for one in self.staying)
        read |= self.file.program == ["true"]  # what reads it may be a sourced file
        return not read and not self._is_read("OMP_NUM_THREADS", later)

    def _is_read(self, name: str, later: Sequence[Node]) -> bool:
        """Return whether a statement that stays reads a variable, or starts a program that may read it."""
        others = [one for one in later if self._settings(one) is None]
        return any(mentions(one, name) or "program" in effects_of(self.script, one).kinds for one in others)

    def _is_variable(self, value: str, later: Sequence[Node]) -> bool:
        """Return whether a variable may have its value from the beginning, and again around the block."""
        name, _, text = value.partition("=")
        of_ranks = name in self.script.dialect.job_variables  # of which srun gives each rank its own
        if of_ranks or not self.file.accepts("env", value) or not self._passes(_kind_of_variable(name)):
            return False
        if not self._is_last(name, text, later):
            return False
        runs = self.file.program != ["true"]  # else the files are the program
        if runs and any(inherited.may_set(self.script, one, name) for one in later):
            return False
        if any(mentions(one.node, name) for one in self.staying if not one.node.text.startswith(f"{name}=")):
            return False
        made = (one.node for one in self.staying)
        if any(inherited.may_set(self.script, one, name) for one in made) and self._is_read(name, later):
            return False
        if not effects.PATHS.fullmatch(name):
            return name != "LD_PRELOAD" or not self.values  # which conda and modules get, too
        kept = name.endswith("_ROOT")  # which no environment of conda or Python sets
        others = (one for one in later if not (kept and inherited.SETS_NO_OTHERS.search(one.text)))
        if not effects.OF_ENVIRONMENTS.fullmatch(name):
            others = (one for one in others if not self._is_venv(one))
        changed = any("environment" in effects_of(self.script, one).kinds for one in others)
        # With that of the system, which the job needs, and not while it loads modules.
        alone = "/usr/bin" in text.split(":") and not {*self.values, *self.file.values} & {*_STAGES}
        return not changed and (name != "PATH" or alone)

    def _is_venv(self, statement: Node) -> bool:
        """Return whether a statement activates a virtual environment, and none of conda."""
        settings = self._settings(statement) or [("", "")]
        return settings[0][0] == "venv" and not _CONDA.fullmatch(settings[0][1])

    def _is_last(self, name: str, text: str, later: Sequence[Node]) -> bool:
        """Return whether a variable has one value, or only its last value is read: none but exports, and
        statements that do not read it, are before the export of the last value.
        """
        if all(value == text for value, _ in self._sets_before_program(name)):
            return True
        last = max(at for at, one in enumerate([None, *later]) if one is None or _sets(one, name))
        for one in later[:last]:
            if (settings := self._settings(one)) is not None:
                fits = all(kind in ("env", "threads") for kind, _ in settings)
            else:
                known = not (_sets(one, name) or mentions(one, name))
                fits = known and may_follow(effects_of(self.script, one), "env")
            if not fits:
                return False
        return True

    @property
    def _at_home(self) -> bool:
        """Return whether the script is in the home directory, in which its scheduler starts it."""
        known = self.at_submission or "workdir" in {*self.values, *self.file.values}
        return not self.script.starts_at_submission and not known

    def _may_make(self, statement: Node, folder: str) -> bool:
        """Return whether a statement may make or remove a folder, or one around it."""
        makers = ("mkdir", "rm", "rmdir", "mv", "cp", "rsync", "virtualenv")
        found = [one for one in commands(statement) if one.name in makers]
        # These only read the paths before the last one.
        words = (word for one in found for word in one.arguments[-(one.name in ("cp", "rsync")) :])
        paths = [self.script.constants.text(word).strip("\"'") for word in words]
        paths = [path.rstrip("/") for path in paths if not path.startswith("-")]
        given = {"TMPDIR", "SLURM_TMPDIR"} & self.script.values.keys()
        if not (given or _OF_NODE.match(folder)):
            paths = [path for path in paths if not _OF_JOB_ONLY.match(path)]
        if folder.startswith("~/") and all(map(_OF_NODE.match, paths)):
            return False
        known = folder.startswith("/") and all(path.startswith("/") and "$" not in path for path in paths)
        return bool(paths) and (not known or any(_overlap(path, folder) for path in paths))

    def _moves(self, kind: str, value: str) -> bool:
        """Return whether a change of the directory is the working directory of the job."""
        kinds = ("conda", "venv", "source", "module_init")
        if any(_is_relative(kind, one) for kind in kinds for one in self.values.get(kind, ())):
            return False
        late = "" if known_directory(value) else value
        if late and not self._is_known_before(late):
            return False
        if self.late_workdir and (late or kind == "submission" or is_whole(value)):
            return False
        if (kind == "submission" or late) and "workdir" in self.file.values:
            return False
        if kind == "submission" and not (value or self._at_home):
            # Something works in that directory.
            stays = "workdir" in self.values and not self._passes("workdir")
            return not stays and not any("directory" in one.kinds for one in self.staying)
        if kind == "workdir" and not self.file.accepts("workdir", value):
            return False
        if "workdir" in self.values and any(map(_is_file, self.values.get("source", ()))):
            return False  # the script reads the file in the directory before
        behind = self.block if late or self.late_workdir else self.staying
        makers = (one.node for one in behind if one.kinds & {"elsewhere", "copies elsewhere", "packages"})
        if value and any(self._may_make(one, value) for one in makers):
            return False
        return all(may_follow(self._without_kept(one), "workdir") for one in behind)

    def _is_known_before(self, directory: str) -> bool:
        """Return whether the job has the variables of a directory before the block, and is in the directory
        of the script."""
        names = expanded_names([directory])
        if "workdir" in self.values or any(mentions(one.node, name) for one in self.block for name in names):
            return False
        if self._at_home and any(one.kinds & effects.OF_DIRECTORY for one in self.early):
            return False
        unknown = any(not effects.LOGIN.fullmatch(name) for name in names)
        return not (unknown and any("environment" in one.kinds for one in self.block))


def _runs_once(assignment: Node) -> bool:
    """Return whether an assignment runs once and holds, also in a list of settings that ``&&`` joins."""
    above = [one for one in assignment.above() if one.type != "declaration_command"][:-1]
    joined = all(one.type == "list" and one.children[1].type == "&&" for one in above)
    tests = [test for one in above for test in one.all("test_command")]
    others = {one.name for whole in above for one in commands(whole)} - _SETTING
    return certain(assignment) or (joined and not tests and not others)


def _is_file(source: str) -> bool:
    return not source.endswith("/conda.sh")  # which defines a function, and nothing else


def _overlap(path: str, folder: str) -> bool:
    first, second = sorted((f"{path}/", f"{folder.rstrip('/')}/"))
    return second.startswith(first)


def _is_relative(kind: str, value: str) -> bool:
    """Return whether an environment is a path below the current directory."""
    of_files = kind in ("source", "module_init", "venv")
    return not _is_whole(value) and (of_files or (kind == "conda" and "/" in value))


def _is_whole(path: str) -> bool:
    """Return whether a path is the same in each directory, as it is if it begins with a variable."""
    return is_whole(path) or path.startswith("$")


def _kind_of_variable(name: str) -> str:
    if effects.OF_RANKS.fullmatch(name):
        return "env of ranks"
    of_installers = effects.OF_INSTALLERS.fullmatch(name) or effects.PATHS.fullmatch(name)
    return "env of installers" if of_installers else "env"


def _names(text: str) -> set[str]:
    """Return the variables that a value of an option reads."""
    return {braced or plain for braced, plain in re.findall(VARIABLE, text, re.ASCII)}


def _sets(statement: Node, name: str) -> bool:
    return any(other == name for other, _, _ in assignments(statement))


def _at(folder: str | None) -> list[Setting]:
    """Return the options that define the command conda of a folder; without one, conda is on PATH."""
    if not folder:
        return [("hook", "")]
    return [("source", re.sub(r"^\$(HOME|\{HOME\})", "~", folder) + "/etc/profile.d/conda.sh")]


def _in_order(kind: str, value: str, before: Collection[str]) -> Setting:
    """Return the option for a command that comes after the first module, or after a folder of modules."""
    late = "module" in before or (kind == "module_purge" and "module_use" in before)
    commands = {"module_purge": "purge", "module_use": f"use {value}"} if late else {}
    return ("module", commands[kind]) if kind in commands else (kind, value)


def _of_module(name: str, words: Sequence[str]) -> list[Setting] | None:
    """Return the options that a command of environment modules is."""
    words = [one for one in words if one not in _OPTIONS]
    if words and _OTHER_OPTION.match(words[0]):
        return None  # another option
    verb = words[0] if words else "list" * (name == "ml")
    if verb == "purge" and words[1:] in ([], ["all"]):
        return [("module_purge", "")]
    if verb == "use" and len(words) == 2:
        return [("module_use", words[1])]
    if command := _COMMANDS.get(verb):
        return [("module", " ".join([command, *words[1:]]))]
    if verb in ("load", "add") and words[1:]:
        return [("module", one) for one in words[1:]]
    if name == "ml" and verb and verb not in _VERBS.split() and "+" not in (one[0] for one in words):
        return [("module", f"unload {one[1:]}" if one[0] == "-" else one) for one in words]
    return None
