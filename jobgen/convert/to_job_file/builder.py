"""A job file under construction: values by the keys of jobgen's options, in tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jobgen.config import read_spec
from jobgen.convert.result import Remark, hint
from jobgen.errors import JobgenError
from jobgen.jobfile.reader import decode, layer_of
from jobgen.jobfile.tables import OWN_OPTIONS
from jobgen.jobfile.writing import file_text
from jobgen.options import BY_KEY
from jobgen.plan.plan import resolve
from jobgen.rendering.render import render
from jobgen.schedulers.table import queued
from jobgen.values.parsers import Whole

BLOCKS = ("setup", "before", "after_block")  # the keys with code of the script
END_OF_EARLY = "# jobgen: end of early_setup"  # a line of setup, until the file is written
_WORKS = re.compile(r"(?m)^(?!\s*(#|$|set [-+]|shopt ))")  # a line that does more than to set up the shell
_KEY = re.compile(r"(\w+) = ")  # at the beginning of an error


@dataclass
class JobFile:
    """The values of the job file by their keys, and remarks on what is not in it.

    ``own`` are the keys whose values are for the scheduler of the script only; ``shared`` are the values of
    such keys for all others, ``of_others`` those of single ones by their commands, and ``components`` the
    tables [[component]].
    """

    values: dict[str, object] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)
    own: set[str] = field(default_factory=lambda: {"dialect", "directive", "constraint"})
    shared: dict[str, object] = field(default_factory=dict)
    of_others: dict[str, dict[str, object]] = field(default_factory=dict)
    components: list[dict[str, object]] = field(default_factory=list)

    def hint(self, line: int, what: str, why: str) -> None:
        """Add a remark on what is in the file: the user should check it."""
        self.remarks.append(hint(line, what, why))

    def lose(self, line: int, what: str, why: str, lost: bool = True, of_program: bool = False) -> None:
        """Add a remark on what is not in the file, or not ``lost``, but changed."""
        self.remarks.append(Remark(line, what, why, lost, of_program))

    def add(self, key: str, value: object, line: int = 1) -> None:
        """Set a value, or add it to its list; add a remark if jobgen does not accept it."""
        option = BY_KEY.get(key) if key != "env" else None
        try:
            if option is not None:
                option.parse(str(value))
        except ValueError as error:
            self.remarks.append(Remark(line, f"{key} {value}", str(error)))
        else:
            self.values[key] = [*self.list(key), value] if option is not None and option.multiple else value

    def try_add(self, key: str, value: str | list[str]) -> bool:
        """Set a value, or all values of a list, if jobgen accepts them; return whether it does."""
        if not all(self.accepts(key, one) for one in (value if isinstance(value, list) else [value])):
            return False
        is_whole = isinstance(BY_KEY[key].parse, Whole)
        number = is_whole and isinstance(value, str) and re.fullmatch(r"-?\d+", value)
        self.values[key] = int(str(value)) if number else value
        return True

    def accepts(self, key: str, value: str) -> bool:
        """Return whether jobgen accepts a value of an option."""
        try:
            BY_KEY[key].parse(value)
        except ValueError:
            return False
        return True

    @property
    def blocks(self) -> list[str]:
        """Return the texts of the blocks: setup, before and after."""
        return [self.text_of(key) for key in BLOCKS]

    @property
    def program(self) -> list[str]:
        """Return the words of the program."""
        return self.list("command")

    def list(self, key: str) -> list[str]:
        """Return the values of an option with several."""
        values = self.values.get(key, [])
        return values if isinstance(values, list) else []

    def text_of(self, key: str) -> str:
        """Return a value as a text; empty without one."""
        return str(self.values.get(key, ""))

    def count(self, key: str, default: int = 1) -> int:
        """Return a value that is a number, by default 1."""
        return int(str(self.values.get(key, default)))

    @property
    def shell_code(self) -> str:
        """Return the code that is the program, as the text of ``bash -c``; empty for another program."""
        return self.program[2] if self.program[:2] == ["bash", "-c"] else ""

    @property
    def container_texts(self) -> Sequence[str]:
        """Return the texts of the container in which ``expand`` replaces variables."""
        return [self.text_of("image"), *self.list("bind"), *self.list("container_arg")]

    @property
    def variables(self) -> Mapping[str, str | None]:
        """Return the variables of every rank; the value of None is read at submission."""
        variables = self.values.get("env", {})
        assert isinstance(variables, dict)
        return variables

    def add_variables(self, variables: Mapping[str, str | None]) -> None:
        self.values["env"] = {**self.variables, **variables}

    def set_variable(self, name: str, value: str, line: int = 1) -> None:
        """Set a variable of every rank. Variables that jobgen's own scripts set get no remark."""
        try:
            BY_KEY["env"].parse(f"{name}={value}")
        except ValueError as error:
            if not name.startswith("JOBGEN_"):
                self.remarks.append(Remark(line, f"export {name}", str(error)))
            return
        self.add_variables({name: value})

    def hide(self, *names: str) -> None:
        """Hide variables of the job from the program."""
        words = self.program
        if self.shell_code:
            words[2] = f"unset {' '.join(names)}\n{words[2]}"
            return
        python = ["python3"] if words[0] == "-m" or words[0].endswith(".py") else []
        own = words[1:] if words[0] == "env" else [*python, *words]
        self.values["command"] = ["env", *(word for name in names for word in ("-u", name)), *own]

    def text(self, command_name: str) -> str:
        """Return the text of the file."""
        own = {key: value for key, value in self.values.items() if key in self.own}
        shared = {key: value for key, value in self.values.items() if key not in self.own} | self._early()
        shared = {key: value for key, value in shared.items() if value is not None}
        tables = {command_name: own}
        if dialect := own.get("dialect"):  # which chooses a table of its own
            tables = {command_name: {"dialect": own.pop("dialect")}, str(dialect): own}
        values = {**shared, **self.shared}
        return file_text(command_name, values, own=tables | self.of_others, components=self.components)

    def _early(self) -> dict[str, object]:
        """Return the blocks that setup is; None for one that does nothing."""
        early, end, late = self.text_of("setup").partition(f"{END_OF_EARLY}\n")
        blocks = {"early_setup": early, "setup": late} if end else {}
        return {key: text if _WORKS.search(text) else None for key, text in blocks.items()}

    def keep_own(self, key: str, for_others: object = None) -> None:
        """Keep the value of a key for the scheduler of the script; others have another one, or none."""
        self.own.add(key)
        if for_others is not None:
            self.shared[key] = for_others


def accepted(file: JobFile, command_name: str, line_of: Callable[[str], int]) -> str:
    """Return the text of the file without refused directives; add a remark if jobgen still refuses it.

    ``line_of`` returns the line of an option, and that of the first directive for others.
    """
    text = file.text(command_name)
    why = refusal(text)
    while why:
        for directive in file.list("directive"):
            others = [one for one in file.list("directive") if one != directive]
            shorter = replace(file, values={**file.values, "directive": others}).text(command_name)
            if (then := refusal(shorter)) != why:
                line = line_of(directive.partition("=")[0])
                file.lose(line, directive, f"is left out, because jobgen refuses it: {why}")
                file.values["directive"], text, why = others, shorter, then
                break
        else:
            file.lose(line_of(""), "the job file", f"jobgen refuses it: {why}")
            break
    return text


# Options of the scheduler without a counterpart elsewhere. Without another one, such as array, the job would
# be another job.
_MOVABLE = (
    *("queue", "account", "qos", "constraint", "reservation", "licenses", "comment", "begin", "priority"),
    *("log", "mail", "mail_on", "exclusive", "name", "mpi", "mem", "cpus_per_node"),
)


def make_portable(file: JobFile, command_name: str) -> None:
    """Keep the values that other schedulers refuse for the scheduler of the script."""
    for other in queued():
        while other != command_name and (refused := _KEY.match(refusal(file.text(command_name), other))):
            key = next((one.key for one in OWN_OPTIONS if one.name == refused[1]), "")
            if key in file.own or key not in file.values:
                break
            own = file.of_others.get(other, {})
            if key == "array" and "pack" not in {*own, *file.values}:
                file.of_others[other] = {**own, "pack": 1}  # by which a task looks up its index
                continue
            typed = str(file.values[key]) if key == "gpus_per_node" else ""
            if (count := re.fullmatch(r"(?!shard:).+:(\d+)", typed)) is None and key not in _MOVABLE:
                break
            file.keep_own(key, int(count[1]) if count else None)
        if other in file.of_others and refusal(file.text(command_name), other):
            del file.of_others[other]


def refusal(text: str, command_name: str | None = None) -> str:
    """Return the sentence with which jobgen refuses a job file; empty if it renders it.

    ``command_name`` is that of another scheduler than that of the file.
    """
    try:
        data = decode(text, "job.toml")
        layer = layer_of(data, (), lambda _: "job.toml")
        render(resolve(read_spec(command_name or data["scheduler"], {}, (), layer)))
    except JobgenError as error:
        return str(error)
    return ""
