"""What each script beside this file becomes; ``python -m tools.write_goldens`` writes all anew."""

from __future__ import annotations

from pathlib import Path

from jobgen.convert.to_job_file import translation
from jobgen.convert.to_scheduler import conversion
from jobgen.script.directives import guess
from jobgen.script.script import Script

HERE = Path(__file__).parent
SCRIPTS = sorted((HERE / "scripts").glob("*.sh"))
TARGETS = ("slurm", "pbspro", "torque", "toml")
CASES = [(path, target) for path in SCRIPTS for target in TARGETS if target != path.stem.partition("_")[0]]


def golden(path: Path, target: str) -> Path:
    return HERE / "golden" / f"{path.stem}.{target}{'' if target == 'toml' else '.sh'}"


def result(path: Path, target: str) -> str:
    """The converted script, and behind it, as comments, the remarks on it."""
    source = path.read_bytes()
    script = Script(source, guess(source.decode().split("\n")))
    done = translation.convert(script) if target == "toml" else conversion.convert(script, target)
    lines = [f"# {one.line}: {'' if one.lost else 'look: '}{one.what}: {one.why}\n" for one in done.remarks]
    return done.text + "".join(lines)
