"""The values of the options."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import CommonMistake


@dataclass(frozen=True)
class Settings:
    """The values of the options, under their names in options.py.

    None means that the option was not given: a DeepSpeed config file, or a default that depends on other
    options, then determines the value. task holds the value of --dataset if that is given.
    """

    task: str
    data: tuple[Path, ...] | None
    model: str
    loss: str | None
    loss_by: str | None
    metric: tuple[str, ...] | None
    epochs: int
    max_steps: int | None
    eval_every: int | None
    eval_steps: int | None
    seed: int
    log_every: int | None

    augment: tuple[str, ...]
    normalize: tuple[float, ...] | None
    workers: int | None
    cache: Path | None
    drop_last: bool | None

    batch_size: int | None
    accumulation: int | None
    global_batch: int | None
    explain: bool
    explain_for: tuple[int, int] | None
    device_memory: float | None

    optimizer: str | None
    lr: float | None
    scale_lr: str
    momentum: float | None
    betas: tuple[float, ...] | None
    weight_decay: float | None
    clip: float | None
    ema: float | None
    scheduler: str | None
    scheduler_unit: str
    warmup_steps: int | None
    milestones: tuple[int, ...] | None
    gamma: float | None
    patience: int | None

    precision: str | None
    amp: str | None

    compile: str | None
    channels_last: str | None
    matmul_precision: str | None
    fused_optimizer: str | None
    sync_batchnorm: bool | None
    deterministic: bool | None
    static_graph: bool | None
    bucket_mb: int | None

    engine: str
    plugin: str | None
    initial_scale: float | None
    zero_stage: int | None
    offload: str | None
    stages: int | None
    partition: str | None
    deepspeed_config: Path | None

    experts: int | None
    expert_parallel: int | None
    top_k: int | None
    capacity: float | None
    min_capacity: int | None
    residual: bool | None
    noisy_gate: str | None
    aux_weight: float | None

    tensorboard: Path | None
    csv: Path | None
    logger: str | None
    wall_clock_breakdown: bool
    profile: int | None

    save_every: int | None
    save_every_epochs: int | None
    async_save: bool | None
    checkpoint_dir: Path | None
    keep: int | None
    keep_best: str | None
    no_save: bool
    early_stopping: int | None
    resume: str | None
    target_accuracy: float | None

    hang_timeout: float | None
    local_rank: int | None

    tokenizer: Path | None
    text_key: str | None
    learn: str | None
    chat_template: Path | None
    documents: str | None
    context: int | None
    held_out: float | None
    size: str | None
    layers: int | None
    width: int | None
    heads: int | None
    mlp: str | None
    recompute: bool | None
    peak_tflops: float | None

    init_from: Path | None
    lora: int | None
    lora_alpha: float | None
    lora_dropout: float | None
    lora_targets: tuple[str, ...] | None
    attention: str | None

    @property
    def has_experts(self) -> bool:
        """True if the model has DeepSpeed's mixture of experts."""
        return self.model == "moe" or (self.model == "gpt" and self.experts is not None)


MOE_OPTIONS = (
    *("experts", "expert_parallel", "top_k", "capacity", "min_capacity", "residual", "noisy_gate"),
    "aux_weight",
)


PATHS = (
    *("data", "cache", "tokenizer", "chat_template", "deepspeed_config", "tensorboard", "csv"),
    *("checkpoint_dir", "init_from"),
)


def only(settings: Settings, options: Iterable[str], fits: bool, what: str, instead: str) -> None:
    """Raise CommonMistake if one of the options is given, and the run has no use for it."""
    for name in options:
        if getattr(settings, name) is not None and not fits:
            raise CommonMistake(f"--{name.replace('_', '-')} is for {what}, not for {instead}")


def to_record(settings: Settings) -> dict[str, Any]:
    """Return the settings as values for JSON. Paths are absolute."""
    return {key: _plain(value) for key, value in asdict(settings).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return str(value.absolute()) if isinstance(value, Path) else value
