"""Kinds of scripts that are right: loops that wait, a process for each device, names without blanks, other schedulers."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobgen.check.checker import check

HEAD = "#!/bin/bash\n#SBATCH --time=01:00:00\n#SBATCH --gpus-per-node=2\nset -e\n"


def levels(text: str, rule: str) -> list[str]:
    return [one.severity for one in check(f"{text}\n".encode(), folder=".") if one.rule == rule]


@pytest.mark.parametrize(
    "waits",
    [
        "while ! curl -s localhost; do sleep 1; done",
        "until nc -z head 6379; do sleep 2; done",
        "for i in 1 2 3; do if ping; then break; fi; sleep 1; done",
        "timeout 60 bash -c 'until ping; do sleep 1; done'",
        "curl --retry 5 localhost",
        "wait_for_server",
    ],
)
def test_a_sleep_before_a_test_in_a_loop(waits: str) -> None:
    assert levels(f"{HEAD}server &\nsleep 20\n{waits}\nclient", "sleep-as-sync") == []
    assert levels(f"{HEAD}server &\nsleep 20\nclient\n{waits}", "sleep-as-sync") == ["warning"]


@pytest.mark.parametrize(
    ("numbers", "level"), [(("0", "1"), []), (("2", "3"), ["warning"] * 2), (("0", "0"), ["note"] * 2)]
)
def test_a_process_for_each_device(numbers: tuple[str, str], level: list[str]) -> None:
    processes = "".join(f"CUDA_VISIBLE_DEVICES={number} python3 a.py &\np{number}=$!\n" for number in numbers)
    assert levels(HEAD + processes, "forced-devices") == level


@pytest.mark.parametrize(
    "name",
    [
        *(
            "PBS_JOBNAME",
            "PBS_JOBID",
            "PBS_ARRAYID",
            "SLURM_ARRAY_TASK_ID",
            "SLURM_NTASKS",
            "RANDOM",
            "seed",
            "run_id",
        ),
        *("JOBID", "job_name", "NUM", "n_procs", "date"),
    ],
)
def test_a_name_that_has_no_blank(name: str) -> None:
    assert levels(f"{HEAD}hostname > out/${name}.log", "unquoted-path") == []


@pytest.mark.parametrize("name", ["SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "outdir", "file"])
def test_a_name_that_may_have_blanks(name: str) -> None:
    assert levels(f"{HEAD}hostname > ${name}/log", "unquoted-path") == ["note"]


@pytest.mark.parametrize(
    "option",
    [
        *(
            "--venode=2",
            "--venum-lhost=8",
            "--use-hca=2",
            "-T necmpi",
            "-T openmpi",
            "-b 4",
            "-l elapstim_req=1:00:00",
        ),
        *("-l cpunum_job=4", "-l memsz_job=4gb", "-l gpunum_job=1"),
    ],
)
def test_a_scheduler_that_is_not_known(option: str) -> None:
    (only,) = check(f"#!/bin/bash\n#PBS -q sxs\n#PBS {option}\nhostname\n".encode())
    assert (only.rule, only.severity, only.line) == ("foreign-scheduler", "note", 3)
    assert option.split("=")[0].removeprefix("-l ") in only.reason


@pytest.mark.parametrize(
    ("word", "event"),
    [
        ("timeout", "TIME_LIMIT"),
        ("Started", "BEGIN"),
        ("FAILED", "FAIL"),
        ("abort", "FAIL"),
        ("done", "END"),
        ("xyz", ""),
    ],
)
def test_the_event_that_a_word_means(word: str, event: str) -> None:
    text = f"#!/bin/bash\n#SBATCH --time=01:00:00\n#SBATCH --mail-type={word}\ntrue\n"
    (reason,) = (one.reason for one in check(text.encode()) if one.rule == "bad-choice")
    assert reason.endswith(f"; did you mean {event}?" if event else word)


def test_a_tunnel_is_no_process_on_another_node() -> None:
    assert levels(f"{HEAD}ssh -N -f -R $port:localhost:$port login", "ssh-between-nodes") == []
    assert levels(f"{HEAD}ssh $node hostname", "ssh-between-nodes") == ["note"]


def test_the_lines_of_the_node_file_of_nqsv() -> None:
    text = 'NNODES=$(wc -l < "$PBS_NODEFILE")\nmpirun -np $((NNODES * 4)) ./a'
    assert levels(f"#!/bin/bash\n#PBS -b 4\n{text}", "nodefile-count") == []
    assert levels(f"#!/bin/bash\n#PBS -l select=4:ncpus=4:mpiprocs=4\n{text}", "nodefile-count") == [
        "warning"
    ]


def test_variables_from_outside_are_one_note() -> None:
    found = check(f"{HEAD}./a --x=$ALPHA --y=$BETA\n./b --z=$GAMMA\n".encode())
    (only,) = (one for one in found if one.rule == "unchecked-variable")
    assert "$ALPHA and 2 other variables have" in only.reason


def test_the_name_with_one_letter_too_many() -> None:
    (only,) = (
        one
        for one in check(f"{HEAD}./a $SLURM_TASKS_PER_NODEa\n".encode())
        if one.rule == "misspelt-variable"
    )
    assert only.fix == "write $SLURM_TASKS_PER_NODE"


def test_the_wait_that_loses_a_status() -> None:
    found = check(f"{HEAD}wait\npython a.py &\nwait\npython b.py &\nwait\n".encode())
    assert [one.line for one in found if one.rule == "bare-wait"] == [7]


@pytest.mark.parametrize("word", ["'s/A/'$name'/g' f", "s/a/$name/ f", '"s#a#$name/#" f'])
def test_an_expression_is_no_path(word: str) -> None:
    assert levels(f"{HEAD}name=$(cat x)\nsed -i {word}", "unquoted-path") == []


def test_what_follows_an_error_of_syntax_is_a_guess() -> None:
    text = HEAD.replace("set -e\n", "COI=<COI>\nfor (( i=0; i<$N; i++ ))\ndo\n  ./a\ndone")
    assert levels(text, "no-errexit") == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("#!/bin/bash\n# 4 minutes, in the queue for tests\n#SBATCH -t 4:00\n", "short-walltime"),
        ("#!/bin/bash\n#PBS -l select=1:ncpus=1\n#PBS -o localhost:/data/out\n", "qsub-only"),
        (f"{HEAD}ch-run -w image -- /home/tool/bin/tool --config x\n", "personal-path"),
        (f"{HEAD.replace('set -e', '%%modules%%')}python3 t.py %%arguments%%\n", "no-errexit"),
        (
            f"{HEAD}cat > j <<E\n#!/bin/bash\nif [ -e x ]; then\n$(one)\nelse\n$(two)\nfi\nE\nsbatch j\n",
            "syntax-error",
        ),
    ],
)
def test_what_a_draw_has_shown(text: str, rule: str) -> None:
    assert levels(text, rule) == []


def test_a_script_that_keeps_a_status_gets_no_set_e() -> None:
    text = HEAD.replace("set -e\n", "module load tensorflow\nconda activate a\n")
    (only,) = (
        one for one in check(f"{text}python3 t.py\nout=$?\nexit 1\n".encode()) if one.rule == "no-errexit"
    )
    assert only.fix == "write || exit 1 behind it"


def test_a_script_beside_another_gets_what_that_exports(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("#!/bin/bash\npython t.py --a $A --b $B\n")
    found = check(f"{HEAD}export A=1\nB=2\nsrun ./run.sh\n".encode(), "job.sh", folder=str(tmp_path))
    (only,) = (one for one in found if one.rule == "unexported-variable")
    assert (only.file, only.line, "$B" in only.reason) == ("run.sh", 2, True)


@pytest.mark.parametrize(("folder", "level"), [("templates", "note"), ("jobs", "warning")])
def test_a_folder_of_templates(folder: str, level: str, tmp_path: Path) -> None:
    found = check(b"#!/bin/bash\n#SBATCH -N 2 -n 4\nsrun ./a\n", folder=str(tmp_path / folder))
    assert [one.severity for one in found if one.rule == "no-walltime"] == [level]


def test_export_in_small_letters() -> None:
    assert levels(f"{HEAD}module load cuda\nsrun --export=all ./a", "export-names") == []
