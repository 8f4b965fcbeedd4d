"""The sources of a site: confidence and date of each group of facts, in functions, commands and scripts."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from support.jobs import jobgen

from jobgen.sites import loader
from jobgen.sites.site_file import Site
from jobgen.sites.sources import confidence, doubts, groups_of, newest

HEAD = 'title = "Ours"\nscheduler = "slurm"\n'
FACTS = """
[node]
gpus = 4
[queues.gpu]
nodes = [1, 4]
[environment]
module = ["cuda"]
"""
BOTH = """
[[source]]
facts = ["queues", "node"]
confidence = "users"
page = "https://example.org/talk"
date = 2026-05-01
[[source]]
facts = ["queues"]
confidence = "manual"
page = "https://example.org/queues"
version = "edition 3"
date = 2026-01-31
what = "the table of queues"
"""


def write(folder: Path, text: str, name: str = "ours") -> Site:
    (folder / f"{name}.toml").write_text(text)
    return loader.load(name, beside=str(folder))


def test_the_best_confidence_and_the_newest_date_of_a_group(tmp_path: Path) -> None:
    site = write(tmp_path, HEAD + BOTH + FACTS)
    assert (confidence(site, "queues"), newest(site, "queues")) == ("manual", date(2026, 5, 1))
    assert (confidence(site, "node"), newest(site, "node")) == ("users", date(2026, 5, 1))
    assert (confidence(site, "modules"), newest(site, "modules")) == ("unknown", None)


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("", []),
        ('[detect]\nhosts = ["a*"]\n', ["login"]),
        ('request = ["--nodes={nodes}"]\n', ["request"]),
        ('[rules]\nbind = "--cpu-bind=none"\n', ["binding"]),
        ('[node]\ncpu_lists = ["0-7"]\n', ["node", "binding"]),
        ('[environment]\nenv = { NCCL_SOCKET_IFNAME = "hsn" }\n', ["network"]),
        ('[environment]\nmodule = ["cuda"]\n', ["modules"]),
        ('[rules]\naccount = "--wckey"\n[mandatory]\naccount = "A"\n', ["accounting"]),
        ('[differs]\n"no --exclusive" = "it is an option"\n', ["example"]),
        ('[rules]\nprepend = { LD_LIBRARY_PATH = ["$OTHER"] }\n', ["network"]),
        ('[rules]\nqueue = "--qos"\n[queues.a]\n[queues.b]\nnodes = [1, 2]\n', ["queues"]),
    ],
)
def test_the_groups_that_a_file_states(text: str, groups: list[str], tmp_path: Path) -> None:
    assert groups_of(write(tmp_path, HEAD + text)) == groups


@pytest.mark.parametrize(
    ("today", "said"),
    [
        (date(2026, 6, 1), ["node: known from users only", "modules: no source is known"]),
        (
            date(2027, 5, 2),
            [
                "queues, node: the newest source is of 2026-05-01, more than a year ago",
                "node: known from users only",
                "modules: no source is known",
            ],
        ),
    ],
)
def test_what_is_doubtful_on_a_day(today: date, said: list[str], tmp_path: Path) -> None:
    assert sorted(doubts(write(tmp_path, HEAD + BOTH + FACTS), today)) == sorted(said)
    assert [*doubts(write(tmp_path, HEAD), today)] == []


def test_a_source_without_a_date_is_doubtful(tmp_path: Path) -> None:
    text = HEAD + BOTH.replace("date = 2026-05-01\n", "").replace("date = 2026-01-31\n", "") + FACTS
    said = ["queues: the sources have no date", "node: known from users only", "modules: no source is known"]
    assert [*doubts(write(tmp_path, text), date(2026, 6, 1))] == said


def test_a_file_adds_its_sources_to_those_of_the_file_that_it_extends(tmp_path: Path) -> None:
    write(tmp_path, HEAD + BOTH + FACTS, "base")
    own = '[[source]]\nfacts = ["modules"]\nconfidence = "staff"\nwhat = "a mail"\ndate = 2026-06-07\n'
    site = write(tmp_path, f'extends = "base"\n{own}')
    assert [one.confidence for one in site.file.source] == ["users", "manual", "staff"]
    assert (confidence(site, "modules"), confidence(site, "queues")) == ("staff", "manual")
    assert site.places["source", "2", "date"] == (str(tmp_path / "ours.toml"), 6)
    assert site.places["source", "1", "page"] == (str(tmp_path / "base.toml"), 12)


def test_show_and_check_name_confidence_and_date(tmp_path: Path) -> None:
    write(tmp_path, HEAD + BOTH + FACTS)
    lines = jobgen("site", "show", "ours.toml", cwd=tmp_path).stdout.splitlines()
    assert lines[1:5] == [
        "# queues      manual   2026-01-31  https://example.org/queues",
        "# queues      users    2026-05-01  https://example.org/talk",
        "# node        users    2026-05-01  https://example.org/talk",
        "# modules     unknown",
    ]
    assert 'version = "edition 3"  # ours.toml, line 13' in lines
    done = jobgen("site", "check", "ours.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ours.toml: Ours, 1 queue: good\n")
    assert "jobgen: warning: ours.toml: modules: no source is known\n" in done.stderr


def test_a_script_names_each_page_once_with_its_date(tmp_path: Path) -> None:
    again = BOTH.replace("queues", "node").replace("2026-01-31", "2026-02-01")
    write(tmp_path, HEAD + BOTH + again + FACTS)
    text = jobgen("slurm", "--site", "ours.toml", "--", "train.py", cwd=tmp_path).stdout
    found = re.findall(r"(?m)^# Site: .*\n(?:# https://example.*\n)*", text)
    assert found == [
        "# Site: Ours, by these sources:\n"
        "# https://example.org/talk (2026-05-01)\n"
        "# https://example.org/queues (2026-01-31)\n"
        "# https://example.org/node (2026-02-01)\n"
    ]
    write(tmp_path, HEAD + FACTS)
    assert (
        "# Site: Ours\n#SBATCH"
        in jobgen("slurm", "--site", "ours.toml", "--", "train.py", cwd=tmp_path).stdout
    )
