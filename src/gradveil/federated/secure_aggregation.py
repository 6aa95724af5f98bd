"""Secure aggregation by Flower's SecAgg+: the server gets the mean of the updates, and masked ones from each client.

SecAgg+ exists for Flower's older interface only. Its masks hide an update from whoever does not search for their seeds,
which have 32 bits: see docs/decentralised.md.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gradveil.capsule import name_capsule, read_truth, write_capsule, write_truth
from gradveil.client import Weights
from gradveil.errors import SettingsError
from gradveil.federated.client_app import TruthKeeper, read_partition
from gradveil.federated.coordinator import CAPSULES, FINAL, Coordinator
from gradveil.federated.flower import (
    ClientApp,
    Code,
    ConfigRecord,
    Context,
    FitIns,
    FitRes,
    Grid,
    LegacyContext,
    LegacyFedAvg,
    Message,
    RecordDict,
    SecAggPlusWorkflow,
    Status,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
    secaggplus_mod,
    silenced,
)
from gradveil.federated.flower_internals import (
    CURRENT_ROUND,
    MAIN_CONFIGS_RECORD,
    MAIN_PARAMS_RECORD,
    RUN_NUMBER,
    GridClientProxy,
    fitres_to_recorddict,
    parameters_to_arrayrecord,
    recorddict_to_fitins,
)
from gradveil.federated.in_process import InProcessGrid
from gradveil.federated.outcomes import Dropped, RoundOutcome, TooFewRepliesError
from gradveil.federated.participants import Participants
from gradveil.machine import threads
from gradveil.rng import derive
from gradveil.types import Update
from gradveil.workers import Shared, Workers

Arrays = list[NDArray[np.float64]]
MODULUS_BITS = 32
MOST_BITS = 30
"""Flower rounds to 32-bit integers with a sign."""
PARTS = "truth-parts"
LARGEST_VALUE = 16.0
"""The largest number that an update may hold; SecAgg+ would cut larger ones without a word."""


@dataclass(frozen=True, eq=False)
class MaskedApp:
    """Make the app of a participant whose update leaves it masked only."""

    participants: Shared[Participants]
    largest: float
    truth: TruthKeeper | None = None

    def __call__(self) -> ClientApp:
        app = ClientApp(mods=[self.round_repeatably, secaggplus_mod])

        @app.train()
        def train(message: Message, context: Context) -> Message:
            return self.train(message, context)

        return app

    def train(self, message: Message, context: Context) -> Message:
        """Do the work of a round; what is returned here is masked by the mod before it leaves."""
        participants = self.participants.get()
        client = read_partition(context, participants.settings.clients)
        instruction = recorddict_to_fitins(message.content, keep_input=True)
        names = participants.model.state_dict()
        arrays = parameters_to_ndarrays(instruction.parameters)
        sent = {name: torch.from_numpy(array) for name, array in zip(names, arrays, strict=True)}
        number, rounds = int(instruction.config["round"]), int(instruction.config["rounds"])
        with threads(participants.settings.training.threads):
            released = participants.client_round(client, number, rounds, sent)
        if self.truth is not None:
            self.truth.keep(participants, client, number, released)
        values = to_values(released.update, sent, self.largest)
        reply = FitRes(Status(Code.OK, ""), ndarrays_to_parameters(values), released.update.images, {})
        return Message(fitres_to_recorddict(reply, keep_input=False), reply_to=message)

    def round_repeatably(
        self, message: Message, context: Context, call_next: Callable[[Message, Context], Message]
    ) -> Message:
        """Draw SecAgg+'s random rounding, which uses numpy's global state, from the seed; keys are the system's."""
        settings = self.participants.get().settings
        client = read_partition(context, settings.clients)
        with numpy_state_from(derive(settings.seed, "federated", "rounding", message.metadata.group_id, client)):
            return call_next(message, context)


@contextmanager
def numpy_state_from(seed: int) -> Iterator[None]:
    """Make code that draws from numpy's global state draw from `seed`; restore the state afterwards."""
    state = np.random.get_state()
    np.random.seed(seed % 2**32)
    try:
        yield
    finally:
        np.random.set_state(state)


def to_values(update: Update, sent: Weights, largest: float) -> Arrays:
    """Turn an update into arrays: its tensors, then the changes of the buffers, which are smaller than the buffers.

    One that SecAgg+ would cut or that is not finite is refused: nothing leaves the client then.
    """
    changes = {name: buffer.double() - sent[name].double() for name, buffer in (update.buffers or {}).items()}
    values: Arrays = []
    for name, tensor in (*update.tensors.items(), *changes.items()):
        # SecAgg+ decodes arrays without dimensions wrongly: the workflow corrects them in place, which scalars ignore.
        value = np.atleast_1d(tensor.double().numpy())
        size = float(np.abs(value).max(initial=0.0))
        if not size <= largest:
            raise SettingsError(f"'{name}' reaches {size:.3g}: secure aggregation takes at most {largest:g}")
        values.append(value)
    return values


def to_update(values: Sequence[NDArray[Any]], images: int, sent: Weights, like: Update) -> Update:
    """Undo `to_values` for the mean of several updates; `like` has the names, types and local training."""
    arrays = iter(values)
    tensors = {
        name: torch.from_numpy(next(arrays)).view(tensor.shape).to(tensor.dtype)
        for name, tensor in like.tensors.items()
    }
    buffers = {name: add_change(sent[name], next(arrays)) for name in like.buffers or {}}
    return replace(like, tensors=tensors, images=images, labels=None, buffers=buffers or None)


def add_change(buffer: Tensor, change: NDArray[Any]) -> Tensor:
    """Add a mean change to a buffer in its own type; whole numbers are rounded."""
    result = buffer.double() + torch.from_numpy(change).view(buffer.shape)
    return (result if buffer.is_floating_point() else result.round()).to(buffer.dtype)


def choose_bits(clients: int) -> int:
    """Return the finest rounding, in bits, at which the sum over all clients stays below 2³².

    >>> choose_bits(10), choose_bits(2)
    (28, 30)
    """
    return min(MOST_BITS, MODULUS_BITS - clients.bit_length())


@final
class CollectSum(LegacyFedAvg):
    """The strategy that the workflow asks whom to send what, and hands the sum to."""

    def __init__(self, grid: Grid, config: Mapping[str, int]) -> None:
        super().__init__()
        self.grid, self.config = grid, dict(config)
        self.values: list[NDArray[Any]] = []
        self.images: dict[int, int] = {}
        self.reasons: list[str] = []

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> list[Any]:
        """Ask every node."""
        del server_round, client_manager
        instruction = FitIns(parameters, dict(self.config))
        return [
            (GridClientProxy(node, self.grid, RUN_NUMBER), instruction) for node in sorted(self.grid.get_node_ids())
        ]

    def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> tuple[None, dict[str, Any]]:
        """Keep the mean, which stands in every result alike, and which nodes it is of."""
        del server_round
        self.images = {proxy.node_id: result.num_examples for proxy, result in results}
        self.values = parameters_to_ndarrays(results[0][1].parameters)
        self.reasons = list(dict.fromkeys(map(str, failures)))
        return None, {}


@dataclass(frozen=True, eq=False)
class SecureMean:
    """The mean of a round, the images of each client that is in it, and the clients that are not."""

    update: Update | None
    images: Mapping[int, int]
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, eq=False)
class SecureAggregation:
    """Rounds of SecAgg+ over any grid whose nodes run `MaskedApp`; `numbers` are the clients of its nodes."""

    participants: Participants
    grid: Grid
    numbers: Mapping[int, int]
    rounds: int
    largest: float = LARGEST_VALUE

    def collect(self, sent: Weights, number: int) -> SecureMean:
        """Let every client work on the weights `sent` and return the mean of what they release."""
        settings = self.participants.settings
        strategy = CollectSum(self.grid, {"round": number, "rounds": self.rounds})
        self.workflow()(self.grid, self.context(strategy, sent, number))
        images = {self.numbers[node]: count for node, count in sorted(strategy.images.items())}
        reason = "; ".join(strategy.reasons) or f"no masked update within {settings.timeout:g} s"
        missing = [client for client in range(settings.clients) if client not in images]
        dropped = tuple(Dropped(client, reason) for client in missing)
        if not images:
            return SecureMean(None, images, dropped)
        like = self.expected(number, sent)
        return SecureMean(to_update(strategy.values, sum(images.values()), sent, like), images, dropped)

    def workflow(self) -> SecAggPlusWorkflow:
        settings = self.participants.settings
        most = max(len(self.participants.places(client, 1)) for client in range(settings.clients))
        return SecAggPlusWorkflow(
            num_shares=1.0,
            reconstruction_threshold=settings.needed / settings.clients,
            max_weight=float(most),
            clipping_range=self.largest,
            quantization_range=2 ** choose_bits(settings.clients),
            modulus_range=2**MODULUS_BITS,
            timeout=settings.timeout,
        )

    def context(self, strategy: CollectSum, sent: Weights, number: int) -> LegacyContext:
        """Put the weights and the number of the round where the workflow looks for them."""
        parameters = ndarrays_to_parameters([tensor.numpy() for tensor in sent.values()])
        state = RecordDict(
            {
                MAIN_PARAMS_RECORD: parameters_to_arrayrecord(parameters, keep_input=True),
                MAIN_CONFIGS_RECORD: ConfigRecord({CURRENT_ROUND: number}),
            }
        )
        return LegacyContext(Context(RUN_NUMBER, 0, {}, state, {}), strategy=strategy)

    def expected(self, number: int, sent: Weights) -> Update:
        """Return an update of the right form: the names, types and local training that everyone knows."""
        parameters = dict(self.participants.model.named_parameters())
        tensors = {name: sent[name] for name, tensor in parameters.items() if tensor.requires_grad}
        buffers = {name: tensor for name, tensor in sent.items() if name not in parameters}
        return Update(tensors, 1, self.participants.local(number, self.rounds, 0), None, buffers)


def run_secure(coordinator: Coordinator, workers: int, largest: float = LARGEST_VALUE) -> None:
    """Run the rounds of a coordinator with secure aggregation; its capsules hold the mean of all clients only."""
    participants, settings = coordinator.participants, coordinator.settings
    if settings.clients < 2:
        raise SettingsError("secure aggregation of 1 client hides nothing: give 2 or more clients")
    with silenced(), kept_parts(coordinator.folder) as parts, Workers(workers, settings.training.threads) as crew:
        recording = coordinator.recording
        truth = TruthKeeper(parts, recording.capture) if recording.keep_truth else None
        app = MaskedApp(crew.share(participants), largest, truth)
        grid = InProcessGrid(app, settings.clients, crew)
        aggregation = SecureAggregation(participants, grid, grid.numbers, coordinator.rounds, largest)
        for number in range(coordinator.done + 1, coordinator.rounds + 1):
            take_round(coordinator, aggregation, number, parts)
    coordinator.save_weights(FINAL, "final", coordinator.rounds)


@contextmanager
def kept_parts(folder: Path) -> Iterator[Path]:
    """Make the folder for the clients' truths of a round, which its owner alone can read, and remove it at the end.

    It lies with the run: what a kill leaves there is removed by the next run in the folder.
    """
    parts = folder / PARTS
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir(mode=0o700)
    try:
        yield parts
    finally:
        shutil.rmtree(parts, ignore_errors=True)


def take_round(coordinator: Coordinator, aggregation: SecureAggregation, number: int, parts: Path) -> None:
    """Collect the mean of a round, capture it if asked, and take the step."""
    sent = coordinator.server.weights()
    mean = aggregation.collect(sent, number)
    outcome = RoundOutcome(number, len(mean.images), mean.dropped, None)
    settings = coordinator.settings
    if mean.update is None or len(mean.images) < settings.needed:
        coordinator.end_round(outcome)
        raise TooFewRepliesError(outcome, settings.clients, settings.needed)
    if number in coordinator.recording.capture:
        capture(coordinator, number, sent, mean.update, list(mean.images), parts)
    with threads(settings.training.threads):
        coordinator.server.apply([mean.update], number)
        coordinator.end_round(outcome)


def capture(
    coordinator: Coordinator, number: int, sent: Weights, mean: Update, clients: Sequence[int], parts: Path
) -> None:
    """Write the mean as one capsule, and the truth of all its clients, which they kept in `parts`, as one file."""
    folder, settings = coordinator.folder / CAPSULES, coordinator.settings
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name_capsule(number, clients[0])
    whole = coordinator.participants.round_of(clients[0], number, sent, mean)
    write_capsule(path, replace(whole, participants=len(clients)), number)
    if coordinator.recording.keep_truth:
        truths = [truth for client in clients for truth in read_truth(parts / name_capsule(number, client))]
        made = {"data": settings.data, "arm": settings.arm, "round": number, "clients": list(clients)}
        write_truth(path, truths, made)
