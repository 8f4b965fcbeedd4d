"""The declaration of an engine. Does not import torch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .deepspeed.query import Config
from .settings import Settings


@dataclass(frozen=True)
class EngineSpec:
    """The properties of an engine.

    name: value of --engine; implementation: module:class below train/engines, called with a Job
    layout: form of the weights in a checkpoint, one of LAYOUTS in checkpoints/whole.py
    options: the options that only this engine has
    runs_deepspeed: DeepSpeed does the training and follows all keys of its config
    pipelined: the ranks are divided into --stages; offloads: supports --offload
    replicated: every rank has the whole state, which any number of ranks can load
    async_saves: supports --async-save
    adapters: supports --lora
    any_ranks: any number of ranks can load the sharded state
    casts_weights: weights are cast to half precision, and running statistics are not
    compiles: supports --compile and --sync-batchnorm
    own_optimizers: the reason why --fused-optimizer has no effect; '' if it has
    no_experts: the reason why the engine cannot train --model moe; '' if it can
    fixed_ranks: the reason why another number of ranks cannot load sharded states; '' if it can
    set_defaults: set defaults of the engine in the config, and return notes on them
    reasons: yield the reasons why the engine cannot train with the config
    plugin: return the plug-in of a run, or None
    check_environment: raise CommonMistake if a package is missing
    """

    name: str
    implementation: str
    layout: str
    options: tuple[str, ...] = ()
    runs_deepspeed: bool = False
    pipelined: bool = False
    offloads: bool = False
    replicated: bool = False
    async_saves: bool = False
    adapters: bool = False
    any_ranks: bool = False
    casts_weights: bool = False
    compiles: bool = False
    own_optimizers: str = ""
    no_experts: str = ""
    fixed_ranks: str = ""
    set_defaults: Callable[[Config, Settings], list[str]] = lambda config, settings: []
    reasons: Callable[[Config, Settings], Iterator[str]] = lambda config, settings: iter(())
    plugin: Callable[[Settings], str | None] = lambda settings: None
    check_environment: Callable[[], None] = lambda: None
