"""The rule about downloads in a job."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.rule import NOTE, rule_once
from jobgen.script.commands import Command
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node

_DOWNLOADS = {
    "pip": ("install", "download"), "pip3": ("install", "download"), "conda": ("install", "create", "update"),
    "mamba": ("install", "create"), "git": ("clone", "pull", "fetch"), "wget": (), "curl": (),
    "huggingface-cli": ("download",), "hf": ("download",), "apt-get": ("install",), "apt": ("install",),
    "uv": ("pip", "sync"),
}  # fmt: skip


@rule_once(
    "download-in-job",
    NOTE,
    "Downloads inside the job",
    """Compute nodes often have no internet access. Where they do, the GPUs of every job wait for the
    download. (A script that sets a proxy, or loads a module of that name, shows that its nodes have the internet.)""",
    fix="run it on the login node, before the job",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    pip install deepspeed
    srun python3 train.py
    """,
    good={"pip install deepspeed": ""},
)
def download(script: Script) -> Iterator[Hit]:
    proxies = [name for name, value, _ in script.assignments if value.text]
    modules = (word for command in script.named("module", "ml") for word in command.literals)
    if not script.is_batch or any(map(_PROXY.fullmatch, proxies)) or any("proxy" in word for word in modules):
        return
    for command in script.own_runs:
        verbs = _DOWNLOADS.get(command.name)
        words, name = command.literals, command.name
        if command.name in ("python", "python3") and words[:2] == ["-m", "pip"]:
            verbs, words, name = ("install", "download"), words[2:], f"{command.name} -m pip"
        if verbs is None or "--no-index" in words or (verbs and not set(words) & set(verbs)):
            continue
        if not verbs and not any(word.unquoted.startswith(("http", "ftp")) for word in command.arguments):
            continue
        local = any(_LOCAL.search(word.text) for word in command.arguments)
        if local or _from_files(words, verbs) or _is_of_git(script, command) or sends(command):
            continue
        waits = ", on time that the GPUs wait" if _has_gpus(script) else ""
        reason = f"{name} needs the internet, which many compute nodes do not have{waits}"
        fix = _OF_JOB_FOLDER if _is_in_folder_of_job(script, command) else ""
        yield Hit.at(command.node, reason, fix)


_PROXY = re.compile(r"(?i)(https?|ftp|all)_proxy")
_OF_JOB_FOLDER = "download it on the login node, before the job, into a shared folder, and take it from there"
_JOB_FOLDER = re.compile(
    r"\$\{?(?:\w*TMP(?:DIR)?|\w*SCRATCHDIR|JOB_?SCRATCH|LOCAL_?SCRATCH|PBS_JOBFS|\w*JOB_?ID)\b|^/tmp/|^/dev/shm\b"
)


def _is_in_folder_of_job(script: Script, command: Command) -> bool:
    """Return whether a download goes to a folder that only this job has: pip installs into its environment there."""

    def last(*names: str) -> list[Node]:
        before = [one for one in script.named(*names) if one.node.start < command.node.start]
        return list(before[-1].arguments) if before else []

    here = command.name == "git" or _REMOTE.search(command.node.text) is not None
    environment = [] if here else last("source", ".")
    here |= bool(environment) and re.match(r"[\"']?[/~$]", environment[0].text) is None
    words = [*command.arguments, *environment, *(last("cd", "pushd") if here else ())]
    return any(_JOB_FOLDER.search(script.path_text(word)) for word in words)


def _is_of_git(script: Script, command: Command) -> bool:
    """Return whether git copies a directory, or updates the copy of one."""
    cloned = [one for one in script.own_running("git") if "clone" in one.literals]
    copies = not any(_REMOTE.search(one.node.text) for one in cloned)
    return command.name == "git" and bool(cloned) and copies


def sends(command: Command) -> bool:
    """Return whether curl sends a message, and does not download."""
    words = " ".join(["", *(word.text for word in command.arguments)])
    return command.name == "curl" and _SENT.search(words) is not None


_SENT = re.compile(
    r" (-X ?\"?P(OST|UT)|--request[ =]\"?P(OST|UT)|-d|--data\S*|-F|--form\S*|-T|--upload-file|--json)\b"
)


def _has_gpus(script: Script) -> bool:
    return bool(script.request.gpus or script.request.gpus_per_node)


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
