"""The ingredients of gradient matching, each against something known."""

from dataclasses import replace
from typing import cast

import pytest
import torch
from gradveil.attacks.release import known_draws
from gradveil.attacks.search import enlarge, shrink
from gradveil.models.frozen import freeze_batch_norm
from torch import Tensor, nn
from torch.nn import functional as F

from gradveil.attacks import (
    ATTACKS,
    Ensemble,
    GradientMatching,
    Preflight,
    labels_agree,
    linear_layers,
    matching_loss,
    preflight,
    read_inputs,
    with_steps,
)
from gradveil.attacks.distances import DISTANCES, lay_flat, levelling, similarities, sizes_of
from gradveil.attacks.labels import whole_counts
from gradveil.attacks.matching import best_restart, observe
from gradveil.attacks.observation import ALONE
from gradveil.attacks.optimisers import Adam, LimitedMemory, Nesterov, Optimiser
from gradveil.attacks.priors import disagreement, known_statistics, statistics_gap, total_variation, variation_slope
from gradveil.client import local_update
from gradveil.defences import defend_update, parse_arm
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.models import build
from gradveil.rng import generator
from gradveil.types import Batch, Reconstruction, Task


def bowl(points: Tensor) -> Tensor:
    """A convex function of each row, stiffer along later entries."""
    stiffness = torch.arange(1, points.shape[1] + 1, dtype=points.dtype)
    return (stiffness * (points - 1).square()).sum(1) + (points[:, :1] - 1).pow(4).sum(1)


def slopes_of(points: Tensor) -> Tensor:
    leaf = points.detach().requires_grad_()
    (slope,) = torch.autograd.grad(bowl(leaf).sum(), leaf)
    return slope


def walk(optimiser: Optimiser, points: Tensor, rate: float, steps: int) -> Tensor:
    for _ in range(steps):
        points = points + optimiser.move(slopes_of(points), rate)
    return points


def torch_walk(make: type[torch.optim.Optimizer], points: Tensor, steps: int, **settings: float | bool) -> Tensor:
    """Let torch's own optimiser walk each row alone."""
    rows = []
    for row in points:
        leaf = row[None].clone().requires_grad_()
        optimiser = make([leaf], **settings)  # type: ignore[arg-type]

        def closure(leaf: Tensor = leaf) -> float:
            leaf.grad = slopes_of(leaf)
            return float(bowl(leaf.detach()))

        for _ in range(steps):
            optimiser.step(closure)
        rows.append(leaf.detach()[0])
    return torch.stack(rows)


START = torch.randn(3, 5, generator=generator(0), dtype=torch.float64)


def test_adam_and_momentum_are_those_of_torch() -> None:
    torch.testing.assert_close(walk(Adam(START), START, 0.1, 30), torch_walk(torch.optim.Adam, START, 30, lr=0.1))
    expected = torch_walk(torch.optim.SGD, START, 30, lr=0.01, momentum=0.9, nesterov=True)
    torch.testing.assert_close(walk(Nesterov(START), START, 0.01, 30), expected)


def test_limited_memory_takes_the_path_of_torch() -> None:
    expected = torch_walk(torch.optim.LBFGS, START, 1, lr=0.5, max_iter=8, tolerance_change=0.0, tolerance_grad=0.0)
    torch.testing.assert_close(walk(LimitedMemory(START), START, 0.5, 8), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("make", [Adam, Nesterov, LimitedMemory])
def test_dropping_a_row_does_not_disturb_the_others(make: type[Adam] | type[Nesterov] | type[LimitedMemory]) -> None:
    whole = walk(make(START), START, 0.01, 6)
    optimiser = make(START)
    half = walk(optimiser, START, 0.01, 3)
    rows = torch.tensor([0, 2])
    optimiser.keep(rows)
    torch.testing.assert_close(walk(optimiser, half[rows], 0.01, 3), whole[rows])


def gradients_like(seed: int) -> dict[str, Tensor]:
    shapes = {"a": (2, 3, 4), "b": (2, 5)}
    return {name: torch.randn(*shape, generator=generator(seed, name)) for name, shape in shapes.items()}


def test_distances_are_zero_at_the_released_gradient_only() -> None:
    released = gradients_like(1)
    sizes = sizes_of(released)
    assert sizes == {"a": 12, "b": 5}
    flat = lay_flat(released, sizes)
    for measure in DISTANCES.values():
        torch.testing.assert_close(measure(flat, flat, sizes)[0], torch.zeros(2), atol=1e-6, rtol=0)
        assert bool((measure(flat + 0.5, flat, sizes)[0] > 1e-3).all())
    assert all(torch.allclose(values, torch.ones(2)) for values in similarities(flat, flat, sizes).values())


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_know_their_slopes(name: str) -> None:
    released, candidate = gradients_like(1), gradients_like(2)
    sizes = sizes_of(released)
    theirs, ours = lay_flat(released, sizes).double(), lay_flat(candidate, sizes).double().requires_grad_()
    distance, slope = DISTANCES[name](ours, theirs, sizes)
    (expected,) = torch.autograd.grad(distance.sum(), ours)
    torch.testing.assert_close(slope, expected)


@pytest.mark.parametrize("name", ["lenet-relu", "convnet-2"])
def test_one_by_one_or_side_by_side_is_the_same(name: str) -> None:
    model = build(name, (1, 12, 12), 4, (0.5,), (0.5,), generator(0)).eval()
    images, labels = torch.rand(3, 2, 1, 12, 12, generator=generator(1)), torch.tensor([[0, 1], [2, 3], [3, 3]])
    task = Task(model, F.cross_entropy, (1, 12, 12), 4, (0.5,), (0.5,))
    updates = [local_update(model, F.cross_entropy, Batch(*pair)) for pair in zip(images, labels, strict=True)]
    seen = observe(task, updates, torch.arange(3), None)
    assert len(images) > ALONE
    together = seen.candidate(images, labels)
    alone = torch.cat([seen.candidate(*pair) for pair in zip(images[:, None], labels[:, None], strict=True)])
    torch.testing.assert_close(together, seen.released, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(alone, seen.released, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("defence", ["prune:95", "topk:5", "soteria:40", "sign", "prune:95,sign"])
def test_the_true_image_matches_through_a_known_release(defence: str) -> None:
    model = build("lenet-relu", (1, 12, 12), 4, (0.5,), (0.5,), generator(0)).eval()
    batch = Batch(torch.rand(1, 1, 12, 12, generator=generator(1)), torch.tensor([2]))
    task = Task(model, F.cross_entropy, (1, 12, 12), 4, (0.5,), (0.5,))
    update = defend_update(parse_arm(f"{defence},no-base").defences, model, task.loss, batch, generator(2))
    told = replace(task, known_defences=tuple(defence.split(",")))
    assert matching_loss(task, update, batch.images, batch.labels) > 1e-3
    assert matching_loss(told, update, batch.images, batch.labels) == pytest.approx(0, abs=1e-5)
    seen = observe(told, [update] * 3, torch.arange(3), None).keep(torch.tensor([0, 2]))
    candidate = seen.candidate(batch.images.expand(2, 1, -1, -1, -1), batch.labels.expand(2, 1))
    if "sign" in defence:
        torch.testing.assert_close(candidate.sign(), seen.released.sign())
    else:
        torch.testing.assert_close(candidate, seen.released, rtol=1e-3, atol=1e-5)


def test_what_a_known_bottleneck_drew_is_left_out() -> None:
    (precode,) = parse_arm("precode:width=4,no-base").defences
    plain = build("lenet-relu", (1, 12, 12), 4, (0.5,), (0.5,), generator(0)).eval()
    model = precode.model(plain, generator(1))
    batch = Batch(torch.rand(1, 1, 12, 12, generator=generator(1)), torch.tensor([2]))
    task = Task(model, F.cross_entropy, (1, 12, 12), 4, (0.5,), (0.5,), (str(precode), "prune:50"))
    update = defend_update(parse_arm("prune:50,no-base").defences, model, task.loss, batch, generator(2))
    seen = observe(task, [update], torch.arange(1), None)
    assert seen.release.shown is not None
    shown = dict(zip(seen.sizes, torch.split(seen.release.shown[0], list(seen.sizes.values())), strict=True))
    for name, entries in shown.items():
        if name.startswith("head."):
            assert not entries.any()
        else:
            assert torch.equal(entries, update.tensors[name].flatten() != 0)
    nothing_else = precode.model(nn.Sequential(nn.Flatten(), nn.Linear(144, 4)), generator(1))
    assert known_draws(replace(task, model=nothing_else), {"1.0.encode.weight": 1, "1.1.weight": 1}) is None
    assert known_draws(replace(task, known_defences=()), seen.sizes) is None


def test_levelling_gives_every_parameter_the_same_say() -> None:
    released, candidate = gradients_like(1), gradients_like(2)
    released["a"], candidate["a"] = 1000 * released["a"], 1000 * candidate["a"]
    sizes = sizes_of(released)
    theirs, ours = lay_flat(released, sizes), lay_flat(candidate, sizes)
    apart = (ours / ours.norm(dim=1, keepdim=True) - theirs / theirs.norm(dim=1, keepdim=True)).square()
    factors = levelling(ours, theirs, sizes)
    for part in torch.split(apart * factors.square(), list(sizes.values()), 1):
        torch.testing.assert_close(part.mean(1), torch.ones(2), rtol=1e-4, atol=0)
    torch.testing.assert_close(levelling(5 * ours, theirs, sizes), factors, rtol=1e-4, atol=0)


def test_an_entry_that_never_differs_has_no_infinite_weight() -> None:
    released = gradients_like(1)
    sizes = sizes_of(released)
    flat = lay_flat(released, sizes)
    assert bool(levelling(flat, flat, sizes).isfinite().all())


def finishing(noise: float) -> tuple[list[bool], list[float]]:
    """Attack one image whose gradient has noise in it; give whether runs kept finishing, and their losses."""
    model = build("lenet-relu", (1, 12, 12), 4, (0.5,), (0.5,), generator(0)).eval()
    task = Task(model, F.cross_entropy, (1, 12, 12), 4, (0.5,), (0.5,))
    smooth = torch.linspace(0, 1, 12).view(1, 1, 12, 1).expand(1, 1, 12, 12).contiguous()
    update = local_update(model, F.cross_entropy, Batch(smooth, torch.tensor([2])))
    tensors = {
        name: tensor + noise * torch.randn(tensor.shape, generator=generator(3, name))
        for name, tensor in update.tensors.items()
    }
    attack = replace(cast(GradientMatching, ATTACKS["fast"]), steps=60)
    search = attack.prepare(task, [replace(update, tensors=tensors)], [[generator(1), generator(2)]])
    active: list[bool] = []
    for step in search.run():
        if step == attack.steps - 1 and search.finish is not None:
            active = search.finish.active.tolist()
    return active, [one.matching_loss for one in search.results()]


def test_finishing_stays_with_an_exact_gradient_and_is_given_up_in_noise() -> None:
    exact, losses = finishing(0.0)
    assert exact == [True, True]
    assert max(losses) < 0.01
    noisy, losses = finishing(0.1)
    assert noisy == [False, False]
    assert all(loss > 0.01 for loss in losses)


def test_total_variation_counts_both_directions() -> None:
    stripes = torch.tensor([0.0, 1.0]).repeat(2, 2).view(1, 1, 1, 2, 4)
    assert float(total_variation(stripes)) == 1.0
    assert float(total_variation(stripes.transpose(-1, -2).contiguous())) == 1.0


def test_the_slope_of_the_total_variation_is_known() -> None:
    images = torch.randn(2, 3, 2, 5, 4, generator=generator(0), requires_grad=True)
    (expected,) = torch.autograd.grad(total_variation(images).sum(), images)
    torch.testing.assert_close(variation_slope(images.detach()), expected)


def test_disagreement_is_within_a_target() -> None:
    images = torch.tensor([0.0, 2.0, 7.0]).view(3, 1, 1, 1, 1)
    assert disagreement(images, torch.tensor([0, 0, 1])).tolist() == [1.0, 1.0, 0.0]


def test_statistics_of_the_client_are_read_from_its_buffers() -> None:
    model = build("convnet-2", (1, 12, 12), 4, (0.5,), (0.5,), generator(0))
    images = torch.rand(6, 1, 12, 12, generator=generator(1))
    before = freeze_batch_norm(model.eval())
    after = build("convnet-2", (1, 12, 12), 4, (0.5,), (0.5,), generator(0)).train()
    after(images)
    sent = {name: tensor for name, tensor in after.state_dict().items() if "running" in name}
    known = known_statistics(model, sent)
    first = next(iter(known))
    gap = statistics_gap(before, images[None], {first: known[first]})
    elsewhere = statistics_gap(before, 1 - images[None].square(), {first: known[first]})
    assert float(gap.detach()) < 1e-4
    assert float(elsewhere.detach()) > 100 * float(gap.detach())


def test_scales_keep_the_picture() -> None:
    smooth = torch.linspace(0, 1, 28).view(1, 1, 1, 28, 1).expand(1, 1, 1, 28, 28)
    assert shrink(smooth, 4).shape == (1, 1, 1, 7, 7)
    assert float((enlarge(shrink(smooth, 4), (28, 28)) - smooth).abs().max()) < 0.07


def test_the_loss_alone_chooses_and_failures_lose() -> None:
    image = torch.zeros(1, 1, 2, 2)
    results = [
        Reconstruction(image, torch.zeros(1), float("nan"), "failed"),
        Reconstruction(image, torch.zeros(1), 0.5),
        Reconstruction(image, torch.zeros(1), 0.2),
    ]
    assert best_restart(results) is results[2]
    assert best_restart(results[:1]) is results[0]


def test_rounding_keeps_the_number_of_images() -> None:
    for count in (1, 5, 8):
        assert int(whole_counts(torch.rand(7, generator=generator(count)), count).sum()) == count
    assert labels_agree(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 0},
        {"learning_rate": 0.0},
        {"total_variation": -1.0},
        {"scales": (1, 2)},
        {"prune": (1.5,)},
        {"last_variation": 0.1, "total_variation": 0.0},
        {"energy": float("nan")},
        {"finish": "direction", "finish_from": 1.5},
        {"finish": "direction", "scales": (2, 1)},
        {"finish": "direction", "optimiser": "lbfgs"},
    ],
)
def test_settings_out_of_range_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(SettingsError):
        GradientMatching(**change)  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [{"distance": "l3"}, {"finish": "l3"}, {"optimiser": "adamw"}, {"start": "nowhere"}])
def test_unknown_names_are_refused(change: dict[str, str]) -> None:
    with pytest.raises(UnknownNameError):
        GradientMatching(**change)  # type: ignore[arg-type]


def test_schedules_end_where_they_should() -> None:
    drops = GradientMatching(steps=80)
    assert [drops.rate(step) for step in (0, 30, 50, 70)] == pytest.approx([0.1, 0.01, 0.001, 0.0001])
    annealed = GradientMatching(steps=10, total_variation=1.0, last_variation=0.01)
    assert annealed.variation_weight(0) == 1.0
    assert annealed.variation_weight(5) == pytest.approx(0.1)


def mlp_task(model: nn.Module) -> Task:
    return Task(model, F.cross_entropy, (1, 12, 12), 4, (0.5,), (0.5,))


def test_features_are_read_all_along_a_stack_of_linear_layers() -> None:
    model = build("mlp", (1, 12, 12), 4, (0.5,), (0.5,), generator(0)).eval()
    image = torch.rand(1, 1, 12, 12, generator=generator(1))
    update = local_update(model, F.cross_entropy, Batch(image, torch.tensor([2])))
    seen: dict[str, Tensor] = {}
    layers = linear_layers(mlp_task(model))
    for name in layers:
        model.get_submodule(name).register_forward_pre_hook(
            lambda _, inputs, name=name: seen.update({name: inputs[0].detach()})
        )
    model(image)
    assert len(layers) == 3
    for name in layers:
        torch.testing.assert_close(read_inputs(update, name).float(), seen[name], rtol=1e-3, atol=1e-4)


def test_preflight_agrees_without_a_defence_and_notices_one() -> None:
    model = build("lenet-relu", (1, 12, 12), 4, (0.5,), (0.5,), generator(0)).eval()
    batch = Batch(torch.rand(2, 1, 12, 12, generator=generator(1)), torch.tensor([0, 1]))
    task = mlp_task(model)
    update = local_update(model, F.cross_entropy, batch)
    assert preflight(task, batch, update) == Preflight(0.0)
    halved = replace(update, tensors={name: tensor / 2 for name, tensor in update.tensors.items()})
    found = preflight(task, batch, halved)
    assert not found.agrees
    assert "differs" in found.notices[0]


def test_preflight_names_dropout_and_batch_statistics() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5), nn.Flatten(), nn.Linear(2 * 10 * 10, 4)
    )
    batch = Batch(torch.rand(2, 1, 12, 12, generator=generator(1)), torch.tensor([0, 1]))
    quiet = preflight(mlp_task(model.eval()), batch, local_update(model, F.cross_entropy, batch))
    assert quiet.notices == ()
    with torch.random.fork_rng():
        loud = preflight(mlp_task(model.train()), batch, local_update(model, F.cross_entropy, batch))
    assert any("dropout" in notice for notice in loud.notices)
    assert any("batch normalisation" in notice for notice in loud.notices)


def test_steps_reach_every_member_that_takes_any() -> None:
    shortened = with_steps(ATTACKS["standard"], 40)
    assert isinstance(shortened, Ensemble)
    steps = {name: member.steps for name, member in shortened.members.items() if isinstance(member, GradientMatching)}
    assert set(shortened.members) - set(steps) == {"analytic"}
    assert steps.pop("l-bfgs") == 2, "one of its steps takes twenty gradients"
    assert set(steps.values()) == {40}
    assert with_steps(ATTACKS["standard"], None) is ATTACKS["standard"]
