"""Applies the settings of config/speed.py to torch and to a model."""

import importlib.util
import os
import shutil
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..config.speed import Speed
from ..device import Device
from ..errors import CommonMistake

Function = TypeVar("Function", bound=Callable[..., Any])
COMPILERS = {"c++": ("CXX", "g++", "clang++"), "cc": ("CC", "cc", "gcc", "clang")}
CONVOLUTIONS = (nn.Conv2d, nn.ConvTranspose2d)


def set_flags(speed: Speed, device: Device) -> None:
    """Set torch's global switches. Raise CommonMistake if --compile lacks its compiler."""
    torch.set_float32_matmul_precision(speed.matmul)
    torch.backends.cudnn.allow_tf32 = speed.matmul != "highest"
    torch.backends.cudnn.benchmark = speed.benchmark
    torch.backends.cudnn.deterministic = speed.deterministic
    # For cuBLAS, before its first call: https://docs.nvidia.com/cuda/cublas/#results-reproducibility
    if speed.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(speed.deterministic, warn_only=True)
    if speed.compile:
        _check_compiler(device)


def _check_compiler(device: Device) -> None:
    for need in device.row.compiler or ():
        if need in COMPILERS:
            variable, *names = COMPILERS[need]
            there = any(shutil.which(name) for name in (os.environ.get(variable, ""), *names) if name)
            what = f"a compiler on this host ({', '.join(names)}, or {variable})"
        else:
            there, what = importlib.util.find_spec(need) is not None, f"the Python package {need}"
        if not there:
            raise CommonMistake(f"--compile on {device.kind} devices needs {what}")


def prepare(model: nn.Module, speed: Speed, ranks: int, weights: bool) -> nn.Module:
    """Return the model with SyncBatchNorm and channels_last, where they are set.

    ranks: number of ranks; weights: convert the weights of convolutions, too, and not only the images. This
    is faster, but DeepSpeed sends weights in their plain format. Raise CommonMistake for SyncBatchNorm in a
    model without BatchNorm.
    """
    if speed.sync_batchnorm:
        if not any(isinstance(layer, _BatchNorm) for layer in model.modules()):
            raise CommonMistake("--sync-batchnorm: the model has no BatchNorm layer")
        if ranks > 1:
            model = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
    if speed.channels_last and any(isinstance(layer, CONVOLUTIONS) for layer in model.modules()):
        for layer in model.modules():
            if weights and isinstance(layer, CONVOLUTIONS):
                layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)
        first = model[0] if isinstance(model, nn.Sequential) else model  # a pipeline calls the layers
        first.register_forward_pre_hook(_channels_last)
    return model


def _channels_last(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_convert(each) for each in inputs)


def _convert(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dim() == 4:
        return value.contiguous(memory_format=torch.channels_last)
    return value


def with_compile(function: Function, speed: Speed) -> Function:
    """Return the function, compiled if --compile is set.

    Each shape gets its own code: the last batch of an epoch must not make the others slower.
    """
    if not speed.compile:
        return function
    return cast(Function, torch.compile(function, mode=speed.compile, dynamic=False))
