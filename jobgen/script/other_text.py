"""Parts of a file that are not the script: other scripts, here-documents, and gaps to be filled in."""

from __future__ import annotations

import os
import re

_HEREDOC = re.compile(r"(?<!<)<<-?\s*([\"']?)\\?([A-Za-z_][\w.]*)\1")
_SHEBANG = re.compile(r"#!\s*/\w")
# The marks of a template, which a program fills in before it submits the script: {{ x }}, {% x %}, {# x #},
# <%= x %>, ${{x}}, {x}, {x!s}, {$x}, $x$, $$x, ${a.b}, [[x]], $[x], %(x)s, @X@, @X, %X%, #X#, ##X##, ~X~,
# |X|, ===X===, &X;, «x», !X, __X__, xxXxx, TBG_x, self.x.
_TEMPLATE = re.compile(
    r"\{\{|\{%|(?<!\$)\{#|<%|\$\$\{|\$\$[A-Za-z_]|\$\{\s*\w+(?:[.-][\w.-]+|\s+)\}|\[\[ ?[A-Za-z_]|"
    r"(?<!\$)\{ ?(?!\d+\.\.)\w[\w.:-]* ?\}|%\(\w+\)[\d.]*[sdf]|(?<!\w)@[A-Za-z]\w*@|(?<=[=:\s])@[A-Z]+\b|"
    r"%(?:[A-Z_]{3,}|[a-z]{3,})%(?!\w)|%%%?[A-Za-z][\w-]*%%|##\w+##|(?<=[\s=:])!\w+|(?<![\w}])_{1,2}[A-Z][A-Z_]*_{1,2}(?![a-z0-9])|\b__[a-z]\w*__|"
    r"(?<=[=:\s-])(?:#\w+#|~\w+~|\|\w+\||\$\w+\$(?!\w))|={2,}\w+={2,}|&[A-Za-z_]\w*;|«\w+»|\$\[\w+\]|"
    r"\{\$\w+\}|\{\w+(?:![rsa]|(?:\[[\w'\"]+\])+)\}|\bTBG_\w|\bxx\w+xx\b|(?<![\w.])self\.\w|='\w+':|:\w+='\w+'"
)
# Those that a person fills in: <your account>, [job name], {your email}, XXX, CHANGEME, --mem=MEMORY.
_WORD = r"(?!(?:ALL|NONE|MAX|INFINITE|UNLIMITED)\b)(?:[NX]|[A-Z][A-Z_]+\d*)(?![\w=])"
_LETTERS = r"(?:xx|nn|dd|hh)(?![\w=])"
# $(TIME) of make and the like; $(date) is a command.
_PRINTERS = r"date|whoami|pwd|hostname|nproc|id|logname|uuidgen|uname|ls|mktemp|arch|groups|which"
_MADE = rf"\$\((?!(?-i:{_PRINTERS})\))[A-Za-z_][\w.]*\)"
_QUESTIONS = r"\?{2,}|(?<=[=\s])\?(?=\s|$)|(?-i:(?<=[=\s])\[[A-Z][A-Z_ ]+\](?![\w|]))"
_GAP = re.compile(
    rf"{_MADE}|{_QUESTIONS}|"
    r"<[A-Za-z_][^<>@]*>|\[TODO\]|\[[A-Za-z]+ [^\]]+\]|\{[A-Za-z]+ [^{}]+\}|\bX{3,}|\.\.\.|#+\s*FIXME|"
    r"\*\*\w+\*\*|\b(?:FIXME|TODO|(?:CHANGE|REPLACE|FILL)_?(?:ME|THIS|IN))\b|"
    r"\byour(?:[ _-][a-z]|e?mail|name|account|project|user|dir)|\bpath/to/|"
    r"\bafter\w*:job_?id\b|\[-?at-?\]|(?-i:\b(?:SPECIFY|Specify|ENTER|Enter|INSERT|Insert)_\w)|"
    r"(?<=[=\s:@])(?-i:XX[a-z]{0,2})(?![\w=])|"
    rf"(?:(?:time|nodes|select|n?tasks[\w-]*|mem[\w-]*|array|ppn|mpiprocs|cpus[\w-]*|ngpus)[=:]|(?-i:\s-[tnca]\s))(?:(?:\d+|dd?)-)?(?-i:{_WORD}|{_LETTERS})|"
    r"[\s=]gpu:(?-i:N|X|NUM\w*|COUNT|N?GPUS?)(?![\w=])|"
    rf"(?:\s-J\s*\d+-|--(?:time|nodes|n?tasks|mem|cpus|gpus)(?:-[a-z-]+)?\s+)(?-i:{_WORD})|"
    r"(?:=|\s-(?!v)\w\s)(?-i:MEMORY|MEM|TIME|WALLTIME|N?TASKS\w*|N?NODES|N?CPUS|NUM_\w+|JOB_?NAME)(?![\w=])",
    re.I,
)
# A word in a time, as xTime:00:00.
_TIME = re.compile(
    r"(?:walltime=|--time[= ])"
    r"(?!\S*(?:hour|hrs|min|sec|day|week|infini|unlimited))\w*[A-Za-z]{4,}(?=[:\s]|$)",
    re.I,
)
_FORMAT = re.compile(r"(?<=[=\s:])%(?:\d*[sdif](?!\w)|[a-z_]{3,})|%[A-Z]%(?![a-z0-9])")


# Of these, what a person reads: a program looks for a name of its own.
_FOR_PERSON = re.compile(
    rf"{_MADE}|{_QUESTIONS}|(?:(?<=[=:])|(?<=-[tnNc] ))(?-i:xx|nn)(?![\w=])|"
    r"<[A-Za-z_][^<>@%]*>|\[TODO\]|\[[A-Za-z]+ [^\]]+\]|\{[A-Za-z]+ [^{}]+\}|\bX{3,}|#+\s*FIXME|\*\*\w+\*\*|"
    r"\b(?:FIXME|TODO|(?:CHANGE|REPLACE|FILL)_?(?:ME|THIS|IN))\b|\[-?at-?\]|"
    r"\byour(?:[ _-][a-z]|e?mail|name|account|project|user)|\bpath/to/|\bHH?:MM?\b|"
    r"(?-i:\b(?:SPECIFY|Specify|ENTER|Enter|INSERT|Insert)_\w)|(?<=[=\s:@])(?-i:XX[a-z]{0,2})(?![\w=])",
    re.I,
)


def has_gap(text: str, *, path: bool = False) -> bool:
    """Return whether a program or a person still has to fill in a part of a line.

    In a line with the ``path`` of a log, ``%s`` is a code of Slurm.
    """
    patterns = (_TEMPLATE, _GAP) if path else (_TEMPLATE, _GAP, _TIME, _FORMAT)
    value = _without_comment(text)
    return any(one.search(value) for one in patterns)


def is_for_person(text: str) -> bool:
    """Return whether a line has a gap that a person fills in, or a value that is empty."""
    value = _without_comment(text).rstrip()
    empty = value.endswith("=") or re.search(r"\s-\w$", value) is not None
    return empty or _FOR_PERSON.search(value) is not None


def _without_comment(text: str) -> str:
    return re.sub(r"\s(?:#(?!#?\w+#)|;\s).*", "", text)


_SAYS_TEMPLATE = re.compile(
    r"#.*(?:\bis a template\b|"
    r"\b(?:do not|don'?t|never|not)\b.*\b(?:invoke|run|submit|execute|call|launch)\b.*\bdirectly\b)",
    re.I,
)


def says_template(line: str) -> bool:
    """Return whether a comment says that the script is a template, or not to be submitted directly."""
    return _SAYS_TEMPLATE.match(line) is not None


def is_field(line: str) -> bool:
    """Return whether a whole line is to be filled in: ``<MODULES>``."""
    return re.fullmatch(r"\s*<[A-Z]\w*>\s*", line) is not None


def has_variable(text: str) -> bool:
    """Return whether a shell would expand a part of a text."""
    return re.search(r"\$[\w{(]|`", text) is not None


# Variables that the user's shell has.
_OF_SHELL = r"USER|LOGNAME|HOME|PWD|SHELL|HOST\w*|TMP\w*|\w*DIR|(?:SLURM|PBS)_\w+|\w*SCRATCH\w*|\w*WORK\w*"


_OTHERS = re.compile(rf"\$\{{?(?!(?:{_OF_SHELL})\b)([A-Za-z]\w*)")
# One in capitals as a whole value, or as that of a resource of PBS.
_VALUES = re.compile(rf"(?:^|(?<=[=:,]))\$\{{?(?!(?:{_OF_SHELL})\b)([A-Z]\w*)\}}?(?=[:,]|$)")


def variables(text: str) -> list[str]:
    """Return the variables in a text that no shell has by itself."""
    return _OTHERS.findall(text)


def value_variables(text: str) -> list[str]:
    """Return those in capitals that are a value in the text of an option."""
    return _VALUES.findall(text)


def has_escape(text: str) -> bool:
    """Return whether a line has a dollar sign as a template of Python writes it: ``$$HOME`` or ``$$$$``."""
    return re.search(r"\$\$(?:\{?[A-Za-z_]|\$\$)", text) is not None


def names_template(name: str) -> bool:
    """Return whether a file is called a template."""
    return is_for_engine(name) or re.search(r"template|\.inp?$", name, re.I) is not None


def is_for_engine(name: str) -> bool:
    """Return whether a file has the ending of the texts that an engine of templates or macros reads."""
    return re.search(r"\.(?:tmpl|tpl|j2|jinja2?|mustache|erb|m4|mako)$", name, re.I) is not None


def is_folder_of_templates(folder: str) -> bool:
    return re.fullmatch(r"(?i)(?:.*[_-])?templates?", os.path.basename(os.path.abspath(folder))) is not None


def is_template(text: str) -> bool:
    return _TEMPLATE.search(text) is not None


def foreign_lines(lines: list[str], first_command: int) -> set[int]:
    """Return the numbers of the lines in here-documents, and of all from the first line of another script."""
    found: set[int] = set()
    end = ""
    for number, line in enumerate(lines, 1):
        if first_command and number >= first_command and _SHEBANG.search(line):
            return found | set(range(number, len(lines) + 1))
        if end:
            found.add(number)
            end = "" if line.strip() == end else end
        elif not line.lstrip().startswith("#") and (match := _HEREDOC.search(line)):
            end = match[2]
    return found
