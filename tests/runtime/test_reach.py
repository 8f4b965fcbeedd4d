"""preflight.sh, pdsh.sh, the launchers' files, reach_*.sh, node/remote.sh: other hosts, and what is asked of them."""

from __future__ import annotations

import time

import pytest
from support.require import need_command
from support.runtime_shell import Done, Shell

FILES = (
    "preflight", "pdsh", "reach_remote", "reach_srun", "reach_ssh", "node/remote", "openmpi",
    "mpich", "intel", "mpi", "mpi_version", "pmi_library",
)  # fmt: skip

# ------------------------------------------------------------------------------------------ the launchers

WORDS = 'for word; do printf "<%s>" "$word"; done; echo'


def exported(
    shell: Shell, name: str, code: str = "", env: dict[str, str] | None = None
) -> tuple[Done, dict[str, str]]:
    (shell.run_dir / "hostfile").write_text("a slots=2\nb slots=1\n")
    done = shell.run(f"mpi {name}", f"job_nodes=2; {code or ':'}; job_mpi; env", env)
    return done, dict(line.split("=", 1) for line in done.lines if "=" in line)


@pytest.mark.parametrize("name", ["openmpi", "mpich", "intel", ""])
def test_what_mpirun_is_to_pass_on_is_set(shell: Shell, name: str) -> None:
    done, env = exported(shell, name)
    assert (done.status, env["LD_LIBRARY_PATH"], env["PYTHONPATH"]) == (0, "", "")
    _, env = exported(shell, name, env={"LD_LIBRARY_PATH": "/l", "PYTHONPATH": "/p"})
    assert (env["LD_LIBRARY_PATH"], env["PYTHONPATH"]) == ("/l", "/p")
    assert not [key for key in env if "jobgen-remote" in env[key]]
    assert not env["PATH"].startswith(str(shell.run_dir))


AGENTS = {
    "openmpi": ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"),
    "mpich": ("HYDRA_LAUNCHER_EXEC",),
    "intel": ("I_MPI_HYDRA_BOOTSTRAP_EXEC",),
}


@pytest.mark.parametrize("name", AGENTS)
def test_mpirun_starts_its_daemons_through_us(shell: Shell, name: str) -> None:
    _, env = exported(shell, name, env={"JOBGEN_AGENTS": "ssh"})
    assert {env[key] for key in AGENTS[name]} == {"jobgen-remote"}
    assert env["PATH"].split(":")[0] == str(shell.run_dir)
    if name != "openmpi":
        assert env[AGENTS[name][0].removesuffix("_EXEC")] == "ssh"
    done, _ = exported(shell, name, "job_dir=/a:b", {"JOBGEN_AGENTS": "ssh"})
    assert (done.status, done.said) == (
        72,
        "jobgen: the run directory /a:b is added to PATH: it must not contain a colon\n",
    )


def test_open_mpi(shell: Shell) -> None:
    _, env = exported(shell, "openmpi", env={"JOBGEN_AGENTS": "ssh"})
    yes = (
        "OMPI_MCA_plm_rsh_no_tree_spawn",
        "PRTE_MCA_plm_ssh_no_tree_spawn",
        "OMPI_MCA_orte_leave_session_attached",
    )
    assert {env[key] for key in yes} == {"1"}
    assert env["OMPI_MCA_plm_rsh_num_concurrent"] == env["PRTE_MCA_plm_ssh_num_concurrent"] == "128"
    assert "OMPI_MCA_plm" not in env
    _, env = exported(shell, "openmpi", "job_nodes=200 job_mpi_only_by_ssh=yes", {"JOBGEN_AGENTS": "ssh"})
    assert env["OMPI_MCA_plm_rsh_num_concurrent"] == env["PRTE_MCA_plm_ssh_num_concurrent"] == "200"
    assert (env["OMPI_MCA_plm"], env["PRTE_MCA_plm"]) == ("rsh", "ssh")
    _, env = exported(shell, "openmpi")
    import os

    root = "1" if os.geteuid() == 0 else None
    assert env.get("OMPI_ALLOW_RUN_AS_ROOT") == env.get("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") == root
    assert "OMPI_MCA_plm_rsh_num_concurrent" not in env


def test_mpich_and_intel(shell: Shell) -> None:
    exported(shell, "mpich")
    assert not (shell.run_dir / "machines").exists()
    exported(shell, "mpich", "job_node_groups=1x2+1x1")
    assert (shell.run_dir / "machines").read_text() == "a:2\nb:1\n"
    assert exported(shell, "intel")[1]["I_MPI_JOB_RESPECT_PROCESS_PLACEMENT"] == "0"


@pytest.mark.parametrize(
    ("version", "status", "said"),
    [
        ("mpirun (Open MPI) 5.0.1", 0, ""),
        ("HYDRA build details", 71, "is not that of Open MPI: load the right module, or use --mpi"),
        ("Intel(R) MPI Library", 71, "is not that of Open MPI"),
        ("something", 0, "warning: {bin}/mpirun may not be that of Open MPI"),
        ("exit 3", 0, "warning"),
    ],
)
def test_whose_mpirun_it_is(shell: Shell, version: str, status: int, said: str) -> None:
    shell.commands(mpirun=f"[[ $* == --version ]] && echo '{version}' >&2; exit 1")
    code = "job_mpi_command=mpirun job_mpi_version_text='Open MPI' job_mpi_title='Open MPI'; job_check_mpi; echo on"
    done = shell.run("mpi_version", code)
    assert (done.status, done.out) == (status, "" if status else "on\n")
    assert said.format(bin=shell.folder / "bin") in done.said
    assert bool(said) == bool(done.said)


def test_a_step_without_mpi_checks_none(shell: Shell) -> None:
    done = shell.run("mpi_version", "job_mpi_version_text=x job_mpi_title=x; job_check_mpi; echo on")
    assert (done.lines, done.said) == (["on"], "")


@pytest.mark.parametrize(
    ("has", "given", "status", "value"),
    [
        ("lib/libpmi2.so", "", 0, "{folder}/lib/libpmi2.so"),
        ("lib64/libpmi2.so.0", "", 0, "{folder}/lib64/libpmi2.so.0"),
        ("lib64/libpmi2.so", "/own/libpmi2.so", 0, "/own/libpmi2.so"),
        ("lib64/libpmi.so", "", 71, ""),
    ],
)
def test_the_library_by_which_ranks_of_srun_find_each_other(
    shell: Shell, has: str, given: str, status: int, value: str
) -> None:
    shell.commands(srun="true")
    file = shell.folder / has
    file.parent.mkdir()
    file.touch()
    code = f"export OF_MPI={given}; job_pmi_library OF_MPI; printenv OF_MPI"
    done = shell.run("pmi_library", code)
    assert (done.status, done.out.strip()) == (status, value.format(folder=shell.folder))
    assert ("OF_MPI is not set" in done.said) is (status == 71)


# ------------------------------------------------------------------------------------------- other hosts


def test_the_ways_to_another_host(shell: Shell) -> None:
    shell.commands(srun=WORDS, ssh=WORDS)
    (shell.run_dir / "remote.sh").write_text(f'set -- remote "$@"; {WORDS}\n')
    env = {"JOBGEN_RUN_DIR": str(shell.run_dir)}
    assert shell.run("reach_remote", "job_reach_host a 'b c'", env).out == "<remote><a><b c>\n"
    assert (
        shell.run("reach_ssh", "job_reach_host a 'b c'").out == "<-o><BatchMode=yes><a></bin/bash -c b\\ c>\n"
    )
    assert (
        shell.run("reach_srun", "job_reach_host a 'b c'").out
        == "<--overlap><--nodes=1><--ntasks=1><--nodelist=a><--mpi=none><bash><-c><b c>\n"
    )


def no_answer_remains(shell: Shell) -> bool:
    return not list(shell.logs.glob("answers/*/*"))


LOCAL = {
    "pbs_tmrsh": 'shift; "$@"',
    "pbsdsh": 'shift 2; "$@"',
    "srun": 'while [[ $1 == -* ]]; do shift; done; "$@"',
    "ssh": 'bash -c "${!#}"',
}


def remote(shell: Shell, agents: str, command: str, *names: str, words: tuple[str, ...] = ()) -> Done:
    """Each agent runs its command here."""
    shell.commands(**{name: f'echo {name} "$*" >> "$HOME/asked"; {LOCAL[name]}' for name in names})
    (shell.run_dir / "env.sh").write_text(f"cd {shell.run_dir}\nexport FROM_ENV=yes\n")
    env = {
        "JOBGEN_AGENTS": agents,
        "JOBGEN_PBS": str(shell.folder / "bin"),
        "JOBGEN_JOB_ID": "12",
        "JOBGEN_CPUS_PER_NODE": "8",
        "JOBGEN_HOST": "",
    }
    env["PATH"] = f"{shell.folder / 'bin'}:{shell.folder / 'tools'}"
    tools = shell.folder / "tools"
    if not tools.exists():
        tools.mkdir()
        for name in ("bash", "cat", "rm", "env", "pwd", "grep", "mkdir"):
            (tools / name).symlink_to(f"/bin/{name}")
    return shell.program("remote", *words, "a", command, env=env)


CSH_LINE = 'setenv A "x y"; if ( $?A == 1 ) echo $A $FROM_ENV; if ( $?NOT_THERE == 0 ) exit 4'


@pytest.mark.parametrize(
    ("login", "runs"), [("/bin/tcsh", True), ("/bin/csh", True), ("/usr/bin/zsh", False)]
)
def test_a_daemon_is_started_in_the_syntax_of_the_login_shell(shell: Shell, login: str, runs: bool) -> None:
    """Open MPI looks the login shell up, as ssh would run it."""
    need_command("tcsh")
    shell.commands(getent=f"echo me:x:0:0::/home/me:{login}")
    path = shell.node_file("remote").rename(shell.run_dir / "jobgen-remote")
    (shell.run_dir / "env.sh").write_text("export FROM_ENV=yes\n")
    shell.commands(ssh=f'exec {login} -fc "${{!#}}"', getent=f"echo me:x:0:0::/home/me:{login}")
    env = {**shell.contract(), "JOBGEN_AGENTS": "ssh", "JOBGEN_HOST": ""}
    done = shell.start(["bash", str(path), "-x", "a", CSH_LINE], env, 60)
    assert (done.status == 4) == runs, done
    assert (done.out == "x y yes\n") == runs


@pytest.mark.parametrize("agent", LOCAL)
@pytest.mark.parametrize("status", [0, 3])
def test_a_command_on_another_host(shell: Shell, agent: str, status: int) -> None:
    done = remote(
        shell, agent, f"echo \"$JOBGEN_HOST $FROM_ENV $PWD 'x  y' ${{PATH%%:*}}\"; exit {status}", agent
    )
    assert (done.status, done.out) == (status, f"a yes {shell.run_dir} 'x  y' {shell.run_dir}\n"), done
    assert no_answer_remains(shell)
    asked = (shell.folder / "asked").read_text()
    if agent == "srun":
        assert (
            "--jobid=12 --nodes=1 --ntasks=1 --nodelist=a --cpus-per-task=8 --overlap --export=ALL --mpi=none --input=none"
            in asked
        )
    if agent == "ssh":
        assert "ssh -o BatchMode=yes -o ServerAliveInterval=20 a " in asked
    if agent == "pbsdsh":
        assert "pbsdsh -h a " in asked


def test_the_first_agent_that_is_there(shell: Shell) -> None:
    assert remote(shell, "pbs_tmrsh pbsdsh ssh", "echo on", "ssh").out == "on\n"
    assert remote(shell, "srun ssh", "echo on", "srun", "ssh").out == "on\n"
    assert [line.split()[0] for line in (shell.folder / "asked").read_text().splitlines() if " " in line][
        :2
    ] == ["ssh", "srun"]


@pytest.mark.parametrize("agent", ["pbs_tmrsh", "pbsdsh"])
def test_the_commands_of_pbs_that_are_on_path_alone(shell: Shell, agent: str) -> None:
    remote(shell, agent, "true", agent)
    (shell.folder / "asked").unlink()
    env = {"JOBGEN_AGENTS": agent, "JOBGEN_PBS": "/none"}
    assert shell.program("remote", "a", "echo on", env=env).out == "on\n"


def test_no_agent(shell: Shell) -> None:
    done = remote(shell, "pbs_tmrsh srun pbsdsh ssh", "true")
    assert (done.status, done.said) == (71, "jobgen: no pbs_tmrsh or srun or pbsdsh or ssh on PATH\n")


def test_an_agent_that_fails_is_not_followed_by_another(shell: Shell) -> None:
    done = remote(shell, "ssh srun", "exit 5", "ssh", "srun")
    assert done.status == 5
    assert "srun" not in (shell.folder / "asked").read_text()


def test_what_is_on_its_way_to_another_host_is_marked(shell: Shell) -> None:
    shell.commands(ssh='echo "$JOBGEN_SENT_BY"')
    done = shell.program("remote", "a", "true", env={"JOBGEN_AGENTS": "ssh"})
    assert done.out == f"{shell.logs}\n"


def test_options_of_ssh_are_left_out(shell: Shell) -> None:
    assert remote(shell, "ssh", "echo on", "ssh", words=("-x", "-q")).out == "on\n"


def test_a_host_whose_status_is_lost(shell: Shell) -> None:
    shell.commands(pbsdsh="exit 0", sleep="")
    (shell.run_dir / "env.sh").touch()
    env = {"JOBGEN_AGENTS": "pbsdsh", "JOBGEN_PBS": str(shell.folder / "bin")}
    assert shell.program("remote", "a", "true", env=env).status == 255


@pytest.mark.parametrize(("failures", "status", "asked"), [(2, 3, 3), (9, 255, 5)])
def test_a_busy_daemon_of_torque_is_asked_again(shell: Shell, failures: int, status: int, asked: int) -> None:
    fail = f"(($(wc -l < \"$HOME/asked\") > {failures})) || {{ echo 'pbsdsh(): tm_init failed, rc = TM_ENOEVENT (17001)' >&2; exit 1; }}"
    shell.commands(pbsdsh=f'echo >> "$HOME/asked"; {fail}; shift 2; "$@"', sleep='echo "$1" >> "$HOME/slept"')
    (shell.run_dir / "env.sh").touch()
    env = {"JOBGEN_AGENTS": "pbsdsh", "JOBGEN_PBS": str(shell.folder / "bin")}
    done = shell.program("remote", "a", "exit 3", env=env)
    assert (shell.folder / "slept").read_text().startswith("1\n2\n")
    assert (done.status, "tm_init failed" in done.said) == (status, status == 255)
    assert len((shell.folder / "asked").read_text()) == asked
    assert no_answer_remains(shell)


@pytest.mark.parametrize("ended", [0, 2])
@pytest.mark.parametrize(
    ("command", "status"), [("read -rt 4 <> <(:); exit 3", 3), ("exit 0", 0), ("kill -KILL $PPID $$", 255)]
)
def test_pbsdsh_ends_while_the_command_runs(shell: Shell, command: str, status: int, ended: int) -> None:
    shell.commands(pbsdsh=f'shift 2; "$@" & exit {ended}', sleep="read -rt 0.5 <> <(:); exit 0")
    (shell.run_dir / "env.sh").touch()
    env = {"JOBGEN_AGENTS": "pbsdsh", "JOBGEN_PBS": str(shell.folder / "bin")}
    assert shell.program("remote", "a", command, env=env).status == status
    assert no_answer_remains(shell)


def test_a_job_that_stops_awaits_no_status(shell: Shell) -> None:
    shell.commands(pbsdsh='shift 2; "$@" &', sleep="touch slept")
    (shell.run_dir / "env.sh").touch()
    (shell.logs / "control").write_text("stop TERM\n")
    env = {"JOBGEN_AGENTS": "pbsdsh", "JOBGEN_PBS": str(shell.folder / "bin")}
    assert shell.program("remote", "a", "read -rt 1 <> <(:)", env=env).status == 255
    assert not (shell.folder / "slept").exists()


def test_sourced_it_runs_nothing(shell: Shell) -> None:
    path = shell.node_file("remote")
    done = shell.run("", f". {path}; declare -F job_remote; echo $-")
    assert done.lines[0] == "job_remote"


# ------------------------------------------------------------------------------------------------- pdsh


def test_what_pdsh_passes_on(shell: Shell) -> None:
    shell.commands(pdsh="true")
    env = {
        "NCCL_X": "a b%h",
        "OTHER": "x",
        "PYTHONPATH": "/p",
        "JOBGEN_DEVICES_BY_NODE": "",
        "MLFLOW_TOKEN": "x",
    }
    done = shell.run(
        "pdsh",
        "job_secret_names=(MLFLOW_TOKEN); job_prepare_pdsh; env | grep -E '^(DS_ENV|PDSH)' | sort",
        env,
    )
    assert done.lines == [f"DS_ENV_FILE={shell.run_dir}/deepspeed_env", "PDSH_RCMD_TYPE=ssh"], done.said
    lines = (shell.run_dir / "deepspeed_env").read_text().splitlines()
    assert {'NCCL_X="a\\ b%%h"', 'PYTHONPATH="/p"'} <= set(lines)
    assert {line.split("=")[0] for line in lines} == {"NCCL_X", "PYTHONPATH", "PATH"}
    assert not (shell.run_dir / "devices").exists()


def test_the_devices_of_each_node_for_pdsh(shell: Shell) -> None:
    shell.commands(
        pdsh="true",
        srun='echo "$*" > "$HOME/asked"; for SLURM_NODEID in 1 0; do export SLURM_NODEID V=$((4 + SLURM_NODEID)); bash -c "${@: -1}"; done',
    )
    env = {"JOBGEN_DEVICES_BY_NODE": "yes", "JOBGEN_VISIBLE": "V"}
    done = shell.run("pdsh", "job_hosts=(a b); job_prepare_pdsh", env)
    assert done.status == 0, done.said
    assert (shell.run_dir / "devices").read_text() == "4\n5\n"
    assert (
        (shell.folder / "asked")
        .read_text()
        .startswith("--nodes=2 --ntasks=2 --ntasks-per-node=1 --nodelist=a,b --mpi=none bash -c")
    )


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("command() { return 1; }", 71, "cannot find pdsh on PATH; --remote auto does not need it"),
        ("job_dir='/a b'", 72, "pdsh cannot quote "),
    ],
)
def test_pdsh_cannot(shell: Shell, code: str, status: int, said: str) -> None:
    shell.commands(pdsh="true")
    done = shell.run("pdsh", f"{code}; job_prepare_pdsh; echo never")
    assert (done.status, done.out) == (status, "")
    assert said in done.said


# --------------------------------------------------------------------------------------------- preflight

PREFLIGHT = """job_hosts=(a b c) job_launcher_name=mpirun job_preflight_mode=always
job_run() { echo "run $1"; job_status=$status; eval "${ranks:-:}"; }
"""
CHECK = 'if job_preflight; then echo good; else echo "bad: ${job_bad_hosts[*]-}"; fi'
PRE = "signals remote_start preflight"


def report(*hosts: str) -> str:
    return "; ".join(
        f"mkdir -p run/preflight/nodes/0; echo {{}} > run/preflight/nodes/0/{host}.json" for host in hosts
    )


def test_a_preflight_that_succeeds(shell: Shell) -> None:
    (shell.run_dir / "preflight").mkdir()
    (shell.run_dir / "preflight" / "bad-hosts").touch()
    done = shell.run(
        PRE, f"{PREFLIGHT} status=0 ranks='touch run/preflight/result.json'; {CHECK}; ls run/preflight"
    )
    assert done.lines == ["run preflight", "good", "result.json"], done.said


@pytest.mark.parametrize(
    ("status", "ranks", "out"),
    [
        (1, "touch run/preflight/result.json; printf 'b\\tslow\\n' > run/preflight/bad-hosts", "bad: b"),
        (0, report("a", "c"), "bad: b"),
        (1, report("a", "b", "c"), "bad: "),
        (1, report("b"), "bad: a c"),
    ],
)
def test_a_preflight_that_fails(shell: Shell, status: int, ranks: str, out: str) -> None:
    (shell.run_dir / "bad-hosts").write_text("z\told\n")
    done = shell.run(
        PRE,
        f'{PREFLIGHT} status={status} ranks="{ranks}"; {CHECK}'.replace("\\t", "\\\\t").replace(
            "\\n", "\\\\n"
        ),
    )
    assert done.lines[-1] == out, done.said
    names = out.removeprefix("bad: ").split()
    assert [line.split("\t")[0] for line in (shell.run_dir / "bad-hosts").read_text().splitlines()] == [
        "z",
        *names,
    ]
    reasons = (shell.run_dir / "bad-hosts").read_text().replace("z\told\n", "").replace("\t", ": ")
    assert done.said == "".join(f"jobgen: {line}\n" for line in reasons.splitlines())


def test_who_was_asked_to_leave_calls_no_host_bad(shell: Shell) -> None:
    (shell.logs / "control").write_text("save TERM\n")
    assert shell.run(PRE, f"{PREFLIGHT} status=1; {CHECK}").lines[-1] == "good"


def test_no_host_reported(shell: Shell) -> None:
    done = shell.run(PRE, f"{PREFLIGHT} status=4; {CHECK}; echo never")
    assert (done.status, done.said) == (
        74,
        "jobgen: the preflight ended with status 4 before any host reported\n",
    )


def probing(shell: Shell, more: str = "") -> Done:
    (shell.run_dir / "env.sh").write_text("export FROM_ENV=yes\n")
    shell.commands(python3='[[ $FROM_ENV == yes && "$*" == "-c import jobgen.train, torch.distributed" ]]')
    reach = """job_reach_host() { case $1 in
      b) echo 'srun: noise'; echo 'no route to b'; echo 'slurmstepd: error'; return 255 ;;
      c) bash -c "PATH=$PWD/broken:$PATH; $2" ;;
      *) bash -c "$2" ;; esac; }"""
    (shell.folder / "broken").mkdir()
    (shell.folder / "broken" / "python3").write_text(
        "#!/bin/bash\necho first; echo 'No module named torch' >&2; exit 1\n"
    )
    (shell.folder / "broken" / "python3").chmod(0o755)
    return shell.run(PRE, f"{PREFLIGHT} status=1 job_host_access=ssh; {reach}; {more or ':'}; {CHECK}")


def test_each_host_by_itself(shell: Shell) -> None:
    done = probing(shell)
    assert done.lines[-1] == "bad: b c", done.said
    expected = "b\tno route to b\nc\tNo module named torch\n"
    assert (shell.run_dir / "preflight" / "bad-hosts").read_text() == expected
    assert (shell.run_dir / "bad-hosts").read_text() == expected
    assert "jobgen: b: no route to b\njobgen: c: No module named torch\n" in done.said
    probes = {path.name.partition(".")[0] for path in shell.run_dir.glob("preflight/probes/*/*")}
    assert probes == {"b", "c"}  # of the others nothing is kept


def test_each_host_by_itself_needs_the_launcher_of_nodes(shell: Shell) -> None:
    done = probing(shell, "job_launcher_name=absent-launcher; node() { :; }")
    assert done.lines[-1] == "bad: a b c"
    assert "a\tabsent-launcher: command not found\n" in (shell.run_dir / "bad-hosts").read_text()


def test_each_host_by_itself_in_the_container(shell: Shell) -> None:
    (shell.run_dir / "container.sh").write_text('echo "inside $*" >&2; exit 1\n')
    done = probing(shell, "container() { :; }")
    assert done.lines[-1] == "bad: a b c"
    assert (
        "a\tinside python3 -c import jobgen.train, torch.distributed\n"
        in (shell.run_dir / "bad-hosts").read_text()
    )


@pytest.mark.parametrize(
    "code", ["job_host_access=", "job_container_runtime=pyxis", "job_container_runtime=edf"]
)
def test_hosts_that_cannot_be_probed(shell: Shell, code: str) -> None:
    done = probing(shell, f"{code}; ranks='{report('a')}'")
    assert done.lines[-1] == "bad: b c"
    assert "did not report" in (shell.run_dir / "bad-hosts").read_text()


@pytest.mark.parametrize(
    ("code", "python", "status", "out", "said"),
    [
        ("job_preflight() { echo checked; }", "exit 1", 0, "checked\non\n", ""),
        (
            "job_preflight() { job_bad_hosts=(b); return 1; }",
            "",
            74,
            "",
            "the preflight failed with status 3; bad hosts: b\n",
        ),
        (
            "job_preflight() { job_bad_hosts=(); return 1; }",
            "",
            74,
            "",
            "the preflight failed with status 3; bad hosts: none is named\n",
        ),
        ("job_choose_hosts() { echo chosen; }; job_preflight() { return 1; }", "", 0, "chosen\non\n", ""),
        (
            "job_preflight_mode=if_there; job_preflight() { echo checked; }",
            "exit 1",
            0,
            "on\n",
            "no preflight: python3 has no jobgen.train with torch\n",
        ),
        ("job_preflight_mode=if_there; job_preflight() { echo checked; }", "exit 0", 0, "checked\non\n", ""),
        (
            "job_preflight_mode=if_there; job_preflight() { echo checked; }; container() { :; }",
            "exit 0",
            0,
            "on\n",
            "no preflight",
        ),
    ],
)
def test_the_preflight_or_the_end(
    shell: Shell, code: str, python: str, status: int, out: str, said: str
) -> None:
    shell.commands(python3=python or "true")
    (shell.run_dir / "container.sh").write_text("exit 1\n")
    code = f"job_status=3 job_preflight_mode=always; {code}; job_preflight_or_end; echo on"
    done = shell.run("preflight", code, {"inside": "false"})
    assert (done.status, done.out) == (status, out)
    assert said in done.said
    assert bool(said) == bool(done.said)


def test_hosts_are_probed_side_by_side(shell: Shell) -> None:
    started = time.monotonic()
    (shell.run_dir / "env.sh").touch()
    code = f"{PREFLIGHT} status=1 job_host_access=ssh; job_hosts=(h{{1..12}}); job_reach_host() {{ sleep 1; return 1; }}; {CHECK}"
    done = shell.run(PRE, code)
    assert done.lines[-1] == "bad: " + " ".join(sorted(f"h{i}" for i in range(1, 13)))
    assert "does not answer" in (shell.run_dir / "bad-hosts").read_text()
    assert time.monotonic() - started < 10
