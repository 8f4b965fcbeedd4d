"""The fields of the form for the training module, made from the table of its options."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobgen.commands.web.form import Field, Word
from jobgen.jobfile.training_options import Schema, flag_of, key_of, rows
from jobgen.values.parsers import switch

PREFIX = "train."  # of the keys in the form: jobs have options of the same names
# The texts of the field of the program with which the page shows the fields, as a regular expression of
# JavaScript. The answers use takes_options.
APPLIES = r"^\s*(-(?!m\b)[\s\S]*|-m\s+jobgen\.train(\s+-[\s\S]*|\s*))?$"
_DEFAULT = re.compile(r"\(default: ([^;)]{1,25}?)(, or |[;)])")  # in the help
# Options that are not in the form, with the reason.
ABSENT: Mapping[str, str] = {
    "help": "prints the options",
    "deepspeed": "is ignored by the training module",
    "local_rank": "is set by launchers",
}
# The options that most trainings have, in the order of the form.
BASICS = ("task", "data", "model", "engine", "epochs", "batch_size", "lr", "precision")
# What an option is called in the form, where that is not its key.
_LABELS: Mapping[str, str] = {
    "dataset": "Data set of your own", "loss_by": "Loss is a mean over", "max_steps": "Steps, at most",
    "eval_every": "Steps between evaluations", "eval_steps": "Batches of an evaluation", "metric": "Metrics",
    "target_accuracy": "Accuracy to reach", "augment": "Augmentation", "normalize": "Normalisation",
    "workers": "Workers for data", "cache": "Cache of decoded data", "drop_last": "Drop the last batch",
    "batch_size": "Batch size of a device", "global_batch": "Global batch size",
    "explain": "Only explain memory", "explain_for": "Only explain, for ranks",
    "device_memory": "Memory of a device", "clip": "Gradient clipping", "ema": "Averaged weights",
    "lr": "Learning rate", "scale_lr": "Scaling with the ranks", "scheduler": "Learning rate schedule",
    "scheduler_unit": "Unit of the schedule", "gamma": "Factor of the schedule", "amp": "Level of apex",
    "matmul_precision": "Matrix products", "sync_batchnorm": "BatchNorm over all ranks",
    "bucket_mb": "MiB of an exchange", "plugin": "Plugin of ColossalAI", "initial_scale": "First loss scale",
    "zero_stage": "ZeRO stage", "stages": "Stages of the pipeline", "partition": "Division into stages",
    "deepspeed_config": "DeepSpeed config", "text_key": "Key of the text", "learn": "Learn from",
    "context": "Context length", "held_out": "Held out for evaluation", "size": "Size of the model",
    "heads": "Attention heads", "mlp": "Feedforward part", "recompute": "Recompute activations",
    "peak_tflops": "Peak TFLOPS of a device", "expert_parallel": "Ranks that share experts",
    "top_k": "Experts for a sample", "capacity": "Capacity of an expert", "residual": "Residual experts",
    "aux_weight": "Weight of load balancing", "init_from": "Weights to start from", "lora": "Rank of LoRA",
    "lora_alpha": "Alpha of LoRA", "lora_dropout": "Dropout of LoRA", "lora_targets": "Layers with LoRA",
    "log_every": "Steps between lines", "tensorboard": "TensorBoard", "csv": "Table of metrics",
    "logger": "Logger of your own", "wall_clock_breakdown": "Times within a step",
    "profile": "Steps to profile", "save_every": "Steps between checkpoints",
    "save_every_epochs": "Epochs between checkpoints", "async_save": "Save in the background",
    "checkpoint_dir": "Checkpoint directory", "keep": "Checkpoints to keep", "keep_best": "Keep the best by",
    "no_save": "No checkpoint at the end", "resume": "Resume from", "hang_timeout": "Longest time of a step",
}  # fmt: skip
OPTIONS: Mapping[str, Schema] = {key_of(row): row for row in rows() if row["group"] != "options"}


def basics() -> list[Field]:
    """Return the fields of the options that most trainings have."""
    return [_field(key) for key in BASICS]


def groups() -> dict[str, list[Field]]:
    """Return the other fields by the titles of their groups."""
    found: dict[str, list[Field]] = {}
    for key, row in OPTIONS.items():
        if key not in (*ABSENT, *BASICS):
            found.setdefault(row["group"][0].upper() + row["group"][1:], []).append(_field(key))
    return found


def value(key: str, text: str) -> object:
    """Return the text of a field as a value of the table [train].

    Raises:
        ValueError: a switch is neither yes nor no.
    """
    row = OPTIONS[key]
    if row.get("type") == "boolean":
        return switch(text)
    if row.get("several"):
        return [line for line in text.split("\n") if line.strip()]
    if text == "yes" and row.get("optional"):
        return True
    if ("type" in row or text in row.get("enum", ())) and re.fullmatch("[1-9][0-9]{0,8}|0", text):
        return int(text)
    if row.get("type") == "number" and re.fullmatch(r"[0-9]+\.[0-9]+", text) and str(float(text)) == text:
        return float(text)
    return text


def _field(key: str) -> Field:
    row = OPTIONS[key]
    bare = row.get("optional") and "enum" not in row
    about = row["help"][0].upper() + row["help"][1:] + "."
    about += " The value yes gives the option without a value." if bare else ""
    default = _DEFAULT.search(row["help"])
    forms = f"{', '.join(row['enum'][:3])}, ..." if "enum" in row else (row.get("metavar") or "")
    forms = f"yes|{forms}" if bare else forms
    words = ("yes",) if row.get("type") == "boolean" or bare else row.get("enum", ())
    return Field(
        PREFIX + key,
        _LABELS.get(key) or key.replace("_", " ").capitalize(),
        flag_of(key),
        about,
        _kind(row),
        tuple(map(Word, words)),
        f"default: {default[1]}" if default else forms.replace("|", " or "),
        code="PKG.MOD" in row.get("description", ""),
        empty="no" if row.get("optional") else f"default: {default[1]}" if default else "default",
    )


def _kind(row: Schema) -> str:
    if row.get("type") == "boolean":
        return "switch"
    if "enum" in row and "pattern" not in row:
        return "choice"
    if row.get("several"):
        return "lines"
    return "line" if row.get("optional") else row.get("type", "line")
