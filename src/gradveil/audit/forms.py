"""How the results of an audit's jobs are written down: what was attacked, and what was trained."""

from dataclasses import asdict
from typing import Any

from gradveil.audit.jobs import Attacked
from gradveil.audit.kept import Form, Tensors
from gradveil.defences import Guarantee
from gradveil.rounds import Truth
from gradveil.training import Epoch, TrainingResult
from gradveil.types import Reconstruction

TRUTH = ("image", "label", "fed_label")
RESULT = ("matching_loss", "status", "history", "similarities", "reason", "approximations")
OWN = ("seconds", "processor_seconds", "notices", "match_rebuilt", "match_truth")


def pack_attacked(attacked: list[Attacked]) -> tuple[Tensors, Any]:
    """Take what was attacked apart."""
    tensors: Tensors = {}
    entries = []
    for place, one in enumerate(attacked):
        truth, result = one.truth, one.reconstruction
        own = {"original": truth.original, "transformed": truth.transformed, "images": result.images}
        own |= {"labels": result.labels}
        if result.transformed is not None:
            own["fed"] = result.transformed
        own |= {f"picture/{step}": picture for step, picture in result.pictures}
        tensors |= {f"{place}/{name}": tensor for name, tensor in own.items()}
        entries.append(
            {
                "truth": {name: getattr(truth, name) for name in TRUTH},
                "result": {name: getattr(result, name) for name in RESULT},
                "steps": [step for step, _ in result.pictures],
                "own": {name: getattr(one, name) for name in OWN},
            }
        )
    return tensors, entries


def unpack_attacked(tensors: Tensors, entries: Any) -> list[Attacked]:
    return [unpack_one(tensors, place, entry) for place, entry in enumerate(entries)]


def unpack_one(tensors: Tensors, place: int, entry: dict[str, Any]) -> Attacked:
    """Put one entry together; JSON has no tuples."""
    truth, result, own = entry["truth"], entry["result"], entry["own"]
    return Attacked(
        Truth(
            truth["image"],
            truth["label"],
            tensors[f"{place}/original"],
            tensors[f"{place}/transformed"],
            truth["fed_label"],
        ),
        Reconstruction(
            tensors[f"{place}/images"],
            tensors[f"{place}/labels"],
            result["matching_loss"],
            result["status"],
            tuple((step, loss) for step, loss in result["history"]),
            tuple((step, alike) for step, alike in result["similarities"]),
            tuple((step, tensors[f"{place}/picture/{step}"]) for step in entry["steps"]),
            tensors.get(f"{place}/fed"),
            result["reason"],
            tuple(result["approximations"]),
        ),
        **{**own, "notices": tuple(own["notices"])},
    )


def pack_trained(trained: TrainingResult) -> tuple[Tensors, Any]:
    """Take a training apart: its weights by phase, and all else."""
    tensors = {
        f"{phase}/{name}": tensor for phase, weights in trained.snapshots.items() for name, tensor in weights.items()
    }
    return tensors, {
        "phases": list(trained.snapshots),
        "curves": [asdict(point) for point in trained.curves],
        "test_accuracy": trained.test_accuracy,
        "seconds": trained.seconds,
        "guarantee": None if trained.guarantee is None else trained.guarantee.to_record(),
    }


def unpack_trained(tensors: Tensors, entry: Any) -> TrainingResult:
    snapshots = {
        phase: {
            name.removeprefix(f"{phase}/"): tensor for name, tensor in tensors.items() if name.startswith(f"{phase}/")
        }
        for phase in entry["phases"]
    }
    guarantee = entry["guarantee"]
    return TrainingResult(
        snapshots,
        tuple(Epoch(**point) for point in entry["curves"]),
        entry["test_accuracy"],
        entry["seconds"],
        None if guarantee is None else Guarantee(**guarantee),
    )


ATTACKED = Form(pack_attacked, unpack_attacked)
TRAINED = Form(pack_trained, unpack_trained)
