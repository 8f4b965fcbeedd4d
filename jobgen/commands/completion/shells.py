"""The command ``jobgen completion``."""

from __future__ import annotations

from pathlib import Path

import click

from jobgen.errors import JobgenError, nearest, one_of, shown

SHELLS = ("bash", "zsh", "fish")


def script(shell: str) -> str:
    """Return the script that enables completion in a shell."""
    import jobgen.templates

    return Path(jobgen.templates.__path__[0], "completion", f"jobgen.{shell}").read_text(encoding="utf-8")


@click.command(
    "completion",
    short_help="Print the completion script of a shell.",
    help="Print the script that makes a shell complete commands, options, sites, queues and job-file keys.",
    epilog="Example: jobgen completion bash > ~/.local/share/bash-completion/completions/jobgen",
)
@click.argument("shell", metavar="bash|zsh|fish")
def completion(shell: str) -> None:
    if shell not in SHELLS:
        raise JobgenError(f"completion {shown(shell)}: must be {one_of(SHELLS)}{nearest(shell, SHELLS)}")
    click.echo(script(shell), nl=False)
