"""A group of commands, such as ``jobgen site``."""

from __future__ import annotations

from typing import Any

import click

from jobgen.errors import JobgenError, nearest, one_of, shown


class CommandGroup(click.Group):
    """A group of commands that suggests the nearest name for a misspelt one."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in self.commands:
            known = one_of(self.commands)
            raise JobgenError(
                f"there is no command {self.name} {shown(args[0])}: use {known}"
                f"{nearest(args[0], self.commands)}"
            )
        return super().resolve_command(ctx, args)
