"""pbs.sh, pbs_requeue.sh, requeue.sh, slurm.sh, slurm_requeue.sh: what the scheduler says, and the next attempt."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from support.runtime_shell import Done, Shell

FILES = ("pbs", "pbs_requeue", "requeue", "slurm", "slurm_requeue")

# As OpenPBS 23 and Torque 6 print it: long values go on behind a tab.
OPENPBS = """Job Id: 12.head
    Job_Name = my job
    Job_Owner = me@head
    queue = workq
    Account_Name = acc
    Error_Path = head:/home/me/job.e12
    Mail_Points = a
    Mail_Users = me@x.org
    Output_Path = head:/home/me/logs/out.log
    Priority = 5
    Resource_List.mpiprocs = 4
    Resource_List.ncpus = 4
    Resource_List.ngpus = 2
    Resource_List.nodect = 2
    Resource_List.place = scatter
    Resource_List.select = 2:ncpus=2:mpiprocs=2:ngpus
\t=1
    Resource_List.walltime = 02:00:10
    substate = 42
    Variable_List = PBS_O_HOME=/home/me,PBS_O_QUEUE=workq,NAME=a b,GONE=1,EMPTY=,A_TOKEN=x,JO
\tBGEN_X=1,OTHER=x
    umask = 22
    group_list = grp
    project = _pbs_project_default
"""
TORQUE = """Job Id: 12.head
    Job_Name = job.sh
    queue = batch
    Output_Path = head:/home/me/job.sh.o12
    Resource_List.nodes = 2:ppn=2
    Resource_List.neednodes = 2:ppn=2
    Resource_List.nodect = 2
    Resource_List.walltime = 01:00:00
    Variable_List = PBS_O_QUEUE=batch
    project = p1
"""


@pytest.fixture
def pbs(shell: Shell) -> Shell:
    (shell.folder / "record").write_text(OPENPBS)
    (shell.folder / "nodes").write_text("a\na\nb\nb\n")
    shell.commands(
        qstat='[[ "$*" == "-f 12.head" || "$*" == "-f 12[3].head" ]] && cat "$HOME/record"',
        qsub='for word; do printf "<%s>" "$word"; done > "$HOME/asked"; echo >> "$HOME/asked"; pwd >> "$HOME/asked"; echo "${NAME-}" >> "$HOME/asked"; echo 13.head',
    )
    return shell


BASE = {"PBS_JOBID": "12.head", "PBS_CONF_FILE": "/none", "PBS_QUEUE": "workq"}


def begin(shell: Shell, code: str, env: dict[str, str] | None = None, files: str = "signals pbs") -> Done:
    variables = {**BASE, "PBS_NODEFILE": str(shell.folder / "nodes"), **(env or {})}
    return shell.run(files, f"job_ranks_per_node=2; {code}", variables)


SHOW = 'job_scheduler; echo "$job_id|$job_number|${job_index-}|${job_array_id-}|$job_submit_dir|$job_output|$JOBGEN_PBS"'


def test_how_a_variable_comes_with_a_job(pbs: Shell) -> None:
    code = "job_secret_names=(KEY) job_secret_file=none; job_need_secrets"
    assert begin(pbs, code, files="signals pbs secrets").said.endswith("export KEY and use qsub -v KEY\n")


def test_what_pbs_says(pbs: Shell) -> None:
    done = begin(pbs, SHOW)
    assert done.lines == [f"12.head|12|||{pbs.folder}|/home/me/logs/out.log|{pbs.folder}/bin"], done.said
    assert begin(pbs, SHOW, {"PBS_O_WORKDIR": "/there"}).out.split("|")[4] == "/there"


@pytest.mark.parametrize("variable", ["PBS_ARRAY_INDEX", "PBS_ARRAYID"])
def test_a_task_of_an_array(pbs: Shell, variable: str) -> None:
    env = {"PBS_JOBID": "12[3].head", variable: "3"}
    (pbs.folder / "record").write_text("    Output_Path = head:/o.^array_index^\n")
    done = begin(pbs, f"job_is_array=yes; {SHOW}", env)
    assert done.out.split("|")[:4] == ["12[3].head", str(12 + 3 * 1009), "3", "12.head"], done.said
    assert done.out.split("|")[5] == "/o.3"


def test_the_number_of_a_job_is_decimal(pbs: Shell) -> None:
    assert begin(pbs, SHOW, {"PBS_JOBID": "0089.head"}).out.split("|")[1] == "89"


@pytest.mark.parametrize(
    ("env", "code", "said"),
    [
        ({"PBS_JOBID": ""}, "", "PBS_JOBID is not set: submit this script with qsub"),
        ({"PBS_NODEFILE": "/none"}, "", "cannot read the list of hosts: PBS_NODEFILE is '/none'"),
        ({}, "job_is_array=yes;", "PBS_ARRAY_INDEX is not set: this script is for the tasks of an array"),
    ],
)
def test_an_allocation_that_is_none(pbs: Shell, env: dict[str, str], code: str, said: str) -> None:
    done = begin(pbs, f"{code} job_scheduler; echo never", env)
    assert (done.status, done.out, done.said) == (70, "", f"jobgen: {said}\n")


def test_an_uneven_allocation(pbs: Shell) -> None:
    (pbs.folder / "nodes").write_text("a\nb\n\nb\n")
    done = begin(pbs, "job_scheduler; echo never")
    assert (done.status, done.out) == (70, "")
    assert "uneven allocation: the hosts have 1 2 lines in" in done.said
    assert begin(pbs, "job_node_groups=1x1+1x2; job_scheduler; echo on").out == "on\n"
    assert begin(pbs, "job_list_hosts").lines == ["a", "b", "", "b"]


def test_the_commands_of_pbs_are_found(pbs: Shell) -> None:
    """By PBS_EXEC, else its configuration, else PATH."""
    for name in ("one", "two"):
        (pbs.folder / name).mkdir()
        (pbs.folder / "bin").mkdir(exist_ok=True)
        target = pbs.folder / name / "bin"
        target.mkdir()
        for command in ("qsub", "qstat"):
            (target / command).write_text("#!/bin/bash\ntrue\n")
            (target / command).chmod(0o755)
    (pbs.folder / "conf").write_text(f"PBS_SERVER=x\nPBS_EXEC={pbs.folder}/two\n")
    conf = {"PBS_CONF_FILE": str(pbs.folder / "conf")}
    show = "job_find_pbs; env | grep JOBGEN_PBS"
    assert (
        begin(pbs, show, {"PBS_EXEC": f"{pbs.folder}/one", **conf}).out
        == f"JOBGEN_PBS={pbs.folder}/one/bin\n"
    )
    assert begin(pbs, show, conf).out == f"JOBGEN_PBS={pbs.folder}/two/bin\n"
    assert begin(pbs, show, {"PBS_EXEC": "/gone"}).out == f"JOBGEN_PBS={pbs.folder}/bin\n"
    absent = 'command() { [[ $2 != qsub ]] && builtin command "$@"; }'
    done = begin(pbs, f"{absent}; {show}", {"PBS_CONF_FILE": "/none"})
    assert done.out == "JOBGEN_PBS=/none\n"  # nothing of the working directory is taken for it


@pytest.mark.parametrize(
    ("record", "env", "ends"),
    [
        (OPENPBS, {}, 100 + 7210),
        ("", {"PBS_WALLTIME": "50"}, 150),
        ("", {}, 177),
        ("    Resource_List.walltime = 00:08:09\n", {}, 589),
    ],
)
def test_the_end_of_the_job(pbs: Shell, record: str, env: dict[str, str], ends: int) -> None:
    (pbs.folder / "record").write_text(record)
    done = begin(
        pbs, "job_find_pbs; JOBGEN_START_TIME=100 job_walltime_seconds=77; job_find_end; echo $job_ends", env
    )
    assert done.out == f"{ends}\n", done.said


def test_a_job_without_a_limit(pbs: Shell) -> None:
    (pbs.folder / "record").write_text("")
    assert begin(pbs, "job_find_pbs; job_ends=none; job_find_end; echo $job_ends").lines == ["none"]


def test_how_to_go_on(pbs: Shell) -> None:
    code = "job_index=3; job_submit_command; job_is_array=yes; job_submit_command; PBS_ARRAYID=3; job_submit_command"
    assert begin(pbs, code).lines == ["qsub", "qsub -J 3-4:2", "qsub -t 3"]


# ------------------------------------------------------------------------------------- the next attempt

AGAIN = "job_find_pbs; job_stop_reason=''; job_submit_again; echo \"$job_next\""
REQUEUE = "signals pbs pbs_requeue"


def asked(shell: Shell) -> list[str]:
    text = (shell.folder / "asked").read_text().splitlines()
    assert text[1] == str(shell.run_dir)
    return text[0].strip("<>").split("><")


def test_the_next_job_asks_for_the_same(pbs: Shell) -> None:
    env = {"NAME": "a b", "EMPTY": "", "OTHER": "x", "JOBGEN_X": "1", "A_TOKEN": "x"}
    done = begin(pbs, f"job_secret_names=(A_TOKEN); {AGAIN}", env, REQUEUE)
    assert done.out == "the next one is 13.head\n", done.said
    assert (pbs.run_dir / "job-id").read_text() == "13.head\n"
    words = asked(pbs)
    pairs = list(zip(words[:-1:2], words[1:-1:2], strict=True))
    assert words[-1] == "job.sh"
    assert sorted(pairs) == sorted([
        ("-N", "my job"),
        ("-A", "acc"),
        ("-p", "5"),
        ("-m", "a"),
        ("-M", "me@x.org"),
        ("-q", "workq"),
        ("-W", "umask=22"),
        ("-W", "group_list=grp"),
        ("-o", "head:/home/me/logs/out.log"),
        ("-l", "place=scatter"),
        ("-l", "select=2:ncpus=2:mpiprocs=2:ngpus=1"),
        ("-l", "walltime=02:00:10"),
        ("-v", "NAME,EMPTY,OTHER"),
        ("-W", "depend=afterany:12"),
    ])  # fmt: skip


def test_the_next_job_gets_the_values_that_this_one_began_with(pbs: Shell) -> None:
    begin(pbs, f"export NAME=$NAME/more OTHER=x; {AGAIN}", {"NAME": "a\nb"}, REQUEUE)
    assert (pbs.folder / "asked").read_text().endswith("\na\nb\n")
    assert "NAME" in asked(pbs)


def test_a_value_with_line_breaks_hides_no_variable(pbs: Shell) -> None:
    (pbs.folder / "record").write_text(OPENPBS.replace("NAME=a b,", "NAME=a\n  x = y,"))
    begin(pbs, AGAIN, {"NAME": "a\n  x = y", "EMPTY": "", "OTHER": "x", "umask": "x"}, REQUEUE)
    assert "NAME,EMPTY,OTHER" in asked(pbs)


@pytest.mark.parametrize("value", ["it's", 'a "b"', "a\\b"])
def test_values_that_v_does_not_accept_are_the_whole_environment(pbs: Shell, value: str) -> None:
    pbs.commands(qsub='env > "$HOME/began"; echo "$*" > "$HOME/asked"; echo 13.head')
    begin(
        pbs,
        f"export NAME=x; {AGAIN}",
        {"NAME": value, "EMPTY": "", "FOREIGN": "x", "PBS_DEFAULT": "head"},
        REQUEUE,
    )
    assert " -V " in (pbs.folder / "asked").read_text()
    found = dict(line.split("=", 1) for line in (pbs.folder / "began").read_text().splitlines())
    assert found["NAME"] == value
    assert found.keys() - {"_", "PWD", "SHLVL", "HOME", "LANG", "PATH", "PBS_CONF_FILE"} == {
        "NAME",
        "EMPTY",
        "PBS_DEFAULT",
    }


def test_outputs_and_resources_of_the_command_line(pbs: Shell) -> None:
    more = "    Join_Path = n\n    Keep_Files = oed\n    Rerunable = False\n    Resource_List.lic2 = 3\n"
    record = OPENPBS.replace("    Priority", f"{more}    Priority").replace("job.e12", "all.err")
    (pbs.folder / "record").write_text(record.replace("logs/out.log", "exp.o2.out"))
    begin(pbs, AGAIN, {}, REQUEUE)
    words = asked(pbs)
    for pair in (
        "-j n",
        "-k oed",
        "-r n",
        "-l lic2=3",
        "-e head:/home/me/all.err",
        "-o head:/home/me/exp.o2.out",
    ):
        assert tuple(pair.split()) in [*pairwise(words)]


def test_the_next_job_gets_the_same_arguments(pbs: Shell) -> None:
    done = begin(pbs, f"job_arguments=(a 'b c'); {AGAIN}", {}, REQUEUE)
    assert "<-F><'a' 'b c'>" in (pbs.folder / "asked").read_text(), done.said


def test_the_next_job_of_torque(pbs: Shell) -> None:
    (pbs.folder / "record").write_text(TORQUE)
    done = begin(pbs, AGAIN, {"PBS_O_QUEUE": "route"}, REQUEUE)
    assert done.status == 0, done.said
    words = asked(pbs)
    pairs = list(zip(words[:-1:2], words[1:-1:2], strict=True))
    assert sorted(pairs) == sorted([
        ("-N", "job.sh"),
        ("-P", "p1"),
        ("-q", "route"),
        ("-l", "nodes=2:ppn=2"),
        ("-l", "walltime=01:00:00"),
        ("-W", "depend=afterany:12"),
    ])  # fmt: skip


def test_a_resource_beside_the_chunks(pbs: Shell) -> None:
    (pbs.folder / "record").write_text(OPENPBS.replace("Resource_List.ngpus", "Resource_List.licenses"))
    begin(pbs, AGAIN, {}, REQUEUE)
    assert "licenses=2" in asked(pbs)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("job_stop_reason='too often'; job_last_signal=''", "too often"),
        ("job_stop_reason=''; job_last_signal=TERM", "it was deleted or preempted"),
        (
            "job_stop_reason=''; job_last_signal=USR1; printf '#!/bin/sh\\nexit 1' > bin/qsub",
            "qsub on this node does not accept it",
        ),
    ],
)
def test_no_next_job(pbs: Shell, code: str, why: str) -> None:
    done = begin(pbs, f'job_find_pbs; {code}; job_submit_again || echo no "$job_stop_reason"', {}, REQUEUE)
    assert done.out == f"no {why}\n", done.said
    assert not (pbs.folder / "asked").exists()
    assert not (pbs.run_dir / "job-id").exists()


def test_a_signal_that_is_none_of_qdel_does_not_matter(pbs: Shell) -> None:
    assert begin(pbs, f"job_last_signal=USR1; {AGAIN}", {}, REQUEUE).out == "the next one is 13.head\n"


@pytest.mark.parametrize(
    ("attempt", "before", "saved", "training", "cancelled", "why"),
    [
        (1, "", "", "yes", False, ""),
        (2, "5", "6", "yes", False, ""),
        (2, "5", "5", "yes", False, "this attempt saved no step beyond 5"),
        (2, "", "", "yes", False, "this attempt saved no step beyond the first"),
        (2, "", "", "", False, ""),
        (2, "5", "5", "", False, "this attempt saved no step beyond 5"),
        (3, "5", "6", "yes", False, "this was attempt 3, of 2 + 1"),
        (1, "", "", "yes", True, "it was cancelled"),
    ],
)
def test_how_often(
    shell: Shell, attempt: int, before: str, saved: str, training: str, cancelled: bool, why: str
) -> None:
    if saved:
        (shell.run_dir / "saved-step").write_text(f"{saved}\n")
    if cancelled:
        (shell.run_dir / "cancelled").touch()
    code = f"job_attempt={attempt} job_max_requeues=2 job_saved_before={before} job_runs_training_module={training}"
    done = shell.run("requeue", f'{code}; job_find_reason_to_stop; echo "$job_stop_reason"')
    assert done.out == f"{why}\n"
    limit = "job_judge_at_limit() { :; }"  # --requeue-on limit: no progress is required
    done = shell.run("requeue", f'{code}; {limit}; job_find_reason_to_stop; echo "$job_stop_reason"')
    assert done.out == ("\n" if "saved no step" in why else f"{why}\n")


def test_it_goes_on_or_says_why_not(shell: Shell) -> None:
    code = """job_attempt=1 job_max_requeues=2 job_again_word=again job_saved_before=
    job_finish_with() { echo "status $1"; exit; }; job_next=soon
    job_submit_again() { [[ -z $job_stop_reason ]]; }; """
    done = shell.run("requeue", f"{code} job_go_on; echo never")
    assert (done.out, done.said) == ("status 75\n", "jobgen: not finished: attempt 1 of 3; soon\n")
    done = shell.run("requeue", f"{code} job_attempt=3; job_go_on; echo on")
    assert (done.out, done.said) == ("on\n", "jobgen: not again: this was attempt 3, of 2 + 1\n")


# ------------------------------------------------------------------------------------------------ Slurm

RECORD = """JobId=12 JobName=my EndTime=2020-01-01T00:00:00 JobState=CANCELLED
   JobState=RUNNING Reason=None
   EndTime=2030-01-01T00:00:00 Deadline=N/A
   ExcNodeList=(null)
   StdOut=/home/me/a b.log
"""
SLURM = {"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_EXPORT_ENV": "NONE", "TZ": "UTC"}


@pytest.fixture
def slurm(shell: Shell) -> Shell:
    (shell.folder / "record").write_text(RECORD)
    shell.commands(
        scontrol="""echo "$*" >> "$HOME/calls"
    case "$*" in
      'show job 12'* | 'show job 10_3') cat "$HOME/record" "$HOME/record" ;;
      'show hostnames n[1-2]') printf 'n1\\nn2\\n' ;;
      requeue* | update*) [[ ! -e $HOME/refuse ]] ;;
      *) exit 1 ;;
    esac"""
    )
    return shell


BEGIN = 'job_scheduler; echo "$job_id|$job_number|${job_index-}|${job_array_id-}|$job_submit_dir|$job_output|${SLURM_EXPORT_ENV-unset}"'


def test_what_slurm_says(slurm: Shell) -> None:
    done = slurm.run(
        "slurm", f"{BEGIN}; job_list_hosts; job_find_end; echo $job_ends; job_submit_command", SLURM
    )
    assert done.lines[0] == f"12|12|||{slurm.folder}|/home/me/a b.log|unset", done.said
    assert done.lines[1:] == [
        "n1",
        "n2",
        str(int(time.mktime(time.strptime("2030", "%Y")) - time.timezone)),
        "sbatch",
    ]
    assert slurm.run("slurm", BEGIN, {**SLURM, "SLURM_SUBMIT_DIR": "/there"}).out.split("|")[4] == "/there"


def test_a_task_of_an_array_of_slurm(slurm: Shell) -> None:
    env = {**SLURM, "SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_JOB_ID": "10"}
    done = slurm.run("slurm", f"job_is_array=yes job_has_dependency=yes; {BEGIN}; job_submit_command", env)
    assert done.lines[0].startswith("10_3|12|3|10|")
    assert done.lines[1] == "sbatch --dependency= --array=3"


def test_a_job_that_slurm_does_not_show(slurm: Shell) -> None:
    slurm.commands(scontrol="exit 1")
    assert slurm.run("slurm", BEGIN, SLURM).lines[0].split("|")[5] == ""


def test_slurm_says_no_end(slurm: Shell) -> None:
    (slurm.folder / "record").write_text("EndTime=Unknown\n")
    done = slurm.run("slurm", "job_id=12; job_find_end; echo [$job_ends]", SLURM)
    assert (done.out, done.said) == ("[]\n", "")


@pytest.mark.parametrize(
    ("env", "code", "status", "said"),
    [
        (
            {"SLURM_JOB_ID": ""},
            "",
            70,
            "SLURM_JOB_ID and SLURM_JOB_NODELIST are not set: submit this script with sbatch",
        ),
        (
            {"SLURM_JOB_NODELIST": ""},
            "",
            70,
            "SLURM_JOB_ID and SLURM_JOB_NODELIST are not set: submit this script with sbatch",
        ),
        (
            {},
            "job_is_array=yes;",
            70,
            "SLURM_ARRAY_TASK_ID is not set: this script is for the tasks of an array",
        ),
        (
            {"SLURM_TASKS_PER_NODE": "2,1"},
            "job_ranks_per_node=2;",
            70,
            "uneven allocation: Slurm allocated 2,1 tasks, expected 2 on each node: --exclusive requests whole nodes",
        ),
        (
            {},
            "rm bin/scontrol; PATH=/bin:$HOME/bin; hash -r; command() { return 1; };",
            71,
            "cannot find scontrol on PATH: add the commands of Slurm with --module",
        ),
    ],
)
def test_an_allocation_that_is_none_of_slurm(
    slurm: Shell, env: dict[str, str], code: str, status: int, said: str
) -> None:
    done = slurm.run("slurm", f"{code} job_scheduler; echo never", {**SLURM, **env})
    assert (done.status, done.out, done.said) == (status, "", f"jobgen: {said}\n")


def test_hosts_that_slurm_cannot_list(slurm: Shell) -> None:
    done = slurm.run("slurm", "job_nodelist=x; job_list_hosts; echo on")
    assert (done.out, done.said) == ("on\n", "jobgen: scontrol cannot list the hosts of x\n")


@pytest.mark.parametrize(
    ("bad", "excluded", "update"),
    [
        ("", "(null)", []),
        ("n3\tbroken\nn2\tbroken\nn3\tagain\n", "(null)", ["update JobId=12 ExcNodeList=n2,n3"]),
        ("n2\tbroken\n", "n9", ["update JobId=12 ExcNodeList=n2,n9"]),
    ],
)
def test_the_same_job_without_its_bad_hosts(slurm: Shell, bad: str, excluded: str, update: list[str]) -> None:
    (slurm.folder / "record").write_text(RECORD.replace("(null)", excluded))
    if bad:
        (slurm.run_dir / "bad-hosts").write_text(bad)
    done = slurm.run(
        "slurm slurm_requeue",
        "job_id=12 job_stop_reason=; job_submit_again; echo $job_next; kill -TERM $$; echo on",
        SLURM,
    )
    assert done.lines == ["requeued", "on"], done.said
    calls = (slurm.folder / "calls").read_text().splitlines()
    assert [call for call in calls if not call.startswith("show")] == ["requeue 12", *update]


@pytest.mark.parametrize(
    ("state", "code", "why"),
    [
        ("CANCELLED by 0", "", "it was cancelled"),
        ("RUNNING", "job_stop_reason='too often'", "too often"),
        ("RUNNING", "touch refuse", "Slurm refused"),
    ],
)
def test_no_requeue(slurm: Shell, state: str, code: str, why: str) -> None:
    (slurm.folder / "record").write_text(RECORD.replace("RUNNING", state))
    done = slurm.run(
        "slurm slurm_requeue",
        f"job_id=12 job_stop_reason=; {code or ':'}; job_submit_again || echo no $job_stop_reason",
    )
    assert done.out == f"no {why}\n"
    assert "update" not in (slurm.folder / "calls").read_text() if (slurm.folder / "calls").exists() else True


def test_slurm_does_not_leave_out_a_host(slurm: Shell) -> None:
    (slurm.run_dir / "bad-hosts").write_text("n2\tbroken\n")
    code = "job_id=12 job_stop_reason=; scontrol() { [[ $1 != update ]]; }; job_submit_again; echo $job_next"
    done = slurm.run("slurm slurm_requeue", code)
    assert (done.out, done.said) == (
        "requeued\n",
        "jobgen: scontrol cannot exclude n2 from the next attempt\n",
    )


def test_the_words_of_the_next_attempt(shell: Shell) -> None:
    assert shell.run("slurm_requeue", "echo $job_again_word").out == "requeued\n"
    assert shell.run("pbs_requeue", "echo $job_again_word").out == "submitted again\n"
