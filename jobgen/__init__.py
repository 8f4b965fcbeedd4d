"""Batch-job scripts for training networks on PBS and Slurm clusters.

One job description becomes one readable, self-contained script:
flags -> JobSpec (spec.py) -> Plan (plan.py) -> text (rendering.py, templates/).
"""

from pathlib import Path

__version__ = "0.1.0"

# In a checkout, templates/ and train/ stand beside this package and not inside it: make
# jobgen.templates and jobgen.train importable from there, as they are once installed.
_ROOT = Path(__file__).resolve().parent.parent
if (_ROOT / "setup.cfg").is_file():
    __path__.append(str(_ROOT))
