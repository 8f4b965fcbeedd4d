"""Files that a converted script starts or names, and that convert does not read: shell scripts of the user,
what submits the jobs of a workflow engine, and its configuration. They may be for the old scheduler."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from jobgen.convert.result import Remark, hint
from jobgen.launch.command_line import SHELLS, is_python
from jobgen.launch.launchers import MPI_FLAVOURS
from jobgen.script.beside import name_and_text, programs
from jobgen.script.command_kinds import PRINT, STATE, TOOLS
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.launches import Start
from jobgen.script.script import Script
from jobgen.script.written_files import written

_NAMED = 4  # in a remark
_JOBS = r"job(?!lib)|batch|slurm|pbs|queue|(pro|epi)logue|(pre|post)_?run"
_SHELL_FILE = re.compile(
    r".*\.(sh|bash|ksh|zsh|t?csh|cmd|job|slurm|sbatch|pbs)$|.*/(jobs|scripts|ush)/[^/.]+$"
    r"|.*/All(run|mesh|pre)\b.*"  # of OpenFOAM
    rf"|/(.*[\W_])?(?i:{_JOBS})[^/]*$"  # of a site
)
# An argument that is a shell script, or by its name a program in another language that submits jobs, and has
# no part that an engine replaces: {jobid}.sh
_ARGUMENT = re.compile(
    r"(?!.*(?<!\$)\{\w+\})(?:[\w.-]+=)?([^-\s=*][^\s=*]*\.(?:sh|bash|ksh|zsh|slurm|sbatch|pbs)"
    r"|(?!-)[^\s=]*(?:sbatch|slurm|qsub|pbs|submit|launcher|launch_?jobs?)[^/\s=]*\.(?:py|pl|R|rb|jl))"
)
_OF_SUBMISSION = re.compile(r"(?!-)[\w.-]*(sbatch|slurm|qsub|pbs|submit)[\w.-]*")  # a target of make
# Libraries whose programs start ranks or workers by the scheduler, or submit jobs.
_DRIVERS = re.compile(
    r"(?i)smartsim|\bparsl|dask[-_]jobqueue|submitit|pyiron|radical[._-](pilot|entk|saga)|libensemble|colmena"
    r"|executorlib|psij|balsam"
)
_SOURCES = {"source", "."}
_READERS = {*SHELLS, *_SOURCES}
_COMPUTED = re.compile(r"[^-+\s]*\$\{?[A-Za-z_]")
_HANDLES = {"diff", "cmp", "stat", "md5sum", "basename", "dirname", "readlink", "realpath", "type", "hash"}
_HANDLES |= PRINT | STATE | TOOLS - {"jobinfo", "jobstats"}
# Files of environments, which read nothing of a scheduler: those that a script sources, and others.
_OF_ENVIRONMENTS = re.compile(
    r"(?i)(^|[/${])(de)?activate(\.\w+)?\}?$|(\b|_)profile(\.d/|s?$|\.\w+$)|shrc|bash_login|(\b|_)(lmod|spack)"
    r"|(?<!sub)module[^/]*$|(\b|_)modules?(home|files?|-[\d.]+)?\}?/|(\b|_)venvs?(\.\w+)?\}?$|GMXRC|cmsset_default"
    r"|(?-i:\bFOAM_)|RunFunctions$|SetUpFreeSurfer"
    r"|(^|[/${])(set|compiler|icc|ifort|mpi_?|mkl|ipp|tbb|daal|psxe|itac|(amplxe|advixe|inspxe)[-_]|env/)"
    r"vars(\.\w+)?\}?$"
)
_OF_SYSTEM = re.compile(
    r"(?i)conda|mamba|^/ext3/|^(\$\(|`)(?!basename)[^/]*[)`]$|\bbrew\b|<\("
    r"|^/etc/|/\.config/"
    r"|^\$?\{?(?!HOME\b)\w*(HOME|ROOT|PREFIX|PATH)\}?/(bin|etc|share)/|^/(?!home)\w+/(bin|etc|gcc)/"
    r"|^/(?!home)(\w+/)?(opt|usr|cvmfs)/|^/(.*/)?(sw|s?soft(ware)?|apps?|[\w.]*install)/"
)
# In the path of a file of a site.
_OF_JOBS = re.compile(rf"(?i)({_JOBS})[^/]*$|/(slurm|pbs|torque)/")
# The engines, and patterns of the options with which they submit jobs as a configuration says.
_ENGINES = {
    r"nextflow[^\s/]*": r"(?<!\S)(run(?!\S)|-profile)",
    "snakemake": r"(?<!\S)(--((workflow-)?profile|profiles|drmaa|slurm)(?![\w-])"
    r"|(--executor|-e)[ =](?!local\b))",
    r"(cromwell\S*\.jar|cromwell)": r"(?<!\S)(run|submit)(?!\S)",
    "miniwdl": r"(?<!\S)--cfg(?![\w-])",
    r"bpipe": r"(?<!\S)run(?!\S)",
    r"merlin": r"(?<!\S)(-k|--snakemake-parameters)[ =]|^run",
    r"maestro": r"^run\b",
    r"balsam": r"^launcher\b",
    r"toil-(wdl|cwl)-runner|cactus": r"(?<!\S)--batchSystem[ =](?!single_?machine\b)",
    r"canu": r"^(?!.*\buseGrid=(false|0)\b)(?=.*\s-\w)",  # which looks for sinfo and pbsnodes itself
    r"fsl_sub|bedpostx(_gpu)?|tbss_2_reg": "",  # fsl_sub.yml
    r"case\.submit": "",  # env_batch.xml
    r"ipcluster": r"^start\b.*\s--profile",
    r"qlaunch": "",
    r"fc_run(\.py)?|nextDenovo|masurca": r"\.(cfg|txt)\b",
    r"glide|prime\w*|phase\w*|ligprep|multisim|jaguar|epik|qsite": r"(?<!\S)-HOST (?!localhost)",
    r"HiC-Pro": r"(?<!\S)-\w*p(?!\S)",
    r"(cellranger|spaceranger)[\w-]*": r"(?<!\S)--jobmode[ =](?!local\b)",
}
_PROFILE = {"snakemake": "SNAKEMAKE_PROFILE", "miniwdl": "MINIWDL_CFG"}  # variables that name a configuration
# The programs with which snakemake submits jobs and asks for them.
_PROGRAM = re.compile(
    r"--cluster(?:-(?:sync|generic-(?:submit|status|cancel)-cmd|status|cancel))?[ =]+"
    r"(?:ssh \S+ )?(?:(?:python|bash|sh|perl)[\d.]* )?(\S+)"
)

# Before a command or a variable in programs: a quote, perhaps with other commands of the text behind it, and
# in other languages than Python also qx(, %x(, exec, ! and ENV{.
_QUOTES = "\"'`"
_IN_QUOTES = "[{0}](?:[^{0}]*?(?:[;|&]|\\$\\(|\\bssh (?:-\\S+ )*\\S+ ))?\\s*"
_OF_LANGUAGES = r"(?:\bqx|%x)\s*[^\w\s]\s*|\b(?:exec|spawn)\s+|^\s*!\s*|(?i:\benv)[({]"
_OF_MAKE = r"(?:^\t[\s@+-]*|[;|&(]\s*|\bshell\s+|\$\$?[{(]?)"
_COMMENTS = {".m": "%", ".lua": "--", **dict.fromkeys((".c", ".cc", ".cpp", ".js", ".php"), "//")}


class File(NamedTuple):
    """A file, or the configuration of an engine, and the line that names it."""

    path: str
    line: int
    is_sourced: bool = False


def remark(
    script: Script, unread: Iterable[File], other: str, known: Collection[str] = ()
) -> Iterator[Remark]:
    """Yield one remark on files that are not read, and on the configuration of the workflow engines of a
    script. ``other`` is the title of the other scheduler; the new script sets the ``known`` variables."""
    lines: dict[str, int] = {}
    for one in (*of_engines(script), *unread):
        lines.setdefault(os.path.basename(one.path), one.line)
    if not lines:
        return
    verb, pronoun = ("are", "they") if len(lines) > 1 else ("is", "it")
    may_be = f"{verb} not read: {pronoun} may be for {script.dialect.title}, or read {read_of(script, known)}"
    yield hint(min(lines.values()), _listed([*lines]), f"{may_be} and so on, which {other} does not set")


def read_of(script: Script, known: Collection[str] = ()) -> str:
    """Return the names of variables that files read most, without those that are known."""
    meanings = ["job_id", "submit_dir", "node_file" if script.dialect.variable("node_file") else "node_list"]
    meanings += ["array_index"] * bool(script.request.array)
    names = (script.dialect.variable(one) for one in meanings)
    return ", ".join(name for name in names if name and name not in known)


def may_be_for(script: Script, file: File) -> bool:
    """Return whether a file has a name of a scheduler, or starts an engine that submits jobs.

    It may if it is not beside the script.
    """
    source = script.dialect
    name, code = name_and_text(script, file.path)
    names = [rf"{source.variable_prefix}\w+", *source.owners, *filter(None, [source.node_step])]
    if code is None:
        return not is_of_system(file)
    named = re.search(rf"\b({'|'.join(names)})\b", code.decode(errors="replace")) is not None
    return named or any(of_engines(Script(code, script.scheduler, script.folder, name=name)))


def is_of_system(file: File) -> bool:
    """Return whether a file is one of an environment, and not of the user or of the jobs of a site."""
    is_system = _OF_SYSTEM.search(file.path) or (file.is_sourced and _OF_ENVIRONMENTS.search(file.path))
    return bool(is_system) and not _OF_JOBS.search(file.path)


def of_programs(script: Script, other: str, known: Collection[str] = ()) -> Iterator[Remark]:
    """Yield a remark on the commands, and one on the variables, of the scheduler in each program beside a
    script, but not in those that a shell runs. ``other`` is the title of the other scheduler, which sets the
    ``known`` variables."""
    source = script.dialect
    owners = {**source.owners, **dict.fromkeys(filter(None, [source.node_step]), source.title)}
    own_names = rf"(?:[^\s\"'`]*/)?({'|'.join(owners)}|{source.variable_prefix}\w+)(?![\w.,:/=-])"
    launchers = [source.node_step, *(key for key, mpi in MPI_FLAVOURS.items() if source.name in mpi.dialects)]
    classes = re.compile(classes_of("|".join([*titles(source).values(), *filter(None, launchers)])))
    for program in programs(script):
        language, comment = _language(program.path)
        word = re.compile(f"{language}{own_names}")
        places: dict[str, int] = {}
        own: dict[str, int] = {}
        for number, line in enumerate(program.text.split("\n"), 1):
            code = "" if line.lstrip().startswith(comment) else line
            for name in word.findall(code):
                places.setdefault(name, number)
            for match in classes.finditer(code):
                own.setdefault(match[0], number)
        found = [name for name in places if name not in known]
        for owner in dict.fromkeys(map(owners.get, found)):
            names = [name for name in found if owners.get(name) == owner]
            why = f"names {_listed(names)}, {'commands' if names[1:] else 'a command'} of {owner}"
            why = why if owner else f"reads {_listed(names)}, which {other} does not set"
            yield hint(program.calls[0].line, f"{program.path}:{places[names[0]]}", why)
        if own and not source.owners.keys() <= {*known}:  # the other scheduler has its commands
            why = f"uses {_listed([*own])}, for {source.title}"
            yield hint(program.calls[0].line, f"{program.path}:{min(own.values())}", why)


def _language(path: str) -> tuple[str, str]:
    """Return a pattern of what is before a command or a variable of a shell in the language of a program, and
    how its comments begin."""
    suffix = os.path.splitext(path)[1]
    if path.lower().endswith("makefile") or suffix in (".mk", ".mak"):
        return _OF_MAKE, "#"
    comment = _COMMENTS.get(suffix, "#")
    return _IN_QUOTES.format(
        "\"'"
    ) if suffix == ".py" else f"(?:{_IN_QUOTES.format(_QUOTES)}|{_OF_LANGUAGES})", comment


def titles(source: Dialect) -> dict[str, str]:
    """Return patterns of the words that name a scheduler and those of its family, by their titles."""
    owners: dict[str, str] = {}
    for one in (source, *(one for one in DIALECTS.values() if one.family == source.family)):
        for word in (one.family.lower(), one.name, one.scheduler.command_name):
            owners.setdefault(word, one.title)
    return {title: "|".join(one for one in owners if owners[one] == title) for title in owners.values()}


def classes_of(words: str) -> str:
    """Return a pattern of calls in Python, Julia and R that start workers by a scheduler of these words:
    SLURMCluster(), addprocs_slurm(), Experiment(launcher="slurm")."""
    calls = rf"\b(?i:{words})(?:[A-Z][a-z]+)+(?=\()|\b(?:addprocs|batchtools)_(?i:{words})\b"
    return rf"{calls}|\b(?:launcher|cluster|scheduler|executor)=[\"'](?i:{words})[\"']"


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + f" and {more} more" * (more > 0)


def files(script: Script) -> Iterator[File]:
    """Yield the shell scripts of the user that a script sources, starts or gives to a program, each once."""
    seen = {script.name, *(os.path.basename(name) for _, _, name in written(script))}
    seen |= {os.path.basename(one.path) for one in programs(script)}
    drives = _DRIVERS.search(script.tree.text) is not None
    for start in script.started:
        for path in _files(script, start, drives):
            if (name := os.path.basename(path)) not in seen and re.search(r"\w", name):
                seen.add(name)
                yield File(path, start.line, start.shell in _SOURCES or start.texts[0] in _SOURCES)


def _files(script: Script, start: Start, drives: bool) -> Iterator[str]:
    """Yield the words of a command that name a shell script, or a program that ``drives`` others."""
    texts, name = start.texts, os.path.basename(start.texts[0])
    if start.shell:
        yield texts[0]
    elif name in _READERS:  # of a file whose name only the job knows
        yield from islice((one for one in texts[1:] if _COMPUTED.match(one)), 1)
    elif "-exec" in texts or name not in _HANDLES | script.dialect.owners.keys() | script.functions.keys():
        beside = "/" in texts[0] and name_and_text(script, texts[0], shell=True)[1]
        if beside or _SHELL_FILE.match(texts[0]):
            yield texts[0]
        if is_python(name) and texts[1:] and texts[1].endswith(".sh"):  # a program for Python
            texts = texts[2:]
        yield from (found[1] for one in texts if (found := _ARGUMENT.fullmatch(one)))
        if name == "make" and any(map(_OF_SUBMISSION.fullmatch, texts[1:])):
            yield "Makefile"
        if drives and is_python(name):
            yield from islice((one for one in texts[1:] if one.endswith(".py")), 1)


def of_engines(script: Script, *without: str) -> Iterator[File]:
    """Yield what the calls of engines that submit jobs have as a configuration, ``without`` those of some.

    A command of the scheduler that a call names is none: the user sees it.
    """
    # The first values of variables whose later ones differ: A="$A -x".
    values = {name: nodes[0].text.replace("\\\n", " ").strip("\"'") for name, nodes in script.values.items()}
    for start in script.started:
        words = []
        for one in start.texts:
            text = re.sub(r"\$\{?(\w+)\}?", lambda match: values.get(match[1], match[0]), one)
            words += [text] if " " in one else text.split()
        if not words or os.path.basename(words[0]) in _HANDLES:
            continue
        for pattern, options in _ENGINES.items():
            found = (at for at, word in enumerate(words) if re.fullmatch(pattern, os.path.basename(word)))
            if (at := next(found, None)) is None or pattern in without:
                continue
            text = " ".join(words[at + 1 :])
            own = " ".join(one for one in words[at + 1 :] if " " not in one)  # without those of --cluster
            if (at == 0 and _PROFILE.get(pattern) in script.values) or re.search(options, own):
                yield File(f"the configuration of {os.path.basename(words[at])}", start.line)
            programs = (File(one.strip("'\""), start.line) for one in _PROGRAM.findall(text))
            yield from (one for one in programs if os.path.basename(one.path) not in _HANDLES)
