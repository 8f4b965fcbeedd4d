"""Options of sbatch, qsub and the launchers, typed for jobgen: who follows the answer to the letter gets the request of the form.

tests/cluster/test_foreign_forms.py has sbatch and qsub read both.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from support import foreign_forms
from support.foreign_forms import Form

from jobgen.check.checker import check

FORMS = foreign_forms.forms()
LACKING = [form for form in FORMS if form.request is None]
check_once = cache(check)  # a third of the forms have the script of another one
pytestmark = pytest.mark.xdist_group("foreign-forms")  # on one worker, which knows them


@pytest.mark.parametrize("form", [form for form in FORMS if form not in LACKING], ids=str)
def test_the_answer_makes_the_request_of_the_form(
    form: Form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    followed = foreign_forms.follow(form)
    assert (followed.status, followed.script[:2]) == (0, "#!"), followed.answers
    assert foreign_forms.differences(form, followed) == {}, followed.answers
    found = check_once(followed.script.encode(), scheduler=form.dialect)
    assert [one for one in found if one.severity != "note"] == [], followed.answers


@pytest.mark.parametrize("form", LACKING, ids=str)
def test_a_form_without_a_counterpart_is_one_sentence(form: Form) -> None:
    status, out, err = foreign_forms.run([*form.command, *foreign_forms.words(form), "--", "train.py"])
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_most_forms_have_a_counterpart() -> None:
    assert len(FORMS) > 300
    assert len(LACKING) * 10 < len(FORMS)
