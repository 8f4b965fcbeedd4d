"""A command that bash runs in the same way in another form has the same remarks, or those that say more."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest
import tomllib
from convert.conversions import convert, job_file

from jobgen.convert.result import Converted

SLURM = "#!/bin/bash\n#SBATCH -t 10 {}\n"
PBS = "#!/bin/bash\n#PBS -l {}\n"
LOG = PBS.format("select=1:ncpus=1") + "#PBS -j oe\n#PBS -o {}\ncd {}\n"

# The target, the script with {} for the command, and the command.
COMMANDS = {
    "deletes the log": ("slurm", LOG.format("/w/x.log", "/w") + "./a\n{}\n", "rm -f *.log"),
    "compresses the log": ("slurm", LOG.format("/w/x.log", "/w") + "./a\n{}\n", "gzip -f *.log"),
    "makes the folder": ("slurm", LOG.format("logs/x", "$PBS_O_WORKDIR") + "{}\n./a\n", "mkdir -pv logs/b"),
    "writes the log": ("torque", SLURM.format("-o out.txt") + "{}\n", "./a > out.txt"),
    "reads the log": ("slurm", LOG.format("/w/run.log", "/w") + "./a\n{}\n", "cp /w/run.log /data"),
    "a directory": ("slurm", PBS.format("select=1") + "{}\n./a\n", "cp in /lscratch/$PBS_JOBID"),
    "a step": ("pbspro", SLURM.format("-N 2") + "{}\n", "srun --jobid=12 ./a"),
    "labels": ("pbspro", SLURM.format("-N 2") + "module load mpich\n{}\n", "srun -l ./a"),
    "a query": ("pbspro", SLURM.format("-N 2") + "srun ./a\n{}\n", "sacct -j 12"),
    "an option": ("slurm", PBS.format("select=2") + "{}\n", "mpirun -output-filename x ./a"),
    "an input": ("slurm", PBS.format("select=2") + "{}\n", "mpirun ./a < in"),
    "another launcher": ("slurm", PBS.format("select=2") + "{}\n", "mympirun ./a"),
    "text of the log": ("toml", SLURM.format("-o x.out -n 1") + "srun ./a\n{}\n", "sed -n 2p x.out"),
    "own text": ("toml", SLURM.format("-n 1") + "srun ./a\n{}\n", "cat $0"),
    "own logs": ("toml", SLURM.format("-n 1") + "cd /data\nsrun ./a\n{}\n", "rm -rf /data/*"),
    "the last status": ("toml", SLURM.format("-n 1") + "./a\n{}\n", "sed -n 2p in"),
    "ranks": ("toml", SLURM.format("-N 2 -n 8") + "{}\n", "sh run_a.sh"),
    "an old launcher": (
        "toml",
        SLURM.format("-N 1") + "{}\n",
        "python3 -m torch.distributed.launch --nproc_per_node 1 t.py",
    ),
    "aprun": ("toml", PBS.format("nodes=2:ppn=4") + "{}\n", "aprun -n 8 -N 8 ./a -x"),
}


def _front(words: str) -> Callable[[str], str]:
    return lambda command: f"{words} {command}"


def _around(before: str, after: str) -> Callable[[str], str]:
    return lambda command: f"{before}{command}{after}"


def _first(change: Callable[[str], str]) -> Callable[[str], str]:
    def changed(command: str) -> str:
        name, blank, rest = command.partition(" ")
        return f"{change(name)}{blank}{rest}"

    return changed


def _words(command: str) -> tuple[str, str]:
    """Return the words of a command, and its redirection."""
    words, *files = re.split("(?= [<>])", command)
    return words, "".join(files)


def _in_variable(command: str) -> str:
    name, _, rest = command.partition(" ")
    return f"RUN={name}\n$RUN {rest}"


def _in_array(command: str) -> str:
    words, files = _words(command)
    return f'RUN=({words})\n"${{RUN[@]}}"{files}'


def _in_text(command: str) -> str:
    words, files = _words(command)
    return f'RUN="{words}"\n$RUN{files}'


def _handed_on(command: str) -> str:
    words, files = _words(command)
    return f'run() {{\n"$@"{files}\n}}\nrun {words}'


FORMS: dict[str, Callable[[str], str]] = {
    "group": _around("{\n", "\n}"),
    "group into a file": _around("{\n", "\n} > file"),
    "if": _around("if true; then\n", "\nfi"),
    "for": _around("for one in 1; do\n", "\ndone"),
    "case": _around("case a in\na)\n", "\n;;\nesac"),
    "subshell": _around("(\n", "\n)"),
    "function": _around("run() {\n", "\n}\nrun"),
    "and": _around("true && ", ""),
    "or": _around("", " || exit 1"),
    "comment": _around("", "  # a comment"),
    "eval": lambda command: f"eval {shlex.quote(command)}",
    "bash": lambda command: f"bash -c {shlex.quote(command)}",
    "time": _front("time"),
    "nice": _front("nice -n 5"),
    "env": _front("env A=1"),
    "command": _front("command"),
    "backslash": _around("\\", ""),
    "path": _first(lambda name: name if "/" in name else f"/usr/bin/{name}"),
    "quotes": _first(lambda name: f'"{name}"'),
    "lines": lambda command: command.replace(" ", " \\\n  "),
    "variable": _in_variable,
    "array": _in_array,
    "text": _in_text,
    "arguments": _handed_on,
}

# Remarks that say that a command stays as it is, with all that is otherwise under the other scheduler.
STAYS = re.compile(r"stays in this text|is a command of|the line is unchanged")
# The forms of a command that lack one of its remarks, and the reason.
EXCEPTIONS = {
    "own text": {"eval": "only one of its two remarks names the text", "bash": "$0 is bash there"},
    "the last status": dict.fromkeys(("env", "arguments"), "it is the program of the job"),
}


def converted(target: str, script: str) -> Converted:
    return job_file(script) if target == "toml" else convert(script, target)


def kinds(done: Converted) -> set[str]:
    """Return the reasons of remarks, without numbers and names of files."""
    return {re.sub(r"\S*[\d$/.]\S*", "", one.why) for one in done.remarks}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_form_of_a_command_has_its_remarks(name: str) -> None:
    target, script, command = COMMANDS[name]
    plain, missing = kinds(converted(target, script.format(command))), dict[str, set[str]]()
    assert plain
    for form, change in FORMS.items():
        other = kinds(converted(target, script.format(change(command))))
        if plain - other and not any(map(STAYS.search, other - plain)):
            missing[form] = plain - other
    assert list(missing) == list(EXCEPTIONS.get(name, ())), missing


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_program_runs_it_once(form: str) -> None:
    data = tomllib.loads(job_file(SLURM.format("-n 1") + FORMS[form]("./a -x") + "\n").text)
    code = f"{data.get('blocks', {}).get('before', '')} {data['program']['command']}"
    assert len(re.findall(r"\./a\b", code)) <= 1


DIRECTIVES = {
    "slurm": "-N 2\n--ntasks=8\n-c 2\n--mem=4G\n-o x.out\n-t 1:00:00\n--gres=gpu:2",
    "pbspro": "-l select=2:ncpus=4:mpiprocs=2\n-l walltime=1:00:00\n-N name\n-j oe\n-q short",
    "torque": "-l nodes=2:ppn=4\n-l walltime=1:00:00\n-l mem=4gb\n-N name\n-j oe\n-q short",
}
_LONG = {"-c ": "--cpus-per-task=", "-o ": "--output=", "-t ": "--time="}
DIRECTIVE_FORMS: dict[str, Callable[[str], str]] = {
    "blanks": lambda options: re.sub("(?m)$", "  ", re.sub("(?m)^", " \t", options)),
    "order": lambda options: "\n".join(reversed(options.split("\n"))),
    "joined": lambda options: re.sub(r"(?m)^(-[A-Za-z]) ", r"\1", options),
    "one line": lambda options: options.replace("\n", " "),
    "one list": lambda options: re.sub(r"(?m)^(-l nodes=.*)\n-l (.*)\n-l ", r"\1,\2,", options),
    "repeated": lambda options: f"{options}\n{options.rpartition(chr(10))[2]}",
    "long": lambda options: re.sub(r"(?m)^-[cot] ", lambda one: _LONG[one[0]], options),
    "blank for =": lambda options: re.sub(r"(?m)^(--[a-z]+)=", r"\1 ", options),
}


@pytest.mark.parametrize("form", DIRECTIVE_FORMS)
@pytest.mark.parametrize("source", DIRECTIVES)
def test_each_form_of_directives_has_the_same_conversion(source: str, form: str) -> None:
    prefix, options = ("#SBATCH" if source == "slurm" else "#PBS"), DIRECTIVES[source]
    other = DIRECTIVE_FORMS[form](options)
    scripts = [f"#!/bin/bash\n{re.sub('(?m)^', f'{prefix} ', one)}\n./a\n" for one in (options, other)]
    for target in {"toml", "slurm", "torque"} - {source}:
        plain, changed = (
            job_file(one, source) if target == "toml" else convert(one, target, source) for one in scripts
        )
        assert sorted(plain.text.split("\n")) == sorted(changed.text.split("\n"))
        assert kinds(plain) == kinds(changed)
