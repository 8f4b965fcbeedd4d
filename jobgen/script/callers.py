"""How the files beside a script use it: they complete it, run it without a scheduler, or submit it.

The scheduler does not read the text of a file that another one completes, and options of the command line
replace those of directives. Only few files are read: those in the same folder, and those in the folder above
that have the path of the script. A script may submit itself, or have the command in a comment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

_MOST, _LARGEST, _TOTAL = 40, 100_000, 500_000  # files, bytes of one, and bytes of all that are read
_ENTRIES, _LONGEST = 1000, 500  # of a folder; characters of a line
# The ends of the names of programs, scripts, settings and documents; files without an end are read, too.
_READ = (
    r"(?i)[^.]+|.+\.(?:[bzkct]?c?sh|py|pl|rb|r|jl|lua|tcl|js|pbs|slurm|sbatch|sl|slm|job|sub|qsub|submit|batch|"
    r"run|cmd|mk|cmake|smk|nf|wdl|in|te?mpl|template|j2|jinja2?|cfg|conf|ini|ya?ml|toml|md|rst|txt|bat)"
)
_DOCUMENT = r"(?i).+\.(?:md|rst|txt)|readme.*"
_LIKELY = r"(?i)sub|launch|gen|make|create|setup|all|run|prep"  # in the names of programs that submit jobs

# In these patterns a NUL is the name of the script, or a variable that has it.
_MOAB = r"(?:ccc_)?msub"
_SUBMIT = rf"\b(?:sbatch|s?qsub|{_MOAB})\b"  # sqsub is a command of sites around sbatch
_SUBMISSION = rf"({_SUBMIT})([^;&|\0]*?)(?:<\s*)?[^\s;&|]*\0"
# What a command submits instead: a command, or a script before the name.
_OTHER_SCRIPT = r"--wrap|(?:^|\s)[\"']?[^\s-]\S*\.(?:sh|bash|slurm|sbatch|pbs|job|sub)\b"
_COMMENT = r"\s*(?:#|//|--)"
_START = r"(?:^|[;&|]|\b(?:then|do|else|exec|time|nohup)\s)\s*"
_EDITOR = r"\b(?:g?sed\s(?:.*\s)?-\w*i|sed_i\w*|perl\s(?:.*\s)?-\w*i)"
_FILTER = r"\b(?:cat|head|tail|g?sed\w*|[gm]?awk|perl|envsubst|m4|cpp|esh|j2|jinja2?|python[\d.]*)\s"
_READER = r"(?i:(?:open|read\w*|load\w*|\w*template\w*|render\w*|slurp)\s*\()"
# The text of the script is copied, changed or included.
_COMPLETION = (
    rf"{_EDITOR}.*\0"
    rf"|{_FILTER}[^;&|]*\0[^;&]*[>|)`]"
    r"|<\s*[\"']?[^\s;&|<]*\0"
    rf"|{_START}(?:source|\.)\s+[^;&|]*\0"
    r"|(?:%|#|\{%-?\s*)\s*(?:include|extends|import)\b.*\0"
    rf"|{_READER}.*\0(?![\"'\s)]*,\s*(?:mode\s*=\s*)?[\"'][wax])"
    r"|(?i:\w*templ\w*[\"']?\s*[=:,]).*\0"
)
# A shell or a launcher of steps before the path of the script, or the path alone.
_RUN = (
    rf"(?:{_START}|--wrap[=\s]\s*[\"']\s*)"
    r"(?:(?:(?:srun|mpirun|mpiexec|aprun|jsrun|(?:ba|z|k|da)?sh)\s[^;&|]*?)[\"']?(?:[^\s;&|\"']*/)?|"
    r"[\"']?[^\s;&|\"'=(]*/[\"']?)\0"
)
_VARIABLE = r"(\w+)\s*=\s*[\"']?[^\s;\"'()|<>`]*\0[\"']?\s*(?:[;#].*)?$"
# A variable with options of the command.
_OPTIONS = (
    r"\s*(?:(?:export|local|declare|readonly|my)\s+)?[$@]?(\w+)\s*\+?=\s*(.*(?:^|[\s\"'(\[=])--?[A-Za-z].*)"
)
_PLAIN_NAMES = r"(?i).+\.(?:py|jl|r|rb|js|lua)"  # files whose variables have no sign in front
_COPY = r"\bcp\s(?:-\w+\s+)*\S*\0[\"']?\s+[\"']?(?:[^\s;|&\"']*/)?([^\s;|&\"'/]*[\w}]\.\w+)"  # to a file
# The script, or all files, are copied to a folder whose name has a variable.
_TO_FOLDER = r"\bcp\s[^;&|]*\0[^;&|]*\s[^\s;&|]*\$"
_ALL_TO_FOLDER = r"\bcd\s+\S*\$.*\n(?:.*\n)?.*\bcp\s[^;&|\n]*\*[^;&|\n]*\s\./?\s*(?:\n|$)"
# A name that a program joins of texts and variables.
_JOINED = r"\$\{\w+\}|\$\w+|\{[^{}\s]+\}|\b\w+\s*\+\s*[\"']"
_LEAST_OF_NAME = 4  # characters that a joined name and that of the script have in common, without the end
# A program writes the first line of a script, appends files and submits it.
_ASSEMBLY = (_SUBMIT, r"(?:echo|printf|print)\b.*#!\s*/.*>", r"\bcat\s[^|;&]*>>")


class Callers(NamedTuple):
    """The uses of a script by the files beside it.

    ``completed``: one of them copies, changes or includes its text, or only runs it without a scheduler.
    ``options``: what commands that submit it have before its name, with the values of their variables.
    ``by_moab``: commands of Moab submit it, no others. ``copied``: one of them first copies it elsewhere.
    """

    completed: bool = False
    options: tuple[str, ...] = ()
    by_moab: bool = False
    copied: bool = False


def callers(folder: str, name: str, *, has_first_line: bool) -> Callers:
    """Return the uses of a file by others of its folder. ``has_first_line``: it begins with ``#!``."""
    is_run = copied = False
    found: list[tuple[str, str]] = []
    place = os.path.abspath(folder)
    path = re.compile(rf"(?<![\w.-]){re.escape(os.path.basename(place))}/{re.escape(name)}")
    above = ((other, text) for other, text in _texts(os.path.dirname(place), "") if path.search(text))
    for other, text in chain(_texts(folder, name), above):
        document = re.fullmatch(_DOCUMENT, other) is not None
        if not has_first_line and not document and "#!" in text:
            parts = _lines(text)
            if all(any(re.search(one, line) for line in parts) for one in _ASSEMBLY):
                return Callers(completed=True)
        plain = re.fullmatch(_PLAIN_NAMES, other) is not None
        lines = _marked(_lines(text), name, plain) if name in text else _marked_parts(_lines(text), name)
        own = list(_submissions(lines))
        found += own
        is_run |= any(re.search(r"--wrap[=\s].*\0", line) for line in lines)
        if document:
            continue
        copied |= bool(own) and any(re.search(_TO_FOLDER, line) for line in lines)
        copied |= bool(own) and re.search(_ALL_TO_FOLDER, "\n".join(lines)) is not None
        copies: set[str] = set()
        for line in lines:
            if "\0" in line and not _submission(line) and not re.match(_COMMENT, line):
                if re.search(_COMPLETION, line):
                    return Callers(completed=True)
                is_run |= re.search(_RUN, line) is not None
                copies.update(re.findall(_COPY, line))
        edits = rf"{_EDITOR}.*(?:{'|'.join(map(re.escape, copies))})"
        if copies and any(re.search(edits, line) for line in lines):
            return Callers(completed=True)
    by_moab = bool(found) and all(re.fullmatch(_MOAB, command) for command, _ in found)
    return Callers(is_run and not found, tuple(options for _, options in found), by_moab, copied)


def own_options(text: str, name: str) -> tuple[str, ...]:
    """Return the options of the commands, also in comments, with which a script submits itself."""
    if not re.search(_SUBMIT, text):
        return ()
    lines = [re.sub(r"\$\{?0\b\}?", "\0", line) for line in _lines(text)]
    return tuple(options for _, options in _submissions(_marked(lines, name) if name else lines))


def _submission(line: str) -> re.Match[str] | None:
    """Return the command of a line that submits the script, and not a command or another one."""
    found = re.search(_SUBMISSION, line)
    if found is None or re.search(_OTHER_SCRIPT, found[2]) or "--wrap" in found[0]:
        return None
    return found


def _submissions(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each command of a program that submits the script, and its options, also those in variables."""
    values: dict[str, str] | None = None
    for line in lines:
        if "\0" not in line or (found := _submission(line)) is None:
            continue
        if values is None:
            values = {}
            for name, value in (match.groups() for one in lines if (match := re.match(_OPTIONS, one))):
                values[name] = f"{values.get(name, '')} {value}"
        more = (values[name] for name in dict.fromkeys(re.findall(r"\w+", found[2])) if name in values)
        text = re.sub(r"\\+[nt]?|[\"',\[\]()]", " ", " ".join((found[2], *more)))
        yield found[1], re.sub(r"(?<!\S)-\w\s+(?=--\w)", "", text)  # -b "--time=1" of a command around it


def makes_folder(folder: str, name: str, made: str) -> bool:
    """Return whether a file beside another one, or one above that names it, makes a directory."""
    pattern = re.compile(
        rf"\b(?:mkdir|makedirs|mkpath|install\s+-d)\b[^;&|]*?[\s\"'(/]{re.escape(made)}/?(?=[\s\"';&|)]|$)"
    )
    above = (one for one in _texts(os.path.dirname(os.path.abspath(folder)), "") if name in one[1])
    both = chain(_texts(folder, name), above)
    texts = (text for other, text in both if not re.fullmatch(_DOCUMENT, other))
    return any(pattern.search(line) for text in texts if made in text for line in _lines(text))


def _lines(text: str) -> list[str]:
    """Return the lines of a program, joined behind a backslash, without long lines of data."""
    lines = (line for line in text.split("\n") if len(line) <= _LONGEST)
    return "\n".join(lines).replace("\\\n", " ").split("\n")


def _marked(lines: list[str], name: str, plain: bool = False) -> list[str]:
    """Return the lines with a NUL for the name of a file, and for variables with this value.

    ``plain``: in this language variables have no sign in front."""
    file = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)")
    lines = [file.sub("\0", line) if name in line else line for line in lines]
    variables = {found[1] for line in lines if "\0" in line and (found := re.search(_VARIABLE, line))}
    if not variables:
        return lines
    words = "|".join(variables)
    joined = rf"|(?<=[+,])\s*(?:{words})\b" if plain else ""
    use = re.compile(rf"\$(?:{words})\b|\$?\{{(?:{words})\}}|(?<=\()(?:{words})\b{joined}")
    return [use.sub("\0", line) for line in lines]


def _marked_parts(lines: list[str], name: str) -> list[str]:
    """Return the lines that submit or read files, with a NUL for names that may be that of the script."""

    def mark(word: re.Match[str]) -> str:
        parts = re.split(_JOINED, word[0])
        short = len("".join(parts).removesuffix(end)) < _LEAST_OF_NAME
        same = re.fullmatch(".+".join(map(re.escape, parts)), name)
        return word[0] if len(parts) < 2 or short or same is None else "\0"

    end = os.path.splitext(name)[1]
    found = (line for line in lines if re.search(rf"{_SUBMIT}|{_READER}|{_FILTER}", line))
    return [re.sub(rf"(?:{_JOINED}|[\w.-])+", mark, line) for line in found]


def _texts(folder: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the other files of a folder that may use the file."""
    try:
        with os.scandir(folder) as entries:
            names = [one.name for one in islice(entries, _ENTRIES) if re.fullmatch(_READ, one.name)]
    except OSError:
        return
    names.sort(key=lambda one: (not re.search(_LIKELY, one), one))
    total = 0
    for other in names[:_MOST]:
        path = os.path.join(folder, other)
        try:
            size = os.path.getsize(path) if os.path.isfile(path) and other != name else _LARGEST + 1
            if size > _LARGEST:
                continue
            total += size
            if total > _TOTAL:
                return
            with open(path, "rb") as file:
                yield other, file.read().decode("utf-8", "replace").replace("\0", "")
        except OSError:
            continue
