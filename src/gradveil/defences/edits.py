"""What a defence changed in a model, in words."""

from torch import nn

SHOWN = 3


def list_edits(before: nn.Module, after: nn.Module) -> tuple[str, ...]:
    """Name the layers that differ in kind, those of one kind of change together.

    >>> list_edits(nn.Sequential(nn.BatchNorm2d(4), nn.ReLU()), nn.Sequential(nn.GroupNorm(2, 4), nn.ReLU()))
    ('BatchNorm2d → GroupNorm: 0',)
    """
    old, new = dict(before.named_modules()), dict(after.named_modules())
    changes: dict[str, list[str]] = {}
    for name, layer in new.items():
        parent = name.rpartition(".")[0]
        if name in old and type(old[name]) is not type(layer):
            changes.setdefault(f"{describe(old[name])} → {describe(layer)}", []).append(name or "the model")
        elif name not in old and parent in old and type(old[parent]) is type(new[parent]):
            changes.setdefault(f"added {describe(layer)}", []).append(name)
    return tuple(f"{change}: {shorten(names)}" for change, names in changes.items())


def describe(layer: nn.Module) -> str:
    """Name a layer's kind, and those of its parts if it is a mere sequence."""
    kind = type(layer).__name__
    return f"{kind}({', '.join(map(describe, layer))})" if isinstance(layer, nn.Sequential) else kind


def shorten(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
