"""torch.npu: what torch, DeepSpeed and the training module ask of a device's module.

Work is done at once, so streams and events have nothing to wait for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from .native import device as native

device_count = native.device_count
current_device = native.current_device
reset_peak_memory_stats = reset_max_memory_allocated = reset_max_memory_cached = lambda device=None: (
    native.reset_peak()
)


def _index(where: Any) -> int:
    return where if isinstance(where, int) else (torch.device(where).index or 0)


def set_device(where: Any) -> None:
    native.set_device(_index(where))


def is_available() -> bool:
    return device_count() > 0


def is_initialized() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    return False


def _lazy_call(function: Callable[[], None]) -> None:
    function()


def synchronize(device: Any = None) -> None:
    pass


def empty_cache() -> None:
    pass


class Stream(torch.Stream):
    def __new__(cls, device: Any = None, priority: int = 0, **options: Any) -> Any:
        return torch.Stream.__new__(cls, device=torch.device("npu", current_device()))


class Event:
    def __init__(self, enable_timing: bool = False, **options: Any) -> None:
        self.time = 0.0

    def record(self, stream: Any = None) -> None:
        self.time = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds."""
        return (end.time - self.time) * 1000


class stream:
    def __init__(self, stream: Any = None) -> None:
        pass

    def __enter__(self) -> stream:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


class device:
    def __init__(self, where: Any) -> None:
        self.index, self.before = _index(where), 0

    def __enter__(self) -> None:
        self.before = current_device()
        native.set_device(self.index)

    def __exit__(self, *error: Any) -> None:
        native.set_device(self.before)


_the_stream: list[Any] = []


def current_stream(device: Any = None) -> Any:
    if not _the_stream:
        _the_stream.append(Stream())
    return _the_stream[0]


default_stream = current_stream

# Random numbers come from the host's generator, so that a run draws the same ones as on the CPU.
default_generators = [native.default_generator(index) for index in range(device_count())]


def manual_seed(seed: int) -> None:
    default_generators[current_device()].manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    for generator in default_generators:
        generator.manual_seed(seed)


def initial_seed() -> int:
    return torch.initial_seed()


def get_rng_state(device: Any = None) -> torch.Tensor:
    return torch.get_rng_state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    torch.set_rng_state(state)


def memory_allocated(device: Any = None) -> int:
    return native.memory()[0]


def max_memory_allocated(device: Any = None) -> int:
    return native.memory()[1]


memory_reserved = memory_cached = memory_allocated
max_memory_reserved = max_memory_cached = max_memory_allocated


def memory_stats(device: Any = None) -> dict[str, int]:
    now, peak = native.memory()
    return {"allocated_bytes.all.current": now, "allocated_bytes.all.peak": peak}


def get_device_properties(device: Any = None) -> SimpleNamespace:
    return SimpleNamespace(name=get_device_name(), total_memory=64 << 30)


def get_device_name(device: Any = None) -> str:
    return "simulated NPU"


def is_bf16_supported() -> bool:
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16]


def _constructor(dtype: torch.dtype) -> Callable[..., torch.Tensor]:
    def make(*values: Any) -> torch.Tensor:
        if len(values) == 1 and isinstance(values[0], list | tuple):
            return torch.tensor(values[0], dtype=dtype, device="npu")
        return torch.empty(*values, dtype=dtype, device="npu")

    return make


BoolTensor = _constructor(torch.bool)
ByteTensor = _constructor(torch.uint8)
IntTensor = _constructor(torch.int32)
LongTensor = _constructor(torch.int64)
HalfTensor = _constructor(torch.float16)
BFloat16Tensor = _constructor(torch.bfloat16)
FloatTensor = _constructor(torch.float32)
DoubleTensor = _constructor(torch.float64)
