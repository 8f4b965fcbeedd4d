"""The options of the training module in the page of ``jobgen web``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jobgen.train.config.options import parser
from support.axe import of_screens
from support.browser import browser
from support.web_page import Page, built, served

from jobgen.commands.web import training
from jobgen.commands.web.answer import answer, output_of
from jobgen.jobfile.reader import decode
from jobgen.jobfile.training_options import takes_options
from jobgen.launch.program import read_program

pytestmark = pytest.mark.xdist_group("web")

FIELDS = [*training.basics(), *(field for fields in training.groups().values() for field in fields)]
# A value of each option that accepts what a pattern says, or any text.
TEXTS = {
    "data": "a.txt\nb c.txt",
    "model": "my.models:build",
    "metric": "mae,my.metrics:within",
    "augment": "crop:2,flip",
    "normalize": "0.5:0.5",
    "explain_for": "2x4",
    "betas": "0.9,0.95",
    "milestones": "3,6",
    "partition": "type:Block",
    "lora_targets": "q_proj,v_proj",
    "keep_best": "loss",
    "hang_timeout": "90s",
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    place = tmp_path_factory.mktemp("web-training")
    with served(built(place / "page")) as url, browser(place / "profile") as opened:
        yield Page(opened, url)
        assert opened.requests(url) == []
        assert opened.complaints() == []


def value(key: str) -> str:
    row = training.OPTIONS[key]
    if row.get("type") == "boolean":
        return "yes"
    if "type" in row:
        return "0.25" if row["type"] == "number" else "2"
    return TEXTS.get(key) or [*row.get("enum", ()), "my.mod:name" if "pattern" in row else "a b"][0]


def answered(**form: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(answer(json.dumps({"scheduler": "slurm", **form})))
    return made


def test_each_option_of_the_module_has_a_field() -> None:
    named = {field.key.removeprefix(training.PREFIX) for field in FIELDS}
    assert named | {*training.ABSENT} == {action.dest for action in parser()._actions}
    assert not named & {*training.ABSENT}
    assert training._LABELS.keys() <= named
    assert len(training.BASICS) <= 9  # the others are folded


@pytest.mark.parametrize("key", [key for key in training.OPTIONS if key not in training.ABSENT])
def test_the_command_line_and_the_job_file_have_the_value(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = [value(key), *(["yes"] if training.OPTIONS[key].get("optional") else [])]
    for text in texts:
        made = answered(**{training.PREFIX + key: text})
        assert made["status"] == 0, made["messages"]
        words = shlex.split(made["command"])[1:]
        assert words[:2] == ["slurm", "--"]
        assert words[2].partition("=")[0] in training.OPTIONS[key]["names"]
        assert output_of(words).script == made["script"]
        Path("job.toml").write_text(made["file"])
        assert output_of(["slurm", "--job", "job.toml"]).script == made["script"]
        assert [*decode(made["file"], "job.toml")["train"]] == [key]


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"train.epochs": "0"}, "--epochs 0 (after --): must be a whole number of at least 1"),
        ({"train.engine": "dpp"}, "--engine dpp (after --): must be one of deepspeed, pipeline, ddp, fsdp, colossalai; did you mean ddp?"),
        ({"train.data": "-x\n-y"}, ""),
        ({"train.drop_last": "maybe"}, "train.drop_last maybe (form): must be yes or no"),
        ({"train.drop_last": "no"}, ""),
        ({"train.epoch": "1"}, "train.epoch (form): there is no such option; did you mean train.epochs?"),
        ({"train.local_rank": "1"}, "train.local_rank (form): is set by launchers"),
        ({"train.lr": "1", "program": "a.py x"}, "train.lr (form): is an option of the training module, and the program is 'a.py x'"),
        ({"train.lr": "1", "program": "-m jobgen.train evaluate x"}, "train.lr (form): is an option of the training module, and the program is '-m jobgen.train evaluate x'"),
        ({"train.lr": "1", "program": "-m"}, "-m (after --): must be followed by the name of a module"),
        ({"train.lr": "1", "program": "a 'b"}, "program (form): no closing quotation"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(form: dict[str, str], sentence: str) -> None:
    made = answered(**form)
    assert made["status"] == (2 if sentence else 0)
    assert made["messages"] == f"jobgen: {sentence}\n" or not sentence
    if sentence and "command" in made:
        assert output_of(shlex.split(made["command"])[1:]).messages == made["messages"]


def test_options_are_added_to_those_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for program in ("--task digits", "-m jobgen.train", "-m jobgen.train --task digits"):
        made = answered(**{"program": program, "train.epochs": "2"})
        assert made["command"] == f"jobgen slurm -- {program} --epochs 2"
        Path("job.toml").write_text(made["file"])
        assert output_of(["slurm", "--job", "job.toml"]).script == made["script"] != ""


def test_the_part_is_shown_if_the_module_runs(page: Page) -> None:
    page.follow({"scheduler": "slurm"})
    for program in (
        *(
            "",
            " ",
            "--task digits",
            " -x",
            "-m jobgen.train",
            "-m  jobgen.train --lr 1 ",
            "-m jobgen.train\t",
        ),
        *("train.py", "-m jobgen.trainer", "-m jobgen.train evaluate x", "-m pkg --lr 1", "./a.out -x"),
    ):
        page.choose("program", program)
        runs = takes_options(read_program(tuple(shlex.split(program))))
        assert page.run("!document.getElementById('training').hidden") == runs, program


def test_values_of_hidden_fields_are_not_used(page: Page) -> None:
    page.follow({"scheduler": "slurm", "train.lr": "0.1"})
    assert page.text("command") == "jobgen slurm -- --lr 0.1"
    page.choose("program", "train.py")
    assert page.text("command") == "jobgen slurm -- train.py"
    page.choose("program", "")
    assert page.text("command") == "jobgen slurm -- --lr 0.1"


def test_a_link_holds_the_values(page: Page) -> None:
    form = {"scheduler": "slurm", "train.zero_stage": "2", "train.data": "a\nb", "train.csv": "yes"}
    page.open(form)
    assert page.text("command") == "jobgen slurm -- --data a,b --zero-stage 2 --csv"
    page.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }; 0")
    page.run("document.querySelector('.copy:not([data-text])').click()")
    assert page.run("Object.fromEntries(new URLSearchParams(new URL(copied).hash.slice(1)))") == form
    assert page.run("document.getElementById('code').hidden")
    # The folds of its values are open, those of others are not.
    titles = "[...document.querySelectorAll('#training details[open] > summary')].map(one => one.innerText)"
    assert page.run(titles) == ["More about the training", "Engine", "Watching"]


def test_a_link_that_names_code_says_so(page: Page) -> None:
    page.follow({"scheduler": "slurm", "train.model": "gpt", "train.loss": "my.mod:loss"})
    assert page.text("code").endswith(": Loss")
    page.follow({"scheduler": "slurm", "train.model": "os:system"})
    assert page.text("code").endswith(": Model")


def test_a_mistake_is_at_its_field(page: Page) -> None:
    marked = "document.querySelector('[aria-invalid]')?.name"
    page.follow({"scheduler": "slurm"})
    page.choose("train.epochs", "ten")
    assert page.message() == "jobgen: --epochs ten (after --): must be a whole number of at least 1"
    assert page.run(marked) == "train.epochs"
    assert page.text("w-train.epochs") == page.message().removeprefix("jobgen: ")
    page.run("document.querySelector('#bar a').click()")
    assert page.run("document.activeElement.name") == "train.epochs"
    page.choose("train.epochs", "10")
    assert (page.run(marked), page.text("command")) == (None, "jobgen slurm -- --epochs 10")
    page.choose("train.hang_timeout", "soon")  # jobs have an option of this name, too
    assert page.run(marked) == "train.hang_timeout"
    page.follow({"scheduler": "slurm", "hang_timeout": "soon"})
    assert page.run(marked) == "hang_timeout"
    page.follow({"scheduler": "slurm", "program": "--epochs ten"})
    assert page.run(marked) == "program"
    page.follow({"scheduler": "slurm", "train.engine": "dpp"})
    assert page.run(marked) == "train.engine"
    page.follow({"scheduler": "slurm", "train.drop_last": "maybe"})
    assert page.run(marked) == "train.drop_last"


def test_a_line_of_the_script_leads_to_the_field(page: Page) -> None:
    page.follow({"scheduler": "slurm", "train.recompute": "yes"})
    page.run("for (const one of document.querySelectorAll('details')) one.open = false")
    page.wait("linked")
    assert page.flags("jobgen.train") == ["--recompute"]
    page.run(
        "[...document.querySelectorAll('#script a')].find(one => one.textContent === '--recompute').click()"
    )
    assert page.run("document.activeElement.name") == "train.recompute"
    assert page.run("document.activeElement.checkVisibility()")


def test_a_folded_group_says_that_it_has_values(page: Page) -> None:
    page.follow({"scheduler": "slurm", "train.lora": "8", "train.async_save": "yes"})
    page.run("for (const one of document.querySelectorAll('details')) one.open = false")
    titles = """[...document.querySelectorAll('#form details > summary')].filter((one) =>
        getComputedStyle(one, '::after').content.includes('has values')).map((one) => one.textContent)"""
    assert page.run(titles) == ["More about the training", "Fine-tuning", "Checkpoints and survival"]


def press(page: Page, key: str, code: int) -> None:
    for kind in ("keyDown", "keyUp"):
        text = {"text": " "} if key == " " and kind == "keyDown" else {}
        page.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)


def test_the_keyboard_reaches_every_part(page: Page) -> None:
    page.open({"scheduler": "slurm"})
    page.run("form.program.focus()")
    names = "document.activeElement.name || document.activeElement.textContent.trim()"
    seen = []
    for _ in range(2 + 2 * len(training.BASICS)):
        press(page, "Tab", 9)
        seen.append(page.run(names))
    assert [one for one in seen if one != "?"] == [
        *(training.PREFIX + key for key in training.BASICS), "More about the training",
    ]  # fmt: skip
    press(page, " ", 32)
    press(page, "Tab", 9)
    assert page.run(names) == "Task"
    assert page.run("document.activeElement.checkVisibility()")


def test_it_fits_on_a_narrow_screen_and_has_no_violation_of_axe(page: Page) -> None:
    page.follow({"scheduler": "slurm", "train.batch_size": "0"})
    page.run("for (const one of document.querySelectorAll('#training details')) one.open = true")
    try:
        page.call(
            "Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True
        )
        assert page.run("document.documentElement.scrollWidth") <= 360
        wide = """[...document.querySelectorAll('#training :is(input, select, textarea, button, label, summary)')]
            .filter((one) => one.getBoundingClientRect().right > 360).map((one) => one.id)"""
        assert page.run(wide) == []
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
    assert of_screens(page) == {}
