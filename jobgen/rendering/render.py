"""Rendering of a Plan with Jinja templates to the text of one script. Equal plans give equal bytes."""

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
from jobgen.rendering.runtime import MAIN, Setting, runtime, settings
from jobgen.schedulers.precedence import split_user_directives
from jobgen.schedulers.table import scheduler_of

if TYPE_CHECKING:
    from pathlib import Path

    from jobgen.plan import Plan

PACKAGED = jobgen.templates.__path__[0]
BLOCKS = ("setup", "before", "after_block")
_QUOTED = ("job_title", "job_name")
# The blocks of earlier versions, and the functions of the runtime that replace them.
SUCCESSORS = {
    "job": "the function job_scheduler",
    "directories": "the function job_open",
    "hostfile": "the function job_make_hostfile",
    "hostlist": "the function job_list_hosts",
    "mixedlist": "the function job_list_hosts",
    "share": "the setting job_lines_per_rank",
    "rendezvous": "the function job_rendezvous",
    "deadline": "the function job_find_end",
    "epilogue": "the function job_judge",
    "going_on": "the function job_go_on",
}
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_CALM = re.compile(r"[A-Za-z0-9 _@%+=:,./()\[\]{}#&;|<>*?!^-]+")
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


def item(value: object) -> str:
    """Return a value as an element of a bash array; with a comma it is quoted, or it looks like a mistake."""
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
    word = sh(value)
    return f"'{word}'" if word == value else word


def prefixed(value: object, prefix: str) -> str:
    """Return the value after the prefix; empty if there is no value."""
    return f"{prefix}{value}" if value else ""


def suffixed(value: object, suffix: str) -> str:
    """Return the value before the suffix; empty if there is no value."""
    return f"{value}{suffix}" if value else ""


def _assignment(setting: Setting) -> str:
    value = setting.value
    if isinstance(value, tuple):
        return f"{setting.name}=({' '.join(map(item, value))})"
    return f"{setting.name}={quoted(value) if setting.name in _QUOTED else sh(value)}"


def _each(words: Sequence[object]) -> str:
    """Return the words, each followed by a blank."""
    return "".join(f"{sh(word)} " for word in words)


def _words(plan: Plan) -> dict[str, object]:
    """Return the values for the templates besides the fields of the plan: quoted parts of command lines."""
    spec, box = plan.spec, plan.container
    first, last = split_user_directives(spec.directive, scheduler_of(spec).name)
    image = _pyxis_words(plan) if box is not None and box.kind == "pyxis" else ""
    return {
        "settings": [" ".join(map(_assignment, line)) for line in settings(plan)],
        "first_directives": first,
        "last_directives": last,
        "container_directives": (f"--image={spec.image}",) if box and box.kind == "shifter" else (),
        "program_words": _program_words(plan),
        "launcher_words": _each(plan.launcher_args),
        "container_words": _each(spec.container_arg),
        "pyxis_words": image,
        "srun_container": "" if plan.start_nodes == "here" else image,
        "node_prefix": box.node if box else "",
        "node_ranks": f'"$({_RANKS_OF_NODE})"' if plan.mixed else plan.ranks_per_node,
        "filter_words": f"{plan.active.option} {sh(plan.active.text)} " if plan.active.option else "",
        "host_list": '--nodelist="$(paste -sd , "$JOBGEN_RUN_DIR/hosts")"',
        "rank_lines": _rank_lines(plan),
        "network": _network(plan),
        "needs": _needs(plan),
    }


def _pyxis_words(plan: Plan) -> str:
    """Return the options of srun that start a container."""
    assert plan.container
    folders = '"$JOBGEN_RUN_DIR:$JOBGEN_RUN_DIR,$PWD:$PWD"'
    binds = "".join(f",{sh(bind)}" for bind in plan.container.binds)
    return (
        f'--container-image={sh(plan.spec.image)} --container-workdir="$PWD" '
        f"--container-mounts={folders}{binds} {_each(plan.spec.container_arg)}"
    )


def _program_words(plan: Plan) -> str:
    words = [sh(word) for word in plan.program.words]
    if plan.local_rank_at:
        words.insert(plan.local_rank_at, '"--local_rank=$LOCAL_RANK"')
    if plan.program.is_ours and plan.survival.preflight:
        words.insert(3, '"$@"')  # preflight
    if plan.sweep:
        words.append('"${job_point[@]}"')
    return (plan.container.rank if plan.container else "") + " ".join(words)


_HOSTFILE = '"$JOBGEN_RUN_DIR/hostfile"'
_RANKS_OF_NODE = f"awk -F= -v line=\"$((NODE_RANK + 1))\" 'NR == line {{ print $2 }}' {_HOSTFILE}"
_RANKS_BEFORE = (
    f"awk -F= -v node=\"$CROSS_RANK\" 'NR <= node {{ n += $2 }} END {{ print n + 0 }}' {_HOSTFILE}"
)


def _rank_lines(plan: Plan) -> tuple[str, ...]:
    """Return the body of the function rank: it sets torchrun's variables from those of the launcher."""
    if plan.mixed and plan.launch_row.mixed_ranks:
        return tuple(line.replace("{before}", _RANKS_BEFORE) for line in plan.launch_row.mixed_ranks)
    names = plan.rank_variables
    if names is None:
        return ()
    export = "export " if plan.sets_ranks else ""
    local_size = names.local_size if plan.mixed else plan.ranks_per_node
    line = f"{export}RANK={names.rank} WORLD_SIZE={names.size} LOCAL_RANK={names.local_rank}"
    line += f" LOCAL_WORLD_SIZE={local_size}"
    return (line if export else f"{line}  # not exported: the training module asks mpi4py",)


def _network(plan: Plan) -> list[str]:
    """Return the settings of the interface. Gloo and Open MPI require full names, TensorPipe only one."""
    interface = plan.spec.interface
    if not interface:
        return []
    first = interface.partition(",")[0]
    lines = [f"export NCCL_SOCKET_IFNAME={interface} GLOO_SOCKET_IFNAME={interface} TP_SOCKET_IFNAME={first}"]
    libraries = (plan.accelerator.network, plan.mpi.network if plan.mpi else "")
    lines += [line.format(interface=interface) for line in libraries if line]
    return [one for line in lines for one in ("# jobgen: disable=fixed-interface", line)]


def _needs(plan: Plan) -> list[str]:
    """Return the checks of what must exist besides the commands of the host."""
    box, program = plan.container, plan.program
    lines = ["job_try_container"] if box else []
    if box and box.needs:
        lines.append(f"job_need_inside {' '.join(box.needs)}")
    if program.is_ours:
        lines.append("job_need_training")
    if program.file:
        lines.append(f"job_need_file {sh(program.file)}")
    if program.command:
        lines.append(f"job_need_program {sh(program.command)}")
    return lines


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


@lru_cache(maxsize=8)
def environment(template_dirs: tuple[str, ...] = (), cache_dir: str | None = None) -> jinja2.Environment:
    """Return the templates: the user's folders, then the packaged ones, which are also in ``builtin/``."""
    packaged = jinja2.FileSystemLoader(PACKAGED)
    users = [jinja2.FileSystemLoader(folder) for folder in template_dirs]
    env = jinja2.Environment(
        loader=jinja2.ChoiceLoader([*users, packaged, jinja2.PrefixLoader({"builtin": packaged})]),
        undefined=jinja2.StrictUndefined,
        # Jinja would take the {# in ${#list[@]} of bash for the beginning of a comment.
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
    env.filters["prefixed"] = prefixed
    env.filters["suffixed"] = suffixed
    return env


def render(
    plan: Plan, template_dirs: Sequence[str] = (), cache_dir: str | None = None, main: str = MAIN
) -> str:
    """Return the script of a plan; ``main`` is the file of the runtime with its order of steps.

    Raises:
        JobgenError: a user's template or shell code is wrong; the message names it.
    """
    if given := [key for key in BLOCKS if getattr(plan.spec, key)]:
        from jobgen.rendering.hooks import check_syntax  # runs bash

        check_syntax(plan.spec, given)
    folders = tuple(template_dirs)
    env = environment(folders, cache_dir)
    if folders:
        _check_blocks(env, folders)
    try:
        template = env.get_template(plan.scheduler.template)
        return template.render(plan._asdict() | _words(plan), runtime=runtime(plan, main))
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
            raise  # a packaged template: an error of jobgen, not of the user
        reason = f"{type(error).__name__}: {error}"
        raise JobgenError(f"a template in {', '.join(folders)} cannot be rendered: {reason}") from None


def _check_blocks(env: jinja2.Environment, folders: Sequence[str]) -> None:
    """Refuse a block that no packaged template has: Jinja would ignore it."""
    from pathlib import Path

    known = {name for path in Path(PACKAGED).glob("*.j2") for name in _blocks(env, path)}
    for folder in folders:
        if not Path(folder).is_dir():
            raise JobgenError(f"template folder {folder} is not a directory")
        for path in sorted(Path(folder).glob("*.j2")):
            for name in _blocks(env, path):
                if name in SUCCESSORS:
                    raise JobgenError(
                        f"template {path}: the block {name} is gone: "
                        f"define {SUCCESSORS[name]} in the block overrides"
                    )
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
