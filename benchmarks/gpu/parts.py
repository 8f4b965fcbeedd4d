"""The parts of the benchmark: what each is, and its time. Does not import torch."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """A part. seconds: its time on a GPU; time that earlier parts have left is added."""

    module: str
    about: str
    seconds: int


# Correctness comes first, and the part that may take longest last. The sum is below eight minutes.
PARTS = {
    "environment": Part("environment", "versions, device and compilers", 25),
    "losses": Part("losses", "losses on the GPU and on the CPU, in each precision and engine", 80),
    "resume": Part("resume", "a killed run that is resumed ends as one that was not, bit for bit", 55),
    "checkpoint": Part("checkpoint", "time to save and load a checkpoint of a GPT with 124M parameters", 25),
    "memory": Part("memory", "memory at each ZeRO stage, and the estimate of --explain", 50),
    "resnet18": Part("throughput", "ResNet-18, images of CIFAR-10's size", 55),
    "gpt-124m": Part("throughput", "GPT with 124M parameters, 1,024 tokens", 80),
    "gpt-1.3b": Part("throughput", "GPT with 1.3B parameters, 2,048 tokens", 95),
}
