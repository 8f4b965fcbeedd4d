"""The programs of docs/own-programs.md."""

from __future__ import annotations

import re
from pathlib import Path

from support import ROOT

PAGE = ROOT / "docs/own-programs.md"
NEEDS = {"plain": (), "hf": ("transformers", "accelerate"), "lit": ("lightning",), "acc": ("accelerate",)}
"""The programs that leave in time and resume, with the packages that they need."""


SLOW = """
        file = os.path.join(os.environ["JOBGEN_RUN_DIR"], "saved-step")
        if os.environ.get("JOBGEN_ATTEMPT") == "1" and os.path.exists(file) and int(open(file).read()) >= 20:
            time.sleep(0.05)
"""


def write(folder: Path, name: str) -> Path:
    """Write a program of the page and its task.py, which is slow in attempt 1 once step 20 is saved."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = dict(
        re.findall(r"^cat > (\w+)\.py <<'END'\n(.*?)^END$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    )
    task = texts["task"].replace("\n        x = torch", f"{SLOW}        x = torch", 1)
    assert "sleep" in task
    (folder / "task.py").write_text("import os\nimport time\n" + task)
    (folder / f"{name}.py").write_text(texts[name])
    return folder / f"{name}.py"


def saved_step(run: Path) -> int:
    """Return the last step that a program saved, 0 before that."""
    file = run / "saved-step"
    return int(file.read_text()) if file.exists() else 0


def weights(folder: Path) -> bytes:
    """Return the trained weights that the program saved, as bytes that are equal if every bit is."""
    import torch

    state = torch.load(folder / "final.pt")
    return b"".join(name.encode() + state[name].numpy().tobytes() for name in sorted(state))
