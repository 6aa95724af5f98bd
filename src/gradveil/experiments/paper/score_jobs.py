"""How policies are scored and searched for."""

from pathlib import Path
from typing import Any

import torch

from gradveil.data import DataSet
from gradveil.experiments.paper.units import ScoreUnit, SearchUnit, shorten
from gradveil.experiments.paper.weights import load_weights, loss_of, weights_at
from gradveil.rng import generator
from gradveil.scores import AccuracyScore, PrivacyScore, choose_accuracy_images, choose_privacy_images
from gradveil.search import SearchSettings, run_search
from gradveil.transforms import parse_policy
from gradveil.workers import Report

ACCURACY_BATCH = 50


def score_unit(unit: ScoreUnit, data: DataSet, folder: Path, device: str) -> dict[str, Any]:
    """Score one policy image by image, or batch by batch for S_acc."""
    spec, weights = load_weights(unit.model, unit.phase, data, folder)
    model = spec.build(generator(unit.model.seed, "model"))
    model.load_state_dict(dict(weights))
    model = model.to(device).eval()
    policy = parse_policy(unit.policy)
    if unit.score == "s-acc":
        accuracy = make_accuracy_score(model, data, unit.form, unit.model.seed)
        return {"scores": [shorten(value) for value in accuracy.batch_scores(policy)]}
    privacy = make_privacy_score(unit, model, data)
    curves = privacy.curves(policy, privacy.quadrature.nodes)
    found: dict[str, Any] = {"scores": [shorten(value) for value in privacy.area(curves).tolist()]}
    if unit.curves:
        found["points"] = list(privacy.quadrature.nodes)
        found["curves"] = [[round(value, 4) for value in curve] for curve in curves.tolist()]
    return found


def make_privacy_score(unit: ScoreUnit, model: torch.nn.Module, data: DataSet) -> PrivacyScore:
    places = choose_privacy_images(data, unit.images, unit.model.seed)
    return PrivacyScore(
        model,
        data.test.images[places],
        data.test.labels[places],
        form=unit.form,  # type: ignore[arg-type]  # a wrong name is refused there
        quadrature=unit.quadrature,
        start=unit.start,  # type: ignore[arg-type]
        loss=loss_of(unit.model),
        seed=unit.model.seed,
    )


def make_accuracy_score(model: torch.nn.Module, data: DataSet, form: str, seed: int) -> AccuracyScore:
    places = choose_accuracy_images(data, seed, ACCURACY_BATCH)
    return AccuracyScore(
        model,
        data.test.images[places],
        data.test.labels[places],
        form=form,  # type: ignore[arg-type]
        batch=ACCURACY_BATCH,
        batches=len(places) // ACCURACY_BATCH,
        seed=seed,
    )


def search_unit(unit: SearchUnit, data: DataSet, folder: Path, device: str, report: Report) -> dict[str, Any]:
    """Search on the semi-trained model; a search that was cut short goes on."""
    place = folder / "searches" / unit.key
    settings = SearchSettings(
        data=data.name,
        model=unit.model.model,
        candidates=unit.candidates,
        keep=unit.keep,
        images=unit.images,
        device=device,
        seed=unit.model.seed,
    )
    begun = (place / "journal.jsonl").exists()
    place.parent.mkdir(parents=True, exist_ok=True)
    found = run_search(
        settings,
        data,
        place,
        resume=begun,
        checkpoint=weights_at(folder, unit.model),
        progress=lambda _, done, total: report(done, total),
    )
    kept = [[one.policy, shorten(one.mean), shorten(one.accuracy_score)] for one in found.outcome.kept]
    return {"kept": kept, "hybrid": found.hybrid}
