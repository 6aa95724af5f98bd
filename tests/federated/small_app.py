"""A small Flower app, and what its replies can be made to be."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gradveil.federated.app_model import AppModel
from gradveil.federated.flower import ArrayRecord, ClientApp, ConfigRecord, Context, Message, MetricRecord, RecordDict
from gradveil.federated.memory import remember
from gradveil.types import LocalTraining
from tests.federated.grid import AppGrid

MEAN, STD, RATE = 0.4, 0.3, 0.1
Spoil = Callable[[dict[str, Tensor]], None]


class SmallNet(nn.Module):
    """A network with batch normalisation and one frozen layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.scale = nn.Parameter(torch.ones(1), requires_grad=False)
        self.head = nn.Linear(4 * 100, 3)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(torch.sigmoid(self.norm(self.conv(images))).flatten(1) * self.scale)
        return logits


def describe(**changes: Any) -> AppModel:
    """Describe the small app."""
    local = LocalTraining(epochs=1, batch_size=4, learning_rate=RATE, mode="train")
    settings: dict[str, Any] = {"shape": (1, 10, 10), "classes": 3, "mean": (MEAN,), "std": (STD,), "local": local}
    return AppModel(make_net(), **{**settings, **changes})


def make_net() -> SmallNet:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return SmallNet()


def make_images() -> tuple[Tensor, Tensor]:
    """Make the two images of the client, as its model is fed them."""
    pixels = torch.rand(2, 1, 10, 10, generator=torch.Generator().manual_seed(1))
    return (pixels - MEAN) / STD, torch.tensor([0, 2])


def train_once(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Take one step on the client's images and return the new state."""
    net = SmallNet()
    net.load_state_dict(state)
    images, labels = make_images()
    remember(images, labels)
    optimiser = torch.optim.SGD(net.parameters(), RATE)
    F.cross_entropy(net(images), labels).backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return dict(net.state_dict())


def make_app(mods: list[Any], spoil: Spoil = lambda _: None) -> ClientApp:
    """Make the app; `spoil` changes the arrays of its reply."""
    app = ClientApp(mods=mods)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        del context
        state = train_once(read_arrays(message))
        spoil(state)
        metrics = MetricRecord({"num-examples": 2})
        return Message(RecordDict({"arrays": ArrayRecord(state), "metrics": metrics}), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        del context
        arrays = message.content["arrays"]
        return Message(RecordDict({"arrays": arrays} if "leak" in message.content else {}), reply_to=message)

    return app


def make_request(kind: str = "train", state: dict[str, Tensor] | None = None, extra: str = "config") -> Message:
    arrays = ArrayRecord(make_net().state_dict() if state is None else state)
    content = RecordDict({"arrays": arrays, "config": ConfigRecord({"server-round": 3})})
    content[extra] = ConfigRecord({"server-round": 3})
    return Message(content, 1, kind)


def ask(app: ClientApp, node: dict[str, Any], run: dict[str, Any] | None = None, **request: Any) -> Message:
    """Send the app one message."""
    grid = AppGrid(app, [{"partition-id": 7, **node}], run or {})
    (reply,) = grid.send_and_receive([make_request(**request)])
    return reply


def read_change(reply: Message) -> dict[str, Tensor]:
    """Read by how much a reply of new weights changes the weights that were sent."""
    sent = make_net().state_dict()
    return {name: tensor - sent[name] for name, tensor in read_arrays(reply).items()}


def read_arrays(message: Message) -> dict[str, Tensor]:
    return dict(message.content.array_records["arrays"].to_torch_state_dict())


def true_change() -> dict[str, Tensor]:
    """Compute by how much the app changes the weights."""
    sent = make_net().state_dict()
    return {name: tensor - sent[name] for name, tensor in train_once(dict(sent)).items()}
