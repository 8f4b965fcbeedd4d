"""Every command of the documentation is run: each page from top to bottom in one directory, and each block that
trains or submits in a directory of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, warm_python
from support.cluster import Cluster
from support.pbs import PbsCluster
from support.require import need_command, need_package

pytestmark = pytest.mark.usefixtures("warm_python")
PAGES = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "rules"),
    *sorted((ROOT / "examples").rglob("*.md")),
]
BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# Lines that train, examine or submit; the blocks that hold them are also run as a whole.
LONG = ("bash ", "python ", "jobgen doctor", "jobgen report", "qsub ", "sbatch ")
HOSTS = ("jobgen host ", "--host ", "jobgen fetch")  # tests/hosts/test_host_pages.py
SPECIAL = ("qsub", "sbatch", "salloc", "jobgen submit", "jobgen site new", "make ", "pip ", *HOSTS)


def found(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def lines_of(page: Path) -> str:
    """Return what a page says to type, without the lines that take long or need a scheduler."""
    text = "".join(one for one in found(page) if not any(word in one for word in SPECIAL[2:]))
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(LONG))


def blocks(*words: str) -> list[object]:
    """The blocks that hold one of the words; without words, those that train or examine."""
    every = [(page, text) for page in PAGES for text in found(page)]
    if words:
        wanted = [
            one for one in every if any(w in one[1] for w in words) and not any(w in one[1] for w in HOSTS)
        ]
    else:
        lines = re.compile(rf"^(?:{'|'.join(LONG[:4])})", re.MULTILINE)
        wanted = [one for one in every if lines.search(one[1]) and not any(w in one[1] for w in SPECIAL)]
    return [pytest.param(text, id=f"{page.name}-{text.splitlines()[0][:40]}") for page, text in wanted]


@pytest.mark.parametrize(
    "page", [one for one in PAGES if lines_of(one)], ids=lambda one: str(one.relative_to(ROOT))
)
def test_page_in_order(page: Path, tmp_path: Path) -> None:
    need_command("jobgen")
    if page.parent.parent == ROOT / "examples":
        shutil.copytree(page.parent, tmp_path, ignore=shutil.ignore_patterns("job.*"), dirs_exist_ok=True)
    done = subprocess.run(
        ["bash", "-euxc", lines_of(page)],
        cwd=tmp_path,
        env=warm_python.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for script in [*tmp_path.rglob("*.sh"), *tmp_path.rglob("*.pbs")]:
        assert subprocess.run(["bash", "-n", script]).returncode == 0


@pytest.mark.xdist_group("docs")
@pytest.mark.parametrize("block", blocks())
def test_long_block(block: str, tmp_path: Path) -> None:
    need_package("torch", "deepspeed", "mpi4py")
    need_command("jobgen")
    need_command("mpirun")
    done = subprocess.run(
        ["bash", "-euc", block], cwd=tmp_path, env=warm_python.environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr


@pytest.mark.parametrize("block", blocks("qsub"))
def test_qsub_block(block: str, openpbs_cluster: PbsCluster) -> None:
    submitted(openpbs_cluster, block, openpbs_cluster.folder("docs"))


@pytest.mark.parametrize("block", blocks("sbatch"))
def test_sbatch_block(block: str, slurm_cluster: Cluster, tmp_path: Path) -> None:
    submitted(slurm_cluster, block, tmp_path)


@pytest.mark.parametrize("block", blocks("salloc"))
def test_salloc_block(block: str, slurm_cluster: Cluster, tmp_path: Path) -> None:
    done = slurm_cluster.exec("head", ["bash", "-euc", block], cwd=tmp_path, env=warm_python.environment())
    assert sorted(re.findall(r"^rank \d of 4$", done.stdout, re.MULTILINE)) == [
        f"rank {rank} of 4" for rank in range(4)
    ]


@pytest.mark.parametrize("block", blocks("jobgen submit"))
def test_submit_block(block: str, slurm_cluster: Cluster, tmp_path: Path) -> None:
    for name in ("train.py", "hello.py"):
        (tmp_path / name).write_text("print('hello')\n")
    slurm_cluster.exec(
        "head", ["bash", "-euc", block], cwd=tmp_path, env=warm_python.environment(), timeout=300
    )
    assert list(tmp_path.glob("runs/*/attempt-1"))


@pytest.mark.parametrize("block", blocks("jobgen site new"))
def test_site_block(block: str, slurm_cluster: Cluster, tmp_path: Path) -> None:
    env = {**warm_python.environment(), "XDG_CONFIG_HOME": str(tmp_path)}
    slurm_cluster.exec("head", ["bash", "-euc", block], cwd=tmp_path, env=env)
    assert (tmp_path / "jobgen/sites/minicluster.toml").exists()


def submitted(cluster: Cluster | PbsCluster, block: str, cwd: Path) -> None:
    """The scheduler takes the job. It ends at once: the block's own program is not here, or no GPU is."""
    done = cluster.exec("head", ["bash", "-euc", block], cwd=cwd)
    job = re.findall(r"\d+\S*", done.stdout)[-1]
    assert not cluster.wait(job, 120).ok


@pytest.mark.parametrize("block", blocks("make ", "pip "))
def test_installation_blocks_name_what_is_there(block: str) -> None:
    """``make test`` runs this test, so it was run; ``make demo`` and pip have tests of their own."""
    assert block.strip() in ("make test", "make demo", "pip install .")


def test_make_demo() -> None:
    """What the README promises first, in this checkout, whose virtual environment ``make test`` made."""
    need_command("make")
    if Path(sys.prefix).resolve() != ROOT / ".venv":
        pytest.skip("make demo would make a virtual environment: this one is not the checkout's own .venv")
    done = subprocess.run(["make", "demo"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    accuracy = float(re.findall(r"accuracy ([\d.]+)%", done.stdout)[-1])
    assert accuracy >= 95
    assert "status.json" in done.stdout


def test_no_text_installs_jobgen_from_an_index() -> None:
    """It is on none yet: pages and messages name a checkout, or the file jobgen.pyz."""
    from_index = re.compile(r"""(?:(?<!un)install|uvx)(?: -\S+| \d\S*)* ['"]?(?:py-)?jobgen\b""")
    assert from_index.search("uv tool install --python 3.12 'jobgen[train]'")
    folders = ("docs", "examples", "jobgen", "release", "templates", "train")
    paths = [*ROOT.glob("*.md"), *(path for one in folders for path in (ROOT / one).rglob("*"))]
    texts = {
        path: path.read_text(errors="replace") for path in paths if path.is_file() and path.suffix != ".pyc"
    }
    assert not [f"{path}: {found[0]}" for path, text in texts.items() if (found := from_index.search(text))]
