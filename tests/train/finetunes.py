"""Loops by hand in plain torch, transformers and peft, to compare with the trainings of languages.py.

finetunes.py CASES OUT: CASES is JSON, {name: {model, text, tokenizer, lora, steps}}; OUT receives JSON with the
losses of each. Sequences of 32 tokens, 8 in a step, Adam at 0.01, gradients clipped to a norm of 0.5.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import peft
import torch
import transformers
from tokenizers import Tokenizer
from torch.nn import functional

CONTEXT, BATCH = 32, 8


def losses(case: dict[str, Any]) -> list[float]:
    text = Path(case["text"]).read_text(encoding="utf-8")
    tokens = torch.tensor(Tokenizer.from_file(case["tokenizer"]).encode(text).ids)
    count = (len(tokens) - 1) // CONTEXT
    order = np.random.default_rng((0, 1)).permutation(count - max(1, round(count * 0.1)))
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(case["model"], dtype=torch.float32)
    torch.manual_seed(0)
    if case["lora"]:
        adapters = peft.LoraConfig(
            r=case["lora"],
            lora_alpha=2 * case["lora"],
            target_modules="all-linear",
            fan_in_fan_out=model.config.model_type == "gpt2",
            task_type="CAUSAL_LM",
        )
        model = peft.get_peft_model(model, adapters)
    model.train()
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(weights, lr=0.01)
    result = []
    for step in range(case["steps"]):
        starts = [int(i) * CONTEXT for i in order[step * BATCH : (step + 1) * BATCH]]
        inputs, targets = (torch.stack([tokens[i + n : i + n + CONTEXT] for i in starts]) for n in (0, 1))
        loss = functional.cross_entropy(model(input_ids=inputs).logits.flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 0.5)
        optimizer.step()
        optimizer.zero_grad()
        result.append(loss.item())
    return result


def main() -> None:
    torch.set_num_threads(1)
    cases = json.loads(Path(sys.argv[1]).read_text())
    Path(sys.argv[2]).write_text(json.dumps({name: losses(case) for name, case in cases.items()}))
    os._exit(0)


if __name__ == "__main__":
    main()
