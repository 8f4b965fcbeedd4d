"""Directives with placeholders, with variables, with typing errors, and those that are comments on purpose."""

from __future__ import annotations

import pytest

from jobgen.check.checker import Finding, check

SLURM = "#!/bin/bash\n#SBATCH --nodes=1\n"
PBS = "#!/bin/bash\n#PBS -l select=1:ncpus=4\n"


def found(text: str) -> list[Finding]:
    return check(f"{text}\ntrue\n".encode())


FOR_A_PERSON = "<x> <your_time> XX XXX **FIXME** CHANGEME CHANGE_ME TODO FIXME HH:MM:SS your_time path/to/x "
FOR_A_PERSON += "hh:mm:ss ===TIME=== D-HH:MM:SS [TIME] xx xx:00:00 ??? $(TIME) $(walltime)"
FOR_A_PROGRAM = """
{{x}} {x} {{job.time}} {1.number} ${job.time} $$x %s %d %(x)s THE_NODES ##runHours## @x@ @TIME@ [[x]] __TIME__ <%=x%>
#TIME# ~time~ |TIME| &TIME; «time» $time$ {$time} $[time] {time!s} {job['time']} %T% __T__:00
"""


@pytest.mark.parametrize("value", FOR_A_PROGRAM.split())
@pytest.mark.parametrize("directive", [f"{SLURM}#SBATCH --time=", f"{PBS}#PBS -l walltime="])
def test_a_placeholder_that_a_program_fills_in(directive: str, value: str) -> None:
    notes = [(one.line, one.rule, one.severity) for one in found(directive + value)]
    assert notes == [(3, "placeholder", "note")]
    assert found(directive + value)[0].fix == "check the script that is made of the template"


@pytest.mark.parametrize("value", FOR_A_PERSON.split())
@pytest.mark.parametrize(
    "directive", [f"{SLURM}#SBATCH --time=", f"{SLURM}#SBATCH -t ", f"{PBS}#PBS -l walltime="]
)
def test_a_placeholder_is_a_note(directive: str, value: str) -> None:
    assert [(one.line, one.rule, one.severity) for one in found(directive + value)] == [
        (3, "placeholder", "note")
    ]


def test_placeholders_are_one_note() -> None:
    text = f"{SLURM}#SBATCH --time={{{{ time }}}}\n#SBATCH --mem=XXG\n#SBATCH --account=<account>\n#SBATCH --array=1-N"
    (only,) = found(text)
    assert only.reason == "placeholders in directives, such as --account=<account>"


@pytest.mark.parametrize(
    "directive",
    [
        *("--array=[0-29]%10", "--array=1-3%2", "--constraint=[a|b]", "--mail-type=ALL", "--time=UNLIMITED"),
        *(
            "--output=%s.%j.log",
            "--job-name=GPUS",
            "--gres=gpu:V100:2",
            "--gres=gpu:RTX_6000:1",
            "--gres=gpu:TITAN:1",
            "--nodelist=node[1-2]",
            "--comment=a..b",
            "--constraint=[rack1|rack2]",
            "--job-name=xx",
            "--job-name=$(whoami)",
        ),
    ],
)
def test_what_is_no_placeholder(directive: str) -> None:
    assert "placeholder" not in [one.rule for one in found(f"{SLURM}#SBATCH {directive}")]


@pytest.mark.parametrize(
    "directive",
    [
        *(
            "--time=${T}",
            "--time $T",
            "--nodes=$N",
            "--ntasks=${N}",
            "--mem=${M}G",
            "--array=1-$N",
            "--mail-type=$M",
        ),
        *(
            "--partition=$P",
            "--nodelist=$N",
            "--exclude=$N",
            "--constraint=$C",
            "--reservation=$R",
            "--licenses=$L",
        ),
        *("--dependency=afterok:$J", "--gres=gpu:$G", "--time=$((2*60))", "--output=$HOME/x.log"),
    ],
)
def test_a_variable_is_an_error_of_sbatch(directive: str) -> None:
    errors = [one for one in found(f"{SLURM}#SBATCH {directive}") if one.severity == "error"]
    assert ["sbatch expands no variables in directives" in one.reason for one in errors] == [True]


@pytest.mark.parametrize(
    "directive",
    [
        "-l walltime=$T",
        "-l nodes=$N:ppn=4",
        "-l select=$N:ncpus=1",
        "-q $Q",
        "-N $X",
        "-l mem=${M}gb",
        "-J 1-$N",
    ],
)
def test_a_variable_is_an_error_of_qsub(directive: str) -> None:
    text = f"#!/bin/bash\n#PBS -P project\n#PBS {directive}"
    errors = [one for one in found(text) if one.severity == "error"]
    assert ["qsub expands no variables in directives" in one.reason for one in errors] == [True]


@pytest.mark.parametrize(
    ("option", "severity"),
    [
        ("--account=$X", "warning"),
        ("--chdir=$X", "warning"),
        ("--job-name=$X", "note"),
        ("--mail-user=$X", "note"),
    ],
)
def test_a_literal_variable(option: str, severity: str) -> None:
    (only,) = (one for one in found(f"{SLURM}#SBATCH --time=1:00:00\n#SBATCH {option}") if one.line == 4)
    assert (only.rule, only.severity) == ("literal-variable", severity)


def test_a_variable_in_a_template_is_a_note() -> None:
    (only,) = (one for one in found(f"{SLURM}#SBATCH --time=${{wall}}\ncd $$HOME") if one.line == 3)
    assert only.severity == "note"


OFF = [
    "##SBATCH --nodes=2",
    "# #SBATCH --nodes=2",
    "###SBATCH -N 2",
    "#sbatch -N 2 job.sh",
    "#bash -l",
    "# Patch -p1",
]


@pytest.mark.parametrize("line", [*OFF, "#BSUB -n 4", "#MSUB -l nodes=2", "# batch -n 3"])
def test_a_comment_is_no_directive(line: str) -> None:
    assert found(f"{SLURM}#SBATCH --time=1:00:00\n{line}") == []


WRONG = ["#SBTACH", "#BATCH", "#SBACTH", "#SBATC", "#SBATCh", "#sbatch", "#SABTCH", "  #SBATCH", "#SBTCH"]


@pytest.mark.parametrize("prefix", WRONG)
def test_a_typing_error_of_slurm(prefix: str) -> None:
    (only,) = found(f"{SLURM}#SBATCH --time=1:00:00\n{prefix} --mem=4G")
    assert (only.rule, only.severity, only.line) == ("inert-directive", "warning", 4)


@pytest.mark.parametrize("prefix", ["#PSB", "#BPS", "#pbs", "#PB", "#PVS"])
def test_a_typing_error_of_pbs(prefix: str) -> None:
    (only,) = found(f"{PBS}#PBS -l walltime=1:00:00\n{prefix} -N cifar")
    assert (only.rule, only.line) == ("inert-directive", 4)


def test_a_blank_is_one_note() -> None:
    (only,) = found(f"{SLURM}#SBATCH --time=1:00:00\n# SBATCH --mem=4G\n# SBATCH --array=1-3")
    assert (only.line, only.severity) == (4, "note")
    assert "and 1 more line like it" in only.reason


def test_an_empty_form() -> None:
    text = f"{SLURM}#SBATCH --time=\n#SBATCH --mem=\n#SBATCH --partition="
    (only,) = found(text)
    assert only.reason == "placeholders in directives, such as --time="
    assert [one.severity for one in found(f"{SLURM}#SBATCH --time=")] == ["error"]
    assert [
        one.rule for one in found(f"{SLURM}#SBATCH -A # account\n#SBATCH -p # partition\n#SBATCH -t 60")
    ] == ["placeholder"]


@pytest.mark.parametrize("name", ["job.tmpl", "job_template.sh", "run.sh.in", "job.j2"])
def test_a_file_that_is_called_a_template(name: str) -> None:
    text = f"{SLURM}#SBATCH --time=${{wall}}\ntrue\n"
    assert [one.severity for one in check(text.encode(), name)] == ["note"]
    assert [one.severity for one in check(text.encode(), "job.sh")] == ["error"]


def test_values_that_are_not_there_have_no_other_findings() -> None:
    text = f"{SLURM}#SBATCH --time=1:00:00\n#SBATCH --array=1-9\n#SBATCH --output=<%= log %>/a.log"
    assert [one.rule for one in found(text)] == ["placeholder"]


def test_the_name_of_a_job_of_pbs_is_no_placeholder() -> None:
    assert found(f"{PBS}#PBS -l walltime=1:00:00\n#PBS -N DBN-LR") == []


def test_what_follows_an_exit_is_not_read() -> None:
    text = f"{SLURM}#SBATCH --time=1:00:00\ntrue\nexit 0\n#SBATCH --mem=4G\necho $PBS_NP"
    assert found(text) == []
    assert "late-directive" in [one.rule for one in found(text.replace("exit 0", "[ -e a ] || exit 0"))]


def test_a_late_directive_below_a_mark_of_a_template() -> None:
    text = f"{SLURM}#SBATCH --time=1:00:00\n{{{{#flags}}}}\n#SBATCH --{{{{name}}}}\n{{{{/flags}}}}\n#SBATCH --mem=4G"
    assert "late-directive" not in [one.rule for one in found(text)]


def test_a_comment_of_a_template_is_no_command() -> None:
    text = "{{# for the nodes with GPUs #}}\n#PBS -l walltime={{{{ hours }}}}:00:00\n#PBS -l nodes=2\nhostname".format()
    assert "late-directive" not in [one.rule for one in found(text)]


def test_variables_of_slurm_in_a_script_with_directives_of_pbs() -> None:
    text = f"{PBS}#PBS -l walltime=1:00:00\nset -e\n./a $SLURM_JOB_ID"  # sbatch reads #PBS, too
    assert [(one.rule, one.severity) for one in found(text)] == [("foreign-variable", "note")]
    assert [one.severity for one in found(f"{text} $PBS_JOBID")] == ["error"]


@pytest.mark.parametrize(
    ("command", "severities"),
    [
        ('[ -n "$PBS_O_WORKDIR" ] && cd "$PBS_O_WORKDIR"', []),
        ('[[ -d $PBS_O_WORKDIR ]] && echo a && cd "$PBS_O_WORKDIR"', []),
        ('[ -d a ] && cd "$PBS_O_WORKDIR"', ["error"]),
        ('cd "$PBS_O_WORKDIR" || exit', ["error"]),
        ('cd "$PBS_O_WORKDIR"\n/opt/a --in /data/b -o /data/c 4\nexit', ["warning"]),
        ('cd "$PBS_O_WORKDIR"\n/opt/a --in /data/b > c.log\nexit', ["error"]),
        ('cd "$PBS_O_WORKDIR"\n/opt/a --in=b /data/c\nexit', ["error"]),
    ],
)
def test_a_foreign_variable_that_a_test_guards(command: str, severities: list[str]) -> None:
    last = "" if command.endswith("\nexit") else "srun ./a\n"
    text = f"{SLURM}#SBATCH --time=1:00:00\n{command}\n{last}"
    assert [one.severity for one in check(text.encode()) if one.rule == "foreign-variable"] == severities


def test_options_without_a_blank_tell_torque_from_pbs_pro() -> None:
    text = "#!/bin/bash\n#PBS -lnodes=4:ppn=12\n#PBS -l walltime=1:00:00   # an hour"
    assert [(one.rule, one.severity) for one in found(text)] == [("trailing-comment", "note")]


def test_a_late_directive_below_the_last_command() -> None:
    text = f"{SLURM}#SBATCH --time=1:00:00\nhostname\n#SBATCH --partition=debug\n"
    assert [one.severity for one in check(text.encode()) if one.rule == "late-directive"] == ["note"]
    later = check(f"{text}hostname\n".encode())
    assert [one.severity for one in later if one.rule == "late-directive"] == ["error"]
    kept = check(text.replace("--partition=debug", "--time=30").encode())  # another value, for other runs
    assert "late-directive" not in [one.rule for one in kept]


@pytest.mark.parametrize(
    ("body", "level"),
    [
        ("A=$1\n#SBATCH -p a\n./a $OMPI_COMM_WORLD_RANK", "note"),  # a program of ranks
        ("A=$1\n#SBATCH -p a\n./a $PMIX_RANK", "note"),
        ("A=$1\n#SBATCH -p a\nsrun ./a $PMIX_RANK", "error"),
        ("if [ -d /b ]; then\n./a\n#SBATCH -p a\nelse\n./b\n#MSUB -q b\nfi", "note"),  # of another site
        ("if [ -d /b ]; then\n./a\n#SBATCH -p a\nelse\n./b\nfi", "error"),
    ],
)
def test_a_late_directive_of_a_program_and_of_another_site(body: str, level: str) -> None:
    text = f"#!/bin/bash\n{body}\n"
    assert [one.severity for one in check(text.encode()) if one.rule == "late-directive"] == [level]


def test_words_for_the_cores_of_a_node_at_some_sites() -> None:
    text = "#!/bin/bash\n#PBS -l nodes=1:ppn=all\n#PBS -l walltime=1:00:00\n#PBS -t 1-3"
    assert [one.rule for one in found(text)] == []


def test_a_line_of_a_submitted_script_that_a_variable_holds() -> None:
    text = "#!/bin/bash\nsbatch <<END\n#!/bin/bash\n#SBATCH --time=1\n$more    # --hint\n#SBATCH --mem=4G\nhostname\nEND"
    assert "late-directive" not in [one.rule for one in found(text)]
