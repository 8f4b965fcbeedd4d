"""What options of the work on each node are refused, and what they become."""

from __future__ import annotations

import pytest
from golden.cases import plan_of, script

from jobgen.errors import JobgenError
from jobgen.rendering.explanation import as_table


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--stage ''", "must be PATH or PATH:DEST"),
        ("--stage /data/", "must be PATH or PATH:DEST"),
        ("--stage ~me/data.tar", "must be PATH or PATH:DEST"),
        ("--stage a:b:c", "must be PATH or PATH:DEST"),
        ("--stage /data.tar:/tmp/data", "must have a DEST below $JOBGEN_STAGE"),
        ("--stage /data.tar:a/../../b", "must have a DEST below $JOBGEN_STAGE"),
        ("--stage /data.7z", "cannot be unpacked, unlike .tar"),
        ("--stage /a/x --stage /b/x", "has two files for the place x"),
        ("--stage /a/x.tar:d --stage /b/y:d", "has a file and a folder for the place d"),
        ("--stage /b/y:d --stage /c/z:d/e", "has a file and a folder for the place d"),
        ("--local-dir tmp --stage /a", "must be an absolute path"),
        ("--local-dir / --stage /a", "must be an absolute path"),
        ("--local-dir '$(id)' --stage /a", "must be an absolute path"),
        ("--local-dir /tmp", "needs --on-each-node, --after-on-each-node, --stage or --local-caches"),
        ("--node-limit 5m", "needs --on-each-node, --after-on-each-node, --stage or --local-caches"),
        ("--node-limit 0 --stage /a", "must be a duration"),
        ("--on-each-node 'if true'", "bash cannot read it"),
        ("--on-each-node ' '", "must be shell code; it is empty"),
        ("--after-on-each-node '# later'", "must be shell code; it has only comments"),
    ],
)
def test_refusals(options: str, reason: str) -> None:
    with pytest.raises(JobgenError) as refused:
        script(f"slurm --launcher srun --nodes 2 {options} -- train.py")
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("/a/x.tar.gz", ("/a/x.tar.gz", "./")),
        ("/a/x.zip:env", ("/a/x.zip", "env/")),
        ("x.tar:shards/x.tar", ("x.tar", "shards/x.tar")),
        ("~/x.7z:x.7z", ("~/x.7z", "x.7z")),
        ("-b.bin", ("./-b.bin", "-b.bin")),
        ("/a/b.bin:sub/", ("/a/b.bin", "sub/b.bin")),
        ("/a/b.bin", ("/a/b.bin", "b.bin")),
    ],
)
def test_places_of_staged_files(text: str, pair: tuple[str, str]) -> None:
    assert plan_of(f"slurm --launcher srun --nodes 2 --stage {text}").spec.stage == (pair,)


def test_explain_has_the_places_of_staged_files() -> None:
    plan = plan_of("slurm --launcher srun --stage /a/x.tar --stage '/b c:d'")
    assert "/a/x.tar:./ '/b c:d'" in as_table(plan, 200)


def test_a_variable_of_the_job_is_no_local_cache() -> None:
    job = script("slurm --launcher srun --local-caches yes --env TRITON_CACHE_DIR=/mine")
    assert "TRITON_CACHE_DIR=triton" not in job
    assert "TORCHINDUCTOR_CACHE_DIR=inductor" in job


def test_other_nodes_are_reached_though_the_program_is_one_process() -> None:
    assert "job_host_access=srun" in script("slurm --nodes 2 --launcher none --stage /a -- train.py")
    assert "job_host_access" not in script("slurm --nodes 2 --launcher none -- train.py")
