"""The content of the directives of a script, for conversion: a request, and values outside of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobgen.schedulers.request import DirectiveOption, Request


class Directive(NamedTuple):
    """A directive, its text, and its value in the form of jobgen's option."""

    option: DirectiveOption
    text: str
    value: str
    part: str = ""  # of the text, which has this value; empty: all of it


@dataclass
class ScriptRequest:
    """The request of a script, and the directives that a Request has no field for."""

    request: Request
    whole: bool = False  # all directives of a script: what is missing has the scheduler's default
    totals: bool = False  # those of a job without chunks are the resources of one chunk
    bad_dependency: str = ""  # the first that cannot be converted
    exports: list[tuple[str, str]] = field(default_factory=list)
    all_variables: bool = False
    names: list[str] = field(default_factory=list)  # variables that are exported
    hold: bool = False
    directory: str | None = None
    own: list[str] = field(default_factory=list)  # directives that only the same scheduler has
    directives: dict[str, Directive] = field(default_factory=dict)  # by the keys of jobgen's options
    # Translated, but to be looked at.
    unsure: list[tuple[DirectiveOption, str, str]] = field(default_factory=list)
    joined_as_error: bool = False  # the output goes to the file of the errors
    script_logs: dict[str, str] = field(default_factory=dict)  # that the script writes itself
    index_later: bool = False  # the script reads the index of an array that only the submission names
    index_needed: bool = False  # and does not run without one
    default_nodes: bool = False  # the request has one node, because no directive requests nodes or ranks
    components: list[Request] = field(default_factory=list)  # those of a job with several
    # The option, its text, and why.
    unconverted: list[tuple[DirectiveOption, str, str]] = field(default_factory=list)

    @property
    def dependency_fault(self) -> str:
        """Why the dependency cannot be converted: it has a word or a variable for the number of a job, or is
        of a kind of its own."""
        waits = re.match(r"after(ok|notok|any)?(array)?:", self.bad_dependency)
        return "has no number of a job" if waits else "has no counterpart"
