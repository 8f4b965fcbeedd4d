"""Short trials: tests, demonstrations and benchmarks. A fault in one costs minutes, and no result."""

from __future__ import annotations

import os
import re
from functools import lru_cache

from jobgen.check.ignored_failures import does_little, is_probe, programs, shows_installation
from jobgen.script.script import Script


@lru_cache(maxsize=8)
def is_trial(script: Script) -> bool:
    """Return whether a job loses little if it fails: by its limit, names, folder or programs."""
    request = script.request
    limit = request.walltime
    if limit is not None and limit * (request.nodes or 1) <= _SHORT and not request.array:
        return True
    if limit is not None and limit > _LONG:
        return False
    return is_trial_by_name(script)


def is_trial_by_name(script: Script) -> bool:
    """Return whether a job is a trial by its names, folder or programs, whatever its limit."""
    request = script.request
    names = (os.path.splitext(script.name)[0], request.name, request.queue)
    qos = (one.value for one in script.options_of("--qos"))
    return (
        any(_NAME.search(one) for one in (*names, *qos) if one) or _is_in_folder(script) or _measures(script)
    )


_SHORT = 1800  # seconds of a node
_LONG = 7200  # seconds; no trial takes longer

_WORDS = (
    r"tests?|testing|c?test|tst\d*|demos?|tutorials?|hello|beginners?|exercises?|lessons?|debug(?:ging)?|"
    r"toy|smoke|sanity|bench(?:mark(?:s|ing)?)?|profil(?:er?|ing)|perf|jenkins"
)
# In the name of the script, of the job, of its queue or its QoS.
_NAME = re.compile(
    rf"(?i)(?<![a-z])(?:{_WORDS}|examples?|quick(?:start)?|plots?|visuali[sz](?:e|ing|ations?)|counts?|analy(?:[sz]e|sis))(?![a-z])|"
    r"[cg]putest"
)
_FOLDER = re.compile(rf"(?i)(?!test_)\.?(?:[a-z\d.]+[-_])?(?:{_WORDS}|ci)(?:\d+|[-_][a-z\d]+)?")
_BENCH = re.compile(r"(?i)(?:[a-z\d.]+[-_])?bench(?:mark(?:s|ing)?)?(?:[-_][a-z\d]+)?")
_EXAMPLES = re.compile(r"(?i)(?:.*[^a-z])?examples?")
_TRAINS = re.compile(r"(?i)train|fine_?-?tun")
_DEPTH = 2  # folders of a path that are about the script


def _is_in_folder(script: Script) -> bool:
    """Return whether a script is in a folder of trials, or in one of examples and trains nothing."""
    above = os.path.abspath(script.folder).split(os.sep)[-2 * _DEPTH :] if script.folder is not None else []
    parts = above[-_DEPTH:]
    if any(map(_FOLDER.fullmatch, parts)) or any(map(_BENCH.fullmatch, above)):
        return True
    texts = (script.name, *parts, *(one.node.text for one in programs(script)))
    return any(map(_EXAMPLES.fullmatch, parts)) and not any(map(_TRAINS.search, texts))


def _measures(script: Script) -> bool:
    """Return whether a job prints, or its programs only measure the machine or test an installation."""
    found = programs(script)
    tests = (_tests(one.node.text) or shows_installation(script, one) for one in found)
    last = [one for one in found[-1:] if is_probe(one) or _PERF.search(one.node.text)]
    return does_little(script) or bool(last) or (bool(found) and all(tests))


def _tests(text: str) -> bool:
    return _TESTS.search(text) is not None and _TRAINS.search(_OPTION.sub("", text)) is None


_OPTION = re.compile(r"\s--?(?!do_)[A-Za-z][\w-]*")  # such as --print_training_accuracy
_PERF = re.compile(r"\w_perf(?![a-z])")  # of NCCL and the like, perhaps in the code of a shell
_TESTS = re.compile(
    r"(?i)(?:^|[\s/])(?:(?:[cp]y?test|\w{0,40}(?:hpcg|hpl)\w{0,40}|io500\w{0,40}|"
    r"ior|mdtest|fio|stream\w{0,40}|gpu_burn)(?=[\s.]|$)|"
    r"(?!-)[\w.-]{0,40}(?<![a-z])bench(?:mark(?:s|ing)?)?(?![a-z])[\w.-]{0,40}(?=[\s/:]|$))|"
    r"\s-(?:noconfout|reset(?:hway|step))\b|(?:apoa1|f1atpase|jac|stmv)\.namd|"  # of GROMACS and NAMD
    rf"\.sif\s+(?:cp|tar)\s|{_PERF.pattern}"
)
