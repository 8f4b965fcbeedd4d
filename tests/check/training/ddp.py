"""Trains with torch.distributed; torchrun, or the script of the job, sets the variables of each rank."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

dist.init_process_group("nccl", init_method="env://")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
model = DistributedDataParallel(torch.nn.Linear(8, 8).cuda(), device_ids=[local_rank])
loader = DataLoader(torch.randn(512, 8), batch_size=16, num_workers=4)
