"""The environment of the ranks: what the script exports, and what srun passes on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from jobgen.check.ranks.model import RankGroup
from jobgen.script.changed_variables import targets
from jobgen.script.command_kinds import is_printed
from jobgen.script.commands import Command
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import LATER, LOOPS, Node, exported, is_prefix

_ELSEWHERE = (
    *("function_definition", "command_substitution", "process_substitution", "subshell", "heredoc_body"),
)
# Files that set up a shell, and export what they set.
ACTIVATES = re.compile(
    r"activate|bashrc|profile|conda|mamba|modules?\b|lmod|spack|set_env\.sh|setvars\.sh|GMXRC", re.I
)
OF_MPI = re.compile(
    r"(OMPI_COMM_WORLD|MV2_COMM_WORLD)_(NODE_|LOCAL_)?(RANK|SIZE)|PMI_(LOCAL_)?(RANK|SIZE)|PMIX_RANK|PALS_(LOCAL_)?RANKID"
)  # variables of a rank
_PRINTS = ("echo", "printf", "test", "[", "logger")


def reads_others(commands: Iterable[Command]) -> bool:
    """Return whether any of these commands, such as ``source`` and ``eval``, may set any variable."""
    return any(not ACTIVATES.search(one.node.text) for one in commands)


@dataclass(eq=False)
class RankEnvironment:
    """The variables of a script, and which of them programs get."""

    script: Script

    @classmethod
    @lru_cache(maxsize=4)  # the many rules on ranks read the same script
    def of(cls, script: Script) -> RankEnvironment:
        """Return the environment of a script."""
        return cls(script)

    @cached_property
    def assignments(self) -> dict[str, list[Node]]:
        """The assignments of each variable, also by ``read``, without those of a single command."""
        found: dict[str, list[Node]] = {}
        for name, _, node in self.script.assignments:
            if not is_prefix(node):
                found.setdefault(name, []).append(node)
        for command in self.script.named("read"):
            if not command.node.under("pipeline", *LOOPS):
                for name in targets(command):
                    found.setdefault(name, []).append(command.node)
        return found

    @cached_property
    def exports(self) -> frozenset[str]:
        """The variables that export, declare -x or typeset -x names."""
        found: set[str] = set()
        for node in self.script.tree.all("declaration_command"):
            parts = [part.text for part in node.children]
            if parts[0] == "export" or "-x" in parts:
                found.update(part.text for part in node.all("variable_name", "word"))
        return frozenset(found)

    @cached_property
    def is_open(self) -> bool:
        """Return whether anything may be exported: by ``set -a``, by ``export $(...)`` or by a file."""
        script = self.script
        if any({"-a", "allexport"} & set(one.literals) for one in script.named("set")):
            return True
        declarations = script.tree.all("declaration_command")
        return reads_others(script.named("source", ".", "eval")) or any(
            child.type in ("command_substitution", "simple_expansion", "expansion", "string")
            for node in declarations
            for child in node.children
        )

    @cached_property
    def used(self) -> frozenset[str]:
        """The names that the text reads for anything but a message, also in the code of other shells."""
        found = {name for name, node in self.script.expansions if not only_printed(node)}
        for node in self.script.tree.all("raw_string", "heredoc_body"):
            found.update(re.findall(r"\b[A-Z]\w+", node.text))
        return frozenset(found)

    @cached_property
    def _exported(self) -> tuple[tuple[int, str], ...]:
        own = ((at, name, self.assignments.get(name)) for at, name in self.changes)
        return tuple((at, name) for at, name, found in own if found and not found[0].under(*_ELSEWHERE))

    def exported_before(self, place: int) -> frozenset[str]:
        """Return the variables that the script certainly sets and exports above a place."""
        return frozenset(name for at, name in self._exported if at < place)

    def assigned_only(self, name: str, before: int) -> Node | None:
        """Return the assignment of a variable that nothing exports before a program; None if unsure."""
        found = self.assignments.get(name, [])
        if not found or found[0].start > before or name in self.exports or self.is_open:
            return None
        if any(exported(node) or self._may_not_hold(node, before) for node in found):
            return None
        if any((value := node.get("value")) is not None and value.type == "array" for node in found):
            return None
        return found[0]

    def _may_not_hold(self, assignment: Node, before: int) -> bool:
        """Return whether an assignment may not run in the script's own shell, or is of a function only."""
        around = assignment.around(*_ELSEWHERE)
        if around is None or around.type != "function_definition":
            return around is not None
        calls = (one.node for one in self.script.named(around.name) if one.node.start < before)
        above = assignment.parent
        declared = above is not None and above.type == "declaration_command"
        return declared or all(one.under(*_ELSEWHERE, "pipeline") for one in calls)

    def in_effect(self, name: str, before: int) -> Node | None:
        """Return the only value of an exported variable, if the script certainly sets it in time."""
        found = self.assignments.get(name, [])
        if len(found) != 1 or found[0].start > before or found[0].under(*LATER, *_ELSEWHERE):
            return None
        return found[0].get("value") if exported(found[0]) or name in self.exports else None

    def has_devices(self, group: RankGroup) -> bool:
        """Return whether each rank of a program needs a device: it uses a framework of torch, or the script
        exports the address of a rendezvous."""
        exports = any(name == "MASTER_ADDR" and start < group.start for start, name in self.changes)
        return exports or bool(group.program.frameworks - {"horovod"})

    def passed(self, launch: Launch) -> frozenset[str] | None:
        """Return the variables of the script that srun passes to its tasks; None for all, or if unknown."""
        if launch.has("--export"):
            value = self.export_of(launch)
            return _names(_EXPANDED.sub("$", value)) if value else None
        return self._passed_by_directive

    def export_of(self, launch: Launch) -> str:
        """Return the value of ``--export``, or its text if that has unknown values."""
        node = launch.nodes.get("--export")
        text = launch.text("--export") or (node.text if node is not None else "")
        return text.removeprefix("--export=").strip("\"'")

    @cached_property
    def _passed_by_directive(self) -> frozenset[str] | None:
        script, option = self.script, self.script.heeded.get("--export")
        again = "SLURM_EXPORT_ENV" in script.tree.text  # the script sets or unsets it
        again |= any(
            script.dialect.name in word.lower()
            for one in script.named("module", "ml")
            for word in one.literals
        )
        again |= reads_others(script.named("source", "."))
        return None if option is None or again else _names(option.value)

    @cached_property
    def changes(self) -> list[tuple[int, str]]:
        """What the script puts into its environment: variables, and the commands that do so."""
        found = [
            (nodes[0].start, name)
            for name, nodes in self.assignments.items()
            if name in self.exports or exported(nodes[0])
        ]
        loads = self.script.named("module", "ml", "source", ".", "conda")
        found += [(one.node.start, " ".join([one.name, *one.literals[:2]])) for one in loads]
        return sorted(found)


def only_printed(expansion: Node) -> bool:
    """Return whether an expansion is an argument of echo and the like, whose output nothing reads."""
    return is_printed(expansion, _PRINTS)


_EXPANDED = re.compile(r"\"?(?:\$\{[^}]*\}|\$\([^)]*\)|`[^`]*`)\"?")  # whose commas are no others of the list


def _names(value: str) -> frozenset[str] | None:
    """Return the names in a value of ``--export``; None with ALL, in any case of its letters."""
    words = ("ALL", "NONE", "NIL")
    parts = [part.upper() if part.upper() in words else part for part in value.strip("\"'").split(",")]
    if "ALL" in parts or not all(re.match(r"[A-Za-z_]\w*(=|$)", part) for part in parts):
        return None
    return frozenset(part.partition("=")[0] for part in parts) - {"NONE", "NIL"}
