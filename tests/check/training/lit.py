"""Trains with Lightning, which reads Slurm's variables itself."""

import os

import lightning as L
from models import Net
from torch.utils.data import DataLoader

trainer = L.Trainer(
    accelerator="gpu",
    devices=4,
    num_nodes=int(os.environ["SLURM_NNODES"]),
    strategy="ddp",
    max_epochs=10,
)
trainer.fit(Net(), DataLoader(range(1000), num_workers=6))
