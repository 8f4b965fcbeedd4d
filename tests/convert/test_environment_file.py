"""The file .deepspeed_env, whose variables the launcher hands to the ranks of other nodes."""

from __future__ import annotations

from typing import Any

import pytest
from convert.conversions import job_file, values

HEAD = "#!/bin/bash\n#PBS -l select=2:ncpus=8:ngpus=4\ncd $PBS_O_WORKDIR\n"
RUN = "deepspeed --hostfile $PBS_NODEFILE train.py\n"


@pytest.mark.parametrize(
    ("lines", "env", "setup"),
    [
        (
            'echo "PATH=$PATH" > .deepspeed_env\necho NCCL_DEBUG=INFO >> .deepspeed_env',
            ["NCCL_DEBUG=INFO"],
            "",
        ),
        ("echo 'A=b c' > ~/.deepspeed_env", ["A=b c"], ""),
        ('{ echo "A=1"; echo "B=${B}"; } > ./.deepspeed_env', ["A=1"], ""),
        ("echo T=$PWD/x > .deepspeed_env", [], "export T=$PWD/x\n"),
        ("printenv > .deepspeed_env", [], ""),
        ("env | grep NCCL > .deepspeed_env", [], ""),
    ],
)
def test_variables_reach_all_ranks(lines: str, env: list[str], setup: str) -> None:
    done = job_file(f"{HEAD}{lines}\n{RUN}")
    found: dict[str, Any] = values(done.text)
    given = found.get("env", {})
    assert [f"{name}={value}" for name, value in given.items()] == env
    blocks = f"{found.get('setup', '')}{found.get('before', '')}".split("\n")
    assert "".join(f"{one}\n" for one in blocks if one and not one.startswith(("set +", "true "))) == setup
    assert not any("does not read it" in one.why for one in done.remarks)
    assert sum("hands the environment" in one.why for one in done.remarks) == lines.count("deepspeed_env")


def test_the_variables_of_a_heredoc() -> None:
    done = job_file(
        f"{HEAD}cat <<END > .deepspeed_env\nLD_LIBRARY_PATH=$LD_LIBRARY_PATH\nA=1\nB=$X/b\nEND\n{RUN}"
    )
    found = values(done.text)
    assert found["env"] == {"A": "1"}
    assert found["setup"] == 'set +e\nexport B="$X/b"\n'
    assert "before" not in found


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("", ".deepspeed_env"),
        ('for v in A B; do echo "$v=${!v}" >> .deepspeed_env; done', "for v in A B"),
        ("echo 'A=$B' > .deepspeed_env", "echo 'A=$B'"),
        ("echo 'A=\"x y\"' > .deepspeed_env", "echo 'A="),
        ('cat <<END > .deepspeed_env\nA="x"\nEND', "cat"),
        ("printf 'A=%s\\n' $A > .deepspeed_env", "printf"),
    ],
)
def test_what_is_not_read_has_a_remark(lines: str, what: str) -> None:
    done = job_file(f"{HEAD}{lines}\n{RUN}")
    found = [one for one in done.remarks if "does not read it" in one.why]
    assert len(found) == 1
    assert found[0].what.startswith((what, what.partition(" ")[0], "echo"))


@pytest.mark.parametrize(("nodes", "options"), [("1", ""), ("2", "--no_ssh --node_rank $R --master_addr $A")])
def test_the_launcher_of_one_node_reads_no_file(nodes: str, options: str) -> None:
    head = HEAD.replace("select=2", f"select={nodes}")
    done = job_file(f"{head}{RUN.replace('--hostfile', f'{options} --hostfile')}")
    assert not any("deepspeed_env" in one.what for one in done.remarks)
