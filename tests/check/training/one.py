"""Trains on one device."""

import torch

model = torch.nn.Linear(8, 8).cuda()
