"""The options of the commands that do not train: export, evaluate and sample."""

from .converters import fraction, one_of, out_path, path, paths, real, size, whole
from .option_groups import Group, Parser

SUFFIXES = (".pt", ".safetensors")
FORMATS = STATE_DICT, HF, PEFT = ("state_dict", "hf", "peft")
RUNNERS = ("torch", "deepspeed")


def export() -> Parser:
    about = "Write the trained weights of a checkpoint to OUT, for other programs."
    parser = Parser(prog="python -m jobgen.train export", description=about)
    add = Group(parser)
    add.value("checkpoint CKPT", path, "a checkpoint, or a run directory")
    add.value("output OUT", out_path, "file.pt or .safetensors, or a directory")
    add.choice(
        "--format",
        FORMATS,
        "a file with one plain-torch state_dict (default); hf: a directory of transformers, for hf:DIR; "
        "peft: a directory with the adapters of --lora, which the others add to the weights",
        STATE_DICT,
    )
    add.value(
        "--max-shard-size SIZE",
        size,
        "hf: divide the weights into files of at most this size, such as 500MB (default: 5GB)",
        default="5GB",
    )
    add.switch("--ema", "the averaged weights of a run with --ema")
    return parser


def evaluate() -> Parser:
    about = "Evaluate a checkpoint or exported weights on the test set of its task, on one rank or several."
    parser = Parser(prog="python -m jobgen.train evaluate", description=about)
    add = Group(parser)
    add.value("source CKPT|EXPORTED", path, "a checkpoint, a run directory, an exported file")
    add.value(
        "--with torch|deepspeed",
        one_of(RUNNERS),
        "plain torch (default), or DeepSpeed's inference engine",
        dest="with_",
        default="torch",
    )
    add.switch("--ema", "the averaged weights of a run with --ema")
    add.value("--data PATH", paths, "the files of the data, if changed")
    add.count("--batch-size", "default: 256", default=256)
    add.count("--show", "print the classes of N samples, too")
    add.value("--target-accuracy X", fraction, "exit with status 3 below X")
    return parser


def sample() -> Parser:
    about = "Let a language model go on with a text, in one process."
    parser = Parser(prog="python -m jobgen.train sample", description=about)
    add = Group(parser)
    add.value("source CKPT|EXPORTED", path, "a checkpoint, a run directory, an exported file")
    add.option("--prompt", metavar="TEXT", help="the text to go on with", required=True)
    add.count("--tokens", "to add (default: 100)", default=100)
    add.value(
        "--temperature X",
        real,
        "divides the logits (default: 1); 0 takes the most likely token",
        default=1.0,
    )
    add.value("--top-k K", whole(1), "choose among the K most likely tokens")
    add.count("--seed", "of the choices (default: 0)", least=0, default=0)
    add.switch("--ema", "the averaged weights of a run with --ema")
    return parser


COMMANDS = {"export": export, "evaluate": evaluate, "sample": sample}
