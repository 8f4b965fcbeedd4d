"""Job files: what they may say, what wins, the sentence of each mistake, the schema and the starter."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT
from support.jobs import jobgen
from support.require import need_package

from jobgen.commands import init
from jobgen.commands.schema import schema_text
from jobgen.config import read_spec
from jobgen.errors import JobgenError, one_of
from jobgen.jobfile.locations import line_of
from jobgen.jobfile.reader import read_job
from jobgen.jobfile.tables import TABLES, table_of
from jobgen.jobfile.writing import toml
from jobgen.launch.launchers import LAUNCHERS
from jobgen.options import BY_KEY, OPTIONS
from jobgen.plan.plan import resolve
from jobgen.schedulers.detection import detect
from jobgen.schedulers.table import COMMANDS, SCHEDULERS
from jobgen.spec import Specification

FOUND = "jobgen: note: jobgen.toml is read; --no-job ignores it\n"
KINDS = ("slurm", "pbspro", "torque", "local")

EVERYTHING = """
scheduler = "pbs"
[job]
name = "vit"
queue = "gpu"
account = "proj42"
walltime = "2h"
mail = "me@example.org"
array = "0-9%3"
after = ["12", "afterany:13_4"]
reservation = "night"
qos = "high"
constraint = "a100&ib"
licenses = "matlab:2"
comment = "theOne"
mail_on = "end,fail"
log = "logs/%A_%a.log"
begin = "2030-01-31T20:00"
priority = "-5"
directive = ["-l filesystems=home", "-r y"]
dialect = "pbspro"
[resources]
cpus_per_node = 64
nodes = 2
hostfile = "/dev/null"
gpus_per_node = "4"
ranks_per_node = 4
cpus_per_rank = 8
mem = "64G"
exclusive = false
accelerator = "cuda"
[launch]
cpu_bind = "0-7;8-15;16-23;24-31"
interface = "hsn0"
network = "plugin"
launcher = "mpirun"
mpi = "openmpi"
remote = "auto"
launcher_arg = ["--bind-to", "core"]
expand = false
include = "n1:0,1"
exclude = "n2"
master_port = 29500
[survival]
grace = "5m"
signal = "USR2"
requeue = 3
requeue_on = "limit"
preflight = false
spare_nodes = 1
restarts = 2
min_nodes = 1
hang_timeout = "10m"
[environment]
module_init = ["/opt/site/modules/init/bash"]
module_purge = false
module_use = ["/opt/site/modulefiles"]
module = ["cuda/12.4", "openmpi"]
source = ["/etc/profile.d/site.sh"]
conda = "train"
venv = ".venv"
env_file = ["/dev/null"]
[environment.env]
NCCL_DEBUG = "WARN"
THREADS = 4
[container]
container = "apptainer"
image = "a.sif"
bind = ["/data"]
container_arg = ["--no-home"]
[blocks]
early_setup = "times"
setup = "true"
before = "date"
on_each_node = "hostname"
after_on_each_node = "sync"
after = "sync"
[directories]
workdir = "/scratch/me"
runs_dir = "out"
group_readable = false
rank_logs = "failed"
runtime = "beside"
[program]
command = ["train.py", "--lr", "0.1"]
"""
FLAGS = """
--name vit --queue gpu --account proj42 --walltime 2h --mail me@example.org --array 0-9%3
--after 12 --after afterany:13_4 --reservation night --qos high --constraint a100&ib --licenses matlab:2
--comment theOne --mail-on end,fail --log logs/%A_%a.log --begin 2030-01-31T20:00 --priority=-5 --no-exclusive --directive=-l_filesystems=home
--directive=-r_y --dialect pbspro --nodes 2 --gpus-per-node 4 --ranks-per-node 4 --cpus-per-rank 8 --mem 64G
--accelerator cuda --launcher mpirun --mpi openmpi --remote auto --launcher-arg=--bind-to --launcher-arg=core --no-expand
--include n1:0,1 --exclude n2 --master-port 29500 --grace 5m --signal USR2 --requeue 3 --requeue-on limit --no-preflight
--spare-nodes 1 --restarts 2 --min-nodes 1 --hang-timeout 10m --module-init /opt/site/modules/init/bash --no-module-purge --module-use /opt/site/modulefiles --module cuda/12.4 --module openmpi --source /etc/profile.d/site.sh --conda train
--venv .venv --env-file /dev/null --hostfile /dev/null --no-group-readable --env NCCL_DEBUG=WARN --env THREADS=4 --cpus-per-node 64 --cpu-bind 0-7;8-15;16-23;24-31 --interface hsn0 --network plugin --container apptainer --image a.sif --bind /data --container-arg=--no-home --early-setup times --setup true --before date --on-each-node hostname --after-on-each-node sync --after-block sync --workdir /scratch/me --runs-dir out --rank-logs failed --runtime beside
"""


def spec(
    path: Path, text: str, *settings: str, program: tuple[str, ...] = (), **flags: object
) -> Specification:
    """The specification from a file of this text, --set and flags."""
    file = path / "jobgen.toml"
    file.write_text(text, encoding="utf-8")
    return read_spec("slurm", flags, program, read_job(str(file), settings, program))  # type: ignore[arg-type]


def with_examples(text: str, flags: str) -> tuple[str, str]:
    """A job file and flags, with the examples of the options that they lack."""
    for option in OPTIONS:
        if not re.search(rf"^(\[environment\.)?{option.name}\b", text, re.M):
            text = text.replace(
                f"[{table_of(option)}]\n", f"[{table_of(option)}]\n{option.name} = {toml(option.example)}\n"
            )
            examples = option.example if option.multiple else [option.example]
            flags += "".join(f" {option.flag} {one}" for one in examples)
    return text, flags


def test_a_file_can_say_all_that_flags_can(tmp_path: Path) -> None:
    text, flags = with_examples(EVERYTHING, FLAGS)
    read = spec(tmp_path, text)
    given_flags: dict[str, object] = {}
    words = re.findall(r"--([a-z-]+)(?:[ =](?!--[a-z])(\S+)|=(\S+))?", flags)
    assert {word[0].removeprefix("no-").replace("-", "_") for word in words} == set(BY_KEY)
    for flag, value, other in words:
        key, text = flag.removeprefix("no-").replace("-", "_"), (value or other).replace("l_f", "l f")
        text = text.replace("-r_y", "-r y")
        if BY_KEY[key].multiple:
            given_flags.setdefault(key, []).append(text)  # type: ignore[attr-defined]
        else:
            given_flags[key] = ("no" if flag.startswith("no-") else "yes") if BY_KEY[key].switch else text
    typed = read_spec("slurm", given_flags, ("train.py", "--lr", "0.1"))  # type: ignore[arg-type]
    assert read._replace(origins={}, texts={}) == typed._replace(origins={}, texts={})
    for key in BY_KEY:
        assert re.fullmatch(r".*jobgen.toml, line \d+", read.origin(key)), key


def test_the_tables_are_the_groups_of_the_options() -> None:
    assert TABLES == (
        "job",
        "resources",
        "launch",
        "survival",
        "environment",
        "container",
        "blocks",
        "directories",
    )
    assert {table_of(option) for option in OPTIONS} == set(TABLES)


def test_flags_win_and_say_so(tmp_path: Path) -> None:
    read = spec(tmp_path, EVERYTHING, nodes="8", module=("gcc",), preflight="yes")
    assert (read.nodes, read.module, read.preflight) == (8, ("gcc",), True)
    assert [read.origin(key) for key in ("nodes", "module", "preflight")] == ["command line"] * 3
    assert read.gpus_per_node == 4


def test_set_changes_one_value(tmp_path: Path) -> None:
    changes = (
        "resources.nodes=4", "job.name=17", "job.walltime=01:30:00", 'job.queue="fast"', "job.directive=--x",
        'environment.module=["a", "b"]', "environment.env.THREADS=8", "survival.preflight=yes", "program.command=['b.py']",
    )  # fmt: skip
    read = spec(tmp_path, EVERYTHING, *changes)
    assert (read.nodes, read.name, read.walltime, read.queue, read.directive) == (
        4,
        "17",
        5400,
        "fast",
        ("--x",),
    )
    assert (read.module, read.preflight, read.program) == (("a", "b"), True, ("b.py",))
    assert read.env == (("NCCL_DEBUG", "WARN"), ("THREADS", "8"))
    assert read.origin("nodes") == "--set"
    assert re.search(r", line \d+, and --set", read.origin("env"))
    alone = read_spec("slurm", {}, (), read_job(None, ["resources.nodes=3", "train.lr=0.01"], ()))
    assert (alone.nodes, alone.program) == (3, ("--lr", "0.01"))


TRAIN = '[train]\nlr = 1e-3\nbatch_size = 32\nresidual = true\noffload = false\naugment = ["crop", "flip"]\nresume = "-1"\n'


def test_the_training_modules_options(tmp_path: Path) -> None:
    words = ("--lr", "0.001", "--batch-size", "32", "--residual", "--augment", "crop,flip", "--resume=-1")
    assert spec(tmp_path, TRAIN).program == words
    typed = spec(tmp_path, TRAIN, "train.residual=false", "train.lr=0.01", program=("--batch-size=64",))
    assert typed.program == ("--lr", "0.01", "--augment", "crop,flip", "--resume=-1", "--batch-size=64")
    assert spec(tmp_path, TRAIN, program=("a.py", "x")).program == ("a.py", "x")
    assert spec(tmp_path, EVERYTHING, program=("a.py", "x")).program == ("a.py", "x")


def test_every_option_of_the_training_module_can_be_said(tmp_path: Path) -> None:
    from jobgen.train.config.options import parser

    for action in parser()._actions:
        flag = action.option_strings[-1]
        key = flag.removeprefix("--").replace("-", "_")
        if action.nargs in (0, "?"):
            assert spec(tmp_path, f"[train]\n{key} = true\n").program == (flag,)
            continue
        with pytest.raises(JobgenError, match=rf"{key} = true \(.*line 2\): needs a value"):
            spec(tmp_path, f"[train]\n{key} = true\n")


MISTAKES = [
    ("[resources]\nnodes = 0", "nodes = 0 (jobgen.toml, line 2): must be a whole number of at least 1"),
    ("[resources]\nnodes = 1.5", "nodes = 1.5 (jobgen.toml, line 2): must be a whole number"),
    ("\ufeff[resources]\nnodes = true", "nodes = true (jobgen.toml, line 2): must be a whole number"),
    ("[resources]\n\nnodez = 2", "nodez (jobgen.toml, line 3): [resources] has no such key: use nodes, ranks, hostfile, gpus_per_node"),
    ("[resources]\nnodez = 2", "did you mean nodes?"),
    ("[resources]\nqueue = 'x'", "queue (jobgen.toml, line 2): [resources] has no such key"),
    ("nodes = 2", "it belongs in [resources]"),
    ("resources.nodes = 0", "nodes = 0 (jobgen.toml, line 1)"),
    ("[sweeep]\nlr = [1]", "sweeep (jobgen.toml, line 1): a job file has no such key: use scheduler, site, job"),
    ("[sweep]\nlr = 0.1", "lr = 0.1 (jobgen.toml, line 2): must be a list of values, such as [0.1, 0.01]"),
    ("[sweep]\nlr = []", "must be a list of values"),
    ("[sweep]\nlr = [1, 2020-01-01]", "must be a list of values"),
    ("[sweep]", "[sweep] (jobgen.toml, line 1): needs a list of values"),
    ("[sweep]\nmode = 'zipp'\nlr = [1]", "mode = zipp (jobgen.toml, line 2): must be product or zip; did you mean zip?"),
    ("[sweep]\n'l r' = [1]", "(jobgen.toml, line 2): is no name of an option"),
    ("[sweep]\nlr = [true, 1]", "true and false cannot be mixed with other values"),
    ("[program]\ncommand = [\"a\\u0000b\"]", "program = 'a\\x00b' (jobgen.toml, line 2): a word can hold no NUL"),
    ("[train]\ndata = \"a\\u0000b\"", "(jobgen.toml, line 1): a word can hold no NUL"),
    ("[environment.env]\nA = \"a\\u0000b\"", "can hold no NUL"),
    ("[directories]\nworkdir = \"/a\\u0000b\"", "workdir = '/a\\x00b' (jobgen.toml, line 2): can hold no NUL"),
    ("[sweep]\nx = [\"a\\u0000\"]", "a value can hold no NUL"),
    ("[resource]\nnodes = 1", "did you mean resources?"),
    ("resources = 5", "resources = 5 (jobgen.toml, line 1): must be a table"),
    ("[launch]\nlauncher = 'mpirn'", f"launcher = mpirn (jobgen.toml, line 2): must be {one_of(LAUNCHERS)}; did you mean mpirun?"),
    ("[launch]\nlauncher_arg = '--x'", "must be a list"),
    ("[job]\nname = 'a'\nwalltime = 02:00:00", "walltime = 02:00:00 (jobgen.toml, line 3): must be a text in quotes"),
    ("[job]\nwalltime = 3600", "walltime = 3600 (jobgen.toml, line 2): is ambiguous: Slurm reads minutes, PBS seconds; write 3600m or 3600s"),
    ("[job]\nqueue = 7", "must be a text in quotes"),
    ("[job]\nbegin = 2030-01-31T20:00:00", "begin = 2030-01-31T20:00:00 (jobgen.toml, line 2): must be a text in quotes"),
    ("[resources]\nnodes = [2]", "nodes = [2] (jobgen.toml, line 2): must be a whole number of at least 1"),
    ("[job]\ndirective = ['-x', 7]", "directive = 7 (jobgen.toml, line 2): must be a text in quotes"),
    ("[survival]\npreflight = 'yes'", "preflight = yes (jobgen.toml, line 2): must be true or false"),
    ("[environment.env]\nA = 1\nB = 1.5", "B = 1.5 (jobgen.toml, line 3): must be a text in quotes or a whole number"),
    ("[environment]\nenv = { MASTER_PORT = 1 }", "env = MASTER_PORT=1 (jobgen.toml, line 2): cannot be set"),
    ("scheduler = 'slrm'", f"scheduler = slrm (jobgen.toml, line 1): must be {one_of(COMMANDS)}; did you mean slurm?"),
    ("[program]\ncommand = ['-m']", "command = -m (jobgen.toml, line 2): must begin with"),
    ("[program]\ncommand = []", "must be a list"),
    ("[program]", "[program] (jobgen.toml, line 1): needs a command"),
    ("[program]\ncommand = ['a.py']\n[train]\nlr = 1", "[train] (jobgen.toml, line 3): there is also a [program]"),
    ("[train]\nlr = 2020-01-01", "lr = 2020-01-01 (jobgen.toml, line 2): must be a number, a text"),
    ("[train]\n'l r' = 1", "(jobgen.toml, line 2): is no option"),
    ("[job]\nname = \n", "jobgen.toml, line 2, column 8: is not TOML: Invalid value"),
    ("[job]\ndialect = 'torque'", "dialect = torque (jobgen.toml, line 2): the scheduler has only one"),
    ("[resources]\ngpus_per_node = 2\nranks_per_node = 4", "ranks_per_node = 4 (jobgen.toml, line 3): 4 ranks do not fit 2"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), MISTAKES, ids=[words[:40] for _, words in MISTAKES])
def test_one_sentence_a_mistake(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("jobgen.toml").write_text(text, encoding="utf-8")
    with pytest.raises(JobgenError) as caught:
        resolve(read_spec("slurm", {}, (), read_job("jobgen.toml", (), ())))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


COMMANDS = [
    (("--set", "resources.nodes"), "--set resources.nodes (command line): must be TABLE.KEY=VALUE"),
    (("--set", "resources.nodes=0"), "nodes = 0 (--set): must be a whole number"),
    (("--set", "resources.nodez=1"), "nodez (--set): [resources] has no such key"),
    (("--set", "job.name.x=1"), "name is no table"),
    (("--set", "resources.nodes=2", "--nodes", "3"), "--nodes (command line): --set says nodes too"),
    (("--job", "no.toml"), "the job file no.toml cannot be read: No such file"),
    (("--job", "."), "cannot be read: Is a directory"),
    (("--job", "jobgen.toml", "--no-job"), "--job and --no-job contradict"),
    (("--", "--lr", "1"), "--lr (after --): names no program, but jobgen.toml, line 4 does"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_mistakes_of_the_command_line(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "jobgen.toml").write_text("[job]\nname = 'a'\n[program]\ncommand = ['a.py']\n")
    done = jobgen("slurm", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert sentence in done.stderr


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"a = '\xff'\n")
    assert "is not text in UTF-8" in jobgen("slurm", "--job", "x.toml", cwd=tmp_path).stderr


def test_the_file_of_the_directory_is_read_unless_told_not_to(tmp_path: Path) -> None:
    (tmp_path / "jobgen.toml").write_text("[resources]\nnodes = 3\n")
    (tmp_path / "other.toml").write_text("[resources]\nnodes = 5\n")

    def nodes(*words: str) -> tuple[int, str]:
        done = jobgen("pbs", "--explain", "--json", *words, cwd=tmp_path)
        value = json.loads(done.stdout)["nodes"]
        return value["value"], value["origin"]

    assert nodes() == (3, "jobgen.toml, line 2")
    assert nodes("--job", "other.toml") == (5, "other.toml, line 2")
    assert nodes("--no-job") == (1, "default")
    assert nodes("--no-job", "--set", "resources.nodes=7") == (7, "--set")
    assert nodes("--nodes", "9") == (9, "command line")


def test_a_script_does_not_depend_on_who_said_it(tmp_path: Path) -> None:
    typed = jobgen("pbs", "--nodes", "2", "--launcher", "mpirun", cwd=tmp_path)
    (tmp_path / "jobgen.toml").write_text("resources.nodes = 2\nlaunch.launcher = 'mpirun'\n")
    found, named = jobgen("pbs", cwd=tmp_path), jobgen("pbs", "--job", "jobgen.toml", cwd=tmp_path)
    assert found.stdout == named.stdout == typed.stdout != ""
    assert (found.stderr, named.stderr, typed.stderr) == (FOUND, "", "")


def test_msgspec_is_imported_for_a_job_file_only(tmp_path: Path) -> None:
    code = "import sys; from jobgen.commands.cli import run; run(['pbs']); print('msgspec' in sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for expected in ("False\n", "True\n"):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.stderr.endswith(expected)
        (tmp_path / "jobgen.toml").write_text("[resources]\nnodes = 3\n")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests/convert/golden").glob("*.toml")), ids=lambda path: path.stem
)
def test_what_convert_writes_is_a_job_file(path: Path) -> None:
    import msgspec

    layer = read_job(str(path), (), ())
    whose = msgspec.toml.decode(path.read_text())["scheduler"]
    resolve(read_spec(whose, {}, (), layer))
    assert layer.values["name"]


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("[a]\nb = 1\n[c]\nb = 2", "c.b", 4),
        ("[a]\n'b' = 1", "a.b", 2),
        ("a.b = 1", "a.b", 1),
        ("[a . b]\nc = 1", "a.b.c", 2),
        ("[a]\nx = '''\nb = 1\n'''\nb = 2", "a.b", 5),
        ("[a]\nb = { c = 1 }", "a.b.c", 2),
        ("[a]\n# b = 1\n", "a.b", 1),
        ("[a]\n", "b", None),
    ],
)
def test_lines(text: str, path: str, line: int | None) -> None:
    assert line_of(text, tuple(path.split("."))) == line


@given(st.text(max_size=60), st.lists(st.text(max_size=30).map("job.".__add__), max_size=2))
def test_no_text_is_a_traceback(text: str, settings: list[str]) -> None:
    from jobgen.jobfile import reader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "read_text", lambda *_: text)
        sentence = ""
        try:
            read_job("x.toml", settings, ())
        except JobgenError as error:
            sentence = str(error)
        assert sentence.isprintable()


def test_the_schema_that_is_shipped_is_current() -> None:
    assert (ROOT / "jobgen/jobgen.schema.json").read_text(encoding="utf-8") == schema_text(), (
        "write it anew: jobgen schema > jobgen/jobgen.schema.json"
    )


def test_the_schema_takes_what_we_take(tmp_path: Path) -> None:
    need_package("jsonschema")
    import jsonschema
    import msgspec

    shape = json.loads(jobgen("schema", cwd=tmp_path).stdout)
    jsonschema.Draft202012Validator.check_schema(shape)
    check = jsonschema.Draft202012Validator(shape)
    for text in (EVERYTHING, TRAIN, *map(init.starter, KINDS)):
        assert list(check.iter_errors(msgspec.toml.decode(text))) == []
    train = (
        "lora-targets = ['a', 'b']",
        "zero_stage = 2",
        "compile = true",
        "engine = '$ENGINE'",
        "lora = false",
    )
    for right in train:
        assert list(check.iter_errors(msgspec.toml.decode(f"[train]\n{right}"))) == []
    for wrong in (
        *("a = 1", "[resources]\nnodes = 0", "[launch]\nlauncher = 'x'", "[job]\nnamme = 'x'"),
        *("[train]\nlore = 8", "[train]\nzero_stage = 4", "[train]\nengine = 'x'", "[train]\nasync_save = 2"),
    ):
        assert list(check.iter_errors(msgspec.toml.decode(wrong)))
    properties = shape["$defs"]["launch"]["properties"]
    assert properties["launcher"]["enum"] == list(LAUNCHERS)
    assert all("description" in one for one in properties.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_starter_and_each_of_its_comments(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = jobgen("init", "--scheduler", kind, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    text = (tmp_path / "jobgen.toml").read_text()
    schema = re.fullmatch(r"#:schema (/.*)", text.split("\n")[0])
    assert schema
    assert Path(schema[1]).is_file()
    command = "pbs" if kind in ("pbspro", "torque") else kind
    done = jobgen(command, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, FOUND)
    (tmp_path / "tokens.env").write_text("HF_TOKEN=x\n")
    (tmp_path / "hosts").write_text("node1\n")
    monkeypatch.chdir(tmp_path)
    for option in OPTIONS:
        if option.key not in SCHEDULERS[kind].lacks and f"\n# {option.name} = " in text:
            one = re.sub(rf"\n# {option.name} = ", f"\n{option.name} = ", text)
            (tmp_path / "one.toml").write_text(one)
            read = read_spec(command, {}, (), read_job(str(tmp_path / "one.toml"), (), ()))
            assert option.key in read.origins
    full = re.sub(r"\n# (\[program\]|command|\w+ = )", r"\n\1", text)
    assert set(re.findall(r"^(\w+) = ", full, re.M)) >= {
        o.name for o in OPTIONS if o.key not in SCHEDULERS[kind].lacks
    }


def test_init_keeps_a_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "jobgen.toml").write_text("precious")
    done = jobgen("init", "--scheduler", "local", cwd=tmp_path)
    assert (done.returncode, "--force" in done.stderr) == (2, True)
    assert (tmp_path / "jobgen.toml").read_text() == "precious"
    assert jobgen("init", "--scheduler", "local", "--force", cwd=tmp_path).returncode == 0
    assert jobgen("init", "--scheduler", "pbspr", cwd=tmp_path).stderr.endswith("did you mean pbspro?\n")


@pytest.mark.parametrize(
    ("commands", "kind"),
    [
        ({}, "local"),
        ({"sbatch": "exit 0", "qsub": "exit 1"}, "slurm"),
        ({"qsub": "echo pbs_version = 2022.1.4"}, "pbspro"),
        ({"qsub": "echo 'Version: 6.1.2' >&2; echo 'Commit: 661e092' >&2"}, "torque"),
        ({"qsub": "echo 'qsub: unknown option' >&2; exit 2"}, "pbspro"),
    ],
)
def test_detection(
    commands: dict[str, str], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, body in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert detect()[0] == kind


@pytest.mark.parametrize("text", ["\ncd a\n./b 'c'\n", "a\n\nb", "\n\n"])
def test_a_text_of_several_lines_is_written_as_such(text: str) -> None:
    written = toml(text)
    assert written == f"'''\n{text}'''"
    assert tomllib.loads(f"a = {written}") == {"a": text}
