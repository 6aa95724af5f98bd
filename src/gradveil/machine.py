"""How the machine computes: devices, threads, the layout of tensors, the faults below us, and how long it takes."""

import ctypes
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gradveil.errors import SettingsError

SAFE_CHANNELS = 8
"""From this many input channels on, a strided 1×1 convolution is safe in channels-last (oneDNN, torch 2.13, AVX2)."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""The names of two settings of glibc's `mallopt`."""
KEPT_BYTES = 1 << 28


def find_device(name: str) -> torch.device:
    """Turn `auto`, `cpu`, `cuda` or `cuda:N` into a device that is there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise SettingsError(f"device '{name}' cannot be used here: choose auto, cpu or cuda") from error
    return device


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def keep_memory() -> None:
    """Let the C library keep freed memory for the next large tensor, in the whole process, if it can be told (glibc).

    By default it gives large blocks back at once, and the system maps and clears every page of the next one, which
    slows attacks on models with large layers. `release_memory` gives back what was kept.
    """
    with suppress(AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        library.mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)


def release_memory() -> None:
    """Give freed memory back to the system, if the C library is one that can (glibc).

    Small results that are kept lie between large tensors that were freed, and would hold their pages.
    """
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def lay_out(model: nn.Module, shape: tuple[int, int, int], channels_last: bool = True) -> torch.memory_format:
    """Lay a model out in memory, in place, and return the layout that its images need.

    Channels-last is up to twice as fast. It is used if it is asked for, if no layer of the model hits a known fault in
    it, and if one forward and one backward pass of images of `shape` work in it: a model that calls `.view()` fails.
    """
    if channels_last and not has_faulty_layer(model) and runs_in_channels_last(model, shape):
        layout = torch.channels_last
    else:
        layout = torch.contiguous_format
    model.to(memory_format=layout)  # type: ignore[call-overload]
    return layout


def has_faulty_layer(model: nn.Module) -> bool:
    """Tell whether a layer may make oneDNN write outside its memory in channels-last.

    The fault is in the backward pass of a strided 1×1 convolution with 2 to 7 input channels. A kernel that belongs to
    no `nn.Conv2d` counts as strided, because its use cannot be seen here.
    """
    plain = {
        id(module.weight) for module in model.modules() if isinstance(module, nn.Conv2d) and module.stride == (1, 1)
    }
    return any(
        parameter.dim() == 4
        and tuple(parameter.shape[2:]) == (1, 1)
        and 1 < parameter.shape[1] < SAFE_CHANNELS
        and id(parameter) not in plain
        for parameter in model.parameters()
    )


def runs_in_channels_last(model: nn.Module, shape: tuple[int, int, int]) -> bool:
    """Try one forward and one backward pass of two blank images; weights, buffers, mode and random state are kept."""
    first = next(model.parameters(), None)
    if first is None:
        return False
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    images = torch.zeros(2, *shape, dtype=first.dtype, device=first.device)
    images = images.contiguous(memory_format=torch.channels_last).requires_grad_()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    devices = [first.device] if first.device.type == "cuda" else []
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    try:
        with torch.enable_grad(), torch.random.fork_rng(devices=devices):
            output: Tensor = model(images)
            torch.autograd.grad(output.sum(), [images, *trained], allow_unused=True)
    except RuntimeError:
        return False
    finally:
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
    return True


@dataclass(frozen=True)
class Estimate:
    """How much work a run is at most, by what is counted, and about how many seconds it takes on this machine."""

    counts: Mapping[str, int]
    seconds: float
    notes: tuple[str, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """Return the estimate as it stands in JSON."""
        return {"counts": dict(self.counts), "seconds": self.seconds, "notes": list(self.notes)}


def time_call(call: Callable[[], object], repeats: int = 2) -> float:
    """Return the seconds of the quickest of some calls; the first one warms up what is slow only once."""
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return min(taken)
