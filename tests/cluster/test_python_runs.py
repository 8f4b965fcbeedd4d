"""``from jobgen import submit, Run``: the examples of docs/notebook.md, on Slurm."""

from __future__ import annotations

import json
import re
import sys

import pytest
from support import ROOT
from support.cluster import Cluster

pytestmark = pytest.mark.xdist_group("life")

EXAMPLES = re.findall(
    r"^```python\n(.*?)^```$", (ROOT / "docs/notebook.md").read_text(), re.MULTILINE | re.DOTALL
)
TRAIN = """
import json, os, sys
rate = float(sys.argv[-1]) if "--lr" in sys.argv else 0.1
for step in range(1, 4):
    print("step", step, flush=True)
    if os.environ["RANK"] == "0":
        with open(os.environ["JOBGEN_RUN_DIR"] + "/metrics.jsonl", "a") as file:
            print(json.dumps({"event": "step", "step": step, "loss": 2.5 - rate * step}), file=file)
"""
AFTER = """
assert "".join(run.logs(tail=2, rank=0)) == "step 2\\nstep 3\\n", run.logs()
assert repr(run) == f"<Run {run.name}: job {run.job_id}, finished, step 3, loss 2.2>"
page = run._repr_html_()
assert "<polyline" in page and "finished" in page and "<script" not in page
import json
assert json.loads((run.directory / "plan.json").read_text())["command"] == []
"""


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_run(slurm_cluster: Cluster, example: str) -> None:
    folder = slurm_cluster.folder("python")
    (folder / "train.py").write_text(TRAIN)
    text = example + (AFTER if "run.logs(tail=5)" in example else "")
    done = slurm_cluster.exec(
        "head",
        [sys.executable, "-c", text],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        check=False,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    for run in (folder / "runs").iterdir():
        assert json.loads((run / "plan.json").read_text())["scheduler"] == "slurm"
