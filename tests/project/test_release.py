"""What a release consists of: it is reproducible, and runs where its documentation says."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from golden.cases import job_part
from support import ROOT
from support.builds import EPOCH, build, interpreter
from support.require import absent, need_package

from jobgen import __version__

GOLDEN = (ROOT / "tests/golden/pbspro_mpirun_two_nodes.sh").read_text()
WORDS = ("pbs", "--nodes", "2", "--launcher", "mpirun")
MINORS = (10, 11, 12, 13, 14)
pytestmark = pytest.mark.xdist_group("release")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def pyz(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pyz") / "jobgen.pyz"
    done = made("pyz", next(dist.glob("*.whl")), file)
    if done.returncode:
        absent(f"uv cannot fetch the parts of the zipapp here: {done.stderr[-300:]}")
    return file


def made(name: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a module of release/."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(EPOCH)}
    command = [sys.executable, "-m", f"release.{name}", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_two_builds_give_the_same_bytes(dist: Path, pyz: Path, tmp_path: Path) -> None:
    again = build(tmp_path, umask=0o077, commit=True)
    assert digests(dist) == digests(again)
    assert {name.rpartition(__version__)[2] for name in digests(dist)} == {"-py3-none-any.whl", ".tar.gz"}
    assert made("pyz", next(again.glob("*.whl")), again / "jobgen.pyz").returncode == 0
    assert (again / "jobgen.pyz").read_bytes() == pyz.read_bytes()


def test_the_metadata_name_the_versions_that_are_tested(dist: Path) -> None:
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        [name] = (one for one in wheel.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = wheel.read(name).decode()
    found = re.findall(r"^Classifier: Programming Language :: Python :: 3\.(\d+)$", metadata, re.MULTILINE)
    assert tuple(map(int, found)) == MINORS
    [least] = re.findall(r"^Requires-Python: >=3\.(\d+)$", metadata, re.MULTILINE)
    assert int(least) == MINORS[0]


def test_the_source_distribution_has_what_its_readme_shows(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    shown = re.findall(r"!\[[^]]*\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(shown) == 2
    assert {*shown, "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "constraints.txt"} <= names


def test_the_index_accepts_them(dist: Path) -> None:
    need_package("twine")
    command = [sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout.count("PASSED")) == (0, 2), done.stdout


@pytest.mark.parametrize("minor", sorted({*MINORS} - {sys.version_info.minor}))
def test_the_wheel_runs_in_a_clean_environment(minor: int, dist: Path, tmp_path: Path) -> None:
    """By uv. By pip, with the Python of the tests: tests/project/test_package.py."""
    subprocess.run([interpreter(minor), "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    uv = [sys.executable, "-m", "uv", "pip", "install", "--python", tmp_path / "venv/bin/python"]
    done = subprocess.run([*uv, *dist.glob("*.whl")], capture_output=True, text=True)
    if done.returncode:
        absent(f"uv cannot install the wheel here: {done.stderr[-300:]}")
    done = clean(tmp_path, tmp_path / "venv/bin/jobgen", *WORDS)
    assert (job_part(done.stdout), done.stderr) == (GOLDEN, "")
    done = clean(tmp_path, tmp_path / "venv/bin/jobgen", "slurm", "--site", "lumi", "--account", "a")
    assert (done.returncode, done.stderr.count("jobgen: note: the launcher is")) == (0, 1)


def clean(home: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a command with nothing of this environment."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    return subprocess.run([*map(str, words)], cwd=home, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("minor", MINORS)
def test_the_zipapp_runs_on_a_bare_python(minor: int, pyz: Path, tmp_path: Path) -> None:
    for _ in range(2):  # it unpacks itself, and then it has
        done = clean(tmp_path, interpreter(minor), "-I", "-S", pyz, *WORDS)
        assert (job_part(done.stdout), done.stderr) == (GOLDEN, "")
    [packages] = (tmp_path / ".cache/jobgen").iterdir()
    (packages / "click/utils.py").unlink()  # as by a command that deletes old files
    (tmp_path / "job.sh").write_text("#!/bin/bash\n#SBATCH --nodes=1\nsrun ./a.out\n")
    for words in (
        "site show lumi",
        "slurm --site lumi --account a",
        "check job.sh",
        "convert job.sh --to pbspro",
    ):
        done = clean(tmp_path, interpreter(minor), "-I", "-S", pyz, *words.split())
        assert done.returncode in (0, 1), done.stderr
        assert re.sub(r"jobgen: note: the launcher is .*\n", "", done.stderr).count("jobgen:") == 0


def test_the_zipapp_needs_no_cache(pyz: Path, tmp_path: Path) -> None:
    (tmp_path / ".cache").write_text("")
    done = clean(tmp_path, sys.executable, "-I", "-S", pyz, *WORDS)
    assert (job_part(done.stdout), done.stderr) == (GOLDEN, "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("pbs --launcher torchrnu", "did you mean torchrun?"),
        ("slurm -N 2 --ntasks 4", "are options of sbatch; use"),
        ("local -- --task digist", "--task digist"),
    ],
)
def test_the_zipapp_says_what_is_wrong_in_a_sentence(
    words: str, sentence: str, pyz: Path, tmp_path: Path
) -> None:
    done = clean(tmp_path, sys.executable, "-I", "-S", pyz, *words.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("jobgen: ")
    assert sentence in done.stderr


def test_the_zipapp_has_no_files_of_its_installation(pyz: Path) -> None:
    with zipfile.ZipFile(pyz) as held:
        names = {name.rpartition("/")[2] for name in held.namelist()}
    assert not [name for name in names if name.startswith(".") or name.endswith((".pyc", ".c"))]
    assert not names & {"RECORD", "WHEEL", "direct_url.json", "uv_cache.json"}


def test_the_parts_are_listed(pyz: Path) -> None:
    need_package("cyclonedx")
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    from release.pyz import COMPILED, PURE

    text = made("sbom", pyz).stdout
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bom = json.loads(text)
    assert [part["name"] for part in bom["components"]] == sorted((*PURE, *COMPILED))
    assert all(part["licenses"] for part in bom["components"])
    [digest] = bom["metadata"]["component"]["hashes"]
    assert digest["content"] == hashlib.sha256(pyz.read_bytes()).hexdigest()
    assert made("sbom", pyz).stdout == text


@pytest.fixture(scope="module")
def recipes(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recipes")
    done = made("recipes", next(dist.glob("*.tar.gz")), folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_recipe_for_conda_is_rendered(recipes: Path) -> None:
    """By rattler-build, which refuses unknown keys, licenses and requirements."""
    need_package("rattler_build")
    import rattler_build

    from release.recipes import CONDA_NAMES

    recipe = rattler_build.Stage0Recipe.from_file(recipes / "conda/recipe.yaml")
    [variant] = recipe.render(rattler_build.VariantConfig())
    found: dict[str, Any] = variant.recipe.to_dict()
    assert found["package"] == {"name": "jobgen", "version": __version__}
    assert {re.split("[ =>]", str(one))[0] for one in found["requirements"]["run"]} == {
        "python",
        *(CONDA_NAMES.get(one, one) for one in required()),
    }


def test_the_package_for_spack_has_the_requirements(recipes: Path) -> None:
    """It is compiled and linted; Spack itself does not come from an index of Python packages."""
    path = recipes / "spack/py-jobgen/package.py"
    compile(path.read_text(), path, "exec")
    ruff = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select",
        "E,F,W",
        "--line-length",
        "99",
        "--ignore",
        "F403,F405",
        path,
    ]
    assert subprocess.run(ruff, capture_output=True).returncode == 0
    assert set(re.findall(r'depends_on\("py-([\w-]+)@', path.read_text())) == {"setuptools", *required()}


def required() -> set[str]:
    """Return the names of what jobgen requires."""
    lines = (
        (ROOT / "setup.cfg")
        .read_text()
        .partition("install_requires =\n")[2]
        .partition("\n\n")[0]
        .splitlines()
    )
    return {re.split(">=", line.strip())[0] for line in lines if "#" not in line}
