"""The options with their help and allowed values, group by group. Does not import torch.

An option that a DeepSpeed config file may also state has no default: None means not given.
"""

from pathlib import Path

from . import converters, finetuning, language
from .engine_colossalai import PLUGINS
from .engines import ENGINES
from .option_groups import Group, Parser
from .speed import COMPILE, FUSED, MATMUL

TASKS = ("digits", "mnist", "cifar10", "text")
LOSSES = ("cross_entropy", "mse", "bce", "l1", "nll", "model")
METRICS = ("accuracy", "perplexity", "mae")
MODELS = ("cnn", "mlp", "lenet", "resnet18", "moe", "gpt")
OPTIMIZERS = ("sgd", "adam", "adamw", "lamb", "muon")
PRECISIONS = ("fp32", "bf16", "fp16", "autocast", "autocast-fp16")
AMP_LEVELS = ("O0", "O1", "O2", "O3")


def parser() -> Parser:
    result = Parser(
        prog="python -m jobgen.train",
        description="Train a network, one process per device, under any launcher.",
        epilog="Exit status: 0 finished, 1 failed, 2 bad input, 3 below --target-accuracy, 4 checkpoints "
        "cannot be written, 75 not finished but resumable. More: python -m jobgen.train export --help, "
        "evaluate --help and sample --help; python -m jobgen.train preflight checks the hosts and exits with "
        "74 for a fault.",
        allow_abbrev=False,
    )
    groups = {
        "task": task,
        "length and evaluation": length,
        "data": data,
        "batch": batch,
        "optimizer": optimizer,
        "learning rate": learning_rate,
        "precision": precision,
        "speed": speed,
        "engine": engine,
        "text (--task text)": language.text,
        "transformer (--model gpt)": language.gpt,
        "mixture of experts (--model moe)": experts,
        "fine-tuning": finetuning.options,
        "watching": observation,
        "checkpoints and survival": checkpoints,
        "launchers": launchers,
    }
    for title, fill in groups.items():
        fill(Group(result.add_argument_group(title)))
    return result


def task(add: Group) -> None:
    add.choice("--task", TASKS, "digits (of scikit-learn), mnist, cifar10 or text (default: digits)")
    add.value(
        "--dataset PKG.MOD:NAME",
        converters.own,
        "instead of --task: your own function that returns the data, see data/own.py; "
        "called with --data if it takes an argument",
    )
    add.value(
        "--data PATH",
        converters.paths,
        "directory of mnist or cifar10; files or directories of text; nothing is downloaded",
        nargs="+",
    )
    add.value(
        f"--model {'|'.join((*MODELS, 'PKG.MOD:NAME', 'hf:DIR'))}",
        converters.model(MODELS),
        "cnn (small conv net, the default for images), mlp, lenet (of PyTorch's tutorial), resnet18 "
        "(for CIFAR), moe (cnn with experts), gpt (transformer, the default for text); PKG.MOD:NAME is your "
        "own function, called with the shape of an input and the number of outputs; hf:DIR is a model of "
        "transformers",
    )
    add.value(
        f"--loss {'|'.join((*LOSSES, 'PKG.MOD:FN'))}",
        converters.name_or_own(LOSSES),
        "what is minimised (default: that of the data; images: cross_entropy): model is the model's own "
        "loss; PKG.MOD:FN is your own function of outputs and targets",
    )
    add.choice(
        "--loss-by",
        ("sample", "token"),
        "what the loss is a mean over: the samples of a step, each of which is a mean over its tokens, or "
        "all tokens of a step (default: token for text, otherwise sample)",
    )
    add.count("--seed", "initial weights and order of samples (default: 0)", least=0, default=0)


def length(add: Group) -> None:
    add.count("--epochs", "passes over the training set (default: 10, or as many as --max-steps needs)")
    add.count("--max-steps", "end after N optimizer steps in all, or after --epochs, if that is earlier")
    add.count("--eval-every", "evaluate after every N optimizer steps, too, not only after each epoch")
    add.count(
        "--eval-steps",
        "evaluate on the first N global batches of the test samples (default: all); `evaluate` takes all",
    )
    add.value(
        f"--metric {'|'.join((*METRICS, 'PKG.MOD:FN'))}",
        converters.metrics(METRICS),
        "what the evaluation measures beside the loss, separated by commas (default: that of the data; "
        "images: accuracy)",
    )
    add.count(
        "--early-stopping",
        "end after N evaluations without an improvement of the metric of --keep-best, or of the loss",
    )
    add.value(
        "--target-accuracy X",
        converters.fraction,
        "exit with status 3 if the accuracy of the last evaluation is below X, such as 0.97",
    )


def data(add: Group) -> None:
    add.value(
        "--augment crop,flip",
        converters.augmentation,
        "change each training image at random: crop (after padding by an eighth of its height; "
        "crop:N for N pixels) and flip (left and right)",
        default=(),
    )
    add.value(
        "--normalize MEAN:STD",
        converters.normalization,
        "normalise images with this mean and standard deviation, on a scale of 0 to 1: one value "
        "each, or one for each channel, separated by commas (default: those of the data set)",
    )
    add.count(
        "--workers",
        "prepare batches in this number of threads, from images in the host's memory, or of processes, "
        "for data sets in Python (default: 0, or that of a DataLoader; 0: all images are on the device)",
        least=0,
    )
    add.value(
        "--cache DIR",
        converters.path,
        "keep the decoded arrays in this directory of the host, and read them from there later",
    )
    add.flag(
        "--drop-last",
        "leave out the samples at the end of an epoch that do not fill a global batch "
        "(default: the last step of an epoch is smaller)",
    )


def batch(add: Group) -> None:
    add.count("--batch-size", "micro batch: samples per device and forward pass (default: 32)")
    add.count("--accumulation", "forward passes per optimizer step (default: 1)")
    add.count(
        "--global-batch",
        "samples per optimizer step: --batch-size x --accumulation x data-parallel ranks; "
        "two of the three determine the third",
    )
    add.switch("--explain", "print the arithmetic and the memory of each stage, then exit")
    add.value(
        "--explain-for NODESxRANKS",
        converters.shape,
        "like --explain, for this number of nodes and ranks per node, in one process",
    )
    add.value(
        "--device-memory GIB",
        converters.positive,
        "with --explain: memory of a device (default: that of this host's device)",
    )


def optimizer(add: Group) -> None:
    add.value(
        f"--optimizer {'|'.join((*OPTIMIZERS, 'PKG.MOD:FN'))}",
        converters.name_or_own(OPTIMIZERS),
        "optimizer (default: adam); lamb needs a GPU; PKG.MOD:FN is your own function, called with the "
        "model and, if it has this parameter, with lr; it returns an optimizer of torch",
    )
    add.value("--momentum X", converters.real, "momentum of sgd (default: 0.9) and muon (0.95)")
    add.value("--betas X,X", converters.betas, "betas of adam, adamw and lamb (default: 0.9,0.999)")
    add.value("--weight-decay X", converters.real, "weight decay (default: 0)")
    add.value("--clip X", converters.real, "clip the norm of the gradients (default: 1; 0: none)")
    add.value("--ema X", converters.decay, "evaluate averaged weights, with this decay, such as 0.99")


def learning_rate(add: Group) -> None:
    add.value("--lr X", converters.positive, "learning rate (default: 0.002; sgd 0.05, muon 0.02)")
    add.choice(
        "--scale-lr",
        ("none", "linear", "sqrt"),
        "multiply --lr by the number of data-parallel ranks, or by its square root (default: none)",
        "none",
    )
    add.value(
        f"--scheduler {'|'.join((*converters.SCHEDULERS, 'PKG.MOD:NAME'))}",
        converters.scheduler,
        "schedule of the learning rate (default: none); plateau reduces it if the metric of --keep-best "
        "or the loss of the evaluation no longer improves; PKG.MOD:NAME is your own function or class: with "
        "an argument 'step' it returns the factor on --lr for a step, otherwise it is called with the "
        "optimizer and returns an object with step(), or with step(metric), which is called after each "
        "evaluation",
    )
    add.choice(
        "--scheduler-unit",
        ("batch", "epoch"),
        "step the scheduler after each batch or each epoch; its numbers count these (default: batch)",
        "batch",
    )
    add.count("--warmup-steps", "steps of the warm-up (default: a tenth of all)")
    add.value("--milestones N,N,...", converters.wholes, "multistep: steps at which the rate decreases")
    add.value("--gamma X", converters.positive, "multistep and plateau: factor on the rate (default: 0.1)")
    add.count(
        "--patience",
        "plateau: evaluations without an improvement that do not reduce the rate yet (default: 10)",
        least=0,
    )


def precision(add: Group) -> None:
    add.choice(
        "--precision",
        PRECISIONS,
        "fp32; bf16 or fp16 weights with an fp32 master copy; autocast: torch casts per operation, to bf16 "
        "or, with dynamic loss scaling, to fp16 (default: fp32)",
    )
    add.choice(
        "--amp",
        AMP_LEVELS,
        "levels of NVIDIA's retired apex: O0 is fp32, O1 autocast, O2 bf16, O3 bf16 without a master copy",
    )


def speed(add: Group) -> None:
    add.value(
        f"--compile {'|'.join(COMPILE)}",
        converters.one_of(COMPILE),
        "ddp, fsdp and deepspeed: compile the model with torch.compile, in this mode (default: not); "
        "reduce-overhead and max-autotune record CUDA graphs",
        nargs="?",
        const=COMPILE[0],
    )
    add.choice(
        "--channels-last",
        ("on", "off"),
        "memory format of images (default: on for convolutions on NVIDIA and AMD GPUs, not in plain fp32)",
    )
    add.choice(
        "--matmul-precision",
        MATMUL,
        "torch's precision of matrix products in fp32: highest is fp32, high TF32, medium bf16 "
        "(default: high on NVIDIA GPUs, otherwise highest)",
    )
    add.choice(
        "--fused-optimizer",
        FUSED,
        "kernels of the optimizer (default: torch on GPUs, otherwise none); deepspeed: FusedAdam, or with "
        "--offload DeepSpeedCPUAdam, which are compiled at the first use unless they are installed",
    )
    add.flag("--sync-batchnorm", "ddp, fsdp and deepspeed on GPUs: BatchNorm averages over all ranks")
    add.flag(
        "--deterministic",
        "only kernels that repeat their results: then a resumed run is exact on a GPU, too",
    )
    add.flag("--static-graph", "ddp: each step uses the same parameters in the same order")
    add.count("--bucket-mb", "ddp: MiB of gradients per exchange (default: 25)")


def engine(add: Group) -> None:
    add.choice(
        "--engine",
        tuple(ENGINES),
        "deepspeed (data parallel, ZeRO), pipeline (DeepSpeed's, of an nn.Sequential), ddp (plain torch), "
        "fsdp (torch's sharding of weights and states) or colossalai (in a separate environment) (default: "
        "deepspeed)",
    )
    add.choice("--plugin", PLUGINS, "colossalai: plug-in of the Booster (default: torch_ddp)")
    add.value(
        "--initial-scale X",
        converters.positive,
        "colossalai in fp16: first loss scale, as initial_scale of its plug-ins (default: 65536)",
    )
    add.value(
        "--zero-stage 0..3",
        converters.stage,
        "what DeepSpeed's ZeRO shards over the ranks: 0 nothing (default), 1 optimizer "
        "states, 2 also gradients, 3 also weights; fsdp: 3 (default), or 2 to gather the weights only once "
        "a step",
    )
    add.choice(
        "--offload",
        ("none", "optimizer", "all"),
        "keep optimizer states (ZeRO 1 to 3), or the weights too (ZeRO 3), in the host's memory",
    )
    add.count("--stages", "pipeline: number of stages (default: all ranks)")
    add.value(
        "--partition parameters|uniform|type:REGEX",
        converters.partition,
        "pipeline: what is balanced over the stages: parameters (default), layers, or layers of a class",
    )
    add.option(
        "--deepspeed_config",
        "--deepspeed-config",
        type=converters.path,
        metavar="FILE",
        help="DeepSpeed's JSON config, for every engine; options override it",
    )


def experts(add: Group) -> None:
    add.count("--experts", "number of experts (default: 4)")
    add.count("--expert-parallel", "ranks that share the experts (default: 1)")
    add.value("--top-k 1|2", converters.whole(1), "experts per sample (default: 1)")
    add.value("--capacity X", converters.positive, "capacity factor of an expert (default: 1)")
    add.count("--min-capacity", "minimum capacity, in samples (default: 4)", least=0)
    add.flag("--residual", "PR-MoE: a dense layer beside the experts")
    add.choice("--noisy-gate", ("none", "rsample", "jitter"), "noise in the gate while training")
    add.value("--aux-weight X", converters.real, "weight of the load-balancing loss (default: 0.01)")


def observation(add: Group) -> None:
    add.count(
        "--log-every",
        "steps between two lines of metrics (default: 10, or steps_per_print of the config file)",
    )
    add.value(
        "--tensorboard DIR",
        converters.path,
        "write TensorBoard's event files there (default: tensorboard in the run directory)",
        nargs="?",
        const=Path("tensorboard"),
    )
    add.value(
        "--csv FILE",
        converters.path,
        "also write the metrics as a table (default: metrics.csv in the run directory)",
        nargs="?",
        const=Path("metrics.csv"),
    )
    add.value(
        "--logger PKG.MOD:NAME",
        converters.own,
        "your own function, called on rank 0 as NAME(directory, options); it returns a function that is "
        "called as write(event, values) with each line of metrics.jsonl, and at the end with the exit status",
    )
    add.switch(
        "--wall-clock-breakdown",
        "measure the time of each part of a step; waits for the device, which makes steps slower",
    )
    add.value(
        "--profile STEPS",
        converters.whole(1),
        "record this number of steps (5) with torch's profiler, after two steps of the first epoch: "
        "a trace for each rank and a table of rank 0 in the run directory",
        nargs="?",
        const=5,
    )


def checkpoints(add: Group) -> None:
    add.count("--save-every", "save a checkpoint after every N optimizer steps, too")
    add.count("--save-every-epochs", "save a checkpoint after every N epochs, too")
    add.flag(
        "--async-save",
        "ddp and fsdp: copy the states to the host's memory, and write them while the training goes on",
    )
    add.value(
        "--checkpoint-dir DIR",
        converters.path,
        "directory of the checkpoints (default: checkpoints in the run directory)",
    )
    add.count("--keep", "keep only the N newest checkpoints (default: all)")
    add.value(
        "--keep-best METRIC",
        converters.metric,
        "save a checkpoint after each evaluation that is the best so far by this metric (loss, accuracy "
        "or another one of the run), name it in the file best, and keep it beside those of --keep",
    )
    add.switch(
        "--no-save",
        "save no checkpoint at the end of the training (default: one, also without --save-every)",
    )
    add.value(
        "--resume ID|DIR",
        converters.checkpoint,
        "resume from a checkpoint: the latest in --checkpoint-dir, the one with this id, such as "
        "step-000123, or the one (or the latest) in this directory",
        nargs="?",
        const="latest",
    )
    add.value(
        "--hang-timeout TIME",
        converters.seconds,
        "hang timeout, such as 90s, 30m or 2h: after this time without a step, write the stacks of all "
        "ranks and exit with status 75 (default: 30m, or JOBGEN_HANG_TIMEOUT; 0: none)",
    )


def launchers(add: Group) -> None:
    add.switch("--deepspeed", "ignored, for scripts of DeepSpeed; see --engine")
    add.option("--local_rank", "--local-rank", type=int, metavar="N", help="set by launchers")
