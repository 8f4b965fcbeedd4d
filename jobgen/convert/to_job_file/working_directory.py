"""The working directory of a job: the changes of the directory that it is, and the paths in it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from jobgen.convert import start_directory
from jobgen.convert.to_job_file import inherited
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.effects import LOGIN
from jobgen.convert.to_job_file.known_words import CHANGING, OF_JOB, OPEN_PATH, is_set_above, resolved, words
from jobgen.launch.expansion import names
from jobgen.script.commands import Command, commands
from jobgen.script.script import Script
from jobgen.script.syntax import Node
from jobgen.values.parsers import is_whole, known_directory

Setting = tuple[str, str]  # an option and its value, or what the statement does instead of an option

AT_HOME = "~/."  # the home directory itself
_TO_FILL_IN = re.compile(r"[A-Z_]{4,}(/|$)")  # maybe with an absolute path: RUNDIR
# The directory of the submission, which is set in a job, so that no default of it is used.
_DEFAULT = r"(?::?[-=?](?:[^{}]|\{[^{}]*\})*)?"
_SUBMISSION = re.compile(rf"\$(\{{)?(PBS_O_WORKDIR|SLURM_SUBMIT_DIR)(?(1){_DEFAULT}\}}|)(/[\w./-]*)?")
_CURRENT = r"(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`)"
_HERE = re.compile(rf"\"?{_CURRENT}/?\"?")
_BELOW_HERE = re.compile(rf"{_CURRENT}(/[\w./+@%:-]+)")
_OF_JOB_ONLY = re.compile(r"\$\{?(SLURM_)?TMPDIR\b")  # a folder that is made for the job
_OF_NODE = re.compile(r"/(dev|tmp|var/tmp)(/|$)")  # folders of a node, in which no home is


@dataclass
class WorkingDirectory:
    """The directory in which the next statement of a script runs. ``values``: the options up to here."""

    script: Script
    file: JobFile
    values: dict[str, list[str]]
    at_submission: bool = False  # it is that of the submission

    @property
    def at_home(self) -> bool:
        """Return whether the script is in the home directory, in which its scheduler starts it."""
        known = self.at_submission or "workdir" in {*self.values, *self.file.values}
        return not self.script.starts_at_submission and not known

    @property
    def path(self) -> str:
        return self.values.get("workdir", [self.file.text_of("workdir")])[0]

    @property
    def late_path(self) -> str:
        """Return the working directory if the job enters it behind the block ``early_setup``."""
        here = self.values.get("workdir", [""])[0]
        return "" if known_directory(here) else here

    def enter(self, kind: str, value: str) -> None:
        """Set the working directory, or a path below that of the submission."""
        if kind == "submission":
            self.at_submission = True
            self.values.pop("workdir", None)
        elif not is_whole(value) and known_directory(value):
            value = os.path.join(self.path.removesuffix("/."), value)
        if value or kind == "workdir":
            self.values["workdir"] = [value]

    def settings(self, command: Command) -> list[Setting] | None:
        """Return the options that a ``cd`` or ``pushd`` is; None if it is another change of the directory."""
        script = self.script
        if command.name == "pushd" and (not command.arguments or any(script.named("popd", "dirs"))):
            return None  # which something leaves again
        text = resolved(script, command.arguments[0]) if command.arguments else "~"
        if len(command.arguments) > 1:
            return None
        if command.arguments and _HERE.fullmatch(command.arguments[0].text):
            return []  # the directory stays the same
        if (below := self._behind_submission(text)) is not None:
            return [("submission", below.strip("/"))]
        if re.fullmatch(r"(~|\$HOME|\$\{HOME\})/?", text):
            return [("workdir", AT_HOME)] if "HOME" not in script.values else None
        found = words(script, command)
        if found is not None and (len(found) != 1 or found[0] in ("-", "")):
            return None
        if found is None or "$" in found[0]:
            text = self.with_variables(command)
            return [("workdir", text)] if text else None
        if self.at_home and _TO_FILL_IN.match(found[0]):
            return None
        if self.at_home and not is_whole(found[0]):
            return [("workdir", f"~/{found[0]}")] if "HOME" not in script.values else None
        here = found[0] in (".", "./") and script.starts_at_submission
        return [("submission", "")] if here else [("workdir", found[0])]

    def with_variables(self, command: Command, *, resolves: bool = True) -> str:
        """Return a directory with variables that the script has before it, with the known values of others if
        it ``resolves`` them; empty for another one."""
        word = command.arguments[0]
        own = word.text.replace('"', "")
        text = self.script.constants.text(word) if resolves else own
        read = names([text])
        changes = any(CHANGING.match(one) or inherited.is_set(self.script, one) for one in read)
        if not read or changes or not is_set_above(self.script, word):
            text, read = own, names([own])
        if not read or not OPEN_PATH.fullmatch(text) or start_directory.returns(self.script, command):
            return ""
        if self.at_home and not start_directory.leaves_start(self.script, command):
            return ""
        prefix = self.script.dialect.variable_prefix
        for name in read:
            sets = self.script.values.get(name, ())
            later = bool(sets) and all(value.start > word.start for value in sets)
            others = OF_JOB.match(name) and not name.startswith(prefix)
            given = inherited.is_set(self.script, name) or LOGIN.fullmatch(name)
            of_module = not given and self.values.keys() - {"workdir"}
            if later or others or of_module:
                return ""
        return text

    def late_form(self, statement: Node, directory: str) -> str:
        """Return a directory with variables, with which the job enters it late; empty if it has none."""
        if not known_directory(directory):
            return directory
        command = next(one for one in commands(statement) if one.name in ("cd", "pushd"))
        if text := self.with_variables(command, resolves=False):
            return text
        if not is_whole(directory):
            return f"$PWD/{directory.removeprefix('./')}"
        below_home = directory.startswith("~") and not directory.startswith("~/.")
        return directory.replace("~", "$HOME", 1) if below_home else ""

    def below(self, word: Node) -> str:
        """Return the path of a file that the script names by its current directory; empty for another one."""
        text = resolved(self.script, word)
        here = self.script.starts_at_submission or self.at_submission
        here &= "workdir" not in {*self.values, *self.file.values}
        path = self._behind_submission(text) if here else None
        if path is None and (match := _BELOW_HERE.fullmatch(text)):
            path = match[1]
        return "" if path is None else f".{path}"

    def _behind_submission(self, text: str) -> str | None:
        """Return what follows the directory of the submission in a path; None for another path."""
        match = _SUBMISSION.fullmatch(text)
        if match is None or match[2] in self.script.values:
            return None
        return (match[3] or "") if self.script.dialect.job_variables.get(match[2]) == "submit_dir" else None

    def in_job(self, path: str) -> str:
        """Return the path of a file of the script in the job, which may be in its working directory; bash
        finds a plain name there, too, unless it is on PATH."""
        if is_fixed(path) or not re.search(r"/|\.\w+$", path):
            return path
        relative = path if path.startswith("../") else f"./{path.removeprefix('./')}"
        return os.path.normpath(os.path.join(self.path, path)) if is_whole(self.path) else relative


def is_fixed(path: str) -> bool:
    """Return whether a path is the same in each directory, as it is if it begins with a variable."""
    return path.startswith("$") or is_whole(path)


def is_relative(kind: str, value: str) -> bool:
    """Return whether an environment is a path below the current directory."""
    of_files = kind in ("source", "module_init", "venv")
    return not is_fixed(value) and (of_files or (kind == "conda" and "/" in value))


def may_make(script: Script, statement: Node, folder: str) -> bool:
    """Return whether a statement may make or remove a folder, or one around it."""
    makers = ("mkdir", "rm", "rmdir", "mv", "cp", "rsync", "virtualenv")
    found = [one for one in commands(statement) if one.name in makers]
    # These only read the paths before the last one.
    arguments = (word for one in found for word in one.arguments[-(one.name in ("cp", "rsync")) :])
    paths = [script.constants.text(word).strip("\"'") for word in arguments]
    paths = [path.rstrip("/") for path in paths if not path.startswith("-")]
    given = {"TMPDIR", "SLURM_TMPDIR"} & script.values.keys()
    if not (given or _OF_NODE.match(folder)):
        paths = [path for path in paths if not _OF_JOB_ONLY.match(path)]
    if folder.startswith("~/") and all(map(_OF_NODE.match, paths)):
        return False
    known = folder.startswith("/") and all(path.startswith("/") and "$" not in path for path in paths)
    return bool(paths) and (not known or any(_overlap(path, folder) for path in paths))


def _overlap(path: str, folder: str) -> bool:
    first, second = sorted((f"{path}/", f"{folder.rstrip('/')}/"))
    return second.startswith(first)
