"""The command ``jobgen site``."""

from __future__ import annotations

import datetime
import json
import os
import re
import shlex
import sys
from typing import TYPE_CHECKING

import click

from jobgen.commands.group import CommandGroup
from jobgen.commands.parameter_types import FILE
from jobgen.errors import JobgenError, counted, shown, visible
from jobgen.schedulers.table import queued

if TYPE_CHECKING:
    from jobgen.schedulers.cluster import Facts
    from jobgen.sites.site_file import Site


_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.group(
    "site",
    cls=CommandGroup,
    short_help="Show, find, make and check descriptions of clusters.",
    help="Sites: the queues, limits, directives, modules and rules of a cluster, in one TOML file each.",
    epilog="Example: jobgen site show polaris",
)
def site() -> None:
    pass


@site.command("list", help="List the sites: yours, then those that come with jobgen.")
@_JSON
def list_sites(as_json: bool) -> None:
    from jobgen.commands.terminal import aligned
    from jobgen.sites.display import summary
    from jobgen.sites.loader import load
    from jobgen.sites.search import names

    rows = [summary(load(name)) for name in names()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    cells = ((row["name"], row["scheduler"], row["date"] or "-", row["title"]) for row in rows)
    for line in aligned([("NAME", "SCHEDULER", "DATE", "SITE"), *cells]):
        click.echo(visible(line))


@site.command(
    "show",
    short_help="Print a site with its sources, as TOML.",
    help="Print a site as TOML, with its sources by group of facts, the sites that it extends, and the file "
    "and line of each value.",
)
@click.argument("name", required=False)
@_JSON
def show(name: str | None, as_json: bool) -> None:
    from jobgen.sites.display import as_toml, values
    from jobgen.sites.loader import load

    if name is None:
        raise JobgenError("site show: name a site: jobgen site list")
    found = load(name, beside="")
    click.echo(json.dumps(values(found), indent=2) if as_json else visible(as_toml(found), "\n"), nl=as_json)


@site.command("check", help="Check a site file: FILE, or the name of a site. Doubtful sources are warnings.")
@click.argument("file", required=False)
def check(file: str | None) -> None:
    from jobgen.sites.host_match import is_here
    from jobgen.sites.loader import load
    from jobgen.sites.sources import doubts

    if file is None:
        raise JobgenError("site check: name a site file")
    is_path = os.sep in file or file.endswith(".toml") or not os.path.isfile(file)
    found = load(file if is_path else os.path.join(".", file), beside="")
    if fault := _judge(found, is_here(found)):
        raise JobgenError(fault)
    for doubt in doubts(found, datetime.date.today()):
        click.echo(visible(f"jobgen: warning: {found.path}: {doubt}"), err=True)
    click.echo(visible(f"{found.path}: {found.title}, {counted(len(found.queues), 'queue')}: good"))


@site.command("detect", help="Print the site of this machine; the status is 1 if there is none.")
@_JSON
def detect(as_json: bool) -> int:
    from jobgen.sites.host_match import detect

    name, why = detect() or (None, "no site knows its host name or its variables")
    if as_json:
        click.echo(json.dumps({"site": name, "because": why}))
    elif name is None:
        click.echo(f"no site: {why}; jobgen site new writes a file for it", err=True)
    else:
        click.echo(visible(f"{name}: {why}"))
    return 0 if name else 1


@site.command(
    "new",
    short_help="Make a site file of the cluster of this machine.",
    help="Read the cluster of this machine from its scheduler: queues, nodes and limits. Write them to a file"
    " where --site finds it, have the scheduler test a job of two nodes, and print the next command.",
)
@click.argument("name", required=False)
@click.option("-o", "--output", metavar="FILE", type=FILE, help="Write to FILE.  [default: in your sites]")
@click.option(
    "--shared",
    metavar="DIR",
    type=FILE,
    help="Write a file for all users to DIR, a folder of JOBGEN_SITE_PATH.",
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
@click.option("--submit-test", is_flag=True, help="On PBS, submit a job of one minute, and delete it.")
def new(name: str | None, output: str | None, shared: str | None, force: bool, submit_test: bool) -> None:
    from jobgen.rendering.script_file import write_script
    from jobgen.schedulers.detection import of_machine
    from jobgen.site_making.creation import site_file, taking_jobs, without_reservations
    from jobgen.site_making.host_facts import facts_of, host_facts
    from jobgen.sites import host_match
    from jobgen.sites.loader import read_site
    from jobgen.sites.search import folders

    if shared is not None and output is not None:
        raise JobgenError("site new: --shared and -o name two files; leave one of them out")
    scheduler = of_machine().scheduler
    if scheduler.behaviour.one_host:
        commands = " nor ".join(row.command for row in queued().values())
        raise JobgenError(
            f"site new: there is neither {commands} on PATH; run it on a login node of the cluster"
        )
    facts = facts_of(scheduler, "site new")
    facts = taking_jobs(without_reservations(scheduler, facts))
    host = host_facts(scheduler)
    if known := host_match.detect():
        click.echo(
            visible(f"jobgen: note: this machine is {known[0]} of jobgen site list: {known[1]}"), err=True
        )
    path = output or os.path.join(shared or folders()[0], f"{_site_name(name, facts.name)}.toml")
    if output is None and shared is None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    text = site_file(scheduler, facts, host, shared is not None)
    write_script(path, text, force=force, executable=False)
    click.echo(
        f"{path}: {counted(len(facts.queues), 'queue')} of {scheduler.title}, by {facts.commands}", err=True
    )
    for line in unread_lines(facts):
        click.echo(visible(f"  {line}"), err=True)
    found = read_site(path)
    submits = scheduler.cluster().try_job is not None and (submit_test or _agrees(scheduler.command))
    if fault := _judge(found, submits=submits):
        click.echo(visible(f"jobgen: warning: {fault}"), err=True)
    click.echo(_UNKNOWN, err=True)
    click.echo(_next_command(found, path, shared))


_UNKNOWN = """\
  A login node does not know:
  - the fast network: jobgen doctor in a job lists the interfaces of its nodes; [launch] interface
  - scratch folders: the manual of the cluster names them; [directories] runs_dir and workdir
Next:"""


def _judge(site: Site, here: bool = True, submits: bool = False) -> str:
    """Print the scheduler's judgement on a job of two nodes, if the site is ``here``; return the fault of the
    site file, or of that job. ``submits``: the job is also submitted where that says more."""
    from jobgen.hosts.calls import SchedulerError
    from jobgen.site_making.trial import judgement, submission, trial_plan
    from jobgen.site_making.validation import try_defaults

    try:
        try_defaults(site)
        if not here:
            return ""
        plan = trial_plan(site)
        answers = [judgement(plan)]
        try_job = site.scheduler.cluster().try_job
        if try_job and submits:
            answers.append(submission(plan, try_job))
    except SchedulerError as error:
        return f"no job was tested: {error}"
    except JobgenError as error:
        return str(error)
    for one in answers:
        text = f"a job of {plan.title}, in {plan.queue or 'the default queue'}: {one.text} ({one.how})"
        if not one.good:
            return text
        click.echo(visible(f"  {text}"), err=True)
    return ""


def _agrees(command: str) -> bool:
    """Ask whether to submit a job; without a terminal the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    return click.confirm(f"{command} a job of one minute, and delete it?", err=True)


def _next_command(site: Site, path: str, shared: str | None) -> str:
    """Return a command with the new site that works in any folder."""
    from jobgen.site_making.trial import trial_nodes
    from jobgen.sites.search import find

    try:
        known = os.path.realpath(find(site.name, "")) == os.path.realpath(path)
    except JobgenError:
        known = False
    name = site.name if known else os.path.abspath(path)
    variable = f"JOBGEN_SITE_PATH={shlex.quote(os.path.abspath(shared))} " if shared and not known else ""
    name = site.name if variable else name
    demands = " ".join(
        f"--{key.replace('_', '-')} {value}" for key, value in site.file.mandatory.items() if key[0] != "-"
    )
    options = f"--site {shlex.quote(name)} --nodes {trial_nodes(site)} {demands}".rstrip()
    return f"{variable}jobgen {site.file.scheduler} {options} -o job.sh -- train.py"


def _site_name(typed: str | None, cluster: str) -> str:
    """Return the name of a new site, which can be that of a file: as typed, or that of the cluster."""
    name = cluster if typed is None else typed.removesuffix(".toml")
    if re.fullmatch(r"\w[\w.-]*", name):
        return name
    if typed is None:
        raise JobgenError(f"site new: this cluster is called {shown(name)}: give a NAME or -o FILE")
    rule = "must begin with a letter, a digit or _, and have only these, . and -"
    raise JobgenError(f"site new: NAME {shown(typed)} {rule}; -o FILE writes to any path")


def unread_lines(facts: Facts) -> list[str]:
    """Return the sentences on what cannot be read in the answers of the scheduler, the first ten."""
    more = [f"{len(facts.unread) - 10} more texts cannot be read"] if len(facts.unread) > 10 else []
    return [*facts.unread[:10], *more]


@site.command(
    "refresh",
    short_help="Ask the scheduler for the queues and nodes of a site.",
    help="Ask the scheduler of this machine, or of a host, for the queues of a site, their limits and their "
    "nodes, and keep the answer: it wins over the site file, and a job that exceeds it is refused.",
)
@click.argument("name", required=False)
@click.option("--host", metavar="NAME", help="Ask the scheduler of this host; see jobgen host add.")
def refresh(name: str | None, host: str | None) -> None:
    from jobgen.hosts.host import HERE
    from jobgen.rendering.script_file import write_script
    from jobgen.site_making.host_facts import facts_of, user_facts
    from jobgen.site_making.refresh import differences, text_of
    from jobgen.sites.host_file import host as host_of
    from jobgen.sites.host_file import read
    from jobgen.sites.host_match import detect
    from jobgen.sites.loader import load
    from jobgen.sites.machine import merge
    from jobgen.sites.search import machine_file

    machine = host_of(host) if host else HERE
    name = name or (read(host).site if host else (detect() or [None])[0])
    if name is None:
        raise JobgenError(
            "site refresh: no site knows this machine: name one of jobgen site list; --host NAME asks the "
            "scheduler of a host"
        )
    file = load(name, beside="", machine=False)
    facts = facts_of(file.scheduler, f"site refresh {shown(file.name)}", machine)
    path = machine_file(file.name)
    text = text_of(file, facts, user_facts(machine))
    new = merge(file, path, text)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_script(path, text, force=True, executable=False)
    assert new.machine is not None
    facts_text = f"{counted(len(new.machine.site.queues), 'queue')} of {file.title} by {facts.commands}"
    click.echo(f"{path}: {facts_text}; jobs beyond them are refused", err=True)
    for line in (*unread_lines(facts), *differences(file, new)):
        click.echo(visible(f"  {line}"), err=True)
    if fault := _judge(new):
        click.echo(visible(f"jobgen: warning: {fault}"), err=True)
