"""Federated settings: defaults, derived values, refusals, and the way to JSON and back."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gradveil.errors import InputError, SettingsError, UnknownNameError
from gradveil.federated.settings import FEDAVG, FederatedSettings
from gradveil.losses import CrossEntropy
from gradveil.training import BRIEF, FAST
from gradveil.types import LocalTraining
from tests.federated.small_data import make_data


def test_the_clients_of_a_round_share_one_batch_of_centralised_training() -> None:
    settings = FederatedSettings()
    assert settings.clients == 10
    assert settings.client_batch * settings.clients == 60 <= FAST.batch_size
    assert FederatedSettings(clients=100).client_batch == 1
    assert FederatedSettings(batch_size=5).client_batch == 5


def test_a_client_of_fedsgd_releases_one_gradient_and_one_of_fedavg_a_change() -> None:
    sgd, averaging = FederatedSettings(), FederatedSettings(algorithm="fedavg")
    assert not sgd.works.takes_steps
    assert sgd.works.batch_size == 6
    assert averaging.works.takes_steps
    assert averaging.works == replace(FEDAVG, loss=averaging.works.loss)


@pytest.mark.parametrize("algorithm", ["fedsgd", "fedavg"])
@pytest.mark.parametrize("training", [FAST, BRIEF, replace(FAST, loss="cross-entropy")])
def test_clients_use_the_loss_of_the_recipe(algorithm: Any, training: Any) -> None:
    settings = FederatedSettings(algorithm=algorithm, training=training)
    assert str(settings.works.loss) == training.loss


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_the_mode_of_the_clients_holds_for_both_algorithms(mode: Any) -> None:
    local = replace(FEDAVG, mode=mode)
    assert FederatedSettings(local=local).works.mode == mode
    assert FederatedSettings(local=local, algorithm="fedavg").works.mode == mode


def test_rounds_are_those_asked_for_or_those_of_the_recipe() -> None:
    data = make_data(train=96)
    assert FederatedSettings(rounds=7).count_rounds(data) == 7
    # 2 clients with 48 images each, of which a round uses 5 × 8.
    assert FederatedSettings(algorithm="fedavg", clients=2).count_rounds(data) == FAST.epochs
    few = replace(FEDAVG, steps=2)
    assert FederatedSettings(algorithm="fedavg", clients=2, local=few).count_rounds(data) == 3 * FAST.epochs
    passes = replace(FEDAVG, steps=None, epochs=3)
    assert FederatedSettings(algorithm="fedavg", local=passes).count_rounds(data) == FAST.epochs // 3
    # 96 images, 4 clients with 6 images each: 4 rounds for each of the epochs.
    assert FederatedSettings(clients=4, batch_size=6).count_rounds(data) == 4 * FAST.epochs
    assert FederatedSettings(clients=4, batch_size=90).count_rounds(data) == FAST.epochs


def test_more_than_half_of_the_replies_must_be_valid_unless_told_otherwise() -> None:
    assert FederatedSettings(clients=10).needed == 6
    assert FederatedSettings(clients=3).needed == 2
    assert FederatedSettings(clients=1).needed == 1
    assert FederatedSettings(clients=10, least_valid=10).needed == 10


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"algorithm": "fedprox"}, "choose fedsgd or fedavg"),
        ({"clients": 0}, "clients is 0"),
        ({"server_momentum": 1.0}, "from 0 to below 1"),
        ({"rounds": 0}, "rounds is 0"),
        ({"batch_size": 0}, "batch size is 0"),
        ({"least_valid": 0}, "least valid is 0"),
        ({"least_valid": 11}, "11 valid replies of 10 clients"),
        ({"timeout": 0.0}, "must be above 0"),
        ({"timeout": float("nan")}, "must be above 0"),
        ({"largest_norm": -1.0}, "must be above 0"),
        ({"algorithm": "fedavg", "local": LocalTraining()}, "needs local steps or epochs"),
        ({"seed": -1}, "seed"),
        ({"partition": "half"}, "partition"),
        ({"arm": "magic"}, "magic"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason) as refused:
        FederatedSettings(**change)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [
        FederatedSettings(),
        FederatedSettings(
            algorithm="fedavg",
            arm="crop-flip,policy:3-1-7",
            partition="dirichlet:0.3",
            local=LocalTraining(steps=5, batch_size=8, optimiser="adam", loss=CrossEntropy(0.1)),
            least_valid=3,
            seed=4,
        ),
    ],
)
def test_settings_come_back_from_json(settings: FederatedSettings) -> None:
    assert FederatedSettings.from_record(json.loads(json.dumps(settings.to_record()))) == settings


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="speed"):
        FederatedSettings.from_record({**FederatedSettings().to_record(), "speed": 1})
    with pytest.raises(SettingsError):
        FederatedSettings.from_record({"clients": "many"})
