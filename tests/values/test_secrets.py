"""Secrets: what keeps them out of scripts and records, what masks them, and the modes of a run directory."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import jobs
from support.jobs import HOSTILE, PROBE, path_with
from support.require import need_command

from jobgen.schedulers.table import SCHEDULERS, queued
from jobgen.secrets import MASK, is_secret, masked, masked_data
from jobgen.values.parsers import read_env_file

SECRET = "xyzzy of xyzzy"
FORMS = (
    *("hf_abcdefghijklmnopqrstuvwxyzABCD", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
    *("github_pat_11ABCDEFG0abcdefghij_klmnop", "sk-proj-abcdefghijklmnopqrst-UV_wx"),
    *("AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJ_SM"),
)


def jobgen(
    cwd: Path, *words: object, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command where the fake sbatch and qsub accept every job."""
    tools = path_with(cwd / "bin", sbatch="echo 4711", qsub="echo 4711.head")
    here = {**os.environ, "PATH": f"{tools}:/usr/bin:/bin", **(env or {})}
    return jobs.jobgen(*words, cwd=cwd, env=here)


def submitted(cwd: Path, *words: object, env: Mapping[str, str] | None = None) -> Path:
    done = jobgen(cwd, "submit", *words, env=env)
    assert done.returncode == 0, done.stderr
    return sorted((cwd / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)[-1]


def on_a_node(run: Path, scheduler: str, env: Mapping[str, str], task: int = 0) -> int:
    """Run the script of a run directory as its scheduler would, on one node: this one."""
    (run.parent.parent / "nodes").write_text("localhost\n")
    tools = path_with(run.parent.parent / "node", scontrol="[[ $2 != hostnames ]] || echo localhost")
    said = {
        "slurm": {"SLURM_JOB_ID": "9", "SLURM_JOB_NODELIST": "localhost", "SLURM_ARRAY_JOB_ID": "9"}
        | {"SLURM_ARRAY_TASK_ID": str(task)},
        "pbs": {"PBS_JOBID": f"9[{task}].head", "PBS_NODEFILE": str(run.parent.parent / "nodes")}
        | {"PBS_ARRAY_INDEX": str(task)},
    }[scheduler]
    path = f"{tools}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    bare = {"HOME": str(run), "LANG": "C.UTF-8", "PATH": path, **said, **env}
    return subprocess.run(["bash", "job.sh"], cwd=run, env=bare, timeout=60).returncode


def outputs(cwd: Path, run: Path, env: Mapping[str, str] | None = None) -> str:
    """All that jobgen prints about a run, and its report."""
    words = ["status", "status --json", "list", "list --json", f"diff {run.name} {run.name}"]
    words += ["report -o report.html --force", f"submit --again {run.name} --dry-run"]
    done = [jobgen(cwd, *line.split(), env=env) for line in words]
    return "".join([*(one.stdout + one.stderr for one in done), (cwd / "report.html").read_text()])


def holders(folder: Path) -> set[Path]:
    """The files that have the secret in them."""
    return {path for path in folder.rglob("*") if path.is_file() and b"xyzzy" in path.read_bytes()}


# ------------------------------------------------------------------------------------------ the values


@pytest.mark.parametrize("scheduler", queued())
def test_a_value_is_nowhere_but_in_its_file(scheduler: str, tmp_path: Path) -> None:
    """An array, and a second attempt: both read the file, in a job whose environment lacks the variable."""
    need_command("mpirun")
    values = {f"HOSTILE_{number}": word for number, word in enumerate(HOSTILE)}
    (tmp_path / "tokens.env").write_text(f"# tokens\nexport FILE_TOKEN='{SECRET}'\n")
    (tmp_path / "tokens.env").chmod(0o600)
    (tmp_path / "seen").mkdir()
    names = [word for name in ("HF_TOKEN", *values) for word in ("--env", name)]
    options = (*names, "--env-file", "tokens.env", "--env", f"PROBE_DIR={tmp_path / 'seen'}")
    launch = ("--launcher", "mpirun", "--accelerator", "cpu", "--no-preflight", "--array", "0-1")
    run = submitted(tmp_path, scheduler, *launch, *options, "--", PROBE, env={"HF_TOKEN": SECRET, **values})
    for _ in range(2):
        assert on_a_node(run, scheduler, {"HF_TOKEN": "that of the node"}) == 0
    ranks = jobs.ranks_in(tmp_path / "seen")
    for rank in ranks:
        expected = {"HF_TOKEN": SECRET, "FILE_TOKEN": SECRET, **values}
        assert {name: rank.env.get(name) for name in expected} == expected
    assert (run / "task-0/attempt-2").is_dir()
    jobs.check_untouched(tmp_path, run, run / "task-0")
    assert "xyzzy" not in outputs(tmp_path, run, {"HF_TOKEN": SECRET, **values})
    of_probe = set((tmp_path / "seen").iterdir())
    assert holders(tmp_path) - of_probe == {tmp_path / "tokens.env", run / "environment"}
    assert stat.S_IMODE((run / "environment").stat().st_mode) == 0o600


def test_a_script_submitted_by_hand_keeps_what_came_with_the_job(tmp_path: Path) -> None:
    need_command("mpirun")
    (tmp_path / "seen").mkdir()
    words = ("local", "--launcher", "mpirun", "--env", "HF_TOKEN", "--env", f"PROBE_DIR={tmp_path / 'seen'}")
    script = tmp_path / "job.sh"
    assert jobgen(tmp_path, *words, "-o", script, "--", PROBE).returncode == 0
    bare = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"}
    run = [subprocess.run(["bash", "job.sh"], cwd=tmp_path, env=bare, capture_output=True, text=True)]
    assert run[0].returncode == 71
    assert "HF_TOKEN is not set: jobgen submit takes it from your environment" in run[0].stderr
    done = subprocess.run(["bash", "job.sh"], cwd=tmp_path, env={**bare, "HF_TOKEN": SECRET})
    assert done.returncode == 0
    [rank] = jobs.ranks_in(tmp_path / "seen")
    assert rank.env["HF_TOKEN"] == SECRET
    assert not [*(tmp_path / "runs").glob("*/environment"), *(tmp_path / "runs").glob("*/env.sh")]


def test_the_environment_of_a_job_that_can_go_on_stays(tmp_path: Path) -> None:
    """With the token that nobody named, which env.sh lacks; a finished attempt removes both files."""
    need_command("mpirun")
    words = (
        "local",
        "--launcher",
        "mpirun",
        "--accelerator",
        "cpu",
        "--env",
        "HF_TOKEN",
        "-o",
        "job.sh",
        "--",
    )
    code = "[ ${#HF_TOKEN} = 14 ] && [ ${#MY_KEY} = 6 ] && exit 75; exit 9"
    assert jobgen(tmp_path, *words, "bash", "-c", code).returncode == 0
    env = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"}
    env |= {"HF_TOKEN": SECRET, "MY_KEY": "xyzzy2"}
    assert subprocess.run(["bash", "job.sh"], cwd=tmp_path, env=env).returncode == 75
    [run] = (tmp_path / "runs").iterdir()
    assert holders(tmp_path) == {run / "environment"}
    assert stat.S_IMODE((run / "environment").stat().st_mode) == 0o600
    assert stat.S_IMODE((run / "job.sh").stat().st_mode) == 0o700
    kept = run / "environment"
    assert kept.read_bytes() == f"HF_TOKEN={SECRET}\0MY_KEY=xyzzy2\0".encode()
    assert "resumable" in jobgen(tmp_path, "status").stdout
    assert kept.exists()
    (run / "cancelled").touch()
    assert "cancelled" in jobgen(tmp_path, "list").stdout
    assert not kept.exists()
    assert not (run / "env.sh").exists()


def test_names_in_a_job_file(tmp_path: Path) -> None:
    (tmp_path / "tokens.env").write_text("B=2\n")
    text = 'scheduler = "slurm"\n[environment]\nenv = ["A=1", "HF_TOKEN"]\nenv_file = ["tokens.env"]\n'
    (tmp_path / "jobgen.toml").write_text(text)
    script = jobgen(tmp_path, "slurm").stdout
    assert "job_secret_names=(HF_TOKEN B)" in script
    assert "  export A=1\n  job_secrets\n" in script


REFUSED = {
    "--env HF_TOKEN": "--env HF_TOKEN (command line): the variable is not set here: export it first",
    "--env-file nowhere": "--env-file nowhere (command line): cannot be read: No such file or directory",
    "--env-file wrong": "--env-file wrong (command line): line 2 must be NAME=VALUE; a value with blanks",
    "--env-file taken": "--env-file taken (command line): line 1: RANK cannot be set: the script sets RANK",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_taken_is_refused(words: str, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text(f"A=1\nB={SECRET}\n")
    (tmp_path / "taken").write_text("RANK=1\n")
    done = jobgen(tmp_path, "submit", "slurm", *words.split())
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert REFUSED[words] in done.stderr
    assert SECRET not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_file_of_variables_that_others_may_read(tmp_path: Path) -> None:
    (tmp_path / "tokens.env").write_text("A=1\n")
    (tmp_path / "tokens.env").chmod(0o640)
    done = jobgen(tmp_path, "submit", "slurm", "--env-file", "tokens.env")
    assert done.returncode == 0
    assert done.stderr.startswith("jobgen: warning: others may read /")


LINES = {
    "": {},
    "  # A=1": {},
    "A=": {"A": ""},
    "A=a#b$c\\": {"A": "a#b$c\\"},
    "export A='a \"b\" $c'  ": {"A": 'a "b" $c'},
    'A="it\'s"': {"A": "it's"},
    "A=b c": None,
    "A = b": None,
    " A=b": None,
    "A='b": None,
    "A='b'c": None,
    "A=b\r": {"A": "b"},  # the end of a line on Windows
    "A-B=c": None,
    "A": None,
    "A=b # c": None,
    "BASH_ENV=x": None,
    "A=\0": None,
}


def test_a_file_of_variables_from_a_command() -> None:
    """--env-file <(command) is read when the options are checked and when the job is submitted."""
    read, write = os.pipe()
    os.write(write, b"A=b\n")
    os.close(write)
    assert [read_env_file(f"/dev/fd/{read}") for _ in range(2)] == [{"A": "b"}] * 2


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_a_file_of_variables(line: str, tmp_path: Path) -> None:
    (tmp_path / "env").write_text(f"{line}\n", newline="")
    if LINES[line] is None:
        with pytest.raises(ValueError, match="^line 1"):
            read_env_file(str(tmp_path / "env"))
    else:
        assert read_env_file(str(tmp_path / "env")) == LINES[line]


# ------------------------------------------------------------------------------------------- the masks

MASKED = {
    "--pwd xyz --db-pwd=/z": "--pwd *** --db-pwd=***",
    "--pass a --wandb_key=b": "--pass *** --wandb_key=***",
    "REDIS_PASS=a GITHUB_PAT=b WANDB_AUTH=c": "REDIS_PASS=*** GITHUB_PAT=*** WANDB_AUTH=***",
    "Authorization: Basic abc": "Authorization: Basic ***",
    "['a.py', '--token', 'abc', 'b']": "['a.py', '--token', ***, 'b']",
    "--token (after --): is no option": "--token (after --): is no option",
    "https://h/x?X-Amz-Signature=a https://h/y?sig=b": "https://h/x?X-Amz-Signature=*** https://h/y?sig=***",
    f"https://{'a1' * 20}@h/x dckr_pat_{'a' * 20}": "https://***@h/x ***",
    "HF_TOKEN=abc": "HF_TOKEN=***",
    "a.py --pw hunter --db_pw='x yz' -pw=abcd": "a.py --pw *** --db_pw=*** -pw=***",
    "--key a8f5f167f44f4964e6c998dee --auth me:hunter2": "--key *** --auth ***",
    "export WANDB_API_KEY=$'a\\'b' next": "export WANDB_API_KEY=*** next",
    "DB=postgres://u:hidden@h/x": "DB=postgres://u:***@h/x",
    "train.py --api-key abc --lr 1": "train.py --api-key *** --lr 1",
    "--hf-token 'it'\"'\"'s' x": "--hf-token *** x",
    '{"api_key": "x"}': '{"api_key": ***',
    "curl -H 'Authorization: Bearer abcdefgh123' x": "curl -H 'Authorization: Bearer ***' x",
    "PASSWORD='$Abc' x": "PASSWORD=*** x",
    "MYSQL_PWD=x PGPASSWORD=y DB_PASS=a OPENAI_KEY=b PWD=/z": "MYSQL_PWD=*** PGPASSWORD=*** DB_PASS=*** OPENAI_KEY=*** PWD=/z",
    "'--token=it'\"'\"'s x' 'HF_TOKEN=a b'; A='B'": "'--token=***' 'HF_TOKEN=***'; A='B'",
    'env "HF_TOKEN=a b" x': 'env "HF_TOKEN=***" x',
    "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA": "-----BEGIN RSA PRIVATE KEY-----***-----END RSA",
    **{f"a {form}, b": "a ***, b" for form in FORMS},
}
SHOWN = (
    "--pad-token <pad> --max-tokens 5 num_tokens=3 --max-new-tokens 128 --sort-key loss --low-pass 3",
    "TOKENIZERS_PARALLELISM=true",
    'HF_TOKEN=$MINE --api-key "$KEY"',
    "docker://registry:5000/x@sha256:abc",
    "there is no option --token; the program's own options go after --",
    "apptainer exec --pwd /data --pwd='/my data' --nv a.sif",
    "--pw 0.5 --pw 10 --pw $PW --key loss --key=images/train_224 --key ~/id_rsa --auth basic --auth oauth2",
    "--key layer4.2.conv1 --key 10x_v3_chemistry --cache-key a8f5f167f44f4964e6c998dee pw.x -p 4 PW=pw.x",
    "--use-auth-token true task-20261121-120000-abcdef-sk-x monkey=3",
)


@pytest.mark.parametrize("text", [*MASKED, *SHOWN])
def test_a_text_is_masked(text: str) -> None:
    assert masked(text) == MASKED.get(text, text)
    assert masked(masked(text)) == masked(text)


def test_data_is_masked() -> None:
    data = {
        "env": [["HF_TOKEN", "x y"], ["A", "b"], ["PAD_TOKEN", "c"]],
        "words": [
            *("a.py", "PASSWORD=$my pass word", "--set=a.token=b c", "ALL,TOKEN=b c", "--api-key", "abc"),
            *("--token", "--lr", "1", "--pwd", "$WORK"),
        ],
        "sweep": [["api_key", ["a", "b"]], ["lr", [1, 2]]],
        "db": {"password": 123456, "pad_token": "c", "use_token": True, "secret": None},
    }
    assert masked_data(data) == {
        "env": [["HF_TOKEN", MASK], ["A", "b"], ["PAD_TOKEN", "c"]],
        "words": [
            "a.py",
            "PASSWORD=***",
            "--set=a.token=***",
            "ALL,TOKEN=***",
            "--api-key",
            MASK,
            "--token",
            "--lr",
            "1",
            "--pwd",
            "$WORK",
        ],
        "sweep": [["api_key", [MASK, MASK]], ["lr", [1, 2]]],
        "db": {"password": MASK, "pad_token": "c", "use_token": True, "secret": None},
    }


@given(st.text(st.sampled_from("tokensecret=:-_/@'\"\\$ \nhf_eyJ.AKIA"), max_size=300))
def test_any_text_can_be_masked(text: str) -> None:
    assert isinstance(masked(text), str)
    assert is_secret("HF_TOKEN", f"x{text}")


@pytest.mark.parametrize(
    "part",
    ["token", "-", "--a", "://", "token='", "token=$'\\", "eyJ", "hf_", "://a:", "pad_token=", "'a=", '"a\\'],
)
def test_masking_is_linear(part: str) -> None:
    masked_data([part * 100_000 + "token="])  # quadratic work would take minutes


SAID = ("--env", f"HF_TOKEN={SECRET}", f"--env=API_KEY={SECRET}", "--env", "DB=postgres://u:xyzzy@h/x")
SAID += (
    "--launcher",
    "torchrun",
    "--setup",
    f"export API_KEY='{SECRET}'",
    "--before",
    "curl -H 'Authorization: Bearer xyzzy-xyzzy'",
)
PROGRAM = ("--", "train.py", "--db-password", SECRET, f"--token={SECRET}", "--url=http://u:xyzzy@h")


def test_a_secret_on_the_command_line_is_shown_nowhere(tmp_path: Path) -> None:
    """Only the script has it; submit --again makes the same script nevertheless."""
    first = submitted(tmp_path, "slurm", "--name", "a", *SAID, *PROGRAM)
    second = submitted(tmp_path, "slurm", "--name", "b", *SAID, "--env", "TOKEN=xyzzy2", *PROGRAM)
    again = jobgen(tmp_path, "submit", "--again", first.name, "--dry-run")
    assert (again.stdout, again.stderr) == ((first / "job.sh").read_text(), "")
    for words in ("slurm --explain", "slurm --explain --json"):
        shown = jobgen(tmp_path, *words.split(), *SAID, *PROGRAM)
        assert MASK in shown.stdout
        assert "xyzzy" not in shown.stdout + shown.stderr
    for words in ("diff", "diff --json", "report -o both.html"):
        shown = jobgen(tmp_path, *words.split(), first, second)
        assert "xyzzy" not in shown.stdout + shown.stderr
    assert holders(tmp_path) == {first / "job.sh", second / "job.sh"}
    (first / "job.sh").write_text("echo edited\n")
    again = jobgen(tmp_path, "submit", "--again", first.name)
    assert (again.returncode, len(again.stderr.splitlines())) == (2, 1)
    assert (
        "plan.json leaves out secrets of env, setup, before, program, and its job.sh was edited"
        in again.stderr
    )


@pytest.mark.parametrize(
    "words",
    [
        ("slurm", "--env", f"1HF_TOKEN={SECRET}"),
        ("slurm", "--nodes", f"token={SECRET}"),
        ("slurm", f"HF_TOKEN={SECRET}"),
        (f"HF_TOKEN={SECRET}", "--nodes", "2"),
        ("slurm", "--export", f"ALL,HF_TOKEN={SECRET}"),
        ("pbs", "-v", f"A=1,HF_TOKEN={SECRET}"),
        ("slurm", "--", "torchrun", "train.py", f"--token={SECRET}"),
        ("slurm", "--", "srun", "train.py", "--token", SECRET),
        ("submit", "slurm", "--comment", f"token={SECRET}", "--", "train.py"),
        ("convert", "old.sh", "--to", "toml"),
    ],
)
def test_no_message_shows_a_secret(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "old.sh").write_text(f"#!/bin/bash\n#SBATCH --nodes=2\necho '--token={SECRET}' | srun x\n")
    refusing = path_with(tmp_path / "refusing", sbatch=f"echo 'bad: token=\"{SECRET}\"' >&2; exit 1")
    done = jobgen(
        tmp_path, *words, env={"PATH": f"{refusing}:/usr/bin:/bin"} if "--comment" in words else None
    )
    assert done.returncode in (1, 2)
    assert MASK in done.stderr
    assert "xyzzy" not in done.stderr


ARGUMENTS = {
    "mysql -u root -p hunter2": "mysql -u root -p ***",
    "sshpass -p hunter2 ssh host": "sshpass -p *** ssh host",
    "mysql -u root -phunter2 db": "mysql -u root -p*** db",
    "a.py --user me --port 80 -p Hunter22!": "a.py --user me --port 80 -p ***",
    "curl -u me:hunter2 host": "curl -u me:*** host",
    "a.py --pw hunter": "a.py --pw ***",
    "a.py --key=a8f5f167f44f4964e6c998dee": "a.py --key=***",
    "http --auth me:hunter2 host": "http --auth *** host",
}
HARMLESS = (
    "docker run -u 1000:1000 -p 8886:88 a",
    "docker run -u me:users1 -p 127.0.0.1:80:80 a",
    'date -d @9 -u "+$((td/86400))-%H:%M:%S"',
    "squeue -u me -p gpu",
    "squeue -u me -p gpu_a100",
    "squeue -u me -p gpu-4",
    "python -u a.py -p hunter2",
    "a.py -p 0.25 -u 1e-4",
    "bowtie2 -U reads.fq -p 16 -S out.sam",
    "cutadapt -u 15 -o a.fq -p out_1.fq",
    "a.py --user me -p data/run1",
    "a.py --user me -pretrained2",
)


@pytest.mark.parametrize("line", [*ARGUMENTS, *HARMLESS])
def test_arguments_are_secrets_by_the_options_before_them(line: str) -> None:
    expected = ARGUMENTS.get(line, line)
    assert " ".join(masked_data(line.split())) == expected
    assert masked(f"a\nexec {line}\n-p hunter2") == f"a\nexec {expected}\n-p hunter2"


def test_a_secret_in_a_script_is_warned_of(tmp_path: Path) -> None:
    warning = (
        "the script contains HF_TOKEN=*** (command line), which looks like a secret: "
        "--env HF_TOKEN or --env-file FILE keeps it out"
    )
    for words in (("slurm",), ("submit", "slurm", "-n")):
        options = ("--launcher", "deepspeed", "--env", "NCCL_DEBUG=INFO")
        done = jobgen(tmp_path, *words, "--env", f"HF_TOKEN={SECRET}", *options)
        assert (done.returncode, done.stderr) == (0, f"jobgen: warning: {warning}\n")
    assert "secret" not in jobgen(tmp_path, "slurm", "--env", "HF_TOKEN").stderr


IN_SCRIPT = "the script contains {} ({}), which looks like a secret: --env {} or --env-file FILE keeps it out"
IN_JOB = (
    'the script contains {} ({}), which looks like a secret: env = ["{}"] or env_file = ["FILE"] keeps it out'
)
SHOWN_BY_PS = "; ps shows arguments to all users of a node"
WITH_PS = IN_SCRIPT + SHOWN_BY_PS
IN_FILE = "{} ({}) contains {}: ***, which looks like a secret: --env {} or --env-file FILE gives it to the program without a file"
NOTICED = {
    "-- train.py --api-key xyzzyxyzzy": WITH_PS.format("--api-key ***", "after --", "API_KEY"),
    "-- train.py --token=xyzzyxyzzy": WITH_PS.format("--token=***", "after --", "TOKEN"),
    "-- train.py https://u:xyzzy@host/x": WITH_PS.format("https://u:***@host/x", "after --", "NAME"),
    "-- bash -c 'cd /a\nexport TOKEN=xyzzy\n./a'": WITH_PS.format("export TOKEN=***", "after --", "TOKEN"),
    f"-- bash -c 'A={'b' * 70} --api-key=xyzzy'": WITH_PS.format(
        f"...{'b' * 29} --api-key=***", "after --", "API_KEY"
    ),
    "-- train.py --user me -p xyzzy22": WITH_PS.format("-p ***", "after --", "PASSWORD"),
    "-- train.py --pw=xyzzy": WITH_PS.format("--pw=***", "after --", "PASSWORD"),
    "-- ./run --url=https://u:xyzzy@host": WITH_PS.format("--url=https://u:***@host", "after --", "NAME"),
    f"-- train.py {FORMS[0]}xyzzy": WITH_PS.format("***", "after --", "NAME"),
    "--env DB=postgres://u:xyzzy@h/x": IN_SCRIPT.format("DB=postgres://u:***@h/x", "command line", "DB"),
    "--setup API_KEY=xyzzy": IN_SCRIPT.format("--setup API_KEY=***", "command line", "NAME"),
    "--launcher-arg=--token=xyzzy": IN_SCRIPT.format("--launcher-arg --token=***", "command line", "NAME"),
    "--comment pw=xyzzy": IN_SCRIPT.format("--comment pw=***", "command line", "NAME"),
    "--comment 'the password: xyzzy'": IN_SCRIPT.format(
        "--comment the password: ***", "command line", "NAME"
    ),
    "--job job.toml": IN_JOB.format("--password ***", "job.toml, line 2", "PASSWORD") + SHOWN_BY_PS,
    "--job sweep.toml -- x.py": IN_JOB.format("api_key = ***", "sweep.toml, line 1", "API_KEY"),
    "-- train.py --deepspeed_config ds.json": IN_FILE.format("ds.json", "after --", "api_key", "API_KEY"),
    "-- train.py --config=c.yaml": IN_FILE.format("c.yaml", "after --", "hub.token", "HUB_TOKEN"),
    "-- train.py c.ini": IN_FILE.format("c.ini", "after --", "password", "PASSWORD"),
}
UNNOTICED = (
    "--comment 'tokens: all; the key idea is here'",
    "-- train.py --pad-token x --lr 0.1 --config none.json",
    "-- train.py --single_pass=1 --two-pass yes --pass=0",
    "--env HF_TOKEN",
    "-- train.py good.json https://h/x",
    "--setup API_KEY=$(<f)",
)


@pytest.mark.parametrize("words", [*NOTICED, *UNNOTICED])
def test_a_secret_in_a_script_or_its_files_is_noticed(words: str, tmp_path: Path) -> None:
    """One sentence names the place, masks the value and says how to keep it out; nothing else shows it."""
    (tmp_path / "job.toml").write_text('[program]\ncommand = ["x.py", "--password", "xyzzy"]\n')
    (tmp_path / "sweep.toml").write_text('[sweep]\napi_key = ["xyzzy", "xyzzyx"]\n')
    (tmp_path / "ds.json").write_text('{"train_batch_size": 4, "monitor": [{"api_key": "xyzzyxyzzy"}]}')
    (tmp_path / "good.json").write_text('{"train_batch_size": 4, "pad_token": "x", "api_key": null}')
    (tmp_path / "c.yaml").write_text("lr: 0.1\nhub:\n  # comment\nhub.token: 'xyzzyxyzzy'\n")
    (tmp_path / "c.ini").write_text("[db]\npassword = xyzzyxyzzy\n")
    line = shlex.split(words)
    done = jobgen(tmp_path, "slurm", *line)
    expected = f"jobgen: warning: {NOTICED[words]}\n" if words in NOTICED else ""
    said = "".join(row for row in done.stderr.splitlines(keepends=True) if "secret" in row)
    assert (done.returncode, said) == (0, expected)
    assert "xyzzy" not in done.stderr
    shown = jobgen(tmp_path, "slurm", "--explain", *line)
    assert shown.returncode == 0
    assert "xyzzy" not in shown.stdout + shown.stderr


def test_a_secret_of_the_environment_is_taken_again(tmp_path: Path) -> None:
    run = submitted(tmp_path, "pbs", "--env", "HF_TOKEN", env={"HF_TOKEN": "first"})
    assert json.loads((run / "plan.json").read_text())["options"]["env"]["request"] == [["HF_TOKEN", None]]
    assert jobgen(tmp_path, "submit", "--again", run.name).returncode == 2
    again = submitted(tmp_path, "--again", run.name, env={"HF_TOKEN": "second"})
    assert (again / "job.sh").read_text() == (run / "job.sh").read_text()
    assert (again / "environment").read_text() == "HF_TOKEN=second\0"


# ------------------------------------------------------------------------------------------- the modes


def modes(folder: Path) -> dict[str, int]:
    paths = (folder, *folder.rglob("*"))
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in paths}


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("kind", SCHEDULERS)
def test_a_run_directory_is_private(kind: str, group: bool, tmp_path: Path) -> None:
    """Whatever the umask; the files of the program, outside of it, have the modes of the umask."""
    need_command("mpirun")
    scheduler = SCHEDULERS[kind]
    dialect = [] if "dialect" in scheduler.lacks else ["--dialect", kind]
    words = [scheduler.command_name, *dialect, "--launcher", "mpirun", "--accelerator", "cpu"]
    words += ["--rank-logs", "rank", "--setup", "touch set-up", *(["--group-readable"] if group else [])]
    words += ["--before", "touch before", "--", "bash", "-c", "touch theirs $JOBGEN_RUN_DIR/theirs"]
    before = os.umask(0o002)
    try:
        if scheduler.behaviour.one_host:
            assert jobgen(tmp_path, *words[:-4], "-o", "job.sh", *words[-4:]).returncode == 0
            bare = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
            assert subprocess.run(["bash", "job.sh"], cwd=tmp_path, env=bare).returncode == 0
            [run] = (tmp_path / "runs").iterdir()
        else:
            run = submitted(tmp_path, *words)
            assert on_a_node(run, scheduler.command_name, {}) == 0
    finally:
        os.umask(before)
    found = modes(run)
    assert found.pop("functions.sh") == 0o600
    assert found.pop("job.sh") == 0o700
    assert not {"env.sh", "environment"} & set(found)
    assert found.pop("theirs") == 0o664
    assert set(found.values()) <= ({0o750, 0o640} if group else {0o700, 0o600}), found
    for name in ("theirs", "set-up", "before"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o664


def test_a_group_of_a_project_stays(tmp_path: Path) -> None:
    """The bit setgid, by which new files belong to the group of the project."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs").chmod(0o2770)
    run = submitted(tmp_path, "slurm", "--group-readable")
    assert stat.S_IMODE(run.stat().st_mode) == 0o2750


def test_check_knows_the_secrets_that_generation_warns_of(tmp_path: Path) -> None:
    """In a script of jobgen, and in a job file, where the remedy is an option of it."""
    done = jobgen(
        tmp_path, "slurm", "--comment", "pw=xyzzy", "-o", "job.sh", "--", "train.py", "--password", "xyzzy"
    )
    assert done.stderr.count("looks like a secret") == 2
    found = jobgen(tmp_path, "check", "job.sh").stdout
    assert (found.count("[secret-in-script]"), "--env PASSWORD" in found, "xyzzy" in found) == (
        2,
        True,
        False,
    )
    (tmp_path / "job.toml").write_text(
        'scheduler = "slurm"\n[program]\ncommand = ["train.py", "--password", "xyzzy"]\n[environment]\nenv = ["API_KEY=xyzzy"]\n'
    )
    lines = jobgen(tmp_path, "check", "job.toml").stdout.splitlines()
    assert [line[:11] for line in lines if "[secret-in-script]" in line] == ["job.toml:3:", "job.toml:5:"]
    assert [line.split(" or ")[0] for line in lines if "keeps it out" in line] == [
        '    env = ["PASSWORD"]',
        '    env = ["API_KEY"]',
    ]
    assert "KEY=$(" not in "".join(lines)


def test_variables_that_others_may_read_are_warned_of_at_once(tmp_path: Path) -> None:
    (tmp_path / "e.env").write_text("A=1\n")
    for mode, warned in ((0o644, True), (0o640, True), (0o600, False)):
        (tmp_path / "e.env").chmod(mode)
        done = jobgen(tmp_path, "slurm", "--env-file", "e.env", "--", "train.py")
        assert ("others may read" in done.stderr and "chmod 600" in done.stderr) == warned
