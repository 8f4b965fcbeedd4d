"""Text that distinguishes schedulers whose directives have the same prefix, such as PBS Pro and Torque."""

from typing import NamedTuple


class Mark(NamedTuple):
    """A pattern of one scheduler in directives, or else in commands.

    The weight is 2 if other schedulers refuse or ignore the text, and 1 if they accept it, too.
    """

    pattern: str
    weight: int = 2
    in_commands: bool = False
