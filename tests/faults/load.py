"""Measure large work on a cheap model: memory while it grows, time, and how heavy the page is."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradveil.journal import Journal
from gradveil.results import provenance
from tests.faults.processes import Command, FaultError, Place, start_real

JOURNAL = "load.jsonl"
PAUSE = 0.5
HOURS = 2.0
FIRST = 0.1
"""Memory grows from where so large a share of the work is done: before that, libraries are loaded."""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
OPENED = "gradveil"
OPENINGS = 3
"""How often a page is opened; the quickest counts, because the machine may be busy."""


@dataclass(frozen=True)
class Work:
    """A command of many units, how to count those that are done, and the page that it writes."""

    name: str
    units: int
    words: tuple[str, ...]
    count: Callable[[Path], int]
    page: str


def write_many(path: Path) -> None:
    """Write a data set with 2,400 test images of 12 × 12 pixels in ten classes; 600 to train on."""
    source = np.random.default_rng(20)

    def draw(count: int) -> tuple[Any, Any]:
        labels = np.arange(count) % 10
        images = source.integers(0, 100, (count, 12, 12)) + 15 * labels[:, None, None]
        return images.astype(np.uint8), labels

    (train, train_labels), (test, test_labels) = draw(600), draw(2400)
    arrays = {"train_images": train, "train_labels": train_labels, "test_images": test, "test_labels": test_labels}
    np.savez(path, allow_pickle=False, class_names=np.array([f"class {number}" for number in range(10)]), **arrays)


def works(data: Path, images: int, candidates: int) -> list[Work]:
    """List what is measured."""
    shared = ("--data", f"npz:{data}", "--quiet", "--workers", "1")
    mlp = ("--model", "mlp", "--phase", "init", "--defence", "none", "--attack", "analytic")
    audit = (*mlp, "--images", str(images), "--all-images")
    relu = ("--model", "lenet-relu", "--epochs", "1", "--images", "2")
    search = (*relu, "--candidates", str(candidates), "--keep", "10")
    return [
        Work("audit, images", images, ("audit", *shared, *audit), count_kept, "report.html"),
        Work("search, candidates", candidates, ("search", *shared, *search), count_scored, "index.html"),
    ]


def count_kept(out: Path) -> int:
    """Count the finished jobs of an audit."""
    return len(list((out / "work").glob("*.safetensors")))


def count_scored(out: Path) -> int:
    """Count the lines of a search."""
    path = out / "journal.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def watch(command: Command, work: Work) -> list[tuple[int, float]]:
    """Note, while a command runs, how many pieces are done and how many megabytes it holds."""
    points: list[tuple[int, float]] = []
    end = time.monotonic() + 3600 * HOURS
    while not command.is_over():
        if time.monotonic() > end:
            raise FaultError(f"{work.name}: not over after {HOURS:g} hours")
        held = read_status(command.process, "VmRSS")
        if held is not None:
            points.append((work.count(command.place.out), held))
        time.sleep(PAUSE)
    return points


def read_status(process: int, name: str) -> float | None:
    """Read a figure of a process in megabytes; None if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith(f"{name}:")]
    return int(found[0][1]) / 1024 if found else None


def find_growth(points: list[tuple[int, float]], units: int) -> float:
    """Find by how many kilobytes the memory grows for each unit, by least squares, after the first tenth."""
    most = max(done for done, _ in points)
    later = [(done * units / most, held) for done, held in points if done >= FIRST * most] if most else []
    if len({done for done, _ in later}) < 2:
        return 0.0
    slope, _ = np.polyfit([done for done, _ in later], [held for _, held in later], 1)
    return float(1024 * slope)


def thin_out(points: list[tuple[int, float]], count: int = 20) -> list[list[float]]:
    """Keep some of the points, evenly."""
    chosen = sorted({round(step * (len(points) - 1) / (count - 1)) for step in range(count)})
    return [[points[place][0], round(points[place][1], 1)] for place in chosen]


def open_page(page: Path) -> float | None:
    """Open a page in a browser without a window; return the seconds until its text is there, None without a browser."""
    browser = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if browser is None:
        return None
    with tempfile.TemporaryDirectory() as profile:
        words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom"]
        started = time.monotonic()
        done = subprocess.run([*words, page.as_uri()], capture_output=True, text=True, timeout=600, check=True)
        seconds = time.monotonic() - started
    if OPENED not in done.stdout:
        raise FaultError(f"{page} shows nothing in {browser}")
    return seconds


def measure(work: Work, root: Path) -> dict[str, Any]:
    """Run the command and look at its memory; then open its page."""
    place = Place(Path(tempfile.mkdtemp(dir=root))).make()
    command = start_real((*work.words, "--out", str(place.out)), place)
    points = watch(command, work)
    ended = command.wait()
    if ended.code != 0:
        raise FaultError(f"{work.name} ends with {ended.code}: {ended.said[-500:]}")
    openings = [seconds for _ in range(OPENINGS) if (seconds := open_page(place.out / work.page)) is not None]
    return {
        "work": work.name,
        "units": work.units,
        "words": [word.replace(str(root), "") for word in work.words],
        "seconds": round(ended.seconds, 1),
        "peak_megabytes": round(max(held for _, held in points), 1),
        "growth_kilobytes": round(find_growth(points, work.units), 3),
        "page_megabytes": round((place.out / work.page).stat().st_size / 2**20, 2),
        "opens_seconds": round(min(openings), 2) if openings else None,
        "openings": [round(seconds, 2) for seconds in openings],
        "points": thin_out(points),
    }


def run(folder: Path, minutes: float, images: int = 2000, candidates: int = 20_000) -> None:
    """Measure what the journal lacks; `minutes` does not limit it."""
    del minutes
    journal = Journal(folder / JOURNAL)
    done = {line["work"] for line in journal.read()}
    with tempfile.TemporaryDirectory(prefix="gradveil-load-") as name:
        root = Path(name)
        write_many(root / "data.npz")
        for work in works(root / "data.npz", images, candidates):
            if work.name not in done:
                line = measure(work, root)
                journal.append({**line, "made_by": provenance()})
                print(line, flush=True)
