"""The containers around a program: the variables and directories of the node that they have."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from jobgen.check.ranks.model import RankGroup, code, forms
from jobgen.launch.wrappers import wrappers
from jobgen.script.commands import commands
from jobgen.script.script import Script

# They pass no variable and mount no directory unless an option says so.
SEALED = ("docker", "podman", "podman-hpc")
_APPTAINER = ("apptainer", "singularity")
_CLEAN = ("-e", "--cleanenv", "-C", "--containall")
_VARIABLES, _FILES = ("-e", "--env"), ("--env-file", "--env-host", "--env-merge")
_MOUNTS = ("-v", "--volume", "--mount", "-B", "--bind")
_ELSEWHERE = ("exec", "shell")  # of docker: the container runs already


class Container(NamedTuple):
    """A container: the name of its command, and the words of its options; an unknown word is None.

    ``around``: the code that each task runs is inside of it, and does not start it. ``of_step``: a plug-in of
    the launcher makes it.
    """

    name: str
    words: tuple[str | None, ...]
    around: bool = True
    of_step: bool = False

    @property
    def is_known(self) -> bool:
        """Return whether all options are known."""
        return None not in self.words

    @property
    def is_new(self) -> bool:
        """Return whether the command starts the container, and does not enter one that runs."""
        return not (self.name in SEALED and self.words[:1] and self.words[0] in _ELSEWHERE)

    @property
    def passes_all(self) -> bool:
        """Return whether the variables of the node are those of the container, too."""
        if self.name in SEALED:
            return bool(self.values(*_FILES))
        return self.name not in _APPTAINER or not self.values(*_CLEAN) or bool(self.values(*_FILES))

    @property
    def passes_files(self) -> bool:
        """Return whether directories of the node are in the container, whatever the options say."""
        return self.name not in SEALED and not self.of_step

    @property
    def variables(self) -> frozenset[str]:
        """The variables that options pass or set."""
        names = ("--env",) if self.name in _APPTAINER else _VARIABLES
        values = [value for value in self.values(*names) if value]
        return frozenset(name for value in values for name in re.findall(r"(?:^|,)(\w+\*?)(?==|$|,)", value))

    @property
    def mounts(self) -> tuple[str, ...]:
        """The directories of the container that options mount."""
        found = []
        for value in filter(None, self.values(*_MOUNTS)):
            for one in value.split(",") if self.name in _APPTAINER else [value]:
                target = re.search(r"(?:target|dst|destination)=([^,]+)", value)
                parts = re.split(r":(?![?+=-])", one)
                found.append(target[1] if target else parts[1] if len(parts) > 1 else parts[0])
        return tuple(found)

    def values(self, *names: str) -> list[str]:
        """Return the values of options; that of a flag is any text."""
        found = []
        for at, word in enumerate(self.words):
            name, equals, value = (word or "").partition("=")
            if name in names:
                found.append(value if equals else (*self.words, "")[at + 1] or "-")
            elif any(len(one) == 2 and len(word or "") > 2 and (word or "").startswith(one) for one in names):
                found.append((word or "")[2:])
        return found


def containers(script: Script, group: RankGroup) -> Iterator[Container]:
    """Yield the containers around a program, the outer one first."""
    outside = [group.command.words, *(launch.program for launch in group.chain)]
    inside = [one.words for one in commands(code(group.text))] if group.text is not None else []
    for at, nodes in enumerate([*outside, *inside]):
        words = forms(script, nodes)
        for wrapper, start, end in wrappers(words):
            if wrapper.container:
                options = (
                    nodes[one].text if words[one] is None and words[one - 1] in wrapper.values else words[one]
                    for one in range(start + 1, end)
                )
                yield Container(os.path.basename(words[start] or ""), tuple(options), at < len(outside))
