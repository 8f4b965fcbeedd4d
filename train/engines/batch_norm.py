"""BatchNorm layers whose weights, but not running statistics, DeepSpeed 0.19.8 casts to half precision.

torch normalises in fp32 for images of any dtype, but needs weights and statistics of the same dtype.
"""

import functools

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm


def normalise_in_fp32(model: nn.Module) -> None:
    """Make the BatchNorm layers of the model pass their weights to torch in fp32."""
    for layer in model.modules():
        if isinstance(layer, _BatchNorm) and type(layer).forward is _BatchNorm.forward:
            layer.forward = functools.partial(_forward, layer)  # type: ignore[method-assign]


def _forward(layer: _BatchNorm, images: torch.Tensor) -> torch.Tensor:
    mean, var, weight, bias = layer.running_mean, layer.running_var, layer.weight, layer.bias
    if mean is None or var is None or weight is None or weight.dtype == mean.dtype:
        return type(layer).forward(layer, images)
    layer._check_input_dim(images)  # type: ignore[no-untyped-call]
    share = layer.momentum
    if layer.training and layer.num_batches_tracked is not None:
        layer.num_batches_tracked.add_(1)
        if share is None:
            share = 1.0 / float(layer.num_batches_tracked)
    shift = None if bias is None else bias.to(mean.dtype)
    return functional.batch_norm(
        images, mean, var, weight.to(mean.dtype), shift, layer.training, share or 0.0, layer.eps
    )
