"""``jobgen help``: the help of a command, an option, a rule or an exit status, or a page of the docs."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable, Sequence

import click

from jobgen.commands import topics
from jobgen.commands.terminal import columns
from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.options import OPTIONS
from jobgen.schedulers.table import SCHEDULERS

_OTHERS = 3  # further pages that are named
_FOLDERS = {"start": "Start here", "tutorials": "Tutorials", "trouble": "What went wrong?", "": "How to"}


@click.command(
    "help",
    context_settings={"ignore_unknown_options": True},
    short_help="Answer a question; explain a command, rule or status.",
    help="Print the help of COMMAND or of OPTION of a job, the reason for RULE of jobgen check, the meaning "
    "of an exit STATUS, or the page of the documentation that answers a question. Without words: the "
    "titles of all pages.",
    epilog="Example: jobgen help job stays pending",
)
@click.argument("words", metavar="[COMMAND|OPTION|RULE|STATUS|QUESTION]...", nargs=-1)
@click.pass_context
def help_command(ctx: click.Context, words: tuple[str, ...]) -> None:
    root = ctx.find_root()
    commands = root.command.list_commands(root) if isinstance(root.command, click.Group) else []
    text = _command_help(root, words) or _option_text(words) or _rule_text(words) or _page(words, commands)
    click.echo(text, nl=False)


def _command_help(ctx: click.Context, words: Sequence[str]) -> str:
    """Return the help of the command of these words, or an empty text."""
    for word in words:
        command = ctx.command.get_command(ctx, word) if isinstance(ctx.command, click.Group) else None
        if command is None:
            return ""
        ctx = click.Context(command, parent=ctx, info_name=word, **command.context_settings)
    page = f"about-{words[0]}" if words else ""
    more = f"\nThe page of the documentation: jobgen help {page}\n" if page in topics.topics() else ""
    return f"{ctx.get_help()}\n{more}" if words else ""


def _option_text(words: Sequence[str]) -> str:
    """Return the help of the option of a job that is the only word, or an empty text."""
    if not words or not re.match(r"-\w|--\w", words[0]):
        return ""
    option = next((one for one in OPTIONS if one.is_named(words[0])), None)
    if option is None or len(words) > 1:
        return _foreign_option_text(words)
    line = f"{option.flag} {option.metavar}".strip()
    return f"{line}\n{textwrap.indent(textwrap.fill(option.about, columns() - 4), '    ')}\n"


def _foreign_option_text(words: Sequence[str]) -> str:
    """Return the options of jobgen for options of other programs; refuse one that no program has."""
    from jobgen.commands.cli import cli
    from jobgen.commands.foreign_options import hint, programs_with

    programs = programs_with(words[0])
    if not programs:
        flag = (
            nearest(words[0], [one.flag for one in OPTIONS], 0.75) or "; jobgen slurm --help-all lists them"
        )
        raise JobgenError(f"help: there is no option {shown(words[0])} of a job{flag}")
    rows = [row for row in SCHEDULERS.values() if row.command in programs]
    commands = [*dict.fromkeys(row.command_name for row in rows)] or ["slurm"]
    takes_value = not rows or any(row.grammar.takes_value(words[0]) for row in rows)
    if len(words) > 1 or "=" in words[0] or not takes_value:
        job = cli.get_command(click.Context(cli), commands[0])
        return f"{hint(job, words)}\n" if job is not None else ""
    lines = "".join(f"  jobgen {one} {words[0]} VALUE\n" for one in commands)
    owners = one_of(programs).replace(" or ", " and ")
    return f"{words[0]} is an option of {owners}. With a value, jobgen answers with its own options:\n{lines}"


def _rule_text(words: Sequence[str]) -> str:
    if len(words) != 1 or words[0] in topics.topics():
        return ""
    from jobgen.check import formats
    from jobgen.check.rules.table import RULES

    if words[0] in RULES:
        return formats.text_of(RULES[words[0]]) + "\n"
    if "-" not in words[0]:
        return ""  # a question
    if hint := nearest(words[0], RULES):
        raise JobgenError(f"help: there is no rule {shown(words[0])}{hint}")
    return ""


def _page(words: Sequence[str], commands: Sequence[str]) -> str:
    """Return the page with this name, or the first one that a search finds, and the names of others."""
    from jobgen.runs.exit_statuses import meaning

    known = topics.topics()
    if not words:
        return _contents(known.values())
    question, name = " ".join(words), "-".join(words).lower()
    hits = [known[name]] if name in known else topics.search(question)
    if not hits:
        raise JobgenError(
            f"help: no command or page answers {shown(question)}{_hint(question, (*commands, *known))}"
        )
    head = f"Exit status {question} of a job: {meaning(int(question))}.\n\n" if question.isdecimal() else ""
    more = "".join(f"  jobgen help {one.name:<20}  {one.title}\n" for one in hits[1 : 1 + _OTHERS])
    return head + topics.for_terminal(hits[0], columns()) + (f"\nOther pages:\n{more}" if more else "")


def _contents(pages: Iterable[topics.Topic]) -> str:
    """Return the names and titles of all pages, by their folders."""
    folders: dict[str, list[str]] = {folder: [] for folder in _FOLDERS}
    for one in pages:
        folders[os.path.dirname(one.place)].append(f"  {one.name:<20}  {one.title}\n")
    text = "\n".join(f"{_FOLDERS[folder]}:\n{''.join(lines)}" for folder, lines in folders.items())
    return f"{text}\njobgen help NAME prints a page, jobgen help QUESTION the one that answers a question.\n"


def _hint(question: str, names: Sequence[str]) -> str:
    better = topics.corrected(question)
    meant = f"; did you mean {better}?" if better else nearest(question, names, 0.75)
    return meant or "; jobgen help without words lists all pages"
