"""The checkpoints on disk: which there are, what made them, whether this run can go on from one. No torch.

DIR/latest                   the id of the newest one
DIR/step-000123/             that after 123 steps; it has its name only when all of it is on the disk
    checkpoint.json          what made it, where the training was, and the SHA-256 of every file
    rank-00000.pt            of each rank: random states, buffers, losses not yet reported
    ema-00.pt                averaged weights, of each part that the ranks share the model in
    model.pt                 ddp: model, optimizer, schedule, loss scale
    model.pt, colossalai-00000.pt   colossalai: the optimizer apart, of each rank that has a share of it
    deepspeed/               deepspeed, pipeline: a checkpoint of DeepSpeed, readable by its own tools
DIR/.step-000123.….writing   one that is being written, or was when the run ended
DIR/.step-000123.….replaced  the old one, while a new one takes its name
DIR/.step-000123.removing    one too old to keep

directory.py knows these names, finding.py chooses one, checking.py and settling.py make sure that it is
whole, identity.py that it fits; saving.py writes and reads them, over storage.py and files.py.
"""

from .checking import Check
from .directory import FOLDER, LATEST, RECORD, Checkpoint, Progress, ids, make_ready, place, prune
from .finding import any_in, at, find
from .identity import check, identity

__all__ = [
    "FOLDER",
    "LATEST",
    "RECORD",
    "Check",
    "Checkpoint",
    "Progress",
    "any_in",
    "at",
    "check",
    "find",
    "identity",
    "ids",
    "make_ready",
    "place",
    "prune",
]
