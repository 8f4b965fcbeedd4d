"""[[step]]: several programs in one job."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support import jobs, pairs

HEAD = """
[resources]
nodes = 2
ranks_per_node = 2
accelerator = "cpu"
[launch]
launcher = "torchrun"
"""
ONE = '[[step]]\ncommand = ["a.py", "$(touch canary)", "it\'s"]\n'


def rendered(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "job.toml").write_text(text)
    return jobs.jobgen("slurm", "--job", folder / "job.toml", *options)


@pytest.mark.parametrize(
    ("text", "options", "fault"),
    [
        (ONE + "lancher = 'srun'", "", "lancher ({file}, line 9, [[step]] 1): a step has no such key: use command, name, launcher, nodes, ranks_per_node, container, image, bind, container_arg, gpus, cores, env, parallel, starts, ready or ends; did you mean launcher?"),
        (ONE + "launcher = 'mpirn'", "", "launcher = mpirn ({file}, line 9, [[step]] 1): must be deepspeed, mpirun, torchrun, srun, accelerate, colossalai or none; did you mean mpirun?"),
        ("[[step]]\nnodes = 1", "", "command ({file}, line 9, [[step]] 1): must be a list of texts"),
        (ONE + "[[step]]\ncommand = []", "", "[[step]] 2): must be a list of texts"),
        *((ONE + f"nodes = {nodes}", "", f"nodes = {text} ({{file}}, line 9, [[step]] 1): must be a whole number of at least 1\n") for nodes, text in (("'1x2+1x4'", "1x2+1x4"), ("1.5", "1.5"), ("true", "true"), ("'submitted'", "submitted"))),
        (ONE + "nodes = 3", "", "nodes = 3 ([[step]] 1): the job has 2; increase nodes in [resources]"),
        (ONE + "[[step]]\ncommand=['x']\nranks_per_node = 4", "", "ranks_per_node = 4 ([[step]] 2): the job has 2"),
        (ONE + "[program]\ncommand = ['x']", "", "each step has its command; leave out [program]"),
        (ONE, "-- x", "each step has its command; leave out a program after --"),
        ("step = []\n", "", "must be one or more tables [[step]]"),
        (ONE, "--include node1 --launcher deepspeed", "--include node1 (command line): is for a job without [[step]]"),
        (ONE, "--nodes submitted", "--nodes submitted (command line): the steps of a job need a number of equal nodes"),
        (ONE + "parallel = true", "", "parallel = true ({file}, line 9, [[step]] 1): there is no step before the first one"),
        (ONE + "starts = 'after b is ready'\n[[step]]\nname = 'b'\ncommand = ['x']", "", "starts = 'after b is ready' ({file}, line 9, [[step]] 1): there is no step before the first one; put the step for which it waits before it"),
        ("[step]\ncommand = ['x']\n", "", "[step] ({file}, line 9): must be tables [[step]], with two brackets"),
        (ONE + "env = { A = true }", "", "A = true ({file}, line 9, [[step]] 1, env): must be a text in quotes or a whole number"),
        (ONE + "env = { 'A=B' = 'x' }", "", "A=B ({file}, line 9, [[step]] 1, env): a name of a variable has no =; write NAME = \"VALUE\""),
        (ONE + "[environment]\nenv = { 'A=B' = 'x' }", "", "A=B ({file}, line 12, env): a name of a variable has no =; write NAME = \"VALUE\""),
        (ONE + "nodes = 1\n[[step]]\ncommand=['x']\nparallel = true\n[[step]]\ncommand=['x']\nnodes = 1\nparallel = true", "", "parallel = true ([[step]] 3): steps at the same time need 1 + 2 + 1 = 4 nodes, but the job has 2"),
        (ONE + "env = { A = 1.5 }", "", "A = 1.5 ({file}, line 9, [[step]] 1, env): must be a text in quotes or a whole number"),
        (ONE + "image = 'x.sif'", "", "image = x.sif ([[step]] 1): needs a --container"),
        (ONE + "[[step]]\ncommand=['x']\nparallel = 1", "", "[[step]] 2): must be true or false"),
        (ONE + "[[step]]\ncommand=['x']\nparallel = true", "", "parallel = true ([[step]] 2): steps at the same time need 2 + 2 = 4 nodes, but the job has 2"),
        (ONE + "[[step]]\ncommand=['torchrun', 'x.py']", "", "is a launcher, which jobgen starts itself"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(text: str, options: str, fault: str, tmp_path: Path) -> None:
    whole = text + HEAD if text.startswith("step") else HEAD + "\n" + text
    done = rendered(tmp_path, whole, *options.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert fault.format(file=tmp_path / "job.toml") in done.stderr


def test_the_functions_of_the_steps(tmp_path: Path) -> None:
    done = rendered(
        tmp_path,
        HEAD
        + ONE
        + '[[step]]\ncommand = ["./solve"]\nlauncher = "mpirun"\nnodes = 1\n[[step]]\ncommand = ["-m", "x"]\n',
    )
    assert (done.returncode, jobs.LAUNCHER_NOTE.sub("", done.stderr)) == (0, "")
    job = done.stdout.partition("# ======== jobgen runtime")[0]
    assert re.findall(r"^(\w+)\(\) \{", job, re.MULTILINE) == ["environment", "step_1", "step_2", "step_3"]
    assert re.findall(r"^  job_nodes=(\d)$", job, re.MULTILINE) == ["2", "1", "2"]
    assert re.findall(r"program\(\) {\n    exec (.*)$", job, re.MULTILINE) == [
        "python3 a.py $'$(touch canary)' $'it\\'s'",
        "./solve",
        "python3 -m x",
    ]
    assert "job_need python3 torchrun mpirun\n" in job
    assert done.stdout.count("job_check_mpi() {") == 1
    (tmp_path / "job.sh").write_text(done.stdout)
    subprocess.run(["bash", "-n", "job.sh"], cwd=tmp_path, check=True)


def test_the_plan_of_a_run_has_the_steps(tmp_path: Path) -> None:
    from jobgen.config import read_spec
    from jobgen.jobfile.reader import read_job
    from jobgen.plan.plan import resolve
    from jobgen.rendering.render import render
    from jobgen.runs import plan_file

    (tmp_path / "job.toml").write_text(HEAD + ONE + '[[step]]\ncommand = ["x"]\nranks_per_node = 1\n')
    plan = resolve(read_spec("slurm", {}, (), read_job(str(tmp_path / "job.toml"), (), ())))
    text = render(plan)
    file = plan_file.of(plan, text, (), str(tmp_path), (), (), None)
    (tmp_path / plan_file.NAME).write_text(plan_file.text(file))
    again = resolve(plan_file.spec_of(plan_file.read(tmp_path)))
    assert render(again) == text


GPUS = """
[resources]
nodes = 2
gpus_per_node = 8
cpus_per_node = 16
[launch]
launcher = "torchrun"
"""
SERVER = '[[step]]\ncommand = ["./serve"]\nname = "server"\nready = { port = true }\n'
TRAINER = '[[step]]\ncommand = ["train.py"]\nname = "trainer"\nparallel = true\n'


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (SERVER + "gpus = 5\n" + TRAINER + "gpus = 4", "gpus = 4 ([[step]] 2): programs at the same time need 5 + 4 = 9 GPUs of each node, but the job has 8 GPUs; give each fewer"),
        (SERVER + "gpus = '0-3'\n" + TRAINER + "gpus = '3-7'", "gpus = 3-7 ([[step]] 2): number 3 is that of [[step]] 1, too; give each its own"),
        (SERVER + "gpus = '6-8'\n", "gpus = 6-8 ([[step]] 1): the job has 8 GPUs on each node, 0 to 7"),
        (SERVER + "gpus = 9\n", "need 9 GPUs of each node, but the job has 8 GPUs"),
        (SERVER + "gpus = 2\ncores = 12\n" + TRAINER + "gpus = 6\n", "cores = 12 ([[step]] 2): programs at the same time need 12 + 12 = 24 cores of each node, but the job has 16 cores"),
        (SERVER + "gpus = 0\n", "gpus = 0 ([[step]] 1): a part without devices needs cores, such as cores = 4"),
        (SERVER + "gpus = '4'\n", '[[step]] 1): is a text: 4 is a number of them, "0-4" names them'),
        (SERVER + "gpus = -1\n", 'gpus = -1 ('),
        (SERVER + "cores = 0\n", 'must be a number of at least 1, or a list such as "0-3,6"'),
        (SERVER + "gpus = 2\nenv = { CUDA_VISIBLE_DEVICES = '0,1' }\n", "env ([[step]] 1): CUDA_VISIBLE_DEVICES would replace the devices of [[step]] 1; leave it out"),
        (SERVER + "gpus = 2\n[environment]\nenv = { CUDA_VISIBLE_DEVICES = '0' }\n", "CUDA_VISIBLE_DEVICES would replace the devices of [[step]] 1; leave it out"),
        (SERVER + "gpus = 1\nranks_per_node = 4\n", "ranks_per_node = 4 ([[step]] 1): do not fit its 2 cores of each node"),
        (SERVER + "gpus = 2\nranks_per_node = 3\n", "ranks_per_node = 3 ([[step]] 1): do not fit its 2 GPUs of each node"),
        (SERVER + "gpus = 2\n" + TRAINER, "steps at the same time need 2 + 2 = 4 nodes, but the job has 2; give each fewer nodes, or a part of each with gpus or cores"),
        (SERVER.replace('"server"', '"a b"'), "must be a word of letters, digits and _"),
        (SERVER + TRAINER.replace("trainer", "server"), "name = server ([[step]] 2): is that of [[step]] 1, too"),
        (SERVER + "gpus = 2\n" + TRAINER + "gpus = 2\nstarts = 'after sever is ready'", "starts ([[step]] 2): no step has the name sever; did you mean server?"),
        (SERVER + "gpus = 2\n" + TRAINER + "gpus = 2\nstarts = 'with server'", 'must be "after NAME is ready", or "after NAME and NAME are ready"'),
        (SERVER + "gpus = 2\nends = 'after trainer'", 'must be "with NAME": it is ended when that step has ended'),
        (SERVER + "gpus = 2\nends = 'with trainer'\n[[step]]\ncommand = ['x']\nname = 'trainer'", "ends ([[step]] 1): trainer does not run at the same time"),
        (SERVER + "gpus = 2\n" + TRAINER.replace("true", "false") + "gpus = 2\nstarts = 'after server is ready'", "parallel = false ({file}, line 9, [[step]] 2): it starts beside the steps that it waits for"),
        (SERVER.replace("ready = { port = true }\n", "") + "gpus = 2\n" + TRAINER + "gpus = 2\nstarts = 'after server is ready'", "starts ([[step]] 2): server does not say when it is ready: add ready = { port = true } to it"),
        (SERVER + TRAINER + "gpus=1\nready = { line = 'x' }\nstarts = 'after judge is ready'\n[[step]]\ncommand = ['x']\nname = 'judge'\ngpus = 1\nready = { line = 'y' }\nstarts = 'after trainer is ready'", "starts ([[step]] 2): it waits for judge, which waits for it: neither would start"),
        (SERVER + "gpus = 1\nends = 'with trainer'\n" + TRAINER + "gpus = 1\nends = 'with server'", "ends ([[step]] 1): trainer is itself ended with another step"),
        (SERVER.replace("port = true", "prot = 1"), "must be a table with file, port or line, such as"),
        (SERVER.replace("port = true", "port = true, in = '2m'"), "in ({file}, line 9, [[step]] 1, ready): is no such key: use file, port, line or within"),
        (SERVER.replace("port = true", "port = true, within = 'soon'"), "within = soon ("),
        (SERVER.replace("port = true", "file = '$HOME/up'"), "file = $HOME/up ({file}, line 9, [[step]] 1, ready): must be a path without variables and ~"),
        (SERVER.replace("port = true", "port = 70000"), "must be true, or a number from 1 to 65535"),
        (SERVER.replace("port = true", "port = 80") + "gpus = 1\n" + SERVER.replace("server", "judge", 1).replace("port = true", "port = 80") + "gpus = 1\nparallel = true", "port = 80 ([[step]] 2, ready): is that of [[step]] 1 on the same node, too; give each its own, or true"),
        ("master_port = 8080\n" + SERVER.replace("port = true", "port = 8080") + "gpus = 1", "master_port = 8080 ({file}, line 9): is a port of [[step]] 1 on the same node, too; remove it"),
        (SERVER + TRAINER.replace("parallel = true", "starts = 'after server is ready'"), "starts ([[step]] 2): steps at the same time need 2 + 2 = 4 nodes, but the job has 2"),
        (SERVER.replace("name = \"server\"\n", ""), "ready ([[step]] 1): a step with a port needs a name"),
        (SERVER.replace("port = true", "line = 'up'"), "ready ([[step]] 1): no step starts after it"),
        (SERVER + "gpus = 1\ncontainer = 'docker'\nimage = 'x'\n" + TRAINER + "gpus = 1", "container = docker ([[step]] 1): its containers are ended for all steps at once"),
    ],
)  # fmt: skip
def test_a_wrong_division_is_one_sentence(text: str, fault: str, tmp_path: Path) -> None:
    done = rendered(tmp_path, GPUS + "\n" + text)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert fault.replace("{file}", str(tmp_path / "job.toml")) in done.stderr


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--gpus-per-node", "shard:8"), "a shard is a part of a GPU, which steps cannot divide"),
        (("--cpu-bind", "0-1:2-3:4-5:6-7:8-9:10-11:12-13:14-15"), "lists are for whole nodes, but [[step]] 1 has a part; use cores in it"),
        (("--remote", "ssh", "--launcher", "deepspeed"), "starts deepspeed on whole nodes, but [[step]] 2 has a part; use auto"),
        (("--master-port", "29500", "--launcher", "torchrun"), "--master-port 29500 (command line): is a port of [[step]] 1 on the same node, too; remove it"),
        (("--ranks", "15"), "--ranks 15 (command line): needs 1 node of 8 ranks and 1 of 7, but the steps of a job need a number of equal nodes; use --ranks 14 or 16, or --nodes 3 for 5 a node"),
        (("--rank-logs", "none"), "the line of [[step]] 1 is read in a log; use node or rank"),
        (("--accelerator", "cpu", "--gpus-per-node", "0"), "gpus = 2 ([[step]] 1): the job has no devices; use cores"),
    ],
)  # fmt: skip
def test_an_option_against_parts_is_one_sentence(
    options: tuple[str, ...], fault: str, tmp_path: Path
) -> None:
    server = SERVER.replace("port = true", "line = 'up'")
    trainer = TRAINER + "gpus = 6\nstarts = 'after server is ready'\n"
    done = rendered(tmp_path, f"{GPUS}\n{server}gpus = 2\nnodes = 1\n{trainer}", *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert fault in done.stderr


def test_the_parts_of_the_nodes(tmp_path: Path) -> None:
    text = f"""{GPUS}
{SERVER}gpus = 2
nodes = 1
env = {{ A = "$(touch canary) it's" }}
[[step]]
command = ["./judge"]
gpus = 0
cores = 1
parallel = true
{TRAINER}gpus = "2-7"
cores = 11
starts = "after server is ready"
[[step]]
command = ["x.py"]
"""
    done = rendered(tmp_path, text, "--env", "A=b", "--env", "B=c")
    assert done.returncode == 0, done.stderr
    job = done.stdout.partition("# ======== jobgen runtime")[0]

    def values(name: str) -> list[str]:
        return re.findall(rf"^  job_{name}=(.*)$", job, re.MULTILINE)

    assert values("part_devices") == ["0,1", "none", "2,3,4,5,6,7"]
    assert values("part_cores") == ["0-3", "4", "5-15"]
    assert values("part_variable") == ["CUDA_VISIBLE_DEVICES"] * 3
    assert values("ranks_per_node") == ["2", "1", "6", "8"]
    assert values("nodes") == ["1", "2", "2", "2"]
    assert values("waits_for") == ["(1)"]
    assert job.count("export A=b\n") == 4  # of the job, and of the steps without their own
    assert "    export A=$'$(touch canary) it\\'s'\n  }" in job
    assert job.count("    export B=c\n") == 4
    (tmp_path / "job.sh").write_text(done.stdout)
    assert jobs.jobgen("check", tmp_path / "job.sh").returncode == 0  # no device is idle
    subprocess.run(["bash", "-n", "job.sh"], cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    ("accelerator", "variable"),
    [("rocm", "HIP_VISIBLE_DEVICES"), ("xpu", "ZE_AFFINITY_MASK"), ("npu", "ASCEND_RT_VISIBLE_DEVICES")],
)
def test_the_variable_is_that_of_the_accelerator(accelerator: str, variable: str, tmp_path: Path) -> None:
    done = rendered(tmp_path, f"{GPUS}\n{SERVER}gpus = 2\nnodes = 1", "--accelerator", accelerator)
    assert f"  job_part_variable={variable}\n" in done.stdout


def test_groups_of_whole_nodes_and_parts(tmp_path: Path) -> None:
    """Parts that follow each other begin on one node; the next whole nodes follow all of them."""
    steps = [("gpus = 1", 2), ("gpus = 1", 1), ("", 1), ("cores = 1", 1), ("gpus = 1", 1)]
    text = "".join(
        f"[[step]]\ncommand = ['x.py']\n{part}\nnodes = {nodes}\nparallel = {str(number > 0).lower()}\n"
        for number, (part, nodes) in enumerate(steps)
    )
    done = rendered(tmp_path, GPUS + "\n" + text, "--nodes", "4")
    assert done.returncode == 0, done.stderr
    firsts = [
        re.findall(r"^  job_first_node=(.*)$", step, re.MULTILINE)
        for step in re.split(r"\nstep_\d\(", done.stdout)
    ]
    assert firsts == [[], [], [], ["2"], ["3"], ["3"]]


SIDE = SERVER.replace("port = true", "line = 'up'") + "gpus = 2\nnodes = 1\n"
SIDE += TRAINER + "gpus = 6\nstarts = 'after server is ready'\n"
SITE = """
title = "Example"
scheduler = "slurm"
[[source]]
facts = ["queues"]
confidence = "manual"
page = "https://example.org"
date = 2026-01-31
[rules]
srun_ranks = ["--gpus-per-task=1"]
[queues.gpu]
nodes = [1, 4]
"""
REFUSED: dict[str, tuple[str, ...]] = {
    "`[sweep]`": (SIDE + "[sweep]\nlr = [1, 2]",),
    "`[program]`": (SIDE + "[program]\ncommand = ['x']",),
    "`--include`, `--exclude`": (SIDE, "--include", "node1", "--launcher", "deepspeed"),
    "nodes that differ, `--nodes submitted`": (SIDE, "--nodes", "submitted"),
    "`--preflight` without `--launcher`": (SIDE, "--preflight"),
    "Docker, Podman at the same time": (SIDE, "--container", "docker", "--image", "x"),
    "`--launcher none` away from the first node": (
        SERVER + "nodes = 1\n" + TRAINER + "nodes = 1\nlauncher = 'none'\nranks_per_node = 1",
    ),
    "`--cpu-bind` LISTS with a part": (SIDE, "--cpu-bind", "0-1:2-3:4-5:6-7:8-9:10-11:12-13:14-15"),
    "`--remote ssh` and deepspeed with a part": (
        SIDE.replace("nodes = 1", "launcher = 'deepspeed'"),
        *("--remote", "ssh"),
    ),
    "`--env CUDA_VISIBLE_DEVICES` with a part": (SIDE, "--env", "CUDA_VISIBLE_DEVICES=0"),
    "shards of a GPU with a part": (SIDE, "--gpus-per-node", "shard:8"),
    "`--master-port` with parts of one node": (SIDE, "--master-port", "29500"),
    "`--master-addr` of one node, away from the first node": (
        SERVER + "nodes = 1\n" + TRAINER + "nodes = 1\n",
        *("--master-addr", "n1"),
    ),
    '`--rank-logs none` and `ready = { line = "TEXT" }`': (SIDE, "--rank-logs", "none"),
    "a site that sets `CUDA_VISIBLE_DEVICES`, with a part": (
        SIDE,
        "--site",
        "juwels-booster",
        "--account",
        "a",
    ),
    "a site whose srun options give each rank a GPU, with a part": (SIDE, "--site", "./site.toml"),
}


def test_the_table_of_pairs_holds(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(SITE)

    def refusal(name: str) -> str:
        text, *options = REFUSED[name]
        head = GPUS.replace('[launch]\nlauncher = "torchrun"\n', "") if "preflight" in name else GPUS
        done = rendered(tmp_path, f"{head}\n{text}", *(one.replace("./", f"{tmp_path}/") for one in options))
        assert done.returncode == 2, name
        return done.stderr

    pairs.check("steps.md", REFUSED, refusal)
