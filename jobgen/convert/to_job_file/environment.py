"""The order of the options that statements of the script are: which of them, and which of the statements that
stay, may change places in the job."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field

from jobgen.convert.result import Remark, hint, remark_on, shown
from jobgen.convert.to_job_file import effects, inherited
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.effects import Effects, effects_of, may_follow, mentions
from jobgen.convert.to_job_file.statement_options import CONDA, StatementOptions
from jobgen.convert.to_job_file.statements import Split, reads_status, without
from jobgen.convert.to_job_file.working_directory import Setting, WorkingDirectory, is_relative, may_make
from jobgen.launch.expansion import names
from jobgen.rendering.quoting import VARIABLE
from jobgen.script.commands import commands
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments, without_parts
from jobgen.values.parsers import is_whole, known_directory

_OF_MODULES = ("module_purge", "module_use", "module")
_STAGES = ("module_init", *_OF_MODULES, "source", "conda", "venv")  # in the order of jobgen's script
_LISTS = ("module_init", "module_use", "module", "source")
_READINGS = 4  # of the statements, at most
OF_SHELL = re.compile(r"(set [-+](?!-)|shopt )")  # options of the shell, which end with a block
_OF_MODULES_ONLY = re.compile(r"MODULE|LMOD|_LM")  # variables that the command module reads
_TRACE = re.compile(r"set [-+][xv]+$")  # which only prints
_CHANGES_DIRECTORY = re.compile(r"(cd|pushd)\b")
_QUIET_OUTPUT = re.compile(r"(^|[^2\d])(1|&)?>>?\s*/dev/null")
_WHY = {
    "modules": "is left out: the job finds the command module itself",
    "hook": "is left out: the job finds conda itself, and activates the environment by its shell hook",
    "base": "is left out: the job finds conda by its file; commands of its base environment are not on PATH",
    "names": "is left out: it only prints names",
    "mistake": "is left out: module has no such command, and only prints an error",
}
_IDLE = ("names", "mistake")


def take(
    file: JobFile, script: Script, parts: Split, lines: Sequence[str], replaced: Sequence[Node]
) -> tuple[list[Node], list[Node], list[Node]]:
    """Set the options that the statements before the program are; return the statements that are options,
    those that stay, and those of them that the job runs before the options.

    ``lines``: other code of the job file that reads variables. ``replaced``: what reads none in it.
    """
    for preparations in (("hook", "modules"), ("modules",), ("hook",), ()):
        found = _read(file, script, parts, preparations)
        if found.replaces_preparations:
            break
    found.write()
    removed = [*found.statements, *found.without_effect]
    texts = [*lines, *file.program, *file.container_texts, found.directory.late_path]
    read = {*re.findall(r"\w+", " ".join(texts))}
    read |= {name for values in found.values.values() for value in values for name in names([value])}
    only = [one.node for one in found.staying if _only_for(script, one, [*removed, *replaced])]
    removed += [one for one in only if not read & {name for name, _, _ in assignments(one)}]
    return (
        found.statements,
        without([*parts.before, *parts.conditions], removed),
        [one.node for one in found.early],
    )


def _read(file: JobFile, script: Script, parts: Split, preparations: Sequence[str]) -> Environment:
    """Find the options; return the reading with the fewest statements that stay: that in which the first
    modules, files or environments are options, or those behind a statement that they may not pass."""
    readings, start = list[Environment](), 0
    while len(readings) < _READINGS and (not readings or start > readings[-1].start):
        readings.append(Environment(file, script, parts, preparations, start))
        readings[-1].read()
        start = readings[-1].refusal
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
    parts: Split
    preparations: Sequence[str]
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

    def __post_init__(self) -> None:
        statements = (*self.parts.before, *self.parts.conditions)
        self.plain = [one for one in statements if one.type not in (";", "&")]
        self.end = max((one.end for one in self.plain), default=0)
        self.directory = WorkingDirectory(self.script, self.file, self.values)
        self.options = StatementOptions(self.script, self.preparations, self.directory, self.end)

    def read(self) -> None:
        """Find each statement that is an option, and that may change places with those that stay."""
        for at, one in enumerate(self.plain):
            later = self.plain[at + 1 :]
            if (settings := self.options.of(one)) is not None:
                settings = [_in_order(*setting, self.values) for setting in settings]
            kind, value = settings[0] if settings else ("", "")
            if kind == "threads" and value and not self._is_default(later):
                settings = [("env", f"OMP_NUM_THREADS={value}")]
            at_start = one.start == self.start and not self.directory.late_path
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
                at_once = settings[0][0] == "workdir" and not self.directory.late_path
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
        read = {name for _, value in settings for name in names([value])}
        early |= any(_sets(one.node, name) for one in self.block for name in read)
        early |= bool(later) and reads_status(self.script, later[0]) and self._may_have_failed()
        fits = not early and all(self._fits(*setting, later) for setting in settings)
        if of_stage and statement.start > self.start and not (fits or self.refusal):
            self.refusal = self.group if self.block and self.group > self.start else statement.start
        return fits

    def _may_have_failed(self) -> bool:
        """Return whether the last statement that stays may leave another status than 0."""
        last = self.staying[-1].node if self.staying else None
        return last is not None and any(one.name not in ("echo", "printf", "set") for one in commands(last))

    def _late_settings(
        self, statement: Node, settings: Sequence[Setting] | None, later: Sequence[Node]
    ) -> list[Setting] | None:
        """Return the working directory that a change of the directory is if the statements that stay run
        before it, and so before the modules, files and environments; None if it is none."""
        if not settings or settings[0][0] != "workdir" or self._fit(statement, settings, later):
            return None
        found = [("workdir", self.directory.late_form(statement, settings[0][1])), *settings[1:]]
        late = copy(self)
        late.early, late.block = self.staying, []
        stages = [kind.replace("module_init", "source") for kind in _STAGES if kind in self.values]
        printed = bool(stages) and any(one.kinds & {"report", "state"} for one in self.block)
        starts = (one.start for one in self.statements if "environment" in effects_of(self.script, one).kinds)
        start = min(starts, default=self.end)
        behind = [one for one in self.block if one.node.start > start]
        commute = all(may_follow(one, kind) for one in behind for kind in stages)
        commute &= not any(inherited.depends_on_modules(self.script, one.node) for one in behind)
        fits = commute and not printed and found[0][1] and late._fit(statement, found, later)
        return found if fits else None

    def _may_wait(self, settings: Sequence[Setting], later: Sequence[Node]) -> bool:
        """Return whether an option may follow the statements behind it that run early: the list of modules
        those that change none of them, and a purge what only prints or unsets a variable, besides variables
        that are options."""
        behind = [one for one in later if one.start < self.start]
        if settings == [("module", "list")]:
            return all(not effects_of(self.script, one).kinds & {"environment", "program"} for one in behind)
        return settings == [("module_purge", "")] and all(self._is_plain(one, later) for one in behind)

    def _is_plain(self, statement: Node, later: Sequence[Node]) -> bool:
        """Return whether a statement only prints, or unsets a variable, or is one as an option."""
        if statement.type == "unset_command" and not _OF_MODULES_ONLY.search(statement.text):
            return True
        settings = self.options.of(statement) or [("", "")]
        later = [one for one in later if one.start > statement.start]
        is_env = all(kind == "env" and self._is_variable(value, later) for kind, value in settings)
        return is_env or effects_of(self.script, statement).kinds <= {"text", "shell"}

    def _may_run_early(self) -> bool:
        """Return whether the statements that stay leave nothing for later ones that ends with their block."""
        nodes = [one.node for one in self.staying]
        comments = ((one.start, one.end) for one in self.script.tree.all("comment"))
        if re.search(rb"\$(!|\{!\})", without_parts(self.script.tree.source, comments)):
            return False
        if any(one in self.parts.conditions or _sets(one, "IFS") for one in nodes):
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
        for node in prints if self.directory.at_submission or self.directory.late_path else ():
            if node.line not in self.reports:
                self.file.hint(node.line, shown(node), why)

    def _set(self, statement: Node, kind: str, value: str) -> None:
        if kind == "submission" or (kind == "workdir" and is_whole(value)):  # whatever the directory before
            replaced = [one for one in self.statements if _CHANGES_DIRECTORY.match(one.text)]
            self.without_effect += [one for one in replaced if one.type != "list"]
            self.statements = [one for one in self.statements if one not in self.without_effect]
        goes_on = not self.script.has_option("u", "nounset", statement.start)
        if goes_on and self._may_be_unset(kind, value):
            why = "if a variable in it is not set, the job ends here, and the script goes on"
            self.remarks.append(remark_on(statement, why))
        if kind in _WHY:
            self.remarks.append(hint(statement.line, shown(statement), _WHY[kind]))
        elif kind == "env":
            name, _, text = value.partition("=")
            self.variables[name] = (text, statement.line)
        elif kind in ("workdir", "submission"):
            self.directory.enter(kind, value)
        elif kind != "threads":
            self._add(statement, kind, value)

    def _may_be_unset(self, kind: str, value: str) -> bool:
        """Return whether an option without whose variables the script goes on has one that may be unset."""
        if kind == "workdir":
            known = (
                effects.LOGIN.fullmatch(one) or inherited.is_set(self.script, one) for one in names([value])
            )
            return not all(known)
        warns = kind == "module_use" or value.startswith(("use ", "unload ", "restore "))
        return warns and "$" in value

    def _add(self, statement: Node, kind: str, value: str) -> None:
        """Add a module, a file or an environment."""
        late = self.stage > _STAGES.index("module")
        if late and self._is_first(kind) and not self._passes_venv(kind, value):
            files = [f"{folder}/bin/activate" for folder in self.values.pop("venv", ())]
            files = [*self.values.pop("source", ()), *map(self.directory.in_job, files)]
            self.values["module_init"] = [*self.values.get("module_init", ()), *files]
            self.stage = _STAGES.index("module_init")
        if self._is_first(kind):
            self.stage_of_modules = self.stage
        if kind == "conda" and self._is_base:
            self.values.pop("conda", None)
            for folder in self.values.pop("venv", ()):
                self.values.setdefault("source", []).append(f"{folder}/etc/profile.d/conda.sh")
        self.values.setdefault(kind, []).append(value)
        before = kind == "module" and self.stage > _STAGES.index(kind)  # its place does not matter
        if re.fullmatch(VARIABLE, value, re.ASCII) and f'"{value}"' not in statement.text:
            why = "if it is not set, or has several words, the job ends here, and the script goes on"
            self.remarks.append(remark_on(statement, why))
        if before and value != "list" and "conda" in self.values:
            why = "is loaded before the environment: of a command in both, that of the environment runs"
            self.remarks.append(remark_on(statement, why))
        if before and value == "list" and any(map(_is_file, self.values.get("source", ()))):
            why = "lists the modules of the options before the files of source, which may load others"
            self.remarks.append(remark_on(statement, why))
        if not before and _is_file(value):
            self.stage = _STAGES.index(kind)

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
        moved = self.directory.at_home or any(one.kinds & {"directory", "here"} for one in self.staying)
        if is_relative(kind, value) and moved:
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
        return self.values.get("conda") == ["base"] or CONDA.fullmatch(venv) is not None

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
        sets = {name for one in self.block for name, _, _ in assignments(one.node)}
        of_module = kind in ("module", "module of a tool")
        if of_module and any(inherited.has_name_of_module(value.split(), name) for name in sets):
            return False
        behind = self.staying if kind.startswith("env") or kind == "workdir" else self.block
        return all(may_follow(self._without_kept(one), kind) for one in behind)

    def _without_kept(self, one: Effects) -> Effects:
        """Return the effects of a statement without the variables that the program reads, too: nothing before
        it sets them, or the two would not have the same value."""
        own = {name for name in one.foreign if not effects.OF_PLACES.search(name)}
        own &= {name for name, node in self.script.expansions if node.start >= self.end} if own else set()
        kept = {name for name in own if not inherited.is_of_module(self.script, name)}
        return one._replace(foreign=one.foreign - kept)

    def _is_default(self, later: Sequence[Node]) -> bool:
        """Return whether only the program reads the number of threads, which the job sets for it."""
        read = any(mentions(one.node, "OMP_NUM_THREADS") for one in self.staying)
        read |= self.file.program == ["true"]  # what reads it may be a sourced file
        return not read and not self._is_read("OMP_NUM_THREADS", later)

    def _is_read(self, name: str, later: Sequence[Node]) -> bool:
        """Return whether a statement that stays reads a variable, or starts a program that may read it."""
        others = [one for one in later if self.options.of(one) is None]
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
        settings = self.options.of(statement) or [("", "")]
        return settings[0][0] == "venv" and not CONDA.fullmatch(settings[0][1])

    def _is_last(self, name: str, text: str, later: Sequence[Node]) -> bool:
        """Return whether a variable has one value, or only its last value is read: none but exports, and
        statements that do not read it, are before the export of the last value.
        """
        if all(value == text for value, _ in self.options.values_of(name)):
            return True
        last = max(at for at, one in enumerate([None, *later]) if one is None or _sets(one, name))
        for one in later[:last]:
            if (settings := self.options.of(one)) is None:
                fits = not mentions(one, name) and may_follow(effects_of(self.script, one), "env")
            else:
                fits = all(kind in ("env", "threads") for kind, _ in settings)
            if not fits:
                return False
        return True

    def _moves(self, kind: str, value: str) -> bool:
        """Return whether a change of the directory is the working directory of the job."""
        kinds = ("conda", "venv", "source", "module_init")
        if any(is_relative(kind, one) for kind in kinds for one in self.values.get(kind, ())):
            return False
        late = "" if known_directory(value) else value
        if late and not self._is_known_before(late):
            return False
        if self.directory.late_path and (late or kind == "submission" or is_whole(value)):
            return False
        if (kind == "submission" or late) and "workdir" in self.file.values:
            return False
        if kind == "submission" and not (value or self.directory.at_home):
            # Something works in that directory.
            stays = "workdir" in self.values and not self._passes("workdir")
            return not stays and not any("directory" in one.kinds for one in self.staying)
        if kind == "workdir" and not self.file.accepts("workdir", value):
            return False
        if "workdir" in self.values and any(map(_is_file, self.values.get("source", ()))):
            return False  # the script reads the file in the directory before
        behind = self.block if late or self.directory.late_path else self.staying
        makers = (one.node for one in behind if one.kinds & {"elsewhere", "copies elsewhere", "packages"})
        if value and any(may_make(self.script, one, value) for one in makers):
            return False
        return all(may_follow(self._without_kept(one), "workdir") for one in behind)

    def _is_known_before(self, directory: str) -> bool:
        """Return whether the job has the variables of a directory before the block, and is in the directory
        of the script."""
        read = names([directory])
        if "workdir" in self.values or any(mentions(one.node, name) for one in self.block for name in read):
            return False
        if self.directory.at_home and any(one.kinds & effects.OF_DIRECTORY for one in self.early):
            return False
        unknown = any(not effects.LOGIN.fullmatch(name) for name in read)
        return not (unknown and any("environment" in one.kinds for one in self.block))


def _is_file(source: str) -> bool:
    return not source.endswith("/conda.sh")  # which defines a function, and nothing else


def _kind_of_variable(name: str) -> str:
    if effects.OF_RANKS.fullmatch(name):
        return "env of ranks"
    of_installers = effects.OF_INSTALLERS.fullmatch(name) or effects.PATHS.fullmatch(name)
    return "env of installers" if of_installers else "env"


def _sets(statement: Node, name: str) -> bool:
    return any(other == name for other, _, _ in assignments(statement))


def _in_order(kind: str, value: str, before: Collection[str]) -> Setting:
    """Return the option for a command that comes after the first module, or after a folder of modules."""
    late = "module" in before or (kind == "module_purge" and "module_use" in before)
    commands = {"module_purge": "purge", "module_use": f"use {value}"} if late else {}
    return ("module", commands[kind]) if kind in commands else (kind, value)
