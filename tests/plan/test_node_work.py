"""What options of the work on each node are refused, and what they become."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden.cases import plan_of, script
from support import jobs, pairs

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
        ("--stage /a/x:d//e --stage /b/y:d/./e", "has two files for the place d/e"),
        ("--stage '$DATA/x'", "must be a path without variables, which nothing expands"),
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
        ("/a/b.bin:.", ("/a/b.bin", "b.bin")),
        ("/a/x.tar:.hidden/.", ("/a/x.tar", ".hidden/")),
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


SETTINGS = """
[directories]
local_dir = "$SCRATCH_LOCAL/jobs"
{directories}
[survival]
node_limit = "5m"
gpu_telemetry = true
{blocks}
"""
WORK = {
    "directories": 'local_caches = true\nstage = ["/data/env.tar:env"]',
    "blocks": "[blocks]\non_each_node = 'echo before'\nafter_on_each_node = 'echo after'",
}
CACHES = {"directories": "local_caches = true", "blocks": ""}
NONE = {"directories": "", "blocks": ""}
SITE = """
title = "Example"
scheduler = "slurm"
[[source]]
facts = ["queues"]
confidence = "manual"
page = "https://example.org"
date = 2026-01-31
[queues.gpu]
nodes = [1, 4]
"""
ALL = "job_node_limit=300 job_local_dir=$'$SCRATCH_LOCAL/jobs' job_stage=(/data/env.tar:env/) job_local_caches=(TRITON"
ALL += " on_each_node() after_on_each_node() telemetry.sh"


def _job(folder: Path, place: str, text: str, options: str) -> tuple[int, str, str]:
    """Render a job with settings of a site or a job file: its status, its script and the messages."""
    (folder / "own.toml").write_text(SITE + text if place == "--site" else text)
    sizes = "--nodes 2 --gpus-per-node 2 --launcher torchrun"
    words = f"{sizes} {options} -- -m train".split()
    done = jobs.jobgen("slurm", place, folder / "own.toml", *words, cwd=folder)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("place", ["--site", "--job"])
def test_sites_and_job_files_have_the_work_on_each_node(place: str, tmp_path: Path) -> None:
    status, job, err = _job(tmp_path, place, SETTINGS.format(**WORK), "")
    assert status == 0, err
    assert [word for word in ALL.split() if word not in job] == []


@pytest.mark.parametrize(
    ("work", "options", "absent"),
    [
        (NONE, "", "job_local_dir job_node_limit"),
        (NONE, "--no-gpu-telemetry", "job_local_dir telemetry.sh"),
        (CACHES, "--no-local-caches", "job_local_dir job_local_caches"),
        (CACHES, "--array 0-7 --pack 2", "job_local_dir job_local_caches"),
        (CACHES, "--accelerator cpu --gpus-per-node 0 --ranks-per-node 2", "telemetry.sh"),
    ],
)
def test_a_site_does_not_stop_a_job_without_its_work(
    work: dict[str, str], options: str, absent: str, tmp_path: Path
) -> None:
    status, job, err = _job(tmp_path, "--site", SETTINGS.format(**work), options)
    assert status == 0, err
    assert [word for word in absent.split() if word in job] == []


def test_a_site_without_such_jobs_is_good(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(SITE + SETTINGS.format(**NONE))
    assert jobs.jobgen("site", "check", tmp_path / "own.toml").returncode == 0


PACK = "--nodes 2 --gpus-per-node 4 --array 0-3 --pack 2"
REFUSED = {
    "`--pack` and `--on-each-node`": f"{PACK} --on-each-node true",
    "`--pack` and `--after-on-each-node`": f"{PACK} --after-on-each-node true",
    "`--pack` and `--stage`": f"{PACK} --stage /a",
    "`--pack` and `--local-caches`": f"{PACK} --local-caches yes",
    "`--gpu-telemetry` and `--accelerator cpu`": "--accelerator cpu --gpu-telemetry yes",
    "`--local-dir` alone": "--local-dir /tmp",
    "two files for one place": "--stage /a/data --stage /b/data",
}


def test_the_table_of_pairs_holds() -> None:
    def refusal(name: str) -> str:
        with pytest.raises(JobgenError) as refused:
            script(f"slurm --launcher srun {REFUSED[name]} -- train.py")
        return str(refused.value)

    pairs.check("node-work.md", REFUSED, refusal)
