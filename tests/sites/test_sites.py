"""Sites: what each script must say by the manual, limits, what extends what, and the sentence of each mistake."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from golden.cases import job_part
from hypothesis import given
from hypothesis import strategies as st
from support.require import need_command
from support.sites import PBSNODES, QSTAT, SINFO, jobgen

from jobgen import JobSpec, render
from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.plan.plan import resolve
from jobgen.schedulers import pbs_cluster, slurm_cluster
from jobgen.schedulers.cluster import Facts
from jobgen.schedulers.table import SCHEDULERS, scheduler_of
from jobgen.site_making.creation import site_file, taking_jobs, without_reservations
from jobgen.site_making.validation import try_defaults
from jobgen.sites import loader, search
from jobgen.sites.host_match import reason
from jobgen.sites.limits import Request, excesses
from jobgen.sites.site_file import Site
from jobgen.sites.sources import newest
from jobgen.spec import COMMAND_LINE, SiteName

SHIPPED = sorted(path.stem for path in Path(search.folders()[-1]).glob("*.toml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_site_has_sources_and_each_value_a_line(name: str) -> None:
    site = loader.load(name)
    assert site.file.source
    assert not site.queues or site.values.get("queue") in site.queues or name == "cx3"
    for key, at in site.places.items():
        assert at[1], key


def spec(command: str, beside: Path | None = None) -> JobSpec:
    """``SCHEDULER SITE [option=value]...``; without an account, where a site is one of ours."""
    scheduler, name, *rest = command.split()
    given: dict[str, str | list[str] | None] = dict(one.split("=", 1) for one in rest)
    given |= {key: [str(value)] for key, value in given.items() if key == "directive"}
    return read_spec(scheduler, given, ("train.py",), site=SiteName(name, COMMAND_LINE, str(beside or "")))


def sentence(command: str, beside: Path | None = None) -> str:
    with pytest.raises(JobgenError) as caught:
        render(spec(command, beside))
    return str(caught.value)


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
        ("pbs none network=plugin", ["--network plugin", "is a name of settings of a site: add --site"]),
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
    ],
)
def test_what_exceeds_the_site_file_is_a_warning_with_its_date(command: str, words: list[str]) -> None:
    said = warning(command)
    assert [word for word in words if word not in said] == [], said
    day = newest(LOADED[command.split()[1]], "queues")
    assert said.endswith(f"{f' of {day}' if day else ''}; jobgen site refresh asks the scheduler)"), said
    assert "\n" not in said


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


def test_what_was_said_wins_and_variables_add_up() -> None:
    site = SiteName("derecho", COMMAND_LINE)
    job = read_spec("pbs", {"account": "x", "env": ["A=1"], "module": ["mine"]}, site=site)
    assert job.env == (("NCCL_SOCKET_IFNAME", "hsn"), ("A", "1"))
    assert (job.module, job.origin("env")) == (("mine",), "site derecho and command line")
    job = read_spec("pbs", {"account": "x", "env": ["NCCL_SOCKET_IFNAME=eth0"]}, site=site)
    assert job.env == (("NCCL_SOCKET_IFNAME", "eth0"),)


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
    assert "#PBS -l pmem=8388608kb\n" in render(spec("pbs torque-gpu nodes=2 mem=8G"))
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


# ---- files of one's own --------------------------------------------------------------------

OWN = """
title = "mine"
scheduler = "slurm"
request = ["--nodes={nodes}", "--gres=gpu:a100:{gpus_per_node}"]
[job]
queue = "a"
[queues.a]
nodes = [1, 2]
"""


def test_a_file_extends_another_and_each_value_knows_its_place(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text(
        'extends = "polaris"\ntitle = "ours"\n[queues.debug]\nnodes = [1, 4]\n[environment]\nmodule = ["conda/2"]\n'
    )
    site = loader.load("ours", beside=str(tmp_path))
    assert site.queues["debug"].nodes == (1, 4)
    assert site.queues["debug"].walltime == "1h"
    assert site.origins["module"] == "site ours"
    assert site.origins["launcher"] == "site polaris"
    assert site.place(("queues", "debug", "nodes")) == f"{tmp_path}/ours.toml, line 4"
    assert "#PBS -l select=4:system=polaris\n" in render(spec("pbs ours account=x nodes=4", tmp_path))


def test_a_file_may_hide_and_extend_the_one_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "jobgen" / "sites"
    folder.mkdir(parents=True)
    (folder / "polaris.toml").write_text('extends = "polaris"\n[job]\naccount = "mine"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "#PBS -A mine\n" in render(spec("pbs polaris"))
    assert search.names().count("polaris") == 1


def test_a_file_by_its_path_extends_what_lies_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "base.toml").write_text('extends = "lumi"\ntitle = "base"\n')
    (tmp_path / "lumi.toml").write_text('extends = "lumi"\n[job]\naccount = "mine"\n')
    (tmp_path / "top.toml").write_text('extends = "base"\n')
    monkeypatch.chdir(tmp_path)
    for name in ("top.toml", "./top.toml", str(tmp_path / "top.toml")):
        site = loader.load(name, beside="")
        assert (site.title, site.values["account"], site.file.node.gpus) == ("base", "mine", 8)


BASE = 'title = "t"\nscheduler = "slurm"\n'


def test_variables_as_a_list(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(f'{BASE}[environment]\nenv = ["A=1", "TOKEN"]\n')
    site = loader.load(str(tmp_path / "t.toml"))
    assert (site.values["env"], site.origin) == (["A=1", "TOKEN"], "site t")
    (tmp_path / "u.toml").write_text('extends = "./t.toml"\n[environment]\nenv = { A = "1" }\n')
    with pytest.raises(
        JobgenError, match=r"u\.toml, line 3: env is a list in the site that this one extends"
    ):
        loader.load(str(tmp_path / "u.toml"))


def test_a_job_without_the_devices_of_the_site(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(f"{BASE}[resources]\ngpus_per_node = 4\n")
    done = jobgen("slurm", "--site", "./t.toml", "--accelerator", "cpu", "--", "true", cwd=tmp_path)
    assert (done.returncode, "gpus" in done.stdout.partition("# ====")[0]) == (0, False), done.stderr


SOURCE = """[[source]]
facts = ["queues", "node"]
confidence = "manual"
page = "https://example.org/queues"
date = 2026-01-31
"""
# What follows the two lines of BASE, and what the sentence holds.
MISTAKES = [
    ('titel = "x"', "titel (FILE, line 3): a site file has no such key", "did you mean title?"),
    ("[node]\ngpu = 4", "gpu (FILE, line 4): [node] has no such key", "did you mean gpus?"),
    ("[queues.a]\nnode = [1, 2]", "node (FILE, line 4): [queues.a] has no such key", "did you mean nodes?"),
    ("[job]\nqueu = 'a'", "queu (FILE, line 4): [job] has no such key", "did you mean queue?"),
    ("[node]\ngpus = 'four'", "gpus = four (FILE, line 4): must be a whole number"),
    ("[node]\ngpus = -1", "gpus = -1 (FILE, line 4): must be a whole number"),
    ("[detect]\nenv = { A = 1 }", "A = 1 (FILE, line 4): must be a text in quotes"),
    ("[mandatory]\naccount = 3", "account = 3 (FILE, line 4): must be a text in quotes"),
    ("[queues.a]\n[queues.a.mandatory]\naccount = 3", "account = 3 (FILE, line 5): must be a text in quotes"),
    ("[queues]\na = 3", "a = 3 (FILE, line 4): must be a table"),
    ("request = [3]", "request = [3] (FILE, line 3): must be a text in quotes"),
    ("extends = 3", "extends = 3 (FILE, line 3): must be a text in quotes"),
    ("[queues.a]\nwalltime_by_nodes = [[1, 2]]", "walltime_by_nodes = '[[1, 2]]' (FILE, line 4): must be"),
    ("[queues.a]\nnodes = 4", "nodes = 4 (FILE, line 4): must be a"),
    ("[queues.a]\nnodes = [4, 1]", "nodes = [4, 1] (FILE, line 4): must be the least"),
    ("[queues.a]\nwalltime = '24:00'", "walltime = 24:00 (FILE, line 4): is ambiguous"),
    ("[queues.a]\nwalltime_by_nodes = [[9, '1h'], [3, '2h']]", "must go from few nodes to many"),
    ("[queues.a]\nenabled = 'no'", "enabled = no (FILE, line 4): must be true or false"),
    ("[queues.a]\nshared = 1", "shared = 1 (FILE, line 4): must be true or false"),
    ("[queues.a]\nmax_jobs = -1", "max_jobs = -1 (FILE, line 4): must be a whole number"),
    ("[queues.a]\nmax_gpus = 1.5", "max_gpus = 1.5 (FILE, line 4): must be a whole number"),
    ("[queues.a]\nroutes_to = 'b'", "routes_to = b (FILE, line 4): must be a list"),
    (
        "[queues.small]\n[queues.prod]\nroutes_to = ['smal']",
        "routes_to = smal (FILE, line 5): smal is not one of the queues: use small or prod",
        "did you mean small?",
    ),
    ("[queues.a]\nroutes_to = ['a']", "routes_to = a (FILE, line 4): leads back to the queue a"),
    (
        "[queues.a]\nroutes_to = ['b', 'c']\n[queues.b]\n[queues.c]\nroutes_to = ['a']",
        "routes_to = 'b, c' (FILE, line 4): leads back to the queue a",
    ),
    ("[queues.a]\nwalltime_by_nodes = [[9, 'long']]", "[queues.a] (FILE, line 4): must be a duration"),
    ("queues = { 'a b' = {} }", "[queues.'a b'] (FILE", "must be one word"),
    ("request = ['--nodes={node}']", "FILE, line 3): there is no {node}: use nodes", "did you mean nodes?"),
    ("[queues.a]\nrequest = ['--nodes={node}']", "FILE, line 4): there is no {node}: use nodes"),
    ("[queues.a]\nrequest = ['nodes={nodes}']", "FILE, line 4): must be an option of sbatch"),
    ("[queues.a]\nrequest = '--nodes={nodes}'", "FILE, line 4): must be a list"),
    ("request = ['--nodes={nodes']", "FILE, line 3): braces must contain the name"),
    ("directives = ['--nodes={nodes.real}']", "FILE, line 3): braces must contain the name"),
    ("request = ['nodes={nodes}']", "must be an option of sbatch"),
    ('directives = ["--a=1\\n#SBATCH --nodes=9"]', "must be an option of sbatch"),
    ("[rules]\nsrun = ['--x=$(touch pwned)']", "must be an option of srun"),
    ("[rules]\nbind = '--cpu-bind none; rm'", "must be one option"),
    ("[rules]\nmaster_suffix = '$(id)'", "must be the end of a host name"),
    ("[rules]\nmodule_use = ['soft']", "must be an absolute path"),
    ("[rules]\naccount = '-A x'", "must be an option's name"),
    ("[mandatory]\nacount = 'x'", "acount is neither an option", "did you mean account?"),
    ("[resources]\naccelerator = 'gpu'", "accelerator = gpu (FILE, line 4): must be cuda"),
    ("[job]\nqueue = 'b'\n[queues.a]", "queue = b (FILE, line 4): is not one of the queues"),
    ("[[source]]\ndate = 'today'", "date = today (FILE, line 4): must be a date"),
    ("[[source]]\nfacts = ['nodee']", "facts = nodee (FILE, line 4): must be queues", "did you mean node?"),
    ("[[source]]\nfacts = 'node'", "facts = node (FILE, line 4): must be a list"),
    ("[[source]]\nfacts = [3]", "facts = [3] (FILE, line 4): must be a text in quotes"),
    ("[[source]]\nconfidence = 'manul'", "confidence = manul (FILE, line 4): must", "did you mean manual?"),
    ("[[source]]\npage = 'the wiki'", "page = 'the wiki' (FILE, line 4): must be an address"),
    ('[[source]]\nwhat = "a\\nb"', "(FILE, line 4): must be one line of text"),
    ("[[source]]\nfact = 3", "fact (FILE, line 4): [[source]] has no such key", "did you mean facts?"),
    ("source = 3", "source = 3 (FILE, line 3): must be a list"),
    ("source = [3]", "source = 3 (FILE, line 3): must be a table"),
    ("[[source]]\nwhat = 'a'", "[[source]] (FILE, line 4): must have a facts"),
    (f"{SOURCE}[[source]]\nfacts = ['login']\nconfidence = 'nobody'", "confidence = nobody (FILE, line 10)"),
    (f"{SOURCE}[[source]]\nfacts = ['login']", "[[source]] (FILE, line 9): must have a confidence"),
    (SOURCE.replace("page", "version"), "[[source]] (FILE, line 4): must have a page or a what"),
    ("[networks.a]\nmodule = ['x']", "module (FILE, line 4): [networks.a] has no such key", "mean modules?"),
    ("[networks.a]\nmodules = ['x y']", "modules = 'x y' (FILE, line 4): must be one module"),
    ("[networks.a]\nenv = { RANK = '1' }", "[networks.a] (FILE, line 4): cannot be set"),
    ("[networks.a]\nenv = { A = 1 }", "A = 1 (FILE, line 4): must be a text in quotes"),
    ("[networks.a]\nprepend = { A = ['lib'] }", "A = lib (FILE, line 4): must be an absolute path"),
    ("[networks.a]\nprepend = { A = '/lib' }", "A = /lib (FILE, line 4): must be a list"),
    ("networks = { 'a b' = {} }", "[networks.'a b'] (FILE", "must be one word"),
    ("[networks.a]\nunset = ['A=1']", "unset = A=1 (FILE, line 4): must be the name of a variable"),
    ("[networks.a]\nunset = ['RANK']", "[networks.a] (FILE, line 4): cannot be set"),
    ("[networks.a]\nprepend = { A = ['$B;id'] }", "A = $B;id (FILE, line 4): must be an absolute path"),
    ("[rules]\nprepend = { A = ['lib'] }", "A = lib (FILE, line 4): must be an absolute path"),
    ("[rules]\nprepend = { PATHS-1 = ['/lib'] }", "[rules.prepend] (FILE, line 4): must be NAME"),
    ("[node]\nthreads_per_core = 0", "threads_per_core = 0 (FILE, line 4): must be a whole number"),
    ("[rules]\nreservation = ['x=1']", "reservation = x=1 (FILE, line 4): must be an option of sbatch"),
    ("manual = ['see the wiki']", "page = 'see the wiki' (FILE): must be an address"),
    ("manual = ['https://x.org']\nread = 'today'", "date = today (FILE): must be a date"),
    (
        "extends = 'polarsi'",
        "extends = polarsi (FILE, line 3): there is no such site",
        "did you mean polaris?",
    ),
    ("extends = 'y'", "extend each other in a circle: x -> y -> x"),
    ("= 1", "FILE, line 3, column 1: is not TOML"),
]


def load_text(folder: Path, text: str) -> str:
    """The sentence of a site file."""
    path = folder / "x.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(JobgenError) as caught:
        loader.load("x", beside=str(folder))
    said = str(caught.value).replace(str(path), "FILE")
    assert said.isprintable()
    return said


@pytest.mark.parametrize(("text", "words"), [(text, words) for text, *words in MISTAKES])
def test_one_sentence_a_mistake_with_file_and_line(text: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "y.toml").write_text("extends = 'x'\n")
    said = load_text(tmp_path, BASE + text)
    assert [word for word in words if word not in said] == [], said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 't'\nscheduler = 'lsf'", "scheduler = lsf (FILE, line 2): must be pbs or slurm"),
        ("scheduler = 'pbs'", "FILE: must have a title"),
        ("title = 't'", "FILE: must have a scheduler"),
        ('title = "a\\n#PBS -q x"\nscheduler = "pbs"', "line 1): must be one line of text"),
        ("title = 't'\nscheduler = 'pbs'\ndirectives = ['--qos=x']", "must be an option of qsub"),
    ],
)
def test_what_every_file_needs(text: str, words: str, tmp_path: Path) -> None:
    assert words in load_text(tmp_path, text)


@given(st.text(max_size=60))
def test_no_text_is_a_traceback(text: str) -> None:
    from jobgen.sites import loader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "read_text", lambda *_: BASE + text)
        sentence = ""
        try:
            loader.read_site("x.toml")
        except JobgenError as error:
            sentence = str(error)
        assert sentence.isprintable()


@given(st.text(max_size=20))
def test_no_text_of_a_site_becomes_shell_code(text: str) -> None:
    """Either refused, or one of the harmless characters that an option may have."""
    from jobgen.sites import loader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            loader, "read_text", lambda *_: f"{BASE}rules = {{ srun = [{json.dumps('--x=' + text)}] }}"
        )
        try:
            [option] = loader.read_site("x.toml").file.rules.srun
        except JobgenError:
            return
        assert re.fullmatch(r"--x=[\w:,.+/@%{}-]+", option, re.ASCII)


requests = st.builds(
    Request,
    st.integers(1, 600),
    st.integers(60, 700_000),
    st.integers(0, 16),
    st.integers(1, 300),
    st.none() | st.integers(1, 2_000_000),
)


@given(st.sampled_from(SHIPPED), requests)
def test_a_smaller_request_is_never_refused_for_more(name: str, request: Request) -> None:
    """Less time, memory or cores never breaks a limit that more of them did not."""
    site = LOADED[name]
    less = request._replace(walltime=request.walltime // 2, cpus_per_node=1, mem=None)
    for queue in site.queues:
        broken = {one.key for one in excesses(site, queue, request)}
        assert {one.key for one in excesses(site, queue, less)} <= broken


LOADED = {name: loader.load(name) for name in SHIPPED}


# ---- the command ---------------------------------------------------------------------------


def test_list_and_show(tmp_path: Path) -> None:
    rows = json.loads(jobgen("site", "list", "--json", cwd=tmp_path).stdout)
    assert [row["name"] for row in rows if row["name"] in SHIPPED] == SHIPPED
    assert all(name in jobgen("site", "list", cwd=tmp_path).stdout for name in SHIPPED)
    shown = jobgen("site", "show", "lumi", cwd=tmp_path).stdout
    assert re.search(
        r"\[queues.standard-g\]\nabout = .*\nnodes = \[1, 1024\]  # lumi.toml, line \d+\n", shown
    )
    (tmp_path / "copy.toml").write_text(shown)
    assert jobgen("site", "check", "copy.toml", cwd=tmp_path).stdout.endswith("LUMI, 4 queues: good\n")
    again = json.loads(jobgen("site", "show", "copy", "--json", cwd=tmp_path).stdout)
    assert again == json.loads(jobgen("site", "show", "lumi", "--json", cwd=tmp_path).stdout)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "site chek",
            "there is no command site chek: use list, show, check, detect, new or refresh; did you mean check?",
        ),
        ("site show", "name a site"),
        ("site show polarsi", "did you mean polaris?"),
        ("site check", "name a site file"),
        ("site check no.toml", "there is no file no.toml"),
        ("slurm --site no/such.toml", "--site no/such.toml (command line): there is no file no/such.toml"),
    ],
)
def test_the_command_refuses_in_one_sentence(words: str, said: str, tmp_path: Path) -> None:
    done = jobgen(*words.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("extends", "table", "said"),
    [
        ("setonix", 'job = { walltime = "900h" }', "walltime = 900h (site mine): queue gpu of Mine"),
        (
            "torque-gpu",
            'launch = { launcher = "srun" }',
            "launcher = srun (site mine): srun is only for Slurm",
        ),
        (
            "lumi",
            'blocks = { setup = "if" }',
            "setup = (site mine): bash cannot read it: line 2: syntax error: unexpected end of file",
        ),
    ],
)
def test_defaults_that_make_no_job_are_found(extends: str, table: str, said: str, tmp_path: Path) -> None:
    scheduler = LOADED[extends].file.scheduler
    head = f'title = "Mine"\nextends = "{extends}"\nscheduler = "{scheduler}"\n'
    (tmp_path / "mine.toml").write_text(f"{head}{table}\n")
    done = jobgen("site", "check", "mine.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"jobgen: mine.toml: no job is valid with its defaults: {said}")


@pytest.mark.parametrize("name", SHIPPED)
def test_the_defaults_of_every_shipped_site_make_a_job(name: str) -> None:
    try_defaults(LOADED[name])


def test_detect(tmp_path: Path) -> None:
    done = jobgen("site", "detect", cwd=tmp_path, NERSC_HOST="perlmutter")
    assert (done.returncode, done.stdout) == (0, "perlmutter: NERSC_HOST is perlmutter\n")
    done = jobgen("site", "detect", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["site"]) == (1, None)
    assert reason(LOADED["polaris"].file.detect, "polaris-login-02", {}) == (
        "the host name polaris-login-02 matches polaris-login-*"
    )


def test_a_job_file_names_its_site_which_the_command_line_replaces(tmp_path: Path) -> None:
    (tmp_path / "jobgen.toml").write_text('site = "polaris"\n[job]\naccount = "x"\n')
    assert "system=polaris" in jobgen("pbs", cwd=tmp_path).stdout
    assert "ngpus=4" in jobgen("pbs", "--site", "derecho", cwd=tmp_path).stdout
    assert "ngpus=4" in jobgen("pbs", "--set", "site=derecho", cwd=tmp_path).stdout
    assert "# Site" not in jobgen("pbs", "--site", "none", cwd=tmp_path).stdout
    done = jobgen("slurm", cwd=tmp_path)
    assert "site = polaris (jobgen.toml, line 1): ALCF Polaris has PBS Pro; use jobgen pbs" in done.stderr
    shown = json.loads(jobgen("pbs", "--explain", "--json", cwd=tmp_path).stdout)
    assert shown["cpus_per_rank"]["value"], shown["cpus_per_rank"]["origin"] == (8, "site polaris")
    assert shown["site"]["value"] == "ALCF Polaris"


def test_a_job_file_finds_the_site_beside_it(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/mine.toml").write_text(
        'title = "mine"\nscheduler = "slurm"\n[queues.a]\nnodes = [1, 2]\n'
    )
    (tmp_path / "there/job.toml").write_text('site = "mine"\n[resources]\nnodes = 3\n')
    done = jobgen("slurm", "--job", "there/job.toml", cwd=tmp_path)
    assert "queue a of mine takes 1 to 2 nodes" in done.stderr


def test_init_takes_the_site_of_the_machine(tmp_path: Path) -> None:
    done = jobgen("init", cwd=tmp_path, NERSC_HOST="perlmutter")
    assert "at NERSC Perlmutter" in done.stderr
    text = (tmp_path / "jobgen.toml").read_text()
    assert 'site = "perlmutter"\n' in text
    assert '\naccount = "PROJECT"\n' in text
    assert "--qos=regular" in jobgen("slurm", cwd=tmp_path).stdout


def test_without_a_site_nothing_of_them_is_imported() -> None:
    code = (
        "import sys; from jobgen.commands.cli import run; run(['slurm']);"
        "print({'msgspec', 'jobgen.sites.site_file', 'jobgen.sites.loader'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "set()\n"


# ---- jobgen site new, from what schedulers print ---------------------------------------------

# pbsnodes -a of Torque: https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/pbsnodes.htm
TORQUE_NODES = """\
node01
     state = free
     np = 16
     ntype = cluster
     status = rectime=1328,ncpus=16,physmem=65946948kb,availmem=123kb,opsys=linux
     gpus = 1
"""


def written(scheduler: str, facts: Facts, tmp_path: Path) -> Site:
    facts = taking_jobs(without_reservations(SCHEDULERS[scheduler], facts))
    (tmp_path / "new.toml").write_text(site_file(SCHEDULERS[scheduler], facts, "login01"))
    return loader.load("new", beside=str(tmp_path))


def test_new_of_slurm(tmp_path: Path) -> None:
    site = written("slurm", slurm_cluster.read("cluster", SINFO), tmp_path)
    assert site.file.request[-1] == "--gres=gpu:a100:{gpus_per_node}"
    assert (site.values["queue"], site.file.node.gpus, site.file.detect.hosts) == ("gpu", 4, ("login*",))
    assert site.queues["gpu"].nodes == (1, 12)
    assert site.queues["debug"].walltime == "00:30:00"
    assert (site.queues["cpu"].gpus, site.queues["cpu"].walltime) == (0, None)
    assert "#SBATCH --gres=gpu:a100:4\n" in render(spec("slurm new nodes=2", tmp_path))


def test_new_of_pbs(tmp_path: Path) -> None:
    site = written("pbspro", pbs_cluster.read("cluster", QSTAT, PBSNODES), tmp_path)
    assert list(site.queues) == ["workq"]
    assert (site.queues["workq"].nodes, site.queues["workq"].walltime) == ((2, 16), "24:00:00")
    assert (site.file.node.gpus, site.file.node.cores) == (4, 64)
    text = render(spec("pbs new nodes=2", tmp_path))
    assert "#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4\n" in text


def test_new_of_torque(tmp_path: Path) -> None:
    queues = QSTAT.replace("resources_max.nodect", "resources_max.nodes")
    site = written("torque", pbs_cluster.read("cluster", queues, TORQUE_NODES), tmp_path)
    job = spec("pbs new nodes=2", tmp_path)
    assert scheduler_of(job).name == "torque"
    assert site.queues["workq"].memory == "64401M"
    assert "#PBS -l nodes=2:ppn=16:gpus=1\n" in render(spec("pbs new nodes=2 walltime=1h", tmp_path))
