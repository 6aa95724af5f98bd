"""A budget of seconds as a number of gradients: measured once, before an audit, so that the figures can be repeated."""

from collections.abc import Sequence

from gradveil.attacks import Descent, GradientMatching, Restarts
from gradveil.client import Client
from gradveil.machine import threads, time_call
from gradveil.rng import generator, global_state_from
from gradveil.types import Batch, LocalTraining, Task

STEPS = 6
REPEATS = 3


def count_gradients(seconds: float, task: Task, local: LocalTraining, batches: Sequence[Batch], count: int) -> int:
    """Count the gradients for one image that take so many seconds with `count` threads.

    As many updates are attacked together as there are batches; the quickest of three repeats counts.
    """
    return max(1, int(seconds * measure_rate(task, local, batches, count, STEPS, REPEATS)))


def measure_rate(
    task: Task, local: LocalTraining, batches: Sequence[Batch], count: int, steps: int, repeats: int
) -> float:
    """Measure how many gradients of one image are computed in a second, with `count` threads."""
    with threads(count), global_state_from(generator(0, "budget")):
        updates = [Client(task.model, local).update(task.model.state_dict(), one, (), generator(0)) for one in batches]
        probe = GradientMatching(descent=Descent(steps=steps), restarts=Restarts(together=len(updates)))
        sources = [generator(0, "budget", place) for place in range(len(updates))]
        taken = time_call(lambda: probe.attack_many(task, updates, sources), repeats)
    return steps * sum(len(one) for one in batches) / taken
