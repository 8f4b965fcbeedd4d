"""Values that sbatch and the launchers take for options that jobgen has, too: the words for jobgen.

Only errors need this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress

from jobgen.convert.to_job_file.builder import JobFile
from jobgen.errors import JobgenError, one_of
from jobgen.launch.launchers import LAUNCHERS
from jobgen.options import BY_KEY, shell_text
from jobgen.schedulers.table import named
from jobgen.script.dialects.table import of_script


def of_value(
    name: str, message: str, texts: Mapping[str, object], accepted: Callable[[Mapping[str, object]], object]
) -> str:
    """Return jobgen's words for a value that it refuses with this message, if another program takes it.

    ``accepted`` returns the plan of a job with such texts, or raises JobgenError.
    """
    flag = message.partition(" ")[0]
    row = of_script(named(name, None).name)
    option = next((one for one in BY_KEY.values() if one.flag == flag), None)
    if option is None or not isinstance(text := texts.get(option.key), str):
        return ""
    if (why := row.scheduler.lacks.get(option.key, "")) and why not in message:
        return f"; {why}"
    for pattern, words in row.own_values.get(flag, ()):
        if found := re.fullmatch(pattern, text):
            return f"; use {found.expand(words)}"
    if texts.get("launcher") is None and "launcher" in message:
        able = [one for one, launcher in LAUNCHERS.items() if flag in launcher.line.same]
        with suppress(JobgenError):
            for one in able:
                accepted({**texts, "launcher": one})
            return f"; use --launcher {one_of(able)} {shell_text(option.key, text)}" if able else ""
        return ""
    if flag[2:] not in row.scheduler.grammar.long_options:
        return ""
    value = row.read_value(option.key, text)
    return f"; use {flag} {value}" if value != text and JobFile().try_add(option.key, value) else ""
