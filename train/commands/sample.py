"""python -m jobgen.train sample CKPT|EXPORTED --prompt TEXT: let a language model go on with a text.

It runs in one process, without a launcher. The checkpoint or exported file determines model and tokens.
"""

from collections.abc import Callable, Iterator, Sequence

import torch

from .. import loss_functions, trees
from ..config import commands, language
from ..data import text
from ..errors import CommonMistake
from . import trained

Choose = Callable[[torch.Tensor], int]
Predict = Callable[[torch.Tensor], torch.Tensor]


def main(argv: Sequence[str]) -> None:
    """Print the prompt and the text that the model adds to it.

    Raise BadInput if the source cannot be read or is not a language model.
    """
    options = commands.sample().parse_args(argv)
    source = trained.load(options.source, options.ema)
    settings = source.settings
    if settings.task != "text":
        raise CommonMistake(
            f"{options.source} was trained with --task {settings.task}; sample needs --task text"
        )
    alphabet = text.alphabet(settings.tokenizer)
    prompt = alphabet.encode(options.prompt)
    if not prompt:
        raise CommonMistake("--prompt is empty: the model needs at least one token to go on with")
    context, mine = language.size(settings).context, trained.alone()
    outputs = text.vocabulary(settings, alphabet)
    model = trained.model_with(source, (context,), outputs, mine)
    model = model.to(mine.torch).eval()

    def predict(window: torch.Tensor) -> torch.Tensor:
        logits = loss_functions.main(trees.as_tree(model(window.to(mine.torch))))
        return logits[0, -1, : alphabet.count].float().cpu()

    choose = chooser(options.temperature, options.top_k, torch.Generator().manual_seed(options.seed))
    addition = list(continuation(predict, choose, prompt, options.tokens, context))
    print(alphabet.decode([*prompt, *addition]))


@torch.no_grad()
def continuation(
    predict: Predict, choose: Choose, prompt: Sequence[int], tokens: int, context: int
) -> Iterator[int]:
    """Yield `tokens` more tokens after the prompt. The model sees the last `context` tokens.

    predict: returns the logits of the next token, for token ids [1, up to context]
    """
    window = list(prompt)[-context:]
    for _ in range(tokens):
        token = choose(predict(torch.tensor([window])))
        yield token
        window = [*window, token][-context:]


def chooser(temperature: float, top_k: int | None, generator: torch.Generator) -> Choose:
    """Return the function that chooses a token by its logits, [vocabulary]."""

    def choose(logits: torch.Tensor) -> int:
        if temperature == 0:
            return int(logits.argmax())
        best, tokens = logits.topk(min(top_k or len(logits), len(logits)))
        return int(tokens[torch.multinomial((best / temperature).softmax(0), 1, generator=generator)])

    return choose
