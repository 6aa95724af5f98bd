"""The gate: an update from which the attack rebuilds an image does not leave."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from gradveil.attacks import Attack
from gradveil.errors import SettingsError
from gradveil.federated.gate import LEAKS, THRESHOLD, GateMod, advantage_over, find_passes, leave_out
from gradveil.federated.memory import RoundMemory
from gradveil.federated.mods import DEFENCE, DefenceMod
from gradveil.types import Batch, LocalTraining, Reconstruction, Task, Update
from tests.federated.small_app import RATE, ask, describe, make_app, make_images
from tests.federated.test_mods import assert_refused


def make_others(count: int = 12) -> Batch:
    images = torch.rand(count, 1, 10, 10, generator=torch.Generator().manual_seed(5))
    return Batch(images, torch.arange(count) % 3)


class Guess(Attack):
    """An attack that rebuilds what it is told to, and keeps what it was given."""

    def __init__(self, images: Tensor, status: Any = "ok") -> None:
        self.images, self.status = images, status
        self.given: list[tuple[Task, Update]] = []

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Reconstruction]:
        del generators, progress
        self.given += [(task, update) for update in updates]
        return [Reconstruction(self.images, torch.tensor([0, 2]), 0.0, self.status, reason="no luck") for _ in updates]


def true_pixels() -> Tensor:
    return describe().to_pixels(make_images()[0])


def test_an_attack_that_rebuilds_the_image_closes_the_gate() -> None:
    """The real attacks, on an undefended update of two images."""
    app = describe()
    reply = ask(make_app([GateMod(app, make_others())]), {})
    assert_refused(reply, LEAKS)
    assert "dB" not in str(reply.error.reason)


def test_strong_noise_opens_the_gate() -> None:
    app = describe()
    reply = ask(make_app([GateMod(app, make_others()), DefenceMod(app)]), {DEFENCE: "clip:1,gaussian:1"})
    assert reply.has_content()


@pytest.mark.parametrize(("error", "leaves"), [(0.0, False), (0.05, False), (0.5, True)])
def test_the_advantage_over_chance_decides(error: float, leaves: bool) -> None:
    guess = Guess((true_pixels() + error).clamp(0, 1).flip(0))
    reply = ask(make_app([GateMod(describe(), make_others(), attacks=[guess])]), {})
    assert reply.has_content() is leaves


def test_any_form_in_which_an_image_was_fed_counts() -> None:
    """The second pass feeds inverted pictures, as a policy that draws anew may."""
    app, (images, labels) = describe(), make_images()
    forms = [images, images.flip(-1)]
    memory = RoundMemory(fed=forms, originals=forms, labels=[labels, labels])
    first, second = find_passes(memory, app, len(labels))
    floor = GateMod(app, make_others()).find_floor(first.pixels())
    assert advantage_over(floor, second.pixels().flip(0), first) < 3
    assert advantage_over(floor, second.pixels().flip(0), second) > 50
    (only,) = find_passes(RoundMemory(fed=forms[:1], originals=forms[:1], labels=[labels]), app, len(labels))
    assert torch.equal(only.images, first.images)


def test_an_attack_above_the_threshold_is_the_last_one() -> None:
    first, second = Guess(true_pixels()), Guess(true_pixels())
    assert_refused(ask(make_app([GateMod(describe(), make_others(), attacks=[first, second])]), {}), LEAKS)
    assert (len(first.given), len(second.given)) == (1, 0)


def test_the_node_sets_the_threshold_and_the_run_does_not() -> None:
    app = make_app([GateMod(describe(), make_others(), attacks=[Guess(true_pixels())])])
    assert ask(app, {THRESHOLD: 200}).has_content()
    assert_refused(ask(app, {}, {THRESHOLD: 200.0}), LEAKS)
    assert_refused(ask(app, {THRESHOLD: "high"}), THRESHOLD)
    assert_refused(ask(app, {THRESHOLD: float("nan")}), THRESHOLD)
    with pytest.raises(SettingsError):
        GateMod(describe(), make_others(), threshold=float("inf"))


def test_the_attacker_is_told_the_defence_and_the_labels() -> None:
    app, guess = describe(), Guess(torch.zeros(2, 1, 10, 10))
    ask(make_app([GateMod(app, make_others(), attacks=[guess]), DefenceMod(app)]), {DEFENCE: "prune:50"})
    ((task, update),) = guess.given
    assert [str(defence) for defence in task.known_defences] == ["prune:50"]
    assert update.labels is not None
    assert update.labels.tolist() == [0, 2]


def test_what_cannot_be_judged_does_not_leave(caplog: pytest.LogCaptureFixture) -> None:
    app = describe()
    failed = Guess(true_pixels(), "failed")
    assert_refused(ask(make_app([GateMod(app, make_others(), attacks=[failed])]), {}), "no luck")
    nothing = GateMod(app, Batch(true_pixels(), torch.tensor([0, 2])), attacks=[Guess(true_pixels())])
    assert_refused(ask(make_app([nothing]), {}), "0 other images")
    broken = GateMod(app, make_others(), attacks=[Guess(torch.zeros(1, 1, 1, 1))])
    with caplog.at_level(logging.ERROR, "gradveil"):
        assert_refused(ask(make_app([broken]), {}), "ValueError")
    rebuilt_nan = Guess(torch.full((2, 1, 10, 10), float("nan")))
    harmless = Guess(torch.zeros(2, 1, 10, 10))
    assert_refused(ask(make_app([GateMod(app, make_others(), attacks=[harmless, rebuilt_nan])]), {}), LEAKS)


@pytest.mark.parametrize(
    "local",
    [
        LocalTraining(epochs=2, batch_size=4, learning_rate=RATE, mode="train"),
        LocalTraining(epochs=1, batch_size=1, learning_rate=RATE, mode="train"),
        LocalTraining(epochs=1, batch_size=4, learning_rate=4 * RATE, mode="train"),
    ],
)
def test_a_training_that_is_not_the_described_one_does_not_leave(local: LocalTraining) -> None:
    """Else a server that changes the training through the run's settings would open the gate."""
    app = describe(local=local)
    harmless = GateMod(app, make_others(), attacks=[Guess(torch.zeros(2, 1, 10, 10))])
    for mods in ([harmless], [harmless, DefenceMod(app)]):
        assert_refused(ask(make_app(mods), {DEFENCE: "clip:1e-3"}), "describe the training as it is")


def test_large_rounds_pass_if_the_client_says_so() -> None:
    guess = Guess(true_pixels())
    assert ask(make_app([GateMod(describe(), make_others(), attacks=[guess], largest=1)]), {}).has_content()
    assert guess.given == []
    assert_refused(ask(make_app([GateMod(describe(), make_others(), attacks=[guess], largest=2)]), {}), LEAKS)


def test_other_messages_are_no_business_of_the_gate() -> None:
    assert ask(make_app([GateMod(describe(), make_others())]), {}, kind="evaluate").has_content()


def test_the_images_of_the_round_are_no_part_of_the_floor() -> None:
    others = make_others()
    left = leave_out(others, others.images[[3, 5]] + 1e-5)
    assert torch.equal(left.labels, others.labels[[0, 1, 2, 4, *range(6, 12)]])
