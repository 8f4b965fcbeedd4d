"""The training engines.

base.py has the protocol by which the loop uses them. ddp.py is plain torch, deepspeed.py is DeepSpeed's data
parallelism with ZeRO and experts, pipeline.py is its pipeline, colossalai.py has ColossalAI's plug-ins. A new
engine needs a module of its own and an entry in building.py.
"""

from .base import Engine, Evaluator, Job, Micro, Share
from .building import build, model

__all__ = ["Engine", "Evaluator", "Job", "Micro", "Share", "build", "model"]
