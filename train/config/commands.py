"""The options of the commands that do not train: export, evaluate and sample."""

from .converters import fraction, one_of, out_path, path, paths, real, size, whole
from .options import Parser

SUFFIXES = (".pt", ".safetensors")
FORMATS = STATE_DICT, HF, PEFT = ("state_dict", "hf", "peft")
RUNNERS = ("torch", "deepspeed")


def export() -> Parser:
    about = "Write the trained weights of a checkpoint to OUT, for other programs."
    parser = Parser(prog="python -m jobgen.train export", description=about)
    parser.add_argument("checkpoint", type=path, metavar="CKPT", help="a checkpoint, or a run directory")
    parser.add_argument(
        "output", type=out_path, metavar="OUT", help="file.pt or .safetensors, or a directory"
    )
    parser.add_argument(
        "--format",
        type=one_of(FORMATS),
        default=STATE_DICT,
        metavar="|".join(FORMATS),
        help="a file with one plain-torch state_dict (default); hf: a directory of transformers, for hf:DIR; "
        "peft: a directory with the adapters of --lora, which the others add to the weights",
    )
    parser.add_argument(
        "--max-shard-size",
        type=size,
        default="5GB",
        metavar="SIZE",
        help="hf: divide the weights into files of at most this size, such as 500MB (default: 5GB)",
    )
    parser.add_argument("--ema", action="store_true", help="the averaged weights of a run with --ema")
    return parser


def evaluate() -> Parser:
    about = "Evaluate a checkpoint or exported weights on the test set of its task, on one rank or several."
    parser = Parser(prog="python -m jobgen.train evaluate", description=about)
    parser.add_argument(
        "source", type=path, metavar="CKPT|EXPORTED", help="a checkpoint, a run directory, an exported file"
    )
    parser.add_argument(
        "--with",
        dest="with_",
        type=one_of(RUNNERS),
        default="torch",
        metavar="torch|deepspeed",
        help="plain torch (default), or DeepSpeed's inference engine",
    )
    parser.add_argument("--ema", action="store_true", help="the averaged weights of a run with --ema")
    parser.add_argument("--data", type=paths, metavar="PATH", help="the files of the data, if changed")
    parser.add_argument("--batch-size", type=whole(1), default=256, metavar="N", help="default: 256")
    parser.add_argument("--show", type=whole(1), metavar="N", help="print the classes of N samples, too")
    parser.add_argument("--target-accuracy", type=fraction, metavar="X", help="exit with status 3 below X")
    return parser


def sample() -> Parser:
    about = "Let a language model go on with a text, in one process."
    parser = Parser(prog="python -m jobgen.train sample", description=about)
    parser.add_argument(
        "source", type=path, metavar="CKPT|EXPORTED", help="a checkpoint, a run directory, an exported file"
    )
    parser.add_argument("--prompt", required=True, metavar="TEXT", help="the text to go on with")
    parser.add_argument("--tokens", type=whole(1), default=100, metavar="N", help="to add (default: 100)")
    parser.add_argument(
        "--temperature",
        type=real(),
        default=1.0,
        metavar="X",
        help="divides the logits (default: 1); 0 takes the most likely token",
    )
    parser.add_argument("--top-k", type=whole(1), metavar="K", help="choose among the K most likely tokens")
    parser.add_argument("--seed", type=whole(0), default=0, metavar="N", help="of the choices (default: 0)")
    parser.add_argument("--ema", action="store_true", help="the averaged weights of a run with --ema")
    return parser


COMMANDS = {"export": export, "evaluate": evaluate, "sample": sample}
