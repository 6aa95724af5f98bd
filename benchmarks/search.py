"""The whole search: the published loop against `random` against `racing`, and what they find.

The plain loop takes S_acc of every candidate and S_pri of those that qualify, one gradient at a time. It is timed on a
few policies and scaled linearly, its S_pri to the candidates that qualify. `random` scores everyone in full, so its
ranking is the exhaustive one that racing is held against; both begin from nothing. Work is processor time, of the jobs
and of the process that gives them, so other work on the machine counts little. Every result is kept in `runs/` and not
computed again: stop it and run it again to go on. `python -m benchmarks.search --quick` tries the benchmark itself.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks._projection import print_projection
from benchmarks.scores_plain import plain_accuracy_at, plain_privacy_at
from gradveil import data
from gradveil.data import DataSet
from gradveil.journal import Journal
from gradveil.scores import AccuracyScore, PrivacyScore, simplify
from gradveil.search import Outcome, SearchSettings, read_records, run_search
from gradveil.search.candidates import draw_policy
from gradveil.search.jobs import JobInputs, make_inputs
from gradveil.search.scoring_model import prepare_model, train_model
from gradveil.transforms import parse_policy
from gradveil.workers import Report, Shared, Workers

OUT = Path("runs/bench-search")
# Near the lower sixth of 16 and 10 random policies: those that make images alike to a fresh network are left out.
THRESHOLDS = {"resnet20-1": "-1.62", "convnet-16": "-1.17", "lenet-relu": "-1.8"}
TARGETS = {"random": 2.0, "racing": 40.0}


@dataclass(frozen=True)
class Size:
    """How large the benchmark is."""

    models: tuple[str, ...] = ("resnet20-1", "convnet-16")
    candidates: int = 200
    images: int = 40
    keep: int = 10
    plain: int = 10
    workers: int = 2


QUICK = Size(("lenet-relu",), 40, 16, 4, 2)


@dataclass(frozen=True)
class PlainJob:
    """Score one policy as the published code does; returns processor seconds for S_pri and for S_acc."""

    inputs: Shared[JobInputs]
    policy: str

    def run(self, report: Report) -> tuple[float, float]:
        own, policy = self.inputs.get(), parse_policy(self.policy)
        model, images, seed = own.inputs.task.model, own.inputs.images, own.inputs.seed
        privacy = PrivacyScore(model, images.images, images.labels, seed=seed)
        accuracy = AccuracyScore(
            own.fresh,
            own.accuracy_images.images,
            own.accuracy_images.labels,
            form="reference",
            batches=own.accuracy_batches,
            seed=seed,
        )
        started = time.process_time()
        for place in range(len(images)):
            plain_privacy_at(model, privacy, policy, place)
            report(place, len(images))
        middle = time.process_time()
        plain_accuracy_at(own.fresh, accuracy, policy)
        return middle - started, time.process_time() - middle


WAYS: dict[str, dict[str, str]] = {
    "random": {"strategy": "random"},
    "racing": {"strategy": "racing"},
    "racing, trapezoid-21": {"strategy": "racing", "quadrature": "trapezoid-21"},
}
"""The last one re-scores its survivors by 20 gradients an image instead of 6."""


def make_settings(model: str, size: Size, way: str) -> SearchSettings:
    settings = SearchSettings(
        model=model,
        candidates=size.candidates,
        images=size.images,
        keep=size.keep,
        accuracy_threshold=THRESHOLDS[model],
    )
    return replace(settings, **WAYS[way])  # type: ignore[arg-type]


class Bench:
    """One model's part of the benchmark, in a folder of its own."""

    def __init__(self, model: str, size: Size, sample: DataSet, folder: Path) -> None:
        self.model, self.size, self.sample = model, size, sample
        self.folder = folder / f"{model}-{size.candidates}x{size.images}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.journal = Journal(self.folder / "bench.jsonl")
        settings = make_settings(model, size, "random")
        self.checkpoint = train_model(settings, sample, self.folder / "model", tell(f"{model}: "))

    def kept(self, what: str) -> list[dict[str, Any]]:
        return [line for line in self.journal.read() if line["what"] == what]

    def run_search(self, way: str) -> tuple[Outcome, float]:
        """Search, or go on with a search; returns the processor seconds of it all, too."""
        settings = make_settings(self.model, self.size, way)
        place = self.folder / way.replace(", ", "-")
        resume = (place / "journal.jsonl").exists()
        before, started = read_records(place).seconds if resume else 0.0, time.process_time()
        result = run_search(
            settings,
            self.sample,
            place,
            workers=self.size.workers,
            resume=resume,
            checkpoint=self.checkpoint,
            progress=tell(f"{self.model}, {way}: "),
        )
        driver = time.process_time() - started
        seconds = read_records(place).seconds
        if self.size.workers == 1:
            # The jobs ran in this process, and are counted by themselves.
            driver -= seconds - before
        if not self.kept(way):
            self.journal.append({"what": way, "driver": driver})
        return result.outcome, seconds + self.kept(way)[0]["driver"]

    def time_plain(self) -> tuple[float, float]:
        """Time the plain loop on the first candidates; returns seconds a policy for S_pri and for S_acc."""
        policies = [str(draw_policy(0, number)) for number in range(self.size.plain)]
        done = {line["policy"] for line in self.kept("plain")}
        todo = [policy for policy in policies if policy not in done]
        # S_acc as the papers' code takes it: ten batches, or as many as there are.
        settings = replace(make_settings(self.model, self.size, "random"), accuracy_batches=10)
        inputs = make_inputs(settings, self.sample, prepare_model(self.checkpoint, 0))
        with Workers(self.size.workers) as crew:
            shared = crew.share(inputs)

            def keep(position: int, seconds: tuple[float, float]) -> None:
                line = {"what": "plain", "policy": todo[position], "privacy": seconds[0], "accuracy": seconds[1]}
                self.journal.append(line | {"batches": inputs.accuracy_batches})
                tell(f"{self.model}, ")("plain loop", position + 1, len(todo))

            crew.run([PlainJob(shared, policy) for policy in todo], on_result=keep)
        lines = self.kept("plain")
        # The bundled sample has images for eight batches only.
        scale = 10 / lines[0]["batches"]
        return mean([line["privacy"] for line in lines]), scale * mean([line["accuracy"] for line in lines])


def tell(prefix: str) -> Any:
    """Report on stderr, on a line that is written over."""

    def report(what: str, done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{prefix}{what} {done}/{total}", end="", file=sys.stderr, flush=True)

    return report


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def stability(outcome: Outcome, keep: int) -> int:
    """Count how many of the best on one half of the images are among the best on the other."""
    exact = [candidate for candidate in outcome.candidates if candidate.exact]
    halves = [
        {one.key for one in sorted(exact, key=lambda one: mean(one.privacy_scores[first::2]))[:keep]}
        for first in (0, 1)
    ]
    return len(halves[0] & halves[1])


def compare(bench: Bench) -> dict[str, float]:
    """Run everything for one model and print its lines; returns the gains."""
    size = bench.size
    privacy, accuracy = bench.time_plain()
    results = {way: bench.run_search(way) for way in WAYS}
    scored = results["random"][0]
    keys = {candidate.key for candidate in scored.candidates if candidate.status != "unfit"}
    qualified = sum(str(simplify(draw_policy(0, number))) in keys for number in range(size.candidates))
    plain = size.candidates * accuracy + qualified * privacy
    print(f"\n{bench.model}: {size.candidates} candidates ({len(scored.candidates)} functions), {size.images} images")
    print(f"  S_acc at least {THRESHOLDS[bench.model]}: {qualified} qualify; the best {size.keep} are kept")
    each = f"{privacy:.2f} s S_pri, {accuracy:.2f} s S_acc"
    print(f"  {'plain loop':<18} {plain:6.0f} s, scaled linearly from {size.plain} policies ({each})")
    for way, (outcome, work) in results.items():
        print(f"  {way:<18} {work:6.0f} s, {plain / work:5.1f}x; {describe(outcome, scored)}")
    print(f"  stability: {stability(scored, size.keep)} of {size.keep} best the same on two halves of the images")
    return {way: plain / work for way, (_, work) in results.items()}


def describe(outcome: Outcome, scored: Outcome) -> str:
    """Say what was kept, judged by the scores of `random`, and what was computed for it."""
    means = {candidate.key: candidate.mean for candidate in scored.candidates if candidate.exact}
    best, kept = ([candidate.key for candidate in one.kept] for one in (scored, outcome))
    off = mean([means[key] for key in kept]) / mean([means[key] for key in best]) - 1
    exact = sum(candidate.exact for candidate in outcome.candidates)
    computed = f"{exact} in full, {len(outcome.accuracy_scores)} S_acc"
    return f"{len(set(best) & set(kept))} of {len(best)} best, their S_pri {off:+.2%}; {computed}"


def main(words: Sequence[str] = ()) -> None:
    """Print the comparison for each model, and the projection."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small one, to try the benchmark itself")
    parser.add_argument("--models", nargs="+", choices=sorted(THRESHOLDS))
    for name in ("candidates", "images", "keep", "plain", "workers"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args(list(words))
    given = {key: value for key, value in vars(chosen).items() if key not in ("quick", "out") and value is not None}
    if "models" in given:
        given["models"] = tuple(given["models"])
    size = replace(QUICK if chosen.quick else Size(), **given)
    torch.set_num_threads(1)
    sample = data.load("fashion-mnist-sample")
    gains: dict[str, list[float]] = {way: [] for way in WAYS}
    for model in size.models:
        bench = Bench(model, size, sample, chosen.out)
        for name, gain in compare(bench).items():
            gains[name].append(gain)
    print_projection(bench.run_search("random")[0])
    for name, values in gains.items():
        target = f"; target {TARGETS[name]:.0f}x" if name in TARGETS else ""
        span = f"{min(values):.1f}x to {max(values):.1f}x"
        print(f"search, {name}: {span} over the plain baseline (n={len(values)} models{target})")


if __name__ == "__main__":
    main(sys.argv[1:])
