"""The files of the web page: Python for browsers (Pyodide), jobgen with what it imports, and the page."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

import jobgen
import jobgen.templates
from jobgen.commands.web import answer, form, training
from jobgen.config import NO_SITE
from jobgen.errors import JobgenError, shown
from jobgen.jobfile.locations import line_of
from jobgen.jobfile.reader import decode, read_text
from jobgen.rendering.runtime import MARK
from jobgen.schedulers.table import SCHEDULERS
from jobgen.site_making.validation import try_defaults
from jobgen.sites.display import scheduler
from jobgen.sites.loader import files as files_of_site
from jobgen.sites.loader import load
from jobgen.values.version import __version__

SITES = "config/jobgen/sites"  # in the archive; the worker sets XDG_CONFIG_HOME to config
_TEMPLATES = Path(jobgen.templates.__path__[0])
_PAGE = ("page.css", "page.js", "worker.js")
_PURE = ("click", "jinja2", "markupsafe")
# Folders that no job script needs: without them the page is loaded and unpacked sooner.
_UNUSED: Mapping[str, Collection[str]] = {
    "jobgen": ("api", "check", "doctor", "report", "site_making", "templates", "train"),
    "templates": ("completion", "report", "web"),
}


class SiteEntry(NamedTuple):
    """A site of the form, with the name of its scheduler."""

    name: str
    title: str
    scheduler: str


class BundlePart(NamedTuple):
    """A file that is downloaded: its address, its SHA-256, and the members that the page needs."""

    url: str
    sha256: str
    members: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


# Pyodide has Python 3.14; https://pyodide.org, MPL-2.0. msgspec is compiled for it.
PYODIDE = BundlePart(
    "https://registry.npmjs.org/pyodide/-/pyodide-314.0.7.tgz",
    "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0",
    ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"),
)
MSGSPEC = BundlePart(
    "https://files.pythonhosted.org/packages/75/5d/c0e6bdb81a87f6bd56a663a330c271af7670490c80d8d635d9fa21ad1adf/"
    "msgspec-0.22.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl",
    "a66b1766311e42371e509c996c3933b161c7ae0eabdf361af5316dec197e1022",
    (),
)


def write(folder: Path, sites: Sequence[str], parts: str | None) -> int:
    """Write the page into a folder, and return its size in bytes.

    ``sites`` are paths of site files, which come first in the form. ``parts`` is a folder with the files
    to download.

    Raises:
        JobgenError: a site file is wrong, two have the same name, or a part cannot be downloaded or is
            another file.
    """
    own = list({site.name: site for site in map(_site_entry, sites)}.values())
    _check_sites(sites)
    own_files = _site_files(sites)
    python, msgspec = (content(part, parts) for part in (PYODIDE, MSGSPEC))
    files = dict(members(python, PYODIDE.members))
    files["jobgen.zip"] = archive({**_packages(), **_wheel(msgspec), **own_files})
    files |= {name: (_TEMPLATES / "web" / name).read_bytes() for name in _PAGE}
    whole = hashlib.sha256(b"".join(files[name] for name in sorted(files))).hexdigest()
    hidden = {Path(name).stem for name in own_files}
    files["index.html"] = _index(own, hidden, _first_answer(own, own_files), whole[:12]).encode()
    _place(files, folder)
    return sum(map(len, files.values()))


def _site_entry(path: str) -> SiteEntry:
    """Return the entry of a site file; refuse one that is wrong."""
    site = load(path, machine=False)
    return SiteEntry(site.name, site.title, scheduler(site))


def _first_answer(own: Sequence[SiteEntry], own_files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the answer to the form with which the page begins; the user's own settings do not count."""
    first = {"scheduler": next(iter(SCHEDULERS))}
    if own:
        first = {"scheduler": own[0].scheduler, "site": own[0].name}
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as home:
        for name, data in own_files.items():
            Path(home, name).parent.mkdir(parents=True, exist_ok=True)
            Path(home, name).write_bytes(data)
        try:
            os.environ["XDG_CONFIG_HOME"] = str(Path(home, "config"))
            os.environ.pop("JOBGEN_SITE_PATH", None)
            os.environ.pop("JOBGEN_TEMPLATE_PATH", None)
            made: dict[str, Any] = json.loads(answer.answer(json.dumps(first)))
        finally:
            os.environ.clear()
            os.environ.update(before)
    made["script"], mark, runtime = made["script"].partition(MARK)
    return made | {"lines": made.pop("script").split("\n"), "runtime": mark + runtime}


def _place(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files into a folder; if the disk is full, it keeps its old files."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as new:
        for name, data in files.items():
            Path(new, name).write_bytes(data)
        for name in files:
            os.replace(Path(new, name), folder / name)


def content(part: BundlePart, folder: str | None) -> bytes:
    """Return a part, from a folder, from the user's cache, or by a download that goes into the cache.

    Raises:
        JobgenError: it cannot be had, or it is another file than expected.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jobgen"
    path = Path(folder or home) / part.name
    try:
        data = path.read_bytes() if folder or path.is_file() else _downloaded(part)
    except OSError as error:
        reason = getattr(error, "reason", None) or error.strerror or error
        raise JobgenError(
            f"{part.url if not folder else shown(str(path))}: cannot be read: {reason}; "
            "download it elsewhere and name its folder with --parts"
        ) from None
    if hashlib.sha256(data).hexdigest() != part.sha256:
        raise JobgenError(f"{shown(str(path))}: is another file: its SHA-256 is not {part.sha256}")
    if not folder and not path.is_file():
        _keep(path, data)
    return data


def _downloaded(part: BundlePart) -> bytes:
    from urllib.request import urlopen

    with urlopen(part.url, timeout=60) as answer:
        data: bytes = answer.read()
    return data


def _keep(path: Path, data: bytes) -> None:
    """Write a file into the cache, if that is possible."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(data)
        os.replace(file.name, path)


def members(package: bytes, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Return files of a package of npm."""
    with tarfile.open(fileobj=io.BytesIO(package)) as held:
        for name in names:
            file = held.extractfile(f"package/{name}")
            assert file is not None
            yield name, file.read()


def _packages() -> dict[str, bytes]:
    """Return the Python files of jobgen that make scripts, its templates, and what it imports."""
    roots = {"jobgen": Path(jobgen.__path__[0]), "jobgen/templates": _TEMPLATES}
    roots |= {name: Path(str(distribution(name).locate_file(name))) for name in _PURE}
    return {
        f"{name}/{path.relative_to(root)}": path.read_bytes()
        for name, root in roots.items()
        for path in root.rglob("*")
        if path.is_file() and not _left_out(path, root)
    }


def _left_out(path: Path, root: Path) -> bool:
    parts = path.relative_to(root).parts
    compiled = "__pycache__" in parts or path.suffix in (".so", ".c", ".pyi")
    return compiled or parts[0] in _UNUSED.get(root.name, ())


def _wheel(wheel: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(wheel)) as held:
        return {name: held.read(name) for name in held.namelist() if not name.endswith("/")}


def _check_sites(paths: Iterable[str]) -> None:
    """Refuse own sites with which no job is valid, or that need more than a browser has."""
    for path in paths:
        site = load(path, machine=False)
        try_defaults(site)
        if site.values.get("env_file"):
            raise JobgenError(f"site {shown(site.path)}: env_file names a file, which a browser cannot read")


def _site_files(sites: Iterable[str]) -> dict[str, bytes]:
    """Return the files of the sites, and those that they extend, without the packaged ones."""
    found: dict[str, Path] = {}
    for path in (Path(one) for site in sites for one in files_of_site(site)):
        if path.resolve().parent == (_TEMPLATES / "sites").resolve():
            continue
        if path.suffix != ".toml" or path.stem == NO_SITE:
            raise JobgenError(f"site {shown(str(path))}: must be named NAME.toml, not {NO_SITE}.toml")
        other = found.setdefault(path.name.removesuffix(".toml"), path)
        if other.resolve() != path.resolve():
            raise JobgenError(f"site {shown(str(path))}: {shown(str(other))} has the same name")
    return {f"{SITES}/{name}.toml": _moved(path) for name, path in found.items()}


def _moved(path: Path) -> bytes:
    """Return the content of a site file which has the file that it extends beside it."""
    text = read_text(str(path), f"the site file {shown(str(path))}")
    if base := decode(text, str(path)).get("extends"):
        lines = text.split("\n")
        at = line_of(text, ("extends",))
        assert at is not None
        lines[at - 1] = f"extends = {json.dumps(Path(base).name.removesuffix('.toml'))}"
        text = "\n".join(lines)
    return text.encode()


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return a zip archive. Equal files give equal bytes; their date is that of SOURCE_DATE_EPOCH."""
    out = io.BytesIO()
    zip_begins = 315_532_800  # 1980
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH") or 0), zip_begins))[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, date)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            made.writestr(info, files[name])
    return out.getvalue()


def _index(own: Sequence[SiteEntry], hidden: Collection[str], first: Mapping[str, Any], build: str) -> str:
    """Return the HTML without the packaged sites that files of their own hide. ``first`` is the answer that
    it shows. ``build`` ends the addresses of files: browsers keep those of another build."""
    packaged = [_site_entry(str(path)) for path in sorted((_TEMPLATES / "sites").glob("*.toml"))]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES / "web"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("index.html.j2").render(
        version=__version__,
        schedulers=SCHEDULERS.values(),
        own=own,
        packaged=[site for site in packaged if site.name not in hidden],
        first=first,
        basics=form.basics(),
        groups=form.groups(),
        training=training,
        absent=form.ABSENT,
        pyodide=PYODIDE.name,
        mark=MARK,
        build=build,
    )
