"""python -m jobgen.train export CKPT OUT: the trained weights of a checkpoint, for other programs.

OUT.pt or OUT.safetensors is one plain-torch state_dict: its keys are the model's own, its values on the CPU,
floats in fp32, `model.load_state_dict(torch.load(OUT))`. A directory OUT is for `from_pretrained`: that of
transformers with --format hf, for a model hf:DIR, or that of peft with --format peft. The adapters of a run
with --lora are added to the weights, except with --format peft.

OUT.json, or jobgen.json in a directory of transformers, has the task and the model. Its key rounded_to has
the dtype of weights in half precision of which the checkpoint has no fp32 copy: those of experts, and those
without a master copy (amp O3).
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from .. import atomic, checkpoints
from ..checkpoints import whole
from ..checkpoints.directory import Checkpoint
from ..checkpoints.whole import Weights
from ..config import commands, finetuning, to_record
from ..config.converters import is_hf
from ..errors import BadInput, CommonMistake
from ..models import hf, lora
from . import trained


def main(argv: Sequence[str]) -> None:
    """Export the weights of the checkpoint that `argv` names.

    Raise BadInput if the checkpoint does not exist or is damaged, or if it lacks the requested averaged
    weights or adapters.
    """
    options = commands.export().parse_args(argv)
    _check_output(options.output, options.format)
    checkpoint, output = checkpoints.at(options.checkpoint), options.output
    state = whole.combine(checkpoint, options.ema)
    facts = _facts(checkpoint, state, options.ema)
    model = trained.Trained(
        checkpoint.directory, finetuning.restored(checkpoint.settings), whole.in_fp32(state), checkpoint
    )
    if options.format == commands.PEFT:
        _adapter(model, checkpoint, output)
    elif options.format == commands.STATE_DICT:
        adapters = model.settings.lora is not None
        write(
            whole.in_fp32(_merged(model, checkpoint).state_dict()) if adapters else whole.in_fp32(state),
            output,
        )
        atomic.write_json(trained.description(output), facts)
    else:
        _directory(model, checkpoint, output, options.max_shard_size, facts)
    files = [output] if output.is_file() else [each for each in output.iterdir() if each.is_file()]
    size = sum(file.stat().st_size for file in files)
    print(f"{checkpoint.directory} -> {output}: {size} bytes")


def _check_output(output: Path, form: str) -> None:
    """Raise CommonMistake if the output cannot have this format."""
    if form == commands.STATE_DICT:
        if output.suffix not in commands.SUFFIXES:
            raise CommonMistake(
                f"OUT: {str(output)!r} does not end in {' or '.join(commands.SUFFIXES)}; a directory needs "
                "--format hf or peft"
            )
    elif output.exists() and (output.is_file() or any(output.iterdir())):
        raise CommonMistake(f"--format {form}: {output} exists, and is not an empty directory")


def _facts(checkpoint: Checkpoint, state: Weights, ema: bool) -> dict[str, Any]:
    """Return what is said of an exported model: its adapters are in its weights."""
    halves = {str(each.dtype) for each in state.values() if each.is_floating_point()} - {"torch.float32"}
    facts = {key: checkpoint.record[key] for key in ("id", "shape", "classes", "progress")}
    settings = to_record(finetuning.merged(checkpoint.settings))
    return {**facts, "settings": settings, "ema": ema, "rounded_to": min(halves, default=None)}


def _model(model: trained.Trained, checkpoint: Checkpoint) -> nn.Module:
    return trained.model_with(
        model, checkpoint.record["shape"], checkpoint.record["outputs"], trained.alone()
    )


def _merged(model: trained.Trained, checkpoint: Checkpoint) -> nn.Module:
    network = _model(model, checkpoint)
    return lora.merge(network) if model.settings.lora else network


def _adapter(model: trained.Trained, checkpoint: Checkpoint, output: Path) -> None:
    """Write the adapters of a run with --lora to a directory for peft."""
    settings = model.settings
    if settings.lora is None:
        raise CommonMistake(f"--format peft: {checkpoint.directory} has no adapters: its run had no --lora")
    base = settings.init_from or settings.model.removeprefix("hf:")
    network = _model(model, checkpoint)
    with _new_directory(output) as draft:
        lora.save(network, str(base), draft)


def _directory(
    model: trained.Trained, checkpoint: Checkpoint, output: Path, shard: str, facts: dict[str, Any]
) -> None:
    """Write the whole model to a directory for from_pretrained of transformers."""
    if not is_hf(model.settings.model):
        raise CommonMistake(
            f"--format hf is for --model hf:DIR, and {checkpoint.directory} is of {model.settings.model}: "
            "write a file.pt or .safetensors"
        )
    network = _merged(model, checkpoint)
    with _new_directory(output) as draft:
        hf.save(network, model.settings, draft, shard)
        atomic.write_json(draft / trained.ABOUT, facts)


@contextmanager
def _new_directory(output: Path) -> Iterator[Path]:
    """Yield a directory beside `output`, which becomes `output` when the context ends without an error."""
    draft = output.with_name(f".{output.name}.writing")
    shutil.rmtree(draft, ignore_errors=True)
    with _errors_of_the_disk(output):
        try:
            draft.mkdir()
            yield draft
            for file in draft.iterdir():
                atomic.apply_umask(file)
            if output.is_dir():
                output.rmdir()
            draft.rename(output)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def write(state: Weights, file: Path) -> None:
    """Write `state` to `file` in the format of its suffix. Raise BadInput if it cannot be written."""
    draft = file.with_name(f".{file.name}.writing")
    with _errors_of_the_disk(file):
        try:
            if file.suffix == ".safetensors":
                save_file(state, draft)
            else:
                torch.save(state, draft)
            atomic.apply_umask(draft)
            os.replace(draft, file)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def _errors_of_the_disk(output: Path) -> Iterator[None]:
    """Convert the errors of writing `output` to BadInput. torch and safetensors have types of their own."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise BadInput(f"{output} cannot be written: {reason}") from None
