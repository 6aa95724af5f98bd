"""How long a collaborative training will take, from one client's round on this machine."""

from gradveil.data import DataSet
from gradveil.federated.participants import Participants
from gradveil.federated.settings import FederatedSettings
from gradveil.machine import Estimate, threads, time_call


def estimate_federated(settings: FederatedSettings, data: DataSet, workers: int) -> Estimate:
    """Count the rounds and the updates, and time one update; tests and the exchange itself are not counted."""
    participants = Participants(settings, data)
    rounds = settings.count_rounds(data)
    with threads(settings.training.threads):
        weights = participants.first_weights()
        seconds = time_call(lambda: participants.client_round(0, 1, rounds, weights))
    updates = rounds * settings.clients
    return Estimate({"rounds": rounds, "updates": updates}, updates * seconds / max(1, min(workers, settings.clients)))
