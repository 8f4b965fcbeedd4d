"""The helps: what people do comes first, and no sentence is cut."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest
from support.jobs import jobgen

from jobgen.commands.cli import cli
from jobgen.runs.exit_statuses import JOB

FIRST = "--nodes --gpus-per-node --ranks-per-node --launcher --walltime --queue --account --module --conda --venv --env --site"


def test_the_commands_are_in_four_groups() -> None:
    text = jobgen("--help").stdout
    groups = re.findall(r"^([A-Z][a-z ]+):$", text.split("Options:")[1], re.MULTILINE)
    assert groups == ["Make a script", "Run it", "Look at scripts", "More", "Examples"]
    for name in cli.list_commands(click.Context(cli)):
        [line] = re.findall(rf"^  {name} +(.*)$", text, re.MULTILINE)
        assert line.endswith("."), name
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("command", ["slurm", "pbs", "local", "submit"])
def test_the_short_help_has_the_options_of_most_jobs(command: str) -> None:
    text = jobgen(command, "--help").stdout
    most = text.partition("Options of most jobs:")[2].partition("\n\n")[0]
    flags = re.findall(r"^  (?:-o, )?(--[\w-]+)", most, re.MULTILINE)
    assert flags == FIRST.split() + ["--output"] * (command != "submit")
    every = jobgen(command, "--help-all").stdout
    assert "--hang-timeout" in every
    assert "--hang-timeout" not in text
    number = int(re.findall(r"All (\d+) options: jobgen \w+ --help-all", text)[0])
    assert number == len(re.findall(r"^  (?:-\w, )?--[\w-]+", every, re.MULTILINE))


@pytest.mark.parametrize("status", [status for status in JOB if 70 <= status <= 75])
def test_each_status_of_a_job_has_a_page(status: int) -> None:
    text = jobgen("help", str(status)).stdout
    assert text.startswith(f"Exit status {status} of a job: {JOB[status]}.\n\n# Exit {status}\n")


def test_help_of_a_subcommand_and_of_a_rule() -> None:
    assert jobgen("help", "site", "new").stdout == jobgen("site", "new", "--help").stdout
    for rule in ("late-directive", "bashrc"):
        assert jobgen("help", rule).stdout == jobgen("check", "--explain", rule).stdout


def test_pages_are_folded_and_name_their_topics() -> None:
    done = jobgen("help", "exit", "75", env={"COLUMNS": "60"})
    prose = [line for line in done.stdout.partition("\nOther")[0].splitlines() if not line.startswith("    ")]
    assert max(map(len, prose)) <= 60
    assert "(jobgen help resume)" in done.stdout
    assert "](" not in done.stdout


def test_explain_tells_what_is_derived_then_what_is_set() -> None:
    words = ("slurm", "--nodes", 2, "--walltime", "2h")
    short = jobgen(*words, "--explain", "--", "train.py", env={"COLUMNS": "90"}).stdout
    rows = re.findall(r"^(\w+) ", short, re.MULTILINE)
    assert rows[0] == "VALUE"
    assert rows[1] == "scheduler"
    assert rows[-4:-1] == ["walltime", "nodes", "launcher"]  # whose default depends on the program
    assert re.search(r"^and \d+ defaults: --explain=all$", short, re.MULTILINE)
    every = jobgen(*words, "--explain=all", "--", "train.py", env={"COLUMNS": "90"}).stdout
    assert "\nqueue " in every
    assert "\nqueue " not in short
    assert max(map(len, every.splitlines())) <= 90


@pytest.mark.parametrize(
    ("job", "name", "texts"),
    [
        (
            "[resources]\ngpus_per_node = 4\n[[step]]\nname = 'server'\ncommand = ['x']\ngpus = 1\n[[step]]\ncommand = ['y']\ngpus = 3\nparallel = true",
            "steps",
            ["server: 1 node x 1 rank, 1 rank in all, by srun on NVIDIA GPUs; devices 0, cores 0-1 of a node", "1 node x 3 ranks, 3 ranks in all, by srun on NVIDIA GPUs; devices 1,2,3, cores 2-7 of a node"],
        ),
        (
            "[resources]\ngpus_per_node = 4\n[job]\narray = '0-7'\npack = 2",
            "points",
            ["2 points a task, each 1 node x 2 ranks, 2 ranks in all, by srun on NVIDIA GPUs; the first: devices 0,1, cores 0-3 of a node"],
        ),
        (
            "[[component]]\ngpus_per_node = 0\ncpus_per_rank = 32\nmem = '9G'\nqueue = 'cpu'\n[[component]]\ngpus_per_node = 4\nmem = '8G'\nqueue = 'gpu'",
            "components",
            ["1 node x 1 rank, 1 rank in all, by srun on CPUs, 32 cores a rank, queue cpu, memory 9G", "1 node x 4 ranks, 4 ranks in all, by srun on NVIDIA GPUs, 2 cores a rank, queue gpu, memory 8G"],
        ),
    ],
)  # fmt: skip
def test_explain_has_the_programs_of_a_job(job: str, name: str, texts: list[str], tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(job)
    own = () if name == "steps" else ("--", "./x")
    options = ("--job", tmp_path / "job.toml", "--launcher", "srun", "--explain", "--json")
    rows = json.loads(jobgen("slurm", *options, *own).stdout)
    assert rows[name]["value"] == texts
    assert rows["cpus_per_rank"]["value"] == (None if name == "components" else 2)
    assert rows["start"]["value"] == "started by srun"


@pytest.mark.parametrize(
    ("flag", "start"), [("--nodes", "--nodes N\n    Number of nodes."), ("--expand", "--expand\n    Replace")]
)
def test_an_option_of_a_job_is_explained(flag: str, start: str) -> None:
    assert jobgen("help", flag).stdout.startswith(start)


FOREIGN = (
    (("--gres",), "--gres is an option of sbatch. With a value, jobgen answers with its own options:\n  jobgen slurm --gres VALUE\n"),
    (("-N",), "  jobgen pbs -N VALUE\n  jobgen slurm -N VALUE\n"),
    (("-np",), "-np is an option of mpirun."),
    (("--nproc_per_node",), "is an option of deepspeed, torchrun and colossalai."),
    (("--hold",), "--hold (command line): is an option of sbatch; use --directive=--hold\n"),
    (("--gres=gpu:4",), "; use --gpus-per-node 4\n"),
    (("-l", "select=2", "--time=2h"), "; use --nodes 2 --walltime 2h\n"),
)  # fmt: skip


@pytest.mark.parametrize(("words", "answer"), FOREIGN)
def test_an_option_of_another_program_is_answered(words: tuple[str, ...], answer: str) -> None:
    done = jobgen("help", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert answer in done.stdout


@pytest.mark.parametrize(
    ("flag", "end"),
    [("--nodez", "; did you mean --nodes?\n"), ("--foo", "; jobgen slurm --help-all lists them\n")],
)
def test_an_option_that_no_program_has(flag: str, end: str) -> None:
    done = jobgen("help", flag)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(end)
