"""Sites: what they add to jobs, what wins, what they refuse, and what exceeds them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from golden.cases import job_part
from hypothesis import given
from hypothesis import strategies as st
from support.require import need_command
from support.sites import LOADED, SHIPPED, sentence, spec

from jobgen import JobSpec, render
from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.jobfile.reader import read_job
from jobgen.plan.plan import resolve
from jobgen.sites import loader
from jobgen.sites.defaults import without
from jobgen.sites.limits import JobSize, excesses
from jobgen.sites.sources import newest
from jobgen.spec import COMMAND_LINE, SiteName


@pytest.mark.parametrize("name", SHIPPED)
def test_a_site_has_sources_and_each_value_a_line(name: str) -> None:
    site = loader.load(name)
    assert site.file.source
    schedulers_choice = name in {"alliance", "cx3", "fir", "narval", "nibi", "rorqual"}
    assert not site.queues or (site.values.get("queue") in site.queues) != schedulers_choice
    for key, at in site.places.items():
        assert at[1], key


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("slurm polaris", ["--site polaris (command line)", "ALCF Polaris has PBS", "use jobgen pbs"]),
        ("local polaris", ["a local run has no site", "--site none"]),
        ("pbs polrs", ["no such site", "did you mean polaris?"]),
        ("pbs polaris", ["ALCF Polaris", "requires account", "--account PROJECT"]),
        ("pbs polaris account=x mem=64G", ["--mem 64G", "memory is allocated with the nodes"]),
        ("slurm perlmutter account=x qos=debug", ["a queue of NERSC Perlmutter is a QoS", "--queue debug"]),
        ("pbs polaris account=x constraint=a=b", ["the site has its own request of nodes"]),
        (
            "pbs sophia account=x queue=by-gpu nodes=2",
            ["--nodes 2", "queue by-gpu of ALCF Sophia takes 1 node"],
        ),
        ("pbs polaris account=x accelerator=npu", ["--accelerator npu", "ALCF Polaris has cuda"]),
        (
            "pbs gadi account=x nodes=2",
            ["NCI Gadi requires storage", "'-l storage=gdata/PROJECT+scratch/PROJECT'"],
        ),
        ("pbs polaris account=x network=plugn", ["--network plugn", "offers plugin; did you mean plugin?"]),
        ("pbs abci account=x network=plugin", ["ABCI 3.0 offers no network settings; remove it"]),
        (
            "pbs none network=plugin",
            ["--network plugin", "is the name of a network setting of a site: add --site"],
        ),
        ("slurm setonix account=x mem=100G", ["--mem 100G", "memory comes with each GPU"]),
        ("slurm perlmutter account=x accelerator=cpu", ["this job has none", "another queue or site"]),
    ],
)
def test_what_a_site_refuses_is_one_sentence(command: str, words: list[str]) -> None:
    said = sentence(command)
    assert [word for word in words if word not in said] == [], said
    assert "\n" not in said


def warning(command: str, beside: Path | None = None) -> str:
    """The first warning on a job that is rendered."""
    job = spec(command, beside)
    assert render(job)
    said, *_ = resolve(job).site.warnings
    return said


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "pbs polaris account=x nodes=3",
            ["--nodes 3", "queue debug", "1 to 2 nodes", "debug-scaling, preemptable"],
        ),
        (
            "pbs polaris account=x nodes=600 queue=prod",
            ["10 to 496 nodes", "no queue accepts it, but prod would with --nodes 496 (the manual"],
        ),
        ("pbs polaris account=x nodes=12 queue=prod walltime=4h", ["at most 03:00:00 for a job of 12 nodes"]),
        ("pbs polaris account=x walltime=2h", ["--walltime 2h", "at most 01:00:00", "capacity"]),
        ("pbs polaris account=x queue=prodd", ["no such queue", "did you mean prod?"]),
        ("pbs polaris account=x gpus_per_node=5", ["at most 4 accelerators a node"]),
        ("pbs polaris account=x cpus_per_rank=9", ["--cpus-per-rank 9", "at most 32 cores a node"]),
        ("pbs polaris account=x cpus_per_node=64", ["--cpus-per-node 64", "at most 32 cores a node"]),
        ("pbs derecho account=x mem=600G", ["at most 487G a node", "--mem 487G"]),
        ("pbs polaris account=x nodes=2 spare_nodes=1", ["1 to 2 nodes, and 2 with 1 spare nodes are 3"]),
        ("slurm lumi account=x cpus_per_rank=8", ["at most 56 cores a node"]),
        ("slurm setonix account=x queue=gpu-dev nodes=3", ["takes 1 to 2 nodes", "use --queue gpu"]),
        ("pbs aurora account=x queue=prod nodes=8", ["256 to 10624 nodes"]),
        (
            "pbs gadi account=x directive=-lstorage=x gpus_per_node=2 nodes=2",
            ["only with all 4 accelerators"],
        ),
        (
            "pbs gadi account=x directive=-lstorage=x gpus_per_node=1 cpus_per_rank=13",
            ["at most 12 cores a node, 12 for each accelerator"],
        ),
        ("pbs abci account=x queue=rt_HG nodes=2", ["takes 1 node; rt_HF takes 1 to", ": use --queue rt_HF"]),
        ("pbs cx3 nodes=2", ["queue gpu72 of Imperial CX3 takes 1 node"]),
        ("slurm frontier account=x nodes=92 walltime=7h", ["at most 06:00:00 for a job of 92 nodes"]),
        ("slurm perlmutter account=x queue=debug walltime=1h", ["at most 00:30:00"]),
        (
            "pbs sophia account=x queue=by-gpu gpus_per_node=3",
            [
                "--gpus-per-node 3",
                "by-gpu of ALCF Sophia takes 1, 2, 4 or 8 accelerators a node",
                "use --queue by-node",
            ],
        ),
    ],
)
def test_what_exceeds_the_site_file_is_a_warning_with_its_date(command: str, words: list[str]) -> None:
    said = warning(command)
    assert [word for word in words if word not in said] == [], said
    day = newest(LOADED[command.split()[1]], "queues")
    assert said.endswith(f"{f' of {day}' if day else ''}; jobgen site refresh asks the scheduler)"), said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("jean-zay account=abc", "--account abc (command line): accounts of queue qos_gpu_h100-t3 end with @h100 at IDRIS Jean Zay: use abc@h100"),
        ("jean-zay account=abc@h100 queue=qos_gpu_a100-t3", "end with @a100 at IDRIS Jean Zay: use abc@a100"),
        ("jean-zay account=abc@a100 queue=qos_gpu-t4", "end with @v100 at IDRIS Jean Zay: use abc@v100"),
        ("setonix account=abc", "accounts of jobs with accelerators end with -gpu at Pawsey Setonix: use abc-gpu"),
        ("jean-zay account=abc@h100", ""),
        ("setonix account=abc-gpu", ""),
    ],
)  # fmt: skip
def test_the_end_of_an_account(command: str, words: str) -> None:
    warnings = resolve(spec(f"slurm {command}")).site.warnings
    assert words in "".join(warnings) if words else warnings == ()


def test_options_of_the_scheduler_win_over_the_sites_directives() -> None:
    text = render(spec("slurm perlmutter account=x constraint=gpu&hbm80g"))
    assert re.findall("#SBATCH --constraint=(.*)", text) == ["gpu&hbm80g"]
    text = render(spec("slurm frontier account=x queue=debug qos=other"))
    assert re.findall("#SBATCH --qos=(.*)", text) == ["other"]
    assert ":gpu_type=A100\n" in render(spec("pbs cx3 constraint=gpu_type=A100"))


def test_a_reservation_is_no_unknown_queue() -> None:
    text = render(spec("pbs polaris account=x reservation=R123456 nodes=3"))
    assert re.findall("#PBS -q (.*)", text) == ["R123456"]
    assert "#PBS -q R123456\n" in render(spec("pbs polaris account=x queue=R123456 nodes=3"))


def test_a_queue_without_devices_makes_a_job_for_cpus() -> None:
    resources = resolve(spec("pbs abci account=x queue=rt_HC")).resources
    assert (resources.accelerator_name, resources.gpus_per_node, resources.cpus.rank) == ("cpu", 0, 32)


def test_the_time_is_shortened_only_where_nobody_said_it() -> None:
    plan = resolve(spec("slurm perlmutter account=x queue=debug"))
    assert (plan.resources.walltime, plan.spec.origin("walltime")) == (1800, "site perlmutter")


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("", ["--gpus-per-node=h100:4", "--mem=1120G"]),
        ("gpus_per_node=2", ["--gpus-per-node=h100:2", "--mem=560G"]),
        (
            "gpus_per_node=nvidia_h100_80gb_hbm3_1g.10gb:1",
            ["--gpus-per-node=nvidia_h100_80gb_hbm3_1g.10gb:1"],
        ),
        ("accelerator=cpu cpus_per_rank=8", ["--cpus-per-task=8", "--mem=32000M"]),
    ],
)
def test_devices_have_the_type_of_the_sites_default_and_cpu_jobs_none(words: str, lines: list[str]) -> None:
    text = render(spec(f"slurm fir account=x {words}"))
    assert [line for line in lines if f"#SBATCH {line}\n" not in text] == []
    assert ("--gpus" in text) == ("cpu" not in words)


def test_what_was_said_wins_and_variables_add_up() -> None:
    site = SiteName("derecho", COMMAND_LINE)
    job = read_spec("pbs", {"account": "x", "env": ["A=1"], "module": ["mine"]}, site=site)
    assert job.env == (("NCCL_SOCKET_IFNAME", "hsn"), ("A", "1"))
    assert (job.module, job.origin("env")) == (("mine",), "site derecho and command line")
    job = read_spec("pbs", {"account": "x", "env": ["NCCL_SOCKET_IFNAME=eth0"]}, site=site)
    assert job.env == (("NCCL_SOCKET_IFNAME", "eth0"),)


VARIABLES = """
title = "t"
scheduler = "slurm"
[job]
queue = "a"
[environment.env]
A = "site"
B = "site"
C = "site"
[queues.a.env]
B = "queue-a"
C = "queue-a"
[queues.b.env]
D = "queue-b"
[launcher.srun.env]
C = "srun"
[launcher.torchrun.env]
E = "torchrun"
"""


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ("launcher=srun", "A=site B=queue-a C=srun"),
        ("launcher=torchrun", "A=site B=queue-a C=queue-a E=torchrun"),
        ("launcher=torchrun queue=b", "A=site B=site C=site D=queue-b E=torchrun"),
        ("launcher=srun env=C=mine", "A=site B=queue-a C=mine"),
        ("launcher=deepspeed queue=c", "A=site B=site C=site"),
    ],
)
def test_variables_of_a_queue_and_of_a_launcher(options: str, variables: str, tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(VARIABLES + "[queues.c]\n")
    given: dict[str, str | list[str] | None] = dict(one.split("=", 1) for one in options.split())
    if "env" in given:
        given["env"] = [str(given["env"])]
    job = read_spec("slurm", given, ("train.py",), site=SiteName("t", COMMAND_LINE, str(tmp_path)))
    assert " ".join(f"{name}={value}" for name, value in job.env) == variables
    assert job.origin("env") == "site t" + (" and command line" if "env" in given else "")
    [lines] = re.findall(r"^variables\(\) \{\n(.*?)^\}", render(job), re.MULTILINE | re.DOTALL)
    assert lines.replace("export", "").split() == variables.split()
    assert without(job) == read_spec("slurm", given, ("train.py",))


OPTIONS = """
[queues.a.options]
interface = "ib0"
cpus_per_rank = 3
[launcher.srun.options]
interface = "hsn0"
launcher_arg = ["--kill-on-bad-exit=1"]
"""


def test_options_of_a_queue_and_of_a_launcher(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(VARIABLES + OPTIONS)

    def values(**given: str) -> tuple[object, ...]:
        job = read_spec("slurm", given, ("train.py",), site=SiteName("t", COMMAND_LINE, str(tmp_path)))
        assert without(job) == read_spec("slurm", given, ("train.py",))
        assert job.origin("interface") in ("site t", "default", "command line")
        return job.interface, job.cpus_per_rank, job.launcher_arg

    assert values(launcher="torchrun") == ("ib0", 3, ())
    assert values(launcher="srun") == ("hsn0", 3, ("--kill-on-bad-exit=1",))
    assert values(launcher="srun", queue="b") == ("hsn0", None, ("--kill-on-bad-exit=1",))
    assert values(launcher="srun", interface="eth0") == ("eth0", 3, ("--kill-on-bad-exit=1",))


def test_variables_of_the_launchers_of_steps(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(VARIABLES)
    (tmp_path / "job.toml").write_text(
        """site = "t"
[[step]]
command = ["./prepare"]
launcher = "srun"
[[step]]
command = ["train.py"]
launcher = "torchrun"
[[step]]
command = ["./finish"]
launcher = "srun"
"""
    )
    job = read_spec("slurm", {}, (), read_job(str(tmp_path / "job.toml"), (), ()))
    text = job_part(render(job))
    assert re.findall(r"^variables\(\) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL) == [
        "  export A=site\n  export B=queue-a\n"
    ]
    assert [
        re.findall("^  ((?:export|unset) .*)$", one, re.MULTILINE) for one in text.split("\nstep_")[1:]
    ] == [
        ["export C=srun"],
        ["export C=queue-a", "export E=torchrun"],
        ["unset E", "export C=srun"],
    ]
    given = read_spec("slurm", {"env": ["C=mine"]}, (), read_job(str(tmp_path / "job.toml"), (), ()))
    assert [one.env for one in given.steps] == [(), (("E", "torchrun"),), ()]
    assert without(given).steps == without(job).steps


def test_only_ranks_of_mpiexec_have_pmix_on_aurora() -> None:
    of_mpi = {"CCL_PROCESS_LAUNCHER": "pmix", "CCL_ATL_TRANSPORT": "mpi", "CCL_KVS_MODE": "mpi"}
    for launcher in ("mpirun", "torchrun", "deepspeed", "accelerate"):
        env = dict(spec(f"pbs aurora account=x launcher={launcher}").env)
        assert (env.items() >= of_mpi.items()) == (launcher == "mpirun")
        assert (env["CCL_PROCESS_LAUNCHER"] == "torchrun") == (launcher != "mpirun")
        assert ("CCL_KVS_MODE" in env) == (launcher == "mpirun")


def test_folders_of_modulefiles_are_added_to_those_of_the_site() -> None:
    text = render(spec("pbs polaris account=x module_use=/my/modules"))
    assert "  job_module_use /soft/modulefiles\n  job_module_use /my/modules\n  job_module conda\n" in text


def test_a_directive_of_the_user_replaces_the_sites_own() -> None:
    site = SiteName("polaris", COMMAND_LINE)
    given = {"account": "x", "directive": ["-l filesystems=home", "-l select=2:tier0=x3001-g0"], "nodes": "2"}
    text = render(read_spec("pbs", given, ("train.py",), site=site))
    assert text.count("filesystems=") == text.count("select=2") == 1
    assert "#PBS -l filesystems=home\n" in text


def test_cores_follow_from_what_was_said_of_the_node_or_of_lists() -> None:
    assert resolve(spec("pbs polaris account=x cpus_per_node=16")).resources.cpus.rank == 4
    assert resolve(spec("pbs polaris account=x cpu_bind=0-3;4-7;8-11;12-15")).resources.cpus.rank == 4
    text = render(spec("slurm lumi account=x cpu_bind=numa"))
    assert "mask_cpu" not in text


@pytest.mark.parametrize("name", SHIPPED)
def test_every_launcher_at_every_site_is_clean(name: str, tmp_path: Path) -> None:
    site = LOADED[name]
    demanded = {key: ["-l storage=x"] if key == "-l storage" else "x" for key in site.file.mandatory}
    known = {"account": "account", "-l storage": "directive"}
    common = {option: demanded[key] for key, option in known.items() if key in demanded}
    nodes = str(min(2, max((one.nodes[1] for one in site.queues.values() if one.nodes), default=2)))
    scripts, refused = [], []
    for launcher in ("deepspeed", "mpirun", "torchrun", "srun"):
        given = {**common, "launcher": launcher, "nodes": nodes, "walltime": "20m"}
        try:
            scripts.append(render(spec_of_site(name, given)))
        except JobgenError as error:
            refused.append(str(error))
    assert all("only for Slurm" in said for said in refused), refused
    assert len(scripts) == (4 if site.file.scheduler == "slurm" else 3)
    for number, text in enumerate(scripts):
        (tmp_path / f"{number}.sh").write_text(job_part(text), encoding="utf-8")
    command = [need_command("shellcheck"), *sorted(tmp_path.glob("*.sh"))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def spec_of_site(name: str, given: dict[str, str | list[str] | None]) -> JobSpec:
    return read_spec(LOADED[name].file.scheduler, given, ("train.py",), site=SiteName(name, COMMAND_LINE))


def test_defaults_give_way_to_what_excludes_them() -> None:
    assert resolve(spec("pbs polaris account=x launcher=torchrun")).launch.mpi_name is None
    job = spec("pbs polaris account=x container=apptainer image=/images/train.sif")
    assert (job.conda, job.module) == (None, ("conda",))
    render(job)


def test_memory_is_asked_for_with_the_request_of_a_site() -> None:
    assert "#PBS -l mem=16gb\n" in render(spec("pbs torque-gpu nodes=2 mem=8G"))
    assert "#SBATCH --mem=64G\n" in render(spec("slurm perlmutter account=x mem=64G"))
    text = render(spec("slurm lumi account=x mem=64G"))
    assert "#SBATCH --mem=64G\n" in text
    assert "--mem-per-gpu" not in text


def test_a_directive_replaces_the_memory_of_a_site_and_nothing_else(tmp_path: Path) -> None:
    lines = '["--gres=nvme:100", "--mem-per-cpu=2G"]'
    (tmp_path / "own.toml").write_text(f'title = "T"\nscheduler = "slurm"\ndirectives = {lines}\n')
    own = {"directive": ["--gpus-per-node=4", "--mem=0"], "walltime": "1h"}
    text = render(read_spec("slurm", own, site=SiteName("own", COMMAND_LINE, str(tmp_path))))
    assert ("--gres=nvme:100" in text, "--mem-per-cpu" in text) == (True, False)


@pytest.mark.parametrize(
    "line", ["-l filesystems=home", "-lfilesystems=home", "-l place=scatter,filesystems=home"]
)
def test_what_is_mandatory_may_be_written_in_any_way(line: str, tmp_path: Path) -> None:
    (tmp_path / "bare.toml").write_text('extends = "polaris"\ndirectives = []\n')
    site = SiteName("bare", COMMAND_LINE, str(tmp_path))
    assert "filesystems=home" in render(read_spec("pbs", {"account": "x", "directive": [line]}, site=site))
    said = sentence("pbs bare account=x", tmp_path)
    assert "requires filesystems: add --directive '-l filesystems=home:eagle'" in said


@pytest.mark.parametrize(
    ("scheduler", "option", "line"),
    [("pbs", "-P", "#PBS -P x\n"), ("slurm", "--wckey", "#SBATCH --wckey=x\n")],
)
def test_the_option_of_the_account_is_the_site_s(
    scheduler: str, option: str, line: str, tmp_path: Path
) -> None:
    """On each scheduler."""
    rules = f'title = "T"\nscheduler = "{scheduler}"\n[rules]\naccount = "{option}"\n'
    (tmp_path / "own.toml").write_text(rules)
    assert line in render(spec(f"{scheduler} own account=x walltime=1h", tmp_path))


def test_python_takes_a_site_and_replaces_it() -> None:
    job = JobSpec("pbs", ["train.py"], site="polaris", account="x")
    assert job.cpus_per_rank == 8
    assert job.replace(ranks_per_node=2).cpus_per_rank == 16
    assert job.replace(site=None).cpus_per_rank is None
    assert "ngpus=4" in render(job.replace(site="derecho"))


requests = st.builds(
    JobSize,
    st.integers(1, 600),
    st.integers(60, 700_000),
    st.integers(0, 16),
    st.integers(1, 300),
    st.none() | st.integers(1, 2_000_000),
)


@given(st.sampled_from(SHIPPED), requests)
def test_a_smaller_request_is_never_refused_for_more(name: str, request: JobSize) -> None:
    """Less time, memory or cores never breaks a limit that more of them did not."""
    site = LOADED[name]
    less = request._replace(walltime=request.walltime // 2, cpus_per_node=1, mem=None)
    for queue in site.queues:
        broken = {one.key for one in excesses(site, queue, request)}
        assert {one.key for one in excesses(site, queue, less)} <= broken
