"""The pages of the sites, generated from the site files.

``python -m tools.write_site_pages`` writes all pages of docs/sites and their index in docs/sites.md anew; read the
difference before you commit it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from golden.cases import job_part, plan_of

from jobgen.launch.launchers import LAUNCHERS
from jobgen.plan.plan import Plan
from jobgen.rendering.render import render
from jobgen.sites import loader, search
from jobgen.sites.limits import ranges
from jobgen.sites.node_kinds import description
from jobgen.sites.site_file import GROUPS, Queue, Site
from jobgen.sites.sources import confidence, groups_of, newest, of_group

DOCS = Path(__file__).resolve().parent.parent / "docs"
INDEX = DOCS / "sites.md"
_MARKS = ("<!-- The sites, by tools/write_site_pages.py. -->\n", "<!-- End of the sites. -->\n")
_PAGE = """\
# {site.title}

{title}

{queues}## DeepSpeed on {nodes}

```bash
{deepspeed}
```

The job part of the script; the runtime is below it:

```sh
{script}```

## torchrun

```bash
{torchrun}
```

What starts the ranks:

```sh
{launch}
```

{differs}## Sources

{sources}

<!-- Generated from templates/sites/{site.name}.toml by tools/write_site_pages.py. -->
"""


def sites() -> list[Site]:
    """Return the sites that come with jobgen."""
    return [loader.load(path.stem) for path in sorted(Path(search.folders()[-1]).glob("*.toml"))]


def page(site: Site) -> str:
    """Return the page of a site."""
    own = site.values.get("launcher", "torchrun")  # the default for a Python program
    first, second = ("deepspeed", "") if own == "torchrun" else ("", "torchrun")
    deepspeed = command(site, first, "train.py --deepspeed_config ds.json")
    torchrun = command(site, second, "train.py")
    plan = plan_of(deepspeed)
    nodes = plan.resources.allocated
    return _PAGE.format(
        site=site,
        title=f"`jobgen {site.file.scheduler} --site {site.name}`: {_scheduler(site)}.",
        queues=_queues(site),
        nodes=f"{nodes} nodes" if nodes > 1 else "one node",
        deepspeed=_typed(site, deepspeed, "deepspeed"),
        script=job_part(render(plan)),
        torchrun=_typed(site, torchrun, "torchrun"),
        launch=_launch(plan_of(torchrun)),
        differs=_differs(site),
        sources="\n".join(_sources(site)),
    )


def _scheduler(site: Site) -> str:
    names = {"slurm": "Slurm", "pbspro": "PBS Pro or OpenPBS", "torque": "Torque"}
    launcher = site.values.get("launcher")
    starts = f"; ranks are started by {launcher}" if launcher in LAUNCHERS else ""
    return names[site.scheduler.name] + starts


def command(site: Site, launcher: str, program: str) -> str:
    """Return the options of a job of two nodes, or of what the default queue takes."""
    queue = site.values.get("queue")
    own = site.queues.get(str(queue))
    demanded = {**site.file.mandatory, **(own.mandatory if own else {})}
    given = "\n".join((*site.file.directives, *(own.directives if own else ())))
    words = [site.file.scheduler, f"--site {site.name}"]
    for key, example in demanded.items():
        if not key.startswith("-"):
            words.append(f"--{key.replace('_', '-')} {example}")
        elif key not in given:
            words.append(f"--directive '{key}={example}'")
    spans = ranges(site, str(queue)) if own else [one for name in site.queues for one in ranges(site, name)]
    nodes = min(max(2, spans[0][0]), spans[-1][1]) if spans else 2
    words.append(f"--nodes {nodes}")
    words += [f"--launcher {launcher}"] if launcher else []
    return " ".join((*words, "--", program))


def _typed(site: Site, options: str, name: str) -> str:
    suffix = "sh" if site.file.scheduler == "slurm" else "pbs"
    line = f"jobgen {options}".replace(" -- ", f" -o {name}.{suffix} -- ", 1)
    head, _, program = line.partition(" -o ")
    return f"{head} \\\n  -o {program}" if len(line) > 110 else line


def _launch(plan: Plan) -> str:
    """Return the functions of the script that start the ranks."""
    found = re.findall(r"^(?:node|launch)\(\) \{.*?^\}", render(plan), re.MULTILINE | re.DOTALL)
    assert found
    return "\n\n".join(found)


def _queues(site: Site) -> str:
    if not site.queues:
        return ""
    rows = [
        "| queue | nodes | wall time | GPUs a node | cores a node | remarks |",
        "|---|---|---|---|---|---|",
    ]
    for name, queue in site.queues.items():
        nodes = [table for _, table in site.kinds(name).values()]
        numbers = (_numbers([one.gpus for one in nodes]), _numbers([one.cores for one in nodes]))
        remarks = "; ".join((*_remarks(queue), *_kinds(site, name)))
        rows.append(_row(f"`{name}`", _span(site, name), _time(queue), *numbers, remarks))
    where = f"The default is `{site.values['queue']}`.\n\n" if site.values.get("queue") else ""
    return f"## Queues\n\n{where}" + "\n".join(rows) + "\n\n"


def _numbers(values: list[int | None]) -> str:
    """Return the numbers of the kinds of nodes of a queue, without those that are not known."""
    return " or ".join(str(one) for one in sorted({one for one in values if one is not None}))


def _kinds(site: Site, name: str) -> Iterator[str]:
    return (description(*one) for one in site.kinds(name).values() if site.queues[name].kinds)


def _span(site: Site, name: str) -> str:
    return ", ".join(
        f"{least} to {most}" if least != most else f"{most}" for least, most in ranges(site, name)
    )


def _time(queue: Queue) -> str:
    steps = [f"{text} up to {most} nodes" for most, text in queue.walltime_by_nodes]
    return ", ".join(steps) or queue.walltime or ""


def _remarks(queue: Queue) -> Iterator[str]:
    if queue.about:
        yield queue.about
    if queue.routes_to:
        yield f"routes to {', '.join(f'`{one}`' for one in queue.routes_to)}"
    if not queue.enabled:
        yield "takes no jobs that name it"
    if queue.shared and "shared" not in queue.about:
        yield "shared nodes"
    if queue.max_jobs:
        yield f"running jobs of a user: {queue.max_jobs}"
    if queue.max_gpus:
        yield f"GPUs of a user: {queue.max_gpus}"
    if queue.min_gpus:
        yield f"GPUs of a job: at least {queue.min_gpus}"
    if queue.max_cores:
        yield f"cores of a job: up to {queue.max_cores}"
    if queue.directives:
        yield f"`{' '.join(queue.directives)}`"


def _differs(site: Site) -> str:
    """Return the differences from the site's own example, below the pages that have it."""
    if not site.queues:  # a generic site
        return ""
    found = of_group(site, "example")
    pages = ", ".join(f"<{one.page}>" for one in found) or "none was found in a source that could be read"
    lines = [f"The example: {pages}."]
    if found:
        rows = (_row(*pair) for pair in site.file.differs.items())
        lines += ["", _row("in the script", "because"), "|---|---|", *rows]
    return "## Differences from the example of the site\n\n" + "\n".join(lines) + "\n\n"


def _sources(site: Site) -> Iterator[str]:
    yield "| facts | confidence | date | page | what was read |"
    yield "|---|---|---|---|---|"
    for source in site.file.source:
        day = f"{source.date or ''}" + (f" ({source.version})" if source.version else "")
        where = f"<{source.page}>" if source.page else ""
        yield _row(", ".join(source.facts), source.confidence, day, where, source.what)
    if bare := [group for group in groups_of(site) if not of_group(site, group)]:
        yield _row(", ".join(bare), "unknown", "", "", "")


def _row(*cells: str) -> str:
    """Return a row of a table."""
    return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"


def index() -> str:
    """Return docs/sites.md with the list of the sites anew."""
    begin, end = _MARKS
    before, rest = INDEX.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    rows = ["| site | cluster | scheduler | queues are from |", "|---|---|---|---|"]
    for site in sites():
        day = newest(site, "queues")
        known = f"{confidence(site, 'queues')}, {day}" if day else confidence(site, "queues")
        kind = _scheduler(site).partition(";")[0]
        link = f"[`{site.name}`](sites/{site.name}.md)"
        rows.append(_row(link, site.title, kind, known if site.queues else ""))
    return f"{before}{begin}" + "\n".join(rows) + f"\n{end}{after}"


def pages() -> dict[Path, str]:
    """Return the text of each generated file."""
    return {**{DOCS / f"sites/{site.name}.md": page(site) for site in sites()}, INDEX: index()}


def main() -> None:
    found = pages()
    (DOCS / "sites").mkdir(exist_ok=True)
    for path in set((DOCS / "sites").glob("*.md")) - set(found):
        path.unlink()
    for path, text in found.items():
        path.write_text(text, encoding="utf-8")
    facts = [confidence(site, group) for site in sites() for group in GROUPS if group in groups_of(site)]
    counts = ", ".join(f"{facts.count(one)} {one}" for one in dict.fromkeys(facts))
    sys.stderr.write(f"{len(found) - 1} pages; groups of facts by confidence: {counts}\n")


if __name__ == "__main__":
    main()
