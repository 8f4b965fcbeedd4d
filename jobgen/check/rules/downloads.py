"""The rule about downloads in a job."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.rule import NOTE, WARNING, rule
from jobgen.script.command_kinds import STATE, TOOLS
from jobgen.script.commands import Command
from jobgen.script.script import Hit, Script

_DOWNLOADS = {
    "pip": ("install", "download"), "pip3": ("install", "download"), "conda": ("install", "create", "update"),
    "mamba": ("install", "create"), "git": ("clone", "pull", "fetch"), "wget": (), "curl": (),
    "huggingface-cli": ("download",), "hf": ("download",), "apt-get": ("install",), "apt": ("install",),
    "uv": ("pip", "sync"),
}  # fmt: skip


@rule(
    "download-in-job",
    WARNING,
    "Downloads inside the job",
    """Compute nodes often have no internet access. Where they do, the GPUs of every job wait for the
    download. (It is a note if the script names a mirror or a proxy, or does nothing else.)""",
    fix="run it on the login node, before the job",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    pip install deepspeed
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py
    """,
)
def download(script: Script) -> Iterator[Hit]:
    if not script.is_batch:
        return
    for command in script.commands:
        verbs = _DOWNLOADS.get(command.name)
        words, name = command.literals, command.name
        if command.name in ("python", "python3") and words[:2] == ["-m", "pip"]:
            verbs, words, name = ("install", "download"), words[2:], f"{command.name} -m pip"
        if verbs is None or "--no-index" in words or (verbs and not set(words) & set(verbs)):
            continue
        if not verbs and not any(
            word.text.strip("\"'").startswith(("http", "ftp")) for word in command.arguments
        ):
            continue
        local = any(_LOCAL.search(word.text) for word in command.arguments)
        if local or _from_files(words, verbs) or ("clone" in words and not _REMOTE.search(command.node.text)):
            continue
        gpus = script.request.gpus or script.request.gpus_per_node
        waits = ", on time that the GPUs wait" if gpus else ""
        reason = f"{name} needs the internet, which many compute nodes do not have{waits}"
        yield Hit.at(command.node, reason, level=NOTE if _is_meant(script) else None)
        return


def _is_meant(script: Script) -> bool:
    """Return whether a script names a mirror or a proxy, or downloads are the only purpose of the job."""
    mirror = any(re.fullmatch(r"(?i)pip_\w+|\w*_proxy", name) for name, _, _ in script.assignments)
    gpus = script.request.gpus or script.request.gpus_per_node
    several = (
        sum(one.name in _DOWNLOADS for one in script.commands) > 1
    )  # an installation, which may need a GPU
    return mirror or ((several or not gpus) and not any(_is_work(script, one) for one in script.commands))


def _is_work(script: Script, command: Command) -> bool:
    """Return whether a command is neither a download nor a preparation. Without GPUs a small program is none."""
    if {"pip", "venv"} & set(command.literals):
        return False
    gpus = script.request.gpus or script.request.gpus_per_node
    small = {*TOOLS, *STATE, *_DOWNLOADS, *script.functions}
    return command.works or (bool(gpus) and command.name not in small)


_REMOTE = re.compile(r"://|\w@[\w.-]+:")
# A machine of the cluster: this one, one without a domain, or one in a variable.
_LOCAL = re.compile(
    r"://(localhost|127\.|169\.254\.|0\.0\.0\.0|(\$\{?\w+\}?|[\w-]+)(:(\d+|\$\{?\w+\}?))?(/|\"|'|$))"
)


def _from_files(words: list[str], verbs: tuple[str, ...]) -> bool:
    """Return whether only files are installed: wheels, or without what they depend on."""
    named = [word for word in words if not word.startswith("-") and word not in verbs]
    wheels = bool(named) and all(re.fullmatch(r"(?!\w+:).*\.whl", word) for word in named)
    return wheels or ("--no-deps" in words and all(word[:1] in "/.~" for word in named))
