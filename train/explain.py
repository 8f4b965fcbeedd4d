"""--explain: the arithmetic of the batch, and the memory that each ZeRO stage needs. Does not import torch.

The memory is that of weights, gradients, Adam's states and DeepSpeed's buffers in mixed precision, without
activations. There are 20 bytes per parameter: weights 2 in half precision and 4 in fp32, gradients 2 and 4,
Adam 8. From stage 1 on, the weights and states in fp32 are sharded. The larger of two moments counts:

backward pass    gradients are collected in a bucket of half precision, reduce_bucket_size elements in any
                 model; at stage 3 the gradients that fill it exist beside it, and whole weights, of at most
                 stage3_max_live_parameters elements
optimizer        this rank's gradients exist in half precision, once more in one piece, and in fp32; without
                 a fused kernel, Adam has two results of 4 bytes in place of the piece

Offload is DeepSpeed's own estimate, to which the buffers are added (estimate_zero2_model_states_mem_needs in
runtime/zero/stage_1_and_2.py, estimate_zero3_model_states_mem_needs in runtime/zero/stage3.py).

FSDP shards the 16 bytes in fp32. Of the weights outside of blocks, which stay whole from the forward to the
backward pass, and of two blocks, it has weights and gradients in half precision, and gradients in fp32 that
are exchanged; one rank exchanges none. With accumulation, the gradients of all weights are whole.

One rank on an H100 needs these sums within 6 %, and one rank on the CPU within 10 %, two within 20 %.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from .config.batches import Batch

GIB = 2**30
HOST_BUFFERS = 1.5  # DeepSpeed's additional_buffer_factor for the host's memory


class Buffers(NamedTuple):
    """The elements that DeepSpeed holds at a time: its defaults of these two keys of zero_optimization."""

    reduce_bucket_size: int = 500_000_000
    stage3_max_live_parameters: int = 1_000_000_000


class Need(NamedTuple):
    """The memory of one configuration, in bytes per device and in bytes per node."""

    name: str
    options: str
    device: int
    host: int


class Model(NamedTuple):
    """The number of parameters of a model and of its largest layer.

    by_layer: at ZeRO 3, each layer is divided among the ranks before the next one is made
    block, outside: numbers of parameters of the largest block, and outside of all blocks
    frozen: number of parameters that are not trained, such as those of a model with --lora
    """

    parameters: int
    largest: int
    by_layer: bool = False
    block: int = 0
    outside: int = 0
    frozen: int = 0


def needs(
    model: Model, nodes: int, per_node: int, buffers: Buffers, accumulation: int = 1, fused: bool = True
) -> Iterator[Need]:
    """Yield the memory of each ZeRO stage, without and with the offload that it supports, and of FSDP.

    fused: Adam is one kernel
    """
    everything, ranks = model.parameters, nodes * per_node
    trained = everything - model.frozen  # the others have no gradients and no states
    whole = int(everything * 4 * per_node * HOST_BUFFERS)  # each rank builds the model on the host first
    largest, buffer = 4 * model.largest, 2 * buffers.reduce_bucket_size
    gradients = 2 * min(trained, buffers.reduce_bucket_size)  # before they are in the bucket
    live = 2 * min(everything, buffers.stage3_max_live_parameters)
    yield Need("ZeRO 0", "--zero-stage 0", 2 * everything + 18 * trained, whole)
    step = (20 if fused else 24) * trained // ranks
    backward = 2 * trained + 12 * trained // ranks + buffer
    yield Need("ZeRO 1", "--zero-stage 1", 2 * everything + max(backward, step), whole)
    backward = 14 * trained // ranks + buffer
    yield Need("ZeRO 2", "--zero-stage 2", 2 * everything + max(backward, step), whole)
    host_states = int(trained * max(4 * ranks, 16) * HOST_BUFFERS)
    yield Need(
        "ZeRO 2, states on the host",
        "--zero-stage 2 --offload optimizer",
        2 * everything + gradients + largest + buffer,
        host_states,
    )
    layers = int(largest * per_node * HOST_BUFFERS) if model.by_layer else whole
    at_once = largest + live + gradients + buffer
    backward, step = 14 * trained // ranks + at_once, (20 if fused else 26) * trained // ranks
    yield Need("ZeRO 3", "--zero-stage 3", 2 * everything // ranks + max(backward, step), layers)
    for what, option, on_device, on_host in (
        ("states", "optimizer", int(2 * everything / ranks), 16 * trained),
        ("all", "all", 0, 2 * everything + 16 * trained),
    ):
        fp32_copy = 0 if model.by_layer else 4 * per_node * everything
        host = int(max(fp32_copy, on_host / nodes) * HOST_BUFFERS)
        options = f"--zero-stage 3 --offload {option}"
        yield Need(f"ZeRO 3, {what} on the host", options, on_device + at_once, host)
    share = trained / everything  # of the weights in a pass, those that have gradients
    at_once = int((2 + (6 if ranks > 1 else 2) * share) * model.outside + (2 + 6 * share) * 2 * model.block)
    at_once += 4 * trained if accumulation > 1 else 0
    shares = (16 * trained + 4 * model.frozen) // ranks
    yield Need("FSDP", "--engine fsdp", shares + at_once, whole)


def arithmetic(batch: Batch, parallel: int, samples: int, drop_last: bool = False) -> list[str]:
    """Return lines that explain the batch sizes.

    parallel: number of data-parallel ranks; samples: number of training samples; drop_last: see --drop-last
    """
    total = batch.micro * batch.accumulation * parallel
    steps, rest = divmod(samples, total)
    steps_text = f"{steps} step(s) an epoch, without the last {rest} samples"
    if not drop_last:
        steps += rest > 0
        steps_text = f"{steps} step(s) an epoch, the last of {rest or total} samples"
    return [
        f"global batch {total} = micro batch {batch.micro} x accumulation {batch.accumulation} x "
        f"{parallel} data-parallel rank(s)",
        f"{samples} samples make {steps_text}",
    ]


def table(
    model: Model,
    nodes: int,
    per_node: int,
    device: float,
    host: float,
    buffers: Buffers,
    accumulation: int = 1,
    fused: bool = True,
) -> list[str]:
    """Return lines that compare the memory of each stage with that of a device and of a node, in bytes."""
    bucket = 2 * buffers.reduce_bucket_size
    of_these = f", of which {model.parameters - model.frozen:,} are trained" if model.frozen else ""
    lines = [
        f"{model.parameters:,} parameters{of_these}, the largest layer {model.largest:,}; "
        f"{nodes} node(s) x {per_node} rank(s)",
        f"memory for weights, gradients, Adam's states and a bucket of {_in_words(bucket)} in mixed "
        f"precision, per device and per node, of {_in_words(device)} and {_in_words(host)}; activations need "
        "more:",
    ]
    for need in needs(model, nodes, per_node, buffers, accumulation, fused):
        lacks = [
            name
            for name, has, wants in (("device", device, need.device), ("node", host, need.host))
            if wants > has
        ]
        verdict = f"  does not fit on the {' nor the '.join(lacks)}" if lacks else ""
        sizes = f"{_in_words(need.device):>10} {_in_words(need.host):>10}"
        lines.append(f"  {need.name:<27} {sizes}  {need.options}{verdict}")
    return lines


def host_memory() -> int:
    """Return the memory of this host, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _in_words(size: float) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / 2**20:.1f} MiB"
