"""The options of the group "speed", and their defaults for each kind of device.

The defaults are fields of the rows in accelerators.py. Does not import torch.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..accelerators import ACCELERATORS, Accelerator
from ..errors import CommonMistake
from .deepspeed.query import Config, optimizer_name, precision
from .engines import option_of, spec_of
from .settings import Settings

COMPILE = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
CUDA_GRAPHS = ("reduce-overhead", "max-autotune")  # the modes that record them
MATMUL = ("highest", "high", "medium")
FUSED = NO_KERNELS, TORCH_KERNELS, DEEPSPEED_KERNELS = ("none", "torch", "deepspeed")
# The optimizers of torch that have a fused kernel, and those of DeepSpeed.
TORCH_FUSED, DEEPSPEED_FUSED = ("adam", "adamw", "sgd"), ("adam", "adamw")


@dataclass(frozen=True)
class Speed:
    """The resolved settings of a run.

    compile: mode of torch.compile, '' for none; channels_last: memory format of images and convolutions
    matmul: torch's precision of fp32 matrix products, one of MATMUL; fused: kernel of the optimizer, one of
    FUSED; benchmark: cuDNN measures its algorithms; deterministic: only kernels that repeat their results
    static_graph, bucket_mb: of DistributedDataParallel
    """

    compile: str = ""
    channels_last: bool = False
    matmul: str = "highest"
    fused: str = "none"
    benchmark: bool = False
    deterministic: bool = False
    sync_batchnorm: bool = False
    static_graph: bool = False
    bucket_mb: int | None = None


def resolve(config: Config, settings: Settings, kind: str) -> Speed:
    """Return the speed settings for a kind of device. Raise CommonMistake for one that cannot work."""
    row = ACCELERATORS[kind]
    for reason in _reasons(config, settings, kind, row):
        raise CommonMistake(reason)
    half = precision(config) != "fp32" or row.matmul != "highest"
    faster = row.channels_last and half and settings.task != "text"
    channels_last = settings.channels_last == "on" if settings.channels_last else faster
    return Speed(
        compile=settings.compile or "",
        channels_last=channels_last,
        matmul=settings.matmul_precision or row.matmul,
        fused=settings.fused_optimizer or _fused(config, settings, row),
        benchmark=row.benchmark and not settings.deterministic,
        deterministic=bool(settings.deterministic),
        sync_batchnorm=bool(settings.sync_batchnorm),
        static_graph=bool(settings.static_graph),
        bucket_mb=settings.bucket_mb,
    )


def _fused(config: Config, settings: Settings, row: Accelerator) -> str:
    """Return the default kernel of the optimizer: that of DeepSpeed only if the file asks for it."""
    params = config["optimizer"].get("params", {})
    if spec_of(settings).own_optimizers or optimizer_name(config) not in TORCH_FUSED:
        return "none"
    if params.get("torch_adam") is False or config["zero_optimization"].get("zenflow"):
        return "deepspeed"
    return "none" if params.get("foreach") else row.fused


def _reasons(config: Config, settings: Settings, kind: str, row: Accelerator) -> Iterator[str]:
    """Yield the reasons why the options cannot work on this kind of device."""
    spec, name = spec_of(settings), optimizer_name(config)
    if settings.compile and not spec.compiles:
        yield f"--compile needs {option_of(lambda each: each.compiles)}, not {settings.engine}"
    if settings.compile and row.compiler is None:
        yield f"--compile: torch has no compiler for {kind} devices"
    if settings.compile and settings.static_graph:
        yield "--static-graph cannot be combined with --compile, which divides the graph at DDP's buckets"
    if settings.static_graph and config["gradient_accumulation_steps"] > 1:
        yield "--static-graph needs --accumulation 1: its passes must all exchange gradients"
    deepcompile = (config.get("compile") or {}).get("deepcompile")
    if settings.compile and deepcompile and not row.deepspeed_kernels:
        yield f"the config file's compile.deepcompile needs CUDA devices, not {kind}"
    if settings.sync_batchnorm and not row.sync_batchnorm:
        yield f"--sync-batchnorm: torch has it for GPUs, not for {kind}"
    yield from _batch_norm(config, settings)
    if settings.fused_optimizer in (TORCH_KERNELS, DEEPSPEED_KERNELS):
        yield from _kernels(settings, name, kind, row)


def _batch_norm(config: Config, settings: Settings) -> Iterator[str]:
    if not settings.sync_batchnorm:
        return
    if not spec_of(settings).compiles:
        yield f"--sync-batchnorm needs {option_of(lambda each: each.compiles)}, not {settings.engine}"
    if precision(config) in ("bf16", "fp16", "pure-bf16") and spec_of(settings).casts_weights:
        yield (
            f"--sync-batchnorm needs --precision fp32 or autocast, not {precision(config)}: --engine "
            f"{settings.engine} casts the weights of BatchNorm, but not its running statistics"
        )


def _kernels(settings: Settings, name: str, kind: str, row: Accelerator) -> Iterator[str]:
    kernels, spec = settings.fused_optimizer, spec_of(settings)
    if spec.own_optimizers:
        yield f"--fused-optimizer {kernels} is not for --engine {settings.engine}: {spec.own_optimizers}"
    optimizers = TORCH_FUSED if kernels == TORCH_KERNELS else DEEPSPEED_FUSED
    if name not in optimizers:
        yield f"--fused-optimizer {kernels} is for {', '.join(optimizers)}, not for {name}"
    if kernels == DEEPSPEED_KERNELS and not spec.runs_deepspeed:
        yield f"--fused-optimizer deepspeed needs --engine deepspeed or pipeline, not {settings.engine}"
    if kernels == DEEPSPEED_KERNELS and not row.deepspeed_kernels:
        yield f"--fused-optimizer deepspeed needs CUDA devices, not {kind}: use --fused-optimizer torch"
    if kernels == TORCH_KERNELS and not row.torch_fused:
        yield f"--fused-optimizer torch: torch has no fused kernels for {kind} devices"


def line(speed: Speed, config: Config, kind: str) -> str:
    """Return one line that names the settings."""
    name = optimizer_name(config)
    words = [
        f"compiled ({speed.compile})" if speed.compile else "not compiled",
        f"fp32 matrix products {speed.matmul}",
        f"optimizer {name} {'plain' if speed.fused == 'none' else f'fused by {speed.fused}'}",
        *(["channels_last"] if speed.channels_last else []),
        *(["cudnn.benchmark"] if speed.benchmark else []),
        *(["deterministic kernels"] if speed.deterministic else []),
        *(["SyncBatchNorm"] if speed.sync_batchnorm else []),
        *(["static graph"] if speed.static_graph else []),
        *([f"buckets of {speed.bucket_mb} MiB"] if speed.bucket_mb else []),
    ]
    return f"speed on {kind}: {', '.join(words)}"
