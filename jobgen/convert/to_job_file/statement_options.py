"""The options of a job file that a statement of the script is: modules, files, environments, variables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jobgen.convert import start_directory
from jobgen.convert.to_job_file.effects import mentions
from jobgen.convert.to_job_file.known_words import words
from jobgen.convert.to_job_file.program_line import has_home
from jobgen.convert.to_job_file.statements import FAILURE
from jobgen.convert.to_job_file.working_directory import Setting, WorkingDirectory, is_fixed
from jobgen.script.commands import Command, commands
from jobgen.script.constants import certain
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments, expansions, exported

# Commands of modules that are values of the option for modules, by their names and short forms.
_FORMS = ("unload rm del remove", "swap switch sw", "use", "reset", "restore r", "list")
_COMMANDS = {short: forms.split()[0] for forms in _FORMS for short in forms.split()}
_OTHER_COMMANDS = """
save s avail av spider show help whatis keyword key refresh update collection savelist describe overview
is-loaded unuse try-load load-any purge load add tablelist"""
_OPTIONS = ("-s", "-q", "-t", "--silent", "--quiet", "--terse", "--force", "-f", "--ignore-cache")
_OTHER_OPTION = re.compile(r"--|-[dDhHrRTvwy]$")
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
_SETTING = {"source", ".", "cd", "pushd", "module", "ml", "conda", "mamba", "eval"}
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
# The folder of a conda.
CONDA = re.compile(r"~?/(?:[^/]+/)*\.?(?:(?:mini|ana)?conda|miniforge|mambaforge)\d*", re.IGNORECASE)
_NAMES_CONDA = re.compile(r"(conda|mamba|miniforge)(?!.*/envs/)", re.IGNORECASE)
_BEHIND_PATH = re.compile(r"\"?\$\{?PATH\b")  # folders behind those that PATH has
_BIN = rf"((?:\$HOME|\$\{{HOME\}})?(?:{CONDA.pattern}))/bin"
_CONDA_ON_PATH = re.compile(rf"export PATH=\"?{_BIN}/?:\$\{{?PATH\}}?\"?", re.IGNORECASE)
_CONDA_BEHIND_PATH = re.compile(rf"export PATH=\"?\$\{{?PATH\}}?:{_BIN}/?\"?", re.IGNORECASE)
_HOOK = re.compile(
    r"[\s('\"`](?:((?:~|\$HOME|\$\{HOME\})?/[\w./-]+)/bin/)?conda['\")]* ['\"]?shell\.(?:bash|posix)['\"]? "
)
# What only prints and ends the shell of a script.
_END_OF_SHELL = re.compile(
    r"exit\b|\{\s*((echo|printf) ([^$`;|&>\n]|\$(?!\())*(1?>&2\s*)?[;\n]\s*)*exit\b[^;\n]*[;\n]?\s*\}$"
)
_MODULEPATH = re.compile(r"(?:export )?MODULEPATH=\"?(/[\w./-]+):\$\{?MODULEPATH\}?\"?")
# Commands that print the names of modules and environments, and what is none of the command module.
_OF_NAMES = re.compile(
    r"(module|ml) (-[qrt] |--terse )*(avail|av|spider|keyword|key)\b.*|conda (info (-e|--envs?)|env list)"
)
_NO_VERB = re.compile(r"(?!-)\S*[^\w\s-]\S*")


@dataclass
class StatementOptions:
    """The options that the statements of a script up to the byte ``end`` are.

    ``preparations``: those that have no effect beside the options for conda and modules.
    """

    script: Script
    preparations: Sequence[str]
    directory: WorkingDirectory
    end: int

    def of(self, statement: Node) -> list[Setting] | None:
        """Return the options that a statement is; None if it is another one."""
        if (after := statement.next()) is not None and after.type == "&":
            return None
        if statement.type == "redirected_statement":
            quiet = r"(\d*|&)>>?\s*/dev/null|2>&1"
            inner = [one for one in statement.children if not re.fullmatch(quiet, one.text)]
            return self.of(inner[0]) if len(inner) == 1 else None
        if statement.type == "list":
            first, sign, last = statement.children[0], statement.children[1].text, statement.children[-1]
            left, right = self.of(first), self.of(last)
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
        given = [name for name, _, _ in pairs]
        if given == ["OMP_NUM_THREADS"]:
            return [("threads", self._value("OMP_NUM_THREADS", pairs[0][1]) or "")]
        if given == ["__conda_setup"] and (match := _HOOK.search(statement.text)):
            return _at(match[1]) if "hook" in self.preparations else None
        names = [one.text for one in statement.children if one.type == "variable_name"]
        exports = statement.type == "declaration_command" and statement.children[0].type == "export"
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
        sets = self.values_of(name)
        unsets = self.script.tree.all("unset_command")
        unset = any(one.start < self.end and mentions(one, name) for one in unsets)
        signs = {child.type for _, one in sets for child in one.children}
        added = "+=" in signs or any(one.text.endswith("$") for _, one in sets)
        if not sets or not _runs_once(sets[0][1]) or unset or added or name in self.script.loop_variables:
            return None
        value = self._constant(node)
        one_by_one = here and all(_runs_once(one) and exported(one) for _, one in sets)
        return value if one_by_one or all(other == value for other, _ in sets) else None

    def values_of(self, name: str) -> list[tuple[str | None, Node]]:
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
        if name in ("cd", "pushd"):
            return self.directory.settings(command)
        if name in ("source", ".") and (found := self._of_file(command)) is not None:
            return found
        if name == "eval" and (match := _HOOK.search(command.node.text)):
            return _at(match[1]) if "hook" in self.preparations else None
        if _OF_NAMES.fullmatch(" ".join(command.node.text.split())):
            return [("names", "")]
        given = words(self.script, command) if name in ("module", "ml", "conda", "mamba") else None
        if given is None:
            return None
        if name in ("module", "ml"):
            at_home = given[:1] != ["use"] and any(one.startswith("~") for one in given)
            if name == "module" and given and _NO_VERB.fullmatch(given[0]):
                ends = self.script.has_option("e", "errexit", command.node.start)
                return None if ends else [("mistake", "")]
            return None if at_home else _of_module(name, given)
        if given[:1] in (["init"], ["deactivate"]):
            return [("hook", "")]
        activates = given[:1] == ["activate"] and len(given) < 3
        return [("conda", (given[1:] or ["base"])[0])] if activates else None

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
        below = self.directory.below(command.arguments[0]) if len(command.arguments) == 1 else ""
        found = [below] if below else words(self.script, command)
        if not found or self.script.has_option("a", "allexport", command.node.start):
            return None  # the job would not export what the file sets
        path, name = found[0], found[-1]
        if found[1:] and path.endswith(".sh") and all(re.fullmatch(r"\S+", one) for one in found):
            return [("source", " ".join([self.directory.in_job(path), *found[1:]]))]
        if len(found) > 2:
            return None
        if path == "activate":
            known = len(found) == 2 or self._is_of_conda(command.node)
            return [("conda", name if len(found) == 2 else "base")] if known else None
        folder = path.removesuffix("/bin/activate")
        if len(found) == 2:
            fits = folder != path and is_fixed(path) and not name.startswith("-")
            return [("source", f"{folder}/etc/profile.d/conda.sh"), ("conda", name)] if fits else None
        return [("venv", folder)] if folder != path else [("source", self.directory.in_job(path))]


def _runs_once(assignment: Node) -> bool:
    """Return whether an assignment runs once and holds, also in a list of settings that ``&&`` joins."""
    above = [one for one in assignment.above() if one.type != "declaration_command"][:-1]
    joined = all(one.type == "list" and one.children[1].type == "&&" for one in above)
    tests = [test for one in above for test in one.all("test_command")]
    others = {one.name for whole in above for one in commands(whole)} - _SETTING
    return certain(assignment) or (joined and not tests and not others)


def _at(folder: str | None) -> list[Setting]:
    """Return the options that define the command conda of a folder; without one, conda is on PATH."""
    if not folder:
        return [("hook", "")]
    return [("source", re.sub(r"^\$(HOME|\{HOME\})", "~", folder) + "/etc/profile.d/conda.sh")]


def _of_module(name: str, given: Sequence[str]) -> list[Setting] | None:
    """Return the options that a command of environment modules is."""
    given = [one for one in given if one not in _OPTIONS]
    if given and _OTHER_OPTION.match(given[0]):
        return None  # another option
    verb = given[0] if given else "list" * (name == "ml")
    if verb == "purge" and given[1:] in ([], ["all"]):
        return [("module_purge", "")]
    if verb == "use" and len(given) == 2:
        return [("module_use", given[1])]
    if command := _COMMANDS.get(verb):
        return [("module", " ".join([command, *given[1:]]))]
    if verb in ("load", "add") and given[1:]:
        return [("module", one) for one in given[1:]]
    if name == "ml" and verb and verb not in _OTHER_COMMANDS.split() and "+" not in (one[0] for one in given):
        return [("module", f"unload {one[1:]}" if one[0] == "-" else one) for one in given]
    return None
