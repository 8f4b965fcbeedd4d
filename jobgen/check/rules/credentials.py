"""Rules about keys, tokens and passwords."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from jobgen.check.rule import NOTE, WARNING, rule
from jobgen.rendering.runtime import MARK
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import expansions, literal
from jobgen.secrets import is_secret, masked_prose, secret_words

_PLACEHOLDER = (
    r"(?i).*(your|my_?|xxx|\.\.\.|todo|change|example|insert|here|token|_key|secret|placeholder|dummy|fake|hidden"
    r"|redacted|\*\*\*|[<{\[$]).*|[./~].*|.*\.\w{2,5}|(.)\2*"
)
# Commands of the shell itself: their arguments are in no list of processes.
_LOGINS = ("wandb", "huggingface-cli", "hf", "comet")
_BUILTINS = ("echo", "printf", "export", "[", "test", "declare", "local", "read", "unset", "set", ":", "")


@rule(
    "secret-in-script",
    WARNING,
    "A secret in the text of a script",
    """Who can read the script has the key: colleagues, a repository, and the scheduler, which keeps a copy
    of each script and shows it to administrators (`scontrol write batch_script`). Read it from a file that
    only you can read, or set it before you submit.""",
    fix="delete it at its service, and read a new one from a file: KEY=$(< ~/.config/key)",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    export WANDB_API_KEY=0a1b2c3d4e5f60718293a4b5c6d7e8f901234567
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    WANDB_API_KEY=$(< ~/.config/wandb)
    export WANDB_API_KEY
    srun python3 train.py
    """,
)
def secret_in_script(script: Script) -> Iterator[Hit]:
    found = [(node.line, name, literal(value) or "") for name, value, node in script.assignments]
    found += [
        (option.line, *part.partition("=")[::2])
        for option in script.options
        for part in option.value.split(",")
    ]
    for command in script.commands:
        words = [(word.line, literal(word) or "") for word in command.arguments]
        found += [(line, *text.partition("=")[::2]) for line, text in words if "=" in text]
        found += [(line, option, text) for (_, option), (line, text) in pairwise(words) if option[:1] == "-"]
        logs_in = command.name in _LOGINS and "login" in (text for _, text in words)
        found += [(line, "api_key" if logs_in else "", text) for line, text in words]
    seen: set[int] = set()
    for line, name, value in found:
        if line not in seen and _is_real(name, value):
            seen.add(line)
            reason = (
                f"{name.lstrip('-') or 'a word'} has a secret as its value: who reads the script can use it"
            )
            yield Hit(line, reason)
    yield from (one for one in _of_jobgen(script) if one.line not in seen)


def _of_jobgen(script: Script) -> Iterator[Hit]:
    """Yield the secrets in the comment and in the program of a script of jobgen, as jobgen warns of them."""
    if not any(line.startswith(MARK) for line in script.lines):
        return
    for option in script.options:
        if option.flag == "--comment" and masked_prose(option.value) != option.value:
            yield Hit.at(option, "the comment has a secret: who sees the job can use it", "leave it out")
    for launch in script.commands:
        words = [literal(word) or "" for word in launch.arguments]
        for one in secret_words(words):
            fix = f"make the script again with --env {one.variable}, or with --env-file FILE"
            reason = f"{one.text} is a secret: who reads the script can use it"
            yield Hit.at(launch.arguments[one.at], reason, fix)


def _is_real(name: str, value: str) -> bool:
    """Return whether a value is a secret, and neither a placeholder nor a path nor a word."""
    if (inner := re.fullmatch(r"(--?[\w-]+)=(.*)", value)) is not None:
        return _is_real(inner[1], inner[2])  # the next option, and no value
    if len(value) < 8 or not re.fullmatch(r"[\w.~+/=:@%!#-]+", value):
        return False
    if is_secret("", value):
        return not re.search(r"(?i)x{4}|your|:(password|token|pass)@", value)
    if not is_secret(name, value) or re.fullmatch(_PLACEHOLDER, value, re.S):
        return False
    return (
        len(value) > 11 and re.search(r"\d", value) is not None and re.search(r"[A-Za-z]", value) is not None
    )


@rule(
    "secret-argument",
    NOTE,
    "A secret on a command line",
    """All users of a node can see the arguments of its processes with `ps`. A variable of the environment,
    standard input or a file is visible only to their owner.""",
    fix="pass it in the environment, in a file, or on standard input",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py --wandb-key "$WANDB_API_KEY"
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    export WANDB_API_KEY
    srun python3 train.py
    """,
)
def secret_argument(script: Script) -> Iterator[Hit]:
    seen: set[str] = set()
    for command in script.commands:
        for word in () if command.name in _BUILTINS else command.arguments:
            for name, _ in expansions(word):
                if name not in seen and _names_a_secret(name) and "<<<" not in word.text:
                    seen.add(name)
                    reason = (
                        f"{command.name} gets the value of {name} as an argument, which ps shows to all users"
                    )
                    yield Hit.at(word, reason)


def _names_a_secret(name: str) -> bool:
    """Return whether a variable is one for a secret, and not for a key file or a token of a language."""
    other = r"(?i).*(ssh|private)_?key|.*_pwd|(?-i:[a-z]\w*)(?<!api)(?<!access)(?<!auth)(?<!hf)(?<!hub)_token"
    return is_secret(name, "value") and re.fullmatch(other, name) is None
