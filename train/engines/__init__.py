"""The training engines.

base.py has the protocol by which the loop uses them. ddp.py is plain torch, deepspeed.py is DeepSpeed's data
parallelism with ZeRO and experts, pipeline.py is its pipeline, colossalai/ has ColossalAI's plug-ins. Each
engine declares what it supports in config/engine_NAME.py, and config/engines.py lists the engines.
"""

from .base import Engine, Evaluator, Job, Share
from .factory import build, model

__all__ = ["Engine", "Evaluator", "Job", "Share", "build", "model"]
