"""Trains with accelerate."""

import torch
from accelerate import Accelerator

accelerator = Accelerator()
model, optimizer = accelerator.prepare(torch.nn.Linear(8, 8), torch.optim.AdamW)
