"""Rules about the options of directives: their names and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from jobgen.check.ranks.model import cores_of_script
from jobgen.check.rule import ERROR, NOTE, WARNING, rule
from jobgen.check.rules.directive_effects import trailing
from jobgen.errors import near_ones, shown
from jobgen.schedulers.base import matches
from jobgen.schedulers.directive_options import completions
from jobgen.schedulers.pbs import OURS
from jobgen.schedulers.request import DirectiveOption
from jobgen.schedulers.versions import Span
from jobgen.script.command_kinds import STATE, TOOLS
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.slurm_values import MAIL_TYPES
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.request import resources
from jobgen.script.script import Hit, Script
from jobgen.values.parsers import number


@rule(
    "unknown-option",
    ERROR,
    "An option that qsub or sbatch does not know",
    """qsub and sbatch refuse a script with an unknown option, and with a word that belongs to no option:
    the dash is missing, or a value contains a blank without quotes.""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --ntask-per-node=4
    hostname
    """,
    good={"#SBATCH --ntask-per-node=4": "#SBATCH --ntasks-per-node=4"},
)
def unknown(script: Script) -> Iterator[Hit]:
    faulty, stray = set(trailing(script)), set[int]()  # trailing-comment reports the first
    grammar = script.dialect.scheduler.grammar
    for line in script.directives.live:
        if re.search(r"(?:^|\s)-wd(?!\S)", line.rest) and "w" not in grammar.letters:
            faulty.add(line.number)
            reason = f"only NCI had the option -wd: another {script.dialect.command} refuses it"
            yield Hit(line.number, reason, "write -l wd at NCI", WARNING)
    faulty |= {one.value_line for one in script.options if one.lacks_value}  # bad-value reports them
    before = DirectiveOption(0, "", "", "")
    for option in script.options:
        escaped = not option.flag and before.line == option.line and before.value.endswith("\\")
        before = option
        if escaped and grammar.long_options and _ESCAPES.holds(script.version):
            faulty.add(option.line)
            if script.version is None:
                reason = f"{script.dialect.title} before {_ESCAPES.since} refuses a backslash before a blank"
                yield Hit.at(option, reason, "write the value in quotes", WARNING)
        if option.line not in faulty and (fault := _fault(option, script)):
            if WARNING not in fault:
                faulty.add(option.line)  # report only the first error of a line
            elif not option.flag and option.line in stray:
                continue  # and only the first word too many
            elif not option.flag:
                stray.add(option.line)
            if fault[0]:
                yield Hit.at(option, *fault)


_ESCAPES = Span(since="24.05")  # reads a backslash before a blank; others refuse it


def _fault(option: DirectiveOption, script: Script) -> tuple[str, str] | tuple[str, str, str] | None:
    """Return why an option is invalid, the fix and the level; an empty reason if another rule reports it."""
    dialect, command = script.dialect, script.dialect.command
    if not option.flag:
        if option.value in dialect.component_words or (
            option.value == "--" and (dialect.scheduler.grammar.long_options or dialect.ignores_words)
        ):
            return None
        ignored = dialect.ignores_words
        does = "ignores it" if ignored else "refuses the script"
        reason = f"{shown(option.value)} is neither an option nor the value of one: {command} {does}"
        fix = _fix_of_word(option.value, script, option.line)
        if ignored and not re.search(r"\w", option.value):
            return None  # nothing is lost
        ignored = ignored or accepted_elsewhere(script, lambda row: row.ignores_words)
        return (reason, fix, WARNING) if ignored else (reason, fix)
    if not dialect.scheduler.grammar.long_options and option.flag.startswith("--"):
        return f"{option.given} is an option of Slurm, not of PBS: qsub refuses it", _FOREIGN_FIX
    if len(option.flag) == 2 and option.flag[1] not in dialect.scheduler.grammar.letters.replace(":", ""):
        if option.flag in dialect.foreign_options:
            return "", _FOREIGN_FIX
        other = option.flag.swapcase()
        likely = dialect.scheduler.grammar.long_options and other[1] in dialect.scheduler.grammar.letters
        fix = f"write {other}, or this scheduler's own option" if likely else _FOREIGN_FIX
        if script.is_sure:
            return f"{command} has no option {option.flag}", fix
        return f"{dialect.title} has no option {option.flag}: its {command} refuses it", fix, WARNING
    return _long_fault(option, script) if option.given.startswith("--") else None


def accepted_elsewhere(script: Script, accepts: Callable[[Dialect], bool]) -> bool:
    """Return whether a scheduler with the same directives accepts an option, if the script may be for it."""
    prefix = script.dialect.scheduler.prefix
    rows = [row for row in DIALECTS.values() if row.scheduler.prefix == prefix]
    return not script.is_sure and any(accepts(row) for row in rows if row is not script.dialect)


def _fix_of_word(word: str, script: Script, number: int) -> str:
    """Return the fix of a word that belongs to no option: a part of a list, of a value or of a comment."""
    grammar = script.dialect.scheduler.grammar
    before = re.search(rf"(?<!\S)(\S*)[ \t]+{re.escape(word)}(?!\S)(.*)", script.line(number))
    if word == "=" or (before and before[1] == "="):
        others = before[2].split()[word == "=" :] if before else []
        return "remove the blanks around the =" + (", and the words behind the value" if others else "")
    if before and before[1].endswith("=") and re.match(r"\s+[^\s#-]", before[2]):
        return "write the value in quotes, without the blank behind the ="
    if before and before[1].endswith((",", "=")):
        return "remove the blank in front of it"
    if not re.search(r"\w", word):
        return "begin a comment with #" if grammar.comments else "put the comment on a line of its own"
    if word in STATE | TOOLS:
        return "write the command on a line of its own, below the directives"
    name, equals, value = word.partition("=")
    if equals and (option := _option_of(name, script)):
        return f"write {option.format(value)}"
    return "begin every option with a dash, and write values with blanks in quotes"


def _option_of(name: str, script: Script) -> str:
    """Return the form of the option that a word without a dash means; empty if there is none."""
    scheduler = script.dialect.scheduler
    if name in scheduler.grammar.long_options:
        return f"--{name}={{}}"
    if not scheduler.grammar.long_options and name in OURS:
        return f"-l {name}={{}}"
    form = scheduler.request_forms.get(name, "")
    return form if form.startswith("-") else ""


def without_dash(option: DirectiveOption, dialect: Dialect) -> str:
    """Return the fix for ``-time=1``, which is ``-t`` with the value ``ime=1``; empty for other options."""
    name, equals, value = f"{option.given[1:]}{option.value}".partition("=")
    is_long = option.given[:2] != "--" and equals and name in dialect.scheduler.grammar.long_options
    return f"write --{name}={value}, with two dashes" if is_long else ""


def _long_fault(option: DirectiveOption, script: Script) -> tuple[str, str] | tuple[str, str, str] | None:
    dialect, command = script.dialect, script.dialect.command
    name, equals, _ = option.given[2:].partition("=")
    known = dialect.scheduler.grammar.long_options
    whole = completions(name, known)
    if name in dialect.step_options:
        fix = f"give it to {dialect.scheduler.node_step}"
        return f"--{name} is an option of a step, and {command} has none", fix
    if len(whole) > 1:
        several = ", ".join(f"--{one}" for one in whole)
        fix = "write the whole name"
        if name in dialect.scheduler.grammar.letters.replace(":", ""):
            fix += f", or -{name} with one dash"
        return f"--{name} is ambiguous: {several}; {command} refuses the script", fix
    if not matches(r"[\w-]+", name):
        return f"{command} has no option --{name}", "write --NAME=VALUE"
    if not whole:  # sites add options, so only likely typos are reported; those of pyxis begin with container
        meant = dialect.synonyms.get(name)
        # The letters of an option may be in another order.
        exchanged = (one for one in known if sorted(one) == sorted(name))
        meant = meant or next(exchanged, "") or next(iter(near_ones(name, known, 1, 0.8)), "")
        hint = f"; did you mean --{meant}?" if meant else ""
        typo = not name.startswith("container-") and hint
        return (f"{command} has no option {option.given}{hint}", "correct the name") if typo else None
    span = dialect.option_versions.get(f"--{whole[0]}")
    if span and (not span.holds(script.version) or (script.version is None and span.before)):
        reason = f"--{whole[0]} is an option of {dialect.title} {span} only: other versions refuse the script"
        moves = f"--{whole[0]}" in dialect.directory_options
        form = dialect.scheduler.request_forms["directory"] if moves else ""
        meant = dialect.synonyms.get(whole[0])
        fix = f"write {form.format(option.value)}" if moves else f"write --{meant}" if meant else "remove it"
        return (reason, fix, WARNING) if script.version is None else (reason, fix)
    if equals and not known[whole[0]]:
        return f"--{whole[0]} takes no value: {command} refuses the script", f"write --{whole[0]} alone"
    return None


_FOREIGN_FIX = "use this scheduler's own option; jobgen convert translates a whole script"


@rule(
    "other-dialect",
    ERROR,
    "An option of another scheduler",
    """PBS Pro and Torque share `#PBS`, but not all options: arrays are `-J 0-9` in PBS Pro and `-t 0-9` in
    Torque, and only PBS Pro has `select=` and `place=`. Slurm has no resource lists (`-l`).""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -t 0-9
    hostname
    """,
    good={"#PBS -t 0-9": "#PBS -J 0-9"},
)
def dialect(script: Script) -> Iterator[Hit]:
    for option in script.options:
        where = option.value.partition("=")[0]
        if option.flag in script.dialect.foreign_options:
            owner, use = script.dialect.foreign_options[option.flag]
            yield Hit.at(option, f"{option.flag} is an option of {owner}: it is refused", use or _FOREIGN_FIX)
        elif option.flag == "-l" and (reason := script.dialect.foreign_resources.get(where)):
            refused = script.dialect.value_fault(f"-l {where}", "")
            yield Hit.at(option, f"{where}= is {reason}", _FOREIGN_FIX, None if refused else WARNING)


@rule(
    "bad-name",
    ERROR,
    "A job name that PBS refuses",
    """PBS Pro allows up to 230 letters, digits and `. _ + -` in a job name; Torque allows everything except
    blanks. qsub refuses other names. Very old servers allow 15 characters; the first must be a
    letter.""",
    fix="use letters, digits and . _ + - without blanks",
    bad="""
    #!/bin/bash
    #PBS -N cifar/run1
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    hostname
    """,
    good={"#PBS -N cifar/run1": "#PBS -N cifar-run1"},
)
def bad_name(script: Script) -> Iterator[Hit]:
    for option in script.options:
        if option.flag == "-N" and (why := script.dialect.name_fault(option.value)):
            level = WARNING if _is_name_elsewhere(script, option.value) else None
            yield Hit.at(option, f"the name {shown(option.value)} {why}", level=level)


def _is_name_elsewhere(script: Script, name: str) -> bool:
    return accepted_elsewhere(script, lambda row: not row.name_fault(name))


@rule(
    "memory-unit",
    ERROR,
    "A memory size that the scheduler refuses or misreads",
    """PBS takes whole numbers with `kb`, `mb`, `gb` or `tb`; a bare number is bytes. Slurm takes whole
    numbers with `K`, `M`, `G` or `T`; a bare number is megabytes: `--mem=200` is too little for a job with GPUs or with
    many cores. `64GiB` and `1.5G` are refused by both.""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --mem=1.5G
    hostname
    """,
    good={"#SBATCH --mem=1.5G": "#SBATCH --mem=1536M"},
)
def memory(script: Script) -> Iterator[Hit]:
    bare, unit, likely = script.dialect.bare_size
    for option, name, text in _memories(script):
        share = _small_share(script, name, text)
        if matches(bare, text) or share:
            if re.search(rf"#.*\b(?:{unit}s?|{unit[0]}b?)\b", script.line(option.line)[1:], re.I):
                continue  # a comment has the unit
            reason = f"{name}={text} is {text} {unit}{'' if text == '1' else 's'}{share}"
            yield Hit.at(option, reason, f"add the unit that you mean, such as {text}{likely}", WARNING)
        elif not re.fullmatch(script.dialect.size_pattern, text, re.I | re.ASCII):
            fix = script.dialect.size_example if re.search(r"\d", text) else "write a number with a unit"
            fix += (
                ", or 0 for all memory of the node" if name == "--mem" and not re.search(r"\d", text) else ""
            )
            reason = (
                f"{name}={shown(text)} is refused: use a whole number and one of {script.dialect.size_units}"
            )
            yield Hit.at(option, reason, fix)


_LEAST_OF_GPU, _LEAST_OF_CORE = 1000, 32  # megabytes with which a program can run
_FEW = 1000  # megabytes: this number, 1024 and larger ones are meant as they are
_MANY = 8  # cores


def _small_share(script: Script, name: str, text: str) -> str:
    """Return what each GPU or core has of a bare number of megabytes that is too small for them; empty if it is
    not."""
    size, request = number(text, 5), script.request
    if not size or name not in ("--mem", "--mem-per-gpu"):
        return ""
    gpus = request.gpus_per_node or (request.gpus if request.nodes in (None, 1) else None) or 0
    if name == "--mem-per-gpu":
        return " for each GPU" if size < _LEAST_OF_GPU else ""
    if size < _LEAST_OF_GPU * gpus:
        return f", {size // gpus} for each of {gpus} GPUs" if gpus > 1 else " for the program on a GPU"
    cores = cores_of_script(script) or 0
    small = cores >= _MANY and size < min(_LEAST_OF_CORE * cores, _FEW)
    return f", {size // cores} for each of {cores} cores" if small else ""


def _memories(script: Script) -> Iterator[tuple[DirectiveOption, str, str]]:
    for option in script.options_of(*script.dialect.size_options):
        yield option, option.flag, option.value
    for option, name, value in resources(script.options):
        if name in ("mem", "pmem", "vmem", "pvmem"):
            yield option, name, value
        elif name == "select":
            for part in re.split(r"[:+]", value):
                key, _, text = part.partition("=")
                if key in ("mem", "vmem"):
                    yield option, key, text


@rule(
    "bad-choice",
    ERROR,
    "A value that the option does not support",
    """`-j` takes `oe`, `eo` or `n`; `-m` takes `n` or letters of `abe`; `--mail-type` takes words such as
    `END,FAIL`. The scheduler refuses all others; sbatch ignores an unknown word if it knows another one (a
    note, as only a mail is missing).""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --mail-type=ENDED
    hostname
    """,
    good={"#SBATCH --mail-type=ENDED": "#SBATCH --mail-type=END"},
)
def bad_choice(script: Script) -> Iterator[Hit]:
    for option in script.options:
        pattern, words, fix = script.dialect.choices.get(option.flag, (".*", "", ""))
        if not matches(pattern, option.value):
            yield Hit.at(option, f"{option.flag} {shown(option.value)} is refused: {words}", fix)
        elif option.flag == "--mail-type":
            bad = [name for name in option.value.split(",") if name.strip().upper() not in MAIL_TYPES]
            if bad:
                event = _event(bad[0].strip().upper())
                hint = f"; did you mean {event}?" if event else ""
                events = [_event(name.strip().upper()) for name in option.value.split(",")]
                fix = ",".join(dict.fromkeys(filter(None, events))) or "END,FAIL"
                refused = script.dialect.value_fault(option.flag, option.value)
                reason = f"--mail-type has no value {shown(bad[0])}{hint}"
                yield Hit.at(option, reason, f"write {fix}", None if refused else NOTE)


_MAIL_MEANINGS = {
    **dict.fromkeys(("TIMEOUT", "TIME_OUT", "TIMELIMIT", "TIME"), "TIME_LIMIT"),
    **dict.fromkeys(("ABORT", "ABORTED", "A", "ERROR", "FAILURE", "CANCEL", "CANCELLED", "KILL"), "FAIL"),
    **dict.fromkeys(("START", "STARTED", "B", "RUN", "RUNNING"), "BEGIN"),
    **dict.fromkeys(("E", "FINISH", "FINISHED", "DONE", "COMPLETE", "COMPLETED", "SUCCESS", "STOP"), "END"),
    **dict.fromkeys(("ABE", "BEA", "BAE", "EVERYTHING", "ANY"), "ALL"),
}


def _event(word: str) -> str:
    """Return the event that a word means, or the nearest one in its letters; empty without one."""
    near = near_ones(word, MAIL_TYPES, 1, cutoff=0.75)
    return word if word in MAIL_TYPES else _MAIL_MEANINGS.get(word, "".join(near))
