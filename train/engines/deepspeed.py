"""DeepSpeed's data parallelism: ZeRO 0 to 3, offload to the host's memory, mixture of experts."""

import logging
import os
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import torch

from ..config.dsconfig import enabled, norm_is_scaled, optimizer_name
from ..device import Device
from ..errors import CommonMistake, TrainingFailure
from ..models import summed_loss
from . import Job, Micro, Part, Save, Share, auxiliary, evaluation, padded
from .ema import Average

CHECKPOINT = "deepspeed"  # the folder of a checkpoint that is DeepSpeed's


class DeepSpeedEngine:
    """By deepspeed.initialize. The process group must be there."""

    def __init__(self, job: Job) -> None:
        deepspeed = load_deepspeed(job.device)
        self.share = Share(job.ranks.rank, job.ranks.world_size)
        parameters = [p for p in job.model.parameters() if p.requires_grad]
        with mistakes_of_the_config():
            self._engine, *_ = deepspeed.initialize(
                model=job.model,
                model_parameters=parameters,
                config=deepspeed_config(job.config, job.device, job.model),
                lr_scheduler=job.schedule.attach,
            )
        self.module = job.model
        self._norm_is_scaled = norm_is_scaled(job.config)
        self._dtype = next(job.model.parameters()).dtype
        self._passes = job.ranks.world_size * self._engine.gradient_accumulation_steps()
        self.average = Average(job.model, job.ema) if job.ema else None
        shared = experts_shared_by(job.model)
        self.part = Part(job.ranks.rank % shared, job.ranks.rank < shared)
        # Ranks that share experts exchange samples, and every rank must send as many.
        self._rows = job.micro if self._engine.has_moe_layers else 0

    def train_step(self, micro_batches: Sequence[Micro], total: int) -> torch.Tensor:
        self._engine.train()
        summed = []
        for micro in micro_batches:
            images, labels, real = padded(micro, self._rows)
            logits = self._engine(images.to(self._dtype))
            loss = summed_loss(logits[:real], labels[:real]) + real * auxiliary(self.module)
            # DeepSpeed averages over the ranks and over the passes of a step, as if all had as many
            # samples; this factor makes that the mean over samples, whatever each pass has.
            self._engine.backward(loss * (self._passes / total))
            self._engine.step()
            summed.append(loss.detach())
        if self.average:
            self.average.update()
        return torch.stack(summed).sum()

    def evaluating(self) -> AbstractContextManager[None]:
        return evaluation(self._engine, self.average)

    @torch.no_grad()
    def predict(self, images: torch.Tensor) -> torch.Tensor:
        count = len(images)
        if count < self._rows:
            images = images[torch.arange(self._rows, device=images.device) % count]
        return self._engine(images.to(self._dtype))[:count]

    def learning_rate(self) -> float:
        return float(self._engine.optimizer.param_groups[0]["lr"])

    def gradient_norm(self) -> float | None:
        norm = None if self._norm_is_scaled else self._engine.get_global_grad_norm()
        return None if norm is None else float(norm)

    def end_epoch(self) -> None:
        self._engine.lr_scheduler.end_epoch()

    def save(self, directory: Path, save: Save, client: dict[str, Any]) -> None:
        save_deepspeed(self._engine, directory, save, client)

    def load(self, directory: Path, universal: Path | None) -> None:
        load_deepspeed_checkpoint(self._engine, directory, universal)


def experts_shared_by(model: torch.nn.Module) -> int:
    """How many ranks hold the experts of a model together, neighbours in rank; 1 without experts."""
    return max((getattr(module, "ep_size", 1) for module in model.modules()), default=1)


def save_deepspeed(engine: Any, directory: Path, save: Save, client: dict[str, Any]) -> None:
    """DeepSpeed's own checkpoint, as the folder deepspeed/, its files written by `save`."""
    from deepspeed.runtime.checkpoint_engine import TorchCheckpointEngine

    class Writer(TorchCheckpointEngine):
        def save(self, state_dict: Any, path: str) -> None:
            save(state_dict, Path(path))

    engine.checkpoint_engine = Writer()
    engine.save_checkpoint(str(directory), CHECKPOINT, client_state={"jobgen": client})


def load_deepspeed_checkpoint(engine: Any, directory: Path, universal: Path | None) -> None:
    """Raises TrainingFailure where DeepSpeed finds nothing: it would go on from the initial weights."""
    place = universal or directory / CHECKPOINT
    loaded, _ = engine.load_checkpoint(str(place.parent), place.name)
    if loaded is None:
        raise TrainingFailure(f"DeepSpeed found no checkpoint in {place}")


def deepspeed_config(config: dict[str, Any], device: Device, model: torch.nn.Module) -> dict[str, Any]:
    """The config as this device needs it. Raises CommonMistake for fp16 where DeepSpeed has none, and for
    a profile of more levels than the model has."""
    import deepspeed

    levels = 1 + max(name.count(".") + bool(name) for name, _ in model.named_modules())
    depth = config.get("flops_profiler", {}).get("module_depth", -1)
    if depth > levels:
        raise CommonMistake(f"flops_profiler.module_depth {depth}: the model has only {levels} levels")

    if enabled(config, "fp16") and not deepspeed.get_accelerator().is_fp16_supported():
        raise CommonMistake(f"DeepSpeed has no fp16 on this {device.kind}; bf16 works")
    if device.kind != "cpu":
        return config
    # DeepSpeed's own Adam, and the one for offloaded states, take a compiler and two minutes here;
    # torch's do the same.
    config = {"zero_force_ds_cpu_optimizer": False, **config}
    if optimizer_name(config) in ("adam", "adamw", "muon"):
        optimizer = config["optimizer"]
        config["optimizer"] = {**optimizer, "params": {"torch_adam": True, **optimizer.get("params", {})}}
    return config


@contextmanager
def mistakes_of_the_config() -> Iterator[None]:
    """Turn what DeepSpeed refuses, while it makes an engine of a config, into CommonMistake."""
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        what = f"{key} {first['input']!r}" if key else "what goes not together"
        raise CommonMistake(
            f"DeepSpeed refuses {what} in the config file ({error.title}): {first['msg']}"
        ) from None
    except Exception as error:
        # It checks with assertions where the parts of the config meet; elsewhere these are its own.
        frames = traceback.extract_tb(error.__traceback__)
        checking = any(frame.filename.endswith(CHECKERS) for frame in frames)
        if not checking and not isinstance(error, AssertionError | ValueError | NotImplementedError):
            raise
        said = " ".join(str(error).split()) or type(error).__name__
        where = f"{frames[-1].filename.rpartition('/site-packages/')[2]}, line {frames[-1].lineno}"
        raise CommonMistake(f"DeepSpeed cannot train with this config: {said} ({where})") from None


CHECKERS = ("deepspeed/runtime/config.py", "deepspeed/monitor/monitor.py")


def load_deepspeed(device: Device) -> Any:
    """Import deepspeed for this kind of device, so that it compiles nothing at run time, and tell it of
    the process group."""
    os.environ["DS_ACCELERATOR"] = device.type
    import deepspeed
    import deepspeed.ops
    import deepspeed.runtime.compiler

    if torch.distributed.get_rank():
        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)  # once is enough
    if device.kind == "cpu":
        # It would compile this collective for 90 s, with a compiler that may not be there. Setting
        # the whole table also saves the probe that would fill it.
        deepspeed.ops.__compatible_ops__ = {"deepspeed_shm_comm": False}
    if device.kind in ("cpu", "npu"):
        # Muon's module compiles its functions when it is imported: a minute, and that compiler again; for
        # NPUs torch has none.
        deepspeed.runtime.compiler.compile = lambda *args, **kwargs: lambda function: function
    _muon_for_matrices(deepspeed)
    deepspeed.init_distributed(dist_backend=device.backend, auto_mpi_discovery=False, verbose=False)
    return deepspeed


def _muon_for_matrices(deepspeed: Any) -> None:
    """Leave convolutions to Muon's Adam: DeepSpeed 0.19.8 flattens their update and then fails to add it."""
    own = deepspeed.set_optimizer_flags
    if own.__name__ == "flags":
        return

    def flags(config: Any, model: torch.nn.Module) -> None:
        own(config, model)
        for parameter in model.parameters():
            if (
                getattr(parameter, "use_muon", False)
                and len(getattr(parameter, "ds_shape", parameter.shape)) > 2
            ):
                parameter.use_muon = False  # type: ignore[attr-defined]

    deepspeed.set_optimizer_flags = flags
