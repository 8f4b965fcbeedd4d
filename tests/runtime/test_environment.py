"""source.sh, setup.sh, conda.sh, modules.sh, requirements.sh, the accelerators: how the environment comes up."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest
from support.require import need_command, need_root
from support.runtime_shell import RUNTIME, Shell
from values.test_secrets import FORMS

from jobgen.secrets import is_secret

FILES = (
    "source", "setup", "before_after", "secrets", "conda", "modules", "requirements", "colossalai",
    "cuda", "rocm", "cann", "hccl",
)  # fmt: skip

SOURCE = "signals finish source"


def test_a_sourced_script_changes_the_environment_alone(shell: Shell) -> None:
    """Its options, traps, directory and IFS are not the script's; what it declares stays."""
    (shell.folder / "my.sh").write_text("""
        echo "$nothing" "[$#]"
        false
        set -fx
        set +x
        IFS=:
        cd /
        trap 'echo trapped' EXIT TERM
        declare -a many=(a 'b c')
        declare -x one="x y
z"
        export two=2
        local_of_caller=3
        function=f
        program() { echo "not the one of $job_id"; }
        rank() { false; }
        shopt -s failglob
        set -k
    """)
    code = """program() { echo program; }; set -- a b; job_listen; job_id=1 job_over=yes; job_source my.sh
    echo "$-" "$PWD" "${IFS-unset}" "${#many[@]}" "$local_of_caller"; env | grep -A 1 -E '^(one|two)='; echo *.sh *.none; program; declare -F rank || echo checked rank
    kill -TERM $$; echo $job_signals; (set -u; echo ${never}) || echo checked; (false; echo lenient) || echo strict; echo end"""
    done = shell.run(SOURCE, code, {"LC_ALL": "C"})
    assert done.status == 0, done.said
    assert "trapped" not in done.out
    assert done.lines[0] == " [0]"
    options, folder, ifs, many, local = done.lines[1].split(" ")
    assert set("eu") <= set(options)
    assert not set("fkx") & set(options)
    assert (folder, ifs, many, local) == (str(shell.folder), "unset", "2", "3")
    assert {"one=x y", "z", "two=2", "my.sh *.none", "program", "checked rank", "1", "checked"} <= set(
        done.lines
    )
    assert done.lines[-1] == "end"
    assert done.said.endswith("jobgen: job 1 finished after 0 s\n") or "finished after" in done.said


def test_errors_end_the_script_after_a_sourced_one(shell: Shell) -> None:
    (shell.folder / "my.sh").write_text("set +eu\n")
    done = shell.run(SOURCE, "job_id=1; job_source my.sh; false; echo never")
    assert (done.status, done.out) == (1, "")


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (None, 71, "cannot read my.sh, a file to source"),
        ("exit 0", 71, "my.sh has called exit: nothing was launched"),
        ("return 3", 0, "warning: my.sh returned status 3"),
        ("if", 0, "warning: my.sh returned status"),
    ],
)
def test_a_sourced_script_that_fails(shell: Shell, text: str | None, status: int, said: str) -> None:
    if text is not None:
        (shell.folder / "my.sh").write_text(text)
    done = shell.run(
        SOURCE, "job_id=1 job_over=yes; trap job_end EXIT; job_source my.sh; echo on; job_finish_with 0"
    )
    assert (done.status, done.out) == (status, "" if status else "on\n")
    assert f"jobgen: {said}" in done.said


def test_a_sourced_script_gets_its_arguments(shell: Shell) -> None:
    (shell.folder / "my.sh").write_text('echo "$#:$*"')
    done = shell.run(SOURCE, "set -- a b; job_source my.sh c -d; job_source my.sh; trap - EXIT; echo $1")
    assert done.lines == ["2:c -d", "0:", "a"]


def test_a_sourced_script_that_succeeds_says_nothing(shell: Shell) -> None:
    (shell.folder / "my.sh").write_text("true")
    done = shell.run(SOURCE, "job_source my.sh; trap - EXIT; echo [$job_sourcing]")
    assert (done.out, done.said) == ("[]\n", "")
    (shell.folder / "folder").mkdir()
    assert shell.run(SOURCE, "job_source folder").status == 71


# --------------------------------------------------------------------------- setup, before and after

SETUP = "signals finish source setup"


@pytest.mark.parametrize(
    ("setup", "status", "said"),
    [
        ("export COLOUR=blue; true", 0, ""),
        ("return 0; false", 0, ""),
        ("a=1\n false\n echo never", 71, "setup, line 2: exited with status 1: nothing was launched"),
        ("f() { false; echo never; }; f", 71, "exited with status 1: nothing was launched"),
        ("return 4", 71, "setup: exited with status 4: nothing was launched"),
        ("trap - ERR\nfalse", 71, "setup has called exit: nothing was launched"),
        ("set +e\nfalse; set -u; true", 0, ""),
        ("exit 0", 71, "setup has called exit: nothing was launched"),
        ("[[ -d /none ]] && echo never; true", 0, ""),
    ],
)
def test_setup(shell: Shell, setup: str, status: int, said: str) -> None:
    code = f"setup() {{\n{setup}\n}}\njob_id=1; trap job_end EXIT; job_setup; job_over=yes; echo ${{COLOUR-}} $PWD; trap; (false; :); echo lenient"
    done = shell.run(SETUP, f"set -E; set +E; {code}")
    assert done.status == (status or 1), done.said
    assert said in done.said
    assert "never" not in done.out
    if not status:
        assert done.lines[0].endswith(str(shell.folder))
        assert "ERR" not in done.out
        assert "nothing was launched" not in done.said
    else:
        assert done.said.count("nothing was launched") == 1
        assert done.out == ""


def test_functions_that_fail_after_setup_are_not_its(shell: Shell) -> None:
    done = shell.run(SETUP, "setup() { true; }; trap - EXIT; job_setup; echo $-; trap -p ERR")
    assert "E" not in done.lines[0]
    assert len(done.lines) == 1


BEFORE = "signals before_after"


SECRETS = """job_parent=$PWD/run; job_submit_command() { echo qsub; }
job_replace() { "${@:2}" > "$1"; }; job_secret_names=(A_TOKEN B)
"""


@pytest.mark.parametrize(
    "record",
    ["B=$(touch pwned)`id`\n'\"\\", "B=", "C=x", "A B=x", "B[$(touch pwned)]=x", "PATH=x", "", "=", "B"],
)
def test_a_secret_never_becomes_code(shell: Shell, record: str) -> None:
    """Nor a variable that was not asked for; what is in the file wins over the environment of the node."""
    (shell.run_dir / "environment").write_text(f"A_TOKEN=old\0{record}\0A_TOKEN=it\0B")
    done = shell.run("secrets", SECRETS + "B=here; job_keep_secrets; env -0", {"C": "own"})
    assert done.status == 0, done.said
    seen = dict(pair.split("=", 1) for pair in done.out.split("\0") if "=" in pair)
    expected = record[2:] if record.startswith("B=") else "here"
    assert (seen["A_TOKEN"], seen["B"], seen["C"]) == ("it", expected, "own")
    assert "x" not in seen.values()
    assert not (shell.folder / "pwned").exists()


def test_a_secret_that_nobody_has_set(shell: Shell) -> None:
    done = shell.run(
        "secrets", f"{SECRETS} job_pass_option=-v; job_keep_secrets; echo never", {"A_TOKEN": "x"}
    )
    assert (done.status, done.out) == (71, "")
    said = (
        "B is not set: jobgen submit takes it from your environment; without it, export B and use qsub -v B"
    )
    assert done.said == f"jobgen: {said}\n"
    assert not (shell.run_dir / "environment").exists()


def test_a_secret_is_kept_for_the_next_attempt(shell: Shell) -> None:
    shell.run("secrets", f"{SECRETS} job_keep_secrets", {"A_TOKEN": "a\nb", "B": ""})
    assert (shell.run_dir / "environment").read_text() == "A_TOKEN=a\nb\0B=\0"
    assert (shell.run_dir / "environment").stat().st_mode & 0o777 == 0o600
    done = shell.run("secrets", SECRETS + 'job_keep_secrets; echo "$A_TOKEN"')
    assert done.lines == ["a", "b"]


LOOK_SECRET = [
    *(
        "HF_TOKEN=x",
        "WANDB_API_KEY=x",
        "DB_PASSWORD=x",
        "MYSQL_PWD=x",
        "PGPASSWORD=x",
        "REDIS_PASS=x",
        "GITHUB_PAT=x",
    ),
    *(
        "aws_secret_access_key=x",
        "GOOGLE_CREDENTIALS=x",
        "OPENAI_KEY=x",
        "A_SIGNATURE=x",
        "PASS=x",
        "SSH_PASSPHRASE=x",
    ),
    *(f"A={form}" for form in FORMS),
    *(
        "A=https://u:p@host/x",
        "A=postgres://:hidden@h",
        "A=https://h/x?a=1&sig=b",
        f"A=https://{'a1' * 20}@h",
    ),
    *(
        "A=Authorization: Basic abc",
        "A=Bearer abcdefgh1",
        "A=x --api-key abc",
        "A={'token': 'x'}",
        "A=x;password=y",
    ),
    "A=-----BEGIN RSA PRIVATE KEY-----\nabc",
]
LOOK_PLAIN = [
    *(
        "PATH=/a/token=b",
        "LD_LIBRARY_PATH=/x",
        "PWD=/x",
        "OLDPWD=/x",
        "NCCL_DEBUG=INFO",
        "A=https://host/x",
        "A=me@host",
    ),
    *(
        "XAUTHORITY=/x",
        "SSH_AUTH_SOCK=/x",
        "A=task-1234",
        "MODULEPATH=/a:/b",
        "KEYS_DIR=/x",
        "JOBGEN_TOKEN=x",
        "A=/x/token/y",
    ),
]


@pytest.mark.parametrize("variable", LOOK_SECRET + LOOK_PLAIN)
def test_what_looks_like_a_secret(shell: Shell, variable: str) -> None:
    """What jobgen masks is a secret for the script, too."""
    name, _, value = variable.partition("=")
    done = shell.run(
        "secrets", 'job_looks_secret "$NAME" "$VALUE" && echo yes', {"NAME": name, "VALUE": value}
    )
    assert (done.out == "yes\n") == (variable in LOOK_SECRET), done.said
    assert not is_secret(name, value) or variable in (*LOOK_SECRET, "JOBGEN_TOKEN=x", "PATH=/a/token=b")


def test_what_looks_like_a_secret_is_hidden_and_recalled(shell: Shell) -> None:
    """The next attempt has what the environment lacks, and what it has is newer."""
    code = f'{SECRETS} job_secret_names=(); job_keep_secrets; job_hide_secrets; echo "$JOBGEN_SECRETS $A_TOKEN $B_KEY"'
    first = shell.run("secrets", code, {"A_TOKEN": "1", "B_KEY": "1"})
    second = shell.run("secrets", code, {"A_TOKEN": "2"})
    assert (first.out, second.out) == ("A_TOKEN B_KEY 1 1\n", "A_TOKEN B_KEY 2 1\n"), second.said
    assert (shell.run_dir / "environment").read_text() == "A_TOKEN=2\0B_KEY=1\0"


def test_an_environment_without_secrets_makes_no_file(shell: Shell) -> None:
    code = f'{SECRETS} job_secret_names=(); job_keep_secrets; job_hide_secrets; job_secrets; echo "$JOBGEN_SECRETS."'
    assert shell.run("secrets", code).out == ".\n"
    assert not (shell.run_dir / "environment").exists()


def test_before_and_after(shell: Shell) -> None:
    code = """before() { cat; echo before; COLOUR=blue; cd /; }; after() { cat; echo "after $JOBGEN_STATUS"; false; echo never; }
    job_run_before; echo "${COLOUR-none} $PWD"; job_run_after 3; job_run_after 4; echo end"""
    done = shell.run(BEFORE, code)
    assert done.lines == ["before", f"none {shell.folder}", "after 3", "end"]
    assert done.said == "jobgen: warning: after: exited with status 1\n"


def test_after_belongs_to_before(shell: Shell) -> None:
    assert shell.run(BEFORE, "after() { echo after; }; job_run_after 3; echo end").lines == ["end"]
    assert shell.run(BEFORE, "job_run_before; job_run_after 3; echo end ${job_after_status-}").lines == [
        "end"
    ]
    assert shell.run(BEFORE, "after() { echo after; }; job_run_before; job_run_after 0").lines == ["after"]


def test_a_before_that_fails(shell: Shell) -> None:
    code = 'before() { false; echo never; }; after() { echo "after $JOBGEN_STATUS"; }; trap "job_run_after 71" EXIT; job_run_before; echo never'
    done = shell.run(BEFORE, code)
    assert (done.status, done.lines) == (71, ["after 71"])
    assert done.said == "jobgen: before: exited with status 1: nothing was launched\n"


def test_who_was_asked_to_leave_does_not_begin(shell: Shell) -> None:
    (shell.logs / "control").write_text("save USR1\n")
    code = "before() { echo never; }; after() { echo after; }; job_run_before; job_run_after 75"
    assert shell.run(BEFORE, code).lines == ["after"]


# ------------------------------------------------------------------------------------ conda and modules

CONDA = """[[ "$*" == "shell.bash hook" ]] || exit 1
cat << 'HOOK'
conda() { [[ "$1 $2" == "activate my env" ]] || return 1; echo $nothing; export CONDA_PREFIX=/env; }
HOOK
"""


def conda_at(shell: Shell, where: str, text: str = CONDA) -> dict[str, str]:
    path = shell.folder / where / "conda"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}")
    path.chmod(0o755)
    return {"CONDA_EXE": str(path)} if where == "exe" else {}


@pytest.mark.parametrize("where", ["exe", "bin", "miniforge3/bin", "anaconda3/bin"])
def test_conda_is_found(shell: Shell, where: str) -> None:
    env = conda_at(shell, where)
    done = shell.run(f"{SOURCE} conda", "job_conda 'my env'; trap - EXIT; env | grep CONDA_PREFIX", env)
    assert done.out == "\nCONDA_PREFIX=/env\n", done.said


def test_the_first_conda_counts(shell: Shell) -> None:
    env = conda_at(shell, "exe")
    conda_at(shell, "miniforge3/bin", "exit 1")
    assert shell.run(f"{SOURCE} conda", "job_conda 'my env'; trap - EXIT", env).status == 0
    conda_at(shell, "bin")
    assert shell.run(f"{SOURCE} conda", "job_conda 'my env'; trap - EXIT").status == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot find conda: load its module with --module, or put it on PATH"),
        ("exit 1", "conda shell.bash hook fails"),
        ("echo 'conda() { return 1; }'", "cannot activate the conda environment my env"),
    ],
)
def test_conda_fails(shell: Shell, text: str, said: str) -> None:
    if text:
        conda_at(shell, "bin", text)
    done = shell.run(f"{SOURCE} conda", "job_id=1; trap job_end EXIT; job_conda 'my env'; echo never")
    assert (done.status, done.out) == (71, "")
    assert said in done.said


MODULE = """module() { echo "module $*" >> calls
  case $2 in gone) return 1 ;; silent) return 0 ;; esac
  echo $nothing > /dev/null
  LOADEDMODULES=${LOADEDMODULES:-}${LOADEDMODULES:+:}$2
}
"""


@pytest.mark.parametrize("where", ["lmod", "tcl", "defined"])
def test_modules(shell: Shell, where: str) -> None:
    init = shell.folder / where / "init"
    init.mkdir(parents=True)
    (init / "bash").write_text(f"echo $nothing\n{MODULE}")
    name = {"lmod": "LMOD_PKG", "tcl": "MODULESHOME", "defined": "OTHER"}[where]
    code = f"{MODULE if where == 'defined' else ''} job_module_use /a '/b c'; job_module one two one; echo $LOADEDMODULES $-"
    done = shell.run(
        "modules", code, {name: str(shell.folder / where), "LMOD_PKG" if where != "lmod" else "X": "/none"}
    )
    assert done.status == 0, done.said
    loaded, options = done.lines[-1].split()
    assert loaded in ("/a:one:two:one", "/a:one:two")
    assert set("eu") <= set(options)
    assert (shell.folder / "calls").read_text().splitlines()[0] == "module use /a /b c"
    assert len(done.lines) == (1 if where == "defined" else 2)


def test_modules_are_unloaded(shell: Shell) -> None:
    done = shell.run("modules", f"{MODULE} job_module_purge; echo $-; cat calls")
    assert done.lines[1:] == ["module purge"]
    assert set("eu") <= set(done.lines[0])


def test_commands_of_modules_run_in_order(shell: Shell) -> None:
    module = MODULE.replace("$2\n", "${!#}\n")
    code = f"{module} job_module one 'unload one two' reset 'swap a new/2' 'use -a /x ~/y' list purge 'restore gone'; cat calls; echo $-"
    done = shell.run("modules", code)
    assert done.lines[:-1] == [
        "module load one", "module unload one two", "module reset", "module swap a new/2",
        f"module use -a /x {shell.folder}/y", "module list", "module purge", "module restore gone",
    ]  # fmt: skip
    assert done.said == "jobgen: warning: module restore gone returned status 1\n"
    assert set("eu") <= set(done.lines[-1])


@pytest.mark.parametrize("call", ["job_module one", "job_module_use /a", "job_module_purge"])
def test_each_call_finds_the_modules_and_keeps_the_options_of_the_shell(shell: Shell, call: str) -> None:
    for where in ("lmod", "tcl"):
        (shell.folder / where / "init").mkdir(parents=True)
        (shell.folder / where / "init/bash").write_text(f"echo {where} >> read\n{MODULE}")
    places = {"LMOD_PKG": str(shell.folder / "lmod"), "MODULESHOME": str(shell.folder / "tcl")}
    done = shell.run("modules", f"{call}; echo $-; cat read", places)
    assert done.lines[1:] == ["lmod"]
    assert set("eu") <= set(done.lines[0])


@pytest.mark.parametrize("name", ["gone", "silent"])
def test_a_module_that_is_not_there(shell: Shell, name: str) -> None:
    done = shell.run("modules", f"{MODULE} job_module one {name}; echo never")
    assert (done.status, done.out, done.said) == (
        71,
        "",
        f"jobgen: cannot load the module {name}: module avail on a compute node shows the names\n",
    )


def test_a_module_that_was_there_is_loaded(shell: Shell) -> None:
    done = shell.run("modules", f"{MODULE} LOADEDMODULES=a:silent/1.2; job_module silent; echo on")
    assert done.out == "on\n"


# ----------------------------------------------------------------------------- what must be there, devices


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("job_need bash absent-command", "cannot find absent-command on PATH"),
        ("job_need_file absent.py", "there is no absent.py in "),
        ("job_need_program ./absent", "cannot run ./absent in "),
        ("job_need_training", "python3 has no jobgen.train: pip install '.[train]' in a checkout of jobgen"),
    ],
)
def test_what_is_not_there(shell: Shell, call: str, said: str) -> None:
    shell.commands(python3="exit 1")
    done = shell.run("requirements", f"{call}; echo never")
    assert (done.status, done.out) == (71, "")
    assert said in done.said


def test_what_is_there(shell: Shell) -> None:
    shell.commands(python3='[[ "$*" == "-c import jobgen.train" ]]')
    (shell.folder / "there.py").touch()
    done = shell.run(
        "requirements",
        "job_need bash sed; job_need_file there.py; job_need_program bash; job_need_training; echo on",
    )
    assert (done.out, done.said) == ("on\n", "")


def test_cuda(shell: Shell) -> None:
    show = "job_cuda; echo ${CUDA_HOME-none} ${PATH%%:*}; env | grep -c ^CUDA_HOME= || true"
    assert shell.run("cuda", show, {"CUDA_HOME": "/c"}).lines == ["/c /c/bin", "1"]
    shell.commands(nvcc="true")
    assert shell.run("cuda", show).lines == [f"{shell.folder} {shell.folder}/bin", "1"]
    assert shell.run("cuda", show, {"CUDA_HOME": "/c"}).lines == ["/c /c/bin", "1"]
    assert shell.run("cuda", f"PATH=/v/bin:$PATH\n{show}").lines == [f"{shell.folder} /v/bin", "1"]


def test_no_cuda(shell: Shell) -> None:
    for name in ("dirname", "readlink"):
        shell.commands(**{name: f'exec /usr/bin/{name} "$@"'})
    done = shell.run("cuda", f"PATH={shell.folder}/bin; job_cuda; echo ${{CUDA_HOME-none}}")
    assert done.out in ("none\n", "/usr/local/cuda\n")


def test_rocm(shell: Shell) -> None:
    done = shell.run("rocm", "job_rocm; echo ${PATH%%:*}; env | grep ROCM", {"ROCM_PATH": "/r"})
    assert done.lines == ["/r/bin", "ROCM_PATH=/r"]
    assert shell.run("rocm", "job_rocm; echo ${ROCM_PATH-none}").out in ("none\n", "/opt/rocm\n")


def test_miopen_has_its_databases_in_tmp_of_the_node(shell: Shell) -> None:
    show = 'echo "$MIOPEN_USER_DB_PATH $MIOPEN_CUSTOM_CACHE_DIR"'
    done = shell.run("rocm", f"job_id=7.pbs; job_miopen; {show}", {})
    assert re.fullmatch(r"(/tmp/miopen-\w{10}) \1\n", done.out)
    done = shell.run("rocm", f"job_miopen; {show}", {"MIOPEN_USER_DB_PATH": "/mine"})
    assert done.out == "/mine /mine\n"


@pytest.mark.parametrize(
    ("where", "env"),
    [("toolkit", "ASCEND_HOME_PATH"), ("toolkit", "ASCEND_TOOLKIT_HOME"), ("Ascend/cann", "")],
)
def test_cann(shell: Shell, where: str, env: str) -> None:
    folder = shell.folder / where
    (folder / "latest").mkdir(parents=True)
    (folder / "set_env.sh").write_text("export CANN=yes\n")
    driver = shell.folder / "driver" / "lib64" / "common"
    driver.mkdir(parents=True)
    variables = {"ASCEND_DRIVER_PATH": str(shell.folder / "driver"), "LD_LIBRARY_PATH": "/old"}
    if env:
        variables[env] = str(folder / "latest")
    done = shell.run(f"{SOURCE} cann", "job_cann; trap - EXIT; env | grep -E 'CANN=|^LD_L'", variables)
    assert sorted(done.lines) == ["CANN=yes", f"LD_LIBRARY_PATH={driver}:{driver.parent}:/old"], done.said


def test_the_first_cann_counts(shell: Shell) -> None:
    for name in ("first", "second"):
        (shell.folder / name).mkdir()
        (shell.folder / name / "set_env.sh").write_text(f"export CANN={name}\n")
    places = {"ASCEND_HOME_PATH": f"{shell.folder}/first", "ASCEND_TOOLKIT_HOME": f"{shell.folder}/second"}
    done = shell.run(f"{SOURCE} cann", "job_cann; trap - EXIT; echo $CANN", places)
    assert done.out == "first\n"


def test_no_cann(shell: Shell) -> None:
    done = shell.run(f"{SOURCE} cann", "job_cann; echo never")
    assert (done.status, done.out) == (71, "")
    assert "cannot find the set_env.sh of the CANN toolkit" in done.said


def test_hccl(shell: Shell) -> None:
    show = "job_hccl; job_hccl_ports; env | grep -E '^(HCCL|RANK)' | sort"
    done = shell.run("hccl", show, {"MASTER_PORT": "20005"})
    assert done.lines == [
        "HCCL_CONNECT_TIMEOUT=1200",
        f"HCCL_IF_BASE_PORT={10000 + 20005 % 300 * 32}",
        "HCCL_WHITELIST_DISABLE=1",
    ]
    assert done.said == ""
    given = {"HCCL_CONNECT_TIMEOUT": "7", "HCCL_IF_BASE_PORT": "8", "HCCL_WHITELIST_DISABLE": "0"}
    done = shell.run("hccl", show, {"RANK_TABLE_FILE": "/t", "MASTER_PORT": "1", **given})
    assert done.lines == ["HCCL_CONNECT_TIMEOUT=7", "HCCL_IF_BASE_PORT=8", "HCCL_WHITELIST_DISABLE=0"]
    assert "RANK_TABLE_FILE is ignored" in done.said


@pytest.mark.parametrize(
    ("address", "family"), [("10.7.0.1/24", ""), ("fd07::1/64 nodad", "AF_INET6"), ("fe80::1/64 nodad", "")]
)
def test_hccl_on_a_host_without_ipv4(shell: Shell, address: str, family: str) -> None:
    need_root()
    need_command("unshare", "ip")
    network = """ip link add ib0 type veth peer name ib1 && ip link set ib1 up && ip link set ib0 up
    ip address add $1 dev ib0; shift; exec "$@\""""
    code = f". {RUNTIME}/hccl.sh; job_hccl; echo ${{HCCL_SOCKET_FAMILY:-}}"
    words = ["unshare", "--net", "bash", "-c", network.replace("$1", address), "x", "-", "bash", "-c", code]
    assert shell.start(words, None, 60).lines == [family]


@pytest.mark.parametrize(
    "value", [r"""a"$(touch x)`touch x`${HOME}\\" 'b'!&""", "two\nlines $(touch x)", "", "plain"]
)
def test_values_that_a_shell_exports_again_are_the_same(shell: Shell, value: str) -> None:
    """As colossalai run does it: in double quotes, those of several lines not at all."""
    done = shell.run(
        "colossalai", f"export one={shlex.quote(value)}; job_escape_environment; env -0 > escaped"
    )
    assert done.status == 0, done.said
    pairs = (pair.partition("=") for pair in (shell.folder / "escaped").read_text().split("\0")[:-1])
    given = {name: text for name, _, text in pairs}
    exports = " ".join(f'{name}="{text}"' for name, text in given.items() if "\n" not in text)
    words = ["bash", "-c", f'export {exports} && printf %s "$one"']
    seen = subprocess.run(words, env=given, cwd=shell.folder, capture_output=True, text=True, check=True)
    assert seen.stdout == value
    assert not (shell.folder / "x").exists()
