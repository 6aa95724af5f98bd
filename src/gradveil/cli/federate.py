"""`gradveil federate`: train a model together, as participants of a collaborative training would."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from rich.progress import MofNCompleteColumn

from gradveil import data as data_sets
from gradveil.cli import federate_options as ask
from gradveil.cli.arms import NamedObjects, find_named, refuse_changed_models, write_arm
from gradveil.cli.audit_table import print_report
from gradveil.cli.federate_tables import make_table, summarise
from gradveil.cli.options import (
    AsJson,
    DataName,
    DryRun,
    ModelName,
    Out,
    Overwrite,
    PlainConsole,
    Quiet,
    Resume,
    Root,
    Seed,
    WorkerCount,
    make_console,
    print_json,
)
from gradveil.cli.plans import print_plan, say_plan
from gradveil.cli.progress import progress_bar, single_bar
from gradveil.cli.runs import Run
from gradveil.data import DataSet
from gradveil.errors import SettingsError
from gradveil.federated import FEDAVG, FederatedSettings, RoundOutcome, estimate_federated, is_unfinished
from gradveil.reports import draw_leak_by_round, draw_rounds, pictures_of, record_of, write_audit
from gradveil.results import write_file
from gradveil.types import LocalTraining, Mode, OptimiserName

DEFAULTS = FederatedSettings()
OBSERVATION = "observation"
BY_CLASS = "classes:2"
PIECES = ("resume.safetensors", "journal.jsonl", "final.*", "round-*.*", "capsules", "curve.png")
"""What a run leaves that was cut short."""


def federate(
    data: DataName = DEFAULTS.data,
    root: Root = None,
    model: ModelName = DEFAULTS.model,
    clients: ask.Clients = DEFAULTS.clients,
    rounds: ask.Rounds = None,
    algorithm: ask.AlgorithmName = DEFAULTS.algorithm,
    policy: ask.PolicyText = "none",
    base: ask.Base = True,
    defence: ask.Defences = None,
    mode: ask.ModeName = FEDAVG.mode,
    partition: ask.PartitionName = DEFAULTS.partition,
    batch_size: ask.BatchSize = None,
    local_epochs: ask.LocalEpochs = None,
    local_steps: ask.LocalSteps = None,
    local_optimiser: ask.LocalOptimiser = FEDAVG.optimiser,
    local_momentum: ask.LocalMomentum = FEDAVG.momentum,
    server_momentum: ask.ServerMomentum = DEFAULTS.server_momentum,
    learning_rate: ask.LearningRate = None,
    capture: ask.Capture = "",
    keep_truth: ask.KeepTruth = False,
    observe: ask.Observe = "",
    observe_attack: ask.ObserveAttack = "standard",
    observe_steps: ask.ObserveSteps = None,
    together: ask.ObserveTogether = False,
    checkpoints: ask.Checkpoints = "",
    engine: ask.Engine = "in-process",
    topology: ask.TopologyOption = "server",
    observer: ask.Observer = 0,
    secure: ask.Secure = False,
    workers: WorkerCount = 1,
    least_valid: ask.LeastValid = None,
    largest_norm: ask.LargestNorm = DEFAULTS.largest_norm,
    timeout: ask.Timeout = DEFAULTS.timeout,
    resume: Resume = None,
    out: Out = Path("runs/federate"),
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train together with others on Flower; the weights, captured rounds and federate.json go to the folder."""
    from gradveil.federated import run_federated

    console = make_console(quiet, as_json)
    arm = write_arm(base, policy, defence or [])
    named = find_named([observe_attack], [arm])
    refuse_changed_models(named.defences)
    training = DEFAULTS.training
    if algorithm == "fedsgd" and learning_rate is not None:
        training = replace(training, learning_rate=learning_rate)
    settings = FederatedSettings(
        data=data,
        model=model,
        clients=clients,
        algorithm=algorithm,  # type: ignore[arg-type]  # a wrong name is refused there
        arm=arm,
        own=named.defences,
        code=named.sources,
        partition=BY_CLASS if partition == "by-class" else partition,
        rounds=rounds,
        batch_size=batch_size,
        local=choose_local(local_epochs, local_steps, batch_size, local_optimiser, learning_rate, local_momentum, mode),
        server_momentum=server_momentum,
        training=training,
        least_valid=least_valid,
        largest_norm=largest_norm,
        timeout=timeout,
        seed=seed,
    )
    observed, kept = read_rounds(observe, "--observe"), read_rounds(checkpoints, "--checkpoints")
    captured = sorted({*read_rounds(capture, "--capture"), *observed})
    if observe_steps is not None and observe_steps < 1:
        raise SettingsError(f"--observe-steps {observe_steps}: give 1 or more")
    with progress_bar(console) as loading:
        loaded = data_sets.load(data, root, loading)
    if dry_run or not console.quiet:
        estimate = estimate_federated(settings, loaded, workers)
    if dry_run:
        print_plan(console, as_json, "federate", estimate)
        return
    if not console.quiet:
        console.print(say_plan(estimate), highlight=False)
    with Run("federate", out, is_unfinished, PIECES).folder(resume is not None, overwrite) as folder:
        with rounds_bar(console) as progress:
            result = run_federated(
                settings,
                loaded,
                folder,
                engine=engine,  # type: ignore[arg-type]  # a wrong name is refused there
                workers=workers,
                capture=captured,
                keep_truth=keep_truth or bool(observed),
                checkpoints=kept,
                resume=resume is not None,
                progress=progress,
                root=root,
                topology=topology,  # type: ignore[arg-type]  # a wrong name is refused there
                observer=observer,
                secure=secure,
            )
        title = f"{settings.model} on {settings.data}, {settings.clients} clients, {settings.algorithm}, {settings.arm}"
        write_file(folder / "curve.png", draw_rounds(result.rounds, title))
        if observed:
            watched = Observation(observed, observe_steps, together, model, arm, seed)
            attack_captured(folder, loaded, named, watched, console)
    if as_json:
        print_json(json.loads((folder / "federate.json").read_text()))
    console.print(make_table(result.rounds))
    console.print(summarise(settings, result.rounds, result.seconds, folder))


@dataclass(frozen=True)
class Observation:
    """What the curious server attacks, and how."""

    rounds: Sequence[int]
    steps: int | None
    together: bool
    model: str
    arm: str
    seed: int


def attack_captured(
    folder: Path, data: DataSet, named: NamedObjects, watched: Observation, console: PlainConsole
) -> None:
    """Let the server attack the updates of some rounds; the report and the picture go to a folder of their own."""
    from gradveil.federated import observe

    with progress_bar(console) as show:
        report = observe(
            folder,
            data,
            watched.rounds,
            named.attacks,
            steps=watched.steps,
            together=watched.together,
            model=watched.model if ":" in watched.model else None,
            own=named.by_their_words(),
            code=named.sources,
            arm=watched.arm,
            seed=watched.seed,
            progress=lambda stage, share: show(stage, round(100 * share), 100),
        )
    place = folder / OBSERVATION
    place.mkdir(exist_ok=True)
    title = f"{', '.join(named.attacks)} on the updates of {report.settings.model}, {report.settings.arms[0]}"
    write_file(place / "leak.png", draw_leak_by_round(report.rows, title))
    write_audit(place, record_of(report), pictures_of(report))
    print_report(console, report, place)


def choose_local(
    epochs: int | None,
    steps: int | None,
    batch_size: int | None,
    optimiser: str,
    learning_rate: float | None,
    momentum: float,
    mode: str,
) -> LocalTraining:
    """Take the local training of FedAvg and put what the person chose in its place."""
    for name, value, allowed in (("mode", mode, Mode), ("local optimiser", optimiser, OptimiserName)):
        if value not in get_args(allowed):
            raise SettingsError(f"{name} '{value}': choose from {', '.join(get_args(allowed))}")
    return replace(
        FEDAVG,
        epochs=epochs,
        steps=FEDAVG.steps if epochs is None and steps is None else steps,
        batch_size=FEDAVG.batch_size if batch_size is None else batch_size,
        optimiser=optimiser,  # type: ignore[arg-type]
        learning_rate=FEDAVG.learning_rate if learning_rate is None else learning_rate,
        momentum=momentum,
        mode=mode,  # type: ignore[arg-type]
    )


def read_rounds(text: str, option: str) -> list[int]:
    """Read numbers of rounds with commas between.

    >>> read_rounds("1,10", "--capture")
    [1, 10]
    """
    if not re.fullmatch(r"\s*|\s*\d{1,9}\s*(,\s*\d{1,9}\s*)*", text, re.ASCII):
        raise SettingsError(f"{option} {text}: write the numbers of rounds with commas between, as in 1,10")
    return sorted({int(part) for part in text.split(",") if part.strip()})


@contextmanager
def rounds_bar(console: PlainConsole) -> Iterator[Callable[[RoundOutcome, int], None]]:
    """Show how many rounds are done, with the latest figures."""
    with single_bar(console, MofNCompleteColumn()) as show:
        tested = ""

        def report(outcome: RoundOutcome, rounds: int) -> None:
            nonlocal tested
            if outcome.test_accuracy is not None:
                tested = f", test {outcome.test_accuracy:.1%}"
            dropped = f", {len(outcome.dropped)} dropped" if outcome.dropped else ""
            loss = "" if outcome.loss is None else f", loss {outcome.loss:.3f}"
            show(f"round {outcome.round}{loss}{tested}{dropped}", outcome.round, rounds)

        yield report
