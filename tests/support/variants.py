"""Other forms of a script that do the same in bash, or ask the scheduler for the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from jobgen.script.syntax import Node, literal, parse

# Commands that change the shell that runs them, or that are no programs: no other process can run them.
_OF_SHELL = re.compile(
    r"\s*(?:cd|module|ml|source|\.|export|declare|set|trap|wait|conda|exit|read|unset|ulimit|shopt|shift|return|eval"
    r"|local|readonly|alias|exec|pushd|popd|spack)\b|\s*\w+\+?="
)
_SIMPLE = (
    "command",
    "redirected_statement",
    "pipeline",
    "list",
    "variable_assignment",
    "variable_assignments",
)
_STATEMENTS = (
    *_SIMPLE,
    *(
        "declaration_command",
        "for_statement",
        "while_statement",
        "if_statement",
        "case_statement",
        "negated_command",
    ),
    *("subshell", "compound_statement", "test_command", "c_style_for_statement"),
)
_WRAPS = {
    "function": "work_of_it() {{\n    {0}\n}}\nwork_of_it",
    "braces": "{{\n    {0}\n}}",
    "colon": ": ; {0}",
}
_PREFIXES = {
    "time": "time ",
    "time -p": "time -p ",
    "/usr/bin/time": "/usr/bin/time -v ",
    "nice": "nice -n 5 ",
    "env": "env ",
    "env A=B": "env COLOUR=1 ",
    "prefix": "COLOUR=1 ",
    "nohup": "nohup ",
    "command": "command ",
    "stdbuf": "stdbuf -oL -eL ",
    "eval": "eval ",
}
_LETTERS = {  # of srun and sbatch
    **{"nodes": "N", "ntasks": "n", "cpus-per-task": "c", "time": "t", "output": "o", "error": "e"},
    **{"job-name": "J", "partition": "p", "account": "A", "array": "a", "dependency": "d", "gpus": "G"},
}
_WITH_SIGN = ("srun", "torchrun", "deepspeed", "python3", "python", "accelerate")


# Commands whose words no variable replaces in scripts that people write.
_OF_TEXT = ("echo", "printf", "test", "[", "set", "trap", "wait", "export", "exit", "awk", "sed")


class Variant(NamedTuple):
    """A script in another form, and the name of the form."""

    form: str
    text: str


def variants(text: str) -> Iterator[Variant]:
    """Yield a script in other forms: each differs in one statement, one word or one directive."""
    yield from of_directives(text)
    yield from of_body(text)
    for place in statements(text):
        yield from of_statement(text, place)
        yield from of_words(text, place)


def statements(text: str) -> list[Node]:
    """Return the statements of the script that are in no other one."""
    found = parse(text.encode()).children
    return [one for one in found if one.type in _STATEMENTS and not one.text.startswith("set -")]


def _changed(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def _place(text: str, node: Node) -> tuple[int, int, str]:
    """Return the start and the end of a statement, and its text with the lines that a comment above silences."""
    start, end = node.start, node.end
    after = node.next()
    if (after is not None and after.type == "&") or (after is not None and after.type == "heredoc_body"):
        end = after.end
    before = text[:start].rstrip(" ")
    while (line := before.rstrip("\n").rpartition("\n")[2]).lstrip().startswith(
        "# jobgen:"
    ) and before.endswith("\n"):
        start = len(before.rstrip("\n")) - len(line)
        before = text[:start]
    return start, end, text[start:end]


def of_statement(text: str, node: Node) -> Iterator[Variant]:
    """Yield the script with a statement in other statements, or behind commands that run it."""
    start, end, own = _place(text, node)
    document = "<<" in own
    for name, form in _WRAPS.items():
        if own.startswith("#") and name == "colon":
            continue
        if name == "function" and re.search(r"\b(?:declare|local)\b", own):
            continue
        yield Variant(name, _changed(text, start, end, form.format(own)))
    if not own.startswith("#") and not document and not own.endswith("&"):
        yield Variant("comment behind", _changed(text, start, end, f"{own}  # as it must be"))
    if _OF_SHELL.match(own.lstrip("# ")) or own.startswith("#") or own.endswith("&") or node.type == "list":
        return
    yield Variant("subshell", _changed(text, start, end, f"(\n    {own}\n)"))
    if document:
        return
    if node.type == "command" or (node.type == "redirected_statement" and node.children[0].type == "command"):
        for name, prefix in _PREFIXES.items():
            if name == "eval" and re.search(r"['\"\\$]", own):
                continue
            if re.match(r"\w+=", own) and name not in ("time", "time -p", "prefix"):
                continue
            yield Variant(name, _changed(text, start, end, prefix + own))
    if node.type == "command":
        yield Variant("redirection", _changed(text, start, end, f"{own} < /dev/null"))
        yield Variant("redirection first", _changed(text, start, end, f"< /dev/null {own}"))
        yield Variant("error to output", _changed(text, start, end, f"{own} 2>&1"))
        yield Variant("to a file", _changed(text, start, end, f"{own} > out.log 2>&1"))
        if "pipefail" in text:
            yield Variant("tee", _changed(text, start, end, f"{own} 2>&1 | tee out.log"))
        name = next((one for one in node.children if one.field == "name"), None)
        if (
            name is not None
            and re.fullmatch(r"[\w.-]+", name.text)
            and name.text not in ("echo", "printf", "[", "test")
        ):
            yield Variant("path", _changed(text, name.start, name.start, "/usr/bin/"))
            yield Variant("quoted name", _changed(text, name.start, name.end, f'"{name.text}"'))
            with_value = _changed(text, name.start, name.end, "$program")
            yield Variant("name in a variable", _changed(with_value, start, start, f"program={name.text}\n"))
            words = [one for one in node.children if one.field in ("name", "argument")]
            first = words[:2]
            if len(first) == 2 and all(re.fullmatch(r"[\w.=/:-]+", one.text) for one in first):
                both = text[first[0].start : first[1].end]
                with_value = _changed(text, first[0].start, first[1].end, "$program")
                yield Variant(
                    "name and word in a variable", _changed(with_value, start, start, f'program="{both}"\n')
                )


def of_words(text: str, node: Node) -> Iterator[Variant]:
    """Yield the script with words of a statement in variables, and in other forms."""
    start, _, own = _place(text, node)
    if node.type not in ("command", "redirected_statement", "pipeline") or own.startswith("#"):
        return
    command = next(node.all("command"))
    name = command.get("name")
    words = [one for one in command.children if one.field == "argument"]
    if name is None or not words:
        return
    broken = text[:start] + " \\\n    ".join(
        [text[start : words[0].start].rstrip()] + [w.text for w in words]
    )
    yield Variant("a line a word", broken + text[words[-1].end :])
    if name.text in _OF_TEXT:
        return
    plain = [
        one for one in words if (value := literal(one)) is not None and re.fullmatch(r"[\w./=:,@%+-]+", value)
    ]
    for one in plain:
        value = literal(one) or ""
        option, sign, rest = value.partition("=")
        for form, new in (
            ("variable", '"$own_value"'),
            ("bare variable", "${own_value}"),
            ("default of a variable", '"${own_value:-none}"'),
        ):
            yield Variant(
                form, _changed(_changed(text, one.start, one.end, new), start, start, f"own_value={value}\n")
            )
            if sign and rest and value.startswith("-"):
                part = new.strip('"')
                changed = _changed(
                    text, one.start, one.end, f'{option}="{part}"' if new[0] == '"' else f"{option}={part}"
                )
                yield Variant(f"{form} in an option", _changed(changed, start, start, f"own_value={rest}\n"))
        changed = _changed(text, one.start, one.end, '"$own_value"')
        yield Variant(
            "two variables", _changed(changed, start, start, f"first_value={value}\nown_value=$first_value\n")
        )
        yield Variant("declared variable", _changed(changed, start, start, f"declare -r own_value={value}\n"))
    whole = text[words[0].start : words[-1].end]
    if all(one in plain for one in words):
        changed = _changed(text, words[0].start, words[-1].end, "$own_options")
        yield Variant("options in a variable", _changed(changed, start, start, f'own_options="{whole}"\n'))
        yield Variant(
            "options in parts",
            _changed(
                changed,
                start,
                start,
                f'own_options="{words[0].text}"\n'
                + "".join(f'own_options+=" {one.text}"\n' for one in words[1:]),
            ),
        )
    changed = _changed(text, words[0].start, words[-1].end, '"${own_options[@]}"')
    yield Variant("options in an array", _changed(changed, start, start, f"own_options=({whole})\n"))
    added = "own_options=()\n" + "".join(f"own_options+=({one.text})\n" for one in words)
    yield Variant("options added to an array", _changed(changed, start, start, added))
    command_line = _changed(text, command.start, words[-1].end, '"${command_line[@]}"')
    if name.text.isidentifier() and not re.match(r"\w+=", own):
        yield Variant(
            "command in an array",
            _changed(command_line, start, start, f"command_line=({name.text} {whole})\n"),
        )
        if all(one in plain for one in words):
            yield Variant(
                "command in a variable",
                _changed(
                    _changed(text, command.start, words[-1].end, "$command_line"),
                    start,
                    start,
                    f'command_line="{name.text} {whole}"\n',
                ),
            )
    yield from _of_options(text, name.text, words)


def _of_options(text: str, name: str, words: list[Node]) -> Iterator[Variant]:
    """Yield the script with long options of a command in other forms."""
    if name not in _WITH_SIGN:
        return
    for at, one in enumerate(words):
        match = re.fullmatch(r"--([\w-]+)=(.+)", one.text, re.DOTALL)
        after = words[at + 1] if at + 1 < len(words) else None
        if match is not None:
            forms = {"value behind": f"--{match[1]} {match[2]}"}
            letter = _LETTERS.get(match[1]) if name == "srun" else None
            if letter and all(each.text.startswith("-") for each in words[:at]):
                forms |= {"short option": f"-{letter} {match[2]}", "joined option": f"-{letter}{match[2]}"}
            if name == "torchrun":
                forms["underscores"] = f"--{match[1].replace('-', '_')}={match[2]}"
            for form, new in forms.items():
                yield Variant(form, _changed(text, one.start, one.end, new))
        elif after is not None and name != "deepspeed" and _takes_value(one.text, after.text):
            yield Variant("value joined", _changed(text, one.end, after.start, "="))


def _takes_value(option: str, after: str) -> bool:
    flags = ("--standalone", "--overlap", "--exact", "--exclusive")
    is_value = re.match(r"[\w\"$/.]", after) and not after.endswith(".py")
    return option not in flags and re.fullmatch(r"--[\w-]+", option) is not None and bool(is_value)


def of_body(text: str) -> Iterator[Variant]:
    """Yield the script with all its statements in a function, in braces or in one branch."""
    nodes = statements(text)
    first = next((one for one in nodes if not re.match(r"set\b", one.text)), None)
    if first is None or "<<" in text or "\nexit" in text:
        return
    start, _, _ = _place(text, first)
    body = text[start:].rstrip("\n")
    indented = body.replace("\n", "\n    ")
    for name in ("function", "braces"):
        if name == "function" and re.search(r"\b(?:declare|local)\b", body):
            continue
        yield Variant(f"body in {name}", text[:start] + _WRAPS[name].format(indented) + "\n")
    yield Variant("body in main", text[:start] + f'main() {{\n    {indented}\n}}\n\nmain "$@"\n')


def of_directives(text: str) -> Iterator[Variant]:
    """Yield the script with its directives in another order, or in other forms."""
    lines = text.split("\n")
    places = [at for at, line in enumerate(lines) if re.match(r"#(?:SBATCH|PBS) ", line)]
    if not places or any(line.endswith("\\") for line in lines[: places[-1] + 1]):
        return

    def with_lines(new: dict[int, str]) -> str:
        return "\n".join(new.get(at, line) for at, line in enumerate(lines))

    if "hetjob" not in text and places == list(range(places[0], places[-1] + 1)):
        turned = dict(zip(places, [lines[at] for at in reversed(places)], strict=True))
        yield Variant("directives in another order", with_lines(turned))
    for sign, name in (("  ", "blanks"), ("\t", "tab")):
        yield Variant(
            f"{name} in directives",
            with_lines({at: re.sub(r"^(#\w+) ", rf"\1{sign}", lines[at]) for at in places}),
        )
    yield Variant("blanks behind directives", with_lines({at: lines[at] + "  " for at in places}))
    yield Variant(
        "comments between directives", with_lines({at: lines[at] + "\n# as it must be\n\n" for at in places})
    )
    slurm = {at: re.sub(r"(?<=\s)--([\w-]+)=(\S+)", r"--\1 \2", lines[at]) for at in places}
    yield Variant("values behind options of directives", with_lines(slurm))
    quoted = {at: re.sub(r"(?<=\s)--([\w-]+)=(\S+)", r'--\1="\2"', lines[at]) for at in places}
    yield Variant("quoted values of directives", with_lines(quoted))
    short = {
        at: re.sub(
            r"--([\w-]+)=",
            lambda one: f"-{_LETTERS[one[1]]} " if one[1] in _LETTERS else one[0],
            lines[at],
        )
        for at in places
    }
    yield Variant("short options of directives", with_lines(short))
    joined = {
        at: re.sub(
            r"--([\w-]+)=",
            lambda one: f"-{_LETTERS[one[1]]}" if one[1] in _LETTERS else one[0],
            lines[at],
        )
        for at in places
    }
    yield Variant("joined options of directives", with_lines(joined))
    yield Variant(
        "joined letters of directives",
        with_lines({at: re.sub(r"(^#PBS) (-[lNqAoevWJtpa]) ", r"\1 \2", lines[at]) for at in places}),
    )
    if "hetjob" not in text and len(places) > 1 and not any("#" in lines[at][1:] for at in places):
        one_line = dict.fromkeys(places, "")
        rest = " ".join(lines[at].split(None, 1)[1] for at in places)
        one_line[places[0]] = f"{lines[places[0]].split()[0]} {rest}"
        kept = [one_line.get(at, line) for at, line in enumerate(lines) if at not in places[1:]]
        yield Variant("directives in one line", "\n".join(kept))
    resources = [at for at in places if re.match(r"#PBS -l \S+$", lines[at])]
    if len(resources) > 1:
        values = ",".join(lines[at].split()[2] for at in resources)
        kept = [
            f"#PBS -l {values}" if at == resources[0] else line
            for at, line in enumerate(lines)
            if at not in resources[1:]
        ]
        yield Variant("resources in one option", "\n".join(kept))
