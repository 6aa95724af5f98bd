"""An attack of one's own: what has to be written, and what comes by itself."""

from collections.abc import Sequence

import pytest
import torch

from gradveil.attacks import Attack, Ensemble, Progress, find_attack
from gradveil.attacks.base import layers_draw_like, make_failure
from gradveil.errors import SettingsError
from gradveil.rng import generator
from gradveil.types import Reconstruction, Task, Update
from tests.attacks.scenes import make_task, recipe, release


class GreyGuess(Attack):
    """Guess the mean colour: the least that an attack can be."""

    needs = ("nothing",)

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],  # noqa: ARG002
        progress: Progress | None = None,  # noqa: ARG002
    ) -> list[Reconstruction]:
        colour = torch.tensor(task.mean).view(-1, 1, 1)
        return [
            Reconstruction(
                colour.expand(update.images, *task.shape), torch.zeros(update.images, dtype=torch.int64), 1.0
            )
            for update in updates
        ]


def test_needs_and_attack_many_are_enough() -> None:
    task, attack = make_task(), GreyGuess()
    update = release(task, count=2)
    attack.check(task, [update])
    assert attack(task, update, generator(0)).images.shape == (2, *task.shape)
    assert attack.name == "grey-guess"
    assert find_attack(attack) is attack
    assert not attack.needs_known_defence
    with pytest.raises(SettingsError, match="'grey-guess' takes no steps"):
        attack.with_steps(3)


def test_it_takes_part_in_an_ensemble() -> None:
    task = make_task()
    update = release(task)
    both = Ensemble({"mine": GreyGuess(), "fast": recipe("fast")}).with_steps(20)
    result = both(task, update, generator(0))
    assert result.history[-1][0] == 20


def test_class_names_become_words() -> None:
    names = {"DLGAttack": "dlg-attack", "Attack2Go": "attack2-go", "Mine": "mine"}
    for class_name, name in names.items():
        assert type(class_name, (GreyGuess,), {})().name == name


def test_a_failure_has_images_labels_and_a_reason() -> None:
    task = make_task()
    update = release(task, count=2)
    failure = make_failure(task, update, "because")
    assert (failure.status, failure.reason) == ("failed", "because")
    assert failure.images.shape == (2, *task.shape)
    assert failure.labels is update.labels
    assert make_failure(task, update.to("meta"), "because").images.is_meta


def test_layers_draw_without_moving_any_generator() -> None:
    source, state = generator(0), torch.random.get_rng_state()
    before = source.get_state()
    drawn = []
    for _ in range(2):
        with layers_draw_like(source):
            drawn.append(torch.rand(3))
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(source.get_state(), before)
    assert torch.equal(torch.random.get_rng_state(), state)
