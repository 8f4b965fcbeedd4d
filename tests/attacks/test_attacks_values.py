"""Bad values and hostile texts for every option of every command."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from attacks.targets import TARGETS, Target, attack, named, part

from jobgen.doctor import examination
from jobgen.errors import JobgenError
from jobgen.options import CODE

BAD = [
    *(
        "",
        " ",
        "0",
        "-1",
        "1",
        "٣",
        "1e9",
        "nan",
        "0x10",
        "1.5",
        "9" * 8,
        "9" * 5000,
        "1-",
        "3-1",
        "0-9:0",
        ",",
        ",,",
    ),
    *(
        "a" * 5000,
        "..",
        "../x",
        "/",
        "-",
        "--",
        "=",
        "==",
        "a=",
        ":",
        "%",
        "%q",
        "~",
        "~root",
        "{{ 1 }}",
        "{% x %}",
    ),
    *(
        "\x1b[31m",
        "\udcff",
        "\u202e",
        "é",
        "a\rb",
        "\t",
        "*",
        "#",
        "!",
        "[",
        "({",
        "\ufeff",
        "\U0001f600",
        "none",
    ),
]
CANARY = "pwned"
HOSTILE = [
    *(
        f"$(touch {CANARY})",
        f"`touch {CANARY}`",
        f"'; touch {CANARY} #",
        f'"; touch {CANARY} #',
        f"a;touch {CANARY}",
    ),
    *(
        f"x\ntouch {CANARY}\n",
        f"x\n#SBATCH -p x\ntouch {CANARY}",
        f"a\\\ntouch {CANARY}",
        f"$'\\n'touch {CANARY}",
    ),
    *(
        f"END_OF_RANK\ntouch {CANARY}",
        f"A=$(touch {CANARY})",
        f"./x$(touch {CANARY})",
        f"a[$(touch {CANARY})]=1",
    ),
    *(
        f"x'$(touch {CANARY})'",
        f"&touch {CANARY}&",
        f"|touch {CANARY}",
        f"<(touch {CANARY})",
        f"A=';touch {CANARY};'",
    ),
]
PLACES = (
    "container",
    "image",
    "venv",
    "conda",
    "source",
    "module_init",
    "module",
    "workdir",
    "output",
)  # they have to exist
ALL, LOCAL = (next(one for one in TARGETS if named(one) == name) for name in ("slurm", "local"))


@pytest.fixture(autouse=True)
def _no_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probes of doctor start programs for seconds; the values were read before."""

    def examined(*_: object) -> None:
        raise JobgenError("examined")

    monkeypatch.setattr(examination, "examine", examined)


def _some(target: Target, option: click.Option) -> Sequence[str]:
    """All values; of those of many options, and of those that write files, a part, which differs."""
    many = any(one.name == "walltime" for one in target.options())
    step = 6 if option.name == "output" or target is ALL else 16 if many else 1
    return part(BAD + HOSTILE, step, named(target), option.name)


@pytest.mark.parametrize("target", TARGETS, ids=named)
def test_every_value_of_every_option(target: Target, place: Path) -> None:
    """A status that is documented, and one sentence for a refusal; no traceback, and scripts that bash takes."""
    scripts = []
    for option in target.options():
        for value in _some(target, option):
            force = ["--force"] if option.name == "output" else []
            done = attack([*target.base, *force, f"{option.opts[0]}={value}"])
            if option.name not in CODE and done.out.startswith("#!"):
                scripts.append(done.out)
    _parsed("".join(scripts))


@pytest.mark.parametrize("target", TARGETS, ids=named)
def test_every_argument(target: Target, place: Path) -> None:
    values = BAD + HOSTILE[::4]
    for value in values:
        attack([*target.words, value, value] if value > "A" else [*target.words, value])
    job = any(one.name == "walltime" for one in target.options())
    for program in values if job else part(values, 8, named(target)):  # the others do not look at it
        attack([*target.words, "--", program])


def _parsed(script: str) -> None:
    done = subprocess.run(["bash", "-n"], input=script.encode(errors="surrogateescape"), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("target", [LOCAL, ALL], ids=named)
def test_a_hostile_text_in_all_options_at_once(target: Target, value: str, place: Path) -> None:
    """The script runs, with the text in every option that takes it, and the text stays text. One for a
    scheduler runs up to the point where it finds no job."""
    words, taken = [*target.words, "--launcher", "torchrun"], list[str]()
    for option in target.options():
        if option.name in (*CODE, *PLACES) or (option.name == "runs_dir" and "\n" in value):
            continue
        if (
            option.name == "stage" and target is LOCAL
        ):  # a file, and the folder of this name is for other options
            continue
        for text in (value, f"A={value}", f"/{value}"):
            one = f"{option.opts[0]}={text}"
            if attack([*words, *taken, one, "--", "probe", value]).status == 0:
                taken.append(one)
                break
    assert len(taken) > 1
    for name, text in (("probe", ""), ("torchrun", 'RANK=0 exec bash "${@: -1}"')):
        (place / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (place / "bin" / name).chmod(0o755)
    script = attack([*words, *taken, "--", "probe", value]).out
    _parsed(script)
    done = subprocess.run(["bash", "-s"], input=script.encode(errors="surrogateescape"), capture_output=True)
    assert done.returncode == 0 or target is ALL, done.stderr[-500:]
    assert not list(place.rglob(CANARY))
