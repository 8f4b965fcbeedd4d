"""Common parts of DeepSpeed's two engines: import, config, checkpoints, gradient norm and loss scale."""

import logging
import os
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from ..config.deepspeed.query import enabled, optimizer_name
from ..config.speed import DEEPSPEED_KERNELS
from ..device import Device
from ..errors import CommonMistake, TrainingFailure
from . import deepspeed_patches, optimizers
from .base import Adapters, Save

CHECKPOINT = "deepspeed"  # the folder of DeepSpeed's files in a checkpoint


class Common:
    """The base class of DeepSpeed's engines, around the engine that deepspeed.initialize returns.

    group: the ranks over which a pipeline divides the model, None without a pipeline; adapters: see base.Job

    DeepSpeed 0.19.8 provides the norm of the gradients except at ZeRO stage 0 in fp32 and autocast, and
    except with Muon. With Muon and experts or offload there is none. With
    autocast to fp16 and ZeRO it has two defects, which are corrected here. It leaves the loss scale in the
    norm, so that it would clip by a norm that is thousands of times too large. It does not lower the scale
    after an overflow, so that it would skip all later steps.
    """

    def __init__(self, engine: Any, group: Any = None, adapters: bool = False) -> None:
        self._engine, self._adapters = engine, adapters
        self._group = group
        self._clip = float(engine.gradient_clipping())
        self._scaler = getattr(engine.optimizer, "torch_autocast_gradscaler", None)
        self._scale = 1.0
        if adapters:  # DeepSpeed leaves out frozen weights, but not the second names of shared ones
            engine.module_state_dict = lambda **options: Adapters(engine.module).state_dict()
        self._clip_norm: torch.Tensor | None = None
        self._gradients: list[tuple[torch.nn.Parameter, torch.Tensor]] = []
        self._muon = engine.zero_optimization() and engine.optimizer_name() == "muon"
        has_norm = self._muon and not engine.has_moe_layers and not engine.zero_cpu_offload()
        self._muon_norm = MuonNorm(engine.optimizer, engine.zero_optimization_stage()) if has_norm else None
        self._own_norm = not (
            engine.zero_optimization() or engine.bfloat16_enabled() or engine.fp16_enabled()
        )
        if self._own_norm:
            self._parameters = list(engine.module.parameters())
            self._zero_gradients = engine.zero_grad
            engine.zero_grad = self._keep_gradients
            engine.clip_fp32_gradients = self._clip_gradients

    def before_step(self) -> None:
        """Called before each optimizer step of DeepSpeed."""
        self._gradients = []
        if self._scaler is not None:
            self._scale = self._scaler.get_scale()
            self._engine.optimizer.clip_grad = self._clip * self._scale

    def after_step(self) -> None:
        """Called after each optimizer step of DeepSpeed, which all ranks skip if a gradient is not finite.

        With a loss scale later steps go on; without one no later step would train anything.
        """
        if not getattr(self._engine.optimizer, "overflow", False):
            return
        if self._scaler is not None:
            self._scaler.update(self._scale * self._scaler.get_backoff_factor())
        elif not self._engine.fp16_enabled():
            step = self._engine.global_steps
            raise TrainingFailure(f"the gradients of step {step} are not finite: try a smaller --lr")

    def learning_rate(self) -> float:
        return float(self._engine.optimizer.param_groups[0]["lr"])

    def gradient_norm(self) -> torch.Tensor | float | None:
        if self._muon:
            return self._muon_norm.norm() if self._muon_norm else None
        if not self._own_norm:
            norm = self._engine.get_global_grad_norm()
            return None if norm is None else norm / self._scale
        if self._clip_norm is not None:
            return self._clip_norm
        return self._norm_of_gradients() if self._gradients else None

    def end_epoch(self) -> None:
        self._engine.lr_scheduler.end_epoch()

    def after_evaluation(self, metric: float) -> None:
        self._engine.lr_scheduler.after_evaluation(metric)

    def save(self, directory: Path, save: Save, client: dict[str, Any]) -> None:
        """Write DeepSpeed's own checkpoint into the folder deepspeed/. `save` writes its files."""
        from deepspeed.runtime.checkpoint_engine import TorchCheckpointEngine

        class Writer(TorchCheckpointEngine):  # type: ignore[misc]  # it has no types
            def save(self, state_dict: Any, path: str) -> None:
                save(state_dict, Path(path))

            def makedirs(self, path: str, exist_ok: bool = False) -> None:
                """Do nothing: `save` makes folders; an error here would leave other ranks waiting."""

        self._engine.checkpoint_engine = Writer()
        # Not copied for the same reason; the script is part of DeepSpeed.
        self._engine._copy_recovery_script = lambda path: None
        scaler = self._loss_scaler()
        state = {"jobgen": client, "scaler": scaler.state_dict() if scaler else None}
        self._engine.save_checkpoint(
            str(directory),
            CHECKPOINT,
            client_state=state,
            save_latest=False,
            exclude_frozen_parameters=self._adapters,
        )
        if torch.distributed.get_rank() == 0:
            (directory / "latest").write_text(CHECKPOINT)  # for DeepSpeed's tools

    def load(self, directory: Path, universal: Path | None) -> None:
        """Load a checkpoint of DeepSpeed.

        Raise TrainingFailure if DeepSpeed finds none. It would otherwise continue with the initial weights.
        """
        place = universal or directory / CHECKPOINT
        path, client = self._engine.load_checkpoint(
            str(place.parent), place.name, load_module_strict=not self._adapters
        )
        if path is None:
            raise TrainingFailure(f"DeepSpeed found no checkpoint in {place}")
        scaler = self._loss_scaler()
        if scaler and (client or {}).get("scaler"):  # DeepSpeed saves its own scaler, but not torch's
            scaler.load_state_dict(client["scaler"])

    def _loss_scaler(self) -> Any:
        """Return torch's GradScaler for autocast to fp16, or None."""
        return self._scaler or self._engine.torch_autocast_z0_gradscaler

    def _clip_gradients(self) -> None:
        from deepspeed.runtime.utils import clip_grad_norm_

        self._clip_norm = clip_grad_norm_(self._parameters, self._clip, mpu=self._engine.mpu)

    def _keep_gradients(self) -> None:
        """Set the gradients to None, but keep them until the next step, in case the norm is requested."""
        self._gradients = [(p, p.grad) for p in self._parameters if p.grad is not None]
        self._zero_gradients()

    def _norm_of_gradients(self) -> torch.Tensor:
        by_group: dict[str | None, list[torch.Tensor]] = {None: []}
        for parameter, gradient in self._gradients:
            if getattr(parameter, "ds_pipe_replicated", False):
                continue  # another stage has the same weights and counts them
            experts = (
                None if getattr(parameter, "allreduce", True) else getattr(parameter, "group_name", None)
            )
            by_group.setdefault(experts, []).append(gradient)
        total = torch.zeros((), device=self._engine.device)
        for experts, gradients in by_group.items():
            square = torch.nn.utils.get_total_norm(gradients).float() ** 2 if gradients else total * 0
            if experts is not None:
                from deepspeed.utils import groups

                distributed.all_reduce(square, group=groups._get_expert_parallel_group(experts))
            total += square
        if self._group is not None:
            distributed.all_reduce(total, group=self._group)
        return total.sqrt()


class MuonNorm:
    """Keeps the norm of the gradients before DeepSpeed 0.19.8 replaces them by Muon's update.

    optimizer: DeepSpeed's optimizer of ZeRO, without offload and without experts. Stage 3 replaces divided
    gradients. Stages 1 and 2 replace them when they divide them: here, they are divided a second time.
    """

    def __init__(self, optimizer: Any, stage: int) -> None:
        self._optimizer = optimizer
        self._squares: dict[int, torch.Tensor] = {}
        if stage == 3:
            self._replace = optimizer._apply_muon_to_accumulated_grads
            optimizer._apply_muon_to_accumulated_grads = self._before_replacing
        else:
            self._divide = optimizer.get_flat_partition
            optimizer.get_flat_partition = self._divide_twice

    def norm(self) -> float | None:
        """Return the norm of the last step over all ranks, a collective operation; None before a step."""
        if not self._squares:
            return None
        total = torch.stack([*self._squares.values()]).sum()
        distributed.all_reduce(total, group=self._optimizer.dp_process_group)
        return float(total.sqrt()) / float(self._optimizer.loss_scale)

    def _keep(self, group: int, gradients: Iterable[torch.Tensor]) -> None:
        self._squares[group] = torch.nn.utils.get_total_norm(gradients).float() ** 2

    def _before_replacing(self) -> None:
        for group, gradients in self._optimizer.averaged_gradients.items():
            self._keep(group, gradients)
        self._replace()

    def _divide_twice(self, parameters: list[Any], *args: Any, param_group_idx: int, **named: Any) -> Any:
        by_muon = [one for one in parameters if getattr(one, "use_muon", False)]
        for one in by_muon:
            one.use_muon = False
        self._keep(param_group_idx, self._divide(parameters, *args, param_group_idx=param_group_idx, **named))
        for one in by_muon:
            one.use_muon = True
        return self._divide(parameters, *args, param_group_idx=param_group_idx, **named)


def deepspeed_config(
    config: dict[str, Any], device: Device, model: torch.nn.Module | None = None, fused: str = "none"
) -> dict[str, Any]:
    """Return the config, adapted to this device. model: None if it is not made; fused: see config/speed.py.

    Raise CommonMistake for fp16 if DeepSpeed does not support it here, and for a flops profile with more
    levels than the model has.
    """
    import deepspeed

    names = model.named_modules() if model else ()
    levels = 1 + max((name.count(".") + bool(name) for name, _ in names), default=0)
    depth = config.get("flops_profiler", {}).get("module_depth", -1)
    if model and depth > levels:
        raise CommonMistake(f"flops_profiler.module_depth {depth}: the model has only {levels} levels")

    if enabled(config, "fp16") and not deepspeed.get_accelerator().is_fp16_supported():
        raise CommonMistake(f"DeepSpeed has no fp16 on this {device.kind}; bf16 works")
    if optimizers.is_users(config):
        config = {key: value for key, value in config.items() if key != "optimizer"}
        return {**config, "zero_force_ds_cpu_optimizer": False}
    # DeepSpeed's Adam, and the one for offloaded states, are compiled for minutes at the first use unless
    # they are installed. torch's optimizers give the same result.
    own, name, optimizer = fused == DEEPSPEED_KERNELS, optimizer_name(config), config["optimizer"]
    params = dict(optimizer.get("params", {}))
    if name in ("adam", "adamw"):
        params["torch_adam"] = not own
    elif name == "muon":
        params.setdefault("torch_adam", True)
    if not own and params.get("bias_correction", False):
        del params["bias_correction"]  # torch's always correct it
    if fused == "torch":
        params["fused"] = True
    defaults = {} if own else {"zero_force_ds_cpu_optimizer": False}
    return {**defaults, **config, "optimizer": {**optimizer, "params": params}}


def client_optimizer(config: dict[str, Any], model: torch.nn.Module) -> Any:
    """Return the function by which DeepSpeed makes the user's own optimizer; None for an optimizer by name.

    DeepSpeed calls it when the model is on its device and in its type.
    """
    return (lambda parameters: optimizers.build_users(config, model)) if optimizers.is_users(config) else None


@contextmanager
def mistakes_of_the_config() -> Iterator[None]:
    """Convert errors of DeepSpeed, while it makes an engine of a config, to CommonMistake."""
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        what = f"{key} {first['input']!r}" if key else "a combination"
        raise CommonMistake(
            f"DeepSpeed refuses {what} in the config of this run ({error.title}): {first['msg']}"
        ) from None
    except Exception as error:
        # DeepSpeed also checks with assertions, in all places where parts of the config are combined.
        frames = traceback.extract_tb(error.__traceback__)
        in_checker = any(frame.filename.endswith(CHECKERS) for frame in frames)
        is_assertion = isinstance(error, AssertionError | ValueError | NotImplementedError)
        if not in_checker and not (is_assertion and "/deepspeed/" in frames[-1].filename):
            raise
        if any(frame.name == "compute_capability_args" for frame in frames):
            text = f"DeepSpeed cannot read TORCH_CUDA_ARCH_LIST={os.environ.get('TORCH_CUDA_ARCH_LIST')}"
            raise CommonMistake(f"{text}: write numbers with a point, such as 8.0;9.0+PTX") from None
        text = " ".join(str(error).split()) or type(error).__name__
        where = f"{frames[-1].filename.rpartition('/site-packages/')[2]}, line {frames[-1].lineno}"
        raise CommonMistake(f"DeepSpeed cannot train with this config: {text} ({where})") from None


CHECKERS = ("deepspeed/runtime/config.py", "deepspeed/monitor/monitor.py")


def load_deepspeed(device: Device) -> Any:
    """Import deepspeed for this kind of device, initialise it with the process group, and return the module.

    It is patched so that it compiles nothing at run time.
    """
    os.environ["DS_ACCELERATOR"] = device.type
    import deepspeed
    import deepspeed.ops
    import deepspeed.runtime.compiler

    if torch.distributed.get_rank():
        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)  # rank 0 logs it
    if device.kind == "cpu":
        # DeepSpeed would compile this collective for 90 s, with a compiler that may be missing. Setting
        # the whole table also avoids the probe that would fill it.
        deepspeed.ops.__compatible_ops__ = {"deepspeed_shm_comm": False}
    if not device.row.compiles:
        # Muon's module compiles its functions when it is imported, which takes a minute on a CPU.
        deepspeed.runtime.compiler.compile = lambda *args, **kwargs: lambda function: function
    deepspeed_patches.apply(deepspeed)
    deepspeed.init_distributed(dist_backend=device.backend, auto_mpi_discovery=False, verbose=False)
    return deepspeed
