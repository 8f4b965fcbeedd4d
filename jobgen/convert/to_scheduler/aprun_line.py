"""Command lines of aprun of Cray's ALPS.

https://www.hpe.com/psnow/resources/ebooks/a00114008en_us_v2/Run_Applications_Using_the_aprun_Command.html
"""

from __future__ import annotations

import re

from jobgen.convert import aprun
from jobgen.convert.to_scheduler.launch_line import LaunchLine, LaunchWords, Unreadable, Value
from jobgen.convert.to_scheduler.srun_line import masks

_LONG = {
    "--architecture": "-a", "--bypass-app-transfer": "-b", "--batch-args": "-B", "--reconnect": "-C",
    "--cc": "-cc", "--cpu-binding": "-cc", "--cpu-binding-file": "-cp", "--cpus-per-pe": "-d",
    "--debug": "-D", "--environment-override": "-e", "--access-mode": "-F", "--cpus-per-cu": "-j",
    "--node-list": "-L", "--memory-per-pe": "-m", "--pes": "-n", "--pes-per-node": "-N",
    "--protection-domain": "-p", "--quiet": "-q", "--specialized-cpus": "-r", "--relaunch": "-R",
    "--pes-per-numa-node": "-S", "--numa-node-list": "-sl", "--numa-nodes-per-node": "-sn",
    "--strict-memory-containment": "-ss", "--cpu-time-limit": "-t", "--sync-output": "-T",
}  # fmt: skip
_MEANINGS = {"-n": "ranks", "-N": "each", "-d": "cpus", "-ss": "near", "-q": "quiet"}
_BINDINGS = {"cpu": "core", "depth": "depth", "numa_node": "numa", "none": "none"}


def read(words: LaunchWords) -> LaunchLine:
    """Return the options of aprun.

    Raises:
        Unreadable: the line cannot be translated.
    """
    line = LaunchLine(marks=[aprun.NAME])
    for word in words:
        name, value = _option(word, words)
        text = f"{name} {value.text}".strip()
        if name in aprun.NOTES:
            line.notes.append((text, aprun.NOTES[name]))
        elif name in _MEANINGS:
            line.set(_MEANINGS[name], value)
        elif name == "-e":
            line.exports.append(value.text)
        elif name == "-cc":
            _bind(line, value, text)
        else:
            line.lost.append(text)
    if "ranks" not in line.values and not any(text == "-B" for text, _ in line.notes):
        line.set("ranks", Value("1", "1"))
    line.program = words.program
    return line


def _option(word: Value, words: LaunchWords) -> tuple[str, Value]:
    """Return the short name of an option, and its value, which may be in the same word."""
    given, equals, _ = word.text.partition("=")
    if (name := _LONG.get(given, given)) in aprun.FLAGS:
        return name, Value("", None)
    if name in _LONG.values():
        return name, word.after(len(given) + 1) if equals else words.next()
    if word.text[:2] in _LONG.values():  # -n24
        return word.text[:2], word.after(2)
    raise Unreadable(f"{word.text} is not an option of {aprun.NAME}")


def _bind(line: LaunchLine, value: Value, text: str) -> None:
    """Read a binding: of a list, each rank has the next core, or the next cores between colons."""
    if (cores := value.known or value.text) in _BINDINGS:
        line.values["bind"] = _BINDINGS[cores]
    elif re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", cores, re.ASCII):
        ranges = [[int(end) for end in one.split("-")] for one in cores.split(",")]
        numbers = [str(core) for one in ranges for core in range(one[0], one[-1] + 1)]
        line.values["mask"] = f"map_cpu:{','.join(numbers)}"
    elif mask := masks(f"list:{cores}"):
        line.values["mask"] = mask
    else:
        line.lost.append(text)
