"""Trains with Horovod."""

import horovod.torch as hvd
import torch

hvd.init()
torch.cuda.set_device(hvd.local_rank())
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(torch.nn.Linear(8, 8).parameters(), lr=0.1))
