"""Rendering of a Plan with Jinja templates to the text of one script. Equal plans give equal bytes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import jinja2

import jobgen.templates
from jobgen.errors import JobgenError, nearest, shown
from jobgen.options import CODE
from jobgen.rendering.environment import step_lines
from jobgen.rendering.quoting import item, prefixed, sh, sh_open, sh_path, sh_source, suffixed
from jobgen.rendering.runtime import MAIN, Setting, runtime, settings, step_settings
from jobgen.rendering.words import assignment, words
from jobgen.values.text_files import LARGEST_FILE, TooLong, read_text

if TYPE_CHECKING:
    from pathlib import Path

    from jobgen.plan.plan import Plan

PACKAGED = jobgen.templates.__path__[0]
_OF_JOB = (
    *("job_steps", "job_parallel_steps", "job_cpus_per_node", "job_faster_networks", "job_preflight_mode"),
    *("job_preflight_seconds", "job_needed_nodes"),
)  # settings that the steps do not change


class _Cache(jinja2.FileSystemBytecodeCache):
    """Compiled templates of earlier runs, which halve the start-up time. Errors of the cache are ignored."""

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except Exception:  # missing, truncated or of another version: compile again
            bucket.reset()

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        with suppress(OSError):
            os.makedirs(self.directory, mode=0o755, exist_ok=True)
            super().dump_bytecode(bucket)


def cache_dir() -> str | None:
    """Return the directory for compiled templates: next to the templates, like Python's own bytecode, or in
    the user's cache if that cannot be written."""
    if os.access(PACKAGED, os.W_OK):
        return os.path.join(PACKAGED, "__pycache__")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "jobgen") if os.path.isabs(home) else None


def _sandbox() -> type[jinja2.Environment]:
    """Return the class for the templates of users; the packaged ones need none, and its import takes time."""
    from types import BuiltinMethodType, ModuleType

    from jinja2.sandbox import ImmutableSandboxedEnvironment

    text = (str, tuple, list, dict, int)

    class Sandbox(ImmutableSandboxedEnvironment):
        """Templates that use values and filters, but no modules and classes, and no functions of Python."""

        def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
            return not isinstance(value, (ModuleType, type)) and super().is_safe_attribute(obj, attr, value)

        def is_safe_callable(self, obj: object) -> bool:
            of_jinja = obj in self.globals.values() or type(obj).__module__.startswith("jinja2.")
            of_text = isinstance(obj, BuiltinMethodType) and type(obj.__self__) in text
            return (of_jinja or of_text) and super().is_safe_callable(obj)

    return Sandbox


@lru_cache(maxsize=8)
def environment(template_dirs: tuple[str, ...] = (), cache_dir: str | None = None) -> jinja2.Environment:
    """Return the templates: the user's folders, then the packaged ones, which are also in ``builtin/``."""
    packaged = jinja2.FileSystemLoader(PACKAGED)
    users = [jinja2.FileSystemLoader(folder) for folder in template_dirs]
    env = (_sandbox() if users else jinja2.Environment)(
        loader=jinja2.ChoiceLoader([*users, packaged, jinja2.PrefixLoader({"builtin": packaged})]),
        undefined=jinja2.StrictUndefined,
        # Jinja would read the {# of bash's ${#list[@]} as the beginning of a comment.
        comment_start_string="{##",
        comment_end_string="##}",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        # A sandbox compiles all templates in its own way.
        bytecode_cache=_Cache(cache_dir, f"{'sandbox' if users else 'jinja2'}_%s.cache")
        if cache_dir
        else None,
    )
    env.filters |= {"sh": sh, "sh_path": sh_path, "sh_open": sh_open, "sh_source": sh_source, "item": item}
    env.filters |= {"prefixed": prefixed, "suffixed": suffixed}
    return env


def render(
    plan: Plan, template_dirs: Sequence[str] = (), cache_dir: str | None = None, main: str = MAIN
) -> str:
    """Return the script of a plan; ``main`` is the file of the runtime with its order of steps.

    Raises:
        JobgenError: a user's template or shell code is wrong; the message names it.
    """
    if any(getattr(plan.spec, key) for key in CODE):
        from jobgen.rendering.hooks import check_syntax  # runs bash

        check_syntax(plan.spec, CODE)
    folders = tuple(template_dirs)
    env = environment(folders, cache_dir)
    values = words(plan)
    if folders:
        _check_blocks(env, folders)
    try:
        steps = _step_texts(plan, env) if plan.steps else ()
        template = env.get_template(plan.scheduler.template)
        text = template.render(values._asdict(), step_texts=steps, runtime=runtime(plan, main))
        _check_script(text, plan, folders)
        return text
    except jinja2.TemplateSyntaxError as error:
        raise JobgenError(
            f"template {error.filename or error.name}, line {error.lineno}: {error.message}"
        ) from None
    except jinja2.TemplateNotFound as error:
        raise JobgenError(f"template {error.name} is neither in {', '.join(folders)} nor packaged") from None
    except jinja2.TemplateError as error:
        raise JobgenError(f"a template in {', '.join(folders)} cannot be rendered: {error.message}") from None
    except JobgenError:
        raise
    except RecursionError:
        raise JobgenError(f"a template in {', '.join(folders)} extends itself: extend builtin/NAME") from None
    except Exception as error:
        if not folders:
            raise  # a packaged template: an error of jobgen, not of the user
        reason = f"{type(error).__name__}: {error}"
        raise JobgenError(f"a template in {', '.join(folders)} cannot be rendered: {reason}") from None


def _check_script(text: str, plan: Plan, folders: Sequence[str]) -> None:
    """Refuse a script without a command, which a user's template can give, and one that is too long."""
    if not any(line.strip() and not line.lstrip().startswith("#") for line in text.split("\n")):
        raise JobgenError(
            f"the template {plan.scheduler.template} in {', '.join(folders)} gives a script without a "
            f"command: extend builtin/{plan.scheduler.template}"
        )
    if len(text) > LARGEST_FILE:
        raise JobgenError(
            f"the script has {len(text)} characters, and a batch script at most {LARGEST_FILE}: "
            "move long values into files"
        )


def _step_texts(plan: Plan, env: jinja2.Environment) -> list[str]:
    """Return the functions of the steps, step_1 and so on; they define those that a job without steps has.
    The runtime unsets the settings of a place and a part before."""
    values = [{one.name: one.value for one in settings(job)} for job in (plan, *plan.steps)]
    of_step = {one.name for job in plan.steps for one in step_settings(job)}
    lists = {name for own in values for name, value in own.items() if isinstance(value, tuple)}
    names = [name for name in dict.fromkeys(chain(*values)) if len({one.get(name) for one in values}) > 1]
    return [
        env.get_template("step.sh.j2")
        .render(
            words(one)._asdict(),
            own_variables=any(step.own_env for step in plan.spec.steps),
            changes=[
                assignment(Setting(name, own.get(name, () if name in lists else "")))
                for name in names
                if name not in _OF_JOB and (name in own or name not in of_step)
            ]
            + step_lines(plan, one),
        )
        .replace("\n\n", "\n")
        .rstrip("\n")
        for one, own in zip(plan.steps, values[1:], strict=True)
    ]


def _check_blocks(env: jinja2.Environment, folders: Sequence[str]) -> None:
    """Refuse a block that no packaged template has: Jinja would ignore it."""
    from pathlib import Path

    known = {name for path in Path(PACKAGED).glob("*.j2") for name in _blocks(env, path)}
    for folder in folders:
        try:
            files = sorted(os.listdir(folder))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise JobgenError(f"template folder {shown(folder)} cannot be read: {reason}") from None
        for path in (Path(folder, file) for file in files if file.endswith(".j2")):
            for name in _blocks(env, path):
                if name not in known:
                    allowed = ", ".join(sorted(known))
                    raise JobgenError(
                        f"template {path} has the unknown block {name}: "
                        f"the blocks are {allowed}{nearest(name, known)}"
                    )


def _blocks(env: jinja2.Environment, path: Path) -> list[str]:
    try:
        tree = env.parse(read_text(str(path)), filename=str(path))
    except jinja2.TemplateSyntaxError as error:
        raise JobgenError(f"template {path}, line {error.lineno}: {error.message}") from None
    except TooLong as error:
        raise JobgenError(f"template {path} {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise JobgenError(f"template {path} cannot be read: {error}") from None
    return [block.name for block in tree.find_all(jinja2.nodes.Block)]
