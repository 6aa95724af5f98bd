from gradveil import data
from gradveil.federated import FederatedSettings, estimate_federated


def test_rounds_and_updates_are_counted() -> None:
    found = estimate_federated(
        FederatedSettings(model="mlp", clients=4, rounds=3), data.load("fashion-mnist-sample"), 1
    )
    assert found.counts == {"rounds": 3, "updates": 12}
    assert found.seconds > 0
