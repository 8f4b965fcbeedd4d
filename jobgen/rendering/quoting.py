"""Values as words of bash; most of these functions are filters of the templates."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

# A value that begins with = is quoted: shellcheck takes NAME== for a comparison.
_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./-]*")
_CALM = re.compile(r"[A-Za-z0-9 _@%+=:,./()\[\]{}#&;|<>*?!^-]+")
# A variable in such a value, as $NAME or ${NAME}.
VARIABLE = r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))"
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "'": "\\'", "\\": "\\\\"}


def sh(value: object) -> str:
    """Return a value as one word of bash: bare, in single quotes, or as ``$'...'``.

    The word contains no newline and no invisible character, so a user's text cannot add a line to a script.
    """
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    if _CALM.fullmatch(text):
        return f"'{text}'"
    return "$'" + "".join(map(_ansi_c, text)) + "'" if text else "''"


def sh_path(value: str) -> str:
    """Return a path as one word of bash, which replaces a leading ``~/``."""
    return f"~/{sh(value[2:])}" if value.startswith("~/") else sh(value)


def sh_open(value: str) -> str:
    """Return a path, or the name of a module, as one word of bash, which replaces the variables in it, too.

    The script ends at one that is not set.
    """
    first, *others = re.split(VARIABLE, value, flags=re.ASCII)
    found = sh_path(first) if first else ""
    for braced, plain, text in zip(others[::3], others[1::3], others[2::3], strict=True):
        found += f'"${{{braced or plain}?}}"' + (sh(text) if text else "")
    return found


def sh_source(value: str) -> str:
    """Return the words of a file to source, with the arguments behind a name that ends with ``.sh``."""
    file, *arguments = re.split(r"(?<=\.sh) +(?=\S)", value, maxsplit=1)
    return " ".join(map(sh_open, [file, *" ".join(arguments).split()]))


def item(value: object) -> str:
    """Return a value as an element of a bash array; with a comma it is quoted: it looks wrong."""
    word = sh(value)
    return f"'{word}'" if "," in word and word == str(value) else word


def _ansi_c(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    # Letters of any alphabet stay readable; the rest of Unicode (typographic quotes, marks that
    # reverse the line) is written byte by byte.
    if " " <= character <= "~" or character.isalnum():
        return character
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(character))


def quoted(value: object) -> str:
    """Return a value as one word in quotes: shellcheck takes ``job_program=env`` for a missing ``$(env)``."""
    return f"'{word}'" if (word := sh(value)) == value else word


def prefixed(value: object, prefix: str) -> str:
    """Return the value after the prefix; empty if there is no value."""
    return f"{prefix}{value}" if value else ""


def suffixed(value: object, suffix: str) -> str:
    """Return the value before the suffix; empty if there is no value."""
    return f"{value}{suffix}" if value else ""


def each(words: Sequence[object]) -> str:
    """Return the words, each followed by a blank."""
    return "".join(f"{sh(word)} " for word in words)
