"""Templates of users: they make the script, and start nothing on the login node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from golden.cases import CASES, plan_of
from support.jobs import LAUNCHER_NOTE, path_with

from jobgen import JobgenError, JobSpec, render
from jobgen.rendering.render import render as render_plan

PROGRAMS = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ self._TemplateReference__context.environment }}",
    "{{ cycler.__init__.__globals__.os.system('touch pwned') }}",
    *("{{ lipsum.__globals__['os'].system('touch pwned') }}", "{{ '{0.__class__.x}'.format(spec) }}"),
    *("{{ scheduler.jobs().call(['touch', 'pwned']) }}", "{{ scheduler.jobs() }}"),
    *("{{ spec.refuse('name', 'x') }}", "{{ spec._replace(name='x') }}"),
    *("{{ spec['_replace'](name='x') }}", "{{ (spec | attr('_replace'))(name='x') }}"),
    *("{{ spec.origins.clear() }}", "{{ [scheduler] | map('jobs') | list }}"),
    "{% for call in [scheduler] | map(attribute='jobs') %}{{ call() }}{% endfor %}",
    "{% for _ in range(999999999) %}{% endfor %}",
]


def with_block(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    body = f'{{% extends "builtin/slurm.sh.j2" %}}{{% block overrides %}}{text}{{% endblock %}}'
    (folder / "slurm.sh.j2").write_text(body)
    return folder


@pytest.mark.parametrize("text", PROGRAMS)
def test_a_template_starts_nothing(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(JobgenError, match="^a template in .* cannot be rendered: ") as refused:
        render(JobSpec("slurm"), template_dirs=[with_block(tmp_path / "mine", text)])
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "pwned").exists()


def test_what_a_template_may_use(tmp_path: Path) -> None:
    text = (
        "{% macro line(x) %}# {{ x }}{% endmacro %}{{ super() }}{{ line(spec.name.upper()) }} {{ walltime | sh }}"
        "{% for i in range(2) %} {{ loop.index }}/{{ resources.nodes }}{% endfor %} {{ spec.module | join(' ') }}"
        "{{ '%s' | format(1) }}{{ dict(a=1).items() | list }}{{ 'a-b'.split('-') }}"
    )
    script = render(JobSpec("slurm", module=["a"]), template_dirs=[with_block(tmp_path / "mine", text)])
    assert "# JOBGEN 01:00:00 1/1 2/1 a1[('a', 1)]['a', 'b']" in script


@pytest.mark.parametrize("name", ["slurm_one_node", "pbspro_docker_npu", "slurm_sweep_in_a_container"])
def test_the_sandbox_changes_no_script(name: str, tmp_path: Path) -> None:
    """Neither with a cache of compiled templates, which those without the sandbox use, too."""
    plan, cache = plan_of(CASES[name]), str(tmp_path / "cache")
    (tmp_path / "mine").mkdir()
    plain = render_plan(plan, (), cache)
    for _ in range(2):
        assert render_plan(plan, (str(tmp_path / "mine"),), cache) == plain


def test_a_compiled_template_from_outside_of_the_sandbox_is_not_used(tmp_path: Path) -> None:
    """The cache of an earlier version has the same templates, compiled to other code."""
    import jinja2

    from jobgen.rendering.render import environment

    folder, cache = with_block(tmp_path / "mine", "{{ spec.refuse('name', 'x') }}"), tmp_path / "cache"
    cache.mkdir()
    env = environment((str(folder),))
    loose = jinja2.Environment(
        loader=env.loader,
        comment_start_string="{##",
        comment_end_string="##}",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=jinja2.FileSystemBytecodeCache(str(cache)),
    )
    loose.filters |= env.filters
    loose.get_template("slurm.sh.j2")
    assert list(cache.iterdir())
    with pytest.raises(JobgenError, match="cannot be rendered"):
        render_plan(plan_of(CASES["slurm_one_node"]), (str(folder),), str(cache))


def test_again_uses_no_templates_that_only_the_run_names(tmp_path: Path) -> None:
    tools = path_with(tmp_path / "bin", sbatch="echo 4711")
    env = {**os.environ, "PATH": f"{tools}:/usr/bin:/bin"}
    with_block(tmp_path / "mine", "# mine")

    def jobgen(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "jobgen", "submit", *words]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)

    assert jobgen("slurm", "--template-dir", "mine").returncode == 0
    [run] = (tmp_path / "runs").iterdir()
    mine, plain = (run / "job.sh").read_text(), jobgen("slurm", "-n").stdout
    again = jobgen("--again", run.name, "-n")
    assert (again.returncode, again.stdout) == (0, plain)
    assert again.stderr.startswith(f"jobgen: warning: {run.name} was made with the templates in /")
    assert "; only --template-dir uses them again\n" in again.stderr
    again = jobgen("--again", run.name, "-n", "--template-dir", "mine")
    assert (again.returncode, again.stdout, LAUNCHER_NOTE.sub("", again.stderr)) == (0, mine, "")
