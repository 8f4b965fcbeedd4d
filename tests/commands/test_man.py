"""The manual pages have what --help prints, and no line that a formatter complains about."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from support.require import need_command

from jobgen.commands import man
from jobgen.commands.cli import cli

PAGES = dict(man.pages(cli))


def test_every_command_has_a_page() -> None:
    context = click.Context(cli)
    names = {f"jobgen-{name}.1" for name in cli.list_commands(context)}
    assert {"jobgen.1", "jobgen-site-new.1", *names} <= set(PAGES)
    assert all(f"jobgen\\-{name}(1)" in PAGES["jobgen.1"] for name in cli.list_commands(context))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_what_the_help_prints(name: str) -> None:
    """As ``man`` shows it: nothing that a user may type is lost or changed on the way."""
    need_command("groff")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-rLL=2000n", "-P-c"],
        input=PAGES[name],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = " ".join(re.sub(r".\x08", "", done.stdout).split())
    words = name.removesuffix(".1").split("-")[1:]
    command, context = cli, click.Context(cli)
    for word in words:
        command = command.get_command(context, word)  # type: ignore[assignment,union-attr]
    for option in command.get_params(click.Context(command, info_name=name)):
        if isinstance(option, click.Option) and (record := option.get_help_record(context)):
            assert f"{' '.join(record[0].split())} {' '.join(record[1].split())}" in shown
    example = getattr(command, "example", "") or (command.epilog or "").removeprefix("Example: ")
    assert " ".join(example.split()) in shown
    assert "EXIT STATUS 0 done 1" in shown


@pytest.mark.parametrize("text", [".TH evil", "'br", "\\fBbold", "a \\", "it's `a` ~ ^ -x", ".", "\\&."])
def test_no_text_is_a_request(text: str) -> None:
    need_command("groff")
    page = "\n".join(
        [".TH X 1", ".SH A", *man._text(text), ".SH B", ".TP", f"\\fB{man._escaped(text)}\\fR", "y"]
    )
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-P-c"], input=page + "\n", capture_output=True, text=True
    )
    assert done.stderr == ""
    shown = [line.strip() for line in re.sub(r".\x08", "", done.stdout).split("\n")]
    assert [
        line.removesuffix("y").strip() for line in shown[shown.index("A") :] if line.startswith(text)
    ] == [text] * 2


def test_the_command(tmp_path: Path) -> None:
    env = os.environ | {"SOURCE_DATE_EPOCH": "0"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "jobgen", "man", *words]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)

    assert run("site", "new").stdout.startswith('.TH JOBGEN-SITE-NEW 1 "1970-01-01" "jobgen ')
    done = run("sumbit")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean submit?" in done.stderr
    assert run("-o", "pages").returncode == 0
    assert {path.name for path in (tmp_path / "pages").iterdir()} == set(PAGES)
    (tmp_path / "file").touch()
    assert run("-o", "file").stderr == "jobgen: file cannot be written: File exists\n"
