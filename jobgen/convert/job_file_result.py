"""The job file as jobgen reads it: what it refuses is said, or is left out."""

from __future__ import annotations

from jobgen.config import read_spec
from jobgen.convert.job_file_builder import JobFile
from jobgen.convert.remark import Remark
from jobgen.errors import JobgenError
from jobgen.jobfile.reader import decode, layer_of
from jobgen.plan.plan import resolve
from jobgen.rendering.render import render


def accepted(file: JobFile, command_name: str, line: int) -> str:
    """Return the text of the file without refused directives; add a remark if jobgen still refuses it."""
    text = file.text(command_name)
    why = refusal(text)
    while why:
        for directive in file.list("directive"):
            others = [one for one in file.list("directive") if one != directive]
            shorter = JobFile({**file.values, "directive": others}).text(command_name)
            if (then := refusal(shorter)) != why:
                file.remarks.append(Remark(line, directive, f"is left out, because jobgen refuses it: {why}"))
                file.values["directive"], text, why = others, shorter, then
                break
        else:
            file.remarks.append(Remark(line, "the job file", f"jobgen refuses it: {why}"))
            break
    return text


def refusal(text: str) -> str:
    """Return the sentence with which jobgen refuses a job file; empty if it renders it."""
    try:
        data = decode(text, "job.toml")
        layer = layer_of(data, (), lambda _: "job.toml")
        render(resolve(read_spec(data["scheduler"], {}, (), layer)))
    except JobgenError as error:
        return str(error)
    return ""
