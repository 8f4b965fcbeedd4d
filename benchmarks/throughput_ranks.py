"""The program of each rank of training_throughput.py.

It runs our engine and a loop by hand in turn, on one model and one set of random 32 x 32 colour images. Rank
0 prints the seconds of every round as JSON.

throughput_ranks.py ddp|fsdp|deepspeed|pipeline|colossalai ROUNDS ours|other

The last argument is the side that is built first.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jobgen.train import config, data, device, engines, evaluation, loop, models, peers, ranks, report
from jobgen.train.config import recipe
from jobgen.train.data import sampling
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

SAMPLES, BATCH, SHAPE = 4096, 32, (3, 32, 32)
PASSES = 4  # micro batches per step of the pipeline
OPTIONS = ("--epochs", "1", "--clip", "0", "--batch-size", str(BATCH))


def main(kind: str, rounds: int, first: str) -> None:
    me = ranks.discover(os.environ)
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    torch.set_num_threads(1)
    peers.connect(me, mine)
    samples = images()
    by_hand = {
        "ddp": torch_loop,
        "fsdp": fsdp_loop,
        "deepspeed": deepspeed_loop,
        "pipeline": pipeline_loop,
        "colossalai": colossalai_loop,
    }[kind]
    builders = [lambda: ours(kind, samples, me, mine), lambda: by_hand(samples, me)]
    order = (0, 1) if first == "ours" else (1, 0)
    sides = {side: builders[side]() for side in order}
    seconds: list[list[float]] = [[], []]
    for turn in range(rounds + 1):
        for side in (0, 1) if turn % 2 else (1, 0):
            distributed.barrier()
            start = time.perf_counter()
            sides[side]()
            distributed.barrier()
            if turn:  # the first round is a warm-up
                seconds[side].append(time.perf_counter() - start)
    if me.rank == 0:
        print(json.dumps(seconds), flush=True)
    distributed.barrier()
    os._exit(0)


def images() -> data.Data:
    random = np.random.default_rng(0)
    train = data.Split(random.integers(0, 256, (SAMPLES, *SHAPE), np.uint8), random.integers(0, 10, SAMPLES))
    test = data.Split(train.images[:1], train.labels[:1])  # the evaluation takes no time
    return data.Data(train, test, data.CIFAR_CLASSES, 255.0, data.CIFAR_MEAN, data.CIFAR_STD)


def ours(kind: str, samples: data.Data, me: ranks.Ranks, mine: device.Device) -> Callable[[], Any]:
    passes = PASSES if kind == "pipeline" else 1
    settings = config.parse([*OPTIONS, "--engine", kind, "--accumulation", str(passes)])
    how = recipe.resolve(settings, me.world_size)
    steps = sampling.steps_per_epoch(SAMPLES, *how.batch, how.parallel)
    task = samples.task()
    trainer, what = engines.build(how, how.schedule(steps), task, me, mine), evaluation.measures(task)
    run = report.Run({"JOBGEN_RUN_DIR": tempfile.mkdtemp()}, report.Clock(), me.rank)
    run.line = lambda text: None  # type: ignore[method-assign]
    run.prepare()
    return lambda: loop.Training(trainer, task, what, mine, how.batch, how.settings, run).run()


def torch_loop(samples: data.Data, me: ranks.Ranks) -> Callable[[], None]:
    model: nn.Module = models.cnn(SHAPE, 10)
    return by_torch(DistributedDataParallel(model) if me.world_size > 1 else model, samples, me)


def fsdp_loop(samples: data.Data, me: ranks.Ranks) -> Callable[[], None]:
    return by_torch(fully_shard(models.cnn(SHAPE, 10)), samples, me)


def by_torch(model: nn.Module, samples: data.Data, me: ranks.Ranks) -> Callable[[], None]:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return epoch(samples, me, step)


def deepspeed_loop(samples: data.Data, me: ranks.Ranks) -> Callable[[], None]:
    import deepspeed

    model = models.cnn(SHAPE, 10)
    settings = {
        "train_micro_batch_size_per_gpu": BATCH,
        "gradient_clipping": 0.0,
        "optimizer": {"type": "Adam", "params": {"lr": 0.002, "torch_adam": True, "adam_w_mode": False}},
    }
    trainer, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = nn.functional.cross_entropy(trainer(x), y)
        trainer.backward(loss)
        trainer.step()
        return loss

    return epoch(samples, me, step)


def colossalai_loop(samples: data.Data, me: ranks.Ranks) -> Callable[[], None]:
    """Return an epoch with ColossalAI's Booster and its plug-in torch_ddp.

    The patches are necessary to run it on a CPU.
    """
    from jobgen.train.engines.colossalai import patches

    colossalai = patches.load(device.Device("cpu", 0))
    booster = colossalai.booster.Booster(plugin=colossalai.booster.plugin.TorchDDPPlugin())
    model = models.cnn(SHAPE, 10)
    adam = colossalai.nn.optimizer.HybridAdam(model.parameters(), lr=0.002, adamw_mode=False)
    model, optimizer, *_ = booster.boost(model, adam)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        booster.backward(loss, optimizer)
        optimizer.step()
        return loss

    return epoch(samples, me, step)


def pipeline_loop(samples: data.Data, me: ranks.Ranks) -> Callable[[], None]:
    """Return an epoch with DeepSpeed's pipeline, one stage per rank.

    The first stage reads the images, the last one the labels. Every rank has all of them.
    """
    import deepspeed
    from deepspeed.pipe import PipelineModule

    deepspeed.init_distributed()
    layers = list(models.cnn(SHAPE, 10))
    loss = nn.functional.cross_entropy
    model = PipelineModule(layers, num_stages=me.world_size, loss_fn=loss, partition_method="parameters")
    settings = {
        "train_micro_batch_size_per_gpu": BATCH,
        "gradient_accumulation_steps": PASSES,
        "gradient_clipping": 0.0,
        "steps_per_print": 10**9,
        "optimizer": {"type": "Adam", "params": {"lr": 0.002, "torch_adam": True, "adam_w_mode": False}},
    }
    trainer, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)
    pixels, labels = torch.from_numpy(samples.train.images), torch.from_numpy(samples.train.labels)
    mean = torch.tensor(samples.mean).view(1, -1, 1, 1) * 255
    std = torch.tensor(samples.std).view(1, -1, 1, 1) * 255

    def run() -> None:
        order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(0))
        chosen = (part for part in order.split(BATCH))
        batches = (((pixels[part].float() - mean) / std, labels[part]) for part in chosen)
        for _ in range(SAMPLES // (BATCH * PASSES)):
            trainer.train_batch(batches)

    return run


def epoch(samples: data.Data, me: ranks.Ranks, step: Callable[..., torch.Tensor]) -> Callable[[], None]:
    """Return a function that runs one epoch by `step`, with the samples of this rank.

    It normalises batch by batch and reads the loss every ten steps.
    """
    pixels, labels = torch.from_numpy(samples.train.images), torch.from_numpy(samples.train.labels)
    mean = torch.tensor(samples.mean).view(1, -1, 1, 1) * 255
    std = torch.tensor(samples.std).view(1, -1, 1, 1) * 255

    def run() -> None:
        order = torch.randperm(SAMPLES)[me.rank :: me.world_size]
        for number, chosen in enumerate(order.split(BATCH)):
            loss = step((pixels[chosen].float() - mean) / std, labels[chosen])
            if number % 10 == 0:
                loss.item()

    return run


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
