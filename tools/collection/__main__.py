"""Check and convert every batch script of a public collection, and compare the counts with the last ones.

Usage: python -m tools.collection CHECKOUT [--half HALF] [--sample N] [--shellcheck N] [--write]

CHECKOUT is a copy of https://github.com/converged-computing/jobspec-database. Only its development half is
read: the files below ``data/`` whose relative path has a SHA-256 that begins with 0 to 7. The other half is
for judging what was made with the first: ``--half other`` reads it. No script of the collection is part of this
project; ``counts.json`` holds numbers only.

Each script is checked, converted for each other scheduler and back, and converted to a job file, which is
rendered. ``problems`` must be empty. The status is 1 if there are problems or if the counts differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from support.require import need_command

from jobgen import JobSpec, render
from jobgen.check.checker import check
from jobgen.convert import request_reader
from jobgen.convert.result import Remark
from jobgen.convert.to_job_file import translation
from jobgen.convert.to_scheduler import conversion
from jobgen.errors import JobgenError
from jobgen.schedulers.table import SCHEDULERS
from jobgen.script.directives import guess
from jobgen.script.script import Script

COUNTS = Path(__file__).with_name("counts.json")
HALVES = {"development": "01234567", "other": "89abcdef"}
LIMIT = 20  # s for all work on one script; more is a hang
TARGETS = [name for name, row in SCHEDULERS.items() if row.prefix]
FIELDS = [
    "name",
    "queue",
    "account",
    "walltime",
    "nodes",
    "ranks_per_node",
    "cpus_per_rank",
    "gpus_per_node",
    "mem",
    "depend",
    "array",
    "mail_user",
    "rerun",
]
DEFAULTS = {"nodes": 1, "ranks_per_node": 1, "cpus_per_rank": 1}  # of the schedulers
_TEXTS = {".out", ".log", ".md", ".rst", ".ipynb"}  # of a job that printed its script, or about scripts
_DIRECTIVE = re.compile(rb"^\s*#\s*(SBATCH|PBS)\b", re.M)


class Result(NamedTuple):
    """What one script gave: counts by name, problems as sentences, and the converted scripts."""

    counts: Counter[str]
    problems: list[str]
    texts: dict[str, str]


def scripts(checkout: Path, half: str) -> Iterator[Path]:
    """Yield the distinct batch scripts of a half of the collection in the order of their paths."""
    data, seen = checkout / "data", set()
    for path in sorted(data.rglob("*")):
        name = os.fsencode(path.relative_to(data))
        if (
            hashlib.sha256(name).hexdigest()[0] not in HALVES[half]
            or path.suffix in _TEXTS
            or not path.is_file()
        ):
            continue
        source = path.read_bytes()
        digest = hashlib.sha256(source).digest()
        if len(source) < 1_000_000 and _DIRECTIVE.search(source) and digest not in seen:
            seen.add(digest)
            yield path


def examine(path: Path) -> Result:
    """Check and convert one script; an exception or a hang becomes a problem."""
    result = Result(Counter(), [], {})
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LIMIT)
    try:
        _examine(path, result)
    except Exception as error:  # whatever it is, it belongs into the list
        result.problems.append(f"{path}: {type(error).__name__}: {error}")
    finally:
        signal.alarm(0)
    return result


def _too_long(*_: object) -> None:
    raise TimeoutError(f"not done after {LIMIT} s")


def _examine(path: Path, result: Result) -> None:
    source = path.read_bytes()
    text = source.decode("utf-8", "replace")
    result.counts.update({f"check {one.severity} {one.rule}": 1 for one in check(source, str(path))})
    whose = guess(text.replace("\r", "").split("\n"))
    result.counts[f"scheduler {whose}"] += 1
    if whose not in TARGETS:
        return
    for target in TARGETS:
        if target != whose:
            _there_and_back(Script(source, whose), whose, target, result)
    _job_file(Script(source, whose), whose, result)


def _there_and_back(script: Script, whose: str, target: str, result: Result) -> None:
    there = conversion.convert(script, target)
    result.texts[target] = there.text
    _count(f"convert {target}", there.remarks, result)
    back = conversion.convert(Script(there.text.encode(), target), whose)
    remarks = " ".join(f"{one.what} {one.why}" for one in (*there.remarks, *back.remarks))
    differing = _differences(script, Script(back.text.encode(), whose))
    result.counts.update(f"back from {target} {name}" for name in differing if not remarks)


def _job_file(script: Script, whose: str, result: Result) -> None:
    done = translation.convert(script)
    _count("convert toml", done.remarks, result)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "job.toml")
        file.write_text(done.text, encoding="utf-8")
        try:
            again = render(JobSpec.from_file(file))
        except JobgenError as error:
            key, _, why = str(error).partition(" ")
            result.counts[f"toml refused {key}: {_kind(why.partition('): ')[2] or why)}"] += 1
            return
    result.counts["toml rendered"] += 1
    if not done.remarks:
        for name in _differences(script, Script(again.encode(), whose)):
            result.counts[f"toml again {name}"] += 1


def _differences(script: Script, other: Script) -> list[str]:
    one, two = (request_reader.read(each).request for each in (script, other))
    return [
        name
        for name in FIELDS
        if (getattr(one, name) or DEFAULTS.get(name)) != (getattr(two, name) or DEFAULTS.get(name))
    ]


def _count(what: str, remarks: tuple[Remark, ...], result: Result) -> None:
    result.counts[f"{what} {'with' if remarks else 'without'} remarks"] += 1
    result.counts.update({f"{what}: {_kind(one.why)}": 1 for one in remarks})


def _kind(text: str) -> str:
    """Return a message without the words of the script: quoted text, numbers, paths and variables."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\S*[/$=%]\S*|\d+|(?<=the type )\S+", "_", text.split("\n")[0])
    return " ".join(text.split())[:100]


def worse_for_bash(path: Path, texts: dict[str, str]) -> Iterator[str]:
    """Yield a sentence for each conversion that bash cannot read although it can read the original.

    Conversions have no carriage returns, which bash takes for names of files behind a ``>``.
    """
    if _bash(path.read_bytes().replace(b"\r\n", b"\n")):
        for target, text in texts.items():
            if not _bash(text.encode()):
                yield f"{path}: bash -n refuses the script for {target}"


def _bash(source: bytes) -> bool:
    return subprocess.run(["bash", "-n"], input=source, capture_output=True, check=False).returncode == 0


def worse_for_shellcheck(path: Path, texts: dict[str, str]) -> Iterator[str]:
    """Yield a sentence for each code of shellcheck that a conversion has and the original has not."""
    had = _shellcheck(path.read_bytes())
    for target, text in texts.items():
        for code in sorted(_shellcheck(text.encode()) - had):
            yield f"shellcheck {target} {code}"


def _shellcheck(source: bytes) -> set[str]:
    command = [need_command("shellcheck"), "--shell=bash", "--severity=warning", "--format=gcc", "-"]
    done = subprocess.run(command, input=source, capture_output=True, check=False)
    return set(re.findall(r"\[(SC\d+)\]", done.stdout.decode("utf-8", "replace")))


def work(job: tuple[Path, bool]) -> tuple[Counter[str], list[str], float]:
    """Return the counts and problems of one script, and the seconds of check and convert."""
    path, linted = job
    began = time.process_time()
    counts, problems, texts = examine(path)
    seconds = time.process_time() - began
    if linted:
        counts.update(worse_for_shellcheck(path, texts))
    return counts, [*problems, *worse_for_bash(path, texts)], seconds


def measure(paths: list[Path], every: int, progress: Callable[[int], None]) -> dict[str, Any]:
    """Return the counts, the problems and the speed of all scripts; shellcheck reads each ``every``-th."""
    total: Counter[str] = Counter({"scripts": len(paths)})
    problems: list[str] = []
    seconds = 0.0
    jobs = [(path, every > 0 and number % every == 0) for number, path in enumerate(paths)]
    with multiprocessing.Pool() as pool:
        for number, (counts, wrong, took) in enumerate(pool.imap(work, jobs, 20), 1):
            total.update(counts)
            problems += wrong
            seconds += took
            progress(number)
    return {"counts": dict(sorted(total.items())), "problems": problems, "seconds": round(seconds)}


def report(now: dict[str, Any], last: dict[str, int]) -> int:
    """Print the problems and the counts that differ from the last ones; return the exit status."""
    changed = {
        name: (last.get(name, 0), now["counts"].get(name, 0))
        for name in sorted({*last, *now["counts"]})
        if last.get(name, 0) != now["counts"].get(name, 0)
    }
    for problem in now["problems"]:
        print(problem)
    for name, (before, after) in changed.items():
        print(f"{before:7} -> {after:7}  {name}")
    print(f"{now['counts']['scripts']} scripts, {now['seconds']} s of CPU, {len(now['problems'])} problems")
    return int(bool(changed or now["problems"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--half", choices=HALVES, default="development")
    parser.add_argument("--sample", type=int, default=10, help="each N-th script, as in counts.json; 1: all")
    parser.add_argument("--shellcheck", type=int, default=100, help="each N-th script; 0: none")
    parser.add_argument("--counts", type=Path, default=COUNTS, help="the last counts")
    parser.add_argument("--write", action="store_true", help="write the new counts")
    arguments = parser.parse_args()
    if not (arguments.checkout / "data").is_dir():
        parser.error(f"{arguments.checkout} has no folder data; it must be a checkout of jobspec-database")
    paths = list(scripts(arguments.checkout, arguments.half))[:: arguments.sample]
    now = measure(
        paths, arguments.shellcheck, lambda done: print(f"\r{done}/{len(paths)}", end="", file=sys.stderr)
    )
    last = json.loads(arguments.counts.read_text()) if arguments.counts.exists() else {}
    if arguments.write:
        arguments.counts.write_text(json.dumps(now["counts"], indent=1) + "\n")
    return report(now, last)


if __name__ == "__main__":
    sys.exit(main())
