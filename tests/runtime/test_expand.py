"""expand.sh: the values that the words of the program name. tests/launch/test_expansion.py replaces them in words."""

from __future__ import annotations

from support.runtime_shell import Shell

FILES = ("expand",)


def test_values_are_those_of_the_shell_and_of_its_arguments(shell: Shell) -> None:
    code = "A='x  *'; job_arguments=('a b' '$A'); job_program_variables=(A 2 1 EMPTY); EMPTY=; job_read_program_variables; for name in 1 2 A EMPTY; do echo \"<${job_value[$name]}>\"; done"
    done = shell.run("expand", code)
    assert done.lines == ["<a b>", "<$A>", "<x  *>", "<>"]


def test_a_missing_value_ends_the_job(shell: Shell) -> None:
    done = shell.run(
        "expand messages",
        "job_arguments=(a); job_program_variables=(1 2); job_read_program_variables; echo never",
    )
    assert (done.status, done.out) == (71, "")
    assert "the words of the job contain $2, which is not set; the script has 1 arguments" in done.said
