"""Trains with torch.distributed in tasks of srun, whose numbers it reads."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["SLURM_PROCID"])
world_size = int(os.environ["SLURM_NTASKS"])
local_rank = int(os.environ["SLURM_LOCALID"])
address = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
dist.init_process_group("nccl", init_method=address, rank=rank, world_size=world_size)
torch.cuda.set_device(f"cuda:{local_rank}")
model = DistributedDataParallel(torch.nn.Linear(8, 8).cuda(), device_ids=[local_rank])
