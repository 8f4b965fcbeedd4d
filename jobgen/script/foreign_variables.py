"""Variables and commands of other schedulers in the code of a job, as that of a job file for one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobgen.launch.expansion import code_at
from jobgen.launch.expansion import names as expanded_names
from jobgen.options import BY_KEY, CODE, OPEN
from jobgen.schedulers.base import Scheduler
from jobgen.script.dialects.base import Dialect
from jobgen.spec import Specification

# A variable with a default, as ${NAME:-1}, is read on purpose where it is not set.
_READ = re.compile(r"(?<!\\)\$(?:(\w+)|\{[#!]?(\w+)(?![\w]|:?[-+=?]))")
_EVAL = re.compile(r"(?s)\beval\s+(\"(?:[^\"\\]|\\.)*\"|[^\n;]*)")
_STRING = re.compile(r"(?s)(?:^|[\s;])(\w+)=\"((?:[^\"\\]|\\.)*)\"")
# A string in quotes, in which # begins no comment, or a comment.
_COMMENT = re.compile(r"(?m)('[^'\n]*'|\"(?:[^\"\\\n]|\\.)*\")|(?:^|(?<=\s))#.*")
_OF_WORKFLOW = re.compile(
    r"\bsnakemake\s[^;&|]*?--cluster(?:-sync|-generic-submit-cmd)?[ =][\"']?(\w+)", re.DOTALL
)


def warnings(spec: Specification, scheduler: Scheduler) -> tuple[str, ...]:
    """Return warnings on the variables that have no value under this scheduler, and on commands of others."""
    code = dict(_texts(spec))
    read = _places(_reads(spec))
    given = [(one, place) for place, words in _programs(spec).items() for one in words[:4] if one.isalpha()]
    if not code and not read and not given and not _programs(spec):
        return ()
    from jobgen.script.dialects.table import DIALECTS, of_script  # late: most jobs have no code

    own = of_script(scheduler.name)
    others = {name for one in DIALECTS.values() for name in _commands(one)} - {*_commands(own)}
    whole = "\n".join(code.values())
    calls = [(name, place) for place, text in code.items() for name in _called(text, whole)] + given
    texts = {place: " ".join(words) for place, words in _programs(spec).items()} | code
    calls += [(name, place) for place, text in texts.items() for name in _OF_WORKFLOW.findall(text)]
    known = {name: meaning for one in DIALECTS.values() for name, meaning in one.job_variables.items()}
    prefixes = {one.variable_prefix for one in DIALECTS.values()} - {own.variable_prefix, ""}
    unprefixed = {name for one in DIALECTS.values() for name in one.unprefixed} if own.unprefixed else set()
    found, unsure = [], []
    foreign = {*own.foreign_variables, *known, *unprefixed, *own.at_some_sites}
    for name, where in read.items():
        if not (name.startswith(tuple(prefixes)) or name in foreign) or _is_set(name, spec, code):
            continue
        if name in unprefixed:
            devices = [spec.gpus_per_node, *(one.gpus_per_node for one in spec.components)]
            needless = name.endswith("_DEVICES") and not any(devices)
            where = [one for one in where if not needless and _uses(code.get(one, ""), name)]
        if name in own.at_some_sites and where:
            why = own.unprefixed[name].replace(" it", f" {name} ({', '.join(where)})", 1)
            unsure.append(f"{scheduler.title} {why}")
        if not where or name in {*own.job_variables, *own.unprefixed}:
            continue
        use = own.foreign_variables.get(name) or own.variable(known.get(name, ""))
        found.append(f"{name} ({', '.join(where)}{f'; use {use}' if use else ''})")
    places = {name: ", ".join(where) for name, where in _places(calls).items() if name in others}
    run = ", ".join(f"{name} ({where})" for name, where in places.items())
    variables = (f"{scheduler.title} does not set {', '.join(found)}",) if found else ()
    return (*variables, *unsure, *([f"{scheduler.title} has no command {run}"] if run else []))


def _uses(code: str, name: str) -> bool:
    """Return whether some code does more with a variable than to print it, as a program does in its words."""
    from jobgen.script.command_kinds import is_printed
    from jobgen.script.syntax import expansions, parse

    read = [node for one, node in expansions(parse(code.encode())) if one == name]
    return not read or not all(is_printed(node) for node in read)


def _places(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the places of each name, each place once."""
    found: dict[str, dict[str, None]] = {}
    for name, place in pairs:
        found.setdefault(name, {})[place] = None
    return {name: [*places] for name, places in found.items()}


def _commands(dialect: Dialect) -> tuple[str, ...]:
    return (*dialect.commands, *dialect.site_launchers, *filter(None, [dialect.scheduler.node_step]))


def _called(text: str, whole: str) -> list[str]:
    """Return the words of some code that may be names of commands, and the first ones of the variables that
    the whole code reads: ``A='srun -n 1'``."""
    text = _without_comments(text)
    values = re.findall(r"(?m)(?:^|[\s;&|(])(\w+)=[\"'(]?(\w+)(?=[\s\"';)]|$)", text)
    variables = [name for variable, name in values if re.search(rf"\$\{{?{variable}\b", whole)]
    start = r"(?:^|[;&|(`{]|(?:\b(?:then|do|else|if)|!)(?=\s))[ \t]*"
    start += (
        r"(?:\w+=[^\s(`]*[ \t]+)*(?:(?:(?:\S*/)?(?:time|nohup)|exec|timeout(?:[ \t]+-\S+)*[ \t]+\w+)[ \t]+)*"
    )
    return variables + re.findall(rf"(?m){start}(?!then\b|do\b|else\b|if\b)(\w+)(?=[\s;)`]|$)", text)


def _is_set(name: str, spec: Specification, code: Mapping[str, str]) -> bool:
    """Return whether a job sets a variable, but not by its own value: ``A=$(realpath $A)``."""
    if name in {one for one, _ in spec.env}:
        return True
    texts = [text for text in code.values() if re.search(rf"\b{name}(\[[^]]*\])?\+?=", text)]
    if not texts:
        return False
    from jobgen.script.syntax import assignments, parse

    sets = (one for text in texts for one in assignments(parse(text.encode())))
    values = [node.text for one, _, node in sets if one == name]
    return any(not re.search(rf"\$({name}\b|{{{name}}})", value) for value in values)


def _reads(spec: Specification) -> Iterator[tuple[str, str]]:
    """Yield the names that the code of a job reads, each with its place."""
    texts = list(_texts(spec))
    for place, text in texts:
        for plain, braced in _READ.findall(_without_comments(text)):
            yield plain or braced, place
        yield from ((name, place) for name in _in_arithmetic(text))
    yield from ((name, place) for place, name in _in_evaluated(texts))
    for key in OPEN:
        value = getattr(spec, key) or ()
        words = (value,) if isinstance(value, str) else value
        yield from ((name, key) for name in expanded_names(words))
    boxes = {"container": (spec.image or "", *spec.bind, *spec.container_arg)}
    for place, words in {**_programs(spec), **boxes}.items():
        yield from ((name, place) for name in (expanded_names(words) if spec.expand else ()))


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda found: found[1] or "", text)


def _in_evaluated(texts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the names behind a backslash in the strings that some code evaluates, or that a variable of an
    ``eval`` has, each after its place: ``A="./a \\$B"; eval "$A"``."""
    found = "\n".join(one for _, text in texts for one in _EVAL.findall(text))
    evaluated = {*re.findall(r"\$\{?(\w+)", found)}
    for place, text in texts:
        strings = [value for name, value in _STRING.findall(text) if name in evaluated]
        for one in (*strings, *_EVAL.findall(text)):
            yield from ((place, name) for name in re.findall(r"\\\$\{?([A-Za-z_]\w*)", one))


def _in_arithmetic(text: str) -> Iterator[str]:
    """Yield the names without ``$`` that some code reads as variables: ``$((A + 1))``, ``[[ A -eq 1 ]]``."""
    if not re.search(r"\(\(|\blet\s|\[\[|\[[A-Za-z]", text):
        return
    from jobgen.script.bare_names import bare_names  # late: most jobs have no such code
    from jobgen.script.syntax import parse

    tree = parse(text.encode())
    yield from (node.text for node in bare_names(tree))
    for node in tree.all("variable_name"):
        parent = node.parent.type if node.parent is not None else ""
        if parent == "arithmetic_expansion" or parent.endswith("_expression"):
            yield node.text


def _texts(spec: Specification) -> Iterator[tuple[str, str]]:
    """Yield each code of a job, after its place."""
    code = {BY_KEY[key].name: getattr(spec, key) for key in CODE}
    code |= {place: _code(words) for place, words in _programs(spec).items()}
    yield from ((place, text) for place, text in code.items() if text)


def _programs(spec: Specification) -> dict[str, Sequence[str]]:
    steps = {f"program of step {at}": one.program for at, one in enumerate(spec.steps, 1)}
    return {"program": spec.program, **steps}


def _code(words: Sequence[str]) -> str:
    """Return the text that a shell runs, as after ``bash -c``."""
    at = code_at(words)
    return words[at] if 0 <= at < len(words) else ""
