"""The client, and the attacker's differentiable twin of it."""

from gradveil.client.optimisers import make_optimiser
from gradveil.client.simulation import Simulation
from gradveil.client.update import Client, Step, Weights

__all__ = ["Client", "Simulation", "Step", "Weights", "make_optimiser"]
