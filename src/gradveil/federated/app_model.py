"""What gradveil has to know of the model of somebody's Flower app, and how its messages are read."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor, nn

from gradveil.client import Weights
from gradveil.defences import Defence
from gradveil.errors import DataError, SettingsError
from gradveil.federated.flower import Array, ArrayRecord, Message, MessageType, RecordDict
from gradveil.models import ModelSpec, Normalise
from gradveil.rounds import Round
from gradveil.types import LocalTraining, Update

Sends = Literal["weights", "difference"]
ROUND_KEYS = ("server-round", "server_round")
COUNT_KEYS = ("num-examples", "num_examples")
MOST_IMAGES = 2**53
INNER = "1."
"""What stands before the names of a model that comes after a layer that normalises."""


@dataclass(frozen=True, eq=False)
class AppModel:
    """The model of a Flower app, and how its clients train it.

    `module` is the app's model; its state dict is what the app's `ArrayRecord` carries. gradveil works on pixels in
    [0, 1]: if the app's data pipeline normalises by `mean` and `std`, leave `normalises` True, and attacks normalise
    before the model; if the model takes pixels, set it to False. `local` says how a client trains. `defences` are what
    the data pipeline does to the images, such as a policy. `sends` says what leaves a client: new weights, as Flower's
    strategies expect, or the difference to the weights it was sent.
    """

    module: nn.Module
    shape: tuple[int, int, int]
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    local: LocalTraining
    normalises: bool = True
    defences: tuple[Defence, ...] = ()
    sends: Sends = "weights"

    def __post_init__(self) -> None:
        if not self.local.takes_steps:
            raise SettingsError("the local training has no steps and no epochs: give the app's number of one of them")
        if self.sends not in ("weights", "difference"):
            raise SettingsError(f"an app that sends '{self.sends}': choose weights or difference")
        if len(list(self.module.named_parameters())) < len(list(self.module.named_parameters(remove_duplicate=False))):
            raise SettingsError(
                "the model uses one parameter under two names, and each would leave with noise of its own: remove one"
            )
        _ = self.spec  # an unusable description is refused now, not in the first round

    @cached_property
    def spec(self) -> ModelSpec:
        """The specification of the model as attacks use it."""
        return ModelSpec.of(self.pixel_model(), self.shape, self.classes, self.mean, self.std)

    @cached_property
    def state(self) -> dict[str, Tensor]:
        """The state dict, for names, shapes and types."""
        return {name: tensor.detach().cpu() for name, tensor in self.module.state_dict().items()}

    @cached_property
    def trained(self) -> tuple[str, ...]:
        return tuple(name for name, parameter in self.module.named_parameters() if parameter.requires_grad)

    @cached_property
    def buffers(self) -> tuple[str, ...]:
        parameters = dict(self.module.named_parameters())
        return tuple(name for name in self.state if name not in parameters)

    def pixel_model(self) -> nn.Module:
        """Return the model as attacks use it: it takes pixels in [0, 1]. A capsule is read with this model."""
        return nn.Sequential(Normalise(self.mean, self.std), self.module) if self.normalises else self.module

    def to_pixels(self, images: Tensor) -> Tensor:
        """Turn what the app's model is fed into pixels."""
        if not self.normalises:
            return images
        mean, std = (images.new_tensor(values).view(-1, 1, 1) for values in (self.mean, self.std))
        return (images * std + mean).clamp(0, 1)

    def read_sent(self, message: Message) -> dict[str, Tensor]:
        """Read the weights that a client was sent, in the model's types, as the app loads them.

        Flower's strategies average whole-number buffers too and send floats.
        """
        tensors = self.read(find_arrays(message), "the server sent")
        return {name: tensor.to(self.state[name].dtype) for name, tensor in tensors.items()}

    def read_reply(self, reply: Message) -> dict[str, Tensor]:
        """Read what a client replies; its types must be the model's."""
        tensors = self.read(find_arrays(reply), "the app replied")
        for name, tensor in tensors.items():
            if tensor.dtype != self.state[name].dtype:
                raise DataError(f"the app replied '{name}' as {tensor.dtype}: the model has {self.state[name].dtype}")
        return tensors

    def read(self, record: ArrayRecord, who: str) -> dict[str, Tensor]:
        """Read arrays by the model's names and check names, shapes and values; numbered arrays are in its order."""
        keys = list(record)
        names = list(self.state) if keys == list(map(str, range(len(self.state)))) else keys
        if set(names) != set(self.state):
            odd = sorted(set(names) ^ set(self.state))[:3]
            raise DataError(f"{who} arrays that differ from the model's in {', '.join(odd)}: send its state dict")
        tensors = {name: read_array(record[key], f"{who} '{name}'") for name, key in zip(names, keys, strict=True)}
        for name, tensor in tensors.items():
            wanted = self.state[name].shape
            if tensor.shape != wanted:
                raise DataError(f"{who} '{name}' of shape {tuple(tensor.shape)}: the model has {tuple(wanted)}")
            if not torch.isfinite(tensor).all():
                raise DataError(f"{who} NaN or infinity in '{name}': nothing can be computed from it")
        return tensors

    def read_update(self, sent: Weights, reply: Message) -> Update:
        """Read the update that a reply releases, by the names of `pixel_model`."""
        tensors = self.read_reply(reply)
        base = sent if self.sends == "weights" else {name: torch.zeros_like(sent[name]) for name in sent}
        return Update(
            self.rename({name: tensors[name] - base[name] for name in self.trained}),
            find_count(reply.content),
            self.local,
            buffers=self.rename({name: tensors[name] for name in self.buffers}) or None,
        )

    def read_round(self, sent: Weights, reply: Message, number: int, client: int, known: tuple[Defence, ...]) -> Round:
        """Put a reply together with what whoever receives it knows."""
        update = self.read_update(sent, reply)
        return Round(self.spec, (), self.rename(sent), update, known, 1, f"round-{number}", client)

    def rename(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Turn the app's names into those of `pixel_model`."""
        return {(INNER if self.normalises else "") + name: tensor for name, tensor in tensors.items()}


def is_training(message: Message) -> bool:
    """Tell whether a message asks for training, under any action's name."""
    return message.metadata.message_type.partition(".")[0] == MessageType.TRAIN


def find_arrays(message: Message) -> ArrayRecord:
    """Return the only ArrayRecord of a message."""
    records = list(message.content.array_records.values())
    if len(records) != 1:
        raise DataError(f"a message with {len(records)} ArrayRecords: there must be 1, with the model's state dict")
    return records[0]


def read_array(array: Array, what: str) -> Tensor:
    """Read one array. It may come from anyone."""
    try:
        return torch.from_numpy(array.numpy())
    except Exception as error:  # numpy's reader raises many kinds
        raise DataError(f"{what}, which cannot be read as a numpy array: {type(error).__name__}") from error


def find_count(content: RecordDict) -> int:
    """Read how many images an update is of."""
    for record in content.metric_records.values():
        for key in COUNT_KEYS:
            value = record.get(key)
            if isinstance(value, int | float) and 1 <= value < MOST_IMAGES:
                return int(value)
    raise DataError(f"a reply without its number of images: put it into the metrics as '{COUNT_KEYS[0]}'")


def find_round_number(message: Message) -> int:
    """Read which round a message is of."""
    for record in message.content.config_records.values():
        for key in ROUND_KEYS:
            value = record.get(key)
            if isinstance(value, int):
                return value
    group = message.metadata.group_id
    if group.isascii() and group.isdigit():
        return int(group)
    raise DataError(f"a message that names no round: put it into the config as '{ROUND_KEYS[0]}'")
