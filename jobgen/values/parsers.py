"""Parsers for values that users type: each function takes text and returns a checked value.

An invalid value raises ValueError with the end of a sentence ("must be ..."); the table of
options adds the option, its origin and the text.
"""

from __future__ import annotations

import functools
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress

from jobgen.errors import nearest, one_of
from jobgen.topology import cpus as processors
from jobgen.values.text_files import check_word, read_text

# Names that bash reserves, or that have another meaning in the script.
_SHELL_NAMES = (
    r"BASH\w*|COMP_\w+|DIRSTACK|E?UID|EPOCH(?:REALTIME|SECONDS)|EXECIGNORE|FIGNORE|FUNCNAME|FUNCNEST|GLOBIGNORE|GROUPS"
    r"|HISTCMD|HOSTTYPE|IFS|LINENO|MACHTYPE|MAPFILE|OLDPWD|OPT(?:ARG|ERR|IND)|OSTYPE|PIPESTATUS"
    r"|POSIXLY_CORRECT|PPID|PS4|PWD|RANDOM|READLINE_\w+|REPLY|SECONDS|SHELLOPTS|SHLVL|SRANDOM|TMOUT|_"
)
_OUR_NAMES = r"JOBGEN_\w+|job_\w+|MASTER_(?:ADDR|PORT)|(?:LOCAL_)?(?:RANK|WORLD_SIZE)"
_MAX_COUNT = 10_000_000

_UNITS = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}  # in MiB
_SIZE = r"(\d{1,15}(?:\.\d{1,9})?)\s*(?:([kmgt])(?:i?[bw])?|[bw])?"


class Whole:
    """A parser of whole numbers from ``minimum`` to ``maximum``, inclusive."""

    def __init__(self, minimum: int, maximum: int = _MAX_COUNT) -> None:
        self.minimum, self.maximum = minimum, maximum

    def __call__(self, text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,9}", text) or not self.minimum <= int(text) <= self.maximum:
            least, most = self.minimum, self.maximum
            plain = most == _MAX_COUNT and not re.fullmatch(r"[0-9]{8,}", text)
            limit = f"of at least {least}" if plain else f"from {least} to {most}"
            raise ValueError(f"must be a whole number {limit}")
        return int(text)


def count(text: str) -> int | None:
    """Return a number that a scheduler prints; None for anything else."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def number(text: str | None, digits: int = 9) -> int | None:
    """Return a whole number in an option of a scheduler or launcher; None for anything else."""
    found = re.fullmatch(rf"\d{{1,{digits}}}", text.strip(), re.ASCII) if text is not None else None
    return int(found[0]) if found else None


class Choice:
    """A parser of one of several words; its error suggests the nearest one. ``meant`` has other words for
    them."""

    def __init__(self, *allowed: str, **meant: str) -> None:
        self.allowed = allowed
        self.meant = meant

    def __call__(self, text: str) -> str:
        if text not in self.allowed:
            word = text.lower()
            hint = nearest(self.meant.get(word, word), self.allowed)
            raise ValueError(f"must be {one_of(self.allowed)}{hint}")
        return text


whole, choice = Whole, Choice  # names in the table of options, like those of the other parsers


def text(what: str, pattern: str) -> Callable[[str], str]:
    """Return a parser of text that matches ``pattern`` as a whole; ``what`` is its description."""

    def parse(value: str) -> str:
        if not re.fullmatch(pattern, value, re.ASCII):
            raise ValueError(f"must be {what}")
        return value

    return parse


def walltime(text: str) -> int:
    """Return a duration in seconds from ``2h30m``, ``90m``, ``HH:MM:SS`` or ``D-HH:MM:SS``."""
    units = re.fullmatch(r"(?=.)(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?", text, re.ASCII)
    clock = re.fullmatch(r"(?:(\d{1,4})-(?=[01]\d:|2[0-3]:))?(\d{1,5}):([0-5]\d):([0-5]\d)", text, re.ASCII)
    if not (match := units or clock):
        if re.fullmatch(r"\d+:\d\d", text, re.ASCII):
            first, second = text.split(":")
            raise ValueError(
                f"is ambiguous: schedulers read minutes and seconds, people hours and minutes; "
                f"write {first}h{second}m or {first}m{second}s"
            )
        if re.fullmatch(r"[1-9]\d{0,7}", text, re.ASCII):
            raise ValueError(
                f"is ambiguous: Slurm reads minutes, PBS seconds; write {text}m or {text}s (as in 2h30m)"
            )
        raise ValueError("must be a duration such as 2h30m, 90m, HH:MM:SS or D-HH:MM:SS")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if total == 0:
        raise ValueError("must be greater than zero")
    return total


def seconds(text: str) -> int | None:
    """Return a duration as schedulers print it: ``[D-]H:M:S``, ``D:H:M:S``, ``M:S`` or seconds.

    Return None for UNLIMITED, INVALID and the like.
    """
    if not (found := re.fullmatch(r"(?:(\d{1,9})-)?((?:\d{1,9}:){0,3}\d{1,9})", text.strip(), re.ASCII)):
        return None
    parts = zip(reversed(found[2].split(":")), (1, 60, 3600, 86400), strict=False)
    return int(found[1] or 0) * 86400 + sum(int(part) * unit for part, unit in parts)


SUBMIT_TIMEOUT = "5m"  # in which a busy scheduler may take a job


def patience(text: str) -> int:
    """Return a duration in seconds; it may be ``0``."""
    return 0 if text in ("0", "0s") else walltime(text)


QUEUE = 0  # the time limit of a job that leaves it to the queue


def time_limit(text: str) -> int:
    """Return a duration in seconds; for ``queue`` that of the queue."""
    return QUEUE if text == "queue" else walltime(text)


def signal(text: str) -> tuple[str, int | None]:
    """Parse ``USR1`` or ``USR2``, also with the time before the end, in seconds if it has no
    unit: ``USR1@120``, ``USR1@2m``. Slurm accepts up to 65535 seconds."""
    name, at, time = text.removeprefix("SIG").partition("@")
    with suppress(ValueError):
        before = None if not at else int(time) if re.fullmatch(r"\d{1,5}", time, re.ASCII) else walltime(time)
        if name in ("USR1", "USR2") and (before is None or 0 < before <= 65535):
            return name, before
    raise ValueError(
        "must be USR1 or USR2, or with 1 to 65535 seconds before the end, such as USR1@300 or USR1@5m"
    )


def switch(text: str) -> bool:
    """Parse ``yes`` or ``no``, the value of an option that has none on the command line."""
    if text not in ("yes", "no"):
        raise ValueError("must be yes or no")
    return text == "yes"


def mebibytes(text: str, default: str = "m") -> int | None:
    """Return a size of a scheduler in MiB; None if it is none.

    ``default`` is the unit of a bare number: m on Slurm, b (bytes) on PBS.
    """
    if not (match := re.fullmatch(_SIZE, text.strip(), re.I | re.ASCII)):
        return None
    unit = (match[2] or ("b" if match[0][-1:].lower() in ("b", "w") else default)).lower()
    return int(float(match[1]) * _UNITS.get(unit, 1 / 1048576))


def memory(text: str) -> int:
    """Return the memory of a node; see `size`. Slurm's 0 is all of it."""
    if text == "0":
        raise ValueError("must be at least 1M: all memory of a node has no counterpart")
    return size(text)


def size(text: str) -> int:
    """Return a size in MiB from a number with a unit: ``64G``, ``64GB``, ``64GiB``, ``512M``, ``1.5T``.

    PBS and Slurm both count in powers of 1024, whatever the name of the unit.
    """
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?) ?([MGT])(?:i?B)?", text, re.ASCII | re.IGNORECASE)
    if not match:
        raise ValueError("must be a size with a unit, such as 512M, 64G or 1.5T")
    number, unit = match.groups()
    thousandths = round(float(number) * 1000) * int(_UNITS[unit.lower()])
    if thousandths < 1000 or thousandths % 1000:
        raise ValueError("must be at least 1M, and a whole number of megabytes")
    return thousandths // 1000


def assignment(text: str) -> tuple[str, str | None]:
    """Parse ``NAME=VALUE`` or ``NAME`` as a pair; a value may hold any character, None is no value."""
    name, equals, value = text.partition("=")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(
            "must be NAME=VALUE or NAME, with letters, digits and underscores in NAME and no digit first"
        )
    return _settable(name), value if equals else None


def _settable(name: str) -> str:
    """Return the name of a variable that a job may set."""
    if re.fullmatch(_SHELL_NAMES, name):
        raise ValueError(f"cannot be set: bash keeps the variable {name} for itself")
    if re.fullmatch(_OUR_NAMES, name):
        hint = f"; use --{name.lower().replace('_', '-')}" if name.startswith("MASTER") else ""
        raise ValueError(f"cannot be set: the script sets {name} itself{hint}")
    return name


def env_file(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the absolute path of a file of variables, and their names."""
    place = os.path.abspath(path(text))
    return place, tuple(read_env_file(place))


def _lines(path: str) -> list[str]:
    return read_text(path, "surrogateescape").removesuffix("\n").split("\n")


_pipe_lines = functools.cache(_lines)  # it can be read only once: --env-file <(command)


def read_env_file(path: str) -> dict[str, str]:
    """Return the variables in a file of lines ``NAME=VALUE``; no error shows a value.

    A line may be empty, or begin with ``#`` or with ``export``. A value with blanks or quotes must be in
    single or double quotes. Nothing in a value is expanded.
    """
    try:
        lines = (_pipe_lines if stat.S_ISFIFO(os.stat(path).st_mode) else _lines)(path)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    found = {}
    for number, line in enumerate(lines, 1):
        if not re.fullmatch(r"[ \t]*(#.*)?", line):
            name, value = _env_line(line, number)
            found[name] = value
    return found


def _env_line(line: str, number: int) -> tuple[str, str]:
    name, value = r"([A-Za-z_][A-Za-z0-9_]*)", r"""(?:'([^']*)'|"([^"]*)"|([^\s'"]*))"""
    if not (match := re.fullmatch(rf"(?:export[ \t]+)?{name}={value}[ \t]*", line)):
        raise ValueError(f"line {number} must be NAME=VALUE; a value with blanks or quotes must be in quotes")
    try:
        check_word(line)
        return _settable(match[1]), match[2] or match[3] or match[4] or ""
    except ValueError as error:
        raise ValueError(f"line {number}: {match[1]} {error}") from None


def choices(*allowed: str) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of some of these words, separated by commas, each at most once."""

    def parse(text: str) -> tuple[str, ...]:
        words = tuple(text.split(","))
        for word in words:
            if word not in allowed:
                raise ValueError(f"must be some of {', '.join(allowed)}{nearest(word, allowed)}")
        if len(set(words)) < len(words) or ("none" in words and len(words) > 1):
            raise ValueError("must name each event once; none cannot be combined with others")
        return words

    return parse


def begin(text: str) -> str:
    """Parse a date with a time, a time of day, or ``+`` and a duration, which becomes seconds."""
    if text.startswith("+"):
        return f"+{walltime(text[1:])}"
    clock = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?"
    if re.fullmatch(rf"\d{{4}}-\d\d-\d\dT{clock}", text, re.ASCII):
        from datetime import datetime

        with suppress(ValueError):  # no such day
            datetime.fromisoformat(text)
            return text
    if not re.fullmatch(clock, text, re.ASCII):
        raise ValueError("must be a date and time such as 2030-01-31T20:00, a time such as 20:00, or +2h")
    return text


_VARIABLE = re.compile(r"\$(\{[A-Za-z_]\w*\}|[A-Za-z_]\w*)", re.ASCII)


def path(text: str) -> str:
    """Parse a path, absolute or relative."""
    if not text:
        raise ValueError("must be a path; it is empty")
    if text.startswith("~"):
        raise ValueError("must be a whole path: no shell has expanded the ~")
    return text


def is_whole(text: str) -> bool:
    """Return whether a path is the same in each directory: an absolute one, or ``~/PATH``."""
    return text.startswith(("/", "~/"))


def directory(text: str) -> str:
    """Parse a path, absolute, relative, or one below the home directory of the job, ``~/PATH``."""
    return text if re.match(r"~/.", text) else path(text)


def known_directory(workdir: object) -> str:
    """Return a working directory that is known before the job runs; empty for one with variables: the run
    directories are then in the directory of the submission."""
    return "" if workdir is None or _VARIABLE.search(str(workdir)) else str(workdir)


def log(text: str) -> str:
    """Parse the pattern of an output file."""
    if not re.fullmatch(r"(?=.*[^/]$)(?:[\w./+@=,:-]|%[xjAa])+", path(text), re.ASCII):
        raise ValueError("must be a path without blanks, with %x (name), %j (id), %A and %a (array)")
    return text


absolute_path = text("an absolute path; the job starts elsewhere, or would look it up on PATH", r"(?s)/.*")
# A path that holds in the job.
path_of_job = text("an absolute path, ~/DIR or $NAME/DIR", r"(?s)(/|~/.|\$(\{[A-Za-z_]\w*\}|[A-Za-z_]\w*)).*")


def file_of_job(text: str) -> str:
    """Parse the path of a file that the job reads: such a path, or ``./FILE`` in its directory."""
    if not re.match(r"/|\.{1,2}/.|~/.|\$(\{[A-Za-z_]\w*\}|[A-Za-z_]\w*)", text, re.ASCII):
        near = f"; did you mean ./{text}?" if re.match(r"\w", text) else ""
        raise ValueError(
            f"must be an absolute path, ~/FILE, $NAME/FILE, or ./FILE in the working directory{near}"
        )
    return text


def module(text: str) -> str:
    """Parse a name for ``module load``."""
    if not re.fullmatch(r"[^\s\-][^\s]*", text) or not text.isprintable():
        raise ValueError("must be one module name without blanks; repeat the option for more")
    return text


_MODULE_COMMAND = re.compile(
    r"purge|reset|restore( [^\s-]\S*)?|unload( [^\s-]\S*)+|swap( [^\s-]\S*){1,2}"
    r"|use( -a| --append)?( (~?/|\$\{?[A-Za-z_])\S*)+|list"
)


def module_step(text: str) -> str:
    """Parse a name for ``module load``, or another command of ``module``, such as ``swap OLD NEW``."""
    if " " not in text or not text.isprintable():
        return module(text)
    if not _MODULE_COMMAND.fullmatch(text):
        raise ValueError(
            "must be one module name without blanks, or a command of module: unload NAME, "
            "swap OLD NEW, use /DIR, restore NAME, reset, list or purge; repeat the option for more"
        )
    return text


def block(name: str) -> Callable[[str], str]:
    """Return a parser of shell code of one or more lines, which is in the script as it is."""

    def parse(text: str) -> str:
        lines = text.strip("\n").split("\n")
        if not text.strip():
            raise ValueError("must be shell code; it is empty")
        if all(re.match(r"\s*(#|$)", line) for line in lines):
            raise ValueError("must be shell code; it has only comments")
        if not all(
            re.sub(r"[^\S\r\f\v\x1c-\x1f\x85\u2028\u2029]", " ", line).isprintable() for line in lines
        ):
            raise ValueError("must be lines of text, ended as on Unix, without control characters")
        if (end := f"END_OF_{name.upper()}") in lines:
            raise ValueError(f"must not contain the line {end}, which would end it in the script")
        return "\n".join(lines)

    return parse


def cpu_bind(text: str) -> tuple[str, tuple[str, ...]]:
    """Parse ``none``, ``cores`` or ``numa``, or a list of processors for each rank: ``0-7;8-15``."""
    if text in ("none", "cores", "numa"):
        return text, ()
    lists = tuple(part.strip() for part in re.split("[;:]", text))
    if not all(map(processors.read, lists)):
        raise ValueError("must be none, cores, numa, or a list of processors for each rank: 0-7;8-15")
    return "list", lists


interfaces = text(
    "network interfaces such as ib0 or hsn0,hsn1, or those to exclude: ^lo,docker",
    r"(?:\^=?)?[A-Za-z][\w.-]{0,14}(?:,[A-Za-z][\w.-]{0,14})*",
)


def master_addr(text: str) -> str:
    """Parse the address of the rendezvous: a host name, in which ``{host}`` is the name of the first node,
    ``interface:NAME``, or an IP address, which becomes its usual form."""
    import ipaddress  # late: few jobs need it

    with suppress(ValueError):
        address = ipaddress.ip_address(re.sub(r"^\[(.*)\]$", r"\1", text))
        if not address.is_link_local or address.version == 4:
            return str(address)
    name, end = r"[A-Za-z0-9][\w.-]*", r"[\w.-]*"
    form = rf"(?:{name})?\{{host\}}{end}|(?![\d.]+$){name}|interface:[A-Za-z][\w.-]{{0,14}}"
    if len(text) > 255 or not re.fullmatch(form, text, re.ASCII):
        hint = "; the port is --master-port" if re.fullmatch(r"[^:]*[^:[\]{]+\]?:\d+", text, re.ASCII) else ""
        raise ValueError(
            "must be a host name, also with {host} for that of the first node, such as ic-{host} or "
            f"{{host}}.example.org, or interface:ib0, or an IP address that other nodes can reach{hint}"
        )
    return text


_BOUND = r"(?:/|\$[A-Za-z_]\w*(?:/|(?=:|$))|\$\{[A-Za-z_]\w*\}(?:/|(?=:|$)))[^:,\x00-\x1f\x7f]*"
bind = text(
    "SRC, SRC:DST or SRC:DST:ro, with absolute paths, or $NAME/DIR with a variable of the job, without "
    "colons and commas",
    rf"{_BOUND}(?::{_BOUND}(?::r[ow])?)?",
)


_UNPACKED = r".*\.(?:tar|tar\.(?:gz|bz2|xz|zst)|tgz|tbz2?|txz|tzst|zip)"
_NOT_UNPACKED = r".*\.(?:7z|rar|lha|cab|cpio|iso)"
_PATH = r"[^:\x00-\x1f\x7f]+"


def stage(text: str) -> tuple[str, str]:
    """Parse ``PATH[:DEST]``, a file and its place below the folder of staged files. The place of an archive
    that is unpacked ends in ``/``; one whose place has the ending of an archive stays packed."""
    source, colon, place = text.partition(":")
    is_file = re.fullmatch(rf"(?:~/)?(?!~){_PATH}(?<![/.])", source)
    if not is_file or (colon and not re.fullmatch(_PATH, place)):
        raise ValueError("must be PATH or PATH:DEST, a file and its place on the node, without other colons")
    if source.startswith("$"):
        raise ValueError("must be a path without variables, which nothing expands; ~/ is the home directory")
    if re.search(r"^[/~]|(^|/)\.\.(/|$)", place):
        raise ValueError("must have a DEST below $JOBGEN_STAGE, not one with / or ~ in front, or with ..")
    name = os.path.basename(source)
    folder = "/" * bool(re.search(r"(^|/)\.?$", place))
    place = os.path.normpath(place)
    place = "" if place == "." else place + folder
    if source.startswith("-"):  # which commands read as an option
        source = f"./{source}"
    if re.fullmatch(_UNPACKED, name) and not re.fullmatch(_UNPACKED, place):
        return source, f"{place.rstrip('/') or '.'}/"
    if re.fullmatch(_NOT_UNPACKED, name) and not place:
        raise ValueError("cannot be unpacked, unlike .tar, .tar.gz, .tar.zst and .zip; PATH:DEST copies it")
    return source, place + name if place.endswith("/") else place or name


def local_folder(text: str) -> str:
    """Parse a folder on the disk of a node: an absolute path, also with a variable of the job in front."""
    name = r"[^:,$/\x00-\x1f\x7f]+"
    if not re.fullmatch(rf"(?:\$[A-Za-z_][A-Za-z0-9_]*|/{name})(?:/{name})*/?", text):
        raise ValueError("must be an absolute path, or $NAME/DIR with a variable of the job, without : and ,")
    return text.rstrip("/")


def device_filter(text: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Parse DeepSpeed's ``host:0,1@host2`` as pairs of a host and its slots (none: all of them)."""
    hosts: dict[str, tuple[int, ...]] = {}
    for part in text.split("@"):
        match = re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?::(\d{1,4}(?:,\d{1,4})*))?", part, re.ASCII)
        if not match:
            raise ValueError("must be a filter such as host:0,1@host2, its slots one by one")
        host, slots = match.groups()
        if host in hosts:
            raise ValueError(f"names {host} twice")
        hosts[host] = tuple(dict.fromkeys(int(slot) for slot in slots.split(","))) if slots else ()
    return tuple(hosts.items())
