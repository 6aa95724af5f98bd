"""What one step of gradient matching costs: the published loop written plainly, ours, and ours without a recording.

By turns, processor time, one thread. `python -m benchmarks.attack_steps keep` also writes the figures into
`docs/measured/speed`.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.attacks import make_task, our_loop, plain_loop, release
from gradveil import data
from gradveil.data import DataSet
from gradveil.experiments.versions import name_makers
from gradveil.gradients import recorded
from gradveil.journal import Journal
from gradveil.models import ModelSpec
from gradveil.results import provenance, write_file
from gradveil.rng import generator
from gradveil.study import PROVENANCE
from gradveil.types import Task, Update

FOLDER = Path(__file__).parents[1] / "docs" / "measured" / "speed"
PAGE, JOURNAL = FOLDER / "attack-steps.md", FOLDER / "journal.jsonl"
TIMED = ("lenet-relu", "mlp", "convnet-8", "convnet-16", "resnet20-1")
STEPS, TOGETHER, REPEATS = 240, 8, 3
PLAIN_STEPS = 60
PEAK_SIDE, PEAK_REPEATS = 1024, 8
COLUMNS = (
    *("model", "plain loop, ms", "ours, 1 image, ms", f"ours, {TOGETHER} together, ms"),
    *("the same without a recording, ms", "gain by recording", "share of the peak"),
)


def measure(model: str, sample: DataSet) -> dict[str, Any]:
    """Time a model, untrained: milliseconds a step and image, by turns, and the share of the peak of a product."""
    spec = ModelSpec(model, sample.shape, sample.classes, sample.mean, sample.std)
    network = spec.build(generator(0, "model")).eval()
    task, updates = make_task(network, sample), release(network, sample, range(TOGETHER))
    operations = count_operations(task, updates[0])
    ways: dict[str, Callable[[], float]] = {
        "plain": lambda: plain_loop(network, sample, updates[0], sample.test.labels[:1], PLAIN_STEPS),
        "one": lambda: our_loop(task, updates[:1], STEPS),
        "together": lambda: our_loop(task, updates, STEPS),
        "unrecorded": lambda: without_recording(task, updates),
        "peak": matrix_peak,
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS):
        for name, way in ways.items():
            found[name].append(way())
    times = {name: [round(1e3 * value, 4) for value in found[name]] for name in ways if name != "peak"}
    shares = [operations / step / peak for step, peak in zip(found["together"], found["peak"], strict=True)]
    return {"model": model, "steps": STEPS, **times, "shares": [round(share, 4) for share in shares]}


def without_recording(task: Task, updates: Sequence[Update]) -> float:
    with patch.object(recorded, "AFTER", sys.maxsize):
        return our_loop(task, updates, STEPS)


def matrix_peak() -> float:
    """Measure how many floating-point operations a second a large matrix product reaches: the best of several."""
    left, right = (torch.randn(PEAK_SIDE, PEAK_SIDE, generator=generator(0, "peak", side)) for side in "lr")
    taken = []
    for _ in range(PEAK_REPEATS):
        started = time.process_time()
        left @ right
        taken.append(time.process_time() - started)
    return float(2 * PEAK_SIDE**3 / min(taken))


def count_operations(task: Task, update: Update) -> int:
    """Count the floating-point operations of one step on one image, those of convolutions and matrix products.

    Of one image alone: side by side, images are groups of one convolution, which torch counts wrongly.
    """
    counts = []
    for steps in (1, 2):
        with FlopCounterMode(display=False) as counter:
            our_loop(task, [update], steps)
        counts.append(int(counter.get_total_flops()))
    return counts[1] - counts[0]


def render(lines: Sequence[Mapping[str, Any]]) -> str:
    """Write the page."""
    rows = [render_line(line) for line in lines]
    table = [COLUMNS, tuple("---" for _ in COLUMNS), *rows]
    return "\n".join(
        [
            "# What a step of gradient matching costs",
            "",
            "Adam+Cosine as published, untrained models, grey images; milliseconds of processor time a step and image, "
            f"median of {REPEATS} (least, most), one thread, by turns. Ours are whole runs of {STEPS} steps, the "
            "recording included; a recording replays the same operations, to the last bit. The peak is that of one "
            "large matrix product in the same run; a convolution can be faster.",
            "",
            *("| " + " | ".join(row) + " |" for row in table),
            "",
            "## Where these figures come from",
            "",
            *name_makers(lines),
            "",
        ]
    )


def render_line(line: Mapping[str, Any]) -> tuple[str, ...]:
    gains = [slow / fast for slow, fast in zip(line["unrecorded"], line["together"], strict=True)]
    times = [write(line[name], ".2f") for name in ("plain", "one", "together", "unrecorded")]
    return (
        line["model"],
        *times,
        write(gains, ".2f") + "×",
        write([100 * share for share in line["shares"]], ".0f") + "%",
    )


def write(values: Sequence[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}}, {max(values):{form}})"


def main() -> None:
    torch.set_num_threads(1)
    sample = data.load("fashion-mnist-sample")
    lines = []
    for model in TIMED:
        lines.append({**measure(model, sample), PROVENANCE: provenance()})
        print(" | ".join(render_line(lines[-1])), flush=True)
    if sys.argv[1:2] == ["keep"]:
        FOLDER.mkdir(parents=True, exist_ok=True)
        JOURNAL.unlink(missing_ok=True)
        for line in lines:
            Journal(JOURNAL).append(line)
        write_file(PAGE, render(Journal(JOURNAL).read()))


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["keep"]):
        sys.exit("unknown argument: give `keep`, or nothing")
    main()
