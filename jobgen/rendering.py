"""Renders a Plan: Jinja templates in, the text of one script out. The same Plan gives the same bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

import jinja2

import jobgen.templates
from jobgen.errors import JobgenError, nearest

if TYPE_CHECKING:
    from pathlib import Path

    from jobgen.plan import Plan

PACKAGED = jobgen.templates.__path__[0]
BLOCKS = ("setup", "before", "after_block")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_CALM = re.compile(r"[A-Za-z0-9 _@%+=:,./()\[\]{}#&;|<>*?!^-]+")
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "'": "\\'", "\\": "\\\\"}


def sh(value: object) -> str:
    """A value as one word of bash, whatever it holds: bare, in single quotes, or as ``$'...'``.

    The word never holds a raw newline or a character that cannot be seen, so no line of a script
    is one that a user's text made up.
    """
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    if _CALM.fullmatch(text):
        return f"'{text}'"
    return "$'" + "".join(map(_ansi_c, text)) + "'" if text else "''"


def item(value: object) -> str:
    """A value as an element of a bash array, where a bare comma looks like a mistake."""
    word = sh(value)
    return f"'{word}'" if "," in word and word == str(value) else word


def _ansi_c(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    # Letters of any script stay readable; the rest of Unicode (typographic quotes, marks that
    # reverse the line) goes byte by byte.
    if " " <= character <= "~" or character.isalnum():
        return character
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(character))


def quoted(value: object) -> str:
    """The same, always in quotes: of ``job_program=env`` shellcheck asks whether ``$(env)`` was meant."""
    word = sh(value)
    return f"'{word}'" if word == value else word


class _Cache(jinja2.FileSystemBytecodeCache):
    """Compiled templates of earlier runs, which save half of the start; a cache that fails is no error."""

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except Exception:  # absent, cut short, of another version: whatever it is, compile anew
            bucket.reset()

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        with suppress(OSError):
            os.makedirs(self.directory, mode=0o755, exist_ok=True)
            super().dump_bytecode(bucket)


def cache_dir() -> str | None:
    """Where compiled templates are kept: beside the templates, as Python keeps its own bytecode, or,
    where that cannot be written, in the user's cache."""
    if os.access(PACKAGED, os.W_OK):
        return os.path.join(PACKAGED, "__pycache__")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "jobgen") if os.path.isabs(home) else None


@lru_cache(maxsize=8)
def environment(template_dirs: tuple[str, ...] = (), cache_dir: str | None = None) -> jinja2.Environment:
    """The templates of the user's folders, before the packaged ones; those also under ``builtin/``."""
    packaged = jinja2.FileSystemLoader(PACKAGED)
    users = [jinja2.FileSystemLoader(folder) for folder in template_dirs]
    env = jinja2.Environment(
        loader=jinja2.ChoiceLoader([*users, packaged, jinja2.PrefixLoader({"builtin": packaged})]),
        undefined=jinja2.StrictUndefined,
        # bash writes ${#list[@]}, which Jinja would take for the beginning of a comment.
        comment_start_string="{##",
        comment_end_string="##}",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        bytecode_cache=_Cache(cache_dir) if cache_dir else None,
    )
    env.filters["sh"] = sh
    env.filters["item"] = item
    env.filters["quoted"] = quoted
    return env


def render(
    plan: Plan, template_dirs: Sequence[str] = (), cache_dir: str | None = None, template: str | None = None
) -> str:
    """The script of a plan, from its scheduler's template or another one.

    Raises:
        JobgenError: a user's template, or shell code of the user, is wrong; the sentence names it.
    """
    if given := [key for key in BLOCKS if getattr(plan.spec, key)]:
        from jobgen.blocks import check_syntax  # asks bash

        check_syntax(plan.spec, given)
    folders = tuple(template_dirs)
    env = environment(folders, cache_dir)
    if folders:
        _check_blocks(env, folders)
    try:
        return env.get_template(template or plan.scheduler.template).render(plan._asdict())
    except jinja2.TemplateSyntaxError as error:
        raise JobgenError(
            f"template {error.filename or error.name}, line {error.lineno}: {error.message}"
        ) from None
    except jinja2.TemplateNotFound as error:
        raise JobgenError(f"template {error.name} is not in {', '.join(folders)} nor among ours") from None
    except jinja2.TemplateError as error:
        raise JobgenError(f"a template in {', '.join(folders)} cannot be rendered: {error.message}") from None
    except RecursionError:
        raise JobgenError(f"a template in {', '.join(folders)} extends itself: extend builtin/NAME") from None
    except Exception as error:
        if not folders:
            raise  # a template of ours: a fault to report, not the user's
        reason = f"{type(error).__name__}: {error}"
        raise JobgenError(f"a template in {', '.join(folders)} cannot be rendered: {reason}") from None


def _check_blocks(env: jinja2.Environment, folders: Sequence[str]) -> None:
    """Refuse a block that no packaged template has: Jinja would drop it in silence."""
    from pathlib import Path

    known = {name for path in Path(PACKAGED).glob("*.j2") for name in _blocks(env, path)}
    for folder in folders:
        if not Path(folder).is_dir():
            raise JobgenError(f"template folder {folder} is not a directory")
        for path in sorted(Path(folder).glob("*.j2")):
            for name in _blocks(env, path):
                if name not in known:
                    allowed = ", ".join(sorted(known))
                    raise JobgenError(
                        f"template {path} has the unknown block {name}: "
                        f"the blocks are {allowed}{nearest(name, known)}"
                    )


def _blocks(env: jinja2.Environment, path: Path) -> list[str]:
    try:
        tree = env.parse(path.read_text(encoding="utf-8"), filename=str(path))
    except jinja2.TemplateSyntaxError as error:
        raise JobgenError(f"template {path}, line {error.lineno}: {error.message}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise JobgenError(f"template {path} cannot be read: {error}") from None
    return [block.name for block in tree.find_all(jinja2.nodes.Block)]
