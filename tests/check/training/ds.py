"""Trains with DeepSpeed."""

import argparse

import deepspeed
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
parser = deepspeed.add_config_arguments(parser)
args = parser.parse_args()
deepspeed.init_distributed()
engine, *_ = deepspeed.initialize(args=args, model=torch.nn.Linear(8, 8))
