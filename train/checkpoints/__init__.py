"""Checkpoints on disk: how they are named, found, verified, written and read.

DIR/latest                   the id of the newest checkpoint
DIR/best                     the id of the best checkpoint, with --keep-best
DIR/step-000123/             the checkpoint after step 123; named so only when all its files are on the disk
    checkpoint.json          the run that wrote it, its position, and size and SHA-256 of every file
    rank-00000.pt            of each rank: random states, buffers, losses that are not reported yet
    ema-00.pt                averaged weights, one file for each part of a model that the ranks divide
    model.pt                 ddp: model, optimizer, schedule, loss scale
    fsdp.pt, fsdp/           fsdp: schedule and loss scale; sharded tensors of torch.distributed.checkpoint
    model.pt, colossalai-00000.pt   colossalai: the same, but one file of optimizer states per rank
    deepspeed/               deepspeed, pipeline: a checkpoint of DeepSpeed, readable by DeepSpeed's tools
DIR/.step-000123.….writing   a checkpoint that is being written, or that a killed run has left
DIR/.step-000123.….replaced  an old checkpoint, while a new one takes its name
DIR/.step-000123.removing    an old checkpoint that is being removed

directory.py defines these names and verifies the files. resume.py selects a checkpoint and compares its
options with those of the run; in agreement.py, all ranks agree on it. save.py writes and reads checkpoints
with storage.py, and rescue.py writes one when the training hangs. Importing the package itself does not
import torch.
"""

from . import foreign
from .directory import (
    BEST,
    FOLDER,
    LATEST,
    RECORD,
    Check,
    Checkpoint,
    Progress,
    ids,
    make_ready,
    place,
    prune,
)
from .resume import any_in, at, batch_before, check, check_data, find, identity, jump

__all__ = [
    "BEST",
    "FOLDER",
    "LATEST",
    "RECORD",
    "Check",
    "Checkpoint",
    "Progress",
    "any_in",
    "at",
    "batch_before",
    "check",
    "check_data",
    "find",
    "foreign",
    "identity",
    "ids",
    "jump",
    "make_ready",
    "place",
    "prune",
]
