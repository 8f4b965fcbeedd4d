"""Site files: what extends what, and the sentence of each mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sites import jobgen, spec

from jobgen import render
from jobgen.errors import JobgenError
from jobgen.sites import loader, search

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


def test_the_rendezvous_of_a_site(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(f"{BASE}[rules]\nmaster_addr = 'ic-{{host}}'\n")
    for words, line in (([], "'ic-{host}'"), (["--master-addr", "interface:ib0"], "interface:ib0")):
        done = jobgen("slurm", "--site", "./t.toml", "--nodes", "2", *words, "--", "train.py", cwd=tmp_path)
        assert f"\njob_master_addr={line}\n" in done.stdout, done.stderr
    done = jobgen("slurm", "--site", "./t.toml", "--explain", "--", "train.py", cwd=tmp_path)
    assert re.search(r"master_addr +ic-\{host\} +site t ", done.stdout), done.stderr
    refused = jobgen(
        "slurm", "--site", "./t.toml", "--nodes", "2", "--master-addr", "::1", "--", "train.py", cwd=tmp_path
    )
    assert refused.returncode == 2


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
    ("[rules]\nmaster_addr = '$(id)'", "FILE, line 4): must be a host name, also with {host}"),
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
    ("[launcher.srn.env]\nA = '1'", "[launcher.srn] (FILE, line 4): there is no", "did you mean srun?"),
    ("[launcher.srun]\nenvs = {}", "envs (FILE, line 4): [launcher.srun] has no such key", "mean env?"),
    ("[launcher.srun.env]\nA = 1", "A = 1 (FILE, line 4): must be a text in quotes"),
    ("[launcher.srun.env]\nRANK = '1'", "[launcher.srun.env] (FILE, line 4): cannot be set"),
    ('[launcher.srun.env]\nA = "1\\n2"', "(FILE, line 4): must be one line of text"),
    ("[queues.a.env]\nA = 1", "A = 1 (FILE, line 4): must be a text in quotes"),
    ("[queues.a.env]\n'A;id' = '1'", "[queues.a.env] (FILE, line 4): must be NAME"),
    ('[queues.a.env]\nA = "1\\n2"', "(FILE, line 4): must be one line of text"),
    (
        "[launcher.srun.options]\ninterfaces = 'x'",
        "interfaces = x (FILE, line 4): there is no such",
        "mean interface?",
    ),
    (
        "[launcher.srun.options]\nlauncher = 'mpirun'",
        "launcher = mpirun (FILE, line 4): there is no such option here",
    ),
    ("[queues.a.options]\ninterface = 'a b;id'", "interface = 'a b;id' (FILE, line 4): must be"),
    ("[queues.a.options]\nwalltime = 1", "walltime = 1 (FILE, line 4): is ambiguous"),
    ("[rules]\nprepend = { A = ['lib'] }", "A = lib (FILE, line 4): must be an absolute path"),
    ("[rules]\nprepend = { PATHS-1 = ['/lib'] }", "[rules.prepend] (FILE, line 4): must be NAME"),
    ("[node]\nthreads_per_core = 0", "threads_per_core = 0 (FILE, line 4): must be a whole number"),
    ("[rules]\nreservation = ['x=1']", "reservation = x=1 (FILE, line 4): must be an option of sbatch"),
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
