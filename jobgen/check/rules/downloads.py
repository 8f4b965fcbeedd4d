"""The rule about downloads in a job."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.rule import NOTE, WARNING, rule_once
from jobgen.launch.command_line import is_python
from jobgen.script.command_kinds import STATE, TOOLS
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
    WARNING,
    "Downloads inside the job",
    """Compute nodes often have no internet access. Where they do, the GPUs of every job wait for the
    download. (A script that sets a proxy, or loads a module of that name, shows that its nodes have the internet. It is a note if the script names a mirror, does nothing else, is called an installation,
    chooses the download by a `case`, or runs a program that needs the internet itself, such as `wandb login`, or installs a client of a service, and if it only installs a newer pip.)""",
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
    later: Hit | None = None  # of a newer pip, without which the job runs, too
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
        meant = _is_meant(script) or command.node.under("case_statement") or _is_online(script)
        fix = _OF_JOB_FOLDER if _is_in_folder_of_job(script, command) else ""
        if {word for word in words if word[0] != "-"} - {"install"} <= _OF_PIP and "install" in words:
            later = later or Hit.at(command.node, reason, fix, level=NOTE)
        else:
            yield Hit.at(command.node, reason, fix, level=NOTE if meant else None)
    if later is not None:
        yield later


_OF_PIP = {"pip", "setuptools", "wheel"}
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


def _is_online(script: Script) -> bool:
    """Return whether the program of a job needs the internet itself: a bot, a push, or a log of W&B."""
    if any("offline" in value.text for _, value, _ in script.assignments):
        return False
    bots = (word for one in script.commands if is_python(one.program) for word in one.literals)
    packages = (word for one in script.commands if "install" in one.literals for word in one.literals)
    texts = (one.node.text for one in script.commands)
    return (
        "WANDB_API_KEY" in script.values
        or any(map(_BOT.fullmatch, bots))
        or any(map(_ONLINE.search, texts))
        or any(map(_CLIENT.match, packages))
    )


_BOT = re.compile(r"(?i)\S*(?<!ro)bot(\.py)?")
# Packages that read pages or ask services of the internet.
_CLIENT = re.compile(
    r"(?i)(?:google|googlesearch-python|tweepy|praw|scrapy|selenium|bs4|beautifulsoup4|lyricsgenius|yfinance|openai|anthropic|"
    r"discord(?:\.py)?|slack_sdk|youtube[-_]dl|yt-dlp|gdown|boto3)(?![\w.-])"
)
_ONLINE = re.compile(r"\bwandb\s+(?:login|agent|sync|online)\b|\bgit\s+push\b|\bngrok\b|push_to_hub")


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


def _is_meant(script: Script) -> bool:
    """Return whether a script names a mirror, or downloads are the only purpose of the job."""
    mirror = any(re.fullmatch(r"(?i)pip_\w+", name) for name, _, _ in script.assignments)
    if mirror or _INSTALLATION.search(os.path.splitext(script.name)[0]):
        return True
    downloads = sum(one.name in _DOWNLOADS or "pip" in one.literals for one in script.commands)
    # Several are an installation, which may need a GPU.
    works = (_is_work(script, one) for one in script.commands)
    return (downloads > 1 or not _has_gpus(script)) and not any(works)


_INSTALLATION = re.compile(
    r"(?i)(?<![a-z])(install|set_?up|build|compile|download|update)|(?<![a-z])(make|create)[-_]?(conda|v?env)"
)


def _is_work(script: Script, command: Command) -> bool:
    """Return whether a command is neither a download nor a preparation. Without GPUs a small program is none."""
    if {"pip", "venv", "virtualenv", "setup.py"} & {os.path.basename(word) for word in command.literals}:
        return False
    small = {*TOOLS, *STATE, *_DOWNLOADS, *script.functions}
    return command.works or (_has_gpus(script) and command.name not in small)


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
