"""A stand-in for torch_npu: registers the device `npu`, torch.npu, and the collective library `hccl`."""

from __future__ import annotations

import os
import sys

import torch

# DeepSpeed asks for it; CANN's set_env.sh sets it.
os.environ.setdefault("ASCEND_HOME_PATH", "/nonexistent/ascend")

torch.utils.rename_privateuse1_backend("npu")

from . import defects, hccl, npu  # noqa: E402

torch._register_device_module("npu", npu)
sys.modules["torch.npu"] = npu  # DeepSpeed imports it by this name
torch.utils.generate_methods_for_privateuse1_backend()
hccl.register()
defects.install()

__version__ = f"{torch.__version__}+simulated"
