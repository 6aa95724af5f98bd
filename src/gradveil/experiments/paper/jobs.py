"""How a unit is run, wherever that is; the folder must be one that all workers see."""

from collections.abc import Sequence, Set
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, final

import torch
from safetensors.torch import save

from gradveil.attacks import Attack, GradientMatching, find_attack
from gradveil.audit import (
    Attacked,
    Candidates,
    Cell,
    CellJob,
    Floors,
    FloorSettings,
    Row,
    Scene,
    Scorer,
    Share,
    TrainJob,
    choose_candidates,
    make_floors,
    rebuilt_pair,
)
from gradveil.data import DataSet, choose_attacked, choose_public
from gradveil.defences import Arm, Defence, Hook, parse_arm
from gradveil.experiments.paper.quirks import HALVED_LOSS
from gradveil.experiments.paper.score_jobs import score_unit, search_unit
from gradveil.experiments.paper.units import AttackUnit, ScoreUnit, TrainUnit, Unit, recipe_of, shorten
from gradveil.experiments.paper.weights import load_weights, loss_of, spec_of, weights_at
from gradveil.results import PRIVATE, write_file
from gradveil.types import Batch, LocalTraining, Reconstruction, Update
from gradveil.workers import Report, Shared

PUBLIC = 500
EPSILON = 1.0
"""An attack counts if it gains so many dB over chance, as in the audit's rule."""
LOCAL_RATE = 0.01
"""The local learning rate of several epochs, that of Geiping et al. (2020)."""
TRACE_POINTS = 10
KEPT = (
    *("image", "label", "status", "reason", "psnr_transformed", "psnr_original", "floor_transformed"),
    *("floor_original", "advantage_transformed", "advantage_original", "ssim_transformed", "identified"),
    *("identified_original", "crowd", "reached", "statistic", "limit", "matching_loss", "seconds"),
)
"""What the journal keeps of a row."""


@final
@dataclass(frozen=True, repr=False)
class Halved(Defence):
    """Release half the gradient, as the published code did; no attacker is told."""

    hooks: ClassVar[tuple[Hook, ...]] = ("release",)

    def __str__(self) -> str:
        return HALVED_LOSS

    def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
        return replace(update, tensors={name: tensor / 2 for name, tensor in update.tensors.items()})


@dataclass(frozen=True, eq=False)
class UnitJob:
    """Run one unit in the cache folder of the study."""

    unit: Unit
    data: Shared[DataSet]
    folder: Path
    device: str = "cpu"

    def run(self, report: Report) -> dict[str, Any]:
        """Return what the journal keeps."""
        data, unit = self.data.get(), self.unit
        if isinstance(unit, TrainUnit):
            return train_unit(unit, data, self.folder, self.device, report)
        if isinstance(unit, AttackUnit):
            return attack_unit(unit, data, self.folder, self.device, report)
        if isinstance(unit, ScoreUnit):
            return score_unit(unit, data, self.folder, self.device)
        return search_unit(unit, data, self.folder, self.device, report)


def pictures_at(folder: Path, unit: AttackUnit) -> Path:
    """Say where the pictures of an attack are."""
    return folder / "pictures" / f"{unit.key}.safetensors"


def train_unit(unit: TrainUnit, data: DataSet, folder: Path, device: str, report: Report) -> dict[str, Any]:
    """Train a model; a training that was cut short goes on."""
    place = weights_at(folder, unit).parent
    arm = parse_arm(unit.arm)
    job = TrainJob(spec_of(unit, data), data, unit.training, arm, ("final",), unit.seed, device, place)
    result = job.run(report)
    curves = [{name: shorten(value) for name, value in asdict(point).items()} for point in result.curves]
    return {
        "test_accuracy": result.test_accuracy,
        "seconds": round(result.seconds, 1),
        "curves": curves,
        "images": [len(data.train), len(data.test)],
    }


def attack_unit(unit: AttackUnit, data: DataSet, folder: Path, device: str, report: Report) -> dict[str, Any]:
    """Attack some images, score them beside chance and other images, and keep the pictures."""
    arm = parse_arm(unit.arm)
    released = Arm(arm.name, (*arm.defences, *((Halved(),) if HALVED_LOSS in unit.quirks else ())))
    spec, weights = load_weights(unit.model, unit.phase, data, folder)
    seed = unit.model.seed
    scene = Scene(spec, weights, released, unit.phase, make_local(unit), None, True, unit.told, seed)
    shares = tuple((share,) for share in make_shares(unit, data))
    attack, public = make_attack(unit), choose_known(unit, data)
    attacked = CellJob(scene, shares, attack, unit.attack, public, device, keep_history=True).run(report)
    scored = score_cell(unit, data, arm, attacked)
    keep_pictures(pictures_at(folder, unit), attacked)
    pairs = zip(scored.pairs(), attacked, strict=True)
    layers = {name for name, tensor in weights.items() if tensor.dim() > 1}
    return {"rows": [describe(row, null, one, layers) for (row, null), one in pairs]}


def make_local(unit: AttackUnit) -> LocalTraining:
    """Say how the attacked client works: one gradient, or the change of the weights over some epochs."""
    if unit.epochs is None:
        return LocalTraining(loss=loss_of(unit.model))
    return LocalTraining(epochs=unit.epochs, learning_rate=LOCAL_RATE, loss=loss_of(unit.model))


def choose_places(unit: AttackUnit, data: DataSet) -> list[int]:
    """Choose the attacked images: the next ones of the balanced choice, or of the test split as it is stored."""
    end = unit.first + unit.count
    every = range(end) if unit.choice == "first" else choose_attacked(data, end, unit.model.seed)
    return list(every[unit.first : end])


def choose_known(unit: AttackUnit, data: DataSet) -> Batch:
    """Choose the attacker's public images: training images, or test images if it learns from them."""
    places = choose_learnt(unit, data)
    if places:
        return Batch(data.test.images[places], data.test.labels[places])
    return choose_public(data, min(PUBLIC, len(data.train) // 2), unit.model.seed).batch()


def choose_learnt(unit: AttackUnit, data: DataSet) -> list[int]:
    """Choose what an attacker learns from: at most half of the test images that are not attacked.

    The clients trained on all training images, and what is learnt from must be none of theirs.
    """
    wanted, end = make_attack(unit).public_images, unit.first + unit.count
    last = end + min(wanted, (len(data.test) - end) // 2)
    return list(choose_attacked(data, last, unit.model.seed)[end:]) if wanted > PUBLIC else []


def make_shares(unit: AttackUnit, data: DataSet) -> list[Share]:
    """Deal the attacked images to clients."""
    places, size = choose_places(unit, data), unit.per_client
    parts = [places[start : start + size] for start in range(0, len(places), size)]
    return [Share(tuple(part), Batch(data.test.images[part], data.test.labels[part])) for part in parts]


def make_attack(unit: AttackUnit) -> Attack:
    """Make the attack with its own steps and restarts, or with those of the scale."""
    attack = find_attack(recipe_of(unit.attack))
    if unit.restarts is not None:
        assert isinstance(attack, GradientMatching)
        attack = replace(attack, restarts=replace(attack.restarts, count=unit.restarts))
    return attack if unit.steps is None else attack.with_steps(unit.steps)


def score_cell(unit: AttackUnit, data: DataSet, arm: Arm, attacked: Sequence[Attacked]) -> Cell:
    """Score what was rebuilt, round by round; what was learnt from is none of the images that it is held against."""
    size, seed = unit.per_client, unit.model.seed
    floors = find_floors(data, arm, FloorSettings(unit.floor_images, True, size, seed))
    every = choose_places(replace(unit, first=0, count=unit.first + unit.count), data)
    known = [*every, *choose_learnt(unit, data)]
    pool = choose_candidates(data, known, data.test.labels[choose_places(unit, data)], seed)
    scorer = Scorer(floors, Candidates(pool, arm, floors, seed), EPSILON, True, seed)
    rounds = [attacked[start : start + size] for start in range(0, len(attacked), size)]
    return scorer.score_cell(unit.arm, unit.phase, unit.attack, rounds)


@lru_cache(maxsize=8)
def find_floors(data: DataSet, arm: Arm, settings: FloorSettings) -> Floors:
    """Make the chance floors of an arm; several units in a row share them."""
    return make_floors(data, [arm], settings, lambda _: None)[arm.name]


def describe(row: Row, null: Sequence[float], attacked: Attacked, layers: Set[str]) -> dict[str, Any]:
    """Return what the journal keeps of one image, with the similarity of four of the `layers` on the way.

    `control` is the mean score of wrong updates: for the other images of the class, this update is one.
    """
    record = row.to_record()
    return {
        **{name: shorten(record[name]) for name in KEPT},
        "control": shorten(fmean(null)) if null else None,
        "layers": trace_layers(attacked.reconstruction, layers),
    }


def trace_layers(result: Reconstruction, layers: Set[str]) -> dict[str, list[float]]:
    """Return the similarity of the two shallowest and two deepest `layers` at about ten moments, with these moments.

    The attack names parameters in the order of the model; a state from disk is in that of the alphabet.
    """
    points = result.similarities
    if not points:
        return {}
    kept = points[:: max(1, len(points) // TRACE_POINTS)]
    names = [name for name in points[0][1] if name in layers]
    shown = dict.fromkeys([*names[:2], *names[-2:]])
    traces = {name: [round(alike[name], 3) for _, alike in kept] for name in shown}
    return {"steps": [step for step, _ in kept], **traces}


def keep_pictures(place: Path, attacked: Sequence[Attacked]) -> None:
    """Write x, T(x) and what was rebuilt of each; only their owner can read them."""
    place.parent.mkdir(parents=True, exist_ok=True)
    pairs = [rebuilt_pair(one.reconstruction.images[:1], one.reconstruction.transformed) for one in attacked]
    pictures = {
        "original": torch.cat([one.truth.original for one in attacked]),
        "fed": torch.cat([one.truth.transformed for one in attacked]),
        "rebuilt": torch.cat([own for _, own in pairs]).nan_to_num(0),
        "rebuilt_fed": torch.cat([fed[:1] for fed, _ in pairs]).nan_to_num(0),
    }
    write_file(place, save({name: tensor.contiguous() for name, tensor in pictures.items()}), PRIVATE)
