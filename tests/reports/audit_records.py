"""Whole records of audits with their pictures, made from a seed, for the tests of pages and files."""

import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gradveil.reports import Frames, Pictures
from gradveil.results import seal

SCRIPT = "<script>alert('arm')</script>"
LONG = "policy:" + "+".join(["3-1-7"] * 40)
CELLS = (
    ("none", "init", "leaks"),
    ("crop-flip", "init", "some"),
    ("dpsgd:noise=1.1:clip=1", "init", "none-found"),
    (SCRIPT, "init", "undecided"),
    ("none", "final", "leaks"),
    ("crop-flip", "final", "untrusted"),
    ("dpsgd:noise=1.1:clip=1", "final", "undecided"),
    (SCRIPT, "final", "none-found"),
)
LEVELS = {"leaks": 9.0, "some": 0.5, "none-found": -0.4, "undecided": 0.8, "untrusted": 0.2}
CLASS_NAMES = ("shoe", 'a "quoted" & <b>bold</b> bag', "coat")
VERDICT = "The shared updates leak: in 3 of 8 settings the attacker rebuilt pictures beyond chance."
THREAT_MODEL = "Someone who receives one client's update keeps to the protocol and computes. They know the model."
CANDIDATES = 20
THRESHOLD = 1.8


def make_record(
    images: int = 6,
    cells: Sequence[tuple[str, str, str]] = CELLS,
    attack: str = "fast",
    seed: int = 0,
    failed: bool = True,
) -> dict[str, Any]:
    """Make a sealed record; with `failed`, the last image of the first cell has no result."""
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    summaries = []
    for number, (arm, phase, outcome) in enumerate(cells):
        own = [make_row(draw, arm, phase, attack, image, outcome) for image in range(images)]
        if failed and number == 0:
            own[-1] = fail(own[-1])
        rows += own
        summaries.append(summarise(arm, phase, attack, outcome, own))
    arms = dict.fromkeys(arm for arm, _, _ in cells)
    return seal(
        {
            "schema": 1,
            "command": "audit",
            "settings": make_settings(
                list(arms), list(dict.fromkeys(phase for _, phase, _ in cells)), attack, images, seed
            ),
            "verdict": VERDICT,
            "outcome": min((outcome for _, _, outcome in cells), key=list(LEVELS).index),
            "expected_false_findings": 0.05,
            "threat_model": THREAT_MODEL,
            "kind": "diagnostic",
            "command_line": "gradveil audit --preset standard --out 'runs/a b'",
            "canaries": [],
            "summaries": summaries,
            "floors": {arm: {"transformed": "class mean", "original": "class mean"} for arm in arms},
            "test_accuracy": {arm: round(0.9 - 0.07 * place, 6) for place, arm in enumerate(arms)},
            "arms": {arm: describe(arm) for arm in arms},
            "random_policies": [],
            "model_parameters": 55666,
            "class_names": list(CLASS_NAMES),
            "notices": [],
            "audit_version": 3,
            "standard_version": 6,
            "attacker_needs": {attack: ["the model and the loss", "the number of images"]},
            "rows": rows,
            "environment": {
                "gradveil": "0.1.0",
                "python": "3.11.7",
                "torch": "2.13.0+cpu",
                "system": "Linux x86_64",
                "processor": "a processor",
                "cores": 2,
                "finished": "2026-11-18T01:41:45+00:00",
                "commit": "0123456789ab",
            },
        }
    )


def make_settings(arms: list[str], phases: list[str], attack: str, images: int, seed: int) -> dict[str, Any]:
    return {
        "data": "fashion-mnist-sample",
        "model": "lenet-relu",
        "arms": arms,
        "phases": phases,
        "attacks": [attack],
        "images": images,
        "labels": "known",
        "knows_defence": True,
        "local": {"mode": "eval", "learning_rate": 0.1, "steps": None},
        "preset": "standard",
        "rule": {"epsilon": 1.0, "delta": 0.1, "gamma": 0.05, "error": 0.05},
        "sequential": True,
        "seed": seed,
    }


def make_row(draw: random.Random, arm: str, phase: str, attack: str, image: int, outcome: str) -> dict[str, Any]:
    fed = draw.gauss(LEVELS[outcome], 1.5 if outcome == "leaks" else 0.7)
    if outcome == "some" and image == 0:
        fed = 7.5
    original = fed - abs(draw.gauss(0.6, 0.4))
    reached = fed >= THRESHOLD
    rank = 1 if reached and draw.random() < 0.8 else draw.randint(1, CANDIDATES)
    advantages = {"transformed": fed, "original": original}
    figures: dict[str, float] = {}
    for target, advantage in advantages.items():
        figures |= {
            f"psnr_{target}": 14 + advantage,
            f"floor_{target}": 13.5,
            f"aligned_{target}": 15 + advantage,
            f"aligned_floor_{target}": 15.0,
            f"advantage_{target}": advantage,
            f"ssim_{target}": min(1.0, 0.2 + 0.06 * max(0.0, advantage)),
        }
    return {
        "arm": arm,
        "phase": phase,
        "attack": attack,
        "image": 100 + image,
        "label": image % len(CLASS_NAMES),
        "status": "ok",
        **{name: round(value, 6) for name, value in figures.items()},
        "p_value": round(0.0004 if reached else draw.uniform(0.05, 1), 6),
        "reached": reached,
        "hit": reached,
        "identified": rank == 1,
        "rank": rank,
        "candidates": CANDIDATES,
        "match_rebuilt": round(draw.uniform(1e-5, 1e-3), 6),
        "match_truth": 0.0,
        "matching_loss": round(draw.uniform(1e-4, 1e-2), 6),
        "label_found": True,
        "seconds": 1.25,
        "reason": "",
        "approximations": [],
    }


def fail(row: dict[str, Any]) -> dict[str, Any]:
    """Turn a row into one of an attack that came to nothing."""
    kept = ("arm", "phase", "attack", "image", "label", "seconds", "approximations")
    empty = {name: None for name in row if name not in kept}
    return {**row, **empty, "status": "failed", "reached": False, "hit": False, "reason": "the loss became <b>NaN</b>"}


def summarise(arm: str, phase: str, attack: str, outcome: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    sound = [row for row in rows if row["status"] == "ok"]
    names = [name for name in sound[0] if name.startswith(("psnr", "floor", "aligned", "advantage", "ssim"))]
    found = sum(row["identified"] for row in sound)
    reached = sum(row["reached"] for row in sound)
    worst = max(sound, key=lambda row: row["advantage_transformed"])
    return {
        "arm": arm,
        "phase": phase,
        "attack": attack,
        "kind": "diagnostic" if phase == "init" else "deployment",
        "images": len(rows),
        "failed": len(rows) - len(sound),
        "outcome": outcome,
        "reason": f"The attack reached {reached} of {len(sound)} images.",
        "figures": {name: figure([row[name] for row in sound]) for name in names},
        "share": {"reached": reached, "images": len(sound), **bounds(reached, len(sound))},
        "threshold": THRESHOLD,
        "null": {"count": 60, "low": -1.6, "median": -0.2, "high": 1.1},
        "identification": {"found": found, "images": len(sound), "candidates": CANDIDATES, **bounds(found, len(sound))},
        "identification_original": {
            "found": found // 2,
            "images": len(sound),
            "candidates": CANDIDATES,
            **bounds(found // 2, len(sound)),
        },
        "hits": [row["image"] for row in sound if row["hit"]],
        "worst": worst["image"],
        "worst_advantage": worst["advantage_transformed"],
        "decided_after": len(sound) if outcome == "leaks" else None,
        "converged": 0.9,
        "label_accuracy": 1.0,
        "seconds": 12.5,
        "accuracy": 0.1 if phase == "init" else round(0.9 - 0.01 * len(arm), 6),
        "accuracy_cost": None if phase == "init" else round(0.01 * (len(arm) - 4), 6),
        "definition": {"leaks": "not met", "some": "not met", "none-found": "met"}.get(outcome, "undecided"),
    }


def figure(values: Sequence[float]) -> dict[str, Any]:
    mean = sum(values) / len(values)
    std = (sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)) ** 0.5
    half = 2.2 * std / len(values) ** 0.5
    wide = len(values) < 2
    return {
        "mean": round(mean, 6),
        "low": None if wide else round(mean - half, 6),
        "high": None if wide else round(mean + half, 6),
        "std": round(std, 6),
        "count": len(values),
        "median": round(sorted(values)[len(values) // 2], 6),
    }


def bounds(found: int, images: int) -> dict[str, float]:
    share = found / images
    half = (0.25 / images) ** 0.5
    return {"low": round(max(0.0, share - half), 6), "high": round(min(1.0, share + half), 6)}


def describe(arm: str) -> dict[str, Any]:
    private = arm.startswith("dpsgd")
    promise = {"epsilon": 3.2, "delta": 1e-5, "noise": 1.1, "clip": 1.0, "rate": 0.02, "steps": 117, "remark": ""}
    return {
        "defences": [] if arm == "none" else [arm],
        "edits": ["batch normalisation becomes group normalisation"] if private else [],
        "training": promise if private else None,
        "released": {**promise, "epsilon": 5.9, "rate": 1.0, "steps": 1} if private else None,
        "bound": 0.08 if private else None,
        "used": {} if arm == "none" else {arm: "the strength of the noise" if private else "nothing yet"},
    }


def make_pictures(
    record: dict[str, Any], side: int = 12, channels: int = 1, frames: Sequence[int] = (0, 1)
) -> Pictures:
    """Make soft random pictures for the rows of a record; the better an attack, the nearer its picture to T(x)."""
    rows = record["rows"]
    generator = torch.Generator().manual_seed(len(rows))
    originals = soft(len({row["image"] for row in rows}), channels, side, generator)
    places = {image: place for place, image in enumerate(dict.fromkeys(row["image"] for row in rows))}
    original = torch.stack([originals[places[row["image"]]] for row in rows])
    fed = original.roll(1, dims=3)
    noise = soft(len(rows), channels, side, generator)
    share = torch.tensor([min(1.0, max(0.0, (row.get("advantage_transformed") or 0.0) / 12)) for row in rows])
    rebuilt = share[:, None, None, None] * fed + (1 - share)[:, None, None, None] * noise
    rebuilt[[row["status"] != "ok" for row in rows]] = 0
    return Pictures(original, fed, rebuilt, None, {row: make_frames(rebuilt[row], noise[row]) for row in frames})


def soft(count: int, channels: int, side: int, generator: torch.Generator) -> Tensor:
    coarse = torch.rand(count, channels, 4, 4, generator=generator)
    return torch.nn.functional.interpolate(coarse, size=(side, side), mode="bilinear", align_corners=True)


def make_frames(last: Tensor, first: Tensor, count: int = 5) -> Frames:
    shares = torch.linspace(0, 1, count)[:, None, None, None]
    return Frames(tuple(range(0, 20 * count, 20)), (1 - shares) * first + shares * last)
