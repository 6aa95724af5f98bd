"""Several attacks as one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from gradveil.attacks import ATTACKS, Analytic, Attack, Ensemble, GradientMatching, Knowledge, Progress, matching_loss
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.metrics import psnr
from gradveil.rng import generator
from gradveil.transforms import parse_policy
from gradveil.types import Batch, LocalTraining, Reconstruction, Task, Update
from tests.attacks.scenes import make_task, policy_aware, recipe, release, sample, sample_task, update_of

POLICY = parse_policy("43")  # translateY up or down: two draws
KNOWN = (f"policy:{POLICY}",)


@dataclass(frozen=True, eq=False)
class Given(Attack):
    """Answer with the same images whatever was released."""

    images: Tensor
    labels: Tensor

    @property
    def needs(self) -> tuple[str, ...]:
        return ("nothing",)

    def attack_many(
        self,
        task: Task,  # noqa: ARG002
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],  # noqa: ARG002
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        if progress is not None:
            progress(1, 1)
        return [Reconstruction(self.images, self.labels, 0.0)] * len(updates)


class Surprised(Attack):
    """Find out only on the way that something is missing."""

    needs = ("something",)

    def attack_many(
        self,
        task: Task,  # noqa: ARG002
        updates: Sequence[Update],  # noqa: ARG002
        generators: Sequence[torch.Generator],  # noqa: ARG002
        progress: Progress | None = None,  # noqa: ARG002
    ) -> list[Reconstruction]:
        raise KnowledgeError("something is missing after all")


def release_first(task: Task) -> tuple[Batch, Update]:
    """Release the gradient of the first image under the first draw; return what was fed as well."""
    batch = Batch(POLICY.apply(sample().test.images[:1], POLICY.draws()[0]), sample().test.labels[:1])
    return batch, update_of(task, batch)


def test_gives_what_was_fed_and_keeps_to_it_for_the_original() -> None:
    task = sample_task(known=KNOWN)
    batch, update = release_first(task)
    both = Ensemble({"plain": recipe("fast").with_steps(120), "through": policy_aware(60)})
    result = both(task, update, generator(0))
    assert result.transformed is not None
    assert float(psnr(result.transformed, batch.pixels())) > 20
    assert torch.equal(result.images, result.transformed), "the member that looks through the policy matches less well"
    untold = both(replace(task, known_defences=()), update, generator(0))
    assert torch.equal(result.images, untold.images)


def test_later_members_skip_an_exact_match_unless_they_look_through_a_policy() -> None:
    task = sample_task(known=KNOWN)
    batch, update = release_first(task)
    exact = Given(batch.pixels(), batch.labels)
    members = {"exact": exact, "plain": ATTACKS["fast"], "through": policy_aware(60)}
    seen: list[tuple[int, int]] = []
    (result,) = Ensemble(members).attack_many(task, [update], [generator(0)], lambda *at: seen.append(at))
    assert result.transformed is not None
    assert torch.equal(result.transformed, batch.pixels())
    assert torch.equal(result.images, batch.pixels())
    assert seen[-1] == (3000, 3000)
    assert (2000, 3000) in seen, "the member that was not needed is reported as done at once"
    assert sum(1000 < done < 2000 for done, _ in seen) == 0


def test_leaves_out_who_cannot_take_part_and_keeps_the_best() -> None:
    task = replace(sample_task(), public=None)
    _, update = release_first(task)
    short, long = (recipe("fast").with_steps(steps) for steps in (2, 60))
    ensemble = Ensemble({"analytic": ATTACKS["analytic"], "short": short, "long": long})
    result = ensemble(task, update, generator(0))
    assert result.history[-1][0] == 60
    assert result.matching_loss == pytest.approx(matching_loss(task, update, result.images, result.labels), rel=1e-3)
    assert set(ensemble.usable(task, [update])) == {"short", "long"}
    refusals = ensemble.refusals(task, [update])
    assert set(refusals) == {"analytic"}
    assert "not fully connected" in refusals["analytic"]
    with pytest.raises(KnowledgeError, match=r"none of the members.*analytic: the model's first layer"):
        Ensemble({"analytic": ATTACKS["analytic"]})(task, update, generator(0))
    assert torch.equal(update.tensors["head.bias"], release_first(task)[1].tensors["head.bias"])


def test_a_member_that_lacks_knowledge_on_the_way_fails_alone() -> None:
    task = make_task()
    update = release(task)
    fast = recipe("fast").with_steps(3)
    result = Ensemble({"surprised": Surprised(), "fast": fast})(task, update, generator(0))
    assert result.status == "ok"
    assert result.history[-1][0] == 3


def test_if_every_member_fails_all_reasons_are_passed_on() -> None:
    task = make_task()
    update = release(task)
    broken = replace(update, tensors={name: torch.nan * tensor for name, tensor in update.tensors.items()})
    ensemble = Ensemble({"surprised": Surprised(), "fast": recipe("fast").with_steps(3)})
    seen: list[tuple[int, int]] = []
    (result,) = ensemble.attack_many(task, [broken], [generator(0)], lambda *at: seen.append(at))
    assert result.status == "failed"
    assert result.reason == (
        "every member failed: surprised: something is missing after all; "
        "fast: the matching loss was not finite at step 0"
    )
    assert seen[-1] == (2000, 2000)


def test_what_simulations_leave_out_is_passed_on() -> None:
    task = make_task(known=KNOWN)
    update = release(task, count=2, local=LocalTraining(epochs=1, batch_size=1, shuffle=True))
    both = Ensemble({"plain": recipe("fast").with_steps(2), "through": recipe("policy-aware").with_steps(2)})
    result = both(task, update, generator(0))
    assert len(result.approximations) == 1
    assert "order" in result.approximations[0]


def test_members_share_a_budget_except_those_that_need_to_know_a_defence() -> None:
    aware = GradientMatching(knowledge=Knowledge(policy=True))
    members = {"a": GradientMatching(), "b": GradientMatching(), "c": Analytic(), "d": aware}
    shared = Ensemble(members).with_budget(100)
    assert isinstance(shared, Ensemble)
    steps = [member.descent.steps for member in shared.members.values() if isinstance(member, GradientMatching)]
    assert steps == [50] * 3
    assert shared.members["c"] is members["c"]
    assert Ensemble(members).inverts_policy
    assert not Ensemble(members).needs_known_defence
    assert Ensemble({"d": aware}).needs_known_defence


def test_nested_ensembles_pass_their_steps_on() -> None:
    inner = Ensemble({"fast": recipe("fast"), "dlg": recipe("dlg")})
    outer = Ensemble({"inner": inner, "analytic": Analytic()}).with_steps(40)
    assert outer == Ensemble(
        {
            "inner": Ensemble({"fast": recipe("fast").with_steps(40), "dlg": recipe("dlg").with_steps(2)}),
            "analytic": Analytic(),
        }
    )


def test_without_members_that_take_steps_there_are_none_to_change() -> None:
    with pytest.raises(SettingsError, match="'ensemble' takes no steps"):
        Ensemble({"analytic": Analytic()}).with_steps(3)
    with pytest.raises(SettingsError, match="'ensemble' takes no steps"):
        Ensemble({"analytic": Analytic()}).with_budget(3)
    with pytest.raises(SettingsError, match="at least one"):
        Ensemble({})
